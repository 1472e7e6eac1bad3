"""Datagrams of a source: identified, counted, answered, forwarded; hosts that are not allowed are not heard."""

import socket
import struct
import threading

import pytest
from helpers import WINE, eventually, free_port, nowhere
from hypothesis import given
from hypothesis import strategies as st

import motioncue
from motioncue.core.threads import NAMES
from motioncue.engine.journal import MESSAGES
from motioncue.engine.reception import Reception, check_endpoints
from motioncue.errors import ConfigError, EndpointError
from motioncue.frames.convert import BodyStage, TelemetryStages
from motioncue.frames.intake import Intake, Session
from motioncue.sources.city_car_driving import packets as city_car_driving
from motioncue.wire.messages import Echo
from motioncue.wire.packet import Field, Message, Packet, Take, vector

STATE = Packet(
    "state",
    40,
    [
        Field("magic", 0, "S4"),
        Field("number", 4, "<i4"),
        Field("stamp", 8, "<f8", "s"),
        Field("velocity", 16, "3<f4", "m/s", 500.0),
        Field("engine_speed", 28, "<f4", "rpm", 1e5),
        Field("length", 32, "<u2"),
        Field("end", 38, "S2"),
    ],
    {"magic": b"STAT", "length": 40, "end": b"\r\n"},
)
GAUGES = Packet(
    "gauges", 12, [Field("magic", 0, "S4"), Field("engine_speed", 4, "<f4", "rpm", 1e5)], {"magic": b"GAUG"}
)
LONG = Packet("long", 20, [Field("magic", 0, "S4")], {"magic": b"LONG"})
IDENTITY = {"world_north": (1, 0, 0), "world_up": (0, 0, -1), "car_forward": (1, 0, 0), "car_up": (0, 0, -1)}


def new_intake(*takes, reply=b"", echo=None, **settings):
    """Return an intake of a source that sends states, gauges, and something longer or shorter."""
    pointing = [Take("orientation", 0, "length", scale=1 / 40)]  # the constant 40: w = 1
    messages = [
        Message(STATE, "motion", [*pointing, *vector("velocity", "velocity"), *takes], reply, echo or Echo()),
        Message(GAUGES, "part", [Take("engine_speed", 0, "engine_speed", optional=True)]),
        Message(LONG, "other", largest=30),
    ]
    return Intake([message.compiled() for message in messages], BodyStage(**IDENTITY), **settings)


def state(**fields):
    return STATE.encode({"velocity": (10.0, 0.0, 0.0), **fields})


# Identification of a datagram.


def test_each_message_does_what_its_role_says():
    intake = new_intake()
    intake.feed(GAUGES.encode({"engine_speed": 3000.0}), 1)
    assert intake.newest() is None
    intake.feed(state(), 2)
    row = intake.newest()[0]
    assert (row["speed"], row["engine_speed"], row["time"]) == (10.0, 3000.0, 2)
    intake.feed(LONG.encode() + bytes(10), 3)
    assert (intake.accepted, intake.others, intake.rejected) == (1, 2, {})


def test_every_prefix_is_refused_as_too_short_or_unknown():
    packet = state()
    for size in range(40):
        intake = new_intake()
        intake.feed(packet[:size], 0)
        assert intake.rejected == {"size" if size >= 4 else "type": 1}


@pytest.mark.parametrize("place", [*range(4), 32, 33, 38, 39])
def test_every_corruption_of_header_length_and_end_is_refused(place):
    packet = bytearray(state())
    for value in set(range(256)) - {packet[place]}:
        intake = new_intake()
        packet[place] = value
        intake.feed(bytes(packet), 0)
        assert intake.rejected == {"type" if place < 4 else "envelope": 1}
        assert intake.accepted == 0


@given(st.binary(max_size=60))
def test_random_bytes_never_raise(data):
    intake = new_intake()
    intake.feed(data, 0)
    assert intake.accepted + intake.others + sum(intake.rejected.values()) == 1


@pytest.mark.parametrize("rpm", [float("nan"), float("inf"), 1e9])
def test_an_optional_value_that_cannot_be_is_absent_and_refuses_nothing(rpm):
    intake = new_intake()
    intake.feed(GAUGES.encode({"engine_speed": rpm}), 0)
    intake.feed(state(), 0)
    assert intake.rejected == {}
    assert str(intake.newest()["engine_speed"][0]) == "nan"


