"""The table of ``motioncue/motioncue.h``, called by ctypes: as C does, but from Python."""

import ctypes
import re
from pathlib import Path

import motioncue

_HEADER = (Path(motioncue.get_include()) / "motioncue" / "motioncue.h").read_text(encoding="utf-8")
_TEXT, _POINTER, _SIZE = ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t
_CALLS = {
    "create": ctypes.CFUNCTYPE(_POINTER, _TEXT, ctypes.c_double, _TEXT, _SIZE),
    "period_ns": ctypes.CFUNCTYPE(ctypes.c_int64, _POINTER),
    "reset": ctypes.CFUNCTYPE(None, _POINTER),
    "retune": ctypes.CFUNCTYPE(ctypes.c_int, _POINTER, _TEXT, _TEXT, _SIZE),
    "actuate": ctypes.CFUNCTYPE(None, _POINTER, _POINTER, _POINTER),
    "park": ctypes.CFUNCTYPE(None, _POINTER, ctypes.c_int),
    "step": ctypes.CFUNCTYPE(ctypes.c_int, _POINTER, _POINTER, _POINTER),
    "destroy": ctypes.CFUNCTYPE(None, _POINTER),
    "start": ctypes.CFUNCTYPE(_POINTER, _TEXT, _TEXT, _SIZE),
    "feed": ctypes.CFUNCTYPE(ctypes.c_int, _POINTER, _TEXT, _SIZE),
    "stop": ctypes.CFUNCTYPE(None, _POINTER),
    "look": ctypes.CFUNCTYPE(None, _POINTER, _POINTER),
    "wheels": ctypes.CFUNCTYPE(None, _POINTER, _POINTER),
}


class Api(ctypes.Structure):
    """The table of the header, of which only what tests need is called."""

    _fields_ = [
        ("numbers", ctypes.c_uint32 * 2),
        *((name, _CALLS.get(name, _POINTER)) for name in re.findall(r"\(\*(\w+)\)\(", _HEADER)),
    ]


def c_api():
    """Return the table."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return Api.from_address(pointer(motioncue._capi, b"motioncue._capi"))
