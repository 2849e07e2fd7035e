"""tir-flatten: one-dimensional buffers, and signatures of the low level."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from math import prod
from typing import TypeAlias, cast

from xdsl.context import Context
from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    FunctionType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    ModuleOp,
    NoneAttr,
    StringAttr,
    TensorType,
    i64,
)
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

from weft.analysis.accesses import Context as AccessContext
from weft.analysis.block_scopes import ancestors
from weft.analysis.extents import ExtentNames
from weft.analysis.index import Index
from weft.dialects.effects import callee_of
from weft.dialects.element_types import bytes_of
from weft.dialects.graph_shapes import (
    KnownExtent,
    add,
    is_never_negative,
    symbol,
    without_symbolic_remainders,
)
from weft.dialects.index_map import mixed_extents
from weft.dialects.integer_arith import constant_integer
from weft.dialects.low import ASSUME, PARAMS
from weft.dialects.low_access import AccessPtrOp, PrefetchOp, StrideOp
from weft.dialects.low_kernel import AtomicOp
from weft.dialects.low_registered import CallRegisteredOp
from weft.dialects.low_results import ReturnResultOp
from weft.dialects.low_tensor_cores import TileOp
from weft.dialects.promises import PROMISES
from weft.dialects.strides import dynamic_extents, layout_problem, strides_of
from weft.dialects.tir import BlockOp, ForOp, IntrinsicOp
from weft.dialects.tir_assume import AssumeOp, AssumeSizesOp, CheckSizeOp
from weft.dialects.tir_kinds import ASYNC, IN_STEP, PARAMETER_ACCESS, PREFETCHED, STORAGE_ALIGN, TIR_FUNCTION
from weft.dialects.traversal import operations_in, values_of
from weft.passes.index_builders import (
    BufferAccess,
    add_at_end,
    constant_before,
    extent_before,
    index_arithmetic,
    index_before,
    insert_before,
    product_before,
    result_before,
    set_access,
)
from weft.passes.module_edits import named_ops, rename_symbol, symbol_uses
from weft.passes.tir.flat_signature import FlatSignature, ParameterAccesses, call_facts
from weft.passes.tir.tir_pass import LOCAL, allocate_before, buffer_type, range_of, remembered_ranges, tir_functions
from weft.support.call_preconditions import CallPrecondition
from weft.support.errors import CompileError
from weft.support.names import free_name, new_name

LOCAL_LIMIT = 64 * 1024
"""Largest size in bytes of a "local" buffer on the stack."""
_STACK_LIMIT = 16 * 1024
"""Largest size in bytes of another buffer on the stack. In a hot loop an allocation would cost more than the loop.
Frames stay far below stack limits of 8 MB (main) and 512 KB (threads on some platforms)."""
_FRAME_LIMIT = 256 * 1024
"""Largest stack frame in bytes."""
_ALIGNMENT = 64
"""Bytes of temporaries: a cache line, and the widest vector."""
_MAKES_BUFFERS = (memref.AllocOp, memref.CastOp, memref.GetGlobalOp, memref.ReinterpretCastOp, memref.ViewOp)
_KERNEL_ALIGNMENT = 16
"""Bytes in kernels: four lanes of 32 bits move at once."""


@dataclass(frozen=True)
class FlattenPass(ModulePass):
    """Turn every buffer into a one-dimensional, row-major one, and state the full shapes in `low.params`.

    ```mlir
    func.func @f(%A: memref<?x4xf32>) {
      %m = memref.dim %A, %c0 : memref<?x4xf32>
      ... memref.load %A[%i, %j] : memref<?x4xf32>
    // becomes
    func.func @f(%A: memref<?xf32>, %m: index)
        attributes {low.params = [#low.param<"A", memref<?x4xf32>, read, ["m"]>], low.symbols = ["m"]} {
      ... memref.load %A[%i * 4 + %j] : memref<?xf32>
    ```
    Dynamic extents and strides of parameters become trailing index parameters, shared by `tir.assume_shape` and
    `tir.assume_strides`, which calls pass on. A parameter is `write` if all elements that are read were written before,
    else `readwrite` (`tir.parameter_access`, if present). Small temporaries become `memref.alloca` in space "local", or
    in their own if it is in `keep`; others are freed at the end of their scope. Loops stay `tir.for`. Functions without
    tir ops are unchanged; calls from and to them stay valid.

    Requires: loops without blocks (`tir-lower-blocks`); temporaries have no strided layout (CompileError).

    Leaves: one-dimensional buffers; `low.params` and `low.symbols` state the arguments of callers.
    """

    name = "tir-flatten"

    keep: tuple[str, ...] = ()
    """Memory spaces whose temporaries become `memref.alloca` in that space."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = list(tir_functions(op))
        for function in functions:
            _check(function)
        elsewhere = _users_elsewhere(op, functions)
        types = {function: function.function_type for function in functions}
        signatures = {function.sym_name.data: FlatSignature.of(function) for function in functions}
        accesses = ParameterAccesses()
        for function in functions:
            signature = signatures[function.sym_name.data]
            signature.access = {p: accesses.of(function, p) for p in signature.memrefs}
            signature.facts = call_facts(function, signature)
        for other in op.ops:
            if isinstance(other, FuncOp) and PARAMS in other.attributes:
                signatures[other.sym_name.data] = FlatSignature.of_low(other)
        for function in functions:
            _Flattener(function, signatures, self.keep).run()
        for function in functions:
            name = function.sym_name.data
            if name in elsewhere and function.function_type != types[function]:
                _keep_signature(op, function, signatures[name], types[function], elsewhere[name])
        if functions:
            flatten_globals(op, functions)


