"""The linear-quadratic washout: laws against a second solver, the filter against its equations, signs, bounds."""

import sys

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from same_bits import assert_same_bits
from scipy import linalg

import motioncue
from motioncue import ConfigError, cueing
from motioncue.core import interfaces
from motioncue.core.channels import CUE_DTYPE, GRAVITY, MOTION_DTYPE
from motioncue.cueing import senses
from motioncue.cueing.optimal import design as optimal
from motioncue.cueing.optimal.settings import PRESETS, Optimal
from motioncue.engine.batch import Batch
from motioncue.engine.fitting import fit
from motioncue.platforms.build import CHANNELS
from motioncue.profile.profile import overridden
from motioncue.scoring.omct import omct

RATE_HZ = 1e9 / round(1e9 / 333.33)
PAIRS = ("surge with pitch", "sway with roll", "heave with yaw")
TRANSLATIONS, ROTATIONS = ("surge", "sway", "heave"), ("pitch", "roll", "yaw")


def profile_of(*overrides):
    return motioncue.load_profile(
        "ccd-dk-classical", "cueing.algorithm=optimal", *(f"cueing.{each}" for each in overrides)
    )


def cueing_of(*overrides):
    return profile_of(*overrides).cueing


def across(key, of):
    """Return a strategy for the values that a key allows, over their logarithm."""
    bounds = next(
        limits for field in msgspec.structs.fields(of) if field.name == key for limits in bounds_of(field.type)
    )
    low, high = bounds.ge or bounds.gt or 1e-6, bounds.le
    return st.floats(np.log(low), np.log(high)).map(lambda x: float(np.clip(np.exp(x), low, high)))


def bounds_of(kind):
    """Yield the bounds in an annotated type, or in the members of a union."""
    if isinstance(meta := getattr(kind, "__metadata__", (None,))[0], msgspec.Meta):
        yield meta
    for part in getattr(kind, "__args__", ()):
        yield from bounds_of(part)


def tables(*keys):
    """Return a strategy for the tables of all translations and rotations."""
    some = cueing_of("preset=medium")
    kinds = {name: type(getattr(some, name)) for name in (*TRANSLATIONS, *ROTATIONS)}
    return st.fixed_dictionaries(
        {
            name: st.fixed_dictionaries({key: across(key, kind) for key in keys if key in kind.__struct_fields__})
            for name, kind in kinds.items()
        }
    )


ALL = ("travel_m", "speed_m_s", "angle_deg", "rate_deg_s", "weight", "noise_hz")


def with_tables(tables, restraint):
    some = cueing_of("preset=medium")
    changed = {}
    for name, values in tables.items():
        way, speed = ("travel_m", "speed_m_s") if name in TRANSLATIONS else ("angle_deg", "rate_deg_s")
        values[speed] = max(values[speed], values[way] / optimal.LONGEST_S)
        changed[name] = msgspec.structs.replace(getattr(some, name), **values)
    return msgspec.structs.replace(some, restraint=restraint, **changed)


def residual(of, cost):
    """Return what is left of the Riccati equation over its largest term."""
    cross = of.b.T @ cost + of.d.T @ of.c
    terms = of.a.T @ cost, cost @ of.a, of.c.T @ of.c, -cross.T @ np.linalg.inv(of.d.T @ of.d) @ cross
    return np.linalg.norm(sum(terms)) / max(map(np.linalg.norm, terms))


def scaled(of):
    """Return a problem whose variables are each charged 1, so that no unit hides a residual."""
    size = 1.0 / np.linalg.norm(of.c, axis=0)
    return optimal.Problem(of.a * size / size[:, None], of.b / size[:, None], of.c * size, of.d), size


def by_hamiltonian(of):
    """Return the law from the stable subspace of the Hamiltonian matrix (Laub 1979): a second solver."""
    inverse = np.linalg.inv(of.d.T @ of.d)
    a = of.a - of.b @ inverse @ of.d.T @ of.c
    rest = of.c.T @ of.c - of.c.T @ of.d @ inverse @ of.d.T @ of.c
    _, u, stable = linalg.schur(np.block([[a, -of.b @ inverse @ of.b.T], [-rest, -a.T]]), sort="lhp")
    assert stable == len(a)
    cost = np.linalg.solve(u[: len(a), : len(a)].T, u[len(a) :, : len(a)].T).T
    return inverse @ (of.b.T @ cost + of.d.T @ of.c), cost


