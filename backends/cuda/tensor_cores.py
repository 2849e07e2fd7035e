"""CUDA C++ helper functions for tensor cores, one instruction of the PTX ISA each.

A fragment is a local array of `FragmentAttr.elements_per_thread` elements; a register contains two 16-bit elements.
NVRTC lacks `mma.h`. On a CPU, tests replace the bodies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from xdsl.dialects.builtin import bf16, f16, f32
from xdsl.ir import Attribute

from weft.backends.c_family.gpu_ops import load_name, mma_name, store_name
from weft.dialects.low_tensor_cores import SHAPES, Family, FragmentAttr, FragmentRole, Order

_TYPES: Final[Mapping[Attribute, str]] = {f16: "weft_f16", bf16: "weft_bf16", f32: "float"}


def tensor_core_helpers() -> Mapping[str, str]:
    found: dict[str, str] = {}
    for shape in SHAPES[Family.WMMA]:
        c = FragmentAttr.of(Family.WMMA, FragmentRole.C, Order.ROW, shape, f32)
        for space in ("shared", "global"):
            found[store_name(c, space)] = _store(c, space)
        for element in (f16, bf16):
            for order in Order:
                a = FragmentAttr.of(Family.WMMA, FragmentRole.A, order, shape, element)
                b = a.with_role(FragmentRole.B, order, element)
                for space in ("shared", "global"):
                    found[load_name(a, space)] = _load(a, space)
                    found[load_name(b, space)] = _load(b, space)
                for b_order in Order:
                    factors = (a, a.with_role(FragmentRole.B, b_order, element))
                    found[mma_name(*factors)] = _mma(*factors)
    for count in (1, 2, 4):
        for transposed in (False, True):
            name = f"weft_ldmatrix_x{count}{'_trans' if transposed else ''}"
            found[name] = _ldmatrix(name, count, transposed=transposed)
    for element in (f16, bf16):
        found[f"weft_mma_m16n8k16_{element}"] = _mma_sync(str(element))
    return found


def _function(comment: str, head: str, body: Sequence[str]) -> str:
    lines = [f"// {comment}", f"$inline void {head} {{", "#if defined(__CUDA_ARCH__)", *body, "#endif", "}"]
    return "\n".join(lines)


def _words(fragment: FragmentAttr) -> int:
    """32-bit registers of a fragment."""
    return fragment.elements_per_thread if fragment.role is FragmentRole.C else fragment.elements_per_thread // 2


def _list(first: int, count: int) -> str:
    return "{" + ", ".join(f"%{first + number}" for number in range(count)) + "}"


def _operands(constraint: str, name: str, count: int) -> str:
    return ", ".join(f'"{constraint}"({name}[{number}])' for number in range(count))


def _shape(fragment: FragmentAttr) -> str:
    m, n, k = fragment.shape
    return f"m{m}n{n}k{k}"


def _address(space: str, name: str) -> str:
    if space == "shared":
        return f'"r"((unsigned int)__cvta_generic_to_shared({name}))'
    return f'"l"(__cvta_generic_to_global({name}))'


def _load(fragment: FragmentAttr, space: str) -> str:
    count, type_ = _words(fragment), _TYPES[fragment.element]
    rows, columns = fragment.tile
    name = f"wmma.load.{fragment.role}.sync.aligned.{fragment.order}.{_shape(fragment)}.{space}.{fragment.element}"
    return _function(
        f"A tile of {rows} x {columns} as a fragment of matrix {fragment.role}; its rows are `rows` elements apart.",
        f"{load_name(fragment, space)}({type_} *fragment, const {type_} *tile, int rows)",
        (
            "  unsigned int *r = (unsigned int *)fragment;",
            f'  asm volatile("{name} {_list(0, count)}, [%{count}], %{count + 1};"',
            f"               : {_operands('=r', 'r', count)}",
            f'               : {_address(space, "tile")}, "r"(rows) : "memory");',
        ),
    )


def _store(fragment: FragmentAttr, space: str) -> str:
    count = _words(fragment)
    rows, columns = fragment.tile
    name = f"wmma.store.d.sync.aligned.row.{_shape(fragment)}.{space}.f32"
    return _function(
        f"What was accumulated as a tile of {rows} x {columns}, whose rows are `rows` elements apart.",
        f"{store_name(fragment, space)}(const float *fragment, float *tile, int rows)",
        (
            f'  asm volatile("{name} [%{count}], {_list(0, count)}, %{count + 1};"',
            f"               : : {_operands('f', 'fragment', count)}, {_address(space, 'tile')}",
            '               , "r"(rows) : "memory");',
        ),
    )


def _mma(a: FragmentAttr, b: FragmentAttr) -> str:
    of_a, of_b, of_c = (_words(fragment) for fragment in (a, b, a.with_role(FragmentRole.C, Order.ROW, f32)))
    types = "f32.f32" if a.element == f16 else "f32.bf16.bf16.f32"
    name = f"wmma.mma.sync.aligned.{a.order}.{b.order}.{_shape(a)}.{types}"
    accumulated, type_ = _list(0, of_c), _TYPES[a.element]
    return _function(
        "c += a * b",
        f"{mma_name(a, b)}(float *c, const {type_} *a, const {type_} *b)",
        (
            "  const unsigned int *p = (const unsigned int *)a, *q = (const unsigned int *)b;",
            f'  asm volatile("{name} {accumulated}, {_list(of_c, of_a)}, {_list(of_c + of_a, of_b)}, {accumulated};"',
            f"               : {_operands('+f', 'c', of_c)}",
            f"               : {_operands('r', 'p', of_a)}, {_operands('r', 'q', of_b)});",
        ),
    )


def _ldmatrix(name: str, count: int, *, transposed: bool) -> str:
    suffix = ".trans" if transposed else ""
    registers = _operands("=r", "r", count)
    return _function(
        f"{count} matrices of 8 x 8 elements of 16 bits; thread l names row l % 8 of matrix l / 8 % {count}.",
        f"{name}(void *fragment, const void *row)",
        (
            "  unsigned int *r = (unsigned int *)fragment;",
            f'  asm volatile("ldmatrix.sync.aligned.m8n8.x{count}{suffix}.shared.b16 {_list(0, count)}, [%{count}];"',
            f'               : {registers} : {_address("shared", "row")} : "memory");',
        ),
    )


def _mma_sync(element: str) -> str:
    name = f"mma.sync.aligned.m16n8k16.row.col.f32.{element}.{element}.f32"
    return _function(
        "c += a * b, 16 x 16 by 16 x 8",
        f"weft_mma_m16n8k16_{element}(float *c, const weft_{element} *a, const weft_{element} *b)",
        (
            "  const unsigned int *p = (const unsigned int *)a, *q = (const unsigned int *)b;",
            f'  asm volatile("{name} {_list(0, 4)}, {_list(4, 4)}, {_list(8, 2)}, {_list(0, 4)};"',
            f"               : {_operands('+f', 'c', 4)} : {_operands('r', 'p', 4)}, {_operands('r', 'q', 2)});",
        ),
    )
