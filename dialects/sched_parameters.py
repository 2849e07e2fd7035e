"""Declarations of schedule steps, handle types, the enclosing function, and syntax.

A `Step` defines the `sched` op (`define`), the pass (`primitive_passes.py`), the method of `Schedule`
(`schedule/schedule.py`), its replay and Python form.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import ClassVar, Final

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AffineMapAttr,
    ArrayAttr,
    BoolAttr,
    DictionaryAttr,
    FloatAttr,
    IntegerAttr,
    StringAttr,
    SymbolNameConstraint,
    f64,
    i64,
)
from xdsl.dialects.utils import parse_dynamic_index_list_without_types, print_dynamic_index_list
from xdsl.ir import Attribute, Block, ParametrizedAttribute, Region, SSAValue, TypeAttribute
from xdsl.irdl import (
    AnyOf,
    EqAttrConstraint,
    IRDLAttrConstraint,
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import HasParent, NoTerminator, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from weft.dialects.printing import write


@irdl_attr_definition
class BlockType(ParametrizedAttribute, TypeAttribute):
    """A handle on a block.

    ```mlir
    !sched.block
    ```
    """

    name = "sched.block"


@irdl_attr_definition
class LoopType(ParametrizedAttribute, TypeAttribute):
    """A handle on a loop.

    ```mlir
    !sched.loop
    ```
    """

    name = "sched.loop"


@irdl_attr_definition
class IntType(ParametrizedAttribute, TypeAttribute):
    """A handle on a sampled integer.

    ```mlir
    !sched.int
    ```
    """

    name = "sched.int"


BLOCK = BlockType()
LOOP = LoopType()
INT = IntType()
SHORT_NAMES: Mapping[str, Attribute] = {"block": BLOCK, "loop": LOOP, "int": INT}
SAMPLED = DYNAMIC_INDEX
"""An integer given by an operand."""


@irdl_op_definition
class FuncOp(IRDLOperation):
    """A schedule: steps to apply, in order, to the enclosing module.

    ```mlir
    sched.func @schedule {
      %y = sched.get_block "Y" in @mm_relu : block
      %i, %j, %k = sched.get_loops %y : loop, loop, loop
      sched.parallel %i
    }
    ```
    Syntax: `sched.func @name { steps }`
    """

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
            given = sum(operand.type == INT for operand in op.operands)
            if op.INTEGERS is not None and given != integers_of(op.properties.get(op.INTEGERS)).count(SAMPLED):
                raise VerifyException(f"{op.name} uses {given} integer handles, but not in its {op.INTEGERS}")
            for operand in op.operands:
                if operand in consumed:
                    raise VerifyException(
                        f"{op.name} uses handle %{operand.name_hint or '?'}, "
                        f"which {consumed[operand]} before it has consumed"
                    )
            if op.CONSUMES:
                consumed.update((operand, op.name) for operand in op.operands if operand.type == LOOP)

    @classmethod
    def parse(cls, parser: Parser) -> FuncOp:
        name = parser.parse_symbol_name()
        region = parser.parse_region()
        if not region.blocks:
            region.add_block(Block())
        return cls(name.data, region)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        printer.print_string(" ")
        printer.print_region(self.body, print_empty_block=False)


class StepOp(IRDLOperation):
    HANDLE_TYPES: ClassVar[tuple[tuple[Attribute, ...], ...]] = ()
    """Types of each operand; the last entry repeats for a variadic group."""
    INTEGERS: ClassVar[str | None] = None
    """The list property with operands, printed as `[%t0, 4]`."""
    CONSUMES: ClassVar[bool] = False
    """It consumes its loop handles."""

    traits = traits_def(HasParent(FuncOp))


def verify_handles(step: StepOp, given: int) -> None:
    """Check for a result per handle of `given`, or none."""
    if step.results and len(step.results) != given:
        raise VerifyException(f"{step.name} gives {given} handles, {len(step.results)} are named")


def _parse_step(cls: type[StepOp], parser: Parser) -> StepOp:
    """`%i, %j [%t0, 4] {name = value} : loop, loop`"""
    first = parser.parse_optional_unresolved_operand()
    unresolved = [] if first is None else [first]
    while unresolved and parser.parse_optional_punctuation(",") is not None:
        unresolved.append(parser.parse_unresolved_operand())
    types = cls.HANDLE_TYPES or ((LOOP,),)
    operands = [
        _resolve(parser, operand, types[min(position, len(types) - 1)]) for position, operand in enumerate(unresolved)
    ]
    properties: dict[str, Attribute] = {}
    if cls.INTEGERS is not None and parser.parse_optional_punctuation("[") is not None:
        handles, integers = parse_dynamic_index_list_without_types(parser, SAMPLED, delimiter=Parser.Delimiter.NONE)
        parser.parse_punctuation("]")
        operands.extend(parser.resolve_operand(handle, INT) for handle in handles)
        properties[cls.INTEGERS] = ArrayAttr([IntegerAttr(integer, i64) for integer in integers])
    properties.update(parser.parse_optional_attr_dict())
    results = _parse_result_types(parser)
    return cls.create(operands=operands, result_types=results, properties=properties)


def _print_step(step: StepOp, printer: Printer) -> None:
    integers = [o for o in step.operands if o.type == INT] if step.INTEGERS is not None else []
    handles = [o for o in step.operands if o not in integers]
    properties = dict(step.properties)
    if handles:
        write(printer, " ", handles)
    if step.INTEGERS is not None and integers:
        printer.print_string(" ")
        print_dynamic_index_list(printer, SAMPLED, integers, integers_of(properties.pop(step.INTEGERS)))
    if properties:
        printer.print_string(" ")
        _print_plain(printer, DictionaryAttr(properties))
    if step.results:
        names = {type_: name for name, type_ in SHORT_NAMES.items()}
        write(printer, " : ", [names[type_] for type_ in step.result_types])


def _resolve(parser: Parser, operand: UnresolvedOperand, expected: tuple[Attribute, ...]) -> SSAValue[Attribute]:
    """The definition determines the type if several are possible."""
    known = parser.ssa_values.get(operand.operand_name)
    found = next((v.type for v in known or () if v.type in expected), expected[0])
    return parser.resolve_operand(operand, found)


def integers_of(attribute: Attribute | None) -> list[int]:
    elements: tuple[Attribute, ...] = attribute.data if isinstance(attribute, ArrayAttr) else ()
    return [element.value.data for element in elements if isinstance(element, IntegerAttr)]


def _parse_result_types(parser: Parser) -> list[Attribute]:
    if parser.parse_optional_punctuation(":") is None:
        return []

    def parse_short() -> Attribute:
        for name, type_ in SHORT_NAMES.items():
            if parser.parse_optional_keyword(name) is not None:
                return type_
        parser.raise_error(f"expected a handle type, one of {', '.join(SHORT_NAMES)}")

    return parser.parse_comma_separated_list(parser.Delimiter.NONE, parse_short)


def _print_plain(printer: Printer, value: Attribute) -> None:
    """Print without default types; floats round-trip."""
    if isinstance(value, IntegerAttr) and value.type == i64:
        printer.print_string(str(value.value.data))
    elif isinstance(value, ArrayAttr):
        printer.print_string("[")
        elements: tuple[Attribute, ...] = value.data  # pyright: ignore[reportUnknownVariableType]
        printer.print_list(elements, lambda element: _print_plain(printer, element))
        printer.print_string("]")
    elif isinstance(value, DictionaryAttr):
        printer.print_string("{")
        printer.print_list(value.data.items(), lambda item: _print_entry(printer, *item))
        printer.print_string("}")
    elif not _print_float(printer, value):
        printer.print_attribute(value)


def _print_entry(printer: Printer, key: str, value: Attribute) -> None:
    printer.print_identifier_or_string_literal(key)
    printer.print_string(" = ")
    _print_plain(printer, value)


def _print_float(printer: Printer, value: Attribute) -> bool:
    """Returns False unless finite and of the default type."""
    if not isinstance(value, FloatAttr) or value.type != f64 or not isfinite(value.value.data):
        return False
    digits, _, exponent = repr(value.value.data).partition("e")
    printer.print_string((digits if "." in digits else f"{digits}.0") + (f"e{exponent}" if exponent else ""))
    return True


@dataclass(frozen=True, eq=False)
class Kind:
    """Handles (operands), or a value (property)."""

    argument: str
    """The annotation of the method's argument."""
    option: object = None
    """The type of the pass option with the parameter's name; None if other options identify the loop or block."""
    attribute: IRDLAttrConstraint = Attribute
    handles: tuple[Attribute, ...] = ()
    """The possible types."""
    several: bool = False
    """It takes all remaining handles."""
    sampled: bool = False
    """Integers may be handles of sampled integers."""
    optional: bool = False
    """The property is absent for the method's default."""
    meaning: str = ""
    """The description of the pass option, without `stated_meaning`."""
    example: str = ""
    """A value of the pass option, for examples."""


