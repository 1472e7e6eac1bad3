"""What holds for the tests themselves: no file too long to read, and failures that name what differs."""

from pathlib import Path

import numpy as np
import pytest
from same_bits import assert_same_bits

from motioncue.core.channels import CUE_DTYPE, TICK_DTYPE

TESTS = Path(__file__).parents[1]
LINES = 500


def test_no_file_is_longer_than_can_be_read():
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in TESTS.rglob("*.py")}
    assert len(lengths) > 100
    assert {str(path.relative_to(TESTS)): lines for path, lines in lengths.items() if lines > LINES} == {}


def test_a_failure_names_the_channels_that_differ_and_where():
    found, expected = np.zeros(9, TICK_DTYPE), np.zeros(9, TICK_DTYPE)
    found["cue"]["sway"][3:5] = 0.5
    found["index"][8] = 7
    with pytest.raises(
        AssertionError, match=r"^index: 1 of 9 .* \(8,\)[\s\S]*\ncue\.sway: 2 of 9 .* \(3,\): found .*0\.5"
    ):
        assert_same_bits(found, expected)


def test_zeros_of_other_signs_differ_and_nans_do_not():
    with pytest.raises(AssertionError, match="values: 1 of 2 differ"):
        assert_same_bits(np.array([0.0, 1.0]), np.array([-0.0, 1.0]))
    cues = np.zeros(2, CUE_DTYPE)
    cues["surge"] = np.nan
    other = cues.copy()
    other["surge"] = -other["surge"]
    assert_same_bits(other, cues)


@pytest.mark.parametrize("other", [np.zeros(2), np.zeros(3, np.float32)])
def test_another_number_or_type_differs(other):
    with pytest.raises(AssertionError, match="expected"):
        assert_same_bits(np.zeros(3), other)
