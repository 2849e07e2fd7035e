"""Side effects of operations (docs/decisions/0032-effects.md).

A call affects only its operands if the callee is `low.pure`, a pure intrinsic, or has a body without other effects. An
op with unknown effects is *opaque*: it may access all reachable memory and the outside world. The number and order of
its executions are preserved, one thread or lane at a time.
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
"""Unit attribute of a declared function: it computes its result from its arguments, and accesses only memory of
pointers among them (`low.access_ptr`)."""
INTRINSIC = "low.intrinsic"
"""The intrinsic from which such a function was lowered."""

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
"""Resource of effects on other threads of a kernel, such as a barrier's."""
STATEMENTS: Final = _NamedResource("statements")
"""Preserves ops without results that state a fact or give a hint."""


class Synchronizes(MemoryEffect):
    """Waits for, or exchanges values with, other threads: neither erased nor moved."""

    @classmethod
    def get_effects(cls, op: Operation) -> frozenset[EffectInstance]:
        return _SYNCHRONIZES


class StatesFact(MemoryEffect):
    """States a fact or a hint for passes."""

    @classmethod
    def get_effects(cls, op: Operation) -> frozenset[EffectInstance]:
        return _STATES


_SYNCHRONIZES: Final = frozenset((EffectInstance(READ, None, THREADS), EffectInstance(WRITE, None, THREADS)))
_STATES: Final = frozenset((EffectInstance(WRITE, None, STATEMENTS),))


class PointerEffects(MemoryEffect):
    @classmethod
    def get_effects(cls, op: Operation) -> frozenset[EffectInstance]:
        pointers = [operand for operand in op.operands if isinstance(operand.type, PtrType)]
        return frozenset(EffectInstance(kind, pointer) for kind in (READ, WRITE) for pointer in pointers)


@dataclass(frozen=True)
class Effects:
    """Effects of an op without its regions."""

    reads: tuple[SSAValue, ...] = ()
    """Operands that it reads."""
    writes: tuple[SSAValue, ...] = ()
    """Operands that it writes."""
    allocates: bool = False
    reads_all: bool = False
    """It may read any reachable memory, or something outside of the program."""
    synchronizes: bool = False
    """It affects other threads of a kernel."""
    is_opaque: bool = False
    """It may have any effect."""


NO_EFFECTS: Final = Effects()

_RECURSIVE: Final = frozenset((scf.ExecuteRegionOp, memref.AllocaScopeOp, affine.ForOp, affine.ParallelOp, func.FuncOp))
"""Upstream ops without the trait that have the effects of their regions."""
_UPSTREAM: Final[Mapping[type[Operation], Kinds]] = {
    **dict.fromkeys(_RECURSIVE, _NONE),
    **dict.fromkeys((arith.RemUIOp, arith.ExtSIOp, affine.MinOp, tensor.YieldOp, func.ReturnOp), _NONE),
    **dict.fromkeys((memref.AllocaScopeReturnOp, vector.BitcastOp, vector.CreateMaskOp, vector.ReductionOp), _NONE),
    **dict.fromkeys((vector.LoadOp, vector.MaskedLoadOp, vector.TransferReadOp), frozenset((READ,))),
    **dict.fromkeys((vector.StoreOp, vector.MaskedStoreOp, vector.TransferWriteOp), frozenset((WRITE,))),
    **dict.fromkeys((affine.LoadOp, affine.VectorLoadOp), frozenset((READ,))),
    **dict.fromkeys((affine.StoreOp, affine.VectorStoreOp), frozenset((WRITE,))),
}
"""Effects of upstream ops without traits on the buffers among the operands."""
_stated: dict[str, Kinds] = {}
"""The stated effects of other dialects, by op name."""


def state_effects(name: str, kinds: Iterable[MemoryEffectKind] | None) -> None:
    """State effects on memref operands, for ops without traits. Empty: none. None: any."""
    _stated.pop(name, None)
    if kinds is not None:
        _stated[name] = frozenset(kinds)
    _silent.cache_clear()


def op_name(op: Operation) -> str:
    """Supports unregistered ops."""
    return op.op_name.data if isinstance(op, UnregisteredOp) else op.name


def effects_of(op: Operation) -> Effects:
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
    """Effects on buffers among the operands, or any memory without one."""
    if not kinds:
        return NO_EFFECTS
    buffers = _buffers(op)
    reads, writes = READ in kinds, WRITE in kinds or FREE in kinds
    if not buffers:
        return _opaque(op) if writes else Effects(allocates=ALLOC in kinds, reads_all=reads)
    return Effects(buffers if reads else (), buffers if writes else (), ALLOC in kinds)


@cache
def _silent(op_class: type[Operation]) -> bool:
    if op_class is UnregisteredOp or issubclass(op_class, UnregisteredOp):
        return False
    traits = [trait for trait in op_class.traits.traits if isinstance(trait, MemoryEffect)]
    if not traits:
        return not _UPSTREAM.get(op_class, _stated.get(op_class.name, frozenset((WRITE,))))
    return all(isinstance(trait, NoMemoryEffect | RecursiveMemoryEffect | StatesFact) for trait in traits)


