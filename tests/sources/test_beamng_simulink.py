"""BeamNG's coupling with Simulink: messages, answers that control nothing, and BeamNG's loop against our engine."""

import itertools
import math
import re
import struct
from collections import deque
from itertools import islice
from pathlib import Path

import msgspec
import numpy as np
import pytest
from helpers import bits, truth
from hypothesis import given
from hypothesis import strategies as st

from motioncue.drive.car import DRIVES, drive
from motioncue.errors import PacketError
from motioncue.profile.profile import parse_profile
from motioncue.sources import system_of
from motioncue.sources.beamng_simulink import packets as beamng_simulink
from motioncue.sources.beamng_simulink.packets import CONTROL, STATE, Options, framed, identify
from motioncue.sources.beamng_simulink.twin import Coupling, driven, encode_states
from motioncue.wire.packet import Derivation

START = 1_000_000_000
PACKETS = Path(__file__).parents[1] / "data" / "packets" / "beamng-simulink"

WHEEL = ("angular_velocity", "wheel_speed", "braking_torque", "propulsion_torque", "friction_torque", "down_force")
# The document's banks, preceded by the id and followed by the user's bank.
BANKS = {
    1: "throttle throttle_input brake brake_input clutch clutch_input parkingbrake parkingbrake_input steering "
    "steering_input",
    11: "pos_x pos_y pos_z vel_x vel_y vel_z groundspeed acc_x acc_y acc_z roll pitch yaw altitude",
    25: "ignition_level gear fuel engine_load highbeam lowbeam maxrpm reverse rpm signal_l signal_r wheelspeed",
    37: " ".join(f"wheel_fl_{name}" for name in WHEEL),
    43: " ".join(f"wheel_fr_{name}" for name in WHEEL),
    49: " ".join(f"wheel_rl_{name}" for name in WHEEL),
    55: " ".join(f"wheel_rr_{name}" for name in WHEEL),
}
TORQUES = [f"wheel_{wheel}_{kind}_torque" for kind in ("braking", "propulsion") for wheel in ("fl", "fr", "rl", "rr")]
CONTROLS = ["id", "engine_throttle", "brake_pedal", "steering", "reserved", *TORQUES, "drive_mode"]


def state(**fields):
    """Return a message; fields not given are 0: at rest in free fall."""
    return STATE.encode(fields)


def new_intake(**options):
    intake = beamng_simulink.intake(Options(**options))
    intake.begin(0)
    return intake


def no_control(number):
    """Return the document's answer that echoes an id and controls nothing."""
    return struct.pack("<d", number) + struct.pack("<d", math.nan) * 63


def same_answer(answer, number):
    """Say whether an answer has that id and NaN in every other double."""
    values = struct.unpack("<64d", answer)
    return values[0] == number and all(value != value for value in values[1:])


# Messages.


def test_every_double_of_the_state_has_the_place_of_its_bank():
    names = ["id", *" ".join(BANKS.values()).split()]
    assert len(names) == 61
    for bank, text in BANKS.items():
        assert names[bank] == text.split()[0]
    values = [float(number) + 1 / 64 for number in range(111)]
    values[0] = 7.0
    data = struct.pack("<111d", *values)
    assert len(data) == STATE.size == 888
    fields = STATE.decode(data)
    assert fields == {**dict(zip(names, values[:61], strict=True)), "custom": values[61:]}
    assert STATE.encode(fields) == data
    assert identify(data) is STATE


def test_every_double_of_the_control_has_its_place():
    values = [7.0, *(1 / (number + 1) for number in range(1, 64))]
    data = struct.pack("<64d", *values)
    assert len(data) == CONTROL.size == 512
    fields = CONTROL.decode(data)
    assert fields == {**dict(zip(CONTROLS, values[:14], strict=True)), "custom": values[14:]}
    assert CONTROL.encode(fields) == data
    assert identify(data) is CONTROL


def test_a_control_leaves_what_it_does_not_name_as_it_is():
    values = struct.unpack("<64d", CONTROL.encode({"id": 3, "brake_pedal": 0.5}))
    assert (values[0], values[2]) == (3.0, 0.5)
    assert all(value != value for place, value in enumerate(values) if place not in (0, 2))


