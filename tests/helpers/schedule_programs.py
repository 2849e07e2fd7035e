"""Programs to schedule, with odd extents, and what NumPy says they compute."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Program:
    """A module with one function @f: inputs first, then outputs. `shapes` are those of the inputs."""

    text: str
    shapes: tuple[tuple[int, ...], ...]
    reference: Callable[..., Array | tuple[Array, ...]]

    def inputs(self, seed: int = 0) -> list[Array]:
        """Small whole numbers: sums and products are exact in any order."""
        random = np.random.default_rng(seed)
        return [random.integers(-4, 5, shape).astype(np.float32) for shape in self.shapes]

    def expected(self, inputs: list[Array]) -> list[Array]:
        result = self.reference(*inputs)
        return [np.ascontiguousarray(a) for a in (result if isinstance(result, tuple) else (result,))]


CHAIN = Program(
    """
func.func @f(%A: memref<10x12xf32>, %D: memref<10x12xf32>) {
  %one = arith.constant 1.0 : f32
  %B = memref.alloc() : memref<10x12xf32>
  %C = memref.alloc() : memref<10x12xf32>
  tir.for %i in 10 { tir.for %j in 12 {
    tir.block "B" iters(%vi: spatial<10>, %vj: spatial<12>) = [%i, %j] {
      %a = memref.load %A[%vi, %vj] : memref<10x12xf32>
      %b = arith.addf %a, %one : f32
      memref.store %b, %B[%vi, %vj] : memref<10x12xf32>
    } } }
  tir.for %i in 10 { tir.for %j in 12 {
    tir.block "C" iters(%vi: spatial<10>, %vj: spatial<12>) = [%i, %j] {
      %b = memref.load %B[%vi, %vj] : memref<10x12xf32>
      %c = arith.mulf %b, %b : f32
      memref.store %c, %C[%vi, %vj] : memref<10x12xf32>
    } } }
  tir.for %i in 10 { tir.for %j in 12 {
    tir.block "D" iters(%vi: spatial<10>, %vj: spatial<12>) = [%i, %j] {
      %c = memref.load %C[%vi, %vj] : memref<10x12xf32>
      %d = arith.subf %c, %one : f32
      memref.store %d, %D[%vi, %vj] : memref<10x12xf32>
    } } }
  func.return
}""",
    ((10, 12),),
    lambda a: (a + 1) ** 2 - 1,
)

MATMUL_RELU = Program(
    """
func.func @f(%A: memref<12x9xf32>, %B: memref<9x10xf32>, %C: memref<12x10xf32>) {
  %zero = arith.constant 0.0 : f32
  %Y = memref.alloc() : memref<12x10xf32>
  tir.for %i in 12 { tir.for %j in 10 { tir.for %k in 9 {
    tir.block "Y" iters(%vi: spatial<12>, %vj: spatial<10>, %vk: reduce<9>) = [%i, %j, %k] {
      tir.init { memref.store %zero, %Y[%vi, %vj] : memref<12x10xf32> }
      %a = memref.load %A[%vi, %vk] : memref<12x9xf32>
      %b = memref.load %B[%vk, %vj] : memref<9x10xf32>
      %p = arith.mulf %a, %b : f32
      %y = memref.load %Y[%vi, %vj] : memref<12x10xf32>
      %s = arith.addf %y, %p : f32
      memref.store %s, %Y[%vi, %vj] : memref<12x10xf32>
    } } } }
  tir.for %i in 12 { tir.for %j in 10 {
    tir.block "C" iters(%vi: spatial<12>, %vj: spatial<10>) = [%i, %j] {
      %y = memref.load %Y[%vi, %vj] : memref<12x10xf32>
      %c = arith.maximumf %y, %zero : f32
      memref.store %c, %C[%vi, %vj] : memref<12x10xf32>
    } } }
  func.return
}""",
    ((12, 9), (9, 10)),
    lambda a, b: np.maximum(a @ b, 0),
)

BMM = Program(
    """
