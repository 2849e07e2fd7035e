"""convert-linalg-to-tir: ops of linalg as blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field
from typing import Final, cast

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    IndexType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    NoneAttr,
    StridedLayoutAttr,
)
from xdsl.dialects.func import FuncOp
from xdsl.dialects.linalg.ops import YieldOp
from xdsl.dialects.memref import AllocaOp, AllocOp, CastOp, DimOp, LoadOp, ReinterpretCastOp, StoreOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from weft.analysis.block_scopes import child_blocks
from weft.analysis.index import Index
from weft.dialects.aliasing import may_overlap
from weft.dialects.effects import effects_of, touches_memory, underlying
from weft.dialects.integer_arith import constant_integer
from weft.dialects.levels import allowed_at
from weft.dialects.promises import Promise, parse_promises, state_promises
from weft.dialects.strides import dynamic_extents
from weft.dialects.tir import AssumeShapeOp, BlockOp, ForOp
from weft.dialects.tir_kinds import INIT_ORIGIN, ORIGIN, REDUCE, SPATIAL
from weft.dialects.traversal import ancestors, operations_in, operations_of
from weft.dialects.upstream.linalg_forms import Structure, is_structured, structure_of
from weft.dialects.upstream.views import uncast
from weft.passes.convert.bufferize_tensors import bufferize_functions
from weft.passes.convert.live_range_splitting import WholeWrite, split_live_ranges
from weft.passes.convert.raise_affine_to_tir import raise_function, why_not_raised
from weft.passes.convert.reduction_inits import move_to_init
from weft.passes.convert.returned_parameters import drop_returned_parameters
from weft.passes.convert.tensor_decompositions import decompose, is_decomposed
from weft.passes.convert.upstream_functions import called_together, convertible, tensor_functions
from weft.passes.convert.values_as_bytes import hold_in_bytes
from weft.passes.index_builders import (
    constant_before,
    detached_ops,
    dim_before,
    erase_dead,
    extent_before,
    insert_at_start,
    insert_before,
)
from weft.passes.schedule.nest_builders import block_in_loops, values_in
from weft.support.errors import CompileError, remark
from weft.support.names import new_name


@dataclass(frozen=True)
class ConvertLinalgToTirPass(ModulePass):
    """Convert each operation of linalg to a block in a loop nest; functions over tensors are bufferized first.

    ```mlir
    linalg.fill ins(%zero : f32) outs(%C : memref<8x8xf32>)
    linalg.matmul ins(%A, %B : memref<8x4xf32>, memref<4x8xf32>) outs(%C : memref<8x8xf32>)
    // becomes
    tir.for %m in 8 { tir.for %n in 8 { tir.for %k in 4 {
      tir.block "matmul" iters(%vm: spatial<8>, %vn: spatial<8>, %vk: reduce<4>) = [%m, %n, %k] {
        tir.init { memref.store %zero, %C[%vm, %vn] : memref<8x8xf32> }
        ...
    ```
    Loops that index an output are spatial, others reduce. A fill becomes the init of the reduction into its buffer if
    no op in between accesses that buffer and no input may overlap it: the function assumes `noalias`, or allocates one
    of the two. Values that share a buffer get separate ones (`live_range_splitting.py`). Equality of dynamic extents of
    parameters of top-level operations becomes a condition of calls (`tir.assume_shape`).

    Requires: functions with operations of linalg on row-major or strided memrefs, or on tensors. An operation that is
    not converted gets a remark.

    Leaves: functions of block loops over buffers with the additional assumptions `promises`; former functions over
    tensors have `noalias`. Operations of `affine`, `scf` and `memref` are raised as by `raise-affine-to-tir`.

    Raises `CompileError` for types for which operations are not defined, and operands that do not fit each other.
    """

    name = "convert-linalg-to-tir"

    promises: tuple[str, ...] = ()
    """Assumptions of compilers about callers: `noalias`, `contract`, `reassoc`."""
    strict: bool = False
    """Whether remarks are errors."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        promises = parse_promises(self.promises)
        functions = linalg_functions(op)
        tensors = [f for f in called_together(functions, tensor_functions(op)) if f not in functions]
        kept = convertible(op, self.name, [*functions, *tensors], in_blocks=True, strict=self.strict)
        left = set(functions) - set(kept)
        functions = [function for function in functions if function not in left]
        decompose(functions)
        bufferize_functions(called_together(functions, tensor_functions(op)), promises, asserts=True)
        if not self.convert(op, functions, promises, left) and not left:
            self._leave(op, "the module has no linalg that it takes")

    def convert(
        self, op: ModuleOp, functions: Sequence[FuncOp], promises: frozenset[Promise], left: Set[FuncOp]
    ) -> bool:
        """Returns whether there was anything to convert. Operations that remain in functions other than `left` get a
        remark."""
        drop_returned_parameters(op, functions)
        found = False
        for function in functions:
            state_promises(function, promises)
            found = _LinalgConversion(function).run() or found
            if not any(map(_is_to_raise, function.body.block.ops)):
                hold_in_bytes(function)
                continue
            problem = why_not_raised(function)
            if problem is None:
                raise_function(function)
            else:
                self._leave(problem[0], f"stays as it is: {problem[1]}")
        for function in (function for function in op.ops if function not in left):
            for inner in operations_in(function):
                if inner.name.startswith("linalg.") and inner.name not in _PARTS:
                    self._leave(inner, "has no form in tir" if not is_structured(inner) else _why_not_taken(inner))
        return found

    def _leave(self, op: Operation, reason: str) -> None:
        place = "" if isinstance(op, ModuleOp) else f"{op.name} "
        remark(op, f"{self.name}: {place}{reason}", strict=self.strict)


