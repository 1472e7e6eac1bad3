"""Tuning on a Dask cluster of real worker processes: the same result, also if a worker is killed on the way."""

import os
import signal

import pytest

pytest.importorskip("distributed")
pytest.importorskip("cma")
pytest.importorskip("clarabel")
pytest.importorskip("platformdirs")

import distributed
from tune_helpers import UTIAS, driven, profile

from motioncue.errors import ConfigError
from motioncue.scoring import score as module
from motioncue.tuning.tune import tune

GIVEN = {"platform": "box-small", "parameters": ["surge", "sway.gain"], "evaluations": 40}

pytestmark = pytest.mark.search


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Keep best motions in a folder of the test."""
    monkeypatch.setattr(module, "cache_folder", lambda: tmp_path / "kept")


@pytest.mark.rt
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="a process is killed by a signal")
def test_a_cluster_finds_the_same_though_a_worker_is_killed():
    expected = tune(profile(UTIAS), [driven(5.0)], **GIVEN)
    killed = []
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
    ) as cluster:

        def kill(done, total, best):
            if done > 15 and not killed:
                with distributed.Client(cluster.scheduler_address, set_as_default=False) as client:
                    killed.append(next(iter(client.run(os.getpid).values())))
                os.kill(killed[0], signal.SIGKILL)

        found = tune(profile(UTIAS), [driven(5.0)], **GIVEN, dask=cluster.scheduler_address, progress=kill)
    assert len(killed) == 1
    assert found.changes == expected.changes
    assert found.sensitivities == expected.sensitivities
    assert found.course == expected.course


@pytest.mark.rt
def test_a_front_found_on_a_cluster_is_the_one_found_here():
    given = {**GIVEN, "evaluations": 12, "front": "use"}
    expected = tune(profile(UTIAS), [driven(4.0)], **given)
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
    ) as cluster:
        found = tune(profile(UTIAS), [driven(4.0)], **given, dask=cluster.scheduler_address)
    assert found.front == expected.front
    assert found.changes == expected.changes


def test_a_scheduler_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setattr("motioncue.tuning.evaluator.WAIT_S", 0.2)
    with pytest.raises(ConfigError, match=r"--dask: found no scheduler at 'tcp://127.0.0.1:9'"):
        tune(profile(UTIAS), [driven(4.0)], **GIVEN, dask="tcp://127.0.0.1:9")
