"""tir-lower-blocks: inline blocks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from xdsl.dialects import memref
from xdsl.dialects.builtin import ArrayAttr, BoolAttr, DenseArrayBase, IntegerAttr, StringAttr, UnitAttr, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, BlockArgument, SSAValue
from xdsl.rewriter import Rewriter

from weft.analysis.block_scopes import buffers_read, buffers_written, guards_of
from weft.analysis.index import Index
from weft.dialects.low_access import PrefetchOp
from weft.dialects.tir import AccessRegionOp, BlockOp
from weft.dialects.tir_kinds import IN_STEP, NONTEMPORAL, PREFETCH, PREFETCHED, TIR_FUNCTION
from weft.dialects.traversal import operations_of
from weft.passes.index_builders import detached_ops, index_before, insert_before, insert_where
from weft.passes.tir.guards import decide_clamps
from weft.passes.tir.tir_pass import LOCAL, TirPass, bind_iterators, buffer_type, unproved_before
from weft.support.errors import CompileError


@dataclass(frozen=True)
class LowerBlocksPass(TirPass):
    """Replace every `tir.block` by its body: iterators become their bindings, guards that may fail become `scf.if`.

    ```mlir
    tir.block "C" iters(%vi: spatial<126>) = [%i0 * 4 + %i1] where [%i0 * 4 + %i1] < [126] { BODY(%vi) }
    // becomes
    %vi = affine.apply affine_map<(d0, d1) -> (d0 * 4 + d1)> (%i0, %i1)
    %c126 = arith.constant 126 : index
    %inside = arith.cmpi slt, %vi, %c126 : index
    scf.if %inside { BODY(%vi) }
    ```
    Loops stay. Nested blocks are also replaced. Minima and maxima of indices that are decided by the extents of the
    loops are replaced by an operand, as in `min(%i, %n - 1)` for `%i` in `%n`.

    Annotation `prefetch`: accesses prefetch for later instances, shifted by block iterators, independently of loops.

    ```mlir
    tir.block "exp" ... attributes {prefetch = [["read", 0, [1, 0]]]} { memref.load %A[%vi, %vk] ... }
    // becomes
    memref.load %A[%i, %k] {tir.prefetched = array<i64: 1, 0>}
    // and after tir-flatten, with rows of 1024 elements
    low.prefetch %A[%i * 1024 + %k + 1024] {lanes = 1}
    memref.load %A[%i * 1024 + %k]
    ```
    A block may also prefetch the elements that another block accesses, `["write", 0, [0, 0], "C"]`, with its own
    iterators in place of the other's: a `low.prefetch` with one index per dimension, at the start of the block.

    Annotation `nontemporal`: non-temporal stores. Vector stores keep it; it has no effect for masked lanes, and on
    targets without such stores.

    ```mlir
    tir.block "C" ... attributes {nontemporal = [0]} { memref.store %c, %C[%vi] }
    // becomes
    memref.store %c, %C[%i] {nontemporal = true}
    ```

    Requires: blocks without `tir.init` (`tir-lower-reductions`; CompileError names the block).

    Leaves: loops, conditions, loads and stores; no blocks.
    """

    name = "tir-lower-blocks"

    def rewrite(self, function: FuncOp) -> None:
        blocks = operations_of(function, BlockOp)
        _mark_prefetches(function, blocks)
        _mark_nontemporal(blocks)
        for block in blocks:
            _lower_block(block)
        decide_clamps(function.body)
        function.attributes[TIR_FUNCTION] = UnitAttr()


def _lower_block(block: BlockOp) -> None:
    if block.init is not None:
        raise CompileError.at(block, f'block "{block.label}" still has its tir.init: run tir-lower-reductions before')
    conditions = unproved_before(guards_of(block), block)
    bind_iterators(block)
    body = block.body.block
    for op in [op for op in body.ops if isinstance(op, AccessRegionOp)]:
        Rewriter.erase_op(op)
    insert_where(conditions, detached_ops(body), block)
    Rewriter.erase_op(block)


_FORM: Final = f'{PREFETCH} is a list of ["read" or "write", buffer, [shift of each iterator]], with a block or without'


def _mark_prefetches(function: FuncOp, blocks: Sequence[BlockOp]) -> None:
    """Skips buffers in registers, unknown or zero distances, and temporaries of another block. Raises `CompileError`
    for malformed annotations."""
    for block in blocks:
        noted = block.attributes.get(PREFETCH)
        for entry in () if noted is None else _entries(block, noted, blocks):
            if entry.accessing is block:
                _mark(entry)
            elif isinstance(entry.buffer, BlockArgument) and IN_STEP not in function.attributes:
                _prefetch_at_head(block, entry)


@dataclass(frozen=True)
class _Prefetch:
    """Elements of `buffer` that `accessing` reads or writes, with its iterators shifted."""

    accessing: BlockOp
    kind: str
    buffer: SSAValue
    shifts: list[int]

    def accesses(self) -> list[memref.LoadOp | memref.StoreOp]:
        op_type = memref.LoadOp if self.kind == "read" else memref.StoreOp
        uses = [use.operation for use in self.buffer.uses]
        return [op for op in uses if isinstance(op, op_type) and self.accessing.is_ancestor(op)]


def _mark(entry: _Prefetch) -> None:
    if buffer_type(entry.buffer).memory_space == LOCAL:
        return
    shifted: dict[SSAValue, Index] = {
        v: Index.of(v) + shift for v, shift in zip(entry.accessing.iter_vars, entry.shifts, strict=True) if shift != 0
    }
    for op in entry.accesses():
        distances = _distances(op.indices, shifted)
        if distances is not None and any(distances):
            op.attributes[PREFETCHED] = DenseArrayBase.from_list(i64, distances)


def _prefetch_at_head(block: BlockOp, entry: _Prefetch) -> None:
    shifted: dict[SSAValue, Index] = {
        theirs: Index.of(own) + shift
        for theirs, own, shift in zip(entry.accessing.iter_vars, block.iter_vars, entry.shifts, strict=True)
    }
    first = next((op for op in block.body.block.ops if not isinstance(op, AccessRegionOp)), None)
    for op in entry.accesses():
        indices = [Index.of(index) for index in op.indices]
        if first is not None and all(value in shifted for index in indices for value in index.values()):
            places = [index_before(index.substitute(shifted), first) for index in indices]
            insert_before(first, [PrefetchOp(entry.buffer, places, for_write=entry.kind == "write")])


def _entries(block: BlockOp, noted: Attribute, blocks: Sequence[BlockOp]) -> Iterator[_Prefetch]:
    elements: tuple[Attribute, ...] = noted.data if isinstance(noted, ArrayAttr) else (noted,)
    for entry in elements:
        match entry.data if isinstance(entry, ArrayAttr) else ():
            case (
                StringAttr(data="read" | "write" as kind),
                IntegerAttr() as position,
                ArrayAttr(data=numbers),
                *others,
            ) if len(others) < 2 and all(isinstance(other, StringAttr) for other in others):
                shifts = [number.value.data for number in numbers if isinstance(number, IntegerAttr)]
                names = [other.data for other in others if isinstance(other, StringAttr)]
            case _:
                raise CompileError.at(block, f'block "{block.label}": {_FORM}, got {entry}')
        accessing = _named(block, names[0], blocks) if names else block
        if len(shifts) != len(accessing.iter_vars) or len(shifts) != len(numbers):
            raise CompileError.at(
                block, f'block "{accessing.label}" has {len(accessing.iter_vars)} iterators: {_FORM}, got {entry}'
            )
        yield _Prefetch(accessing, kind, _accessed_buffer(block, accessing, kind, position.value.data), shifts)


def _accessed_buffer(block: BlockOp, accessing: BlockOp, kind: str, at: int) -> SSAValue:
    buffers = buffers_read(accessing) if kind == "read" else buffers_written(accessing)
    if not 0 <= at < len(buffers):
        raise CompileError.at(block, f'block "{accessing.label}" {kind}s {len(buffers)} buffers: there is no {at}')
    return buffers[at]


def _named(block: BlockOp, name: str, blocks: Sequence[BlockOp]) -> BlockOp:
    other = next((other for other in blocks if other.label == name), None)
    if other is None or len(other.iter_vars) != len(block.iter_vars):
        why = "there is no such block"
        if other is not None:
            why = f"it has {len(block.iter_vars)} iterators, that one {len(other.iter_vars)}"
        raise CompileError.at(block, f'block "{block.label}" needs the accesses of "{name}": {why}')
    return other


def _distances(indices: Sequence[SSAValue], shifted: dict[SSAValue, Index]) -> list[int] | None:
    found: list[int] = []
    for value in indices:
        index = Index.of(value)
        difference = (index.substitute(shifted) - index).simplified()
        opaque = [value for value in index.values() if value not in shifted]
        if not difference.is_constant or any(Index.of(value).depends_on(shifted) for value in opaque):
            return None
        found.append(difference.constant)
    return found


_YES: Final = BoolAttr.from_bool(True)


def _mark_nontemporal(blocks: Iterable[BlockOp]) -> None:
    """Skips buffers in registers. Raises `CompileError` for malformed annotations and buffers that the block does not
    write."""
    for block in blocks:
        noted = block.attributes.get(NONTEMPORAL)
        for buffer in () if noted is None else _buffers(block, noted):
            if buffer_type(buffer).memory_space == LOCAL:
                continue
            for use in buffer.uses:
                if isinstance(use.operation, memref.StoreOp) and block.is_ancestor(use.operation):
                    use.operation.nontemporal = _YES


def _buffers(block: BlockOp, noted: Attribute) -> list[SSAValue]:
    entries = noted.data if isinstance(noted, ArrayAttr) else (noted,)
    places = [entry.value.data for entry in entries if isinstance(entry, IntegerAttr)]
    if not isinstance(noted, ArrayAttr) or len(places) != len(entries):
        raise CompileError.at(
            block, f'block "{block.label}": {NONTEMPORAL} is a list of numbers of buffers that it writes, got {noted}'
        )
    return [_accessed_buffer(block, block, "write", place) for place in places]