func.func @f(%A: memref<3x6x5xf32>, %B: memref<3x5x7xf32>, %C: memref<3x6x7xf32>) {
  %zero = arith.constant 0.0 : f32
  tir.for %b in 3 { tir.for %i in 6 { tir.for %j in 7 { tir.for %k in 5 {
    tir.block "C" iters(%vb: spatial<3>, %vi: spatial<6>, %vj: spatial<7>, %vk: reduce<5>) = [%b, %i, %j, %k] {
      tir.init { memref.store %zero, %C[%vb, %vi, %vj] : memref<3x6x7xf32> }
      %x = memref.load %A[%vb, %vi, %vk] : memref<3x6x5xf32>
      %y = memref.load %B[%vb, %vk, %vj] : memref<3x5x7xf32>
      %p = arith.mulf %x, %y : f32
      %c = memref.load %C[%vb, %vi, %vj] : memref<3x6x7xf32>
      %s = arith.addf %c, %p : f32
      memref.store %s, %C[%vb, %vi, %vj] : memref<3x6x7xf32>
    } } } } }
  func.return
}""",
    ((3, 6, 5), (3, 5, 7)),
    lambda a, b: a @ b,
)


def _conv(x: Array, w: Array) -> Array:
    padded = np.pad(x, 1)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3))
    return np.einsum("ijkl,kl->ij", windows, w)


CONV = Program(
    """
func.func @f(%X: memref<9x8xf32>, %W: memref<3x3xf32>, %Y: memref<9x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c9 = arith.constant 9 : index
  %P = memref.alloc() : memref<11x10xf32>
  tir.for %i in 11 { tir.for %j in 10 {
    tir.block "P" iters(%vi: spatial<11>, %vj: spatial<10>) = [%i, %j] {
      %u = arith.subi %vi, %c1 : index
      %v = arith.subi %vj, %c1 : index
      %p0 = arith.cmpi sge, %u, %c0 : index
      %p1 = arith.cmpi slt, %u, %c9 : index
      %p2 = arith.cmpi sge, %v, %c0 : index
      %p3 = arith.cmpi slt, %v, %c8 : index
      %q0 = arith.andi %p0, %p1 : i1
      %q1 = arith.andi %p2, %p3 : i1
      %q = arith.andi %q0, %q1 : i1
      %x = scf.if %q -> (f32) {
        %inside = memref.load %X[%u, %v] : memref<9x8xf32>
        scf.yield %inside : f32
      } else {
        scf.yield %zero : f32
      }
      memref.store %x, %P[%vi, %vj] : memref<11x10xf32>
    } } }
  tir.for %i in 9 { tir.for %j in 8 { tir.for %k in 3 { tir.for %l in 3 {
    tir.block "Y" iters(%vi: spatial<9>, %vj: spatial<8>, %vk: reduce<3>, %vl: reduce<3>) = [%i, %j, %k, %l] {
      tir.init { memref.store %zero, %Y[%vi, %vj] : memref<9x8xf32> }
      %r = affine.apply affine_map<(d0, d1) -> (d0 + d1)>(%vi, %vk)
      %s = affine.apply affine_map<(d0, d1) -> (d0 + d1)>(%vj, %vl)
      %x = memref.load %P[%r, %s] : memref<11x10xf32>
      %w = memref.load %W[%vk, %vl] : memref<3x3xf32>
      %p = arith.mulf %x, %w : f32
      %y = memref.load %Y[%vi, %vj] : memref<9x8xf32>
      %t = arith.addf %y, %p : f32
      memref.store %t, %Y[%vi, %vj] : memref<9x8xf32>
    } } } } }
  func.return
}""",
    ((9, 8), (3, 3)),
    _conv,
)

ROW_SUM = Program(
    """
