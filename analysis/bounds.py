"""Bounds of accesses: proved for all sizes, refuted for all, holding under a condition on the sizes, or undecided. See
docs/bounds.md and docs/decisions/0095-symbolic-bounds.md.

Integer sets project the *bad* sizes, for which some instance leaves its buffer. If these contain every size of 1 and
more, the access is refuted. Products and quotients of symbols are numbers that a call computes. For products with
loop variables, interval arithmetic on polynomials gives the greatest index, if attained.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Final, NoReturn, TypeAlias

from xdsl.dialects import memref, scf
from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, MemRefType
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, Block, SSAValue

from weft.analysis.accesses import (
    Access,
    Context,
    accesses,
    dynamic_extents,
    is_iterator,
    is_loop_value,
    loop_with_variable,
    range_of,
)
from weft.analysis.block_scopes import ancestors
from weft.analysis.dependence import buffer_name
from weft.analysis.extents import ExtentNames
from weft.analysis.index import Index, Quotient, Remainder
from weft.analysis.integer_ranges import (
    Choice,
    Division,
    Product,
    dynamic_extents_of,
    is_fixed,
    is_not_negative,
    is_symbol,
    leaves,
    meaning_of,
)
from weft.analysis.questions import Counterexample, Question, point_text
from weft.analysis.sets import NotProved, index_of_aff, within_budget
from weft.dialects.effects import is_same_elements, touches_memory
from weft.dialects.graph_shapes import KnownExtent, add, choose, divide, exact_quotient, multiply, names_in
from weft.dialects.graph_shapes import is_not_negative as is_extent_not_negative
from weft.dialects.index_map import mixed_extents
from weft.dialects.integer_arith import constant_integer
from weft.dialects.low_kernel import AtomicOp
from weft.dialects.tir import ForOp
from weft.dialects.traversal import operations_in, sources_in
from weft.dialects.upstream.views import dynamic_sizes
from weft.support.errors import CompileError

if TYPE_CHECKING:
    import islpy as isl

Extents: TypeAlias = Mapping[tuple[SSAValue, int], SSAValue]
"""(buffer, dimension) -> the value of a dynamic extent."""


class Answer(Enum):
    PROVED = "proved"
    DATA = "data"
    """It depends on loaded values, or on guards that are not comparisons of indices."""
    UNKNOWN = "unknown"
    """It depends only on the sizes, and the condition has no closed form."""


@dataclass(frozen=True)
class Condition:
    """Sizes for which an access is in bounds: one of `alternatives` is negative."""

    access: Access
    dimension: int
    beyond: Index
    """Negative in every instance that stays in the buffer."""
    alternatives: tuple[KnownExtent, ...]
    is_sufficient: bool
    """Whether the access stays in the buffer then, except as loaded values decide."""

    def is_assumed(self) -> bool:
        try:
            return _instances(self.access, self.beyond).is_empty()
        except NotProved:
            return False

    @property
    def text(self) -> str:
        verb = "writes" if self.access.is_write else "reads"
        return f"{self.access.block_text()}{verb} {buffer_name(self.access.buffer)} out of bounds otherwise"


@dataclass
class _Used:
    iterators: Mapping[SSAValue, Index]
    variables: set[SSAValue] = field(default_factory=set[SSAValue])
    is_repeated: bool = False

    def add(self, variable: SSAValue) -> None:
        self.is_repeated = self.is_repeated or variable in self.variables
        self.variables.add(variable)


_MOST_PARTS: Final = 8
"""Conjunctions of bad sizes that become conditions."""
_MOST_ALTERNATIVES: Final = 8
"""Constraints of one conjunction."""


@dataclass
class Bounds:
    function: FuncOp
    extents: Extents = field(init=False)
    names: ExtentNames = field(default_factory=ExtentNames)
    _answers: dict[tuple[object, ...], Answer | Sequence[Condition]] = field(
        default_factory=dict[tuple[object, ...], "Answer | Sequence[Condition]"]
    )

    def __post_init__(self) -> None:
        self.extents = dynamic_extents_of(self.function)
        for argument in self.function.args:
            for use in argument.uses:
                if isinstance(use.operation, memref.DimOp):
                    dimension = constant_integer(use.operation.index)
                    first = None if dimension is None else self.extents.get((argument, dimension))
                    if first is not None and first is not use.operation.result:
                        self.names.know(use.operation.result, self.names.extent(first))

    def accesses(self) -> Iterator[Access]:
        """Accesses at known indices; one through a view is to the view."""
        for access in accesses(self.function):
            if access.indices is not None:
                yield access
            elif isinstance(access.op, memref.LoadOp | memref.StoreOp | AtomicOp):
                buffer = access.op.buffer if isinstance(access.op, AtomicOp) else access.op.memref
                if not is_same_elements(buffer):
                    context = Context.around(access.op)
                    indices = tuple(context.resolve(index) for index in access.op.indices)
                    yield replace(access, buffer=buffer, indices=indices)

    def extent(self, buffer: SSAValue, dimension: int) -> Index | None:
        type_ = buffer.type
        if not isinstance(type_, MemRefType):
            return None
        shape = type_.get_shape()
        if shape[dimension] != DYNAMIC_INDEX:
            return Index({}, shape[dimension])
        named = self.extents.get((buffer, dimension))
        if named is not None:
            return Index.of(named)
        sizes = dynamic_sizes(buffer.owner)
        return None if sizes is None else Index.of(mixed_extents(shape, sizes)[dimension])

    def outside(self, access: Access) -> Iterator[tuple[int, Index]]:
        """Dimensions and indices, non-negative if the access leaves the buffer or a divisor is not positive, unless
        ranges prove them negative."""
        for dimension, index in enumerate(access.indices or ()):
            for divisor in dict.fromkeys(_divisors(index.values())):
                if not self._is_positive(divisor, access):
                    yield dimension, divisor * -1
            for beyond in _beyond(index, self.extent(access.buffer, dimension)):
                yield dimension, beyond

    def _is_positive(self, divisor: Index, access: Access) -> bool:
        """Whether a range, or a loop's extent with this factor, shows that a divisor is positive."""
        low = divisor.range(range_of)[0]
        if low is not None and low > 0:
            return True
        factor = self.names.of_index(divisor)
        extents = (self.names.of_index(Index.of(loop.extent)) for loop in access.loops)
        return low == 0 and any(exact_quotient(extent, factor) is not None for extent in extents if extent != 0)

    def decide(self, access: Access, dimension: int, beyond: Index) -> Answer | Sequence[Condition]:
        """Whether `beyond` is negative in every instance. Raises `CompileError` if refuted for all sizes of 1 and
        more."""
        key = (beyond, access.loops, access.conditions, access.is_write, access.buffer)
        if key not in self._answers:
            self._answers[key] = self._decided(access, dimension, beyond)
        return self._answers[key]

    def _decided(self, access: Access, dimension: int, beyond: Index) -> Answer | Sequence[Condition]:
        try:
            if _instances(access, beyond).is_empty():
                return Answer.PROVED
        except NotProved:
            pass
        if not access.conditions.exact:
            return Answer.DATA if _is_decided_by_data(access, beyond) else Answer.UNKNOWN
        iterators = _inner_iterators(access, beyond)
        values = [v for index in (*access.expressions, beyond, *iterators.values()) for v in index.values()]
        known = (leaf for value in values for leaf in leaves(value))
        of_sizes = all(is_loop_value(leaf) or is_symbol(leaf) or leaf in iterators for leaf in known)
        undecided = Answer.DATA if not of_sizes and _is_decided_by_data(access, beyond) else Answer.UNKNOWN
        try:
            find = self._bad_sizes if of_sizes else self._bad_for_all_data
            found = find(access, dimension, beyond)
        except NotProved:
            found = None
        if found is None and of_sizes:
            found = self._by_intervals(access, beyond, iterators)
        if not found and not of_sizes:
            return undecided
        if found is None:
            return Answer.UNKNOWN
        conditions: list[Condition] = []
        not_negative = self.names.not_negative()
        for alternatives in found:
            if any(isinstance(extent, int) and extent < 0 for extent in alternatives):
                continue  # holds for all sizes
            varying = tuple(extent for extent in alternatives if not is_extent_not_negative(extent, not_negative))
            if not varying:
                return Answer.UNKNOWN
            conditions.append(Condition(access, dimension, beyond, varying, of_sizes or undecided is Answer.DATA))
        return conditions or (Answer.PROVED if of_sizes else undecided)

    def _bad_sizes(self, access: Access, dimension: int, beyond: Index) -> list[tuple[KnownExtent, ...]] | None:
        numbers = _numbers_of_calls([*access.expressions, beyond])
        question = _instances(access, beyond, opaque=numbers)
        if not question.is_exact:
            return None
        keep = [
            v
            for v in question.variables
            if isinstance(v, SSAValue) and (v in numbers or is_symbol(v)) and not is_loop_value(v)
        ]
        return self._excluded(question.projection(list(keep)), keep, numbers, access, dimension, beyond)

    def _bad_for_all_data(self, access: Access, dimension: int, beyond: Index) -> list[tuple[KnownExtent, ...]] | None:
        """Sizes for which some iteration leaves the buffer for all data, by clamped subscripts and empty buffers."""
        index, extent = (access.indices or ())[dimension], self.extent(access.buffer, dimension)
        if extent is None or extent.is_constant:
            return None
        whether_it_runs = [*access.conditions.indices, *dynamic_extents(access.loops), extent]
        if not all(is_loop_value(v) or is_symbol(v) for i in whether_it_runs for u in i.values() for v in leaves(u)):
            return None
        numbers = _numbers_of_calls([*access.expressions, extent])
        inside = _instances(access, index, extent - index - 1, opaque=numbers)
        if not inside.is_affine:
            return None
        shared = [v for v in inside.variables if isinstance(v, SSAValue) and (v in numbers or is_symbol(v))]
        keep = [v for v in shared if not is_loop_value(v)]
        every = [*keep, *(loop.induction_variable for loop in access.loops)]
        runs = _instances(access, opaque=numbers)
        for value in every:
            runs.row(Index({value: 1}), runs.naming(""))
        left = within_budget(lambda: runs.projection(list(every)).subtract(inside.projection(list(every))))
        bad = within_budget(lambda: left.project_out(_set_dims(), len(keep), len(every) - len(keep)))
        return self._excluded(bad, keep, numbers, access, dimension, beyond)

    def _excluded(
        self,
        bad: isl.Set,
        keep: Sequence[SSAValue],
        numbers: Collection[SSAValue],
        access: Access,
        dimension: int,
        beyond: Index,
    ) -> list[tuple[KnownExtent, ...]] | None:
        """Alternatives that exclude bad values of `keep`; empty if none are bad, None if too many. Raises
        `CompileError` if all sizes of 1 and more are bad."""
        known = Question(own=(), opaque=numbers)
        for value in keep:
            known.row(Index({value: 1}), known.naming(""))
        context = known.projection(list(keep))
        if within_budget(lambda: bad.intersect(context).is_empty()):
            return []
        positive = context
        for at, value in enumerate(keep):
            if is_not_negative(Index({value: 1})):
                positive = positive.lower_bound_val(_set_dims(), at, 1)
        extent = self.extent(access.buffer, dimension)
        # If loops have the extents of an array, no access to an array of extent 0 runs.
        is_refutable = extent != Index({}, 0) or not dynamic_extents(access.loops)
        if is_refutable and not within_budget(positive.is_empty) and within_budget(lambda: positive.is_subset(bad)):
            _report_refuted(access, dimension, beyond, [v for v in keep if is_not_negative(Index({v: 1}))])
        parts = within_budget(lambda: bad.gist(context).compute_divs().coalesce()).get_basic_sets()
        if len(parts) > _MOST_PARTS:
            return None
        found = [self._alternatives(part.remove_redundancies(), keep) for part in parts]
        return found if all(0 < len(alternatives) <= _MOST_ALTERNATIVES for alternatives in found) else None

    def _alternatives(self, part: isl.BasicSet, keep: Sequence[SSAValue]) -> tuple[KnownExtent, ...]:
        found: list[KnownExtent] = []
        for constraint in part.get_constraints():
            extent = self.names.of_index(index_of_aff(constraint.get_aff(), keep))
            found.append(extent)
            if constraint.is_equality():
                found.append(multiply(extent, -1))
        return tuple(sorted(found, key=lambda extent: (-len(names_in(extent)), str(extent))))

    def _by_intervals(
        self, access: Access, beyond: Index, iterators: Mapping[SSAValue, Index]
    ) -> list[tuple[KnownExtent, ...]] | None:
        """The condition that the greatest `beyond` is negative or a loop is empty; None unless provably attained."""
        if access.conditions.indices:
            return None
        used = _Used(iterators)
        ends = self._ends_of(beyond, used)
        if ends is None or used.is_repeated:
            return None
        alternatives = [ends[1]]
        for loop in access.loops:
            if not isinstance(loop.extent, int):
                extent = Index.of(loop.extent)
                if any(map(_is_of_loops, extent.values())):
                    return None
                alternatives.append(add(self.names.of_index(extent), -1))
        return [tuple(dict.fromkeys(alternatives))]

    def _ends_of(self, index: Index, used: _Used) -> tuple[KnownExtent, KnownExtent] | None:
        """The least and greatest value, attained if no loop variable is used twice."""
        low: KnownExtent = index.constant
        high: KnownExtent = index.constant
        for atom, factor in index.terms.items():
            ends = self._ends_of_atom(atom, used)
            if ends is None:
                return None
            first, last = ends if factor > 0 else ends[::-1]
            low = add(low, multiply(first, factor))
            high = add(high, multiply(last, factor))
        return low, high

    def _ends_of_atom(
        self, atom: SSAValue | Quotient | Remainder, used: _Used
    ) -> tuple[KnownExtent, KnownExtent] | None:
        if isinstance(atom, Quotient):
            ends = self._ends_of(atom.numerator, used)
            return None if ends is None else _quotients(ends, atom.divisor)
        if isinstance(atom, Remainder):
            if any(map(_is_of_loops, atom.numerator.values())):
                return None
            rest = divide("mod", self.names.of_index(atom.numerator), atom.divisor)
            return rest, rest
        if atom in used.iterators:
            return self._ends_of(used.iterators[atom], used)
        loop = loop_with_variable(atom)
        if loop is not None:
            used.add(atom)
            return self._ends_of_loop(loop)
        if not _is_of_loops(atom):
            number = self.names.extent(atom)
            return number, number
        return self._ends_of_computed(atom, used)

    def _ends_of_loop(self, loop: ForOp) -> tuple[KnownExtent, KnownExtent] | None:
        extent = Index.of(loop.extent)
        if any(map(_is_of_loops, extent.values())):
            return None
        return 0, add(self.names.of_index(extent), -1)

    def _ends_of_computed(self, value: SSAValue, used: _Used) -> tuple[KnownExtent, KnownExtent] | None:
        meaning = meaning_of(value)
        if isinstance(meaning, Division):
            if not meaning.is_quotient or any(map(_is_of_loops, meaning.divisor.values())):
                return None
            ends, divisor = self._ends_of(meaning.numerator, used), self.names.of_index(meaning.divisor)
            if not is_extent_not_negative(divisor, self.names.not_negative()):
                divisor = choose("max", divisor, 1)  # the division runs only for positive divisors
            return None if ends is None else _quotients(ends, divisor)
        if not isinstance(meaning, Product | Choice):
            return None
        varying, fixed = meaning.left, meaning.right
        if any(map(_is_of_loops, fixed.values())):
            varying, fixed = fixed, varying
        if any(map(_is_of_loops, fixed.values())):
            return None
        ends, number = self._ends_of(varying, used), self.names.of_index(fixed)
        if ends is None:
            return None
        if isinstance(meaning, Choice):
            kind = "max" if meaning.larger else "min"
            return choose(kind, ends[0], number), choose(kind, ends[1], number)
        low, high = (multiply(end, number) for end in ends)
        if is_not_negative(fixed):
            return low, high
        return choose("min", low, high), choose("max", low, high)


