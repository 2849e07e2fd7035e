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

from collections.abc import Mapping, Sequence
from typing import ClassVar

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, StringAttr, SymbolNameConstraint, i64
from xdsl.ir import (
    Attribute,
    Dialect,
    Operation,
    ParametrizedAttribute,
    Region,
    SSAValue,
    TypeAttribute,
)
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import HasParent, NoTerminator, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException


@irdl_attr_definition
class BlockType(ParametrizedAttribute, TypeAttribute):
    """A handle on a block."""

    name = "sched.block"


@irdl_attr_definition
class LoopType(ParametrizedAttribute, TypeAttribute):
    """A handle on a loop."""

    name = "sched.loop"


BLOCK = BlockType()
LOOP = LoopType()
_SHORT_NAMES: Mapping[str, Attribute] = {"block": BLOCK, "loop": LOOP}


@irdl_op_definition
class FuncOp(IRDLOperation):
    """A schedule: steps to apply, in order, to the module that holds it."""

    name = "sched.func"

    sym_name = prop_def(SymbolNameConstraint())
    body = region_def("single_block")

    traits = traits_def(NoTerminator(), SymbolOpInterface())

    def __init__(self, name: str, body: Region) -> None:
        super().__init__(properties={"sym_name": StringAttr(name)}, regions=[body])

    def verify_(self) -> None:
        consumed: dict[SSAValue, str] = {}
        for op in self.body.block.ops:
            if not isinstance(op, StepOp):
                raise VerifyException(f"sched.func @{self.sym_name.data} holds schedule steps only, got {op.name}")
            for operand in op.operands:
                if operand in consumed:
                    raise VerifyException(
                        f"{op.name} uses handle %{operand.name_hint or '?'}, "
                        f"which {consumed[operand]} before it has consumed"
                    )
            for operand in op.consumed_handles:
                consumed[operand] = op.name

    @classmethod
    def parse(cls, parser: Parser) -> FuncOp:
        name = parser.parse_symbol_name()
        region = parser.parse_region()
        if not region.blocks:
            from xdsl.ir import Block

            region.add_block(Block())
        return cls(name.data, region)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        printer.print_string(" ")
        printer.print_region(self.body, print_empty_block=False)


class StepOp(IRDLOperation):
    """One step of a schedule, with the syntax that all steps share."""

    HANDLE_TYPES: ClassVar[tuple[Attribute, ...]] = ()
    """The types of the operands; the last one repeats for a variadic group."""
    CONSUMES: ClassVar[bool] = False
    """Whether the loop handles given are gone afterwards."""

    traits = traits_def(HasParent(FuncOp))

    @property
    def consumed_handles(self) -> Sequence[SSAValue]:
        return [o for o in self.operands if o.type == LOOP] if self.CONSUMES else []

    @classmethod
    def parse(cls, parser: Parser) -> StepOp:
        operands: list[SSAValue] = []
        first = parser.parse_optional_unresolved_operand()
        unresolved = [] if first is None else [first]
        while unresolved and parser.parse_optional_punctuation(",") is not None:
            unresolved.append(parser.parse_unresolved_operand())
        for position, operand in enumerate(unresolved):
            expected = cls.HANDLE_TYPES[min(position, len(cls.HANDLE_TYPES) - 1)] if cls.HANDLE_TYPES else LOOP
            operands.append(parser.resolve_operand(operand, expected))
        properties = {**cls.parse_leading(parser), **parser.parse_optional_attr_dict()}
        results = _parse_result_types(parser)
        return cls.create(operands=operands, result_types=results, properties=properties)

    @classmethod
    def parse_leading(cls, parser: Parser) -> dict[str, Attribute]:
        """Properties that stand before the braces."""
        return {}

    def print_leading(self, printer: Printer) -> frozenset[str]:
        """Print what `parse_leading` reads; returns the names of those properties."""
        return frozenset()

    def print(self, printer: Printer) -> None:
        if self.operands:
            printer.print_string(" ")
            printer.print_list(self.operands, printer.print_ssa_value)
        leading = self.print_leading(printer)
        rest = {name: value for name, value in self.properties.items() if name not in leading}
        if rest:
            printer.print_string(" {")
            printer.print_list(rest.items(), lambda item: _print_property(printer, *item))
            printer.print_string("}")
        if self.results:
            printer.print_string(" : ")
            names = {type_: name for name, type_ in _SHORT_NAMES.items()}
            printer.print_list(self.results, lambda result: printer.print_string(names[result.type]))


