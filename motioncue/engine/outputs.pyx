"""The outputs of a loop that emits: whom each packet goes to, and what it is encoded from."""

from libc.math cimport rint
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy

from motioncue.core.threads cimport mc_load
from motioncue.output.sinks cimport OTHERS, PACKET_BYTES, PACKETS, Other, Sink
from motioncue.transports.line cimport Line
from motioncue.transports.sockets cimport packed_address
from motioncue.wire.checksum cimport Seal
from motioncue.wire.codec cimport Table, outgoing_of

__all__ = ["Outputs"]


cdef class Outputs:
    """Packets and where they go; sent once a tick by the class that inherits from this one."""

    def __cinit__(self):
        self._owned = []

    def add_output(self, sock, address, Table table not None, bytes packet, Seal seal_with=None, int output=0):
        """Send `packet` to `address` at every tick, with the fields of `table` filled in.

        Notes
        -----
        A line that is lost, or has taken nothing for longer than the hold time, is a fault: everything fades to
        neutral, and the line gets nothing until an operator engages, and then what is sent at rest first.
        """
        cdef Sink* sink = &self._sinks.rows[self._sinks.count]
        if self._sinks.count == PACKETS or table.largest > PACKET_BYTES or len(packet) != table.size:
            raise ValueError(f"output: allowed are {PACKETS} outputs of up to {PACKET_BYTES} bytes")
        if not 0 <= output < self._outputs:
            raise IndexError(f"output: found {output}, allowed are 0 to {self._outputs - 1}")
        sink.output = output
        if isinstance(sock, Line):
            sink.line = &(<Line>sock).line
        else:
            sink.address_size = packed_address(sink.address, address)
            sink.fd = sock.fileno()
        sink.encoding = outgoing_of(table, <const uint8_t*>packet, seal_with)
        sink.size = table.size
        memcpy(sink.packet, <const uint8_t*>packet, table.size)
        self._owned.append((sock, table, packet, seal_with))
        self._sinks.count += 1

    def add_other(self, Table table not None, bytes packet, Seal seal_with=None, double every_s=0.0):
        """Send another packet to the output that was added last, beside those of the motion.

        Notes
        -----
        A packet with an interval is sent right behind that of the motion, and dropped if the system refuses it.
        """
        cdef Other* other = &self._sinks.others[self._sinks.other_count]
        cdef bint room = self._sinks.count > 0 and self._sinks.other_count < OTHERS
        if not room or table.largest > PACKET_BYTES or len(packet) != table.size:
            raise ValueError(f"others: allowed are {OTHERS} packets of up to {PACKET_BYTES} bytes behind an output")
        other.sink = self._sinks.count - 1
        other.every = max(1, <int64_t>rint(every_s * 1e9 / self._period)) if every_s > 0.0 else 0
        other.encoding = outgoing_of(table, <const uint8_t*>packet, seal_with)
        other.size = table.size
        memcpy(other.packet, <const uint8_t*>packet, table.size)
        self._owned.append((table, packet, seal_with))
        self._sinks.other_count += 1

    def outputs(self):
        """Return each output's packet counters, in the order of `add_output`."""
        cdef const Sink* sink
        cdef int i
        out = []
        for i in range(self._sinks.count):
            sink = &self._sinks.rows[i]
            out.append({
                "sent": mc_load(&sink.sent),
                "unheard": mc_load(&sink.unheard),
                "refused": mc_load(&sink.refused),
                "error": mc_load(&sink.error),
            })
        return out