def _instances(access: Access, *inequalities: Index, opaque: Collection[SSAValue] = ()) -> Question:
    question = Question(own=(), opaque=opaque)
    question.add("", access)
    for index in inequalities:
        question.not_negative((index, ""))
    for iterator, binding in _inner_iterators(access, *inequalities).items():
        question.equate((Index({iterator: 1}), ""), (binding, ""))
    return question


def _inner_iterators(access: Access, *indices: Index) -> dict[SSAValue, Index]:
    found: dict[SSAValue, Index] = {}
    for value in (v for index in (*access.expressions, *indices) for v in index.values()):
        if meaning_of(value) is not None:
            found.update((leaf, Index({})) for leaf in leaves(value) if is_iterator(leaf))
    if found:
        bound = Context.around(access.op).iterators
        return {iterator: bound.get(iterator, Index({iterator: 1})) for iterator in found}
    return found


def _is_decided_by_data(access: Access, beyond: Index) -> bool:
    values = [value for index in (*access.expressions, beyond) for value in index.values()]
    values += [parent.cond for parent in ancestors(access.op) if isinstance(parent, scf.IfOp)]
    for value in sources_in(values):
        op = value.owner
        if isinstance(op, Block):
            if not isinstance(value.type, IndexType | MemRefType):
                return True
        elif any(touches_memory(inner) or isinstance(inner, CallOp) for inner in operations_in(op)):
            return True
    return any(isinstance(parent, scf.WhileOp) for parent in ancestors(access.op))