def linalg_functions(module: ModuleOp) -> list[FuncOp]:
    return [
        f
        for f in module.ops
        if isinstance(f, FuncOp) and len(f.body.blocks) == 1 and any(map(_is_taken, operations_in(f)))
    ]


_PARTS: Final = ("linalg.yield", "linalg.index")


def _is_taken(op: Operation) -> bool:
    return is_structured(op) or is_decomposed(op)


def _is_to_raise(op: Operation) -> bool:
    return (
        (bool(op.regions) and not isinstance(op, ForOp | BlockOp))
        or isinstance(op, ReinterpretCastOp)
        or touches_memory(op)
        or not allowed_at("tir", op.name)
    )


def _why_not_taken(op: Operation) -> str:
    function = next((one for one in ancestors(op) if isinstance(one, FuncOp)), None)
    if function is not None and len(function.body.blocks) != 1:
        return "stays as it is: its function has several blocks (MLIR's --lift-cf-to-scf makes one)"
    if op.results:
        return "stays as it is: it is on tensors, in a function of another level"
    for operand in op.operands:
        if isinstance(operand.type, MemRefType) and not isinstance(operand.type.layout, NoneAttr | StridedLayoutAttr):
            return f"stays as it is: buffers of tir are row-major or strided, not {operand.type}"
    return ""


def _shape(value: SSAValue) -> Sequence[int]:
    """Extents of a buffer, including those that a cast hides."""
    shape = value.type.get_shape() if isinstance(value.type, MemRefType) else ()
    if not isinstance(value.owner, CastOp):
        return shape
    source = _shape(value.owner.source)
    return [hidden if known == DYNAMIC_INDEX else known for known, hidden in zip(shape, source, strict=True)]


