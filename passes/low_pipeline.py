"""The passes from loops of tir to low, with the reason for each position."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.passes.low.low_canonicalize import LowCanonicalizePass
from weft.passes.low.low_choose_threads import ChooseThreadsPass
from weft.passes.low.low_expand_math import LowExpandMathPass
from weft.passes.low.low_forward_stores import ForwardStoresPass
from weft.passes.low.low_legalize import TARGETS as LEGALIZED
from weft.passes.low.low_legalize import LowLegalizePass
from weft.passes.low.low_lower_dots import LowerDotsPass
from weft.passes.low.low_lower_intrinsics import LowerIntrinsicsPass
from weft.passes.tir.tir_lower_loops import LowerLoopsPass
from weft.support.gpu_machine import GPU_KINDS

if TYPE_CHECKING:
    from xdsl.passes import ModulePass


def loops_to_low(target: str) -> tuple[ModulePass, ...]:
    """The passes from loops over flat buffers to low for a target."""
    kind = target.partition(" ")[0]
    return (
        # First: the passes before simplify indices by ranges of tir loops.
        LowerLoopsPass(),
        # Emitters print the module as it is.
        LowCanonicalizePass(),
        # After CSE, which makes equal indices one value. Kernel compilers need not promote buffers then.
        *((ForwardStoresPass(),) if kind in GPU_KINDS else ()),
        # Before legalisation: rules are selected by the types of the program.
        LowerIntrinsicsPass(kind),
        # After CSE, which makes equal addresses one value; before conversions are widened.
        LowerDotsPass(target),
        # After rules of users, which take precedence. C compilers expand functions themselves.
        *((LowExpandMathPass(target),) if kind in ("llvm", *GPU_KINDS) else ()),
        # Rewrites what the passes before leave or insert.
        *((LowLegalizePass(target),) if kind in LEGALIZED else ()),
        # Last: counts instructions of expanded functions.
        *((ChooseThreadsPass(target),) if kind in ("llvm", "c") else ()),
    )