def _check(function: FuncOp) -> None:
    for op in operations_in(function):
        if isinstance(op, BlockOp):
            raise CompileError.at(op, f'block "{op.label}" is still a block: run tir-lower-blocks before')
        if not isinstance(op, _MAKES_BUFFERS) and any(isinstance(r.type, MemRefType) for r in op.results):
            raise CompileError.at(
                op, f"buffers are parameters, allocated or constants of the module: {op.name} gives another one"
            )
        for value in values_of(op):
            type_ = value.type
            if not isinstance(type_, MemRefType):
                continue
            if type_.has_static_shape() and prod(type_.get_shape()) * bytes_of(type_.element_type) >= 1 << 63:
                raise CompileError.at(op, f"a buffer has less than 2^63 bytes, got {type_}")
            if isinstance(type_.layout, NoneAttr):
                continue
            if op is not function and not isinstance(op, memref.CastOp):
                raise CompileError.at(op, f"only parameters are strided, got the layout of {type_}")
            problem = layout_problem(type_)
            if problem is not None:
                raise CompileError.at(function, f"parameter {value.name_hint or '?'}: {problem}")


@lru_cache(maxsize=1024)
def flat_type(type_: MemRefType) -> MemRefType:
    """The flat type; dynamic if an extent is, or if callers pass views."""
    shape = type_.get_shape()
    size = DYNAMIC_INDEX if DYNAMIC_INDEX in shape or strides_of(type_) is not None else prod(shape)
    return MemRefType(type_.element_type, [size], memory_space=type_.memory_space)


def allocate_several(
    alloc: memref.AllocOp, count: int, anchor: Operation, place_of: Callable[[Operation], SSAValue]
) -> memref.AllocOp:
    """Replicate a buffer `count` times. Loads, stores and pointers access the slice at `place_of(op)`; other uses may
    only query strides."""
    buffer, old = alloc.memref, buffer_type(alloc.memref)
    type_ = MemRefType(old.element_type, [count, *old.get_shape()], old.layout, old.memory_space)
    new = allocate_before(anchor, memref.AllocOp, type_, buffer.name_hint, alloc.alignment, alloc.dynamic_sizes)
    new.attributes.update(alloc.attributes)
    if aligned := storage_alignment(alloc):
        entries = [(axis + 1, factor, offset) for axis, (factor, offset) in aligned.items()]
        new.attributes[STORAGE_ALIGN] = ArrayAttr([ArrayAttr([IntegerAttr(n, i64) for n in e]) for e in entries])
    for use in list(buffer.uses):
        user = use.operation
        if isinstance(user, StrideOp):
            user.operands = [new.memref]
            user.dimension = IntegerAttr(user.dimension.value.data + 1, i64)
        elif isinstance(user, memref.LoadOp | memref.StoreOp | AccessPtrOp):
            if isinstance(user, AccessPtrOp) and user.box_sizes is not None:
                user.sizes = DenseArrayBase.from_list(i64, [1, *user.box_sizes])
            set_access(user, new.memref, [place_of(user), *user.indices])
    Rewriter.erase_op(alloc)
    return new


