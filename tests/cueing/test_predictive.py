"""The predictive algorithm: its program, its bounds, what it does when the solver fails, what a retune keeps."""

import ctypes
import itertools

import msgspec
import numpy as np
import pytest
from same_bits import assert_same_bits

pytest.importorskip("scipy")

from c_api import c_api
from hypothesis import given, settings
from hypothesis import strategies as st
from predictive_drives import PERIOD, RATE_HZ, drive, pose_of, profile
from scipy import linalg, signal
from trouble_helpers import Bench, driven

import motioncue
from motioncue import cueing
from motioncue.cli.terminal import engine_rows
from motioncue.core.channels import MOTION_DTYPE
from motioncue.cueing import senses
from motioncue.cueing.predictive import design as predictive
from motioncue.cueing.predictive import horizon, solver
from motioncue.cueing.predictive.settings import PRESETS, Predictive
from motioncue.engine.replay import first_difference, repeat
from motioncue.errors import ConfigError
from motioncue.platforms import build as platforms
from motioncue.platforms.build import CHANNELS
from motioncue.profile.profile import profile_text
from motioncue.recording.recording import read, sample_recording
from motioncue.virtual.installation import ride


def made(preset="small", **changes):
    """Return the groups of a preset's program, and the time from plan to plan."""
    table = msgspec.convert({"algorithm": "predictive", **PRESETS[preset], **changes}, Predictive)
    bounds, _ = predictive._bounds(table.workspace, None)
    step_s = PERIOD / RATE_HZ
    return predictive.programs(table, step_s, *(predictive._key(each) for each in bounds)), step_s, table


def test_organs_are_those_of_the_score():
    s = 2j * np.pi * np.array([0.05, 0.2, 0.5, 1.0])  # below the band's end and above the canal's 80 s
    for sense, (numerator, denominator) in ((0, senses.OTOLITH), (3, senses.CANAL)):
        by_error, by_state = horizon.GAINS[sense]
        ours = by_error + by_state / (horizon.ORGANS_S[sense] * s + 1.0)
        theirs = np.polyval(numerator, s) / np.polyval(denominator, s)
        np.testing.assert_allclose(abs(ours), abs(theirs), rtol=0.03)


@pytest.mark.parametrize(("steps", "lengths"), [(1, [1]), (2, [1, 1]), (4, [1, 1, 2]), (235, None), (500, None)])
def test_blocks_cover_the_horizon(steps, lengths):
    found = horizon.blocks(steps)
    assert sum(found) == steps
    assert found[0] == 1
    assert all(b <= 3 * a for a, b in itertools.pairwise(found))
    assert lengths in (None, found)


@pytest.mark.search
def test_a_plan_without_bounds_is_the_least_sum_of_squares_over_a_long_time():
    """Yaw alone: 40 free steps and the cost of what follows are as good as 40 s of free steps, by least squares."""
    step_s, n = 0.05, 800
    weights = horizon.Cost(np.full(6, 22.0), 5.0 * np.eye(6), *(np.full(6, value) for value in (0.6, 0.1, 0.02)))
    bounds = horizon.Bounds(np.eye(6)[5:], -np.ones(1), np.ones(1), np.ones(1), np.ones(1), np.zeros(1))
    ahead = np.array([np.exp(-step_s * np.arange(41) / horizon.FADE_S)])
    program = horizon.program([5], [5], [1] * 40, step_s, ahead, weights, bounds, (1.0, 1.0), np.full(6, 8.0))
    known = np.array([0.02, -0.01, 0.3, 0.05, 0.2])  # angle, speed, acceleration, canal, yaw rate of the car

    time = step_s * np.arange(n + 1)
    push = np.eye(n + 1)  # acceleration at each step, the first one known
    speeds = linalg.toeplitz(np.r_[0.5, np.ones(n)], np.zeros(n + 1)) * step_s
    speeds[:, 0] = 0.5 * step_s
    speeds[0] = 0.0
    places = np.zeros_like(speeds)
    for k in range(n):
        places[k + 1] = places[k] + step_s * speeds[k] + step_s**2 * (2.0 * push[k] + push[k + 1]) / 6.0
    car = known[4] * np.exp(-time / horizon.FADE_S) - known[1]
    canal = signal.StateSpace([[-1.0 / 5.73]], [[1.0 / 5.73]], [[-1.0]], [[1.0]])  # e - x

    def felt(error, state):
        return signal.lsim(canal, error, time, state)[1]

    by = -np.column_stack([felt(column, 0.0) for column in speeds.T])
    rows = [
        (22.0, felt(car, known[3]), by),
        (5.0, known[0] + known[1] * time, places),
        (0.6, known[1] + 0.0 * time, speeds),
        (0.1, 0.0 * time, push),
        (0.02 / step_s, 0.0 * time, np.diff(push, axis=0, prepend=push[:1])),
    ]
    right = np.concatenate([weight * (rest + each[:, 0] * known[2])[1:] for weight, rest, each in rows])
    left = np.concatenate([weight * each[1:, 1:] for weight, _, each in rows])
    expected = np.linalg.lstsq(left, -right)[0]
    found = -np.linalg.solve(program.hessian, program.gradient @ known) * program.scale
    np.testing.assert_allclose(found[:10], expected[:10], rtol=1e-3, atol=1e-3 * abs(expected).max())