@dataclass
class _LinalgConversion:
    function: FuncOp
    _labels: set[str] = field(default_factory=set[str])
    _dims: _Dims = field(init=False)
    _starts: dict[SSAValue, tuple[Operation, BlockOp]] = field(
        default_factory=dict[SSAValue, tuple[Operation, BlockOp]]
    )
    """Maps a buffer filled with a scalar to the filling nest and its block."""
    _writes: list[WholeWrite] = field(default_factory=list[WholeWrite])

    def run(self) -> bool:
        ops = [op for op in operations_in(self.function) if is_structured(op) and not _why_not_taken(op)]
        structures = [(op, structure_of(op)) for op in ops]
        if not ops:
            return False
        self._dims = _Dims(self.function)
        self._labels = {block.label for block in child_blocks(self.function)}
        for op, structure in structures:
            _check(op, structure)
            if op.parent is self.function.body.block:
                self._dims.unite(structure)
        self._dims.place()
        for op, structure in structures:
            self._convert(op, structure)
        split_live_ranges(self.function.body.block, self._writes, self._dims.sizes)
        self._dims.finish()
        erase_dead(self.function.body.block)
        return True

    def _convert(self, op: Operation, structure: Structure) -> None:
        extents = self._dims.extents(op, structure)
        if 0 in extents:
            Rewriter.erase_op(op)
            return
        if op.parent is not self.function.body.block:
            # Its block also gets the iterators of the loops around it, by raising.
            _replace_by_loops(op, structure, extents)
            return
        label = new_name(op.name.removeprefix("linalg."), self._labels)
        indexing = {d for map_ in structure.maps[len(structure.inputs) :] for e in map_.results for d in e.used_dims()}
        kinds = [SPATIAL if loop in indexing else REDUCE for loop in range(len(extents))]
        hints = [f"v{name}" for name in structure.loop_names]
        block, nest = block_in_loops(label, kinds, extents, hints, op, structure.loop_names)
        if ORIGIN in op.attributes:
            block.attributes[ORIGIN] = op.attributes[ORIGIN]
        starts = self._starts_of(op, structure)
        _move_region(block.body.block, block.iter_vars, op, structure)
        for output, map_ in zip(structure.outputs, structure.maps[len(structure.inputs) :], strict=True):
            if starts:
                nest_of_start, start = starts[output]
                self._writes = [write for write in self._writes if write.nest is not nest_of_start]
                self._labels.discard(start.label)
                if ORIGIN in start.attributes:
                    block.attributes[INIT_ORIGIN] = start.attributes[ORIGIN]
                places = cast("StoreOp", start.body.block.last_op).indices
                variables = (block.iter_vars[loop] for loop in _loops_in(map_))
                move_to_init(start, block, dict(zip(places, variables, strict=True)))
            self._starts.pop(output, None)
            if _is_projection(map_) and len(map_.results) == kinds.count(SPATIAL) and (starts or REDUCE not in kinds):
                self._writes.append(WholeWrite(nest, block, output, reduces=bool(starts)))
        Rewriter.insert_op(nest, InsertPoint.before(op))
        Rewriter.erase_op(op)
        if _is_start(block, structure):
            self._starts[structure.outputs[0]] = nest, block

    def _starts_of(self, op: Operation, structure: Structure) -> dict[SSAValue, tuple[Operation, BlockOp]]:
        maps = structure.maps[len(structure.inputs) :]
        starts = {output: self._starts[output] for output in structure.outputs if output in self._starts}
        if len(starts) != len(structure.outputs) or not all(map(_is_projection, maps)):
            return {}
        spatial = set(_loops_in(maps[0]))
        if len(spatial) == maps[0].num_dims or any(set(_loops_in(map_)) != spatial for map_ in maps):
            return {}
        inner = [inner for inner in operations_in(op) if inner is not op and inner.name not in _PARTS]
        inside = [*structure.inputs, *(buffer for other in inner for buffer in _touched(other))]
        if any(self._overlaps(value, output) for value in inside for output in starts):
            return {}
        for output, (nest, _) in starts.items():
            if nest.parent is not op.parent or any(self._touches(other, output) for other in _between(nest, op)):
                return {}
        return starts

    def _touches(self, op: Operation, buffer: SSAValue) -> bool:
        return any(self._overlaps(value, buffer) for inner in operations_in(op) for value in _touched(inner))

    def _overlaps(self, value: SSAValue | None, buffer: SSAValue) -> bool:
        if value is None:
            return True
        if not isinstance(value.type, MemRefType):
            return False
        return may_overlap(underlying(value), underlying(buffer))


def _touched(op: Operation) -> Iterator[SSAValue | None]:
    effects = effects_of(op)
    if effects.is_opaque or effects.reads_all:
        yield None
    yield from (*effects.reads, *effects.writes)