@pytest.mark.parametrize("name", ["state", "control"])
def test_a_sample_is_named_and_encodes_to_the_same_bytes(name):
    data = (PACKETS / f"{name}.bin").read_bytes()
    packet = identify(data)
    assert packet.name == name
    assert packet.encode(packet.decode(data)) == data


@pytest.mark.parametrize(("name", "reason"), [("truncated", "type"), ("excess", "type"), ("nonfinite", "not_finite")])
def test_a_broken_sample_is_refused_for_its_reason(name, reason):
    intake = new_intake()
    intake.feed((PACKETS / f"{name}.bin").read_bytes(), START)
    assert (intake.accepted, intake.rejected) == (0, {reason: 1})


def test_every_corruption_of_the_id_is_another_id_or_refused():
    """Only the size and the id of a message are fixed; whatever it holds, it is answered with its own id."""
    data = (PACKETS / "state.bin").read_bytes()
    for place in range(8):
        for value in set(range(256)) - {data[place]}:
            changed = data[:place] + bytes([value]) + data[place + 1 :]
            (number,) = struct.unpack("<d", changed[:8])
            whole = 0 <= number <= 2**53 and number == int(number)
            if whole:
                assert identify(changed).decode(changed)["id"] == number
            else:
                with pytest.raises(PacketError, match="found id"):
                    identify(changed)
            intake = new_intake()
            answer, _ = intake.feed(changed, START)
            assert answer == changed[:8] + CONTROL.encode()[8:]
            assert intake.accepted == whole


def test_every_other_size_is_refused_and_not_answered():
    whole = state(id=5) + bytes(200)
    for size in (*range(0, 1000, 7), 511, 513, 887, 889):
        if size in (512, 888):
            continue
        data = whole[:size]
        with pytest.raises(PacketError, match=f"found {size} bytes, allowed are state"):
            identify(data)
        intake = new_intake()
        assert intake.feed(data, 0) == (b"", True)
        assert (intake.accepted, intake.rejected) == (0, {"type": 1})
    intake = new_intake()
    assert intake.feed(CONTROL.encode({"id": 1}), 0) == (b"", True)  # a control message is not accepted as a state
    assert intake.rejected == {"type": 1}


@pytest.mark.parametrize("number", [-1.0, 0.5, math.nan, math.inf, 2.0**53 + 2])
def test_a_message_without_a_valid_id_is_refused(number):
    for data in (struct.pack("<d", number) + bytes(880), struct.pack("<d", number) + bytes(504)):
        with pytest.raises(PacketError, match=r"found id .* allowed are whole numbers"):
            identify(data)


@given(st.binary(max_size=1000) | st.binary(min_size=888, max_size=888))
def test_random_bytes_never_raise(data):
    intake = new_intake()
    answer, still_open = intake.feed(data, 0)
    assert still_open
    assert intake.accepted + sum(intake.rejected.values()) == 1
    # Every message of a state's size is answered with its id and nothing else.
    assert (len(answer) == 512) == (len(data) == 888)
    if answer:
        assert answer == data[:8] + CONTROL.encode({"id": 0})[8:]
    try:
        packet = identify(data)
    except PacketError:
        return
    assert packet.size == len(data)


def test_messages_laid_one_after_the_other_are_split():
    states = [state(id=number, rpm=900.0) for number in range(70)]
    controls = [CONTROL.encode({"id": number}) for number in range(1, 140)]
    for packages in (states, controls, states[:1], []):
        assert list(framed(b"".join(packages))) == packages
    for data in (states[0][:-1], b"x", states[0] + controls[0], b"".join(controls)[:-1], b"".join(controls)[:900]):
        assert list(framed(data)) == [data]
    for left in (1, 511, 512, 513, 887):
        split = framed(b"".join(states) + states[0][:left])
        assert [next(split) for _ in states] == states
        with pytest.raises(PacketError, match=f"found {left} bytes at offset {70 * 888} that are not whole"):
            next(split)
    assert list(islice(framed(b"".join(states[:20]) + bytes(9999)), 19)) == states[:19]
    with pytest.raises(PacketError, match=f"found {888 + 9999} bytes at offset {19 * 888}"):
        list(framed(b"".join(states[:20]) + bytes(9999)))


# Answers.