def test_a_refused_datagram_changes_nothing():
    short = Packet("short", 16, [Field("magic", 0, "S4"), Field("turn", 4, "3<f4", "rad/s", 10.0)], {"magic": b"TURN"})
    turn = Message(short, "part", vector("angular_velocity", "turn"))
    pointing = [Take("orientation", 0, "length", scale=1 / 40), *vector("velocity", "velocity")]
    intake = Intake([Message(STATE, "motion", pointing).compiled(), turn.compiled()], BodyStage(**IDENTITY))
    intake.feed(short.encode({"turn": (0.25, -0.5, 0.125)}), 0)
    intake.feed(short.encode({"turn": (5.0, -6.0, float("nan"))}), 0)
    intake.feed(state(), 0)
    row = intake.newest()[0]
    assert (row["roll_rate"], row["pitch_rate"], intake.rejected) == (0.25, -0.5, {"not_finite": 1})


def test_values_of_another_form_of_the_motion_do_not_stay():
    form = Packet("form", 8, [Field("magic", 0, "S4"), Field("surge", 4, "<f4", "m/s^2")], {"magic": b"FORM"})
    stages = TelemetryStages(attitude="angles", acceleration_axes="car")
    surge = Message(form, "motion", [Take("acceleration", 0, "surge")])
    gauges = Message(GAUGES, "part", [Take("engine_speed", 0, "engine_speed", optional=True)])
    whole = Message(STATE, "motion", [*vector("velocity", "velocity"), Take("engine_speed", 0, "engine_speed")])
    intake = Intake([each.compiled() for each in (whole, surge, gauges)], BodyStage(**IDENTITY), stages)
    intake.feed(state(engine_speed=2000.0), 0)
    intake.feed(form.encode({"surge": 1.5}), 0)
    row = intake.newest()[0]
    assert str(row["speed"]) == "nan"
    assert (row["surge"], row["engine_speed"]) == (1.5, 2000.0)  # the optional part keeps its value until the next part


def test_a_reply_echoes_a_part_of_the_datagram_also_of_a_refused_one():
    intake = new_intake(reply=b"........NNNN", echo=Echo(4, 2, 4))
    assert intake.feed(state(number=7), 0) == (b".." + struct.pack("<i", 7) + b"..NNNN", True)
    broken = state(number=-1, velocity=(float("nan"), 0.0, 0.0))
    assert intake.feed(broken, 0) == (b".." + struct.pack("<i", -1) + b"..NNNN", True)
    assert intake.feed(b"nonsense", 0) == (b"", True)
    assert (intake.replies, intake.rejected) == (2, {"type": 1, "not_finite": 1})


def test_stamps_give_the_frame_time_and_a_new_session_when_they_fall():
    intake = new_intake(Take("stamp", 0, "stamp"))
    intake.begin(0)
    expected = (0.0, 0.25, 0.5, None, 0.0, 0.25)  # one frame that is older than the newest is late, two are a session
    for number, stamp in enumerate((5.0, 5.25, 5.5, 1.0, 1.25, 1.5)):
        intake.feed(state(stamp=stamp, velocity=(10.0 + 0.01 * number, 0.0, 0.0)), number * 250_000_000)
        row = intake.newest()
        assert (None if row is None else row["frame_time"][0]) == expected[number]
    assert intake.sessions == 2
    assert intake.rejected == {"late": 1}
    assert intake.discontinuities == {"reconnect": 1}


def test_without_stamps_the_frame_time_is_that_of_arrival():
    intake = new_intake()
    for now in (7_000_000_000, 7_020_000_000, 7_050_000_000):
        intake.feed(state(), now)
    assert intake.newest()["frame_time"][0] == pytest.approx(0.05)


# Over real sockets.


@pytest.fixture
def hearing():
    """Yield a function that opens a reception of an intake and runs it; all are closed in the end."""
    opened = []

    def hear(intake, *urls, **settings):
        reception = Reception(intake, urls or [f"udp://127.0.0.1:{free_port(socket.SOCK_DGRAM)}"], **settings)
        thread = threading.Thread(target=reception.run)
        thread.start()
        opened.append((reception, thread))
        return reception

    yield hear
    for reception, thread in opened:
        reception.stop()
        thread.join()
        reception.close()


one_loopback = pytest.mark.skipif(WINE, reason="Wine 8 sends from 127.0.0.1, whatever a socket is bound to")
any_address = pytest.mark.skipif(WINE, reason="Wine 8 lets a socket be bound to addresses of other machines")


def sender(host="127.0.0.1"):
    client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    client.bind((host, 0))
    client.settimeout(10.0)
    return client


@pytest.mark.rt
def test_two_ports_feed_one_source(hearing):
    intake = new_intake()
    ports = free_port(socket.SOCK_DGRAM), free_port(socket.SOCK_DGRAM)
    hearing(intake, *(f"udp://127.0.0.1:{port}" for port in ports))
    with sender() as client:
        client.sendto(GAUGES.encode({"engine_speed": 900.0}), ("127.0.0.1", ports[0]))
        eventually(lambda: intake.others == 1)
        for number in range(100):
            client.sendto(state(velocity=(20.0 + 0.001 * number, 0, 0)), ("127.0.0.1", ports[1]))
        eventually(lambda: intake.accepted == 100)
    row = intake.newest()[0]
    assert (row["speed"], row["engine_speed"]) == (pytest.approx(20.099, abs=1e-5), 900.0)
    assert intake.events()[0][1] == "session_began"


