"""A profile as a functional mock-up unit (FMU) for co-simulation, by the standard FMI 2.0 or 3.0.

The model description of both versions comes from one list of variables, and that from ``core/channels.py``.  The
library is compiled from ``fmu.c``, which steps the profile through ``motioncue.h``.
"""

import math
import os
import platform as machine
import subprocess
import sys
import sysconfig
import tempfile
import uuid
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np

from motioncue._version import __version__
from motioncue.core.channels import ACTUATION_DTYPE, BODY, CUE, MOTION_DTYPE, MOVERS
from motioncue.engine.assembly import chain_of, period_ns_of
from motioncue.errors import ConfigError, not_among
from motioncue.platforms.build import build
from motioncue.profile.profile import Profile, resolved_text
from motioncue.recording.atomic_file import write_atomically

__all__ = ["VERSIONS", "Variable", "export_fmu", "model_description", "variables"]

VERSIONS = ("2", "3")
"""Versions of FMI that can be written: 2.0 and 3.0."""

PARKED, TIME, FIRST_OUTPUT = 50, 99, 100
"""Value references; a real input's is its place in a Motion, an output's that in an Actuation plus `FIRST_OUTPUT`."""

LARGEST = 3e5
"""Largest magnitude of an input, in its unit: `fmu.c` holds the value before where it finds a larger one, or NaN."""

UNITS = {
    "m/s^2": {"m": "1", "s": "-2"},
    "m/s": {"m": "1", "s": "-1"},
    "m": {"m": "1"},
    "s": {"s": "1"},
    "rad": {"rad": "1"},
    "rad/s": {"rad": "1", "s": "-1"},
    "rpm": {"rad": "1", "s": "-1", "factor": repr(math.pi / 30.0)},
}
"""The channels' units in terms of SI units, as FMI has them."""


class Variable(NamedTuple):
    """A variable of the unit; `low` and `high` in its unit, None where it has no bounds."""

    name: str
    reference: int
    causality: str
    description: str
    unit: str | None = None
    """None if it is a boolean."""
    low: float | None = None
    high: float | None = None


def variables(profile: Profile) -> list[Variable]:
    """Return the variables of a profile's unit: time, the inputs, the outputs."""
    found = [Variable("time", TIME, "independent", "simulated time", "s")]
    for channel in BODY:
        reference = _offset(MOTION_DTYPE, channel.name)
        said = f"the car: {channel.positive.partition('; NaN')[0]}"
        found.append(Variable(f"motion.{channel.name}", reference, "input", said, channel.unit, -LARGEST, LARGEST))
    table = profile.platform
    names: tuple[str, ...] = ()
    if table is not None and "actuator_1" in chain_of(profile, profile.outputs[0]).fills:
        names = build(table).names
        said = "let the actuators sink to where the platform is parked, and rest there; they rise when it is cleared"
        found.append(Variable("parked", PARKED, "input", said))
    for channel in CUE[:-1]:
        whose = "the platform" if channel.name in MOVERS else "the car"
        said = f"{whose}: {channel.positive.partition(';')[0]}"
        found.append(
            Variable(
                f"cue.{channel.name}",
                FIRST_OUTPUT + _offset(ACTUATION_DTYPE, channel.name),
                "output",
                said,
                channel.unit,
            )
        )
    if table is not None:
        for number, (name, bounds) in enumerate(zip(names, build(table).bounds, strict=False)):
            turns = name.startswith("crank") or any(each.name == name and each.turn for each in table.axes)
            reference = FIRST_OUTPUT + _offset(ACTUATION_DTYPE, "actuators") + number
            said = f"position of {name}, before [platform.wiring]"
            unit = "rad" if turns else "m"
            found.append(Variable(f"actuator_{number + 1}", reference, "output", said, unit, bounds.low, bounds.high))
    return found


def _offset(record: np.dtype[np.void], name: str) -> int:
    """Return a channel's place among the numbers of a record, which all have 8 bytes."""
    assert record.fields is not None
    return int(record.fields[name][1]) // 8


def token_of(profile: Profile, version: str) -> str:
    """Return what ties a model description to its library: the same for the same profile and version."""
    said = f"motioncue {__version__} FMI {version}\n{sys.version}\n{resolved_text(profile)}"
    return f"{{{uuid.uuid5(uuid.NAMESPACE_URL, said)}}}"


def model_description(profile: Profile, version: str = "2") -> bytes:
    """Return ``modelDescription.xml`` for FMI `version`."""
    newer, every = version == "3", variables(profile)
    every = every if newer else every[1:]  # without time, for which an importer of FMI 2.0 may want a start value
    root = ElementTree.Element(
        "fmiModelDescription",
        fmiVersion=f"{version}.0",
        modelName=f"motioncue {profile.name}",
        description="Motion cueing: what a car does in, what a motion platform is sent out. Surge forward, sway right, "
        "heave up, gravity excluded; roll right side down, pitch nose up, yaw nose right.",
        generationTool=f"motioncue {__version__}, which has to be installed in Python {sys.version.split()[0]}",
        variableNamingConvention="structured",
    )
    root.set("instantiationToken" if newer else "guid", token_of(profile, version))
    period = f"{period_ns_of(profile) * 1e-9:.9f}"
    kind = ElementTree.SubElement(
        root,
        "CoSimulation",
        modelIdentifier="motioncue",
        needsExecutionTool="true",
        canHandleVariableCommunicationStepSize="true",
    )
    kind.set(*("fixedInternalStepSize", period) if newer else ("canNotUseMemoryManagementFunctions", "true"))
    units = ElementTree.SubElement(root, "UnitDefinitions")
    for name in dict.fromkeys(each.unit for each in every if each.unit is not None):
        ElementTree.SubElement(ElementTree.SubElement(units, "Unit", name=name), "BaseUnit", UNITS[name])
    categories = ElementTree.SubElement(root, "LogCategories")
    for name in ("logStatusWarning", "logStatusError"):
        ElementTree.SubElement(categories, "Category", name=name)
    ElementTree.SubElement(root, "DefaultExperiment", stepSize=period)
    _add_variables(ElementTree.SubElement(root, "ModelVariables"), every, newer)
    _add_outputs(ElementTree.SubElement(root, "ModelStructure"), every, newer)
    ElementTree.indent(root)
    text: bytes = ElementTree.tostring(root, "utf-8", xml_declaration=True)
    return text


