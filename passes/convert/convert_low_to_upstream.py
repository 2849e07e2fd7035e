"""convert-low-to-upstream: low functions in upstream dialects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from xdsl.context import Context
from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    BoolAttr,
    FunctionType,
    IndexType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    NoneAttr,
    StridedLayoutAttr,
    StringAttr,
    SymbolRefAttr,
    VectorType,
    i1,
    i32,
    i64,
)
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from weft.dialects.element_types import forget_elements, value_type
from weft.dialects.low import (
    IMPORT_C,
    IMPORT_LLVM,
    PARAMS,
    GatherOp,
    ParallelForOp,
    ScatterOp,
    params_of,
    symbols_of,
)
from weft.dialects.low_access import PrefetchOp
from weft.dialects.low_kernel import SHARED, kernel_of
from weft.dialects.low_lanes import LANE_FORMS
from weft.dialects.strides import dynamic_extents, dynamic_strides, strides_of
from weft.dialects.traversal import operations_in, values_of
from weft.dialects.upstream import memref as upstream_memref
from weft.dialects.upstream import vector as upstream_vector
from weft.passes.convert.kernels_to_upstream import KERNEL_REWRITES, WORKGROUP, move_kernels
from weft.passes.low.low_legalize import UPSTREAM, legalize
from weft.passes.low.low_lower_dots import LowerDotsPass
from weft.passes.low.op_rewriter import OpRewriter, upstream_op
from weft.support.errors import CompileError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weft.dialects.low import ParamAttr


@dataclass(frozen=True)
class ConvertLowToUpstreamPass(ModulePass):
    """Write low functions with `builtin`, `func`, `scf`, `memref`, `vector`, `arith` and `math`, and kernels with
    `gpu`.

    ```mlir
    func.func @f(%A: memref<32xf32>) attributes {low.params = [#low.param<"A", memref<4x8xf32>, readwrite, []>], ...} {
      low.parallel_for %i in %n { ... }
    // becomes
    func.func @f(%A: memref<4x8xf32>) {
      %flat = memref.collapse_shape %A [[0, 1]] : memref<4x8xf32> into memref<32xf32>
      scf.parallel (%i) = (%c0) to (%n) step (%c1) { ... }
    ```
    A function has the parameters of its external signature; `memref.dim` and `memref.extract_strided_metadata` compute
    its symbols. If the module calls it, its flat form remains as `@f_flat`. Comparisons and casts of vectors, whose
    types xDSL lacks, are printed in generic form, which MLIR reads. Kernels become functions of a `gpu.module`, and
    shared buffers its variables in memory space 3; other memory spaces are dropped. The host passes buffers unchanged,
    so the device must be able to access them. `noalias` and contraction, which upstream does not assume, are dropped;
    callers check call preconditions (`low.assume`). Divisions by zero are still defined.

    Raises `CompileError` if there is no upstream form: pointers for functions outside the module (`low.access_ptr`),
    LLVM IR and C sources in the module, tiles of tensor cores, calls of declared functions with buffers of several
    dimensions (the kernels of a graph that are built separately).

    Requires: low functions (`lower-tir-to-low`).

    Leaves: functions of upstream dialects only, with their external signatures.
    """

    name = "convert-low-to-upstream"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = [f for f in op.ops if isinstance(f, FuncOp) and PARAMS in f.attributes]
        kernels = [f for f in op.ops if isinstance(f, FuncOp) and kernel_of(f) is not None]
        if not functions and not kernels:
            raise CompileError.at(op, f"{self.name}: the module has no low function (lower-tir-to-low makes them)")
        for name in (IMPORT_LLVM, IMPORT_C):
            if name in op.attributes:
                raise CompileError.at(op, f"{self.name}: code in the module ({name}) has no upstream form")
        LowerDotsPass(_NO_INSTRUCTIONS).apply(ctx, op)
        called = {inner.callee.string_value() for inner in operations_in(op) if isinstance(inner, CallOp)}
        names = {function.sym_name.data for function in op.ops if isinstance(function, FuncOp)}
        flat_names = {
            function.sym_name.data: _free_name(f"{function.sym_name.data}_flat", names)
            for function in functions
            if function.sym_name.data in called and not function.is_declaration
        }
        for function in functions:
            if function.is_declaration and function.sym_name.data in called:
                _require_flat(function)
        for function in (*functions, *kernels):
            if not function.is_declaration:
                legalize(function, UPSTREAM)
                convert_body(function)
        for inner in operations_in(op):
            if isinstance(inner, CallOp) and inner.callee.string_value() in flat_names:
                inner.callee = SymbolRefAttr(flat_names[inner.callee.string_value()])
        for function in functions:
            _convert_signature(function, flat_names.get(function.sym_name.data))
        move_kernels(op)
        for inner in operations_in(op):
            if inner.name.startswith(WEFT_PREFIXES):
                raise CompileError.at(inner, f"{self.name}: {inner.name} has no upstream form")
            for name in [name for name in inner.attributes if name.startswith(WEFT_PREFIXES)]:
                del inner.attributes[name]


_NO_INSTRUCTIONS: Final = "c"
WEFT_PREFIXES: Final = ("low.", "tir.", "te.", "graph.", "sched.")
"""Prefixes of the names of operations and attributes of weft's dialects."""


