"""`scf.forall`, which xDSL lacks."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DenseArrayBase, IndexType, i64
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, NoTerminator, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from weft.dialects.index_map import mixed_extents, static_extents
from weft.dialects.printing import write
from weft.dialects.upstream.custom_syntax import parse_variables


@irdl_op_definition
class InParallelOp(IRDLOperation):
    """An iteration's contributions to the results (`tensor.parallel_insert_slice`)."""

    name = "scf.forall.in_parallel"

    body = region_def()

    traits = traits_def(IsTerminator(), NoTerminator(), RecursiveMemoryEffect())

    @classmethod
    def parse(cls, parser: Parser) -> InParallelOp:
        region = parser.parse_region()
        if not region.blocks:
            region.add_block(Block())
        return cls.create(regions=[region], attributes=parser.parse_optional_attr_dict())

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_region(self.body)


@irdl_op_definition
class ForallOp(IRDLOperation):
    """Iterations that may run in parallel, on shared output tensors or buffers.

    ```mlir
    scf.forall (%i, %j) = (0, %l) to (%n, 64) step (4, 8) { ... }
    %r = scf.forall (%i) in (%n) shared_outs(%o = %t) -> (tensor<?xf32>) {
      scf.forall.in_parallel { tensor.parallel_insert_slice ... }
    }
    ```
    """

    name = "scf.forall"

    dynamic_lower = var_operand_def(IndexType)
    dynamic_upper = var_operand_def(IndexType)
    dynamic_step = var_operand_def(IndexType)
    outputs = var_operand_def()
    static_lower = prop_def(DenseArrayBase.constr(i64), prop_name="staticLowerBound")
    static_upper = prop_def(DenseArrayBase.constr(i64), prop_name="staticUpperBound")
    static_step = prop_def(DenseArrayBase.constr(i64), prop_name="staticStep")
    mapping = opt_prop_def(Attribute)
    shared = var_result_def()
    body = region_def("single_block")

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(RecursiveMemoryEffect())

    @property
    def lower(self) -> tuple[int | SSAValue, ...]:
        return mixed_extents(self.static_lower.get_values(), self.dynamic_lower)

    @property
    def upper(self) -> tuple[int | SSAValue, ...]:
        return mixed_extents(self.static_upper.get_values(), self.dynamic_upper)

    @property
    def step(self) -> tuple[int | SSAValue, ...]:
        return mixed_extents(self.static_step.get_values(), self.dynamic_step)

    def verify_(self) -> None:
        rank = len(self.static_lower)
        if len(self.static_upper) != rank or len(self.static_step) != rank:
            raise VerifyException(f"{self.name} has as many upper bounds and steps as lower bounds, {rank}")
        expected = (*[IndexType()] * rank, *self.outputs.types)
        if self.body.block.arg_types != expected:
            raise VerifyException(f"{self.name} body takes {rank} indices and {len(self.outputs)} outputs")
        if tuple(self.shared.types) != tuple(self.outputs.types):
            raise VerifyException(f"{self.name} gives what it shares: types of results and shared_outs differ")
        if not isinstance(self.body.block.last_op, InParallelOp):
            raise VerifyException(f"{self.name} body ends in {InParallelOp.name}")

    @classmethod
    def parse(cls, parser: Parser) -> ForallOp:
        arguments = parse_variables(parser)
        if parser.parse_optional_keyword("in") is not None:
            upper = _bounds(parser)
            lower, step = [0] * len(upper), [1] * len(upper)
        else:
            parser.parse_punctuation("=")
            lower = _bounds(parser)
            parser.parse_keyword("to")
            upper = _bounds(parser)
            parser.parse_keyword("step")
            step = _bounds(parser)
        outputs: Sequence[SSAValue] = ()
        types: Sequence[Attribute] = ()
        if parser.parse_optional_keyword("shared_outs") is not None:
            at = parser.pos
            pairs = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: _assignment(parser))
            parser.parse_punctuation("->")
            types = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
            outputs = parser.resolve_operands([value for _, value in pairs], types, at)
            arguments += [argument.resolve(type_) for (argument, _), type_ in zip(pairs, types, strict=True)]
        body = parser.parse_region(arguments)
        if not isinstance(body.block.last_op, InParallelOp):
            body.block.add_op(InParallelOp.create(regions=[Region(Block())]))
        attributes = parser.parse_optional_attr_dict()
        mapping = attributes.pop("mapping", None)
        op = cls.build(
            operands=[*([v for v in bounds if isinstance(v, SSAValue)] for bounds in (lower, upper, step)), outputs],
            result_types=[types],
            properties={
                "staticLowerBound": static_extents(lower),
                "staticUpperBound": static_extents(upper),
                "staticStep": static_extents(step),
                "mapping": mapping,
            },
            regions=[body],
        )
        op.attributes.update(attributes)
        return op

    def print(self, printer: Printer) -> None:
        rank = len(self.static_lower)
        variables, shared = self.body.block.args[:rank], self.body.block.args[rank:]
        write(printer, " (", [*variables], ")")
        if set(self.lower) <= {0} and set(self.step) <= {1}:
            write(printer, " in (", [*self.upper], ")")
        else:
            write(printer, " = (", [*self.lower], ") to (", [*self.upper], ") step (", [*self.step], ")")
        if shared:
            outputs = [(argument, " = ", output) for argument, output in zip(shared, self.outputs, strict=True)]
            write(printer, " shared_outs(", outputs, ") -> (", [*self.shared.types], ")")
        printer.print_string(" ")
        last = self.body.block.last_op
        given = isinstance(last, InParallelOp) and any(region.block.ops for region in last.regions)
        printer.print_region(self.body, print_entry_block_args=False, print_block_terminators=given)
        mapping = {} if self.mapping is None else {"mapping": self.mapping}
        printer.print_op_attributes({**self.attributes, **mapping})


def _bounds(parser: Parser) -> list[int | SSAValue]:
    def bound() -> int | SSAValue:
        number = parser.parse_optional_integer(allow_boolean=False)
        return parser.parse_operand(IndexType()) if number is None else number

    return parser.parse_comma_separated_list(parser.Delimiter.PAREN, bound)


def _assignment(parser: Parser) -> tuple[Parser.UnresolvedArgument, UnresolvedOperand]:
    argument = parser.parse_argument(expect_type=False)
    parser.parse_punctuation("=")
    return argument, parser.parse_unresolved_operand()