@pytest.mark.parametrize("travel", [1.0, 1e-3, 1e-6])
def test_the_cost_of_all_that_follows_obeys_its_equation(monkeypatch, travel):
    seen = []
    solve = horizon._riccati
    monkeypatch.setattr(horizon, "_riccati", lambda *given: seen.append((given, solve(*given))) or seen[-1][1])
    predictive.programs.cache_clear()
    made("small", weights={"travel": travel})
    assert len(seen) == 4  # surge with pitch, sway with roll, heave, yaw
    for (a, b, q, r, s), x in seen:
        law = np.linalg.solve(r + b.T @ x @ b, b.T @ x @ a + s.T)
        np.testing.assert_allclose(a.T @ x @ a + q - (a.T @ x @ b + s) @ law, x, atol=1e-12 * abs(x).max())
        assert (abs(np.linalg.eigvals(a - b @ law)) < 1.0).all()
        np.testing.assert_allclose(x, linalg.solve_discrete_are(a, b, q, r, s=s), atol=1e-8 * abs(x).max())


def test_a_cost_that_never_ends_is_refused():
    drifting = np.array([[1.0, 0.01], [0.0, 1.0]])  # nothing steers it
    with pytest.raises(np.linalg.LinAlgError, match="no steering"):
        horizon._riccati(drifting, np.zeros((2, 1)), np.eye(2), np.eye(1), np.zeros((2, 1)))


def test_the_solver_agrees_with_an_independent_one(rng):
    clarabel = pytest.importorskip("clarabel")
    from scipy import sparse

    groups, _, _ = made()
    for channels, felt, program in groups:
        n, m = len(program.hessian), len(program.rows)
        usual = [(0.03, 0.05, 0.5) if channel < 3 else (0.03, 0.02, 0.3) for channel in channels]
        usual = np.array(
            [*np.ravel(usual), *[0.3] * len(felt), *np.repeat([2.0 if sense < 3 else 0.1 for sense in felt], 8)]
        )
        soft = np.where(program.per_place > 0.0, *predictive.SOFTNESS)
        ours = solver.Solver(program.hessian, program.rows, soft, 500)
        for size in (0.5, 1.0, 1.5):
            known = size * usual * rng.uniform(-1.0, 1.0, len(usual))
            linear, shift = program.gradient @ known, program.drift @ known
            ours.pose(
                linear,
                np.concatenate([-np.ones(n), program.low - shift]),
                np.concatenate([np.ones(n), program.high - shift]),
            )
            assert ours.solve()
            # One slack s for each row and side costs s^2 / (2 softness).
            wide = np.hstack([program.rows, -np.eye(m), np.zeros((m, m))])
            deep = np.hstack([-program.rows, np.zeros((m, m)), -np.eye(m)])
            bounds = np.hstack([np.vstack([np.eye(n), -np.eye(n)]), np.zeros((2 * n, 2 * m))])
            slack = np.hstack([np.zeros((2 * m, n)), -np.eye(2 * m)])
            square = linalg.block_diag(program.hessian, np.diag(1.0 / np.tile(soft, 2)))
            options = clarabel.DefaultSettings()
            options.verbose = False
            options.tol_gap_abs = options.tol_gap_rel = options.tol_feas = 1e-12
            theirs = clarabel.DefaultSolver(
                sparse.csc_matrix(np.triu(square)),
                np.concatenate([linear, np.zeros(2 * m)]),
                sparse.csc_matrix(np.vstack([wide, deep, bounds, slack])),
                np.concatenate([program.high - shift, shift - program.low, np.ones(2 * n), np.zeros(2 * m)]),
                [clarabel.NonnegativeConeT(4 * m + 2 * n)],
                options,
            ).solve()
            np.testing.assert_allclose(ours.solution, np.array(theirs.x)[:n], atol=1e-3)


