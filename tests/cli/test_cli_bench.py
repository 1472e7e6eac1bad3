"""``motioncue bench``: what it prints, what it writes, what it refuses."""

import errno
import html.parser
import json
import os
import signal
import socket
import subprocess
import sys

import pytest
from click.testing import CliRunner
from rich.console import Console

from motioncue import load_profile
from motioncue.bench.measure import Plan, measure
from motioncue.bench.report import write_report
from motioncue.cli import bench, cli
from motioncue.cli.terminal import ASCII, SMOOTH
from motioncue.errors import ConfigError

TINY = Plan(rates_hz=(1000.0,), pairs=1, block_s=0.05, latency_pairs=1, frames=10)
QUANTILES = ["p50", "p99", "p999", "max"]
RESULT = {
    *("motioncue", "machine", "profile", "settings", "granted", "pacing", "latency", "cost_ns"),
    *("absent", "verdict", "advice", "duration_s"),
}

pytestmark = pytest.mark.rt


@pytest.fixture(scope="module")
def result():
    steps = []
    found = measure(load_profile("ccd-dk-classical"), TINY, lambda share, what: steps.append((share, what)))
    assert [what for _, what in steps] == [
        *("what a tick costs", "1000 Hz, idle", "latency, idle", "1000 Hz, loaded", "latency, loaded")
    ]
    assert [share for share, _ in steps] == [0.0, 0.0, 0.25, 0.5, 0.75]
    return found


def test_a_measurement_holds_everything_that_was_asked_for(result):
    assert set(result) == RESULT
    assert [(row["rate_hz"], row["load"]) for row in result["pacing"]] == [(1000.0, "idle"), (1000.0, "loaded")]
    for row in result["pacing"]:
        for loop in ("emitter", "bare"):
            assert list(row[loop]["lateness_us"]) == list(row[loop]["interval_error_us"]) == QUANTILES
            assert row[loop]["ticks"] == 50
            assert sum(row["histogram"][loop]) == 50
        assert len(row["histogram"]["from_us"]) == len(row["histogram"]["bare"])
    for row in result["latency"]:
        assert [list(row[key]) for key in ("published_us", "shown_us", "bare_us")] == [QUANTILES] * 3
        assert list(row["lost"]) == ["engine", "bare"]  # on a busy machine the system may drop some
        assert all(0 <= lost < row["frames"] for lost in row["lost"].values())
    assert all(cost > 0 for cost in result["cost_ns"].values())
    assert list(result["verdict"]) == ["1000"]
    assert ("cyclictest" in result["absent"]) == (result["pacing"][0]["cyclictest"] is None)
    json.dumps(result, allow_nan=False)


class Text(html.parser.HTMLParser):
    """Keeps the words of a page, and fails on an end tag that nothing began."""

    def __init__(self, page):
        super().__init__()
        self.words, self.open = [], []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert tag in self.open

    def handle_data(self, data):
        self.words.append(data)


def test_a_page_says_what_the_terminal_says_and_needs_nothing_else(result, tmp_path):
    path = tmp_path / "machine.html"
    hostile = {**result, "machine": {**result["machine"], "processor": "<script>alert(1)</script>"}}
    write_report(hostile, path)
    page = path.read_text(encoding="utf-8")
    assert "http" not in page
    assert "<script>" not in page
    words = " ".join(Text(page).words)
    for said in (result["verdict"]["1000"]["words"], "<script>alert(1)", "1000 Hz, idle: bare loop", *result["advice"]):
        assert said in words
    assert page.count("<svg") == 2
    assert "nan" not in page.lower()


def test_a_picture_is_one(result, tmp_path):
    path = tmp_path / "machine.png"
    write_report(result, path)
    assert path.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


