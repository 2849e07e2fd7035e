"""Costs of layouts of images and of algorithms of convolutions, in scalar multiply-adds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

from weft.plans import fitted


def conversion(elements: int) -> float:
    return fitted.CONVERSION * elements


def plain_data(work: int, channels: int, products: int = 1) -> float:
    """The cost of data that are not in blocks, without dot products of `products` channels."""
    return fitted.PLAIN_DATA * work + (1 - 1 / products) * work if channels > fitted.FEW_CHANNELS else 0.0


def saved_by_blocks(
    work: int,
    window: Sequence[int],
    *,
    is_depthwise: bool = False,
    is_grouped: bool = False,
    is_strided: bool = False,
    is_integer: bool = False,
) -> float:
    """The multiply-adds that NCHWc saves in a convolution of `work`."""
    if is_depthwise and is_strided:
        return fitted.PLAIN_STRIDED_CHANNELS * work
    if is_integer:
        return fitted.PLAIN_INTEGERS * work
    if is_depthwise:
        return 0.0
    if is_grouped:
        return (fitted.PLAIN_STRIDED_GROUPS if is_strided else fitted.PLAIN_GROUPS) * work
    return (fitted.PLAIN_POINTS if prod(window) == 1 else fitted.PLAIN_WINDOWS) * work


def saved_by_filtering(
    images: int,
    extents: Sequence[int],
    channels: int,
    filters: int,
    window: int,
    tiles: Iterable[int],
    rate: float = 1.0,
) -> tuple[int, float]:
    """The cheapest Winograd tile, and the multiply-adds that it saves in a convolution with square windows; (0, 0) if
    too few.

    `extents` are rows and columns of results, `tiles` candidate sides. A tile of side `t` needs `(t + window - 1) ** 2`
    products instead of `t ** 2 * window ** 2`, and transforms. The direct convolution executes `rate` multiply-adds in
    the time of one of Winograd.
    """
    kernels = fitted.KERNEL_ELEMENT * channels * filters
    direct = window**2 * (images * prod(extents) * filters * channels + kernels) / rate

    def cost(tile: int) -> float:
        count = images * prod(-(-extent // tile) for extent in extents)
        products = count * (channels * filters + fitted.TRANSFORM * (channels + filters))
        return (tile + window - 1) ** 2 * (products + kernels)

    tile = min(tiles, key=cost)
    return (tile, direct - cost(tile)) if cost(tile) < fitted.FILTERING_PAYS * direct else (0, 0.0)
