"""Random schedules: steps of every primitive over the blocks and loops that there are, most of them sensible.

A draw is *sensible* when what it asks for has a chance (a loop of the block, a factor near the extent, a consumer's
loop); one in ten is *wild*: any handles, expired ones too, and any numbers. Refusals must leave the module as it was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from index_maps import random_index_map, random_iterator_map
from intrinsics import copy_intrinsic
from programs import Program
from xdsl.dialects import memref, scf
from xdsl.dialects.builtin import DYNAMIC_INDEX, AffineMapAttr, ModuleOp
from xdsl.ir import Operation, SSAValue

from weft import CompileError, Schedule, ScheduleError
from weft.analysis.block_scopes import (
    ancestors,
    buffers_read,
    buffers_written,
    consumers_of,
    loops_around,
    producers_of,
    why_not_complete,
)
from weft.analysis.index import Index
from weft.analysis.reductions import why_not_reduction
from weft.dialects import sched
from weft.dialects import sched_parameters as kinds_of
from weft.dialects.sched import PRIMITIVE_STEPS
from weft.dialects.tir import BlockOp, ForOp
from weft.dialects.tir_kinds import IterKind, LoopKind
from weft.passes.schedule import primitive
from weft.passes.schedule.rolling_buffer import RollingWindow, window_of
from weft.passes.schedule.transform_block_layout import own_nest
from weft.schedule.schedule import BlockHandle, LoopHandle

T = TypeVar("T")
H = TypeVar("H", BlockHandle, LoopHandle)
MAX_STEPS = 12
SCOPES = ("global", "local", "shared", "global.copy")
FINISHING = ("parallel", "vectorize", "unroll", "bind", "decompose_reduction")
OF_REDUCTIONS = ("decompose_reduction", "rfactor", "blockize", "cache_write", "compute_at", "fuse", "reorder", "split")
FAVOURED = {"reductions": OF_REDUCTIONS}
"""Primitives that every second step of a family is drawn from."""
KEYS = ("note", "my key")
WILD = 0.1
MAX_BLOCKS = 12
"""More than that many are not copied any further."""
MAX_UNROLL = 128


class RefusalChangedModule(Exception):
    """A primitive was refused, yet the module is not what it was."""


@dataclass
class Statistics:
    """How often each primitive was drawn and accepted."""

    accepted: Counter[str] = field(default_factory=Counter[str])
    refused: Counter[str] = field(default_factory=Counter[str])
    reasons: Counter[str] = field(default_factory=Counter[str])
    """Primitive, requirement and kind of refusals."""

    def add(self, other: Statistics) -> None:
        self.accepted.update(other.accepted)
        self.refused.update(other.refused)
        self.reasons.update(other.reasons)

    def share(self, primitive: str) -> float:
        """The share of its draws that was accepted."""
        drawn = self.accepted[primitive] + self.refused[primitive]
        return self.accepted[primitive] / drawn if drawn else 0.0

    def __str__(self) -> str:
        lines = [f"{'primitive':<24}{'accepted':>9}{'refused':>9}{'share':>7}"]
        for name in PRIMITIVES:
            lines.append(f"{name:<24}{self.accepted[name]:>9}{self.refused[name]:>9}{self.share(name):>7.0%}")
        return "\n".join(lines)


class Unconfirmed(Exception):
    """A counterexample that does not happen: refutations are points of the program."""


def reason_of(error: ScheduleError | CompileError) -> str:
    """The number of the requirement, and whether that is refuted."""
    if not isinstance(error, ScheduleError):
        return "0 error"
    if error.violation.kind != error.violation.claim:
        raise Unconfirmed(str(error)) from error
    return f"{error.requirement} {error.violation.kind}"


def fingerprint(module: ModuleOp) -> list[object]:
    """Equal for a module that was not changed: its operations, what they use and say, and the names in it. Much cheaper
    than text."""
    return [
        (
            op,
            tuple(op.operands),
            dict(op.properties),
            dict(op.attributes),
            [value.name_hint for value in op.results],
            [value.name_hint for region in op.regions for block in region.blocks for value in block.args],
        )
        for op in module.walk()
    ]


class RecordingSchedule(Schedule):
    """A schedule that remembers the step it tried last, for when that step breaks something.

    A block or loop that is found again has the handle that it was first given, so that later steps depend on the step
    that made it, not on its place among the loops or on a search by name: shrinking leaves out the steps between.
    """

    attempt: sched.StepOp | None = None

    def get_block(self, name: str, func_name: str | None = None) -> BlockHandle:
        return self._first_handle(super().get_block(name, func_name))

    def get_loops(self, block: BlockHandle | str) -> list[LoopHandle]:
        return [self._first_handle(loop) for loop in super().get_loops(block)]

    def _first_handle(self, handle: H) -> H:
        found = self.get(handle)
        return type(handle)(next(value for value, op in self._replay.handles.items() if op is found))

    def _record(self, step: sched.StepOp) -> sched.StepOp:
        self.attempt = step.clone()
        recorded = super()._record(step)
        self.attempt = None
        return recorded

    def run_step(self, step: sched.StepOp) -> sched.StepOp:
        """Run a step over handles of this schedule; returns it with as many results as there are now."""
        return self._record(step)


class Fuzzer:
    """A schedule of a program that grows by random steps."""

    def __init__(self, program: Program, seed: int) -> None:
        self.random = np.random.default_rng((seed, 1))
        self.sch = RecordingSchedule(program.module, seed=seed)
        self.statistics = Statistics()
        self.favoured = FAVOURED.get(program.name, ())
        self.blocks = [self.sch.get_block(op.label) for op in self.sch.mod.walk() if isinstance(op, BlockOp)]
        self.loops: list[LoopHandle] = []

    def run(self, steps: int) -> None:
        """Draw until so many steps were accepted, or three times as many were drawn.

        In half of the schedules what finishes a program comes last, as people write them: then more of the others fit.
        """
        late = self.chance(0.5)
        for _ in range(3 * steps):
            accepted = self.statistics.accepted.total()
            if accepted >= steps:
                return
            early = late and accepted < 0.7 * steps
            names = self.favoured if self.favoured and self.chance(0.5) else tuple(PRIMITIVES)
            self.step(self.choose([name for name in names if not early or name not in FINISHING]))

    def step(self, primitive: str) -> None:
        """Try the primitive once, with random arguments; nothing when nothing is there to be drawn."""
        draw = PRIMITIVES[primitive](self)
        if draw is not None:
            self.attempt(primitive, draw)

    def attempt(self, primitive: str, draw: Callable[[], object]) -> None:
        """Take a step, and count it."""
        before = fingerprint(self.sch.mod)
        try:
            draw()
        except (ScheduleError, CompileError) as error:
            self.statistics.refused[primitive] += 1
            self.statistics.reasons[f"{primitive} {reason_of(error)}"] += 1
            if not str(error).startswith("error: "):  # rendering it may fail too
                raise AssertionError(f"a refusal that is not told: {error!r}") from error
            if fingerprint(self.sch.mod) != before:
                raise RefusalChangedModule(f"{error}\nafter:\n{self.sch.mod}") from error
            self.sch.attempt = None
        else:
            self.statistics.accepted[primitive] += 1

    def steps(self) -> tuple[sched.StepOp, ...]:
        """All steps so far, and the one that broke something if one did."""
        done = [op for op in self.sch.trace.body.block.ops if isinstance(op, sched.StepOp)]
        return (*done, *(() if self.sch.attempt is None else (self.sch.attempt,)))

    # What to draw from.

    def chance(self, probability: float) -> bool:
        return bool(self.random.random() < probability)

    def choose(self, options: Sequence[T]) -> T:
        return options[int(self.random.integers(len(options)))]

    def number(self, low: int, high: int) -> int:
        """A number from `low` to `high`, both included."""
        return int(self.random.integers(low, high + 1))

    def live_blocks(self) -> list[BlockHandle]:
        """Blocks that are still there."""
        return [handle for handle in self.blocks if self.op(handle) is not None]

    def op(self, handle: BlockHandle | LoopHandle) -> BlockOp | ForOp | None:
        try:
            found = self.sch.get(handle)
        except CompileError:
            return None
        return found if isinstance(found, BlockOp | ForOp) else None

    def block_op(self, handle: BlockHandle) -> BlockOp:
        found = self.sch.get(handle)
        assert isinstance(found, BlockOp)
        return found

    def loop_op(self, handle: LoopHandle) -> ForOp:
        found = self.sch.get(handle)
        assert isinstance(found, ForOp)
        return found

    def block(self, wanted: Callable[[BlockOp], bool] = lambda _: True) -> BlockHandle | None:
        """A live block that has a property; any when the draw is wild."""
        found = self.live_blocks()
        if not self.chance(WILD):
            found = [handle for handle in found if wanted(self.block_op(handle))]
        return self.choose(found) if found else None

    def loops_of(self, block: BlockHandle) -> list[LoopHandle]:
        """The loops around a block, remembered for wild draws."""
        found = self.sch.get_loops(block)
        self.loops = [*self.loops[-20:], *found]
        return found

    def some_loops(self, serial: bool = True) -> list[LoopHandle]:
        """The loops around some block, outermost first; in wild draws any handles, in any order."""
        if self.loops and self.chance(WILD):
            return [self.choose(self.loops) for _ in range(self.number(1, 3))]
        block = self.block()
        loops = [] if block is None else self.loops_of(block)
        return [loop for loop in loops if self.loop_op(loop).kind.data is LoopKind.SERIAL] if serial else loops

    def nest(self) -> list[LoopHandle]:
        """A run of loops of a perfect nest; usually serial ones."""
        loops = self.some_loops(serial=self.chance(0.9))
        if not loops or any(self.op(loop) is None for loop in loops):
            return loops
        start = self.number(0, len(loops) - 1)
        run = [loops[start]]
        for loop in loops[start + 1 :]:
            body = self.loop_op(run[-1]).body.block
            if body.first_op is not self.loop_op(loop) or body.last_op is not body.first_op:
                break
            run.append(loop)
        return run

    # The primitives: each gives what to do, or None when there is nothing to do it on.

    def split(self) -> Callable[[], object] | None:
        loops = self.some_loops()
        if not loops:
            return None
        loop = self.choose(loops)
        op = self.op(loop)
        extent = op.extent if isinstance(op, ForOp) and isinstance(op.extent, int) else 7
        factors: list[int | None] = [self.number(1, min(extent + 1, 8)) for _ in range(self.number(1, 2))]
        if self.chance(0.2):
            sample = self.sch.sample_perfect_tile
            return lambda: self.loops.extend(self.sch.split(loop, sample(loop, len(factors) + 1)))
        if self.chance(0.75):
            factors.insert(self.number(0, len(factors)), None)
        elif not self.chance(WILD):
            known = int(np.prod([factor or 1 for factor in factors]))
            factors.insert(self.number(0, len(factors)), -(-extent // known) + self.number(0, 1))
        return lambda: self.loops.extend(self.sch.split(loop, factors))

    def fuse(self) -> Callable[[], object] | None:
        run = self.nest()
        if len(run) < 2:
            return None
        loops = run[: self.number(2, len(run))]
        return lambda: self.loops.append(self.sch.fuse(*loops))

    def tile(self) -> Callable[[], object] | None:
        run = self.nest()
        if not run:
            return None
        loops = run[: self.number(1, min(3, len(run)))]
        factors = [self.number(1, 6) for _ in loops]
        return lambda: self.loops.extend(self.sch.tile(*loops, factors=factors))

    def reorder(self) -> Callable[[], object] | None:
        run = self.nest()
        if len(run) < 2:
            return None
        order = [int(at) for at in self.random.permutation(len(run))[: self.number(2, len(run))]]
        return lambda: self.sch.reorder(*(run[at] for at in order))

    def _of_kind(self, outermost: float) -> LoopHandle | None:
        """A serial loop, drawn from one end with some probability."""
        loops = self.some_loops()
        if not loops:
            return None
        return self.choose(loops) if self.chance(0.4) else loops[0 if self.chance(outermost) else -1]

    def parallel(self) -> Callable[[], object] | None:
        loop = self._of_kind(0.8)
        return None if loop is None else lambda: self.sch.parallel(loop)

    def vectorize(self) -> Callable[[], object] | None:
        loop = self._of_kind(0.2)
        return None if loop is None else lambda: self.sch.vectorize(loop)

    def unroll(self) -> Callable[[], object] | None:
        loop = self._of_kind(0.3)
        if loop is None or not self._is_short(loop):
            return None
        return lambda: self.sch.unroll(loop)

    def _is_short(self, loop: LoopHandle) -> bool:
        """Whether repeating the body for each iteration, inside too, keeps LLVM busy only for a moment."""
        op = self.op(loop)
        if op is None:
            return True
        loops = [op, *(inner for inner in (*ancestors(op), *op.body.walk()) if isinstance(inner, ForOp))]
        unrolled = [inner for inner in loops if inner is op or inner.kind.data is LoopKind.UNROLLED]
        return int(np.prod([inner.extent for inner in unrolled if isinstance(inner.extent, int)])) <= MAX_UNROLL

    def bind(self) -> Callable[[], object] | None:
        loop = self._of_kind(0.8)
        axis = "nowhere.x" if self.chance(WILD / 4) else self.choose(("blockIdx.x", "threadIdx.x", "vthread"))
        return None if loop is None else lambda: self.sch.bind(loop, axis)

    def merge(self) -> Callable[[], object] | None:
        first, second = self.some_loops(serial=self.chance(0.9)), self.some_loops(serial=self.chance(0.9))
        if self.chance(WILD) and first and second:
            return lambda: self.loops.append(self.sch.merge(self.choose(first), self.choose(second)))
        pairs = [pair for block in self.live_blocks() for pair in self._loops_that_follow(block)]
        if not pairs:
            return None
        one, other = self.choose(pairs)
        return lambda: self.loops.append(self.sch.merge(one, other))

    def _loops_that_follow(self, block: BlockHandle) -> list[tuple[LoopHandle, LoopHandle]]:
        """Loops around a block, and the next loop with as many iterations."""
        found: list[tuple[LoopHandle, LoopHandle]] = []
        for loop in self.sch.get_loops(block):
            op = self.loop_op(loop)
            after = next((o for o in _following(op) if isinstance(o, ForOp)), None)
            inside = [b for b in self.live_blocks() if after is not None and after.is_ancestor(self.block_op(b))]
            if inside and after is not None and after.extent == op.extent:
                found.extend((loop, o) for o in self.sch.get_loops(inside[0]) if self.sch.get(o) is after)
        return found

    def loop_partition(self) -> Callable[[], object] | None:
        loops = self.some_loops()
        blocks = sum(isinstance(op, BlockOp) for op in self.sch.mod.walk())
        if not loops or blocks > MAX_BLOCKS:
            return None
        loop = self.choose(loops)
        op = self.op(loop)
        extent = op.extent if isinstance(op, ForOp) and isinstance(op.extent, int) else 7
        first = self.number(1, max(1, extent - 1))
        factors: list[int | None] = [first, None if self.chance(0.7) else extent - first]
        if self.chance(0.2):
            factors.insert(0, 1)
        return lambda: self._partition(loop, factors)

    def _partition(self, loop: LoopHandle, factors: list[int | None]) -> None:
        self.loops.extend(self.sch.loop_partition(loop, factors))
        known = {self.op(handle) for handle in self.blocks}
        blocks = [op for op in self.sch.mod.walk() if isinstance(op, BlockOp)]
        labels = Counter(op.label for op in blocks)  # blocks that were made of blocks may share a name
        named = [op.label for op in blocks if op not in known and labels[op.label] == 1]
        self.blocks.extend(self.sch.get_block(label) for label in named)

    def add_unit_loop(self) -> Callable[[], object] | None:
        target = self.target()
        return None if target is None else lambda: self.loops.append(self.sch.add_unit_loop(target))

    def reorder_block_iter_var(self) -> Callable[[], object] | None:
        block = self.block()
        if block is None:
            return None
        order = [int(at) for at in self.random.permutation(len(self.block_op(block).iter_vars))]
        if self.chance(WILD):
            order.append(0)
        return lambda: self.sch.reorder_block_iter_var(block, order)

    def annotate(self) -> Callable[[], object] | None:
        target = self.target()
        key = "tir.commutative" if self.chance(WILD / 2) else self.choose(KEYS)
        value = self.choose((1, True, "text", 0.25, [1, [2.5, "x"]]))
        return None if target is None else lambda: self.sch.annotate(target, key, value)

    def unannotate(self) -> Callable[[], object] | None:
        targets = [*self.live_blocks(), *(loop for b in self.live_blocks() for loop in self.sch.get_loops(b))]
        noted = [(target, key) for target in targets for key in KEYS if key in self.sch.get(target).attributes]
        if not noted or self.chance(WILD):
            target = self.target()
            return None if target is None or not noted else lambda: self.sch.unannotate(target, self.choose(KEYS))
        target, key = self.choose(noted)
        return lambda: self.sch.unannotate(target, key)

    def target(self) -> BlockHandle | LoopHandle | None:
        """A block or a loop."""
        loops = self.some_loops(serial=False)
        return self.choose(loops) if loops and self.chance(0.6) else self.block()

    def compute_at(self) -> Callable[[], object] | None:
        block = self.block(lambda op: writes_temporary(op) and bool(consumers_of(op)))
        if block is None:
            return None
        if self.chance(0.2):
            return lambda: self.sch.compute_at(block, self.sch.sample_compute_location(block))
        loop = self._loop_of_all(block, consumers_of(self.block_op(block)))
        index = self.place()
        return None if loop is None else lambda: self.sch.compute_at(block, loop, index=index)

    def reverse_compute_at(self) -> Callable[[], object] | None:
        block = self.block(lambda op: bool(producers_of(op)))
        if block is None:
            return None
        loop = self._loop_of_all(block, producers_of(self.block_op(block)))
        index = self.place()
        return None if loop is None else lambda: self.sch.reverse_compute_at(block, loop, index=index)

    def place(self) -> int:
        """An `index` of `compute_at`: mostly the last place."""
        return self.choose((-2, -1, 0, 1, 2)) if self.chance(0.3) else -1

    def _loop_of_all(self, block: BlockHandle, others: Sequence[BlockOp]) -> LoopHandle | None:
        """A loop around all of some blocks that is not around `block`; any loop when the draw is wild."""
        own = self.block_op(block)
        if not others or self.chance(WILD):
            loops = self.some_loops(serial=False)
        else:
            handle = next((h for h in self.live_blocks() if self.op(h) is others[0]), None)
            shared = [
                loop
                for loop in loops_around(others[0])
                if all(loop.is_ancestor(other) for other in others) and not loop.is_ancestor(own)
            ]
            found = [] if handle is None or not shared else self.loops_of(handle)
            loops = [loop for loop in found if self.op(loop) in shared]
        return self.choose(loops) if loops else None

    def compute_inline(self) -> Callable[[], object] | None:
        block = self.block(lambda op: writes_temporary(op) and op.init is None and bool(consumers_of(op)))
        return None if block is None else lambda: self.sch.compute_inline(block)

    def reverse_compute_inline(self) -> Callable[[], object] | None:
        def consumes_alone(op: BlockOp) -> bool:
            producers = producers_of(op)
            return any(writes_temporary(p) and p.init is None and consumers_of(p) == [op] for p in producers)

        block = self.block(consumes_alone)
        return None if block is None else lambda: self.sch.reverse_compute_inline(block)

    def cache_read(self) -> Callable[[], object] | None:
        block = self.block(lambda op: bool(buffers_read(op)))
        if block is None:
            return None
        index = self.number(0, max(0, len(buffers_read(self.block_op(block))) - 1))
        scope = self.scope()
        return lambda: self.blocks.append(self.sch.cache_read(block, index, scope))

    def cache_write(self) -> Callable[[], object] | None:
        block = self.block()
        if block is None:
            return None
        scope = self.scope()
        return lambda: self.blocks.append(self.sch.cache_write(block, 0, scope))

    def set_scope(self) -> Callable[[], object] | None:
        block = self.block(writes_temporary)
        scope = self.scope()
        return None if block is None else lambda: self.sch.set_scope(block, 0, scope)

    def transform_layout(self) -> Callable[[], object] | None:
        """Of temporaries: parameters would be passed in another layout."""
        block = self.block(writes_temporary)
        if block is None or not writes_temporary(self.block_op(block)):
            return None
        buffer = buffers_written(self.block_op(block))[0]
        index_map = random_index_map(self.random, static_shape(buffer), self.chance(WILD))
        value = self.choose((None, 0, 3, -2, lambda *indices: indices[0] % 50 if indices else 1))
        return lambda: self.sch.transform_layout(block, ("write", 0), index_map, value)

    def annotate_buffer_access(self) -> Callable[[], object] | None:
        """All of a buffer, or what one access takes."""
        block = self.block(lambda op: bool(buffers_read(op)))
        if block is None:
            return None
        op, verb = self.block_op(block), self.choose(("read", "write"))
        buffers = buffers_read(op) if verb == "read" else buffers_written(op)
        shape = static_shape(buffers[0]) if buffers else []
        ranges = [(0, extent or 1) for extent in shape]
        if op.iter_vars and self.chance(0.5):
            return lambda: self.sch.annotate_buffer_access(
                block, 0, verb, lambda *v: tuple((v[at % len(v)], v[at % len(v)] + 2) for at in range(len(shape)))
            )
        return lambda: self.sch.annotate_buffer_access(block, 0, verb, lambda *v: tuple(ranges))

    def reindex(self) -> Callable[[], object] | None:
        block = self.block()
        blocks = sum(isinstance(op, BlockOp) for op in self.sch.mod.walk())
        if block is None or blocks > MAX_BLOCKS:
            return None
        op = self.block_op(block)
        places = [("read", at) for at in range(len(buffers_read(op)))] + [("write", 0)]
        place = self.choose(places)
        return lambda: self.blocks.append(self.sch.reindex(block, place))

    def transform_block_layout(self) -> Callable[[], object] | None:
        block = self.block(lambda op: not isinstance(own_nest(op), str))
        if block is None:
            return None
        op = self.block_op(block)
        extents = [extent if isinstance(extent, int) else None for extent in op.extents]
        index_map = random_iterator_map(self.random, extents, op.kinds, self.chance(WILD))
        return lambda: self.loops.extend(self.sch.transform_block_layout(block, index_map))

    def storage_align(self) -> Callable[[], object] | None:
        block = self.block(writes_temporary)
        if block is None:
            return None
        factor = self.number(1, 40)
        axis, offset = self.number(-3, 2), self.number(0, factor - 1)
        return lambda: self.sch.storage_align(block, 0, axis, factor, offset)

    def decompose_padding(self) -> Callable[[], object] | None:
        block = self.block(pads)
        loops = [] if block is None else self.loops_of(block)
        if block is None or not loops:
            return None
        loop = loops[0] if self.chance(0.5) else self.choose(loops)
        return lambda: self.blocks.append(self.sch.decompose_padding(block, loop))

    def pad_einsum(self) -> Callable[[], object] | None:
        block = self.block(lambda op: not any(isinstance(inner, scf.IfOp) for inner in op.walk()))
        if block is None:
            return None
        padding = [self.choose((1, 1, 2, 4, 5)) for _ in self.block_op(block).iter_vars]
        if self.chance(WILD):
            padding.append(self.number(-1, 2))
        return lambda: self._with_new_blocks(lambda: self.sch.pad_einsum(block, padding))

    def _with_new_blocks(self, step: Callable[[], object]) -> None:
        """Take the step, and remember the blocks that it makes."""
        before = {op.label for op in self.sch.mod.walk() if isinstance(op, BlockOp)}
        step()
        after = [op.label for op in self.sch.mod.walk() if isinstance(op, BlockOp)]
        self.blocks.extend(self.sch.get_block(label) for label in after if label not in before)

    def rolling_buffer(self) -> Callable[[], object] | None:
        rolling = [block for block in self.live_blocks() if has_window(self.block_op(block))]
        rolling = rolling or self._make_window()
        if not rolling:
            return None
        block = self.choose(rolling)
        index = self.number(0, 1) if self.chance(WILD) else 0
        return lambda: self._with_new_blocks(lambda: self.sch.rolling_buffer(block, index))

    def _make_window(self) -> list[BlockHandle]:
        """Put a producer under an outer loop of its consumers: where these read neighbours, windows overlap."""
        producers = [block for block in self.live_blocks() if writes_temporary(self.block_op(block))]
        for at in self.random.permutation(len(producers))[:3]:
            block = producers[int(at)]
            consumers = consumers_of(self.block_op(block))
            handle = next((h for h in self.live_blocks() if self.op(h) in consumers), None)
            for loop in [] if handle is None else self.loops_of(handle)[:2]:
                if not self.loop_op(loop).is_ancestor(self.block_op(block)):
                    self.attempt("compute_at", lambda block=block, loop=loop: self.sch.compute_at(block, loop))
                if has_window(self.block_op(block)):
                    return [block]
        return []

    def scope(self) -> str:
        return "nowhere" if self.chance(WILD / 4) else self.choose(SCOPES)

    def decompose_reduction(self) -> Callable[[], object] | None:
        block = self.block(lambda op: op.init is not None)
        if block is None:
            return None
        loops = self.loops_of(block)
        if not loops:
            return None
        at = self.number(0, max(0, self._first_reduce_loop(block))) if self.chance(0.8) else len(loops) - 1
        return lambda: self.blocks.append(self.sch.decompose_reduction(block, loops[at]))

    def rfactor(self) -> Callable[[], object] | None:
        block = self.block(lambda op: op.init is not None)
        if block is None:
            return None
        loops = self.loops_of(block)
        wild = self.chance(WILD)
        loops = [
            loop for loop in loops if wild or self.loop_op(loop).induction_variable in reduced_by(self.block_op(block))
        ]
        if not loops:
            return None
        loop, axis = self.choose(loops), self.number(-2, 2) if self.chance(0.9) else self.number(-9, 9)
        return lambda: self.blocks.append(self.sch.rfactor(loop, axis))

    def blockize(self) -> Callable[[], object] | None:
        loops = self.some_loops(serial=self.chance(0.8))
        if not loops:
            return None
        loop = self.choose(loops[-2:]) if self.chance(0.8) else self.choose(loops)
        if self.chance(0.3):
            blocks = self.live_blocks()
            op = self.op(loop)
            inside = [block for block in blocks if op is not None and op.is_ancestor(self.block_op(block))]
            neighbours = (inside if len(inside) > 1 else blocks)[: self.number(1, 3)]
            return lambda: self.blocks.append(self.sch.blockize(neighbours))
        return lambda: self.blocks.append(self.sch.blockize(loop))

    def tensorize(self) -> Callable[[], object] | None:
        """The innermost loop of a block that copies, or of any block when the draw is wild."""
        loops = [(block, loops) for block in self.live_blocks() if (loops := self.sch.get_loops(block))]
        copies = [(block, own[-1]) for block, own in loops if self._copied_by(block, own[-1]) is not None]
        if not copies:
            return None
        block, loop = self.choose(copies)
        name = self._copied_by(block, loop)
        if name is None or self.chance(WILD):
            loop = self.choose(loops)[1][-1]
        return lambda: self.sch.tensorize(loop, name or "")

    def _copied_by(self, block: BlockHandle, loop: LoopHandle) -> str | None:
        """An intrinsic for the innermost loop of a block."""
        op = self.op(loop)
        extent = op.extent if isinstance(op, ForOp) else None
        return copy_intrinsic(self.block_op(block), extent) if isinstance(extent, int) else None

    def anything(self, name: str) -> Callable[[], object] | None:
        """A primitive that is not drawn in a way of its own: a random value for each of its parameters."""
        arguments: list[object] = []
        block = self.block()
        kinds = [parameter.kind for parameter in PRIMITIVE_STEPS[name].parameters]
        for kind in kinds:
            if kind is kinds_of.BLOCK_HANDLE:
                value: object = self.block() if block in arguments else block
            elif kind in (kinds_of.LOOP_HANDLE, kinds_of.LOOP_ELSEWHERE, kinds_of.LOOP_OR_BLOCK):
                own = kinds_of.BLOCK_HANDLE in kinds and block is not None and not self.chance(WILD)
                loops = self.loops_of(block) if own and block is not None else self.some_loops()
                value = self.choose(loops) if loops else None
            elif kind in (kinds_of.LOOP_HANDLES, kinds_of.LOOPS_OF_BLOCKS):
                value = self.nest() or None
            elif kind.option is int:
                value = self.choose((0, 0, 0, 1, 2))
            elif kind.option == tuple[int, ...]:
                value = [self.number(1, 4) for _ in range(self.number(1, 3))]
            elif kind is kinds_of.BUFFER:
                value = (self.choose(("read", "write")), self.number(0, 1))
            elif kind is kinds_of.STRING:
                value = self.scope()
            elif kind.attribute is AffineMapAttr:
                extents = [] if block is None else self.block_op(block).extents
                value = random_index_map(
                    self.random, [e if isinstance(e, int) else None for e in extents], self.chance(WILD)
                )
            elif kind.optional:
                break
            else:
                value = 1
            if value is None:
                return None
            arguments.append(value)
        step: Callable[..., object] = getattr(self.sch, name)
        return lambda: self._with_new_blocks(lambda: step(*arguments))

    def _first_reduce_loop(self, block: BlockHandle) -> int:
        """The position of the outermost loop that a reduce iterator is bound to."""
        op = self.block_op(block)
        reduced = reduced_by(op)
        values = [loop.induction_variable for loop in loops_around(op)]
        return next((at for at, value in enumerate(values) if value in reduced), 0)


def reduced_by(block: BlockOp) -> set[SSAValue]:
    """The values that reduce iterators are bound to."""
    return {
        value
        for expr, kind in zip(block.bindings.data.results, block.kinds, strict=True)
        if kind is IterKind.REDUCE
        for at, value in enumerate(block.binding_operands)
        if at in expr.used_dims()
    }


def _following(op: Operation) -> Iterator[Operation]:
    """The operations after `op`."""
    while (after := op.next_op) is not None:
        yield after
        op = after


def static_shape(buffer: SSAValue) -> list[int | None]:
    """The extents of a buffer, None where they are known at run time."""
    assert isinstance(buffer.type, memref.MemRefType)
    return [None if extent == DYNAMIC_INDEX else extent for extent in buffer.type.get_shape()]


def writes_temporary(block: BlockOp) -> bool:
    """Whether all that a block writes was allocated in the function."""
    return all(isinstance(buffer.owner, memref.AllocOp) for buffer in buffers_written(block))


def has_window(block: BlockOp) -> bool:
    """Whether some loop around a block and its consumers moves what it writes by less than the block spans."""
    consumers = consumers_of(block)
    common = [loop for loop in loops_around(block) if all(loop.is_ancestor(user) for user in consumers)]
    stores = [op for op in block.walk() if isinstance(op, memref.StoreOp)]
    alone = why_not_complete(block) is None or why_not_reduction(block) is None
    if not consumers or not stores or not alone or not writes_temporary(block):
        return False
    indices = [Index.of(operand) for operand in stores[0].indices]
    windows = (window_of(block, stores[0].memref, indices, at, x, common) for x in common for at in range(len(indices)))
    return any(isinstance(window, RollingWindow) for window in windows)


def pads(block: BlockOp) -> bool:
    """Whether a block stores one value or another."""
    stores = [op for op in block.walk() if isinstance(op, memref.StoreOp)]
    return any(isinstance(op.value.owner, scf.IfOp) for op in stores)


PRIMITIVES: dict[str, Callable[[Fuzzer], Callable[[], object] | None]] = {
    "split": Fuzzer.split,
    "fuse": Fuzzer.fuse,
    "tile": Fuzzer.tile,
    "reorder": Fuzzer.reorder,
    "parallel": Fuzzer.parallel,
    "vectorize": Fuzzer.vectorize,
    "unroll": Fuzzer.unroll,
    "bind": Fuzzer.bind,
    "merge": Fuzzer.merge,
    "loop_partition": Fuzzer.loop_partition,
    "add_unit_loop": Fuzzer.add_unit_loop,
    "reorder_block_iter_var": Fuzzer.reorder_block_iter_var,
    "annotate": Fuzzer.annotate,
    "unannotate": Fuzzer.unannotate,
    "compute_at": Fuzzer.compute_at,
    "reverse_compute_at": Fuzzer.reverse_compute_at,
    "compute_inline": Fuzzer.compute_inline,
    "reverse_compute_inline": Fuzzer.reverse_compute_inline,
    "cache_read": Fuzzer.cache_read,
    "cache_write": Fuzzer.cache_write,
    "set_scope": Fuzzer.set_scope,
    "decompose_reduction": Fuzzer.decompose_reduction,
    "rfactor": Fuzzer.rfactor,
    "blockize": Fuzzer.blockize,
    "tensorize": Fuzzer.tensorize,
    "storage_align": Fuzzer.storage_align,
    "annotate_buffer_access": Fuzzer.annotate_buffer_access,
    "reindex": Fuzzer.reindex,
    "transform_layout": Fuzzer.transform_layout,
    "transform_block_layout": Fuzzer.transform_block_layout,
    "decompose_padding": Fuzzer.decompose_padding,
    "pad_einsum": Fuzzer.pad_einsum,
    "rolling_buffer": Fuzzer.rolling_buffer,
}
GENERIC = [name for name in primitive.PRIMITIVES if name not in PRIMITIVES]
"""Primitives whose arguments are drawn by their kinds alone."""
PRIMITIVES |= {name: lambda fuzzer, name=name: fuzzer.anything(name) for name in GENERIC}
"""How each primitive of `primitive.PRIMITIVES` is drawn."""
