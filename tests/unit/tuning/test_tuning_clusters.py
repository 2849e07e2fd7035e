"""Searches on workers of Dask and Ray that are killed, join late, or lose their scheduler: each trial counts once.

Workers and schedulers are real processes on this machine. Second tier.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from dask_cluster import DaskCluster

import weft
from weft import te
from weft.tuning.database import Database
from weft.tuning.evaluation import DEFAULT
from weft.tuning.executors import Fleet, opened_executor, worker_facts
from weft.tuning.measuring import Repeats
from weft.tuning.runner import WorkerLimits

TARGET = "llvm -num-threads=1"
QUICK = WorkerLimits(repeats=Repeats(most=3, seconds=0.0, repeat_seconds=1e-4))
TRIALS = 40

pytestmark = pytest.mark.slow


def matmul() -> weft.ModuleOp:
    a, b = (te.placeholder((32, 32), "float32", name=letter) for letter in "AB")
    k = te.reduce_axis((0, 32), name="k")
    return te.create_func([a, b, te.compute((32, 32), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")])


def tiles(sch: weft.Schedule) -> None:
    i, j, k = sch.get_loops("C")
    i0, i1 = sch.split(i, sch.sample_perfect_tile(i, n=2))
    j0, j1 = sch.split(j, sch.sample_perfect_tile(j, n=2))
    sch.reorder(*([i0, j0, k, i1, j1] if sch.get(sch.sample_categorical([0, 1], [0.5, 0.5])) else [i0, i1, k, j0, j1]))


def search(path: Path, at_trials: int, happens: Callable[[], object], executor: str, **options: object) -> None:
    """A search during which something happens once; afterwards each trial is recorded once, and none failed."""
    events = [happens]

    def progress(tuned: weft.Tuned) -> None:
        if tuned.num_trials >= at_trials and events:
            events.pop()()

    tuned = weft.tune(
        matmul(),
        space=tiles,
        trials=TRIALS,
        target=TARGET,
        database=path,
        limits=QUICK,
        executor=executor,
        progress=progress,
        **options,  # pyright: ignore[reportArgumentType]
    )
    assert not events and tuned.num_trials == TRIALS
    assert not [record.failure for record in tuned.tasks[0].trials if record.failure]
    with Database(path) as database:
        trials = [record for record in database.records() if record.origin != DEFAULT]
    assert sorted(r.decisions for r in trials) == sorted(r.decisions for r in tuned.tasks[0].trials)
    assert len({(r.trace, r.decisions) for r in trials}) == TRIALS


def test_a_worker_of_dask_is_killed_in_the_middle(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    with DaskCluster(tmp_path) as cluster:
        cluster.scheduler()
        first, _ = cluster.worker(), cluster.worker()
        executor = f"dask:{cluster.address}"
        search(tmp_path / "tune.db", 8, first.kill, executor, runner=executor, window=16)
        assert first.wait() == -signal.SIGKILL


def test_a_worker_of_dask_joins_late(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    with DaskCluster(tmp_path) as cluster:
        cluster.scheduler()
        first = cluster.worker()

        def replace() -> None:
            # There is no worker for a while: a second later there is one again.
            first.kill()
            threading.Timer(1.0, cluster.worker).start()

        search(tmp_path / "tune.db", 8, replace, f"dask:{cluster.address}", window=16)


def test_the_scheduler_of_dask_is_restarted(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    with DaskCluster(tmp_path) as cluster:
        scheduler = cluster.scheduler()
        cluster.worker()

        def restart() -> None:
            scheduler.kill()
            scheduler.wait()
            cluster.scheduler()
            cluster.worker()

        executor = f"dask:{cluster.address}"
        search(tmp_path / "tune.db", 8, restart, executor, runner=executor, window=16)


def test_calls_that_end_workers_of_dask_are_failures(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    with DaskCluster(tmp_path) as cluster:
        cluster.scheduler()
        for _ in range(5):
            cluster.worker()
        with opened_executor(f"dask:{cluster.address}", "executor") as fleet:
            assert isinstance(fleet, Fleet) and fleet.first_worker().machine == worker_facts().machine
            ended = fleet.submit(os._exit, 3).result(60)
            assert ended.kind == "crash" and "workers of dask:tcp://" in str(ended)
            with pytest.raises(weft.CompileError, match=r"dask:tcp:\S+: ZeroDivisionError: "):
                fleet.submit(divmod, 1, 0).result(60)
            assert fleet.submit(divmod, 7, 2).result(60) == (3, 1)


def test_a_scheduler_of_dask_that_does_not_come_back(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    with DaskCluster(tmp_path) as cluster:
        scheduler = cluster.scheduler()
        worker = cluster.worker()
        with opened_executor(f"dask:{cluster.address}", "executor") as fleet:
            assert isinstance(fleet, Fleet)
            fleet.first_worker()
            fleet._patience = 1.0
            worker.kill()
            waits = fleet.submit(divmod, 7, 2)
            scheduler.kill()
            with pytest.raises(weft.CompileError, match="has not answered for 1 s: the same command goes on"):
                waits.result(60)


@pytest.fixture(scope="module")
def ray_cluster():
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    yield cluster
    cluster.shutdown()


def test_a_node_of_ray_is_killed_and_one_joins_late(tmp_path: Path, ray_cluster) -> None:
    node = ray_cluster.add_node(num_cpus=1)

    def replace() -> None:
        ray_cluster.remove_node(node, allow_graceful=False)
        ray_cluster.add_node(num_cpus=1)

    executor = f"ray:{ray_cluster.address}"
    search(tmp_path / "tune.db", 8, replace, executor, runner=executor, window=16)


def test_calls_that_end_workers_of_ray_are_failures(ray_cluster) -> None:
    with opened_executor(f"ray:{ray_cluster.address}", "executor") as fleet:
        ended = fleet.submit(os._exit, 3).result(60)
        assert ended.kind == "crash" and "workers of ray:" in str(ended)
        with pytest.raises(weft.CompileError, match=r"ray:\S+: RayTaskError\S*: ZeroDivisionError: "):
            fleet.submit(divmod, 1, 0).result(60)
        assert fleet.submit(divmod, 7, 2).result(60) == (3, 1)
