"""Whole runs over a pseudo-terminal: a simulator, an engine, a line, and a controller at its other end that answers."""

import contextlib
import json
import os
import socket
import sys
import threading

import numpy as np
import pytest
from controller_line import ControllerLine
from helpers import eventually, free_port
from programs import INTERRUPT, Program
from rich.console import Console
from smc3_firmware import Smc3

import motioncue
from motioncue.cli.terminal import ASCII, render
from motioncue.cli.watch import EngineView
from motioncue.virtual.controller import Controller, Firmware
from motioncue.virtual.installation import drive_packages, make_simulator
from motioncue.wire.description import packet_text

pytestmark = [
    pytest.mark.rt,
    pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals of this kind"),
]

DESCRIBED = """
[output.packet]
size = 20
constants = [{ offset = 0, bytes = "a5 5a" }]
fields = [
    { offset = 2, type = "f4", channel = "post_1" },
    { offset = 6, type = "f4", channel = "post_2" },
    { offset = 10, type = "f4", channel = "post_3" },
    { offset = 14, type = "f4", channel = "post_4" },
]
checksum = { offset = 18, kind = "crc16-modbus" }
[[output.packet.reply]]
text = "S{state},{post_1},{post_2},{post_3},{post_4}*{checksum:04X}\\r\\n"
checksum = { kind = "crc16-modbus", end = -1 }
values.state = { channel = "ready", among = [1, 3] }
lost_s = 1.0
[[output.packet.reply]]
size = 4
constants = [{ offset = 0, bytes = "e5" }]
fields = [{ offset = 1, type = "u1", channel = "emergency_stop" }]
checksum = { offset = 2, kind = "crc16-modbus" }
"""


def rig(folder, line, packet, platform):
    ports = [free_port(socket.SOCK_DGRAM) for _ in range(2)]
    path = folder / "rig.toml"
    path.write_text(
        f"""
        [source]
        system = "beamng"
        endpoint = ["udp://127.0.0.1:{ports[0]}", "udp://127.0.0.1:{ports[1]}"]
        [cueing]
        algorithm = "classical"
        [platform]
        preset = "{platform}"
        rise_s = 1.0
        [supervisor]
        fade_s = 0.5
        hold_s = 1.0
        [output]
        motion = "serial://{line}?baud=500000"
        {packet}
        """,
        encoding="utf-8",
    )
    return path


