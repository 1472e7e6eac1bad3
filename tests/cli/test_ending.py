"""A program that runs an engine leaves the platform at neutral, however it ends: what a platform's socket was sent."""

import signal
import socket
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from helpers import Sink, eventually, free_port, stream_url
from programs import STREAM, SURGE, Feeder, Program
from test_cli_signals import neutral, surge_of

pytestmark = [
    pytest.mark.rt,
    pytest.mark.skipif(sys.platform == "win32", reason="signals and forks of POSIX; the same kernel everywhere"),
]

FADE_S = 0.5

BEGINNING = """
import atexit, gc, os, signal, sys, threading, time
import motioncue

def make(*more):
    return motioncue.Engine(motioncue.load_profile("ccd-dk", *{keys}, *more))

def moving(engine):
    newest = engine.newest
    while newest()["weight"][0] < 1.0 or newest()["cue"]["surge"][0] < 2.9:
        time.sleep(0.01)
    print("moving", flush=True)

"""


class Installation:
    """A sink for motion, a simulator at full surge, and programs that run an engine between them."""

    def __init__(self, folder, motion):
        self.folder, self.motion, self.url, self.processes = folder, motion, stream_url(STREAM, folder), []

    def run(self, program, *, fade_s=FADE_S):
        """Start a program, which may `make` an engine and wait until it is `moving`."""
        gauges = f"udp://127.0.0.1:{free_port(socket.SOCK_DGRAM)}"
        keys = [
            f"source.endpoint={self.url}", f"supervisor.fade_s={fade_s}", "supervisor.hold_s=5",
            f"output.motion={self.motion.url}", f"output.gauges={gauges}",
        ]  # fmt: skip
        path = self.folder / "program.py"
        path.write_text(BEGINNING.format(keys=keys) + textwrap.dedent(program))
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        process = subprocess.Popen([sys.executable, path], **pipes)
        self.processes.append(process)
        return process

    def surge(self):
        return surge_of(self.motion.packets[-1:])[0] if self.motion.packets else 0.0

    def assert_faded(self, fade_s=FADE_S):
        """Assert that the platform had the whole cue and then went to neutral, without a step."""
        step = 15 / 8 * SURGE * 3.00003e-3 / fade_s * (1 + 1e-6)  # the fade's largest, from packet to packet
        surge = surge_of(self.motion.packets)
        assert surge.max() == SURGE
        assert neutral(self.motion.packets[-1])
        assert np.abs(np.diff(surge[np.flatnonzero(surge == SURGE)[-1] :])).max() <= step


@pytest.fixture
def installed(tmp_path):
    with Sink() as motion:
        it = Installation(tmp_path, motion)
        try:
            with Feeder(it.url):
                yield it
        finally:
            for process in it.processes:
                process.kill()
                process.communicate()


def ended(process, status=0):
    out, err = process.communicate(timeout=60)
    assert process.returncode == status, err
    return out, err


ENDS = {
    "never stopped": "engine = make().start(); moving(engine)",
    "deleted": "engine = make().start(); moving(engine); del engine; gc.collect()",
    "in a function": """
        def begin():
            engine = make().start(); moving(engine)
        begin(); gc.collect()""",
    "sys.exit": "engine = make().start(); moving(engine); sys.exit(0)",
    "sys.exit within": "with make() as engine: moving(engine); sys.exit(0)",
    "sys.exit in a thread": """
        with make() as engine:
            moving(engine)
            thread = threading.Thread(target=sys.exit); thread.start(); thread.join()""",
    "exception in a thread": """
        def fail(): raise ValueError('in a thread')
        engine = make().start(); moving(engine)
        thread = threading.Thread(target=fail); thread.start(); thread.join()""",
    "engine of a daemon thread": """
        ready = threading.Event()
        def use():
            with make() as engine:
                moving(engine); ready.set(); time.sleep(60)
        threading.Thread(target=use, daemon=True).start(); ready.wait()""",
    "begun to stop": "engine = make().start(); moving(engine); engine.stop(wait=False)",
    "handler at exit": """
        engine = make().start(); moving(engine)
        atexit.register(lambda: time.sleep(0.1)); atexit.register(lambda: 1 / 0)""",
    "a full disk": """
        import resource
        engine = make(f'record.file={sys.argv[0]}.mcap').start(); moving(engine)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)); time.sleep(1.5)""",
    "a log that fails": """
        import logging
        class Fails(logging.Handler):
            def emit(self, record): raise RuntimeError
        logging.getLogger('motioncue').addHandler(Fails())
        engine = make().start(); moving(engine)""",
}


@pytest.mark.parametrize("how", ENDS)
def test_a_program_that_ends_fades(installed, how):
    ended(installed.run(ENDS[how]))
    installed.assert_faded()


