"""Settings of `direct`: the body frame straight through."""

from motioncue.settings.table import CueingTable

__all__ = ["Direct"]


class Direct(CueingTable, frozen=True, kw_only=True, tag="direct"):
    """Body frame straight through."""

    poses = False
