"""The objects that acme registers for xDSL's drivers, and the properties of its operations for weft."""

from __future__ import annotations

from xdsl.ir import Dialect
from xdsl.passes import ModulePass
from xdsl.universe import Universe

import weft
from acme.dialect import AddOp, ClipOp, FixedType, LookupOp, MulOp
from weft.interp.values import BufferStorage


def _dialect() -> Dialect:
    from acme.dialect import ACME

    return ACME


def _pass(name: str) -> type[ModulePass]:
    from acme import passes

    found: type[ModulePass] = getattr(passes, name)
    return found


ACME_UNIVERSE = Universe(
    all_dialects={"acme": _dialect},
    all_passes={
        "acme-fixed-to-integers": lambda: _pass("FixedToIntegersPass"),
        "acme-limit-lookups": lambda: _pass("LimitLookupsPass"),
        "acme-lower-ops": lambda: _pass("LowerOpsPass"),
        "acme-to-upstream": lambda: _pass("ToUpstreamPass"),
    },
)


def _clip(op: ClipOp, x: float) -> float:
    limit = op.limit.value.data
    return min(max(x, -limit), limit)


def _lookup(op: LookupOp, table: BufferStorage, position: int) -> float:
    return table.data[min(max(position, 0), len(table.data) - 1)]


# The levels at which the operations are legal, and their semantics for the interpreter and `--validate`. Their effects
# are those of their traits. Numbers of `!acme.fixed` are 16-bit integers, in arrays and in `meaning`.
weft.register_operation(ClipOp, levels=("tir",), meaning=_clip)
weft.register_operation(LookupOp, levels=("tir",), meaning=_lookup)
weft.register_operation(AddOp, levels=("tir",), meaning=lambda op, x, y: x + y)
weft.register_operation(MulOp, levels=("tir",), meaning=lambda op, x, y: x * y >> op.result.type.fraction.data)
weft.register_element_type(FixedType, "int16")
