"""Load for measurements: processes that compute, and a Python thread."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["burning"]

# Each process ends with its parent, however that ends, because its standard input closes.
BURN = """
import os, sys, threading
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
print(flush=True)
while True:
    pass
"""

# Ctrl-C must reach the measuring program only; each system ignores the other one's option.
APART: dict[str, Any] = {
    "start_new_session": True,
    "creationflags": getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
}


@contextmanager
def burning(processes: int | None = None) -> Iterator[None]:
    """Keep processors and the interpreter busy while a block runs.

    Parameters
    ----------
    processes : int, optional
        Number of processes; one per processor if not given.
    """
    count = processes if processes is not None else len(available_processors())
    done = threading.Event()

    def compute() -> None:
        while not done.is_set():
            sum(range(1000))

    thread = threading.Thread(target=compute, name="motioncue bench load", daemon=True)
    burners = []
    try:
        for _ in range(count):
            burners.append(
                subprocess.Popen([sys.executable, "-c", BURN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, **APART)
            )
        for burner in burners:
            assert burner.stdout is not None
            burner.stdout.readline()  # waits until it runs
        thread.start()
        yield
    finally:
        done.set()
        if thread.ident is not None:
            thread.join()
        for burner in burners:
            burner.kill()
            burner.communicate()


def available_processors() -> list[int]:
    """Return the processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))
