"""Bytes of a simulator and captures, damaged in any way: every command reads what is whole, or refuses it in a line."""

import contextlib
import logging

import pytest
from hostile_rig import COMMANDS, command, simulated
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_capture import fragments, ip, pcap, pcapng, udp
from test_hostile_recordings import damaged
from test_read_anything import packages_of

import motioncue
from motioncue.errors import MotioncueError
from motioncue.virtual.installation import SIMULATORS

pytestmark = pytest.mark.search

STREAMS = [name for name in COMMANDS if not name.startswith("replay")]


def content_of(system, form):
    """Return a drive as bytes, or as a capture with a datagram in fragments."""
    packages = packages_of(system)
    if form == "bytes":
        return b"".join(packages)
    packets = [ip(udp(package)) for package in packages[:-1]] + fragments(packages[-1], 1, 64)
    return {"pcap": pcap, "pcapng": pcapng}[form]([(16_000_000 * n, packet) for n, packet in enumerate(packets)])


@pytest.mark.parametrize("form", ["bytes", "pcap", "pcapng"])
@pytest.mark.parametrize("system", SIMULATORS)
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_every_command_takes_damaged_packages_or_refuses_them(tmp_path, caplog, system, form, data):
    caplog.set_level(logging.CRITICAL)
    path = tmp_path / "broken.bin"
    path.write_bytes(damaged(content_of(system, form), data))
    for name in STREAMS:
        command(name, path, system)
    simulated(path, system)
    with contextlib.suppress(MotioncueError):
        drive = motioncue.read(path, system=system, rate_hz=60.0)
        assert len(drive.motion) <= len(drive.packages) > 0
