"""The settings of the cueing algorithms: one file an algorithm, one row here.

`motioncue.cueing` finds what else belongs to an algorithm by its name, the tag of its settings.
"""

from typing import TypeAlias, get_args

from motioncue.settings.classical import Classical
from motioncue.settings.direct import Direct
from motioncue.settings.table import CueingTable

__all__ = ["ALGORITHMS", "Cueing"]

Cueing: TypeAlias = Direct | Classical
"""What the ``cueing`` table of a profile can be: a row for each algorithm."""

ALGORITHMS: dict[str, type[CueingTable]] = {kind.__struct_config__.tag: kind for kind in get_args(Cueing)}
"""The settings of each algorithm, by its name."""