def storage_alignment(op: memref.AllocOp) -> dict[int, tuple[int, int]]:
    noted = op.attributes.get(STORAGE_ALIGN)
    entries: tuple[Attribute, ...] = noted.data if isinstance(noted, ArrayAttr) else ()
    found: dict[int, tuple[int, int]] = {}
    for entry in entries:
        elements: tuple[Attribute, ...] = entry.data if isinstance(entry, ArrayAttr) else ()
        numbers = [element.value.data for element in elements if isinstance(element, IntegerAttr)]
        if len(numbers) != 3 or not 0 <= numbers[0] < buffer_type(op.memref).get_num_dims() or numbers[1] < 1:
            raise CompileError.at(op, f"{STORAGE_ALIGN} lists [axis, factor, offset], got {entry}")
        found[numbers[0]] = (numbers[1], numbers[2])
    return found


def _changes_in(loop: ForOp | scf.IfOp, values: Sequence[SSAValue]) -> bool:
    is_bound = isinstance(loop, ForOp) and loop.thread_axis is not None
    return is_bound or any(loop.is_ancestor(value.owner) for value in values)


def _is_in_kernel(op: Operation) -> bool:
    return any(isinstance(parent, ForOp) and parent.thread_axis is not None for parent in ancestors(op))


class _Flattener:
    """Shapes are stored by value, because types are flat afterwards."""

    def __init__(self, function: FuncOp, signatures: dict[str, FlatSignature], keep: tuple[str, ...]) -> None:
        self.function = function
        self.signatures = signatures
        self.keep = keep
        self.signature = signatures[function.sym_name.data]
        self.shapes: dict[SSAValue, tuple[int | SSAValue, ...]] = {}
        self.strides: dict[SSAValue, tuple[int | SSAValue, ...]] = {}
        """Of parameters that are not dense."""
        self.aligned: dict[SSAValue, dict[int, tuple[int, int]]] = {}
        """Axes whose stride is a multiple of a factor plus an offset."""
        self.frame = 0
        self.names = ExtentNames()
        """Symbols as polynomials of others, by the facts of the function."""
        self.own_facts: set[_Differences] = set()
        self.products: dict[tuple[Index, Index, Block | None], Index] = {}
        """Products of two indices, by the block that computes them."""

    def run(self) -> None:
        signature, block = self.signature, self.function.body.block
        # First: the attributes imply non-negative extents.
        self.function.attributes.pop(PARAMETER_ACCESS, None)
        symbols = signature.add_symbols(self.function)
        for position in signature.memrefs:
            old = buffer_type(block.args[position])
            new = Rewriter.replace_value_with_new_type(block.args[position], flat_type(old))
            self.shapes[new], strides = signature.sizes_of(position, symbols)
            if strides is not None:
                self.strides[new] = strides
        if self.signature.facts:
            self.function.attributes[ASSUME] = ArrayAttr([StringAttr(fact) for fact in self.signature.facts])
        self.function.attributes.pop(TIR_FUNCTION, None)
        self.function.update_function_type()
        given = {**dict(zip(signature.labels, block.args, strict=False)), **symbols}
        for text in signature.facts:
            fact = CallPrecondition(text)
            if fact.defines is not None:
                others = {name: self.names.extent(given[name]) for name in fact.names}
                self.names.know(given[fact.defines], fact.defined(others))
        for text in signature.facts:
            fact = CallPrecondition(text)
            values = {name: self.names.extent(given[name]) for name in fact.names}
            differences = _differences(fact, values)
            if differences is not None:
                self.own_facts.add(differences)
        for op in operations_in(self.function):
            # Most ops are of these dialects; each case of the match costs more than this.
            if op.dialect_name() not in ("arith", "affine", "math"):
                self._flatten_op(op)

    def _flatten_op(self, op: Operation) -> None:
        match op:
            case memref.LoadOp() | memref.StoreOp() | AtomicOp() | AccessPtrOp() | PrefetchOp():
                self._flatten_access(op)
            case memref.AllocOp():
                self._flatten_alloc(op)
            case memref.DimOp():
                self._replace_dim(op)
            case AssumeSizesOp() | AssumeOp() | CheckSizeOp():
                Rewriter.erase_op(op)
            case IntrinsicOp():
                raise CompileError.at(
                    op,
                    f"`{op.call.data}` calls a function that weft does not know: a pass before tir-flatten replaces it",
                )
            case StrideOp():
                stride = self._stride(op.buffer, op.dimension.value.data, op)
                op.stride.replace_all_uses_with(index_before(stride, op, op.stride.name_hint))
                Rewriter.erase_op(op)
            case memref.GetGlobalOp():
                shape = buffer_type(op.memref).get_shape()
                new = Rewriter.replace_value_with_new_type(op.memref, flat_type(buffer_type(op.memref)))
                self.shapes[new] = shape
            case memref.CastOp():
                self._flatten_cast(op)
            case memref.ReinterpretCastOp():
                self._flatten_reshape(op)
            case memref.ViewOp():
                self._flatten_view(op)
            case CallOp():
                self._flatten_call(op)
            case CallRegisteredOp() | ReturnResultOp():
                self._check_dense(op)
            case _:
                pass

    def _place(self, buffer: SSAValue, indices: Sequence[SSAValue], op: Operation) -> SSAValue:
        total = Index({})
        for dimension in reversed(range(len(indices))):
            total = total + self._product(Index.of(indices[dimension]), self._stride(buffer, dimension, op), op)
        return index_before(total.simplified(range_of), op)

    def _stride(self, buffer: SSAValue, dimension: int, op: Operation) -> Index:
        """In elements: the stride that callers pass, else row-major with aligned axes."""
        if buffer in self.strides:
            return Index.of(self.strides[buffer][dimension])
        shape, aligned = self.shapes[buffer], self.aligned.get(buffer, {})
        stride = Index({}, 1)
        for at in reversed(range(dimension, len(shape))):
            if at + 1 < len(shape):
                stride = self._product(Index.of(shape[at + 1]), stride, op)
            if at in aligned:
                factor, offset = aligned[at]
                stride = stride + (Index({}, offset) - stride) % factor
        return stride

    def _product(self, left: Index, right: Index, op: Operation) -> Index:
        """Computed once for variables, as far out as possible, because passes compare addresses by value."""
        if left.is_constant or right.is_constant:
            return product_before(left, right, op)
        values = [*left.values(), *right.values()]
        anchor = op
        while isinstance(parent := anchor.parent_op(), ForOp | scf.IfOp) and not _changes_in(parent, values):
            anchor = parent
        key = left, right, anchor.parent
        if key not in self.products:
            self.products[key] = product_before(left, right, anchor)
        return self.products[key]

    def _flatten_access(self, op: BufferAccess) -> None:
        buffer = op.memref if isinstance(op, memref.LoadOp | memref.StoreOp) else op.buffer
        place = self._place(buffer, op.indices, op)
        if isinstance(op, memref.LoadOp | memref.StoreOp):
            self._prefetch(op, place)
        elif isinstance(op, AccessPtrOp):
            op.sizes = None  # the sizes of a box do not apply to a flat buffer
        set_access(op, buffer, [place])

    def _prefetch(self, op: memref.LoadOp | memref.StoreOp, place: SSAValue) -> None:
        """Not in kernels, whose threads hide latency."""
        noted = op.attributes.pop(PREFETCHED, None)
        if noted is None or IN_STEP in self.function.attributes or not isa(noted, DenseArrayBase[IntegerType]):
            return
        ahead = Index.of(place)
        for dimension, distance in enumerate(noted.get_values()):
            if distance != 0:
                ahead = ahead + self._stride(op.memref, dimension, op) * distance
        at = index_before(ahead.simplified(range_of), op)
        insert_before(op, [PrefetchOp(op.memref, [at], for_write=isinstance(op, memref.StoreOp))])

    def _flatten_alloc(self, op: memref.AllocOp) -> None:
        type_ = buffer_type(op.memref)
        shape = mixed_extents(type_.get_shape(), op.dynamic_sizes)
        flat = flat_type(type_)
        elements = None
        if aligned := storage_alignment(op):
            self.shapes[op.memref], self.aligned[op.memref] = shape, aligned
            elements = self._product(Index.of(shape[0]), self._stride(op.memref, 0, op), op)
            known = elements.constant if elements.is_constant else DYNAMIC_INDEX
            flat = MemRefType(type_.element_type, [known], memory_space=type_.memory_space)
        kept = isinstance(space := type_.memory_space, StringAttr) and space.data in self.keep
        if kept or (IN_STEP in self.function.attributes and _is_in_kernel(op)):
            self._allocate_in_kernel(op, flat, shape)
            return
        alignment = op.alignment or IntegerAttr(_ALIGNMENT, i64)
        size = flat.get_shape()[0] * bytes_of(flat.element_type)
        limit = LOCAL_LIMIT if type_.memory_space == LOCAL else _STACK_LIMIT
        on_stack = 0 <= size <= limit and self.frame + size <= _FRAME_LIMIT and not _is_passed_on(op.memref)
        on_stack = on_stack and IN_STEP not in self.function.attributes  # kernels cannot access the host's stack
        if on_stack:
            self.frame += size
            local = MemRefType(flat.element_type, flat.shape, memory_space=LOCAL)
            new = allocate_before(op, memref.AllocaOp, local, op.memref.name_hint, alignment)
        else:
            sizes: list[SSAValue] = []
            if size < 0:
                sizes.append(self._size(shape, op) if elements is None else index_before(elements, op))
            new = allocate_before(op, memref.AllocOp, flat, op.memref.name_hint, alignment, sizes)
            free = memref.DeallocOp.get(new.memref)
            free.location = op.location
            add_at_end(cast("Block", op.parent), free)
        self._replace_alloc(op, new.memref, shape, aligned)

    def _replace_alloc(
        self,
        op: memref.AllocOp,
        new: SSAValue,
        shape: tuple[int | SSAValue, ...],
        aligned: dict[int, tuple[int, int]],
    ) -> None:
        op.memref.replace_all_uses_with(new)
        self.shapes[new], self.aligned[new] = shape, aligned
        Rewriter.erase_op(op)

    def _allocate_in_kernel(self, op: memref.AllocOp, flat: MemRefType, shape: tuple[int | SSAValue, ...]) -> None:
        name = f"%{op.memref.name_hint}"
        if flat.get_shape()[0] < 0:
            extents = "x".join(str(e) if isinstance(e, int) else f"%{e.name_hint}" for e in shape)
            raise CompileError.at(
                op, f"{name} is in a kernel, in {flat.memory_space} memory, and needs a static size, got {extents}"
            )
        if _is_passed_on(op.memref):
            where = f"{name} lies in {flat.memory_space} memory"
            raise CompileError.at(op, f"{where}: calls and casts of it are not supported there")
        alignment = op.alignment or IntegerAttr(_KERNEL_ALIGNMENT, i64)
        new = allocate_before(op, memref.AllocaOp, flat, op.memref.name_hint, alignment)
        if ASYNC in op.attributes:
            new.attributes[ASYNC] = op.attributes[ASYNC]
        self._replace_alloc(op, new.memref, shape, self.aligned.get(op.memref, {}))

    def _size(self, shape: tuple[int | SSAValue, ...], anchor: Operation) -> SSAValue:
        return index_before(index_arithmetic(anchor).product(map(Index.of, shape)), anchor)

    def _replace_dim(self, op: memref.DimOp) -> None:
        dimension = constant_integer(op.index)
        shape = self.shapes[op.source]
        if dimension is None or not 0 <= dimension < len(shape):
            raise CompileError.at(op, f"memref.dim needs a constant dimension in 0 .. {len(shape) - 1}")
        extent = extent_before(shape[dimension], op)
        hint = extent.name_hint
        op.result.replace_all_uses_with(extent)
        extent.name_hint = hint or extent.name_hint
        Rewriter.erase_op(op)

    def _flatten_cast(self, op: memref.CastOp) -> None:
        known = self.shapes[op.source]
        if not isinstance(op.dest.type, MemRefType):
            raise CompileError.at(op, f"{op.name} to a buffer without a rank, {op.dest.type}, is not supported")
        shown = buffer_type(op.dest).get_shape()
        shape = tuple(k if s == DYNAMIC_INDEX else s for k, s in zip(known, shown, strict=True))
        flat = flat_type(buffer_type(op.dest))
        if flat == op.source.type:
            op.dest.replace_all_uses_with(op.source)
            Rewriter.erase_op(op)
            return
        new = Rewriter.replace_value_with_new_type(op.dest, flat)
        self.shapes[new] = shape
        if op.source in self.strides:
            self.strides[new] = self.strides[op.source]

    def _flatten_reshape(self, op: memref.ReinterpretCastOp) -> None:
        starts_inside = op.offsets or any(op.static_offsets.get_values())
        if starts_inside or op.source in self.strides or self.aligned.get(op.source):
            raise CompileError.at(op, f"{op.name} is of a dense buffer, from its first element on")
        shape = mixed_extents(buffer_type(op.result).get_shape(), op.sizes)
        flat = flat_type(buffer_type(op.result))
        size = self._size(shape, op) if DYNAMIC_INDEX in flat.get_shape() else flat.get_shape()[0]
        new = memref.ReinterpretCastOp.from_dynamic(op.source, [0], [size], [1], flat)
        self._replace_view(op, new, shape)

    def _flatten_view(self, op: memref.ViewOp) -> None:
        shape = mixed_extents(buffer_type(op.result).get_shape(), op.sizes)
        flat = flat_type(buffer_type(op.result))
        sizes = [self._size(shape, op)] if DYNAMIC_INDEX in flat.get_shape() else []
        self._replace_view(op, memref.ViewOp(op.source, op.byte_shift, sizes, flat), shape)

    def _replace_view(self, op: Operation, new: Operation, shape: tuple[int | SSAValue, ...]) -> None:
        insert_before(op, [new])
        new.results[0].name_hint = op.results[0].name_hint
        self.shapes[new.results[0]] = shape
        op.results[0].replace_all_uses_with(new.results[0])
        Rewriter.erase_op(op)

    def _flatten_call(self, op: CallOp) -> None:
        self._check_aligned(op)
        callee = self.signatures.get(op.callee.root_reference.data)
        if callee is None:
            self._keep_shapes(op)
            return
        values: dict[str, SSAValue] = {}
        for (position, dimension, is_stride), name in callee.of_quantity.items():
            if name not in values:
                buffer = op.arguments[position]
                given = self._stride(buffer, dimension, op) if is_stride else self.shapes[buffer][dimension]
                given = Index.of(given) if isinstance(given, int) else given
                values[name] = index_before(given, op) if isinstance(given, Index) else given
        _check_call_facts(op, callee, values, self.names, self.own_facts)
        op.operands = [*op.arguments, *(values[name] for name in callee.symbols)]

    def _check_aligned(self, op: CallOp | CallRegisteredOp | ReturnResultOp) -> None:
        for buffer in op.operands:
            if self.aligned.get(buffer):
                raise CompileError.at(op, f"calls take dense buffers, and %{buffer.name_hint} has {STORAGE_ALIGN}")

    def _check_dense(self, op: CallRegisteredOp | ReturnResultOp) -> None:
        self._check_aligned(op)
        for buffer in op.operands:
            if buffer in self.strides:
                name = f'"{op.callee.data}"' if isinstance(op, CallRegisteredOp) else op.name
                raise CompileError.at(op, f"{name} takes dense buffers, and %{buffer.name_hint} is a view")

    def _keep_shapes(self, op: CallOp) -> None:
        callee = callee_of(op)
        if callee is None or len(callee.function_type.inputs) != len(op.arguments):
            return
        arguments = list(op.arguments)
        for at, (buffer, type_) in enumerate(zip(arguments, callee.function_type.inputs, strict=True)):
            if isinstance(type_, MemRefType) and type_ != buffer.type:
                if strides_of(type_) is not None:
                    raise CompileError.at(
                        op, f"@{callee.sym_name.data} is not lowered: it cannot be given a view, {type_}"
                    )
                arguments[at] = _recast(buffer, self.shapes[buffer], type_, op)
        op.operands = arguments


