"""What operations do besides computing their results. Every pass and analysis gets it here.

The effects of an op are those that its `MemoryEffect` traits state. Upstream ops that lack the traits have them in
`_UPSTREAM`, ops of other dialects by `state_effects`. A call has the effects of its callee: none but on its operands
when the callee is `low.pure`, an intrinsic that is registered as pure, or a function with a body in which nothing else
has an effect.

What is not known is *opaque*: it may read and write all memory that it can reach, and the world outside. It runs as
often as the program says and in that order, is not dropped, and is not run by several threads or lanes at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final, TypeAlias, TypeGuard, cast

from xdsl.dialects import affine, arith, func, memref, scf, tensor, vector
from xdsl.dialects.builtin import MemRefType, ModuleOp, StringAttr, SymbolRefAttr, UnitAttr, UnregisteredOp
from xdsl.dialects.ptr import PtrType
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue
from xdsl.traits import (
    EffectInstance,
    MemoryEffect,
    MemoryEffectKind,
    NoMemoryEffect,
    RecursiveMemoryEffect,
    Resource,
)

from weft.dialects.functions import function_around
from weft.dialects.integer_arith import DIVISIONS, constant_integer
from weft.dialects.traversal import ancestors, operations_in
from weft.dialects.upstream.views import CASTS, VIEWS
from weft.support.user_functions import intrinsics

PURE = "low.pure"
"""Unit attribute of a function that the module declares only: it computes its result from its arguments alone, and
touches no memory but what pointers among them (`low.access_ptr`) give access to."""
INTRINSIC = "low.intrinsic"
"""String attribute of such a function: the intrinsic that it was lowered from."""

READ, WRITE, ALLOC, FREE = (
    MemoryEffectKind.READ,
    MemoryEffectKind.WRITE,
    MemoryEffectKind.ALLOC,
    MemoryEffectKind.FREE,
)
Kinds: TypeAlias = frozenset[MemoryEffectKind]
_NONE: Final[Kinds] = frozenset()


@dataclass(frozen=True)
class _NamedResource(Resource):
    label: str

    def name(self) -> str:
        return self.label


THREADS: Final = _NamedResource("threads")
"""Resource of effects on what other threads of a kernel do, as a barrier has."""
STATEMENTS: Final = _NamedResource("statements")
"""Resource that keeps ops without results which state a fact or give a hint: they touch no memory."""


class Synchronizes(MemoryEffect):
    """Trait of ops that wait for other threads, or exchange values with them: they are neither erased nor moved."""

    @classmethod
    def get_effects(cls, op: Operation) -> frozenset[EffectInstance]:
        return _SYNCHRONIZES


class StatesFact(MemoryEffect):
    """Trait of ops that state a fact or give a hint to those who ask, and do nothing when they run."""

    @classmethod
    def get_effects(cls, op: Operation) -> frozenset[EffectInstance]:
        return _STATES


_SYNCHRONIZES: Final = frozenset((EffectInstance(READ, None, THREADS), EffectInstance(WRITE, None, THREADS)))
_STATES: Final = frozenset((EffectInstance(WRITE, None, STATEMENTS),))


class PointerEffects(MemoryEffect):
    """Trait of ops that touch no memory but what their pointers (`low.access_ptr`) give access to."""

    @classmethod
    def get_effects(cls, op: Operation) -> frozenset[EffectInstance]:
        pointers = [operand for operand in op.operands if isinstance(operand.type, PtrType)]
        return frozenset(EffectInstance(kind, pointer) for kind in (READ, WRITE) for pointer in pointers)


@dataclass(frozen=True)
class Effects:
    """What one op does, without the ops in its regions."""

    reads: tuple[SSAValue, ...] = ()
    """Buffers and pointers among its operands that it reads from."""
    writes: tuple[SSAValue, ...] = ()
    """Buffers and pointers among its operands that it writes to."""
    allocates: bool = False
    reads_all: bool = False
    """Whether it may read any memory that it can reach, or something outside of the program."""
    synchronizes: bool = False
    """Whether it acts on other threads of a kernel."""
    is_opaque: bool = False
    """Whether it may do anything."""


NO_EFFECTS: Final = Effects()

_RECURSIVE: Final = frozenset((scf.ExecuteRegionOp, memref.AllocaScopeOp, affine.ForOp, affine.ParallelOp, func.FuncOp))
"""Upstream ops without the trait that do what the ops in their regions do."""
_UPSTREAM: Final[Mapping[type[Operation], Kinds]] = {
    **dict.fromkeys(_RECURSIVE, _NONE),
    **dict.fromkeys((arith.RemUIOp, arith.ExtSIOp, affine.MinOp, tensor.YieldOp, func.ReturnOp), _NONE),
    **dict.fromkeys((memref.AllocaScopeReturnOp, vector.BitcastOp, vector.CreateMaskOp, vector.ReductionOp), _NONE),
    **dict.fromkeys((vector.LoadOp, vector.MaskedLoadOp, vector.TransferReadOp), frozenset((READ,))),
    **dict.fromkeys((vector.StoreOp, vector.MaskedStoreOp, vector.TransferWriteOp), frozenset((WRITE,))),
    **dict.fromkeys((affine.LoadOp, affine.VectorLoadOp), frozenset((READ,))),
    **dict.fromkeys((affine.StoreOp, affine.VectorStoreOp), frozenset((WRITE,))),
}
"""Effects on the buffers among their operands of upstream ops without traits."""
_stated: dict[str, Kinds] = {}
"""Effects that were stated of ops of other dialects, by name."""


def state_effects(name: str, kinds: Iterable[MemoryEffectKind] | None) -> None:
    """State that ops called `name`, which have no `MemoryEffect` trait, have effects of these kinds on their memref
    operands and no others: none at all with no kinds, any with None, as it is of ops of which nothing was stated."""
    _stated.pop(name, None)
    if kinds is not None:
        _stated[name] = frozenset(kinds)
    _silent.cache_clear()


def op_name(op: Operation) -> str:
    """The name of an op, also of one that no dialect registers."""
    return op.op_name.data if isinstance(op, UnregisteredOp) else op.name


def effects_of(op: Operation) -> Effects:
    """What `op` does, besides what the ops in its regions do."""
    if _silent(type(op)):
        return NO_EFFECTS
    if type(op) is func.CallOp:
        return _effects_of_call(op)
    traits = op.get_traits_of_type(MemoryEffect)
    if not traits:
        kinds = _UPSTREAM.get(type(op), _stated.get(op_name(op)))
        return _opaque(op) if kinds is None else _on_operands(op, kinds)
    reads, writes = list[SSAValue](), list[SSAValue]()
    allocates = reads_all = synchronizes = False
    for trait in traits:
        if isinstance(trait, RecursiveMemoryEffect):
            continue
        stated = trait.get_effects(op)
        if stated is None:
            return _opaque(op)
        for effect in stated:
            if effect.resource is THREADS:
                synchronizes = True
            elif effect.resource is STATEMENTS:
                continue
            elif effect.kind is ALLOC:
                allocates = True
            elif isinstance(effect.value, SSAValue):
                (reads if effect.kind is READ else writes).append(effect.value)
            else:
                found = _on_operands(op, frozenset((effect.kind,)))
                if found.is_opaque:
                    return found
                reads_all = reads_all or found.reads_all
                reads += found.reads
                writes += found.writes
    return Effects(
        tuple(dict.fromkeys(reads)), tuple(dict.fromkeys(writes)), allocates, reads_all, synchronizes=synchronizes
    )


def _opaque(op: Operation) -> Effects:
    buffers = _buffers(op)
    return Effects(buffers, buffers, reads_all=True, is_opaque=True)


def _buffers(op: Operation) -> tuple[SSAValue, ...]:
    return tuple(dict.fromkeys(operand for operand in op.operands if type(operand.type) is MemRefType))


def _on_operands(op: Operation, kinds: Kinds) -> Effects:
    """Effects of some kinds on the buffers among the operands; where there are none, on anything."""
    if not kinds:
        return NO_EFFECTS
    buffers = _buffers(op)
    reads, writes = READ in kinds, WRITE in kinds or FREE in kinds
    if not buffers:
        return _opaque(op) if writes else Effects(allocates=ALLOC in kinds, reads_all=reads)
    return Effects(buffers if reads else (), buffers if writes else (), ALLOC in kinds)


@cache
def _silent(op_class: type[Operation]) -> bool:
    """Whether ops of a class have no effects of their own, whatever their operands."""
    if op_class is UnregisteredOp or issubclass(op_class, UnregisteredOp):
        return False
    traits = [trait for trait in op_class.traits.traits if isinstance(trait, MemoryEffect)]
    if not traits:
        return not _UPSTREAM.get(op_class, _stated.get(op_class.name, frozenset((WRITE,))))
    return all(isinstance(trait, NoMemoryEffect | RecursiveMemoryEffect | StatesFact) for trait in traits)


class RegionEffects(RecursiveMemoryEffect):
    """Trait of ops with the effects of the ops in their regions, as `effects_of` tells these: none, or unknown."""

    @classmethod
    def get_effects(cls, op: Operation) -> frozenset[EffectInstance] | None:
        inside = (inner for inner in operations_in(op) if inner is not op)
        return frozenset() if all(effects_of(inner) == NO_EFFECTS for inner in inside) else None


# Calls


def callee_of(call: func.CallOp) -> func.FuncOp | None:
    """The function that a call names, where the module around the call has it."""
    return function_around(call, call.callee.string_value())


def declared_callees(root: Operation, home: func.FuncOp) -> list[func.FuncOp]:
    """Declarations, with the same effects, of the functions that `root` calls, as the module of `home` has them: what a
    copy of `home` needs around it for its calls to have the effects that they have there."""
    found: dict[str, func.FuncOp] = {}
    for op in operations_in(root):
        if not isinstance(op, func.CallOp) or (name := op.callee.string_value()) in found:
            continue
        called = function_around(home, name)
        if called is not None and called is not home:
            type_ = called.function_type
            found[name] = func.FuncOp.external(name, list(type_.inputs), list(type_.outputs))
            if _is_pure_function(name, called):
                found[name].attributes[PURE] = UnitAttr()
    return list(found.values())


def is_pure_function(function: func.FuncOp) -> bool:
    """Whether a function does nothing but give results and touch the buffers that it takes."""
    return _is_pure_function(function.sym_name.data, function)


def _effects_of_call(call: func.CallOp) -> Effects:
    """Those of the callee; on buffers and pointers that it takes, both kinds."""
    if not _is_pure_function(call.callee.string_value(), callee_of(call)):
        return _opaque(call)
    memory = tuple(dict.fromkeys(v for v in call.operands if isinstance(v.type, MemRefType | PtrType)))
    return Effects(memory, memory) if memory else NO_EFFECTS


def _is_pure_function(name: str, function: func.FuncOp | None) -> bool:
    """Whether a function does nothing but give results and touch the buffers that it takes, as all functions that it
    calls, none of which calls itself."""
    done = set[str]()
    around: dict[str, Iterator[func.CallOp]] = {}  # each function on the path, and the calls in it still to follow
    while name not in around:
        if name not in done:
            calls = _calls_if_pure(name, function)
            if calls is None:
                return False
            around[name] = iter(calls)
        while (call := next(around[next(reversed(around))], None)) is None:
            done.add(around.popitem()[0])
            if not around:
                return True
        name, function = call.callee.string_value(), callee_of(call)
    return False


def _calls_if_pure(name: str, function: func.FuncOp | None) -> list[func.CallOp] | None:
    """The calls that a function makes, when nothing else in it has effects but on its buffers."""
    if function is not None and PURE in function.attributes:
        return []
    if function is None or function.is_declaration:
        noted = None if function is None else function.attributes.get(INTRINSIC)
        intrinsic = intrinsics().get(noted.data if isinstance(noted, StringAttr) else name)
        return [] if intrinsic is not None and intrinsic.pure else None
    calls: list[func.CallOp] = []
    memory: list[SSAValue] = []
    for op in operations_in(function):
        if isinstance(op, func.CallOp):
            calls.append(op)
            memory += (v for v in op.operands if isinstance(v.type, MemRefType | PtrType))
        elif not _silent(type(op)):
            effects = effects_of(op)
            if effects.is_opaque or effects.reads_all:
                return None
            memory += (*effects.reads, *effects.writes)
    return calls if all(map(_is_own, memory)) else None


def _is_own(memory: SSAValue) -> bool:
    """Whether a function that touches this memory takes it, allocates it, or finds constants in it."""
    memory = underlying(memory)
    if not isinstance(memory, OpResult):
        return True
    if isinstance(memory.op, memref.GetGlobalOp):
        return _is_constant(memory.op)
    is_pointer = isinstance(memory.type, PtrType) and touches_memory(memory.op)
    return is_pointer or isinstance(memory.op, memref.AllocOp | memref.AllocaOp)


def _is_constant(get: memref.GetGlobalOp) -> bool:
    name = get.name_.string_value()
    module = next((op for op in ancestors(get) if isinstance(op, ModuleOp)), None)
    ops = () if module is None else module.body.block.ops
    found = (op for op in ops if isinstance(op, memref.GlobalOp) and op.sym_name.data == name)
    return any(op.constant is not None for op in found)


# Questions


def is_pure(op: Operation) -> bool:
    """Whether `op` computes its results from its operands and does nothing else. Not said of ops with regions."""
    return bool(op.results) and not op.regions and effects_of(op) == NO_EFFECTS


def only_computes(op: Operation) -> bool:
    """Whether `op` gives values and does nothing else but read memory: nothing is lost when it does not run. Not said
    of ops with regions."""
    if op.regions or not op.results:
        return False
    effects = effects_of(op)
    return not (effects.writes or effects.allocates or effects.synchronizes or effects.is_opaque)


def may_trap(op: Operation) -> bool:
    """Whether `op` may fail where it would not have run."""
    if isinstance(op, func.CallOp):
        return True
    return isinstance(op, DIVISIONS) and constant_integer(op.operands[1]) in (None, 0, -1)


def touches_memory(op: Operation) -> bool:
    """Whether `op` itself does more than compute results, allocate and state facts."""
    if _silent(type(op)):
        return False
    effects = effects_of(op)
    return bool(effects.reads or effects.writes or effects.reads_all or effects.synchronizes)


def is_opaque(op: Operation) -> bool:
    """Whether `op` itself may do anything."""
    return not _silent(type(op)) and effects_of(op).is_opaque


def opaque_op(root: Operation | Block) -> Operation | None:
    """The first op in `root` that may do anything."""
    return next((op for op in operations_in(root) if is_opaque(op)), None)


def opaque_text(op: Operation) -> str:
    """What a message says of an opaque op: `calls @f, which may have effects (no low.pure)`."""
    if isinstance(op, func.CallOp):
        name = op.callee.string_value()
        function = callee_of(op)
        if function is not None and not function.is_declaration:
            return f"calls @{name}, in which not all ops are known to be free of effects"
        known = intrinsics().get(name)
        reason = "no low.pure" if known is None else "registered with pure=False"
        return f"calls @{name}, which may have effects ({reason})"
    return f"runs {op_name(op)}, whose effects are not known"


def opaque_advice(op: Operation) -> str:
    """What would make an opaque op known, where it has no effects."""
    if isinstance(op, func.CallOp):
        name = op.callee.string_value()
        if name in intrinsics():
            return f"if @{name} has no effects, register_intrinsic(..., pure=True)"
        function = callee_of(op)
        if function is None or function.is_declaration:
            return f"if @{name} has no effects, declare it with low.pure"
        inner = next((inner for inner in operations_in(function) if is_opaque(inner)), None)
        return "functions whose effects are known" if inner is None or inner is op else opaque_advice(inner)
    return f"if {op_name(op)} has no effects, give it the trait Pure, or weft.register_operation(..., effects=())"


# Sets of types: `isinstance` of a class that is none of them takes a microsecond each, for they have a metaclass.
_CASTS: Final = frozenset(CASTS)
RENAMES: Final = frozenset((*VIEWS, memref.ViewOp))
"""Ops that give the memory of a buffer, their first operand, another name: views, and the elements of another type."""


def underlying(buffer: SSAValue) -> SSAValue:
    """The buffer that `buffer` is a view of; of the names that a function gives to a global, the first."""
    while type(buffer) is OpResult and type(buffer.op) in RENAMES:
        buffer = buffer.op.operands[0]
    return _names_of_global(buffer.op)[0] if _is_global(buffer) else buffer


def is_same_elements(buffer: SSAValue) -> bool:
    """Whether indices of `buffer` are indices of the buffer that it is a view of."""
    while type(buffer) is OpResult and type(buffer.op) in RENAMES:
        if type(buffer.op) not in _CASTS:
            return False
        buffer = buffer.op.operands[0]
    return True


def views_of(buffer: SSAValue) -> Iterator[SSAValue]:
    """The other names of a buffer, those of these too."""
    names = [buffer]
    if _is_global(buffer) and (of_global := _names_of_global(buffer.op))[0] is buffer:
        names = of_global
    for name in names:  # grows as views are found
        if name is not buffer:
            yield name
        names += (use.operation.results[0] for use in name.uses if type(use.operation) in RENAMES)


def _is_global(buffer: SSAValue) -> TypeGuard[OpResult[Attribute]]:
    return type(buffer) is OpResult and type(buffer.op) is memref.GetGlobalOp


def _names_of_global(get: Operation) -> list[SSAValue]:
    """The results of all ops that give a function the global which `get` gives it, in order."""
    function = get
    while isinstance(parent := function.parent_op(), Operation) and not isinstance(parent, ModuleOp):
        function = parent
    # Of a model that has hundreds of constants this is asked for each: no property of xDSL's, no generator.
    name = cast("SymbolRefAttr", get.properties["name"]).root_reference.data
    return [
        op.results[0]
        for op in operations_in(function)
        if type(op) is memref.GetGlobalOp and cast("SymbolRefAttr", op.properties["name"]).root_reference.data == name
    ]


def reachable_buffers(function: Operation) -> list[SSAValue]:
    """The buffers of a function that opaque ops in it may touch: all but temporaries that none of them takes."""
    found: dict[SSAValue, None] = {}
    for region in function.regions:
        for block in region.blocks:
            found.update((argument, None) for argument in block.args if isinstance(argument.type, MemRefType))
    for op in operations_in(function):
        for result in op.results:
            if isinstance(result.type, MemRefType) and underlying(result) is result:
                temporary = isinstance(op, memref.AllocOp | memref.AllocaOp)
                if not temporary or _escapes(result):
                    found[result] = None
    return list(found)


def _escapes(buffer: SSAValue) -> bool:
    """Whether an opaque op, or one that gives a buffer, takes a temporary."""
    for use in buffer.uses:
        op = use.operation
        if type(op) in RENAMES:
            if _escapes(op.results[0]):
                return True
        elif is_opaque(op) or any(isinstance(result.type, MemRefType) for result in op.results):
            return True
    return False
