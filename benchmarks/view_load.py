"""Measure whether pages in the browser delay the ticks: lateness without a page and with ten, in turns.

Run it from the repository's root, on a machine that does nothing else:  python benchmarks/view_load.py [ROUNDS]
The pages are programs of their own that read and acknowledge every frame, as a browser does.  Ten of them are a load by
themselves, so they are shown another engine's page in turns with this one's: the ratio of these two is what serving
them costs the ticks.
"""

import subprocess
import sys
import time

import numpy as np

from motioncue.view.access import Address
from motioncue.view.server import Server
from motioncue.virtual.installation import Installation

PAGES = 10
TURN_S = 6.0
ROUNDS = 5
OTHER = "18765"  # port of another engine's page

READER = """
import json, sys
from websockets.sync.client import connect
host = sys.argv[1]
with connect(f"ws://{host}/live", origin=f"http://{host}", compression=None) as page:
    frames = 0
    for message in page:
        if isinstance(message, bytes):
            frames += 1
            page.send(json.dumps({"do": "seen", "frames": frames}))
"""


def lateness_us(engine, seconds):
    """Return the lateness of the ticks of some seconds, as the newest tick shows it a thousand times a second."""
    seen = {}
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        tick = engine.newest()
        seen[int(tick["index"][0])] = 1e-3 * float(tick["lateness"][0])
        time.sleep(0.001)
    return list(seen.values())


def beside(engine, host, seconds):
    """Return the lateness with ten pages at a host, and the processor time that this process took [s/s]."""
    pages = [subprocess.Popen([sys.executable, "-c", READER, host]) for _ in range(PAGES if host else 0)]
    time.sleep(3.0)  # until they are connected
    before, begin = time.process_time(), time.monotonic()
    late = lateness_us(engine, seconds)
    share = (time.process_time() - before) / (time.monotonic() - begin)
    for page in pages:
        page.kill()
        page.wait()
    return late, share


def main(rounds):
    """Measure, and print a table."""
    with (
        Installation("ccd-dk-classical", "still", 3600.0) as installation,
        Server(installation.engine, Address("127.0.0.1", 0)) as server,
        subprocess.Popen(
            [sys.executable, "-m", "motioncue", "demo", "--drive", "still", "--duration", "3600", "--view", OTHER],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as other,
    ):
        own = server.url.removeprefix("http://").rstrip("/")
        hosts = {"none": None, "another's": f"127.0.0.1:{OTHER}", "own": own}
        late = {name: [] for name in hosts}
        share = {name: [] for name in hosts}
        for _ in range(rounds):
            for name, host in hosts.items():
                found, took = beside(installation.engine, host, TURN_S)
                late[name] += found
                share[name].append(took)
        other.terminate()
    print(f"{f'{PAGES} pages':<12}" + "".join(f"{name:>12}" for name in hosts) + f"{'own/another':>14}")
    for name, part in (("p50", 50), ("p90", 90), ("p99", 99)):
        values = [float(np.percentile(late[host], part)) for host in hosts]
        print(
            f"{name + ' late':<12}"
            + "".join(f"{value:>9.1f} us" for value in values)
            + f"{values[2] / values[1]:>14.2f}"
        )
    print(f"{'processor':<12}" + "".join(f"{100 * np.median(share[host]):>10.1f} %" for host in hosts))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS)
