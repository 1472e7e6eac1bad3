"""What every stream server is to Python: something that can be woken and closed."""

__all__ = ["Server"]


cdef class Server:
    """A stream server of which one loop, without the GIL, makes the calls in `calls`."""

    def wake(self):
        """Make the loop's wait return, from any thread."""
        if self.calls.wake != NULL:
            self.calls.wake(self.calls.memory)

    def close(self):
        """Stop listening and release everything; call it when no loop runs."""
        raise NotImplementedError
