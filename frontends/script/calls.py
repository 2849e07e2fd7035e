"""Calls: of functions of the module, of functions outside of it, and of ops by their name."""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence
from dataclasses import replace

from xdsl.dialects.builtin import IndexType
from xdsl.dialects.func import CallOp
from xdsl.ir import Attribute, Operation, SSAValue

from weft.dialects.tir import OPERAND, IntrinsicOp
from weft.frontends.script import tir
from weft.frontends.script.constructs import Construct, DType, IntrinsicWord, dtype_of
from weft.frontends.script.function import Call
from weft.frontends.script.generic import generic_op
from weft.frontends.script.part_parser import PartParser
from weft.frontends.script.python_rules import shown
from weft.frontends.script.regions import stored_box
from weft.frontends.script.text import number_text
from weft.frontends.script.values import Buffer, Opaque, Pointer, Symbol
from weft.frontends.script.views import FlatView
from weft.texpr.dtypes import type_of
from weft.texpr.expr import Const, as_expr
from weft.texpr.operators import as_number

_MASKS = {"r": "read", "w": "w", "rw": "readwrite", 1: "read", 2: "w", 3: "readwrite"}
"""TVM's words and numbers for access; "w" says nothing about reading."""
_WORDS = ("read", "write", "readwrite")
_NOTHING = ("", "void", "handle")


