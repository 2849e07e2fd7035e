"""Converters of products of matrices."""

from __future__ import annotations

from string import ascii_letters

from weft.frontends.graph_builder import Value
from weft.frontends.onnx.known_tensors import Item
from weft.frontends.onnx.node import Node
from weft.frontends.onnx.operators import ops
from weft.frontends.onnx.registry import converts


@converts("Gemm")
def _gemm(
    node: Node,
    a: Value,
    b: Value,
    c: Value | None = None,
    *,
    alpha: float,
    beta: float,
    transA: bool,
    transB: bool,
) -> Item:
    return gemm(node, a, b, c, alpha=alpha, beta=beta, transA=transA, transB=transB)


def gemm(
    node: Node, a: Value, b: Value, c: Value | None, *, alpha: float, beta: float, transA: bool, transB: bool
) -> Value:
    if a.ndim != 2 or b.ndim != 2:
        raise node.refuse(f"inputs 'A' and 'B' must be matrices, got the ranks {a.ndim} and {b.ndim}")
    product = ops.matmul(a, b, transpose_a=transA, transpose_b=transB)
    if node.declares_attribute("broadcast"):
        node.attribute("broadcast")
    if alpha != 1:
        product = _scaled(node, product, alpha)
    if c is None or beta == 0:
        return product
    return ops.add(product, c if beta == 1 else _scaled(node, c, beta))


def _scaled(node: Node, value: Value, factor: float) -> Value:
    if "int" in value.dtype:
        if factor != int(factor):
            raise node.refuse(f"attributes 'alpha' and 'beta' must be integers for {value.dtype}, got {factor}")
        return ops.multiply(value, int(factor))
    return ops.multiply(value, factor)


@converts("Einsum")
def _einsum(node: Node, *values: Value, equation: str) -> Item:
    equation = equation.replace(" ", "")
    terms, arrow, result = equation.partition("->")
    operands = terms.split(",")
    if len(operands) != len(values):
        raise node.refuse(f"attribute 'equation' = '{equation}' has {len(operands)} terms for {len(values)} inputs")
    free = [letter for letter in ascii_letters if letter not in equation]
    lengths = [v.ndim - len(t.replace("...", "")) if "..." in t else 0 for t, v in zip(operands, values, strict=True)]
    if min(lengths) < 0 or max(lengths) > len(free):
        raise node.refuse(f"attribute 'equation' = '{equation}' does not fit the ranks {[v.ndim for v in values]}")
    # `...` is a group of axes that broadcast, aligned at the last one.
    spread = "".join(free[: max(lengths)])
    if not arrow:
        letters = terms.replace("...", "").replace(",", "")
        result = "..." * bool(spread) + "".join(sorted(letter for letter in letters if letters.count(letter) == 1))
    written = [term.replace("...", spread[len(spread) - n :]) for term, n in zip(operands, lengths, strict=True)]
    return ops.einsum(f"{','.join(written)}->{result.replace('...', spread)}", *values)
