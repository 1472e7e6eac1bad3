"""`--view` of the commands, as programs of their own."""

import json

import pytest
from helpers import free_port
from kept_drives import path_of
from programs import Program

from motioncue import load_profile

pytestmark = pytest.mark.rt

client = pytest.importorskip("websockets.sync.client")


def told(connection, kind):
    """Return the next message of a kind; say that frames are drawn, as a page does."""
    while isinstance(message := connection.recv(timeout=20), bytes) or json.loads(message)["kind"] != kind:
        if isinstance(message, bytes):
            connection.frames = getattr(connection, "frames", 0) + 1
            connection.send(json.dumps({"do": "seen", "frames": connection.frames}))
    return json.loads(message)


@pytest.mark.search
def test_demo_serves_a_page_that_parks_it_and_tunes_it():
    port = free_port()
    tuned = ("--drive", "turns", "--set", "cueing.algorithm=classical")
    with Program("demo", "--duration", "8", *tuned, "--view", str(port), "--json") as demo:
        demo.says(f"view: http://127.0.0.1:{port}/")
        with client.connect(f"ws://127.0.0.1:{port}/live", origin=f"http://127.0.0.1:{port}") as page:
            assert told(page, "controls")["title"].startswith("ccd-hexapod: city-car-driving")
            page.send('{"do": "set", "key": "cueing.surge.gain", "value": 0.11}')
            while told(page, "settings")["values"].get("cueing.surge.gain") != 0.11:
                pass
            page.send('{"do": "operate", "what": "park"}')
            while not any(move["reason"] == "operator_park" for move in told(page, "stats")["transitions"]):
                pass
        stats = demo.end()
    assert stats["retunes"] == 1


@pytest.mark.parametrize("command", ["run", "demo"])
@pytest.mark.parametrize("where", ["x", "1.2.3.4", "70000"])
def test_what_is_no_address_is_refused_before_anything_starts(command, where):
    with Program(command, "--view", where) as program:
        program.says(f"error: --view: found '{where}', allowed is [HOST:]PORT")
        assert program.process.wait(30) == 2


@pytest.mark.check
def test_replay_plays_a_recording_replays_what_is_tuned_and_saves_it(tmp_path):
    pytest.importorskip("tomlkit")
    port = free_port()
    with (
        Program("replay", str(path_of("city-car-driving")), "--view", str(port), cwd=tmp_path) as program,
        program.says(f"view: http://127.0.0.1:{port}/")
        or client.connect(f"ws://127.0.0.1:{port}/live", origin=f"http://127.0.0.1:{port}") as page,
    ):
        assert told(page, "hello")["plays"]
        page.send('{"do": "set", "key": "cueing.surge.gain", "value": 0.11}')
        while told(page, "settings")["values"].get("cueing.surge.gain") != 0.11:
            pass
        page.send('{"do": "save", "name": "mine.toml"}')
        assert told(page, "saved")["file"] == str(tmp_path / "mine.toml")
    assert load_profile(tmp_path / "mine.toml").cueing.surge.gain == 0.11
