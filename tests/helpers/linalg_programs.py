"""A small program for each named op of linalg, in MLIR's syntax."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from weft.dialects.upstream.linalg_bodies import ELEMENTWISE
from weft.dialects.upstream.linalg_forms import FORMS, Form

BEFORE_22 = ("matmul_transpose_a", "matmul_transpose_b", "batch_matmul_transpose_a", "batch_matmul_transpose_b")
"""Ops of earlier versions than MLIR 22, which says `linalg.matmul` with other indexing maps."""
_FLOATS_ONLY = ("powf", *(name for name, operands in ELEMENTWISE.items() if operands == 1))
_INTEGERS_ONLY = ("div_unsigned",)
STRIDES, DILATIONS = (2, 1, 1), (1, 2, 1)


def named_ops() -> list[str]:
    """The names that a program is made for."""
    return [name for name in FORMS if name not in ("contract", "elementwise")]


def element_types(name: str) -> tuple[str, str]:
    """Types of the inputs and of the output on which an op is defined: not the same, where it casts."""
    form = FORMS[name]
    if "unsigned" in name:
        return ("i32", "i32") if name in _INTEGERS_ONLY else ("i8", "i32")
    if form.body == "quantized product":
        return "i8", "i32"
    if form.body in ELEMENTWISE:
        return "f32", "f32"
    return ("f16", "f32") if form.body == "product" and "conv" in name else ("f32", "f32")


def shapes_of(form: Form, extents: Mapping[str, int]) -> list[tuple[int, ...]]:
    """The shape of each operand, for extents of the loops."""
    if not form.loops:
        return [(3, 5)] * ((1 if form.body == "copy" else ELEMENTWISE[form.body]) + 1)
    operands = form.loops.partition(":")[2].split(",")
    shapes: list[tuple[int, ...]] = []
    for operand in operands:
        shape: list[int] = []
        windows = 0
        for term in operand.split():
            if "~" in term:
                outer, inner = term.split("~")
                reach = (extents[outer] - 1) * STRIDES[windows] + (extents[inner] - 1) * DILATIONS[windows] + 1
                windows += 1
            elif "+" in term:
                outer, inner = term.split("+")
                reach = extents[outer] + extents[inner] - 1
            else:
                reach = extents[term]
            shape.append(reach)
        shapes.append(tuple(shape))
    return shapes


def extents_of(form: Form) -> dict[str, int]:
    """Small extents, all of them different where there are few loops."""
    names = form.loops.partition(":")[0].split()
    sizes = (2, 3, 4, 5) if len(names) <= 4 else (2, 3, 2, 3)
    return {name: 2 if name.startswith("k") and len(names) > 3 else sizes[at % 4] for at, name in enumerate(names)}


def _typed(shape: Sequence[int], element: str, container: str) -> str:
    return f"{container}<{''.join(f'{extent}x' for extent in shape)}{element}>"


def operand_types(name: str, container: str = "memref") -> list[str]:
    """The types of the operands, the output last."""
    form = FORMS[name]
    of_inputs, of_output = element_types(name)
    shapes = shapes_of(form, extents_of(form))
    types = [_typed(shape, of_inputs, container) for shape in shapes[:-1]] + [_typed(shapes[-1], of_output, container)]
    if name == "fill":
        types[0] = of_inputs
    if name == "select":
        types[0] = _typed(shapes[0], "i1", container)
    if form.body == "quantized product":
        types[2:4] = ["i32", "i32"]
    return types


def program(name: str, container: str = "memref", function: str = "main") -> str:
    """A function of the operands of one op, which returns its result where they are tensors."""
    form = FORMS[name]
    types = operand_types(name, container)
    attributes = ""
    if form.has_windows:
        rank = form.rank_of_windows
        strides, dilations = (", ".join(map(str, numbers[:rank])) for numbers in (STRIDES, DILATIONS))
        of = f"tensor<{rank}xi64>"
        attributes = f" {{dilations = dense<[{dilations}]> : {of}, strides = dense<[{strides}]> : {of}}}"
    values = [f"%{letter}" for letter in "abcdefg"[: len(types)]]
    arguments = ", ".join(f"{value}: {type_}" for value, type_ in zip(values, types, strict=True))
    operands = f"ins({', '.join(values[:-1])} : {', '.join(types[:-1])}) outs({values[-1]} : {types[-1]})"
    result, returned, given = "", "", ""
    if container == "tensor":
        result, returned, given = f" -> {types[-1]}", f" %r : {types[-1]}", "%r = "
    return (
        f"func.func @{function}({arguments}){result} {{\n"
        f"  {given}linalg.{name}{attributes} {operands}{result}\n"
        f"  return{returned}\n"
        "}\n"
    )


_DTYPES = {"f16": np.float16, "f32": np.float32, "i1": np.bool_, "i8": np.int8, "i32": np.int32}


def arguments_of(name: str, seed: int = 0) -> list[Any]:
    """Random operands: small numbers, of which sums of floats are exact; those of `abs` and the like of both signs."""
    rng = np.random.default_rng(seed)
    found: list[Any] = []
    for type_ in operand_types(name):
        shape, element = re.findall(r"(?:memref<((?:\d+x)*))?(\w+)>?", type_)[0]
        extents = [int(extent) for extent in shape.split("x") if extent]
        values = rng.integers(-7 if name not in ("log", "sqrt", "rsqrt", "powf") else 1, 8, extents)
        values = np.where(values == 0, 3, values)  # for divisions
        array = np.array(
            values > 0 if element == "i1" else values / 4 if element == "f32" else values, _DTYPES[element]
        )
        found.append(array if "memref" in type_ else array.item())
    return found