def test_an_exception_within_fades_and_is_raised(installed):
    _, err = ended(installed.run("with make() as engine: moving(engine); raise ValueError('mine')"), 1)
    assert err.endswith("ValueError: mine\n")
    installed.assert_faded()


WITHIN = """
with make() as engine:
    moving(engine)
    time.sleep(60)
"""

NOTEBOOK = """
def cell(text):
    try: exec(compile(text, 'cell', 'exec'), globals())  # of a text, exec would end the process with the signal
    except KeyboardInterrupt: print('interrupted', flush=True)
cell('with make() as engine:\\n    moving(engine)\\n    time.sleep(60)')
left = [thread.name for thread in threading.enumerate() if thread.name.startswith('motioncue')]
print(left, flush=True)
"""


@pytest.mark.parametrize("count", [1, 2, 3, 20])
def test_an_interrupt_however_often_comes_behind_the_fade(installed, count):
    process = installed.run(WITHIN)
    assert process.stdout.readline() == "moving\n"
    process.send_signal(signal.SIGINT)
    for number in range(1, count):
        eventually(lambda at=SURGE * (1 - number / (count + 1)): installed.surge() <= at)
        process.send_signal(signal.SIGINT)
    _, err = ended(process, -signal.SIGINT)
    assert "KeyboardInterrupt" in err
    installed.assert_faded()


def test_an_interrupt_of_the_exit_comes_behind_the_fade(installed):
    process = installed.run("engine = make().start(); moving(engine)")
    assert process.stdout.readline() == "moving\n"
    eventually(lambda: installed.surge() < SURGE)
    for part in (0.7, 0.4, 0.1):
        eventually(lambda at=SURGE * part: installed.surge() <= at)
        process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    installed.assert_faded()


def test_a_notebook_that_is_interrupted_twice_has_no_threads_left(installed):
    process = installed.run(NOTEBOOK, fade_s=3.0)
    assert process.stdout.readline() == "moving\n"
    process.send_signal(signal.SIGINT)
    eventually(lambda: installed.surge() < 0.9 * SURGE)
    process.send_signal(signal.SIGINT)
    out, _ = ended(process)
    assert out.splitlines()[0] == "interrupted"
    assert out.splitlines()[1] == "[]"
    installed.assert_faded(3.0)


HANDLER = """
def leave(number, frame): sys.exit(3)
signal.signal(signal.SIGTERM, leave)
"""


def test_a_handler_that_exits_fades_also_at_its_second_signal(installed):
    process = installed.run(HANDLER + WITHIN)
    assert process.stdout.readline() == "moving\n"
    process.send_signal(signal.SIGTERM)
    eventually(lambda: installed.surge() < 0.5 * SURGE)
    process.send_signal(signal.SIGTERM)
    ended(process, 3)
    installed.assert_faded()


def assert_left(packets, leave_s):
    """Assert that it took no longer to neutral than the system leaves."""
    surge = surge_of(packets)
    tail = surge[np.flatnonzero(surge == SURGE)[-1] :]
    assert np.count_nonzero(tail) * 3.00003e-3 <= leave_s


def test_a_handler_may_hurry(installed):
    """A fade of four seconds, cut to leave_s by whoever ends the program."""
    process = installed.run("""
        signal.signal(signal.SIGTERM, lambda *_: (engine.stop(leave=True), sys.exit(3)))
        with make('supervisor.leave_s=1') as engine:
            moving(engine)
            time.sleep(60)
    """, fade_s=4.0)  # fmt: skip
    assert process.stdout.readline() == "moving\n"
    process.send_signal(signal.SIGTERM)
    ended(process, 3)
    installed.assert_faded(0.5)
    assert_left(installed.motion.packets, 1.0)


@pytest.mark.check
@pytest.mark.parametrize("ending", ["SIGTERM", "SIGHUP"])  # by name: Windows has only one of them
@pytest.mark.parametrize(
    "start",
    ["with make('supervisor.leave_s=1') as engine:", "engine = make('supervisor.leave_s=1').start()\nif True:"],
)
def test_a_program_that_the_system_ends_is_at_rest_in_time(installed, ending, start):
    """One that knows nothing of signals, with a fade of four seconds; a child that it has forked dies as ever."""
    ending = signal.Signals[ending]
    process = installed.run(f"""
{start}
    moving(engine)
    waits, asleep = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(asleep, b"s"), time.sleep(60), os._exit(0)
    os.read(waits, 1)
    os.kill(child, {ending:d})
    assert os.waitpid(child, 0)[1] == {ending:d}
    print("alone", flush=True)
    time.sleep(60)
""", fade_s=4.0)  # fmt: skip
    assert [process.stdout.readline() for _ in range(2)] == ["moving\n", "alone\n"]
    assert installed.surge() == SURGE
    process.send_signal(ending)
    ended(process, 128 + ending)
    installed.assert_faded(0.5)
    assert_left(installed.motion.packets, 1.0)


