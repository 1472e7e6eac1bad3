"""A drive as flat tables, in the libraries that take them, in parts, and in a line or three."""

import pickle
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from kept_drives import path_of

import motioncue
from motioncue.core.channels import CUE, MOTION_DTYPE, TICK_DTYPE
from motioncue.errors import ConfigError
from motioncue.recording.drive import Drive
from motioncue.recording.mcap_reader import Settings
from motioncue.recording.schema import Event, Package
from motioncue.safety.supervisor import State

LEGS = {"platform": {"kind": "hexapod", "preset": "hexapod-dim"}}


@pytest.fixture
def drive():
    """Ten seconds at 100 Hz; the first frame came 20 ms before the first tick."""
    ticks, motion = np.zeros(1000, TICK_DTYPE), np.zeros(600, MOTION_DTYPE)
    ticks["deadline"] = 5_000_000_000 + np.arange(1000) * 10_000_000
    ticks["state"] = np.where(np.arange(1000) < 400, State.ENGAGING, State.RUNNING)
    ticks["cue"]["surge"] = np.arange(1000)
    ticks["actuators"] = np.arange(12)
    motion["time"] = 4_980_000_000 + np.arange(600) * 16_000_000
    packages = [Package(time, 0, b"x") for time in motion["time"].tolist()]
    events = [Event(9_000_000_000, "transition", "engaged", "ENGAGING", "RUNNING")]
    settings = [Settings(4_000_000_000, 0, {"name": "a", **LEGS}), Settings(8_000_000_000, 1, {"name": "b", **LEGS})]
    return Drive(motion, ticks, packages, events, settings, {"epoch_ns": str(10**18)}, ())


def test_a_table_is_flat_with_names_and_one_zero(drive):
    ticks, frames, events = (drive.table(what) for what in ("ticks", "frames", "events"))
    assert {next(iter(table)) for table in (ticks, frames, events)} == {"t"}
    assert {values.ndim for table in (ticks, frames, events) for values in table.values()} == {1}
    assert ticks["t"][[0, -1]].tolist() == pytest.approx([0.0, 9.99])
    assert frames["t"][0] == pytest.approx(-0.02)
    assert events["t"].tolist() == pytest.approx([4.0])
    assert ticks["state"][[399, 400]].tolist() == ["engaging", "running"]
    legs = [name for name in ticks if name.startswith(("leg", "actuator"))]
    assert legs == [f"leg_{number}" for number in range(1, 7)]
    assert [ticks[name][0] for name in legs] == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    units = drive.units()
    assert {f"cue_{channel.name}": channel.unit for channel in CUE}.items() <= units.items()
    assert (units["t"], units["leg_1"]) == ("s", "m")
    assert drive.began == datetime.fromtimestamp(10**9, UTC) + timedelta(seconds=5)
    with pytest.raises(ConfigError, match="found 'tick', allowed are ticks, frames, chassis, events"):
        drive.table("tick")


@pytest.mark.check
@pytest.mark.parametrize("what", ["ticks", "frames", "events"])
def test_pandas_takes_every_table(drive, what):
    table = drive.table(what)
    last = list(table)[-1]
    pandas = pytest.importorskip("pandas")
    frame = drive.to_pandas(what)
    assert frame.index.tolist() == table["t"].tolist()
    assert frame[last].tolist() == pandas.DataFrame(table)[last].tolist() == table[last].tolist()
    assert frame.attrs["units"]["t"] == "s"


@pytest.mark.check
@pytest.mark.parametrize("what", ["ticks", "frames", "events"])
def test_polars_takes_every_table(drive, what):
    pytest.importorskip("polars")
    frame, table = drive.to_polars(what), drive.table(what)
    assert frame.columns == list(table)
    assert all(frame[name].to_list() == values.tolist() for name, values in table.items())


@pytest.mark.check
@pytest.mark.parametrize("what", ["ticks", "frames", "events"])
def test_xarray_takes_every_table(drive, what):
    pytest.importorskip("xarray")
    found, table = drive.to_xarray(what), drive.table(what)
    assert found["t"].values.tolist() == table["t"].tolist()
    assert all(found[name].values.tolist() == values.tolist() for name, values in table.items())
    if what == "ticks":
        assert found["cue_surge"].sel(t=slice(1.0, 1.05)).values.tolist() == [100, 101, 102, 103, 104, 105]
        assert found["cue_surge"].attrs["units"] == "m/s^2"


def test_a_part_has_what_happened_in_it_and_the_settings_in_force(drive):
    event = drive.events[0]
    assert drive.at(event) == pytest.approx(4.0)
    part = drive.between(drive.at(event) - 0.5, drive.at(event) + 0.5)
    assert part.ticks["cue"]["surge"].tolist() == list(range(350, 450))
    assert part.events == [event]
    assert part.profile == {"name": "b", **LEGS}
    assert [package.time for package in part.packages] == part.motion["time"].tolist()
    early = drive.between(end_s=1.0)
    assert (len(early.ticks), early.profile, early.events) == (100, {"name": "a", **LEGS}, [])
    assert len(drive.between().ticks) == 1000


def test_a_drive_says_what_it_is_in_three_short_lines(drive):
    lines = repr(drive).splitlines()
    assert lines[0] == "Drive of 10.0 s: 1000 ticks, 600 frames, 600 packages, 1 events"
    assert lines[1:] == ["  a: hexapod-dim, begun 2001-09-09 01:46:45 UTC", "  nothing is missing"]
    torn = repr(drive._replace(unreadable=tuple(f"damage {n}" for n in range(50)))).splitlines()
    assert torn[2] == "  damage 0; damage 1; damage 2 …"
    kept = motioncue.read(path_of("vehicle-physics-pro"))
    assert len(repr(kept).splitlines()) == 3
    assert len(repr(kept)) < 400


def test_objects_show_themselves_in_notebooks_in_little_and_escaped(drive):
    hostile = drive._replace(settings=[Settings(0, 0, {"name": "<script>alert(1)</script>"})])
    assert "<script" not in hostile._repr_html_()
    for each in (drive, motioncue.load_profile("ccd-dk-washout"), motioncue.platform("posts-4")):
        html = each._repr_html_()
        assert html.startswith("<table")
        assert html.endswith("</table>")
        assert len(html) < 2000


@pytest.mark.parametrize("name", ["hexapod-simona", "posts-4"])
def test_a_platform_goes_to_another_process_and_says_what_it_is(name):
    platform = motioncue.platform(name)
    copy = pickle.loads(pickle.dumps(platform))
    poses = [[0.01, 0.0, 0.02, 0.01, 0.02, 0.0]]
    assert copy.inverse(poses).tolist() == platform.inverse(poses).tolist()
    assert copy.table == platform.table
    assert len(repr(platform).splitlines()) == 3
