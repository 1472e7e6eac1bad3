"""The platform answers: who is not ready is not moved, who stops is not pulled, and comes back from where it is."""

import os
import socket
import sys

import msgspec
import numpy as np
import pytest
from controller_rig import BESIDE, FADE_S, REPLY, START, SWING, TOLD, Rig, profile_of, telling_profile
from hypothesis import given, settings
from hypothesis import strategies as st

import motioncue
from motioncue.core.channels import BODY, CHASSIS
from motioncue.core.clock import FakeClock
from motioncue.engine.assembly import streams_of
from motioncue.engine.pipeline import Pipeline
from motioncue.output.packet import replies_of
from motioncue.platforms.build import channels_of
from motioncue.safety.supervisor import Platform, State
from motioncue.transports.endpoint import open_line
from motioncue.virtual.controller import Controller, Firmware


def sound_motion(rig, noise_m=0.0):
    """Assert that whatever follows the packets keeps speed and acceleration that the actuators may have.

    A drive of first order that begins `gap` beside its command moves by gap dt / lag in a tick: the noise of a reply,
    and what a platform that goes down by itself has moved since the reply.
    """
    bounds = rig.controller.bounds
    dt = 0.00300003
    places, follows = np.array(rig.places), np.array(rig.following)
    moves = np.diff(places, axis=0)
    both = follows[1:] & follows[:-1]
    gap = noise_m + 3 * dt * rig.controller.firmware.sag
    jerk = gap * dt / 0.03
    assert (np.abs(moves[both]) <= bounds.speed * dt + jerk + 1e-9).all()
    three = both[1:] & both[:-1]
    assert (np.abs(np.diff(moves, axis=0)[three]) <= bounds.acceleration * dt**2 + 2 * jerk + 1e-9).all()
    began = np.flatnonzero(follows[1:] & ~follows[:-1])
    for at in began:  # the first ticks behind a stop: nothing is pulled
        assert (
            np.abs(places[at + 1 : at + 4] - places[at]) <= bounds.acceleration * (3 * dt) ** 2 + 3 * jerk + 1e-9
        ).all()


def test_nothing_moves_before_it_is_ready_and_the_beginning_is_where_it_stands():
    """A controller homes by itself: no packet before it has answered, no cue before it is ready."""
    with Rig(profile_of(), Firmware(homing_s=0.5), places=[0.01, 0.02, -0.01, 0.0]) as rig:
        rig.answers = False
        rig.ticks(50)
        assert rig.emitter.state == "OFFLINE"
        assert rig.emitter.outputs()[0]["sent"] == 0
        rig.answers = True
        rig.ticks(20)
        assert rig.emitter.outputs()[0]["sent"] > 0
        assert rig.emitter.state == "OFFLINE"
        rig.until("RUNNING")
        assert rig.controller.follows
        sound_motion(rig)


def test_an_emergency_stop_parks_at_once_and_an_operator_has_to_engage():
    with Rig(profile_of(), Firmware(homing_s=0.2)) as rig:
        rig.until("RUNNING").ticks(300)
        rig.controller.pressed = True
        rig.ticks(2)
        assert rig.reasons[-1] == ("FAULT", "platform_stopped")
        rig.emitter.engage()
        rig.ticks(500)
        assert rig.emitter.state == "FAULT"  # engaged, but still pressed
        sent = rig.emitter.newest()
        np.testing.assert_allclose(sent["actuators"][0, :4], rig.controller.places, atol=1e-6)
        assert sent["operation"][0] & (Platform.STOPPED | Platform.STANDS)
        rig.controller.pressed = False
        rig.ticks(100)
        assert rig.controller.follows
        assert rig.emitter.state == "FAULT"  # its release moves nothing: an operator has to engage now
        rig.emitter.engage()
        rig.until("RUNNING")
        sound_motion(rig)


