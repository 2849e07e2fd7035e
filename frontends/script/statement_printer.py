"""Statements without regions: assignments, stores, temporaries, calls, and ops by their name.

Each takes the ops that it stands for, the last of which is what it does, and says whether it stands for just those.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, MemRefType
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.dialects.memref import AllocOp, StoreOp
from xdsl.ir import Attribute, Operation, SSAValue

from weft.dialects.tir import OPERAND, IntrinsicOp
from weft.dialects.tir_assume import AssumeOp
from weft.frontends.script.generic import clone_generic, generic_text
from weft.frontends.script.head_printer import buffer_options, is_plain_buffer
from weft.frontends.script.lines import Operand, operand_text
from weft.frontends.script.raising import NotRaised, Raiser
from weft.frontends.script.shadow import Shadow
from weft.frontends.script.text import element_text, expr_text, shape_text
from weft.frontends.script.values import Buffer, Leaf, Opaque, Pointer, Symbol, is_scalar
from weft.support.errors import CompileError
from weft.support.names import string_text
from weft.texpr.dtypes import name_of
from weft.texpr.expr import Const, Expr


class _Filled(ast.NodeTransformer):
    """The call of an intrinsic with the texts of its operands."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if not node.id.startswith(OPERAND):
            return node
        return ast.parse(self._texts[int(node.id.removeprefix(OPERAND))], mode="eval").body


