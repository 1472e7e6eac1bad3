"""The records: one layout for C and NumPy, field by field."""

import declare
import msgspec
import numpy as np
import pytest
from reference.records import RECORDS

from motioncue.core.channels import (
    ACTUATION_DTYPE,
    CAR,
    CHASSIS,
    CUE,
    CUE_DTYPE,
    MOTION,
    MOTION_DTYPE,
    MOVERS,
    TICK_DTYPE,
)
from motioncue.safety.settings import CAR_BOUNDS, Limits, OutputLimits


def distinct(dtype):
    """Return one row with another value in every number."""
    row = np.zeros(1, dtype)
    counter = iter(range(1, 1000))

    def fill(part):
        for name in part.dtype.names:
            if part.dtype[name].names:
                fill(part[name])
            else:
                for item in np.nditer(part[name], op_flags=["readwrite"]):
                    item[...] = next(counter) + (0.5 if part.dtype[name].base.kind == "f" else 0)

    fill(row)
    return row


def flat(row):
    """Return a row as nested dicts of Python numbers."""
    return {name: flat(row[name]) if row.dtype[name].names else row[name].tolist() for name in row.dtype.names}


@pytest.mark.parametrize("struct", RECORDS)
def test_c_struct_has_the_size_and_offsets_of_its_dtype(probe, struct):
    size, offsets = probe.layouts()[struct]
    dtype = RECORDS[struct]
    assert size == dtype.itemsize
    assert offsets == {name: dtype.fields[name][1] for name in dtype.names}


@pytest.mark.parametrize(
    ("function", "dtype"), [("motion_fields", MOTION_DTYPE), ("cue_fields", CUE_DTYPE), ("tick_fields", TICK_DTYPE)]
)
def test_c_reads_every_field_that_numpy_wrote(probe, function, dtype):
    row = distinct(dtype)
    assert getattr(probe, function)(row) == flat(row[0])


@pytest.mark.parametrize(
    ("function", "dtype"), [("motion_fields", CUE_DTYPE), ("cue_fields", MOTION_DTYPE), ("tick_fields", CUE_DTYPE)]
)
def test_an_array_of_another_record_is_refused(probe, function, dtype):
    with pytest.raises(ValueError, match="Buffer dtype mismatch"):
        getattr(probe, function)(np.zeros(1, dtype))


@pytest.mark.parametrize("dtype", [*RECORDS.values()])
def test_records_are_made_of_eight_byte_numbers_without_gaps(dtype):
    def numbers(part):
        for name in part.names:
            field = part[name]
            if field.names:
                yield from numbers(field)
            else:
                yield field.base.str, int(np.prod(field.shape, dtype=int))

    found = list(numbers(dtype))
    assert {code for code, _ in found} <= {"<f8", "<i8"}
    assert 8 * sum(count for _, count in found) == dtype.itemsize


def test_actuation_begins_with_a_cue():
    for name in CUE_DTYPE.names:
        assert ACTUATION_DTYPE.fields[name] == CUE_DTYPE.fields[name]


@pytest.mark.parametrize(("table", "dtype"), [(MOTION, MOTION_DTYPE), (CUE, CUE_DTYPE)])
def test_every_channel_has_a_unit_and_a_positive_sense(table, dtype):
    assert tuple(channel.name for channel in table) == dtype.names
    assert all(channel.unit and channel.positive for channel in table)


@pytest.mark.parametrize("name", declare.FILES)
def test_c_and_cython_declare_what_the_table_says(name):
    given, made = declare.written(name)
    assert given == made, f"motioncue/{name}: run tests/support/declare.py, then build"


def test_every_channel_of_a_cue_is_bounded_unless_it_only_informs():
    assert {"speed", "engine_speed", "time"} == {*CUE_DTYPE.names} - {*MOVERS}
    assert [*MOVERS] == [field.name for field in msgspec.structs.fields(Limits)]
    car = [channel.name for channel in CAR]
    beside = [f"car_{kind}" for kind in ("suspension", "suspension_velocity", "slip", "rumble", "cabin", "cabin_angle")]
    assert [*MOVERS, *car, *beside] == [field.name for field in msgspec.structs.fields(OutputLimits)]
    assert len(OutputLimits().chassis_bounds()) == len(CHASSIS)
    assert [*CAR_BOUNDS] == car