def _between(first: Operation, last: Operation) -> Iterator[Operation]:
    op = first.next_op
    while op is not None and op is not last:
        yield op
        op = op.next_op


# Blocks


def _move_region(body: Block, loops: Sequence[SSAValue], op: Operation, structure: Structure) -> None:
    """Move the region of `op` to the end of `body`, between loads and stores."""
    new: list[Operation] = []
    places: dict[AffineMap, list[SSAValue]] = {}
    for map_ in structure.maps:
        if map_ not in places:
            places[map_] = values_in(body, Index.of_map(map_, loops))
    new += body.ops
    elements: list[SSAValue] = []
    for operand, map_, element in zip(structure.operands, structure.maps, structure.body.args, strict=True):
        if not isinstance(operand.type, MemRefType) or element.first_use is None:
            elements.append(operand)
            continue
        load = LoadOp.create(operands=[operand, *places[map_]], result_types=[element.type])
        load.res.name_hint = element.name_hint
        new.append(load)
        body.add_op(load)
        elements.append(load.res)
    for inner in [inner for inner in structure.body.walk() if inner.name == "linalg.index"]:
        loop = cast("IntegerAttr", inner.properties["dim"]).value.data
        inner.results[0].replace_all_uses_with(loops[loop])
        Rewriter.erase_op(inner)
    Rewriter.inline_block(structure.body, InsertPoint.at_end(body), elements)
    last = cast("YieldOp", body.last_op)
    yielded = list(last.operands)
    Rewriter.erase_op(last)
    outputs = zip(structure.outputs, structure.maps[len(structure.inputs) :], yielded, strict=True)
    stores = [StoreOp.create(operands=[value, output, *places[map_]]) for output, map_, value in outputs]
    body.add_ops(stores)
    for inner in (*new, *stores):
        inner.location = op.location


def _replace_by_loops(op: Operation, structure: Structure, extents: Sequence[int | SSAValue]) -> None:
    bodies = [Block(arg_types=[IndexType()]) for _ in extents]
    innermost = bodies[-1] if bodies else Block()
    _move_region(innermost, [body.args[0] for body in bodies], op, structure)
    first, step = constant_before(0, op), constant_before(1, op)
    for at in reversed(range(len(bodies))):
        body = bodies[at]
        body.args[0].name_hint = structure.loop_names[at]
        if at < len(bodies) - 1:
            body.add_ops(detached_ops(innermost))
        body.add_op(scf.YieldOp())
        loop = scf.ForOp(first, extent_before(extents[at], op), step, [], body)
        loop.location = op.location
        innermost = Block([loop])
    for outer in detached_ops(innermost):
        Rewriter.insert_op(outer, InsertPoint.before(op))
    Rewriter.erase_op(op)


def _is_start(block: BlockOp, structure: Structure) -> bool:
    *computing, store = block.body.block.ops
    return (
        len(structure.outputs) == 1
        and _is_projection(structure.maps[-1])
        and len(_loops_in(structure.maps[-1])) == structure.maps[-1].num_dims
        and isinstance(store, StoreOp)
        and not any(op.regions or next(_touched(op), op) is not op for op in computing)
        and all(use.operation is store for variable in block.iter_vars for use in variable.uses)
        and store.value not in block.iter_vars
    )


def _is_projection(map_: AffineMap) -> bool:
    loops = _loops_in(map_)
    return len(loops) == len(map_.results) == len(set(loops))


def _loops_in(map_: AffineMap) -> list[int]:
    return [expr.position for expr in map_.results if isinstance(expr, AffineDimExpr)]


# Extents


def _check(op: Operation, structure: Structure) -> None:
    """Static extents of a loop agree; the verifier only checks if all are static."""
    known: dict[int, int] = {}
    for _, _, loop, extent in _plain_subscripts(structure):
        before = known.get(loop, DYNAMIC_INDEX)
        if DYNAMIC_INDEX not in (before, extent) and before != extent:
            name = structure.loop_names[loop]
            raise CompileError.at(op, f"{op.name}: loop {name} has extents {before} and {extent} by its operands")
        known[loop] = extent if before == DYNAMIC_INDEX else before


