from typing_extensions import disjoint_base

from motioncue.frames.intake import Intake

__all__ = ["Session"]

@disjoint_base
class Session(Intake): ...