_INTEGERS: Final = ArrayAttr[IntegerAttr]

BLOCK_HANDLE: Final = Kind("BlockHandle | str", str, handles=(BLOCK,), meaning="The name of the block.", example="B")
_POSITION: Final = "The position of the loop among those around `block`, from 0, the outermost one."
LOOP_HANDLE: Final = Kind("LoopHandle", int, handles=(LOOP,), meaning=_POSITION, example="0")
LOOP_ELSEWHERE: Final = Kind(
    "LoopHandle",
    int,
    handles=(LOOP,),
    meaning="The position of the loop among those around the block `at`, from 0, the outermost one.",
    example="0",
)
"""A loop around another block, which pass option `at` names."""
LOOP_HANDLES: Final = Kind(
    "LoopHandle",
    tuple[int, ...],
    handles=(LOOP,),
    several=True,
    meaning="The positions of the loops among those around `block`, from 0, the outermost one.",
    example="0,1",
)
LOOPS_OF_BLOCKS: Final = Kind(
    "LoopHandle",
    tuple[int, ...],
    handles=(LOOP,),
    several=True,
    meaning="For each of `blocks`, the position of the loop among those around it.",
    example="0,0",
)
"""Loops of different blocks, which pass option `blocks` names."""
LOOP_OR_BLOCK: Final = Kind("BlockHandle | LoopHandle | str", handles=(LOOP, BLOCK))
LOOP_OR_BLOCKS: Final = Kind(
    "LoopHandle | BlockHandle | Sequence[BlockHandle | str]", handles=(LOOP, BLOCK), several=True
)
INTEGER: Final = Kind("int", int, IntegerAttr)
STRING: Final = Kind("str", str, StringAttr)
READ_BUFFER: Final = Kind(
    "int | str",
    int,
    IntegerAttr,
    meaning="The position of the buffer among those that the block reads, from 0, in order of first load; buffers that "
    "a block with an init updates are not counted.",
    example="0",
)
"""An index or name of a buffer that the block reads."""
WRITTEN_BUFFER: Final = Kind(
    "int | str",
    int,
    IntegerAttr,
    meaning="The position of the buffer among those that the block writes, from 0, in order of first store.",
    example="0",
)
READ_OR_WRITTEN_BUFFER: Final = Kind(
    "int | str",
    int,
    IntegerAttr,
    meaning="The position of the buffer among those that the block reads or writes, depending on `buffer-type`.",
    example="0",
)
BUFFER: Final = Kind(
    "BufferOf", str, ArrayAttr[Attribute], meaning="The name of a buffer that the block accesses.", example="A"
)
INTEGERS: Final = Kind("Sequence[int]", tuple[int, ...], _INTEGERS)
FACTORS: Final = Kind(
    "Sequence[int | IntHandle | None]",
    tuple[int, ...],
    _INTEGERS,
    sampled=True,
    meaning="The extents of the new loops, outermost first; at most one is 0 and then inferred.",
    example="0,4",
)
TILE_FACTORS: Final = Kind(
    "Sequence[int | IntHandle]",
    tuple[int, ...],
    _INTEGERS,
    sampled=True,
    meaning="The extent of each tile loop.",
    example="4,4",
)
ANNOTATION: Final = Kind(
    "Annotation | IntHandle",
    str | int | bool | float | tuple[int, ...] | tuple[str, ...] | tuple[float, ...] | tuple[bool, ...],
    sampled=True,
    meaning="The value of the annotation.",
)
BLOCK_MAP: Final = Kind(
    "IndexMap",
    str,
    AffineMapAttr,
    meaning='A map from the iterators of the block: `"lambda i, j: (j, i)"`.',
    example='"lambda i, j: (j, i)"',
)
BUFFER_MAP: Final = Kind(
    "IndexMap",
    str,
    AffineMapAttr,
    meaning='A map from the indices of the buffer: `"lambda i, j: (j, i)"`.',
    example='"lambda i, j: (j, i)"',
)
REGION: Final = Kind(
    "IndexMap",
    str,
    AffineMapAttr,
    meaning="A map from the iterators of the block to the begin and end of each dimension of the buffer.",
    example='"lambda i, j: (i, i + 1, j, j + 1)"',
)
FLAG: Final = Kind("bool", bool, BoolAttr, optional=True)
PLACE: Final = Kind("int", int, IntegerAttr, optional=True)
BLOCKS: Final = Kind("Sequence[BlockHandle | str] | None", tuple[str, ...], ArrayAttr[StringAttr], optional=True)
PADDING: Final = Kind("float | str | Callable[..., object] | AffineMap | None", int | float | str, optional=True)
FLOATS: Final = Kind("Sequence[float]", attribute=ArrayAttr[FloatAttr])
DECISION: Final = Kind("int | None", attribute=IntegerAttr, optional=True)
DECISIONS: Final = Kind("Sequence[int] | None", attribute=_INTEGERS, optional=True)