class StatementPrinter:
    """Prints statements through `write`; `functions` are those of the module, `words` their Python names."""

    def __init__(
        self, shadow: Shadow, functions: Mapping[str, FuncOp], words: Mapping[str, str], write: Callable[[str], None]
    ) -> None:
        self._shadow = shadow
        self._emitter = shadow.emitter
        self._functions = functions
        self._words = words
        self._write = write

    def other(self, op: Operation) -> None:
        """An op that no words of the language stand for. Raises CompileError for ops with regions."""

        def raised(raiser: Raiser) -> list[Operand]:
            return [self._operand(raiser, value) for value in op.operands]

        def produce(operands: list[Operand]) -> None:
            values = [self.emit_operand(o, v.type) for o, v in zip(operands, op.operands, strict=True)]
            self._emitter.effect(clone_generic(op, values))

        operands = self._shadow.attempt([op], raised, produce)
        if operands is None:
            raise CompileError.at(op, f"{op.name} has no form in scripts")
        texts = [operand_text(o, v.type) for o, v in zip(operands, op.operands, strict=True)]
        text = generic_text(op, texts)
        mine = cast("Operation", self._emitter.last)
        if not op.results:
            self._write(text)
            return
        names = [self._named(printed, own) for printed, own in zip(op.results, mine.results, strict=True)]
        self._write(f"{', '.join(names)} = {text}")

    def _named(self, printed: SSAValue, mine: SSAValue) -> str:
        """Give a local variable its name."""
        name = self._shadow.words.keep(printed.name_hint, "v")
        self._shadow.bind(printed, mine, name)
        return name

    def assignment(self, ops: Sequence[Operation]) -> bool:
        """Print `ops` as an assignment of what the last of them gives."""
        op = ops[-1]
        result = op.results[0]
        is_index = isinstance(result.type, IndexType)

        def raised(raiser: Raiser) -> Expr:
            return raiser.op(op)

        made: list[SSAValue] = []

        def produce(expr: Expr) -> None:
            if isinstance(expr, Const | Leaf | Symbol) or expr.is_index != is_index:
                raise CompileError("another name for something, or another type")
            made.append(self._emitter.index(expr) if is_index else self._emitter.value(expr))

        expr = self._shadow.attempt(ops, raised, produce)
        if expr is None:
            return False
        self._emitter.note(expr)
        name = self._named(result, made[-1])
        self._write(f"{name}{': T.int64' if is_index else ''} = {expr_text(expr)}")
        return True

    def store(self, ops: Sequence[Operation], op: StoreOp) -> bool:
        """Print a store."""

        def raised(raiser: Raiser) -> tuple[Buffer, list[Expr], Expr]:
            buffer = raiser.buffer(op.memref)
            return buffer, [raiser.value(index) for index in op.indices], raiser.value(op.value)

        def produce(parts: tuple[Buffer, list[Expr], Expr]) -> None:
            buffer, indices, value = parts
            adapts = value.is_index and buffer.dtype in ("int32", "int64")
            if value.dtype != buffer.dtype and not adapts:
                raise CompileError("the value is of another type")
            self._emitter.store(buffer, indices, value)

        parts = self._shadow.attempt(ops, raised, produce)
        if parts is None:
            return False
        buffer, indices, value = parts
        for expr in (*indices, value):
            self._emitter.note(expr)
        self._write(f"{element_text(buffer, indices)} = {expr_text(value)}")
        return True

    def assumption(self, ops: Sequence[Operation], op: AssumeOp) -> bool:
        """Print a fact about extents."""
        operands = list(op.symbols)

        def raised(raiser: Raiser) -> list[Expr]:
            return [raiser.affine(side, operands) for side in (op.left, op.right)]

        def produce(sides: list[Expr]) -> None:
            self._emitter.assume(sides[0], op.kind, sides[1])

        sides = self._shadow.attempt(ops, raised, produce)
        if sides is None:
            return False
        bare = not all(isinstance(side, Const) for side in sides)
        left, right = (str(side.value) if bare and isinstance(side, Const) else expr_text(side) for side in sides)
        self._write(f"T.assume({left} {op.kind.value} {right})")
        return True

    def allocation(self, ops: Sequence[Operation], op: AllocOp) -> bool:
        """Print a temporary, if a shape, an element type and a scope say all about it."""
        type = op.memref.type
        if not is_plain_buffer(type) or op.symbol_operands or op.alignment is not None or op.attributes:
            return False
        name = self._shadow.words.keep(op.memref.name_hint, "buffer")

        def raised(raiser: Raiser) -> list[Expr]:
            return [raiser.value(size) for size in op.dynamic_sizes]

        made: list[SSAValue] = []

        def produce(extents: list[Expr]) -> None:
            made.append(self._emitter.allocate(type, extents, name))

        extents = self._shadow.attempt(ops, raised, produce)
        if extents is None:
            self._shadow.words.release(name)
            return False
        rest = iter(extents)
        shape = tuple(next(rest) if extent == DYNAMIC_INDEX else extent for extent in type.get_shape())
        buffer = Buffer(made[-1], name, shape)
        self._shadow.names[op.memref] = buffer
        self._write(f"{name} = T.alloc_buffer({shape_text(shape)}{buffer_options(type)})")
        return True

    def call(self, ops: Sequence[Operation], op: CallOp) -> bool:
        """Print a call of a function that the module has or declares. Raises CompileError for others."""
        callee = op.callee.string_value()
        if callee not in self._functions:
            raise CompileError.at(op, f"@{callee} is not in the module")
        takes_buffers = any(isinstance(argument.type, MemRefType) for argument in op.arguments)
        outside = self._functions[callee].is_declaration and not takes_buffers
        results = [result.type for result in op.results]
        if results and (not outside or len(results) > 1 or not is_scalar(results[0]) or results[0] == IndexType()):
            return False

        def raised(raiser: Raiser) -> list[Operand]:
            return [self._operand(raiser, value) for value in op.arguments]

        def produce(operands: list[Operand]) -> None:
            values = [self.emit_operand(o, v.type) for o, v in zip(operands, op.arguments, strict=True)]
            self._emitter.call(callee, values, results)

        operands = self._shadow.attempt(ops, raised, produce)
        if operands is None:
            return False
        texts = [operand_text(o, v.type) for o, v in zip(operands, op.arguments, strict=True)]
        if not outside:
            self._write(f"Module.{self._words[callee]}({', '.join(texts)})")
            return True
        dtype = name_of(results[0]) if results else "void"
        text = f"T.call_extern({', '.join([string_text(callee), *texts])}, dtype={string_text(dtype)})"
        mine = cast("Operation", self._emitter.last)
        for printed, own in zip(op.results, mine.results, strict=True):
            text = f"{self._named(printed, own)} = {text}" if printed.first_use is not None else f"T.evaluate({text})"
        self._write(text)
        return True

    def intrinsic(self, ops: Sequence[Operation], op: IntrinsicOp) -> bool:
        """Print a call that is kept as it is."""
        if (
            op.attributes
            or any(not is_scalar(v.type) or v.type == IndexType() for v in op.values)
            or len(op.values) > 1
        ):
            return False

        def raised(raiser: Raiser) -> list[Operand]:
            return [self._operand(raiser, value) for value in op.arguments]

        def produce(operands: list[Operand]) -> None:
            values = [self.emit_operand(o, v.type) for o, v in zip(operands, op.arguments, strict=True)]
            self._emitter.effect(IntrinsicOp(op.call.data, values, [value.type for value in op.values]))

        operands = self._shadow.attempt(ops, raised, produce)
        if operands is None:
            return False
        texts = [operand_text(o, v.type) for o, v in zip(operands, op.arguments, strict=True)]
        text = ast.unparse(_Filled(texts).visit(ast.parse(op.call.data, mode="eval").body))
        mine = cast("Operation", self._emitter.last)
        for printed, own in zip(op.values, mine.results, strict=True):
            text = f"{self._named(printed, own)}: T.{name_of(printed.type)} = {text}"
        self._write(text)
        return True

    def _operand(self, raiser: Raiser, value: SSAValue) -> Operand:
        if isinstance(value.type, MemRefType):
            return raiser.buffer(value)
        if not is_scalar(value.type):
            return raiser.pointer(value)
        expr = raiser.argument(value)
        is_index = isinstance(value.type, IndexType)
        if expr.is_index and not isinstance(expr, Const) and not is_index:
            raise NotRaised
        return expr

    def emit_operand(self, operand: Operand, type: Attribute) -> SSAValue:
        """The shadow's value of an argument."""
        if isinstance(operand, Buffer | Opaque):
            return operand.value
        if isinstance(operand, Pointer):
            return self._emitter.pointer(operand)
        self._emitter.note(operand)
        return self._emitter.index(operand) if isinstance(type, IndexType) else self._emitter.argument(operand)
