"""Failing cases are shrunk to the steps and the blocks that matter, and written to files that can be run again."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from cases import Outcome, outcome_of, replay_kept
from checking import Failure, check
from intrinsics import register_intrinsics_in
from program_text import Binary, Buffer, Constant, Extent, Group, Guarded, ProgramText, Stage, Value, loads_of
from programs import Array, Draw, Program, Run
from random_programs import program_of

import weft
from weft.dialects import sched

CRASH = "crash"


@dataclass(frozen=True)
class Shrunk:
    """A case that fails as `outcome` does, of which only the `kept` steps run."""

    outcome: Outcome
    kept: list[bool]


def shrunk(outcome: Outcome, seed: int, stage: str | None = None) -> Shrunk:
    """Fewer steps, then smaller programs, as long as the same stage fails."""
    wanted = stage or (outcome.failure.stage if outcome.failure else "")
    kept = _fewer_steps(outcome, [True] * len(outcome.steps), seed, wanted)
    while (found := _smaller(outcome, kept, seed, wanted)) is not None:
        outcome, kept = found, _fewer_steps(found, kept, seed, wanted)
    return Shrunk(outcome, kept)


def _smaller(outcome: Outcome, kept: Sequence[bool], seed: int, wanted: str) -> Outcome | None:
    """The same steps on the first smaller program that fails like this one; only random programs have any."""
    if outcome.program.text is None:
        return None
    for text in smaller_programs(outcome.program.text):
        attempt = _with_program(outcome, text, seed)
        if attempt is not None and _fails(attempt, kept, seed, wanted):
            return attempt
    return None


def _fewer_steps(outcome: Outcome, kept: list[bool], seed: int, wanted: str) -> list[bool]:
    """Leave out steps, one after the other, last ones first."""
    if not _fails(outcome, kept, seed, wanted):
        return kept
    smaller = True
    while smaller:
        smaller = False
        for at in reversed(range(len(kept))):
            if kept[at]:
                attempt = [*kept[:at], False, *kept[at + 1 :]]
                if _fails(outcome, attempt, seed, wanted):
                    kept, smaller = attempt, True
    return kept


def _fails(outcome: Outcome, kept: Sequence[bool], seed: int, wanted: str) -> bool:
    """Whether the same stage fails with some of the steps."""
    if wanted == CRASH:
        return crashes(lambda: outcome_of(outcome.program, outcome.steps, kept, seed))
    found = outcome_of(outcome.program, outcome.steps, kept, seed)
    return found is not None and found.stage == wanted


def crashes(action: Callable[[], object]) -> bool:
    """Whether `action` kills the process that runs it."""
    child = os.fork()
    if child == 0:
        action()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def _with_program(outcome: Outcome, text: ProgramText, seed: int) -> Outcome | None:
    """The case with another program, None when that is not one."""
    try:
        program = program_of(text, Draw(seed))
    except (weft.CompileError, LookupError):
        return None
    return replace(outcome, program=replace(program, name=outcome.program.name))


def smaller_programs(text: ProgramText) -> Iterator[ProgramText]:
    """The program without a stage, with a stage's result as input, less in an expression, or plainer loops."""
    stages = text.stages()
    for stage in reversed(stages):
        rest = [other for other in stages if other is not stage]
        targets = set(stage.targets())
        alone = len(targets) == 1 and all(targets.isdisjoint(other.targets()) for other in rest)
        alone = alone and stage.target.memory not in text.updated
        if not rest:
            continue
        if (
            not alone
            or stage.target.memory in text.updated
            or all(load.buffer != stage.target for other in rest for load in other.loads())
        ):
            yield _rebuilt(text, lambda s, gone=stage: None if s is gone else s)
        else:
            yield _rebuilt(text, lambda s, gone=stage: None if s is gone else s, stage.target)
    for stage in stages:
        for value in _parts(stage.value):
            yield _rebuilt(text, lambda s, old=stage, new=value: replace(s, value=new) if s is old else s)
        for smaller in _fewer_stores(stage):
            yield _rebuilt(text, lambda s, old=stage, new=smaller: new if s is old else s)
        if stage.fused:
            yield _rebuilt(text, lambda s, old=stage: replace(s, fused=False) if s is old else s)
        if any(it.tile for it in stage.iters):
            iters = tuple(replace(it, tile=0) for it in stage.iters)
            yield _rebuilt(text, lambda s, old=stage, new=iters: replace(s, iters=new) if s is old else s)
        if stage.guards:
            yield _rebuilt(text, lambda s, old=stage: replace(s, guards=()) if s is old else s)
    if any(len(group.stages) > 1 for group in text.groups):
        yield replace(text, groups=tuple(Group((stage,)) for stage in stages))


def _fewer_stores(stage: Stage) -> Iterator[Stage]:
    """The stage without one of the stores besides its own, or with one less in what an init stores."""
    for at in range(len(stage.more)):
        yield replace(stage, more=(*stage.more[:at], *stage.more[at + 1 :]))
    if stage.more and not stage.start:
        first, *more = stage.more
        moved = replace(stage, target=first.target, indices=first.indices, value=first.value, combine=first.combine)
        yield replace(moved, conditions=first.conditions, more=tuple(more))
    for at, init in enumerate(stage.inits):
        others = (stage.inits[:at], stage.inits[at + 1 :])
        if len(stage.inits) > 1:
            yield replace(stage, inits=(*others[0], *others[1]))
        if init.conditions:
            yield replace(stage, inits=(*others[0], replace(init, conditions=()), *others[1]))
        if not isinstance(init.value, Constant):
            yield replace(stage, inits=(*others[0], replace(init, value=Constant(0)), *others[1]))
    if stage.conditions and stage.inits:
        yield replace(stage, conditions=())


