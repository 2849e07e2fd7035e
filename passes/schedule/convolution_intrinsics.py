"""Tensor intrinsics that compute convolutions by products of tiles, as `Schedule.tensorize` names them.

    convolution_14x64_bf16_c2x3x3x64_s1_d1x1

14 pixels of a row times 64 filters: C[m][n] = sum over b, y, x, c of A[b][y][m + x][c] * B[b][y][x][c][n], for 2 blocks
of 64 channels and a window of 3 x 3. A is in blocks of channels, B in groups of channels (`OIHWioi`); the pixel stride
is 1, the dilation 1 in rows and columns. `u8s8` reads A as unsigned and B as signed bytes, with sums of i32.

`windows_32x64_..` reads windows that are already laid out: A[b][y][x][m][c], in groups of channels, without dimensions
b, y and x of one element.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from weft.dialects.low_tile_products import fits_registers
from weft.passes.schedule.tile_intrinsics import ELEMENTS, depth_of, depths_of

_NAME: Final = re.compile(r"(convolution|windows)_(\d+)x(\d+)_(\w+)_c(\d+)x(\d+)x(\d+)x(\d+)_s(\d+)_d(\d+)x(\d+)")


@dataclass(frozen=True)
class ConvolutionIntrinsic:
    pixels: int
    filters: int
    elements: str
    """A key of `ELEMENTS`."""
    blocks: int
    """Blocks of channels of the data."""
    window: tuple[int, int]
    channels: int
    """Channels of a block."""
    stride: int = 1
    dilation: tuple[int, int] = (1, 1)
    is_packed: bool = False
    """Whether A contains the windows, `windows_...`."""

    @property
    def name(self) -> str:
        window, dilation = ("x".join(map(str, pair)) for pair in (self.window, self.dilation))
        kind = "windows" if self.is_packed else "convolution"
        return (
            f"{kind}_{self.pixels}x{self.filters}_{self.elements}_c{self.blocks}x{window}x{self.channels}"
            f"_s{self.stride}_d{dilation}"
        )

    def texts(self) -> tuple[str, str]:
        return _description(self), _implementation(self)

    @property
    def group(self) -> int:
        """Channels of a group in the weights."""
        return ELEMENTS[self.elements].group

    @property
    def joins_columns(self) -> bool:
        """Whether a tile multiplies a whole row of a window: few channels, contiguous with those of the next pixel."""
        return (
            not self.is_packed
            and self.dilation[1] == 1 < self.window[1]
            and self.window[1] * self.channels <= depths_of(self.group)[-1]
        )

    @property
    def depth(self) -> int | None:
        """Products that a tile sums: a row of a window, or the largest equal parts of a block of channels; None if none
        fit."""
        if self.channels % self.group:
            return None
        if self.joins_columns:
            return self.window[1] * self.channels
        return depth_of(self.channels, self.group) or None

    @property
    def levels(self) -> tuple[int, int, int]:
        """Blocks of channels, rows and columns of a window."""
        return (self.blocks, *self.window)

    @property
    def steps(self) -> int:
        """Products of tiles per sum."""
        return self.blocks * self.window[0] * self.window[1] * self.channels // (self.depth or 1)


def convolution_named(name: str) -> ConvolutionIntrinsic | None:
    found = _NAME.fullmatch(name)
    if found is None or found[4] not in ELEMENTS:
        return None
    pixels, filters = int(found[2]), int(found[3])
    blocks, height, width, channels, stride, down, across = map(int, found.groups()[4:])
    is_packed = found[1] == "windows"
    of = ConvolutionIntrinsic(
        pixels, filters, found[4], blocks, (height, width), channels, stride, (down, across), is_packed
    )
    numbers = (pixels, filters, blocks, height, width, channels, stride, down, across)
    is_legal = min(numbers) > 0 and fits_registers(pixels, filters) and of.depth is not None and of.name == name
    return of if is_legal and not (is_packed and (stride, down, across) != (1, 1, 1)) else None


def _shapes(of: ConvolutionIntrinsic) -> tuple[str, str, str]:
    element, sums = ELEMENTS[of.elements].stored, ELEMENTS[of.elements].sums
    (height, width), (down, across) = of.window, of.dilation
    rows, columns = (height - 1) * down + 1, (of.pixels - 1) * of.stride + (width - 1) * across + 1
    data = f"{of.blocks}x{rows}x{columns}x{of.channels}x{element}"
    if of.is_packed:
        levels = "".join(f"{extent}x" for extent in of.levels if extent > 1)
        data = f"{levels}{of.pixels}x{of.channels // of.group}x{of.group}x{element}"
    return (
        data,
        f"{of.blocks}x{height}x{width}x{of.channels // of.group}x{of.filters}x{of.group}x{element}",
        f"{of.pixels}x{of.filters}x{sums}",
    )


def _description(of: ConvolutionIntrinsic) -> str:
    kind = ELEMENTS[of.elements]
    sums = kind.sums
    a, b, c = (f"memref<{shape}>" for shape in _shapes(of))
    extents = (of.pixels, of.filters, of.blocks, *of.window, of.channels // of.group, of.group)
    names = ("m", "n", "b", "y", "x", "c", "g")
    loops = [f"tir.for %{name} in {extent} {{" for name, extent in zip(names, extents, strict=True)]
    kinds = ("spatial",) * 2 + ("reduce",) * 5
    iters = [f"%v{name}: {kind}<{extent}>" for name, kind, extent in zip(names, kinds, extents, strict=True)]
    (down, across) = of.dilation
    at_a = "%vb, %row, %column, %channel"
    if of.is_packed:
        inner = [f"%v{name}" for name, extent in zip("byx", of.levels, strict=True) if extent > 1]
        at_a = ", ".join([*inner, "%vm", "%vc", "%vg"])
    return f"""\
