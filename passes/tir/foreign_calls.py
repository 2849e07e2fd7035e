"""Calls between flat functions and the functions of a module that tir passes leave alone.

```mlir
func.call @f(%A) : (memref<4x4xf32>) -> ()        // in a function of somebody else, which stays as it is
// @f keeps its signature, and calls the flat function
func.func @f(%A: memref<4x4xf32>) {
  %flat = memref.reinterpret_cast %A to offset: [0], sizes: [16], strides: [1] : memref<4x4xf32> to memref<16xf32>
  func.call @f_flat(%flat) : (memref<16xf32>) -> ()
  func.return
}
```
A flat function that calls one of somebody else gives its buffers back their shape in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import TYPE_CHECKING

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, FunctionType, MemRefType, ModuleOp, StringAttr
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue

from weft.dialects.low import PARAMS
from weft.dialects.strides import strides_of
from weft.passes.module_functions import named_ops, rename_symbol, symbol_uses
from weft.passes.tir.flat_signature import FlatSignature
from weft.passes.tir.nest import buffer_type, index_constant
from weft.support.errors import CompileError
from weft.support.names import free_name

if TYPE_CHECKING:
    from xdsl.ir import Attribute


def users_elsewhere(module: ModuleOp, functions: Sequence[FuncOp]) -> dict[str, Operation]:
    """Those of `functions` that ops outside of them refer to, by name, with the first such op. Functions that were
    flattened before call by flat signatures already."""
    names = {function.sym_name.data for function in functions}
    found: dict[str, Operation] = {}
    for holder in module.ops:
        if holder not in functions and PARAMS not in holder.attributes:
            for symbol, op in symbol_uses(holder):
                if symbol in names:
                    found.setdefault(symbol, op)
    return found


def keep_signature(
    module: ModuleOp, function: FuncOp, signature: FlatSignature, type_: FunctionType, user: Operation
) -> None:
    """Rename a flat function, and let one of its old name and type call it. `user` is an op that refers to it.

    Raises CompileError when a parameter is strided: no flat buffer says where a view starts.
    """
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
    wrapper.location = function.location
    module.body.block.insert_op_before(wrapper, function)


def _calling_block(function: FuncOp, signature: FlatSignature, type_: FunctionType) -> Block:
    """The body of a function with the signature from before that calls the flat one."""
    block = Block(arg_types=type_.inputs.data)
    for argument, label in zip(block.args, signature.labels, strict=True):
        argument.name_hint = label
    shapes = {position: _shape(block.args[position], block) for position in signature.memrefs}
    given: list[SSAValue] = list(block.args)
    for position in signature.memrefs:
        flat = buffer_type(function.args[position])
        given[position] = recast(block.args[position], shapes[position], flat, block)
    symbols = {
        name: extent
        for (position, dimension, _), name in signature.of_quantity.items()
        if isinstance(extent := shapes[position][dimension], SSAValue)
    }
    given.extend(symbols[name] for name in signature.symbols)
    call = CallOp(function.sym_name.data, given, type_.outputs.data)
    block.add_ops([call, ReturnOp(*call.results)])
    for op in block.ops:
        op.location = function.location
    return block


def _shape(buffer: SSAValue, block: Block) -> list[int | SSAValue]:
    """The extents of a parameter, those that vary asked for at the end of `block`."""
    shape: list[int | SSAValue] = []
    for dimension, extent in enumerate(buffer_type(buffer).get_shape()):
        if extent != DYNAMIC_INDEX:
            shape.append(extent)
            continue
        at = index_constant(dimension)
        dim = memref.DimOp(buffer, at)
        block.add_ops([at, dim])
        shape.append(dim.result)
    return shape


def recast(
    buffer: SSAValue, shape: Sequence[int | SSAValue], type_: MemRefType[Attribute], place: Block | Operation
) -> SSAValue:
    """A dense buffer of the extents `shape` by another dense type of as many elements; computed at the end of a block,
    or before an operation."""
    if buffer.type == type_:
        return buffer
    extents = list(shape)
    if type_.get_num_dims() == 1:
        extents = [_product(shape, place)]
    strides: list[int | SSAValue] = [_product(extents[at + 1 :], place) for at in range(len(extents))]
    extents = [
        s if s != DYNAMIC_INDEX else _value(e, place) for e, s in zip(extents, type_.get_shape(), strict=True)
    ]  # as the type says, static or not
    cast_ = memref.ReinterpretCastOp.from_dynamic(buffer, [0], extents, strides, type_)
    cast_.result.name_hint = buffer.name_hint
    _add(cast_, place)
    return cast_.result


def _product(factors: Iterable[int | SSAValue], place: Block | Operation) -> int | SSAValue:
    known = list(factors)
    static = prod(f for f in known if isinstance(f, int))
    product: SSAValue | None = None
    for factor in (f for f in known if isinstance(f, SSAValue)):
        product = factor if product is None else _binary(product, factor, place)
    if product is None or static == 1:
        return static if product is None else product
    return _binary(product, _value(static, place), place)


def _value(number: int | SSAValue, place: Block | Operation) -> SSAValue:
    if isinstance(number, SSAValue):
        return number
    constant = index_constant(number)
    _add(constant, place)
    return constant.result


def _binary(left: SSAValue, right: SSAValue, place: Block | Operation) -> SSAValue:
    op = arith.MuliOp(left, right)
    _add(op, place)
    return op.result


def _add(op: Operation, place: Block | Operation) -> None:
    if isinstance(place, Block):
        place.add_op(op)
        return
    op.location = place.location
    block = place.parent
    if block is not None:
        block.insert_op_before(op, place)
