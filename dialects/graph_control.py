"""Control flow of graphs: ops that call graph functions of the module, which passes transform separately."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias, cast

from xdsl.dialects.builtin import FlatSymbolRefAttrConstr, SymbolRefAttr, TensorType, i1, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure, SymbolUserOpInterface
from xdsl.utils.exceptions import VerifyException

from weft.dialects.graph import Tensor, function_of
from weft.dialects.graph_shapes import (
    DimsAttr,
    Extent,
    KnownExtent,
    lone_name,
    parse_sum,
    refines,
    shape_of,
    show_extent,
    substitute,
    tensor_type,
)
from weft.dialects.printing import write

CONDITION = TensorType(i1, [])
STEP = TensorType(i64, [])
"""The type of the step number, the first argument of a loop's body."""


def result_types(op: Operation, callee: FuncOp, given: Sequence[Attribute]) -> list[Tensor]:
    """A graph function's results for these tensors, with the caller's names for extents. Raises `VerifyException` for
    unacceptable tensors."""
    name, wanted = f"{op.name} @{callee.sym_name.data}", callee.function_type.inputs.data
    if not all(isinstance(type_, TensorType) for type_ in (*wanted, *callee.function_type.outputs)):
        raise VerifyException(f"{name} must be a function over tensors, got {callee.function_type}")
    if len(given) != len(wanted):
        raise VerifyException(f"{name} takes {len(wanted)} tensors, got {len(given)}")
    extents: dict[str, KnownExtent] = {}
    for position, (one, other) in enumerate(zip(given, wanted, strict=True)):
        outer, inner = cast("Tensor", one), cast("Tensor", other)
        shape, takes = shape_of(outer), shape_of(inner)
        fits = outer.element_type == inner.element_type and len(shape) == len(takes)
        for here, there in zip(shape, takes, strict=False):
            known = lone_name(there)
            if known is not None and here is not None:
                fits = fits and extents.setdefault(known, here) == here
        if not fits or not refines(shape, [_seen(e, extents) for e in takes]):
            raise VerifyException(f"{name}: argument {position} is {outer}, but the function takes {inner}")
    outputs = cast("Sequence[Tensor]", callee.function_type.outputs.data)
    return [tensor_type([_seen(e, extents) for e in shape_of(t)], t.element_type) for t in outputs]


def _seen(extent: Extent, extents: Mapping[str, KnownExtent]) -> Extent:
    return substitute(extent, extents)


class ControlSymbolUses(SymbolUserOpInterface):
    def verify(self, op: Operation) -> None:
        if isinstance(op, IfOp | LoopOp | WhileOp):
            inferred = op.inferred()
            if tuple(inferred) != tuple(op.result_types):
                found, given = ", ".join(map(str, inferred)), ", ".join(map(str, op.result_types))
                raise VerifyException(f"{op.name} is declared to give ({given}), but its functions give ({found})")


@irdl_op_definition
class IfOp(IRDLOperation):
    """Call one of two graph functions.

    ```mlir
    func.func private @grow(%x: tensor<4xf32>) -> tensor<4xf32> {
      %y = graph.add %x, %x : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
      func.return %y : tensor<4xf32>
    }
    func.func private @keep(%x: tensor<4xf32>) -> tensor<4xf32> {
      func.return %x : tensor<4xf32>
    }
    func.func @main(%c: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
      %y = graph.if %c then @grow else @keep(%x) : (tensor<4xf32>) -> tensor<4xf32>
      func.return %y : tensor<4xf32>
    }
    ```
    Both functions take the operands and return results of the same types.
    """

    name = "graph.if"

    then_callee = prop_def(FlatSymbolRefAttrConstr)
    else_callee = prop_def(FlatSymbolRefAttrConstr)
    condition = operand_def(CONDITION)
    arguments = var_operand_def(TensorType)
    outputs = var_result_def(TensorType)

    traits = traits_def(Pure(), ControlSymbolUses())
    assembly_format = (
        "$condition `then` $then_callee `else` $else_callee `(` $arguments `)` attr-dict `:` "
        "functional-type($arguments, $outputs)"
    )

    def __init__(
        self, condition: SSAValue, callees: tuple[str, str], arguments: Sequence[SSAValue], types: Sequence[Attribute]
    ) -> None:
        properties = {"then_callee": SymbolRefAttr(callees[0]), "else_callee": SymbolRefAttr(callees[1])}
        super().__init__(operands=[condition, arguments], result_types=[types], properties=properties)

    @property
    def callees(self) -> tuple[SymbolRefAttr, ...]:
        return self.then_callee, self.else_callee

    def taken_types(self) -> list[Attribute]:
        return [value.type for value in self.arguments]

    def inferred(self) -> list[Tensor]:
        """Raises `VerifyException` for unsuitable functions."""
        given = self.taken_types()
        first, second = (result_types(self, function_of(self, callee.string_value()), given) for callee in self.callees)
        if first != second:
            one, other = (", ".join(map(str, types)) for types in (first, second))
            names = " and ".join(f"@{callee.string_value()}" for callee in self.callees)
            raise VerifyException(f"{self.name}: {names} give different results: ({one}) and ({other})")
        return first


