"""convert-from-upstream: upstream dialects to weft's levels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from weft.dialects.promises import parse_promises
from weft.dialects.traversal import operations_in
from weft.dialects.upstream.linalg_forms import is_structured
from weft.passes.convert.returned_parameters import drop_returned_parameters
from weft.passes.convert.upstream_functions import (
    STABLEHLO,
    called_together,
    convertible,
    is_foreign,
    tensor_functions,
    upstream_dialects,
)
from weft.support.errors import remark

_LANES: Final = frozenset(("gpu", "vector"))


@dataclass(frozen=True)
class ConvertFromUpstreamPass(ModulePass):
    """Convert every function of upstream dialects by the applicable passes: `convert-stablehlo-to-te`;
    `convert-upstream-to-low` for vectors and kernel launches; `bufferize-tensors` and `convert-linalg-to-tir` for
    tensors and linalg; `raise-affine-to-tir` for loops over buffers.

    Requires: functions without operations of weft's levels; others are unchanged.

    Leaves: functions of tensor expressions, of block loops, and low functions. `weft.build`, `weft.schedule_of` and
    `weft run` begin with this pass.

    Raises the `CompileError`s of these passes.
    """

    name = "convert-from-upstream"

    promises: tuple[str, ...] = ()
    """Assumptions of compilers about callers: `noalias`, `contract`, `reassoc`."""
    strict: bool = False
    """Whether remarks are errors."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if not convert_from_upstream(ctx, op, self.promises, strict=self.strict):
            remark(op, f"{self.name}: the module has no function of upstream dialects", strict=self.strict)


def convert_from_upstream(
    ctx: Context, module: ModuleOp, promises: tuple[str, ...] = (), *, strict: bool = False
) -> bool:
    """Convert in place; return whether there were any upstream functions."""
    kinds = {
        function: dialects
        for function in module.ops
        if isinstance(function, FuncOp) and (dialects := upstream_dialects(function))
    }
    if not kinds:
        return False
    together = called_together(list(kinds), tensor_functions(module))
    functions = [*kinds, *(function for function in together if function not in kinds)]
    kept = convertible(module, ConvertFromUpstreamPass.name, functions, in_blocks=True, strict=strict)
    kept = [function for function in kept if function in kinds]
    drop_returned_parameters(module, kept)
    # Imports are deferred, so that modules of weft's own levels do not pay for them.
    if any(STABLEHLO & kinds[function] for function in kept):
        from weft.passes.convert.convert_stablehlo_to_te import convert_stablehlo  # start-up: 224 ms

        convert_stablehlo(module, strict=strict)
    with_lanes = [f for f in kept if _LANES & kinds[f] and not any(map(is_foreign, operations_in(f)))]
    if with_lanes:
        from weft.passes.convert.convert_upstream_to_low import convert_upstream_to_low  # start-up: 175 ms

        convert_upstream_to_low(module, promises, with_lanes, strict=strict)
    # before linalg, because copies and elementwise operations become linalg
    from weft.passes.convert.bufferize_tensors import bufferize_functions  # start-up: 63 ms
    from weft.passes.convert.tensor_decompositions import decompose  # start-up: 1 ms, with the module above

    mine = [function for function in kept if not STABLEHLO & kinds[function]]
    decompose(mine)
    promised = parse_promises(promises)
    bufferize_functions(called_together(mine, tensor_functions(module)), promised, asserts=True)
    if any(is_structured(op) for function in mine for op in operations_in(function)):
        from weft.passes.convert.convert_linalg_to_tir import (  # start-up: 232 ms
            ConvertLinalgToTirPass,
            linalg_functions,
        )

        found = linalg_functions(module)
        left = {function for function in found if function not in mine}
        ConvertLinalgToTirPass(promises, strict).convert(module, [f for f in found if f in mine], promised, left)
    from weft.passes.convert.raise_affine_to_tir import RaiseAffineToTirPass, is_raised_alone  # start-up: 146 ms

    loops = [function for function in mine if is_raised_alone(function)]
    if loops:
        RaiseAffineToTirPass(promises, strict).convert(module, loops, promised)
    return True