def _check_call_facts(
    op: CallOp,
    callee: FlatSignature,
    symbols: dict[str, SSAValue],
    names: ExtentNames,
    own: Collection[_Differences],
) -> None:
    """Check a call's facts for all run-time values, given those of the caller (`own`)."""
    conditions = _conditions_around(op, names)
    own = {*own, *conditions, *(_without_excluded(assumed, conditions) for assumed in own)}
    given = {**dict(zip(callee.labels, op.arguments, strict=False)), **symbols}
    loops = (loop for loop in ancestors(op) if isinstance(loop, ForOp))
    empty = {("<=", names.of_index(Index.of(loop.extent))) for loop in loops}
    not_negative: set[str] | None = None
    for text in callee.facts:
        fact = CallPrecondition(text)
        values = {name: names.extent(given[name]) for name in fact.names}
        differences = _differences(fact, values)
        if differences is not None:
            if not_negative is None:
                not_negative = names.not_negative(remembered_ranges())
                not_negative |= {n for n in names.values if frozenset({("<=", symbol(n) * -1)}) in own}
            if any(differences <= assumed <= differences | empty for assumed in own):
                continue
            if len(differences) == 1 and any(_implies(assumed, *differences) for assumed in own):
                continue
            # If the call runs, enclosing loops have an iteration.
            given_loops = [add(extent, -1) for _, extent in empty]
            weaker = {(relation, add(d, e)) for relation, d in differences if relation == "<=" for e in given_loops}
            if any(_holds(*difference, not_negative) for difference in (*differences, *weaker)):
                continue
        constants = {name: value for name, value in values.items() if isinstance(value, int)}
        is_known = len(constants) == len(values)
        if fact.reason and not is_known:
            continue  # `tir-state-preconditions` has emitted a remark
        problem = fact.problem(constants) if is_known else f"whether {fact.relation} is only known at run time"
        raise CompileError.at(op, f"call of @{op.callee.root_reference.data}, which assumes {fact.relation}: {problem}")


