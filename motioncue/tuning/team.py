"""Who scores settings: this process, worker processes, or a Dask cluster; with the same outcomes."""

import multiprocessing
import pickle
import signal
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager

from motioncue.errors import ConfigError
from motioncue.tuning.judge import Judge, Outcome
from motioncue.tuning.search import Team

__all__ = ["team_of"]

WAIT_S = 10  # for a cluster to answer

_judge: Judge | None = None  # of a worker process


@contextmanager
def team_of(judge: Judge, workers: int = 1, cluster: str | None = None) -> Iterator[Team]:
    """Yield what scores settings, and end what it needed for that.

    Parameters
    ----------
    judge : Judge
        Scores one of them.
    workers : int
        Processes; with 1 it is this one.
    cluster : str, optional
        Address of a Dask scheduler, whose workers score instead.

    Raises
    ------
    ConfigError
        If Dask is missing, or there is no scheduler at that address.
    """
    if cluster is not None:
        with _cluster(judge, cluster) as team:
            yield team
    elif workers > 1:
        with _processes(judge, workers) as team:
            yield team
    else:
        yield lambda settings: [judge(values) for values in settings]


@contextmanager
def _processes(judge: Judge, workers: int) -> Iterator[Team]:
    """Yield what scores settings in processes of this machine."""
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, context, initializer=_begin, initargs=(pickle.dumps(judge),))
    try:
        yield lambda settings: list(pool.map(_score, settings))
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _begin(judge: bytes) -> None:
    """Begin a worker process; Ctrl-C is for the process that started it, also while the judge prepares its drives."""
    global _judge
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _judge = pickle.loads(judge)


def _score(values: Mapping[str, float]) -> list[Outcome]:
    assert _judge is not None
    return _judge(values)


@contextmanager
def _cluster(judge: Judge, address: str) -> Iterator[Team]:
    """Yield what scores settings on a Dask cluster.

    The judge is the result of a task there, so that it is made again if the worker that holds it is lost.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise ConfigError(f'--dask: {error.name} is missing: pip install "motioncue[dask]"') from error
    try:
        client = Client(address, timeout=WAIT_S, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ConfigError(f"--dask: found no scheduler at {address!r}: {error}") from error
    with client:
        make, given = judge.__reduce__()
        there = client.submit(make, *given, pure=False)

        def score(settings: Sequence[Mapping[str, float]]) -> list[list[Outcome]]:
            return list(client.gather(client.map(_asked, list(settings), judge=there, pure=False)))

        yield score


def _asked(values: Mapping[str, float], judge: Judge) -> list[Outcome]:
    return judge(values)