def _add_variables(listed: ElementTree.Element, every: Sequence[Variable], newer: bool) -> None:
    """Add the variables; FMI 3.0 has a variable's type as its element, 2.0 within."""
    for each in every:
        kind = "Boolean" if each.unit is None else "Float64" if newer else "Real"
        about = {
            "name": each.name,
            "valueReference": str(each.reference),
            "description": each.description,
            "causality": each.causality,
            "variability": "discrete" if each.unit is None else "continuous",
        }
        bounds = {"unit": each.unit, "min": each.low, "max": each.high}
        typed = {key: str(value) for key, value in bounds.items() if value is not None}
        if each.causality == "input":
            typed["start"] = "false" if each.unit is None else "0"
        if newer:
            ElementTree.SubElement(listed, kind, about | typed)
        else:
            ElementTree.SubElement(ElementTree.SubElement(listed, "ScalarVariable", about), kind, typed)


def _add_outputs(structure: ElementTree.Element, every: Sequence[Variable], newer: bool) -> None:
    """Say on what outputs depend: within a step on no input, since a tick makes them; at first on `parked`."""

    def number(place: int) -> str:
        return str(every[place].reference) if newer else str(place + 1)

    outputs = [place for place, each in enumerate(every) if each.causality == "output"]
    at_first = " ".join(number(place) for place, each in enumerate(every) if each.reference == PARKED)
    for inside, name, depends in (("Outputs", "Output", ""), ("InitialUnknowns", "InitialUnknown", at_first)):
        where = structure if newer else ElementTree.SubElement(structure, inside)
        for place in outputs:
            key = "valueReference" if newer else "index"
            ElementTree.SubElement(where, name if newer else "Unknown", {key: number(place), "dependencies": depends})


def export_fmu(profile: Profile, path: str | Path, version: str = "2", *, force: bool = False) -> Path:
    """Write an FMU of FMI `version` whose outputs are what the profile's first output is sent; return where it is.

    A name that is taken gets a number, unless `force`; ConfigError says what is missing or refused.
    """
    if version not in VERSIONS:
        raise ConfigError(f"--fmi: {not_among(version, VERSIONS)}")
    described = model_description(profile, version)
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "motioncue.so"
        _compile(library, profile, version)
        place = f"{machine.machine()}-linux" if version == "3" else "linux64"
        parts = {
            "modelDescription.xml": described,
            "resources/profile.toml": f"{resolved_text(profile)}\n".encode(),
            f"binaries/{place}/motioncue.so": library.read_bytes(),
        }

    def write(part: Path) -> None:
        with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in parts.items():
                archive.writestr(zipfile.ZipInfo(name), data)

    try:
        return write_atomically(Path(path), write, force=force)
    except OSError as error:
        raise ConfigError(f"--to: {str(path)!r} cannot be written: {error.strerror or error}") from error


def _compile(library: Path, profile: Profile, version: str) -> None:
    """Compile the unit's library for the Python that runs this."""
    if sys.platform != "linux":
        raise ConfigError(f"--to: found {sys.platform}, allowed is Linux for an FMU")
    headers = sysconfig.get_path("include")
    if not (Path(headers) / "Python.h").exists():
        raise ConfigError(f"--to: an FMU needs Python's headers, found none in {headers}: install python3-dev")
    source = Path(__file__).with_name("fmu.c")
    command = [*os.environ.get("CC", "cc").split(), "-shared", "-fPIC", "-O2", "-std=gnu11", "-fvisibility=hidden"]
    command += ["-Wall", f"-I{headers}", f"-I{source.parents[2]}"]
    command += [f"-D{name}={value}" for name, value in _definitions(profile, version)]
    command += [str(source), "-o", str(library), "-lpthread", "-ldl", "-lm"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    except OSError as error:
        raise ConfigError(
            f"--to: an FMU needs a C compiler, found none as {command[0]!r}: install gcc, or name one in CC"
        ) from error
    if done.returncode:
        raise ConfigError(f"--to: {command[0]} did not compile {source}: {done.stderr.strip()[-1000:]}")


def _definitions(profile: Profile, version: str) -> Iterator[tuple[str, object]]:
    """Return what `fmu.c` is told."""
    every = variables(profile)
    shared = f"libpython{sysconfig.get_config_var('LDVERSION')}.so.1.0"
    found = Path(str(sysconfig.get_config_var("LIBDIR"))) / shared
    yield "PYTHON", f'"{sys.executable}"'
    yield "LIBPYTHON", f'"{found if found.exists() else shared}"'
    yield "TOKEN", f'"{token_of(profile, version)}"'
    yield "INPUTS", ",".join(f'"{channel.name}"' for channel in BODY)
    yield "ACTUATORS", sum(each.name.startswith("actuator_") for each in every)
    yield "TIME", TIME
    yield "PARKED", PARKED
    yield "FIRST_OUTPUT", FIRST_OUTPUT