_Dim = tuple[SSAValue, int]
"""A buffer and one of its dimensions."""


class _Dims:
    """Dynamic extents of a function. Equal ones of parameters share a value at its top."""

    def __init__(self, function: FuncOp) -> None:
        self._function = function
        self._top = scf.YieldOp()
        insert_at_start(function.body.block, self._top)
        self._same: dict[_Dim, _Dim | int] = {}
        """Maps an extent of a parameter to an equal one."""
        self._values: dict[_Dim | int, SSAValue] = {}

    def unite(self, structure: Structure) -> None:
        """Requires that `op` always runs."""
        found: dict[int, _Dim | int] = {}
        for operand, at, loop, extent in _plain_subscripts(structure):
            if extent == DYNAMIC_INDEX and not self._is_parameter(operand):
                continue
            dim = self._first((operand, at)) if extent == DYNAMIC_INDEX else extent
            other = found.setdefault(loop, dim)
            if dim != other and isinstance(dim, tuple):
                self._same[dim] = other
            elif dim != other and isinstance(other, tuple):
                self._same[other] = found[loop] = dim

    def place(self) -> None:
        """State equal extents; `memref.dim` of parameters becomes the shared value."""
        for dim in operations_of(self._function, DimOp):
            at = constant_integer(dim.index)
            if at is not None and self._is_parameter(dim.source) and at in dynamic_extents(dim.source.type):
                dim.result.replace_all_uses_with(self._value(self._first((dim.source, at))))
                Rewriter.erase_op(dim)
        for buffer in dict.fromkeys(buffer for buffer, _ in self._same):
            insert_before(self._top, [AssumeShapeOp(buffer, self.sizes(buffer))])

    def sizes(self, buffer: SSAValue) -> Sequence[SSAValue]:
        if isinstance(buffer.owner, AllocOp | AllocaOp):
            return list(buffer.owner.dynamic_sizes)
        return [self._value(self._first((buffer, at))) for at in dynamic_extents(buffer.type)]

    def finish(self) -> None:
        Rewriter.erase_op(self._top)

    def _is_parameter(self, value: SSAValue) -> bool:
        return isinstance(value, BlockArgument) and value.block is self._function.body.block

    def _first(self, dim: _Dim | int) -> _Dim | int:
        while isinstance(dim, tuple) and dim in self._same:
            dim = self._same[dim]
        return dim

    def _value(self, dim: _Dim | int) -> SSAValue:
        if dim not in self._values:
            self._values[dim] = constant_before(dim, self._top) if isinstance(dim, int) else dim_before(*dim, self._top)
        return self._values[dim]

    def extents(self, op: Operation, structure: Structure) -> list[int | SSAValue]:
        found: dict[int, int | SSAValue] = {}
        for operand, at, loop, extent in _plain_subscripts(structure):
            if extent == DYNAMIC_INDEX and loop not in found:
                found[loop] = self._dynamic(operand, at, op)
            elif extent != DYNAMIC_INDEX and not isinstance(found.get(loop), int):
                found[loop] = extent
        return [found[loop] for loop in range(len(structure.loop_names))]

    def _dynamic(self, buffer: SSAValue, at: int, op: Operation) -> int | SSAValue:
        if self._is_parameter(buffer):
            first = self._first((buffer, at))
            return first if isinstance(first, int) else self._value(first)
        if isinstance(buffer.owner, AllocOp | AllocaOp):
            before = sum(extent == DYNAMIC_INDEX for extent in _shape(buffer)[:at])
            return buffer.owner.dynamic_sizes[before]
        return dim_before(buffer, at, op)


def _plain_subscripts(structure: Structure) -> Iterator[tuple[SSAValue, int, int, int]]:
    """Operand, dimension, loop and extent for each dimension whose subscript is a loop."""
    for operand, map_ in zip(structure.operands, structure.maps, strict=True):
        for at, (expr, extent) in enumerate(zip(map_.results, _shape(operand), strict=True)):
            if isinstance(expr, AffineDimExpr):
                yield uncast(operand), at, expr.position, extent