func.func @description(%A: {a}, %B: {b}, %C: {c}) {{
  %zero = arith.constant {kind.zero} : {sums}
  tir.block "root" iters() = [] {{
  tir.init {{
    tir.for %m in {of.pixels} {{ tir.for %n in {of.filters} {{
      tir.block "start" iters(%vm: spatial<{of.pixels}>, %vn: spatial<{of.filters}>) = [%m, %n] {{
        memref.store %zero, %C[%vm, %vn] : {c}
      }} }} }}
  }}
  {" ".join(loops)}
    tir.block "convolution" iters({", ".join(iters)}) = [{", ".join(f"%{name}" for name in names)}] {{
      %row = affine.apply affine_map<(d0) -> (d0 * {down})> (%vy)
      %column = affine.apply affine_map<(d0, d1) -> (d0 * {of.stride} + d1 * {across})> (%vm, %vx)
      %channel = affine.apply affine_map<(d0, d1) -> (d0 * {of.group} + d1)> (%vc, %vg)
      %a = memref.load %A[{at_a}] : {a}
      %wide_a = {kind.widen[0]} %a : {kind.stored} to {sums}
      %b_1 = memref.load %B[%vb, %vy, %vx, %vc, %vn, %vg] : {b}
      %wide_b = {kind.widen[1]} %b_1 : {kind.stored} to {sums}
      %p = {kind.multiply} %wide_a, %wide_b : {sums}
      %c_1 = memref.load %C[%vm, %vn] : {c}
      %sum = {kind.add} %c_1, %p : {sums}
      memref.store %sum, %C[%vm, %vn] : {c}
    }} {"} " * len(loops)}
  }}
  func.return
}}"""


def _implementation(of: ConvolutionIntrinsic) -> str:
    reads_a, reads_b = ELEMENTS[of.elements].read
    shapes = _shapes(of)
    joined = of.joins_columns
    pixel, columns = (of.channels, of.channels * of.filters) if joined else ("?", "?")
    row = of.filters * of.group if joined else "?"
    sizes = [shape.split("x")[:-1] for shape in shapes]
    of_pixels = len(sizes[0]) - (3 if of.is_packed else 2)
    inner = [str(of.group)] if of.is_packed else []
    strides = ", ".join([*["?"] * of_pixels, str(pixel), *inner, "1"])
    a = f"memref<{shapes[0]}, strided<[{strides}], offset: ?>>"
    b = f"memref<{shapes[1]}, strided<[?, ?, {columns}, {row}, {of.group}, 1], offset: ?>>"
    c = f"memref<{shapes[2]}, strided<[?, 1], offset: ?>>"
    depth = of.depth or of.channels
    lines = ["%c0 = arith.constant 0 : index"]
    for name, type_, size, access in zip("ABC", (a, b, c), sizes, ("read", "read", "write"), strict=True):
        corner = ", ".join(["%c0"] * len(size))
        lines.append(f"%{name.lower()} = low.access_ptr %{name}[{corner}] sizes [{', '.join(size)}] {access} : {type_}")
    lines.append(f"%c_rows = low.stride %C {{dimension = 0}} : {c}")

    def distance(name: str, buffer: str, type_: str, dimension: int, factor: int = 1) -> str:
        lines.append(f"%{name} = low.stride %{buffer} {{dimension = {dimension}}} : {type_}")
        if factor == 1:
            return f"%{name}"
        lines.append(f"%{name}_factor = arith.constant {factor} : index")
        lines.append(f"%{name}_product = arith.muli %{name}, %{name}_factor : index")
        return f"%{name}_product"

    in_a, in_b = [distance("a_rows", "A", a, of_pixels, of.stride)], [distance("b_rows", "B", b, 3)]
    extents: list[int] = []
    factors = (1, 1, 1) if of.is_packed else (1, *of.dilation)
    levels = (*of.levels[:2], 1) if joined else of.levels
    for at, (extent, factor) in enumerate(zip(levels, factors, strict=True)):
        if extent > 1:
            dimension = len(extents) if of.is_packed else at
            extents.append(extent)
            in_a.append(distance(f"a_{at}", "A", a, dimension, factor))
            in_b.append(distance(f"b_{at}", "B", b, at))
    if of.channels > depth:  # Parts of a block of channels.
        extents.append(of.channels // depth)
        lines.append(f"%a_part = arith.constant {depth} : index")
        in_a.append("%a_part")
        in_b.append(distance("b_part", "B", b, 3, depth // of.group))
    shape = f"rows = {of.pixels}, columns = {of.filters}, depth = {depth}"
    lines.append(
        f"low.tile_product %a[{', '.join(in_a)}] as {reads_a}, %b[{', '.join(in_b)}] as {reads_b} onto %c[%c_rows] "
        f"{{{shape}, extents = array<i64{': ' * bool(extents)}{', '.join(map(str, extents))}>, from_zero}}"
    )
    body = "\n  ".join(lines)
    return f"func.func @implementation(%A: {a}, %B: {b}, %C: {c}) {{\n  {body}\n  func.return\n}}"
