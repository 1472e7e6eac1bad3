"""``motioncue wire`` and ``identify`` on drives in software at real sockets: crossed wires, known lags, a person."""

import contextlib
import json
import os
import socket
import sys
import threading

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner
from helpers import eventually, free_port
from programs import INTERRUPT, Program

from motioncue.check import exercise
from motioncue.cli import cli, wire
from motioncue.cli.wire import Seen, corrected
from motioncue.engine.assembly import load_profile
from motioncue.errors import ConfigError
from motioncue.platforms.build import platform_named
from motioncue.platforms.settings import Wiring
from motioncue.virtual.controller import ControllerListener
from motioncue.virtual.platform_twin import Drive

DT = 0.00300003
TRUE = Wiring(order=(2, 3, 1), reversed=(False, True, False), offset=(0.05, 0.0, 0.0))


def rig(folder, reply=True):
    ports = [free_port(socket.SOCK_DGRAM) for _ in range(2)]
    fields = ", ".join(f'{{ offset = {8 * k}, type = "f8", channel = "post_{k + 1}" }}' for k in range(3))
    answer = f"""
[[output.packet.reply]]
size = 25
fields = [{fields}, {{ offset = 24, type = "u1", channel = "ready" }}]
"""
    path = folder / "rig.toml"
    path.write_text(
        f"""# my rig
[source]
system = "beamng"
endpoint = ["udp://127.0.0.1:4567", "udp://127.0.0.1:4568"]
[cueing]
algorithm = "classical"
[platform]
preset = "posts-3"      # three of them
rise_s = 0.5
[supervisor]
fade_s = 0.5
[output]
motion = "udp://127.0.0.1:{ports[0]}?from={ports[1]}"
[output.packet]
size = 24
fields = [{fields}]
{answer if reply else ""}""",
        encoding="utf-8",
    )
    return path, ports


@contextlib.contextmanager
def hardware(path, ports, wiring=None, drive=None):
    """Play drives that hang at the controller in their own way, whatever the profile says."""
    profile = load_profile(path)
    platform = msgspec.structs.replace(profile.platform, wiring=wiring)
    listener = ControllerListener(
        msgspec.structs.replace(profile, platform=platform), [f"udp://127.0.0.1:{ports[0]}"], drive
    )
    listener.answers_to = ("127.0.0.1", ports[1])
    thread = threading.Thread(target=listener.run, daemon=True)
    thread.start()
    try:
        yield listener
    finally:
        listener.stop()
        thread.join()
        listener.close()


@pytest.fixture
def quick(monkeypatch):
    """Shorter moves than a person would want to see."""
    monkeypatch.setattr(wire, "BUMP_S", 1.0)
    monkeypatch.setattr(wire, "TIMES", 1)
    monkeypatch.setattr(exercise, "SPARE_S", 0.3)


def made(listener):
    """Return the positions of the posts so far, a row a packet."""
    with listener._busy:
        return listener._rows(listener._made)


def ran(*words, says=""):
    result = CliRunner().invoke(cli, words, input=says)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


@pytest.mark.rt
@pytest.mark.slow
def test_crossed_wires_are_found_and_written(tmp_path, quick):
    path, ports = rig(tmp_path, reply=False)
    with hardware(path, ports, TRUE) as listener:
        # Asked for post 1, axis 1 moves, at which post 3 hangs; then post 1; then post 2, which goes down first.
        says = "y\n\npost_3\ny\n\npost_1\ny\n\npost_2\nn\ny\n"
        result = ran("wire", str(path), says=says)
        assert result.exit_code == 0, result.output
        assert "is written: run `motioncue wire` once more" in result.output
        assert "post_2: axis 3, reversed" in result.output
        moved = made(listener)
        # At its end it is parked, 0.1 m below neutral; the reversed one was taken to its top by the wires as they were.
        np.testing.assert_allclose(np.abs(moved[-1]), 0.1, atol=0.014)  # one is 1 cm off, and they lag
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# my rig\n")
    assert "# three of them" in text
    profile = load_profile(path)
    assert profile.platform.wiring == Wiring(order=(2, 3, 1), reversed=(False, True, False))
    with hardware(path, ports, TRUE) as listener:
        result = ran("wire", str(path), says="y\n" + 3 * "\n\n\n" + "10\n0\n0\n" + "y\n")
        assert result.exit_code == 0, result.output
        assert "Each is the one that was asked" in result.output
        moved = made(listener)
        np.testing.assert_allclose(moved[-1], [-0.1 + 0.01, -0.1, -0.1], atol=4e-3)  # parked, and the one too high
    assert load_profile(path).platform.wiring == TRUE
    with hardware(path, ports, TRUE) as listener, exercise.Exerciser(load_profile(path)) as exerciser:
        at = made(listener)[-1]
        np.testing.assert_allclose(at, 0.0, atol=1e-3)  # level at neutral
        begun = len(made(listener))
        exerciser.move(exerciser.pose_of(1, 0.006), lambda time: exercise.bump(time, 1.0), 1.0)
        way = np.ptp(made(listener)[begun:], axis=0)
        assert np.argmax(way) == 1
        assert way[1] > 0.004


