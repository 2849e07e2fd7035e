"""Rearrangements of the elements of tensors."""

from __future__ import annotations

import numpy as np

from weft.texpr.references.arguments import Array


def unstack(data: Array, axis: int) -> tuple[Array, ...]:
    return tuple(np.moveaxis(data, axis, 0))


def meshgrid(*tensors: Array, indexing: str = "xy") -> tuple[Array, ...]:
    return tuple(np.meshgrid(*tensors, indexing="ij" if indexing == "ij" else "xy"))


def depth_to_space(data: Array, block_size: int, mode: str, layout: str) -> Array:
    b, x = block_size, np.transpose(data, [layout.index(letter) for letter in "NCHW"])
    n, c, h, w = x.shape
    depth = c // (b * b)
    if mode == "DCR":
        parts = x.reshape(n, b, b, depth, h, w).transpose(0, 3, 4, 1, 5, 2)
    else:
        parts = x.reshape(n, depth, b, b, h, w).transpose(0, 1, 4, 2, 5, 3)
    return np.transpose(parts.reshape(n, depth, h * b, w * b), ["NCHW".index(letter) for letter in layout])


def space_to_depth(data: Array, block_size: int, mode: str, layout: str) -> Array:
    b, x = block_size, np.transpose(data, [layout.index(letter) for letter in "NCHW"])
    n, c, h, w = x.shape
    parts = x.reshape(n, c, h // b, b, w // b, b)
    parts = parts.transpose(0, 3, 5, 1, 2, 4) if mode == "DCR" else parts.transpose(0, 1, 3, 5, 2, 4)
    return np.transpose(parts.reshape(n, c * b * b, h // b, w // b), ["NCHW".index(letter) for letter in layout])


def channel_shuffle(data: Array, groups: int, axis: int) -> Array:
    last = np.moveaxis(data, axis, -1)
    parts = last.reshape(*last.shape[:-1], groups, last.shape[-1] // groups)
    return np.moveaxis(np.swapaxes(parts, -1, -2).reshape(last.shape), -1, axis)
