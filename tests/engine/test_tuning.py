"""Settings that change under a stepper: the cue against the equation of the fade, and refusals."""

import contextlib
import gc
import sys
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from same_bits import assert_same_bits

import motioncue
from motioncue import ConfigError, cueing
from motioncue.core.channels import CUE_DTYPE, MOTION_DTYPE
from motioncue.cueing.settings import ALGORITHMS
from motioncue.engine.tick import Settings
from motioncue.recording.recording import at_ticks, read_motion, sample_recording

PERIOD_S = 3_000_030e-9
PACE = PERIOD_S / 1.0  # position of a fade of 1 s, per tick
OVERLAP = 3  # ticks in which the old settings are still in force, once the new ones are taken
JOINED = [name for name in CUE_DTYPE.names if name not in ("speed", "engine_speed", "time")]
FREE = "limits=none"


@pytest.fixture(scope="module")
def drive():
    """Return 12 s of the real drive, one row a tick."""
    return at_ticks(read_motion(sample_recording()), 333.33)[1000:5000]


def steps(stepper, motion):
    """Return the cues of as many steps as there are rows."""
    out = np.zeros(len(motion), CUE_DTYPE)
    for i in range(len(motion)):
        stepper.motion[0] = motion[i]
        assert stepper.step()
        out[i] = stepper.cue[0]
    return out


def smooth(x):
    """Return the weight x^3 (10 - 15 x + 6 x^2)."""
    x = np.clip(x, 0.0, 1.0)
    return x**3 * (10 - 15 * x + 6 * x * x)


def short(angle):
    return (angle + np.pi) % (2 * np.pi) - np.pi


# ---- the fade --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "change"),
    [
        (("ccd-dk", FREE), ["cueing.algorithm=classical", "cueing.surge.gain=0.3"]),
        (("ccd-dk-classical", FREE), ["cueing.algorithm=direct"]),
        (("ccd-dk-classical", FREE), ["cueing.algorithm=adaptive"]),
        (("ccd-dk-classical", FREE), ["cueing.algorithm=optimal"]),
    ],
)
def test_another_algorithm_starts_from_rest_beside_the_old_one_and_the_cue_goes_over_by_a_smooth_weight(
    drive, before, change
):
    at = 1500
    stepper = motioncue.bind(motioncue.load_profile(*before))
    first = steps(stepper, drive[:at])
    stepper.retune(change)
    sent = np.concatenate([first, steps(stepper, drive[at:])])
    old = motioncue.cue(motioncue.load_profile(*before), drive)
    new = motioncue.cue(motioncue.load_profile(*before, *change), drive[at:])
    end = at + OVERLAP
    assert_same_bits(sent[:end], old[:end])
    weight = smooth(PACE * np.arange(1, len(drive) - end + 1))
    for name in JOINED:
        turned = short if name in ("roll", "yaw") else lambda value: value
        apart = turned(old[name][end:] - new[name][OVERLAP:])
        expected = new[name][OVERLAP:] + (1 - weight) * apart
        np.testing.assert_allclose(turned(sent[name][end:] - expected), 0.0, atol=1e-9, err_msg=name)
        assert_same_bits(sent[name][end + 340 :], new[name][OVERLAP + 340 :], name)
    assert np.abs(old["surge"][end] - new["surge"][OVERLAP]) > 0.01  # there was a difference


def test_the_same_structure_keeps_its_states(drive):
    drive = drive.copy()
    for name in ("roll", "pitch", "roll_rate", "pitch_rate", "yaw_rate"):  # a level car: axes do not meet
        drive[name] = 0.0
    stepper = motioncue.bind(motioncue.load_profile("ccd-dk-classical", FREE))
    steps(stepper, drive[:1500])
    stepper.retune("cueing.sway.gain=0.3")
    sent = steps(stepper, drive[1500:])
    old = motioncue.cue(motioncue.load_profile("ccd-dk-classical", FREE), drive)[1500:]
    # Channels that do not depend on the gain of sway continue bit for bit; a restarted washout would have lost that.
    for name in ("surge_displacement", "pitch"):
        assert_same_bits(sent[name], old[name])
    assert np.abs(old["surge_displacement"][0]) > 0.01
    # Filters forget: after 40 s the drive's sway is that of the new gain alone.
    tail = np.tile(drive[1500:], 5)
    changed = steps(stepper, tail)["sway_displacement"]
    other = motioncue.cue(
        motioncue.load_profile("ccd-dk-classical", FREE, "cueing.sway.gain=0.3"), np.concatenate([drive, tail])
    )["sway_displacement"][4000:]
    np.testing.assert_allclose(changed[-1000:], other[-1000:], atol=1e-6)


