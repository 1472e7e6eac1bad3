"""The Python side of every stream server: wake and close."""

__all__ = ["Server"]


cdef class Server:
    """A stream server; one loop, without the GIL, calls the functions in `calls`."""

    def wake(self):
        """Make the loop's wait return, from any thread."""
        if self.calls.wake != NULL:
            self.calls.wake(self.calls.memory)

    def close(self):
        """Stop listening and release everything; call it only while no loop runs."""
        raise NotImplementedError
