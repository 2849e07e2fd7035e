"""The domain `com.microsoft.nchwc` of onnxruntime's highest optimizer level: images with channels in blocks (NCHWc).

Here images have the plain layout, with equal results. Weights are in blocks whose size depends on the CPU of the
optimizer and is not in the file.
"""

from __future__ import annotations

from weft.frontends.graph_builder import Value
from weft.frontends.onnx.contrib.convolutions import ConvolutionAttributes, PoolAttributes, channels_first
from weft.frontends.onnx.contrib.convolutions import channels_last as with_channels_last
from weft.frontends.onnx.known_tensors import Item
from weft.frontends.onnx.neural import pooled
from weft.frontends.onnx.node import Node
from weft.frontends.onnx.operators import ops
from weft.frontends.onnx.registry import defines

_DOMAIN = "com.microsoft.nchwc"


@defines("Conv", domain=_DOMAIN)
def _conv(
    node: Node,
    X: Item,
    W: Item,
    B: Item | None = None,
    Sum: Item | None = None,
    *,
    activation: str | None = None,
    activation_params: list[float] | None = None,
    window: ConvolutionAttributes,
) -> Item:
    raise node.refuse(
        "input 'W' is in blocks of the CPU that the model was optimized on: save the model with graph optimization "
        "level ORT_ENABLE_EXTENDED, not ORT_ENABLE_ALL"
    )


@defines("ReorderInput", domain=_DOMAIN)
def _reorder_input(node: Node, X: Value, *, channels_last: bool = False) -> Item:
    return channels_first(X) if channels_last else X


@defines("ReorderOutput", domain=_DOMAIN)
def _reorder_output(node: Node, X: Value, *, channels: int = 0, channels_last: bool = False) -> Item:
    """Removes the channels that pad the last block."""
    found = X if X.shape[1] == channels else ops.strided_slice(X, [0], [channels], [1], [1])
    return with_channels_last(found) if channels_last else found


@defines("MaxPool", domain=_DOMAIN)
def _max_pool(node: Node, X: Value, *, storage_order: bool = False, window: PoolAttributes) -> Item:
    del storage_order
    return pooled(node, X, "max_pool{}d", window.ceil_mode)


@defines("AveragePool", domain=_DOMAIN)
def _average_pool(node: Node, X: Value, *, count_include_pad: bool = False, window: PoolAttributes) -> Item:
    return pooled(node, X, "avg_pool{}d", window.ceil_mode, count_include_pad)


@defines("GlobalAveragePool", "GlobalMaxPool", domain=_DOMAIN)
def _global_pool(node: Node, X: Value) -> Item:
    return (ops.mean if node.operator == "GlobalAveragePool" else ops.max)(X, list(range(2, X.ndim)), True)


@defines("Upsample", domain=_DOMAIN)
def _upsample(
    node: Node,
    X: Value,
    *,
    coordinate_transformation_mode: str = "asymmetric",
    mode: str = "nearest",
    scales: list[int] | None = None,
) -> Item:
    factors = scales or [1] * X.ndim
    if len(factors) != X.ndim or factors[:2] != [1, 1] or min(factors) < 1:
        raise node.refuse(f"attribute 'scales' must be 1, 1 and a number for each axis in space, got {factors}")
    return ops.resize2d(
        X, None, method=mode, coordinate_transformation_mode=coordinate_transformation_mode,
        scales=[float(factor) for factor in factors[2:]], rounding_method="floor",
    )  # fmt: skip
