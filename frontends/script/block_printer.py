"""The declarations at the head of a printed block: axes, guards, annotations, regions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.ir import Attribute, Operation

from weft.dialects.tir import BlockOp
from weft.dialects.tir_kinds import REDUCE, SPATIAL, IterKind, IterKindAttr
from weft.dialects.tir_regions import AccessRegionOp, ReadsOp
from weft.frontends.script.attributes import attributes_text
from weft.frontends.script.raising import Raiser
from weft.frontends.script.shadow import Shadow
from weft.frontends.script.text import expr_text, index_text, range_text
from weft.frontends.script.values import Buffer, Leaf, Symbol, static_extent
from weft.support.errors import CompileError
from weft.texpr.expr import Const, Expr, compare
from weft.texpr.operators import Predicate


@dataclass
class BlockHead:
    """What a block declares: axes (name, kind, extent, binding) and guards left < right."""

    axes: list[tuple[str, IterKindAttr, int | Expr, Expr]]
    guards: list[tuple[Expr, Expr]]


def block_head(op: BlockOp, names: Sequence[str], raiser: Raiser) -> BlockHead:
    """The declarations of a block as expressions. Raises NotRaised."""
    extents = [extent if isinstance(extent, int) else raiser.value(extent) for extent in op.extents]
    bindings = [raiser.affine(expr, op.binding_operands) for expr in op.bindings.data.results]
    kinds = [SPATIAL if kind is IterKind.SPATIAL else REDUCE for kind in op.kinds]
    guards = [(raiser.affine(a, op.guard_operands), raiser.affine(b, op.guard_operands)) for a, b in op.guards]
    return BlockHead(list(zip(names, kinds, extents, bindings, strict=True)), guards)


def head_lines(head: BlockHead, attributes: Mapping[str, Attribute]) -> list[str]:
    """Axes, guards and annotations as statements."""
    lines = _axis_lines(head.axes)
    if head.guards:
        lines.append(f"T.where({' and '.join(_guard_text(left, right) for left, right in head.guards)})")
    if attributes:
        lines.append(f"T.block_attr({attributes_text(attributes)})")
    return lines


def _guard_text(left: Expr, right: Expr) -> str:
    if isinstance(left, Const) and isinstance(right, Const):  # plain numbers would be compared by Python
        return f"{expr_text(left)} < {expr_text(right)}"
    return expr_text(compare(Predicate.LT, left, right))


def _axis_lines(axes: Sequence[tuple[str, IterKindAttr, int | Expr, Expr]]) -> list[str]:
    """Runs of axes that are loop variables are one statement."""
    lines: list[str] = []
    run: list[tuple[str, IterKindAttr, int | Expr, Expr]] = []
    for axis in axes:
        if _is_loop(axis[2], axis[3]):
            run.append(axis)
            continue
        lines += _run_lines(run)
        run = []
        lines.append(_axis_line(*axis))
    return lines + _run_lines(run)


def _run_lines(run: Sequence[tuple[str, IterKindAttr, int | Expr, Expr]]) -> list[str]:
    if len(run) < 2:
        return [_axis_line(*axis) for axis in run]
    names = ", ".join(name for name, *_ in run)
    kinds = "".join("S" if kind == SPATIAL else "R" for _, kind, _, _ in run)
    loops = ", ".join(expr_text(binding) for *_, binding in run)
    return [f'{names} = T.axis.remap("{kinds}", [{loops}])']


def _axis_line(name: str, kind: IterKindAttr, extent: int | Expr, binding: Expr) -> str:
    word = "spatial" if kind == SPATIAL else "reduce"
    size = index_text(extent) if isinstance(extent, Expr) else str(extent)
    return f"{name} = T.axis.{word}({size}, {index_text(binding)})"


def _is_loop(extent: int | Expr, binding: Expr) -> bool:
    """Whether an axis runs over the values of a loop variable."""
    if not isinstance(binding, Leaf) or binding.extent is None:
        return False
    ours, theirs = static_extent(extent), static_extent(binding.extent)
    if ours is not None or theirs is not None:
        return ours == theirs
    values = [e.value if isinstance(e, Leaf | Symbol) else None for e in (extent, binding.extent)]
    return values[0] is not None and values[0] is values[1]


def region_lines(ops: Sequence[Operation], shadow: Shadow) -> tuple[list[str], int]:
    """The leading ops about regions as `T.reads(...)` and `T.writes(...)`, and how many they are."""
    lines: list[str] = []
    count = 0
    while count < len(ops) and isinstance(ops[count], AccessRegionOp):
        kind = type(ops[count])
        texts: list[str] = []
        while count < len(ops) and type(ops[count]) is kind:
            texts.append(_region_text(cast("AccessRegionOp", ops[count]), shadow))
            count += 1
        lines.append(f"T.{'reads' if kind is ReadsOp else 'writes'}({', '.join(texts)})")
    return lines, count


def _region_text(op: AccessRegionOp, shadow: Shadow) -> str:
    def raised(raiser: Raiser) -> tuple[Buffer, list[Expr]]:
        corner = [raiser.affine(expr, op.corner_operands) for expr in op.corner.data.results]
        return raiser.buffer(op.buffer), corner

    def produce(parts: tuple[Buffer, list[Expr]]) -> None:
        shadow.emitter.region(type(op), *parts, op.box_sizes)

    parts = shadow.attempt([op], raised, produce)
    if parts is None:
        raise CompileError.at(op, f"{op.name} has no form in scripts")
    buffer, corner = parts
    sizes = op.box_sizes
    ranges = [index_text(low) if size == 1 else range_text(low, size) for low, size in zip(corner, sizes, strict=True)]
    return f"{buffer.name}[{', '.join(ranges)}]"
