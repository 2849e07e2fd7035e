"""The interpreter of transform scripts.

Failures are silenceable (`Silenceable`: sequences may suppress them, alternatives recover), or definite (other
`CompileError`s), which end the script.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial, wraps
from typing import Any, Final, TypeAlias, cast

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DenseArrayBase,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
)
from xdsl.dialects.transform import FailurePropagationModeAttr, NamedSequenceOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from weft.dialects.effects import op_name
from weft.dialects.upstream.transform import MODES, SequenceOp, YieldOp
from weft.schedule.recording import IntHandle
from weft.schedule.transform.payload import Payload, PayloadItem, program_ops
from weft.support.errors import CompileError, ScheduleError, did_you_mean
from weft.support.locations import location_of

Size: TypeAlias = "int | IntHandle"
"""A number of iterations, from the script or from a sampling step."""


@dataclass(frozen=True)
class Param:
    """A value, and its sampled integer, if any. Its type represents a value of the payload, because operations read
    no more."""

    value: Attribute
    drawn: IntHandle | None = None

    def __str__(self) -> str:
        return str(self.value)


Associated: TypeAlias = "PayloadItem | Param"
Handler: TypeAlias = "Callable[[Interpreter, Operation], Sequence[Sequence[Associated]] | None]"
"""Returns the payload ops or parameters of each result."""
Results: TypeAlias = Sequence[Sequence[PayloadItem]]
"""The payload ops of each result."""
ItemHandler: TypeAlias = "Callable[[Interpreter, Operation, PayloadItem], Results]"


class Silenceable(CompileError):
    """A failure that scripts may suppress; the operation's effects are undone."""


@dataclass
class _Invalidation:
    op: Operation
    operand: int