def test_every_message_is_answered_with_its_id_and_no_control():
    intake = new_intake()
    for number in (0, 1, 2, 77, 2**40):
        answer, _ = intake.feed(state(id=number), START + number)
        assert answer[:8] == no_control(number)[:8]
        assert same_answer(answer, number)
    assert (intake.replies, intake.rejected) == (5, {})
    assert intake.reply_port == 64891


@pytest.mark.parametrize(
    ("field", "value", "reason"), [("roll", math.nan, "not_finite"), ("vel_x", 1e9, "implausible")]
)
def test_a_message_that_is_refused_is_answered_all_the_same(field, value, reason):
    intake = new_intake()
    answer, _ = intake.feed(state(id=9, **{field: value}), START)
    assert same_answer(answer, 9)
    assert (intake.accepted, intake.rejected) == (0, {reason: 1})


def test_unused_fields_may_hold_anything():
    """Bank H is the user's, and missing wheels leave holes."""
    unused = dict.fromkeys([*BANKS[1].split(), *BANKS[37].split(), "rpm", "altitude", "gear"], math.nan)
    intake = new_intake()
    intake.feed(state(id=1, custom=[math.inf] * 50, **unused), START)
    assert (intake.accepted, intake.rejected) == (1, {})
    assert math.isnan(intake.newest()["engine_speed"][0])


