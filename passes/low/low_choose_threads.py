"""low-choose-threads: run parallel loops with little work on the calling thread."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from xdsl.context import Context
from xdsl.dialects import affine, arith, scf
from xdsl.dialects.builtin import IndexType, ModuleOp, VectorType
from xdsl.dialects.func import CallOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from weft.dialects.element_types import bytes_of
from weft.dialects.integer_arith import constant_integer
from weft.dialects.low import ParallelForOp
from weft.dialects.low_registered import CallRegisteredOp
from weft.dialects.traversal import copy_of, operations_in, operations_of
from weft.passes.index_builders import constant_before, insert_before, result_before
from weft.plans.cost import instructions_pay_from
from weft.support.statistics import Statistic
from weft.support.target import Target

_CHOSEN: Final = Statistic(
    "low-choose-threads", "conditions-added", "parallel loops whose threads are chosen at the call"
)
_FUNCTION: Final = 20
"""Instructions of an elementary function that is not expanded."""

_Work: TypeAlias = "Counter[tuple[SSAValue, ...]]"
"""Instructions by symbolic factors."""


@dataclass(frozen=True)
class ChooseThreadsPass(ModulePass):
    """Give parallel loops of symbolic work a condition: that they execute enough instructions to justify other threads.

    ```mlir
    low.parallel_for %i in %m { scf.for %j = %c0 to %n step %c1 { 4 instructions } }
    // becomes
    %j_work = arith.muli %n, %c4 : index
    %work = arith.muli %m, %j_work : index
    %pays = arith.cmpi sge, %work, %c65536 : index
    low.parallel_for %i in %m if %pays { scf.for %j = %c0 to %n step %c1 { ... } }
    ```
    The branch with the most factors of work determines the cost of a condition. A vector of several registers counts
    once for each. Loops with calls, `scf.while`, or bounds that depend on data or outer iterations get no condition.

    Requires: low functions.

    Leaves: the same.
    """

    name = "low-choose-threads"

    target: str
    """As in `weft.build`."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = Target.parse(self.target)
        least = instructions_pay_from(target.processor)
        for loop in operations_of(op, ParallelForOp):
            if loop.condition is None:
                _choose(loop, least, max(target.vector_bytes, 16))


def _choose(loop: ParallelForOp, least: int, vector_bytes: int) -> None:
    number = constant_integer(loop.extent)
    if number is not None and all(_is_static(op) for op in operations_in(loop)):
        return
    estimate = _Estimate(loop, vector_bytes)
    work = estimate.of_block(loop.body.block)
    work = None if work is None else _times(work, loop.extent if number is None else number)
    if work is None or not any(work):
        return
    _CHOSEN.add()
    total: SSAValue | None = None
    for factors, instructions in work.items():
        product = constant_before(instructions, loop)
        for factor in factors:
            product = result_before(arith.MuliOp(product, factor), loop)
        total = product if total is None else result_before(arith.AddiOp(total, product), loop)
    if total is not None:
        enough = arith.CmpiOp(total, constant_before(least, loop), "sge")
        condition = result_before(enough, loop)
        loop.operands = [loop.extent, condition]


def _is_static(op: Operation) -> bool:
    return type(op) is not scf.ForOp or None not in map(constant_integer, (op.lb, op.ub, op.step))


def _times(work: _Work, factor: SSAValue | int) -> _Work:
    if isinstance(factor, int):
        return Counter({factors: count * factor for factors, count in work.items()})
    return Counter({(*factors, factor): count for factors, count in work.items()})


@dataclass
class _Estimate:
    loop: ParallelForOp
    vector_bytes: int
    _outside: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    """Copies before the loop of values computed in it."""

    def of_block(self, block: Block) -> _Work | None:
        total: _Work = Counter({(): 1})
        for op in block.ops:
            work = self._of(op)
            if work is None:
                return None
            total.update(work)
        return total

    def _of(self, op: Operation) -> _Work | None:
        if isinstance(op, scf.ForOp):
            inner, trips = self.of_block(op.body.block), self._trips(op)
            return None if inner is None or trips is None else _times(inner, trips)
        if isinstance(op, scf.IfOp):
            branches = [self.of_block(block) for region in op.regions for block in region.blocks]
            known = [branch for branch in branches if branch is not None]
            return max(known, key=_rank) if len(known) == len(branches) else None
        if op.regions or isinstance(op, CallOp | CallRegisteredOp):
            return None
        return Counter({(): self._instructions(op)})

    def _instructions(self, op: Operation) -> int:
        if isinstance(op, arith.ConstantOp):
            return 0
        each = _FUNCTION if op.name.startswith("math.") and op.name not in ("math.fma", "math.absf") else 1
        return each * max((self._registers(value) for value in (*op.operands, *op.results)), default=1)

    def _registers(self, value: SSAValue) -> int:
        type_ = value.type
        if not isinstance(type_, VectorType) or isinstance(type_.element_type, IndexType):
            return 1
        return max(type_.get_shape()[0] * bytes_of(type_.element_type) // self.vector_bytes, 1)

    def _trips(self, loop: scf.ForOp) -> SSAValue | int | None:
        lower, upper, step = (constant_integer(value) for value in (loop.lb, loop.ub, loop.step))
        if lower is not None and upper is not None and step:
            return max(-(-(upper - lower) // step), 0)
        if lower != 0 or step != 1:
            return None
        return self._before(loop.ub)

    def _before(self, value: SSAValue) -> SSAValue | None:
        owner = value.owner
        if not self.loop.is_ancestor(owner):
            return value
        if value in self._outside:
            return self._outside[value]
        if not isinstance(owner, Operation) or not _is_index_arithmetic(owner):
            return None
        operands = {operand: self._before(operand) for operand in owner.operands}
        known = {operand: copy for operand, copy in operands.items() if copy is not None}
        if len(known) != len(operands):
            return None
        copy = copy_of(owner, dict(known))
        insert_before(self.loop, [copy])
        self._outside[value] = copy.results[0]
        return copy.results[0]


def _is_index_arithmetic(op: Operation) -> bool:
    if len(op.results) != 1 or not isinstance(op.results[0].type, IndexType):
        return False
    return isinstance(op, affine.ApplyOp) or op.name.startswith("arith.")


def _rank(work: _Work) -> tuple[int, int]:
    most = max(map(len, work), default=0)
    return most, sum(count for factors, count in work.items() if len(factors) == most)