@pytest.mark.parametrize(("n", "m"), [(54, 200), (54, 900), (10, 60)])
def test_a_solution_takes_no_more_than_its_work(n, m, rng):
    square = rng.normal(size=(n, n))
    ours = solver.Solver(square @ square.T + np.eye(n), rng.normal(size=(m, n)), np.full(m, 1e-6), 1000)
    ours.pose(10.0 * rng.normal(size=n), np.full(n + m, -0.1), np.full(n + m, 0.1))
    added = solver.WORK / (n * (n + m - 0.5 * n))
    found = ours.solve()
    assert ours.iterations <= 2.0 * added  # at least every other step adds one, from none
    assert found == (n == 10)
    assert found or ours.iterations > 0.5 * added


BOUNDS = {"small": (0.15, 0.5, 6.0, 12.0), "large": (0.7, 1.5, 10.0, 25.0)}
VALUES = st.tuples(*(st.floats(-size, size) for size in (60, 60, 60, 3, 1.5, 3, 20, 20, 20)))


@settings(max_examples=30, deadline=None)
@given(rows=st.lists(VALUES, min_size=1, max_size=12), repeat=st.integers(1, 400), preset=st.sampled_from([*BOUNDS]))
def test_nothing_leaves_the_workspace_whatever_comes_in(rows, repeat, preset):
    algorithm = cueing.design(profile(f"cueing.preset={preset}").cueing, RATE_HZ)
    motion = np.zeros(len(rows) * repeat, MOTION_DTYPE)
    for place, name in enumerate(MOTION_DTYPE.names[:9]):
        motion[name] = np.repeat([row[place] for row in rows], repeat)
    poses = pose_of(algorithm.process(motion))
    travel, speed, acceleration, angle = BOUNDS[preset]
    ends = np.array([travel] * 3 + [np.radians(angle)] * 3)
    speeds = np.array([speed] * 3 + [np.radians(30.0)] * 3)
    accelerations = np.array([acceleration] * 3 + [np.radians(500.0)] * 3)
    assert (abs(poses) <= ends * (1 + 1e-3)).all()
    assert (abs(np.diff(poses, axis=0)) * RATE_HZ <= speeds * (1 + 1e-3)).all()
    assert (abs(np.diff(poses, 2, axis=0)) * RATE_HZ**2 <= accelerations * (1 + 1e-3) + 1e-6).all()


def test_it_returns_to_neutral(rng):
    algorithm = cueing.design(profile().cueing, RATE_HZ)
    algorithm.process(drive(rng, 3000, 2.0))
    rest = pose_of(algorithm.process(np.zeros(round(180 * RATE_HZ), MOTION_DTYPE)))
    assert abs(rest[0]).max() > 1e-3
    assert abs(rest[-1]).max() < 1e-6


def test_a_plan_that_fails_is_followed_by_the_one_before_and_counted(rng):
    algorithm = cueing.design(profile("cueing.preset=small", "cueing.iterations=5").cueing, RATE_HZ)
    poses = pose_of(algorithm.process(drive(rng, 6000, 8.0)))
    counts = algorithm.counts
    assert counts["plans"] == pytest.approx(4 * 6000 / PERIOD, abs=4)
    assert 0 < counts["failed"] < 0.5 * counts["plans"]
    assert counts["most_steps"] <= 5
    assert (abs(poses) <= [0.1501] * 3 + [np.radians(12.01)] * 3).all()
    jerks = np.diff(poses[:, :3], 3, axis=0) * RATE_HZ**3
    assert abs(jerks).max() <= 2 * 6.0 * RATE_HZ / PERIOD * 1.01  # acceleration goes along straight lines even then


