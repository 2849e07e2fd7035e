"""The payload of a transform script: ops of handles, and their schedule.

A structured op is a block and the loops over its dimensions. Loop ops are loops of the script or program. Other ops are
those before conversion.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Final, cast

from xdsl.context import Context
from xdsl.dialects import affine, scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, UnitAttr, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, OpResult
from xdsl.ir.affine import AffineMap

from weft.analysis.block_scopes import bindings_of, find_function, functions, loops_around
from weft.dialects.effects import op_name
from weft.dialects.sched import PRIMITIVE_STEPS
from weft.dialects.tir import BlockOp, ForOp
from weft.dialects.tir_kinds import INIT_ORIGIN, ORIGIN
from weft.dialects.traversal import ancestors, copy_of, operations_in, operations_of
from weft.dialects.upstream.linalg_forms import is_structured, structure_of
from weft.passes.convert.convert_linalg_to_tir import ConvertLinalgToTirPass
from weft.passes.convert.raise_affine_to_tir import RaiseAffineToTirPass
from weft.passes.convert.reduction_inits import merge_inits
from weft.schedule.recording import BlockHandle, LoopHandle, is_live, undone_on_error
from weft.schedule.schedule import Schedule
from weft.support.locations import SourceLocation, location_of

_LOOPS: Final = ("affine.for", "affine.parallel", "scf.for", "scf.forall", "scf.parallel")
SCRIPT: Final = "transform."
WITH_SCRIPTS: Final = "transform.with_named_sequence"


def program_ops(module: ModuleOp) -> Iterator[Operation]:
    """All ops, also of inner modules with scripts."""
    for op in module.body.block.ops:
        if isinstance(op, ModuleOp) and WITH_SCRIPTS in op.attributes:
            yield from op.body.block.ops
        else:
            yield op


@dataclass(frozen=True, eq=False)
class Origin:
    name: str
    attributes: dict[str, Attribute]
    operand_types: tuple[Attribute, ...]
    result_types: tuple[Attribute, ...]
    producers: tuple[int | None, ...]
    """Numbers of the ops that produce its operands."""
    function: str
    location: SourceLocation | None
    maps: tuple[AffineMap, ...] | None
    """The indexing maps of a structured op; None for other ops."""
    number: int


@dataclass(eq=False)
class PayloadItem:
    name: str
    location: SourceLocation | None
    attributes: dict[str, Attribute] = field(default_factory=dict[str, Attribute], kw_only=True)
    origin: Origin | None = field(default=None, kw_only=True)

    def __str__(self) -> str:
        place = "" if self.location is None else f" at {self.location}"
        return f"'{self.name}'{place}"


@dataclass(eq=False)
class PayloadBlock(PayloadItem):
    block: BlockHandle
    loops: list[LoopHandle | None]
    """None for a dimension with one iteration and no loop."""


@dataclass(eq=False)
class PayloadInit(PayloadItem):
    """A fill, now the init of a reduction."""

    reduction: BlockHandle


@dataclass(eq=False)
class PayloadLoops(PayloadItem):
    """A loop, or a nest for `scf.forall`, outermost first."""

    loops: list[LoopHandle]


@dataclass(eq=False)
class PayloadFunction(PayloadItem):
    symbol: str | None


class Payload:
    def __init__(self, module: ModuleOp, promises: Sequence[str], seed: int) -> None:
        kept = [copy_of(op) for op in program_ops(module) if not op_name(op).startswith(SCRIPT)]
        self.source = ModuleOp(kept, dict(module.attributes))
        """Without scripts, before any step."""
        self.source.attributes.pop(WITH_SCRIPTS, None)
        self._promises, self._seed = tuple(promises), seed
        self.is_prepared = False
        """The passes at the start of the script ran on the program."""
        self.convert()

    def of_schedule(self, schedule: Schedule) -> Payload:
        """The payload before any step, with blocks of a schedule of it or one of its functions."""
        made = copy(self)
        made.is_prepared, made.schedule, made.origins = True, schedule, dict(self._first_origins)
        origins = {_place_of(block): block.attributes for block in _blocks(self.schedule.original)}
        for block in _blocks(schedule.mod):
            known = origins.get(_place_of(block), {})
            block.attributes.update({key: known[key] for key in (ORIGIN, INIT_ORIGIN) if key in known})
        names = [function.sym_name.data for function in functions(schedule.mod)]
        made._functions = {name: self._functions[name] for name in names}
        made.known = made._others()
        for block in _blocks(schedule.mod):
            made._discover(block)
        return made

    def _others(self) -> list[PayloadItem]:
        return [
            PayloadItem(o.name, o.location, origin=o)
            for o in self.origins.values()
            if o.maps is None and o.name not in _LOOPS
        ]

    def convert(self) -> None:
        """Convert the program to block loops; drops steps and ops of handles."""
        module = copy_of(self.source)
        self.origins: dict[int, Origin] = {}
        self._functions = {
            f.sym_name.data: PayloadFunction("func.func", location_of(f), f.sym_name.data) for f in functions(module)
        }
        self._module = PayloadFunction("builtin.module", location_of(module), None)
        for function in functions(module):
            self._number(function)
        self._first_origins = dict(self.origins)
        if any(map(is_structured, operations_in(module))):
            ConvertLinalgToTirPass(promises=self._promises).apply(Context(), module)
            for function in functions(module):
                merge_inits(function, starts=True)
        elif operations_of(module, scf.ForOp, scf.ParallelOp, affine.ForOp):
            RaiseAffineToTirPass(promises=self._promises).apply(Context(), module)
        self.schedule = Schedule(module, self._seed)
        self.known: list[PayloadItem] = self._others()
        """Except functions, in any order."""
        for block in _blocks(self.schedule.mod):
            self._discover(block)

    def _number(self, function: FuncOp) -> None:
        numbers: dict[Operation, int] = {}
        for op in operations_in(function)[1:]:
            number = numbers[op] = len(self.origins)
            owners = [operand.owner if isinstance(operand, OpResult) else None for operand in op.operands]
            self.origins[number] = Origin(
                op_name(op),
                {**op.properties, **op.attributes},
                tuple(operand.type for operand in op.operands),
                tuple(op.result_types),
                tuple(None if owner is None else numbers.get(owner) for owner in owners),
                function.sym_name.data,
                location_of(op),
                structure_of(op).maps if is_structured(op) else None,
                number,
            )
            if is_structured(op):
                op.attributes[ORIGIN] = IntegerAttr(number, i64)

    def _origin(self, block: BlockOp, name: str = ORIGIN) -> Origin | None:
        number = block.attributes.get(name)
        return self.origins[number.value.data] if isinstance(number, IntegerAttr) else None

    def _discover(self, block: BlockOp) -> None:
        origin = self._origin(block)
        if origin is not None:
            self.add_structured(self.schedule.handle_of(block), origin)

    def add_structured(
        self, block: BlockHandle, origin: Origin | None, name: str | None = None, like: PayloadItem | None = None
    ) -> PayloadBlock:
        """Loops are the innermost that the block's iterators are bound to, except loop ops."""
        self._drop_dead()
        known = {loop for op in self.known if isinstance(op, PayloadLoops) for loop in map(self.loop, op.loops)}
        op = cast("BlockOp", self.schedule.get(block))
        around = loops_around(op)
        handles = dict(zip(around, self.schedule.get_loops(block), strict=True))
        loops: list[LoopHandle | None] = []
        for index in bindings_of(op):
            own = [loop for loop in around if index.depends_on([loop.induction_variable]) and loop not in known]
            loops.append(handles[own[-1]] if own else None)
        place = origin or like
        found = PayloadBlock(
            name or (origin.name if origin else "linalg.generic"),
            None if place is None else place.location,
            block,
            loops,
            attributes=dict(origin.attributes if origin else {}),
            origin=origin,
        )
        self.known.append(found)
        start = self._origin(op, INIT_ORIGIN)
        if start is not None and not any(
            isinstance(other, PayloadInit) and other.reduction == block for other in self.known
        ):
            self.known.append(PayloadInit(start.name, start.location, block, attributes=start.attributes, origin=start))
        return found

    def structured_in(self, loops: Sequence[LoopHandle], origin: Origin | None, name: str) -> list[PayloadBlock]:
        found: list[PayloadBlock] = []
        for loop in map(self.loop, loops):
            for block in operations_of(loop, BlockOp):
                if origin is None or self._origin(block) is origin:
                    found.append(self.add_structured(self.schedule.handle_of(block), origin, name))
        return found

    def add_loop(self, name: str, loops: Sequence[LoopHandle], like: PayloadItem | None = None) -> PayloadLoops:
        found = PayloadLoops(name, None if like is None else like.location, list(loops))
        self.known.append(found)
        return found

    def add_origin(self, origin: Origin) -> Origin:
        number = max(self.origins, default=-1) + 1
        found = self.origins[number] = replace(origin, number=number)
        return found

    def annotate(self, op: PayloadItem, name: str, value: Attribute | None) -> None:
        op.attributes[name] = UnitAttr() if value is None else value
        if isinstance(op, PayloadFunction):
            place = self.schedule.mod if op.symbol is None else find_function(self.schedule.mod, op.symbol)
            place.attributes[name] = op.attributes[name]

    def remove(self, op: PayloadItem) -> None:
        if op in self.known:
            self.known.remove(op)

    @contextmanager
    def undone_on_error(self) -> Generator[None]:
        known = list(self.known)
        try:
            with undone_on_error(self.schedule):
                yield
        except BaseException:
            self.known = known
            raise

    def structured_inside(self, op: PayloadItem) -> list[PayloadBlock]:
        return [one for one in self.inside(op) if isinstance(one, PayloadBlock)]

    def rediscover(self, loops: Sequence[LoopHandle], old: Sequence[PayloadBlock]) -> None:
        """Replace `old` by the ops in copies of its loops, by origin."""
        for one in old:
            self.remove(one)
        names = {one.origin: one.name for one in old if one.origin is not None}
        for loop in map(self.loop, loops):
            for block in operations_of(loop, BlockOp):
                origin = self._origin(block)
                if origin in names:
                    self.add_structured(self.schedule.handle_of(block), origin, names[origin])

    @property
    def is_unscheduled(self) -> bool:
        steps = self.schedule.trace.body.block.ops
        return not any(step.name.removeprefix("sched.") in PRIMITIVE_STEPS for step in steps)

    def renewed(self, op: PayloadFunction) -> PayloadItem:
        """The current function of that name."""
        return self._module if op.symbol is None else self._functions[op.symbol]

    def root(self) -> PayloadFunction:
        return self._module

    def loop(self, handle: LoopHandle) -> ForOp:
        """A handle's loop. Raises `CompileError` if erased."""
        return cast("ForOp", self.schedule.get(handle))

    def block(self, op: PayloadBlock | PayloadInit) -> BlockOp:
        """An op's block; for a fill, its reduction."""
        return cast("BlockOp", self.schedule.get(op.block if isinstance(op, PayloadBlock) else op.reduction))

    def block_of(self, handle: BlockHandle) -> BlockOp:
        return cast("BlockOp", self.schedule.get(handle))

    def function_of(self, op: PayloadBlock | PayloadInit) -> str:
        return _place_of(self.block(op))[0]

    def place(self, op: PayloadItem) -> Operation:
        """The scheduled op that is or contains `op`."""
        if isinstance(op, PayloadLoops):
            return self.loop(op.loops[0])
        if isinstance(op, PayloadBlock | PayloadInit):
            return self.block(op)
        symbol = op.symbol if isinstance(op, PayloadFunction) else op.origin and op.origin.function
        module = self.schedule.mod
        return module if symbol is None else find_function(module, symbol)

    def inside(self, scope: PayloadItem) -> list[PayloadItem]:
        """Ops in `scope`, innermost first, itself last."""
        self._drop_dead()
        found: list[PayloadItem] = []
        if isinstance(scope, PayloadFunction):
            own = (None, scope.symbol) if scope.symbol else (None, *self._functions)
            found += [op for op in self.known if type(op) is PayloadItem and op.origin and op.origin.function in own]
        ops = {self.place(op): op for op in self.known if isinstance(op, PayloadBlock | PayloadLoops)}
        starts = {self.place(op): op for op in self.known if isinstance(op, PayloadInit)}
        covered = {loop for op in ops.values() for loop in self._loops_of(op)}
        place = self.place(scope)
        for op in operations_in(place, inner_first=True):
            if isinstance(op, BlockOp) and op in starts:
                found.append(starts[op])
            if op in ops:
                found.append(ops[op])
            elif isinstance(op, ForOp) and op not in covered:
                handle = self._handle_of_loop(op)
                if handle is not None:
                    found.append(self.add_loop(self._loop_name(op), [handle]))
            elif isinstance(op, FuncOp) and op.sym_name.data in self._functions:
                found.append(self._functions[op.sym_name.data])
        if scope is self._module:
            found.append(scope)
        return found

    def _loop_name(self, loop: ForOp) -> str:
        function = next(op for op in ancestors(loop) if isinstance(op, FuncOp)).sym_name.data
        names = {origin.name for origin in self.origins.values() if origin.function == function}
        return "affine.for" if "affine.for" in names and "scf.for" not in names else "scf.for"

    def _drop_dead(self) -> None:
        self.known = [op for op in self.known if self._is_live(op)]

    def _is_live(self, op: PayloadItem) -> bool:
        return all(is_live(self.schedule, handle) for handle in self._handles_of(op))

    def _handles_of(self, op: PayloadItem) -> list[BlockHandle | LoopHandle]:
        if isinstance(op, PayloadBlock):
            return [op.block, *(loop for loop in op.loops if loop is not None)]
        if isinstance(op, PayloadLoops):
            return [*op.loops]
        return [op.reduction] if isinstance(op, PayloadInit) else []

    def _loops_of(self, op: PayloadItem) -> list[ForOp]:
        handles = op.loops if isinstance(op, PayloadBlock | PayloadLoops) else []
        return [self.loop(handle) for handle in handles if handle is not None]

    def _handle_of_loop(self, loop: ForOp) -> LoopHandle | None:
        block = next(iter(operations_of(loop, BlockOp)), None)
        if block is None:
            return None
        around = loops_around(block)
        return self.schedule.get_loops(self.schedule.handle_of(block))[around.index(loop)] if loop in around else None

    def around(self, op: PayloadItem) -> list[PayloadItem]:
        if op is self._module:
            return []
        if isinstance(op, PayloadFunction):
            return [self._module]
        place = self.place(op)
        found: list[PayloadItem] = []
        if not isinstance(place, FuncOp):
            function = next(one for one in ancestors(place) if isinstance(one, FuncOp))
            self.inside(self._functions[function.sym_name.data])  # discovers all loops
            loops = {self.place(one): one for one in self.known if isinstance(one, PayloadLoops)}
            found += [loops[one] for one in ancestors(place) if one in loops]
            place = function
        return [*found, self._functions[place.sym_name.data], self._module]

    def holds(self, outer: PayloadItem, inner: PayloadItem) -> bool:
        """Whether `outer` is or contains `inner`; False if one is erased."""
        return inner is outer or (self._is_live(inner) and self._is_live(outer) and outer in self.around(inner))

    def producer(self, op: PayloadItem, operand: int) -> PayloadItem | None:
        if op.origin is None or operand >= len(op.origin.producers):
            return None
        number = op.origin.producers[operand]
        return None if number is None else self._of_origin(number)

    def consumers(self, op: PayloadItem) -> list[PayloadItem]:
        if op.origin is None:
            return []
        numbers = [o.number for o in self.origins.values() if op.origin.number in o.producers]
        return [found for number in numbers if (found := self._of_origin(number)) is not None]

    def _of_origin(self, number: int) -> PayloadItem | None:
        return next((op for op in self.known if op.origin is not None and op.origin.number == number), None)


def _place_of(block: BlockOp) -> tuple[str, str]:
    function = next(op for op in ancestors(block) if isinstance(op, FuncOp))
    return function.sym_name.data, block.label


def _blocks(module: ModuleOp) -> list[BlockOp]:
    return operations_of(module, BlockOp)