LOOSE = "if engine := make('supervisor.leave_s=1').start():"  # what ends it is the interpreter's exit


@pytest.mark.check
@pytest.mark.parametrize("ordinary", ["engine.stop()", "sys.exit(0)"])
@pytest.mark.parametrize("start", ["with make('supervisor.leave_s=1') as engine:", LOOSE])
def test_a_program_that_the_system_ends_in_its_ordinary_end_is_at_rest_in_time(installed, start, ordinary):
    """A fade of four seconds is under way, of which its handlers of signals know nothing until it is over."""
    process = installed.run(f"""
{start}
    moving(engine)
    {ordinary}
""", fade_s=4.0)  # fmt: skip
    assert process.stdout.readline() == "moving\n"
    eventually(lambda: installed.surge() < 0.95 * SURGE)
    process.send_signal(signal.SIGTERM)
    ended(process, 0 if start == LOOSE and "exit" in ordinary else 128 + signal.SIGTERM)
    installed.assert_faded(0.5)
    assert_left(installed.motion.packets, 2.5)  # leave_s, and what it took to see that it fades


@pytest.mark.check
@pytest.mark.parametrize("ending", ["SIGTERM", "SIGHUP"])
@pytest.mark.parametrize("late", [False, True], ids=["first", "in_an_ordinary_fade"])
def test_a_run_that_the_system_ends_is_at_rest_in_time(installed, ending, late):
    keys = [
        f"source.endpoint={installed.url}", "supervisor.fade_s=4", "supervisor.leave_s=1", "supervisor.hold_s=5",
        f"output.motion={installed.motion.url}", f"output.gauges=udp://127.0.0.1:{free_port(socket.SOCK_DGRAM)}",
    ]  # fmt: skip
    with Program("run", *(word for key in keys for word in ("--set", key)), "--json") as run:
        eventually(lambda: installed.surge() == SURGE)
        if late:
            run.signal(signal.SIGINT)
            eventually(lambda: installed.surge() < SURGE)
        run.signal(getattr(signal, ending))
        stats = run.end()
        packets = installed.motion.all(stats["packets_sent"])
    installed.assert_faded(0.5)
    assert_left(packets, 1.0 + late * 1.0)  # and what it took to see that it fades


@pytest.mark.parametrize("how", ["sys.exit(0)", "engine.stop(); sys.exit(0)", "engine.park(); sys.exit(0)"])
@pytest.mark.parametrize("start", ["with make() as engine:", "engine = make().start()\nif True:"])
def test_a_forked_child_ends_without_the_platform(installed, how, start):
    """The parent goes on at full surge until the child has ended, however that does."""
    process = installed.run(f"""
{start}
    moving(engine)
    child = os.fork()
    if child == 0:
        {how}
    began = engine.stats()['packets_sent']
    assert os.waitpid(child, 0)[1] == 0
    while engine.stats()['packets_sent'] < began + 100: time.sleep(0.01)
    assert engine.newest()['cue']['surge'][0] > 2.9
    assert engine.stats()['state'] == 'RUNNING'
""")
    out, _ = ended(process)
    assert out == "moving\n"
    installed.assert_faded()


def test_two_engines_of_a_program_fade_side_by_side(installed, tmp_path):
    with Sink() as other:
        (tmp_path / "two").mkdir()
        url = stream_url(STREAM, tmp_path / "two")
        with Feeder(url):
            ended(
                installed.run(f"""
                    two = make('source.endpoint={url}', 'output.motion={other.url}', 'output.gauges=udp://127.0.0.1:9').start()
                    engine = make().start(); moving(engine); moving(two)""")
            )
        installed.assert_faded()
        installed.motion = other
        installed.assert_faded()


def test_a_wait_for_rest_is_bounded(installed):
    """As if the platform never came to rest: packets stop, endpoints are closed, the log says so, the program ends."""
    _, err = ended(
        installed.run("""
            engine = make().start(); moving(engine)
            engine.retune('supervisor.fade_s=60')
            while engine.profile.supervisor.fade_s < 60: time.sleep(0.01)
            engine._ending.patience_s = 0.3
            engine.stop()
            print([thread.name for thread in threading.enumerate() if thread.name.startswith('motioncue')])
        """)
    )
    assert "not at rest in time" in err
    assert 0.9 * SURGE < installed.surge() <= SURGE


@pytest.mark.parametrize("at_once", ["os._exit(5)", "os.kill(os.getpid(), signal.SIGQUIT)"])
def test_who_means_it_stops_at_once(installed, at_once):
    """Leaves the platform in mid-cue, as docs/safety.md says."""
    process = installed.run(f"engine = make().start(); moving(engine); {at_once}")
    process.communicate(timeout=60)
    assert process.returncode in (5, -signal.SIGQUIT)
    assert installed.surge() == SURGE