def _without_excluded(alternatives: _Differences, conditions: Collection[_Differences]) -> _Differences:
    around = [difference for condition in conditions if len(condition) == 1 for difference in condition]
    return frozenset(it for it in alternatives if not any(_excludes(condition, it) for condition in around))


def _excludes(condition: tuple[str, KnownExtent], alternative: tuple[str, KnownExtent]) -> bool:
    """Whether a condition refutes `excess <= 0`: their sum is positive."""
    relation, excess = alternative
    if relation != "<=":
        return False
    stated, difference = condition
    least = [add(excess, difference), *([add(excess, difference * -1)] if stated == "==" else [])]
    return any(isinstance(number, int) and number > 0 for number in least)


def _implies(assumed: _Differences, difference: tuple[str, KnownExtent]) -> bool:
    relation, least = difference
    if relation != "<=" or len(assumed) != 1:
        return False
    ((stated, most),) = assumed
    slack = add(most, least * -1)
    return stated == "<=" and isinstance(slack, int) and slack >= 0


def _conditions_around(op: Operation, names: ExtentNames) -> set[_Differences]:
    conditions = AccessContext.around(op).conditions
    at_most = {("<=", names.of_index(index) * -1) for index in conditions.inequalities}
    equal = {("==", names.of_index(index)) for index in conditions.equalities}
    return {frozenset({difference}) for difference in at_most | equal}


