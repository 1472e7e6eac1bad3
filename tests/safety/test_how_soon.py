"""What a platform says, and how soon what is sent follows: the times of docs/safety.md, on a clock of our own."""

import re
from pathlib import Path

import numpy as np
import pytest
from controller_rig import REPLY, Rig, profile_of

from motioncue.virtual.controller import Firmware

TICK_S = 0.00300003
PAGE = Path(__file__).parents[2] / "docs" / "safety.md"
NO_POSITIONS = "\n".join(line for line in REPLY.splitlines() if "post_" not in line)
STATED = dict(
    re.findall(r"^\| ([^|]+) \| `(?:\w+)` \| [^|]+ \| ([\d.]+ ms \| [\d.]+ s) \|$", PAGE.read_text("utf-8"), re.M)
)


def press(rig):
    rig.controller.pressed = True


def fault(rig):
    rig.controller.fault = True


def disable(rig):
    rig.controller.disable()


def silence(rig):
    rig.answers = False


CASES = {
    "its emergency stop is pressed": (press, REPLY, "platform_stopped"),
    "the same, without positions": (press, NO_POSITIONS, "platform_stopped"),
    "a drive's fault": (fault, REPLY, "platform_fault"),
    "it is not ready any more": (disable, REPLY, "platform_unready"),
    "no reply for `lost_s`, here 0.1 s": (silence, REPLY + "lost_s = 0.1\n", "platform_silent"),
}


def test_the_page_states_each_of_them_once():
    assert set(STATED) == set(CASES)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.check
def test_what_follows_comes_as_soon_as_stated(name):
    """The reply goes out behind the tick in which it happens, so the next tick hears it."""
    act, reply, reason = CASES[name]
    firmware = Firmware(homing_s=0.2, enable_s=10.0)  # it does not come back by itself while this is measured
    with Rig(profile_of("classical", reply), firmware) as rig:
        rig.until("RUNNING").ticks(400)  # it has risen
        assert rig.ticks(3000, lambda rig: np.abs(rig.places[-1] - rig.places[-2]).max() > 0.02 * TICK_S)  # 2 cm/s
        begun = len(rig.places)
        act(rig)
        assert rig.ticks(2000, lambda rig: rig.emitter.state == "FAULT")
        fault_ms = 1e3 * TICK_S * (len(rig.places) - begun - 1)
        assert rig.reasons[-1] == ("FAULT", reason)
        rig.ticks(2500)
        sent = rig.emitter.trace["actuators"][begun - 1 :, :4]
        moves = np.abs(np.diff(sent, axis=0)).max(axis=1)
        rest_s = TICK_S * (np.flatnonzero(moves > 1e-6)[-1] + 2)
        if "post_1" in reply and act is not silence:
            np.testing.assert_allclose(sent[-1], rig.controller.places, atol=1e-4)  # it is asked to be where it stands
        else:
            np.testing.assert_allclose(sent[-1], -0.1, atol=1e-4)  # down
    stated_ms, stated_s = (float(number.split()[0]) for number in STATED[name].split(" | "))
    assert stated_ms - 1e3 * TICK_S - 0.1 <= fault_ms <= stated_ms + 0.1
    assert 0.5 * stated_s <= rest_s <= stated_s
