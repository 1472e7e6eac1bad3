"""Nothing jolts when settings change: any settings, at any tick, in any state, with any input."""

import math

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import rule
from test_nothing_jolts import HARD, Trouble
from trouble_helpers import BOUNDED, Checker

from motioncue import ConfigError

pytestmark = pytest.mark.search

LIMITS = (
    {},
    {"limits": "none"},
    {"limits": {"surge": {"value_m_s2": 2.0}, "roll": {"value_deg": 4.0, "rate_deg_s": 5.0}, "yaw": "none"}},
    {"limits": {"surge": {"rate_m_s3": 20.0, "acceleration_m_s4": 2e3}, "yaw": {"value_deg": 30.0}}},
    {"limits": {"pitch": {"value_deg": 1.0}, "surge_displacement": {"value_m": 0.05, "rate_m_s": 0.1}}},
)
CUEING = (
    {},
    *({"cueing": {"algorithm": "classical", "preset": preset}} for preset in ("simona", "utias")),
    {
        "cueing": {
            "algorithm": "classical",
            "preset": "simona",
            "surge": {"gain": -2.0},
            "tilt": {"rate_limit_deg_s": 90.0},
        }
    },
    {"cueing": {"algorithm": "classical", "preset": "simona", "roll": {"order": 1}, "heave": {"gain": 0.0}}},
    {
        "cueing": {
            "algorithm": "classical",
            "preset": "simona",
            "turned_by": "platform",
            "surge": {"scaling": {"largest_m_s2": 5.0, "share": 0.4}},
            "yaw": {"order": 1, "cutoff_hz": 0.04, "angle_limit_deg": 12.0},
            "tilt": {"surge_gain": 0.9, "acceleration_limit_deg_s2": 20.0, "law": "linear", "roll_share": 0.0},
            "texture": {"roll_gain": 1.0, "limit_m": 0.003},
        }
    },
    {
        "cueing": {
            "algorithm": "classical",
            "preset": "utias",
            "turned": "specific_force",
            "turned_by": "platform",
            "surge": {"negative_share": 0.2, "return_m_s2": 0.5},
            "sway": {"order": 1, "dead_zone_m_s2": 1.0, "return_m_s2": 0.1},
            "heave": {"negative_share": 3.0},
            "yaw": {"order": 1, "cutoff_hz": 0.01, "dead_zone_deg_s": 5.0, "return_deg_s": 3.0},
        }
    },
    {"cueing": {"algorithm": "direct"}},
    {"cueing": {"algorithm": "adaptive", "preset": "small", "adaptation": 0.1}},
    {
        "cueing": {
            "algorithm": "adaptive",
            "adaptation": 10.0,
            "surge": {"gain": -1.0, "start": 0.0, "most": 2.0},
            "pitch": {"cutoff_hz": 5.0, "cutoff_ratio": 1.0},
            "tilt": {"rate_limit_deg_s": 3.0},
        }
    },
    {"cueing": {"algorithm": "optimal", "preset": "small"}},
    {
        "cueing": {
            "algorithm": "optimal",
            "restraint": 0.05,
            "surge": {"gain": -2.0, "travel_m": 0.001},
            "tilt": {"rate_limit_deg_s": 3.0},
        }
    },
    {
        "cueing": {
            "algorithm": "classical",
            "preset": "utias",
            "turned_by": "platform",
            "surge": {"scaling": {"largest_m_s2": 5.0, "share": 0.4}},
            "roll": {"angle_limit_deg": 0.5},
            "tilt": {
                "law": "linear",
                "roll_share": 0.0,
                "pitch_share": 2.0,
                "sway_gain": -1.0,
                "rate_limit_deg_s": 20.0,
                "acceleration_limit_deg_s2": 10.0,
            },
        }
    },
    {"cueing": {"algorithm": "classical", "preset": "simona", "texture": {"cutoff_hz": 1.0, "roll_gain": 1.0}}},
    {
        "cueing": {
            "algorithm": "classical",
            "preset": "simona",
            "surge": {"cutoff_hz": 100.0},
            "sway": {"cutoff_hz": 0.001, "damping": 0.01},
            "yaw": {"cutoff_hz": 30.0, "damping": 10.0},
            "tilt": {"surge_cutoff_hz": 0.001, "sway_cutoff_hz": 100.0, "damping": 0.1},
        }
    },
    {"cueing": {"algorithm": "classical", "preset": "simona", "texture": {"cutoff_hz": 90.0, "limit_m": 0.001}}},
    {"cueing": {"algorithm": "predictive", "preset": "small"}},
    {"cueing": {"algorithm": "predictive", "preset": "large", "gains": {"yaw": 0.0, "surge": 1.5}}},
    {
        "cueing": {
            "algorithm": "predictive",
            "preset": "medium",
            "gain": 0.3,
            "weights": {"travel": 20.0, "conflict": 3.0, "sway": 5.0},
            "tilt": {"rate_limit_deg_s": 1.0},
        }
    },
)


