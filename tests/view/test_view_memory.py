"""The memory of the page and of its server stays flat: for a while in real time, and for a long time played faster.

python tests/view/test_view_memory.py --minutes 60    # in real time, and as many played faster; prints a table
"""

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[1]))  # run as a program, it finds the rig too
sys.path.append(str(Path(__file__).parents[1] / "support"))

from view_rig import profile

from motioncue.engine.engine import Engine
from motioncue.view.access import Address
from motioncue.view.server import Server
from motioncue.virtual.installation import Installation

playwright = pytest.importorskip("playwright.sync_api", reason="needs Playwright: pip install playwright")
client = pytest.importorskip("websockets.sync.client")

BROWSER = os.environ.get("MOTIONCUE_BROWSER") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)

pytestmark = [
    pytest.mark.rt,
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason="needs a Chromium, in the path or named by MOTIONCUE_BROWSER"),
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the memory of processes from /proc"),
]

MINUTES = float(os.environ.get("MOTIONCUE_VIEW_MINUTES", "0.5"))
PLAYED = 6.0  # minutes played faster than real time
GAIN = '[data-key="cueing.surge.gain"]'

ALLOWED = {"heap [MB]": 2.5, "nodes": 200, "page [MB]": 16.0, "server [MB]": 16.0}
"""Growth of the page's objects (those of a picture come and go) and elements in use, and of processes, which keep free
memory in pieces."""


