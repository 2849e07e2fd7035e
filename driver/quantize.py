"""Quantised models: `weft.quantize`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr

from weft.dialects.traversal import copy_of
from weft.support.argument_types import checked
from weft.support.errors import CompileError, did_you_mean
from weft.support.shown import ShownAsText

if TYPE_CHECKING:
    from weft.driver.calibration import Sample
    from weft.driver.static_quantization import QuantizedActivation
    from weft.passes.graph.graph_quantize_weights import QuantizedLayer  # start-up: 66 ms


@dataclass(frozen=True)
class Quantized(ShownAsText):
    """A quantised model, and its rounding errors."""

    mod: ModuleOp
    layers: Sequence[QuantizedLayer]
    activations: Sequence[QuantizedActivation] = ()
    """The activations considered by static quantisation."""

    def __str__(self) -> str:
        if not self.layers:
            return "no weights were quantized: no product has constant weights in floats that are not skipped"
        width = max(len("activations"), *(len(row.name) for row in (*self.layers, *self.activations)))
        has_outputs = any(layer.output_error is not None for layer in self.layers)
        header = f"{'rows x columns':>15}  {'error':>8}  {'largest':>9}  {'KiB':>9} -> KiB"
        lines = [f"{'weights':{width}}  {header}{'    output error' * has_outputs}"]
        for layer in self.layers:
            shape = f"{layer.depth} x {layer.columns}"
            sizes = f"{layer.bytes_before / 1024:9.1f} -> {layer.bytes_after / 1024:<7.1f}"
            output = "" if layer.output_error is None else f"{layer.output_error:12.2%}"
            kept = f"  float: {layer.kept_float}" if layer.kept_float else ""
            row = f"{layer.name:{width}}  {shape:>15}  {layer.error:8.2%}  {layer.largest:9.3g}  {sizes}{output}{kept}"
            lines.append(row.rstrip())
        before, after = (sum(map(attrgetter(name), self.layers)) for name in ("bytes_before", "bytes_after"))
        count = sum(not layer.kept_float for layer in self.layers)
        lines.append(f"{count} weight tensor{'s' * (count != 1)}, {before / 1024:.1f} -> {after / 1024:.1f} KiB")
        if self.activations:
            lines += [f"{'activations':{width}}  {'from':>10}  {'to':>10}  {'scale':>10}  zero point     error"]
        for one in self.activations:
            kept = f"  float: {one.kept_float}" if one.kept_float else ""
            numbers = f"{one.low:10.4g}  {one.high:10.4g}  {one.scale:10.4g}  {one.zero_point:10}  {one.error:8.2%}"
            lines.append(f"{one.name:{width}}  {numbers}{kept}")
        return "\n".join(lines)


_STATIC: Final = "static quantization (activations='int8')"


@checked
def quantize(
    mod: ModuleOp,
    weights: str = "int4",
    group: int | None = None,
    symmetric: bool = True,
    *,
    scales: str = "float32",
    skip: Sequence[str] = (),
    data: str = "float",
    activations: str = "float",
    calibrate: Iterable[Sample] | str | os.PathLike[str] | None = None,
    method: str = "minmax",
    percentile: float = 99.99,
    max_error: float | None = None,
) -> Quantized:
    """Returns a copy of a module of graph functions with weights, and optionally activations, rounded to integers.

        quantized = weft.quantize(mod, weights="int4", group=32, symmetric=True)
        print(quantized)  # the rounding errors of each layer
        lib = weft.build(quantized.mod)

    `group` consecutive weights of a column, 16 to 256 (32 by default; 0: the whole column), share a scale of type
    `scales`, and a zero point unless `symmetric`. Weights named in `skip` stay floats. Data stay floats, or are rounded
    at run time to 8-bit integers in the same groups (`data="int8"`), also for weights that were already quantised. The
    passes are `graph-simplify`, `graph-fold-constants`, `graph-quantize-weights` and
    `graph-rewrite{rules=dequantized}`.

    Static quantisation also rounds activations: products, convolutions and recurrent networks with constant weights
    compute in 8-bit integers.

        quantized = weft.quantize(mod, "int8", activations="int8", calibrate=[{"x": image} for image in images])

    `calibrate` contains the arguments of calls, each a dict by name or a tuple in order, or is a folder of .npz files
    with an array for each input, or .npy files of the only input. They determine the ranges of activations by `method`:
    "minmax" all numbers, "percentile" the inner `percentile` of them, "mse" the least squared error. Layers and
    activations with a relative error above `max_error`, or named in `skip`, stay floats. Weights have a scale per
    output channel. The passes are `graph-insert-observers` and `graph-quantize-observed`, after `graph-rewrite`.

    Raises `CompileError`, naming the weights, for groups that do not divide their rows, weights that are not finite,
    and scales out of range of their type; also for a module without graph functions, calibration data that are missing,
    not finite, or not accepted by the function, and activations that are constant on them.
    """
    from weft.passes.graph.functions import graph_functions  # start-up: 56 ms
    from weft.passes.module_edits import entry_function  # start-up: 56 ms

    if data not in ("float", "int8"):
        raise CompileError(f"data are float or int8, got '{data}'{did_you_mean(data, ('float', 'int8'))}")
    if activations not in ("float", "int8"):
        listed = did_you_mean(activations, ("float", "int8"))
        raise CompileError(f"activations are float or int8, got '{activations}'{listed}")
    if not any(graph_functions(mod)):
        raise CompileError(
            "quantize: weights of products of graphs are quantized: the program has no function of operators"
        )
    if activations == "float":
        if calibrate is not None or max_error is not None:
            raise CompileError(f"calibrate and max_error are about {_STATIC}")
        return _with_weights(mod, weights, 32 if group is None else group, symmetric, scales, tuple(skip), data)
    if weights != "int8":
        raise CompileError(f"{_STATIC} takes weights of int8, got '{weights}'")
    if group is not None or not symmetric or scales != "float32" or data != "float":
        raise CompileError(f"{_STATIC} has symmetric weights with a float32 scale for each channel: no groups or data")
    if calibrate is None:
        raise CompileError(f"{_STATIC} takes the ranges of activations from calibration data: give calibrate")
    if max_error is not None and not max_error > 0.0:
        raise CompileError(f"max_error is a relative error above 0, got {max_error:g}")
    from weft.driver.calibration import CalibrationData, CalibrationMethod  # start-up: 60 ms
    from weft.driver.static_quantization import StaticRounding, quantize_statically  # start-up: 900 ms

    rounding = StaticRounding(CalibrationMethod(method, percentile), tuple(skip), max_error)
    if isinstance(calibrate, str | os.PathLike):
        inputs = [argument.name_hint or "" for argument in entry_function(mod, None).args]
        samples = CalibrationData.read(os.fspath(calibrate), inputs)
    else:
        samples = CalibrationData.of(calibrate)
    return Quantized(*quantize_statically(mod, samples, rounding))


def _with_weights(
    mod: ModuleOp, weights: str, group: int, symmetric: bool, scales: str, skip: tuple[str, ...], data: str
) -> Quantized:
    from weft.passes.graph.graph_fold_constants import GraphFoldConstantsPass  # start-up: 899 ms
    from weft.passes.graph.graph_infer_types import GraphInferTypesPass  # start-up: 2 ms
    from weft.passes.graph.graph_quantize_weights import Rounding, quantize_module  # start-up: 66 ms
    from weft.passes.graph.graph_rewrite import GraphRewritePass  # start-up: 43 ms
    from weft.passes.graph.graph_simplify import GraphSimplifyPass  # start-up: 1 ms

    rounding = Rounding(weights, group, symmetric, scales, skip)
    found = copy_of(mod)
    context = Context()
    for each in (GraphInferTypesPass(), GraphSimplifyPass(), GraphFoldConstantsPass()):
        each.apply(context, found)
    layers = quantize_module(found, rounding)
    GraphRewritePass(("dequantized",)).apply(context, found)
    if data == "int8":
        for op in found.walk():
            if op.name == "graph.dequantized_matmul":
                op.properties["compute_dtype"] = StringAttr(data)
    return Quantized(found, layers)