func.func @f(%A: memref<7x13xf32>, %C: memref<7x13xf32>) {
  %zero = arith.constant 0.0 : f32
  %S = memref.alloc() : memref<7xf32>
  tir.for %i in 7 { tir.for %j in 13 {
    tir.block "S" iters(%vi: spatial<7>, %vj: reduce<13>) = [%i, %j] {
      tir.init { memref.store %zero, %S[%vi] : memref<7xf32> }
      %a = memref.load %A[%vi, %vj] : memref<7x13xf32>
      %s = memref.load %S[%vi] : memref<7xf32>
      %t = arith.addf %s, %a : f32
      memref.store %t, %S[%vi] : memref<7xf32>
    } } }
  tir.for %i in 7 { tir.for %j in 13 {
    tir.block "C" iters(%vi: spatial<7>, %vj: spatial<13>) = [%i, %j] {
      %a = memref.load %A[%vi, %vj] : memref<7x13xf32>
      %s = memref.load %S[%vi] : memref<7xf32>
      %c = arith.subf %a, %s : f32
      memref.store %c, %C[%vi, %vj] : memref<7x13xf32>
    } } }
  func.return
}""",
    ((7, 13),),
    lambda a: a - a.sum(axis=1, keepdims=True),
)

TRANSPOSE = Program(
    """
func.func @f(%A: memref<9x14xf32>, %C: memref<14x9xf32>) {
  %B = memref.alloc() : memref<9x14xf32>
  tir.for %i in 9 { tir.for %j in 14 {
    tir.block "B" iters(%vi: spatial<9>, %vj: spatial<14>) = [%i, %j] {
      %a = memref.load %A[%vi, %vj] : memref<9x14xf32>
      %b = arith.addf %a, %a : f32
      memref.store %b, %B[%vi, %vj] : memref<9x14xf32>
    } } }
  tir.for %i in 14 { tir.for %j in 9 {
    tir.block "C" iters(%vi: spatial<14>, %vj: spatial<9>) = [%i, %j] {
      %b = memref.load %B[%vj, %vi] : memref<9x14xf32>
      memref.store %b, %C[%vi, %vj] : memref<14x9xf32>
    } } }
  func.return
}""",
    ((9, 14),),
    lambda a: (a + a).T,
)

GATHER = Program(
    """
func.func @f(%A: memref<11xf32>, %I: memref<6xf32>, %C: memref<6xf32>) {
  %c10 = arith.constant 10 : index
  %B = memref.alloc() : memref<11xf32>
  tir.for %i in 11 {
    tir.block "B" iters(%v: spatial<11>) = [%i] {
      %a = memref.load %A[%v] : memref<11xf32>
      %b = arith.addf %a, %a : f32
      memref.store %b, %B[%v] : memref<11xf32>
    } }
  tir.for %i in 6 {
    tir.block "C" iters(%v: spatial<6>) = [%i] {
      %x = memref.load %I[%v] : memref<6xf32>
      %y = math.absf %x : f32
      %z = arith.fptosi %y : f32 to i64
      %n = arith.index_cast %z : i64 to index
      %at = arith.minsi %n, %c10 : index
      %b = memref.load %B[%at] : memref<11xf32>
      memref.store %b, %C[%v] : memref<6xf32>
    } }
  func.return
}""",
    ((11,), (6,)),
    lambda a, i: 2 * a[np.minimum(np.abs(i).astype(int), 10)],
)

WINDOW = Program(
    """
func.func @f(%A: memref<18xf32>, %C: memref<16xf32>) {
  %zero = arith.constant 0.0 : f32
  %B = memref.alloc() : memref<18xf32>
  tir.for %i in 18 {
    tir.block "B" iters(%v: spatial<18>) = [%i] {
      %a = memref.load %A[%v] : memref<18xf32>
      %b = arith.mulf %a, %a : f32
      memref.store %b, %B[%v] : memref<18xf32>
    } }
  tir.for %i in 16 { tir.for %k in 3 {
    tir.block "C" iters(%vi: spatial<16>, %vk: reduce<3>) = [%i, %k] {
      tir.init { memref.store %zero, %C[%vi] : memref<16xf32> }
      %x = affine.apply affine_map<(d0, d1) -> (d0 + d1)>(%vi, %vk)
      %b = memref.load %B[%x] : memref<18xf32>
      %c = memref.load %C[%vi] : memref<16xf32>
      %s = arith.addf %c, %b : f32
      memref.store %s, %C[%vi] : memref<16xf32>
    } } }
  func.return
}""",
    ((18,),),
    lambda a: np.convolve(a * a, np.ones(3), "valid").astype(np.float32),
)

DYNAMIC = Program(
    """
