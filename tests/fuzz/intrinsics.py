"""Tensor intrinsics that are made as they are needed: a row copied in one piece, the last element first."""

from __future__ import annotations

import re

from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType, StringAttr

import weft
from weft.dialects.tir import BlockOp

SPACES = {"": "", "local": ', "local"', "shared": ', "shared"', "global.copy": ', "global.copy"'}
_NAMES = re.compile(r"fuzz\.copy\.(\w+)\.(\d+)\.([\w.]*)-([\w.]*)")

_DESCRIPTION = """
func.func @description(%A: memref<{n}x{type}{source}>, %C: memref<{n}x{type}{target}>) {{
  tir.for %i in {n} {{ tir.block "row" iters(%v: spatial<{n}>) = [%i] {{
    %a = memref.load %A[%v] : memref<{n}x{type}{source}>
    memref.store %a, %C[%v] : memref<{n}x{type}{target}>
  }} }}
  func.return
}}"""
_IMPLEMENTATION = """
func.func @implementation(%A: memref<{n}x{type}{source}>, %C: memref<{n}x{type}{target}>) {{
  tir.for %i in {n} {{ tir.block "turned" iters(%v: spatial<{n}>) = [%i] {{
    %at = affine.apply affine_map<(d0) -> ({n} - 1 - d0)>(%v)
    %a = memref.load %A[%at] : memref<{n}x{type}{source}>
    memref.store %a, %C[%at] : memref<{n}x{type}{target}>
  }} }}
  func.return
}}"""


def copy_intrinsic(block: BlockOp, length: int) -> str | None:
    """The name of an intrinsic that copies `length` elements as a block does; None when the block does more."""
    loads = [op for op in block.body.block.ops if isinstance(op, memref.LoadOp)]
    stores = [op for op in block.body.block.ops if isinstance(op, memref.StoreOp)]
    if len(loads) != 1 or len(stores) != 1 or stores[0].value is not loads[0].res:
        return None
    spaces: list[str] = []
    for type_ in (loads[0].memref.type, stores[0].memref.type):
        space = type_.memory_space if isinstance(type_, MemRefType) else None
        spaces.append(space.data if isinstance(space, StringAttr) else "")
    if any(space not in SPACES for space in spaces):
        return None
    name = f"fuzz.copy.{loads[0].res.type}.{length}.{spaces[0]}-{spaces[1]}"
    register_intrinsics_in(name)
    return name


def register_intrinsics_in(text: str) -> None:
    """Make the intrinsics that a text names known: it may come from another process."""
    for element, length, source, target in _NAMES.findall(text):
        parts = {"n": length, "type": element, "source": SPACES[source], "target": SPACES[target]}
        weft.register_tensor_intrinsic(
            f"fuzz.copy.{element}.{length}.{source}-{target}",
            weft.parse(_DESCRIPTION.format(**parts)),
            weft.parse(_IMPLEMENTATION.format(**parts)),
            override=True,
        )
