"""The settings of the cueing algorithms: one file per algorithm, one row here.

`motioncue.cueing` finds an algorithm by its name, the tag of its settings.
"""

from typing import TypeAlias, get_args

from motioncue.core.table import CueingTable
from motioncue.cueing.adaptive.settings import Adaptive
from motioncue.cueing.classical.settings import Classical
from motioncue.cueing.direct.settings import Direct
from motioncue.cueing.optimal.settings import Optimal
from motioncue.cueing.predictive.settings import Predictive

__all__ = ["ALGORITHMS", "Cueing"]

Cueing: TypeAlias = Direct | Classical | Adaptive | Optimal | Predictive
"""The ``cueing`` table of a profile: one type per algorithm."""

ALGORITHMS: dict[str, type[CueingTable]] = {kind.__struct_config__.tag: kind for kind in get_args(Cueing)}
"""The settings of each algorithm by its name."""
