"""Emission of the ops of one function as Python: values, loops, buffers, and ranges of integers.

The source is fast in CPython: a local variable per SSA value, memory as flat lists, strides folded into index
expressions, and bounds checks unless ranges prove them.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, IntegerType, MemRefType, TensorType, VectorType
from xdsl.dialects.memref import AllocaOp, AllocOp
from xdsl.ir import Block

from weft.dialects.effects import op_name
from weft.dialects.intervals import UNBOUNDED, Interval, interval_of
from weft.dialects.tir_assume import affine_text
from weft.interp.errors import InterpreterError, IterationLimit, fail
from weft.interp.registry import call_rule, elementwise_rule, emit_rule
from weft.interp.values import BufferStorage, array_of
from weft.support.errors import CompileError, did_you_mean
from weft.support.narrow_floats import F32_CELL

if TYPE_CHECKING:
    from xdsl.dialects.func import FuncOp
    from xdsl.ir import Attribute, Operation, SSAValue
    from xdsl.ir.affine import AffineExpr


INTERLEAVED = ("interleaved", "privatised")
"""Iterations and threads advance from store to store."""
_ORDERS = ("forward", "reversed", "shuffled", *INTERLEAVED)
_MAX_INDENT = 90
"""CPython rejects more than 100 levels of indentation."""
_RESERVED = frozenset({"range", "zip", "abs", "min", "max", "len", "float", "enumerate", "function"})


@dataclass(frozen=True)
class Options:
    """`order` of `parallel` and `vectorized` loops: "forward", "reversed", "shuffled" (by `seed`), "interleaved"
    (all iterations advance together, from store to store, so that races show), or "privatised" (interleaved, and
    each iteration keeps a private copy of every temporary that only its loop uses). `check_uninitialised`: reads of
    unwritten memory raise, else are zero. `limit`: the maximum number of iterations of a call."""

    order: str = "forward"
    seed: int = 0
    check_uninitialised: bool = True
    limit: IterationLimit | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.order, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"order is one of {', '.join(_ORDERS)}, got {self.order!r}")
        if self.order not in _ORDERS:
            raise ValueError(f"unknown order '{self.order}' of parallel iterations{did_you_mean(self.order, _ORDERS)}")


@dataclass
class CodeScope:
    """Lines of one indentation level; `head` is hoisted from inner scopes."""

    depth: int
    loops: int = 0
    """The number of loops around this scope in its Python function."""
    head: list[tuple[str, Operation | None]] = field(default_factory=list[tuple[str, "Operation | None"]])
    lines: list[tuple[str, Operation | None] | CodeScope] = field(
        default_factory=list["tuple[str, Operation | None] | CodeScope"]
    )

    def flatten(self, into: list[tuple[str, Operation | None]]) -> None:
        indent = " " * self.depth
        into.extend((indent + text, op) for text, op in self.head)
        for line in self.lines:
            if isinstance(line, CodeScope):
                line.flatten(into)
            else:
                into.append((indent + line[0], line[1]))


_MAX_NESTED_LOOPS = 16
"""CPython rejects more than 20 nested loops: deeper ones are moved to an inner function."""


@dataclass(frozen=True)
class BufferSource:
    """A memref as its flat list, and extents (numbers or names)."""

    data: str
    extents: tuple[int | str, ...]
    hint: str
    strides: tuple[int | str, ...] | None = None
    """The strides of a view in elements; None for row-major order."""
    offset: int | str = 0


class Emitter:
    """Names, constants, lines and scopes of one function. `registry` describes its use."""

    def __init__(
        self, function: FuncOp, options: Options, functions: Mapping[str, Callable[..., tuple[Any, ...]]]
    ) -> None:
        self.function = function
        self.options = options
        self.constants: dict[str, Any] = {"_cell": F32_CELL, "_functions": functions}
        """Objects that the source names."""
        self.scope = CodeScope(1)
        self.interleaved: list[str] = []
        """Variables of enclosing loops whose iterations pause around stores."""
        self.in_kernel = False
        """A kernel runs once for each thread."""
        self.has_async_copies = False
        """Threads start asynchronous copies."""
        self.pauses_at_stores = True
        """Interleaved iterations pause around stores, not only at synchronisations."""
        self.root = self.scope
        self._taken = set(_RESERVED)
        self._constant_names: dict[int, str] = {}
        self._values: dict[SSAValue, str] = {}
        self._ranges: dict[SSAValue, Interval] = {}
        self._below: dict[SSAValue, str] = {}
        self._buffers: dict[SSAValue, BufferSource] = {}
        self.tensors: dict[SSAValue, BufferSource] = {}
        """Flat lists and extents of tensors that were read or computed."""
        self.extents: dict[str, str] = {}
        """Local names of extents that ops bind (`graph.match_shape`)."""
        self._private: dict[SSAValue, str] = {}
        self._unwritten: set[SSAValue] = set()
        self._home: dict[str, CodeScope] = {}
        self._hoisted: dict[tuple[str, int | str], str] = {}

    def fresh(self, hint: str | None) -> str:
        base = re.sub(r"\W", "_", hint or "v", flags=re.ASCII).strip("_") or "v"
        if base[0].isdigit() or keyword.iskeyword(base):
            base = "v" + base
        name, number = base, 0
        while name in self._taken or keyword.iskeyword(name):
            number += 1
            name = f"{base}_{number}"
        self._taken.add(name)
        return name

    def constant(self, thing: object, hint: str) -> str:
        """A name for a Python object."""
        name = self._constant_names.get(id(thing))
        if name is None:
            name = f"_{hint}_{len(self.constants)}"
            self.constants[name] = thing
            self._constant_names[id(thing)] = name
        return name

    def helper(self, function: object) -> str:
        return self.constant(function, getattr(function, "__name__", "helper"))

    def operation_name(self, op: Operation) -> str:
        """The name of `op` for helpers that raise errors."""
        return self.constant(op, "op")

    def call(self, function: object, op: Operation, *arguments: object) -> str:
        return f"{self.helper(function)}({', '.join(map(str, (self.operation_name(op), *arguments)))})"

    def refuse(self, condition: str, failure: object, op: Operation, *arguments: object) -> None:
        """Raise an error about `op` if a condition holds. `failure` is a function that raises, or a message for
        `arguments`."""
        if isinstance(failure, str):
            failure, arguments = fail, (repr(failure), *arguments)
        self.line(f"if {condition}: {self.call(failure, op, *arguments)}", op)

    def callee(self, name: str) -> str:
        """The function @name, from run-time values (memrefs as `Buffer`) to a tuple, compiled at its first call,
        which raises `CompileError` if it is missing."""
        return f"_functions[{name!r}]"

    def line(self, text: str, op: Operation | None = None) -> None:
        """Errors that the line raises are reported at `op`."""
        self.scope.lines.append((text, op))

    @contextmanager
    def store(self) -> Generator[None]:
        """Iterations of an interleaved loop may pause around the store: neither updates are atomic, nor stores with
        the loads that read them."""
        pauses = self.interleaved and self.pauses_at_stores
        if pauses:
            self.line("yield")
        yield
        if pauses:
            self.line("yield")

    def store_call(self, function: object, op: Operation, *arguments: object) -> None:
        with self.store():
            self.line(f"{self.helper(function)}({', '.join(map(str, arguments))})", op)

    @contextmanager
    def nested(self, header: str, op: Operation | None = None, *, loop: bool = False) -> Generator[CodeScope]:
        outer = self.scope
        if outer.depth >= _MAX_INDENT and op is not None:
            raise CompileError.at(op, f"the interpreter nests at most {_MAX_INDENT} regions")
        self.line(header, op)
        inner = CodeScope(outer.depth + 1, outer.loops + loop)
        outer.lines.append(inner)
        self.scope = inner
        try:
            yield inner
        finally:
            if not inner.lines and not inner.head:
                inner.lines.append(("pass", None))
            self.scope = outer

    def when(self, conditions: Sequence[str], op: Operation) -> AbstractContextManager[object]:
        return self.nested(f"if {' and '.join(conditions)}:", op) if conditions else nullcontext()

    def source(self) -> list[tuple[str, Operation | None]]:
        lines: list[tuple[str, Operation | None]] = []
        self.root.flatten(lines)
        return lines

    def define(self, value: SSAValue, interval: Interval | None = None, *, maybe_unwritten: bool = False) -> str:
        """A fresh local name, assigned by the next lines. `interval` is the range of an integer. `maybe_unwritten`:
        see `written`."""
        name = self.fresh(value.name_hint)
        self.bind(value, name, interval)
        if maybe_unwritten:
            self._unwritten.add(value)
        return name

    def bind(
        self, value: SSAValue, expression: str, interval: Interval | None = None, below: str | None = None
    ) -> None:
        """Bind `value` to a name or literal. `below` names an extent greater than it."""
        self._values[value] = expression
        if interval is not None:
            self._ranges[value] = interval
        if below is not None:
            self._below[value] = below

    def alias(self, value: SSAValue, source: SSAValue) -> None:
        self.bind(value, self.value(source), self._ranges.get(source), self._below.get(source))
        if source in self._unwritten:
            self._unwritten.add(value)

    def value(self, value: SSAValue) -> str:
        """The expression (a name or a literal) of a scalar, vector or tensor.

        Unwritten values are None. Python arithmetic on None raises, reported as a read of unwritten memory;
        otherwise (`==`, a condition), use `written`.
        """
        try:
            return self._values[value]
        except KeyError:
            raise self.unsupported(value) from None

    def maybe_unwritten(self, value: SSAValue) -> bool:
        return value in self._unwritten

    def mark_unwritten(self, value: SSAValue) -> None:
        self._unwritten.add(value)

    def written(self, value: SSAValue, op: Operation) -> str:
        """The value, after a check for unwritten memory."""
        expression = self.value(value)
        if value in self._unwritten:
            lacks = f"None in {expression}" if isinstance(value.type, VectorType) else f"{expression} is None"
            self.line(f"if {lacks}: {self.helper(unwritten)}()", op)
        return expression

    def assign(self, names: Sequence[str], values: Sequence[SSAValue], op: Operation) -> None:
        if names:
            self.line(f"{', '.join(names)} = {', '.join(map(self.value, values))}", op)

    def unsupported(self, value: SSAValue) -> CompileError:
        owner = value.owner.parent_op() if isinstance(value.owner, Block) else value.owner
        message = f"the interpreter cannot use a value of type {value.type} here"
        return CompileError(message) if owner is None else CompileError.at(owner, message)

    @property
    def names(self) -> Mapping[SSAValue, str]:
        return self._values

    def range_of(self, value: SSAValue) -> Interval:
        known = self._ranges.get(value)
        if known is not None:
            return known
        if isinstance(value.type, IntegerType) and value.type.width.data > 1:
            half = 1 << (value.type.width.data - 1)
            return -half, half - 1
        return UNBOUNDED

    def below_of(self, value: SSAValue) -> str | None:
        return self._below.get(value)

    def affine(self, expr: AffineExpr, operands: Sequence[SSAValue]) -> str:
        used = expr.used_dims()
        return affine_text(expr, [self.value(v) if at in used else "" for at, v in enumerate(operands)])

    def affine_range(self, expr: AffineExpr, operands: Sequence[SSAValue]) -> Interval:
        return interval_of(expr, lambda dim: self.range_of(operands[dim]))

    def argument(self, value: SSAValue) -> str:
        if not isinstance(value.type, MemRefType):
            return self.value(value)
        buffer = self.buffer(value)
        extents = "".join(f"{extent}, " for extent in buffer.extents)
        view = ""
        if buffer.strides is not None:
            strides = "".join(f"{stride}, " for stride in buffer.strides)
            view = f", ({strides}), {buffer.offset}"
        return f"{self.helper(BufferStorage)}({buffer.data}, ({extents}), {buffer.hint!r}{view})"

    @contextmanager
    def loop(self, variable: SSAValue, iterable: str, op: Operation, carried: Sequence[str] = ()) -> Generator[str]:
        """A Python `for`; later lines use the names `carried`. The caller binds the variable to the yielded name,
        with its range."""
        if self.options.limit is not None:
            iterable = self.call(self.options.limit.counted, op, iterable)
        if self.scope.loops < _MAX_NESTED_LOOPS:
            name = self.define(variable)
            with self.nested(f"for {name} in {iterable}:", op, loop=True) as inner:
                self._home[name] = inner
                yield name
            return
        part = self.fresh("part")
        with self.nested(f"def {part}({', '.join(carried)}):") as function:
            function.loops = 0
            name = self.define(variable)
            with self.nested(f"for {name} in {iterable}:", op, loop=True) as inner:
                self._home[name] = inner
                yield name
            if carried:
                self.line(f"return {', '.join(carried)}")
        target = f"{', '.join(carried)} = " if carried else ""
        run = "yield from " if self.interleaved else ""
        self.line(f"{target}{run}{part}({', '.join(carried)})", op)
        if self.interleaved:
            # Makes the function a generator even if nothing pauses.
            function.head.append(("if False: yield", None))

    @contextmanager
    def nest(
        self, variables: Sequence[SSAValue], iterables: Sequence[str], op: Operation, carried: Sequence[str] = ()
    ) -> Generator[None]:
        with ExitStack() as loops:
            for variable, iterable in zip(variables, iterables, strict=True):
                self.bind(variable, loops.enter_context(self.loop(variable, iterable, op, carried)))
            yield

    def endless_loop(self, op: Operation) -> AbstractContextManager[CodeScope]:
        limit = self.options.limit
        condition = "True" if limit is None else self.call(limit.spend, op, 1)
        return self.nested(f"while {condition}:", op, loop=True)

    def iterations(self, extent: int | str | SSAValue, op: Operation) -> tuple[str, Interval, str | None]:
        """The number of iterations, the variable's interval, and an extent that bounds it."""
        if isinstance(extent, int):
            return str(extent), (0, max(extent - 1, 0)), None
        if isinstance(extent, str):
            return extent, (0, None), extent
        count, most = self.written(extent, op), self.range_of(extent)[1]
        return count, (0, None if most is None else max(most - 1, 0)), count

    @contextmanager
    def count(
        self,
        variables: Sequence[SSAValue],
        extents: Sequence[int | str | SSAValue],
        op: Operation,
        carried: Sequence[str] = (),
    ) -> Generator[None]:
        with ExitStack() as loops:
            for variable, extent in zip(variables, extents, strict=True):
                count, interval, below = self.iterations(extent, op)
                name = loops.enter_context(self.loop(variable, f"range({count})", op, carried))
                self.bind(variable, name, interval, below)
            yield

    def region(self, block: Block) -> None:
        """The parent op handles the terminator's operands."""
        for op in block.ops:
            self.operation(op)

    def operation(self, op: Operation) -> None:
        """Raises `CompileError` without a rule."""
        rule = emit_rule(op.name)
        if rule is not None and op.operands and op.results and isinstance(op.results[0].type, TensorType):
            rule = elementwise_rule(op.name) or rule
        if rule is not None:
            rule(self, op)
            return
        function = call_rule(op_name(op))
        if function is None:
            raise CompileError.at(op, f"the interpreter has no meaning for '{op_name(op)}'")
        arguments = ", ".join([self.operation_name(op), *map(self.argument, op.operands)])
        call = f"{self.helper(function)}({arguments})"
        if op.results:
            results = ", ".join(self.define(result) for result in op.results)
            self.line(f"{results} = {call}", op)
        else:
            self.line(call, op)

    def bind_buffer(
        self,
        value: SSAValue,
        data: str,
        extents: Sequence[int | str],
        strides: Sequence[int | str] | None = None,
        offset: int | str = 0,
    ) -> BufferSource:
        """Bind a memref to the flat list `data`, row-major or at `strides` and `offset`; the type's layout is for
        compiled code."""
        places = None if strides is None else tuple(strides)
        buffer = BufferSource(data, tuple(extents), value.name_hint or data, places, offset)
        self._buffers[value] = buffer
        return buffer

    def buffer(self, value: SSAValue) -> BufferSource:
        try:
            return self._buffers[value]
        except KeyError:
            raise self.unsupported(value) from None

    def private_in(self, op: Operation, repeats: Callable[[Operation], bool]) -> list[SSAValue]:
        """Temporaries that only the parallel loop `op` uses, private to its iterations; only in order "privatised"
        if a loop that `repeats` it may carry values to the next run."""
        found: list[SSAValue] = []
        for value in self._buffers:
            alloc = value.owner
            if not isinstance(alloc, AllocOp | AllocaOp) or value.first_use is None or op.is_ancestor(alloc):
                continue
            if not all(op.is_ancestor(use.operation) for use in value.uses):
                continue
            parent = op.parent_op()
            while parent is not None and not parent.is_ancestor(alloc) and not repeats(parent):
                parent = parent.parent_op()
            if self.options.order == "privatised" or parent is None or parent.is_ancestor(alloc):
                found.append(value)
        return found

    def make_private(self, value: SSAValue, iteration: str) -> BufferSource:
        """Bind `value` to a private buffer of an iteration of the enclosing interleaved loops; return the shared
        one."""
        old = self.buffer(value)
        name = self.fresh(old.hint)
        fill = "None" if self.options.check_uninitialised else "0"
        new = f"[{fill}] * len({old.data})"
        kept = self._private.get(value)
        self.line(f"{name} = {new}" if kept is None else f"{name} = {kept}.setdefault(({iteration},), {new})")
        self._buffers[value] = replace(old, data=name)
        return old

    def keep_private(self, value: SSAValue) -> None:
        if self.options.order == "privatised":
            name = self.fresh(f"{self.buffer(value).data}_of")
            self.line(f"{name} = {{}}")
            self._private[value] = name

    def set_buffer(self, value: SSAValue, buffer: BufferSource) -> None:
        self._buffers[value] = buffer

    def extents_of(self, type_: MemRefType[Attribute], dynamic: Iterator[str]) -> tuple[int | str, ...]:
        return tuple(next(dynamic) if e == DYNAMIC_INDEX else e for e in type_.get_shape())

    def read_extents(self, value: SSAValue, shape: str, op: Operation | None = None) -> list[int | str]:
        """Dynamic extents are names read from `shape`."""
        extents: list[int | str] = []
        for at, extent in enumerate(cast("MemRefType[Attribute]", value.type).get_shape()):
            extents.append(extent)
            if extent == DYNAMIC_INDEX:
                extents[-1] = self.fresh(f"{value.name_hint or 'extent'}_{at}")
                self.line(f"{extents[-1]} = {shape}[{at}]", op)
        return extents

    def define_tensor(
        self, result: SSAValue, data: str, extents: Sequence[int | str], op: Operation, label: str = "a tensor"
    ) -> None:
        """Make a tensor of the flat list `data`, which later reads use."""
        shape = "".join(f"{extent}, " for extent in extents)
        element = self.constant(cast("TensorType[Attribute]", result.type).element_type, "type")
        self.line(f"{self.define(result)} = {self.helper(array_of)}({data}, ({shape}), {element})", op)
        if self.scope is self.root:
            self.tensors[result] = BufferSource(data, tuple(extents), result.name_hint or label)

    def element(
        self,
        buffer: BufferSource,
        indices: Sequence[SSAValue],
        op: Operation,
        last_lanes: int = 1,
        mask: str | None = None,
    ) -> str:
        """The flat index, after bounds checks of `last_lanes` elements of the last dimension, except masked ones."""
        if len(indices) != len(buffer.extents):
            raise CompileError.at(
                op, f"'{op.name}' gives {len(indices)} indices for {len(buffer.extents)} dimensions of {buffer.hint}"
            )
        checks: list[str] = []
        for position, (index, extent) in enumerate(zip(indices, buffer.extents, strict=True)):
            lanes = last_lanes if position == len(indices) - 1 else 1
            check = self._bounds_check(index, extent, lanes)
            if check is not None:
                checks.append(check)
        if checks:
            values = ", ".join(self.value(index) for index in indices)
            extents = ", ".join(map(str, buffer.extents))
            lanes = mask or [True] * last_lanes
            place = (repr(buffer.hint), f"[{values}]", f"[{extents}]", lanes)
            self.refuse(f"not ({' and '.join(checks)})", out_of_bounds, op, *place)
        if buffer.strides is None:
            return self.flat_index([self.value(index) for index in indices], buffer.extents)
        return place_in_view([self.value(index) for index in indices], buffer)

    def _bounds_check(self, index: SSAValue, extent: int | str, lanes: int) -> str | None:
        """The condition that `index` is in bounds, None if ranges prove it."""
        low, high = self.range_of(index)
        above_zero = low is not None and low >= 0
        if isinstance(extent, int):
            below = high is not None and high <= extent - lanes
        else:
            below = lanes == 1 and self.below_of(index) == extent
        if above_zero and below:
            return None
        limit = extent - lanes if isinstance(extent, int) else f"{extent} - {lanes}"
        if below:
            return f"{self.value(index)} >= 0"
        return f"{self.value(index)} <= {limit}" if above_zero else f"0 <= {self.value(index)} <= {limit}"

    def flat_index(self, indices: Sequence[str], extents: Sequence[int | str]) -> str:
        constant = 0
        terms: list[str] = []
        stride: int | str = 1
        for index, extent in zip(reversed(indices), reversed(extents), strict=True):
            if isinstance(stride, int) and re.fullmatch(r"-?\d+", index):
                constant += int(index) * stride
            else:
                terms.insert(0, index if stride == 1 else self._product(index, stride))
            stride = self._next_stride(stride, extent)
        if constant or not terms:
            terms.append(str(constant))
        return " + ".join(terms)

    def _next_stride(self, stride: int | str, extent: int | str) -> int | str:
        if isinstance(stride, int) and isinstance(extent, int):
            return stride * extent
        if stride == 1:
            return extent
        if extent == 1:
            return stride
        return f"{stride} * {extent}"

    def _product(self, index: str, stride: int | str) -> str:
        """`index * stride`, computed once per iteration of a loop variable."""
        key = (index, stride)
        if key in self._hoisted:
            return self._hoisted[key]
        product = f"{index} * {stride}"
        home = self._home.get(index)
        if home is None or not isinstance(stride, int) or home is self.scope:
            return product
        name = self.fresh(f"{index}_x{stride}")
        home.head.append((f"{name} = {product}", None))
        self._hoisted[key] = name
        return name


def place_in_view(indices: Sequence[str], buffer: BufferSource) -> str:
    strides = buffer.strides or ()
    terms = [i if s == 1 else f"{i} * {s}" for i, s in zip(indices, strides, strict=True) if s != 0]
    return " + ".join(terms if buffer.offset == 0 and terms else [*terms, str(buffer.offset)])


def out_of_bounds(
    op: Operation, buffer: str, index: list[int], shape: list[int], mask: Sequence[bool] = (True,)
) -> None:
    for lane, active in enumerate(mask):
        place = [*index[:-1], index[-1] + lane] if index else []
        if active and not all(0 <= i < extent for i, extent in zip(place, shape, strict=True)):
            raise InterpreterError(
                op,
                f"access out of bounds: {buffer}[{', '.join(map(str, place))}], the shape of {buffer} is "
                f"{'x'.join(map(str, shape))}",
                buffer=buffer,
                index=place,
                shape=shape,
            )


def unwritten() -> None:
    """Arithmetic on None raises the same error."""
    raise TypeError("a value is None")
