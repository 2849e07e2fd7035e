"""graph: pure operations on whole tensors (the role of TVM's Relax).

A graph function is a `func.func` over tensors, whose shapes may be symbolic (`graph_shapes`). Its ops are operators
(`weft.texpr.graph_operators`), calls of functions of the module that write into the caller's buffers
(`graph.call_tir`), and calls of functions registered at run time (`graph.call_dps`).

```mlir
func.func @main(%x: tensor<?x784xf32, #graph.dims<n>>) -> tensor<?x128xf32, #graph.dims<n>> {
  %y = graph.dataflow -> tensor<?x128xf32, #graph.dims<n>> {
    %w = graph.constant dense<"0x..."> : tensor<784x128xf32>
    %h = graph.matmul %x, %w : tensor<?x784xf32, #graph.dims<n>>, tensor<784x128xf32>
                               -> tensor<?x128xf32, #graph.dims<n>>
    %r = graph.call_tir @relu(%h) : (tensor<?x128xf32, #graph.dims<n>>) -> tensor<?x128xf32, #graph.dims<n>>
    graph.output %r : tensor<?x128xf32, #graph.dims<n>>
  }
  func.return %y : tensor<?x128xf32, #graph.dims<n>>
}
```
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, prod
from typing import ClassVar, Final, TypeAlias, cast

from xdsl.dialect_interfaces.op_asm import OpAsmDialectInterface
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AnyFloat,
    ArrayAttr,
    Builtin,
    BytesAttr,
    DenseIntOrFPElementsAttr,
    DenseResourceAttr,
    FixedBitwidthType,
    FlatSymbolRefAttrConstr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    StringAttr,
    SymbolRefAttr,
    TensorType,
    TupleType,
    f64,
    i1,
    i32,
    i64,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, Region, SSAValue, TypeAttribute
from xdsl.irdl import (
    IRDLOperation,
    VarConstraint,
    base,
    irdl_op_definition,
    lazy_traits_def,
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
from xdsl.traits import (
    HasParent,
    IsTerminator,
    Pure,
    RecursiveMemoryEffect,
    SymbolUserOpInterface,
    is_side_effect_free,
)
from xdsl.utils.exceptions import VerifyException

from weft.dialects.element_types import value_type
from weft.dialects.functions import function_around
from weft.dialects.graph_shapes import (
    DimsAttr,
    Extent,
    KnownExtent,
    Shape,
    element_of_name,
    extents_in,
    is_element,
    lone_name,
    names_in,
    shape_of,
    show_extent,
    show_shape,
    symbol,
)
from weft.dialects.index_map import parse_annotations_and_body, print_annotations_and_body
from weft.dialects.printing import grouped, write
from weft.dialects.upstream.custom_syntax import parse_types
from weft.support.call_preconditions import CallPrecondition

Tensor: TypeAlias = TensorType[Attribute]


WEIGHT: Final = "graph.weight"
"""Attribute of a constant: its name in the weights file of the module (`graph.weights`); it prints as
`dense_resource<name>`."""
PRECONDITIONS: Final = "graph.preconditions"
"""Attribute of a function: texts of `CallPrecondition` over extents, which calls check."""


@irdl_op_definition
class ConstantOp(IRDLOperation):
    """A tensor known at compile time.

    ```mlir
    %b = graph.constant dense<[1.0, 2.0]> : tensor<2xf32>
    %w = graph.constant dense<"0x0000803F00000040"> : tensor<1x2xf32>
    ```
    The hexadecimal form, little-endian bytes in row-major order, is parsed and printed at the speed of `bytes.fromhex`.

    Syntax: `graph.constant [{...}] dense<...> : type`, or with `dense_resource<...>`.
    """

    name = "graph.constant"

    value = prop_def(DenseIntOrFPElementsAttr | DenseResourceAttr)
    result = result_def(TensorType)

    traits = traits_def(Pure())

    def __init__(self, value: DenseIntOrFPElementsAttr | DenseResourceAttr) -> None:
        super().__init__(properties={"value": value}, result_types=[value.get_type()])

    def verify_(self) -> None:
        if self.value.get_type() != self.result.type:
            raise VerifyException(f"graph.constant of type {self.value.get_type()} gives {self.result.type}")
        if any(extent == DYNAMIC_INDEX for extent in self.result.type.get_shape()):
            raise VerifyException(f"graph.constant has a static shape, got {self.result.type}")

    @classmethod
    def parse(cls, parser: Parser) -> ConstantOp:
        attributes = parser.parse_optional_attr_dict()
        at = parser.pos
        value = parser.parse_attribute()
        if not isinstance(value, DenseIntOrFPElementsAttr | DenseResourceAttr):
            parser.raise_error("graph.constant takes dense<...> or dense_resource<...>", at, parser.pos)
        op = cls(value)
        op.attributes.update(attributes)
        return op

    def print(self, printer: Printer) -> None:
        weight = self.attributes.get(WEIGHT)
        printer.print_op_attributes({name: value for name, value in self.attributes.items() if name != WEIGHT})
        if isinstance(weight, StringAttr):
            printer.print_string(f" dense_resource<{weight.data}> : ")
            printer.print_attribute(self.result.type)
            return
        printer.print_string(" ")
        printer.print_attribute(self.value)


def dense_value(op: ConstantOp) -> DenseIntOrFPElementsAttr:
    """Reads a `dense_resource` from the parsed file.

    Raises `VerifyException` for a missing resource, or another size.
    """
    value = op.value
    if isinstance(value, DenseIntOrFPElementsAttr):
        return value
    key = value.resource_handle.data
    resources = Builtin.get_interface(OpAsmDialectInterface)
    blob = None if resources is None else resources.lookup(key)
    if not blob:
        raise VerifyException(f"graph.constant: the file gives no data for the resource '{key}'")
    # a blob starts with four bytes, the alignment
    data = bytes.fromhex(blob[2:])[4:]
    type_ = op.result.type
    expected = prod(type_.get_shape()) * cast("FixedBitwidthType", type_.element_type).compile_time_size
    if len(data) != expected:
        raise VerifyException(f"graph.constant: resource '{key}' has {len(data)} bytes, but {type_} takes {expected}")
    return DenseIntOrFPElementsAttr(cast("TensorType[IntegerType]", type_), BytesAttr(data))


def splat_value(op: ConstantOp) -> int | float | None:
    """Returns None if elements differ."""
    if not isinstance(op.value, DenseIntOrFPElementsAttr):
        return None
    element, data = op.result.type.element_type, op.value.data.data
    if not isinstance(element, IntegerType | AnyFloat):
        return None
    size = element.compile_time_size
    first = bytes(data[:size])
    # Most constants differ in the first elements: comparing all is rare.
    if not data or data[size : 2 * size] not in (b"", first) or data != first * (len(data) // size):
        return None
    (number,) = element.unpack(first, 1)
    return bool(number) if element == i1 else number


class CallTirSymbolUse(SymbolUserOpInterface):
    def verify(self, op: Operation) -> None:
        if isinstance(op, CallTirOp):
            verify_callee(op, callee_of(op))


@irdl_op_definition
class CallTirOp(IRDLOperation):
    """Call a tensor function of this module, which writes its results into buffers that the call allocates.

    ```mlir
    func.func private @linear(memref<1x784xf32>, memref<784x128xf32>, memref<1x128xf32>)
    func.func @main(%x: tensor<1x784xf32>, %w: tensor<784x128xf32>) -> tensor<1x128xf32> {
      %y = graph.call_tir @linear(%x, %w) : (tensor<1x784xf32>, tensor<784x128xf32>) -> tensor<1x128xf32>
      func.return %y : tensor<1x128xf32>
    }
    ```
    The callee takes buffers of operands, then results, and writes only the latter; or it is a tensor expression
    function, which takes and returns tensors. Its static extents must be the same here.

    `extents` are further `index` arguments, for values that no operand's shape gives.
    ```mlir
    func.func private @reshape(memref<?xf32>, index, memref<?x8xf32>)
    func.func @rows(%x: tensor<?xf32, #graph.dims<8 * n>>) -> tensor<?x8xf32, #graph.dims<n>> {
      %y = graph.call_tir @reshape(%x) extents <n>
        : (tensor<?xf32, #graph.dims<8 * n>>) -> tensor<?x8xf32, #graph.dims<n>>
      func.return %y : tensor<?x8xf32, #graph.dims<n>>
    }
    ```
    """

    name = "graph.call_tir"

    callee = prop_def(FlatSymbolRefAttrConstr)
    extents = opt_prop_def(DimsAttr)
    arguments = var_operand_def(TensorType)
    outputs = var_result_def(TensorType)

    traits = traits_def(Pure(), CallTirSymbolUse())
    assembly_format = (
        "$callee `(` $arguments `)` (`extents` $extents^)? attr-dict `:` functional-type($arguments, $outputs)"
    )

    def __init__(
        self,
        callee: str | SymbolRefAttr,
        arguments: Sequence[SSAValue],
        result_types: Sequence[Attribute],
        extents: Sequence[KnownExtent] = (),
    ) -> None:
        symbol = SymbolRefAttr(callee) if isinstance(callee, str) else callee
        properties = {"callee": symbol, **({"extents": DimsAttr(tuple(extents))} if extents else {})}
        super().__init__(operands=[arguments], result_types=[result_types], properties=properties)

    @property
    def passed_extents(self) -> tuple[KnownExtent, ...]:
        return () if self.extents is None else cast("tuple[KnownExtent, ...]", self.extents.data)

    def verify_(self) -> None:
        if self.extents is not None and None in self.extents.data:
            raise VerifyException(f"graph.call_tir: extents that are passed are known, got {self.extents}")


def callee_of(call: CallTirOp) -> FuncOp:
    """Raises `VerifyException` if the module lacks it."""
    return function_of(call, call.callee.string_value())


def function_of(op: Operation, name: str) -> FuncOp:
    """Raises `VerifyException` if the module around `op` lacks it."""
    found = function_around(op, name)
    if found is None or "function_type" not in found.properties:
        raise VerifyException(f"{op.name}: there is no function @{name} with a type in this module")
    return found


def preconditions_of(function: FuncOp) -> tuple[CallPrecondition, ...]:
    """Raises `VerifyException` for malformed ones."""
    stated = function.attributes.get(PRECONDITIONS, ArrayAttr([]))
    texts = stated.data if isinstance(stated, ArrayAttr) else (stated,)
    try:
        return tuple(CallPrecondition(text.data if isinstance(text, StringAttr) else str(text)) for text in texts)
    except ValueError as error:
        raise VerifyException(f"{PRECONDITIONS} of @{function.sym_name.data}: {error}") from None


def verify_callee(call: CallTirOp, callee: FuncOp) -> None:
    """Raises `VerifyException` unless `callee` accepts the operands and returns the results."""
    name = f"graph.call_tir @{callee.sym_name.data}"
    inputs, outputs = callee.function_type.inputs.data, callee.function_type.outputs.data
    extents = [IndexType()] * len(call.passed_extents)
    given = (*call.operand_types, *extents, *call.result_types)
    takes = (*inputs, *outputs)
    if len(given) != len(takes) or (outputs and len(outputs) != len(call.results)):
        passed = f", {len(extents)} extents" * bool(extents)
        raise VerifyException(
            f"{name}: the call has {len(call.operands)} operands{passed} and {len(call.results)} results, "
            f"but the function takes {len(inputs)} arguments{f' and gives {len(outputs)}' if outputs else ''}"
        )
    for position, (outer, inner) in enumerate(zip(given, takes, strict=True)):
        extent = position - len(call.operands)
        result = extent - len(extents)
        what = f"operand {position}" if extent < 0 else f"extent {extent}" if result < 0 else f"result {result}"
        if isinstance(outer, TensorType):
            _verify_argument(name, what, outer, inner)
        elif outer != inner:
            raise VerifyException(f"{name}: {what} is of type {outer}, but the function takes {inner}")


def _verify_argument(name: str, what: str, outer: TensorType[Attribute], inner: Attribute) -> None:
    if not isinstance(inner, MemRefType | TensorType) or value_type(outer.element_type) != value_type(
        inner.element_type
    ):
        raise VerifyException(f"{name}: {what} is {outer}, but the function takes {inner}")
    shape, wanted = shape_of(outer), inner.get_shape()
    if len(shape) != len(wanted):
        raise VerifyException(
            f"{name}: {what} is {outer} of rank {len(shape)}, but the function takes {inner} of rank {len(wanted)}"
        )
    for axis, (extent, static) in enumerate(zip(shape, wanted, strict=True)):
        if static not in (DYNAMIC_INDEX, extent):
            raise VerifyException(
                f"{name}: {what} is {outer}, but the function takes {inner}: "
                f"dimension {axis} is {show_extent(extent)} here and {static} there"
            )


@irdl_op_definition
class CallDpsOp(IRDLOperation):
    """Call a function registered at run time; it fills the results that the call allocates.

    ```mlir
    %y = graph.call_dps "env.linear"(%x, %w) : (tensor<1x784xf32>, tensor<784x128xf32>) -> tensor<1x128xf32>
    ```
    It receives arrays, operands then results, and writes all elements of the results and no other memory
    (`weft.register_func`; in exported libraries, C's `weft_set_function`).
    """

    name = "graph.call_dps"

    callee = prop_def(StringAttr)
    arguments = var_operand_def(TensorType)
    outputs = var_result_def(TensorType)

    traits = traits_def(Pure())
    assembly_format = "$callee `(` $arguments `)` attr-dict `:` functional-type($arguments, $outputs)"

    def __init__(self, callee: str, arguments: Sequence[SSAValue], result_types: Sequence[Attribute]) -> None:
        super().__init__(operands=[arguments], result_types=[result_types], properties={"callee": StringAttr(callee)})

    def verify_(self) -> None:
        if not self.callee.data:
            raise VerifyException("graph.call_dps needs the name of a registered function, got an empty one")
        if "\0" in self.callee.data:
            raise VerifyException(f"graph.call_dps: a name has no zero bytes, got {self.callee.data!r}")
        for type_ in (*self.operand_types, *self.result_types):
            if isinstance(type_, TensorType):
                shape_of(type_)


@irdl_op_definition
class MatchShapeOp(IRDLOperation):
    """Bind new names of extents to integers computed by the program, for later ops of the function.

    ```mlir
    %places, %count = graph.nonzero %x : tensor<?xf32, #graph.dims<n>>
      -> tensor<1x?xi64, #graph.dims<n>>, tensor<i64>
    graph.match_shape %count as <k> at_most <n> : tensor<i64>
    %y = graph.prefix %places {shape = #graph.dims<1, k>} : tensor<1x?xi64, #graph.dims<n>>
      -> tensor<1x?xi64, #graph.dims<k>>
    ```
    `sizes` is an integer, or a vector with one per name. Values are in 0 .. `at_most`, where `?` is unbounded; checked
    builds report others, other builds clamp them, so that accesses stay in bounds. The function is split here, since
    later code allocates with the value.
    """

    name = "graph.match_shape"

    sizes = operand_def(TensorType)
    names = prop_def(DimsAttr)
    at_most = opt_prop_def(DimsAttr)

    assembly_format = "$sizes `as` $names (`at_most` $at_most^)? attr-dict `:` type($sizes)"

    def __init__(self, sizes: SSAValue, names: Sequence[str], at_most: Sequence[Extent] = ()) -> None:
        bounds = {"at_most": DimsAttr(tuple(at_most))} if any(bound is not None for bound in at_most) else {}
        super().__init__(operands=[sizes], properties={"names": DimsAttr(tuple(map(symbol, names))), **bounds})

    @property
    def bound_names(self) -> tuple[str, ...]:
        """Raises `VerifyException` for expressions."""
        found = [lone_name(extent) for extent in self.names.data]
        if None in found:
            raise VerifyException(f"{self.name} binds names, got {show_shape(self.names.data)}")
        return tuple(name for name in found if name is not None)

    @property
    def bounds(self) -> Shape:
        """Maximum values, None if unbounded."""
        return (None,) * len(self.names.data) if self.at_most is None else self.at_most.data

    def verify_(self) -> None:
        names, type_ = self.bound_names, cast("Tensor", self.sizes.type)
        if type_.element_type not in (i32, i64, IndexType()):
            raise VerifyException(f"{self.name} takes integers of 32 or 64 bits, got {type_}")
        if type_.get_shape() not in ((len(names),), ()) or (type_.get_shape() == () and len(names) != 1):
            raise VerifyException(f"{self.name} binds {len(names)} names to as many integers, got {type_}")
        if len(self.bounds) != len(names):
            raise VerifyException(f"{self.name} binds {len(names)} names, but has {len(self.bounds)} bounds")
        if len(set(names)) < len(names):
            raise VerifyException(f"{self.name} binds each name once, got {show_shape(self.names.data)}")
        own = set(names)
        if any(own & names_in(bound) for bound in self.bounds):
            raise VerifyException(f"{self.name}: a bound is over earlier names, got {show_shape(self.bounds)}")
        function = self.parent_op()
        while function is not None and not isinstance(function, FuncOp):
            function = function.parent_op()
        if function is not None:
            self._verify_new(own, function)

    def _verify_new(self, own: set[str], function: FuncOp) -> None:
        used = own & {name for argument in function.args for name in _names_of(argument.type)}
        for op in function.body.walk():
            if op is self or used:
                break
            types = (*op.result_types, *op.operand_types)
            used = own & {name for type_ in types for name in _names_of(type_)}
            for attribute in op.properties.values():
                if isinstance(attribute, DimsAttr):
                    used |= own & {name for extent in attribute.data for name in names_in(extent)}
            if isinstance(op, DataflowOp):
                used = set[str]()  # names that ops in it bind
        if used:
            raise VerifyException(
                f"{self.name} binds new names, but '{min(used)}' is the extent of a parameter or of an earlier op"
            )


def _names_of(type_: Attribute) -> set[str]:
    return {name for extent in shape_of(type_) for name in names_in(extent)} if isinstance(type_, TensorType) else set()


def elements_in(function: FuncOp) -> dict[str, tuple[int, int]]:
    """Named parameter elements -> positions of parameter and element."""
    parameters = {argument.name_hint: argument for argument in function.args}
    types: list[Attribute] = [argument.type for argument in function.args]
    attributes: list[Attribute] = []
    for op in function.body.walk():
        types += op.result_types
        attributes += op.properties.values()
    shapes = [shape_of(type_) for type_ in types if isinstance(type_, TensorType)]
    extents = [extent for shape in shapes for extent in shape]
    extents += [extent for attribute in attributes for extent in extents_in(attribute)]
    tensors = [argument.type for argument in function.args if isinstance(argument.type, TensorType)]
    bound = {lone_name(extent) for type_ in tensors for extent in shape_of(type_)}
    used = {name for extent in set(extents) for name in names_in(extent)}
    used.update(name for fact in preconditions_of(function) for name in fact.names)
    names: dict[str, tuple[int, int]] = {}
    for name in sorted(used - bound):
        found = element_of_name(name)
        argument = None if found is None else parameters.get(found[0])
        if found is not None and argument is not None and is_element(argument.type, found[1]):
            names[name] = argument.index, found[1]
    return names


def bound_in(function: FuncOp) -> dict[str, MatchShapeOp]:
    return {name: op for op in function.walk() if isinstance(op, MatchShapeOp) for name in op.bound_names}


@irdl_op_definition
class OutputOp(IRDLOperation):
    """Return the results of a dataflow region.

    ```mlir
    %y = graph.dataflow -> tensor<4xf32> {
      graph.output %x : tensor<4xf32>
    }
    ```
    """

    name = "graph.output"

    values = var_operand_def()

    traits = lazy_traits_def(lambda: (IsTerminator(), Pure(), HasParent(DataflowOp)))
    assembly_format = "attr-dict ($values^ `:` type($values))?"

    def __init__(self, values: Sequence[SSAValue]) -> None:
        super().__init__(operands=[values])


@irdl_op_definition
class DataflowOp(IRDLOperation):
    """A region without side effects; its ops may be reordered, merged and erased.

    ```mlir
    %y = graph.dataflow -> tensor<4xf32> {
      %a = graph.relu %x : tensor<4xf32> -> tensor<4xf32>
      graph.output %a : tensor<4xf32>
    }
    ```
    Syntax: `graph.dataflow -> type [attributes {...}] { body }`, with several types in parentheses.
    """

    name = "graph.dataflow"

    body = region_def("single_block")
    outputs = var_result_def()

    traits = traits_def(RecursiveMemoryEffect())

    def __init__(self, body: Region, result_types: Sequence[Attribute]) -> None:
        super().__init__(regions=[body], result_types=[result_types])

    @property
    def output(self) -> OutputOp:
        last = self.body.block.last_op
        if not isinstance(last, OutputOp):
            raise VerifyException("graph.dataflow ends with graph.output")
        return last

    def verify_(self) -> None:
        if self.body.block.args:
            raise VerifyException("graph.dataflow takes no arguments: it sees the values around it")
        if (given := self.output.operand_types) != (declared := self.result_types):
            raise VerifyException(
                f"graph.dataflow gives ({', '.join(map(str, declared))}), "
                f"but its graph.output holds ({', '.join(map(str, given))})"
            )
        for op in self.body.block.ops:
            if not is_side_effect_free(op) and not isinstance(op, MatchShapeOp):
                raise VerifyException(f"graph.dataflow holds only pure operations, but {op.name} may have effects")

    @classmethod
    def parse(cls, parser: Parser) -> DataflowOp:
        parser.parse_punctuation("->")
        types = parse_types(parser)
        attributes, body = parse_annotations_and_body(parser)
        op = cls(body, types)
        op.attributes.update(attributes)
        return op

    def print(self, printer: Printer) -> None:
        write(printer, " -> ", grouped(self.result_types))
        print_annotations_and_body(printer, self.attributes, self.body)


@irdl_op_definition
class MakeTupleOp(IRDLOperation):
    """A tuple.

    ```mlir
    %t = graph.make_tuple %a, %b : tuple<tensor<4xf32>, tensor<2xi32>>
    ```
    Syntax: `graph.make_tuple %value, ... : tuple<type, ...>`
    """

    name = "graph.make_tuple"

    values = var_operand_def()
    result = result_def(TupleType)

    traits = traits_def(Pure())

    def __init__(self, values: Sequence[SSAValue]) -> None:
        super().__init__(operands=[values], result_types=[self.type_of([v.type for v in values])])

    @staticmethod
    def type_of(types: Sequence[Attribute]) -> TupleType:
        return TupleType(ArrayAttr(cast("Sequence[TypeAttribute]", types)))

    def verify_(self) -> None:
        if self.result.type.types.data != self.operand_types:
            raise VerifyException(
                f"graph.make_tuple of ({', '.join(map(str, self.operand_types))}) gives {self.result.type}"
            )

    @classmethod
    def parse(cls, parser: Parser) -> MakeTupleOp:
        at = parser.pos
        operands = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        if not isinstance(type_, TupleType):
            parser.raise_error("graph.make_tuple gives a tuple", at, parser.pos)
        return cls(parser.resolve_operands(operands, type_.types.data, at))

    def print(self, printer: Printer) -> None:
        write(printer, " ", [*self.values], " : ", self.result.type)


@irdl_op_definition
class TupleGetOp(IRDLOperation):
    """An element of a tuple.

    ```mlir
    %b = graph.tuple_get %t[1] : tuple<tensor<4xf32>, tensor<2xi32>>
    ```
    Syntax: `graph.tuple_get %tuple[position] : tuple<type, ...>`
    """

    name = "graph.tuple_get"

    source = operand_def(TupleType)
    position = prop_def(IntegerAttr)
    result = result_def()

    traits = traits_def(Pure())

    def __init__(self, source: SSAValue, position: int) -> None:
        types = cast(TupleType, source.type).types.data
        if not 0 <= position < len(types):
            raise VerifyException(f"graph.tuple_get: {source.type} has no value {position}")
        super().__init__(
            operands=[source],
            properties={"position": IntegerAttr(position, i64)},
            result_types=[types[position]],
        )

    @property
    def index(self) -> int:
        return self.position.value.data

    def verify_(self) -> None:
        types = cast(TupleType, self.source.type).types.data
        if not 0 <= self.index < len(types) or types[self.index] != self.result.type:
            raise VerifyException(
                f"graph.tuple_get: {self.source.type} has no value {self.index} of {self.result.type}"
            )

    @classmethod
    def parse(cls, parser: Parser) -> TupleGetOp:
        source = parser.parse_unresolved_operand()
        with parser.in_square_brackets():
            at = parser.pos
            position = parser.parse_integer(allow_boolean=False, allow_negative=False)
            end = parser.pos
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        if not isinstance(type_, TupleType) or position >= len(type_.types.data):
            parser.raise_error(f"graph.tuple_get: {type_} has no value {position}", at, end)
        return cls(parser.resolve_operand(source, type_), position)

    def print(self, printer: Printer) -> None:
        write(printer, " ", self.source, f"[{self.index}] : ", self.source.type)


DIALECT = "graph"

FUSED = "graph.fused"
"""Marks a function over tensors of a fused group, computed by one kernel."""


@irdl_op_definition
class ObserveOp(IRDLOperation):
    """Mark an activation that static quantization rounds to 8 bits; the result is the operand.

    ```mlir
    %o = graph.observe %x as "conv1" : tensor<4xf32>
    %p = graph.observe %x as "conv1" in [-0.5, 2.0] : tensor<4xf32>
    ```
    Calibration finds `range`, the numbers that the integers represent.
    """

    name = "graph.observe"

    T: ClassVar = VarConstraint("T", base(TensorType))

    value = operand_def(T)
    label = prop_def(StringAttr)
    range = opt_prop_def(ArrayAttr)
    result = result_def(T)

    traits = traits_def(Pure())
    assembly_format = "$value `as` $label (`in` $range^)? attr-dict `:` type($value)"

    def __init__(self, value: SSAValue, label: str) -> None:
        super().__init__(operands=[value], result_types=[value.type], properties={"label": StringAttr(label)})

    @property
    def limits(self) -> tuple[float, float] | None:
        """Least and greatest number, None before calibration."""
        if self.range is None:
            return None
        low, high = cast("ArrayAttr[FloatAttr]", self.range).data
        return low.value.data, high.value.data

    @limits.setter
    def limits(self, limits: tuple[float, float]) -> None:
        self.range = ArrayAttr([FloatAttr(limit, f64) for limit in limits])

    def verify_(self) -> None:
        if self.range is None:
            return
        numbers = [item.value.data for item in self.range.data if isinstance(item, FloatAttr) and item.type == f64]
        if len(numbers) != 2 or len(self.range.data) != 2 or not -inf < numbers[0] < numbers[1] < inf:
            raise VerifyException(f"{self.name}: a range is two numbers of f64, the lesser first, got {self.range}")


STRUCTURE = (
    ConstantOp,
    CallTirOp,
    CallDpsOp,
    DataflowOp,
    MatchShapeOp,
    ObserveOp,
    OutputOp,
    MakeTupleOp,
    TupleGetOp,
)
"""The structural ops of a graph; `weft.texpr.graph_operators` adds the operators and defines the dialect."""
