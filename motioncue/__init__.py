"""Motion cueing for driving simulators: telemetry in, body-frame cues out, on time."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from motioncue._version import __version__
from motioncue.errors import ConfigError, EndpointError, MotioncueError, PacketError

if TYPE_CHECKING:
    from motioncue.core.channels import ACTUATION_DTYPE, AHEAD_S, CHASSIS_DTYPE, CUE_DTYPE, MOTION_DTYPE, TICK_DTYPE
    from motioncue.cueing.preview import preview
    from motioncue.engine.assembly import actuate, cue, load_profile
    from motioncue.engine.embedding import Rigs, bind, relay
    from motioncue.engine.engine import Engine
    from motioncue.frames.convert import body_motion
    from motioncue.profile.profile import Profile, platform
    from motioncue.recording.recording import read, read_pieces
    from motioncue.scoring.omct import omct
    from motioncue.scoring.score import score
    from motioncue.tuning.tune import tune

__all__ = [
    "ACTUATION_DTYPE",
    "AHEAD_S",
    "CHASSIS_DTYPE",
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
    "read_pieces",
    "relay",
    "score",
    "tune",
]


def get_include() -> str:
    """Return the include directory for C programs, and for extensions that cimport the kernels.

    It contains ``motioncue/motioncue.h``, the interface for C and C++, and the kernels' headers
    ``motioncue/core/….h`` and those of other rooms.
    """
    from pathlib import Path

    return str(Path(__file__).parent.parent)


# Imported on first use, so that the command line starts quickly.
_LATER = {
    "ACTUATION_DTYPE": "motioncue.core.channels",
    "AHEAD_S": "motioncue.core.channels",
    "CHASSIS_DTYPE": "motioncue.core.channels",
    "CUE_DTYPE": "motioncue.core.channels",
    "MOTION_DTYPE": "motioncue.core.channels",
    "TICK_DTYPE": "motioncue.core.channels",
    "Engine": "motioncue.engine.engine",
    "Profile": "motioncue.profile.profile",
    "Rigs": "motioncue.engine.embedding",
    "_capi": "motioncue.engine.capi",  # the capsule for motioncue/motioncue.h
    "actuate": "motioncue.engine.assembly",
    "bind": "motioncue.engine.embedding",
    "body_motion": "motioncue.frames.convert",
    "cue": "motioncue.engine.assembly",
    "load_profile": "motioncue.engine.assembly",
    "omct": "motioncue.scoring.omct",
    "platform": "motioncue.profile.profile",
    "preview": "motioncue.cueing.preview",
    "read": "motioncue.recording.recording",
    "read_pieces": "motioncue.recording.recording",
    "relay": "motioncue.engine.embedding",
    "score": "motioncue.scoring.score",
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
            f"{__path__[0]} is the source folder and is not compiled: run Python in another folder, "
            "or install with pip install -e ."
        ) from error


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