_Differences: TypeAlias = frozenset[tuple[str, KnownExtent]]
"""Relations of a fact, and left minus right side."""


def _differences(fact: CallPrecondition, values: Mapping[str, KnownExtent]) -> _Differences | None:
    found: set[tuple[str, KnownExtent]] = set()
    for comparison in fact.comparisons:
        try:
            difference = comparison.difference(values)
        except (VerifyException, ZeroDivisionError):
            return None
        if comparison.relation == "==":  # remainders of values of any sign are computed as differences
            difference = without_symbolic_remainders(difference)
        # `a < b` is `a + 1 <= b`.
        is_less = comparison.relation == "<"
        found.add(("<=" if is_less else comparison.relation, difference + 1 if is_less else difference))
    possible = {
        (relation, d) for relation, d in found if not (isinstance(d, int) and (d > 0 or (d < 0 and relation == "==")))
    }
    return frozenset(possible or found)


def _holds(relation: str, difference: KnownExtent, not_negative: Collection[str]) -> bool:
    if relation == "==":
        return difference == 0
    return is_never_negative(difference * -1, not_negative)


def _is_passed_on(buffer: SSAValue) -> bool:
    """Whether a call, cast or tile copy keeps the buffer off the stack."""
    known = (memref.LoadOp, memref.StoreOp, AtomicOp, AccessPtrOp, StrideOp)
    pointers = [use.operation.pointer for use in buffer.uses if isinstance(use.operation, AccessPtrOp)]
    tiles = [use.operation for pointer in pointers for use in pointer.uses if isinstance(use.operation, TileOp)]
    copied = any(tile.memory() in pointers for tile in tiles)
    return copied or any(not isinstance(use.operation, known) for use in buffer.uses)