@dataclass
class Interpreter:
    payload: Payload
    module: ModuleOp
    choices: Mapping[str, str] = field(default_factory=dict[str, str])
    """Values of `tune.knob`, and region numbers of `tune.alternatives`, by name."""
    later: list[Callable[[ModuleOp], None]] = field(default_factory=list[Callable[[ModuleOp], None]])
    """To run on the resulting payload."""
    draws: bool = False
    """Choices that the script leaves open are drawn; else they are definite failures."""
    is_bufferized: bool = False
    """Function boundaries are bufferized."""
    including: list[str] = field(default_factory=list[str])
    """Sequences that are being included."""
    _values: dict[SSAValue, Sequence[Associated]] = field(default_factory=dict[SSAValue, "Sequence[Associated]"])
    _invalid: dict[SSAValue, _Invalidation] = field(default_factory=dict[SSAValue, _Invalidation])

    @contextmanager
    def undone_on_error(self) -> Generator[None]:
        invalid = dict(self._invalid)
        try:
            with self.payload.undone_on_error():
                yield
        except BaseException:
            self._invalid = invalid
            raise

    def run(self, entry_point: str, trailing: Sequence[str] = ()) -> None:
        """Run the sequence `entry_point`, or the module's top-level ones. `trailing` names payload ops for further
        arguments."""
        names = [op for op in program_ops(self.module) if isinstance(op, NamedSequenceOp)]
        found = next((op for op in names if op.sym_name.data == entry_point), None)
        tops = [op for op in program_ops(self.module) if op_name(op) == SequenceOp.name]
        root: list[list[Associated]] = [[self.payload.root()]]
        if found is not None:
            inside = self.payload.inside(self.payload.root()) if trailing else ()
            bound: list[list[Associated]] = [[op for op in inside if op.name == name] for name in trailing]
            if len(found.body.block.args) != 1 + len(bound):
                raise CompileError.at(
                    found,
                    f"@{entry_point} has {len(found.body.block.args)} arguments, and is given the payload and "
                    f"{len(bound)} handles (debug-bind-trailing-args)",
                )
            self.run_block(found.body.block, [*root, *bound], MODES.index("propagate"))
            return
        if not tops:
            known = {op.sym_name.data for op in names}
            raise CompileError(f"no transform.named_sequence @{entry_point}{did_you_mean(entry_point, known)}")
        for top in tops:
            self.run_block(top.regions[0].block, root, mode_of(top))

    def run_block(
        self, block: Block, arguments: Sequence[Sequence[Associated]], mode: int
    ) -> list[Sequence[Associated]]:
        """Returns yielded values. Silenceable failures end a sequence, or are suppressed."""
        for argument, given in zip(block.args, arguments, strict=True):
            self._invalid.pop(argument, None)
            self._values[argument] = given
        for op in block.ops:
            if op_name(op) in (YieldOp.name, "transform.match.structured.yield"):
                return [self.associated(operand, op) for operand in op.operands]
            try:
                self._run_op(op)
            except Silenceable:
                if MODES[mode] == "propagate":
                    raise
                self._set_results(op, [[] for _ in op.results])
        return []

    def _run_op(self, op: Operation) -> None:
        name = op_name(op)
        handler = HANDLERS.get(name)
        if handler is None:
            raise CompileError.at(op, f"{name} is not supported{did_you_mean(name, HANDLERS)}")
        for operand in op.operands:
            self.associated(operand, op)
        try:
            found = handler(self, op)
        except ScheduleError as error:
            raise self.failure(op, str(error).removeprefix("error: ")) from error
        except CompileError as error:
            if error.location is None:
                error.location = location_of(op)
            raise
        self._set_results(op, [] if found is None else found)

    def _set_results(self, op: Operation, found: Sequence[Sequence[Associated]]) -> None:
        check_results(op, len(found))
        for result, associated in zip(op.results, found, strict=True):
            self._invalid.pop(result, None)
            self._values[result] = list(associated)

    def associated(self, value: SSAValue, user: Operation) -> Sequence[Associated]:
        """A handle's payload ops, or a parameter's values. Raises `CompileError` for a consumed handle."""
        if value in self._invalid:
            by = self._invalid[value]
            note = (
                f"invalidated by this {op_name(by.op)}, which consumes its operand #{by.operand} and invalidates all "
                "handles to the payload ops of this operand and those inside of them"
            )
            place = location_of(by.op)
            raise CompileError(
                f"{op_name(user)} uses a handle invalidated by a previously executed transform op: {_named(value)}",
                location=location_of(user),
                notes=() if place is None else ((note, place),),
            )
        if value not in self._values:
            raise CompileError.at(user, f"{op_name(user)}: {_named(value)} is defined outside of the sequence")
        return self._values[value]

    def ops(self, op: Operation, operand: int = 0) -> list[PayloadItem]:
        found = self.associated(op.operands[operand], op)
        if not all(isinstance(one, PayloadItem) for one in found):
            raise CompileError.at(
                op, f"{op_name(op)} needs a handle to ops, {_named(op.operands[operand])} is a parameter"
            )
        return cast("list[PayloadItem]", list(found))

    def single(self, op: Operation, operand: int = 0) -> PayloadItem:
        found = self.ops(op, operand)
        if len(found) != 1:
            name = _named(op.operands[operand])
            raise CompileError.at(op, f"{op_name(op)} needs a handle to one payload op, {name} has {len(found)}")
        return found[0]

    def consume(self, op: Operation, operand: int = 0) -> None:
        """Invalidate handles to an operand's payload ops and those inside."""
        consumed = self.ops(op, operand)
        for value, associated in self._values.items():
            for one in associated:
                if isinstance(one, PayloadItem) and any(self.payload.holds(outer, one) for outer in consumed):
                    self._invalid[value] = _Invalidation(op, operand)
                    break

    def sizes(self, op: Operation, static: str, dynamic: Sequence[SSAValue]) -> list[Size]:
        attribute = op.properties.get(static, op.attributes.get(static))
        numbers = cast("DenseArrayBase[Any]", attribute).get_values() if isinstance(attribute, DenseArrayBase) else ()
        given = iter(dynamic)
        return [self.size(op, next(given)) if number == DYNAMIC_INDEX else int(number) for number in numbers]

    def size(self, op: Operation, value: SSAValue) -> Size:
        found = self.associated(value, op)
        if len(found) != 1 or not isinstance(found[0], Param):
            raise self.failure(op, f"{_named(value)} is not one parameter")
        attribute = found[0].value
        if not isinstance(attribute, IntegerAttr):
            raise self.failure(op, f"{_named(value)} is {attribute}, not an integer")
        return attribute.value.data if found[0].drawn is None else found[0].drawn

    def number(self, size: Size) -> int:
        return size if isinstance(size, int) else self.payload.schedule.get(size)

    def failure(self, op: Operation, message: str, on: PayloadItem | None = None) -> Silenceable:
        notes = () if on is None or on.location is None else (("payload op", on.location),)
        subject = "" if on is None else f" on {on.name}"
        return Silenceable(f"{op_name(op)}{subject}: {message}", location=location_of(op), notes=notes)


