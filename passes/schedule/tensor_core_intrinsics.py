"""The built-in tensor intrinsics for tensor cores, as `Schedule.tensorize` names them.

    wmma_load_16x16x16_f16_a_shared          a tile of A (rows m, columns k) from shared memory; also _b, and _global
    wmma_load_16x16x16_f16_a_trans_shared    from memory that holds A transposed (rows k, columns m)
    wmma_fill_16x16x16_f32                   zeros in an accumulator
    wmma_sync_16x16x16_f16f16f32             C += A * B; also _a_trans, _b_trans and _a_trans_b_trans
    wmma_store_16x16x16_f32_shared           an accumulator to shared memory; also _global

They also exist for `bf16`, for the shapes 32x8x16 and 8x32x16, and for `mma.sync` with `ldmatrix`:
`mma_..._m16n8k16_...` and `mma_..._m16n16k16_...`, whose loads are from shared memory. Buffers are in the scopes
`wmma.matrix_a`, `wmma.matrix_b` and `wmma.accumulator`, or `mma.matrix_a` and so on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Final

from xdsl.dialects.builtin import bf16, f16, f32
from xdsl.ir import Attribute

from weft.dialects.low_tensor_cores import SHAPES, Family, FragmentAttr, FragmentRole, Order

if TYPE_CHECKING:
    from collections.abc import Sequence

_FACTORS: Final[Mapping[str, Attribute]] = {"f16": f16, "bf16": bf16}
_TRANSPOSED: Final = {False: Order.ROW, True: Order.COL}


@cache
def tensor_core_intrinsics() -> Mapping[str, tuple[str, str]]:
    """Name -> description and implementation."""
    found: dict[str, tuple[str, str]] = {}
    for family in Family:
        for shape in SHAPES[family]:
            found.update(_of_shape(family, shape))
    return found


def _of_shape(family: Family, shape: tuple[int, int, int]) -> Iterator[tuple[str, tuple[str, str]]]:
    m, n, k = shape
    sizes = f"{m}x{n}x{k}" if family is Family.WMMA else f"m{m}n{n}k{k}"
    c = FragmentAttr.of(family, FragmentRole.C, Order.ROW, shape, f32)
    yield f"{family}_fill_{sizes}_f32", _fill(c)
    for place in ("shared", "global"):
        yield f"{family}_store_{sizes}_f32_{place}", _copy("low.tile_store", c, c.scope, place)
    for name, element in _FACTORS.items():
        for role in (FragmentRole.A, FragmentRole.B):
            for transposed, order in _TRANSPOSED.items():
                fragment = FragmentAttr.of(family, role, order, shape, element)
                suffix = f"{role}_trans" if transposed else f"{role}"
                for place in ("shared", "global") if family is Family.WMMA else ("shared",):
                    text = _copy("low.tile_load", fragment, place, fragment.scope)
                    yield f"{family}_load_{sizes}_{name}_{suffix}_{place}", text
        for a_transposed, a_order in _TRANSPOSED.items():
            for b_transposed, b_order in _TRANSPOSED.items():
                a = FragmentAttr.of(family, FragmentRole.A, a_order, shape, element)
                b = FragmentAttr.of(family, FragmentRole.B, b_order, shape, element)
                suffix = ("_a_trans" if a_transposed else "") + ("_b_trans" if b_transposed else "")
                yield f"{family}_sync_{sizes}_{name}{name}f32{suffix}", _product(a, b)


def _type(fragment: FragmentAttr, place: str, *, part: bool = False) -> str:
    rows, columns = fragment.tile
    layout = ", strided<[?, 1], offset: ?>" if part else ""
    space = "" if place == "global" else f', "{place}"'
    return f"memref<{rows}x{columns}x{fragment.element}{layout}{space}>"


def _function(name: str, parameters: Sequence[str], body: str) -> str:
    return f"func.func @{name}({', '.join(parameters)}) {{\n{body}\n  func.return\n}}"


def _implementation(tiles: Mapping[str, tuple[str, str, FragmentAttr]], op: str) -> str:
    """`op` on a pointer (%p_X) and the row stride (%r_X) of each tile X, given its type, access and fragment."""
    lines = ["  %c0 = arith.constant 0 : index"]
    for name, (type_, access, fragment) in tiles.items():
        sizes = ", ".join(map(str, fragment.tile))
        lines.append(f"  %p_{name} = low.access_ptr %{name}[%c0, %c0] sizes [{sizes}] {access} : {type_}")
        lines.append(f"  %r_{name} = low.stride %{name} {{dimension = 0}} : {type_}")
    return _function("implementation", [f"%{n}: {tiles[n][0]}" for n in tiles], "\n".join([*lines, f"  {op}"]))


def _parameters(fragment: FragmentAttr) -> str:
    return str(fragment).removeprefix("#low.fragment")


def _copy(op: str, fragment: FragmentAttr, source: str, target: str) -> tuple[str, str]:
    rows, columns = fragment.tile
    x, y = _type(fragment, source), _type(fragment, target)
    body = f"""\
  tir.for %i in {rows} {{ tir.for %j in {columns} {{
    tir.block "copy" iters(%vi: spatial<{rows}>, %vj: spatial<{columns}>) = [%i, %j] {{
      %x = memref.load %X[%vi, %vj] : {x}
      memref.store %x, %Y[%vi, %vj] : {y}
    }} }} }}"""
    tiles = {
        "X": (_type(fragment, source, part=True), "read", fragment),
        "Y": (_type(fragment, target, part=True), "write", fragment),
    }
    text = f"{op} {_parameters(fragment)} %p_X, %r_X to %p_Y, %r_Y"
    return _function("description", [f"%X: {x}", f"%Y: {y}"], body), _implementation(tiles, text)


def _fill(c: FragmentAttr) -> tuple[str, str]:
    rows, columns = c.tile
    body = f"""\
  %zero = arith.constant 0.0 : f32
  tir.for %i in {rows} {{ tir.for %j in {columns} {{
    tir.block "fill" iters(%vi: spatial<{rows}>, %vj: spatial<{columns}>) = [%i, %j] {{
      memref.store %zero, %C[%vi, %vj] : {_type(c, c.scope)}
    }} }} }}"""
    text = f"low.tile_fill {_parameters(c)} %p_C, %r_C with 0.0 : f32"
    implementation = _implementation({"C": (_type(c, c.scope, part=True), "write", c)}, text)
    return _function("description", [f"%C: {_type(c, c.scope)}"], body), implementation


def _product(a: FragmentAttr, b: FragmentAttr) -> tuple[str, str]:
    m, n, k = a.shape
    c = a.with_role(FragmentRole.C, Order.ROW, f32)
    of_a, of_b, of_c = (_type(fragment, fragment.scope) for fragment in (a, b, c))
    body = f"""\
  tir.for %i in {m} {{ tir.for %j in {n} {{ tir.for %k in {k} {{
    tir.block "sync" iters(%vi: spatial<{m}>, %vj: spatial<{n}>, %vk: reduce<{k}>) = [%i, %j, %k] {{
      %a = memref.load %A[{"%vi, %vk" if a.order is Order.ROW else "%vk, %vi"}] : {of_a}
      %wide_a = arith.extf %a : {a.element} to f32
      %b = memref.load %B[{"%vk, %vj" if b.order is Order.ROW else "%vj, %vk"}] : {of_b}
      %wide_b = arith.extf %b : {b.element} to f32
      %p = arith.mulf %wide_a, %wide_b : f32
      %c = memref.load %C[%vi, %vj] : {of_c}
      %s = arith.addf %c, %p : f32
      memref.store %s, %C[%vi, %vj] : {of_c}
    }} }} }} }}"""
    tiles = {
        name: (_type(fragment, fragment.scope, part=True), access, fragment)
        for name, fragment, access in (("A", a, "read"), ("B", b, "read"), ("C", c, "readwrite"))
    }
    text = f"low.tile_mma %p_A, %r_A by %p_B, %r_B onto %p_C, %r_C {{a = {a}, b = {b}}}"
    description = _function("description", [f"%A: {of_a}", f"%B: {of_b}", f"%C: {of_c}"], body)
    return description, _implementation(tiles, text)
