"""Who listens to wheels, suspension and `tactile` may come and go: the platform beside them does not notice."""

import contextlib
import socket
import sys

import numpy as np
import pytest
from controller_rig import START, TOLD, Rig, fields_of

from motioncue.core.clock import FakeClock
from motioncue.engine.assembly import check, streams_of
from motioncue.engine.pipeline import Pipeline
from motioncue.profile.profile import parse_profile
from motioncue.transports.endpoint import fail_if_unheard, open_sender

POSTS = np.dtype([(f"post_{k + 1}", "<f8") for k in range(4)])
WHEELS = np.dtype(
    [(f"car_suspension_{where}", "<f8") for where in ("front_left", "front_right")] + [("tactile", "<f8")]
)
PROFILE = """
[source]
system = "custom"
endpoint = "udp://127.0.0.1:4567"
packet = {{ size = {size}, fields = [{told}] }}
[cueing]
algorithm = "classical"
[platform]
preset = "posts-4"
rise_s = 1.0
[supervisor]
fade_s = 0.5
[[output]]
motion = "udp://127.0.0.1:{posts_port}"
packet = {{ size = 32, fields = [{posts}] }}
[[output]]
motion = "udp://127.0.0.1:{wheels_port}"
packet = {{ size = 24, fields = [{wheels}] }}
"""


def bound(port=0):
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind(("127.0.0.1", port))
    sock.setblocking(False)
    return sock


def driven(ticks, comes_and_goes):
    """Return what the platform was sent, how many packets of the wheels nobody heard, and what changed the state."""
    sent, wheels = [], bound()
    wheels_port = wheels.getsockname()[1]
    with contextlib.ExitStack() as opened:
        posts = opened.enter_context(bound())
        profile = parse_profile(
            PROFILE.format(
                size=TOLD.itemsize,
                told=fields_of(TOLD),
                posts=fields_of(POSTS),
                wheels=fields_of(WHEELS),
                posts_port=posts.getsockname()[1],
                wheels_port=wheels_port,
            )
        )
        check(profile)
        pipeline = Pipeline(profile, FakeClock(START), trace=ticks)
        pipeline.intake.begin(START)
        for index, output in enumerate(profile.outputs):
            for url, encoding in streams_of(output, profile.platform).values():
                sender, address = open_sender(url)
                opened.enter_context(sender)
                fail_if_unheard(sender)
                pipeline.emitter.add_output(
                    sender, address, encoding.table, encoding.packet, encoding.seal, output=index
                )
        packages, following, now = Rig._drive(profile), START, START
        for tick in range(ticks):
            while following <= now:
                package = next(packages)
                following += round(package.duration * 1e9)
                pipeline.intake.feed(package.package, now)
            pipeline.emitter.run(1)
            now += 3_000_030
            sent.append(posts.recv(100))
            if comes_and_goes and tick % 150 == 149:
                wheels.close()
                wheels = bound(wheels_port if tick % 300 == 299 else 0)
        wheels.close()
        return (
            sent,
            pipeline.emitter.outputs()[1]["unheard"],
            [move["reason"] for move in pipeline.emitter.transitions()],
        )


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not say that nobody listens")
def test_a_platform_gets_bit_for_bit_the_same_whoever_listens_to_the_wheels():
    """For longer than somebody has to listen before an absence counts, of what moves a platform: 4 s."""
    sent, unheard, moves = driven(3000, comes_and_goes=False)
    assert (unheard, moves) == (0, ["input", "cue_reached"])
    found, unheard, moves = driven(3000, comes_and_goes=True)
    assert found == sent
    assert moves == ["input", "cue_reached"]
    assert 1000 < unheard <= 1500
