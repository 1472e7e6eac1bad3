"""Compensation of the actuators' lag: the delay that remains, the largest amplification, the bounds."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_platforms import DT, assert_within, cues_of, driven, positions_of, profile_for

import motioncue
from motioncue import cueing
from motioncue.core.clock import FakeClock
from motioncue.cueing.predictive import design as predictive
from motioncue.engine.engine import Pipeline
from motioncue.errors import ConfigError
from motioncue.output.actuation import OutputChain
from motioncue.platforms import build as platforms
from motioncue.recording.recording import at_ticks, sample_recording
from motioncue.virtual.installation import drive_packages
from motioncue.virtual.platform_twin import Drive, felt

MOST = 16.0  # the largest amplification that docs/platforms.md promises
WIDE = "platform.post={min_m=-50, max_m=50, speed_m_s=1e5, acceleration_m_s2=1e9}"


def overrides(lag_s, damping=None):
    return [f"platform.lag_s={lag_s}", *([] if damping is None else [f"platform.lag_damping={damping}"])]


def heaving(height_m):
    poses = np.zeros((len(height_m), 6))
    poses[:, 2] = height_m
    return poses


def response(signal, frequency_hz):
    """Return the complex amplitude of a signal at a frequency, over its second half."""
    time_s = np.arange(len(signal)) * DT
    half = slice(len(signal) // 2, None)
    phase = 2 * np.pi * frequency_hz * time_s[half]
    basis = np.column_stack([np.sin(phase), np.cos(phase), np.ones(len(phase))])
    sine, cosine, _ = np.linalg.lstsq(basis, signal[half], rcond=None)[0]
    return sine + 1j * cosine


@pytest.mark.parametrize("frequency_hz", [0.1, 0.3, 1.0, 2.0, 4.0, 8.0])
@pytest.mark.parametrize("damping", [None, 1.0, 0.5])
def test_the_delay_through_the_platform_shrinks_to_what_is_promised(damping, frequency_hz):
    """Without: the lag itself.  With: 1 / (T s / 16 + 1), or 1 / (s / 4 w + 1)^2.  Half a tick is added by the hold."""
    lag_s, omega = 0.05, 2 * np.pi * frequency_hz
    time_s = np.arange(round(max(4.0, 12.0 / frequency_hz) / DT)) * DT
    begin = np.clip(time_s / time_s[-1] * 4, 0, 1) ** 3
    height = 2e-3 / max(1.0, frequency_hz) * np.sin(omega * time_s) * begin
    s = 1j * omega
    if damping is None:
        lag, left = 1 / (lag_s * s + 1), 1 / (lag_s / MOST * s + 1)
    else:
        own = 2 * damping / lag_s
        lag = 1 / ((s / own) ** 2 + 2 * damping * s / own + 1)
        left = 1 / (s / own / np.sqrt(MOST) + 1) ** 2
    for given_s, expected in ((None, lag), (lag_s, left)):
        profile = profile_for("posts-4", *([] if given_s is None else overrides(given_s, damping)))
        made = felt(profile, cues_of(heaving(height)), drive=Drive(lag_s, damping, 0.0)).pose[:, 2]
        found = response(made, frequency_hz) / response(height, frequency_hz)
        # The trapezoidal rule has a lead's phase at a warped frequency, and the hold attenuates.
        tolerance = 1e-3 + 3 * (omega * DT) ** 2
        assert abs(found / (expected * np.exp(-0.5 * s * DT)) - 1.0) < tolerance
    assert -np.angle(left) / omega < 0.6 * -np.angle(lag) / omega


@pytest.mark.parametrize("damping", [None, 1.0, 0.7, 0.1])
@pytest.mark.parametrize("lag_s", [0.005, 0.05, 0.5])
def test_no_frequency_is_amplified_beyond_the_bound(lag_s, damping):
    profile = profile_for("posts-4", WIDE, *overrides(lag_s, damping))
    impulse = np.zeros(8192)
    impulse[0] = 0.0
    impulse[1] = 1e-3
    sent = positions_of(profile, heaving(impulse))[:, 0]
    gains = np.abs(np.fft.rfft(sent)) / 1e-3
    assert gains.max() <= MOST * (1 + 1e-6)
    assert gains[0] == pytest.approx(1.0, abs=1e-3)
    assert gains[-1] == pytest.approx(MOST, rel=1e-6)


@pytest.mark.parametrize("damping", [None, 1.0])
def test_behind_the_drives_noise_is_not_amplified(damping):
    profile = profile_for("posts-4", WIDE, *overrides(0.04, damping))
    noise = np.random.default_rng(4).normal(0, 1e-3, 20_000)
    made = felt(profile, cues_of(heaving(noise)), drive=Drive(0.04, damping, 0.0)).pose[:, 2]
    assert made.std() < noise.std()


def test_a_lead_never_takes_one_actuator_off_the_way_of_the_others():
    """A tilt that sends one post to its end: the posts stay in a plane, and in their range."""
    profile = profile_for("posts-4", *overrides(0.3))
    built = platforms.build(profile.platform)
    time_s = np.arange(4000) * DT
    poses = np.zeros((4000, 6))
    poses[:, 3] = 0.2 * np.sin(2 * np.pi * 0.2 * time_s)
    poses[:, 4] = 0.1 * np.sin(2 * np.pi * 0.17 * time_s)
    h = positions_of(profile, poses)
    assert_within(h, built)
    np.testing.assert_allclose(h[:, 0] - h[:, 1] + h[:, 2] - h[:, 3], 0.0, rtol=0, atol=1e-12)


@pytest.mark.search
@pytest.mark.parametrize("preset", ["hexapod-dim", "hexapod-cranks", "posts-3"])
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_no_cue_takes_an_actuator_beyond_its_bounds_by_its_lead(preset, data):
    damping = data.draw(st.sampled_from([None, 1.0, 0.1]))
    profile = profile_for(preset, *overrides(data.draw(st.sampled_from([0.004, 0.05, 0.5])), damping))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    size = data.draw(st.sampled_from([0.01, 0.1, 1.0]))
    poses = np.repeat(rng.uniform(-size, size, (60, 6)), 20, axis=0) + rng.normal(0, size / 10, (1200, 6))
    poses[rng.integers(0, 1200, 5), rng.integers(0, 6, 5)] = np.nan
    positions = positions_of(profile, poses)
    assert np.isfinite(positions).all()
    assert_within(positions, platforms.build(profile.platform))


@pytest.mark.parametrize("damping", [None, 1.0])
def test_a_run_with_compensation_rises_and_ends_exactly_where_it_is_parked(damping):
    profile = profile_for("posts-3", *overrides(0.05, damping))
    built = platforms.build(profile.platform)
    pipeline = driven(profile, 12.0)
    sent = pipeline.emitter.trace["actuators"][:, :3]
    assert_within(sent, built)
    np.testing.assert_array_equal(sent[:300], np.full((300, 3), -0.1))
    np.testing.assert_array_equal(sent[-1], -0.1)
    assert pipeline.stats()["transitions"][-1]["to"] == "OFFLINE"


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("platform.lag_s=0", "platform.lag_s: found 0, allowed is a number above 0"),
        ("platform.lag_s=2", "platform.lag_s: found 2, allowed"),
        ("platform.lag_damping=1", "platform.lag_s: missing, but there is lag_damping = 1"),
        ("platform.lag_damping=3", "platform.lag_damping: found 3, allowed"),
    ],
)
def test_a_lag_that_cannot_be_is_refused(override, message):
    with pytest.raises(ConfigError, match=message):
        profile_for("posts-4", override)


STIFFNESS = r"""
#include "motioncue/platforms/actuator_limits.h"
#include <stdio.h>
int main(void) {
    const double dt = 0.003;
    mc_ActuatorBounds wide = {-1e3, 1e3, 1e3, 1e3};
    mc_LeadState state = {0};
    double largest = 0.0;
    for (int k = 0; k < 2000; k++) {
        mc_Lead lead = mc_lead_for(k < 1000 ? 0.05 : 0.12, 1.0, dt);
        double x = 0.7;
        mc_lead(&lead, &state, &wide, 1, &x);
        if (fabs(x - 0.7) > largest) largest = fabs(x - 0.7);
    }
    printf("%g\n", largest);
    return 0;
}
"""


@pytest.mark.skipif(sys.platform == "win32", reason="compiles a program")
def test_a_lag_that_changes_while_it_runs_moves_nothing_at_rest(tmp_path):
    source = tmp_path / "lead.c"
    source.write_text(STIFFNESS)
    command = ["gcc", "-std=c11", "-I", motioncue.get_include(), str(source), "-o", str(tmp_path / "lead"), "-lm"]
    subprocess.run(command, check=True)
    done = subprocess.run([tmp_path / "lead"], check=True, capture_output=True, text=True)
    assert float(done.stdout) < 1e-12


@pytest.mark.parametrize(
    ("change", "most"),
    [
        ("platform.post.speed_m_s=0.27", 0.0),  # no motion here is so fast: the lead goes on to the bit
        ("platform.lag_s=0.03", 2e-3),  # the difference of the leads, less than the change of lag times the speed
    ],
)
def test_a_change_while_it_moves_leaves_no_step(change, most):
    sent = []
    for retuned in (False, True):
        pipeline, now = Pipeline(profile_for("posts-4", *overrides(0.05)), FakeClock(10**9), trace=20_000), 10**9
        pipeline.intake.begin(now)
        for package in drive_packages("beamng", "turns", 60.0):
            now += round(package.duration * 1e9)
            if now > 11e9:
                break
            if retuned and now > 9e9:
                pipeline.retune(change)
                retuned = False
            pipeline.emitter.run(until_ns=now)
            pipeline.intake.feed(package.package, now)
        sent.append(pipeline.emitter.trace["actuators"][:, :4])
    assert np.abs(sent[0] - sent[1]).max() <= most
    changes = [np.abs(np.diff(own, 2, axis=0) / DT**2).max(axis=1) for own in sent]
    assert changes[1].max() < 2 * changes[0].max() + 0.5


def test_a_plan_bounds_the_acceleration_that_a_lead_makes_of_its_own(monkeypatch):
    """Heave of a box alone: acceleration + lag x jerk at the end of the first block, in which it goes from a to u."""
    seen = []
    program = predictive.program
    monkeypatch.setattr(predictive, "program", lambda *given: seen.append((given, program(*given))) or seen[-1][1])
    lag_s, dt, most = 0.04, 0.003, 6.0
    up = {"min_m": -0.2, "max_m": 0.2, "speed_m_s": 0.5, "acceleration_m_s2": most}
    table = {"kind": "axes", "lag_s": lag_s, "axes": [{"name": "up", "channel": "heave_displacement", "travel": up}]}
    profile = motioncue.load_profile("ccd-dk", "cueing.algorithm=predictive", {"platform": table})
    seen.clear()
    predictive.programs.cache_clear()
    cueing.design(profile.cueing, 1 / dt, profile.platform)
    (((channels, *_), found),) = seen
    assert channels == [2]
    (row,) = np.flatnonzero((found.block == 0) & (found.per_push == 1 / most))
    lead = lag_s / (3 * dt)  # a plan is made in every third tick
    assert found.rows[row, 0] * most == pytest.approx((1 + lead) * found.scale[0])
    np.testing.assert_allclose(found.drift[row, :3] * most, [0.0, 0.0, -lead], atol=1e-12)


@pytest.mark.parametrize("name", ["box-large", "hexapod-dim"])
@pytest.mark.check
def test_a_plan_leaves_little_of_a_lead_to_be_held_back(name):
    """On a real motorway, drives of 50 ms; a tenth of the ticks of a box, 4 % of legs, if the plan knew of no lag."""
    motion = motioncue.read(sample_recording()).motion
    overrides = ("cueing.algorithm=predictive", f"platform.preset={name}", "platform.lag_s=0.05")
    profile = motioncue.load_profile("ccd-dk", *overrides)
    cues = motioncue.cue(profile, at_ticks(motion, profile.rate_hz, "linear"))
    stage = platforms.stage_of(profile.platform, round(1e9 / profile.rate_hz), planned=True)
    OutputChain([stage]).process(cues)
    assert max(stage.shares().values()) < 0.03
