"""What the page is told of now: which run it is, what came before, how far behind it is."""

import time
import urllib.request

import numpy as np
import pytest
from view_rig import profile, soon
from view_visitor import Visitor

from motioncue.core.channels import MOTION_DTYPE
from motioncue.engine.engine import Engine
from motioncue.safety.supervisor import State
from motioncue.view.access import Address
from motioncue.view.model import PAST_HZ
from motioncue.view.server import AHEAD, Server
from motioncue.virtual.installation import Installation
from motioncue.virtual.simulators import drive_packages

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
