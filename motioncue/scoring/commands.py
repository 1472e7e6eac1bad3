"""What the actuators of a platform are sent for cues."""

import numpy as np
import numpy.typing as npt

from motioncue.engine.assembly import limits_of_output, period_ns_of
from motioncue.errors import ConfigError
from motioncue.output.actuation import OutputChain
from motioncue.platforms.build import stage_of
from motioncue.profile.profile import Profile
from motioncue.safety.limiter import OutputLimits

__all__ = ["sent"]


def sent(profile: Profile, cues: npt.NDArray[np.void]) -> npt.NDArray[np.float64]:
    """Return the positions that the actuators of a profile's platform are sent for cues.

    Parameters
    ----------
    profile : Profile
        With a platform; its first output need not read actuators.
    cues : ndarray of CUE_DTYPE, shape (n,)
        One row per tick.

    Returns
    -------
    ndarray of float64, shape (n, actuators)
        Within the bounds of the actuators, with the lead that compensates a stated lag [m or rad].

    Raises
    ------
    ConfigError
        If the profile has no platform.
    """
    if profile.platform is None:
        raise ConfigError("platform: missing, allowed is one in the profile")
    stage = stage_of(profile.platform, period_ns_of(profile))
    chain = OutputChain([OutputLimits(limits_of_output(profile, profile.outputs[0])), stage])
    return np.ascontiguousarray(chain.process(cues)["actuators"][:, : len(stage.names)])
