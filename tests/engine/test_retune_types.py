"""Whatever a program gives as a change, a profile or a rate: it is taken, or refused as a ConfigError."""

import contextlib
import math
import sys
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import motioncue
from motioncue.core.clock import FakeClock
from motioncue.errors import ConfigError

STEPPER = motioncue.bind("ccd-dk-classical")


class Endless(Mapping):
    """A mapping whose every value is such a mapping."""

    def __init__(self, keys):
        self.keys_ = keys

    def __getitem__(self, key):
        return Endless(self.keys_)

    def __iter__(self):
        return iter(self.keys_)

    def __len__(self):
        return len(self.keys_)


def ring(kind, key="cueing"):
    """Return a mapping or list that contains itself."""
    if kind is list:
        out = []
        out.append(out)
        return {key: out}
    out = {}
    out[key] = out
    return out


def deep(kind, depth=100_000):
    """Return tables or lists nested very deeply."""
    out = {} if kind is dict else []
    for _ in range(depth):
        out = {"cueing": out} if kind is dict else [out]
    return out if kind is dict else {"cueing": out}


ABSURD = {
    "bytes": b"cueing.surge.gain=0.4", "bytearray": bytearray(b"a=1"), "memoryview": memoryview(b"a=1"),
    "whole number": 5, "number": 1.5, "NaN": math.nan, "None": None, "true": True, "object": object(), "type": dict,
    "array": np.zeros(2), "range": range(3), "list of bytes": [b"a=1"], "list of numbers": [5], "list of None": [None],
    "list of lists": [["cueing.surge.gain=1"]], "generator": (number for number in range(3)),
    "table that contains itself": ring(dict), "list that contains itself": ring(list),
    "options that contain themselves": {"source.options": ring(dict)}, "packet": {"output.packet": ring(dict)},
    "deep tables": deep(dict), "deep lists": deep(list), "endless": Endless("a"), "endless and broad": Endless("ab"),
    "key that is a number": {5: 1}, "key that is None": {None: {}}, "inner key": {"cueing": {5: 1}},
    "pair": {("a",): 1},
    "half a pair in a key": {"\ud800": 1}, "half a pair": {"cueing.surge.gain": "\ud800"}, "long key": {"x" * 10**6: 1},
    "value NaN": {"cueing.surge.gain": math.nan}, "inner NaN": {"cueing": {"surge": {"gain": math.nan}}},
    "infinity": {"cueing.surge.gain": math.inf}, "huge": {"cueing.surge.gain": 10**5000},
    "bytes inside": {"cueing.surge.gain": b"x"}, "object inside": {"cueing.surge.gain": object()},
    "array inside": {"cueing.surge.gain": np.zeros(3)}, "set inside": {"cueing.surge.gain": {1, 2}},
    "nested text": "cueing.surge=" + "[" * 5000 + "]" * 5000, "no text": "\0=", "no table": {"cueing": []},
}  # fmt: skip


@pytest.mark.parametrize("case", ABSURD)
def test_what_is_no_change_is_refused_and_changes_nothing(case):
    before = STEPPER.profile
    for change in (STEPPER.retune, lambda found: motioncue.load_profile("ccd-dk-classical", found)):
        with pytest.raises(ConfigError) as refused:
            change(ABSURD[case])
        assert 10 < len(str(refused.value)) < 3000
    assert STEPPER.profile is before


@pytest.mark.parametrize("case", ABSURD)
def test_what_is_no_profile_no_rate_and_no_array_is_refused(case):
    absurd, motion = ABSURD[case], np.zeros(3, motioncue.MOTION_DTYPE)
    for function in (
        motioncue.load_profile,
        motioncue.bind,
        motioncue.Engine,
        lambda found: motioncue.relay(found, clock=FakeClock()),
        lambda found: motioncue.cue(found, motion),
    ):
        with pytest.raises(ConfigError):
            function(absurd)
    if absurd is not None:
        with pytest.raises(ConfigError):
            motioncue.bind("ccd-dk", rate_hz=absurd)
        with pytest.raises(ConfigError):
            motioncue.relay("ccd-dk", clock=absurd)


KEYS = st.sampled_from([
    "cueing", "surge", "gain", "cueing.surge.gain", "cueing.preset", "cueing.algorithm", "limits", "limits.surge",
    "value_m_s2", "output", "output.limits", "platform", "preset", "watch", "supervisor.fade_s", "source",
    "source.head_m",
    "source.options", "name", "record", "",
])  # fmt: skip
LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.binary(max_size=5),
    st.complex_numbers(),
    st.dates(), st.sampled_from(["utias", "none", "direct", "classical", "auto", "\ud800"]),
)  # fmt: skip
NESTED = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.one_of(KEYS, KEYS, st.text(max_size=3), st.integers(), st.none()), inner, max_size=3),
        st.tuples(inner, inner),
    ),
    max_leaves=6,
)


@settings(max_examples=300)
@given(NESTED)
def test_any_object_is_taken_or_refused(change):
    stepper = motioncue.bind("ccd-dk-classical")
    before = stepper.profile
    try:
        stepper.retune(change)
    except ConfigError:
        assert stepper.profile is before
    else:
        assert stepper.step() in (True, False)
        assert np.isfinite(stepper.cue["surge"]).all()


@settings(max_examples=200)
@given(st.one_of(st.text(max_size=30), st.builds("{}={}".format, KEYS, st.text(max_size=20))))
def test_any_text_is_taken_or_refused(text):
    with contextlib.suppress(ConfigError):
        motioncue.bind("ccd-dk-classical").retune(text)


def test_the_depth_that_a_program_has_left_does_not_matter():
    def below(depth):
        if depth:
            return below(depth - 1)
        with pytest.raises(ConfigError):
            STEPPER.retune(ring(dict))
        return None

    below(sys.getrecursionlimit() // 2)