def test_when_all_plans_fail_the_platform_stops_safely(rng):
    stepper = motioncue.bind(profile("cueing.preset=small"))
    poses = []
    for number, row in enumerate(drive(rng, 6000, 3.0)):
        if number == 2000:  # no plan can be found in no steps
            stepper.retune({"cueing.iterations": 1})
        stepper.motion[0] = row
        stepper.step()
        poses.append(pose_of(stepper.cue)[0])
    poses = np.array(poses)
    assert abs(poses[2000]).max() > 1e-3
    assert abs(poses[-1]).max() < 0.01 * abs(poses[:2000]).max()  # on its way to neutral
    accelerations = np.diff(poses, 2, axis=0) * RATE_HZ**2
    assert abs(accelerations[2100:, :3]).max() <= 6.0
    alone = cueing.design(profile("cueing.iterations=1").cueing, RATE_HZ)
    assert not pose_of(alone.process(drive(rng, 2000, 3.0))).any()
    assert alone.counts["stopped"] > 0.9 * alone.counts["failed"] > 0


@pytest.mark.check
@pytest.mark.parametrize(
    ("name", "size", "share"), [(None, 4.0, 0.0), ("hexapod-dim", 2.0, 0.01), ("hexapod-cranks", 2.0, 0.01)]
)
def test_with_enough_steps_no_plan_fails_and_hardly_one_of_actuators_that_are_not_linear(rng, name, size, share):
    given = profile("cueing.preset=large") if name is None else profile(platform=name)
    algorithm = cueing.design(given.cueing, RATE_HZ, given.platform)
    algorithm.process(drive(rng, 20_000, size))
    assert algorithm.counts["failed"] <= share * algorithm.counts["plans"]


def test_steps_one_by_one_give_the_bits_of_a_whole_drive(rng):
    motion = drive(rng, 500, 3.0)
    whole = motioncue.cue(profile(), motion)
    stepper = motioncue.bind(profile())
    single = np.zeros_like(whole)
    for place, row in enumerate(motion):
        stepper.motion[0] = row
        stepper.step()
        single[place] = stepper.cue[0]
    for channel in CHANNELS:
        assert_same_bits(single[channel], whole[channel])


def test_a_retune_keeps_the_state_and_has_no_step(rng):
    motion = drive(rng, 4000, 2.0)
    stepper = motioncue.bind(profile())
    poses = []
    for number, row in enumerate(motion):
        if number == 2000:
            stepper.retune({"cueing.weights.travel": 2.0})
        stepper.motion[0] = row
        stepper.step()
        poses.append(pose_of(stepper.cue)[0])
    speeds = np.diff(np.array(poses), axis=0) * RATE_HZ
    assert abs(np.diff(speeds, axis=0)[1990:2050]).max() * RATE_HZ < 7.0


def test_a_motion_that_is_not_finite_moves_nothing():
    motion = np.zeros(2000, MOTION_DTYPE)
    for name in MOTION_DTYPE.names[:9]:
        motion[name][500:1500] = np.nan
    assert not pose_of(cueing.design(profile().cueing, RATE_HZ).process(motion)).any()


@pytest.mark.search
def test_a_platform_is_planned_for_by_its_actuators():
    for name, groups in {"box-large": 4, "posts-3": 1, "hexapod-dim": 1}.items():
        named = platforms.platform_named(name)
        bounds, geared = predictive._bounds(Predictive().workspace, platforms.build(named))
        assert (geared is None) == (name == "box-large")
        assert len(predictive.programs(Predictive(), 0.02, *(predictive._key(each) for each in bounds))) == groups
        cueing.design(Predictive(), RATE_HZ, named)


def test_with_a_preview_it_prepares_for_what_comes():
    motion = np.zeros(1500, MOTION_DTYPE)
    motion["surge"][1000:] = -3.0
    blind = motioncue.cue(profile(), motion)
    assert not pose_of(blind[:999]).any()
    seen = motioncue.cue(profile(), motion, ahead=motioncue.preview(motion, RATE_HZ))
    assert seen["pitch"][999] < -0.05  # leans before the brake, and hides it by travel
    after, whole = ([abs(cues["surge"] - motion["surge"])[at:].mean() for cues in (seen, blind)] for at in (1000, 0))
    assert after[0] < 0.6 * after[1]
    assert whole[0] < 0.95 * whole[1]