def transition(of, law, rate_hz):
    """Return what a tick makes of what it keeps, by the kernel's equations as its docstring has them."""
    h = 0.5 / rate_hz
    own = optimal.rounded(optimal.ticked(of, law, h), of)[:, :6]
    a, b = of.a[:6, :6], of.b[:6]
    now = np.linalg.solve(np.eye(6) - h * a, np.eye(6) + h * b @ own)
    return 2.0 * now - np.eye(6)


@pytest.mark.parametrize("pair", range(3), ids=PAIRS)
@pytest.mark.parametrize("preset", PRESETS)
def test_law_is_that_of_a_second_solver_and_solves_the_riccati_equation(preset, pair):
    of, size = scaled(optimal.problem(cueing_of(f"preset={preset}"), pair))
    law, cost = optimal.solved(of)
    assert residual(of, cost) < 1e-9
    other, other_cost = by_hamiltonian(of)
    np.testing.assert_allclose(law, other, rtol=1e-5, atol=1e-6 * np.abs(law).max())
    np.testing.assert_allclose(cost, other_cost, rtol=1e-5, atol=1e-6 * np.abs(cost).max())
    np.testing.assert_allclose(optimal.law_of(cueing_of(f"preset={preset}"), pair), law / size, rtol=1e-6, atol=1e-9)


@pytest.mark.search
@settings(max_examples=150, deadline=None)
@given(
    tables=tables(*ALL), restraint=across("restraint", Optimal), rate_hz=st.sampled_from([10.0, 50.0, 333.33, 2000.0])
)
def test_every_allowed_parameter_gives_a_precise_law_and_poles_inside_the_circle(tables, restraint, rate_hz):
    settings = with_tables(tables, restraint)
    for pair in range(3):
        of = optimal.problem(settings, pair)
        law, cost = optimal.solved(of)
        small, size = scaled(of)
        assert residual(small, cost * np.outer(size, size)) < 1e-9
        assert (np.linalg.eigvals(of.a - of.b @ law).real < 0.0).all()
        assert (np.abs(np.linalg.eigvals(transition(of, law, rate_hz))) < 1.0).all()


@pytest.mark.parametrize("pair", range(3), ids=PAIRS)
def test_rounding_errors_of_another_machine_do_not_change_a_bit_of_the_law(rng, pair):
    settings = cueing_of("preset=medium")
    of, law = optimal.problem(settings, pair), optimal.law_of(settings, pair)
    kept = optimal.laws_of(settings, RATE_HZ)[pair]
    np.testing.assert_allclose(kept, optimal.ticked(of, law, 0.5 / RATE_HZ), rtol=1e-8, atol=1e-9 * np.abs(kept).max())
    other = law * (1.0 + 1e-13 * rng.normal(size=law.shape)) + 1e-18 * rng.normal(size=law.shape)
    assert_same_bits(optimal.rounded(optimal.ticked(of, other, 0.5 / RATE_HZ), of), kept)


@pytest.mark.parametrize("pair", range(3), ids=PAIRS)
def test_no_other_law_costs_less(rng, pair):
    """The mean cost under white noise, by a Lyapunov equation, is least at the law: perturbed laws cost more."""
    of, _ = scaled(optimal.problem(cueing_of("preset=large"), pair))
    law, cost = optimal.solved(of)
    noise = np.diag([0.0] * 6 + [1.0, 1.0])

    def mean(law):
        a, left = of.a - of.b @ law, of.c - of.d @ law
        return np.trace(left @ linalg.solve_continuous_lyapunov(a, -noise) @ left.T)

    assert mean(law) == pytest.approx(np.trace(cost @ noise), rel=1e-6)
    for size in (1e-3, 1e-2, 0.1):
        for _ in range(20):
            assert mean(law * (1.0 + size * rng.normal(size=law.shape))) > mean(law)