@pytest.mark.parametrize("yaw", [3.0, -3.0, 3.14159])
def test_a_heading_beside_the_line_of_half_a_turn_fades_the_short_way(yaw):
    # Direct sends the car's heading, a washout at rest sends 0; between them the heading turns less than half a turn.
    stepper = motioncue.bind(motioncue.load_profile("ccd-dk", FREE))
    motion = np.zeros(1000, MOTION_DTYPE)
    motion["yaw"] = yaw
    before = steps(stepper, motion[:100])
    stepper.retune(["cueing.algorithm=classical", "cueing.preset=simona"])
    sent = np.concatenate([before, steps(stepper, motion[100:])])["yaw"]
    assert np.abs(np.diff(sent)).max() <= 15 / 8 * PACE * abs(yaw) * 1.001
    assert np.sign(yaw) * sent.min() >= -1e-9 or np.sign(yaw) * sent.max() >= -1e-9
    assert sent[-1] == 0.0


@pytest.mark.parametrize(("first", "then"), [(3.1, -3.1), (-3.0, 3.0)])
def test_roll_and_yaw_go_across_the_line_of_half_a_turn_while_they_fade(first, then):
    # The washout's own angle is on the other side of the line: the difference is that of the short way.
    motion = np.zeros(800, MOTION_DTYPE)
    motion["yaw"] = first
    motion["yaw"][400:] = then
    stepper = motioncue.bind(motioncue.load_profile("ccd-dk", FREE))
    steps(stepper, motion[:380])
    stepper.retune(["cueing.algorithm=classical", "cueing.preset=simona"])
    steps(stepper, motion[380:390])
    stepper.retune("cueing.algorithm=direct")
    sent = steps(stepper, motion[390:])["yaw"]
    moved = short(np.diff(sent))
    # But for the car's own step across the line, by the short way, only fades move it.
    moved[9] -= short(then - first) * (np.abs(moved[9]) > 0.05)
    assert np.abs(moved).max() <= 2 * 15 / 8 * PACE * np.pi
    assert (np.abs(sent) <= np.pi).all()


def test_headings_on_either_side_of_the_line_of_half_a_turn_fade_across_it():
    # The washout has turned to about -1 rad, the car is at 3: across the line that is 2.28 rad, the other way 4.
    stepper = motioncue.bind(
        motioncue.load_profile("ccd-dk-classical", FREE, "cueing.yaw.gain=1", "cueing.yaw.cutoff_hz=0.001")
    )
    motion = np.zeros(1000, MOTION_DTYPE)
    motion["yaw"], motion["yaw_rate"][:333] = 3.0, -1.0
    before = steps(stepper, motion[:400])["yaw"]
    assert before[-1] == pytest.approx(-1.0, abs=0.02)
    stepper.retune("cueing.algorithm=direct")
    sent = np.concatenate([before[-1:], steps(stepper, motion[400:])["yaw"]])
    assert np.abs(short(np.diff(sent))).sum() == pytest.approx(2 * np.pi - 3.0 + before[-1], abs=0.03)
    assert sent[-1] == 3.0


def test_another_fade_s_during_a_fade_makes_no_corner():
    motion = np.zeros(400, MOTION_DTYPE)
    motion["surge"] = 2.0
    stepper = motioncue.bind(motioncue.load_profile("ccd-dk", FREE))
    steps(stepper, motion[:50])
    stepper.retune(["cueing.algorithm=classical", "cueing.preset=simona"])
    sent = [steps(stepper, motion[:170])]
    stepper.retune(["supervisor.fade_s=5", "cueing.surge.gain=0.61"])
    sent.append(steps(stepper, motion))
    surge = np.concatenate(sent)["surge"]
    # Half-way down from 2 the slope is 15/8 of a pace times what is joined; a corner would be as large in one tick.
    assert np.abs(np.diff(surge)).max() > 1.2 * PACE
    assert np.abs(np.diff(surge[5:], 2)).max() <= 12 * PACE**2 * 2.0


