"""Actuators that hang at other axes of the controller, the other way round, or beside where they are asked to be."""

import struct

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import motioncue
from motioncue.core.channels import ACTUATION, CUE_DTYPE
from motioncue.core.clock import FakeClock
from motioncue.errors import ConfigError
from motioncue.output.packet import encoding, replies_of
from motioncue.platforms.build import build, channels_of
from motioncue.platforms.settings import Platform, platform_presets
from motioncue.profile.profile import parse_profile
from motioncue.virtual.platform_twin import Decoder
from motioncue.wire.description import PacketTable

S = 10**9
FIELDS = [{"offset": 4 * n, "type": "f4", "channel": f"actuator_{n + 1}", "measure": "share"} for n in range(3)]
MEASURES = st.sampled_from(["share", "position", "stroke"])


PROFILE = """
[source]
system = "beamng"
endpoint = ["udp://127.0.0.1:4567", "udp://127.0.0.1:4568"]
[cueing]
algorithm = "classical"
[platform]
preset = "posts-3"
[output]
motion = "udp://127.0.0.1:9"
[output.packet]
size = 12
fields = [{ offset = 0, type = "f4", channel = "post_1", measure = "share" },
          { offset = 4, type = "f4", channel = "actuator_2", measure = "position" },
          { offset = 8, type = "f4", channel = "post_3", measure = "stroke", scale = 1000, bias = 5 }]
[platform.wiring]
order = [2, 1, 3]
reversed = [false, true, false]
offset = [0, 0, 0.1]
"""
PLACES = {channel.name: place for place, channel in enumerate(ACTUATION)}


def platform_of(preset="posts-3", **wiring):
    return msgspec.convert({**platform_presets()[preset], "wiring": wiring}, Platform)


def test_what_is_sent_and_heard_by_hand():
    """Posts of -0.1 to 0.1 m: post 2 hangs at axis 1 and is reversed, post 1 at axis 2, post 3 stands 2 cm too high."""
    platform = platform_of(order=[2, 1, 3], reversed=[False, True, False], offset=[0, 0, 0.1])
    assert [(each.low, each.high) for each in build(platform).bounds] == [(-0.1, 0.1)] * 3
    table = {"size": 12, "fields": FIELDS, "reply": [{"size": 12, "fields": FIELDS}]}
    rig = replies_of(
        msgspec.convert(table, PacketTable),
        channels_of(platform),
        stream=False,
    )
    rig.hear(struct.pack("<3f", 0.25, 0.75, 0.5), S)
    # axis 1 a quarter up: post 2 a quarter down from its top; axis 2 three quarters up: post 1; axis 3 in the middle.
    assert rig.positions[:3] == pytest.approx([0.05, 0.05, 0.02], abs=1e-8)
    relay = motioncue.relay(parse_profile(PROFILE), clock=FakeClock())
    relay.step(b"BNG1" + bytes(84))
    # At neutral: the middle of axis 1, 0 of axis 2; post 3 is asked to be 2 cm lower, in mm and 5 more.
    assert struct.unpack("<3f", relay.packets["motion"].tobytes()[:12]) == pytest.approx([0.5, 0.0, -15.0], abs=1e-5)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_what_hangs_there_goes_where_it_is_asked_to(probe, data):
    """Encoded, then decoded as the drives at the controller's axes have it, and heard: where it was asked to be."""
    wiring = {
        "order": data.draw(st.permutations([1, 2, 3])),
        "reversed": data.draw(st.lists(st.booleans(), min_size=3, max_size=3)),
        "offset": data.draw(st.lists(st.floats(-0.2, 0.2), min_size=3, max_size=3)),
    }
    more = {"type": "f8", "measure": data.draw(MEASURES), "scale": data.draw(st.sampled_from([1.0, -3.0])), "bias": 0.5}
    fields = [{**each, **more, "offset": 2 * each["offset"]} for each in FIELDS]
    table = msgspec.convert({"size": 24, "fields": fields, "reply": [{"size": 24, "fields": fields}]}, PacketTable)
    actuators = channels_of(platform_of(**wiring))
    asked = data.draw(st.lists(st.floats(-0.1, 0.1), min_size=3, max_size=3))
    values = np.zeros(len(ACTUATION))
    for n, each in enumerate(asked, 1):
        values[PLACES[f"actuator_{n}"]] = each
    how = encoding(table, actuators)
    packet = bytearray(how.packet)
    probe.encoded(how.table, values, packet)
    np.testing.assert_allclose(Decoder(table, actuators).positions(bytes(packet))[0], asked, atol=1e-12)
    heard = replies_of(table, actuators, stream=False)
    heard.hear(bytes(packet), S)
    np.testing.assert_allclose(heard.positions[:3], asked, atol=1e-12)


def test_offsets_take_from_the_range_that_is_used():
    """A post that stands 2 cm higher than asked is never below -8 cm, where its axis ends."""
    cue = np.zeros(4000, CUE_DTYPE)
    cue["heave_displacement"] = 0.3 * np.sin(np.linspace(0.0, 20.0, 4000))
    for offset, ends in ((0.1, (-0.08, 0.1)), (-0.1, (-0.1, 0.08)), (0.0, (-0.1, 0.1))):
        profile = parse_profile(PROFILE.replace("offset = [0, 0, 0.1]", f"offset = [0, 0, {offset}]"))
        went = motioncue.actuate(profile, cue)["actuators"][:, :3]
        assert went.min() == pytest.approx(ends[0], abs=2e-3)
        assert went.max() == pytest.approx(ends[1], abs=2e-3)
        assert (went.min() >= ends[0] - 1e-9) & (went.max() <= ends[1] + 1e-9)


@pytest.mark.parametrize(
    ("wiring", "message"),
    [
        ({"order": [1, 2]}, "order: found 2 values, allowed is one for each of 3"),
        ({"order": [1, 2, 2]}, r"order: found \[1, 2, 2\], allowed is each of 1 to 3 once"),
        ({"order": [1, 2, 4]}, "allowed is each of 1 to 3 once"),
        ({"reversed": [True]}, "reversed: found 1 values"),
    ],
)
def test_what_no_wiring_can_be_is_refused(wiring, message):
    with pytest.raises(ConfigError, match=message):
        channels_of(platform_of(**wiring))
