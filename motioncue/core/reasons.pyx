"""Names of the reason codes, as statistics and logs show them."""

__all__ = ["NAMES", "Reason"]

NAMES = tuple(
    name.lower() for name, member in sorted(Reason.__members__.items(), key=lambda item: item[1]) if name != "REASONS"
)
"""Names of the codes, in order."""
