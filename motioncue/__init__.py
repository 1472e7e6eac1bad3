"""Motion cueing for driving simulators: telemetry in, body-frame cues out, on time."""

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
    "load_profile",
]
