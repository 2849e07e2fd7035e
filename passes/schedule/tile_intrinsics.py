"""The tensor intrinsics for products of tiles (`low.tile_product`), as `Schedule.tensorize` names them.

    tiles_32x32x1024_bf16           C[m][n] = sum over k < 1024 of A[m][k] * B[k / 2][n][k % 2]: 32 x 32 sums of f32 in
                                    scope "local", of bf16; rows of A may be any distance apart
    tiles_32x32x1024_bf16_global    the same, with sums in global memory (no memory space)
    tiles_16x48x64_u8s8             sums of i32 of groups of 4 bytes, which are read as unsigned in A and signed in B
    tiles_32x32x512_bf16_onto       added to C
    tiles_32x32x512_bf16_next       the next panel of B will be read after this one
    tiles_32x32x512_bf16_ap         A is packed: A[k / 32][m][k % 32]
    tiles_32x32x512_bf16_a1_c2      1 dimension between the rows and steps of A, and 2 between the rows and columns of C

They exist for reduction lengths that are multiples of a tile depth, which is a whole number of groups of at most 64
bytes in total (`depth_of`), and for the rows and columns that tile registers hold (`fits_registers`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from weft.dialects.low_tile_products import SUM_BYTES, TILE_BYTES, Signs, elements_of, fits_registers

_NAME: Final = re.compile(r"tiles_(\d+)x(\d+)x(\d+)_(bf16|[su]8[su]8)(_a[1-9p])?(_c[1-9])?(_next)?(_onto)?(_global)?")


@dataclass(frozen=True)
class Elements:
    """Element types and ops, in the text of intrinsics."""

    stored: str
    sums: str
    read: tuple[str, str]
    """The factors, as `low.tile_product` reads them."""
    widen: tuple[str, str]
    multiply: str
    add: str
    zero: str
    group: int
    """Elements of a group in the right factor."""


ELEMENTS: Final = {
    "bf16": Elements(
        "bf16", "f32", ("bf16", "bf16"), ("arith.extf", "arith.extf"), "arith.mulf", "arith.addf", "0.0", 2
    ),
    **{
        f"{a}8{b}8": Elements(
            *("i8", "i32", (f"{a}i8", f"{b}i8"), (f"arith.ext{a}i", f"arith.ext{b}i"), "arith.muli", "arith.addi"),
            *("0", 4),
        )
        for a in "su"
        for b in "su"
    },
}
"""By their name in intrinsics."""


@dataclass(frozen=True)
class TileProduct:
    rows: int
    columns: int
    steps: int
    """Steps of the reduction."""
    a_signed: bool | None
    """Whether the bytes of A are signed; None for bf16."""
    b_signed: bool | None
    adds: bool = False
    """Whether it adds to C."""
    in_scope: bool = True
    """Whether C has scope "local"."""
    a_gap: int | None = 0
    """Dimensions of A between rows and steps; None if it is packed in tiles `[steps / depth][rows][depth]`."""
    c_gap: int = 0
    """Dimensions of C between rows and columns."""
    is_streamed: bool = False
    """Whether the panel of B is read once, and the next panel of B after it."""

    @property
    def signs(self) -> Signs:
        return self.a_signed, self.b_signed

    @property
    def elements(self) -> Elements:
        return ELEMENTS[elements_of(self.signs)]

    @property
    def depth(self) -> int:
        """Steps at once; 0 if no number of them divides all steps."""
        return depth_of(self.steps, self.elements.group)

    @property
    def name(self) -> str:
        gaps = "_ap" if self.a_gap is None else f"_a{self.a_gap}" if self.a_gap else ""
        gaps += f"_c{self.c_gap}" if self.c_gap else ""
        gaps += "_next" if self.is_streamed else ""
        suffix = f"{gaps}{'_onto' if self.adds else ''}{'' if self.in_scope else '_global'}"
        return f"tiles_{self.rows}x{self.columns}x{self.steps}_{elements_of(self.signs)}{suffix}"

    def texts(self) -> tuple[str, str]:
        of, depth = self.elements, self.depth
        element, sums, group = of.stored, of.sums, of.group
        space = ', "local"' if self.in_scope else ""
        m, n, k = self.rows, self.columns, self.steps
        shapes = (
            f"{k // depth}x{m}x{depth}x{element}" if self.a_gap is None else f"{m}x{'1x' * self.a_gap}{k}x{element}",
            f"{k // group}x{n}x{group}x{element}",
            f"{m}x{'1x' * self.c_gap}{n}x{sums}",
        )
        ones, zeros, unknown = ("1, ", "%c0, ", "?, ")
        a, b, c = f"memref<{shapes[0]}>", f"memref<{shapes[1]}>", f"memref<{shapes[2]}{space}>"
        place_of_a, dimensions_of_a = "%tile, %vm, %in_tile", 2
        if self.a_gap is not None:
            place_of_a, dimensions_of_a = f"%vm, {zeros * self.a_gap}%vk", 1 + self.a_gap
        init = (
            ""
            if self.adds
            else f"""\
      tir.init {{ tir.for %mi in {m} {{ tir.for %ni in {n} {{
        tir.block "zero" iters(%vmi: spatial<{m}>, %vni: spatial<{n}>) = [%mi, %ni] {{
          %zero = arith.constant {of.zero} : {sums}
          memref.store %zero, %C[%vmi, {zeros * self.c_gap}%vni] : {c}
        }} }} }} }}
