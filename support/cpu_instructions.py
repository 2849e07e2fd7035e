"""CPU instructions with LLVM intrinsics, and the CPU features that each requires.

LLVM aborts the process if the target lacks an instruction, so emitters require `has_intrinsic`, and `missing_for`
checks other LLVM IR.

Dot-product instructions add, per 32-bit lane, the products of a group of narrow integers: x86 has `vpdpbusd` and its
relatives for four bytes, `pmaddwd` for two 16-bit integers, without accumulator; AArch64 has `sdot`, `udot` and
`usdot`. `pmaddubsw` adds two products of unsigned and signed bytes with saturation to 16 bits. If unsigned factors have
at most 7 bits, it is exact (2 * 127 * 128 < 2 ** 15), and `pmaddwd` by ones adds the pairs. Those for pairs of bf16
accumulate in float32: `vdpbf16ps` and `bfdot`, which flush subnormal numbers to zero. (Intel SDM, "VPDPBUSD",
"PMADDWD", "PMADDUBSW", "VDPBF16PS"; Arm ARM, "SDOT (vector)", "USDOT (vector)", "BFDOT (vector)")

AMX multiplies tiles of 16 rows of 64 bytes in dedicated registers (Intel SDM, "TDPBF16PS", "TDPBUSD"). Linux grants
them to a process on request (`arch_prctl`); weft requests them on Linux only.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weft.support.target import Target

Features: TypeAlias = tuple[tuple[str, ...], ...]
"""Alternative sets of CPU features, each of which suffices."""


@dataclass(frozen=True)
class Factor:
    """The factors of a dot product: bf16, or integers in elements of `bits` bits."""

    bits: int
    signed: bool
    floats: bool = False
    width: int | None = None
    """The number of bits of unsigned integers, if they have less than an element."""

    def fits(self, bits: int, most: int, signed: bool) -> bool:
        """Returns whether all factors are integers of `most` bits, in elements of `bits`."""
        width = self.width or self.bits
        return self.bits == bits and (width <= most if self.signed is signed else signed and width < most)


BYTE: Final = Factor(8, False)
SIGNED_BYTE: Final = Factor(8, True)
BF16: Final = Factor(16, True, floats=True)


@dataclass(frozen=True)
class DotInstruction:
    """Sums wrap."""

    name: str
    """LLVM's intrinsic, without `llvm.`."""
    lanes: int
    """The number of 32-bit accumulators."""
    group: int
    """Products per accumulator."""
    left_signed: bool
    right_signed: bool
    features: Features
    adds: bool = True
    """Whether the instruction adds to an accumulator; otherwise it returns only the dot products."""
    floats: bool = False
    """Whether the instruction multiplies bf16 and accumulates in float32."""
    left_width: int | None = None
    """The number of bits of left factors with which the products are exact, or None for all bits."""
    pairs: str = ""
    """LLVM's intrinsic, without `llvm.`, that multiplies the results by ones and adds each two, if there is one."""

    @property
    def bits(self) -> int:
        return 32 // self.group

    def takes(self, lanes: int, group: int, left: Factor, right: Factor) -> bool:
        """Accepts swapped operands too."""
        if (self.lanes, self.group) != (lanes, group):
            return False
        return self.takes_in_order(left, right) or self.takes_in_order(right, left)

    def takes_in_order(self, left: Factor, right: Factor) -> bool:
        if left.floats is not self.floats or right.floats is not self.floats:
            return False
        most = self.left_width or self.bits
        return left.fits(self.bits, most, self.left_signed) and right.fits(self.bits, self.bits, self.right_signed)