@contextlib.contextmanager
def driving(profile):
    """Play a simulator that drives on and on."""

    def packages():
        while True:
            yield from drive_packages("beamng", "turns")

    simulator = make_simulator("beamng", profile.source.endpoints, packages())
    thread = threading.Thread(target=simulator.run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        simulator.stop()
        thread.join()


class Plug:
    """Where the line is: a name that goes on to whatever is plugged in."""

    def __init__(self, path):
        self.path = path

    def put(self, line):
        self.path.unlink(missing_ok=True)
        self.path.symlink_to(line.url.removeprefix("serial://"))


class Traced(Controller):
    """A controller that keeps where its drives were, and whether they followed."""

    def __init__(self, *arguments, **more):
        super().__init__(*arguments, **more)
        self.rows = []

    def tick(self, packet):
        super().tick(packet)
        self.rows.append((*self.places, self.follows))


def shown(engine):
    """Return what the live view shows, as text."""
    view = EngineView(engine, "run", None, [])(1.0)
    console = Console(width=110, height=60, record=True, file=open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    console.print(render(view, 110, 60, ASCII))
    return console.export_text()


def state_is(engine, name):
    eventually(lambda: engine.stats()["state"] == name)


def sound(controller, dt=0.003):
    """Assert that drives that follow never moved faster in a tick than the platform's may, whatever was lost.

    Ticks in which packets were lost or late are made up for by the next ones, so a move is compared with that of five.
    """
    rows = np.array(controller.rows)
    moves = np.abs(np.diff(rows[:, :-1], axis=0)).max(axis=1)
    both = (rows[1:, -1] > 0) & (rows[:-1, -1] > 0)
    assert moves[both].max() < 5 * controller.bounds.speed.max() * dt


@pytest.mark.parametrize("harm", [0.0, 0.002])
@pytest.mark.check
def test_a_run_with_an_emergency_stop_and_a_pulled_cable(tmp_path, harm):
    """Bytes are lost and others come in between: nothing of that is a fault, and nothing true is missed."""
    plug = Plug(tmp_path / "line")
    path = rig(tmp_path, plug.path, DESCRIBED, "posts-4")
    profile = motioncue.load_profile(path)
    controller = Traced(profile, Firmware(homing_s=0.5, enable_s=0.1), seed=1)
    with contextlib.ExitStack() as stack:
        line = stack.enter_context(ControllerLine(controller, profile, 2, lost=harm, foreign=harm))
        plug.put(line)
        stack.enter_context(driving(profile))
        with motioncue.Engine(profile) as engine:
            eventually(lambda: "no reply yet" in shown(engine) or "not ready" in shown(engine))
            state_is(engine, "RUNNING")
            assert controller.follows
            assert "platform ready" in shown(engine)
            replies = engine.stats()["outputs"][0]["replies"]
            assert set(replies["positions"]) == {"post_1", "post_2", "post_3", "post_4"}
            assert bool(replies["skipped"]) == bool(harm)
            assert " at " in shown(engine)

            line.say(b"drive 3: overload\r\n")
            controller.pressed = True
            state_is(engine, "FAULT")
            # Where bytes are lost, the reply that says so may lose one, and that of the state comes first.
            reasons = {"platform_stopped", "platform_unready"} if harm else {"platform_stopped"}
            assert engine.stats()["transitions"][-1]["reason"] in reasons
            eventually(lambda: "EMERGENCY STOP" in shown(engine))
            if not harm:
                eventually(lambda: "overload" in engine.stats()["outputs"][0]["replies"].get("text", ""))
                assert "overload" in shown(engine)
            engine.engage()  # while it is pressed: asks for nothing
            controller.pressed = False
            eventually(lambda: controller.follows)
            assert engine.stats()["state"] == "FAULT"
            eventually(lambda: engine.engage() or engine.stats()["state"] == "RUNNING")

            line.unplug()
            state_is(engine, "FAULT")
            assert engine.stats()["transitions"][-1]["reason"] == "output_lost"
            controller.disable()  # and it lost its power with the cable
            controller.places = 0.5 * controller.places
            assert "not ready" in shown(engine)
            again = stack.enter_context(ControllerLine(controller, profile, 3, lost=harm, foreign=harm))
            plug.put(again)
            heard = engine.stats()["outputs"][0]["sent"]
            eventually(lambda: os.path.exists(plug.path))
            eventually(lambda: engine.engage() or engine.stats()["state"] == "RUNNING")
            assert engine.stats()["outputs"][0]["sent"] > heard
            assert controller.follows
    assert engine.stats()["state"] == "OFFLINE"
    sound(controller)


def told(run, *words):
    with Program("tell", *words, "--json", env=run) as tell:
        out, err = tell.finish()
    assert tell.process.returncode == 0, err
    return json.loads(out.splitlines()[-1])["runs"][0]


@pytest.mark.check
def test_the_command_drives_smc3_and_says_what_it_answers(tmp_path):
    """The other end is written from SMC3's own comments: its motors move, one is cut off, and all come back softly."""
    env = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}
    # A process of Python may be silent for longer than half a second on a busy machine; a controller is not.
    _, replies, rest = packet_text("smc3").partition("[[reply]]")
    replies = (replies + rest).replace("[[", "[[output.packet.").replace("lost_s = 0.5", "lost_s = 30")
    with Smc3() as smc3:
        path = rig(tmp_path, smc3.name, f'packet.preset = "smc3"\n{replies}', "posts-3")
        profile = motioncue.load_profile(path)
        with driving(profile), Program("run", "--profile", str(path), "--json", env=env) as run:
            run.says("engaging to running")
            eventually(lambda: max(abs(at - 512) for at in smc3.at) > 30)
            found = told(env)
            assert found["platform"] == ["ready"]
            smc3.disabled = 2  # its cutoff: one motor alone stands still
            run.says("platform_stopped")
            assert told(env)["platform"][0] == "EMERGENCY STOP"
            eventually(lambda: max(abs(smc3.target[n] - smc3.at[n]) for n in range(3)) < 8)
            smc3.disabled = 0
            eventually(lambda: told(env)["platform"][0] == "ready")
            told(env, "engage")
            run.says("fault to offline")
            eventually(lambda: told(env)["state"] == "running")
            run.signal(INTERRUPT)
            stats = run.end()
    replies = stats["outputs"][0]["replies"]
    assert replies["received"] > 50
    assert replies["refused"] == replies["skipped"] == 0
    assert replies["emergency_stop"] is False
    assert [move["reason"] for move in stats["transitions"]].count("platform_stopped") == 1
    # It rests at its lowest, 1 of 1023, as far as drives of 10 bits tell.
    assert max(smc3.at) < 12
