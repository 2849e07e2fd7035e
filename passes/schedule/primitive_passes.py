"""Each schedule primitive as a pass: `tir-split{func=mm_relu block=Y loop=1 factors=0,4}`.

The options follow from the parameters of the primitive: a block is named by `block` (and `func`), loops by their
position around that block, outermost first. Primitives that move a block under a loop of another one name that other
block by `at`; where each loop belongs to a block of its own, `blocks` names one for each of `loops`. Where a loop or a
block can be given, it is the block unless there is an option `loop`; where several blocks can, `blocks` names the
others. A buffer is given by its name, an index map as
`"lambda n, c: (n, c // 4, c % 4)"`.
"""

from __future__ import annotations

from dataclasses import field, fields, make_dataclass
from functools import cache

from xdsl.context import Context
from xdsl.dialects.builtin import AffineMapAttr, ModuleOp
from xdsl.ir import Attribute
from xdsl.passes import ModulePass

from weft.analysis.structure import find_block, loops_around
from weft.dialects.tir import BlockOp, ForOp
from weft.passes.schedule.annotations import attribute_of
from weft.passes.schedule.layouts_functions import parse_function
from weft.passes.schedule.primitive import BufferPlace, buffer_place
from weft.passes.schedule.registry import (
    INTS,
    LOOP_OR_BLOCK,
    LOOP_OR_BLOCKS,
    LOOPS,
    OPTIONAL,
    PRIMITIVES,
    parameters,
    primitive_class,
    takes_loops_of_another_block,
    takes_loops_of_several_blocks,
)
from weft.support.errors import CompileError

_NOTE = str | int | bool | float | tuple[int, ...] | tuple[str, ...] | tuple[float, ...] | tuple[bool, ...]

_OPTIONAL = int | float | tuple[str, ...] | None


class PrimitivePass(ModulePass):
    """Base of the generated passes; `primitive` is the name in the table."""

    primitive: str

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        options: dict[str, object] = {f.name: getattr(self, f.name) for f in fields(self)}
        arguments = read_arguments(self.primitive, options, op)
        primitive_class(self.primitive)(**arguments).apply()


def read_arguments(name: str, options: dict[str, object], module: ModuleOp) -> dict[str, object]:
    """The arguments of a primitive from pass options. A `CompileError` names an unknown block or loop position."""
    func = options.get("func")
    func_name = func if isinstance(func, str) else None
    if takes_loops_of_several_blocks(name):
        return {"loops": _loops_of_blocks(module, options, func_name)}
    block = find_block(module, str(options["block"]), func_name)
    owner = find_block(module, str(options["at"]), func_name) if "at" in options else block
    arguments: dict[str, object] = {}
    for parameter, kind in parameters(name):
        if kind is BlockOp:
            arguments[parameter] = (
                find_block(module, str(options[parameter]), func_name) if parameter in options else block
            )
        elif kind is ForOp:
            arguments[parameter] = _loop_at(owner, options[parameter])
        elif kind == LOOPS:
            arguments[parameter] = tuple(_loop_at(owner, at) for at in _positions(options[parameter]))
        elif kind == LOOP_OR_BLOCK:
            arguments[parameter] = block if options["loop"] is None else _loop_at(block, options["loop"])
        elif kind == LOOP_OR_BLOCKS:
            others = [find_block(module, str(name), func_name) for name in _positions(options["blocks"])]
            first = block if options["loop"] is None else _loop_at(block, options["loop"])
            arguments[parameter] = (first, *others)
        elif kind is Attribute:
            arguments[parameter] = attribute_of(options[parameter])
        elif kind == OPTIONAL:
            arguments[parameter] = None if options[parameter] is None else attribute_of(options[parameter])
        elif kind is AffineMapAttr:
            arguments[parameter] = AffineMapAttr(parse_function(str(options[parameter])))
        elif kind == BufferPlace:
            arguments[parameter] = buffer_place(block, str(options[parameter]))
        else:
            arguments[parameter] = options[parameter]
    return arguments


def _loops_of_blocks(module: ModuleOp, options: dict[str, object], func: str | None) -> tuple[ForOp, ...]:
    blocks, positions = _positions(options["blocks"]), _positions(options["loops"])
    if len(blocks) != len(positions):
        raise CompileError(f"{len(blocks)} blocks and {len(positions)} loops: one loop for each block is needed")
    return tuple(_loop_at(find_block(module, str(b), func), at) for b, at in zip(blocks, positions, strict=True))


def _positions(value: object) -> list[object]:
    return list(value) if isinstance(value, tuple) else []  # pyright: ignore[reportUnknownArgumentType]


def _loop_at(block: BlockOp, position: object) -> ForOp:
    loops = loops_around(block)
    if not isinstance(position, int) or not 0 <= position < len(loops):
        raise CompileError.at(
            block, f'block "{block.label}" has {len(loops)} loops, 0..{len(loops) - 1}; there is no loop {position}'
        )
    return loops[position]


@cache
def primitive_pass(name: str) -> type[ModulePass]:
    """The pass of the primitive `name`, generated from its parameters."""
    several = takes_loops_of_several_blocks(name)
    required: list[tuple[str, object]] = [("blocks", tuple[str, ...]) if several else ("block", str)]
    if takes_loops_of_another_block(name):
        required.append(("at", str))
    first = next((parameter for parameter, kind in parameters(name) if kind is BlockOp), None)
    for parameter, kind in parameters(name):
        if kind is BlockOp and parameter != first:
            required.append((parameter, str))
        elif kind is ForOp:
            required.append((parameter, int))
        elif kind == LOOPS or kind == INTS:  # noqa: SIM109
            required.append((parameter, tuple[int, ...]))
        elif kind is int or kind is str:
            required.append((parameter, kind))
        elif kind is AffineMapAttr or kind == BufferPlace:
            required.append((parameter, str))
        elif kind is Attribute:
            required.append((parameter, _NOTE))
    optional: list[tuple[str, object, object]] = [("func", str | None, field(default=None))]
    optional.extend((p, _OPTIONAL, field(default=None)) for p, kind in parameters(name) if kind == OPTIONAL)
    if any(kind in (LOOP_OR_BLOCK, LOOP_OR_BLOCKS) for _, kind in parameters(name)):
        optional.append(("loop", int | None, field(default=None)))
    if any(kind == LOOP_OR_BLOCKS for _, kind in parameters(name)):
        optional.append(("blocks", tuple[str, ...] | None, field(default=None)))
    cls = primitive_class(name)
    generated = make_dataclass(
        f"{cls.__name__}Pass",
        [*required, *optional],
        bases=(PrimitivePass,),
        frozen=True,
        namespace={
            "name": pass_name(name),
            "primitive": name,
            "__doc__": f"The schedule primitive `{name}` as a pass.\n\n{cls.__doc__}",
            "__module__": __name__,
        },
    )
    return generated


def pass_name(name: str) -> str:
    """`compute_at` -> `tir-compute-at`."""
    return "tir-" + name.replace("_", "-")


def __getattr__(attribute: str) -> type[ModulePass]:
    """`primitive_passes.SplitPass` and so on, so that the passes can be named like any other."""
    for name in PRIMITIVES:
        if attribute == "".join(part.capitalize() for part in name.split("_")) + "Pass":
            return primitive_pass(name)
    raise AttributeError(attribute)
