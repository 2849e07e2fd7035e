"""Structural matching of a block body against a description, op by op, up to the regions of buffers.

A description is a function with the loops, blocks and expressions of the body. Each of its small buffers is a box of
one of the program, whose corner is invariant in the block.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.dialects import affine, memref, scf
from xdsl.dialects.builtin import IndexType, MemRefType, UnitAttr
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue

from weft.analysis.accesses import range_of
from weft.analysis.block_scopes import bindings_of, guards_of
from weft.analysis.dependence import buffer_name
from weft.analysis.index import Index
from weft.dialects.combiners import COMBINATIONS
from weft.dialects.effects import is_pure
from weft.dialects.tir import AccessRegionOp, BlockOp, ForOp, InitOp


class NoMatch(Exception):
    def __init__(self, message: str, found: Operation, *, about_buffers: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.found = found
        self.about_buffers = about_buffers
        """Whether the computation matches, and only a buffer does not fit."""


@dataclass(frozen=True)
class Box:
    buffer: SSAValue
    corner: tuple[Index, ...]
    """The first element: one index per dimension of the buffer, which may have more leading dimensions than the
    description."""


def match_body(description: Block, body: Block) -> dict[SSAValue, Box]:
    """The box of each buffer. Raises `NoMatch` at the first difference."""
    matcher = _Matcher()
    matcher.bodies(description, body)
    return matcher.boxes


@dataclass
class _Matcher:
    values: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    """Loop variables and iterators of the description -> those of the program."""
    boxes: dict[SSAValue, Box] = field(default_factory=dict[SSAValue, Box])
    blocks: dict[Block, Block] = field(default_factory=dict[Block, Block])

    def bodies(self, description: Block, body: Block) -> None:
        self.blocks[description] = body
        expected, found = _actions(description), _actions(body)
        for wanted, op in zip(expected, found, strict=False):
            self.actions(wanted, op)
        if len(found) > len(expected):
            raise NoMatch(f"{_text(found[len(expected)])} is not in the description", found[len(expected)])
        if len(expected) > len(found):
            holder = body.parent_op()
            missing = expected[len(found)]
            raise NoMatch(f"the description continues with {_text(missing)}", holder or missing)
        for op in _loads_behind_stores(body):
            raise NoMatch("a load follows a store", op)

    def actions(self, wanted: Operation, found: Operation) -> None:
        if wanted.name != found.name:
            raise NoMatch(f"{_text(found)} is where the description has {_text(wanted)}", found)
        match wanted, found:
            case ForOp(), ForOp():
                self.extent(wanted.extent, found.extent, f"loop {_text(found)}", found)
                self.values[wanted.induction_variable] = found.induction_variable
                self.bodies(wanted.body.block, found.body.block)
            case BlockOp(), BlockOp():
                self.block(wanted, found)
            case InitOp(), InitOp():
                self.bodies(wanted.body.block, found.body.block)
            case memref.StoreOp(), memref.StoreOp():
                self.access(wanted.memref, list(wanted.indices), found.memref, list(found.indices), found)
                self.expression(wanted.value, found.value, found)
            case scf.IfOp(), scf.IfOp():
                self.expression(wanted.cond, found.cond, found)
                for ours, theirs in zip(wanted.regions, found.regions, strict=True):
                    self.regions(ours, theirs, found)
            case _:
                raise NoMatch(f"{found.name} has a meaning that is not compared", found)

    def regions(self, wanted: Region, found: Region, op: Operation) -> None:
        if len(wanted.blocks) != len(found.blocks):
            raise NoMatch("only one of them has an else", op)
        for ours, theirs in zip(wanted.blocks, found.blocks, strict=True):
            self.bodies(ours, theirs)

    def extent(self, wanted: int | SSAValue, found: int | SSAValue, what: str, op: Operation) -> None:
        same = self.values.get(wanted) is found if isinstance(wanted, SSAValue) else wanted == found
        if not same:
            shown = [e if isinstance(e, int) else f"%{e.name_hint or '?'}" for e in (found, wanted)]
            raise NoMatch(f"{what} has extent {shown[0]}, in the description {shown[1]}", op)

    def block(self, wanted: BlockOp, found: BlockOp) -> None:
        name = f'block "{found.label}"'
        if wanted.kinds != found.kinds:
            shown = [", ".join(str(kind) for kind in block.kinds) or "none" for block in (found, wanted)]
            raise NoMatch(f"the iterators of {name} are {shown[0]}, in the description {shown[1]}", found)
        for variable, ours, theirs in zip(found.iter_vars, wanted.extents, found.extents, strict=True):
            self.extent(ours, theirs, f"iterator %{variable.name_hint or '?'} of {name}", found)
        bindings = [bindings_of(block) for block in (wanted, found)]
        for variable, ours, theirs in zip(found.iter_vars, *bindings, strict=True):
            if self.mapped(ours) != theirs:
                raise NoMatch(
                    f"iterator %{variable.name_hint or '?'} of {name} is bound to {theirs!r}, in the description to "
                    f"{ours!r}",
                    found,
                )
        guards = [guards_of(block) for block in (wanted, found)]
        if [(self.mapped(a), self.mapped(b)) for a, b in guards[0]] != guards[1]:
            raise NoMatch(f"the guards of {name} differ", found)
        self.values.update(zip(wanted.iter_vars, found.iter_vars, strict=True))
        self.bodies(wanted.body.block, found.body.block)

    def mapped(self, index: Index) -> Index:
        return index.substitute({ours: Index.of(theirs) for ours, theirs in self.values.items()})

    def access(
        self, wanted: SSAValue, indices: list[SSAValue], found: SSAValue, places: list[SSAValue], op: Operation
    ) -> None:
        rank = len(indices)
        # Removes quotients and remainders of values inside the block if a layout splits a dimension.
        theirs = [Index.of(place).simplified(range_of) for place in places]
        ours = [self.mapped(Index.of(index)).simplified(range_of) for index in indices]
        if len(theirs) < rank:
            detail = f"{buffer_name(found)} has rank {len(theirs)}, the description {rank}"
            raise NoMatch(detail, op, about_buffers=True)
        leading = theirs[: len(theirs) - rank]
        corner = (*leading, *(t - o for t, o in zip(theirs[len(leading) :], ours, strict=True)))
        known = self.boxes.get(wanted)
        if known is None:
            inside = set(self.values.values())
            for dimension, index in enumerate(corner):
                if index.depends_on(inside):
                    raise NoMatch(
                        f"index {dimension} of {buffer_name(found)} is {theirs[dimension]!r}, not a fixed place plus "
                        f"the index of the description",
                        op,
                    )
            _require_fit(wanted, found, op)
            self.boxes[wanted] = Box(found, corner)
        elif known.buffer is not found:
            raise NoMatch(
                f"{buffer_name(found)} stands where {buffer_name(known.buffer)} stood for {buffer_name(wanted)} of "
                "the description",
                op,
            )
        elif known.corner != corner:
            raise NoMatch(f"{buffer_name(found)} is accessed in another place than the description says", op)

    def expression(self, wanted: SSAValue, found: SSAValue, op: Operation) -> None:
        if wanted in self.values or isinstance(wanted.type, IndexType):
            if self.mapped(Index.of(wanted)) != Index.of(found):
                raise NoMatch(f"the index {Index.of(found)!r} differs from the description's", op)
            return
        ours, theirs = wanted.owner, found.owner
        if not isinstance(ours, Operation) or not isinstance(theirs, Operation):
            raise NoMatch(f"a value of type {found.type} is defined outside", op)
        if ours.name != theirs.name or wanted.type != found.type:
            raise NoMatch(
                f"{theirs.name} : {found.type} is where the description has {ours.name} : {wanted.type}", theirs
            )
        if isinstance(ours, memref.LoadOp) and isinstance(theirs, memref.LoadOp):
            self.load(ours, theirs)
        elif isinstance(ours, scf.IfOp):
            self.conditional(ours, theirs)
        else:
            self.operation(ours, theirs)

    def load(self, wanted: memref.LoadOp, found: memref.LoadOp) -> None:
        if wanted.parent is None or self.blocks.get(wanted.parent) is not found.parent:
            raise NoMatch("the load is in another loop or block than in the description", found)
        self.access(wanted.memref, list(wanted.indices), found.memref, list(found.indices), found)

    def conditional(self, wanted: Operation, found: Operation) -> None:
        self.expression(wanted.operands[0], found.operands[0], found)
        for ours, theirs in zip(wanted.regions, found.regions, strict=True):
            self.regions(ours, theirs, found)
            yields = [region.block.last_op for region in (ours, theirs)]
            if yields[0] is not None and yields[1] is not None:
                for a, b in zip(yields[0].operands, yields[1].operands, strict=True):
                    self.expression(a, b, found)

    def operation(self, wanted: Operation, found: Operation) -> None:
        if wanted.regions or found.regions or not is_pure(found):
            raise NoMatch(f"{found.name} is not compared", found)
        if _stated(wanted) != _stated(found) or len(wanted.operands) != len(found.operands):
            raise NoMatch(f"{found.name} has other properties than in the description", found)
        boxes = dict(self.boxes)
        try:
            self.operands(list(wanted.operands), list(found.operands), found)
        except NoMatch:
            if type(found) not in COMBINATIONS:
                raise
            self.boxes = boxes
            self.operands(list(reversed(wanted.operands)), list(found.operands), found)

    def operands(self, wanted: list[SSAValue], found: list[SSAValue], op: Operation) -> None:
        for ours, theirs in zip(wanted, found, strict=True):
            self.expression(ours, theirs, op)


def _stated(op: Operation) -> dict[str, Attribute]:
    return {name: value for name, value in op.properties.items() if not isinstance(value, UnitAttr)}


def _actions(block: Block) -> list[Operation]:
    """Ops with effects; computations are compared at their uses."""
    passive = (affine.ApplyOp, memref.LoadOp, AccessRegionOp, scf.YieldOp)
    return [
        op
        for op in block.ops
        if not isinstance(op, passive)
        and op.name != "func.return"
        and not is_pure(op)
        and not (isinstance(op, scf.IfOp) and op.results)
    ]


def _loads_behind_stores(block: Block) -> list[Operation]:
    stored = False
    found: list[Operation] = []
    for op in block.ops:
        if isinstance(op, memref.StoreOp):
            stored = True
        elif stored and any(isinstance(inner, memref.LoadOp) for inner in op.walk()):
            found.append(op)
    return found


def _require_fit(wanted: SSAValue, found: SSAValue, op: Operation) -> None:
    ours, theirs = wanted.type, found.type
    if not isinstance(wanted, BlockArgument) or not isinstance(ours, MemRefType) or not isinstance(theirs, MemRefType):
        raise NoMatch(f"{buffer_name(wanted)} of the description is no parameter", op)
    if ours.element_type != theirs.element_type:
        raise NoMatch(
            f"{buffer_name(found)} holds {theirs.element_type}, {buffer_name(wanted)} of the description "
            f"{ours.element_type}",
            op,
            about_buffers=True,
        )
    if ours.memory_space != theirs.memory_space:
        shown = f"in memory scope {scope_text(theirs)}, {buffer_name(wanted)} of the description in {scope_text(ours)}"
        raise NoMatch(f"{buffer_name(found)} is {shown}", op, about_buffers=True)


def scope_text(type_: MemRefType[Attribute]) -> str:
    space = str(type_.memory_space)
    return '"global"' if space == "none" or not space else space


def _text(op: Operation) -> str:
    if isinstance(op, ForOp):
        return f"loop %{op.induction_variable.name_hint or '?'}"
    if isinstance(op, BlockOp):
        return f'block "{op.label}"'
    return op.name