def test_a_preview_is_the_lines_that_are_nearest_to_the_drive(rng):
    motion = drive(rng, 3000, 1.0)
    ahead = motioncue.preview(motion, RATE_HZ)
    n = round(6.0 * RATE_HZ)  # two seconds more than the last row, in which the lines fade
    time = np.arange(n + 1) / RATE_HZ
    knots = (0.0, *motioncue.AHEAD_S)
    lines = np.array([np.interp(time, knots, row) for row in np.eye(8)]).T
    lines[time > 4.0] *= np.exp(-(time[time > 4.0, None] - 4.0) / horizon.FADE_S)
    weights = np.sqrt(np.exp(-time / 3.0))[:, None]
    for at in (0, 500, 900):
        for name in ("surge", "yaw_rate"):
            future = motion[name][at : at + n + 1]
            left = future - lines[:, 0] * future[0]
            expected = np.linalg.lstsq(weights * lines[:, 1:], weights[:, 0] * left, rcond=None)[0]
            assert ahead[name][at] == pytest.approx(expected, abs=1e-6)


def test_a_stepper_that_sees_ahead_gives_the_bits_of_a_whole_drive_also_after_a_retune(rng):
    motion = drive(rng, 900, 1.0)
    ahead = motioncue.preview(motion, RATE_HZ)
    ahead["sway"][300:, 3:] = np.nan  # only a part is known
    whole = motioncue.cue(profile(), motion, ahead=ahead)
    stepper = motioncue.bind(profile(), ahead=np.zeros(7, MOTION_DTYPE))
    retuned = motioncue.bind(profile(), ahead=np.zeros(7, MOTION_DTYPE))
    for number, (row, rows) in enumerate(zip(motion, ahead, strict=True)):
        for each in (stepper, retuned):
            each.motion[0], each.ahead[:] = row, rows
            if number == 450:
                each.retune({"cueing.gain": 1.0 if each is stepper else 0.9})
            assert each.step()
        if number < 450:
            assert stepper.cue.tobytes() == whole[number : number + 1].tobytes() == retuned.cue.tobytes()
    assert pose_of(stepper.cue) == pytest.approx(pose_of(whole[-1:]), abs=1e-3)


def test_c_looks_ahead(rng, tmp_path):
    motion = drive(rng, 300, 1.0)
    ahead = motioncue.preview(motion, RATE_HZ)
    (tmp_path / "it.toml").write_text(
        profile_text("ccd-dk").replace('algorithm = "direct"', 'algorithm = "predictive"'), encoding="utf-8"
    )
    cue, error = np.zeros(1, motioncue.CUE_DTYPE), ctypes.create_string_buffer(1000)
    api = c_api()
    stepper = api.create(str(tmp_path / "it.toml").encode(), 0.0, error, 1000)
    assert stepper, error.value
    for number in range(len(motion)):
        api.look(stepper, ahead[number].ctypes.data)
        assert api.step(stepper, motion[number : number + 1].ctypes.data, cue.ctypes.data)
    api.destroy(stepper)
    assert cue.tobytes() == motioncue.cue(profile(), motion, ahead=ahead)[-1:].tobytes()


def test_what_is_not_known_is_foreseen(rng):
    motion = drive(rng, 600, 1.0)
    unknown = np.zeros((600, 7), MOTION_DTYPE)
    unknown["pitch"] = np.nan
    assert motioncue.cue(profile(), motion, ahead=unknown).tobytes() == motioncue.cue(profile(), motion).tobytes()


def test_a_preview_that_is_none_is_refused():
    motion = np.zeros(600, MOTION_DTYPE)
    ahead = np.zeros((600, 7), MOTION_DTYPE)
    for wrong in (ahead[1:], ahead[:, 1:], ahead["surge"], [0.0], np.asfortranarray(ahead)):
        with pytest.raises(ConfigError, match=r"^ahead: found .* allowed is "):
            motioncue.cue(profile(), motion, ahead=wrong)
    with pytest.raises(ConfigError, match=r"ahead: found cueing.algorithm = 'classical', allowed is one that plans"):
        motioncue.cue("ccd-dk-classical", motion, ahead=ahead)
    for wrong in (ahead, np.zeros(7), ahead[:6, 0]):
        with pytest.raises(ConfigError, match=r"^ahead: found .* allowed is MOTION_DTYPE, shape \(7,\)"):
            motioncue.bind(profile(), ahead=wrong)
    with pytest.raises(ConfigError, match=r"motion: found"):
        motioncue.preview(motion[:0], RATE_HZ)
    for wrong in (0, "333", np.nan):
        with pytest.raises(ConfigError, match=r"rate_hz: found .* allowed is a number above 0"):
            motioncue.preview(motion, wrong)
    motion["sway"][7] = np.nan
    with pytest.raises(ConfigError, match=r"motion: found nan as sway of row 7, allowed are finite numbers"):
        motioncue.preview(motion, RATE_HZ)


