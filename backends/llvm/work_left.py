"""The work that functions at low level leave to LLVM's passes (`PassSelection`).

scf.for %k { scf.for %i {low.unroll} {              nothing is left: vectors, and every access moves with %k, or is
  %a = vector.load %A[%i * 64 + %k * 16] ...        one of %t, a local buffer that becomes registers
  vector.store %s, %t[%i * 16]
} }
scf.for %k { %b = vector.load %B[%i * 16] ... }     invariants: LLVM can load before the loop
scf.for %k { memref.store %zero, %C[%i + %k] }      invariants: LLVM fills and copies by calls
scf.for %k { scf.for %i {low.unroll} {              invariants: a transposition, as it was scheduled
  %b = memref.load %B[%i * 64 + %k]
  memref.store %b, %P[%k * 16 + %i] } }
scf.for %k { %s = arith.addf ... }                  loops: a scalar loop, which LLVM may turn into vectors
scf.for %k { %x = memref.load %A[%k]                nothing: a sum of floats in order, which LLVM cannot turn into
  ... arith.addf %old, %x                           vectors, and %t becomes a register
  memref.store %sum, %t[0] }
scf.for %k { %m = low.cmpi slt, %n ... }            loops: an invariant mask of symbolic extents, in unrolled loops
scf.for %k { scf.for %i {                           loops: sums in memory, which LLVM may keep in registers for
  %c = vector.load %C[%i * 16] ... } }              several steps of a loop outside
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, MemRefType
from xdsl.dialects.utils import FastMathFlag

from weft.backends.llvm.memory_ops import ACCESSES
from weft.backends.llvm.pass_selection import PassSelection
from weft.dialects.low import UNROLL
from weft.dialects.low_lanes import CmpiOp

if TYPE_CHECKING:
    from collections.abc import Iterable

    from xdsl.dialects.func import FuncOp
    from xdsl.ir import Block, Operation, SSAValue


def work_left(functions: Iterable[FuncOp]) -> PassSelection:
    return _most(*(_FunctionWalk().work_left(function) for function in functions))


def _most(*selections: PassSelection) -> PassSelection:
    for most in (PassSelection.LOOPS, PassSelection.INVARIANTS):
        if most in selections:
            return most
    return PassSelection.NOTHING


class _FunctionWalk:
    """The depth of a value is that of the innermost loop in which it varies, without unrolled loops: values of depth 0
    become constants, or are computed before all loops."""

    def __init__(self) -> None:
        self._depths: dict[SSAValue, int] = {}
        self._deepest: dict[SSAValue, int] = {}
        """Buffer -> the greatest depth of its access indices."""
        self._repeated: set[SSAValue] = set()
        """Buffers with the same accessed elements in each iteration of a loop."""
        self._escaping: set[SSAValue] = set()
        """Buffers that stay in memory, because ops other than loads and stores use them."""
        self._updated: set[SSAValue] = set()
        """Buffers with other elements updated in place in each iteration of a loop: sums of an outer loop, kept in
        memory."""
        self._found = PassSelection.NOTHING
        self._is_symbolic = False
        """Whether the extents of some parameters are symbolic."""

    def work_left(self, function: FuncOp) -> PassSelection:
        types = [argument.type for argument in function.args]
        self._is_symbolic = any(isinstance(type_, MemRefType) and DYNAMIC_INDEX in type_.get_shape() for type_ in types)
        self._block(function.body.block, 0)
        if not all(self._becomes_registers(buffer) for buffer in self._updated):
            return PassSelection.LOOPS
        if all(self._becomes_registers(buffer) for buffer in self._repeated):
            return self._found
        return _most(self._found, PassSelection.INVARIANTS)

    def _becomes_registers(self, buffer: SSAValue) -> bool:
        local = isinstance(buffer.owner, memref.AllocaOp) and buffer not in self._escaping
        return local and self._deepest[buffer] == 0

    def _block(self, block: Block, depth: int) -> bool:
        """Returns whether vectors are accessed inside of `depth` loops."""
        depths = self._depths
        has_vectors = False
        loaded: set[SSAValue] = set()
        for op in block.ops:
            operands = op.operands
            access = ACCESSES.get(type(op))
            if access is not None:
                buffer, index = operands[access.buffer], operands[access.buffer + 1]
                self._access(buffer, index, depth)
                if not access.is_store:
                    loaded.add(buffer)
                elif buffer in loaded and depths.get(index, 0) == depth > 0:
                    self._updated.add(buffer)
                has_vectors |= access.of_vectors
                changes_in = depth
            elif op.regions:
                has_vectors |= self._nested(op, depth)
                changes_in = depth
            else:
                changes_in = max([depths.get(operand, 0) for operand in operands], default=0)
                if type(op) is not memref.DeallocOp:
                    self._escaping.update([operand for operand in operands if type(operand.type) is MemRefType])
            if changes_in:
                for result in op.results:
                    depths[result] = changes_in
            if changes_in < depth and self._is_symbolic and type(op) is CmpiOp:
                # Passes after unrolling hoist the masks of images out of the loops over their rows.
                self._found = PassSelection.LOOPS
        return has_vectors

    def _access(self, buffer: SSAValue, index: SSAValue, depth: int) -> None:
        index_depth = self._depths.get(index, 0)
        self._deepest[buffer] = max(self._deepest.get(buffer, 0), index_depth)
        if index_depth < depth:
            self._repeated.add(buffer)

    def _nested(self, op: Operation, depth: int) -> bool:
        if isinstance(op, scf.IfOp):
            return any([self._block(region.block, depth) for region in op.regions if region.blocks])
        if isinstance(op, scf.WhileOp):
            for region in op.regions:
                self._depths.update(dict.fromkeys(region.block.args, depth + 1))
            has_vectors = any([self._block(region.block, depth + 1) for region in op.regions])
            if op.operands and not has_vectors:
                self._found = PassSelection.LOOPS
            return has_vectors
        unrolled = UNROLL in op.attributes
        inside = depth if unrolled else depth + 1
        body = op.regions[0].block
        counter, *carried = body.args
        self._depths[counter] = 0 if unrolled else inside
        self._depths.update(dict.fromkeys(carried, inside))
        has_vectors = self._block(body, inside)
        if not has_vectors and not self._only_adds_in_order(body, inside):
            moves = self._only_moves(body, inside, anywhere=unrolled)
            self._found = _most(self._found, PassSelection.INVARIANTS if moves else PassSelection.LOOPS)
        return has_vectors

    def _only_moves(self, body: Block, depth: int, *, anywhere: bool) -> bool:
        """Whether a scalar loop, with those inside, only stores loaded or invariant values to consecutive elements;
        `anywhere` in an unrolled loop, because its order was scheduled."""
        for op in body.ops:
            if op.regions:
                # Inner loops were already visited.
                if isinstance(op, scf.IfOp):
                    return False
            elif isinstance(op, memref.StoreOp):
                value = op.value.owner
                if not isinstance(value, memref.LoadOp) and self._depths.get(op.value, 0) == depth:
                    return False
                if not anywhere and not self._is_consecutive(op.indices[0], body.args[0], depth):
                    return False
            elif isinstance(op, memref.LoadOp):
                if not anywhere and not self._is_consecutive(op.indices[0], body.args[0], depth):
                    return False
            elif op.results and not isinstance(op.results[0].type, IndexType):
                return False
        return True

    def _only_adds_in_order(self, body: Block, depth: int) -> bool:
        """Whether a scalar loop only accumulates loaded floats in one element, in order."""
        sums = [op for op in body.ops if type(op) is arith.AddfOp]
        if len(sums) != 1 or any(flag is not FastMathFlag.ALLOW_CONTRACT for flag in sums[0].fastmath.data):
            return False
        stores = 0
        for op in body.ops:
            if isinstance(op, memref.StoreOp):
                stores += 1
                if op.value is not sums[0].result or self._depths.get(op.indices[0], 0) == depth:
                    return False
                if not any(_loads(side, op.memref, op.indices[0]) for side in sums[0].operands):
                    return False
            elif op.regions or (type(op) not in (memref.LoadOp, arith.AddfOp, scf.YieldOp) and not _computes_index(op)):
                return False
        return stores == 1

    def _is_consecutive(self, index: SSAValue, counter: SSAValue, depth: int) -> bool:
        """Whether an index is the induction variable of the loop at `depth` plus invariant values."""
        while isinstance(index.owner, arith.AddiOp):
            left, right = index.owner.operands
            if self._depths.get(left, 0) == depth:
                left, right = right, left
            if self._depths.get(left, 0) == depth:
                return False
            index = right
        return index is counter


def _loads(value: SSAValue, buffer: SSAValue, index: SSAValue) -> bool:
    load = value.owner
    return isinstance(load, memref.LoadOp) and load.memref is buffer and load.indices[0] is index


def _computes_index(op: Operation) -> bool:
    return len(op.results) == 1 and isinstance(op.results[0].type, IndexType)
