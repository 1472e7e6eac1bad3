"""Serial lines: ``serial://NAME?baud=115200``."""

from motioncue.errors import EndpointError
from motioncue.transports.endpoint import Endpoint, parse_endpoint
from motioncue.transports.line import Line
from motioncue.transports.stream import reason

__all__ = ["BAUD", "bits_of_a_byte", "open_line"]

BAUD = 115_200
"""Speed of a line if neither the endpoint nor the packet says it [baud]."""

CLOSE = 0.03  # share by which a line's speed may differ: receivers sample the last bit of ten within half of it


def bits_of_a_byte(endpoint: Endpoint) -> int:
    """Return how many bits one byte takes on a line: start, data, parity and stop bits."""
    data, parity, stop = tuple(endpoint.format)
    return 1 + int(data) + (parity != "N") + int(stop)


def open_line(url: str, baud: int = BAUD) -> Line:
    """Return an open serial line: raw, without flow control, written without waiting."""
    endpoint = parse_endpoint(url, ("serial",))
    baud = endpoint.baud or baud
    try:
        line = Line(endpoint.path, baud, endpoint.format)
    except OSError as error:
        raise EndpointError(f"{endpoint}: cannot send there: {reason(error)}") from error
    if abs(line.actual - baud) > CLOSE * baud:
        line.close()
        raise EndpointError(f"{endpoint}: found {line.actual} baud in place of {baud}, which this line does not have")
    return line
