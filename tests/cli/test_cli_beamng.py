"""BeamNG and its Simulink coupling through the commands, with real sockets: from its virtual peer to DK."""

import contextlib
import socket
import threading

import pytest
from helpers import eventually, free_port
from programs import INTERRUPT, Program

from motioncue.drive.peers import DatagramListener
from motioncue.output import dk
from motioncue.sources.beamng_simulink.packets import REPLY_PORT
from motioncue.sources.beamng_simulink.twin import Simulator, driven

pytestmark = pytest.mark.rt


def udp():
    return f"udp://127.0.0.1:{free_port(socket.SOCK_DGRAM)}"


@contextlib.contextmanager
def in_a_thread(runner):
    """Run something until the end of the block."""
    thread = threading.Thread(target=runner.run)
    thread.start()
    try:
        yield runner
    finally:
        runner.stop()
        thread.join()


@contextlib.contextmanager
def engine(profile, *settings):
    """Run a profile between private ports; yield the program, its endpoint, and the DK that it drives."""
    sources, outputs = [udp(), udp()], [udp(), udp()]
    if profile == "beamng-simulink-dk":
        del sources[1:]
    listed = ", ".join(f'"{url}"' for url in sources)
    keys = [f"source.endpoint=[{listed}]", f"output.motion={outputs[0]}", f"output.gauges={outputs[1]}", *settings]
    arguments = [part for key in keys for part in ("--set", key)]
    platform = DatagramListener(dk, outputs)
    with in_a_thread(platform), Program("run", "--profile", profile, *arguments, "--json") as program:
        program.says("waiting for")
        yield program, sources, platform
    platform.close()


@pytest.mark.check
def test_run_drives_dk_from_beamng():
    with engine("beamng-dk") as (run, sources, platform):
        ends = [part for url in sources for part in ("--to", url)]
        with Program("simulate", "beamng", *ends, "--rate", "300", "--duration", "2", "--json") as simulate:
            eventually(lambda: platform.last("gauges").get("engine_speed", 0.0) > 100.0)  # as the car idles
            sent = simulate.end()
        run.signal(INTERRUPT)
        stats = run.end()
    assert 0 < sent["frames_sent"] <= 600  # 2 s at 300 Hz; fewer if the machine is busy
    assert sent["lost"] == 0
    assert stats["frames_received"] == stats["others_received"] == sent["frames_sent"]
    assert (stats["rejected"], stats["events"], stats["sessions"]) == ({}, {}, 1)
    assert platform.rejected == {}


@pytest.mark.check
def test_run_drives_dk_from_the_simulink_coupling():
    reply_port = free_port(socket.SOCK_DGRAM)
    with engine("beamng-simulink-dk", f"source.options.reply_port={reply_port}") as (run, sources, platform):
        beamng = Simulator(sources, driven("tour", 200.0, 1.5), reply_port=reply_port, timeout_s=0.2)
        with in_a_thread(beamng):
            eventually(lambda: platform.last("gauges").get("engine_speed", 0.0) > 100.0)
            eventually(lambda: beamng.sent == 300)
        run.signal(INTERRUPT)
        stats = run.end()
    assert stats["frames_received"] == stats["replies_sent"] == beamng.sent == 300
    assert (stats["rejected"], stats["replies_lost"], stats["sessions"]) == ({}, 0, 1)
    assert beamng.stalls <= 1  # at the start
    assert beamng.coupling.controls == {}  # the answers controlled nothing


@contextlib.contextmanager
def alone_at(port):
    """Hold a fixed port exclusively: other runs of the tests wait for it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as turn:

        def ours():
            try:
                turn.bind(("127.0.0.1", port + 1))
            except OSError:
                return False
            return True

        eventually(ours)
        yield


@pytest.mark.parametrize("system", ["beamng", "beamng-simulink"])
@pytest.mark.check
def test_listen_watches_what_it_says(system):
    url = udp()
    with alone_at(REPLY_PORT), Program("listen", system, "--at", url, "--json") as listen:
        listen.says("waiting for")
        arguments = ["--to", url, "--drive", "brake", "--duration", "0.5"]
        with Program("simulate", system, *arguments, "--json") as simulate:
            sent = simulate.end()
        listen.signal(INTERRUPT)
        stats = listen.end()
    assert stats["frames_received"] == sent["frames_sent"] > 0
    assert stats["rejected"] == {}
    assert stats["motion"]["engine_speed"] > 100.0
    assert stats["replies_sent"] == (sent["frames_sent"] if system == "beamng-simulink" else 0)
    assert sent.get("stalls", 0) <= 1
