from typing import Any

__all__: list[str] = []

_capi: Any