@pytest.mark.rt
def test_replies_go_to_the_sender_or_to_the_port_that_was_asked_for(hearing):
    port = free_port(socket.SOCK_DGRAM)
    with sender() as client, sender() as other:
        hearing(new_intake(reply=b"yes"), f"udp://127.0.0.1:{port}")
        client.sendto(state(), ("127.0.0.1", port))
        assert client.recv(10) == b"yes"
        second = free_port(socket.SOCK_DGRAM)
        hearing(new_intake(reply=b"no", reply_port=other.getsockname()[1]), f"udp://127.0.0.1:{second}")
        client.sendto(state(), ("127.0.0.1", second))
        assert other.recv(10) == b"no"


@pytest.mark.rt
def test_every_datagram_is_passed_on_unchanged_whatever_it_is(hearing):
    intake, port = new_intake(), free_port(socket.SOCK_DGRAM)
    with sender() as client, sender() as first, sender() as second:
        forward = [f"udp://127.0.0.1:{reader.getsockname()[1]}" for reader in (first, second)]
        hearing(intake, f"udp://127.0.0.1:{port}", forward=forward)
        datagrams = [state(), b"nonsense", b"", bytes(9000), GAUGES.encode()]
        for datagram in datagrams:
            client.sendto(datagram, ("127.0.0.1", port))
        for reader in (first, second):
            assert [reader.recv(65536) for _ in datagrams] == datagrams
    assert intake.accepted == 1


@pytest.mark.rt
@one_loopback
def test_only_hosts_that_are_allowed_are_heard_or_passed_on(hearing):
    intake, port = new_intake(), free_port(socket.SOCK_DGRAM)
    with sender() as stranger, sender("127.0.0.2") as friend, sender() as reader:
        forward = [f"udp://127.0.0.1:{reader.getsockname()[1]}"]
        reception = hearing(intake, f"udp://0.0.0.0:{port}", allow=["127.0.0.2"], forward=forward)
        assert not reception.deaf
        stranger.sendto(state(), ("127.0.0.1", port))
        eventually(lambda: intake.rejected == {"not_allowed": 1})
        friend.sendto(state(number=2), ("127.0.0.1", port))
        eventually(lambda: intake.accepted == 1)
        assert reader.recv(100) == state(number=2)


@pytest.mark.rt
def test_an_endpoint_that_other_machines_can_reach_hears_only_allowed_hosts(hearing):
    intake, port = new_intake(), free_port(socket.SOCK_DGRAM)
    reception = hearing(intake, f"udp://0.0.0.0:{port}")
    assert reception.deaf
    with sender() as client:
        client.sendto(state(), ("127.0.0.1", port))
        eventually(lambda: intake.rejected == {"not_allowed": 1})


@pytest.mark.rt
def test_a_stream_is_refused_to_a_host_that_is_not_allowed(hearing):
    session = city_car_driving.intake(city_car_driving.Options())
    assert isinstance(session, Session)
    port = free_port(socket.SOCK_STREAM)
    hearing(session, f"tcp://127.0.0.1:{port}", allow=["127.0.0.2"])
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.settimeout(10.0)
        assert client.recv(10) == b""
    eventually(lambda: session.rejected == {"not_allowed": 1})
    with socket.create_connection(("127.0.0.1", port), source_address=("127.0.0.2", 0)) as client:
        client.settimeout(10.0)
        client.sendall(city_car_driving.INIT.encode())
        assert len(client.recv(10)) == 6


@pytest.mark.rt
@one_loopback
def test_a_second_host_is_refused_while_the_first_drives(hearing):
    intake, port = new_intake(), free_port(socket.SOCK_DGRAM)
    hearing(intake, f"udp://127.0.0.1:{port}")
    with sender() as first, sender("127.0.0.3") as second:
        first.sendto(state(), ("127.0.0.1", port))
        second.sendto(state(), ("127.0.0.1", port))
        eventually(lambda: intake.rejected == {"second_simulator": 1})
        assert intake.accepted == 1


@pytest.mark.parametrize(
    ("urls", "forward", "error"),
    [
        ([], [], ConfigError),
        (["udp://127.0.0.1:1"] * 9, [], ConfigError),
        (["tcp://127.0.0.1:1"], [], EndpointError),
        (["udp://127.0.0.1:1"], ["tcp://127.0.0.1:1"], EndpointError),
        (["udp://127.0.0.1:1"], ["udp://127.0.0.1:1"] * 9, ConfigError),
    ],
)
def test_endpoints_that_a_datagram_source_cannot_have_are_refused(urls, forward, error):
    class Module:
        SCHEMES = ("udp",)

    with pytest.raises(error, match="allowed"):
        check_endpoints(Module, urls, forward)