@pytest.mark.parametrize("pair", range(3), ids=PAIRS)
def test_filter_is_the_law_with_the_errors_eliminated(pair):
    """The published form: W = [F1 F2] (s - closed)^-1 [B (1 + F3) ...] - F3, here checked by its own definition.

    With the platform's accelerations of the theory, every variable follows by its integral, and the law gives the
    accelerations again.
    """
    settings = cueing_of("preset=large")
    law, gravity = optimal.law_of(settings, pair), (GRAVITY, GRAVITY, 0.0)[pair]
    name, turn, sign = TRANSLATIONS[pair], ROTATIONS[pair], (1.0, -1.0, 1.0)[pair]
    s = 2j * np.pi * np.geomspace(0.005, 20.0, 15)
    for channel, force, rate in ((name, 1.0, 0.0), (f"{turn}_rate", 0.0, sign)):
        found = cueing.theory(settings, channel, s)
        x, lean = found[f"{name}_displacement"], sign * found[turn]
        acceleration = s**2 * x
        felt = acceleration + gravity * lean
        force, rate = (each / (1.0 + s / (2.0 * np.pi * settings.roll_off_hz)) for each in (force, rate))
        z = np.array(
            [
                (felt - force) / (5.0 * s + 1.0),
                (s * lean - rate) / (5.73 * s + 1.0),
                *(s * x, x, s * lean, lean),
                *(force, rate),
            ]
        )
        np.testing.assert_allclose(-law @ z, [acceleration, s**2 * lean], rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(found[name], felt, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(found[f"{turn}_rate"], s * sign * lean, rtol=1e-9)


@pytest.mark.parametrize("hz", [3.0, 10.0, 20.0])
@pytest.mark.parametrize("channel", ["surge", "sway", "heave", "roll_rate", "pitch_rate", "yaw_rate"])
def test_what_is_quick_rolls_off(channel, hz):
    """A sine through the kernel has the response of the equations: that of before behind a first-order section."""
    settings, s = cueing_of("preset=large"), np.array([2j * np.pi * hz])
    expected, wide = (
        cueing.theory(each, channel, s)[channel][0]
        for each in (settings, cueing_of("preset=large", "roll_off_hz=1000"))
    )
    assert abs(expected) == pytest.approx(abs(wide) / np.hypot(1.0, hz / 5.0), rel=1e-3)
    motion, time = np.zeros(6000, MOTION_DTYPE), np.arange(6000) / RATE_HZ
    motion[channel] = 0.1 * np.sin(2.0 * np.pi * hz * time)
    cues = cueing.design(settings, RATE_HZ).process(motion)
    n = round(5.0 * RATE_HZ)  # whole periods, after what began
    found = 2j * np.mean(cues[channel][-n:] * np.exp(-2j * np.pi * hz * time[-n:])) / 0.1
    if channel.endswith("rate"):
        found *= np.exp(1j * np.pi * hz / RATE_HZ)  # a rate is the change since the tick before
    assert abs(found - expected) < 0.04 * abs(expected)


def test_organs_of_the_design_are_the_published_ones_in_the_band():
    s = 2j * np.pi * np.geomspace(0.02, 3.0, 40)
    otolith = optimal.OTOLITH_GAIN * (optimal.OTOLITH_LEAD_S * s + 1.0) / (optimal.OTOLITH_S * s + 1.0)
    canal = optimal.CANAL_S * s / (optimal.CANAL_S * s + 1.0)
    for ours, (numerator, denominator) in ((otolith, senses.OTOLITH), (canal, senses.CANAL)):
        full = np.polyval(numerator, s) / np.polyval(denominator, s)
        np.testing.assert_allclose(np.abs(ours), np.abs(full), rtol=0.05)
        assert np.abs(np.degrees(np.angle(ours / full))).max() < 17.0
    np.testing.assert_array_equal(senses.THRESHOLDS[:3], optimal.FORCE_THRESHOLDS)
    np.testing.assert_allclose(senses.THRESHOLDS[[4, 3, 5]], optimal.RATE_THRESHOLDS)


def drive(rng, seconds, force=2.0, angle=0.1, rate=0.3):
    """Return a smooth drive in which every channel moves."""
    n = int(seconds * RATE_HZ)
    motion = np.zeros(n, MOTION_DTYPE)
    at, knots = np.arange(n) / RATE_HZ, np.arange(int(seconds) + 2.0)
    for size, names in (
        (force, ("surge", "sway", "heave")),
        (angle, ("roll", "pitch")),
        (rate, ("roll_rate", "pitch_rate", "yaw_rate")),
    ):
        for name in names:
            motion[name] = size * np.interp(at, knots, rng.normal(size=len(knots)))
    return motion


def poses_of(cues):
    return np.column_stack([cues[channel] for channel in CHANNELS])


@pytest.mark.parametrize("preset", PRESETS)
def test_cue_is_what_the_pose_makes_felt(rng, preset):
    """Specific force and rates of the cue are those of its own pose, by differences of an independent program."""
    cues = cueing.design(cueing_of(f"preset={preset}"), RATE_HZ).process(drive(rng, 20.0))
    felt = senses.felt_by_pose(poses_of(cues), RATE_HZ)
    for sense, values in zip(senses.SENSES, felt.T, strict=True):
        if sense.endswith("rate"):  # a change since the tick before is the rate half a tick ago
            values[1:] = 0.5 * (values[1:] + values[:-1])
        # The trapezoidal rule takes the mean of neighboring accelerations.
        np.testing.assert_allclose(cues[sense][5:-5], values[5:-5], atol=0.02 * np.abs(values).max(), err_msg=sense)


def held(seconds=40.0, **values):
    """Return the cues of a car that does one thing all the time."""
    motion = np.zeros(int(seconds * RATE_HZ), MOTION_DTYPE)
    for name, value in values.items():
        motion[name] = value
    return cueing.design(cueing_of("preset=large"), RATE_HZ).process(motion)


@pytest.mark.parametrize(("channel", "lean", "sign"), [("surge", "pitch", 1.0), ("sway", "roll", -1.0)])
def test_platform_goes_along_first_and_leans_then(channel, lean, sign):
    cues = held(**{channel: 1.0})
    soon = cues[int(0.3 * RATE_HZ)]
    assert soon[channel] > 0.4
    assert soon[f"{channel}_displacement"] > 0.01
    assert sign * cues[lean][-1] == pytest.approx(np.arcsin(cues[channel][-1] / GRAVITY), rel=1e-3)
    assert 0.5 < cues[channel][-1] < 1.05


@pytest.mark.parametrize(
    ("lean", "felt", "sign"), [("pitch", "surge", 1.0), ("roll", "sway", -1.0)], ids=["nose up", "right side down"]
)
def test_a_car_that_leans_makes_the_platform_lean_the_same_way(lean, felt, sign):
    cues = held(**{lean: 0.1})
    assert 0.05 < cues[lean][-1] < 0.105
    assert sign * cues[felt][-1] > 0.4


@pytest.mark.parametrize("axis", ["roll", "pitch", "yaw"])
def test_platform_turns_the_way_the_car_turns(axis):
    cues = held(0.5, **{f"{axis}_rate": 0.2})
    assert cues[axis][-1] > 0.01
    assert cues[f"{axis}_rate"][20] > 0.0


def test_platform_goes_up_with_the_car():
    assert held(0.5, heave=1.0)["heave_displacement"][-1] > 0.01


@pytest.mark.parametrize("pair", range(3), ids=PAIRS)
def test_limits_that_are_not_given_lean_by_the_whole_angle_if_they_last(pair):
    settings = cueing_of("preset=medium", "yaw.noise_hz=1.0", "pitch.angle_deg=15")
    force, rate = optimal.limits_of(settings, pair)
    _, rotation = settings.pairs[pair]
    asked = {"surge": 50.0} if pair == 0 else {"sway": 50.0} if pair == 1 else {"yaw_rate": 50.0}
    motion = np.zeros(40_000, MOTION_DTYPE)
    for name, value in asked.items():
        motion[name] = value
    angle = np.abs(cueing.design(settings, RATE_HZ).process(motion)[ROTATIONS[pair]][-1])
    assert np.degrees(angle) == pytest.approx(rotation.angle_deg, rel=1e-3)
    assert force > 0.0
    assert rate > 0.0


def test_measured_equals_the_equations_in_the_objective_motion_cueing_test():
    rows = omct(profile_of("preset=large"), accelerations=[0.01], rates_deg_s=[0.05])
    for test in {row.test for row in rows}:
        own = [row for row in rows if row.test == test]
        found = [row.gain * np.exp(1j * np.radians(row.phase_deg)) for row in own]
        theory = [row.theory_gain * np.exp(1j * np.radians(row.theory_phase_deg)) for row in own]
        size = np.abs(theory).max()
        assert size > 0.01
        np.testing.assert_allclose(found, theory, rtol=0, atol=1e-3 * size, err_msg=str(test))


@pytest.mark.parametrize("limit", [0.5, 3.0, 8.0])
def test_platform_turns_no_faster_than_the_car_by_more_than_the_limit(rng, limit):
    settings = cueing_of("preset=large", f"tilt.rate_limit_deg_s={limit}")
    motion = drive(rng, 30.0, force=6.0)
    for still in (True, False):
        if still:
            for name in ("roll_rate", "pitch_rate", "yaw_rate"):
                motion[name] = 0.0
        else:
            motion["roll_rate"], motion["pitch_rate"] = rng.normal(size=(2, len(motion))) * 0.1
        cues = cueing.design(settings, RATE_HZ).process(motion)
        for axis in ("roll", "pitch"):
            own = 1.1 * np.hypot(motion["roll_rate"], motion["pitch_rate"])  # Euler rates are a little larger
            faster = np.abs(np.diff(cues[axis], prepend=0.0)) * RATE_HZ - own
            assert faster.max() <= np.radians(limit) * (1.0 + 1e-9)
            if still:
                assert faster.max() == pytest.approx(np.radians(limit))


def test_car_beyond_every_number_moves_the_platform_within_bounds(rng):
    motion = np.zeros(3000, MOTION_DTYPE)
    for name in MOTION_DTYPE.names[:9]:
        motion[name] = rng.choice([-1.7e308, 0.0, 1e-308, 1.7e308], 3000)
        motion[name] *= 1e-8 if name in ("roll", "pitch", "yaw") else 1.0
    cues = cueing.design(cueing_of("preset=small"), RATE_HZ).process(motion)
    for channel in CUE_DTYPE.names:
        assert np.isfinite(cues[channel]).all(), channel
    assert np.abs(cues["pitch"]).max() <= 0.5 * np.pi


def test_state_goes_on_under_other_settings():
    """A step settles; then a change that hardly matters hardly moves the platform: its travel is not begun again."""
    plain, changed = (motioncue.bind(profile_of("preset=large")) for _ in range(2))
    apart = 0.0
    for tick in range(6000):
        for stepper in (plain, changed):
            stepper.motion["surge"] = 1.0
            stepper.step()
        if tick == 3000:
            changed.retune("cueing.restraint=1.001")
        apart = max(apart, abs(plain.cue["surge_displacement"][0] - changed.cue["surge_displacement"][0]))
    assert 0.0 < apart <= 0.01 * abs(plain.cue["surge_displacement"][0])


@pytest.mark.parametrize("machine", interfaces.machines())
def test_rigs_side_by_side_have_the_bits_of_each_alone(rng, machine):
    names = [*PRESETS, "small"] * 3
    each = [cueing_of(f"preset={name}", f"tilt.rate_limit_deg_s={5 + n}") for n, name in enumerate(names)]
    motion = np.stack([drive(rng, 4.0, force=20.0, angle=9.0, rate=3.0) for _ in names], axis=1)
    interfaces.choose_machine(machine)
    try:
        together = Batch([cueing.design(own, RATE_HZ) for own in each]).process(motion)
    finally:
        interfaces.choose_machine(interfaces.machines()[0])
    for n, own in enumerate(each):
        alone = cueing.design(own, RATE_HZ).process(np.ascontiguousarray(motion[:, n]))
        assert_same_bits(np.ascontiguousarray(together[:, n]), alone)


def test_a_state_goes_on_under_any_other_settings():
    small, large = (cueing.design(cueing_of(f"preset={name}"), RATE_HZ) for name in ("small", "large"))
    assert large.continues(small)
    assert small.continues(large)


def test_without_scipy_the_profile_is_refused_with_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(
        ConfigError, match=r'cueing\.algorithm: .optimal. needs SciPy: pip install "motioncue\[optimal\]"'
    ):
        profile_of("preset=small", "restraint=1.23456")


@pytest.mark.parametrize("platform", ["box-small", "hexapod-dim", "posts-3"])
@pytest.mark.check
def test_ranges_are_those_of_the_platform_less_what_makes_the_standard_drives_fit(platform):
    table = {"platform.preset": platform}
    profile = motioncue.load_profile("ccd-dk-classical", table, "cueing.algorithm=optimal")
    assert profile.cueing.preset == "auto"
    assert fit(profile).beyond == 0.0
    again = overridden(profile, ["cueing.restraint=2"])
    assert again.cueing.surge.travel_m == profile.cueing.surge.travel_m


@pytest.mark.parametrize(
    ("axis", "key", "expected"),
    [
        ('channel = "yaw", turn = { min_deg = -180, max_deg = 180, speed_deg_s = 2000, acceleration_deg_s2 = 9000 }',
         "yaw", (18.0, 1000.0)),  # no end is found: as medium
        ('channel = "surge_displacement", travel = { min_m = -40, max_m = 40, speed_m_s = 20, acceleration_m_s2 = 9 }',
         "surge", (0.4, 10.0)),
        ('channel = "surge_displacement", travel = { min_m = -1, max_m = 1, speed_m_s = 0.05, acceleration_m_s2 = 1 }',
         "surge", (0.495, 0.05)),
    ],
)  # fmt: skip
def test_a_platform_that_goes_far_or_slowly_is_told_of_as_allowed(axis, key, expected):
    profile = motioncue.load_profile(
        "ccd-dk-classical",
        f'platform={{ kind = "axes", axes = [{{ name = "one", {axis} }}] }}',
        "cueing.algorithm=optimal",
    )
    found = getattr(profile.cueing, key)
    names = ("angle_deg", "rate_deg_s") if key == "yaw" else ("travel_m", "speed_m_s")
    assert profile.cueing.preset == "auto"
    assert tuple(getattr(found, name) for name in names) == expected


def test_ranges_of_ones_own_stay_beside_those_of_the_platform():
    table = {"platform.preset": "box-small"}
    profile = motioncue.load_profile("ccd-dk-classical", table, "cueing.algorithm=optimal", "cueing.surge.travel_m=0.1")
    assert profile.cueing.preset == "auto"
    assert profile.cueing.surge.travel_m == 0.1
    assert 0.1 < profile.cueing.sway.travel_m <= 0.15  # the platform has 0.15 m, 12 deg, 0.5 m/s, 30 deg/s
    assert 9.0 < profile.cueing.pitch.angle_deg <= 12.0
    assert (profile.cueing.sway.speed_m_s, profile.cueing.pitch.rate_deg_s) == (0.5, 30.0)


def test_what_no_actuator_moves_has_no_travel():
    profile = motioncue.load_profile("ccd-dk-classical", {"platform.preset": "posts-3"}, "cueing.algorithm=optimal")
    assert profile.cueing.surge.travel_m == profile.cueing.yaw.angle_deg == 0.001
    cues = cueing.design(profile.cueing, RATE_HZ).process(drive(np.random.default_rng(1), 20.0))
    assert np.abs(cues["surge_displacement"]).max() < 0.005


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("surge.travel_m=0", r"cueing\.surge\.travel_m: found 0, allowed"),
        ("roll.weight=0", r"cueing\.roll\.weight: found 0, allowed"),
        ("restraint=-1", r"cueing\.restraint: found -1, allowed"),
        ("heave.noise_hz=20", r"cueing\.heave\.noise_hz: found 20, allowed"),
        ("tilt.rate_limit_deg_s=0", r"cueing\.tilt\.rate_limit_deg_s: found 0, allowed"),
        (
            "surge.speed_m_s=0.01",
            r"cueing\.surge\.speed_m_s: found 0\.01, allowed is at least 0\.015, which takes 10 s",
        ),
        ("yaw.travel_m=1", r"cueing\.yaw\.travel_m: unknown key"),
    ],
)
def test_what_is_impossible_is_refused_by_its_key(override, said):
    with pytest.raises(ConfigError, match=said):
        profile_of("preset=small", override)
