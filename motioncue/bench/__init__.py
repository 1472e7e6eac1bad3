"""Measurement of how punctual and how quick the engine is on this machine, for ``motioncue bench``."""
