"""Pass selection: the LLVM passes that a schedule leaves work for, which determine most of the compile time.

Most of its passes look for what a complete schedule has decided already: which loops become vectors, which are
repeated, what stays in registers. A module that says so (`PassSelection`) is compiled with fewer of them.

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
    scf.for %k { scf.for %i {                           loops: sums in memory, which LLVM may keep in registers for
      %c = vector.load %C[%i * 16] ... } }              several steps of a loop outside
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xdsl.dialects import arith, memref, scf, vector
from xdsl.dialects.builtin import IndexType, MemRefType
from xdsl.dialects.utils import FastMathFlag

from weft.backends.llvm.metadata import PassSelection
from weft.dialects.low import UNROLL, GatherOp, ScatterOp

if TYPE_CHECKING:
    from collections.abc import Iterable

    from xdsl.dialects.func import FuncOp
    from xdsl.ir import Block, Operation, SSAValue


_ACCESSES: Final[dict[type[Operation], tuple[int, bool]]] = {
    memref.LoadOp: (0, False),
    vector.LoadOp: (0, True),
    vector.MaskedLoadOp: (0, True),
    GatherOp: (0, True),
    memref.StoreOp: (1, False),
    vector.StoreOp: (1, True),
    vector.MaskedStoreOp: (0, True),
    ScatterOp: (1, True),
}
"""Op -> the operand that is the buffer, which the index follows, and whether it accesses vectors."""


def pass_selection(functions: Iterable[FuncOp]) -> PassSelection:
    """What LLVM may find to do in some low functions."""
    return _most(*(_Function().pass_selection(function) for function in functions))


def _most(*selections: PassSelection) -> PassSelection:
    for most in (PassSelection.LOOPS, PassSelection.INVARIANTS):
        if most in selections:
            return most
    return PassSelection.NOTHING


class _Function:
    """A walk through one function.

    The depth of a value is the number of loops around the innermost one that it changes in, with that one. Unrolled
    loops do not count, so depth 0 is what becomes a constant, or is known before all loops."""

    def __init__(self) -> None:
        self._depths: dict[SSAValue, int] = {}
        self._deepest: dict[SSAValue, int] = {}
        """Buffer -> the greatest depth of the indices of its accesses."""
        self._repeated: set[SSAValue] = set()
        """Buffers in which a loop accesses the same elements in each iteration."""
        self._escaping: set[SSAValue] = set()
        """Buffers that stay in memory, for something else than loads and stores works on them."""
        self._updated: set[SSAValue] = set()
        """Buffers in which each iteration of a loop changes other elements where they lie: sums in memory, of a loop
        outside."""
        self._found = PassSelection.NOTHING

    def pass_selection(self, function: FuncOp) -> PassSelection:
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
        """Look at a block inside of `depth` loops; returns whether it accesses vectors."""
        depths = self._depths
        has_vectors = False
        loaded: set[SSAValue] = set()
        for op in block.ops:
            operands = op.operands
            access = _ACCESSES.get(type(op))
            if access is not None:
                buffer, of_vectors = access
                self._access(operands[buffer], operands[buffer + 1], depth)
                if op.results:
                    loaded.add(operands[buffer])
                elif operands[buffer] in loaded and depths.get(operands[buffer + 1], 0) == depth > 0:
                    self._updated.add(operands[buffer])
                has_vectors |= of_vectors
                changes_in = depth
            elif op.regions:
                has_vectors |= self._nested(op, depth)
                changes_in = depth
            else:
                changes_in = max([depths.get(operand, 0) for operand in operands], default=0)
                if not isinstance(op, memref.DeallocOp):
                    self._escaping.update([operand for operand in operands if isinstance(operand.type, MemRefType)])
            if changes_in:
                for result in op.results:
                    depths[result] = changes_in
        return has_vectors

    def _access(self, buffer: SSAValue, index: SSAValue, depth: int) -> None:
        index_depth = self._depths.get(index, 0)
        self._deepest[buffer] = max(self._deepest.get(buffer, 0), index_depth)
        if index_depth < depth:
            self._repeated.add(buffer)

    def _nested(self, op: Operation, depth: int) -> bool:
        """Look at a condition or a loop; returns whether it accesses vectors."""
        if isinstance(op, scf.IfOp):
            return any([self._block(region.block, depth) for region in op.regions if region.blocks])
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
        """Whether a scalar loop stores to consecutive elements what it loads from some, or a value that stays, or only
        holds loops that do. One that is unrolled may move elements that lie `anywhere`: its schedule says how."""
        for op in body.ops:
            if op.regions:
                # Loops in it have had their say.
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
        """Whether a scalar loop only adds floats that it loads to one element, each to the sum of those before."""
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
        """Whether an index is the counter of the loop at `depth` and what does not change in it."""
        while isinstance(index.owner, arith.AddiOp):
            left, right = index.owner.operands
            if self._depths.get(left, 0) == depth:
                left, right = right, left
            if self._depths.get(left, 0) == depth:
                return False
            index = right
        return index is counter


def _loads(value: SSAValue, buffer: SSAValue, index: SSAValue) -> bool:
    """Whether a value was loaded from an element of a buffer."""
    load = value.owner
    return isinstance(load, memref.LoadOp) and load.memref is buffer and load.indices[0] is index


def _computes_index(op: Operation) -> bool:
    return len(op.results) == 1 and isinstance(op.results[0].type, IndexType)
