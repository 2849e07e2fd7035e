"""tir-state-preconditions: call preconditions of accesses."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from xdsl.context import Context
from xdsl.dialects import memref
from xdsl.dialects.builtin import IndexType, LocationAttr, MemRefType, ModuleOp, StringAttr
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass

from weft.analysis.accesses import Access
from weft.analysis.block_scopes import ancestors
from weft.analysis.bounds import Answer, Bounds, Condition
from weft.analysis.dependence import buffer_name
from weft.analysis.extents import ExtentNames
from weft.analysis.index import Index, exprs_of
from weft.analysis.integer_ranges import is_not_negative, is_parameter, least_of_extent
from weft.dialects.graph_shapes import (
    Expression,
    KnownExtent,
    add,
    choose,
    is_never_negative,
    names_in,
    show_extent,
    substitute,
    subtract,
    symbol,
)
from weft.dialects.integer_arith import constant_integer
from weft.dialects.strides import dynamic_extents
from weft.dialects.tir import AssumeShapeOp, ForOp
from weft.dialects.tir_assume import AssumeOp, CheckSizeOp, Relation, assumptions_of
from weft.dialects.traversal import operations_of
from weft.passes.extent_values import ExtentValues
from weft.passes.index_builders import constant_before, erase_if_unused, index_before, insert_before, result_before
from weft.passes.tir.flat_signature import Quantity, quantity_of
from weft.passes.tir.tir_pass import tir_functions
from weft.support.errors import CompileError, remark
from weft.support.locations import source_location
from weft.support.statistics import Statistic

_STATED: Final = Statistic("tir-state-preconditions", "preconditions-stated", "conditions that calls check")


@dataclass(frozen=True)
class StatePreconditionsPass(ModulePass):
    """State the conditions on sizes under which accesses stay in their buffers (`analysis/bounds.py`); calls check
    them.

    ```mlir
    func.func @f(%A: memref<?xf32>, %B: memref<8xf32>) {
      tir.for %i in 8 {
        %a = memref.load %A[%i] : memref<?xf32>
    // becomes
    func.func @f(%A: memref<?xf32>, %B: memref<8xf32>) {
      %n = memref.dim %A, %c0 : memref<?xf32>
      tir.assume [8] <= [%n] because "reads A out of bounds otherwise"
    ```
    Callers take over assumptions of callees that are not evident, up to functions called from outside; private
    functions keep theirs without the reason, because no call checks them. One assumption is that extents of parameters
    are not negative. An access whose condition on sizes has no closed form gets a remark: like a data-dependent one, it
    is the caller's responsibility.

    Raises `CompileError` with a counterexample for a refuted access, and for a call that never meets a condition of its
    callee. If that depends on data, the call gets a remark.

    Requires: functions of block loops (tir).

    Leaves: functions whose conditions are stated before their loops.
    """

    name = "tir-state-preconditions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        state_preconditions(op, is_checked=True)  # lowering refuses what only checked builds report


def state_preconditions(module: ModuleOp, *, is_checked: bool = False) -> None:
    """Callees first. Unless `is_checked`, also raises `CompileError` for a call that requires two data-dependent
    extents to be equal."""
    functions = {function.sym_name.data: function for function in tir_functions(module)}
    if not any(map(_is_symbolic, functions.values())):
        return
    done: dict[str, bool] = {}
    called: set[FuncOp] = set()
    unlifted: set[AssumeOp] = set()
    calls = {name: operations_of(f, CallOp) for name, f in functions.items()}

    def visit(name: str) -> None:
        """Recursive calls propagate no assumptions."""
        done[name] = False
        for call in calls[name]:
            callee = call.callee.string_value()
            if callee in functions and callee not in done:
                visit(callee)
        lifted = [call for call in calls[name] if done.get(call.callee.string_value(), False)]
        function = functions[name]
        if lifted or _is_symbolic(function):
            callees = {call: functions[call.callee.string_value()] for call in lifted}
            preconditions = _Preconditions(function, is_checked)
            preconditions.state(callees)
            unlifted.update(preconditions.unlifted)
            called.update(callees.values())
            done[name] = bool(assumptions_of(function))

    for name in functions:
        if name not in done:
            visit(name)
    for function in called:
        for assumed in assumptions_of(function):
            if function.sym_visibility == _PRIVATE and assumed not in unlifted:
                assumed.reason = None


_PRIVATE: Final = StringAttr("private")


def _is_symbolic(function: FuncOp) -> bool:
    return any(isinstance(a.type, IndexType) or dynamic_extents(a.type) for a in function.args)


class _Fact(NamedTuple):
    left: KnownExtent
    relation: Relation
    right: KnownExtent
    reason: str | None
    location: LocationAttr


@dataclass
class _Preconditions:
    function: FuncOp
    is_checked: bool
    """Calls report violations at run time that are not known before."""
    anchor: Operation = field(init=False)
    """First op after those that compute extents."""
    dims: dict[Quantity, SSAValue] = field(default_factory=dict[Quantity, SSAValue])
    """Extents of parameters, computed before the anchor."""
    made: list[SSAValue] = field(default_factory=list[SSAValue])
    unlifted: list[AssumeOp] = field(default_factory=list[AssumeOp])
    """Data-dependent conditions of callees."""
    remarked: set[tuple[SSAValue, int, LocationAttr]] = field(default_factory=set[tuple[SSAValue, int, LocationAttr]])
    bounds: Bounds = field(init=False)

    def __post_init__(self) -> None:
        head = self.function.body.block.first_op
        while head is not None and head.name.startswith(_HEAD) and head.next_op is not None:
            quantity = _quantity(head.results[0]) if isinstance(head, memref.DimOp) else None
            if quantity is not None:
                self.dims.setdefault(quantity, head.results[0])
            head = head.next_op
        if head is None:
            raise CompileError.at(self.function, f"@{self.function.sym_name.data} has no terminator")
        self.anchor = head
        for argument in self.function.args:
            if isinstance(argument.type, MemRefType):
                known = self._stated_dimensions(argument)
                for dimension in dynamic_extents(argument.type):
                    if dimension not in known:
                        self._dim(Quantity(argument.index, dimension))
        self.bounds = Bounds(self.function)

    def _stated_dimensions(self, buffer: SSAValue) -> set[int]:
        known = {own.dimension for own in self.dims if self.function.args[own.parameter] is buffer}
        if any(isinstance(use.operation, AssumeShapeOp) for use in buffer.uses):
            known.update(dynamic_extents(buffer.type))
        return known

    def _dim(self, own: Quantity) -> SSAValue:
        if own not in self.dims:
            buffer = self.function.args[own.parameter]
            dim = memref.DimOp(buffer, constant_before(own.dimension, self.anchor))
            dim.result.name_hint = f"{buffer.name_hint or f'arg{own.parameter}'}_d{own.dimension}"
            self.dims[own] = result_before(dim, self.anchor)
            self.made.append(self.dims[own])
        return self.dims[own]

    def state(self, callees: Mapping[CallOp, FuncOp]) -> None:
        if self.function.sym_visibility == _PRIVATE:
            self._state_extents()
        self._state_accesses()
        for call, callee in callees.items():
            self._lift(call, callee)
        erase_if_unused(self.made)

    def _state_extents(self) -> None:
        """Extents of arrays that callers allocate are not negative."""
        for stated in [op for op in self.function.body.block.ops if isinstance(op, AssumeShapeOp)]:
            for extent in map(Index.of, stated.operands[1:]):
                found = least_of_extent(extent) if is_parameter(stated.buffer) else None
                if found is None or is_not_negative(Index({found[0]: 1}, -found[1])):
                    continue
                least, number = _split(subtract(found[1], self.bounds.names.extent(found[0])))
                reason = f"{buffer_name(stated.buffer)} has an extent below 0 otherwise"
                fact = _Fact(least, Relation.AT_MOST, number, reason, stated.location)
                self._state(fact, self.bounds.names.values)

    def _state_accesses(self) -> None:
        found: list[Condition] = []
        for access in self.bounds.accesses():
            for dimension, beyond in self.bounds.outside(access):
                answer = self.bounds.decide(access, dimension, beyond)
                if answer is Answer.UNKNOWN:
                    self._remark(access, dimension)
                if not isinstance(answer, Answer):
                    found += answer
        # Strongest first; implied ones are omitted.
        found.sort(key=lambda condition: (len(condition.alternatives), _constants(condition)))
        for at, condition in enumerate(found):
            if at and condition.is_assumed():
                continue
            if not self._state(_fact_of(condition), self.bounds.names.values):
                self._remark(condition.access, condition.dimension)
        for condition in found:
            if not condition.is_sufficient and not condition.is_assumed():
                self._remark(condition.access, condition.dimension)

    def _remark(self, access: Access, dimension: int) -> None:
        """One remark for all accesses of a buffer at one location."""
        key = (access.buffer, dimension, access.op.location)
        if key not in self.remarked:
            self.remarked.add(key)
            remark(
                access.op,
                f"index {dimension} of {buffer_name(access.buffer)} depends on sizes in a way that calls do not check: "
                "callers keep it in the array (checked=True checks it at run time)",
            )

    def _sides(self, fact: _Fact, values: Mapping[str, SSAValue], anchor: Operation) -> list[Index]:
        extents = ExtentValues(anchor, self.function)
        for name in sorted(names_in(fact.left) | names_in(fact.right)):
            value, hint = values[name], values[name].name_hint
            extents.know(symbol(name), value)
            value.name_hint = hint  # symbols keep their names
        return [extents.index(side) for side in (fact.left, fact.right)]

    def _state(self, fact: _Fact, names: Mapping[str, SSAValue]) -> bool:
        """False if a value is unknown before the loops."""
        values: dict[str, SSAValue] = {}
        for name in sorted(names_in(fact.left) | names_in(fact.right)):
            value = self._at_top(names[name])
            if value is None:
                return False
            values[name] = value
        sides = self._sides(fact, values, self.anchor)
        (left, right), operands = exprs_of(sides)
        assumed = AssumeOp(left, fact.relation, right, operands, fact.reason)
        if any(_is_same(assumed, other) for other in assumptions_of(self.function)):
            return True
        insert_before(self.anchor, [assumed])
        assumed.location = fact.location
        _STATED.add()
        return True

    def _at_top(self, value: SSAValue) -> SSAValue | None:
        if isinstance(value, BlockArgument):
            return value if value.block is self.function.body.block else None
        quantity = _quantity(value)
        return None if quantity is None or quantity.is_stride else self._dim(quantity)

    def _lift(self, call: CallOp, callee: FuncOp) -> None:
        inner = ExtentNames()
        for assumed in assumptions_of(callee):
            operands = [Index.of(value) for value in assumed.symbols]
            left, right = (inner.of_index(Index.of_expr(side, operands)) for side in (assumed.left, assumed.right))
            values = {name: self._passed(call, inner.values[name]) for name in names_in(left) | names_in(right)}
            known = {name: extent for name, extent in values.items() if extent is not None}
            sides = [substitute(side, known) for side in (left, right)]
            # Equal nodes of a model share a function; calls have their locations.
            place = call.location if _is_node(call.location) else assumed.location
            fact = _Fact(sides[0], assumed.kind, sides[1], assumed.reason and assumed.reason.data, place)
            problem = _BY_DATA
            if len(known) == len(values):
                truth = _truth(fact, self.bounds.names.not_negative(), self._around(call))
                weaker = self._unless_empty(fact, call)
                if truth is False and weaker == fact:
                    problem = "it never does"
                elif truth or self._state(weaker, self.bounds.names.values):
                    continue
            text = f"{left} {assumed.kind.value} {right}"
            if problem == _BY_DATA and assumed.kind is Relation.EQUAL and not self.is_checked:
                problem += ": calls of builds with checked=True check it"
            elif problem == _BY_DATA and assumed.reason is not None:
                if assumed.kind is Relation.EQUAL and len(known) == len(values):
                    self._check_equal(call, fact)
                else:
                    remark(call, f"call of @{callee.sym_name.data}, where {text} is the duty of the caller: {problem}")
                self.unlifted.append(assumed)
                continue
            raise CompileError.at(call, f"call of @{callee.sym_name.data}, which assumes that {text} holds: {problem}")

    def _check_equal(self, call: CallOp, fact: _Fact) -> None:
        if isinstance(call.prev_op, CheckSizeOp):
            return  # from an earlier run of the pass
        left, right = (index_before(side, call) for side in self._sides(fact, self.bounds.names.values, call))
        for side, size, most in ((fact.left, left, right), (fact.right, right, left)):
            check = CheckSizeOp(show_extent(side), size, most)
            check.location = call.location
            insert_before(call, [check])

    def _around(self, call: CallOp) -> list[KnownExtent]:
        loops = (op for op in ancestors(call) if isinstance(op, ForOp) and not isinstance(op.extent, int))
        return [self.bounds.names.of_index(Index.of(loop.extent)) for loop in loops]

    def _unless_empty(self, fact: _Fact, call: CallOp) -> _Fact:
        loops = [op for op in ancestors(call) if isinstance(op, ForOp) and not isinstance(op.extent, int)]
        if not loops or fact.relation is Relation.EQUAL:
            return fact
        smallest = subtract(fact.left, fact.right)
        if fact.relation is Relation.AT_MOST:
            smallest = add(smallest, -1)
        for loop in loops:
            extent = self.bounds.names.of_index(Index.of(loop.extent))
            smallest = choose("min", smallest, add(extent, -1))
        return fact._replace(left=smallest, relation=Relation.LESS, right=0)

    def _passed(self, call: CallOp, value: SSAValue) -> KnownExtent | None:
        quantity = _quantity(value)
        if quantity is None:
            if not isinstance(value, BlockArgument):
                return None
            return self.bounds.names.of_index(Index.of(call.arguments[value.index]))
        if quantity.is_stride:
            return None
        extent = self._extent(call.arguments[quantity.parameter], quantity.dimension)
        return None if extent is None else self.bounds.names.of_index(extent)

    def _extent(self, buffer: SSAValue, dimension: int) -> Index | None:
        found = self.bounds.extent(buffer, dimension)
        while found is None and isinstance(buffer.owner, memref.CastOp):
            buffer = buffer.owner.source
            found = self.bounds.extent(buffer, dimension)
        return found


_BY_DATA: Final = "whether it does is only known at run time"


def _is_node(location: LocationAttr) -> bool:
    place = source_location(location)
    return place is not None and not place.line


def _quantity(value: SSAValue) -> Quantity | None:
    if isinstance(value.owner, memref.DimOp) and constant_integer(value.owner.index) is None:
        return None
    return quantity_of(value)


_HEAD: Final = ("arith.", "affine.apply", "memref.dim", "low.stride", "tir.assume")
"""Ops that compute extents, and facts about them."""


def _fact_of(condition: Condition) -> _Fact:
    """The only alternative, or the smallest of them, is negative."""
    location = condition.access.op.location
    if len(condition.alternatives) == 1:
        at_most, at_least = _split(add(condition.alternatives[0], 1))
        return _Fact(at_most, Relation.AT_MOST, at_least, condition.text, location)
    smallest, *others = condition.alternatives
    for other in others:
        smallest = choose("min", smallest, other)
    return _Fact(smallest, Relation.LESS, 0, condition.text, location)


def _constants(condition: Condition) -> int:
    """Smaller for stricter conditions."""
    terms = (term for e in condition.alternatives for term in (() if isinstance(e, int) else e.terms))
    return -sum(factor for monomial, factor in terms if not monomial)


def _split(extent: KnownExtent) -> tuple[KnownExtent, KnownExtent]:
    if isinstance(extent, int):
        return max(extent, 0), max(-extent, 0)
    positive: KnownExtent = 0
    for monomial, factor in extent.terms:
        if factor > 0:
            positive = add(positive, Expression(((monomial, factor),)) if monomial else factor)
    return positive, subtract(positive, extent)


def _truth(fact: _Fact, not_negative: Collection[str], positive: Sequence[KnownExtent]) -> bool | None:
    """Whether a fact holds for all sizes with extents in `positive`, or for none; None if undecided."""
    difference = subtract(fact.right, fact.left)
    if fact.relation is Relation.EQUAL:
        return difference == 0 if isinstance(difference, int) else None
    if fact.relation is Relation.LESS:
        difference = add(difference, -1)
    if isinstance(difference, int):
        return difference >= 0
    least = (difference, *(subtract(difference, add(extent, -1)) for extent in positive))
    return True if any(is_never_negative(side, not_negative) for side in least) else None


def _is_same(one: AssumeOp, other: AssumeOp) -> bool:
    return one.sides == other.sides and one.relation == other.relation and tuple(one.symbols) == tuple(other.symbols)
