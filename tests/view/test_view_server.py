"""The page's server with real connections: what it serves, whom it refuses, and that nobody can hold it up."""

import contextlib
import gzip
import json
import os
import signal
import socket
import threading
import time
import urllib.error
import urllib.request

import pytest
from view_rig import driven, profile, soon
from view_visitor import Visitor

from motioncue.bench.report import GRADES
from motioncue.engine.engine import Engine
from motioncue.errors import EndpointError
from motioncue.view.access import Address
from motioncue.view.server import AHEAD, BAD, FILES, REQUEST_BYTES, Server

pytestmark = pytest.mark.rt

client = pytest.importorskip("websockets.sync.client")
exceptions = pytest.importorskip("websockets.exceptions")


@pytest.fixture
def engine():
    with Engine(profile()) as engine:
        yield engine


@pytest.fixture
def server(engine, tmp_path):
    with Server(engine, Address("127.0.0.1", 0), folder=tmp_path, patience_s=60.0) as server:
        yield server


@pytest.fixture
def impatient(engine, monkeypatch):
    monkeypatch.setattr("motioncue.view.server.SLOWEST", 1e6)
    with Server(engine, Address("127.0.0.1", 0), patience_s=2.0) as server:
        yield server


def get(server, path, **headers):
    """Return status, headers and text of a file."""
    port = server.url.partition("?")[0].rstrip("/").rpartition(":")[2]
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.status, dict(answer.headers), answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, dict(error.headers), error.read().decode()


def test_the_page_and_its_files_are_served_with_a_policy_that_forbids_all_other_places(server):
    for path, (_, kind) in FILES.items():
        status, headers, text = get(server, path)
        assert (status, headers["Content-Type"]) == (200, f"{kind}; charset=utf-8")
        assert len(text) > 100
        policy = dict(part.split(" ", 1) for part in headers["Content-Security-Policy"].split("; "))
        assert policy["default-src"] == "'self'"
        assert policy["frame-ancestors"] == "'none'"
    for path in ("/nothing", "/../server.py", "/%2e%2e/server.py", "//etc/passwd"):
        assert get(server, path)[0] == 404


def test_a_page_opened_before_the_second_packet_is_served(engine, tmp_path, monkeypatch):
    # One packet has no rate yet.  A page that came at just that time was dropped.
    stats = engine.stats
    monkeypatch.setattr(engine, "stats", lambda: {**stats(), "packets_sent": 1, "rate_hz": 0.0})
    with Server(engine, Address("127.0.0.1", 0), folder=tmp_path) as server, Visitor(server) as page:
        assert page.next("stats")["grade"] in GRADES
        assert page.next("frame")


def test_a_foreign_host_is_refused_for_the_page(server):
    status, _, text = get(server, "/", Host="evil.example")
    assert status == 403
    assert text.startswith("Host: found evil.example")


@pytest.mark.parametrize(
    "options",
    [
        {"origin": "http://evil.example"},
        {"origin": None},
        {"additional_headers": {"Origin": "http://evil.example"}},  # beside the right one
        {"origin": "http://localhost:1"},
    ],
)
def test_a_foreign_origin_is_refused(server, options):
    with pytest.raises(exceptions.InvalidStatus, match="403"):
        Visitor(server, **options)
    assert server.counts["requests"] == 1
    assert server.pages == 0


def test_beyond_loopback_nothing_is_shown_without_the_token(engine):
    with Server(engine, Address("0.0.0.0", 0)) as server:
        port = server.url.partition("?")[0].rstrip("/").rpartition(":")[2]
        token = server.url.partition("?token=")[2]
        home = f"127.0.0.1:{port}"
        for query, status in (("", 403), ("?token=wrong", 403), (f"?token={token}", 200)):
            assert get(server, f"/{query}", Host=home)[0] == status
        with (
            pytest.raises(exceptions.InvalidStatus, match="403"),
            client.connect(f"ws://{home}/live?token=wrong", origin=f"http://{home}"),
        ):
            pass
        with client.connect(f"ws://{home}/live?token={token}", origin=f"http://{home}") as connection:
            assert json.loads(connection.recv(timeout=120))["kind"] == "hello"


def test_an_address_in_use_is_refused_by_name(engine):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(EndpointError, match=f"--view: 127.0.0.1:{port} cannot be served"):
            Server(engine, Address("127.0.0.1", port)).__enter__()


def test_frames_come_with_the_names_that_the_page_was_told(server, engine):
    with Visitor(server) as page:
        first, second = page.next("frame"), page.next("frame")
        assert second["time"] > first["time"]
        assert page.hello["states"][int(second["state"])] == "offline"
        assert page.hello["scene"]["names"] == [f"leg_{n}" for n in range(1, 7)]
        stats = page.next("stats")
        assert stats["verdict"]["words"].startswith("nothing was driven")
        assert set(stats) >= {"lateness_us", "frames_received", "packets_sent", "events", "transitions", "grade"}


