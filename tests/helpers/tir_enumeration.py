"""What a small tir program does, found by running through all its instances: the oracle of the set analyses.

Nothing of `weft.analysis` is used. Loops run from 0 to their extent, blocks evaluate their bindings and guards, and
every load and store that happens is an `Event`, in the order in which it happens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from xdsl.dialects import affine, arith, func, memref, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import Block, Operation, SSAValue

from weft.dialects.tir import BlockOp, ForOp, InitOp
from weft.dialects.tir_kinds import IterKind

_COMPARE = {
    0: lambda a, b: a == b,
    1: lambda a, b: a != b,
    2: lambda a, b: a < b,
    3: lambda a, b: a <= b,
    4: lambda a, b: a > b,
    5: lambda a, b: a >= b,
}


@dataclass(frozen=True, eq=False, repr=False)
class Event:
    """One load or store that happens. `loops` are the loops around it with their values, outermost first."""

    op: Operation
    buffer: SSAValue
    place: tuple[int, ...]
    is_write: bool
    loops: tuple[tuple[ForOp, int], ...]
    block: BlockOp | None
    in_init: bool

    def __repr__(self) -> str:
        verb = "writes" if self.is_write else "reads"
        block = f" of {self.block.label}" if self.block else ""
        return f"{self.iteration()}{block} {verb} {self.buffer.name_hint}{list(self.place)}"

    def value_of(self, loop: ForOp) -> int:
        return dict(self.loops)[loop]

    def outside(self, loop: ForOp) -> tuple[int, ...]:
        """The values of the loops around `loop`."""
        values: list[int] = []
        for other, value in self.loops:
            if other is loop:
                break
            values.append(value)
        return tuple(values)

    def iteration(self) -> dict[str, int]:
        """Values of the loops by their names."""
        return {loop.induction_variable.name_hint or "?": value for loop, value in self.loops}

    @property
    def element(self) -> tuple[SSAValue, tuple[int, ...]]:
        return self.buffer, self.place


@dataclass
class Run:
    """The events of a function, and the instances of its blocks: iterator values and the loops they ran in."""

    events: list[Event] = field(default_factory=list)
    instances: dict[BlockOp, list[tuple[tuple[int, ...], dict[ForOp, int]]]] = field(default_factory=dict)

    def of(self, block: BlockOp) -> list[tuple[tuple[int, ...], dict[ForOp, int]]]:
        return self.instances.get(block, [])


def run(function: func.FuncOp, arguments: Mapping[str, int] | None = None) -> Run:
    """Run through a function; index arguments have the given values."""
    environment: dict[SSAValue, Any] = {}
    for argument in function.body.block.args:
        if isinstance(argument.type, IndexType):
            environment[argument] = (arguments or {})[argument.name_hint or ""]
    result = Run()
    _walk(function.body.block, environment, (), None, False, result)
    return result


def _walk(
    block: Block,
    env: dict[SSAValue, Any],
    loops: tuple[tuple[ForOp, int], ...],
    inside: BlockOp | None,
    in_init: bool,
    result: Run,
) -> None:
    for op in block.ops:
        if isinstance(op, ForOp):
            extent = op.extent if isinstance(op.extent, int) else env[op.extent]
            for value in range(extent):
                env[op.induction_variable] = value
                _walk(op.body.block, env, (*loops, (op, value)), inside, in_init, result)
        elif isinstance(op, BlockOp):
            _walk_block(op, env, loops, result)
        elif isinstance(op, InitOp):
            assert inside is not None
            steps = zip(inside.iter_vars, inside.kinds, strict=True)
            if all(env[v] == 0 for v, kind in steps if kind is IterKind.REDUCE):
                _walk(op.body.block, env, loops, inside, True, result)
        elif isinstance(op, scf.IfOp):
            region = op.true_region if env[op.cond] else op.false_region
            if region.blocks:
                _walk(region.block, env, loops, inside, in_init, result)
        elif isinstance(op, memref.LoadOp | memref.StoreOp):
            place = tuple(env[index] for index in op.indices)
            is_write = isinstance(op, memref.StoreOp)
            result.events.append(Event(op, op.memref, place, is_write, loops, inside, in_init))
        else:
            _evaluate(op, env)


def _walk_block(op: BlockOp, env: dict[SSAValue, Any], loops: tuple[tuple[ForOp, int], ...], result: Run) -> None:
    guard_values = [env[v] for v in op.guard_operands]
    if not all(left.eval(guard_values, []) < right.eval(guard_values, []) for left, right in op.guards):
        return
    values = tuple(expr.eval([env[v] for v in op.binding_operands], []) for expr in op.bindings.data.results)
    env.update(zip(op.iter_vars, values, strict=True))
    result.instances.setdefault(op, []).append((values, dict(loops)))
    _walk(op.body.block, env, loops, op, False, result)


def _evaluate(op: Operation, env: dict[SSAValue, Any]) -> None:
    """Index arithmetic and comparisons; everything else computes data, which no analysis looks at."""
    if isinstance(op, affine.ApplyOp):
        env[op.result] = op.map.data.eval([env[v] for v in op.mapOperands], [])[0]
    elif isinstance(op, arith.ConstantOp) and isinstance(op.value, IntegerAttr):
        env[op.result] = op.value.value.data
    elif isinstance(op, arith.CmpiOp) and isinstance(op.lhs.type, IndexType):
        env[op.result] = _COMPARE[op.predicate.value.data](env[op.lhs], env[op.rhs])
    elif isinstance(op, arith.AndIOp) and op.lhs in env and op.rhs in env:
        env[op.result] = env[op.lhs] and env[op.rhs]
    elif isinstance(op, arith.AddiOp | arith.SubiOp | arith.MuliOp) and isinstance(op.result.type, IndexType):
        a, b = env[op.lhs], env[op.rhs]
        env[op.result] = a + b if isinstance(op, arith.AddiOp) else a - b if isinstance(op, arith.SubiOp) else a * b
    elif isinstance(op, arith.MaxSIOp) and isinstance(op.result.type, IndexType):
        env[op.result] = max(env[op.lhs], env[op.rhs])
    elif isinstance(op, arith.DivSIOp | arith.RemSIOp) and isinstance(op.result.type, IndexType):
        a, b = env[op.lhs], env[op.rhs]
        assert a >= 0 and b > 0, f"{a} is divided by {b}"
        env[op.result] = a // b if isinstance(op, arith.DivSIOp) else a % b


def loops_in(root: Operation) -> list[ForOp]:
    """All loops in a program, outermost first."""
    return [op for op in root.walk() if isinstance(op, ForOp)]


def blocks_in(root: Operation) -> list[BlockOp]:
    return [op for op in root.walk() if isinstance(op, BlockOp)]


def below(events: Sequence[Event], loop: ForOp) -> list[Event]:
    """The events in the body of a loop."""
    return [event for event in events if any(other is loop for other, _ in event.loops)]


def conflicting(first: Event, second: Event) -> bool:
    """Whether two events touch one element and one of them writes."""
    return (first.is_write or second.is_write) and first.element == second.element


def crosses(events: Sequence[Event], loop: ForOp) -> tuple[Event, Event] | None:
    """Two events of different iterations of `loop` (in one iteration of what is around it) that conflict."""
    groups: dict[object, list[Event]] = {}
    for event in below(events, loop):
        groups.setdefault((event.outside(loop), event.element), []).append(event)
    for group in groups.values():
        writes = [event for event in group if event.is_write]
        for write in writes:
            for other in group:
                if other.value_of(loop) != write.value_of(loop):
                    return write, other
    return None


def never_crosses(buffer: SSAValue, events: Sequence[Event], loop: ForOp) -> bool:
    """Whether every element of `buffer` that an iteration of `loop` reads was written before in the same iteration."""
    written: set[object] = set()
    for event in events:
        if event.buffer is not buffer:
            continue
        inside = any(other is loop for other, _ in event.loops)
        if not inside:
            return False
        key = (event.outside(loop), event.value_of(loop), event.place)
        if event.is_write:
            written.add(key)
        elif key not in written:
            return False
    return True
