"""The head of a printed function: its parameters, and what is known about their extents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, IntegerAttr, MemRefType, NoneAttr, StringAttr
from xdsl.dialects.memref import DimOp
from xdsl.dialects.ptr import PtrType
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from weft.analysis.structural_equality import scalar_constant
from weft.dialects.strides import strides_of, with_strides
from weft.dialects.tir_regions import AssumeShapeOp
from weft.frontends.script.raising import Raiser
from weft.frontends.script.shadow import Restart, Shadow
from weft.frontends.script.text import shape_text
from weft.frontends.script.values import Buffer, Symbol, is_scalar
from weft.support.names import string_text
from weft.texpr.dtypes import name_of
from weft.texpr.expr import Expr


def is_plain_buffer(type: Attribute) -> bool:
    """Whether a buffer type is a shape, an element type and a scope."""
    return is_declarable_buffer(type) and strides_of(type) is None


def is_declarable_buffer(type: Attribute) -> bool:
    """Whether a buffer type is a shape, an element type, a scope, and strides."""
    strides = strides_of(type)
    return (
        isinstance(type, MemRefType)
        and is_scalar(type.element_type)
        and not isinstance(type.element_type, IndexType)
        and (type == with_strides(type, strides) if strides is not None else isinstance(type.layout, NoneAttr))
        and isinstance(type.memory_space, NoneAttr | StringAttr)
    )


def buffer_options(type: MemRefType[Attribute]) -> str:
    """The dtype, scope and strides of a buffer, after its shape."""
    scope = f", scope={string_text(type.memory_space.data)}" if isinstance(type.memory_space, StringAttr) else ""
    stated = strides_of(type)
    strides = "" if stated is None else f", strides={shape_text(stated)}"
    return f', "{name_of(type.element_type)}"{scope}{strides}'


@dataclass
class _Dynamic:
    """A parameter with extents that its type leaves open."""

    argument: BlockArgument
    handle: str
    name: str
    dims: dict[int, DimOp] = field(default_factory=dict[int, DimOp])
    """The ops that read extents of this buffer, by dimension."""
    assumed: AssumeShapeOp | None = None


class HeadPrinter:
    """Prints the parameters of a function and declares the dynamic ones where the ops about their extents stand."""

    def __init__(self, shadow: Shadow) -> None:
        self._shadow = shadow
        self._dynamic: dict[SSAValue, _Dynamic] = {}

    def parameters(
        self, arguments: Sequence[BlockArgument], mine: Sequence[BlockArgument], declared: bool
    ) -> list[str]:
        """The parameters as Python writes them; `mine` are the shadow's arguments, `declared` is for a function that
        is defined elsewhere."""
        return [self._parameter(argument, own, declared) for argument, own in zip(arguments, mine, strict=True)]

    def _parameter(self, argument: BlockArgument, mine: BlockArgument, declared: bool) -> str:
        type = argument.type
        name = self._shadow.words.new(argument.name_hint, "arg")
        if not isinstance(type, MemRefType):
            self._shadow.bind(argument, mine, name)
            if declared and isinstance(type, PtrType):
                return f"{name}: T.handle"
            return f"{name}: {scalar_annotation(type)}"
        if not is_declarable_buffer(type):
            self._shadow.bind(argument, mine, name)
            return f"{name}: T.type({string_text(str(type))})"
        if declared and DYNAMIC_INDEX in type.get_shape():
            shape = [None if extent == DYNAMIC_INDEX else extent for extent in type.get_shape()]
            self._shadow.bind(argument, mine, name)
            return f"{name}: T.Buffer({shape_text(shape)}{buffer_options(type)})"
        if DYNAMIC_INDEX in type.get_shape():
            handle = self._shadow.words.new(f"var_{name}", "var")
            self._dynamic[argument] = _Dynamic(argument, handle, name)
            self._shadow.bind(argument, mine, name)
            return f"{handle}: T.handle"
        self._shadow.bind(argument, mine, name)
        return f"{name}: T.Buffer({shape_text(type.get_shape())}{buffer_options(type)})"

    def unstated(self, ops: Sequence[Operation]) -> list[str]:
        """Declarations of the parameters that no op is about; of all, where declarations must be plain."""
        if not self._shadow.plain:
            for op in ops:
                if isinstance(op, DimOp) and op.source in self._dynamic and _dimension(op) is not None:
                    self._dynamic[op.source].dims.setdefault(cast("int", _dimension(op)), op)
                elif isinstance(op, AssumeShapeOp) and op.buffer in self._dynamic:
                    self._dynamic[op.buffer].assumed = self._dynamic[op.buffer].assumed or op
        alone = [entry for entry in self._dynamic.values() if not entry.dims and entry.assumed is None]
        for entry in alone:
            del self._dynamic[entry.argument]
        return [self._line(entry, cast("Buffer", self._shadow.names[entry.argument])) for entry in alone]

    def group(self, ops: Sequence[Operation], start: int) -> tuple[list[str], int] | None:
        """Declarations for the ops from `start` on that are about extents, and where they end; None if there are none.

        Raises Restart where the ops are not those that declarations make.
        """
        end = self._end(ops, start)
        entries = self._entries(ops[start:end])
        if not entries:
            return None
        lines: list[str] = []
        symbols: list[str] = []
        fresh: list[Symbol] = []
        for op in ops[start:end]:
            if isinstance(op, DimOp):
                symbol = Symbol(self._shadow.words.new(op.result.name_hint, "n"))
                self._shadow.names[op.result] = symbol
                symbols.append(symbol.name)
                fresh.append(symbol)
        if symbols:
            lines.append(f"{', '.join(symbols)} = {', '.join(['T.int64()'] * len(symbols))}")

        def raised(raiser: Raiser) -> list[Buffer]:
            return [self._buffer(entry, raiser) for entry in entries]

        def declare(buffers: Sequence[Buffer]) -> None:
            self._shadow.emitter.declare(buffers)

        buffers = self._shadow.attempt(ops[start:end], raised, declare)
        if buffers is None:
            raise Restart(plain=True)
        for entry, buffer in zip(entries, buffers, strict=True):
            del self._dynamic[entry.argument]
            self._shadow.names[entry.argument] = buffer
            lines.append(self._line(entry, buffer))
        return lines, end

    def _end(self, ops: Sequence[Operation], start: int) -> int:
        """The end of the run of ops about extents; what computes them may stand between."""
        end = position = start
        while position < len(ops):
            op = ops[position]
            if self._is_about_extents(op):
                end = position + 1
            elif op.regions or not op.results or any(isinstance(r.type, MemRefType) for r in op.results):
                break
            position += 1
        return end

    def _is_about_extents(self, op: Operation) -> bool:
        if isinstance(op, DimOp) and op.source in self._dynamic:
            return self._dynamic[op.source].dims.get(_dimension(op) or 0) is op
        return isinstance(op, AssumeShapeOp) and any(entry.assumed is op for entry in self._dynamic.values())

    def _entries(self, ops: Sequence[Operation]) -> list[_Dynamic]:
        """The parameters that are declared by `ops`, in their order: with its assumption, else with its extents."""
        found: dict[SSAValue, _Dynamic] = {}
        for op in ops:
            if isinstance(op, DimOp) and op.source in self._dynamic:
                found.setdefault(op.source, self._dynamic[op.source])
            elif isinstance(op, AssumeShapeOp) and op.buffer in self._dynamic:
                found.setdefault(op.buffer, self._dynamic[op.buffer])
        return list(found.values())

    def _buffer(self, entry: _Dynamic, raiser: Raiser) -> Buffer:
        """The buffer with the extents that its ops give it."""
        old = cast("Buffer", self._shadow.names[entry.argument])
        stated: dict[int, SSAValue] = {}
        dynamic = [d for d, extent in enumerate(old.extents) if extent is None]
        if entry.assumed is not None:
            stated.update(zip(dynamic, entry.assumed.extents, strict=True))
        stated.update({d: op.result for d, op in entry.dims.items()})
        extents: list[int | Expr | None] = list(old.extents)
        for dimension, value in stated.items():
            extents[dimension] = raiser.value(value)
        return Buffer(old.value, entry.name, tuple(extents))

    def _line(self, entry: _Dynamic, buffer: Buffer) -> str:
        options = buffer_options(buffer.type)
        return f"{entry.name} = T.match_buffer({entry.handle}, {shape_text(buffer.extents)}{options})"


def _dimension(op: DimOp) -> int | None:
    owner = op.index.owner
    number = scalar_constant(op.index)
    return number.value.data if isinstance(owner, ConstantOp) and isinstance(number, IntegerAttr) else None


def result_annotation(type: Attribute) -> str:
    """The type of what a function gives."""
    if is_scalar(type) and not isinstance(type, IndexType):
        return f"T.{name_of(type)}"
    return f"T.type({string_text(str(type))})"


def scalar_annotation(type: Attribute) -> str:
    """The type of a parameter that is no buffer."""
    if isinstance(type, IndexType):
        return "T.int64"
    if is_scalar(type) and name_of(type) not in ("int32", "int64"):
        return f"T.{name_of(type)}"
    return f"T.type({string_text(str(type))})"
