"""The wrongs that are put into kernels: one of each kind, in both languages, and none where nothing is computed."""

import pytest
import run
from operators import mutants_of

CYTHON = '''"""A limit of 3 < 4."""
cdef enum:
    MOST = 12
cdef inline double held(double x, double most) noexcept nogil:
    """Return 1 + 1."""
    cdef double y = -x
    if x > most and most != 0.0:    # 2 * 2
        y = 0.5 * (x + most)
    return min(y, most)
'''
C = """/* 3 < 4 */
#define MC_MOST 12
typedef struct { double low; } mc_Bounds;
static inline double mc_held(double x, const mc_Bounds *b) {
    double y = 0.0; /* 1 + 1 */
    if (x > b->low && b->low != 0.0) {
        y = 0.5 * (x + b->low);
    }
    return fmin(y, x);
}
"""


@pytest.mark.parametrize(("name", "text"), [("held.pxd", CYTHON), ("held.h", C)])
def test_every_kind_of_wrong_is_put_into_what_is_computed_and_nowhere_else(name, text):
    found = mutants_of(name, text)
    assert {"comparison", "boundary", "arithmetic", "negation", "constant", "dropped statement"} == {
        each.operator for each in found
    }
    lines = text.split("\n")
    first = next(place for place, line in enumerate(lines) if "held(" in line)
    assert all(each.line > first and each.before == lines[each.line] != each.after for each in found)
    assert not any("Return" in each.before for each in found)
    after = {each.after.split("/*")[0].strip() for each in found}
    assert {"y = 0.25 * (x" in line or "y = 0.5 / (x" in line for line in after} == {True, False}


@pytest.mark.parametrize("room", run.ROOMS)
def test_there_are_kernels_to_change_in_each_room(room):
    assert len(run.files_of(room)) >= 2
