"""Tensor intrinsics: their descriptions and the code that implements them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from xdsl.context import Context
from xdsl.dialects import affine, arith, memref, ptr
from xdsl.dialects.builtin import DYNAMIC_INDEX, Builtin, MemRefType, ModuleOp, NoneAttr, StridedLayoutAttr, UnitAttr
from xdsl.dialects.func import Func, FuncOp, ReturnOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.parser import Parser

from weft.analysis.accesses import accesses, range_of
from weft.analysis.dependence import buffer_name
from weft.dialects.effects import PURE
from weft.dialects.low import LOW
from weft.dialects.low_access import AccessPtrOp, StrideOp
from weft.dialects.tir import TIR, AccessRegionOp, BlockOp
from weft.passes.schedule.convolution_intrinsics import ConvolutionIntrinsic, convolution_named
from weft.passes.schedule.dot_intrinsics import dot_intrinsics
from weft.passes.schedule.tensor_core_intrinsics import tensor_core_intrinsics
from weft.passes.schedule.tile_intrinsics import TileProduct, tile_product_named
from weft.support.errors import CompileError, did_you_mean


@dataclass(frozen=True)
class TensorIntrinsic:
    """Two functions with the same parameters, buffers of static shape."""

    name: str
    description: FuncOp
    implementation: FuncOp
    outside: tuple[FuncOp, ...]
    """Functions from other modules that the implementation calls, `low.pure`: the description states all of their
    effects."""

    @property
    def calls(self) -> bool:
        return bool(self.outside)


_INTRINSICS: dict[str, TensorIntrinsic] = {}


def add_intrinsic(intrinsic: TensorIntrinsic, *, override: bool) -> None:
    """Raises `CompileError` if the name is taken, unless `override`."""
    own = intrinsic.name in _own_intrinsics() or _parametrised(intrinsic.name) is not None
    if (intrinsic.name in _INTRINSICS or own) and not override:
        raise CompileError(f"a tensor intrinsic '{intrinsic.name}' is registered already: pass override=True")
    _INTRINSICS[intrinsic.name] = intrinsic


def find_intrinsic(name: str) -> TensorIntrinsic:
    """Raises `CompileError` with similar names."""
    if name not in _INTRINSICS:
        own, tiles = _own_intrinsics(), _parametrised(name)
        if name not in own and tiles is None:
            raise CompileError(f"unknown tensor intrinsic '{name}'{did_you_mean(name, {**own, **_INTRINSICS})}")
        description, implementation = own[name] if tiles is None else tiles.texts()
        _INTRINSICS[name] = intrinsic_of(name, _parsed(description), _parsed(implementation))
    return _INTRINSICS[name]


def _parametrised(name: str) -> TileProduct | ConvolutionIntrinsic | None:
    return tile_product_named(name) or convolution_named(name)


@cache
def _own_intrinsics() -> Mapping[str, tuple[str, str]]:
    return {**tensor_core_intrinsics(), **dot_intrinsics()}


def _parsed(text: str) -> ModuleOp:
    context = Context()
    for dialect in (Builtin, Func, arith.Arith, affine.Affine, memref.MemRef, ptr.Ptr, TIR, LOW):
        context.load_dialect(dialect)
    return Parser(context, text).parse_module()


def intrinsic_of(name: str, description: ModuleOp, implementation: ModuleOp) -> TensorIntrinsic:
    """`implementation` may declare functions that it calls. Raises `CompileError` if the parameters differ, have
    dynamic extents, or are used in a way that does not generalise to a part of a larger buffer."""
    described, implemented = _only_function(description), _only_function(implementation)
    outside = tuple(op for op in implementation.ops if isinstance(op, FuncOp) and op.is_declaration)
    for function in outside:
        function.attributes[PURE] = UnitAttr()
    _check_parameters(name, described, implemented)
    _check_description(described)
    _check_implementation(implemented)
    return TensorIntrinsic(name, described, implemented, outside)


def content_of(function: FuncOp) -> Block:
    """The body's only block if it has no iterators ("root"), else the body."""
    body = function.body.block
    ops = [op for op in body.ops if not isinstance(op, ReturnOp) and not _is_definition(op)]
    if len(ops) == 1 and isinstance(ops[0], BlockOp) and not ops[0].iter_vars:
        return ops[0].body.block
    return body