REQUIRED: Final = object()


@dataclass(frozen=True)
class Parameter:
    name: str
    kind: Kind
    argument_name: str = ""
    """The name of the method's argument, if it differs."""
    default: object = REQUIRED
    """The default of the method's argument."""
    keyword_only: bool = False
    stated_meaning: str = ""
    """The description of the pass option, if it differs from the kind's."""
    stated_example: str = ""
    """A value of the pass option, if the kind's does not fit."""

    @property
    def argument(self) -> str:
        return self.argument_name or self.name

    @property
    def may_be_absent(self) -> bool:
        """A default, or an annotation, which may be sampled."""
        return self.kind.optional or self.kind is ANNOTATION or self.default is not REQUIRED

    @property
    def meaning(self) -> str:
        return self.stated_meaning or self.kind.meaning

    @property
    def example(self) -> str:
        """Empty if any value is valid."""
        return self.stated_example or self.kind.example


@dataclass(frozen=True)
class Step:
    """`doc` is the method's docstring, and with example and syntax the op's."""

    name: str
    doc: str
    parameters: tuple[Parameter, ...]
    gives: Attribute | tuple[Attribute] | None = None
    """The type of its result; in a tuple, of a variadic result."""
    consumes: bool = False
    """It consumes its loop handles."""
    verify: Callable[[StepOp], None] | None = None
    on_root: bool = False
    """A block may be the root block, which is the function."""
    ignores: tuple[str, ...] = ()
    """Keywords of TVM that the method ignores."""
    example: str = ""
    """The op in a schedule, for its docstring."""

    @property
    def class_name(self) -> str:
        """`compute_at` -> `ComputeAt`."""
        return "".join(part.capitalize() for part in self.name.split("_"))

    @property
    def pass_name(self) -> str:
        """`compute_at` -> `tir-compute-at`."""
        return "tir-" + self.name.replace("_", "-")

    @property
    def syntax(self) -> str:
        """`sched.split %loop {factors = ..., [disable_predication = ...]} : loop, ...`"""
        handles = [f"%{p.name}{', ...' if p.kind.several else ''}" for p in self.parameters if p.kind.handles]
        properties = [p for p in self.parameters if not p.kind.handles]
        shown = [f"[{p.name} = ...]" if p.may_be_absent else f"{p.name} = ..." for p in properties]
        parts = [f"sched.{self.name}", *([", ".join(handles)] if handles else [])]
        parts += [f"{{{', '.join(shown)}}}"] if shown else []
        names = {type_: name for name, type_ in SHORT_NAMES.items()}
        if self.gives is not None:
            parts += [":", f"{names[self.gives[0]]}, ..." if isinstance(self.gives, tuple) else names[self.gives]]
        sampled = next((p.name for p in self.parameters if p.kind.sampled and p.kind is not ANNOTATION), None)
        note = "" if sampled is None else f"; with sampled integers `[%int, 4]` in place of `{sampled}`"
        return f"`{' '.join(parts)}`{note}"