"""
        )
        description = f"""\
func.func @description(%A: {a}, %B: {b}, %C: {c}) {{
  %c0 = arith.constant 0 : index
  tir.block "root" iters() = [] {{
{init}\
    tir.for %m in {m} {{ tir.for %n in {n} {{ tir.for %k in {k} {{
      tir.block "product" iters(%vm: spatial<{m}>, %vn: spatial<{n}>, %vk: reduce<{k}>) = [%m, %n, %k] {{
        %tile = affine.apply affine_map<(d0) -> (d0 floordiv {depth})>(%vk)
        %in_tile = affine.apply affine_map<(d0) -> (d0 mod {depth})>(%vk)
        %a = memref.load %A[{place_of_a}] : {a}
        %wide_a = {of.widen[0]} %a : {element} to {sums}
        %row = affine.apply affine_map<(d0) -> (d0 floordiv {group})>(%vk)
        %in_group = affine.apply affine_map<(d0) -> (d0 mod {group})>(%vk)
        %b = memref.load %B[%row, %vn, %in_group] : {b}
        %wide_b = {of.widen[1]} %b : {element} to {sums}
        %p = {of.multiply} %wide_a, %wide_b : {sums}
        %c = memref.load %C[%vm, {zeros * self.c_gap}%vn] : {c}
        %sum = {of.add} %c, %p : {sums}
        memref.store %sum, %C[%vm, {zeros * self.c_gap}%vn] : {c}
      }} }} }} }}
  }}
  func.return
}}"""
        of_a = a
        if self.a_gap is not None:
            of_a = f"memref<{shapes[0]}, strided<[?, {unknown * self.a_gap}1], offset: ?>>"
            sizes_of_a, a_steps = f"{m}, {ones * self.a_gap}{k}", depth
            a_rows = f"low.stride %A {{dimension = 0}} : {of_a}"
        else:
            sizes_of_a, a_steps = f"{k // depth}, {m}, {depth}", m * depth
            a_rows = f"arith.constant {depth} : index"
        of_c = f"memref<{shapes[2]}, strided<[?, {unknown * self.c_gap}1], offset: ?>{space}>"
        access = "readwrite" if self.adds else "write"
        numbers = f"rows = {m}, columns = {n}, depth = {depth}, extents = array<i64: {k // depth}>"
        numbers += "" if self.adds else ", from_zero"
        numbers += f", b_ahead = {k * n}" if self.is_streamed else ""
        implementation = f"""\
func.func @implementation(%A: {of_a}, %B: {b}, %C: {of_c}) {{
  %c0 = arith.constant 0 : index
  %a = low.access_ptr %A[{zeros * dimensions_of_a}%c0] sizes [{sizes_of_a}] read : {of_a}
  %b = low.access_ptr %B[%c0, %c0, %c0] sizes [{k // group}, {n}, {group}] read : {b}
  %c = low.access_ptr %C[%c0, {zeros * self.c_gap}%c0] sizes [{m}, {ones * self.c_gap}{n}] {access} : {of_c}
  %a_rows = {a_rows}
  %a_steps = arith.constant {a_steps} : index
  %b_rows = arith.constant {n * group} : index
  %b_steps = arith.constant {depth * n} : index
  %c_rows = low.stride %C {{dimension = 0}} : {of_c}
  low.tile_product %a[%a_rows, %a_steps] as {of.read[0]}, %b[%b_rows, %b_steps] as {of.read[1]} onto %c[%c_rows]
    {{{numbers}}}
  func.return
}}"""
        return description, implementation


def depths_of(group: int) -> range:
    """Numbers of steps that tiles can multiply at once, least first."""
    return range(group, TILE_BYTES * group // SUM_BYTES + 1, group)


def depth_of(steps: int, group: int) -> int:
    """The largest of `depths_of(group)` that divides `steps`; 0 if there is none."""
    return next((depth for depth in reversed(depths_of(group)) if steps % depth == 0), 0)


def tile_product_named(name: str) -> TileProduct | None:
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    rows, columns, steps = (int(number) for number in match.groups()[:3])
    types, a_gap, c_gap, is_streamed, adds, is_global = match.groups()[3:]
    of_a = None if a_gap == "_ap" else int((a_gap or "_a0")[2:])
    of_c = int((c_gap or "_c0")[2:])
    a_signed, b_signed = (None, None) if types == "bf16" else (types[0] == "s", types[2] == "s")
    found = TileProduct(
        rows,
        columns,
        steps,
        a_signed,
        b_signed,
        adds is not None,
        is_global is None,
        of_a,
        of_c,
        is_streamed is not None,
    )
    is_legal = min(rows, columns, steps) > 0 and fits_registers(rows, columns) and found.depth and found.name == name
    return found if is_legal else None