def flatten_globals(module: ModuleOp, functions: Sequence[FuncOp]) -> None:
    """Constants that other functions use remain, next to a flat copy; unused private ones are erased."""
    used = {symbol for function in functions for symbol, _ in symbol_uses(function)}
    shared = {symbol for op in module.ops if op not in functions for symbol, _ in symbol_uses(op)}
    taken = set(named_ops(module))
    for op in list(module.ops):
        if not isinstance(op, memref.GlobalOp) or (op.sym_name.data in shared and op.sym_name.data not in used):
            continue
        if op.sym_name.data not in used and op.sym_visibility == StringAttr("private"):
            Rewriter.erase_op(op)
            continue
        if op.type.get_num_dims() == 1:
            continue
        flat = op
        if op.sym_name.data in shared:
            flat = op.clone()
            flat.sym_name = StringAttr(new_name(f"{op.sym_name.data}_flat", taken))
            module.body.block.insert_op_after(flat, op)
            for function in functions:
                rename_symbol(function, op.sym_name.data, flat.sym_name.data)
        value = flat.initial_value
        flat.properties["type"] = flat_type(op.type)
        if isinstance(value, DenseIntOrFPElementsAttr):
            tensor = TensorType(value.type.element_type, flat_type(op.type).shape)
            flat.properties["initial_value"] = DenseIntOrFPElementsAttr(tensor, value.data)