def _free_name(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name


# Operations


def convert_body(function: FuncOp) -> None:
    is_kernel = kernel_of(function) is not None
    for op in operations_in(function):
        _convert_spaces(op, is_kernel=is_kernel)
        rewrite = _REWRITES.get(type(op))
        if rewrite is not None:
            rewrite(op)
        if isinstance(op, memref.AllocaOp | memref.AllocOp):
            # xDSL prints it among the other attributes, which MLIR after 22 rejects. Accesses do not rely on it.
            op.properties.pop("alignment", None)
    _hoist_allocations(function)


def _convert_spaces(op: Operation, *, is_kernel: bool) -> None:
    for value in values_of(op):
        plain = _upstream_type(value.type, is_kernel=is_kernel)
        if plain is not value.type:
            value._type = plain  # pyright: ignore[reportPrivateUsage]


def _upstream_type(type_: Attribute, *, is_kernel: bool = False) -> Attribute:
    """Drops weft's memory space, except shared memory of kernels."""
    if isinstance(type_, MemRefType) and isinstance(type_.memory_space, StringAttr):
        space = WORKGROUP if is_kernel and type_.memory_space == SHARED else NoneAttr()
        return MemRefType(type_.element_type, type_.shape, type_.layout, space)
    return type_


def _lane_form(scalar: type[Operation]) -> Callable[[Operation], None]:
    def rewrite(op: Operation) -> None:
        OpRewriter(op).become(upstream_op(scalar.name, op.operands, [op.results[0].type], op.properties))

    return rewrite


def _parallel_for(op: Operation) -> None:
    loop = cast("ParallelForOp", op)
    rewriter = OpRewriter(op)
    zero, one = (rewriter.index(number) for number in (0, 1))
    body = loop.detach_region(loop.body)
    body.block.add_op(scf.ReduceOp())
    rewriter.become(scf.ParallelOp([zero], [loop.extent], [one], body))


def _mask_of(rewriter: OpRewriter, mask: SSAValue | None, lanes: VectorType[Attribute]) -> SSAValue:
    return rewriter.constant_lanes(VectorType(i1, lanes.get_shape()), [1]) if mask is None else mask


def _gather(op: Operation) -> None:
    gather = cast("GatherOp", op)
    rewriter = OpRewriter(op)
    type_ = gather.result.type
    mask = _mask_of(rewriter, gather.mask, type_)
    zeros, start = rewriter.constant_lanes(type_, [0]), rewriter.index(0)
    operands = (gather.base, start, gather.indices, mask, zeros)
    rewriter.replace(rewriter.op(upstream_vector.GatherOp, operands, type_))


def _scatter(op: Operation) -> None:
    scatter = cast("ScatterOp", op)
    rewriter = OpRewriter(op)
    mask = _mask_of(rewriter, scatter.mask, cast("VectorType[Attribute]", scatter.value.type))
    operands = (scatter.base, rewriter.index(0), scatter.indices, mask, scatter.value)
    rewriter.become(upstream_vector.ScatterOp.create(operands=operands))


_LINE: Final = 64
"""Bytes of a cache line, which one prefetch fetches."""


def _prefetch(op: Operation) -> None:
    prefetch = cast("PrefetchOp", op)
    rewriter = OpRewriter(op)
    element = cast("MemRefType[Attribute]", prefetch.buffer.type).element_type
    size = getattr(element, "size", 8)
    properties = {
        "isWrite": BoolAttr.from_bool(prefetch.for_write is not None),
        "localityHint": IntegerAttr(3, i32),
        "isDataCache": BoolAttr.from_bool(True),
    }
    for first in range(0, prefetch.lanes.value.data, max(1, _LINE // size)):
        index = prefetch.index
        if first:
            index = rewriter.combine(arith.AddiOp, index, rewriter.index(first))
        rewriter.add(upstream_memref.PrefetchOp.create(operands=(prefetch.buffer, index), properties=properties))
    rewriter.erase()


_REWRITES: Final[Mapping[type[Operation], Callable[[Operation], None]]] = {
    **KERNEL_REWRITES,
    **{form: _lane_form(scalar) for scalar, form in LANE_FORMS.items()},
    ParallelForOp: _parallel_for,
    GatherOp: _gather,
    ScatterOp: _scatter,
    PrefetchOp: _prefetch,
}


def _hoist_allocations(function: FuncOp) -> None:
    """Move stack allocations to the start of the function or parallel loop: elsewhere upstream allocates per
    iteration."""
    for op in operations_in(function):
        if isinstance(op, memref.AllocaOp) and not op.operands:
            block = op.parent_block()
            while block is not None and not isinstance(block.parent_op(), FuncOp | scf.ParallelOp):
                holder = block.parent_op()
                block = None if holder is None else holder.parent_block()
            if block is not None and block.first_op is not None and block is not op.parent_block():
                op.detach()
                block.insert_op_before(op, block.first_op)


# Signatures


def _convert_signature(function: FuncOp, flat_name: str | None) -> None:
    params, symbols = params_of(function), symbols_of(function)
    inputs = [_upstream_type(value_type(param.type)) for param in params]
    forget_elements(function)
    name = function.sym_name.data
    if function.is_declaration:
        function.function_type = FunctionType.from_lists(inputs, [])
        return
    block = Block(arg_types=inputs)
    for argument, param in zip(block.args, params, strict=True):
        argument.name_hint = _hint(param.label)
    values = _flat_arguments(block, params, symbols, [argument.type for argument in function.body.block.args])
    if flat_name is None:
        old = function.body.block
        for argument, value in zip(old.args, values, strict=True):
            argument.replace_all_uses_with(value)
        for op in [*old.ops]:
            op.detach()
            block.add_op(op)
        function.detach_region(function.body)
        function.add_region(Region(block))
        function.function_type = FunctionType.from_lists(inputs, [])
        return
    block.add_ops([CallOp(flat_name, values, []), ReturnOp()])
    caller = FuncOp(name, (inputs, []), Region(block), visibility=function.sym_visibility)
    function.sym_name = StringAttr(flat_name)
    function.sym_visibility = StringAttr("private")
    module_block = cast("Block", function.parent)
    module_block.insert_op_before(caller, function)


def _require_flat(function: FuncOp) -> None:
    shaped = [_upstream_type(value_type(param.type)) for param in params_of(function)]
    if shaped != [_upstream_type(given) for given in function.function_type.inputs]:
        raise CompileError.at(
            function,
            f"convert-low-to-upstream: @{function.sym_name.data} is called, and is declared alone: it takes buffers of"
            " several axes, which have no upstream form here; merge the module that defines it",
        )


def _hint(label: StringAttr) -> str | None:
    return label.data if SSAValue.is_valid_name(label.data) else None


def _flat_arguments(
    block: Block, params: Sequence[ParamAttr], symbols: Sequence[str], flat_types: Sequence[Attribute]
) -> list[SSAValue]:
    writer = _SignatureWriter(block)
    known: dict[str, SSAValue] = {}
    for argument, param in zip(block.args, params, strict=True):
        for symbol, value in zip(param.symbols, writer.dynamic_sizes(argument), strict=True):
            value.name_hint = _hint(symbol)
            known.setdefault(symbol.data, value)
    flat: list[SSAValue] = []
    for argument, type_ in zip(block.args, flat_types, strict=False):
        flat.append(writer.flat(argument, _upstream_type(type_)) if isinstance(type_, MemRefType) else argument)
        flat[-1].name_hint = argument.name_hint
    return [*flat, *(known[symbol] for symbol in symbols)]


class _SignatureWriter:
    def __init__(self, block: Block) -> None:
        self._block = block
        self._metadata: dict[SSAValue, Operation] = {}

    def _add(self, op: Operation) -> SSAValue:
        self._block.add_op(op)
        return op.results[0]

    def _index(self, number: int) -> SSAValue:
        return self._add(arith.ConstantOp(IntegerAttr(number, IndexType())))

    def dynamic_sizes(self, argument: SSAValue) -> list[SSAValue]:
        """Dynamic extents, then dynamic strides."""
        extents = [self._add(memref.DimOp(argument, self._index(at))) for at in dynamic_extents(argument.type)]
        return [*extents, *(self._stride(argument, at) for at in dynamic_strides(argument.type))]

    def _metadata_of(self, buffer: SSAValue) -> Sequence[SSAValue]:
        if buffer not in self._metadata:
            self._metadata[buffer] = op = memref.ExtractStridedMetaDataOp(buffer)
            self._block.add_op(op)
        return self._metadata[buffer].results

    def _stride(self, buffer: SSAValue, dimension: int) -> SSAValue:
        rank = cast("MemRefType[Attribute]", buffer.type).get_num_dims()
        return self._metadata_of(buffer)[2 + rank + dimension]

    def flat(self, buffer: SSAValue, flat_type: Attribute) -> SSAValue:
        type_, result = cast("MemRefType[Attribute]", buffer.type), cast("MemRefType[Attribute]", flat_type)
        if type_ == result:
            return buffer
        rank, strides = type_.get_num_dims(), strides_of(type_)
        if strides is None and rank:
            groups = ArrayAttr([ArrayAttr([IntegerAttr(at, i64) for at in range(rank)])])
            return self._add(
                memref.CollapseShapeOp.create(
                    operands=[buffer], result_types=[result], properties={"reassociation": groups}
                )
            )
        offset: SSAValue | int = 0
        if isinstance(type_.layout, StridedLayoutAttr) and type_.layout.get_offset() is None:
            offset = self._metadata_of(buffer)[1]
            result = MemRefType(result.element_type, result.shape, StridedLayoutAttr([1], None))
        extent: SSAValue | int = result.get_shape()[0]
        if extent == DYNAMIC_INDEX:
            extent = self._span(buffer)
        return self._add(memref.ReinterpretCastOp.from_dynamic(buffer, [offset], [extent], [1], result))

    def _span(self, buffer: SSAValue) -> SSAValue:
        """Elements from the first to the last: 1 plus (extent - 1) * stride of each dimension."""
        rank = cast("MemRefType[Attribute]", buffer.type).get_num_dims()
        one = span = self._index(1)
        for at in range(rank):
            last = self._add(arith.SubiOp(self._metadata_of(buffer)[2 + at], one))
            span = self._add(arith.AddiOp(span, self._add(arith.MuliOp(last, self._stride(buffer, at)))))
        return span
