"""A case is a seed: it fixes the program and the schedule. Failing cases are shrunk to the steps that matter."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from checking import Failure, check
from programs import FAMILIES, Program, make_program
from schedules import MAX_STEPS, Fuzzer, RecordingSchedule, RefusalChangedModule, Statistics
from xdsl.ir import SSAValue

from weft import CompileError, ScheduleError
from weft.dialects import sched

CRASH = "crash"


@dataclass(frozen=True)
class Outcome:
    """What a case gave. `steps` are those of the whole schedule, kept for shrinking."""

    program: Program
    statistics: Statistics
    steps: tuple[sched.StepOp, ...]
    failure: Failure | None


def family_of(seed: int) -> str:
    names = list(FAMILIES)
    return names[seed % len(names)]


def run_case(seed: int) -> Outcome:
    """Draw a program and a schedule, and check them."""
    program = make_program(family_of(seed), seed)
    fuzzer = Fuzzer(program, seed)
    failure: Failure | None = None
    try:
        fuzzer.run(fuzzer.number(1, MAX_STEPS))
    except Exception as error:  # noqa: BLE001 - whatever is raised is the finding
        failure = _step_failure(error)
    steps = fuzzer.steps()
    if failure is None:
        failure = check(program, fuzzer.sch.mod, fuzzer.sch.trace, seed)
    return Outcome(program, fuzzer.statistics, steps, failure)


def _step_failure(error: Exception) -> Failure:
    place = traceback.extract_tb(error.__traceback__)[-1]
    name = "refused" if isinstance(error, RefusalChangedModule) else f"{type(error).__name__} in {place.name}"
    return Failure(f"step {name}", "".join(traceback.format_exception(error)))


def replay_kept(program: Program, steps: Sequence[sched.StepOp], kept: Sequence[bool]) -> RecordingSchedule:
    """Run some of the steps. The loops that a step left out would have given are the loops it was given."""
    sch = RecordingSchedule(program.module)
    known: dict[SSAValue, SSAValue] = {}
    for step, keep in zip(steps, kept, strict=True):
        recorded = _try(sch, step, known) if keep else None
        if recorded is not None:
            known.update(zip(step.results, recorded.results, strict=False))
            continue
        loops = [known[o] for o in step.operands if o in known and o.type == sched.LOOP]
        for at, result in enumerate(step.results):
            if loops and result.type == sched.LOOP:
                known[result] = loops[min(at, len(loops) - 1)]
    return sch


def _try(sch: RecordingSchedule, step: sched.StepOp, known: dict[SSAValue, SSAValue]) -> sched.StepOp | None:
    """Run a step if its handles are there and it is not refused."""
    if any(operand not in known for operand in step.operands):
        return None
    before = str(sch.mod)
    try:
        return sch.run_step(step.clone(value_mapper=dict(known)))
    except (ScheduleError, CompileError) as error:
        if str(sch.mod) != before:
            raise RefusalChangedModule(str(error)) from error
        return None


def outcome_of(program: Program, steps: Sequence[sched.StepOp], kept: Sequence[bool], seed: int) -> Failure | None:
    try:
        sch = replay_kept(program, steps, kept)
    except Exception as error:  # noqa: BLE001 - whatever is raised is the finding
        return _step_failure(error)
    return check(program, sch.mod, sch.trace, seed)


def shrink(outcome: Outcome, seed: int, stage: str | None = None) -> list[bool]:
    """Leave out steps, one after the other, last ones first, as long as the same stage fails."""
    wanted = stage or (outcome.failure.stage if outcome.failure else "")

    def fails(kept: Sequence[bool]) -> bool:
        if wanted == CRASH:
            return crashes(lambda: outcome_of(outcome.program, outcome.steps, kept, seed))
        found = outcome_of(outcome.program, outcome.steps, kept, seed)
        return found is not None and found.stage == wanted

    kept = [True] * len(outcome.steps)
    if not fails(kept):
        return kept
    smaller = True
    while smaller:
        smaller = False
        for at in reversed(range(len(kept))):
            if kept[at]:
                attempt = [*kept[:at], False, *kept[at + 1 :]]
                if fails(attempt):
                    kept, smaller = attempt, True
    return kept


def crashes(action: Callable[[], object]) -> bool:
    """Whether `action` kills the process that runs it."""
    child = os.fork()
    if child == 0:
        action()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def report(outcome: Outcome, seed: int, kept: Sequence[bool]) -> str:
    """A failing case as a file: the program and the schedule that breaks it."""
    failure = outcome.failure or Failure(CRASH, "")
    text = [f"// seed {seed}, {outcome.program.name}: {failure.stage}"]
    try:
        sch = replay_kept(outcome.program, outcome.steps, kept)
        trace, broken = str(sch.trace), sch.attempt
        scheduled = str(sch.mod)
    except Exception:  # noqa: BLE001 - the step that breaks is the last one
        sch = replay_kept(outcome.program, outcome.steps, [*kept[:-1], False])
        trace, broken, scheduled = str(sch.trace), outcome.steps[-1], ""
    text += [str(outcome.program.module), trace]
    if broken is not None and failure.stage.startswith("step"):
        text.append(f"// then {broken}")
    if scheduled:
        text += ["// scheduled:", *(f"// {line}" for line in scheduled.splitlines())]
    text += [f"// {line}" for line in failure.detail.splitlines()]
    return "\n".join(text) + "\n"
