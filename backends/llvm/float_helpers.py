"""The conversions to and from half and bfloat that LLVM calls by name where the CPU has no instruction for
them.

Compilers find them in libgcc or compiler-rt; a Python process often has neither loaded, so code that is
linked into this process gets these.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

HELPERS: Final = frozenset(
    {
        *("__truncsfhf2", "__truncdfhf2", "__truncsfbf2", "__truncdfbf2", "__extendhfsf2"),
        *("__gnu_f2h_ieee", "__gnu_h2f_ieee", "__gnu_d2h_ieee"),
    }
)

HELPERS_FILE: Final = Path(__file__).with_name("float_helpers.ll")
