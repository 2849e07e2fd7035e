"""The accelerator's instructions as tensor intrinsics: the computation of each, and the call that implements it.

The second factor of a product is transposed, as in hardware: C[i, j] += A[i, k] * B[j, k].
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import weft

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

A_REG, B_REG, ACCUMULATOR = "global.A_reg", "global.B_reg", "global.accumulator"
"""Memory scopes, as named in schedules."""
FILL, LOAD_A, LOAD_B, TMM, STORE = (f"accelerator.{name}" for name in ("fill", "load_a", "load_b", "tmm", "store"))
"""Tensor intrinsics."""
_POINTER = "!ptr_xdsl.ptr"


def register() -> None:
    """Register the intrinsics for `Schedule.tensorize`."""
    known = {
        FILL: (_description_of_fill(), _call("accelerator_fill", {"Y": (ACCUMULATOR, "write")})),
        LOAD_A: (_copy("", A_REG), _call("accelerator_load", {"Y": (A_REG, "write"), "X": ("", "read")})),
        LOAD_B: (_copy("", B_REG), _call("accelerator_load", {"Y": (B_REG, "write"), "X": ("", "read")})),
        STORE: (_copy(ACCUMULATOR, ""), _call("accelerator_store", {"Y": ("", "write"), "X": (ACCUMULATOR, "read")})),
        TMM: (
            _description_of_product(),
            _call("accelerator_tmm", {"C": (ACCUMULATOR, "readwrite"), "A": (A_REG, "read"), "B": (B_REG, "read")}),
        ),
    }
    for name, (description, implementation) in known.items():
        weft.register_tensor_intrinsic(name, description, implementation, override=True)


def _tile(scope: str) -> str:
    return f'memref<16x16xf32, "{scope}">' if scope else "memref<16x16xf32>"


def _part(scope: str) -> str:
    """The type of a tile within a larger buffer."""
    space = f', "{scope}"' if scope else ""
    return f"memref<16x16xf32, strided<[?, 1], offset: ?>{space}>"


def _call(callee: str, buffers: Mapping[str, tuple[str, str]]) -> ModuleOp:
    """A call of an instruction with a pointer and the row stride of each buffer: name -> scope and access."""
    types = ", ".join(f"{_POINTER}, index" for _ in buffers)
    pointers = "\n".join(
        f"  %p{name} = low.access_ptr %{name}[%c0, %c0] sizes [16, 16] {access} : {_part(scope)}\n"
        f"  %s{name} = low.stride %{name} {{dimension = 0}} : {_part(scope)}"
        for name, (scope, access) in buffers.items()
    )
    return weft.parse(f"""
func.func private @{callee}({types})
func.func @implementation({", ".join(f"%{name}: {_part(buffers[name][0])}" for name in sorted(buffers))}) {{
  %c0 = arith.constant 0 : index
{pointers}
  func.call @{callee}({", ".join(f"%p{name}, %s{name}" for name in buffers)}) : ({types}) -> ()
  func.return
}}""")


def _copy(source: str, target: str) -> ModuleOp:
    return weft.parse(f"""
func.func @description(%X: {_tile(source)}, %Y: {_tile(target)}) {{
  tir.for %i in 16 {{ tir.for %j in 16 {{
    tir.block "copy" iters(%vi: spatial<16>, %vj: spatial<16>) = [%i, %j] {{
      %x = memref.load %X[%vi, %vj] : {_tile(source)}
      memref.store %x, %Y[%vi, %vj] : {_tile(target)}
    }} }} }}
  func.return
}}""")


def _description_of_fill() -> ModuleOp:
    return weft.parse(f"""
func.func @description(%Y: {_tile(ACCUMULATOR)}) {{
  %zero = arith.constant 0.0 : f32
  tir.for %i in 16 {{ tir.for %j in 16 {{
    tir.block "fill" iters(%vi: spatial<16>, %vj: spatial<16>) = [%i, %j] {{
      memref.store %zero, %Y[%vi, %vj] : {_tile(ACCUMULATOR)}
    }} }} }}
  func.return
}}""")


def _description_of_product() -> ModuleOp:
    return weft.parse(f"""
func.func @description(%A: {_tile(A_REG)}, %B: {_tile(B_REG)}, %C: {_tile(ACCUMULATOR)}) {{
  tir.for %i in 16 {{ tir.for %j in 16 {{ tir.for %k in 16 {{
    tir.block "tmm" iters(%vi: spatial<16>, %vj: spatial<16>, %vk: reduce<16>) = [%i, %j, %k] {{
      %c = memref.load %C[%vi, %vj] : {_tile(ACCUMULATOR)}
      %a = memref.load %A[%vi, %vk] : {_tile(A_REG)}
      %b = memref.load %B[%vj, %vk] : {_tile(B_REG)}
      %p = arith.mulf %a, %b : f32
      %s = arith.addf %c, %p : f32
      memref.store %s, %C[%vi, %vj] : {_tile(ACCUMULATOR)}
    }} }} }} }}
  func.return
}}""")