def test_a_slider_changes_the_engines_profile_and_every_page_is_told(server, engine):
    with Visitor(server) as page, Visitor(server) as other:
        page.send(do="set", key="cueing.surge.gain", value=0.8, gesture=1)
        for each in (page, other):
            told = each.next("settings", lambda said: said["values"]["cueing.surge.gain"] == 0.8)
            assert told["undo"] == 1
            assert each.new == {"cueing.surge.gain": 0.8}
        soon(lambda: engine.profile.cueing.surge.gain == 0.8)
        page.send(do="undo")
        other.next("settings", lambda said: said["undo"] == 0)
        assert engine.requested.cueing.surge.gain != 0.8


def test_a_refused_value_is_answered_with_its_key_and_reason(server, engine):
    with Visitor(server) as page:
        page.send(do="set", key="cueing.surge.gain", value=99, gesture=1)
        said = page.next("refused")
        assert said["key"] == "cueing.surge.gain"
        assert "allowed is a number from -10 to 10" in said["why"]


def test_what_was_undone_before_anybody_looked_is_told_all_the_same(server, engine, monkeypatch):
    # The page that raised a gain shows it raised until it is told what the settings are.
    before = engine.requested

    def raised_and_undone(key, value, gesture):
        engine.retune({key: value})
        engine.retune(before)

    with Visitor(server) as page:
        page.next("settings")
        monkeypatch.setattr(server._editor, "set", raised_and_undone)
        page.send(do="set", key="cueing.surge.gain", value=0.9, gesture=1)
        assert page.next("settings")["values"]["cueing.surge.gain"] == before.cueing.surge.gain
        assert engine.requested is before


def test_what_can_be_undone_is_told_together_with_the_change(server, engine, monkeypatch):
    retune = engine.retune

    def slow(change):
        retune(change)
        time.sleep(0.5)  # in which pages look at the engine many times

    with Visitor(server) as page:
        page.next("settings")
        monkeypatch.setattr(engine, "retune", slow)
        page.send(do="set", key="cueing.surge.gain", value=0.25, gesture=1)
        told = page.next("settings")
        assert (told["values"]["cueing.surge.gain"], told["undo"]) == (0.25, 1)


def test_a_page_is_told_which_of_its_settings_have_been_made_or_refused_and_no_other_page_is(server):
    with Visitor(server) as page, Visitor(server) as other:
        page.send(do="set", key="cueing.surge.gain", value=0.25, number=5)
        order = [page.next("settings", lambda said: said["undo"]), page.next("answered")]
        assert order[1]["number"] == 5
        page.send(do="set", key="cueing.surge.gain", value=99, number=6)
        assert page.next("refused")["number"] == 6
        assert page.next("answered")["number"] == 6
        other.next("settings", lambda said: said["values"]["cueing.surge.gain"] == 0.25)
        told = [other.receive() for _ in range(60)]
        assert "answered" not in [message["kind"] for message in told if isinstance(message, dict)]


def test_a_change_whose_page_has_left_is_ended_before_the_next_one_begins(server, monkeypatch):
    story, begun, end = [], threading.Event(), threading.Event()

    def slow(key, value, gesture, sure):
        story.append(f"{value} begins")
        begun.set()
        if value == 0.1:
            end.wait(60)
        story.append(f"{value} ends")

    monkeypatch.setattr(server._editor, "set", slow)
    with Visitor(server) as other:
        with Visitor(server) as page:
            page.send(do="set", key="cueing.surge.gain", value=0.1)
            assert begun.wait(60)
        soon(lambda: server.pages == 1)
        other.send(do="set", key="cueing.surge.gain", value=0.2, number=1)
        other.next("hands", lambda said: said["steers"])
        for _ in range(30):
            other.receive()  # the next change has had its time to begin too early
        end.set()
        other.next("answered")
    assert story == ["0.1 begins", "0.1 ends", "0.2 begins", "0.2 ends"]


def test_a_change_that_fails_is_answered_and_the_next_one_is_made(server, engine, monkeypatch):
    def fail(change):
        raise ZeroDivisionError("of a design")

    with Visitor(server) as page:
        monkeypatch.setattr(engine, "retune", fail)
        page.send(do="set", key="cueing.surge.gain", value=0.3, gesture=1)
        assert page.next("refused")["why"] == "of a design"
        monkeypatch.undo()
        page.send(do="set", key="cueing.surge.gain", value=0.25, gesture=2)
        page.next("settings", lambda said: said["values"]["cueing.surge.gain"] == 0.25)


