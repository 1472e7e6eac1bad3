"""How punctual and how quick the engine is on a machine: what ``motioncue bench`` measures."""