def check_bounds(bounds: Bounds, access: Access) -> None:
    """Raise `CompileError` with a counterexample for a refuted access."""
    for dimension, beyond in bounds.outside(access):
        bounds.decide(access, dimension, beyond)


def may_leave(access: Access, dimension: int, extent: Index | None) -> bool:
    """Whether an instance may be out of bounds; loaded values are unconstrained."""
    if access.indices is None or extent is None:
        return True
    try:
        return not all(_instances(access, beyond).is_empty() for beyond in _beyond(access.indices[dimension], extent))
    except NotProved:
        return True


def _beyond(index: Index, extent: Index | None) -> Iterator[Index]:
    """Indices, non-negative if `index` is out of bounds, that ranges do not refute."""
    low, high = index.range(range_of)
    if low is None or low < 0:
        yield index * -1 - 1
    if extent is None:
        return
    if not extent.is_constant:
        if not _is_last_at_most(index, extent):
            yield index - extent
    elif high is None or high >= extent.constant:
        yield index - extent


def _divisors(values: Iterable[SSAValue]) -> Iterator[Index]:
    for value in values:
        meaning = meaning_of(value)
        if isinstance(meaning, Division):
            if not meaning.divisor.is_constant:
                yield meaning.divisor
            yield from _divisors([*meaning.numerator.values(), *meaning.divisor.values()])
        elif meaning is not None:
            yield from _divisors([*meaning.left.values(), *meaning.right.values()])


