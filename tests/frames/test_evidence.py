"""What a source claims against what it shows: sums, single steps, delays, each against its definition."""

import numpy as np
import pytest

NAN = float("nan")


@pytest.mark.check
def test_the_allowed_difference_of_sums_is_that_of_its_definition(probe, rng):
    """35 % of the larger sum, 40 ms of the peak, the integral in doubt and half of the claim's changes."""
    for dt in (0.002, 0.016, 0.1):
        change, claims = rng.normal(0, 0.2, (40, 3)), rng.normal(0, 3.0, (41, 3))
        noise, doubt = 0.7, -0.3 * dt
        limit, shown, claimed = probe.allowed_difference(change, claims, dt, doubt, noise)
        weights = (1.0 / (1.0 + dt)) ** np.arange(39, -1, -1)
        means = 0.5 * (claims[:-1] + claims[1:])
        np.testing.assert_allclose(shown, weights @ change, rtol=1e-12)
        np.testing.assert_allclose(claimed, weights @ means * dt, rtol=1e-12)
        coarse = 0.5 * dt * (weights @ np.linalg.norm(np.diff(claims, axis=0), axis=1))
        peak = (weights * np.linalg.norm(claims[1:], axis=1)).max()
        largest = max(np.linalg.norm(shown), np.linalg.norm(claimed))
        in_doubt = np.linalg.norm(weights @ means * doubt)
        assert limit == pytest.approx(noise + 0.35 * largest + 0.04 * peak + in_doubt + coarse, rel=1e-12)


@pytest.mark.parametrize(("second", "taken"), [(6.0, True), (4.0, True), (6.0001, False), (3.9999, False)])
def test_a_step_without_evidence_is_followed_when_the_next_frame_repeats_it_within_the_limit(probe, second, taken):
    claims = np.array([[0.0, 0.0, 0.0], [5.0, 0.0, 0.0], [second, 0.0, 0.0]])
    assert probe.followed(claims, 1.0) == [False, taken]


def test_a_step_up_to_the_limit_needs_no_evidence(probe):
    claims = np.array([[0.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.6, 0.8, 1.0], [0.6, 0.8, 2.0001]])
    assert probe.followed(claims, 1.0) == [True, True, False]


def test_a_jump_leaves_no_evidence_of_before(probe):
    """Both sums begin at 0, both claims are followed as they are, and nothing is contradicted."""
    sums, steps, contradicted = probe.jumped()
    nothing = {"shown": 3 * [0.0], "claimed": 3 * [0.0], "doubt": 3 * [0.0], "coarse": 0.0, "peak": 0.0}
    assert sums == [nothing, nothing]
    for step, seen in zip(steps, ([2.0, 3.0, 4.0], [5.0, 6.0, 7.0]), strict=True):
        assert step["followed"] == step["newest"] == seen
        assert not step["held"]
        assert step["waited"] == step["value"] == 0.0
    assert contradicted == 0


def test_the_account_of_delays_leaks_and_grows_by_what_a_frame_is_late(probe):
    """It leaks with a time constant of 0.3 s, by no more than a usual interval at a time; the largest one by 1 s."""
    gaps = np.array(100 * [0.01] + [0.06, 0.06, 0.0, 0.0] + 20 * [0.01])
    behind, late = np.array(probe.delays(gaps, np.full(124, 0.01), 0.02)).T
    assert not behind[:100].any()
    leak = 0.3 / 0.31
    expected = np.array([0.05, 0.05 * leak + 0.05, 0.05 * leak + 0.04, 0.05 * leak + 0.03])
    np.testing.assert_allclose(behind[100:104], expected, rtol=1e-9)
    np.testing.assert_allclose(behind[104:], expected[-1] * leak ** np.arange(1, 21), rtol=1e-9)
    np.testing.assert_allclose(late[:100], 0.02 / 1.01 ** np.arange(1, 101), rtol=1e-9)
    assert late[101] == behind[101]
    np.testing.assert_allclose(late[102:105], behind[101] / np.array([1.0, 1.0, 1.01]), rtol=1e-9)


def test_the_account_of_delays_never_goes_below_zero(probe):
    behind, _ = np.array(probe.delays(np.array([0.5, 0.01, 0.0, 0.01]), np.array([0.5, 0.01, 0.01, 0.01]), 0.005)).T
    assert behind[2] == 0.0
    assert (behind >= 0.0).all()


def test_a_frame_without_a_time_of_its_own_stands_for_the_usual_interval(probe):
    """After a long gap that the source reports, four usual intervals count."""
    gaps, said = np.array(50 * [0.02] + [0.05]), np.full(51, NAN)
    behind, _ = np.array(probe.delays(gaps, said, 0.02)).T
    np.testing.assert_allclose(behind[49:], [0.0, 0.03], atol=1e-12)
    gaps, said = np.array(50 * [0.02] + [0.3, 0.05]), np.array(50 * [0.02] + [0.3, NAN])
    behind, _ = np.array(probe.delays(gaps, said, 0.02)).T
    frames = (1.02 ** -np.arange(50.0)).sum()
    usual = (0.02 * frames / 1.3 + 0.08) / (frames / 1.3 + 1.0)
    assert behind[51] == pytest.approx(0.05 - usual, rel=1e-9)
