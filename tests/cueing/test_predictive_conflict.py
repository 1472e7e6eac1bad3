"""The conflict about the vertical in the plan of `predictive`: its model, and what its weight does."""

import numpy as np
import pytest
from predictive_drives import RATE_HZ, drive, profile
from scipy import signal

import motioncue
from motioncue import cueing
from motioncue.core.channels import GRAVITY
from motioncue.cueing.predictive import horizon
from motioncue.cueing.predictive.horizon import CONFLICT, LEAN, TILTS, conflict_step
from motioncue.scoring.quality import conflict

BY_FORCE, DAMPING, STIFFNESS = CONFLICT
MODEL = [BY_FORCE, 0.0], [1.0, DAMPING, STIFFNESS]  # 0.3 s / (s^2 + s/3 + 5/3)


@pytest.mark.parametrize("omega", [0.2, 1.0, 1.3, 3.0])
@pytest.mark.parametrize("axis", [0, 2])
def test_it_is_that_of_the_score_for_small_forces(axis, omega):
    time = np.arange(0.0, 150.0, 0.05)
    wave, upright = 0.05 * np.sin(omega * time), np.tile([0.0, 0.0, 1.0], (len(time), 1))
    force = GRAVITY * upright
    force[:, axis] += wave
    whole = slice(-round(20.0 * 2.0 * np.pi * round(10.0 * omega) / omega), None)  # periods, after the start
    found = conflict(force, np.zeros_like(force), upright, 20.0)[whole]
    gain = abs(np.polyval(MODEL[0], 1j * omega) / np.polyval(MODEL[1], 1j * omega))
    assert np.sqrt(np.mean(found**2)) == pytest.approx(gain * np.sqrt(np.mean(wave[whole] ** 2)), rel=0.02)


@pytest.mark.parametrize("sense", [0, 1])
@pytest.mark.parametrize("omega", [1.0, 1.3, 3.0, 8.0])
@pytest.mark.parametrize("slides", [0.0, 0.5])
def test_a_lean_makes_more_of_it_than_its_force_as_in_the_score(sense, omega, slides):
    """The canals' expectation does not follow a turn wholly.

    A slide that is a quarter of a period ahead shows the sign of what the rate adds; `slides` [s].
    """
    channel, by_angle = TILTS[sense]
    time = np.arange(0.0, 150.0, 0.02)
    angle = 0.005 * np.sin(omega * time)
    force, rates = np.zeros((len(time), 3)), np.zeros((len(time), 3))
    force[:, sense] = by_angle * np.sin(angle)
    force[:, 2] = GRAVITY * np.cos(angle)
    rates[:, channel - 3] = rate = np.gradient(angle, time)
    up = force / GRAVITY
    force[:, sense] += slides * by_angle * rate
    found = conflict(force, rates, up, 50.0)[len(time) // 2 :]
    by_force = np.polyval(MODEL[0], 1j * omega) / np.polyval(MODEL[1], 1j * omega)
    expected = abs(by_force * (1.0 + LEAN[0] + (LEAN[1] + slides) * 1j * omega)) * GRAVITY * 0.005 * np.sqrt(0.5)
    assert np.sqrt(np.mean(found**2)) == pytest.approx(expected, rel=0.03)


SPACE = (
    np.array([[-DAMPING, -STIFFNESS], [1.0, 0.0]]),
    np.array([[BY_FORCE], [0.0]]),
    np.eye(2),
    np.zeros((2, 1)),
)


def leaning(sense, angle, rate):
    """Return what the conflict follows beside the force on the platform [m/s^2]."""
    return TILTS[sense][1] * (LEAN[0] * angle + LEAN[1] * rate)


@pytest.mark.parametrize("sense", [0, 1])
def test_a_plan_counts_force_and_lean(sense):
    """Of accelerations of a slide and its tilt by chance, what the equations make of them."""
    rng, step_s, (channel, by_angle) = np.random.default_rng(5), 0.01, TILTS[sense]
    push = rng.normal(0.0, 1.0, (300, 2)).cumsum(axis=0) * [0.05, 0.01]
    begin = (np.array([[0.1], [0.02]]), np.array([[-0.2], [0.05]]), np.zeros((1, 1)), np.array([[0.1], [-0.05]]))
    rows = horizon._course(begin, push[:, :, None], np.zeros((300, 1, 1)), step_s, (sense, channel), (sense,), [0])
    angle, rate = rows.place[:, 1, 0], rows.speed[:, 1, 0]
    acting = push[:, 0] + by_angle * angle + leaning(sense, angle, rate)
    _, found, _ = signal.lsim(SPACE, acting, np.arange(300) * step_s, [0.1, -0.05])
    assert rows.conflict[:, :, 0] == pytest.approx(found, abs=1e-9)


@pytest.mark.parametrize(("sense", "force", "tilt"), [(0, "surge", "pitch"), (1, "sway", "roll")])
def test_a_tick_keeps_what_has_acted(probe, sense, force, tilt):
    """Force and lean of its cues, each held for a tick."""
    motion = np.zeros(4000, motioncue.MOTION_DTYPE)
    motion[force] = 2.0 * np.sin(1.3 * np.arange(4000) / RATE_HZ)
    algorithm = cueing.design(profile("cueing.weights.conflict=2", platform="box-small").cueing, RATE_HZ)
    cues = algorithm.process(motion)
    assert np.abs(cues[tilt]).max() > 0.1
    acting = cues[force] + leaning(sense, cues[tilt], cues[f"{tilt}_rate"])
    a, b, *_ = signal.cont2discrete(SPACE, 1.0 / RATE_HZ)
    state = np.zeros(2)
    for each in acting:
        state = a @ state + b[:, 0] * each
    assert probe.conflicts(algorithm)[sense] == pytest.approx(state, rel=1e-9)


def test_a_step_of_it_is_exact_for_a_force_along_a_line():
    own, before, after = conflict_step(0.1)
    force = np.array([0.3, -1.2])
    fine = signal.lsim(SPACE, np.linspace(*force, 11), np.linspace(0, 0.1, 11), [0.2, -0.1])
    assert own @ [0.2, -0.1] + before * force[0] + after * force[1] == pytest.approx(fine[2][-1], abs=1e-12)


def conflict_of(cues):
    """Return the root mean square of the conflict that a platform's forces and leans make [m/s^2]."""
    forces = [
        cues["surge"] + leaning(0, cues["pitch"], cues["pitch_rate"]),
        cues["sway"] + leaning(1, cues["roll"], cues["roll_rate"]),
        cues["heave"],
    ]
    band = signal.bilinear(*MODEL, RATE_HZ)
    return np.sqrt(np.mean(np.square([signal.lfilter(*band, each) for each in forces]).sum(axis=0)))


@pytest.mark.parametrize("platform", ["box-small", pytest.param("hexapod-dim", marks=pytest.mark.check)])
def test_a_weight_lowers_it(rng, platform):
    motion = drive(rng, 6000, 0.5)
    free, weighed, more = (
        conflict_of(motioncue.cue(profile(f"cueing.weights.conflict={weight}", platform=platform), motion))
        for weight in (0, 2, 4)
    )
    assert weighed < 0.95 * free
    assert more < weighed
