"""Products of matrices that onnxruntime fuses."""

from __future__ import annotations

from dataclasses import dataclass

from weft.frontends.graph_builder import Value
from weft.frontends.onnx.contrib.elementwise import activated
from weft.frontends.onnx.known_tensors import Item
from weft.frontends.onnx.node import Node
from weft.frontends.onnx.operators import ops
from weft.frontends.onnx.products import gemm
from weft.frontends.onnx.registry import defines


@dataclass(frozen=True)
class _Attributes:
    alpha: float = 1.0
    transA: bool = False
    transB: bool = False
    transBatchA: bool = False
    transBatchB: bool = False


@defines("TransposeMatMul")
def _transpose_matmul(
    node: Node, A: Value, B: Value, *, alpha: float = 1.0, transA: bool = False, transB: bool = False
) -> Item:
    return _fused(node, A, B, _Attributes(alpha, transA, transB))


@defines("FusedMatMul")
def _fused_matmul(node: Node, A: Value, B: Value, *, given: _Attributes) -> Item:
    return _fused(node, A, B, given)


@defines("FusedMatMulActivation")
def _fused_matmul_activation(
    node: Node,
    A: Value,
    B: Value,
    *,
    activation: str,
    activation_alpha: float | None = None,
    activation_beta: float | None = None,
    activation_gamma: float | None = None,
    activation_axis: int | None = None,
    given: _Attributes,
) -> Item:
    product = _fused(node, A, B, given)
    if activation_axis is not None:
        raise node.refuse(f"attribute 'activation_axis' = {activation_axis} is not supported")
    return activated(node, product, activation, (activation_alpha, activation_beta, activation_gamma))


def _fused(node: Node, left: Value, right: Value, given: _Attributes) -> Value:
    """The first axis of transposed matrices may be that of the rows."""
    operands: list[Value] = []
    for value, is_batch in ((left, given.transBatchA), (right, given.transBatchB)):
        if is_batch and value.ndim < 3:
            raise node.refuse(f"attributes 'transBatchA' and 'transBatchB' need a rank of 3 or more, got {value.ndim}")
        operands.append(ops.moveaxis(value, 0, -2) if is_batch else value)
    flags = [flag and value.ndim > 1 for flag, value in zip((given.transA, given.transB), operands, strict=True)]
    product = ops.matmul(*operands, transpose_a=flags[0], transpose_b=flags[1])
    return product if given.alpha == 1 else ops.multiply(product, given.alpha)


@defines("FusedGemm")
def _fused_gemm(
    node: Node,
    A: Value,
    B: Value,
    C: Value | None = None,
    *,
    activation: str | None = None,
    activation_alpha: float | None = None,
    activation_beta: float | None = None,
    activation_gamma: float | None = None,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: bool = False,
    transB: bool = False,
) -> Item:
    found = gemm(node, A, B, C, alpha=alpha, beta=beta, transA=transA, transB=transB)
    return activated(node, found, activation, (activation_alpha, activation_beta, activation_gamma))


@defines("GemmFastGelu")
def _gemm_fast_gelu(node: Node, X: Value, W: Value, bias: Value | None = None) -> Item:
    product = ops.matmul(X, W)
    return ops.gelu(product if bias is None else ops.add(product, bias), "tanh")


@defines("CDist")
def _cdist(node: Node, A: Value, B: Value, *, metric: str = "sqeuclidean") -> Item:
    if metric not in ("sqeuclidean", "euclidean"):
        raise node.refuse(f"attribute 'metric' must be one of sqeuclidean, euclidean, got {metric}")
    gaps = ops.subtract(ops.expand_dims(A, [1]), ops.expand_dims(B, [0]))
    found = ops.sum(ops.multiply(gaps, gaps), [2])
    return ops.sqrt(found) if metric == "euclidean" else found
