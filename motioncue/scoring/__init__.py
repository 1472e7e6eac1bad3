"""Offline tools: measure the running kernels, compare them with theory, plot."""

from typing import Any

__all__ = ["frequency_response", "step_response", "transfer_function"]


def __getattr__(name: str) -> Any:
    """Return one of these on first use: who needs another module of this room does not load the test's."""
    if name not in __all__:
        raise AttributeError(f"module 'motioncue.scoring' has no attribute {name!r}")
    from motioncue.scoring import omct

    return getattr(omct, name)
