"""What the page is told of now: which run it is, what came before, how far behind it is."""

import socket
import threading
import time
import urllib.request

import numpy as np
import pytest
from view_rig import driven, profile, soon
from view_visitor import Visitor

from motioncue.core.channels import MOTION_DTYPE
from motioncue.engine.assembly import load_profile
from motioncue.engine.engine import Engine
from motioncue.safety.supervisor import Platform as Claim
from motioncue.safety.supervisor import State
from motioncue.view.access import Address
from motioncue.view.model import PAST_HZ
from motioncue.view.server import AHEAD, Server
from motioncue.virtual.installation import Installation, drive_packages

pytestmark = pytest.mark.rt


@pytest.fixture
def engine():
    with Engine(profile()) as engine:
        yield engine


@pytest.fixture
def server(engine, tmp_path):
    with Server(engine, Address("127.0.0.1", 0), folder=tmp_path, patience_s=60.0) as server:
        yield server


def test_earlier_frames_are_served_and_a_restart_is_another(server, engine):
    with Visitor(server) as page:
        newest = page.next("frame")["time"]
        run, width = page.hello["run"], len(page.hello["names"])

        def past():
            port = server.url.rstrip("/").rpartition(":")[2]
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/past", timeout=120) as answer:
                return np.frombuffer(answer.read(), "<f8").reshape(-1, width)

        soon(lambda: len(past()) > 10 and past()[-1, 0] >= newest)
        steps = np.diff(past()[:, 0])
        assert (steps >= 0.99 / PAST_HZ).all()
    with Server(engine, Address("127.0.0.1", 0)) as again, Visitor(again) as page:
        assert page.hello["run"] != run


def test_a_slow_link_is_told_how_slow_it_is(server):
    with Visitor(server) as page:
        for _ in range(AHEAD):
            page.connection.recv(timeout=120)  # frames and messages, of which it draws nothing
        time.sleep(1.0)
        page.send(do="seen", frames=1)
        assert page.next("link", lambda said: said["delay_s"] > 0.9)


def test_an_endless_drive_begins_again_at_its_end():
    once = len(drive_packages("city-car-driving", "still", duration_s=0.5))
    with Installation("ccd-dk-classical", "still", 0.5, endless=True) as installation:
        assert installation.duration_s is None
        soon(lambda: installation.engine.stats()["frames_received"] > 2 * once)


def test_the_car_lives_while_the_platform_is_parked(engine):
    motion = np.zeros(1, MOTION_DTYPE)
    engine.park()
    for index, surge in enumerate([1.0, -2.0, 3.5]):
        motion["frame_time"], motion["surge"] = 0.1 * index, surge
        engine.feed(motion)
        soon(lambda surge=surge: engine.newest()["motion"]["surge"][0] == surge)
    assert State(int(engine.newest()["state"][0])) is State.OFFLINE
    assert not engine.newest()["cue"]["surge"].any()


REPLY = """packet={ text="{surge:.3f} ", reply=[{ text="S{ready},{fault},{emergency_stop};" }] }"""


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_what_the_platform_says_and_a_fault_are_loud_on_the_page(tmp_path):
    module = pytest.importorskip("view_chromium")
    if module.BROWSER is None:
        pytest.skip("needs a Chromium, in the path or named by MOTIONCUE_BROWSER")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as platform, module.launched() as browser:
        platform.bind(("127.0.0.1", 0))
        said = [b""]
        ended = threading.Event()

        def answers():
            while not ended.is_set():
                _, sender = platform.recvfrom(200)
                if said[0]:
                    platform.sendto(said[0], sender)

        port = platform.getsockname()[1]
        more = (f'output={{motion="udp://127.0.0.1:{port}", {REPLY}}}', "platform.rise_s=0.5", "supervisor.hold_s=2")
        with (
            Engine(load_profile("program-dk", "cueing.algorithm=classical", "platform.preset=seat-2", *more)) as engine,
            Server(engine, Address("127.0.0.1", 0), folder=tmp_path) as server,
            module.Tab(browser, server) as tab,
        ):
            answering = threading.Thread(target=answers)
            answering.start()
            loud = tab.page.locator("#trouble[data-loud=yes]")
            tab.shows("#trouble", "nothing engages")
            assert loud.count() == 0
            said[0] = b"S1,0,0;"
            module.playwright.expect(tab.page.locator("#trouble")).to_be_hidden(timeout=60_000)
            driven(engine, 2.0)
            tab.shows("#state", "running")
            said[0] = b"S1,0,1;"
            tab.shows("#trouble", "emergency stop is pressed")
            tab.shows("#trouble", "platform stopped")
            tab.shows("#state", "fault")
            assert loud.is_visible()
            said[0] = b"S1,0,0;"
            tab.shows("#trouble", "Engage goes on, once its cause is gone")
            soon(lambda: engine.stats()["state"] == "FAULT" and not engine.newest()["operation"][0] & Claim.PLATFORM)
            tab.page.click("#engage")
            module.playwright.expect(tab.page.locator("#trouble")).to_be_hidden(timeout=60_000)
            assert tab.errors == []
            ended.set()
            answering.join()