@pytest.mark.parametrize("lost", ["", "lost_s = 0.1\n"], ids=["patient", "silence is a fault"])
@pytest.mark.parametrize("flaps", [(1, 1, 1), (1, 40, 1), (2, 1, 3), (40, 2, 40)])
def test_answers_that_come_and_go_in_the_very_tick_of_an_emergency_stop_pull_nothing(flaps, lost):
    """Pressed with the first answer that is missing, released with the last: nobody is pulled."""
    with Rig(profile_of("classical", REPLY + lost), Firmware(homing_s=0.2, enable_s=0.05, sag=0.02)) as rig:
        rig.until("RUNNING").ticks(300)
        rig.controller.pressed = True
        for number, ticks in enumerate(flaps):
            rig.answers = number % 2 == 1
            rig.ticks(ticks)
        rig.answers, rig.controller.pressed = True, False
        rig.ticks(600)
        rig.emitter.engage()
        rig.until("RUNNING")
        assert rig.reasons[2] in {("FAULT", "platform_stopped"), ("FAULT", "platform_silent" if lost else "")}
        sound_motion(rig)


@pytest.mark.skipif(sys.platform != "linux", reason="an address of this machine that is another one")
def test_what_another_host_answers_is_not_the_platform_s():
    """Its neighbor's emergency stop is pressed, and it broadcasts that to every engine."""
    profile = profile_of()
    other = Controller(profile, Firmware(homing_s=0.2))
    other.pressed = True
    other.tick(None)
    (reply,) = other.replies()
    with Rig(profile, Firmware(homing_s=0.2)) as rig, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        stranger.bind(("127.0.0.2", 0))
        rig.until("RUNNING")
        for _ in range(20):
            stranger.sendto(reply, rig.sockets[0].getsockname())
            rig.ticks(1)
        assert rig.emitter.state == "RUNNING"
        rig.controller.pressed = True  # its own is heard
        rig.ticks(2)
        assert rig.reasons[-1] == ("FAULT", "platform_stopped")


HEADSET = {"system": "custom", "motion": "udp://127.0.0.1:4999", "gauges": None}
HEADSET["packet"] = {"size": 8, "fields": [{"offset": 0, "type": "f8", "channel": "pose_up"}]}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals of this kind")
@pytest.mark.parametrize("others", [[], [HEADSET]], ids=["alone", "behind a headset"])
def test_a_controller_that_boots_for_longer_than_the_hold_time_is_sent_nothing_and_has_lost_no_line(others):
    """Nothing is sent to it before it has said where its actuators are, so it cannot have failed to take it."""
    alone = msgspec.to_builtins(profile_of().outputs[0])
    profile = profile_of("classical", REPLY, {"output": [*others, alone]})
    pipeline = Pipeline(profile, FakeClock(START))
    output = profile.outputs[-1]
    ((_, encoding),) = streams_of(output, profile.platform).values()
    replies = replies_of(output.packet, channels_of(profile.platform), stream=True)
    end, line = os.openpty()
    try:
        opened = open_line(f"serial://{os.ttyname(line)}", 250_000)
        pipeline.emitter.add_output(opened, None, encoding.table, encoding.packet, encoding.seal, len(others), replies)
        pipeline.emitter.run(ticks=2000)
    finally:
        os.close(line)
        os.close(end)
    assert pipeline.emitter.outputs()[0]["sent"] == 0
    assert pipeline.emitter.newest()["operation"][0] & Platform.UNREADY
    assert pipeline.emitter.transitions() == []


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals of this kind")
def test_what_was_said_before_a_line_is_taken_into_use_is_not_about_now(tmp_path):
    """It is plugged in again and says where it is; it homes; the operator engages: only what it says then counts."""
    profile, name = profile_of(), tmp_path / "line"
    controller = Controller(profile, Firmware())
    pipeline = Pipeline(profile, FakeClock(START))
    ((_, encoding),) = streams_of(profile.outputs[0], profile.platform).values()
    replies = replies_of(profile.outputs[0].packet, channels_of(profile.platform), stream=True)

    def plug_in():
        end, line = os.openpty()
        os.set_blocking(end, False)
        name.unlink(missing_ok=True)
        name.symlink_to(os.ttyname(line))
        return end, line

    def say(place):
        controller.places = np.full(4, place)
        (reply,) = controller.replies()
        os.write(end, 10 * reply)

    end, held = plug_in()
    line = open_line(f"serial://{name}", 250_000)
    pipeline.emitter.add_output(line, None, encoding.table, encoding.packet, encoding.seal, 0, replies)
    say(0.0)
    pipeline.emitter.run(ticks=10)
    before = pipeline.emitter.outputs()[0]["sent"]
    assert before > 0
    os.close(held)
    os.close(end)
    pipeline.emitter.run(ticks=2000)  # until what is sent is at rest
    assert pipeline.emitter.state == "FAULT"
    end, held = plug_in()
    try:
        before = pipeline.emitter.outputs()[0]["sent"]
        assert line.reopen()
        for _ in range(8):  # nearly as much as a system keeps
            say(0.03)
        pipeline.emitter.engage()
        pipeline.emitter.run(ticks=20)
        assert pipeline.emitter.outputs()[0]["sent"] == before
        say(-0.02)
        pipeline.emitter.run(ticks=2)
        first = np.frombuffer(os.read(end, 32))
        np.testing.assert_allclose(first, np.full(4, -0.02), atol=1e-6)
    finally:
        line.close()
        os.close(held)
        os.close(end)


