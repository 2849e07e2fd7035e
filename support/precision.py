"""Types of the factors of products and convolutions, which accumulate in float32."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final

from weft.support.cpu_instructions import has_bf16_products
from weft.support.errors import CompileError, did_you_mean

if TYPE_CHECKING:
    from weft.support.target import Target


class Precision(Enum):
    F32 = "f32"
    BF16 = "bf16"
    F16 = "f16"


_NAMES: Final = {
    **{precision.value: precision for precision in Precision},
    "float32": Precision.F32,
    "bfloat16": Precision.BF16,
    "float16": Precision.F16,
}
_X86: Final = ("x86_64", "i386", "i686")


def parse_precision(text: str, what: str) -> Precision | None:
    """An empty text means the model's precision. Raises `CompileError`; `what` names the option."""
    if not text:
        return None
    if text not in _NAMES:
        raise CompileError(f"{what}: there is no precision '{text}'{did_you_mean(text, _NAMES)}")
    return _NAMES[text]


def check_precision(precision: Precision | None, target: Target) -> None:
    """Raises `CompileError` for float16 without conversion instructions: x86 without F16C would call a function per f16
    element. Any target widens bf16 by a shift."""
    if precision is not Precision.F16 or target.kind != "llvm" or target.architecture not in _X86:
        return
    if not target.has_feature("f16c") and not target.has_feature("avx512f"):
        products = "bf16" if has_bf16_products(target) else "bf16 (in memory; products in float32)"
        raise CompileError(
            f"precision f16: the CPU {target.cpu} has no instructions that convert float16 (F16C); available are f32 "
            f"and {products}"
        )
