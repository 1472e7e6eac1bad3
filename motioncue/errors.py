"""The few ways motioncue refuses something, and nothing else."""

__all__ = ["ConfigError", "EndpointError", "MotioncueError", "PacketError"]


class MotioncueError(Exception):
    """Base of every error that motioncue raises on purpose."""


class ConfigError(MotioncueError, ValueError):
    """A profile or a parameter is not allowed: the message names it, what was found and what is allowed."""


class EndpointError(MotioncueError, OSError):
    """An endpoint cannot be understood, opened or reached: a bad URL, a busy port, a missing folder."""


class PacketError(MotioncueError, ValueError):
    """Bytes are not the packet they should be: wrong size, wrong type, truncated, not finite."""