def test_what_is_printed_fits_a_terminal_of_eighty_columns(result, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(bench, "console", lambda: Console(width=80, color_system=None, legacy_windows=False))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    worst = {"p50": 12.3, "p99": 1234.0, "p999": 999_400.0, "max": 12_340.0}
    both = [{**row, "rate_hz": 333.33, "cyclictest": {"lateness_us": worst}} for row in result["pacing"]]
    for row in both:
        row["emitter"] = {**row["emitter"], "lateness_us": worst, "interval_error_us": worst, "skipped": 1_234_567}
    latency = [{**row, "rate_hz": 333.33, "published_us": worst} for row in result["latency"]]
    bench.show({**result, "pacing": both, "latency": latency})
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80, max(lines, key=len)
    assert "1234567" in " ".join(lines)


@pytest.mark.parametrize("glyphs", [SMOOTH, ASCII])
def test_histograms_show_every_tick_and_nothing_else(result, glyphs):
    row = {**result["pacing"][0]}
    edges = row["histogram"]["from_us"]
    counts = [0] * len(edges)
    counts[edges.index(10.0)], counts[edges.index(20.0)] = 49, 1
    row["histogram"] = {"from_us": edges, "emitter": counts, "bare": counts}
    lines = bench.histogram_lines([row], glyphs)
    full, thin = ("#", ".") if glyphs is ASCII else ("█", "▏")
    assert len(lines) == 4
    assert lines[2].split() == ["10.0", "µs", full * bench.BAR, "98", "%", full * bench.BAR, "98", "%"]
    assert lines[3].split() == ["20.0", "µs", thin, "2", "%", thin, "2", "%"]


def test_a_terminal_without_block_characters_is_enough(result, monkeypatch, capsys):
    monkeypatch.setattr(bench, "console", lambda: Console(width=60, legacy_windows=False))
    monkeypatch.setattr(bench, "glyphs_of", lambda console: ASCII)
    bench.show(result)
    printed = capsys.readouterr().out
    printed.encode("ascii")
    assert "verdict" in printed
    assert "1000 Hz: " in printed


def test_the_last_line_is_the_result_and_the_file_is_written(monkeypatch, tmp_path):
    monkeypatch.setattr(bench, "QUICK", TINY)
    report = tmp_path / "machine.html"
    done = CliRunner().invoke(
        cli, ["bench", "--quick", "--json", "--report", str(report), "--set", "output.spin_us=50"]
    )
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout.splitlines()[-1], parse_constant=pytest.fail)
    assert set(found) == RESULT
    assert found["settings"]["spin_us"] == 50.0
    assert "A quick look" in done.stdout
    assert "  0 %  what a tick costs" in done.stderr
    assert report.exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_before_the_next_step_with_a_word_and_no_result(number, monkeypatch, tmp_path):
    began = []

    def measure(profile, plan, progress):
        progress(0.0, "the first step")
        signal.raise_signal(number)
        began.append("whatever the signal came in the middle of is done")
        progress(0.5, "the second step")
        pytest.fail("goes on")

    monkeypatch.setattr(bench, "measure", measure)
    report = tmp_path / "machine.html"
    done = CliRunner().invoke(cli, ["bench", "--json", "--report", str(report)])
    assert began
    assert done.exit_code == 128 + number
    assert done.stderr.splitlines() == [
        *("  0 %  the first step", "ended by a signal before everything was measured: there is no result")
    ]
    assert done.stdout == ""
    assert not report.exists()


# Says when the load is there, then waits for the signal that everything of its terminal gets.
LOADED = """
import signal, time
from motioncue.bench.pacing import burning
came = []
signal.signal(signal.SIGINT, lambda *_: came.append(True))
with burning(2):
    print("burning", flush=True)
    while not came:
        time.sleep(0.01)
"""


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="signals a process group")
def test_a_load_does_not_hear_what_interrupts_the_measurement():
    with subprocess.Popen(
        [sys.executable, "-c", LOADED], stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    ) as program:
        assert program.stdout.readline() == b"burning\n"
        os.killpg(program.pid, signal.SIGINT)
        _, said = program.communicate(timeout=60)
    assert (program.returncode, said) == (0, b"")


def test_a_machine_that_does_not_hear_itself_is_refused_in_one_line(monkeypatch):
    def nowhere(sock, data, address):
        raise OSError(errno.ENETUNREACH, os.strerror(errno.ENETUNREACH))

    monkeypatch.setattr(socket, "socket", type("Cut", (socket.socket,), {"sendto": nowhere}))
    done = CliRunner().invoke(cli, ["bench", "--quick"])
    assert done.exit_code == 2
    assert "error: udp://127.0.0.1: cannot send to this machine itself: " in done.stderr
    assert os.strerror(errno.ENETUNREACH) in done.stderr
    assert "Traceback" not in done.stderr


def test_a_thread_that_cannot_be_stopped_does_not_keep_the_process():
    done = subprocess.run([sys.executable, "-c", UNSTOPPABLE], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr.endswith("ZeroDivisionError: division by zero\n")


UNSTOPPABLE = """
import threading
from motioncue.bench.pacing import running
with running(threading.Event().wait, lambda: 1 / 0):
    pass
"""


@pytest.mark.parametrize("name", ["machine.pdf", "machine", ".html"])
def test_a_report_that_cannot_be_is_refused_before_anything_is_measured(name, monkeypatch):
    monkeypatch.setattr(bench, "measure", pytest.fail)
    done = CliRunner().invoke(cli, ["bench", "--report", name])
    assert done.exit_code == 2
    assert f"found {name!r}, allowed are names that end in .html or .png" in done.stderr


def test_a_file_that_cannot_be_written_is_one_line(result, tmp_path):
    with pytest.raises(ConfigError, match="cannot be written"):
        write_report(result, tmp_path / "not" / "there.html")


@pytest.mark.slow
def test_a_quick_look_runs_as_a_command_of_its_own():
    done = subprocess.run(
        [sys.executable, "-m", "motioncue", "bench", "--quick", "--json"],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        timeout=110,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1], parse_constant=pytest.fail)
    assert list(found["verdict"]) == ["333.33", "1000"]
    assert "Traceback" not in done.stderr