@pytest.mark.search
@pytest.mark.parametrize("platform", ["box-small", "box-large", "hexapod-dim"])
def test_on_a_real_drive_that_is_known_it_is_within_ten_points_of_the_best(platform):
    motion = motioncue.read(sample_recording()).motion
    assert motioncue.score(profile(platform=platform), motion, preview=True).score >= 90.0


def test_weights_under_which_nothing_returns_to_neutral_are_refused(monkeypatch):
    with pytest.raises(ConfigError, match=r"cueing.weights.travel: found 0, allowed is a number above 0"):
        profile("cueing.weights.travel=0", platform="posts-3")

    def failing(*_):
        raise np.linalg.LinAlgError("symplectic")

    predictive.programs.cache_clear()
    monkeypatch.setattr(predictive, "program", failing)
    with pytest.raises(ConfigError, match=r"cueing.weights: found such that nothing brings .* allowed is a larger"):
        profile(platform="posts-3")


@pytest.mark.check
def test_a_recorded_run_with_a_platform_is_replayed_to_the_bit(tmp_path):
    rig = motioncue.load_profile("ccd-dk", "cueing.algorithm=predictive", {"platform": {"preset": "hexapod-dim"}})
    run = ride(rig, "brake", record=tmp_path / "brake.mcap")
    recording = read(tmp_path / "brake.mcap")
    assert abs(run.ticks["cue"]["surge_displacement"]).max() > 0.01
    assert first_difference(recording.ticks, repeat(recording).ticks) is None


def test_the_statistics_of_a_run_count_its_plans_through_retunes():
    bench = Bench("cueing.algorithm=predictive", "cueing.iterations=1").connect()
    frames = driven("brake", 60)
    bench.play(frames[:240], np.arange(240) / 60)
    before = bench.pipeline.stats()["algorithm"]
    assert before["plans"] >= 4 * 230 / 60 * RATE_HZ / PERIOD
    assert 0 < before["failed"] <= before["plans"]  # a plan takes more than one step as soon as a bound is met
    bench.pipeline.retune({"cueing.iterations": 60})
    bench.play(frames[240:480], np.arange(240) / 60)
    after = bench.pipeline.stats()
    assert after["algorithm"]["plans"] >= before["plans"] + 4 * 230 / 60 * RATE_HZ / PERIOD
    rows = dict(engine_rows({"duration_s": 8.0, "outputs": [], **after}))
    assert f"{after['algorithm']['failed']} failed" in rows["algorithm"]
    assert "algorithm" not in Bench().pipeline.stats()


@pytest.mark.search
@pytest.mark.parametrize("platform", ["hexapod-dim", "hexapod-simona"])
def test_legs_keep_their_bounds_before_the_actuation_stage(platform, rng):
    named = platforms.platform_named(platform)
    built, algorithm = platforms.build(named), cueing.design(profile(platform=platform).cueing, RATE_HZ, named)
    low, high, speed, *_ = np.array(built.bounds).T
    places = built.kinematics.inverse(pose_of(algorithm.process(drive(rng, 9_000, 3.0))))
    assert (places >= low).all()
    assert (places <= high).all()
    share = max(((places - low) / (high - low)).max(), ((high - places) / (high - low)).max())
    assert share > 0.97  # they are used
    assert (abs(np.diff(places, axis=0)) * RATE_HZ <= 1.05 * speed).all()  # a soft bound


@pytest.mark.check
def test_cranks_are_never_out_of_reach(rng):
    named = platforms.platform_named("hexapod-cranks")
    built, algorithm = platforms.build(named), cueing.design(profile(platform="hexapod-cranks").cueing, RATE_HZ, named)
    poses = pose_of(algorithm.process(drive(rng, 6_000, 2.0)))
    assert np.isfinite(built.kinematics.inverse(poses, held=True)).all()
    assert np.isnan(built.kinematics.inverse(4.0 * poses, held=True)).any()  # it comes near the end of that
