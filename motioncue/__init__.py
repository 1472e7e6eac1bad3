"""Motion cueing for driving simulators: telemetry in, body-frame cues out, on time."""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from motioncue._version import __version__
from motioncue.errors import ConfigError, EndpointError, MotioncueError, PacketError

if TYPE_CHECKING:
    from motioncue.analysis.omct import omct
    from motioncue.analysis.score import score
    from motioncue.cueing.preview import preview
    from motioncue.kernels.body import body_motion
    from motioncue.motion import ACTUATION_DTYPE, AHEAD_S, CUE_DTYPE, MOTION_DTYPE, TICK_DTYPE
    from motioncue.profile import Profile
    from motioncue.recording.load import read
    from motioncue.runtime.assembly import actuate, cue, load_profile
    from motioncue.runtime.embedding import bind, relay
    from motioncue.runtime.engine import Engine
    from motioncue.runtime.platform import platform
    from motioncue.runtime.rigs import Rigs
    from motioncue.tuning.tune import tune

__all__ = [
    "ACTUATION_DTYPE",
    "AHEAD_S",
    "CUE_DTYPE",
    "MOTION_DTYPE",
    "TICK_DTYPE",
    "ConfigError",
    "EndpointError",
    "Engine",
    "MotioncueError",
    "PacketError",
    "Profile",
    "Rigs",
    "__version__",
    "actuate",
    "bind",
    "body_motion",
    "cue",
    "get_include",
    "load_profile",
    "omct",
    "platform",
    "preview",
    "read",
    "relay",
    "score",
    "tune",
]


def get_include() -> str:
    """Return the include directory for C programs, and for extensions that cimport the kernels.

    It contains ``motioncue/motioncue.h``, the interface for C and C++, and the kernels' headers
    ``motioncue/kernels/….h``.
    """
    return str(Path(__file__).parent.parent)


# Imported on first use, so that the command line starts quickly.
_LATER = {
    "ACTUATION_DTYPE": "motioncue.motion",
    "AHEAD_S": "motioncue.motion",
    "CUE_DTYPE": "motioncue.motion",
    "MOTION_DTYPE": "motioncue.motion",
    "TICK_DTYPE": "motioncue.motion",
    "Engine": "motioncue.runtime.engine",
    "Profile": "motioncue.profile",
    "Rigs": "motioncue.runtime.rigs",
    "_capi": "motioncue.runtime.capi",  # the capsule for motioncue/motioncue.h
    "actuate": "motioncue.runtime.assembly",
    "bind": "motioncue.runtime.embedding",
    "body_motion": "motioncue.kernels.body",
    "cue": "motioncue.runtime.assembly",
    "load_profile": "motioncue.runtime.assembly",
    "omct": "motioncue.analysis.omct",
    "platform": "motioncue.runtime.platform",
    "preview": "motioncue.cueing.preview",
    "read": "motioncue.recording.load",
    "relay": "motioncue.runtime.embedding",
    "score": "motioncue.analysis.score",
    "tune": "motioncue.tuning.tune",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'motioncue' has no attribute {name!r}")
    try:
        return getattr(import_module(_LATER[name]), name)
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("motioncue."):
            raise
        raise ImportError(
            f"{Path(__file__).parent} is the source folder and is not compiled: run Python in another folder, "
            "or install with pip install -e ."
        ) from error


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