def test_what_was_seen_becomes_the_wiring_of_any_rig():
    platform = platform_named("posts-3")
    for true in (Wiring(order=(3, 1, 2), reversed=(True, False, True)), Wiring(order=(1, 2, 3))):
        for assumed in (None, Wiring(order=(2, 1, 3), reversed=(False, True, False))):
            order = assumed.order if assumed else (1, 2, 3)
            turned = assumed.reversed if assumed else (False, False, False)
            true_turned = true.reversed or (False, False, False)
            seen = []
            for asked in range(3):
                which = true.order.index(order[asked])  # what hangs at the axis that is driven
                seen.append(Seen(which, turned[asked] != true_turned[which]))
            found = corrected(msgspec.structs.replace(platform, wiring=assumed), seen, [0.0] * 3)
            assert found.order == true.order
            assert found.reversed == true_turned
    with pytest.raises(ConfigError, match="post_1 moved more than once"):
        corrected(platform, [Seen(0, False), Seen(0, False), Seen(2, False)], [0.0] * 3)


@pytest.mark.rt
@pytest.mark.slow
def test_lag_and_dead_time_are_measured_and_written(tmp_path, monkeypatch):
    monkeypatch.setattr(exercise, "SPARE_S", 0.3)
    monkeypatch.setattr(exercise, "SINES", ((1.0, 2.0), (2.0, 2.0)))
    path, ports = rig(tmp_path)
    with hardware(path, ports, drive=Drive(0.06, None, 0.02)):
        result = ran("identify", str(path), "--json", says="y\ny\n")
    assert result.exit_code == 0, result.output
    found = json.loads(result.output.splitlines()[-1])
    assert set(found["axes"]) == {"heave_displacement", "roll", "pitch"}
    assert found["lag_s"] == pytest.approx(0.06, abs=0.006)
    # A reply that goes out behind a packet is read at the next tick.
    assert found["dead_time_s"] == pytest.approx(0.02 + DT, abs=0.006)
    platform = load_profile(path).platform
    assert (platform.lag_s, platform.dead_time_s) == (found["lag_s"], found["dead_time_s"])


class SlowDrives:
    """Drives of first order that go no faster than a speed, in small steps of their equation."""

    PARTS = 20

    def __init__(self, lag_s, speed):
        self.lag_s, self.speed, self.at = lag_s, speed, None

    def reset(self):
        self.at = None

    def process(self, commands):
        for command in commands:
            self.at = command.copy() if self.at is None else self.at
            for _ in range(self.PARTS):
                self.at = self.at + np.clip((command - self.at) / self.lag_s, -self.speed, self.speed) * DT / self.PARTS
        return self.at[None]


@pytest.mark.rt
@pytest.mark.slow
def test_drives_that_are_slower_than_the_profile_says_have_their_speed_written(tmp_path, monkeypatch):
    monkeypatch.setattr(exercise, "SPARE_S", 0.3)
    monkeypatch.setattr(exercise, "SINES", ((1.0, 2.0), (2.0, 2.0)))
    path, ports = rig(tmp_path)
    before = load_profile(path).platform.post
    with hardware(path, ports) as listener:
        listener.controller._servos = SlowDrives(0.03, 0.06)
        result = ran("identify", str(path), "--way", "0.1", says="y\ny\n")
    assert result.exit_code == 0, result.output
    assert "slower than the profile says" in result.output
    post = load_profile(path).platform.post
    assert post.speed_m_s == pytest.approx(0.06, rel=0.05)
    assert msgspec.structs.replace(post, speed_m_s=before.speed_m_s) == before
    assert path.read_text(encoding="utf-8").startswith("# my rig")


def test_a_rig_without_replies_is_not_measured(tmp_path):
    path, _ = rig(tmp_path, reply=False)
    result = ran("identify", str(path))
    assert result.exit_code == 2
    assert "no replies that say where the actuators are" in result.output
    for command in ("wire", "identify"):
        result = ran(command, "ccd-dk")
        assert result.exit_code == 2
        assert "allowed is the file of a profile" in result.output
        result = ran(command, str(tmp_path / "rig2.toml"))
        assert result.exit_code == 2
        assert "rig2.toml' is neither a built-in profile nor a file" in result.output.replace("\n", "")


@pytest.mark.rt
@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="the input of a console of its own cannot be written to")
def test_an_interrupt_in_mid_motion_takes_it_down(tmp_path):
    path, ports = rig(tmp_path)
    read, write = os.pipe()
    with hardware(path, ports) as listener, Program("identify", str(path), stdin=read) as program:
        os.write(write, b"y\n")
        eventually(lambda: len(made(listener)) and listener.controller.follows)
        eventually(lambda: np.abs(made(listener)[-1]).max() < 0.02)  # it has risen
        program.signal(INTERRUPT)
        out, err = program.finish()
        assert "Traceback" not in err + out
        assert program.process.returncode == 1
        np.testing.assert_allclose(made(listener)[-1], [-0.1] * 3, atol=4e-3)
    os.close(read)
    os.close(write)
    assert load_profile(path).platform.lag_s is None