_TILE_PRODUCTS: Final[Mapping[tuple[bool | None, bool | None], str]] = {
    (None, None): "x86.tdpbf16ps",
    **{(a == "s", b == "s"): f"x86.tdpb{a}{b}d" for a in "su" for b in "su"},
}
"""Maps whether the elements of A and of B are signed bytes, or None for bf16, to the instruction."""
_TILE_MOVES: Final = ("x86.ldtilecfg", "x86.tilerelease", "x86.tilezero", "x86.tileloadd64", "x86.tilestored64")
_EITHER_VNNI: Final = (("avx512vnni", "avx512vl"), ("avxvnni",))
_DOT_INSTRUCTIONS: Final = (
    *(
        DotInstruction(f"x86.avx2.vpdpb{signs}d.{bits}", bits // 32, 4, signed, signed, (("avxvnniint8",),))
        for bits in (256, 128)
        for signs, signed in (("ss", True), ("uu", False))
    ),
    *(
        DotInstruction(f"x86.avx512.vpdpbusd.{bits}", bits // 32, 4, False, True, features)
        for bits, features in ((512, (("avx512vnni",),)), (256, _EITHER_VNNI), (128, _EITHER_VNNI))
    ),
    *(
        DotInstruction(f"x86.{name}", lanes, 4, False, True, ((feature,),), False, False, 7, f"x86.{pairs}")
        for lanes, name, pairs, feature in (
            (16, "avx512.pmaddubs.w.512", "avx512.pmaddw.d.512", "avx512bw"),
            (8, "avx2.pmadd.ub.sw", "avx2.pmadd.wd", "avx2"),
            (4, "ssse3.pmadd.ub.sw.128", "sse2.pmadd.wd", "ssse3"),
        )
    ),
    *(
        DotInstruction(f"x86.{name}", lanes, 2, True, True, ((feature,),), adds=False)
        for lanes, name, feature in (
            (16, "avx512.pmaddw.d.512", "avx512bw"),
            (8, "avx2.pmadd.wd", "avx2"),
            (4, "sse2.pmadd.wd", "sse2"),
        )
    ),
    *(
        DotInstruction(f"aarch64.neon.{name}.v4i32.v16i8", 4, 4, left, right, ((feature,),))
        for name, left, right, feature in (
            ("sdot", True, True, "dotprod"),
            ("udot", False, False, "dotprod"),
            ("usdot", False, True, "i8mm"),
        )
    ),
    *(
        DotInstruction(f"x86.avx512bf16.dpbf16ps.{bits}", bits // 32, 2, True, True, (features,), floats=True)
        for bits, features in (
            (512, ("avx512bf16",)),
            (256, ("avx512bf16", "avx512vl")),
            (128, ("avx512bf16", "avx512vl")),
        )
    ),
    DotInstruction("aarch64.neon.bfdot.v4f32.v8bf16", 4, 2, True, True, (("bf16",),), floats=True),
)
"""The instructions in order of preference: bytes before 16-bit integers, then the widest first; floats are last."""


@dataclass(frozen=True)
class IntegerConversion:
    """Converts floats to signed integers; NaN and numbers out of range become the least integer. (Intel SDM,
    "CVTTPS2DQ", "CVTTPD2QQ")"""

    name: str
    """LLVM's intrinsic, without `llvm.`."""
    lanes: int
    source_bits: int
    bits: int
    features: Features
    masked: bool = True
    """Whether its operands include the values of masked-out lanes and a mask."""

    @property
    def has_rounding(self) -> bool:
        return self.masked and max(self.source_bits, self.bits) * self.lanes == 512


_INTEGER_CONVERSIONS: Final = (
    IntegerConversion("x86.avx512.mask.cvttps2dq.512", 16, 32, 32, (("avx512f",),)),
    IntegerConversion("x86.avx.cvtt.ps2dq.256", 8, 32, 32, (("avx",),), masked=False),
    IntegerConversion("x86.sse2.cvttps2dq", 4, 32, 32, (("sse2",),), masked=False),
    IntegerConversion("x86.avx512.mask.cvttpd2dq.512", 8, 64, 32, (("avx512f",),)),
    IntegerConversion("x86.avx.cvtt.pd2dq.256", 4, 64, 32, (("avx",),), masked=False),
    *(
        IntegerConversion(f"x86.avx512.mask.cvtt{source}2qq.{64 * lanes}", lanes, bits, 64, features)
        for source, bits in (("ps", 32), ("pd", 64))
        for lanes, features in ((8, (("avx512dq",),)), (4, (("avx512dq", "avx512vl"),)))
    ),
)
"""The instructions. Those of a pair of types are sorted from the widest."""

TABLE_LOOKUP: Final = "x86.avx512.vpermi2var.qi.512"
"""The intrinsic, without `llvm.`, that selects bytes of two vectors by seven bits of an index. (Intel SDM,
"VPERMI2B")"""

FEATURES: Final[Mapping[str, Features]] = {
    "x86.sse.sfence": (("sse",),),
    "x86.sse2.clflush": ((),),
    "x86.sse2.pause": ((),),
    **{instruction.name: instruction.features for instruction in _DOT_INSTRUCTIONS},
    **{
        f"x86.avx512.mask.range.{element}.{bits}": (("avx512dq", "avx512vl"),)
        for element in ("ps", "pd")
        for bits in (512, 256, 128)
    },
    **dict.fromkeys(_TILE_MOVES, (("amx-tile",),)),
    **{
        name: (("amx-tile", "amx-bf16" if signs == (None, None) else "amx-int8"),)
        for signs, name in _TILE_PRODUCTS.items()
    },
    TABLE_LOOKUP: (("avx512vbmi",),),
    "x86.avx512.mask.scalef.ps.512": (("avx512f",),),
    "x86.avx512.mask.scalef.pd.512": (("avx512f",),),
    **{conversion.name: conversion.features for conversion in _INTEGER_CONVERSIONS},
    "aarch64.hint": ((),),
}
"""Maps an intrinsic without `llvm.` to the required features."""

_ARCHITECTURES: Final = {"x86": ("x86_64", "i386", "i686"), "aarch64": ("aarch64", "arm64")}
"""Maps the first part of an intrinsic's name to its architectures; other parts are the architecture."""
_NAME: Final = re.compile(
    r"@llvm\.((?:x86|aarch64|arm|riscv|ppc|s390|wasm|loongarch|mips|hexagon|nvvm|amdgcn)\.[\w.]+)\("
)
_CALL: Final = re.compile(r"\bcall\b[^@\n]*$")


def has_intrinsic(target: Target, name: str) -> bool:
    known = FEATURES[name]
    return _has_architecture(target, name) and any(all(map(target.has_feature, features)) for features in known)


def _has_architecture(target: Target, name: str) -> bool:
    part = name.split(".", 1)[0]
    return target.architecture in _ARCHITECTURES.get(part, (part, f"{part}64"))


def called_intrinsics(text: str) -> frozenset[str]:
    """Names are without `llvm.`."""
    # Models are long and such names rare, so the line before the name is searched only for these.
    found = ((match[1], match.start()) for match in _NAME.finditer(text))
    return frozenset(name for name, at in found if _CALL.search(text, text.rfind("\n", 0, at) + 1, at))


def missing_for(target: Target, name: str) -> str:
    """Returns the reason why `target` lacks an instruction; empty if it has it, or for other intrinsics."""
    if not _has_architecture(target, name):
        return f"is an instruction of {name.split('.', 1)[0]}"
    if name not in FEATURES or has_intrinsic(target, name):
        return ""
    return "needs " + " or ".join(" with ".join(features) for features in FEATURES[name])


@cache
def dot_instructions(target: Target) -> tuple[DotInstruction, ...]:
    """Best first; empty for targets that LLVM does not compile."""
    if target.kind != "llvm":
        return ()
    return tuple(
        instruction
        for instruction in _DOT_INSTRUCTIONS
        if 4 * instruction.lanes <= target.vector_bytes and has_intrinsic(target, instruction.name)
    )


def has_dot_product(target: Target, left: Factor, right: Factor) -> bool:
    return any(i.takes(i.lanes, 32 // left.bits, left, right) for i in dot_instructions(target))


def has_bf16_products(target: Target) -> bool:
    """Returns whether products of bf16, accumulated in float32, are faster than those of float32."""
    if tile_product_intrinsic(target, None, None):
        return True
    return target.processor.bf16_dots_pay and has_dot_product(target, BF16, BF16)


def tile_product_intrinsic(target: Target, a_signed: bool | None, b_signed: bool | None) -> str:
    """Returns the intrinsic, without `llvm.`, that adds the product of two tiles of signed or unsigned bytes, or of
    bf16 (None); empty if the CPU or the operating system has none."""
    name = _TILE_PRODUCTS[a_signed, b_signed]
    is_known = target.kind in ("llvm", "c") and "linux" in target.triple and target.architecture == "x86_64"
    return name if is_known and has_intrinsic(target, name) else ""


def has_table_lookup(target: Target) -> bool:
    """Returns whether a CPU has lookups in a table of 256 bytes in registers."""
    return target.vector_bytes == 64 and has_intrinsic(target, TABLE_LOOKUP)


def range_intrinsic(bits: int, element_bits: int) -> str:
    return f"x86.avx512.mask.range.{'ps' if element_bits == 32 else 'pd'}.{bits}"


def range_lanes(target: Target, lanes: int, element_bits: int) -> int:
    """Returns the lanes per register for `range_intrinsic`, or 0 if the CPU lacks it or the vector does not fill
    registers: LLVM splits and pads such vectors better."""
    whole = lanes * element_bits
    size = min(whole, 8 * target.vector_bytes)
    fills = size in (128, 256, 512) and whole % size == 0
    return size // element_bits if fills and has_intrinsic(target, range_intrinsic(size, element_bits)) else 0


@cache
def conversion_to_integer(target: Target, lanes: int, source_bits: int, bits: int) -> IntegerConversion | None:
    """Returns the widest instruction for vectors of `lanes` floats, possibly in parts, or None. Scalars have 0
    lanes."""
    for conversion in _INTEGER_CONVERSIONS:
        widest = conversion.lanes * max(source_bits, bits) // 8
        if (
            (conversion.source_bits, conversion.bits) == (source_bits, bits)
            and lanes
            and lanes % conversion.lanes == 0
            and widest <= target.vector_bytes
            and has_intrinsic(target, conversion.name)
        ):
            return conversion
    return None
