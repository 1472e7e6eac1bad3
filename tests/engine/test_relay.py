"""A simulator's package in, a platform's packets out, with the numbers of the codecs and the cueing."""

import itertools
import struct
import sys
import zlib

import numpy as np
import pytest
from helpers import FRAME_REPLY, FRAMES, INIT_PACKAGE, INIT_REPLY, PACKAGES, SAMPLE, frame, init
from hypothesis import given
from hypothesis import strategies as st

import motioncue
from motioncue.core.clock import FakeClock
from motioncue.engine.assembly import settings_of
from motioncue.engine.embed import Relay
from motioncue.errors import ConfigError
from motioncue.output.dk import GAUGES, MOTION, STREAMS
from motioncue.profile.profile import parse_profile, profile_text
from motioncue.recording.recording import read_motion
from motioncue.sources.city_car_driving import packets as city_car_driving

SAME = ("surge", "sway", "heave", "roll", "pitch", "yaw", "roll_rate", "pitch_rate", "yaw_rate")


@pytest.fixture
def relay():
    """A relay through the washout, whose simulator has begun."""
    relay = motioncue.relay("ccd-dk-classical", clock=FakeClock())
    assert relay.step(INIT_PACKAGE) is False
    return relay


def sent(relay):
    """Return the packet of motion and that of the gauges."""
    return relay.packets["motion"].view(MOTION.dtype)[0].copy(), relay.packets["gauges"].view(GAUGES.dtype)[0].copy()


def singles(values):
    """Return values as the wire has them: 4 bytes each, what is too small for a normal number zero."""
    values = np.asarray(values).astype(np.float32)
    return np.where(np.abs(values) < 2.0**-126, np.float32(0.0), values)


@pytest.mark.parametrize("profile", ["ccd-dk", "ccd-dk-classical"])
def test_packets_hold_the_cue_of_each_package(profile):
    relay = motioncue.relay(profile, clock=FakeClock())
    motions, gauges = [], []
    for package in PACKAGES:
        if relay.step(package):
            motion, gauge = sent(relay)
            motions.append(motion)
            gauges.append(gauge)
    motions, gauges = np.array(motions), np.array(gauges)
    cues = motioncue.cue(profile, read_motion(SAMPLE))
    assert len(motions) == len(cues) == len(FRAMES)
    for name in SAME:
        assert (motions[name] == singles(cues[name])).all(), name
    assert (gauges["speed"] == singles(cues["speed"])).all()
    sin, cos = np.sin, np.cos
    np.testing.assert_allclose(motions["up_z"], cos(cues["roll"]) * cos(cues["pitch"]), rtol=0, atol=1e-6)
    east = sin(cues["roll"]) * cos(cues["yaw"]) - cos(cues["roll"]) * sin(cues["pitch"]) * sin(cues["yaw"])
    np.testing.assert_allclose(motions["up_x"], east, rtol=0, atol=1e-6)
    assert set(motions["magic"].tolist()) == {b"BNG1"}
    assert relay.source.accepted == len(FRAMES)
    assert not relay.source.rejected


def test_every_package_is_answered_as_the_document_says(relay):
    assert relay.reply == INIT_REPLY
    relay.step(FRAMES[0])
    assert relay.reply == FRAME_REPLY
    relay.step(b"")
    assert relay.reply == b""
    relay.step(b"\x05\x00\x09\x00\x00")
    assert relay.reply == FRAME_REPLY  # a package of no known type is answered too
    assert relay.source.replies == 3
    assert relay.source.rejected == {"type": 1}


def test_newest_motion_is_held_while_nothing_comes(relay):
    motion = read_motion(SAMPLE)[:3].repeat(5)
    pitches = []
    for package in FRAMES[:3]:
        assert relay.step(package) is True
        pitches.append(sent(relay)[0]["pitch"])
        for _ in range(4):
            assert relay.step(b"") is True
            pitches.append(sent(relay)[0]["pitch"])
    assert pitches == singles(motioncue.cue("ccd-dk-classical", motion)["pitch"]).tolist()


def test_nothing_is_sent_before_the_first_frame():
    relay = motioncue.relay("ccd-dk", clock=FakeClock())
    before = {name: packet.tobytes() for name, packet in relay.packets.items()}
    assert relay.step(b"") is False
    assert relay.step(FRAMES[0]) is False  # the car's axes have to come first
    assert {name: packet.tobytes() for name, packet in relay.packets.items()} == before
    assert relay.source.rejected == {"before_init": 1}


def test_refused_package_leaves_the_last_motion(relay):
    assert relay.step(FRAMES[0])
    assert relay.step(frame(acceleration=(np.nan, 0, 0)))
    assert relay.step(FRAMES[1][:50])
    assert relay.source.rejected == {"not_finite": 1, "size": 1}
    expected = motioncue.cue("ccd-dk-classical", read_motion(SAMPLE)[:1].repeat(3))
    assert sent(relay)[0]["roll"] == singles(expected["roll"])[-1]


def test_rate_is_that_of_the_caller_and_reset_begins_anew():
    relay = motioncue.relay("ccd-dk-classical", rate_hz=60, clock=FakeClock())
    stepper = motioncue.bind("ccd-dk-classical", read_motion(SAMPLE)[:1], rate_hz=60)
    relay.step(INIT_PACKAGE)
    relay.step(FRAMES[0])
    stepper.step()
    for _ in range(2):
        for _ in range(100):
            relay.step(b"")
            stepper.step()
        assert sent(relay)[0]["pitch"] == singles(stepper.cue["pitch"])[0]
        relay.reset()
        stepper.reset()