def test_another_algorithm_comes_with_its_own_settings_and_every_page_is_told(server, engine):
    with Visitor(server) as page, Visitor(server) as other:
        keys = {each["key"] for each in other.next("controls")["parameters"]}
        assert "cueing.tilt.law" in keys
        page.send(do="set", key="cueing.algorithm", value="adaptive", gesture=1)
        told = other.next("controls")
        assert "adaptive" in told["title"]
        own = {each["key"] for each in told["parameters"]}
        assert "cueing.tilt.law" not in own
        assert set(other.next("settings")["values"]) == own
        soon(lambda: type(engine.profile.cueing).__name__ == "Adaptive")
        page.send(do="set", key="platform.height_m", value=2.0, gesture=2)
        assert "fixed while it runs" in page.next("refused")["why"]
        assert {each["key"]: each["fixed"] for each in told["parameters"]}["platform.height_m"]


def test_the_last_minute_is_judged_on_request_of_any_page_and_every_page_is_told(server, engine):
    with Visitor(server) as page, Visitor(server) as other:
        page.send(do="take")
        other.send(do="judge")
        assert "less than 3 s driven" in page.next("minute", lambda said: said["why"])["why"]
        feeding = threading.Thread(target=driven, args=(engine, 8.0))
        feeding.start()
        for each in (other, page):
            told = each.next("minute", lambda said: said["columns"])
            assert list(told["columns"]) == ["now"]
            assert 0.0 < told["columns"]["now"]["ratio"] < 2.0
        feeding.join()


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="a system that stops no process")
def test_pages_are_told_that_the_process_that_judges_is_stopped(server, engine, monkeypatch):
    with Visitor(server) as page:
        driven(engine, 5.0)
        page.send(do="judge")
        page.next("minute", lambda said: said["busy"])
        soon(lambda: server._scorer._process is not None)
        os.kill(server._scorer._process.pid, signal.SIGSTOP)
        monkeypatch.setattr("motioncue.view.scorer.SILENCE_S", 1.0)
        said = page.next("minute", lambda said: not said["busy"])
        assert said["why"].startswith("the process that judges said nothing for 1 s and was ended")


def test_park_and_engage_reach_the_engine(server, engine):
    with Visitor(server) as page:
        page.send(do="operate", what="park")
        soon(lambda: engine.newest()["operation"][0] & 7 == 2)
        page.send(do="operate", what="hold")
        soon(lambda: engine.newest()["operation"][0] & 7 == 1)
        page.send(do="operate", what="engage")
        soon(lambda: engine.newest()["operation"][0] & 7 == 0)


def test_one_page_steers_and_the_others_see_which(server, engine):
    with Visitor(server) as first, Visitor(server) as second:
        first.send(do="set", key="cueing.surge.gain", value=0.3, gesture=1)  # nobody steered: this page does now
        assert first.next("hands", lambda said: said["steers"])["who"] == "page 1 (127.0.0.1)"
        assert not second.next("hands", lambda said: said["who"])["steers"]
        second.send(do="set", key="cueing.surge.gain", value=0.4, gesture=1)
        assert second.next("refused")["why"].startswith("page 1 (127.0.0.1) steers")
        second.send(do="operate", what="hold")
        assert "steers" in second.next("refused")["why"]
        assert engine.requested.cueing.surge.gain == 0.3
        second.send(do="operate", what="park")  # anybody may park
        soon(lambda: engine.newest()["operation"][0] & 7 == 2)
        second.send(do="take")
        second.next("hands", lambda said: said["steers"])
        second.send(do="set", key="cueing.surge.gain", value=0.4, gesture=2)
        second.next("settings", lambda said: said["values"]["cueing.surge.gain"] == 0.4)
        first.send(do="swap")
        assert first.next("refused")["why"].startswith("page 2")
        second.connection.close()
        first.next("hands", lambda said: said["who"] is None)
        first.send(do="undo")
        first.next("hands", lambda said: said["steers"])


def test_what_is_no_request_is_counted_and_said_and_a_page_of_nothing_else_is_dropped(server):
    with Visitor(server) as page, Visitor(server) as other:
        for text in ("{", "[]", '{"do": "explode"}', "\x00"):
            page.connection.send(text)
            assert page.next("refused")["why"].startswith("no request")
        page.connection.send(b"\xff\xfe")
        page.next("refused")
        assert server.counts["malformed"] == 5
        with contextlib.suppress(exceptions.ConnectionClosed):
            for _ in range(BAD):
                page.connection.send("{")
        soon(lambda: server.pages == 1)
        assert server.counts["dropped"] == 1
        assert other.next("frame")


def test_a_message_that_is_too_long_ends_its_connection_only(server):
    with Visitor(server) as page, Visitor(server) as other:
        page.connection.send("x" * (REQUEST_BYTES + 1))
        with pytest.raises(exceptions.ConnectionClosed):
            page.next("nothing")
        assert other.next("frame")


