"""Convolutions in NCHWc layout by products of tiles, on any CPU: scheduled for one with tile registers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from machines import build_scheduled_for
from numpy.typing import NDArray
from tiers import first_tier

import weft
from weft import te
from weft.passes.schedule.convolution_intrinsics import ConvolutionIntrinsic, convolution_named
from weft.passes.schedule.intrinsics import find_intrinsic
from weft.support.errors import CompileError
from weft.support.narrow_floats import round_bf16

TILES = "llvm -mcpu=sapphirerapids -num-threads=1"


@dataclass(frozen=True)
class Case:
    channels: tuple[int, int]
    """Blocks of the data, and channels of a block."""
    filters: tuple[int, int]
    side: int
    window: int
    stride: int = 1
    padding: int = 0
    dilation: int = 1
    images: int = 1
    is_float: bool = True
    with_bias: bool = True

    @property
    def group(self) -> int:
        return 2 if self.is_float else 4

    @property
    def shapes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        data = (self.images, self.channels[0], self.side, self.side, self.channels[1])
        inner = (self.channels[1] // self.group, self.filters[1], self.group)
        return data, (self.filters[0], self.channels[0], self.window, self.window, *inner)

    def module(self) -> Any:
        types = ("bfloat16", "bfloat16", "float32") if self.is_float else ("uint8", "int8", "int32")
        x, w = (te.placeholder(shape, t, name=n) for shape, t, n in zip(self.shapes, types, "XW", strict=False))
        y = te.ops.conv2d(
            x, w, self.stride, self.padding, self.dilation,
            data_layout="NCHWc", kernel_layout="OIHWioi", out_dtype=types[2],
        )  # fmt: skip
        if not self.with_bias:
            return te.create_func([x, w, y], name="f")
        b = te.placeholder((self.filters[0], 1, 1, self.filters[1]), types[2], name="B")
        return te.create_func([x, w, b, te.ops.relu(te.ops.add(y, b))], name="f")

    def reference(self, x: NDArray[Any], w: NDArray[Any]) -> NDArray[Any]:
        """The sums in float64, of data (n, blocks, y, x, c) and weights (o, blocks, y, x, c / g, o, g)."""
        p, s, d = self.padding, self.stride, self.dilation
        padded = np.pad(x.astype("f8"), ((0, 0), (0, 0), (p, p), (p, p), (0, 0)))
        kernel = np.moveaxis(w.astype("f8"), 6, 5).reshape(*w.shape[:4], -1, w.shape[5])
        side = (self.side + 2 * p - d * (self.window - 1) - 1) // s + 1
        out = np.zeros((x.shape[0], w.shape[0], side, side, w.shape[5]))
        for i in range(self.window):
            for j in range(self.window):
                part = padded[:, :, i * d : i * d + s * (side - 1) + 1 : s, j * d : j * d + s * (side - 1) + 1 : s]
                out += np.einsum("nbyxc,obcf->noyxf", part, kernel[:, :, i, j])
        return out


CASES = {
    "rows in place": Case((2, 32), (2, 32), 14, 3, padding=1, is_float=True),
    "blocks of two parts": Case((1, 64), (1, 64), 12, 3, padding=1),
    "stride": Case((1, 32), (1, 32), 28, 3, stride=2, padding=1),
    "dilation": Case((1, 32), (1, 32), 20, 3, dilation=2),
    "rows of a window at once": Case((1, 4), (1, 32), 18, 7, stride=2, padding=3),
    "rows of a window, no border": Case((1, 8), (1, 16), 12, 3),
    "windows of short rows": Case((2, 32), (8, 32), 7, 3, padding=1),
    "windows, images": Case((2, 16), (2, 32), 5, 1, images=2),
    "windows without padding": Case((1, 32), (1, 32), 8, 1, stride=2),
    "windows of a tile": Case((1, 32), (1, 32), 37, 3, padding=1),
    "no epilogue": Case((1, 32), (1, 32), 16, 3, padding=1, with_bias=False),
    "bytes": Case((1, 64), (1, 64), 14, 3, padding=1, is_float=False),
    "bytes, windows": Case((2, 64), (1, 64), 7, 3, padding=1, is_float=False),
    "bytes, few channels": Case((1, 4), (1, 64), 16, 3, stride=2, padding=1, is_float=False),
    "partial blocks": Case((2, 24), (1, 48), 12, 3, padding=1),
}


@pytest.mark.parametrize(
    "name", first_tier(CASES, "rows of a window at once", "windows of short rows", "bytes", "partial blocks")
)
def test_convolutions(name: str) -> None:
    case, rng = CASES[name], np.random.default_rng(0)
    if case.is_float:
        narrow = np.vectorize(round_bf16, otypes=[np.float32])
        x, w = (narrow(rng.standard_normal(shape).astype("f4")) for shape in case.shapes)
        arguments = [(a.view(np.uint32) >> 16).astype(np.uint16) for a in (x, w)]
    else:
        x = rng.integers(0, 256, case.shapes[0]).astype(np.uint8)
        w = rng.integers(-128, 128, case.shapes[1]).astype(np.int8)
        arguments = [x, w]
    library, trace = build_scheduled_for(TILES, case.module())
    assert ('"windows_' if "windows" in name else '"convolution_') in trace
    wanted = case.reference(x, w)
    if case.with_bias:
        bias = rng.integers(-50, 50, (case.filters[0], 1, 1, case.filters[1]))
        arguments.append(bias.astype("f4" if case.is_float else "i4"))
        wanted = np.maximum(wanted + bias, 0)
    out = np.zeros(wanted.shape, "f4" if case.is_float else "i4")
    library["f"](*arguments, out)
    np.testing.assert_allclose(out, wanted, rtol=1e-5, atol=2e-4 if case.is_float else 0)


@pytest.mark.parametrize("name", ["convolution_14x64_bf16_c2x3x3x64_s2_d1x2", "windows_32x32_u8s8_c1x1x1x64_s1_d1x1"])
def test_names(name: str) -> None:
    found = convolution_named(name)
    assert found is not None and found.name == name
    assert find_intrinsic(name).name == name


@pytest.mark.parametrize(
    "name",
    [
        "convolution_14x64_f32_c2x3x3x64_s1_d1x1",
        "convolution_64x64_bf16_c2x3x3x64_s1_d1x1",
        "convolution_14x64_bf16_c2x3x3x63_s1_d1x1",
        "convolution_14x64_bf16_c0x3x3x64_s1_d1x1",
        "windows_14x64_bf16_c2x3x3x64_s2_d1x1",
    ],
)
def test_other_names(name: str) -> None:
    with pytest.raises(CompileError, match=f"unknown tensor intrinsic '{name}'"):
        find_intrinsic(name)


@pytest.mark.parametrize(
    ("channels", "window", "elements", "depth"),
    [(4, 7, "bf16", 28), (64, 3, "bf16", 32), (48, 3, "bf16", 24), (64, 3, "u8s8", 64), (3, 3, "u8s8", None)],
)
def test_depth(channels: int, window: int, elements: str, depth: int | None) -> None:
    """Of a tile: a row of a window if it fits, else equal parts of a block."""
    found = ConvolutionIntrinsic(8, 16, elements, 1, (window, window), channels)
    assert found.depth == depth


def test_padded_rows_are_refused() -> None:
    """A row of a window is contiguous unless its pixels are padded."""
    sch = weft.Schedule(CASES["rows of a window at once"].module())
    block = sch.get_block("conv2d")
    sch.storage_align(sch.get_producers(block)[0], 0, -2, 16, 0)
    intrinsic = ConvolutionIntrinsic(9, 32, "bf16", 1, (7, 7), 4, stride=2)
    with pytest.raises(weft.ScheduleError, match="stride 2 of conv2d_pad is decided when it is placed, A has 4"):
        sch.tensorize(sch.get_loops(block)[3], intrinsic.name)