def _verify_handles(step: StepOp, given: int) -> None:
    """A step names all of the handles that it gives, or none."""
    if step.results and len(step.results) != given:
        raise VerifyException(f"{step.name} gives {given} handles, {len(step.results)} are named")


def _parse_result_types(parser: Parser) -> list[Attribute]:
    if parser.parse_optional_punctuation(":") is None:
        return []

    def parse_short() -> Attribute:
        for name, type_ in _SHORT_NAMES.items():
            if parser.parse_optional_keyword(name) is not None:
                return type_
        parser.raise_error(f"expected a handle type, one of {', '.join(_SHORT_NAMES)}")

    return parser.parse_comma_separated_list(parser.Delimiter.NONE, parse_short)


def _print_property(printer: Printer, name: str, value: Attribute) -> None:
    printer.print_string(f"{name} = ")
    _print_plain(printer, value)


def _print_plain(printer: Printer, value: Attribute) -> None:
    """Integers of the default type are printed without it."""
    if isinstance(value, IntegerAttr) and value.type == i64:
        printer.print_string(str(value.value.data))
    elif isinstance(value, ArrayAttr):
        printer.print_string("[")
        elements: tuple[Attribute, ...] = value.data  # pyright: ignore[reportUnknownVariableType]
        printer.print_list(elements, lambda element: _print_plain(printer, element))
        printer.print_string("]")
    else:
        printer.print_attribute(value)


@irdl_op_definition
class GetBlockOp(StepOp):
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


@irdl_op_definition
class GetLoopsOp(StepOp):
    """The loops around a block, outermost first."""

    name = "sched.get_loops"
    HANDLE_TYPES: ClassVar = (BLOCK,)

    block = operand_def(BLOCK)
    loops = var_result_def(LOOP)


class _RelatedBlocksOp(StepOp):
    HANDLE_TYPES: ClassVar = (BLOCK,)

    block = operand_def(BLOCK)
    blocks = var_result_def(BLOCK)


@irdl_op_definition
class GetProducersOp(_RelatedBlocksOp):
    """The blocks in the same scope that write what the block reads."""

    name = "sched.get_producers"


@irdl_op_definition
class GetConsumersOp(_RelatedBlocksOp):
    """The blocks in the same scope that read what the block writes."""

    name = "sched.get_consumers"


@irdl_op_definition
class GetChildBlocksOp(_RelatedBlocksOp):
    """The blocks directly inside the body of a block."""

    name = "sched.get_child_blocks"


@irdl_op_definition
class SplitOp(StepOp):
    """A loop into nested loops with the given extents; 0 is inferred."""

    name = "sched.split"
    HANDLE_TYPES: ClassVar = (LOOP,)
    CONSUMES: ClassVar = True

    loop = operand_def(LOOP)
    factors = prop_def(ArrayAttr[IntegerAttr])
    loops = var_result_def(LOOP)

    def verify_(self) -> None:
        _verify_handles(self, len(self.factors))


@irdl_op_definition
class FuseOp(StepOp):
    """Nested loops into one."""

    name = "sched.fuse"
    HANDLE_TYPES: ClassVar = (LOOP,)
    CONSUMES: ClassVar = True

    loops = var_operand_def(LOOP)
    fused = result_def(LOOP)


@irdl_op_definition
class ReorderOp(StepOp):
    """Loops of one chain into the given order."""

    name = "sched.reorder"
    HANDLE_TYPES: ClassVar = (LOOP,)

    loops = var_operand_def(LOOP)