PRESET = ({}, {"preset": "simona"})


def wider(one, two):
    """Return the wider bound of each kind for every channel that both bound; None is wider than any."""
    return {
        name: [None if a is None or b is None else max(a, b) for a, b in zip(one[name], two[name], strict=True)]
        for name in one
        if name in two
    }


class RetuneChecker(Checker):
    """The bounds that must hold at every tick while settings change: each may be any of those in play."""

    def __init__(self, bench):
        super().__init__(bench)
        self.paces = {0: self.pace}  # by the first tick at which they hold
        self.sets = {0: self.bounds}
        self.quiet = 0  # the tick from which only the newest count

    def changed(self, profile, settling):
        tick = len(self.bench.trace)
        pace = min(1.0, self.dt / profile.supervisor.fade_s)
        slowest = min(pace, self.pace)
        if tick >= self.quiet:
            self.paces, self.sets = {0: self.pace}, {0: self.bounds}
        self.paces[tick], self.sets[tick] = pace, profile.bounds()
        self.pace, self.bounds = pace, profile.bounds()
        self.quiet = max(self.quiet, tick + 8 + 2 * math.ceil(1.0 / slowest) + settling)

    def ticks(self, trace, fresh):
        newest, pace = self.bounds, self.pace
        if len(self.bench.trace) < self.quiet or self.done < self.quiet:
            for bounds in self.sets.values():
                self.bounds = wider(self.bounds, bounds)
            self.pace = max(self.paces.values())
        super().ticks(trace, fresh)
        self.bounds, self.pace = newest, pace

    def transitions(self, moves):
        super().transitions([move for move in moves if move["reason"] != "retuned"])
        for move in moves:
            assert move["reason"] != "retuned" or move["from"] == move["to"]


class RetuneTrouble(Trouble):
    """A simulator, a network, an operator and a tuner with arbitrary behavior."""

    checker = RetuneChecker
    other = "direct"

    @rule(
        limits=st.sampled_from(LIMITS),
        cueing=st.sampled_from(CUEING),
        fade_s=st.sampled_from([None, 0.1, 0.3, 1.0]),
        hold_s=st.sampled_from([None, 0.05, 0.3]),
        ticks=st.integers(0, 12),
        times=st.sampled_from([1, 1, 1, 4]),
    )
    def retune(self, limits, cueing, fade_s, hold_s, ticks, times):
        """Change any settings, several times in a row or once."""
        for i in range(times):
            change = {**limits, **(cueing if i % 2 == 0 else {"cueing": {"algorithm": self.other}})}
            change |= {f"supervisor.{key}": s for key, s in (("fade_s", fade_s), ("hold_s", hold_s)) if s is not None}
            try:
                self.bench.pipeline.retune(change)
            except ConfigError:  # such as bounds within none
                self.bench.pipeline.retune(self.bench.profile)
            self.check.changed(self.bench.pipeline._tuner.profile, self.settling())
            self.bench.emitter.run(ticks=ticks)

    @rule(at=st.integers(0, 30))
    def flood(self, at):
        """Change settings at every tick."""
        for i in range(at):
            self.bench.pipeline.retune({"cueing": {"algorithm": (self.other, "classical")[i % 2], **PRESET[i % 2]}})
            self.check.changed(self.bench.pipeline._tuner.profile, self.settling())
            self.bench.emitter.run(ticks=1)

    def settling(self):
        """As in the parent class, plus the time to come within the newest bounds."""
        return super().settling() + math.ceil(1.0 / self.check.pace) * 3 + 12


class RetuneBoundedTrouble(RetuneTrouble):
    overrides = BOUNDED


class RetuneWashoutTrouble(RetuneTrouble):
    profile = "ccd-dk-classical"


class RetuneDefaultTrouble(RetuneTrouble):
    profile = "ccd-dk-washout"
    overrides = ("platform.preset=hexapod-dim",)
    other = "predictive"  # on a platform that takes a pose


for machine in (RetuneTrouble, RetuneBoundedTrouble, RetuneWashoutTrouble, RetuneDefaultTrouble):
    machine.TestCase.settings = HARD
TestRetuneTrouble = RetuneTrouble.TestCase
TestRetuneBoundedTrouble = RetuneBoundedTrouble.TestCase
TestRetuneWashoutTrouble = RetuneWashoutTrouble.TestCase
TestRetuneDefaultTrouble = RetuneDefaultTrouble.TestCase
