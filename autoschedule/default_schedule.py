"""The default schedule of a module, and the pass default-schedule."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.dialects.utils.fast_math import FastMathFlag
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from weft.analysis.block_patterns import BlockPattern, pattern_of
from weft.analysis.block_scopes import (
    child_blocks,
    find_block_or_root,
    function_of,
    functions,
    is_plain,
    why_not_plain,
)
from weft.autoschedule.blocked_convolution import blocked_convolution
from weft.autoschedule.concatenation import concatenation
from weft.autoschedule.contraction import contraction, vector_times_matrix
from weft.autoschedule.convolution import direct_convolution
from weft.autoschedule.dot_products import dot_products
from weft.autoschedule.executor import PlannedRule
from weft.autoschedule.filter_convolution import filter_convolution
from weft.autoschedule.grouped_products import grouped_products
from weft.autoschedule.inlining import inline_producer
from weft.autoschedule.kernels import (
    in_one_thread,
    inner_loops_for_thread,
    reduction_for_block,
    result_for_thread,
    rows_for_blocks,
    shared_loops_for_thread,
    tiles_in_shared_memory,
)
from weft.autoschedule.nests import argmax_in_lanes, nests_over_shared_rows, reduction_in_parts, single_nest
from weft.autoschedule.packed_convolution import packed_convolution
from weft.autoschedule.pooling import pooling
from weft.autoschedule.products_around_rows import products_around_rows
from weft.autoschedule.rules import Rule
from weft.autoschedule.tile_convolution import tile_convolution
from weft.autoschedule.tile_products import tile_products
from weft.autoschedule.winograd_convolution import winograd_convolution
from weft.dialects import sched
from weft.dialects.effects import declared_callees
from weft.dialects.tir import BlockOp
from weft.dialects.traversal import copy_of
from weft.schedule.recording import BlockHandle
from weft.schedule.schedule import Schedule
from weft.schedule.traces import NON_REWRITING, simplify_trace, steps_of
from weft.support.errors import CompileError, ScheduleError
from weft.support.gpu_machine import GPU_KINDS
from weft.support.statistics import Statistic
from weft.support.target import Target

_SCHEDULED: Final = Statistic("default-schedule", "functions-scheduled", "functions that got a schedule")
RULES: Final[tuple[Rule, ...]] = (
    # First: it merges chains of elementwise blocks for the other rules.
    inline_producer,
    # Before the rule for its products.
    winograd_convolution,
    # Before the rules for contractions, which match the sums of groups too.
    grouped_products,
    # Before other rules take the elementwise blocks around products.
    vector_times_matrix,
    # Before the rules for its products.
    products_around_rows,
    # Before the rule for all contractions.
    tile_products,
    dot_products,
    contraction,
    # Before the rule for the same layouts without tile registers.
    tile_convolution,
    blocked_convolution,
    filter_convolution,
    packed_convolution,
    direct_convolution,
    # Before nests over shared rows, which would merge the border.
    pooling,
    # Before single nests, after which blocks are not plain.
    nests_over_shared_rows,
    # Before single nests: each part becomes one.
    reduction_in_parts,
    # Before single nests, which would select in scalar code.
    argmax_in_lanes,
    # Before single nests, which would select the source for each element.
    concatenation,
    # All remaining blocks.
    single_nest,
)
"""Each rule is offered every block that is still plain, in program order, before the next rule."""

KERNEL_RULES: Final[tuple[Rule, ...]] = (
    inline_producer,
    # Before other rules take the elementwise blocks after products.
    tiles_in_shared_memory,
    # Before single nests, which would be separate kernels.
    rows_for_blocks,
    reduction_for_block,
    # All remaining blocks.
    result_for_thread,
    # Results not proved independent.
    inner_loops_for_thread(in_register=True),
    inner_loops_for_thread(in_register=False),
    # Order fixed, because assumptions are missing.
    in_one_thread,
)
"""The rules for targets whose programs are kernels."""

SHARED_LOOP_RULES: Final[tuple[Rule, ...]] = (
    partial(shared_loops_for_thread, inner=True),
    # Fused loops not proved independent.
    partial(shared_loops_for_thread, inner=False),
    # Order fixed, because assumptions are missing.
    in_one_thread,
)
"""The rules for nests of several blocks, for targets that run kernels only. CPUs run such nests as they are."""


def rules_for(kind: str) -> tuple[Rule, ...]:
    """Rules for a kind of target; empty if it has no default schedules."""
    if kind in ("llvm", "c"):
        return RULES
    return KERNEL_RULES if kind in GPU_KINDS else ()


def shared_loop_rules_for(kind: str) -> tuple[Rule, ...]:
    return SHARED_LOOP_RULES if kind in GPU_KINDS else ()


def default_schedule(
    module: ModuleOp, target: Target, rules: Sequence[Rule] | None = None, skip: Collection[str] = ()
) -> list[sched.FuncOp]:
    """Returns a trace for each function that is not scheduled yet and to which a rule applies; it replays on `module`,
    which is unchanged. `rules` defaults to those for the kind of target.

    A function is scheduled if it is named in `skip`, or if it is not plain (`analysis.block_scopes`): a block was
    moved, a loop was bound, split or annotated, or two blocks share a name.
    """
    return [trace for _, _, trace in _schedules(module, target, rules, skip)]


def apply_default_schedule(
    module: ModuleOp, target: Target, rules: Sequence[Rule] | None = None, skip: Collection[str] = ()
) -> list[sched.FuncOp]:
    """Replace the plain functions by scheduled ones. Returns the traces of `default_schedule`."""
    schedules = _schedules(module, target, rules, skip)
    for function, scheduled, _ in schedules:
        (new,) = functions(scheduled)
        new.detach()
        Rewriter.replace_op(function, new)
    return [trace for _, _, trace in schedules]


def scheduled_by(trace: sched.FuncOp, module: ModuleOp) -> set[str]:
    """Names of the functions of `module` that a trace, not yet applied, schedules."""
    names: set[str] = set()
    for step in trace.body.block.ops:
        if isinstance(step, sched.GetBlockOp):
            func = None if step.func is None else step.func.data
            try:
                found = find_block_or_root(module, step.label.data, func)
                names.add((found if isinstance(found, FuncOp) else function_of(found)).sym_name.data)
            except CompileError:
                continue
    return names


def _schedules(
    module: ModuleOp, target: Target, rules: Sequence[Rule] | None, skip: Collection[str]
) -> list[tuple[FuncOp, ModuleOp, sched.FuncOp]]:
    known = rules_for(target.kind)
    rules = known if rules is None else rules
    if not known or not rules:
        return []
    found: list[tuple[FuncOp, ModuleOp, sched.FuncOp]] = []
    shared_rules = shared_loop_rules_for(target.kind)
    for function in functions(module):
        if function.sym_name.data in skip or not _is_ours(function, alone=not shared_rules):
            continue
        alone = ModuleOp([copy_of(function), *declared_callees(function, function)])
        schedule = _Attempts(Schedule(alone), alone, target, _replayed).run(rules, shared_rules)
        if any(not isinstance(step, NON_REWRITING) for step in steps_of(schedule.trace)):
            trace = simplify_trace(schedule.trace)
            trace.sym_name = StringAttr(f"default_{function.sym_name.data}")
            found.append((function, schedule.mod, trace))
    return found


Replayed: TypeAlias = Callable[[ModuleOp, sched.FuncOp], Schedule]
"""A function that returns a schedule of the module after replaying the trace."""


def _replayed(module: ModuleOp, trace: sched.FuncOp) -> Schedule:
    schedule = Schedule(module)
    schedule.replay(trace)
    return schedule


def schedule_by_rules(schedule: Schedule, target: Target, replayed: Replayed) -> Schedule:
    """Schedule the only function of a module, with decisions by the sampling steps of the schedule.

    May return another schedule: the steps of a rule that does not apply are undone by restarting from `replayed`.
    """
    original = copy_of(schedule.mod)
    (function,) = functions(original)
    shared_rules = shared_loop_rules_for(target.kind)
    if not _is_ours(function, alone=not shared_rules):
        return schedule
    return _Attempts(schedule, original, target, replayed).run(rules_for(target.kind), shared_rules)


def _is_ours(function: FuncOp, *, alone: bool) -> bool:
    labels = [block.label for block in child_blocks(function)]
    return bool(labels) and len(set(labels)) == len(labels) and why_not_plain(function, alone=alone) is None


class _Attempts:
    def __init__(self, schedule: Schedule, original: ModuleOp, target: Target, replayed: Replayed) -> None:
        """`original` is the module before any step of the schedule."""
        self.target = target
        self.original = original
        self.schedule = schedule
        self._replayed = replayed
        self.blocks: dict[str, BlockOp] = {}
        """The blocks at the start of the current rule, or after the last undo."""
        self.handles: dict[str, BlockHandle] = {}
        self.patterns: dict[str, BlockPattern] = {}
        """Patterns of blocks since the last step that changed the program."""
        self.done: set[str] = set()
        """Blocks that a rule has scheduled, though they may still be plain."""
        self.left: dict[tuple[str, bool], bool] = {}
        """Answers of `_is_left` since the last step that changed the program."""

    def run(self, rules: Sequence[Rule], shared_rules: Sequence[Rule]) -> Schedule:
        for alone, phase in ((True, rules), (False, shared_rules)):
            for rule in phase:
                self.blocks = self._blocks()
                for label in list(self.blocks):
                    if label not in self.done and self._is_left(label, alone=alone) and self._try(rule, label):
                        self.done.add(label)
        return self.schedule

    def _blocks(self) -> dict[str, BlockOp]:
        (function,) = functions(self.schedule.mod)
        return {block.label: block for block in child_blocks(function)}

    def _is_left(self, label: str, *, alone: bool) -> bool:
        """Whether a block is present, unchanged and not empty; GPUs must bind empty blocks too."""
        if (label, alone) not in self.left:
            self.left[label, alone] = self._is_unchanged(self.blocks.get(label), alone=alone)
        return self.left[label, alone]

    def _is_unchanged(self, block: BlockOp | None, *, alone: bool) -> bool:
        if block is None or not self.schedule.mod.is_ancestor(block):
            return False
        if is_plain(block) is not alone or not (alone or is_plain(block, alone=False)):
            return False
        return 0 not in block.extents or self.target.kind in GPU_KINDS

    def _try(self, rule: Rule, label: str) -> bool:
        if label not in self.handles:
            self.handles[label] = self.schedule.handle_of(self.blocks[label])
        last = self.schedule.trace.body.block.last_op
        try:
            if self._apply(rule, label):
                self.patterns.clear()
                self.left.clear()
                return True
        except ScheduleError:
            pass
        self._undo(last)
        return False

    def _apply(self, rule: Rule, label: str) -> bool:
        if not isinstance(rule, PlannedRule):
            return rule(self.schedule, self.handles[label], self.target)
        if label not in self.patterns:
            self.patterns[label] = pattern_of(self.blocks[label])
        return rule.schedule(self.schedule, self.handles[label], self.patterns[label], self.target)

    def _undo(self, last: Operation | None) -> None:
        trace, changed = self.schedule.trace, False
        while (step := trace.body.block.last_op) is not last and step is not None:
            changed = changed or not isinstance(step, NON_REWRITING)
            Rewriter.erase_op(step)
        if changed:
            self.handles.clear()
            self.patterns.clear()
            self.left.clear()
            self.schedule = self._replayed(self.original, trace)
            self.blocks = self._blocks()


@dataclass(frozen=True)
class DefaultSchedulePass(ModulePass):
    """Schedule the functions that no user scheduled: `default-schedule{target="llvm -mcpu=haswell"}`.

    A function is scheduled if it is not plain, or if a `sched.func` of the module works on it. With `only_trace` the
    schedules are added to the module, for `apply-schedule` to run, and functions are unchanged.

    Requires: functions of block loops (tir).

    Leaves: the same functions scheduled, or with `only-trace` the schedules in addition.
    """

    name = "default-schedule"
    fast_math = (FastMathFlag.REASSOC,)

    target: str = "llvm"
    """The target, as `weft.build` takes it."""
    only_trace: bool = False
    """Whether schedules are added to the module, for `apply-schedule`, instead of being applied."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        skip: set[str] = set()
        for schedule in op.body.block.ops:
            if isinstance(schedule, sched.FuncOp):
                skip |= scheduled_by(schedule, op)
        target = Target.parse(self.target)
        if self.only_trace:
            traces = default_schedule(op, target, skip=skip)
            op.body.block.add_ops(traces)
        else:
            traces = apply_default_schedule(op, target, skip=skip)
        _SCHEDULED.add(len(traces))
