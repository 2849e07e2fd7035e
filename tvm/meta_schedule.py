"""`tvm.meta_schedule`, by `weft.tune`."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, cast

from xdsl.dialects.builtin import ModuleOp

from weft.dialects.sched import FuncOp as TraceOp
from weft.driver.traces import trace_with_decisions
from weft.driver.tune import tune as _tune
from weft.driver.tuned import Tuned
from weft.driver.tuned_task import TunedTask
from weft.support.errors import CompileError
from weft.tvm.absent import refuses
from weft.tvm.script.printer import plain
from weft.tvm.target import spelling
from weft.tvm.tir.schedule import Schedule

_HEAD = "ID | Name | FLOP | Weight | Speed (GFLOPS) | Latency (us) | Weighted Latency (us) | Trials | Done"


@dataclass(frozen=True)
class ScheduleFn:
    """Schedules and samples, with weft's rules and without postprocessors."""

    sch_fn: Callable[[Schedule], Any]
    postprocs: object = ()
    sch_rules: object = ()


@dataclass(frozen=True)
class Database:
    tuned: Tuned
    is_own_space: bool

    def best(self, task: TunedTask) -> tuple[TraceOp, float]:
        """The fastest schedule's trace and time in seconds. In a user's space, the default schedule is the
        last resort."""
        measured = [record for record in task.trials if self.is_own_space and record.seconds is not None]
        record = min(measured or [task.best], key=lambda found: found.seconds or float("inf"))
        return trace_with_decisions(record.trace, record.decisions), record.seconds or 0.0

    def table(self) -> str:
        rows, total = [_HEAD, "-" * len(_HEAD)], 0.0
        for number, task in enumerate(self.tuned.tasks):
            name, flops, latency = task.workload.name, task.workload.flops, self.best(task)[1] * 1e6
            total += latency * task.calls
            speed = flops / latency / 1e3 if latency else 0.0
            numbers = f"{speed:.4f} | {latency:.4f} | {latency * task.calls:.4f} | {len(task.trials)}"
            rows.append(f"{number} | {name} | {flops} | {task.calls} | {numbers} | Y")
        return "\n".join((*rows, rows[1], f"Total trials: {self.tuned.num_trials}", f"Total latency (us): {total:.6g}"))


def tune_tir(
    mod: ModuleOp,
    target: Any,
    work_dir: str,
    max_trials_global: int,
    *,
    num_trials_per_iter: int = 64,
    space: ScheduleFn | Literal["post-order-apply"] = "post-order-apply",
    seed: int | None = None,
) -> Database:
    """Search schedules, and print tasks. Repeated searches resume from `work_dir`/tune.db.

    Raises `CompileError` as `weft.tune`.
    """
    if not isinstance(space, ScheduleFn) and space != "post-order-apply":
        raise CompileError(f"tune_tir: a space is ScheduleFn(function), or the default schedules', got {space!r}")
    Path(work_dir).mkdir(parents=True, exist_ok=True)
    tuned = _tune(
        plain(mod),
        space=cast("Callable[..., object]", space.sch_fn) if isinstance(space, ScheduleFn) else None,
        trials=max_trials_global,
        database=Path(work_dir) / "tune.db",
        seed=seed or 0,
        target=spelling(target),
    )
    found = Database(tuned, isinstance(space, ScheduleFn))
    print(found.table())
    return found


def compile_tir(database: Database, mod: ModuleOp, target: Any) -> Schedule:
    """Apply the fastest schedules."""
    schedule = Schedule(mod)
    for task in database.tuned.tasks:
        schedule.replay(database.best(task)[0])
    return schedule


def tune_relax(
    mod: ModuleOp, params: Any, target: Any, work_dir: str, max_trials_global: int, *, seed: int | None = None,
    **options: object,
) -> Path:  # fmt: skip
    """Returns the records of a search, `work_dir`/tune.db, with the model's parameters bound."""
    del options
    if params:
        mod = import_module("weft.tvm.relax.transform").BindParams("main", params)(mod)
    Path(work_dir).mkdir(parents=True, exist_ok=True)
    _tune(plain(mod), trials=max_trials_global, database=Path(work_dir) / "tune.db", seed=seed or 0,
          target=spelling(target))  # fmt: skip
    return Path(work_dir) / "tune.db"


def compile_relax(database: Path | str, mod: ModuleOp, target: Any, params: Any = None) -> Any:
    """Apply records of a search, or default schedules."""
    if params:
        mod = import_module("weft.tvm.relax.transform").BindParams("main", params)(mod)
    library = import_module("weft.driver.build").build(plain(mod), spelling(target), database=Path(database))
    return import_module("weft.tvm.relax.vm_build").Executable(import_module("weft.tvm.runtime.module").Module(library))


relax_integration = SimpleNamespace(tune_relax=tune_relax, compile_relax=compile_relax)
space_generator = SimpleNamespace(ScheduleFn=ScheduleFn)
tir_integration = SimpleNamespace(tune_tir=tune_tir, compile_tir=compile_tir)
__getattr__ = refuses(__name__)