def test_a_stopped_platform_that_falls_silent_is_not_asked_to_stay_where_nobody_knows_it_to_be():
    """Its controller may be switched off: what is sent goes to where the platform is parked, and a run can end."""
    with Rig(profile_of("classical", REPLY + "lost_s = 0.1\n"), Firmware(homing_s=0.2)) as rig:
        rig.until("RUNNING").ticks(300)
        rig.controller.pressed = True
        rig.ticks(10)
        assert rig.emitter.newest()["operation"][0] & Platform.STANDS
        rig.answers = False
        rig.ticks(1500)
        assert rig.emitter.rested
        assert not rig.emitter.newest()["operation"][0] & Platform.STANDS


@pytest.mark.parametrize("how", ["fault", "lost", "unready"])
@pytest.mark.check
def test_other_troubles(how):
    reply = REPLY + "lost_s = 0.1\n"
    with Rig(profile_of("classical", reply), Firmware(homing_s=0.2)) as rig:
        rig.until("RUNNING").ticks(100)
        if how == "fault":
            rig.controller.fault = True
        elif how == "lost":
            rig.answers = False
        else:
            rig.controller.disable()
        rig.ticks(60)
        assert rig.reasons[-1] == (
            "FAULT",
            {"fault": "platform_fault", "lost": "platform_silent", "unready": "platform_unready"}[how],
        )
        rig.ticks(1500)
        rig.controller.fault, rig.answers = False, True
        rig.ticks(500)
        rig.emitter.engage()
        rig.until("RUNNING")
        sound_motion(rig)


def drive_on_and_press(rig, data):
    """Press the emergency stop and release it at any tick, three times, in whatever state an operator has asked for."""
    for _ in range(3):
        rig.ticks(data.draw(st.integers(0, 1500), label="before"))
        data.draw(st.sampled_from([rig.emitter.engage, rig.emitter.park, rig.emitter.hold, rig.emitter.engage]))()
        rig.controller.pressed = True
        rig.ticks(data.draw(st.integers(1, 400), label="pressed"))
        rig.controller.pressed = False
    rig.ticks(1000)
    rig.emitter.engage()
    rig.ticks(1200)
    assert rig.emitter.state in ("ENGAGING", "RUNNING")


ALGORITHMS = st.sampled_from(["classical", "adaptive", "optimal", "predictive"])


def firmware_of(data, noise):
    return Firmware(
        homing_s=0.4,
        enable_s=data.draw(st.floats(0.05, 1.0), label="enable_s"),
        homes_again=data.draw(st.booleans(), label="homes again"),
        sag=data.draw(st.sampled_from([0.0, 0.02]), label="sag"),
        noise=noise,
    )


def pressed_and_released(data):
    """In every state, with every algorithm, however the drives stop: no step at the actuators when they come back."""
    noise = data.draw(st.sampled_from([0.0, 0.001]), label="noise")
    profile = profile_of(data.draw(ALGORITHMS, label="algorithm"))
    with Rig(profile, firmware_of(data, noise), seed=data.draw(st.integers(0, 100))) as rig:
        drive_on_and_press(rig, data)
        bounds = rig.controller.bounds
        sound_motion(rig, noise * (bounds.high[0] - bounds.low[0]))


test_pressed_and_released_at_any_tick = pytest.mark.check(
    settings(max_examples=6, deadline=None)(given(st.data())(pressed_and_released))
)
test_pressed_and_released_at_more_ticks = pytest.mark.search(
    settings(max_examples=40, deadline=None)(given(st.data())(pressed_and_released))
)


