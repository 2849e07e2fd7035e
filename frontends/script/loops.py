"""`for` statements -> `tir.for`: ranges, grids, kinds of loops, threads."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import cast

from xdsl.ir import Attribute

from weft.dialects.tir_kinds import LoopKind
from weft.frontends.script import tir
from weft.frontends.script.attributes import to_attributes
from weft.frontends.script.constructs import Construct
from weft.frontends.script.part_parser import StatementPartParser
from weft.frontends.script.values import Leaf
from weft.frontends.te.expr import Const, Expr, binary
from weft.frontends.te.operators import BinaryKind, as_number

_LOOPS: Mapping[Construct, LoopKind] = {
    tir.serial: LoopKind.SERIAL,
    tir.parallel: LoopKind.PARALLEL,
    tir.vectorized: LoopKind.VECTORIZED,
    tir.unroll: LoopKind.UNROLLED,
    tir.thread_binding: LoopKind.THREAD_BINDING,
}


class LoopParser(StatementPartParser):
    """Reads the loops of a function; `read_body` reads the statements in them."""

    def _name(self, node: ast.expr) -> str:
        if not isinstance(node, ast.Name):
            raise self._error(node, "a loop variable is a name")
        return node.id

    def parse(self, node: ast.For) -> None:
        """The loops of a `for` statement. Raises CompileError."""
        targets = node.target.elts if isinstance(node.target, ast.Tuple | ast.List) else [node.target]
        names = [self._name(target) for target in targets]
        call = node.iter
        word = self._evaluator.evaluate(call.func) if isinstance(call, ast.Call) else None
        if not isinstance(call, ast.Call) or not (word is range or isinstance(word, Construct)):
            raise self._error(call, "a loop runs over range(n), T.grid(m, n), T.serial(n), T.parallel(n), ...")
        if word is tir.grid:
            extents = self._grid(call, names)
            starts: list[Expr | int] = [0] * len(names)
            self._nest(node, names, starts, extents, LoopKind.SERIAL, None, {})
            return
        kind = LoopKind.SERIAL if word is range else _LOOPS.get(word)
        if kind is None:
            raise self._error(call, f"{word} does not make a loop; it is used so: `{cast('Construct', word).usage}`")
        if len(names) != 1:
            raise self._error(node.target, f"one loop has one variable, got {len(names)}")
        thread, annotations = self._loop_options(call, kind)
        start, extent = self._range(call, names[0])
        self._nest(node, names, [start], [extent], kind, thread, annotations)

    def _grid(self, call: ast.Call, names: Sequence[str]) -> list[Expr | int]:
        """The extents of `T.grid(m, n)`, `T.grid(*shape)`."""
        given: list[tuple[ast.expr, object]] = []
        for argument in call.args:
            if isinstance(argument, ast.Starred):
                items = self._evaluator.evaluate(argument.value)
                if not isinstance(items, tuple | list):
                    raise self._error(argument, f"`*` stands before a tuple, {ast.unparse(argument.value)} is none")
                given += [(argument, item) for item in cast("Sequence[object]", items)]
            else:
                given.append((argument, self._evaluator.evaluate(argument)))
        if call.keywords or len(given) != len(names):
            raise self._error(call, f"{len(names)} loop variables, and T.grid of {len(given)} extents")
        return [
            self._evaluator.as_extent(node, value, f"the extent of {name}")
            for (node, value), name in zip(given, names, strict=True)
        ]

    def _loop_options(self, call: ast.Call, kind: LoopKind) -> tuple[str | None, dict[str, Attribute]]:
        thread: str | None = None
        annotations: dict[str, Attribute] = {}
        for keyword in call.keywords:
            if keyword.arg == "thread" and kind is LoopKind.THREAD_BINDING:
                thread = self._evaluator.string(keyword.value, "thread")
            elif keyword.arg == "annotations" and ast.unparse(call.func) != "range":
                value = self._evaluator.evaluate(keyword.value)
                if not isinstance(value, dict | None):
                    raise self._error(keyword, "annotations are a dict")
                named = cast("dict[object, object]", value or {})
                annotations = self._evaluator.apply(keyword, to_attributes, named)
            else:
                raise self._error(keyword, f"loops have no option {keyword.arg}")
        if kind is LoopKind.THREAD_BINDING and thread is None:
            raise self._error(call, f"the thread axis is missing: `{tir.thread_binding.usage}`")
        return thread, annotations

    def _range(self, call: ast.Call, name: str) -> tuple[Expr | int, Expr | int]:
        """Start and extent of `range(stop)`, `range(start, stop)`."""
        if not 1 <= len(call.args) <= 3:
            raise self._error(call, "a loop has a stop, or a start and a stop")
        if len(call.args) == 3 and as_number(self._evaluator.evaluate(call.args[2])) != 1:
            raise self._error(call.args[2], "loops step by 1: multiply the variable instead")
        if len(call.args) == 1:
            return 0, self._evaluator.extent(call.args[0], f"the extent of {name}")
        start = self._evaluator.index(call.args[0], f"the start of {name}")
        stop = self._evaluator.index(call.args[1], f"the stop of {name}")
        if isinstance(start, Const) and isinstance(stop, Const):
            extent = Const(max(0, int(stop.value) - int(start.value)), "int64")
            return int(start.value), self._evaluator.as_extent(call, extent, f"the extent of {name}")
        if isinstance(start, Const) and start.value == 0:
            return 0, stop
        return start, self._evaluator.apply(call, lambda: stop - start)

    def _nest(
        self,
        node: ast.For,
        names: Sequence[str],
        starts: Sequence[Expr | int],
        extents: Sequence[Expr | int],
        kind: LoopKind,
        thread: str | None,
        annotations: Mapping[str, Attribute],
    ) -> None:
        self._around(list(zip(names, starts, extents, strict=True)), kind, thread, annotations, node, node.body)

    def _around(
        self,
        variables: Sequence[tuple[str, Expr | int, Expr | int]],
        kind: LoopKind,
        thread: str | None,
        annotations: Mapping[str, Attribute],
        node: ast.stmt,
        statements: Sequence[ast.stmt],
    ) -> None:
        """Nested loops over variables (name, start, extent) around statements. All extents are evaluated first."""
        if not variables:
            self._read_body(statements)
            return
        for _, _, extent in variables:
            if isinstance(extent, Expr):
                self._emitter.index(extent)
        (name, start, extent), *rest = variables
        op = self._emitter.loop(extent, name, kind, thread, annotations)
        leaf = Leaf.of(op.induction_variable, name, extent)
        shifted = isinstance(start, Expr) or start != 0
        variable = self._evaluator.apply(node, binary, BinaryKind.ADD, leaf, start) if shifted else leaf
        with self._emitter.body(op.body.block), self._evaluator.scope({name: variable}):
            self._around(rest, kind, thread, annotations, node, statements)
        self._place(node)
        self._emitter.effect(op)

    def over_threads(self, node: ast.stmt, call: ast.Call, name: str, statements: Sequence[ast.stmt]) -> None:
        """A loop over the threads of `T.launch_thread`."""
        if len(call.args) != 2 or call.keywords:
            raise self._error(call, f"T.launch_thread takes a thread axis and an extent: `{tir.launch_thread.usage}`")
        thread = self._evaluator.string(call.args[0], "the thread axis")
        extent = self._evaluator.extent(call.args[1], f"the extent of {name}")
        self._around([(name, 0, extent)], LoopKind.THREAD_BINDING, thread, {}, node, statements)
