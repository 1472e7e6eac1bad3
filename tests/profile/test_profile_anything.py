"""Profiles: whatever a file or an override holds, it loads or it is refused."""

import contextlib
import math

import numpy as np
import pytest
from helpers import BASE
from hypothesis import given, settings
from hypothesis import strategies as st

import motioncue
from motioncue.engine.assembly import check, load_profile
from motioncue.errors import ConfigError, EndpointError
from motioncue.profile import profile
from motioncue.profile.profile import parse_profile, profile_text

pytestmark = pytest.mark.search

WASHOUT = "ccd-dk-classical"
AXES = ("surge", "sway", "heave", "roll", "pitch", "yaw")
KEYS = st.sampled_from(
    [
        *("source", "system", "endpoint", "hold_s", "fade_s", "head_m", "options", "quaternion", "description", "name"),
        *("cueing", "algorithm", "preset", "surge", "sway", "heave", "roll", "pitch", "yaw", "tilt"),
        *("gain", "order", "cutoff_hz", "damping", "break_hz", "limit_m_s2"),
        *("watch", "frozen_s", "supervisor", "limits", "value_deg"),
        *("output", "rate_hz", "motion", "gauges"),
    ]
) | st.text("abc_ .`[]0é\"'", min_size=1, max_size=6)
SCALARS = (
    st.integers(-(10**20), 10**20)
    | st.floats()
    | st.booleans()
    | st.text(max_size=10)
    | st.sampled_from(["direct", "classical", "simona", "utias", "dk", "city-car-driving", "udp://127.0.0.1:1", 2, 0.5])
)
TREES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=5), max_leaves=25
)
TABLES = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(("source", "cueing", "output", "watch", "supervisor", "limits", "name", "x"), TREES)
)


def toml(value):
    """Return a value as TOML, tables inline."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{quoted(key)} = {toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else str(value)
    return str(value) if isinstance(value, int) else quoted(value)


def quoted(text):
    return '"' + "".join(c if c.isalnum() and c.isascii() else f"\\U{ord(c):08x}" for c in text) + '"'


def loads(text, *overrides):
    """Load a profile as a file would be; only the two errors may come out."""
    with contextlib.suppress(ConfigError, EndpointError):
        check(parse_profile(text, overrides=overrides))


@settings(max_examples=300)
@given(tables=TABLES)
def test_any_tables_load_or_are_refused(tables):
    loads("\n".join(f"{quoted(key)} = {toml(value)}" for key, value in tables.items()))


@settings(max_examples=200)
@given(text=st.text(max_size=200) | st.text("[]{}=.,\"'# \n01e-+abc_", max_size=60))
def test_any_text_loads_or_is_refused(text):
    loads(text)
    loads(BASE + text)


@settings(max_examples=300)
@given(path=st.lists(KEYS, min_size=1, max_size=4), tree=TREES, profile=st.sampled_from(["ccd-dk", WASHOUT]))
def test_any_override_loads_or_is_refused(path, tree, profile):
    text = profile_text(profile)
    loads(text, f"{'.'.join(path)}={toml(tree)}")
    loads(text, f"{'.'.join(path)}={tree}")


@settings(max_examples=200)
@given(override=st.text(st.characters(), max_size=40))
def test_any_text_as_an_override_loads_or_is_refused(override):
    loads(BASE, override)
    loads(BASE, f"source.{override}")


@settings(max_examples=100)
@given(
    gains=st.lists(st.floats(-10, 10), min_size=6, max_size=6),
    cutoffs=st.lists(st.floats(0.001, 100), min_size=6, max_size=6),
    orders=st.lists(st.sampled_from([1, 2, 3]), min_size=6, max_size=6),
    rate_hz=st.floats(10, 400),
)
def test_whatever_loads_also_runs(gains, cutoffs, orders, rate_hz):
    overrides = [f"output.rate_hz={rate_hz!r}"]
    for axis, gain, cutoff, order in zip(AXES, gains, cutoffs, orders, strict=True):
        overrides += [f"cueing.{axis}.{key}={value!r}" for key, value in (("gain", gain), ("cutoff_hz", cutoff))]
        overrides += [f"cueing.{axis}.order={order}", f"cueing.{axis}.break_hz={0.5 * cutoff!r}"]
    if max(cutoffs) >= 0.5 * rate_hz:
        with pytest.raises(ConfigError, match="half the output rate"):
            load_profile(WASHOUT, *overrides)
        return
    profile = load_profile(WASHOUT, *overrides)
    motion = np.zeros(50, motioncue.MOTION_DTYPE)
    motion["surge"] = 3.0
    cue = motioncue.cue(profile, motion)
    assert all(np.isfinite(cue[name]).all() for name in cue.dtype.names)


LONG = "a." * 40_000 + "a"


@pytest.mark.parametrize("text", [f"{LONG} = 1", f"[{LONG}]", f"x = {{ {LONG} = 1 }}", f"\n\n\t{LONG}=1"])
def test_a_key_without_measure_is_refused_before_it_is_read(monkeypatch, text):
    monkeypatch.setattr(profile.tomllib, "loads", pytest.fail)
    with pytest.raises(ConfigError, match=r"p: line [13]: found 40000 dots, allowed are up to 32"):
        parse_profile(text, name="p")
    monkeypatch.undo()
    for override in (f"source.hold_s={text.strip()}", f"{LONG}=1"):
        with pytest.raises(ConfigError, match=r"--set: line 1: found .* dots, allowed are up to 32"):
            parse_profile(BASE, overrides=[override])


def test_a_comment_may_have_as_many_dots_as_it_likes():
    assert parse_profile(f"  # {'.' * 1000}\n{BASE}")


def test_numbers_of_a_notebook_are_numbers():
    gain, cutoffs = np.float32(0.25), np.array([0.4, 0.5])
    changed = load_profile(WASHOUT, {"cueing": {"surge": {"gain": gain, "cutoff_hz": cutoffs[0]}}})
    assert (changed.cueing.surge.gain, changed.cueing.surge.cutoff_hz) == (0.25, 0.4)
    assert load_profile(WASHOUT, {"source.head_m": np.array([0.1, 0.0, -0.5])}).source.head_m == (0.1, 0.0, -0.5)
    post = {"min_m": -0.1, "max_m": np.float64(0.1), "speed_m_s": 0.3, "acceleration_m_s2": np.int64(5)}
    at = np.array([[0.5, 0.0], [-0.5, 0.5], [-0.5, -0.5]])
    built = motioncue.platform({"kind": "posts", "at_m": at, "post": post})
    assert built.inverse(np.zeros((1, 6))).shape == (1, 3)
    with pytest.raises(ConfigError, match=r"cueing\.surge\.gain: found nan, allowed"):
        load_profile(WASHOUT, {"cueing.surge.gain": np.float64("nan")})
    with pytest.raises(ConfigError, match=r"cueing\.surge\.gain: found \[0\.4, 0\.5\], allowed"):
        load_profile(WASHOUT, {"cueing.surge.gain": cutoffs})
