"""Which instructions a CPU has for dot products of neighbouring integers.

Each adds, to every lane of 32 bits, the products of a group of narrow integers: x86 has `vpdpbusd` and relatives for
four bytes, and `pmaddwd` for two halves, which does not add to a sum yet; AArch64 has `sdot`, `udot` and `usdot`.
(Intel SDM, "VPDPBUSD", "PMADDWD"; Arm ARM, "SDOT (vector)", "USDOT (vector)")
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

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


_WIDTHS: Final = (512, 256, 128)
_HALVES: Final = {512: ("avx512.pmaddw.d.512", "avx512bw"), 256: ("avx2.pmadd.wd", "avx2"), 128: ("sse2.pmadd.wd", "")}


@cache
def dot_instructions(target: Target) -> tuple[DotInstruction, ...]:
    """What the CPU of a target has, the best first: for bytes before halves, then the widest first. Empty for targets
    that are not compiled by LLVM."""
    if target.kind != "llvm":
        return ()
    if target.architecture == "x86_64":
        return (*_bytes_of_x86(target), *_halves_of_x86(target))
    return _of_aarch64(target) if target.architecture in ("aarch64", "arm64") else ()


def _bytes_of_x86(target: Target) -> tuple[DotInstruction, ...]:
    found: list[DotInstruction] = []
    if target.has_feature("avxvnniint8"):
        for bits in _WIDTHS[1:]:
            found.append(DotInstruction(f"x86.avx2.vpdpbssd.{bits}", bits // 32, 4, True, True))
            found.append(DotInstruction(f"x86.avx2.vpdpbuud.{bits}", bits // 32, 4, False, False))
    for bits in _WIDTHS:
        features = ["avx512vnni"] if bits == 512 else ["avx512vnni", "avx512vl"]
        known = all(map(target.has_feature, features)) or (bits < 512 and target.has_feature("avxvnni"))
        if known and bits <= 8 * target.vector_bytes:
            found.append(DotInstruction(f"x86.avx512.vpdpbusd.{bits}", bits // 32, 4, False, True))
    return tuple(found)


def _halves_of_x86(target: Target) -> tuple[DotInstruction, ...]:
    return tuple(
        DotInstruction(f"x86.{name}", bits // 32, 2, True, True, adds=False)
        for bits, (name, feature) in _HALVES.items()
        if bits <= 8 * target.vector_bytes and (not feature or target.has_feature(feature))
    )


def _of_aarch64(target: Target) -> tuple[DotInstruction, ...]:
    if not target.has_feature("dotprod"):
        return ()
    forms = [("sdot", True, True), ("udot", False, False)]
    if target.has_feature("i8mm"):
        forms.append(("usdot", False, True))
    return tuple(DotInstruction(f"aarch64.neon.{name}.v4i32.v16i8", 4, 4, left, right) for name, left, right in forms)
