"""What calls check of the numbers that a function takes (`low.assume`), as ranges of its parameters.

`n % 32 == 0` proves alignment, `m <= 1024` proves that arithmetic on m has 32 bits. Facts of any other form are passed
over: they cost nothing but speed. A kernel knows of its numbers what the function that launches it knows.
"""

from __future__ import annotations

import re
from math import lcm
from typing import TYPE_CHECKING

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from weft.backends.c_family.index_ranges import IndexRange
from weft.dialects.low import PARAMS, params_of, preconditions_of, stride_symbols, symbols_of
from weft.dialects.low_kernel import LaunchOp

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

_MULTIPLE = re.compile(r"([^\W\d]\w*) % (\d+) == 0")
_BOUND = re.compile(r"([^\W\d]\w*) (<=|<|==) (\d+)")


def assumed(function: FuncOp) -> dict[SSAValue, IndexRange]:
    """Facts about the index parameters of a function that callers call; extents are not negative."""
    if PARAMS not in function.attributes:
        return {}
    names = [param.label.data for param in params_of(function)]
    symbols = symbols_of(function)
    extents = set(symbols) - stride_symbols(function)
    arguments = dict(zip((*names, *symbols), function.args, strict=True))
    found: dict[SSAValue, IndexRange] = {
        argument: IndexRange.extent() if name in extents else IndexRange.number()
        for name, argument in arguments.items()
        if isinstance(argument.type, IndexType)
    }
    for fact in preconditions_of(function):
        known = None
        if match := _MULTIPLE.fullmatch(fact.text):
            argument = arguments[match[1]]
            known = found.get(argument)
            if known is not None:
                found[argument] = IndexRange(known.low, known.high, lcm(known.divisor, int(match[2])))
        elif match := _BOUND.fullmatch(fact.text):
            argument, bound = arguments[match[1]], int(match[3]) - (match[2] == "<")
            known = found.get(argument)
            if known is not None:
                low = max(known.low, bound) if match[2] == "==" else known.low
                found[argument] = IndexRange(low, max(min(known.high, bound), low), known.divisor)
    return found


def assumed_of_kernels(module: ModuleOp) -> dict[str, dict[int, IndexRange]]:
    """Kernel -> ranges of its parameters by position, which hold in all of its launches."""
    found: dict[str, dict[int, IndexRange]] = {}
    for host in module.ops:
        if not isinstance(host, FuncOp):
            continue
        known = assumed(host)
        for op in host.walk():
            if isinstance(op, ConstantOp) and isinstance(op.value, IntegerAttr):
                known[op.result] = IndexRange.constant(op.value.value.data)
            elif isinstance(op, LaunchOp):
                here = {
                    position: known[argument] for position, argument in enumerate(op.arguments) if argument in known
                }
                name = op.kernel.string_value()
                before = found.get(name)
                found[name] = here if before is None else _both(before, here)
    return found


def _both(first: dict[int, IndexRange], second: dict[int, IndexRange]) -> dict[int, IndexRange]:
    """What holds in either case."""
    return {position: a | second[position] for position, a in first.items() if position in second}