def _users_elsewhere(module: ModuleOp, functions: Sequence[FuncOp]) -> dict[str, Operation]:
    names = {function.sym_name.data for function in functions}
    found: dict[str, Operation] = {}
    for holder in module.ops:
        if holder not in functions and PARAMS not in holder.attributes:
            for symbol, op in symbol_uses(holder):
                if symbol in names:
                    found.setdefault(symbol, op)
    return found


def _keep_signature(
    module: ModuleOp, function: FuncOp, signature: FlatSignature, type_: FunctionType, user: Operation
) -> None:
    """Rename a flat function, and add one of its old name and type that calls it. Raises CompileError, at `user`, for
    strided parameters: a flat buffer has no start offset of a view."""
    name = function.sym_name.data
    for position in signature.memrefs:
        if strides_of(type_.inputs.data[position]) is not None:
            raise CompileError.at(
                user,
                f"@{name} is lowered, and this function, which is not, refers to it: parameter "
                f"'{signature.labels[position]}' is a view, {type_.inputs.data[position]}, for which callers that are "
                "lowered alone know the strides",
            )
    renamed = free_name(f"{name}_flat", named_ops(module))
    function.sym_name = StringAttr(renamed)
    for other in module.ops:
        if PARAMS in other.attributes:
            rename_symbol(other, name, renamed)
    wrapper = FuncOp(name, type_, Region(_calling_block(function, signature, type_)), function.sym_visibility)
    if PROMISES in function.attributes:
        wrapper.attributes[PROMISES] = function.attributes[PROMISES]
    if isinstance(stated := function.arg_attrs, ArrayAttr):
        wrapper.arg_attrs = ArrayAttr(stated.data[: len(type_.inputs)])
    wrapper.location = function.location
    module.body.block.insert_op_before(wrapper, function)


def _calling_block(function: FuncOp, signature: FlatSignature, type_: FunctionType) -> Block:
    block = Block(arg_types=type_.inputs.data)
    end = ReturnOp()
    end.location = function.location
    block.add_op(end)
    for argument, label in zip(block.args, signature.labels, strict=True):
        argument.name_hint = label
    shapes = {position: _shape(block.args[position], end) for position in signature.memrefs}
    given: list[SSAValue] = list(block.args)
    for position in signature.memrefs:
        flat = buffer_type(function.args[position])
        given[position] = _recast(block.args[position], shapes[position], flat, end)
    symbols = {
        name: extent
        for (position, dimension, _), name in signature.of_quantity.items()
        if isinstance(extent := shapes[position][dimension], SSAValue)
    }
    given.extend(symbols[name] for name in signature.symbols)
    call = CallOp(function.sym_name.data, given, type_.outputs.data)
    insert_before(end, [call])
    end.operands = call.results
    return block


def _shape(buffer: SSAValue, anchor: Operation) -> tuple[int | SSAValue, ...]:
    numbers = [constant_before(dimension, anchor) for dimension in dynamic_extents(buffer.type)]
    dynamic = [result_before(memref.DimOp(buffer, number), anchor) for number in numbers]
    return mixed_extents(buffer_type(buffer).get_shape(), dynamic)


def _recast(
    buffer: SSAValue, shape: Sequence[int | SSAValue], type_: MemRefType[Attribute], anchor: Operation
) -> SSAValue:
    if buffer.type == type_:
        return buffer
    extents = list(shape)
    if type_.get_num_dims() == 1:
        extents = [_count(shape, anchor)]
    strides: list[int | SSAValue] = [_count(extents[at + 1 :], anchor) for at in range(len(extents))]
    # Static or dynamic as in the type.
    strides = [
        s if known is not None else extent_before(s, anchor)
        for s, known in zip(strides, type_.get_strides() or (), strict=True)
    ]
    extents = [
        s if s != DYNAMIC_INDEX else extent_before(e, anchor) for e, s in zip(extents, type_.get_shape(), strict=True)
    ]
    cast_ = memref.ReinterpretCastOp.from_dynamic(buffer, [0], extents, strides, type_)
    cast_.result.name_hint = buffer.name_hint
    return result_before(cast_, anchor)


def _count(extents: Sequence[int | SSAValue], anchor: Operation) -> int | SSAValue:
    """By `arith` ops: index maps are not lowered in other functions."""
    static = prod(extent for extent in extents if isinstance(extent, int))
    dynamic = [extent for extent in extents if isinstance(extent, SSAValue)]
    if not dynamic:
        return static
    count = reduce(lambda left, right: result_before(arith.MuliOp(left, right), anchor), dynamic)
    return count if static == 1 else result_before(arith.MuliOp(count, constant_before(static, anchor)), anchor)