def _parts(value: Value) -> Iterator[Value]:
    """The expression with one operation replaced by one of its operands."""
    if isinstance(value, Guarded):
        for part in _parts(value.value):
            yield Guarded(value.conditions, part)
    if isinstance(value, Binary):
        yield value.left
        yield value.right
        for part in _parts(value.left):
            yield Binary(value.op, part, value.right)
        for part in _parts(value.right):
            yield Binary(value.op, value.left, part)


def _rebuilt(text: ProgramText, change: Callable[[Stage], Stage | None], given: Buffer | None = None) -> ProgramText:
    """The program with other stages. `given` is an input then; what is not used any more goes."""
    groups = [[new for s in group.stages if (new := change(s)) is not None] for group in text.groups]
    stages = [stage for group in groups for stage in group]
    read = {name for stage in stages for name in _names_read(stage)}
    stored = {target.memory for stage in stages for target in stage.targets()}
    written = [b for b in (*text.outputs, *text.temporaries) if b != given and b.name in stored]
    inputs = [*text.inputs, *([] if given is None else [given])]
    needed = {next(b.name for b in inputs if Extent(0, s) in b.shape) for s in text.symbols}
    partial = {stage.target for stage in stages if stage.guards and stage.target.name not in text.updated}
    written += [b for b in text.outputs if b.name in text.updated and b.name in read and b not in written]
    outputs = [b for b in written if b in text.outputs or (b.name not in read and b not in partial)]
    used = read | {target.name for stage in stages for target in stage.targets()}
    return replace(
        text,
        inputs=tuple(b for b in inputs if b.name in read or b.name in needed),
        outputs=tuple(outputs),
        temporaries=tuple(b for b in written if b not in outputs),
        groups=tuple(Group(tuple(group)) for group in groups if group),
        aliases=tuple(b for b in text.aliases if b.name in used),
    )


def _names_read(stage: Stage) -> Iterator[str]:
    """The buffers that a stage reads for its value and for subscripts."""
    for store in (*stage.stores(), *stage.starts()):
        for load in loads_of(store.value):
            yield from (load.buffer.name, load.buffer.memory)
    for indices in (stage.indices, *(load.indices for load in stage.loads())):
        yield from (index.buffer.name for index in indices if hasattr(index, "buffer"))


def report(case: Shrunk, seed: int) -> str:
    """A failing case as a file: the program, the schedule that breaks it, and the arguments; `rerun` runs it."""
    outcome = case.outcome
    failure = outcome.failure or Failure(CRASH, "")
    head = [
        f"// seed {seed}, {outcome.program.name}: {failure.stage}",
        "// again: python tests/fuzz/run_fuzz.py --rerun THIS_FILE",
        f"// as drawn: python tests/fuzz/run_fuzz.py --cases 1 --jobs 1 --seed {seed}",
    ]
    trace, scheduled = _texts(outcome, case.kept)
    lines = [*head, *(str(op) for op in outcome.program.module.ops), trace]
    lines += [f"// scheduled: {line}" for line in scheduled.splitlines()]
    for number, run in enumerate(outcome.program.runs()):
        for role, arrays in (("input", run.inputs), ("expected", run.expected), ("initial", run.initial)):
            lines += [_array_line(number, role, array) for array in arrays]
    lines += [f"// {line}" for line in failure.detail.splitlines()]
    return "\n".join(lines) + "\n"


def _texts(outcome: Outcome, kept: list[bool]) -> tuple[str, str]:
    """The schedule, with the step that breaks as its last one if one does, and the scheduled module."""
    try:
        sch = replay_kept(outcome.program, outcome.steps, kept)
        return str(sch.trace), str(sch.mod)
    except Exception:  # noqa: BLE001 - a step that breaks is the last one that was kept
        last = max((at for at, keep in enumerate(kept) if keep), default=0)
        sch = replay_kept(outcome.program, outcome.steps, [keep and at != last for at, keep in enumerate(kept)])
        return f"{sch.trace!s}\n// then {outcome.steps[last]}", ""


_ARRAY = re.compile(r"// run (\d+) (input|expected|initial) (\w+) (\[[\d, ]*\]) = (.*)")


def _array_line(number: int, role: str, array: Array | None) -> str:
    if array is None:
        return f"// run {number} {role} none [] = null"
    return f"// run {number} {role} {array.dtype} {list(array.shape)} = {json.dumps(array.ravel().tolist())}"


def rerun(text: str) -> Failure | None:
    """Check a case that `report` wrote."""
    register_intrinsics_in(text)
    module = weft.parse(text)
    steps = next(op for op in module.ops if isinstance(op, sched.FuncOp))
    steps.detach()
    arrays: dict[tuple[int, str], list[Any]] = {}
    for number, role, dtype, shape, values in _ARRAY.findall(text):
        array = None if dtype == "none" else np.array(json.loads(values), dtype).reshape(json.loads(shape))
        arrays.setdefault((int(number), role), []).append(array)
    count = 1 + max((number for number, _ in arrays), default=-1)
    runs = [
        Run(*(tuple(arrays.get((at, role), ())) for role in ("input", "expected", "initial"))) for at in range(count)
    ]
    seed = int(re.search(r"// seed (\d+)", text)[1])  # type: ignore[index]
    first, exact = runs[0], "row_reduction" not in text
    program = Program("again", module, first.inputs, first.expected, exact, tuple(runs[1:]), initial=first.initial)
    sch = weft.Schedule(program.module)
    sch.replay(steps)
    return check(program, sch.mod, sch.trace, seed)