def _is_definition(op: Operation) -> bool:
    return op.name.startswith(("arith.", "affine.")) or isinstance(op, StrideOp)


def _only_function(module: ModuleOp) -> FuncOp:
    found = [op for op in module.ops if isinstance(op, FuncOp) and not op.is_declaration]
    if len(found) != 1:
        raise CompileError(f"a tensor intrinsic is described by a module with one function, got {len(found)}")
    (function,) = found
    if len(function.body.blocks) != 1 or function.function_type.outputs.data:
        raise CompileError.at(function, f"@{function.sym_name.data} of a tensor intrinsic gives results")
    return function


def _check_parameters(name: str, description: FuncOp, implementation: FuncOp) -> None:
    first, second = list(description.args), list(implementation.args)
    if len(first) != len(second):
        raise CompileError.at(
            implementation,
            f"tensor intrinsic '{name}': the description has {len(first)} parameters, the implementation {len(second)}",
        )
    for at, (ours, theirs) in enumerate(zip(first, second, strict=True)):
        for value in (ours, theirs):
            type_ = value.type
            if not isinstance(type_, MemRefType) or DYNAMIC_INDEX in type_.get_shape():
                raise CompileError.at(
                    description, f"tensor intrinsic '{name}': parameter {at} is {type_}, not a buffer of static shape"
                )
        if _without_layout(ours) != _without_layout(theirs):
            raise CompileError.at(
                implementation,
                f"tensor intrinsic '{name}': parameter {at} is {ours.type} in the description and {theirs.type} in the "
                "implementation",
            )


def _without_layout(value: SSAValue) -> object:
    type_ = value.type
    return (type_.element_type, type_.get_shape(), type_.memory_space) if isinstance(type_, MemRefType) else type_


def _check_description(function: FuncOp) -> None:
    """Loads and stores only, over all of each buffer, because the implementation may access all of it."""
    for op in function.walk():
        if any(isinstance(operand.type, MemRefType) for operand in op.operands) and not isinstance(
            op, memref.LoadOp | memref.StoreOp | AccessRegionOp
        ):
            raise CompileError.at(op, f"the description of a tensor intrinsic loads and stores, got {op.name}")
        if isinstance(op, memref.AllocOp):
            raise CompileError.at(op, "the description of a tensor intrinsic has no temporaries")
    found = accesses(function)
    for argument in function.args:
        shape = argument.type.get_shape() if isinstance(argument.type, MemRefType) else ()
        for dimension, extent in enumerate(shape):
            ranges = [
                access.indices[dimension].range(range_of)
                for access in found
                if access.buffer is argument and access.indices is not None
            ]
            if (0, extent - 1) not in ranges:
                raise CompileError.at(
                    function,
                    f"the description of a tensor intrinsic does not touch all of {buffer_name(argument)} in "
                    f"dimension {dimension}",
                )


def _check_implementation(function: FuncOp) -> None:
    movable = (memref.LoadOp, memref.StoreOp, AccessPtrOp, StrideOp, AccessRegionOp)
    for argument in function.args:
        layout = argument.type.layout if isinstance(argument.type, MemRefType) else NoneAttr()
        if not isinstance(layout, NoneAttr | StridedLayoutAttr):
            raise CompileError.at(function, f"the layout of {buffer_name(argument)} is none of strides: {layout}")
        for use in argument.uses:
            if not isinstance(use.operation, movable):
                raise CompileError.at(
                    use.operation,
                    f"{use.operation.name} takes all of {buffer_name(argument)}: the implementation of a tensor "
                    "intrinsic loads, stores, and takes pointers (low.access_ptr)",
                )
    for op in function.walk():
        if isinstance(op, memref.AllocOp) and op.dynamic_sizes:
            raise CompileError.at(op, "temporaries of a tensor intrinsic have static shapes")


def points_into(argument: BlockArgument) -> bool:
    """Whether pointers into a parameter are passed to functions."""
    return any(isinstance(use.operation, AccessPtrOp) for use in argument.uses)
