"""How steps of schedules are declared.

A `Step` lists its parameters once. From this follow the `sched` op (`define`), the pass (`primitive_passes.py`), the
method of `Schedule` (`schedule/steps.py`), and how a trace is replayed and printed as Python.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Final

from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, BoolAttr, FloatAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute
from xdsl.irdl import (
    AnyOf,
    EqAttrConstraint,
    IRDLAttrConstraint,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    var_operand_def,
    var_result_def,
)

from weft.dialects.sched_base import BLOCK, INT, LOOP, StepOp


@dataclass(frozen=True, eq=False)
class Kind:
    """What is given for a parameter: handles, which are operands of the op, or a value, which is a property."""

    argument: str
    """The annotation of the method's argument."""
    option: object = None
    """The type of the pass option that is called as the parameter; None if other options name the loop or block."""
    attribute: IRDLAttrConstraint = Attribute
    handles: tuple[Attribute, ...] = ()
    """The types that a handle may have."""
    several: bool = False
    """Whether the rest of the handles are for this parameter."""
    sampled: bool = False
    """Whether integers may be handles of sampled ones, which are operands."""
    optional: bool = False
    """Whether the property is absent when the argument is the default of the method."""


_INTEGERS: Final = ArrayAttr[IntegerAttr]

BLOCK_HANDLE: Final = Kind("BlockHandle | str", str, handles=(BLOCK,))
LOOP_HANDLE: Final = Kind("LoopHandle", int, handles=(LOOP,))
LOOP_ELSEWHERE: Final = Kind("LoopHandle", int, handles=(LOOP,))
"""A loop around another block, which pass option `at` names."""
LOOP_HANDLES: Final = Kind("LoopHandle", tuple[int, ...], handles=(LOOP,), several=True)
LOOPS_OF_BLOCKS: Final = Kind("LoopHandle", tuple[int, ...], handles=(LOOP,), several=True)
"""Loops of different blocks, which pass option `blocks` names."""
LOOP_OR_BLOCK: Final = Kind("BlockHandle | LoopHandle | str", handles=(LOOP, BLOCK))
LOOP_OR_BLOCKS: Final = Kind(
    "LoopHandle | BlockHandle | Sequence[BlockHandle | str]", handles=(LOOP, BLOCK), several=True
)
INTEGER: Final = Kind("int", int, IntegerAttr)
STRING: Final = Kind("str", str, StringAttr)
READ_BUFFER: Final = Kind("int | str", int, IntegerAttr)
"""The index or name of a buffer that the block reads."""
WRITTEN_BUFFER: Final = Kind("int | str", int, IntegerAttr)
READ_OR_WRITTEN_BUFFER: Final = Kind("int | str", int, IntegerAttr)
"""Parameter `buffer_type` says which."""
BUFFER: Final = Kind("BufferOf", str, ArrayAttr[Attribute])
INTEGERS: Final = Kind("Sequence[int]", tuple[int, ...], _INTEGERS)
FACTORS: Final = Kind("Sequence[int | IntHandle | None]", tuple[int, ...], _INTEGERS, sampled=True)
TILE_FACTORS: Final = Kind("Sequence[int | IntHandle]", tuple[int, ...], _INTEGERS, sampled=True)
ANNOTATION: Final = Kind(
    "Note | IntHandle",
    str | int | bool | float | tuple[int, ...] | tuple[str, ...] | tuple[float, ...] | tuple[bool, ...],
    sampled=True,
)
BLOCK_MAP: Final = Kind("IndexMap", str, AffineMapAttr)
"""A map from the iterators of the block."""
BUFFER_MAP: Final = Kind("IndexMap", str, AffineMapAttr)
"""A map from the indices of the buffer."""
REGION: Final = Kind("IndexMap", str, AffineMapAttr)
"""A map from the iterators of the block to begin and end of each dimension of the buffer."""
FLAG: Final = Kind("bool", attribute=BoolAttr, optional=True)
PLACE: Final = Kind("int", attribute=IntegerAttr, optional=True)
BLOCKS: Final = Kind("Sequence[BlockHandle | str] | None", attribute=ArrayAttr[StringAttr], optional=True)
PADDING: Final = Kind("float | Callable[..., object] | AffineMap | None", optional=True)
FLOATS: Final = Kind("Sequence[float]", attribute=ArrayAttr[FloatAttr])
DECISION: Final = Kind("int | None", attribute=IntegerAttr, optional=True)
DECISIONS: Final = Kind("Sequence[int] | None", attribute=_INTEGERS, optional=True)

REQUIRED: Final = object()


@dataclass(frozen=True)
class Parameter:
    """A parameter of a step. `name` is that of the property and the pass option."""

    name: str
    kind: Kind
    argument_name: str = ""
    """The name of the method's argument, where it is another one."""
    default: object = REQUIRED
    """The default of the method's argument."""
    keyword_only: bool = False

    @property
    def argument(self) -> str:
        return self.argument_name or self.name


@dataclass(frozen=True)
class Step:
    """A step: `doc` is the docstring of the method and of the op."""

    name: str
    doc: str
    parameters: tuple[Parameter, ...]
    gives: Attribute | tuple[Attribute] | None = None
    """The type of its result; in a tuple, that of any number of results."""
    consumes: bool = False
    """Whether the loop handles given are gone afterwards."""
    verify: Callable[[StepOp], None] | None = None
    ignores: tuple[str, ...] = ()
    """Keywords that the method accepts, as TVM's does, and that change nothing."""

    @property
    def class_name(self) -> str:
        """`compute_at` -> `ComputeAt`."""
        return "".join(part.capitalize() for part in self.name.split("_"))

    @property
    def pass_name(self) -> str:
        """`compute_at` -> `tir-compute-at`."""
        return "tir-" + self.name.replace("_", "-")


def define(step: Step, base: type[StepOp] = StepOp) -> type[StepOp]:
    """The op of a step: handles are its operands, other parameters its properties."""
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
            # Sampled integers follow the loops in one group: an op has one group of operands of any length.
            allowed = (*kind.handles, INT) if several and sampled is not None else kind.handles
            constraint = AnyOf(tuple(EqAttrConstraint(type_) for type_ in allowed))
            fields[parameter.name] = var_operand_def(constraint) if kind.several else operand_def(constraint)
        else:
            absent = kind.optional or kind is ANNOTATION
            fields[parameter.name] = opt_prop_def(kind.attribute) if absent else prop_def(kind.attribute)
    if sampled is not None and not several:
        fields["sampled"] = var_operand_def(INT) if is_list else opt_operand_def(INT)
    if isinstance(step.gives, tuple):
        fields["given"] = var_result_def(step.gives[0])
    elif step.gives is not None:
        fields["given"] = result_def(step.gives)
    if step.verify is not None:
        fields["verify_"] = step.verify
    namespace = {"name": f"sched.{step.name}", "__doc__": step.doc, "__module__": __name__, **constants, **fields}
    namespace["__annotations__"] = dict.fromkeys(constants, ClassVar)
    return irdl_op_definition(type(f"{step.class_name}Op", (base,), namespace))
