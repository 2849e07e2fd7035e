"""Which features of a CPU the intrinsics of LLVM need that are instructions of one architecture.

LLVM ends the process when it has to generate an instruction that its target lacks. Emitters call an intrinsic where
`has_intrinsic` holds; `missing_for` finds the others in LLVM IR, which may come from elsewhere.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weft.support.target import Target

_BYTE_DOTS: Final = {
    f"x86.avx2.vpdpb{signs}d.{bits}": (("avxvnniint8",),) for signs in ("ss", "uu") for bits in (256, 128)
}
_RANGES: Final = {
    f"x86.avx512.mask.range.{element}.{bits}": (("avx512dq", "avx512vl"),)
    for element in ("ps", "pd")
    for bits in (512, 256, 128)
}
FEATURES: Final[Mapping[str, tuple[tuple[str, ...], ...]]] = {
    "x86.sse.sfence": (("sse",),),
    "x86.sse2.pause": ((),),
    "x86.sse2.pmadd.wd": (("sse2",),),
    "x86.avx2.pmadd.wd": (("avx2",),),
    "x86.avx512.pmaddw.d.512": (("avx512bw",),),
    "x86.avx512.vpdpbusd.512": (("avx512vnni",),),
    "x86.avx512.vpdpbusd.256": (("avx512vnni", "avx512vl"), ("avxvnni",)),
    "x86.avx512.vpdpbusd.128": (("avx512vnni", "avx512vl"), ("avxvnni",)),
    **_BYTE_DOTS,
    **_RANGES,
    "x86.avx512.mask.scalef.ps.512": (("avx512f",),),
    "x86.avx512.mask.scalef.pd.512": (("avx512f",),),
    "aarch64.hint": ((),),
    "aarch64.neon.sdot.v4i32.v16i8": (("dotprod",),),
    "aarch64.neon.udot.v4i32.v16i8": (("dotprod",),),
    "aarch64.neon.usdot.v4i32.v16i8": (("i8mm",),),
}
"""Intrinsic without `llvm.` -> sets of features, each of which is enough."""

_ARCHITECTURES: Final = {"x86": ("x86_64", "i386", "i686"), "aarch64": ("aarch64", "arm64")}
"""The first part of an intrinsic's name -> the architectures that have it; for others the part is the architecture."""
_CALL: Final = re.compile(
    r"\bcall\b[^@\n]*@llvm\.((x86|aarch64|arm|riscv|ppc|s390|wasm|loongarch|mips|hexagon|nvvm|amdgcn)\.[\w.]+)\("
)


def has_intrinsic(target: Target, name: str) -> bool:
    """Whether the CPU of `target` has the instruction of an intrinsic of `FEATURES`."""
    known = FEATURES[name]
    return _has_architecture(target, name) and any(all(map(target.has_feature, features)) for features in known)


def _has_architecture(target: Target, name: str) -> bool:
    part = name.split(".", 1)[0]
    return target.architecture in _ARCHITECTURES.get(part, (part, f"{part}64"))


def called_intrinsics(text: str) -> frozenset[str]:
    """The intrinsics of particular architectures that LLVM IR calls, without `llvm.`."""
    return frozenset(match[1] for match in _CALL.finditer(text))


def missing_for(target: Target, name: str) -> str:
    """What `target` lacks to have the instruction of an intrinsic, in words; empty where it lacks nothing, or where the
    intrinsic is not in the table."""
    if not _has_architecture(target, name):
        return f"is an instruction of {name.split('.', 1)[0]}"
    if name not in FEATURES or has_intrinsic(target, name):
        return ""
    return "needs " + " or ".join(" with ".join(features) for features in FEATURES[name])
