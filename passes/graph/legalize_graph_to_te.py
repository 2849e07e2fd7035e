"""`legalize-graph-to-te`: operators become calls of tensor expression functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from weft.dialects.graph import CallTirOp, Tensor
from weft.dialects.graph_shapes import Expression, Extent, names_in, shape_of, substitute, symbol, tensor_type
from weft.passes.graph.functions import graph_functions
from weft.passes.module_functions import named_ops
from weft.support.errors import CompileError
from weft.support.names import free_name
from weft.texpr.graph_operators import Operator

FunctionKey = tuple[str, tuple[Attribute, ...], frozenset[tuple[str, Attribute]]]
"""Op name, operand types with names in order of occurrence, properties: what makes two functions the same."""


def legalize_graph(module: ModuleOp) -> None:
    """Replace each operator by `graph.call_tir` of a function that defines it; equal operators share one.

    Raises `CompileError` for a shape that is not known.

    ```mlir
    %y = graph.relu %x : tensor<4xf32> -> tensor<4xf32>
    // becomes
    %y = graph.call_tir @relu(%x) : (tensor<4xf32>) -> tensor<4xf32>
    func.func private @relu(%source: tensor<4xf32>) -> tensor<4xf32> {
      %relu = te.compute "relu" (%i0) : tensor<4xf32> { ... }
      func.return %relu : tensor<4xf32>
    }
    ```
    """
    taken = set(named_ops(module))
    functions: dict[FunctionKey, FuncOp] = {}
    for function in graph_functions(module):
        for op in list(function.walk()):
            if isinstance(op, Operator):
                _legalize(module, op, functions, taken)


def _legalize(module: ModuleOp, op: Operator, functions: dict[FunctionKey, FuncOp], taken: set[str]) -> None:
    key = (op.name, canonical_types(op), frozenset(op.properties.items()))
    callee = functions.get(key)
    if callee is None:
        name = free_name(op.name.removeprefix("graph."), taken)
        taken.add(name)
        callee = build_function(op, name)
        functions[key] = callee
        module.body.block.add_op(callee)
    call = CallTirOp(callee.sym_name.data, list(op.operands), list(op.result_types))
    call.location = op.location
    Rewriter.replace_op(op, call)


def canonical_types(op: Operator) -> tuple[Attribute, ...]:
    """The operand types of an op, its extents called s0, s1, ... in order of occurrence."""
    names: dict[str, str] = {}

    def renamed(extent: Extent) -> Extent:
        if not isinstance(extent, Expression):
            return extent
        for name in sorted(names_in(extent)):
            names.setdefault(name, f"s{len(names)}")
        return substitute(extent, {name: symbol(new) for name, new in names.items()})

    types = cast("tuple[Tensor, ...]", op.operand_types)
    return tuple(tensor_type([renamed(e) for e in shape_of(type_)], type_.element_type) for type_ in types)


def build_function(op: Operator, name: str) -> FuncOp:
    """The function of tensor expressions, private to its module, that defines `op`.

    Raises `CompileError` where an extent is unknown.
    """
    for operand, role in zip(op.operands, op.operand_names, strict=True):
        for axis, extent in enumerate(shape_of(cast("Tensor", operand.type))):
            if extent is None:
                raise CompileError.at(
                    op,
                    f"{op.name}: dimension {axis} of %{role} is unknown; "
                    "name the dynamic extents of its type with #graph.dims<...>",
                )
    types = cast("tuple[Tensor, ...]", op.operand_types)
    function = op.on_placeholders(types, op.properties).function(name)
    function.sym_visibility = StringAttr("private")
    for inner in function.walk():
        inner.location = op.location
    return function


@dataclass(frozen=True)
class LegalizeGraphToTePass(ModulePass):
    """Replace each operator of graph functions by `graph.call_tir` of a function that defines it as a tensor
    expression.

    Equal operators share one function. Raises `CompileError` for a shape that is not known.

    Requires: graph functions of known shapes (`graph-infer-types`).

    Leaves: graph functions that call functions of tensor expressions.
    """

    name = "legalize-graph-to-te"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        legalize_graph(op)
