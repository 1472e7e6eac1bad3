"""Settings of `direct`, which passes the body-frame motion as the cue."""

from motioncue.core.table import CueingTable

__all__ = ["Direct"]


class Direct(CueingTable, frozen=True, kw_only=True, tag="direct"):
    """The body-frame motion is the cue; there are no parameters."""

    poses = False
