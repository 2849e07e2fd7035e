"""Print graph functions as script: `@R.function`."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from xdsl.dialects.builtin import TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue

from weft.dialects import graph
from weft.dialects.attribute_values import value_of
from weft.dialects.element_types import element_name
from weft.dialects.graph import CallDpsOp, CallTirOp, ConstantOp, DataflowOp, OutputOp, dense_value, function_of
from weft.dialects.graph_control import IfOp
from weft.dialects.graph_shapes import names_in, shape_of
from weft.frontends.graph_builder import Value
from weft.frontends.graph_script import GraphPrinter as _GraphPrinter
from weft.frontends.script.text import PythonNames
from weft.interp.values import array_of_dense
from weft.passes.graph.functions import holds_graph_ops
from weft.support.names import string_text
from weft.texpr.graph_operators import Operator
from weft.tvm.relax.names import relax_name, tensor_shape

_MOST_ELEMENTS = 64
"""Larger constants are not printed."""

_OWN = (
    "argsort", "attention", "batch_norm", "one_hot", "prelu", "quantize", "dequantize", "repeat", "resize2d",
    "grid_sample", "nonzero", "resize3d", "scatter_elements", "scatter_nd", "strided_slice", "take", "topk", "unique",
)  # fmt: skip
"""Operators with other parameters, layouts, dtypes or results in TVM: `R.weft.take`."""


def graph_lines(function: FuncOp) -> list[str]:
    return GraphPrinter().function(function)


class GraphPrinter(_GraphPrinter):
    """Prints one function; weft's printer traverses it."""

    def __init__(self) -> None:
        super().__init__()
        self._taken = {"R", "T", "I", "cls"}
        self._constants = 0
        self._target = ""
        """The variable of the conditional whose branch is printed."""

    def function(self, function: FuncOp) -> list[str]:
        private = function.sym_visibility is not None and function.sym_visibility.data == "private"
        values = [*function.args, *(r for op in function.body.walk() for r in op.results)]
        types = [value.type for value in values if isinstance(value.type, TensorType)]
        extents = {n: None for type_ in types for extent in shape_of(type_) for n in sorted(names_in(extent))}
        self._taken |= extents.keys()
        params = ", ".join(f"{self._name(value)}: {_type(value.type, quoted=True)}" for value in function.args)
        results = [_type(type_, quoted=True) for type_ in function.function_type.outputs]
        result = results[0] if len(results) == 1 else f"R.Tuple({', '.join(results)})"
        self._line("@R.function(private=True)" if private else "@R.function")
        with self._nested(f"def {function.sym_name.data}({params}) -> {result}:"):
            if function.attributes:
                attributes = {key: value_of(value) for key, value in function.attributes.items()}
                shown = ", ".join(f"{string_text(k)}: {_plain(v)}" for k, v in attributes.items())
                self._line(f"R.func_attr({{{shown}}})")
            if extents:
                self._line(f"{', '.join(extents)} = {', '.join(['T.int64()'] * len(extents))}")
            if any(isinstance(op, CallTirOp) for op in function.body.walk()):
                self._line("cls = Module")
            self._block(function.body.block)
        return self.lines

    def _operation(self, op: Operation) -> None:
        match op:
            case ConstantOp() | OutputOp():
                pass
            case ReturnOp():
                head = f"{self._target} =" if self._target else "return"
                self._line(f"{head} {self._listed(op.arguments)}")
            case graph.MatchShapeOp():
                bounds = [extent if isinstance(extent, int | None) else str(extent) for extent in op.bounds]
                self._line(f"R.weft.match_shape({self._name(op.sizes)}, {list(op.bound_names)}, {bounds})")
            case IfOp():
                self._conditional(op)
            case DataflowOp():
                with self._nested("with R.dataflow():"):
                    self._block(op.body.block)
                    for result, value in zip(op.results, op.output.values, strict=True):
                        self._names[result] = self._name(value)
                    self._line(f"R.output({', '.join(map(self._name, op.results))})")
            case _:
                call = self.call_text(op)
                if len(op.results) == 1:
                    self._line(f"{self._name(op.results[0])}: {_type(op.results[0].type)} = {call}")
                else:
                    self._line(f"{', '.join(map(self._name, op.results))} = {call}")

    def _conditional(self, op: IfOp) -> None:
        """`if condition:`, with the called functions' bodies."""
        outer = self._target
        target = self._name(op.results[0])
        for head, callee in ((f"if {self._name(op.condition)}:", op.then_callee), ("else:", op.else_callee)):
            block = function_of(op, callee.string_value()).body.block
            self._names.update({value: self._name(arg) for value, arg in zip(block.args, op.arguments, strict=True)})
            self._target = target
            with self._nested(head):
                self._block(block)
        self._target = outer
        if len(op.results) > 1:
            self._names.update({value: f"{target}[{at}]" for at, value in enumerate(op.results)})

    def call_text(self, op: Operation) -> str:
        """`R.add(x, y)`"""
        if isinstance(op, Operator):
            name = op.name.removeprefix("graph.")
            call = self._call(op).removeprefix(name)
            if name in _OWN:
                return f"R.weft.{name}{call}"
            return f"R.{relax_name(name)}{call}"
        operands = self._listed(op.operands, always=True)
        types = [_type(type_) for type_ in op.result_types]
        out = types[0] if len(types) == 1 else f"[{', '.join(types)}]"
        if isinstance(op, CallTirOp):
            callee = op.callee.string_value()
            if op.parent is not None and holds_graph_ops(function_of(op, callee)):
                return f"cls.{callee}{self._listed(op.operands, always=True, plain=True)}"
            return f"R.call_tir(cls.{callee}, {operands}, out_sinfo={out})"
        if isinstance(op, CallDpsOp):
            return f"R.call_dps_packed({string_text(op.callee.data)}, {operands}, out_sinfo={out})"
        return f"{op.name}{operands}"

    def _listed(self, values: Iterable[SSAValue], *, always: bool = False, plain: bool = False) -> str:
        names = list(map(self._name, values))
        if len(names) == 1 and not always:
            return names[0]
        return f"({', '.join(names)}{',' * (len(names) == 1 and not plain)})"

    def _name(self, value: SSAValue) -> str:
        if value not in self._names and isinstance(value.owner, ConstantOp):
            constant = np.asarray(array_of_dense(dense_value(value.owner)))
            if constant.size <= _MOST_ELEMENTS and constant.shape and np.isfinite(constant).all():
                self._names[value] = f'R.const({constant.tolist()}, "{Value(value).dtype}")'
            elif constant.shape:
                self._names[value] = f'metadata["relax.expr.Constant"][{self._constants}]'
                self._constants += 1
            else:
                self._names[value] = f'R.const({constant.item()}, "{Value(value).dtype}")'
        if value not in self._names:
            self._names[value] = PythonNames(self._taken).new(value.name_hint, "lv")
            self._taken.add(self._names[value])
        return self._names[value]


def _type(type_: Any, *, quoted: bool = False) -> str:
    """`R.Tensor((1, n), dtype="float32")`; signatures quote names."""
    extents = [str(e) if isinstance(e, int) or not quoted else string_text(str(e)) for e in shape_of(type_)]
    dtype = element_name(type_.element_type) or str(type_.element_type)
    return f'R.Tensor({tensor_shape(extents)}, dtype="{dtype}")'


def _plain(value: object) -> str:
    return string_text(value) if isinstance(value, str) else str(value) if isinstance(value, int | float) else "True"