def test_an_algorithm_that_has_been_in_use_before_starts_from_rest(drive):
    def settings(*overrides):
        profile = motioncue.load_profile("ccd-dk-classical", FREE, *overrides)
        return Settings(cueing.design(profile.cueing, 1 / PERIOD_S), period_ns=3_000_030, profile=profile)

    first = settings()
    stepper = motioncue.engine.embed.Stepper(first, tune=lambda change, post: post(change))
    steps(stepper, drive[:500])
    stepper.retune(settings("cueing.algorithm=direct"))
    steps(stepper, drive[500:1000])
    stepper.retune(Settings(first.algorithm, period_ns=3_000_030))
    sent = steps(stepper, drive[1000:2000])
    expected = motioncue.cue(first.profile, drive[1000:2000])
    for name in JOINED:
        assert_same_bits(sent[name][350:], expected[name][350:])


def test_a_change_on_the_way_of_another_goes_on_from_where_that_is(drive):
    stepper = motioncue.bind(motioncue.load_profile("ccd-dk-classical", FREE))
    sent = [steps(stepper, drive[:1500])]
    for i in range(10):
        stepper.retune(f"cueing.preset={('utias', 'simona')[i % 2]}")
        sent.append(steps(stepper, drive[1500 + 40 * i : 1540 + 40 * i]))
    sent.append(steps(stepper, drive[1900:]))
    sent = np.concatenate(sent)
    plain = motioncue.cue(motioncue.load_profile("ccd-dk-classical", FREE), drive)
    for name in ("surge_displacement", "sway_displacement", "roll", "pitch"):
        size = np.abs(plain[name]).max() + np.abs(sent[name]).max()
        assert np.abs(np.diff(sent[name])).max() <= np.abs(np.diff(plain[name])).max() * 2 + 15 / 8 * PACE * 2 * size
        # Value and slope go on: the second difference is that of curves, not of corners.
        assert (
            np.abs(np.diff(sent[name], 2)).max() <= 12 * PACE**2 * 2 * size + 2 * np.abs(np.diff(plain[name], 2)).max()
        )


changes = st.sampled_from(
    [
        *("cueing.surge.gain=0.2", "cueing.surge.gain=1.5", "cueing.preset=utias", "cueing.preset=simona"),
        *(["cueing.algorithm=classical", "cueing.preset=simona"], "cueing.algorithm=direct", "limits=none"),
        *("cueing.tilt.rate_limit_deg_s=1", "limits={ surge = { value_m_s2 = 2 } }"),
        *(
            "limits={ pitch = { value_deg = 1 } }",
            "supervisor.fade_s=0.2",
            "supervisor.fade_s=3",
            "cueing.surge.order=1",
        ),
    ]
)


