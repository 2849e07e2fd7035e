"""Refusals of bind where thread blocks combine: requirements 7, 8 and 9."""

from __future__ import annotations

from refusal import Refusal, loop
from schedule_programs import PROGRAMS

from weft import Schedule

MATMUL = PROGRAMS["matmul_relu"].text
ROWS = """
func.func @f(%A: memref<6x9x{type}>, %S: memref<6x{type}{space}>) {{
  tir.for %i in 6 {{ tir.for %k in 9 {{
    tir.block "S" iters(%vi: spatial<6>, %vk: reduce<9>) = [%i, %k] {{
      %a = memref.load %A[%vi, %vk] : memref<6x9x{type}>
      %s = memref.load %S[%vi] : memref<6x{type}{space}>
      {update}
      memref.store %t, %S[%vi] : memref<6x{type}{space}>
    }}
  }} }}
  func.return
}}
"""
"""Every row is combined into what is there already."""


READ = """
func.func @f(%A: memref<6x9xi32>, %S: memref<6xi32>, %T: memref<6xi32>) {
  tir.for %i in 6 {
    tir.for %k in 9 {
      tir.block "S" iters(%vi: spatial<6>, %vk: reduce<9>) = [%i, %k] {
        %a = memref.load %A[%vi, %vk] : memref<6x9xi32>
        %s = memref.load %S[%vi] : memref<6xi32>
        %t = arith.addi %s, %a : i32
        memref.store %t, %S[%vi] : memref<6xi32>
      }
    }
    tir.block "T" iters(%vi: spatial<6>) = [%i] {
      %s = memref.load %S[%vi] : memref<6xi32>
      memref.store %s, %T[%vi] : memref<6xi32>
    }
  }
  func.return
}
"""
"""Each row is read when it is done."""


def rows(update: str, type_: str = "f32", space: str = "") -> str:
    return ROWS.format(update=update, type=type_, space=space and f', "{space}"')


def bind_columns(s: Schedule) -> None:
    s.bind(loop(s, "S", 1), "blockIdx.x")


def start_in_the_kernel(s: Schedule) -> None:
    """Zeros are stored in the nest of a bound loop, before the reduction."""
    s.decompose_reduction("Y", loop(s, "Y", 2))
    s.bind(loop(s, "Y_update"), "blockIdx.x")


def unbound_start(s: Schedule) -> None:
    """The reduction is bound, while the loop around it and around its init is not yet."""
    s.decompose_reduction("Y", loop(s, "Y", 2))
    s.bind(loop(s, "Y_update", 2), "blockIdx.y")


NOT_WAITING = "in the same kernel, whose thread blocks do not wait for each other"
ATOMICS = [
    Refusal(
        "bind",
        7,
        rows("%t = arith.mulf %s, %a : f32"),
        bind_columns,
        'block "S" combines by arith.mulf, for which there is no atomic operation\n(.*\n)+ +legal: sums, minima',
    ),
    Refusal(
        "bind",
        7,
        rows("%t = arith.addf %s, %a : f16", "f16"),
        bind_columns,
        'block "S" combines elements of f16, and atomic operations are on i32, i64, f32 and f64',
    ),
    Refusal(
        "bind",
        7,
        rows("%t = arith.addf %s, %a : f32", space="shared"),
        bind_columns,
        '%S is in memory of space "shared", not in that of the device',
    ),
    Refusal(
        "bind",
        8,
        MATMUL,
        lambda s: s.bind(loop(s, "Y", 2), "blockIdx.x"),
        'block "Y" starts what it combines into itself, in one of the iterations of %k\n(.*\n)+ +legal: decompose_red',
    ),
    Refusal(
        "bind",
        8,
        MATMUL,
        lambda s: s.bind(loop(s, "Y_update", 2), "blockIdx.y"),
        rf'of block "Y_update" writes Y\[0, 0\]; iteration .* of block "Y_init" writes Y\[0, 0\] {NOT_WAITING}',
        ...,
        prepare=start_in_the_kernel,
    ),
    Refusal(
        "bind",
        8,
        MATMUL,
        lambda s: s.bind(loop(s, "Y_update"), "blockIdx.x"),
        rf'of block "Y_update" writes Y\[0, 0\]; iteration .* of block "Y_init" writes Y\[0, 0\] {NOT_WAITING}',
        ...,
        prepare=unbound_start,
    ),
    Refusal(
        "bind",
        8,
        MATMUL,
        lambda s: s.bind(loop(s, "Y_update", 2), "threadIdx.x"),
        rf'of block "Y_init" writes Y\[0, 0\] {NOT_WAITING}',
        ...,
        prepare=start_in_the_kernel,
    ),
    Refusal(
        "bind",
        9,
        READ,
        bind_columns,
        rf'of block "S" writes S\[0\]; iteration .* of block "T" reads S\[0\] {NOT_WAITING}',
        ...,
        prepare=lambda s: s.bind(loop(s, "S"), "blockIdx.y"),
    ),
]
