"""Which instructions a CPU has for dot products of neighbouring integers.

Each adds, to every lane of 32 bits, the products of a group of narrow integers: x86 has `vpdpbusd` and relatives for
four bytes, and `pmaddwd` for two halves, which does not add to a sum yet; AArch64 has `sdot`, `udot` and `usdot`.
(Intel SDM, "VPDPBUSD", "PMADDWD"; Arm ARM, "SDOT (vector)", "USDOT (vector)")
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from weft.support.target_intrinsics import has_intrinsic

if TYPE_CHECKING:
    from weft.support.target import Target


@dataclass(frozen=True)
class DotInstruction:
    """One instruction, and how it reads its operands. Sums wrap."""

    name: str
    """LLVM's intrinsic, without `llvm.`."""
    lanes: int
    """Sums of 32 bits."""
    group: int
    """Products that each sum gets."""
    left_signed: bool
    right_signed: bool
    adds: bool = True
    """Whether it adds to a sum; it gives the dot products only otherwise."""

    @property
    def bits(self) -> int:
        """Width of what it multiplies."""
        return 32 // self.group

    def takes(self, lanes: int, group: int, left_signed: bool, right_signed: bool) -> bool:
        """Whether it computes this, with its operands in the one order or the other."""
        signs = (self.left_signed, self.right_signed)
        return (self.lanes, self.group) == (lanes, group) and signs in (
            (left_signed, right_signed),
            (right_signed, left_signed),
        )


def _x86_instructions() -> tuple[DotInstruction, ...]:
    """For bytes before halves, then the widest first."""
    signed_bytes = [
        DotInstruction(f"x86.avx2.vpdpb{signs}d.{bits}", bits // 32, 4, signs == "ss", signs == "ss")
        for bits in (256, 128)
        for signs in ("ss", "uu")
    ]
    mixed_bytes = [
        DotInstruction(f"x86.avx512.vpdpbusd.{bits}", bits // 32, 4, False, True) for bits in (512, 256, 128)
    ]
    halves = [
        DotInstruction(f"x86.{name}", lanes, 2, True, True, adds=False)
        for lanes, name in ((16, "avx512.pmaddw.d.512"), (8, "avx2.pmadd.wd"), (4, "sse2.pmadd.wd"))
    ]
    return (*signed_bytes, *mixed_bytes, *halves)


_AARCH64_INSTRUCTIONS: Final = tuple(
    DotInstruction(f"aarch64.neon.{name}.v4i32.v16i8", 4, 4, left, right)
    for name, left, right in (("sdot", True, True), ("udot", False, False), ("usdot", False, True))
)
_INSTRUCTIONS: Final = (*_x86_instructions(), *_AARCH64_INSTRUCTIONS)


@cache
def dot_instructions(target: Target) -> tuple[DotInstruction, ...]:
    """What the CPU of a target has, the best first: for bytes before halves, then the widest first. Empty for targets
    that are not compiled by LLVM."""
    if target.kind != "llvm":
        return ()
    return tuple(
        instruction
        for instruction in _INSTRUCTIONS
        if 4 * instruction.lanes <= target.vector_bytes and has_intrinsic(target, instruction.name)
    )
