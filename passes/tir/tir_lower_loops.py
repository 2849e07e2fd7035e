"""tir-lower-loops: `scf.for` and index arithmetic."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import affine, arith, scf
from xdsl.dialects.builtin import IndexType, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from weft.analysis.index import Atom, Index, Quotient, RangeOf
from weft.dialects.low import MOST_COPIES, PARAMS, UNROLL, ParallelForOp
from weft.dialects.low_kernel import KERNEL
from weft.dialects.tir import ForOp
from weft.dialects.tir_kinds import LoopKind
from weft.dialects.traversal import operations_in
from weft.passes.index_builders import arith_op, dissolve, divided, index_constant, insert_before
from weft.passes.tir.tir_pass import FunctionPass, remembered_ranges
from weft.support.errors import InternalError

_TRACED = (affine.ApplyOp, arith.AddiOp, arith.SubiOp, arith.MuliOp)

_UNIT = UnitAttr()


@dataclass(frozen=True)
class LowerLoopsPass(FunctionPass):
    """Turn `tir.for` into `scf.for` (unrolled: with `low.unroll`; parallel: `low.parallel_for`), and index arithmetic
    into shared `arith` ops, each in the outermost loop in which its operands are defined.

    ```mlir
    tir.for %i in 8 { tir.for %j in 4 unrolled {
      %p = affine.apply affine_map<(d0, d1) -> (d0 * 4 + d1)> (%i, %j) ... } }
    // becomes
    scf.for %i = %c0 to %c8 step %c1 {
      %q = arith.muli %i, %c4 : index
      scf.for %j = %c0 to %c4 step %c1 { %p = arith.addi %q, %j : index ... } {low.unroll} }
    ```
    Quotients and remainders of non-negative indices are unsigned. Loops bound to GPU axes become plain loops, since
    their iterations are independent.

    Requires: flat buffers (`tir-flatten`).

    Leaves: the low level: `scf.for`, `low.parallel_for`, `arith`; no operation of tir.
    """

    name = "tir-lower-loops"

    def rewrite(self, function: FuncOp) -> None:
        if function.attributes.keys().isdisjoint((PARAMS, KERNEL)) or not function.body.blocks:
            return
        emitter = IndexEmitter(function)
        emitter.run()
        for loop in [op for op in operations_in(function, inner_first=True) if isinstance(op, ForOp)]:
            lower_loop(loop, emitter)


def lower_loop(loop: ForOp, emitter: IndexEmitter) -> None:
    """Lower a loop whose indices are already those of `emitter`."""
    kind = loop.kind.data
    extent = loop.extent
    if extent == 1:
        dissolve(loop, emitter.constant(0))
        return
    bound = emitter.constant(extent) if isinstance(extent, int) else extent
    body = loop.detach_region(loop.body)
    if kind is LoopKind.PARALLEL:
        new: Operation = ParallelForOp(bound, body)
    else:
        body.block.add_op(scf.YieldOp.create())
        new = scf.ForOp.create(operands=[emitter.constant(0), bound, emitter.constant(1)], regions=[body])
        if kind is LoopKind.UNROLLED and isinstance(extent, int):
            copies = extent * max((emitter.copies.get(op, 1) for op in body.walk()), default=1)
            if copies <= MOST_COPIES:
                new.attributes[UNROLL] = _UNIT
                emitter.copies[new] = copies
    insert_before(loop, [new])
    Rewriter.erase_op(loop)


class IndexEmitter:
    """Replaces index arithmetic by shared sums.

    Terms are added from outer to inner loops, so indices with equal prefixes share partial sums, as far out as
    possible.
    """

    def __init__(self, function: FuncOp) -> None:
        self.function = function
        self.entry = function.body.block
        self.values: dict[Index, SSAValue] = {}
        self.constants: dict[int, SSAValue] = {}
        self.last: dict[Block | Operation, Operation] = {}
        """Last op inserted at the start of a block, or after an operation."""
        self.depths: dict[Block, int] = {}
        self.anchors: dict[SSAValue, Block | Operation] = {}
        """Places of inserted values."""
        self.products: dict[tuple[SSAValue, SSAValue], SSAValue] = {}
        self.ranges = remembered_ranges()
        self.copies: dict[Operation, int] = {}
        """Copies of the innermost body made by unrolled loops."""

    def run(self) -> None:
        ops = [op for op in operations_in(self.function) if _is_traced(op)]
        # First: lowered divisions cannot be traced.
        demanded = [op for op in ops if any(not _is_traced(use.operation) for use in op.results[0].uses)]
        indices = [Index.of(op.results[0]).simplified(self.ranges) for op in demanded]
        new = {op: self.value(index) for op, index in zip(demanded, indices, strict=True)}
        for op, value in new.items():
            if value is op.results[0]:
                continue
            if value.name_hint is None:
                value.name_hint = op.results[0].name_hint
            op.results[0].replace_all_uses_with(value)
        for op in reversed(ops):
            if op.results[0].first_use is None:
                Rewriter.erase_op(op)

    def constant(self, value: int) -> SSAValue:
        if value not in self.constants:
            op = index_constant(value)
            self._insert(op, self.entry)
            self.constants[value] = op.result
        return self.constants[value]

    def value(self, index: Index) -> SSAValue:
        if index not in self.values:
            self.values[index] = self._sum(index)
        return self.values[index]

    def _sum(self, index: Index) -> SSAValue:
        if index.is_constant:
            return self.constant(index.constant)
        index = _with_unsigned_divisions(index, self.ranges)
        terms = sorted(index.terms.items(), key=lambda term: self._depth(Index({term[0]: 1})))
        if index.constant:
            if all(factor < 0 for _, factor in terms):
                return self._binary(arith.SubiOp, self.constant(index.constant), self.value(-Index(dict(terms))))
            return self._binary(arith.AddiOp, self.value(Index(dict(terms))), self.constant(index.constant))
        *before, (atom, factor) = terms
        if before:
            op_class = arith.AddiOp if factor > 0 else arith.SubiOp
            return self._binary(op_class, self.value(Index(dict(before))), self.value(Index({atom: abs(factor)})))
        if factor != 1:
            return self._binary(arith.MuliOp, self.value(Index({atom: 1})), self.constant(factor))
        return self._atom(atom)

    def _atom(self, atom: Atom) -> SSAValue:
        if isinstance(atom, SSAValue):
            return self._product(atom.owner) if isinstance(atom.owner, arith.MuliOp) else atom
        numerator = self.value(atom.numerator)
        divisor = self.constant(atom.divisor)
        return divided(atom, numerator, divisor, self.ranges, self._binary)

    def _product(self, op: arith.MuliOp) -> SSAValue:
        left = self.value(Index.of(op.lhs).simplified(self.ranges))
        right = self.value(Index.of(op.rhs).simplified(self.ranges))
        if (left, right) not in self.products:
            self.products[left, right] = self._binary(arith.MuliOp, left, right)
        return self.products[left, right]

    def _binary(self, op_class: type[Operation], left: SSAValue, right: SSAValue) -> SSAValue:
        op = arith_op(op_class, left, right)
        anchor = self._later(self._anchor(left), self._anchor(right))
        self._insert(op, anchor)
        return op.results[0]

    def _insert(self, op: Operation, anchor: Block | Operation) -> None:
        previous = self.last.get(anchor)
        self.last[anchor] = op
        self.anchors[op.results[0]] = anchor
        after = previous or (anchor if isinstance(anchor, Operation) else None)
        like = anchor if isinstance(anchor, Operation) else anchor.parent_op()
        if like is not None:
            op.location = like.location
        Rewriter.insert_op(op, InsertPoint.at_start(self._block(anchor)) if after is None else InsertPoint.after(after))

    def _anchor(self, value: SSAValue) -> Block | Operation:
        return self.anchors.get(value, value.owner)

    def _later(self, one: Block | Operation, other: Block | Operation) -> Block | Operation:
        if one is other:
            return one
        home, other_home = self._block(one), self._block(other)
        if home is not other_home:
            return one if self._block_depth(home) > self._block_depth(other_home) else other
        if isinstance(one, Block):
            return other
        if isinstance(other, Block):
            return one
        return other if one.is_before_in_block(other) else one

    def _block(self, anchor: Block | Operation) -> Block:
        if isinstance(anchor, Block):
            return anchor
        if anchor.parent is None:
            raise InternalError(f"{anchor.name} is in no block")
        return anchor.parent

    def _depth(self, index: Index) -> int:
        return max((self._block_depth(self._block(self._anchor(v))) for v in index.values()), default=0)

    def _block_depth(self, block: Block) -> int:
        if block not in self.depths:
            parent = block.parent_block()
            self.depths[block] = 0 if parent is None else self._block_depth(parent) + 1
        return self.depths[block]


def _with_unsigned_divisions(index: Index, ranges: RangeOf) -> Index:
    """Numerators that may be negative get multiples of the divisor; the index stays equal."""
    terms: dict[Atom, int] = {}
    constant = index.constant
    for atom, factor in index.terms.items():
        if isinstance(atom, SSAValue):
            terms[atom] = factor
            continue
        low, _ = atom.numerator.range(ranges)
        steps = 0 if low is None or low >= 0 else -(low // atom.divisor)
        raised = type(atom)(atom.numerator + steps * atom.divisor, atom.divisor)
        terms[raised] = terms.get(raised, 0) + factor
        if isinstance(atom, Quotient):
            constant -= factor * steps
    return Index(terms, constant)


def _is_traced(op: Operation) -> bool:
    return isinstance(op, _TRACED) and isinstance(op.results[0].type, IndexType)