def test_a_page_that_draws_nothing_is_sent_little_and_then_dropped(impatient):
    with Visitor(impatient) as page, Visitor(impatient) as other:
        frames = 0
        with contextlib.suppress(exceptions.ConnectionClosed):
            while True:  # reads, as a browser does for a script that hangs, and acknowledges nothing
                frames += isinstance(page.connection.recv(timeout=120), bytes)
                other.receive()
        assert frames <= AHEAD
        assert impatient.counts["dropped"] == 1
        assert other.next("frame")


def test_a_page_has_the_time_that_a_slow_link_takes_for_the_settings(engine):
    with Server(engine, Address("127.0.0.1", 0), patience_s=1.0) as server, Visitor(server) as page:
        time.sleep(4.0)  # 70 kB of settings are under way, at 4 kB/s for 18 s
        assert (server.pages, server.counts["dropped"]) == (1, 0)
        assert page.next("frame")


def test_a_page_that_reads_nothing_is_dropped(impatient):
    host = impatient.url.removeprefix("http://").rstrip("/")
    with socket.create_connection(("127.0.0.1", int(host.rpartition(":")[2]))) as silent, Visitor(impatient) as other:
        silent.sendall(
            f"GET /live HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\n"
            "Upgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        soon(lambda: impatient.pages == 2)
        for _ in range(2000):
            other.receive()
            if impatient.pages == 1:
                break
        assert impatient.pages == 1
        assert impatient.counts["dropped"] == 1


def test_more_pages_than_allowed_are_refused(server, monkeypatch):
    monkeypatch.setattr("motioncue.view.server.PAGES", 3)
    with contextlib.ExitStack() as stack:
        pages = [stack.enter_context(Visitor(server)) for _ in range(3)]
        with pytest.raises(exceptions.InvalidStatus, match="403"):
            Visitor(server)
        pages[0].connection.close()
        soon(lambda: server.pages < 3)
        stack.enter_context(Visitor(server))


def test_the_server_ends_while_pages_are_open(engine):
    with Server(engine, Address("127.0.0.1", 0)) as server:
        page = Visitor(server)
        page.next("frame")
    begin = time.monotonic()
    with pytest.raises(exceptions.ConnectionClosed):
        page.next("nothing")
    assert not server._thread.is_alive()
    assert time.monotonic() >= begin
    page.connection.close()


def test_the_engine_ends_before_its_server_without_harm(tmp_path):
    with Engine(profile()) as engine, Server(engine, Address("127.0.0.1", 0)) as server, Visitor(server) as page:
        page.next("frame")
        engine.stop()
        page.send(do="operate", what="engage")
        page.next("stats")
        page.send(do="nothing")
        page.next("refused")


def test_a_page_that_floods_waits_itself_and_the_others_do_not(server, engine):
    with Visitor(server) as flood, Visitor(server) as other:
        change = json.dumps({"do": "set", "key": "cueing.surge.gain", "value": 0.25, "gesture": 1})
        for _ in range(300):
            flood.connection.send(change)
        before = other.next("frame")
        other.send(do="operate", what="park")
        soon(lambda: engine.newest()["operation"][0] & 7 == 2)
        assert other.next("frame")["time"] > before["time"]
        flood.next("settings", lambda said: said["values"]["cueing.surge.gain"] == 0.25)
        assert flood.next("settings")["undo"] == 1


def test_a_change_that_takes_long_holds_up_no_frame_and_its_newest_value_wins(impatient, engine, monkeypatch):
    begun = []

    def slow(key, value, gesture, sure):
        begun.append(value)
        time.sleep(3.0 if len(begun) == 1 else 0.0)  # longer than the server's patience
        engine.retune({key: value})

    monkeypatch.setattr(impatient._editor, "set", slow)
    with Visitor(impatient) as page:
        for number in range(1, 9):
            page.send(do="set", key="cueing.surge.gain", value=number / 10, gesture=1)
        page.next("settings", lambda said: said["values"]["cueing.surge.gain"] == 0.8)
        assert page.frames > 30
    assert begun[0] == 0.1
    assert begun[-1] == 0.8
    assert len(begun) <= 3


def test_who_takes_packed_files_gets_them_packed(server):
    for path in ("", "page.js", "past"):
        plain = urllib.request.urlopen(server.url + path, timeout=60)
        asked = urllib.request.Request(server.url + path, headers={"Accept-Encoding": "br, gzip"})
        with plain, urllib.request.urlopen(asked, timeout=60) as packed:
            assert plain.headers["Content-Encoding"] is None
            assert packed.headers["Content-Encoding"] == "gzip"
            unpacked = gzip.decompress(packed.read())
            assert unpacked.startswith(plain.read())  # what was driven goes on