def _named(value: SSAValue) -> str:
    return f"%{value.name_hint or '?'}"


def check_results(op: Operation, given: int) -> None:
    """Raises `CompileError` unless all result handles are named."""
    if given != len(op.results):
        raise CompileError.at(op, f"{op_name(op)} gives {given} handles, {len(op.results)} are named")


def has_flag(op: Operation, name: str) -> bool:
    attribute = op.properties.get(name, op.attributes.get(name))
    return attribute is not None and not (isinstance(attribute, IntegerAttr) and attribute.value.data == 0)


def integer_of(op: Operation, name: str, default: int | None = None) -> int:
    attribute = op.properties.get(name, op.attributes.get(name))
    if isinstance(attribute, IntegerAttr):
        return attribute.value.data
    if default is None:
        raise CompileError.at(op, f"{op_name(op)} needs the attribute '{name}', an integer")
    return default


def integers_of(op: Operation, name: str) -> list[int] | None:
    attribute = op.properties.get(name, op.attributes.get(name))
    if isinstance(attribute, ArrayAttr):
        return [one.value.data for one in attribute if isinstance(one, IntegerAttr)]
    if not isinstance(attribute, DenseArrayBase):
        return None
    return [int(one) for one in cast("DenseArrayBase[Any]", attribute).get_values()]


def mode_of(op: Operation) -> int:
    """The failure propagation mode, a word in xDSL's classes."""
    attribute = op.properties.get("failure_propagation_mode")
    if isinstance(attribute, FailurePropagationModeAttr):
        return MODES.index(attribute.data.value)
    return integer_of(op, "failure_propagation_mode")


def text_of(op: Operation, name: str) -> str | None:
    attribute = op.properties.get(name, op.attributes.get(name))
    if isinstance(attribute, SymbolRefAttr):
        return attribute.root_reference.data
    return attribute.data if isinstance(attribute, StringAttr) else None


HANDLERS: Final[dict[str, Handler]] = {}
"""Name of an operation -> handler. The modules in `FAMILIES` register theirs."""


def handles(*names: str) -> Callable[[Handler], Handler]:
    def register(handler: Handler) -> Handler:
        HANDLERS.update({f"transform.{name}": handler for name in names})
        return handler

    return register


def each(
    interpreter: Interpreter, op: Operation, run: Callable[[PayloadItem], Results | None]
) -> list[list[Associated]]:
    """Consume the first operand, call `run` on its payload ops, and join the results. A failure undoes all."""
    targets = interpreter.ops(op)
    interpreter.consume(op)
    results: list[list[Associated]] = [[] for _ in op.results]
    with interpreter.payload.undone_on_error():
        for target in targets:
            try:
                found = run(target)
            except ScheduleError as error:
                raise interpreter.failure(op, str(error).removeprefix("error: "), target) from error
            check_results(op, len(found) if found else len(results))
            for result, one in zip(results, found or [[] for _ in results], strict=True):
                result.extend(one)
    return results


def handles_each(name: str) -> Callable[[ItemHandler], ItemHandler]:
    """Register the handler of one payload op of the first operand, for `each`."""

    def register(handler: ItemHandler) -> ItemHandler:
        @wraps(handler)
        def run(interpreter: Interpreter, op: Operation) -> list[list[Associated]]:
            return each(interpreter, op, partial(handler, interpreter, op))

        handles(name)(run)
        return handler

    return register
