"""The slot between the loops: the newest value, never torn, and events in order."""

import os
import shutil
import subprocess
import threading

import pytest
from helpers import LINUX_PROGRAMS, compiled
from hypothesis import given
from hypothesis import strategies as st


@pytest.fixture
def handover(probe):
    return probe.Handover()


@pytest.fixture
def queue(probe):
    return probe.Queue()


def together(*functions):
    """Run functions at the same time; return their results."""
    results = [None] * len(functions)

    def call(index):
        results[index] = functions[index]()

    threads = [threading.Thread(target=call, args=(index,)) for index in range(len(functions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_an_empty_slot_gives_nothing(handover):
    assert handover.read() is None


@given(steps=st.lists(st.booleans(), max_size=200))
def test_a_read_gives_the_newest_value_once(probe, steps):
    handover = probe.Handover()
    newest, unread = 0, False
    for number, write in enumerate(steps, start=1):
        if write:
            handover.write(number)
            newest, unread = number, True
        else:
            assert handover.read() == (newest if unread else None)
            unread = False
        assert sorted(handover.owners()) == [0, 1, 2]  # a copy never has two owners


@pytest.mark.rt
def test_a_reader_beside_a_writer_sees_whole_values_in_order_and_the_last_one(handover):
    n = 2_000_000
    _, (reads, torn, back, last) = together(lambda: handover.write_many(n), handover.read_many)
    assert torn == 0
    assert back == 0
    assert last == n
    assert 1 <= reads <= n


def test_events_come_out_as_they_went_in(queue):
    assert queue.read() is None
    for number in range(5):
        queue.write(number, 10 + number, -number)
    assert [queue.read() for _ in range(6)] == [*((n, 10 + n, -n) for n in range(5)), None]
    assert queue.lost == 0


def test_a_full_queue_keeps_the_oldest_events_and_counts_the_rest(probe, queue):
    for number in range(probe.ROOM + 7):
        queue.write(number, 0, 0)
    assert queue.lost == 7
    assert [queue.read()[0] for _ in range(probe.ROOM)] == list(range(probe.ROOM))
    assert queue.read() is None
    queue.write(99, 1, 2)
    assert queue.read() == (99, 1, 2)


@given(steps=st.lists(st.integers(-50, 50), max_size=60))
def test_the_queue_is_a_bounded_first_in_first_out(probe, steps):
    queue, model, lost, number = probe.Queue(), [], 0, 0
    for step in steps:
        for _ in range(abs(step) * 8):
            if step > 0:
                number += 1
                queue.write(number, number, number)
                if len(model) < probe.ROOM:
                    model.append(number)
                else:
                    lost += 1
            else:
                event = queue.read()
                assert (event[0] if event else None) == (model.pop(0) if model else None)
    assert queue.lost == lost


@pytest.mark.rt
def test_events_read_beside_a_writer_are_whole_in_order_and_all_accounted_for(queue):
    n = 500_000
    _, (reads, broken, back) = together(lambda: queue.write_many(n), queue.read_many)
    assert broken == 0
    assert back == 0
    assert reads + queue.lost == n


# The sanitizer's silence proves nothing unless it finds the race that is built in on purpose.


def sanitized(program, *arguments):
    """Run a program that was built with the sanitizer, with addresses where it expects them."""
    plain = [] if shutil.which("setarch") is None else ["setarch", os.uname().machine, "-R"]
    environment = {**os.environ, "TSAN_OPTIONS": "exitcode=66"}
    return subprocess.run([*plain, program, *arguments], capture_output=True, text=True, env=environment, timeout=100)


@pytest.fixture
def sanitizer(tmp_path):
    """Skip where a program without threads does not survive -fsanitize=thread."""
    source = tmp_path / "empty.c"
    source.write_text("int main(void) { return 0; }\n")
    made = subprocess.run(["gcc", "-fsanitize=thread", source, "-o", tmp_path / "empty"], capture_output=True)
    if made.returncode != 0 or sanitized(tmp_path / "empty").returncode != 0:
        pytest.skip("gcc has no -fsanitize=thread that works here")
    # Newer compilers copy memory in place, where the sanitizer does not see it: the library's function is watched.
    return "-O1", "-g", "-fno-builtin", "-fsanitize=thread"


@LINUX_PROGRAMS
@pytest.mark.rt
def test_the_slot_and_the_event_queue_have_no_race(tmp_path, sanitizer):
    done = sanitized(compiled(tmp_path, "slot", *sanitizer), "200000")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("200000 written, ")


@LINUX_PROGRAMS
@pytest.mark.rt
def test_the_sanitizer_detects_a_relaxed_exchange(tmp_path, sanitizer):
    done = sanitized(compiled(tmp_path, "slot", "-DWEAK", *sanitizer), "20000")
    assert done.returncode != 0
    assert "data race" in done.stderr
    assert "words_read" in done.stderr