@pytest.mark.rt
@pytest.mark.parametrize(
    ("listening", "forward", "refused"),
    [
        ("127.0.0.1", "127.0.0.1", True),
        ("127.0.0.1", "[::ffff:127.0.0.1]", True),
        ("127.0.0.1", "0.0.0.0", True),
        ("0.0.0.0", "127.0.0.1", True),
        ("0.0.0.0", "127.0.0.9", True),
        ("127.0.0.1", "127.0.0.2", False),
        pytest.param("0.0.0.0", "192.0.2.1", False, marks=any_address),
    ],
)
def test_a_source_does_not_pass_on_to_itself_nor_hear_what_is_sent_to_the_platform(listening, forward, refused):
    port = free_port(socket.SOCK_DGRAM)
    url, to = f"udp://{listening}:{port}", f"udp://{forward}:{port}"
    intake = new_intake()
    if refused:
        with pytest.raises(EndpointError, match="would come back"):
            Reception(intake, [url], allow=["127.0.0.1"], forward=[to])
    else:
        Reception(intake, [url], allow=["127.0.0.1"], forward=[to]).close()
    profile = motioncue.load_profile(
        "beamng-dk",
        f"source.endpoint={url}",
        'source.allow=["127.0.0.1"]',
        f"output.motion={to}",
        f"output.gauges={nowhere()}",
    )
    engine = motioncue.Engine(profile)
    if refused:
        with pytest.raises(EndpointError, match="does not listen"):
            engine.start()
    else:
        engine.start().stop()


@pytest.mark.rt
def test_the_platform_does_not_get_the_sources_own_datagrams_among_the_cues():
    port, platform = free_port(socket.SOCK_DGRAM), f"udp://127.0.0.1:{free_port(socket.SOCK_DGRAM)}"
    profile = motioncue.load_profile(
        "beamng-dk",
        f"source.endpoint=udp://127.0.0.1:{port}",
        f'source.forward=["{platform}"]',
        f"output.motion={platform}",
        f"output.gauges={nowhere()}",
    )
    with pytest.raises(EndpointError, match="does not send to as well"):
        motioncue.Engine(profile).start()
    Reception(new_intake(), [f"udp://127.0.0.1:{port}"]).close()  # no socket is left open


def test_a_stream_cannot_be_passed_on():
    with pytest.raises(ConfigError, match=r"source\.forward"):
        check_endpoints(city_car_driving, ["tcp://127.0.0.1:1"], ["udp://127.0.0.1:2"])


def test_every_reason_to_refuse_a_package_is_logged_in_words():
    told = set(NAMES[NAMES.index("size") : NAMES.index("reply_lost") + 1])
    assert told | {"acceleration_contradicted", "rate_contradicted", "spike", "receive_failed"} == set(MESSAGES)
    assert all(isinstance(text.format(3), str) for _, text in MESSAGES.values())
    assert MESSAGES["type"][1].format(96) == "package refused: type, none of this system's packets (96 bytes)"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.0/24"])
def test_a_host_that_would_be_all_of_them_is_refused(host):
    with pytest.raises(EndpointError, match=rf"source\.allow: found '{host}'.* allowed are .* single hosts"):
        Reception(new_intake(), ["udp://0.0.0.0:1"], allow=[host])


def test_a_host_that_is_unknown_is_refused():
    with pytest.raises(EndpointError, match=r"source\.allow: found 'no such host'"):
        Reception(new_intake(), ["udp://127.0.0.1:1"], allow=["no such host"])


def test_a_motion_needs_the_package_that_it_needs_and_needs_it_again_in_a_new_session():
    takes = [Take("orientation", 0, "length", scale=1 / 40), *vector("velocity", "velocity")]
    messages = [Message(STATE, "motion", takes), Message(GAUGES, "needed", [Take("engine_speed", 0, "engine_speed")])]
    intake = Intake([message.compiled() for message in messages], BodyStage(**IDENTITY))
    gauges, second = GAUGES.encode({"engine_speed": 3000.0}), 1_000_000_000
    for now, packet in (
        (second, state()),  # before any
        (second + 1, gauges),
        (second + 100_000_001, state()),  # as late as frames may be
        (second + 100_000_002, state()),
    ):
        intake.feed(packet, now)
    assert (intake.accepted, intake.others, intake.rejected) == (1, 1, {"incomplete": 2})
    intake.feed(gauges, second + 200_000_000)
    intake.begin(second + 200_000_001)
    intake.feed(state(), second + 200_000_002)
    assert (intake.accepted, intake.rejected) == (1, {"incomplete": 3})