class RegionEffects(RecursiveMemoryEffect):
    """Effects are unknown if ops of the regions have any."""

    @classmethod
    def get_effects(cls, op: Operation) -> frozenset[EffectInstance] | None:
        inside = (inner for inner in operations_in(op) if inner is not op)
        return frozenset() if all(effects_of(inner) == NO_EFFECTS for inner in inside) else None


def callee_of(call: func.CallOp) -> func.FuncOp | None:
    """Returns None if the module lacks it."""
    return function_around(call, call.callee.string_value())


def declared_callees(root: Operation, home: func.FuncOp) -> list[func.FuncOp]:
    """Functions that `root` calls, with their effects in `home`'s module, for copies of `home` elsewhere."""
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
    return _is_pure_function(function.sym_name.data, function)


def _effects_of_call(call: func.CallOp) -> Effects:
    """Reads and writes of operands; None for callees with other effects."""
    if not _is_pure_function(call.callee.string_value(), callee_of(call)):
        return _opaque(call)
    memory = tuple(dict.fromkeys(v for v in call.operands if isinstance(v.type, MemRefType | PtrType)))
    return Effects(memory, memory) if memory else NO_EFFECTS


def _is_pure_function(name: str, function: func.FuncOp | None) -> bool:
    """Whether it and all callees affect only their buffers, without recursion."""
    done = set[str]()
    around: dict[str, Iterator[func.CallOp]] = {}  # functions on the path, and their calls still to visit
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
    """The calls, or None if other ops affect more than the function's buffers."""
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
    """A parameter, an allocation, or constant."""
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


def is_pure(op: Operation) -> bool:
    """Whether `op` only computes results from operands; False with regions."""
    return bool(op.results) and not op.regions and effects_of(op) == NO_EFFECTS


def only_computes(op: Operation) -> bool:
    """Whether `op` only computes and reads, hence is erasable if unused; False with regions."""
    if op.regions or not op.results:
        return False
    effects = effects_of(op)
    return not (effects.writes or effects.allocates or effects.synchronizes or effects.is_opaque)


def may_trap(op: Operation) -> bool:
    """Whether speculative execution may fail."""
    if isinstance(op, func.CallOp):
        return True
    return isinstance(op, DIVISIONS) and constant_integer(op.operands[1]) in (None, 0, -1)


def touches_memory(op: Operation) -> bool:
    """Whether `op` itself has effects other than allocations and facts."""
    if _silent(type(op)):
        return False
    effects = effects_of(op)
    return bool(effects.reads or effects.writes or effects.reads_all or effects.synchronizes)


def is_opaque(op: Operation) -> bool:
    return not _silent(type(op)) and effects_of(op).is_opaque


def opaque_op(root: Operation | Block) -> Operation | None:
    return next((op for op in operations_in(root) if is_opaque(op)), None)


def opaque_text(op: Operation) -> str:
    """Message text: `calls @f, which may have effects (no low.pure)`."""
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


# Sets, because a failing `isinstance` takes a microsecond for each class with a metaclass.
_CASTS: Final = frozenset(CASTS)
RENAMES: Final = frozenset((*VIEWS, memref.ViewOp))
"""Views, also of another element type."""


def underlying(buffer: SSAValue) -> SSAValue:
    """The buffer of a view; for a global, its first `memref.get_global`."""
    while type(buffer) is OpResult and type(buffer.op) in RENAMES:
        buffer = buffer.op.operands[0]
    return _names_of_global(buffer.op)[0] if _is_global(buffer) else buffer


def is_same_elements(buffer: SSAValue) -> bool:
    """Whether `buffer` has the indices of its `underlying` one."""
    while type(buffer) is OpResult and type(buffer.op) in RENAMES:
        if type(buffer.op) not in _CASTS:
            return False
        buffer = buffer.op.operands[0]
    return True


def views_of(buffer: SSAValue) -> Iterator[SSAValue]:
    """All views, transitively."""
    names = [buffer]
    if _is_global(buffer) and (of_global := _names_of_global(buffer.op))[0] is buffer:
        names = of_global
    for name in names:  # grows
        if name is not buffer:
            yield name
        names += (use.operation.results[0] for use in name.uses if type(use.operation) in RENAMES)


def _is_global(buffer: SSAValue) -> TypeGuard[OpResult[Attribute]]:
    return type(buffer) is OpResult and type(buffer.op) is memref.GetGlobalOp


def _names_of_global(get: Operation) -> list[SSAValue]:
    """Results of the function's ops for a global, in order."""
    function = get
    while isinstance(parent := function.parent_op(), Operation) and not isinstance(parent, ModuleOp):
        function = parent
    # Avoids xDSL's slow properties and generators, since models have hundreds of constants.
    name = cast("SymbolRefAttr", get.properties["name"]).root_reference.data
    return [
        op.results[0]
        for op in operations_in(function)
        if type(op) is memref.GetGlobalOp and cast("SymbolRefAttr", op.properties["name"]).root_reference.data == name
    ]


def reachable_buffers(function: Operation) -> list[SSAValue]:
    """Buffers that opaque ops may access: all except temporaries that do not escape."""
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
    """Whether a temporary is an operand of an opaque op, or one that returns a buffer."""
    for use in buffer.uses:
        op = use.operation
        if type(op) in RENAMES:
            if _escapes(op.results[0]):
                return True
        elif is_opaque(op) or any(isinstance(result.type, MemRefType) for result in op.results):
            return True
    return False
