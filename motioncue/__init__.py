"""Motion cueing for driving simulators: telemetry in, body-frame cues out, on time."""

from pathlib import Path

from motioncue._version import __version__
from motioncue.errors import ConfigError, EndpointError, MotioncueError, PacketError
from motioncue.kernels.body import body_motion
from motioncue.motion import CUE_DTYPE, MOTION_DTYPE, TICK_DTYPE
from motioncue.profile import Profile
from motioncue.runtime.engine import Engine, cue, load_profile

__all__ = [
    "CUE_DTYPE",
    "MOTION_DTYPE",
    "TICK_DTYPE",
    "ConfigError",
    "EndpointError",
    "Engine",
    "MotioncueError",
    "PacketError",
    "Profile",
    "__version__",
    "body_motion",
    "cue",
    "get_include",
    "load_profile",
]


def get_include() -> str:
    """Return the directory that an extension which cimports the kernels adds to its include path.

    The kernels' C headers are included as ``motioncue/kernels/….h`` from there.
    """
    return str(Path(__file__).parent.parent)