@irdl_op_definition
class TileOp(StepOp):
    """Adjacent loops split by one factor each, the tile loops moved inside."""

    name = "sched.tile"
    HANDLE_TYPES: ClassVar = (LOOP,)
    CONSUMES: ClassVar = True

    loops = var_operand_def(LOOP)
    factors = prop_def(ArrayAttr[IntegerAttr])
    tiled = var_result_def(LOOP)

    def verify_(self) -> None:
        _verify_handles(self, 2 * len(self.loops))


class _LoopKindOp(StepOp):
    HANDLE_TYPES: ClassVar = (LOOP,)

    loop = operand_def(LOOP)


@irdl_op_definition
class ParallelOp(_LoopKindOp):
    """Iterations may run on several threads."""

    name = "sched.parallel"


@irdl_op_definition
class VectorizeOp(_LoopKindOp):
    """Iterations become vector lanes."""

    name = "sched.vectorize"


@irdl_op_definition
class UnrollOp(_LoopKindOp):
    """The body is repeated."""

    name = "sched.unroll"


class _MoveOp(StepOp):
    HANDLE_TYPES: ClassVar = (BLOCK, LOOP)

    block = operand_def(BLOCK)
    loop = operand_def(LOOP)


@irdl_op_definition
class ComputeAtOp(_MoveOp):
    """A producer under a loop of its consumers."""

    name = "sched.compute_at"


@irdl_op_definition
class ReverseComputeAtOp(_MoveOp):
    """A consumer under a loop of its producers."""

    name = "sched.reverse_compute_at"


class _InlineOp(StepOp):
    HANDLE_TYPES: ClassVar = (BLOCK,)

    block = operand_def(BLOCK)


@irdl_op_definition
class ComputeInlineOp(_InlineOp):
    """A producer into its readers."""

    name = "sched.compute_inline"


@irdl_op_definition
class ReverseComputeInlineOp(_InlineOp):
    """A consumer into its only producer."""

    name = "sched.reverse_compute_inline"


class _CacheOp(StepOp):
    HANDLE_TYPES: ClassVar = (BLOCK,)

    block = operand_def(BLOCK)
    index = prop_def(IntegerAttr)
    scope = prop_def(StringAttr)
    cache = result_def(BLOCK)


@irdl_op_definition
class CacheReadOp(_CacheOp):
    """A copy of the index-th buffer that the block reads, in another scope."""

    name = "sched.cache_read"


@irdl_op_definition
class CacheWriteOp(_CacheOp):
    """A copy of the index-th buffer that the block writes: computed in another scope, then copied out."""

    name = "sched.cache_write"


@irdl_op_definition
class SetScopeOp(StepOp):
    """The memory space of the index-th buffer that the block writes."""

    name = "sched.set_scope"
    HANDLE_TYPES: ClassVar = (BLOCK,)

    block = operand_def(BLOCK)
    index = prop_def(IntegerAttr)
    scope = prop_def(StringAttr)


@irdl_op_definition
class DecomposeReductionOp(StepOp):
    """The init of a reduction block as a block of its own before a loop."""

    name = "sched.decompose_reduction"
    HANDLE_TYPES: ClassVar = (BLOCK, LOOP)

    block = operand_def(BLOCK)
    loop = operand_def(LOOP)
    init = result_def(BLOCK)


STEPS: tuple[type[StepOp], ...] = (
    GetBlockOp,
    GetLoopsOp,
    GetProducersOp,
    GetConsumersOp,
    GetChildBlocksOp,
    SplitOp,
    FuseOp,
    ReorderOp,
    TileOp,
    ParallelOp,
    VectorizeOp,
    UnrollOp,
    ComputeAtOp,
    ReverseComputeAtOp,
    ComputeInlineOp,
    ReverseComputeInlineOp,
    CacheReadOp,
    CacheWriteOp,
    SetScopeOp,
    DecomposeReductionOp,
)

_OPERATIONS: list[type[Operation]] = [FuncOp, *STEPS]

SCHED = Dialect("sched", _OPERATIONS, [BlockType, LoopType])
