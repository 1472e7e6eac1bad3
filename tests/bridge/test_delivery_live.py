"""An honest drive never jolts, live: real sockets, a sender that stalls and then sends what it missed."""

import socket
import threading
import time

import numpy as np
import pytest
from delivery_rig import FADE, PERIOD, SOURCES, stalls
from helpers import Sink, eventually, free_port
from test_delivery import swinging

import motioncue
from motioncue.bridge.bridge import KINDS
from motioncue.output.dk import MOTION

pytestmark = pytest.mark.search

# A source that says when its frames were taken, and one that does not: there a lost frame looks like a late one.
FACTORS = {"vehicle-physics-pro": 1.0, "beamng": 2.0}


def send(port, packets, arrivals):
    """Send each packet at its time [s] from now."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        began = time.monotonic()
        for packet, arrival in zip(packets, arrivals, strict=True):
            time.sleep(max(0.0, began + arrival - time.monotonic()))
            sender.sendto(packet, ("127.0.0.1", port))


@pytest.mark.rt
@pytest.mark.parametrize("bridge", KINDS)
@pytest.mark.parametrize("source", FACTORS)
def test_a_sender_that_stalls_makes_no_jolt_live(source, bridge):
    rig, port = SOURCES[source], free_port(socket.SOCK_DGRAM)
    taken = np.arange(0.0, 6.0, 1.0 / rig.rate_hz)
    states = swinging(1.9).states(taken)
    packets = rig.packets(states, np.arange(len(taken)))
    arrivals = stalls(taken, 0.0, [(2.5, 0.25), (3.6, 0.3), (4.8, 0.08)])
    with Sink() as platform:
        profile = motioncue.load_profile(
            rig.profile,
            f"source.endpoint=udp://127.0.0.1:{port}",
            f"source.bridge={bridge}",
            "limits=none",
            f"output.motion={platform.url}",
            f"output.gauges=udp://127.0.0.1:{free_port(socket.SOCK_DGRAM)}",
        )
        with motioncue.Engine(profile, trace=4000) as engine:
            sender = threading.Thread(target=send, args=(port, packets, arrivals))
            sender.start()
            sender.join()
            eventually(lambda: engine.stats()["state"] == "OFFLINE")
        stats, trace = engine.stats(), engine.trace
        heard = platform.all(stats["packets_sent"])
    assert stats["frames_received"] == len(packets)
    assert stats["events"] == {}
    own = 9.0 * 7.4 * PERIOD * 1e-9  # of surge, a tick [m/s^2]
    moves_s = 1.0 / rig.rate_hz if bridge == "hold" else PERIOD * 1e-9  # `hold` moves once a frame
    allowed = FACTORS[source] * (1.2 * own * moves_s / (PERIOD * 1e-9) + FADE * 9.0)
    surge = trace["cue"]["surge"]
    assert np.ptp(surge[trace["weight"] == 1.0]) > 15.0
    # A tick that a busy machine has left out makes the next step longer.
    steps = np.abs(np.diff(surge)) / np.diff(trace["index"])
    print(source, bridge, "largest step", steps.max(), "allowed", allowed)
    assert steps.max() <= allowed
    assert np.abs(surge).max() <= 9.0 + 1.5 * 9.0 * 7.4 / rig.rate_hz
    sent = np.frombuffer(b"".join(heard), MOTION.dtype)["surge"]
    assert set(sent.tolist()) <= set(surge.astype(np.float32).tolist())
