"""The join of an output to its line, against the closed form of a critically damped system."""

import numpy as np
import pytest

DT = 0.003
FREE = (0.0, 100.0)  # fast enough that the bound on the speed never acts


@pytest.mark.parametrize("offset", [[0.5], [-0.5], [0.3, 0.0, -0.4]])
def test_an_offset_that_closes_faster_than_the_pace_keeps_its_own_pace(probe, offset):
    """With o' = -p o, the system of pace p follows o exp(-p t)."""
    offset = np.array(offset)
    out = probe.joined(offset, -5.0 * offset, 0.0, 50, DT, 2.0, 60.0, *FREE)
    expected = offset * np.exp(-5.0 * DT * np.arange(1, 51))[:, None]
    np.testing.assert_allclose(out, expected, rtol=1e-12)


@pytest.mark.parametrize("offset", [0.5, -0.5])
@pytest.mark.parametrize(("pace", "quickest", "used"), [(2.0, 60.0, 60.0), (3.0, 1.0, 3.0)])
def test_no_offset_has_a_pace_above_the_quickest_unless_the_join_has(probe, offset, pace, quickest, used):
    velocity = -2.0 * used * offset
    out = probe.joined([offset], [velocity], 0.0, 1, DT, pace, quickest, *FREE)
    expected = (offset + (velocity + used * offset) * DT) * np.exp(-used * DT)
    assert out[0] == [pytest.approx(expected, rel=1e-12)]


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_an_output_that_moves_away_comes_to_rest_at_the_quickest_pace_and_then_returns(probe, sign):
    """Its speed falls by exp(-q dt) each tick, which is quicker than the join itself would brake it."""
    out = sign * np.array(probe.joined([sign * 1.0], [sign * 0.1], 0.0, 400, DT, 1.0, 60.0, *FREE))[:, 0]
    speeds = np.diff(out, prepend=1.0) / DT
    np.testing.assert_allclose(speeds[:5], 0.1 * np.exp(-60.0 * DT * np.arange(1, 6)), rtol=1e-9)
    turned = int(np.argmax(speeds <= 0.0))
    assert 5 < turned < 20
    assert (speeds[turned:] <= 0.0).all()


def test_an_output_whose_line_comes_towards_it_does_not_move_away_from_it(probe):
    """The line comes at 0.5/s from below to an output at rest: it stays until the join's own motion is downwards."""
    out = np.array(probe.joined([0.2], [0.0], 0.5, 200, DT, 1.0, 60.0, *FREE))[:, 0]
    assert (np.diff(out, prepend=0.2)[: len(out) // 2] <= 1e-15).all()


def test_no_axis_moves_faster_than_the_drive_and_a_fade_allow(probe):
    """1.19 times the drive's largest slope along the axis, plus the largest slope of a fade of the largest offset."""
    out = np.array(probe.joined([3.0, 4.0], [0.0, 0.0], 0.0, 500, DT, 50.0, 60.0, 0.4, 0.2))
    speeds = np.abs(np.diff(out, axis=0)) / DT
    assert speeds.max() == pytest.approx(1.19 * 0.2 + 0.4 * 5.0, rel=1e-9)