def _is_last_at_most(index: Index, extent: Index) -> bool:
    loop = loop_with_variable(index.single_value)
    return loop is not None and not isinstance(loop.extent, int) and Index.of(loop.extent) == extent


def _is_of_loops(value: SSAValue) -> bool:
    return not is_fixed(value) and not all(is_symbol(leaf) for leaf in leaves(value))


def _numbers_of_calls(indices: Sequence[Index]) -> list[SSAValue]:
    """Products and quotients over symbols."""
    found: dict[SSAValue, None] = {}
    pending = [value for index in indices for value in index.values()]
    while pending:
        value = pending.pop()
        meaning = meaning_of(value)
        if meaning is None or value in found:
            continue
        if isinstance(meaning, Product | Division) and all(map(is_symbol, leaves(value))):
            divisor = meaning.divisor if isinstance(meaning, Division) else None
            if divisor is None or not divisor.is_constant:
                found[value] = None
                continue
        sides = (meaning.numerator, meaning.divisor) if isinstance(meaning, Division) else (meaning.left, meaning.right)
        pending += [inner for side in sides for inner in side.values()]
    return list(found)


def _quotients(ends: tuple[KnownExtent, KnownExtent], divisor: KnownExtent) -> tuple[KnownExtent, KnownExtent]:
    low, high = (divide("floordiv", end, divisor) for end in ends)
    return low, high


def _set_dims() -> isl.dim_type:
    import islpy as isl

    return isl.dim_type.set


def _report_refuted(access: Access, dimension: int, beyond: Index, sizes: Sequence[SSAValue]) -> None:
    question = _instances(access, beyond, *(Index({size: 1}, -1) for size in sizes))
    try:
        found = question.counterexample()
    except NotProved:
        return
    if found is not None and found.holds(otherwise=True):
        _report_outside(access, dimension, found)


def _report_outside(access: Access, dimension: int, found: Counterexample) -> NoReturn:
    verb = "writes" if access.is_write else "reads"
    when = f"in iteration {point_text(found.iteration('', access.loops))} " if access.loops else ""
    value = (access.indices or ())[dimension].evaluate(partial(found.value, ""))
    shape: MemRefType[Attribute] | Attribute = access.buffer.type
    raise CompileError.at(
        access.op,
        f"{verb} {buffer_name(access.buffer)} out of bounds: {when}index {dimension} is {value}, the buffer is {shape}",
    )
