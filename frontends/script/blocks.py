"""`with T.block("C"):` -> `tir.block`: axes, guards, regions, init and body."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from xdsl.ir import Attribute, Block

from weft.dialects.tir_kinds import REDUCE, SPATIAL, IterKindAttr
from weft.dialects.tir_regions import AccessRegionOp, ReadsOp, WritesOp
from weft.frontends.script import tir
from weft.frontends.script.attributes import to_attributes
from weft.frontends.script.constructs import REDUCE_AXIS, REMAP_AXES, SPATIAL_AXIS, Construct
from weft.frontends.script.part_parser import StatementPartParser
from weft.frontends.script.python_rules import both, shown
from weft.frontends.script.regions import region_of
from weft.frontends.script.values import Buffer, BufferLoad, Leaf
from weft.texpr.expr import Binary, Compare, Const, Expr, as_expr, binary
from weft.texpr.operators import BinaryKind, Predicate
from weft.texpr.shapes import as_index

_KINDS = {"S": SPATIAL, "R": REDUCE}


@dataclass
class Head:
    """What a block declares before it computes."""

    axes: list[tuple[str, IterKindAttr, int | Expr, Expr]] = field(
        default_factory=list[tuple[str, IterKindAttr, int | Expr, Expr]]
    )
    starts: dict[str, Expr] = field(default_factory=dict[str, Expr])
    """Where axes start that do not start at 0."""
    conditions: list[Expr] = field(default_factory=list[Expr])
    """What instances need to run, beside the guards."""
    guards: list[tuple[Expr, Expr]] = field(default_factory=list[tuple[Expr, Expr]])
    annotations: dict[str, Attribute] = field(default_factory=dict[str, Attribute])
    regions: list[tuple[type[AccessRegionOp], ast.Call]] = field(
        default_factory=list[tuple[type[AccessRegionOp], ast.Call]]
    )
    views: list[ast.stmt] = field(default_factory=list[ast.stmt])
    init: ast.With | None = None


class BlockParser(StatementPartParser):
    """Reads the blocks of a function; `read_body` reads the statements in them."""

    def parse(self, node: ast.With, call: ast.Call) -> None:
        """The block that `node` opens. Raises CompileError."""
        if len(call.args) > 1 or call.keywords:
            raise self._error(call, f"a block has a name: `{tir.block.usage}`")
        name = self._evaluator.string(call.args[0], "the name of a block") if call.args else ""
        head, body = self._head(node.body)
        self._place(node)
        if not head.conditions:
            self._block(node, name, head, body)
            return
        condition = head.conditions[0]
        for other in head.conditions[1:]:
            condition = self._evaluator.apply(call, both, BinaryKind.AND, condition, other)
        value = self._emitter.value(condition)
        then = Block()
        with self._emitter.body(then):
            self._block(node, name, head, body)
        self._place(node)
        self._emitter.effect(self._emitter.conditional(value, then, None, 0))

    def _block(self, node: ast.With, name: str, head: Head, body: Sequence[ast.stmt]) -> None:
        op = self._emitter.block(name, head.axes, head.guards, head.annotations)
        leaves: dict[str, object] = {}
        for (axis, *_), argument in zip(head.axes, op.iter_vars, strict=True):
            leaf = Leaf.of(argument, axis)
            start = head.starts.get(axis)
            leaves[axis] = leaf if start is None else self._evaluator.apply(node, binary, BinaryKind.ADD, leaf, start)
        outer = self._function.readable
        self._function.readable = None
        with self._emitter.body(op.body.block), self._evaluator.scope(leaves):
            self._read_body(head.views)
            for kind, regions in head.regions:
                self._regions(kind, regions)
            if head.init is not None:
                self._init(head.init)
            self._read_body(body)
        self._function.readable = outer
        self._place(node)
        self._emitter.effect(op)

    def _init(self, node: ast.With) -> None:
        self._place(node)
        op = self._emitter.init()
        with self._emitter.body(op.body.block), self._evaluator.scope():
            self._read_body(node.body)
        self._place(node)
        self._emitter.effect(op)

    # Declarations

    def _head(self, statements: Sequence[ast.stmt]) -> tuple[Head, list[ast.stmt]]:
        """The declarations that stand first, and the rest; temporaries may stand before the init."""
        head = Head()
        rest: list[ast.stmt] = []
        declaring = True
        for node in statements:
            word = self._word(node)
            if isinstance(node, ast.With) and word is tir.init:
                if head.init is not None or any(self._word(s) is not tir.alloc_buffer for s in rest):
                    raise self._error(node, "T.init() stands in a block once, before what is computed")
                head.init = node
            elif (
                word is tir.match_buffer and head.init is None and all(self._word(s) is tir.alloc_buffer for s in rest)
            ):
                head.views.append(node)
                continue
            elif isinstance(word, Construct) and word in _HEAD:
                if not declaring:
                    raise self._error(node, f"{word} stands first in a block, before what is computed")
                self._declaration(head, node, word)
                continue
            elif not isinstance(node, ast.Pass):
                rest.append(node)
            declaring = declaring and (isinstance(node, ast.Pass) or (isinstance(node, ast.Expr) and word is None))
        return head, rest

    def _word(self, node: ast.stmt) -> object:
        call: ast.expr | None = None
        if isinstance(node, ast.With) and len(node.items) == 1:
            call = node.items[0].context_expr
        elif isinstance(node, ast.Expr | ast.Assign):
            call = node.value
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            return None
        if self._function.callee(call.func) is not None:
            return None
        return self._evaluator.evaluate(call.func) if _starts_with_name(call.func) else None

    def _declaration(self, head: Head, node: ast.stmt, word: Construct) -> None:
        call = cast("ast.Call", cast("ast.Expr | ast.Assign", node).value)
        self._place(node)
        if word in (tir.reads, tir.writes):
            head.regions.append((ReadsOp if word is tir.reads else WritesOp, call))
        elif word is tir.where:
            self._no_axes(head, call)
            for argument in call.args:
                self._guards(head, argument, self._evaluator.evaluate(argument))
        elif word is tir.block_attr:
            value = self._evaluator.evaluate(call.args[0]) if len(call.args) == 1 else None
            if not isinstance(value, dict):
                raise self._error(call, f"T.block_attr takes a dict: `{tir.block_attr.usage}`")
            head.annotations.update(self._evaluator.apply(call, to_attributes, cast("dict[object, object]", value)))
        elif isinstance(node, ast.Assign) and len(node.targets) == 1:
            self._axes(head, node.targets[0], call, word)
        else:
            raise self._error(node, f"an axis has a name: `{word.usage}`")

    def _no_axes(self, head: Head, call: ast.Call) -> None:
        names = {name for name, *_ in head.axes}
        for node in ast.walk(call):
            if isinstance(node, ast.Name) and node.id in names:
                raise self._error(
                    node, f"{node.id} is an axis of the block: loops are what T.where and axes are made of"
                )

    def _axes(self, head: Head, target: ast.expr, call: ast.Call, word: Construct) -> None:
        self._no_axes(head, call)
        targets = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
        names: list[str] = []
        for item in targets:
            if not isinstance(item, ast.Name):
                raise self._error(item, "an axis has a name")
            if item.id in names or any(item.id == name for name, *_ in head.axes):
                raise self._error(item, f"{item.id} is an axis already")
            names.append(item.id)
        if len(call.args) != 2 or call.keywords:
            raise self._error(call, f"an axis has a kind, an extent and a binding: `{word.usage}`")
        if word is REMAP_AXES:
            self._remap(head, names, call)
            return
        if len(names) != 1:
            raise self._error(target, f"one axis, and {len(names)} names")
        kind = SPATIAL if word is SPATIAL_AXIS else REDUCE
        start, extent = self._domain(call.args[0], names[0])
        binding = self._evaluator.index(call.args[1], f"the binding of {names[0]}")
        self._axis(head, call, names[0], kind, start, extent, binding)

    def _axis(
        self, head: Head, node: ast.expr, name: str, kind: IterKindAttr, start: Expr, extent: int | Expr, binding: Expr
    ) -> None:
        """An axis that runs from `start` on: in IR it counts from 0, and its name means start + it."""
        self._start(head, node, name, start)
        if name in head.starts:
            binding = self._evaluator.apply(node, binary, BinaryKind.SUB, binding, start)
        head.axes.append((name, kind, extent, binding))

    def _start(self, head: Head, node: ast.expr, name: str, start: Expr) -> None:
        pending = [start]
        while pending:
            top = pending.pop()
            if isinstance(top, BufferLoad) or (isinstance(top, Leaf) and top.extent is not None):
                raise self._error(node, f"axis {name} starts at `{start}`: its start is a number or made of extents")
            pending += top.parts
        if not _is_zero(start):
            head.starts[name] = start

    def _domain(self, node: ast.expr, name: str) -> tuple[Expr, int | Expr]:
        """Start and extent of an axis: the extent alone, or (start, stop)."""
        value = self._evaluator.evaluate(node)
        bounds = cast("tuple[object, ...]", value) if isinstance(value, tuple) else ()
        if len(bounds) == 2:
            low, high = (
                self._evaluator.apply(node, as_index, self._evaluator.scalar(node, bound), f"a bound of {name}")
                for bound in bounds
            )
            if isinstance(low, Const) and isinstance(high, Const):
                size: Expr = Const(high.value - low.value, "int64")
            else:
                size = high if _is_zero(low) else self._evaluator.apply(node, binary, BinaryKind.SUB, high, low)
            return low, self._evaluator.as_extent(node, size, f"the extent of {name}")
        return as_expr(0), self._evaluator.as_extent(node, cast("object", value), f"the extent of {name}")

    def _remap(self, head: Head, names: Sequence[str], call: ast.Call) -> None:
        kinds = self._evaluator.string(call.args[0], "the kinds of axes")
        loops = self._evaluator.evaluate(call.args[1])
        if not isinstance(loops, list | tuple):
            raise self._error(call.args[1], f"T.axis.remap takes a list of loop variables: `{REMAP_AXES.usage}`")
        variables = list(cast("Sequence[object]", loops))
        if not len(kinds) == len(variables) == len(names):
            raise self._error(
                call, f"{len(names)} axes, {len(kinds)} kinds and {len(variables)} loop variables: one each"
            )
        for name, kind, variable in zip(names, kinds, variables, strict=True):
            if kind not in _KINDS:
                raise self._error(call.args[0], f'the kind of an axis is "S" or "R", got "{kind}"')
            _, leaf, start = self._function.shifted.get(id(variable), (variable, variable, as_expr(0)))
            if not isinstance(leaf, Leaf) or leaf.extent is None:
                raise self._error(
                    call.args[1], f"{name}: T.axis.remap takes loop variables; write T.axis.spatial(extent, binding)"
                )
            self._start(head, call.args[1], name, start)
            head.axes.append((name, _KINDS[kind], leaf.extent, leaf))

    def _guards(self, head: Head, node: ast.expr, condition: object) -> None:
        """Comparisons of indices are guards left < right, other conditions stand around the block."""
        if condition is True:
            return
        if isinstance(condition, Binary) and condition.kind is BinaryKind.AND and condition.dtype == "bool":
            self._guards(head, node, condition.left)
            self._guards(head, node, condition.right)
            return
        if not isinstance(condition, Expr) or condition.dtype != "bool":
            raise self._error(node, f"T.where takes conditions, got {shown(condition)}")
        is_guard = isinstance(condition, Compare) and condition.left.is_index and condition.right.is_index
        if not isinstance(condition, Compare) or not is_guard or condition.predicate is Predicate.NE:
            head.conditions.append(condition)
            return
        left, right = condition.left, condition.right
        match condition.predicate:
            case Predicate.LT:
                head.guards.append((left, right))
            case Predicate.GT:
                head.guards.append((right, left))
            case Predicate.LE:
                head.guards.append((left, right + 1))
            case Predicate.GE:
                head.guards.append((right, left + 1))
            case Predicate.EQ:
                head.guards += [(left, right + 1), (right, left + 1)]

    # Regions

    def _regions(self, kind: type[AccessRegionOp], call: ast.Call) -> None:
        if call.keywords:
            raise self._error(call, f"regions are elements or slices of buffers: `{tir.reads.usage}`")
        nodes = [item for a in call.args for item in (a.elts if isinstance(a, ast.List | ast.Tuple) else [a])]
        buffers: list[Buffer] = []
        for node in nodes:
            buffer = self._evaluator.evaluate(node.value if isinstance(node, ast.Subscript) else node)
            if not isinstance(buffer, Buffer):
                raise self._error(node, f"a region is an element or a slice of a buffer: `{tir.reads.usage}`")
            buffers.append(buffer)
        if kind is ReadsOp:
            self._function.readable = frozenset({b.value for b in buffers} | (self._function.readable or frozenset()))
        boxes = [region_of(self._evaluator, node, buffer) for node, buffer in zip(nodes, buffers, strict=True)]
        if any(box is None for box in boxes):
            return  # without statements regions are inferred
        for node, buffer, box in zip(nodes, buffers, boxes, strict=True):
            self._place(node)
            self._emitter.region(kind, buffer.stored, *cast("tuple[list[Expr], list[int]]", box))


def _is_zero(expr: Expr) -> bool:
    return isinstance(expr, Const) and expr.value == 0


_HEAD = (tir.reads, tir.writes, tir.where, tir.block_attr, SPATIAL_AXIS, REDUCE_AXIS, REMAP_AXES)


def _starts_with_name(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)
