"""Each schedule primitive as a pass: `tir-split{func=mm_relu block=Y loop=1 factors=0,4}`.

Options derive from the parameters of the step: blocks by name (`block`, `func`), loops by their position around that
block, outermost first. `at` is a block in the loop that another one moves into; `blocks` names a block for each of
`loops`, or further accepted blocks. A loop instead of a block is given by `loop`. Buffers are given by name, index maps
as `"lambda n, c: (n, c // 4, c % 4)"`.
"""

from __future__ import annotations

import inspect
from dataclasses import field, fields, make_dataclass
from functools import cache
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import AffineMapAttr, ModuleOp
from xdsl.dialects.utils.fast_math import FastMathFlag
from xdsl.passes import ModulePass

from weft.analysis.block_scopes import find_block, loops_around
from weft.dialects import sched_parameters as kinds
from weft.dialects.attribute_values import attribute_of
from weft.dialects.sched import PRIMITIVE_STEPS
from weft.dialects.tir import BlockOp, ForOp
from weft.passes.schedule.index_maps import parse_function
from weft.passes.schedule.primitive import PRIMITIVES, Primitive, buffer_position, primitive_class
from weft.support.errors import CompileError

_BLOCK = "The name of the block."
_BLOCKS = "The names of the blocks."
_AT = "The name of the block that `loop` is around."
_FUNC = "The function that contains the block, if several contain one of that name."
_LOOP_OR_BLOCK = "The position of a loop around `block`, from 0, the outermost one: it is used in place of the block."
_OTHER_BLOCKS = "The names of further blocks."


class PrimitivePass(ModulePass):
    primitive: str
    fast_math = (FastMathFlag.REASSOC,)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        options: dict[str, object] = {f.name: getattr(self, f.name) for f in fields(self)}
        arguments = read_arguments(self.primitive, options, op)
        primitive_class(self.primitive)(**arguments).apply()


def read_arguments(name: str, options: dict[str, object], module: ModuleOp) -> dict[str, object]:
    """Raises `CompileError` for an unknown block or loop position."""
    func = options.get("func")
    func_name = func if isinstance(func, str) else None
    parameters = PRIMITIVE_STEPS[name].parameters
    if parameters[0].kind is kinds.LOOPS_OF_BLOCKS:
        return {parameters[0].name: _loops_of_blocks(module, options, func_name)}
    block = find_block(module, str(options["block"]), func_name)
    arguments: dict[str, object] = {}
    for declared in parameters:
        parameter, kind = declared.name, declared.kind
        given = options.get(parameter)
        if kind is kinds.BLOCK_HANDLE:
            arguments[parameter] = find_block(module, str(given), func_name) if parameter in options else block
        elif kind is kinds.LOOP_HANDLE:
            arguments[parameter] = _loop_at(block, given)
        elif kind is kinds.LOOP_ELSEWHERE:
            arguments[parameter] = _loop_at(find_block(module, str(options["at"]), func_name), given)
        elif kind is kinds.LOOP_HANDLES:
            arguments[parameter] = tuple(_loop_at(block, at) for at in _positions(given))
        elif kind.handles:
            first = block if options["loop"] is None else _loop_at(block, options["loop"])
            others = [find_block(module, str(name), func_name) for name in _positions(options.get("blocks"))]
            arguments[parameter] = (first, *others) if kind.several else first
        elif kind is kinds.ANNOTATION or (kind.optional and given is not None):
            arguments[parameter] = attribute_of(given)
        elif kind is kinds.BUFFER:
            arguments[parameter] = buffer_position(block, str(given))
        elif kind.attribute is AffineMapAttr:
            arguments[parameter] = AffineMapAttr(parse_function(str(given)))
        else:
            arguments[parameter] = given
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


def primitive_pass(name: str) -> type[ModulePass]:
    return _pass_of(primitive_class(name))


@cache
def _pass_of(cls: type[Primitive]) -> type[ModulePass]:
    name = cls.NAME
    parameters = PRIMITIVE_STEPS[name].parameters
    used = [parameter.kind for parameter in parameters]
    required: list[tuple[str, object, object]] = [("block", str, _needed(_BLOCK, "B"))]
    if kinds.LOOPS_OF_BLOCKS in used:
        required = [("blocks", tuple[str, ...], _needed(_BLOCKS, "B,C"))]
    if kinds.LOOP_ELSEWHERE in used:
        required.append(("at", str, _needed(_AT, "C")))
    first = next((parameter for parameter in parameters if parameter.kind is kinds.BLOCK_HANDLE), None)
    required.extend(
        (p.name, p.kind.option, _needed(p.meaning, p.example))
        for p in parameters
        if p.kind.option is not None and (not p.may_be_absent or p.kind is kinds.ANNOTATION) and p is not first
    )
    optional: list[tuple[str, object, object]] = [("func", str | None, _absent(_FUNC))]
    optional.extend((p.name, _or_none(p.kind.option), _absent(p.meaning)) for p in parameters if p.kind.optional)
    optional.extend(
        (p.name, p.kind.option, field(default=p.default, metadata={"meaning": p.meaning}))
        for p in parameters
        if p.kind.option is not None and p.default is not kinds.REQUIRED and not p.kind.optional
    )
    if kinds.LOOP_OR_BLOCK in used or kinds.LOOP_OR_BLOCKS in used:
        optional.append(("loop", int | None, _absent(_LOOP_OR_BLOCK)))
    if kinds.LOOP_OR_BLOCKS in used:
        optional.append(("blocks", tuple[str, ...] | None, _absent(_OTHER_BLOCKS)))
    generated = make_dataclass(
        f"{cls.__name__}Pass",
        [*required, *optional],
        bases=(PrimitivePass,),
        frozen=True,
        namespace={
            "name": PRIMITIVE_STEPS[name].pass_name,
            "primitive": name,
            "__doc__": f"{inspect.cleandoc(cls.__doc__ or '')}\n",
            "__module__": __name__ if name in PRIMITIVES else cls.__module__,
        },
    )
    return generated


def _needed(meaning: str, example: str) -> object:
    return field(metadata={"meaning": meaning, "example": example})


def _or_none(type_: Any) -> object:
    return type_ | None


def _absent(meaning: str) -> object:
    return field(default=None, metadata={"meaning": meaning})


def __getattr__(attribute: str) -> type[ModulePass]:
    """So that `primitive_passes.SplitPass` can be imported like other passes."""
    for step in PRIMITIVE_STEPS.values():
        if attribute == f"{step.class_name}Pass":
            return primitive_pass(step.name)
    raise AttributeError(attribute)
