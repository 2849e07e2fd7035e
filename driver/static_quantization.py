"""Static quantisation: ranges from calibration data, errors of layers, and the 8-bit model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from weft.dialects.graph import ObserveOp
from weft.dialects.traversal import copy_of
from weft.driver.build import build_module
from weft.driver.calibration import CalibrationData, CalibrationMethod, ranges_of
from weft.passes.graph.graph_fold_constants import GraphFoldConstantsPass
from weft.passes.graph.graph_infer_types import GraphInferTypesPass
from weft.passes.graph.graph_insert_observers import KEPT_FLOAT, Layer, insert_observers, layers_of, moved_from
from weft.passes.graph.graph_quantize_observed import (
    activation_parameters,
    quantize_observed,
    rounded_activation,
    rounded_layer,
)
from weft.passes.graph.graph_rewrite import DEFAULT_RULES, GraphRewritePass
from weft.passes.graph.graph_simplify import GraphSimplifyPass
from weft.passes.graph.operators import inserted, made, properties_of
from weft.passes.module_edits import entry_function
from weft.support.build_options import DEFAULT_OPTIONS
from weft.support.target import Target

if TYPE_CHECKING:
    from weft.passes.graph.graph_quantize_weights import QuantizedLayer

_RULES: Final = tuple(name for name in DEFAULT_RULES if name != "transposed_convolutions")
"""Rules that fold norms into weights and recognise activation functions, without those that split layers."""


@dataclass(frozen=True)
class QuantizedActivation:
    name: str
    low: float
    high: float
    error: float
    """The norm of the rounding errors, relative to that of the numbers."""
    kept_float: str = ""
    """The reason if the activation is not rounded."""

    @property
    def scale(self) -> float:
        return float(activation_parameters(self.low, self.high)[0])

    @property
    def zero_point(self) -> int:
        return activation_parameters(self.low, self.high)[1]


@dataclass(frozen=True)
class StaticRounding:
    """Selects the layers and activations to round. Raises `CompileError` for invalid values."""

    method: CalibrationMethod
    skip: Sequence[str] = ()
    """The names of layers and activations that stay floats."""
    max_error: float | None = None
    """The largest relative error of a layer's results and of an activation; those with a greater one stay floats."""


def quantize_statically(
    module: ModuleOp, data: CalibrationData, rounding: StaticRounding
) -> tuple[ModuleOp, list[QuantizedLayer], list[QuantizedActivation]]:
    base = copy_of(module)
    for each in (
        GraphInferTypesPass(),
        GraphSimplifyPass(),
        GraphRewritePass(("quantized", "dequantized")),
        GraphFoldConstantsPass(),
        GraphRewritePass(_RULES),
    ):
        each.apply(Context(), base)
    observed = copy_of(base)
    insert_observers(_entry(observed), rounding.skip)
    observers = _observers(_entry(observed))
    if not observers:
        return base, [], []
    returned = _compiled(_returning(observed, lambda op: [op.value], lambda _: []))
    _set_ranges(observers, ranges_of(returned, [op.label.data for op in observers], data, rounding.method))
    errors = _errors(observed, data)
    limit = rounding.max_error
    exceeding = {} if limit is None else {name: error for name, error in errors.items() if not error <= limit}
    reasons = {name: f"error {error:.2%} exceeds {limit:.2%}" for name, error in exceeding.items()}
    ranges = {op.label.data: op.limits for op in observers}
    chosen = copy_of(base)
    function = _entry(chosen)
    insert_observers(function, [*rounding.skip, *exceeding])
    for layer in layers_of(function):
        if layer.name in reasons:
            layer.op.attributes[KEPT_FLOAT] = StringAttr(reasons[layer.name])
    for op in _observers(function):
        op.limits = ranges[op.label.data] or (0.0, 1.0)
    rounded = {op.label.data for op in _observers(function)}
    layers = [replace(layer, output_error=errors.get(layer.name)) for layer in quantize_observed(function)]
    chosen.verify()
    activations = [
        QuantizedActivation(
            name, *limits, errors[name], "" if name in rounded else reasons.get(name, "no layer needs it")
        )
        for name, limits in ranges.items()
        if limits is not None
    ]
    return chosen, layers, activations


