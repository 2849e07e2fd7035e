"""Print graph functions as the Python that builds them.

    bb = G.BlockBuilder()
    x = G.var("x", ("n", 784), "float32")
    with bb.function("main", [x]):
        with bb.dataflow():
            w = G.const(..., "float32")  # (784, 128)
            h = bb.emit(G.matmul(x, w), "h")  # ("n", 128) float32
            out = bb.emit_output(h)
        bb.emit_func_output(out)
    mod = bb.get()

Ops without a call of the builder, and functions other than graph functions, are printed as comments. A script without
these, and without `...`, rebuilds its module.
"""

from __future__ import annotations

import inspect
import keyword
import re
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, ModuleOp, TensorType
from xdsl.dialects.func import FuncOp, ReturnOp

from weft.dialects.element_types import element_name
from weft.dialects.graph import (
    CallDpsOp,
    CallTirOp,
    ConstantOp,
    DataflowOp,
    MakeTupleOp,
    OutputOp,
    Tensor,
    TupleGetOp,
)
from weft.dialects.graph_shapes import Extent, Shape, shape_of
from weft.interp.values import array_of_dense
from weft.passes.graph.functions import holds_graph_ops
from weft.support.names import free_name, string_text
from weft.texpr.graph_operators import Operator

if TYPE_CHECKING:
    from xdsl.ir import Attribute, Block, Operation, SSAValue

_MOST_ELEMENTS = 16
"""Constants up to this number of elements are printed in full."""


def print_graph_script(module: ModuleOp) -> str:
    lines = ["from weft import graph as G", "", "bb = G.BlockBuilder()"]
    for op in module.body.block.ops:
        if isinstance(op, FuncOp) and holds_graph_ops(op):
            lines += GraphPrinter().function(op)
        elif isinstance(op, FuncOp):
            types = ", ".join(map(str, op.function_type.inputs))
            lines.append(f"# @{op.sym_name.data}({types}): no graph function")
        else:
            lines.append(f"# {op.name}")
    return "\n".join((*lines, "mod = bb.get()")) + "\n"