class CallParser(PartParser):
    """Reads the calls of a function."""

    def inside(self, node: ast.Call, callee: str) -> None:
        """`f(A, B, n)`: a function of the module, which is checked when all are read."""
        if node.keywords:
            raise self._error(node.keywords[0], f"arguments of {callee} are given by position")
        arguments = [self._operand(argument) for argument in node.args]
        self._function.calls.append(Call(self._emitter.call(callee, arguments), node, callee))

    def outside(self, node: ast.Call, *, pure: bool) -> CallOp:
        """`T.call_extern("kernel", C.access_ptr("w"), A.access_ptr("r"), n, dtype="int32")`.

        Also in TVM's newer order, with the dtype first. A symbolic extent or stride that is declared as T.int32() is
        passed as such, other indices as 64 bits. The function may have effects, unless it is `T.call_pure_extern`.
        """
        name, dtype, arguments = self._outside_parts(node)
        results: list[Attribute] = []
        if dtype not in _NOTHING:
            results.append(self._evaluator.apply(node, type_of, self._evaluator.apply(node, dtype_of, dtype)))
        operands = [self._outside_operand(argument) for argument in arguments]
        op = self._emitter.call(name, operands, results)
        self._function.calls.append(Call(op, node, name, outside=True, pure=pure))
        return op

    def _outside_parts(self, node: ast.Call) -> tuple[str, object, Sequence[ast.expr]]:
        """Name, dtype of the result, and arguments."""
        dtype: object = None
        for keyword in node.keywords:
            if keyword.arg != "dtype":
                raise self._error(keyword, f"T.call_extern has no option {keyword.arg}")
            dtype = self._evaluator.evaluate(keyword.value)
        first = [self._evaluator.evaluate(argument) for argument in node.args[:1]]
        arguments = node.args
        if dtype is None and len(arguments) > 1 and isinstance(arguments[1], ast.Constant):
            dtype, arguments = first[0], arguments[1:]
            first = [self._evaluator.evaluate(arguments[0])]
        if not first or not isinstance(first[0], str) or dtype is None:
            raise self._error(node, f"T.call_extern names a function and its dtype: `{tir.call_extern.usage}`")
        return first[0], dtype, arguments[1:]

    def by_name(self, node: ast.Call) -> Operation:
        """`T.op("arith.divui", a, b, results=["i32"])`: any op without regions."""
        if not node.args:
            raise self._error(node, f"T.op names an operation: `{tir.op.usage}`")
        name = self._evaluator.string(node.args[0], "the name of an operation")
        operands = [self._operand(argument) for argument in node.args[1:]]
        options = {k.arg: self._evaluator.evaluate(k.value) for k in node.keywords if k.arg is not None}
        op = self._evaluator.apply(node, generic_op, name, operands, **options)
        self._emitter.effect(op)
        return op

    def intrinsic(self, node: ast.Call, result: DType | None) -> Operation:
        """`T.call_packed("f", A.data, 4)`: a function that has no meaning here, kept with its arguments."""
        operands: list[SSAValue] = []
        call = ast.unparse(self._kept(node, operands))
        op = IntrinsicOp(call, operands, [] if result is None else [type_of(result.name)])
        self._emitter.effect(op)
        return op

    def _kept(self, node: ast.expr, operands: list[SSAValue]) -> ast.expr:
        """An argument of an intrinsic as text: names stand for `operands`, to which values are added."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str | int | float | None):
            return node
        if isinstance(node, ast.Call):
            word = self._evaluator.evaluate(node.func) if isinstance(node.func, ast.Attribute) else None
            if isinstance(word, IntrinsicWord) or word is tir.type_annotation:
                if node.keywords:
                    raise self._error(node.keywords[0], f"arguments of {ast.unparse(node.func)} are given by position")
                args = [self._kept(argument, operands) for argument in node.args]
                name = word.name if isinstance(word, IntrinsicWord) else "type_annotation"
                return ast.Call(ast.Attribute(ast.Name("T"), name), args, [])
        value = self._pointer(node) or self._evaluator.evaluate(node)
        number = as_number(value)
        if isinstance(value, Const):
            return ast.parse(number_text(value.value, value.dtype), mode="eval").body
        if number is not None:
            return ast.Constant(number)
        if isinstance(value, str):
            return ast.Constant(value)
        if isinstance(value, Buffer):
            operands.append(self._emitter.pointer(self._start_of(value, "readwrite")))
        else:
            operands.append(self._operand(node))
        return ast.Name(f"{OPERAND}{len(operands) - 1}")

    # Arguments

    def _operand(self, node: ast.expr) -> SSAValue:
        """The value of an argument: a buffer, a pointer, an index, or a scalar in its dtype."""
        pointer = self._pointer(node)
        if pointer is not None:
            return self._emitter.pointer(pointer)
        value = self._evaluator.evaluate(node)
        if isinstance(value, Buffer | Opaque):
            return value.value
        if isinstance(value, int) and not isinstance(value, bool):
            return self._emitter.constant(value, IndexType())
        return self._emitter.argument(self._evaluator.expression(node))

    def _outside_operand(self, node: ast.expr) -> SSAValue:
        if isinstance(node, ast.Attribute) and node.attr == "data":
            buffer = self._evaluator.evaluate(node)
            if isinstance(buffer, Buffer):
                return self._emitter.pointer(self._start_of(buffer, "readwrite"))
        if isinstance(node, ast.Name):
            value = self._evaluator.evaluate(node)
            if isinstance(value, Symbol) and value.dtype == "int32":
                return self._emitter.value(value)
            if isinstance(value, Buffer):
                raise self._error(node, f'a function outside takes pointers: {value.name}.access_ptr("r")')
        return self._operand(node)

    def _pointer(self, node: ast.expr) -> Pointer | None:
        """`A.access_ptr("r")`, `T.address_of(A[i, j])` or `T.access_ptr(A[i, 0:4], "read")`."""
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            return None
        if node.func.attr == "access_ptr" and isinstance(node.func.value, ast.Name):
            buffer = self._evaluator.evaluate(node.func.value)
            if isinstance(buffer, Buffer):
                return self._whole(node, buffer)
        word = self._evaluator.evaluate(node.func) if isinstance(node.func.value, ast.Name) else None
        if isinstance(word, Construct) and word is tir.tvm_access_ptr:
            return self._flat(node)
        if not isinstance(word, Construct) or word not in (tir.address_of, tir.access_ptr):
            return None
        if not node.args or not isinstance(node.args[0], ast.Subscript):
            raise self._error(node, f"a pointer points to an element of a buffer: `{word.usage}`")
        return self._into(node, node.args[0], word)

    def _whole(self, node: ast.Call, buffer: Buffer) -> Pointer:
        """A pointer to the start of a buffer."""
        mask = self._evaluator.evaluate(node.args[0]) if len(node.args) == 1 else None
        for keyword in node.keywords:
            raise self._error(keyword, "pointers start at the first element: T.address_of(A[i, j]) is one to another")
        access = _MASKS.get(mask) if isinstance(mask, str | int) else None
        if access is None:
            raise self._error(node, f'access is "r", "w" or "rw": {buffer.name}.access_ptr("r")')
        return self._start_of(buffer, access)

    def _start_of(self, buffer: Buffer, access: str) -> Pointer:
        """A pointer to the first element, which gives access to all."""
        corner = buffer.element([as_expr(0)] * buffer.rank) or ()
        sizes = [extent for extent in buffer.extents if isinstance(extent, int)]
        is_box = len(sizes) == buffer.rank and buffer.rank and not isinstance(buffer, FlatView)
        return self._decided(Pointer(buffer.stored, corner, buffer.box(sizes) if is_box else None, access))

    def _flat(self, node: ast.Call) -> Pointer:
        """`T.tvm_access_ptr(T.type_annotation("float32"), A.data, offset, extent, mask)`: offset in elements."""
        if len(node.args) != 5 or node.keywords:
            raise self._error(
                node, f"it has a dtype, a buffer, an offset, an extent and a mask: `{tir.tvm_access_ptr.usage}`"
            )
        dtype, buffer, mask = (self._evaluator.evaluate(node.args[position]) for position in (0, 1, 4))
        if not isinstance(buffer, Buffer):
            raise self._error(node.args[1], "a pointer points into a buffer, A.data")
        if not isinstance(dtype, DType) or dtype.name != buffer.dtype:
            raise self._error(node.args[0], f"{buffer.name} has elements of {buffer.dtype}, got {shown(dtype)}")
        access = _MASKS.get(mask) if isinstance(mask, int) else None
        if access is None:
            raise self._error(node.args[4], f"a mask is 1 for reading, 2 for writing, or 3, got {shown(mask)}")
        offset = self._evaluator.index(node.args[2], "an offset")
        if isinstance(offset, Const) and offset.value == 0:
            extent = as_number(self._evaluator.evaluate(node.args[3]))
            start = self._start_of(buffer, access)
            whole = start.sizes is not None and math.prod(start.sizes) == extent
            return start if whole else replace(start, sizes=None)
        place = self._evaluator.stored_indices(node.args[2], FlatView(buffer, buffer.name, None), [offset])
        return self._decided(Pointer(buffer, place, None, access))

    def _into(self, node: ast.Call, element: ast.Subscript, word: Construct) -> Pointer:
        buffer = self._evaluator.evaluate(element.value)
        if not isinstance(buffer, Buffer):
            raise self._error(element, f"a pointer points to an element of a buffer: `{word.usage}`")
        items = element.slice.elts if isinstance(element.slice, ast.Tuple) else [element.slice]
        access = "readwrite"
        if word is tir.access_ptr:
            access = self._evaluator.string(node.args[1], "access") if len(node.args) == 2 else ""
            if access not in _WORDS:
                raise self._error(node, f"access is one of {', '.join(_WORDS)}: `{word.usage}`")
        if not any(isinstance(item, ast.Slice) for item in items):
            return Pointer(buffer.stored, self._evaluator.indices(element, buffer), None, access)
        corner, sizes = stored_box(self._evaluator, element, buffer)
        return Pointer(buffer.stored, tuple(corner), tuple(sizes), access)

    def _decided(self, pointer: Pointer) -> Pointer:
        """What is written may be read before, unless the block says what it reads."""
        if pointer.access != "w":
            return pointer
        readable = self._function.readable
        reads = readable is None or pointer.buffer.value in readable
        return replace(pointer, access="readwrite" if reads else "write")