def branches_of(op: Operation) -> Iterator[str]:
    for inner in op.walk():
        if isinstance(inner, IfOp):
            yield from (callee.string_value() for callee in (inner.then_callee, inner.else_callee))


@irdl_op_definition
class LoopOp(IRDLOperation):
    """Call a graph function repeatedly: with values carried between steps, rows of scanned tensors and captured values;
    further results are stacked.

    ```mlir
    func.func private @step(%t: tensor<i64>, %h: tensor<4xf32>, %x: tensor<4xf32>, %w: tensor<4xf32>)
        -> (tensor<4xf32>, tensor<4xf32>) {
      %p = graph.multiply %h, %w : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
      %s = graph.add %p, %x : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
      func.return %s, %p : tensor<4xf32>, tensor<4xf32>
    }
    func.func @main(%h: tensor<4xf32>, %xs: tensor<?x4xf32, #graph.dims<n>>, %w: tensor<4xf32>)
        -> (tensor<4xf32>, tensor<?x4xf32, #graph.dims<n>>) {
      %last, %all = graph.loop @step for n carried(%h) scanned(%xs) captured(%w)
        : (tensor<4xf32>, tensor<?x4xf32, #graph.dims<n>>, tensor<4xf32>)
          -> (tensor<4xf32>, tensor<?x4xf32, #graph.dims<n>>)
      func.return %last, %all : tensor<4xf32>, tensor<?x4xf32, #graph.dims<n>>
    }
    ```
    The function takes the step number (a `tensor<i64>`), carried values, a row of each scanned tensor, and captured
    values. It returns the next carried values, then values to be stacked along a new first dimension, whose extent is
    the number of steps.

    Syntax: `graph.loop @body for extent carried(...) scanned(...) captured(...) : (types) -> types`; empty parts are
    optional.
    """

    name = "graph.loop"

    body = prop_def(FlatSymbolRefAttrConstr)
    steps = prop_def(DimsAttr)
    carried = var_operand_def(TensorType)
    scanned = var_operand_def(TensorType)
    captured = var_operand_def(TensorType)
    outputs = var_result_def(TensorType)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(Pure(), ControlSymbolUses())

    def __init__(
        self,
        body: str,
        steps: KnownExtent,
        carried: Sequence[SSAValue],
        scanned: Sequence[SSAValue],
        captured: Sequence[SSAValue],
        types: Sequence[Attribute],
    ) -> None:
        properties = {"body": SymbolRefAttr(body), "steps": DimsAttr((steps,))}
        super().__init__(operands=[carried, scanned, captured], result_types=[types], properties=properties)

    @property
    def callees(self) -> tuple[SymbolRefAttr, ...]:
        return (self.body,)

    @property
    def count(self) -> KnownExtent:
        return cast("KnownExtent", self.steps.data[0])

    def row_types(self) -> list[Tensor]:
        """Raises `VerifyException` if the number of rows is not the step count."""
        rows: list[Tensor] = []
        for value in self.scanned:
            type_ = cast("Tensor", value.type)
            shape = shape_of(type_)
            if not shape or shape[0] != self.count:
                raise VerifyException(
                    f"{self.name} of {show_extent(self.count)} steps: the first extent of a scanned tensor is the "
                    f"number of steps, got {type_}"
                )
            rows.append(tensor_type(shape[1:], type_.element_type))
        return rows

    def taken_types(self) -> list[Attribute]:
        """Raises `VerifyException` for a wrong number of rows."""
        carried, captured = ([value.type for value in values] for values in (self.carried, self.captured))
        return [STEP, *carried, *self.row_types(), *captured]

    def inferred(self) -> list[Tensor]:
        """Raises `VerifyException` for an unsuitable function."""
        if len(self.steps.data) != 1 or self.steps.data[0] is None:
            raise VerifyException(f"{self.name} needs its number of steps, got {self.steps}")
        carried = [value.type for value in self.carried]
        found = result_types(self, function_of(self, self.body.string_value()), self.taken_types())
        for position, type_ in enumerate(carried):
            if position >= len(found) or found[position] != type_:
                got = found[position] if position < len(found) else "no such result"
                raise VerifyException(
                    f"{self.name} @{self.body.string_value()}: carried value {position} is {type_}, "
                    f"but the function gives {got}"
                )
        stacked = [tensor_type((self.count, *shape_of(t)), t.element_type) for t in found[len(carried) :]]
        return [*found[: len(carried)], *stacked]

    @classmethod
    def parse(cls, parser: Parser) -> LoopOp:
        body = parser.parse_symbol_name().data
        parser.parse_keyword("for")
        steps = parse_sum(parser)
        (carried, scanned, captured), attributes, types, at = _parse_parts(parser, _PARTS)
        if steps is None:
            parser.raise_error("graph.loop needs its number of steps", at)
        op = cls(body, steps, carried, scanned, captured, types)
        op.attributes.update(attributes)
        return op

    def print(self, printer: Printer) -> None:
        write(printer, " ", self.body, f" for {show_extent(self.count)}")
        _print_parts(printer, self, dict(zip(_PARTS, (self.carried, self.scanned, self.captured), strict=True)))