def _entry(module: ModuleOp) -> FuncOp:
    return entry_function(module, None)


def _observers(function: FuncOp) -> list[ObserveOp]:
    return [op for op in function.walk() if isinstance(op, ObserveOp)]


def _set_ranges(observers: Sequence[ObserveOp], ranges: dict[str, tuple[float, float]]) -> None:
    """Results of data movement keep the range of their operand, so that integers are moved."""
    for op in observers:
        source = moved_from(op.value)
        while source is not None and not isinstance(source.owner, ObserveOp):
            source = moved_from(source)
        before = source.owner.limits if source is not None and isinstance(source.owner, ObserveOp) else None
        op.limits = before or ranges[op.label.data]


def _compiled(module: ModuleOp) -> Callable[..., Any]:
    name = _entry(module).sym_name.data
    return build_module(module, Target.parse("llvm"), DEFAULT_OPTIONS)[name]


def _returning(
    module: ModuleOp,
    of_observer: Callable[[ObserveOp], Sequence[SSAValue]],
    of_layer: Callable[[Layer], Sequence[SSAValue]],
) -> ModuleOp:
    """A copy whose entry function also returns values for each layer, then for each observer, which is erased."""
    found = copy_of(module)
    function = _entry(found)
    last = cast("ReturnOp", function.get_return_op())
    results = [value for layer in layers_of(function) for value in of_layer(layer)]
    observers = _observers(function)
    results += [value for op in observers for value in of_observer(op)]
    for value in results:
        inserted(value, last)
    last.operands = [*last.operands, *results]
    for op in observers:
        Rewriter.replace_op(op, [], [op.value])
    function.update_function_type()
    return found


def _errors(module: ModuleOp, data: CalibrationData) -> dict[str, float]:
    """The relative error of each layer's results if it alone is rounded, and of each activation."""
    function = _entry(module)
    measured = _compiled(_returning(module, _activation_errors, _layer_errors))
    names = [layer.name for layer in layers_of(function) if _is_rounded(layer)]
    names += [op.label.data for op in _observers(function)]
    sums = np.zeros((len(names), 2))
    for _, results in data.run(measured):
        sums += np.array([float(value) for value in results[len(results) - 2 * len(names) :]]).reshape(-1, 2)
    relative = np.sqrt(np.divide(sums[:, 0], sums[:, 1], out=np.zeros(len(names)), where=sums[:, 1] > 0.0))
    return dict(zip(names, relative.tolist(), strict=True))


def _is_rounded(layer: Layer) -> bool:
    return KEPT_FLOAT not in layer.op.attributes and isinstance(layer.op.operands[0].owner, ObserveOp)


def _activation_errors(op: ObserveOp) -> list[SSAValue]:
    return _squares(rounded_activation(op), op.value)


def _layer_errors(layer: Layer) -> list[SSAValue]:
    observer = layer.op.operands[0].owner
    if not _is_rounded(layer) or not isinstance(observer, ObserveOp):
        return []
    rounded = rounded_layer(layer)
    operands = list(layer.op.operands)
    operands[0] = rounded_activation(observer)
    operands[1 : 1 + len(rounded.weights)] = [weights.value for weights in rounded.weights]
    groups = layer.op.grouped(operands, layer.op.properties)
    copy = type(layer.op).of(groups, {**properties_of(layer.op), **rounded.properties})
    return _squares(copy.results[0], layer.op.results[0])


def _squares(rounded: SSAValue, exact: SSAValue) -> list[SSAValue]:
    difference = made("subtract", [rounded, exact]).results[0]
    return [made("sum", [made("multiply", [value, value]).results[0]]).results[0] for value in (difference, exact)]
