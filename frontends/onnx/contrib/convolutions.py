"""Convolutions and pools that onnxruntime fuses, or computes with channels last."""

from __future__ import annotations

from dataclasses import dataclass

from weft.frontends.graph_builder import Value
from weft.frontends.onnx.contrib.elementwise import activated
from weft.frontends.onnx.known_tensors import Item
from weft.frontends.onnx.neural import conv_transposed, convolved, pooled, with_bias
from weft.frontends.onnx.node import Node
from weft.frontends.onnx.operators import ops
from weft.frontends.onnx.registry import defines


@dataclass(frozen=True)
class ConvolutionAttributes:
    """Attributes of a convolution; `Window` reads all but `group`."""

    auto_pad: str = "NOTSET"
    dilations: list[int] | None = None
    group: int = 1
    kernel_shape: list[int] | None = None
    pads: list[int] | None = None
    strides: list[int] | None = None


@dataclass(frozen=True)
class PoolAttributes:
    """Attributes of a pool; `Window` reads all but `ceil_mode`."""

    kernel_shape: list[int]
    auto_pad: str = "NOTSET"
    ceil_mode: bool = False
    dilations: list[int] | None = None
    pads: list[int] | None = None
    strides: list[int] | None = None


def channels_first(data: Value) -> Value:
    return ops.moveaxis(data, -1, 1)


def channels_last(data: Value) -> Value:
    return ops.moveaxis(data, 1, -1)


@defines("FusedConv", "NhwcFusedConv")
def _fused_conv(
    node: Node,
    X: Value,
    W: Value,
    B: Value | None = None,
    Z: Value | None = None,
    *,
    activation: str | None = None,
    activation_params: list[float] | None = None,
    window: ConvolutionAttributes,
) -> Item:
    """`Z`, in the layout of the result, is added before the activation."""
    is_last = node.operator == "NhwcFusedConv"
    found = with_bias(convolved(node, channels_first(X) if is_last else X, W, window.group), B)
    found = channels_last(found) if is_last else found
    found = found if Z is None else ops.add(found, Z)
    return activated(node, found, activation, activation_params or ())


@defines("NhwcConv")
def _nhwc_conv(node: Node, X: Value, W: Value, B: Value | None = None, *, window: ConvolutionAttributes) -> Item:
    return channels_last(with_bias(convolved(node, channels_first(X), W, window.group), B))


@defines("NhwcMaxPool")
def _nhwc_max_pool(node: Node, x: Value, *, window: PoolAttributes) -> Item:
    return channels_last(pooled(node, channels_first(x), "max_pool{}d", window.ceil_mode))


@defines("ConvTransposeWithDynamicPads")
def _conv_transpose_with_pads(
    node: Node,
    X: Value,
    W: Value,
    Pads: list[int] | None = None,
    B: Value | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: list[int] | None = None,
    group: int = 1,
    kernel_shape: list[int] | None = None,
    output_padding: list[int] | None = None,
    strides: list[int] | None = None,
) -> Item:
    if Pads is not None and (len(Pads) != 2 * (X.ndim - 2) or min(Pads) < 0):
        raise node.refuse(f"input 'Pads' must be {2 * (X.ndim - 2)} numbers that are not negative, got {Pads}")
    return with_bias(conv_transposed(node, X, W, auto_pad, group, Pads), B)
