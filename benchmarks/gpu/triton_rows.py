"""Softmax and layer normalisation of rows in Triton, as in its tutorials: a program per row."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def _softmax(A, B, n, BLOCK: tl.constexpr):
    row, columns = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    a = tl.load(A + row * n + columns, mask=columns < n, other=-float("inf"))
    e = tl.exp(a - tl.max(a, axis=0))
    tl.store(B + row * n + columns, e / tl.sum(e, axis=0), mask=columns < n)


@triton.jit
def _layernorm(A, G, B, C, n, epsilon, BLOCK: tl.constexpr):
    row, columns = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    inside = columns < n
    a = tl.load(A + row * n + columns, mask=inside, other=0.0)
    centred = tl.where(inside, a - tl.sum(a, axis=0) / n, 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, axis=0) / n + epsilon)
    g, b = tl.load(G + columns, mask=inside), tl.load(B + columns, mask=inside)
    tl.store(C + row * n + columns, centred * scale * g + b, mask=inside)


def softmax(a: torch.Tensor, out: torch.Tensor) -> None:
    m, n = a.shape
    _softmax[(m,)](a, out, n, BLOCK=triton.next_power_of_2(n), num_warps=8)


def layernorm(a: torch.Tensor, g: torch.Tensor, b: torch.Tensor, out: torch.Tensor, epsilon: float) -> None:
    m, n = a.shape
    _layernorm[(m,)](a, g, b, out, n, epsilon, BLOCK=triton.next_power_of_2(n), num_warps=8)
