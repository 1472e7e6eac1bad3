from typing_extensions import disjoint_base

__all__ = ["Server"]

@disjoint_base
class Server:
    def wake(self) -> None: ...
    def close(self) -> None: ...
