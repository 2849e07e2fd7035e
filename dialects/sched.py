"""sched: schedules as IR. A trace is a `sched.func`: it prints, parses, verifies, replays, and can be rewritten.

```mlir
sched.func @schedule {
  %y = sched.get_block "Y" in @mm_relu : block
  %i, %j, %k = sched.get_loops %y : loop, loop, loop
  %j0, %j1 = sched.split %j {factors = [0, 4]} : loop, loop
  sched.reorder %j0, %k, %j1
}
```
Handles are SSA values. A step that takes a loop apart *consumes* its handle: the verifier rejects a later use. All
steps share one form: operands, then properties in braces, then result types.
"""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, Dialect
from xdsl.irdl import irdl_op_definition, opt_prop_def, prop_def, result_def
from xdsl.parser import Parser
from xdsl.printer import Printer

from weft.dialects.sched_parameters import (
    BLOCK,
    INT,
    LOOP,
    SAMPLED,
    BlockType,
    FuncOp,
    IntType,
    LoopType,
    StepOp,
    define,
    integers_of,
)
from weft.dialects.sched_steps import PRIMITIVE_STEPS, QUERY_STEPS, SAMPLING_STEPS
from weft.support.locations import record_places

__all__ = [
    "BLOCK",
    "INT",
    "LOOP",
    "SAMPLED",
    "SCHED",
    "STEPS",
    "FuncOp",
    "GetBlockOp",
    "QueryOp",
    "SamplingOp",
    "StepOp",
    "integers_of",
]


class QueryOp(StepOp):
    """A step that only looks."""


class SamplingOp(StepOp):
    """A step that draws when it has no `decision`."""


@irdl_op_definition
class GetBlockOp(QueryOp):
    """`%y = sched.get_block "Y" in @mm_relu : block`. The function may be left out when only one has such a block."""

    name = "sched.get_block"

    label = prop_def(StringAttr)
    func = opt_prop_def(StringAttr)
    block = result_def(BLOCK)

    @classmethod
    def parse_leading(cls, parser: Parser) -> dict[str, Attribute]:
        properties: dict[str, Attribute] = {"label": StringAttr(parser.parse_str_literal("block name"))}
        if parser.parse_optional_keyword("in") is not None:
            properties["func"] = parser.parse_symbol_name()
        return properties

    def print_leading(self, printer: Printer) -> frozenset[str]:
        printer.print_string(" ")
        printer.print_string_literal(self.label.data)
        if self.func is not None:
            printer.print_string(" in ")
            printer.print_symbol_name(self.func.data)
        return frozenset({"label", "func"})


STEPS: dict[str, type[StepOp]] = {
    "get_block": GetBlockOp,
    **{
        step.name: define(step, base)
        for base, steps in ((QueryOp, QUERY_STEPS), (SamplingOp, SAMPLING_STEPS), (StepOp, PRIMITIVE_STEPS))
        for step in steps.values()
    },
}
"""The op of each step."""

SCHED = Dialect("sched", record_places([FuncOp, *STEPS.values()]), [BlockType, LoopType, IntType])
