"""`weft.bind_weights`: parameters of a function become constants from a file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from xdsl.context import Context
from xdsl.dialects.builtin import BytesAttr, DenseIntOrFPElementsAttr, ModuleOp, TensorType, f32
from xdsl.dialects.func import FuncOp

from weft.dialects.element_types import TYPES, element_name
from weft.dialects.traversal import copy_of
from weft.support.argument_types import checked
from weft.support.errors import CompileError, did_you_mean
from weft.support.gguf import MAGIC, PLAIN, GgufTensor, blocks_of, read_gguf
from weft.support.safetensors import ELEMENTS, StoredTensor, read_safetensors

if TYPE_CHECKING:
    from xdsl.ir import BlockArgument, Operation, SSAValue


@checked
def bind_weights(
    mod: ModuleOp,
    file: str | os.PathLike[str],
    names: Mapping[str, str] | None = None,
    *,
    function: str = "main",
) -> ModuleOp:
    """Returns a copy of a module of graph functions with parameters replaced by constants from a GGUF or safetensors
    file.

        mod = weft.from_torch(model, (x,), params="arguments")
        mod = weft.bind_weights(mod, "model.gguf", {"p_head_weight": "output.weight"})
        lib = weft.build(mod)  # products read the weights of 4 and 8 bits of the file

    `names` maps parameters of @function to tensors of the file, by default those of the same name, with `_` for
    characters invalid in names of values. Shapes must be equal; floats are cast to the parameter's type. Quantised GGUF
    tensors (Q4_0, Q4_1, Q8_0, Q4_K, Q6_K) stay integers with scales for products and gathers of rows; other operators
    dequantise them in each call.

    Raises `CompileError` for another format, a truncated file, tensors outside of it, a name that the function or the
    file lacks, unequal shapes, and, naming the tensor, an unsupported type or a scale that is not finite. Raises
    `OSError` if the file cannot be read.
    """
    from weft.passes.graph.graph_bind_params import bind_values  # start-up: 56 ms
    from weft.passes.graph.graph_infer_types import GraphInferTypesPass  # start-up: 2 ms

    found = copy_of(mod)
    functions = {op.sym_name.data: op for op in found.ops if isinstance(op, FuncOp)}
    if function not in functions:
        raise CompileError(f"bind_weights: the module has no function @{function}{did_you_mean(function, functions)}")
    path = Path(file)
    with path.open("rb") as content:
        is_gguf = content.read(len(MAGIC)) == MAGIC
    tensors: Mapping[str, GgufTensor | StoredTensor] = read_gguf(path) if is_gguf else read_safetensors(path)
    parameters = {a.name_hint: a for a in functions[function].args if a.name_hint is not None}
    if names is None:
        by_name = {_as_value(name): name for name in tensors}
        names = {name: by_name[name] for name in parameters if name in by_name}
        if not names:
            raise CompileError(f"bind_weights: no parameter of @{function} has the name of a tensor of '{path}'")
    values: dict[BlockArgument, SSAValue] = {}
    for parameter, name in names.items():
        if parameter not in parameters:
            raise CompileError(
                f"bind_weights: @{function} has no parameter '{parameter}'{did_you_mean(parameter, parameters)}"
            )
        if name not in tensors:
            raise CompileError(f"bind_weights: '{path}' has no tensor '{name}'{did_you_mean(name, tensors)}")
        values[parameters[parameter]] = _value(path, name, tensors[name], parameters[parameter])
    bind_values(functions[function], values)
    GraphInferTypesPass().apply(Context(), found)
    return found


def _as_value(name: str) -> str:
    from weft.texpr.shapes import value_name  # start-up: 23 ms

    return value_name("".join(c if c.isalnum() else "_" for c in name))


def _value(path: Path, name: str, tensor: GgufTensor | StoredTensor, parameter: BlockArgument) -> SSAValue:
    """The value, of a parameter's type, is computed by ops that are not inserted yet."""
    import numpy as np

    from weft.dialects.graph import ConstantOp  # start-up: 19 ms
    from weft.passes.graph.operators import made, made_constant  # start-up: 43 ms

    type_ = parameter.type
    if not isinstance(type_, TensorType) or tuple(type_.get_shape()) != tensor.shape:
        raise CompileError(
            f"bind_weights: tensor '{name}' of '{path}' has shape {tensor.shape}, but parameter "
            f"'{parameter.name_hint}' is {type_}"
        )
    declared = str(element_name(cast("TensorType[Any]", type_).element_type))

    def named(constant: Operation, suffix: str = "") -> SSAValue:
        constant.results[0].name_hint = f"{parameter.name_hint}{suffix}"
        return constant.results[0]

    if isinstance(tensor, StoredTensor):
        stored = ELEMENTS[tensor.dtype][0]
    elif tensor.type in PLAIN:
        stored = PLAIN[tensor.type]
    else:
        blocks = blocks_of(tensor)
        sign = "u" if blocks.integers.dtype == np.uint8 else ""
        integers = made_constant(blocks.integers.reshape(tensor.shape), TYPES[f"{sign}int{blocks.bits}"])
        shape = (*tensor.shape[:-1], tensor.shape[-1] // blocks.group)
        scale = made_constant(blocks.scale.reshape(shape), TYPES[str(blocks.scale.dtype)])
        zero = blocks.zero_point
        zero = None if zero is None else named(made_constant(zero.reshape(shape), f32), "_zero_point")
        operands = [named(integers), named(scale, "_scale"), zero]
        options = {} if declared == "float32" else {"dtype": declared}
        last = len(tensor.shape) - 1
        return made("dequantize", operands, axis=last, group_size=blocks.group, **options).results[0]
    elements = DenseIntOrFPElementsAttr(
        cast("TensorType[Any]", TensorType(TYPES[stored], tensor.shape)), BytesAttr(cast("bytes", tensor.data))
    )
    value = named(ConstantOp(elements))
    if stored == declared:
        return value
    if "float" not in stored or "float" not in declared:
        raise CompileError(
            f"bind_weights: tensor '{name}' of '{path}' is {stored}, but parameter '{parameter.name_hint}' is "
            f"{declared}"
        )
    return made("cast", [value], dtype=declared).results[0]