def test_a_packet_of_the_profile_is_counted_and_has_its_checksum():
    packet = (
        "{ size = 10, fields = [{ offset = 0, type = 'f4', channel = 'roll' }], counter = { offset = 4, type = 'u2' },"
        " checksum = { offset = 6, kind = 'crc32' } }"
    )
    profile = parse_profile(
        profile_text("ccd-dk").replace('gauges = "udp://127.0.0.1:4444"', ""),
        overrides=["output.system=custom", f"output.packet={packet}", "limits=none"],
    )
    relay = motioncue.relay(profile, rate_hz=1000, clock=FakeClock())
    relay.step(INIT_PACKAGE)
    relay.step(FRAMES[0])
    for count in range(1, 4):
        assert relay.step(b"")
        roll, counted, checksum = struct.unpack("<fHI", relay.packets["motion"].tobytes())
        assert roll == np.float32(read_motion(SAMPLE)["roll"][0])
        assert counted == count
        assert checksum == zlib.crc32(relay.packets["motion"].tobytes()[:6])


@pytest.mark.parametrize("form", [bytearray, memoryview, lambda data: np.frombuffer(data, np.uint8)])
def test_anything_that_lends_its_bytes_is_a_package_and_gets_them_back(relay, form):
    package = form(FRAMES[0])
    assert relay.step(package)
    assert relay.source.accepted == 1
    if isinstance(package, bytearray):
        package += b"free again"
    assert relay.step(memoryview(b"x" * 2_000_000))  # no package is as large
    assert relay.source.rejected == {"type": 1}


@pytest.mark.parametrize("package", [107, "text", None, [1, 2]])
def test_an_argument_without_bytes_is_refused(relay, package):
    with pytest.raises(TypeError, match="bytes-like object is required"):
        relay.step(package)


@given(packages=st.lists(st.binary(max_size=200) | st.sampled_from([init(), *FRAMES[:5]]), max_size=20))
@pytest.mark.check
def test_whatever_bytes_come_packets_stay_numbers(packages):
    relay = motioncue.relay("ccd-dk-classical", clock=FakeClock())
    for package in packages:
        relay.step(package)
        assert np.isfinite([sent(relay)[0][name] for name in SAME]).all()


def test_steps_allocate_nothing_and_touch_no_new_page(relay):
    step = relay.step
    assert step(FRAMES[0])

    def cost():
        packages = itertools.islice(itertools.cycle(FRAMES[:10]), 10_000)
        for _ in range(11):
            step(next(packages))
        before = faults()
        blocks = sys.getallocatedblocks()
        for package in packages:
            step(package)
        return sys.getallocatedblocks() - blocks < 10, faults() - before

    assert (True, 0) in [cost() for _ in range(5)]  # a round in which the system did nothing else to this process


def faults():
    """Return how many pages this thread has had to be given; 0 where the system does not say."""
    if sys.platform != "linux":
        return 0
    import resource

    usage = resource.getrusage(resource.RUSAGE_THREAD)
    return usage.ru_minflt + usage.ru_majflt


def test_settings_change_between_packages(relay):
    other = motioncue.relay("ccd-dk-classical", clock=FakeClock())
    other.step(INIT_PACKAGE)
    packets = []
    for each in (relay, other):
        for i, package in enumerate(FRAMES[600:900]):
            if each is relay and i == 100:
                relay.retune({"cueing.surge.gain": 0.0, "source.head_m": [0.0, 0.0, 0.0]})
            each.step(package)
            packets.append(sent(each)[0])
    surge = np.array([packet["surge"] for packet in packets]).reshape(2, -1)
    assert surge[0][:103].tolist() == surge[1][:103].tolist()
    assert np.abs(surge[0][103:] - surge[1][103:]).max() > 0.05
    assert np.abs(np.diff(surge[0])).max() <= 1.5 * np.abs(np.diff(surge[1])).max()
    assert relay.profile.cueing.surge.gain == 0.0
    with pytest.raises(ConfigError, match=r"source\.system"):
        relay.retune("beamng-dk")


def test_a_relay_has_up_to_eight_packets_each_of_its_tables_size():
    profile = motioncue.load_profile("ccd-dk")
    source = city_car_driving.intake(city_car_driving.Options())

    def made(count, data=None):
        packets = {f"packet {i}": (STREAMS["motion"].table(), data or MOTION.encode(), None) for i in range(count)}
        return Relay(source, settings_of(profile), packets, FakeClock())

    eight = made(8)
    eight.step(INIT_PACKAGE)
    assert eight.step(frame(acceleration=(0.0, 0.0, 1.0)))
    assert len({bytes(packet) for packet in eight.packets.values()}) == 1
    assert MOTION.decode(eight.packets["packet 7"].tobytes())["surge"] == pytest.approx(1.0)
    with pytest.raises(ValueError, match="packets: found 9, allowed are 8"):
        made(9)
    with pytest.raises(ValueError, match="packet 0: found 3 bytes"):
        made(1, b"abc")
