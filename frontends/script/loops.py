"""`for` statements -> `tir.for`: ranges, grids, kinds of loops, threads."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.ir import Attribute

from weft.dialects.tir_kinds import LoopKind
from weft.frontends.script import tir
from weft.frontends.script.attributes import to_attributes
from weft.frontends.script.constructs import Construct
from weft.frontends.script.part_parser import StatementPartParser
from weft.frontends.script.values import Leaf
from weft.texpr.expr import Const, Expr, as_expr, binary
from weft.texpr.operators import BinaryKind

_LOOPS: Mapping[Construct, LoopKind] = {
    tir.serial: LoopKind.SERIAL,
    tir.parallel: LoopKind.PARALLEL,
    tir.vectorized: LoopKind.VECTORIZED,
    tir.unroll: LoopKind.UNROLLED,
    tir.thread_binding: LoopKind.THREAD_BINDING,
}


@dataclass(frozen=True)
class _Range:
    """A loop variable, which is start + step * i for i below extent."""

    name: str
    start: Expr | int
    step: int
    extent: Expr | int


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
            loops = [_Range(name, 0, 1, extent) for name, extent in zip(names, extents, strict=True)]
            self._around(loops, LoopKind.SERIAL, None, {}, node, node.body)
            return
        kind = LoopKind.SERIAL if word is range else _LOOPS.get(word)
        if kind is None:
            raise self._error(call, f"{word} does not make a loop; it is used so: `{cast('Construct', word).usage}`")
        if len(names) != 1:
            raise self._error(node.target, f"one loop has one variable, got {len(names)}")
        thread, annotations = self._loop_options(call, kind)
        self._around([self._range(call, names[0])], kind, thread, annotations, node, node.body)

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
            elif keyword.arg != "step" or ast.unparse(call.func) == "range":
                raise self._error(keyword, f"loops have no option {keyword.arg}")
        if kind is LoopKind.THREAD_BINDING and thread is None:
            raise self._error(call, f"the thread axis is missing: `{tir.thread_binding.usage}`")
        return thread, annotations

    def _range(self, call: ast.Call, name: str) -> _Range:
        """`range(stop)`, `range(start, stop)`, `range(start, stop, step)`."""
        steps = [k.value for k in call.keywords if k.arg == "step"] + call.args[2:]
        if not 1 <= len(call.args) <= 3 or len(steps) > 1:
            raise self._error(call, "a loop has a stop, or a start and a stop, and a step")
        step = self._evaluator.extent(steps[0], f"the step of {name}") if steps else 1
        if not isinstance(step, int) or step < 1:
            raise self._error(call, f"the step of {name} is a positive number, got {step}")
        what = f"the extent of {name}"
        if len(call.args) == 1 and step == 1:
            return _Range(name, 0, 1, self._evaluator.extent(call.args[0], what))
        start = self._evaluator.index(call.args[0], f"the start of {name}") if len(call.args) > 1 else as_expr(0)
        stop = self._evaluator.index(call.args[min(1, len(call.args) - 1)], f"the stop of {name}")
        first = int(start.value) if isinstance(start, Const) else start
        if isinstance(first, int) and isinstance(stop, Const):
            number = Const(max(0, -((first - int(stop.value)) // step)), "int64")
            return _Range(name, first, step, self._evaluator.as_extent(call, number, what))
        size = stop if isinstance(first, int) and first == 0 else self._evaluator.apply(call, lambda: stop - start)
        return _Range(name, first, step, size if step == 1 else (size + (step - 1)) // step)

    def _around(
        self,
        variables: Sequence[_Range],
        kind: LoopKind,
        thread: str | None,
        annotations: Mapping[str, Attribute],
        node: ast.stmt,
        statements: Sequence[ast.stmt],
    ) -> None:
        """Nested loops over variables around statements. All extents are evaluated first."""
        if not variables:
            self._read_body(statements)
            return
        for variable in variables:
            if isinstance(variable.extent, Expr):
                self._emitter.index(variable.extent)
        first, *rest = variables
        op = self._emitter.loop(first.extent, first.name, kind, thread, annotations)
        value: Expr = Leaf.of(op.induction_variable, first.name, first.extent)
        if first.step != 1:
            value = self._evaluator.apply(node, binary, BinaryKind.MUL, value, first.step)
        if isinstance(first.start, Expr) or first.start != 0:
            leaf, value = value, self._evaluator.apply(node, binary, BinaryKind.ADD, value, first.start)
            if isinstance(leaf, Leaf):
                self._function.shifted[id(value)] = value, leaf, as_expr(first.start)
        with self._emitter.body(op.body.block), self._evaluator.scope({first.name: value}):
            self._around(rest, kind, thread, annotations, node, statements)
        self._place(node)
        self._emitter.effect(op)

    def over_threads(self, node: ast.stmt, call: ast.Call, name: str, statements: Sequence[ast.stmt]) -> None:
        """A loop over the threads of `T.launch_thread`."""
        if len(call.args) != 2 or call.keywords:
            raise self._error(call, f"T.launch_thread takes a thread axis and an extent: `{tir.launch_thread.usage}`")
        thread = self._evaluator.string(call.args[0], "the thread axis")
        extent = self._evaluator.extent(call.args[1], f"the extent of {name}")
        self._around([_Range(name, 0, 1, extent)], LoopKind.THREAD_BINDING, thread, {}, node, statements)