class GraphPrinter:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 0
        self._names: dict[SSAValue, str] = {}
        self._taken: set[str] = {"bb", "G", "mod"}

    def function(self, function: FuncOp) -> list[str]:
        parameters = [self._name(argument) for argument in function.args]
        for name, argument in zip(parameters, function.args, strict=True):
            self._line(f"{name} = G.var({string_text(name)}, {_typed(argument.type)})")
        notes = ", ".join(f"{key} = {value}" for key, value in function.attributes.items())
        name = string_text(function.sym_name.data)
        with self._nested(f"with bb.function({name}, [{', '.join(parameters)}]):", notes):
            self._block(function.body.block)
        return self.lines

    def _line(self, text: str, comment: str = "") -> None:
        self.lines.append(f"{'    ' * self.depth}{text}{f'  # {comment}' if comment else ''}")

    @contextmanager
    def _nested(self, head: str, comment: str = "") -> Generator[None]:
        self._line(head, comment)
        self.depth += 1
        yield
        self.depth -= 1

    def _name(self, value: SSAValue) -> str:
        if value not in self._names:
            word = re.sub(r"\W", "_", value.name_hint or "v", flags=re.ASCII)
            name = free_name(f"v{word}" if word[0].isdigit() or keyword.iskeyword(word) else word, self._taken)
            self._taken.add(name)
            self._names[value] = name
        return self._names[value]

    def _block(self, block: Block) -> None:
        for op in block.ops:
            self._operation(op)

    def _operation(self, op: Operation) -> None:
        if isinstance(op, DataflowOp):
            with self._nested("with bb.dataflow():"):
                self._block(op.body.block)
                for result, value in zip(op.results, op.output.values, strict=True):
                    self._line(f"{self._name(result)} = bb.emit_output({self._name(value)})")
            return
        names = ", ".join(map(self._name, op.results))
        shown = ", ".join(f"{_shape(r.type)} {_dtype(r.type)}" for r in op.results if isinstance(r.type, TensorType))
        match op:
            case OutputOp():
                pass
            case ReturnOp():
                values = ", ".join(map(self._name, op.arguments))
                self._line(f"bb.emit_func_output({values if len(op.arguments) == 1 else f'[{values}]'})")
            case ConstantOp():
                self._line(
                    f"{names} = G.const({_elements(op)}, {string_text(_dtype(op.result.type))})", _shape(op.result.type)
                )
            case Operator() if len(op.results) == 1:
                hint = op.results[0].name_hint
                own = "" if hint in (None, op.name.removeprefix("graph.")) else f", {string_text(hint)}"
                self._line(f"{names} = bb.emit(G.{self._call(op)}{own})", shown)
            case Operator():
                self._line(f"{names} = G.{self._call(op)}", shown)
            case CallTirOp():
                callee = string_text(op.callee.string_value())
                self._line(f"{names} = bb.call_tir({callee}, {self._list(op.operands)}, ...)", shown)
            case CallDpsOp():
                callee, types = string_text(op.callee.data), op.result_types
                made = _typed(types[0])
                if len(types) != 1:
                    dtypes = ", ".join(string_text(_dtype(type_)) for type_ in types)
                    made = f"[{', '.join(map(_shape, types))}], [{dtypes}]"
                call = f"G.call_dps({callee}, {self._list(op.operands)}, {made})"
                self._line(f"{names} = {call if len(types) != 1 else f'bb.emit({call})'}")
            case MakeTupleOp():
                self._line(f"{names} = ({', '.join(map(self._name, op.values))},)")
            case TupleGetOp():
                self._line(f"{names} = {self._name(op.source)}[{op.index}]")
            case _:
                operands = ", ".join(map(self._name, op.operands))
                self._line(f"# {names} = {op.name}({operands})", shown)

    def _list(self, values: Iterable[SSAValue]) -> str:
        return f"[{', '.join(map(self._name, values))}]"

    def _call(self, op: Operator) -> str:
        given: dict[str, Any] = dict(op.arguments(lambda shape: shape))
        groups = {role.name: g for role, g in zip(op.ROLES, op.grouped(op.operands, op.properties), strict=True)}
        texts: list[str] = []
        parameters = op.SIGNATURE.parameters
        rest = [at for at, p in enumerate(parameters.values()) if p.kind is inspect.Parameter.VAR_POSITIONAL]
        is_positional = True
        for at, (name, parameter) in enumerate(parameters.items()):
            if name in groups and groups[name] is not None:
                text = self._group(groups[name], parameter)
            elif name in given:
                text = _argument(given[name])
            else:
                is_positional = False
                continue
            is_positional = is_positional and (name in groups or (bool(rest) and at < rest[0]))
            is_plain = is_positional and parameter.kind is not inspect.Parameter.KEYWORD_ONLY
            texts.append(text if is_plain else f"{name}={text}")
        return f"{op.name.removeprefix('graph.')}({', '.join(filter(None, texts))})"

    def _group(self, values: Any, parameter: inspect.Parameter) -> str:
        if not isinstance(values, list):
            return self._name(values)
        inner = ", ".join(map(self._name, cast("Sequence[SSAValue]", values)))
        return inner if parameter.kind is inspect.Parameter.VAR_POSITIONAL else f"[{inner}]"


def _argument(value: Any) -> str:
    if isinstance(value, tuple):
        return _extents(cast("Shape", value))
    return string_text(value) if isinstance(value, str) else repr(value)


def _extents(shape: Shape) -> str:
    def text(extent: Extent) -> str:
        return str(extent) if isinstance(extent, int) else "None" if extent is None else string_text(str(extent))

    return f"({', '.join(map(text, shape))}{',' * (len(shape) == 1)})"


def _shape(type_: Attribute) -> str:
    return _extents(shape_of(cast("Tensor", type_)))


def _dtype(type_: Attribute) -> str:
    element = cast("Tensor", type_).element_type
    return element_name(element) or str(element)


def _typed(type_: Attribute) -> str:
    return (
        f"{_shape(type_)}, {string_text(_dtype(type_))}" if isinstance(type_, TensorType) else string_text(str(type_))
    )


def _elements(op: ConstantOp) -> str:
    value = op.value
    if not isinstance(value, DenseIntOrFPElementsAttr) or np.prod(value.get_shape()) > _MOST_ELEMENTS:
        return "..."
    array = array_of_dense(value)
    if array is None or not np.isfinite(array).all():
        return "..."
    return repr(array.tolist())