def rss_mb(pid):
    """Return the memory that a process has resident [MB]."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]) / 1024


def refuse_growth(rows):
    """Compare the least of the last third with the least of the second: what is collected later does not count."""
    third = len(rows) // 3
    for place, (name, allowed) in enumerate(ALLOWED.items(), 1):
        if place < len(rows[0]):
            before, after = (min(row[place] for row in rows[low : low + third]) for low in (third, 2 * third))
            assert after - before < allowed, (name, rows)


class Watched:
    """A page whose memory is measured."""

    def __init__(self, browser, url, script=""):
        self.browser = browser
        self.page = browser.new_page(viewport={"width": 1500, "height": 900})
        self.page.add_init_script(script)
        self.page.goto(url)
        self._protocol = self.page.context.new_cdp_session(self.page)
        self._whole = browser.new_browser_cdp_session()

    def sizes(self):
        """Return the page's heap [MB], its number of nodes, and its process's memory [MB]."""
        for _ in range(2):
            self._protocol.send("HeapProfiler.collectGarbage")
        heap = self._protocol.send("Runtime.getHeapUsage")["usedSize"] / 1e6
        nodes = self._protocol.send("Memory.getDOMCounters")["nodes"]
        found = self._whole.send("SystemInfo.getProcessInfo")["processInfo"]
        return heap, nodes, max(rss_mb(each["id"]) for each in found if each["type"] == "renderer")


@contextlib.contextmanager
def chromium():
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield browser
        browser.close()


# ---- in real time ----------------------------------------------------------------------------------------------------


CALM = (
    "platform.preset=hexapod-simona",
    "supervisor.hold_s=3",
)  # late frames of a busy machine park nothing


def serve():
    """Drive an engine with the virtual car, and serve its page, until standard input ends."""
    installation = Installation("ccd-dk-classical", "tour", overrides=CALM, endless=True)
    with installation, Server(installation.engine, Address("127.0.0.1", 0)) as server:
        print(server.url, flush=True)
        sys.stdin.read()


@contextlib.contextmanager
def served():
    """Yield the address of a page, and its server's process."""
    command = [sys.executable, __file__, "--serve"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process.stdout.readline().strip(), process.pid
        finally:
            process.stdin.close()
            process.wait(60)


def in_real_time(minutes, samples, tell=lambda *row: None):
    """Return rows of time [s], heap [MB], nodes, the page's and the server's memory [MB], while settings change."""
    rows = []
    with served() as (url, pid), chromium() as browser:
        watched = Watched(browser, url)
        watched.page.wait_for_selector(f"{GAIN} input[type=range]")
        watched.page.get_by_role("button", name="5", exact=True).click()  # lines that grow no longer after five seconds
        begin = time.monotonic()
        for sample in range(1, samples + 1):
            acts = max(1, round(60.0 * minutes / samples / 15.0))
            for act in range(acts):  # a gesture, undone; the other slot and back; the judgment follows by itself
                watched.page.locator(f"{GAIN} input[type=range]").focus()
                watched.page.keyboard.press("ArrowUp")  # a step that nobody is asked about
                for button in ("undo", "swap", "swap"):
                    watched.page.click(f"#{button}")
                due = 60.0 * minutes * (sample - 1 + (act + 1) / acts) / samples
                watched.page.wait_for_timeout(1e3 * max(0.0, begin + due - time.monotonic()))
            rows.append((time.monotonic() - begin, *watched.sizes(), rss_mb(pid)))
            tell(*rows[-1])
        assert watched.page.inner_text("#state") not in ("connection lost", "no connection")
    return rows


@pytest.mark.timeout(120.0 + 90.0 * MINUTES)
def test_memory_stays_flat_while_the_car_is_driven():
    refuse_growth(in_real_time(MINUTES, 9))


# ---- faster ----------------------------------------------------------------------------------------------------------

LINE = """
window.WebSocket = class {
    static OPEN = 1;
    constructor() { this.readyState = 1; window.line = this; }
    send() {}
};
"""
"""In the place of the connection: what the page is told comes from `PLAY`."""

PLAY = """async ([texts, row, from, until]) => {
    const tell = (message) => line.onmessage({ data: typeof message === "string" ? message : JSON.stringify(message) });
    const { stats, settings, minute, controls, hands } = texts;
    if (!from) for (const each of [texts.hello, controls, settings, hands]) tell(each);
    for (let second = from; second < until; second += 1) {
        for (let frame = 0; frame < 60; frame += 1) {
            const values = Float64Array.from(row, (value, index) => value + 0.1 * Math.sin(second + index + frame));
            values[0] = second + frame / 60;
            values[1] = row[1];
            line.onmessage({ data: values.buffer });
        }
        const reason = second % 10 ? "input" : "input_lost";
        const transitions = Array.from({ length: 40 }, (_, at) => ({ t: second - 39 + at, to: "ENGAGING", reason }));
        for (let half = 0; half < 2; half += 1)
            tell({ ...stats, frames_received: 60 * second, transitions, events: { teleport: Math.floor(second / 7) } });
        const value = 0.5 + 0.4 * Math.sin(second), key = "cueing.surge.gain";
        tell({ ...settings, values: { ...settings.values, [key]: value }, undo: second % 200 });
        tell({ kind: "answered", number: second });
        if (second % 3 === 0) tell({ kind: "refused", key, number: second, why: `found ${second}` });
        if (second % 5 === 0) tell({ ...hands, pages: second % 16 });
        if (second % 20 === 0) tell(minute);
        if (second % 60 === 0) {                        // another algorithm: all controls anew
            tell(controls);
            tell(settings);
        }
        if (second % 2) await new Promise(requestAnimationFrame);
    }
}"""
"""Seconds of messages: 60 frames each, statistics, settings, refusals, judgments, controls built anew."""


def told(url):
    """Return what a page is told: messages by their kind, and a frame's numbers."""
    host = url.removeprefix("http://").rstrip("/")
    found, frame = {}, None
    with client.connect(f"ws://{host}/live", origin=f"http://{host}", compression=None) as connection:
        while frame is None or found.keys() < {"hello", "controls", "settings", "hands", "minute", "stats"}:
            message = connection.recv(timeout=120)
            if isinstance(message, bytes):
                frame = np.nan_to_num(np.frombuffer(message, "<f8")).tolist()
            else:
                found.setdefault(json.loads(message)["kind"], json.loads(message))
    column = {"now": {"ratio": 0.5, "fits": 50.0, "stopped": 50.0, "rates": 50.0, "fast_tilt": 0.1}}
    found["minute"] |= {"columns": column, "begin_s": 0.0, "end_s": 60.0}
    return found, frame


def played_faster(minutes, samples, tell=lambda *row: None):
    """Return rows of time [s] on the page's plots, heap [MB], nodes, and the page's memory [MB]."""
    rows = []
    with (
        Engine(profile()) as engine,
        Server(engine, Address("127.0.0.1", 0), folder=Path(tempfile.gettempdir())) as server,
        chromium() as browser,
    ):
        texts, row = told(server.url)
        watched = Watched(browser, server.url, LINE)
        for sample in range(samples):
            span = [round(60.0 * minutes * part / samples) for part in (sample, sample + 1)]
            watched.page.evaluate(PLAY, [texts, row, *span])
            rows.append((span[1], *watched.sizes()))
            tell(*rows[-1])
        assert watched.page.locator("#events li").count() == 40
    return rows


@pytest.mark.timeout(600)
def test_memory_stays_flat_over_what_takes_long():
    refuse_growth(played_faster(PLAYED, 9))


def main():
    """Measure for as long as is wanted, and print what was found."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--minutes", type=float, default=60.0)
    options.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.serve:
        serve()
        return
    print(f"played faster{'heap MB':>12}{'nodes':>8}{'page MB':>10}")
    played_faster(chosen.minutes, 12, lambda at, *row: print(f"{at:>11.0f} s{row[0]:>12.2f}{row[1]:>8}{row[2]:>10.1f}"))
    print(f"in real time {'heap MB':>12}{'nodes':>8}{'page MB':>10}{'server MB':>11}")

    def tell(at, heap, nodes, page, server):
        print(f"{at:>11.0f} s{heap:>12.2f}{nodes:>8}{page:>10.1f}{server:>11.1f}", flush=True)

    in_real_time(chosen.minutes, max(6, round(chosen.minutes)), tell)


if __name__ == "__main__":
    main()