@settings(max_examples=40)
@given(plan=st.lists(st.tuples(changes, st.integers(0, 60)), max_size=25), start=st.integers(0, 2500))
def test_any_changes_at_any_tick_make_no_step(plan, start):
    # A steady pull: whatever moves is the washout itself, slowly, or a fade.
    motion = np.zeros(60, MOTION_DTYPE)
    motion["surge"], motion["sway"], motion["roll"] = 1.0, -0.5, 0.1
    stepper = motioncue.bind(motioncue.load_profile("ccd-dk-classical"))
    sent = [steps(stepper, np.tile(motion, 1 + start // 60))]
    for change, ticks in plan:
        with contextlib.suppress(ConfigError):  # such as a gain of direct
            stepper.retune(change)
        sent.append(steps(stepper, motion[:ticks]))
    sent = np.concatenate(sent)
    fastest = PERIOD_S / 0.2
    for name in JOINED:
        size = 2 * np.abs(sent[name]).max() + 2.0
        steps_of = np.abs(short(np.diff(sent[name][1:])) if name in ("roll", "yaw") else np.diff(sent[name][1:]))
        assert np.isfinite(sent[name]).all()
        assert steps_of.max(initial=0.0) <= 15 / 8 * fastest * size, name


# ---- the same settings -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ccd-dk", "ccd-dk-classical"])
def test_the_same_settings_keep_the_bits_however_often_they_come(drive, name):
    stepper = motioncue.bind(name)
    out = []
    for i in range(0, 2000, 7):
        stepper.retune(motioncue.load_profile(name) if i % 2 else {})
        out.append(steps(stepper, drive[i : i + 7]))
    assert_same_bits(np.concatenate(out), motioncue.cue(name, drive[: len(np.concatenate(out))]))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_an_algorithm_designed_anew_from_the_same_settings_keeps_the_bits(drive, algorithm):
    presets = list(ALGORITHMS[algorithm].presets)[:1]
    keys = [f"cueing.algorithm={algorithm}", *(f"cueing.preset={preset}" for preset in presets)]
    profile = motioncue.load_profile("ccd-dk", FREE, *keys)

    def designed():
        return Settings(cueing.design(profile.cueing, 1 / PERIOD_S), period_ns=3_000_030, profile=profile)

    stepper = motioncue.engine.embed.Stepper(designed(), tune=lambda change, post: post(change))
    out = []
    for i in range(0, 2000, 11):
        stepper.retune(designed())
        out.append(steps(stepper, drive[i : i + 11]))
    out = np.concatenate(out)
    assert_same_bits(out, motioncue.cue(profile, drive[: len(out)]))


def test_the_same_settings_during_a_fade_leave_it_as_it_is(drive):
    def designed(preset):
        profile = motioncue.load_profile("ccd-dk-classical", FREE, f"cueing.preset={preset}")
        return Settings(cueing.design(profile.cueing, 1 / PERIOD_S), period_ns=3_000_030)

    sent = []
    for again in (False, True):
        stepper = motioncue.engine.embed.Stepper(designed("simona"), tune=lambda change, post: post(change))
        steps(stepper, drive[:1500])
        stepper.retune(designed("utias"))
        out = [steps(stepper, drive[1500:1600])]
        if again:
            stepper.retune(designed("utias"))
        out.append(steps(stepper, drive[1600:2500]))
        sent.append(np.concatenate(out).tobytes())
    assert sent[0] == sent[1]


# ---- the mailbox -----------------------------------------------------------------------------------------------------


def test_settings_are_in_force_three_ticks_after_they_are_taken():
    stepper = motioncue.bind("ccd-dk-classical")
    old = stepper.profile
    stepper.retune("cueing.surge.gain=0.1")
    for _ in range(OVERLAP):
        assert stepper.profile is old
        stepper.step()
    assert stepper.profile.cueing.surge.gain == 0.1


def test_the_newest_of_several_counts_and_overrides_add_up():
    stepper = motioncue.bind("ccd-dk-classical")
    for gain in (0.1, 0.2, 0.3):
        stepper.retune(f"cueing.surge.gain={gain}")
    stepper.retune({"cueing": {"sway": {"gain": 0.9}}, "supervisor.hold_s": 0.2})
    for _ in range(4):
        stepper.step()
    cueing = stepper.profile.cueing
    assert (cueing.surge.gain, cueing.sway.gain, stepper.profile.supervisor.hold_s) == (0.3, 0.9, 0.2)


@pytest.mark.search
def test_settings_that_no_step_uses_any_more_are_freed():
    stepper = motioncue.bind("ccd-dk-classical")

    def alive():
        gc.collect()
        return sum(isinstance(each, Settings) for each in gc.get_objects())

    before = alive()
    for i in range(20):
        stepper.retune(f"cueing.surge.gain={0.1 + i / 100}")
        for _ in range(i % 5):  # some are taken, others are replaced first
            stepper.step()
        assert alive() - before <= 2  # those that fade out, those in force, those in the overlap or in the mailbox


@pytest.mark.search
def test_thousands_of_changes_leave_memory_as_it_is():
    stepper = motioncue.bind("ccd-dk-classical", np.ones(1, MOTION_DTYPE))
    keys = [f"cueing.surge.gain={0.1 + i / 100:.2f}" for i in range(50)]

    def change(times):
        for i in range(times):
            stepper.retune(keys[i % 50])
            stepper.step()

    change(200)
    gc.collect()
    before = sys.getallocatedblocks()
    change(3000)
    gc.collect()
    assert sys.getallocatedblocks() - before < 200


@pytest.mark.rt
def test_threads_change_settings_while_another_steps(drive):
    stepper = motioncue.bind("ccd-dk-classical")
    ended = threading.Event()

    def change(key):
        i = 0
        while not ended.is_set():
            stepper.retune(f"cueing.{key}.gain={0.3 + (i % 7) / 20}")
            i += 1

    threads = [threading.Thread(target=change, args=(key,)) for key in ("surge", "sway")]
    for thread in threads:
        thread.start()
    try:
        sent = np.concatenate([steps(stepper, drive) for _ in range(3)])
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    for name in JOINED:
        assert np.isfinite(sent[name]).all()
    assert np.abs(np.diff(sent["surge_displacement"])).max() < 0.05


# ---- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("output.rate_hz=250", r"output\.rate_hz: found 250\.?0?, allowed is 333\.33 while it runs"),
        ("source.endpoint=tcp://127.0.0.1:9", r"source\.endpoint: found .*, allowed is .* while it runs"),
        (
            "source.options.quaternion=wxyz",
            r"source\.options\.quaternion: found 'wxyz', allowed is nothing while it runs",
        ),
        ("source.system=beamng", r"source\.system: found 'beamng', allowed is 'city-car-driving' while it runs"),
        ("output.motion=udp://127.0.0.1:9", r"output\.motion: found"),
        ({"output": {"spin_us": 5.0}}, r"output\.spin_us: found 5\.0, allowed is 0\.0 while it runs"),
        ("source.acceleration=from_velocity", r"source\.acceleration: found 'from_velocity'"),
        ("beamng-dk", r"source\.system: found 'beamng'"),
        ("cueing.surge.gain=1000", r"cueing\.surge\.gain: found 1000, allowed is a number from -10 to 10"),
        ("cueing.surge.cutoff_hz=166", r"cueing\.surge\.cutoff_hz: found 166\S* Hz, allowed is below 166|found 166"),
        ("cueing.surge.grain=1", r"cueing\.surge\.grain: unknown key.*did you mean 'gain'"),
        ("cueing.surge.order=3", r"cueing\.surge\.break_hz: missing"),
        ("limits.surge.value_m_s2=-1", r"limits\.surge"),
        ("no-such-profile", "is neither a built-in profile nor a file"),
        ({"cueing.surge.gain": float("nan")}, r"cueing\.surge\.gain: found nan, allowed are finite numbers"),
    ],
)
def test_what_cannot_be_is_refused_with_its_key_and_changes_nothing(drive, change, message):
    stepper = motioncue.bind("ccd-dk-classical")
    first = steps(stepper, drive[:100])
    with pytest.raises(ConfigError, match=message):
        stepper.retune(change)
    out = np.concatenate([first, steps(stepper, drive[100:300])])
    assert_same_bits(out, motioncue.cue("ccd-dk-classical", drive[:300]))


@pytest.mark.parametrize("change", ["limits.pitch.value_deg=1", {"limits": {"pitch": {"value_deg": 1}}}])
def test_a_channel_that_was_not_bounded_is_given_bounds(change):
    stepper = motioncue.bind(motioncue.load_profile("ccd-dk-classical", "limits.pitch=none"))
    stepper.retune(change)
    for _ in range(4):
        stepper.step()
    assert stepper.profile.bounds()["pitch"][0] == pytest.approx(np.radians(1))


def test_a_stepper_of_the_callers_rate_takes_profiles_of_any_rate(tmp_path):
    stepper = motioncue.bind("ccd-dk-classical", rate_hz=1000)
    file = tmp_path / "rig.toml"
    text = motioncue.profile.profile.profile_text("ccd-dk-classical").replace('preset = "simona"', 'preset = "utias"')
    file.write_text(text, encoding="utf-8")
    stepper.retune(file)
    for _ in range(4):
        stepper.step()
    assert (stepper.profile.cueing.preset, stepper.profile.rate_hz) == ("utias", 1000.0)


def test_a_stepper_that_was_not_made_from_a_profile_says_so():
    profile = motioncue.load_profile("ccd-dk")
    stepper = motioncue.engine.embed.Stepper(Settings(cueing.design(profile.cueing, 1 / PERIOD_S), period_ns=3_000_030))
    with pytest.raises(TypeError, match="nothing to change"):
        stepper.retune("cueing.surge.gain=1")
    assert stepper.profile is None
