"""A case is a seed: it fixes the program and the schedule."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from dataclasses import dataclass

from checking import Failure, check
from memory_programs import memory_program
from programs import FAMILIES, Draw, Program
from random_programs import random_program
from reduction_programs import FAMILY as REDUCTIONS
from reduction_programs import reduction_program
from schedules import MAX_STEPS, Fuzzer, RecordingSchedule, RefusalChangedModule, Statistics, Unconfirmed, reason_of
from xdsl.ir import SSAValue

from weft import CompileError, ScheduleError
from weft.dialects import sched


@dataclass(frozen=True)
class Outcome:
    """What a case gave. `steps` are those of the whole schedule, kept for shrinking."""

    program: Program
    statistics: Statistics
    steps: tuple[sched.StepOp, ...]
    failure: Failure | None


RANDOM, MEMORY, EFFECTS = "random", "memory", "effects"
MAKERS = {
    **FAMILIES,
    RANDOM: random_program,
    MEMORY: memory_program,
    EFFECTS: lambda draw: memory_program(draw, effects=True),
    REDUCTIONS: reduction_program,
}


def family_of(seed: int) -> str:
    """Half of the seeds are random programs, the others take the families of `programs` in turn."""
    names = list(FAMILIES)
    return RANDOM if seed % 2 else names[seed // 2 % len(names)]


def family_in_campaign(seed: int) -> str:
    """Half of the seeds of a campaign are programs whose order matters, reductions every second of them."""
    return (MEMORY, REDUCTIONS)[seed // 2 % 2] if seed % 2 else family_of(seed // 2)


def make_program(family: str, seed: int) -> Program:
    """The program of a family that a seed stands for."""
    return MAKERS[family](Draw(seed))


def case_of(seed: int, family: str | None = None) -> tuple[Program, Fuzzer]:
    """The program and the schedule of a seed; raises whatever a step raises that is no refusal."""
    program = make_program(family or family_of(seed), seed)
    fuzzer = Fuzzer(program, seed)
    fuzzer.run(fuzzer.number(1, MAX_STEPS))
    return program, fuzzer


def run_case(seed: int, family: str | None = None) -> Outcome:
    """Draw a program (of the family of the seed, if no other is given) and a schedule, and check them."""
    program = make_program(family or family_of(seed), seed)
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
    name = f"{type(error).__name__} in {place.name}"
    if isinstance(error, RefusalChangedModule | Unconfirmed):
        name = "refused" if isinstance(error, RefusalChangedModule) else "refuted, but it did not happen"
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
        reason_of(error)
        return None


def outcome_of(program: Program, steps: Sequence[sched.StepOp], kept: Sequence[bool], seed: int) -> Failure | None:
    try:
        sch = replay_kept(program, steps, kept)
    except Exception as error:  # noqa: BLE001 - whatever is raised is the finding
        return _step_failure(error)
    return check(program, sch.mod, sch.trace, seed)