func.func @f(%A: memref<?x?xf32>, %B: memref<?x10xf32>, %C: memref<?x10xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %A, %c0 : memref<?x?xf32>
  %n = memref.dim %A, %c1 : memref<?x?xf32>
  tir.assume_shape %B[%n] : memref<?x10xf32>
  tir.assume_shape %C[%m] : memref<?x10xf32>
  %Y = memref.alloc(%m) : memref<?x10xf32>
  tir.for %i in %m { tir.for %j in 10 { tir.for %k in %n {
    tir.block "Y" iters(%vi: spatial<%m>, %vj: spatial<10>, %vk: reduce<%n>) = [%i, %j, %k] {
      tir.init { memref.store %zero, %Y[%vi, %vj] : memref<?x10xf32> }
      %a = memref.load %A[%vi, %vk] : memref<?x?xf32>
      %b = memref.load %B[%vk, %vj] : memref<?x10xf32>
      %p = arith.mulf %a, %b : f32
      %y = memref.load %Y[%vi, %vj] : memref<?x10xf32>
      %s = arith.addf %y, %p : f32
      memref.store %s, %Y[%vi, %vj] : memref<?x10xf32>
    } } } }
  tir.for %i in %m { tir.for %j in 10 {
    tir.block "C" iters(%vi: spatial<%m>, %vj: spatial<10>) = [%i, %j] {
      %y = memref.load %Y[%vi, %vj] : memref<?x10xf32>
      %c = arith.maximumf %y, %zero : f32
      memref.store %c, %C[%vi, %vj] : memref<?x10xf32>
    } } }
  func.return
}""",
    ((11, 7), (7, 10)),
    lambda a, b: np.maximum(a @ b, 0),
)

TWO_CONSUMERS = Program(
    """
func.func @f(%A: memref<20xf32>, %C: memref<20xf32>, %D: memref<18xf32>) {
  %one = arith.constant 1.0 : f32
  %B = memref.alloc() : memref<20xf32>
  tir.for %i in 20 {
    tir.block "B" iters(%v: spatial<20>) = [%i] {
      %a = memref.load %A[%v] : memref<20xf32>
      %b = arith.mulf %a, %a : f32
      memref.store %b, %B[%v] : memref<20xf32>
    } }
  tir.for %i in 20 {
    tir.block "C" iters(%v: spatial<20>) = [%i] {
      %b = memref.load %B[%v] : memref<20xf32>
      %c = arith.addf %b, %one : f32
      memref.store %c, %C[%v] : memref<20xf32>
    } }
  tir.for %i in 18 {
    tir.block "D" iters(%v: spatial<18>) = [%i] {
      %x = affine.apply affine_map<(d0) -> (d0 + 2)>(%v)
      %b = memref.load %B[%x] : memref<20xf32>
      %e = memref.load %B[%v] : memref<20xf32>
      %d = arith.subf %b, %e : f32
      memref.store %d, %D[%v] : memref<18xf32>
    } }
  func.return
}""",
    ((20,),),
    lambda a: (a * a + 1, (a * a)[2:] - (a * a)[:-2]),
)

PROGRAMS = {
    "chain": CHAIN,
    "matmul_relu": MATMUL_RELU,
    "bmm": BMM,
    "conv": CONV,
    "row_sum": ROW_SUM,
    "transpose": TRANSPOSE,
    "gather": GATHER,
    "window": WINDOW,
    "dynamic": DYNAMIC,
    "two_consumers": TWO_CONSUMERS,
}