def define(step: Step, base: type[StepOp] = StepOp) -> type[StepOp]:
    """Handles are operands, other parameters properties."""
    sampled = next((parameter for parameter in step.parameters if parameter.kind.sampled), None)
    is_list = sampled is not None and sampled.kind is not ANNOTATION
    several = any(parameter.kind.several for parameter in step.parameters)
    types = [parameter.kind.handles for parameter in step.parameters if parameter.kind.handles]
    constants: dict[str, object] = {
        "HANDLE_TYPES": tuple(types if sampled is None or is_list else [*types, (INT,)]),
        "INTEGERS": sampled.name if sampled is not None and is_list else None,
        "CONSUMES": step.consumes,
    }
    fields: dict[str, object] = {}
    for parameter in step.parameters:
        kind = parameter.kind
        if kind.handles:
            # Sampled integers follow the loops in the op's one group of operands.
            allowed = (*kind.handles, INT) if several and sampled is not None else kind.handles
            constraint = AnyOf(tuple(EqAttrConstraint(type_) for type_ in allowed))
            fields[parameter.name] = var_operand_def(constraint) if kind.several else operand_def(constraint)
        else:
            property_def = opt_prop_def if parameter.may_be_absent else prop_def
            fields[parameter.name] = property_def(kind.attribute)
    if sampled is not None and not several:
        fields["sampled"] = var_operand_def(INT) if is_list else opt_operand_def(INT)
    if isinstance(step.gives, tuple):
        fields["given"] = var_result_def(step.gives[0])
    elif step.gives is not None:
        fields["given"] = result_def(step.gives)
    if step.verify is not None:
        fields["verify_"] = step.verify
    syntax = {"parse": classmethod(_parse_step), "print": _print_step}
    doc = f"{step.doc}\n\n```mlir\n{step.example}\n```\nSyntax: {step.syntax}\n"
    described = {"name": f"sched.{step.name}", "__doc__": doc, "__module__": __name__}
    namespace: dict[str, object] = {**described, **constants, **fields, **syntax}
    namespace["__annotations__"] = dict.fromkeys(constants, ClassVar)
    return irdl_op_definition(type(f"{step.class_name}Op", (base,), namespace))
