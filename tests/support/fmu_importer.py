"""An importer of FMUs, by ctypes: each call as the standard declares it, and what `motioncue.bind` gives instead."""

import ctypes
import os
import sys
import sysconfig
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import motioncue
from motioncue.core.channels import ACTUATION_DTYPE, BODY, CUE, MOTION_DTYPE
from motioncue.engine.fmu import export_fmu

BUILDS = (
    sys.platform == "linux"
    and "MOTIONCUE_PROGRAMS" not in os.environ
    and (Path(sysconfig.get_path("include")) / "Python.h").exists()
)
builds = pytest.mark.skipif(not BUILDS, reason="builds a library for Linux, which needs a compiler and Python.h")

INPUTS = {channel.name: number for number, channel in enumerate(BODY)}
OK, WARNING, ERROR = 0, 1, 3
REAL, SIZE, TEXT, POINTER = ctypes.c_double, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_void_p
LOG_2 = ctypes.CFUNCTYPE(None, POINTER, TEXT, ctypes.c_int, TEXT, TEXT)
LOG_3 = ctypes.CFUNCTYPE(None, POINTER, ctypes.c_int, TEXT, TEXT)


class Callbacks(ctypes.Structure):
    _fields_ = [("log", LOG_2), ("others", POINTER * 3), ("environment", POINTER)]


class Unit:
    """An importer's view of an unzipped FMU, with calls as the standard declares them."""

    def __init__(self, folder, *, token=None, resources=None):
        description = ElementTree.parse(folder / "modelDescription.xml").getroot()
        self.version = description.get("fmiVersion")[0]
        (library,) = (folder / "binaries").glob("*/motioncue.so")
        self.loaded, self.log = ctypes.CDLL(str(library)), []
        token = (token or description.get("guid") or description.get("instantiationToken")).encode()
        places = {"2": (folder / "resources").as_uri(), "3": f"{folder / 'resources'}/"}
        place = (places[self.version] if resources is None else resources).encode()
        if self.version == "2":
            self._kept = LOG_2(lambda _, name, status, category, text: self._note(status, category, text))
            self._callbacks = Callbacks(self._kept)
            made = self._function("Instantiate", POINTER)
            self.fmu = made(b"rig", 1, token, place, ctypes.byref(self._callbacks), 0, 1)
        else:
            self._kept = LOG_3(lambda _, status, category, text: self._note(status, category, text))
            made = self._function("InstantiateCoSimulation", POINTER)
            off = ctypes.c_bool(False)
            self.fmu = made(b"rig", token, place, off, off, off, off, None, SIZE(0), None, self._kept, None)

    def _note(self, status, category, text):
        self.log.append((status, category.decode(), text.decode()))

    def _function(self, name, result=ctypes.c_int):
        function = getattr(self.loaded, f"fmi{self.version}{name}")
        function.restype = result
        return function

    def call(self, name, *values):
        return self._function(name)(POINTER(self.fmu), *values)

    def initialize(self, start=0.0):
        assert self.enter(start) == OK
        assert self.call("ExitInitializationMode") == OK
        return self

    def enter(self, start):
        bounds = 0, REAL(0.0), REAL(start), 0, REAL(0.0)
        if self.version == "3":
            return self.call("EnterInitializationMode", *bounds)
        return self.call("SetupExperiment", *bounds) or self.call("EnterInitializationMode")

    def _reals(self, name, numbers, values):
        more = [SIZE(len(numbers))] if self.version == "3" else []
        references = (ctypes.c_uint32 * len(numbers))(*numbers)
        kind = "Float64" if self.version == "3" else "Real"
        return self.call(f"{name}{kind}", references, SIZE(len(numbers)), values, *more)

    def set(self, **values):
        return self.set_numbers({INPUTS[name]: value for name, value in values.items()})

    def set_numbers(self, values):
        return self._reals("Set", list(values), (REAL * len(values))(*values.values()))

    def get(self, *numbers):
        values = (REAL * len(numbers))()
        assert self._reals("Get", numbers, values) == OK, self.log
        return np.array(values)

    def park(self, parked):
        kind = ctypes.c_bool if self.version == "3" else ctypes.c_int
        more = [SIZE(1)] if self.version == "3" else []
        return self.call("SetBoolean", (ctypes.c_uint32 * 1)(50), SIZE(1), (kind * 1)(parked), *more)

    def step(self, at, duration):
        if self.version == "2":
            return self.call("DoStep", REAL(at), REAL(duration), 1)
        self.said = [ctypes.c_bool(True) for _ in range(3)]
        self.reached = REAL()
        pointers = [ctypes.byref(each) for each in (*self.said, self.reached)]
        return self.call("DoStep", REAL(at), REAL(duration), ctypes.c_bool(True), *pointers)

    def outputs(self, actuators=6):
        """Return the cue's channels and the actuators."""
        return self.get(*range(100, 114), *range(118, 118 + actuators))


def sent(actuation):
    """Return the same of what `bind` fills."""
    return np.concatenate([[actuation[each.name].item() for each in CUE[:-1]], actuation["actuators"].ravel()[:6]])


def bound(profile="ccd-hexapod"):
    return motioncue.bind(profile, actuation=np.zeros(1, ACTUATION_DTYPE))


def drive(rows, seed=1):
    """Return a drive of smooth noise, which stays within what a car does."""
    motion = np.zeros(rows, MOTION_DTYPE)
    rng = np.random.default_rng(seed)
    for name in INPUTS:
        motion[name] = np.convolve(rng.normal(size=rows + 99), np.ones(100) / 30.0, "valid")
    return motion


def unzipped(folder, profile="ccd-hexapod", version="2"):
    export_fmu(motioncue.load_profile(profile), folder / "rig.fmu", version)
    place = folder / f"a rig 100% é {version}"  # an importer's folder may be called anything
    with zipfile.ZipFile(folder / "rig.fmu") as archive:
        archive.extractall(place)
    return place