_PARTS = ("carried", "scanned", "captured")


def _parse_parts(
    parser: Parser, names: Sequence[str]
) -> tuple[list[list[SSAValue]], dict[str, Attribute], Sequence[Attribute], int]:
    """Operands by part, attributes, result types, and the types' position."""
    groups = [
        parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)
        if parser.parse_optional_keyword(name) is not None
        else []
        for name in names
    ]
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    at = parser.pos
    type_ = parser.parse_function_type()
    operands = iter(parser.resolve_operands([one for group in groups for one in group], type_.inputs.data, at))
    return [[next(operands) for _ in group] for group in groups], attributes, type_.outputs.data, at


def _print_parts(printer: Printer, op: LoopOp | WhileOp, parts: Mapping[str, Sequence[SSAValue]]) -> None:
    for name, values in parts.items():
        if values:
            write(printer, f" {name}(", [*values], ")")
    printer.print_op_attributes(op.attributes)
    printer.print_string(" : ")
    printer.print_function_type(op.operand_types, op.result_types)


@irdl_op_definition
class WhileOp(IRDLOperation):
    """Call a graph function while another returns true, with values carried between steps, and captured values.

    ```mlir
    func.func private @is_small(%x: tensor<f32>, %end: tensor<f32>) -> tensor<i1> {
      %y = graph.less %x, %end : tensor<f32>, tensor<f32> -> tensor<i1>
      func.return %y : tensor<i1>
    }
    func.func private @double(%x: tensor<f32>, %end: tensor<f32>) -> tensor<f32> {
      %y = graph.add %x, %x : tensor<f32>, tensor<f32> -> tensor<f32>
      func.return %y : tensor<f32>
    }
    func.func @main(%x: tensor<f32>, %end: tensor<f32>) -> tensor<f32> {
      %y = graph.while @is_small do @double carried(%x) captured(%end) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      func.return %y : tensor<f32>
    }
    ```
    Both functions take carried, then captured values. The first returns a bool of rank 0; once it is false, the carried
    values are the results. The second returns the next carried values.

    Syntax: `graph.while @test do @body carried(...) captured(...) : (types) -> types`; `captured` is optional.
    """

    name = "graph.while"

    test = prop_def(FlatSymbolRefAttrConstr)
    body = prop_def(FlatSymbolRefAttrConstr)
    carried = var_operand_def(TensorType)
    captured = var_operand_def(TensorType)
    outputs = var_result_def(TensorType)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(Pure(), ControlSymbolUses())

    def __init__(self, test: str, body: str, carried: Sequence[SSAValue], captured: Sequence[SSAValue]) -> None:
        properties = {"test": SymbolRefAttr(test), "body": SymbolRefAttr(body)}
        types = [value.type for value in carried]
        super().__init__(operands=[carried, captured], result_types=[types], properties=properties)

    @property
    def callees(self) -> tuple[SymbolRefAttr, ...]:
        return self.test, self.body

    def taken_types(self) -> list[Attribute]:
        return list(self.operand_types)

    def inferred(self) -> list[Tensor]:
        """Raises `VerifyException` for unsuitable functions."""
        given = self.taken_types()
        test, body = (result_types(self, function_of(self, name.string_value()), given) for name in self.callees)
        if test != [CONDITION]:
            got = ", ".join(map(str, test))
            raise VerifyException(f"{self.name}: @{self.test.string_value()} must give {CONDITION}, got ({got})")
        carried = [value.type for value in self.carried]
        if body != carried:
            wanted, got = (", ".join(map(str, types)) for types in (carried, body))
            raise VerifyException(
                f"{self.name} @{self.body.string_value()}: the carried values are ({wanted}), but the function gives "
                f"({got})"
            )
        return body

    @classmethod
    def parse(cls, parser: Parser) -> WhileOp:
        test = parser.parse_symbol_name().data
        parser.parse_keyword("do")
        body = parser.parse_symbol_name().data
        (carried, captured), attributes, types, at = _parse_parts(parser, ("carried", "captured"))
        op = cls(test, body, carried, captured)
        op.attributes.update(attributes)
        if tuple(op.result_types) != tuple(types):
            parser.raise_error(f"{cls.name} gives the types of its carried values", at, parser.pos)
        return op

    def print(self, printer: Printer) -> None:
        write(printer, " ", self.test, " do ", self.body)
        _print_parts(printer, self, {"carried": self.carried, "captured": self.captured})


ControlOp: TypeAlias = IfOp | LoopOp | WhileOp
CONTROL = (IfOp, LoopOp, WhileOp)
