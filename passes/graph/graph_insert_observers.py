"""`graph-insert-observers`: mark the activations that static quantization rounds by `graph.observe`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr, TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from weft.dialects.graph import ConstantOp, ObserveOp
from weft.dialects.graph_traits import Recurrent
from weft.passes.graph.functions import graph_functions, inline_dataflow
from weft.passes.graph.graph_fuse import Patterns, groups_in
from weft.passes.graph.operator_properties import pattern_of
from weft.passes.graph.operators import dtype_of, operands_of, type_of
from weft.passes.graph.quantized_products import product_channels
from weft.support.errors import CompileError, did_you_mean
from weft.texpr.graph_operators import Operator

KEPT_FLOAT: Final = "kept_float"
"""Attribute of a layer that static quantization leaves in floats; its value is the reason."""


@dataclass(frozen=True)
class Layer:
    """A product of data and constant weights."""

    op: Operator
    name: str
    """The name of the weights; `weights 3` if they have none."""
    axis: int
    """The axis of the weights that has a scale per element."""

    @property
    def weights(self) -> Sequence[ConstantOp]:
        values = _recurrent_weights(self.op) if self.op.has_trait(Recurrent) else [self.op.operands[1]]
        return [owner for value in values if isinstance(owner := value.owner, ConstantOp)]


def layers_of(function: FuncOp) -> list[Layer]:
    """Returns the products that static quantization may round, with distinct names."""
    found: list[Layer] = []
    taken: set[str] = set()
    for op in function.walk():
        axis = _axis_of_scales(op)
        if axis is None or not isinstance(op, Operator):
            continue
        name = _new_name(op.operands[1].name_hint or f"weights {len(found)}", taken)
        found.append(Layer(op, name, axis))
    return found


def _new_name(name: str, taken: set[str]) -> str:
    number, found = 1, name
    while found in taken:
        number += 1
        found = f"{name} {number}"
    taken.add(found)
    return found


def _recurrent_weights(op: Operator) -> list[SSAValue]:
    given = operands_of(op)
    return [value for value in (given["weight"], given["recurrence"]) if value is not None]


def _axis_of_scales(op: Operation) -> int | None:
    if isinstance(op, Operator) and op.has_trait(Recurrent):
        weights = _recurrent_weights(op)
        are_constant = all(isinstance(value.owner, ConstantOp) for value in weights)
        return 1 if are_constant and dtype_of(op.results[0]) == "float32" else None
    axes = product_channels(op)
    if axes is None or not isinstance(op.operands[1].owner, ConstantOp):
        return None
    if any(dtype_of(value) != "float32" for value in op.operands[:2]):
        return None
    extents = type_of(op.operands[1]).get_shape()
    return None if 0 in extents else max(axes.weight, key=lambda axis: extents[axis])


def insert_observers(function: FuncOp, skip: Sequence[str] = ()) -> list[str]:
    """Insert `graph.observe`. Returns the names of layers and activations. Raises `CompileError` for unknown names
    in `skip`."""
    inline_dataflow(function)
    layers = layers_of(function)
    names = _value_names(function, {layer.name for layer in layers})
    known = [*(layer.name for layer in layers), *names.values()]
    for name in skip:
        if name not in known:
            raise CompileError(f"there is no layer or activation '{name}' to skip{did_you_mean(name, known)}")
    for layer in layers:
        if layer.name in skip:
            layer.op.attributes[KEPT_FLOAT] = StringAttr("skipped by name")
    kept = [layer for layer in layers if KEPT_FLOAT not in layer.op.attributes]
    for value in _activations(function, [layer.op for layer in kept]):
        if names[value] not in skip:
            _observe(value, names[value])
    return known


def _value_names(function: FuncOp, taken: set[str]) -> dict[SSAValue, str]:
    names: dict[SSAValue, str] = {}
    for value in _values(function):
        if _is_float(value):
            names[value] = _new_name(value.name_hint or f"activation {len(names)}", taken)
    return names


def _values(function: FuncOp) -> Iterator[SSAValue]:
    yield from function.args
    for op in function.walk():
        if not isinstance(op, ConstantOp):
            yield from op.results


def _is_float(value: SSAValue) -> bool:
    return isinstance(value.type, TensorType) and dtype_of(value) == "float32"


def _activations(function: FuncOp, layers: Sequence[Operation]) -> list[SSAValue]:
    data = {op.operands[0] for op in layers}
    after = _reached(data.union(*(op.results for op in layers)), _values(function))
    before = _needed(data, reversed(list(function.body.block.ops)))
    inner = _inside_groups(function.body.block)
    found: dict[SSAValue, None] = {}
    for value in _values(function):
        is_between = value in after and value in before and value not in inner and _is_float(value)
        if value in data or (is_between and not _is_moved(value, found)):
            found[value] = None
    return list(found)


def _reached(start: set[SSAValue], values: Iterable[SSAValue]) -> set[SSAValue]:
    found = set(start)
    for value in values:
        if isinstance(owner := value.owner, Operation) and not found.isdisjoint(owner.operands):
            found.add(value)
    return found


def _needed(end: set[SSAValue], ops: Iterable[Operation]) -> set[SSAValue]:
    found = set(end)
    for op in ops:
        if not found.isdisjoint(op.results):
            found.update(op.operands)
    return found


def _inside_groups(block: Block) -> set[SSAValue]:
    """Returns values used only within a kernel, hence not stored."""
    module = block.parent_op()
    while module is not None and not isinstance(module, ModuleOp):
        module = module.parent_op()
    groups = [] if module is None else groups_in(block, Patterns(module), None)
    return {result for group in groups for op in group.members[:-1] for result in op.results}


def moved_from(value: SSAValue) -> SSAValue | None:
    """Returns the tensor whose elements an operator moves or takes the maximum of."""
    op = value.owner
    if not isinstance(op, Operator) or len(op.results) != 1 or len(op.operands) != 1:
        return None
    pattern = pattern_of(op)
    return op.operands[0] if pattern is not None and pattern.moves else None


def _is_moved(value: SSAValue, observed: dict[SSAValue, None]) -> bool:
    source = moved_from(value)
    while source is not None and source not in observed:
        source = moved_from(source)
    return source is not None


def _observe(value: SSAValue, label: str) -> None:
    owner = value.owner
    op = ObserveOp(value, label)
    op.result.name_hint = value.name_hint
    if isinstance(owner, Operation):
        op.location = owner.location
        Rewriter.insert_op(op, InsertPoint.after(owner))
    else:
        Rewriter.insert_op(op, InsertPoint.at_start(owner))
    value.replace_uses_with_if(op.result, lambda use: not isinstance(use.operation, ReturnOp | ObserveOp))


@dataclass(frozen=True)
class GraphInsertObserversPass(ModulePass):
    """Insert `graph.observe` for the activations that static quantization rounds to 8 bits.

    These are the data of layers (products and recurrent networks with constant weights), and the float32 results of
    kernels (`graph-fuse`) between layers. Reordered copies of an observed tensor get an observer only if a layer
    reads them. Dataflow regions are inlined.

    Requires: graph functions whose types are known (`graph-infer-types`), with constants folded
    (`graph-fold-constants`) and norms folded into weights (`graph-rewrite`).
    Leaves: graph functions that compute the same. Layers in `skip` have the attribute `kept_float`.

    ```mlir
    func.func @f(%x: tensor<1x2xf32>) -> tensor<1x2xf32> {
      %w = graph.constant dense<0.5> : tensor<2x2xf32>
      %y = graph.matmul %x, %w : tensor<1x2xf32>, tensor<2x2xf32>
      func.return %y : tensor<1x2xf32>
    }
    // becomes
    func.func @f(%x: tensor<1x2xf32>) -> tensor<1x2xf32> {
      %o = graph.observe %x as "x" : tensor<1x2xf32>
      %w = graph.constant dense<0.5> : tensor<2x2xf32>
      %y = graph.matmul %o, %w : tensor<1x2xf32>, tensor<2x2xf32>
      func.return %y : tensor<1x2xf32>
    }
    ```
    """

    name = "graph-insert-observers"

    skip: tuple[str, ...] = ()
    """The names of layers that stay floats and of activations that are not rounded."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in list(graph_functions(op)):
            insert_observers(function, self.skip)