FADE = 1.875 * 0.00300003 / FADE_S  # the steepest tick of x^3 (10 - 15 x + 6 x^2)


def largest_steps(rig):
    """Return what each channel of the car may step in a tick: by itself, and if it is the steepest of a fade.

    A line from frame to frame lasts whole ticks, so it may be steeper than the frames by what is left of the last tick.
    """
    told = np.frombuffer(b"".join(package.package for package in rig._drive(rig.profile)), TOLD)
    ticks = (told["frame_time"][1] - told["frame_time"][0]) // 0.00300003
    out = {}
    for channel in (*BODY, *CHASSIS):
        values = np.unwrap(told[channel.name]) if channel.name == "yaw" else told[channel.name]
        out[channel.name] = np.abs(np.diff(values)).max() / ticks, np.abs(values).max() * FADE
    return out


def pressed_while_the_car_is_sent(data):
    """The same where the output gets car, wheels, cab and tactile, and wheels lift the corners: nothing has a step."""
    profile = telling_profile(data.draw(ALGORITHMS, label="algorithm"), "output.tactile.engine=0")
    with Rig(profile, firmware_of(data, 0.0), seed=data.draw(st.integers(0, 100))) as rig:
        drive_on_and_press(rig, data)
        sound_motion(rig)
        sent = np.frombuffer(b"".join(rig.sent), BESIDE)
        weights = rig.emitter.trace["weight"][rig.sent_in]
        steps = largest_steps(rig)
    fades = np.diff(weights) != 0.0
    assert fades.any()
    assert (weights == 1.0).any()
    for name, (own, faded) in steps.items():
        change = np.diff(sent[f"car_{name}"])
        if name == "yaw":
            change = (change + np.pi) % (2.0 * np.pi) - np.pi
        most = own + np.where(fades, faded, 0.0)  # a fade is no excuse where none goes on
        assert (np.abs(change) <= most * (1 + 1e-6) + 1e-12).all(), name
    assert all(sent[f"car_{channel.name}"].any() for channel in CHASSIS)
    # What the filters make of a wheel's velocity is at most 4 times as large, and as steep; for the 10 ticks in which
    # they hear a step, where the drive goes on with another velocity, at most 0.003 is sent of it.
    assert 0.0 < np.abs(np.diff(sent["tactile"])).max() <= 4.0 * SWING * (4.0 * np.pi * 0.003 + FADE + 2.0 * 0.003)


test_pressed_and_released_while_the_cars_own_channels_are_sent = pytest.mark.check(
    settings(max_examples=5, deadline=None)(given(st.data())(pressed_while_the_car_is_sent))
)
test_pressed_and_released_more_often_while_the_cars_own_channels_are_sent = pytest.mark.search(
    settings(max_examples=30, deadline=None)(given(st.data())(pressed_while_the_car_is_sent))
)


def test_replies_are_repeated_bit_for_bit():
    profile = profile_of()
    with Rig(profile, Firmware(homing_s=0.2)) as rig:
        rig.until("RUNNING").ticks(200)
        rig.controller.pressed = True
        rig.ticks(100)
        rig.controller.pressed = False
        rig.ticks(800)
        trace = rig.emitter.trace
    assert {State(state).name for state in np.unique(trace["state"])} >= {"OFFLINE", "ENGAGING", "RUNNING", "FAULT"}
    again = Pipeline(profile, FakeClock(START), trace=len(trace))
    again.intake.begin(START)
    packages, at = Rig._drive(profile), START
    for tick in trace:
        while at <= tick["deadline"] - 3_000_030:
            package = next(packages)
            at += round(package.duration * 1e9)
            again.intake.feed(package.package, int(tick["deadline"]) - 3_000_030)
        rows = np.array([[tick["index"], tick["deadline"], tick["operation"]]])
        again.emitter.replay_ticks(rows, np.ascontiguousarray(tick["feedback"])[None])
    for name in ("state", "weight", "cue", "actuators", "feedback"):
        np.testing.assert_array_equal(again.emitter.trace[name], trace[name])
    assert motioncue.TICK_DTYPE["feedback"].shape == (12,)
