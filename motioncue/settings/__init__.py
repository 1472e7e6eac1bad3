"""The settings of the cueing algorithms: one file per algorithm, one row here.

`motioncue.cueing` finds an algorithm by its name, the tag of its settings.
"""

from typing import TypeAlias, get_args

from motioncue.settings.adaptive import Adaptive
from motioncue.settings.classical import Classical
from motioncue.settings.direct import Direct
from motioncue.settings.optimal import Optimal
from motioncue.settings.predictive import Predictive
from motioncue.settings.table import CueingTable

__all__ = ["ALGORITHMS", "Cueing"]

Cueing: TypeAlias = Direct | Classical | Adaptive | Optimal | Predictive
"""The ``cueing`` table of a profile: one type per algorithm."""

ALGORITHMS: dict[str, type[CueingTable]] = {kind.__struct_config__.tag: kind for kind in get_args(Cueing)}
"""The settings of each algorithm by its name."""