def test_user_signals_become_channels_as_the_documentation_says():
    """Its description takes the first six, and the rest and the answers as the built-in system does."""
    page = (Path(__file__).parents[2] / "docs/simulators/beamng-simulink.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"```toml\n(.*?)```", page, re.S)
    described, built_in = system_of(parse_profile(text).source).intake(), new_intake()
    described.begin(0)
    signals = dict(zip(("roll_rate", "pitch_rate", "yaw_rate", "surge", "sway", "heave"), range(1, 7), strict=True))
    pose = {"pos_x": 5.0, "vel_y": 3.0, "roll": 0.1, "pitch": 0.2, "yaw": 0.3}
    message = state(id=7, custom=[0.1 * n for n in range(1, 51)], **pose)
    for intake in (described, built_in):
        answer, _ = intake.feed(message, START)
        assert same_answer(answer, 7)
    found, expected = described.newest(), built_in.newest()
    assert {name: float(found[name][0]) for name in signals} == pytest.approx(
        {name: 0.1 * number for name, number in signals.items()}
    )
    for name in ("roll", "pitch", "yaw", "speed", "frame_time"):
        assert found[name][0] == pytest.approx(expected[name][0], abs=1e-12)


def test_the_answer_can_let_beamng_run_free_or_be_left_to_others():
    free, silent = new_intake(reply="free_run"), new_intake(reply="none", reply_port=0)
    for number in range(3):
        answer, _ = free.feed(state(id=number), START)
        assert same_answer(answer, 1e15)
        assert silent.feed(state(id=number), START) == (b"", True)
    assert (silent.replies, silent.accepted, silent.reply_port) == (0, 3, 0)


@pytest.mark.parametrize("options", [{"reply": "zero"}, {"reply_port": 70000}, {"simulink_time_s": 0.0}, {"pedals": 1}])
def test_options_that_are_not_allowed_are_refused(options):
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(options, Options)


# Motion.


def fed(intake, now=START, **fields):
    intake.feed(state(**fields), now)
    assert intake.rejected == {}
    return intake.newest()[0]


def test_at_rest_gravity_is_in_the_third_sensor_alone_and_is_taken_out():
    row = fed(new_intake(), acc_z=-9.81)
    assert (row["surge"], row["sway"], row["heave"]) == pytest.approx((0, 0, 0), abs=1e-12)
    # Parked with the nose up by 52 degrees and the left side down by 10: the first two read nothing, as BNG1 does.
    roll, pitch = math.radians(10), math.radians(52)
    row = fed(new_intake(), acc_z=-9.81 * math.cos(roll) * math.cos(pitch), roll=roll, pitch=pitch)
    assert (row["surge"], row["sway"], row["heave"]) == pytest.approx((0, 0, 0), abs=1e-12)
    assert (row["roll"], row["pitch"]) == pytest.approx((-roll, pitch))
    row = fed(new_intake(gravity_m_s2=1.62), acc_z=-1.62)
    assert row["heave"] == pytest.approx(0, abs=1e-12)


def test_the_sensors_are_negated():
    row = fed(new_intake(), acc_x=-1.0, acc_y=-2.0, acc_z=-9.81 - 3.0)
    assert (row["sway"], row["surge"], row["heave"]) == pytest.approx((1.0, 2.0, 3.0), abs=1e-12)


def test_angles_turn_the_other_way():
    row = fed(new_intake(), roll=0.1, pitch=0.2, yaw=0.3, acc_z=-9.81)
    assert (row["roll"], row["pitch"], row["yaw"]) == pytest.approx((-0.1, 0.2, -0.3))


def test_an_acceleration_from_velocity_needs_no_sensor():
    intake = beamng_simulink.intake(Options(), derivation=Derivation("from_velocity", 0.04))
    for number in range(201):
        intake.feed(state(id=number, vel_y=10.0 + 0.01 * number, acc_y=7.0), START + number * 5_000_000)
    row = intake.newest()[0]
    assert (row["surge"], row["heave"]) == pytest.approx((2.0, 0.0), abs=1e-5)


@pytest.mark.search
@pytest.mark.grid
@pytest.mark.parametrize("name", sorted(DRIVES))
def test_a_driven_car_arrives_as_the_motion_it_makes(name):
    states = drive(name, 200.0)
    intake, rows = new_intake(), []
    for number, row in enumerate(encode_states(states)):
        rows.append(fed(intake, START + 5_000_000 * number, **{name: row[name] for name in STATE.fields}))
    rows = np.array(rows)
    assert intake.discontinuities == {}
    expected = truth(states)
    for channel in ("surge", "sway", "heave", "roll", "pitch", "yaw", "speed"):
        error = rows[channel] - expected[channel]
        error = (error + np.pi) % (2 * np.pi) - np.pi if channel == "yaw" else error
        np.testing.assert_allclose(error, 0.0, rtol=0, atol=1e-12, err_msg=channel)
    for channel in ("roll_rate", "pitch_rate", "yaw_rate"):
        # Derived: the truth through a first-order lag of 40 ms, sampled every 5 ms.
        share, lagged = 1 - math.exp(-0.005 / 0.04), [0.0]
        for before, after in itertools.pairwise(expected[channel]):
            lagged.append(lagged[-1] + share * ((before + after) / 2 - lagged[-1]))
        np.testing.assert_allclose(rows[channel], lagged, rtol=0, atol=2e-4, err_msg=channel)
    np.testing.assert_array_equal(rows["engine_speed"], states["engine_speed"])
    np.testing.assert_allclose(rows["frame_time"], states["time"], rtol=0, atol=1e-9)


def test_the_simulators_time_is_the_id_times_the_step():
    intake = new_intake(simulink_time_s=0.01)
    for number, now in ((500, 0), (501, 1), (503, 3)):
        row = fed(intake, START + now * 10_000_000, id=number, pos_x=0.001 * (number - 500))
    assert row["frame_time"] == pytest.approx(0.03)
    for number in range(13):  # the controller was reloaded: 0.1 s of smaller counts are not late datagrams
        intake.feed(state(id=number), START + (4 + number) * 10_000_000)
    assert intake.sessions == 2
    assert set(intake.rejected) == {"late"}


# BeamNG's loop.


class Link:
    """A path to an engine and back on which an answer takes some physics steps, and no other time passes."""

    def __init__(self, answer, steps=1):
        self.answer, self.steps, self.now = answer, steps, 0
        self.sent, self.waiting = [], deque()

    def send(self, message):
        self.sent.append(message)
        reply = self.answer(message)
        if reply:
            self.waiting.append((self.now + self.steps, reply))

    def receive(self, timeout_s):
        if self.waiting and (timeout_s or self.waiting[0][0] <= self.now):
            return self.waiting.popleft()[1]
        return None

    def play(self, messages, coupling=None):
        """Play messages; return the loop."""
        coupling = coupling or Coupling(self.send, self.receive)
        for message in messages:
            sent = False
            while not sent:
                self.now += 1
                sent = coupling.step(message)
        return coupling


def engine(**options):
    """Return an intake that has begun, and a function that answers a message."""
    intake = new_intake(**options)
    clock = itertools.count(START, 5_000_000)
    return intake, lambda message: intake.feed(message, next(clock))[0]


def messages(count, first=0):
    return [state(id=number) for number in range(first, first + count)]


@pytest.mark.parametrize("steps", range(10))
def test_a_prompt_engine_stalls_beamng_once_at_the_start_and_touches_nothing(steps):
    intake, answer = engine()
    link = Link(answer, steps)
    coupling = link.play(messages(1000))
    assert link.sent == messages(1000)
    assert coupling.stalls == 1
    assert coupling.ignored == 1  # the answer to message 0
    assert coupling.controls == {}
    assert intake.accepted == 1000
    # Ten steps per message, plus one without an answer.
    assert link.now == 10 * 1000 + 1


@pytest.mark.parametrize("steps", [10, 15, 100])
def test_a_late_engine_makes_beamng_wait_and_never_stalls_it(steps):
    intake, answer = engine()
    coupling = Link(answer, steps).play(messages(200))
    assert (coupling.stalls, coupling.controls) == (0, {})
    assert intake.accepted == 200


def test_an_engine_that_does_not_answer_stalls_beamng_at_every_message():
    _, answer = engine(reply="none")
    coupling = Link(answer).play(messages(50))
    assert coupling.stalls == 49


def test_an_engine_that_lets_beamng_run_free_never_stalls_it_even_when_it_is_gone():
    _, answer = engine(reply="free_run")
    link = Link(answer)
    coupling = link.play(messages(3))
    link.answer = lambda message: b""
    coupling = link.play(messages(100, 3), coupling)
    assert (coupling.stalls, coupling.controls) == (0, {})


def test_an_engine_that_comes_back_is_heard_again():
    _, answer = engine()
    link = Link(answer)
    coupling = link.play(messages(10))
    assert coupling.stalls == 1
    link.answer = lambda message: b""
    coupling = link.play(messages(5, 10), coupling)
    # The first of them was sent at once, because all before had been answered; the others waited in vain.
    assert coupling.stalls == 1 + 4
    link.answer = answer
    coupling = link.play(messages(100, 15), coupling)
    assert coupling.stalls == 1 + 5
    assert coupling.controls == {}


def test_the_loop_shows_what_an_answer_of_zeros_would_do():
    link = Link(lambda message: message[:8] + bytes(504))
    coupling = link.play(messages(3))
    assert coupling.controls["engine_throttle"] == coupling.controls["steering"] == 0.0
    assert set(coupling.controls) == set(CONTROLS) - {"id"}


def test_a_control_reaches_the_car_with_an_id_that_was_not_answered_yet():
    _, answer = engine()
    link = Link(lambda message: CONTROL.encode({"id": 2, "brake_pedal": 0.5}))
    assert link.play(messages(4)).controls == {"brake_pedal": 0.5}
    link = Link(answer)
    coupling = link.play(messages(20))
    link.waiting.append((link.now, CONTROL.encode({"id": 5, "brake_pedal": 0.5})))
    ignored = coupling.ignored
    assert link.play(messages(2, 20), coupling).controls == {}
    assert coupling.ignored == ignored + 1


def test_what_is_no_control_is_ignored():
    _, answer = engine()
    coupling = Link(lambda message: answer(message)[:-8]).play(messages(5))
    assert (coupling.controls, coupling.ignored) == ({}, 5 - 1)


# Drives.


def test_a_drive_counts_its_messages_from_zero_and_again_when_the_controller_is_loaded():
    frames = list(driven("tour", 200.0, 1.0))
    assert [STATE.decode(frame.package)["id"] for frame in frames] == list(range(200))
    assert {frame.duration for frame in frames} == {1 / 200}
    trouble = list(driven("trouble", 100.0))
    loads = [place for place, frame in enumerate(trouble) if not frame.package]
    assert len(loads) == 1
    (load,) = loads
    ids = [STATE.decode(frame.package)["id"] for frame in trouble if frame.package]
    assert ids == [*range(load), *range(len(ids) - load)]


def test_the_same_messages_give_the_same_motion_whatever_the_answer():
    rows = []
    for reply in ("echo", "free_run", "none"):
        intake, answer = engine(reply=reply)
        Link(answer).play([frame.package for frame in driven("turns", 200.0, 3.0)])
        rows.append(bits(intake.newest()))
    assert len(set(rows)) == 1
    assert beamng_simulink.COMMANDS == {"control": CONTROL}
