"""Comparison of modules: their functions run on the same random arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import zip_longest
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import BFloat16Type, IndexType, TensorType
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.dialects.utils.fast_math import FastMathFlag

from weft.dialects.element_types import TYPES
from weft.dialects.integer_arith import DIVISIONS, SHIFTS
from weft.dialects.low_kernel import KERNEL
from weft.dialects.promises import Promise, promises_of
from weft.dialects.te import ReduceOp
from weft.dialects.te_extern import ExternOp
from weft.dialects.tir import BlockOp, ForOp
from weft.dialects.tir_kinds import REASSOCIATE, IterKind
from weft.dialects.upstream.bufferization import is_writable
from weft.interp.arguments import EXTENTS, ConcreteShapes, argument_recipe
from weft.interp.control import FREE_KINDS
from weft.interp.edge_values import (
    EXTENTS_OF_EDGES,
    KINDS,
    SIGN_OF_ZERO,
    TINY,
    FastMath,
    Planting,
    liberties,
    plantings,
    restricted,
)
from weft.interp.errors import InterpreterError
from weft.interp.interpreter import Interpreter
from weft.interp.registry import IntrinsicEvent, recorded_calls
from weft.interp.values import MAX_ELEMENTS, Array, widen
from weft.support.call_arguments import numpy_dtype
from weft.support.call_signature import ArraySpec, ScalarSpec
from weft.support.errors import CompileError, InternalError
from weft.support.narrow_floats import SMALL_FLOATS, small_float

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Attribute, Operation

    from weft.interp.arguments import ArgumentRecipe
    from weft.support.call_signature import Signature


MAX_WORK = 30_000_000
"""The maximum number of scalar operations of a compared call: a few seconds."""
ORDERS = ("forward", "reversed", "interleaved")
"""Orders of parallel iterations under which the second module must compute the same."""


@dataclass(frozen=True)
class Mismatch:
    """The first difference: an element of an output, or an error that only the second module raises."""

    function: str
    output: str
    """The parameter or `result N`; empty if the second program failed."""
    index: tuple[int, ...]
    before: object
    after: object
    count: int
    """The number of different elements."""
    shapes: str
    """The arguments."""
    order: str
    """The order of parallel iterations."""
    error: CompileError | None = None

    def __str__(self) -> str:
        how = "" if self.order == "forward" else f", parallel iterations {self.order}"
        where = f"@{self.function} ({self.shapes}{how})"
        if self.error is not None:
            return f"{where}: {self.error}"
        place = f"{self.output}[{', '.join(map(str, self.index))}]" if self.index else self.output
        more = f" ({self.count} elements differ)" if self.count > 1 else ""
        return f"{where}: {place} was {self.before}, is {self.after}{more}"


@dataclass(frozen=True)
class Skipped:
    reasons: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return "; ".join(f"@{name} was not compared: {reason}" for name, reason in self.reasons)


InterpreterOf: TypeAlias = Callable[[str], Interpreter]
"""The interpreter of a module for an order of parallel iterations."""


@dataclass(frozen=True)
class ComparedOutput:
    """bf16 values are widened to float32."""

    name: str
    value: Any
    is_bfloat16: bool


@dataclass(frozen=True)
class RunOutcome:
    """All parameters, results, and calls of intrinsics with possible effects."""

    outputs: list[ComparedOutput]
    calls: list[IntrinsicEvent]


Kind: TypeAlias = tuple[str, tuple[int | None, ...]]
"""Element type and static shape of a parameter; lowering preserves both."""


def outputs_equal(before: Any, after: Any, *, reduction_length: int = 256) -> bool:
    """Floats are equal up to `tolerance`; NaN equals NaN. Shapes and dtypes must agree. bf16 bit patterns must be
    widened first."""
    first, second = np.asarray(before), np.asarray(after)
    if first.shape != second.shape or first.dtype != second.dtype:
        return False
    return bool((first == second).all()) or not _differences(first, second, reduction_length).any()


def tolerance(epsilon: float, reduction_length: int, magnitude: float) -> float:
    """The rounding difference of an array of greatest magnitude `magnitude`; `epsilon` is the distance from 1 to the
    next number. Errors of n terms summed in another order grow as the square root of n."""
    return epsilon * (4.0 + 2.0 * reduction_length**0.5) * max(magnitude, 1.0)


_BRAIN_EPSILON = 2.0**-7


def _differences(
    before: Array, after: Array, reduction_length: int, epsilon: float | None = None, edges: _Edges | None = None
) -> Array:
    """A mask; `epsilon` is that of the type, if the dtype is more precise."""
    name = before.dtype.name
    if before.dtype.kind != "f" and name != "bfloat16" and name not in SMALL_FLOATS:
        return np.asarray(before != after)
    first, second = before.astype(np.float64), after.astype(np.float64)
    most = float(np.abs(first[np.isfinite(first)]).max(initial=0.0))
    if name in SMALL_FLOATS:  # computed in float32: may be rounded to an adjacent number
        allowed = most * 2.0 ** -small_float(name).SEMANTICS.mantissa_bits
    else:
        own = _BRAIN_EPSILON if name == "bfloat16" else float(np.finfo(before.dtype).eps)
        allowed = tolerance(own if epsilon is None else epsilon, reduction_length, most)
        if edges is not None and edges.is_tiny and most < 1.0:  # relative, plus four units in the last place
            is_brain = epsilon is not None or name == "bfloat16"
            unit = 2.0**-133 if is_brain else float(np.finfo(before.dtype).smallest_subnormal)
            allowed = allowed * most + 4.0 * unit
    with np.errstate(invalid="ignore"):
        close = np.abs(first - second) <= allowed
    equal = close | (first == second) | (np.isnan(first) & np.isnan(second))
    if edges is not None and edges.has_signs:
        equal &= (np.signbit(first) == np.signbit(second)) | (first != 0.0) | (second != 0.0)
    if edges is not None and not edges.has_all:
        equal |= ~np.isfinite(first)
    return ~equal


@dataclass(frozen=True)
class _Edges:
    has_signs: bool
    """Zeros of different signs differ."""
    has_all: bool
    """Elements with an infinite or NaN reference are compared."""
    is_tiny: bool
    """Arguments are subnormal: results need a relative tolerance."""


class Reference:
    """The results of a module's functions, for comparison with other modules. The module is not kept.

    A private function is compared through its callers, if these can be, because passes may change its interface.
    `tries` sets of arguments have different dynamic extents. With `edges`, functions also run on edge values
    (`edge_values.KINDS`) and extents of 0 and 1, if the module defines the result.
    """

    def __init__(
        self, module: ModuleOp, *, seed: int = 0, tries: int = 3, max_work: int = MAX_WORK, edges: bool = False
    ) -> None:
        self.cases: list[_Case] = []
        self.edge_cases: list[_Case] = []
        self.skipped: dict[str, str] = {}
        self._allowed = allowed_liberties(module) if edges else Liberties(frozenset(), False)
        self._max_work = max_work
        takes_edges = edges and takes_edge_values(module)
        interpreter_of = cache(partial(_interpreter, module, max_work))
        functions = {function.sym_name.data: function for function in _functions(module)}
        reached: set[str] = set()
        for function in sorted(functions.values(), key=_is_private):
            name = function.sym_name.data
            if name in reached:
                continue
            self._record(interpreter_of, function, seed, tries, max_work)
            if name in self.skipped:
                continue
            reached |= _private_functions_called_by(function, functions)
            if takes_edges:
                self._record_edges(interpreter_of("forward"), function, seed)

    def _record(self, interpreter_of: InterpreterOf, function: FuncOp, seed: int, tries: int, max_work: int) -> None:
        name = function.sym_name.data
        interpreter = interpreter_of("forward")
        if len(function.body.blocks) != 1:
            self.skipped[name] = f"the interpreter runs functions of one block, it has {len(function.body.blocks)}"
            return
        try:
            signature = interpreter.signature(name)
            functions = {f.sym_name.data: f for f in interpreter.module.body.block.ops if isinstance(f, FuncOp)}
            for number in range(tries if signature.symbols else min(tries, 1)):
                extents = EXTENTS[number % len(EXTENTS)]
                shapes = ConcreteShapes(function, extents)
                work = shapes.work(functions.get).operations
                largest = max((prod(shape) for shape in shapes.shapes if shape), default=0)
                if max_work < largest <= MAX_ELEMENTS:
                    self.skipped[name] = f"an argument has {largest:,} elements, the limit is {max_work:,}"
                    return
                if work > max_work:
                    self.skipped[name] = f"a call executes about {work:,} operations, the limit is {max_work:,}"
                    return
                arguments = argument_recipe(function, extents).draw(seed + number)
                try:
                    outcome = _outcome(interpreter, signature, arguments)
                except CompileError as error:
                    self.skipped[name] = f"it fails before the change: {error.message}"
                    return
                length = reduction_length_of(function, extents)
                case = _Case(name, _kinds(signature), arguments, outcome, length, overwritten=_overwritten(function))
                if _has_free_loops(interpreter.module):
                    racing = [o for o in ORDERS if isinstance(_run_case(interpreter_of, function, case, o), Mismatch)]
                    case = replace(case, racing=tuple(racing))
                self.cases.append(case)
        except CompileError as error:
            self.skipped[name] = error.message

    def _record_edges(self, interpreter: Interpreter, function: FuncOp, seed: int) -> None:
        """Undefined runs are omitted."""
        signature = interpreter.signature(function.sym_name.data)
        called = {f.sym_name.data: f for f in interpreter.module.body.block.ops if isinstance(f, FuncOp)}
        runs = self._runs_of_edges(function, called)
        made: dict[Planting | None, _Case] = {}
        casts = any(isinstance(op, arith.IndexCastOp) for op in interpreter.module.walk())

        def recipe_for(extents: Sequence[int]) -> ArgumentRecipe:
            recipe = argument_recipe(function, extents)
            return replace(recipe, indices=recipe.indices or casts)

        def has_meaning(extents: Sequence[int], planting: Planting | None) -> bool:
            try:
                arguments = recipe_for(extents).draw(seed + 1, planting)
                outcome = _outcome(interpreter, signature, arguments)
                length = reduction_length_of(function, extents)
            except (CompileError, InternalError, MemoryError):  # references of operators fail in many ways
                return False
            kinds, overwritten = _kinds(signature), _overwritten(function)
            made[planting] = _Case(
                signature.name, kinds, arguments, outcome, length, edges=planting, overwritten=overwritten
            )
            return True

        recipe = recipe_for(EXTENTS[0])
        planned = [planting for kind in KINDS for planting in plantings(recipe.parameters, recipe.indices, kind)]
        for planting in planned[:runs]:
            valid = restricted(planting, partial(has_meaning, EXTENTS[0]))
            if valid is not None:
                self.edge_cases.append(made[valid])
        for extents in EXTENTS_OF_EDGES if signature.symbols and runs > len(planned) else ():
            if self._is_cheap(function, called, extents) and has_meaning(extents, None):
                self.edge_cases.append(made[None])

    def compare(
        self,
        module: ModuleOp,
        *,
        orders: Sequence[str] = ORDERS,
        fast_math: FastMath = frozenset(),
        advance: bool = False,
        epsilon: float = 0.0,
    ) -> Mismatch | Skipped | None:
        """The first difference; else the functions not compared; None if all are equal.

        Edge values whose results depend on `fast_math`, flags that only `module` uses, are not compared; with
        `advance`, new results become the reference. `epsilon` is that of a format to which `module` rounds operands:
        results may differ by that much and become the reference, and edge values are not compared.
        """
        functions = {function.sym_name.data: function for function in _functions(module)}
        skipped = dict(self.skipped)
        interpreter_of = cache(partial(_interpreter, module, self._max_work))
        for order in orders:
            for case in self.cases:
                function = functions.get(case.name)
                if function is None:
                    skipped[case.name] = "the function is gone"
                    continue
                if order != "forward" and not _has_free_loops(module):
                    continue
                if order in case.racing:
                    skipped[case.name] = f"before the change, its parallel iterations race when they run {order}"
                    continue
                found = _run_case(interpreter_of, function, case, order, epsilon)
                if isinstance(found, Mismatch):
                    return found
                if found is not None:
                    skipped[case.name] = found
        if epsilon:
            self._rebase(interpreter_of("forward"), functions)
        elif self.edge_cases:
            found = self._compare_edges(interpreter_of("forward"), functions, fast_math, advance)
            if found is not None:
                return found
        return Skipped(tuple(skipped.items())) if skipped else None

    def _rebase(self, interpreter: Interpreter, functions: Mapping[str, FuncOp]) -> None:

        def rebased(cases: Sequence[_Case]) -> list[_Case]:
            kept: list[_Case] = []
            for case in cases:
                function = functions.get(case.name)
                outcome = None if function is None else _outcome_of_case(interpreter, function, case, "forward")
                if isinstance(outcome, RunOutcome):
                    kept.append(case.advanced(outcome))
            return kept

        self.cases, self.edge_cases = rebased(self.cases), rebased(self.edge_cases)

    def _compare_edges(
        self, interpreter: Interpreter, functions: Mapping[str, FuncOp], fast_math: FastMath, advance: bool
    ) -> Mismatch | None:
        taken = fast_math | self._allowed.always
        if not self._allowed.reassociates:
            taken -= {FastMathFlag.REASSOC}
        called = {f.sym_name.data: f for f in interpreter.module.body.block.ops if isinstance(f, FuncOp)}
        runs = {name: self._runs_of_edges(function, called) for name, function in functions.items()}
        kept: list[_Case] = []
        for case in self.edge_cases:
            if runs.get(case.name, 0) < 1:
                kept.extend([] if taken else [case])
                continue
            runs[case.name] -= 1
            is_compared = case.edges is None or case.edges.kind.is_compared(taken)
            outcome = _outcome_of_case(interpreter, functions[case.name], case, "forward")
            if isinstance(outcome, Mismatch) and _is_undefined(outcome.error):
                continue
            if is_compared:
                found = outcome if isinstance(outcome, Mismatch) else None
                if isinstance(outcome, RunOutcome):
                    found = _difference(case, outcome, "forward", taken)
                if found is not None:
                    return found
            if taken and isinstance(outcome, RunOutcome):
                kept.append(case.advanced(outcome))
            elif not taken:
                kept.append(case)
        if advance:
            self.edge_cases = kept
            self._allowed = allowed_liberties(interpreter.module)
        return None

    def _is_cheap(self, function: FuncOp, called: Mapping[str, FuncOp], extents: Sequence[int]) -> bool:
        try:
            shapes = ConcreteShapes(function, extents)
            return max(shapes.work(called.get).operations, 0, *(prod(s) for s in shapes.shapes if s)) <= _CHEAP
        except CompileError:
            return False

    def _runs_of_edges(self, function: FuncOp, called: Mapping[str, FuncOp]) -> int:
        """The number of runs, at least 1, for a fraction of the work of ordinary runs."""
        try:
            shapes = ConcreteShapes(function, EXTENTS[0])
            work = shapes.work(called.get).operations + sum(prod(shape) for shape in shapes.shapes if shape)
        except CompileError:
            return 1
        return max(self._max_work // (_EDGE_SHARE * max(work, 1)), 1)


_CHEAP = 200_000
"""Operations of a call that runs on all edge extents."""
_EDGE_SHARE = 4
"""Runs on edge values take at most 1 / `_EDGE_SHARE` of the operations of ordinary runs."""


def _is_undefined(error: CompileError | None) -> bool:
    """Operators on tensors, and compiled code, define this integer arithmetic for all operands."""
    return isinstance(error, InterpreterError) and isinstance(error.operation, (*DIVISIONS, *SHIFTS))


@dataclass(frozen=True)
class _Case:
    name: str
    kinds: list[Kind]
    arguments: list[Any]
    outcome: RunOutcome
    reduction_length: int
    racing: tuple[str, ...] = ()
    """Orders of parallel iterations that change the reference's results."""
    edges: Planting | None = None
    overwritten: frozenset[int] = frozenset()
    """Positions of parameters with unspecified contents after a call."""

    def comparison(self, fast_math: FastMath) -> _Edges | None:
        if self.edges is None:
            return None
        return _Edges(not SIGN_OF_ZERO & fast_math, FastMathFlag.REASSOC not in fast_math, self.edges.kind is TINY)

    def advanced(self, outcome: RunOutcome) -> _Case:
        outputs = [replace(new, name=old.name) for old, new in zip(self.outcome.outputs, outcome.outputs, strict=True)]
        return replace(self, outcome=RunOutcome(outputs, outcome.calls))


@dataclass(frozen=True)
class Liberties:
    always: FastMath
    """Flags of its operations and loops; every pass may use them."""
    reassociates: bool
    """It has reductions that may be reordered."""


def allowed_liberties(module: ModuleOp) -> Liberties:
    always: set[FastMathFlag] = set()
    reduces = False
    for op in module.walk():
        always |= liberties(op)
        if isinstance(op, ForOp) and REASSOCIATE in op.attributes:
            always.add(FastMathFlag.REASSOC)
        reduces = reduces or _may_reduce(op)
    promised = any(Promise.REASSOC in promises_of(function) for function in _functions(module))
    return Liberties(frozenset(always), FastMathFlag.REASSOC in always or (reduces and promised))


def _may_reduce(op: Operation) -> bool:
    if isinstance(op, BlockOp):
        return IterKind.REDUCE in op.kinds
    if isinstance(op, ReduceOp | ExternOp) or op.name in ("vector.reduction", "vector.contract"):
        return True
    if isinstance(op, memref.StoreOp):
        return any(isinstance(use.operation, memref.LoadOp) for use in op.memref.uses)
    return op.dialect_name() in _OF_TENSORS or bool(op.results and op.regions)


_OF_TENSORS = frozenset({"chlo", "graph", "linalg", "stablehlo"})


def takes_edge_values(module: ModuleOp) -> bool:
    """Whether array elements may be any number: not loop bounds (2^31 iterations are too many), nor elements that
    must be sorted."""
    indices = converts = False
    for op in module.walk():
        if isinstance(op, scf.WhileOp) or op.name in _OF_CHOSEN_VALUES:
            return False
        if isinstance(op, scf.ForOp) and not isinstance(op.lb.type, IndexType):
            return False
        indices = indices or (isinstance(op, arith.IndexCastOp) and isinstance(op.result.type, IndexType))
        converts = converts or isinstance(op, arith.FPToSIOp | arith.FPToUIOp)
    return not (indices and converts)


_OF_CHOSEN_VALUES = frozenset({"graph.loop", "graph.while", "graph.roi_align", "graph.searchsorted", "stablehlo.while"})


def compare_modules(
    before: ModuleOp,
    after: ModuleOp,
    *,
    seed: int = 0,
    tries: int = 3,
    max_work: int = MAX_WORK,
    orders: Sequence[str] = ORDERS,
) -> Mismatch | Skipped | None:
    """The first difference of the common functions on the same arguments; else `Skipped` if some function of
    `before` was not compared (more work than `max_work`, an op without semantics, ...); None if all are equal. In
    `after`, functions over tensors may take results as trailing buffers."""
    return Reference(before, seed=seed, tries=tries, max_work=max_work).compare(after, orders=orders)


def _functions(module: ModuleOp) -> list[FuncOp]:
    functions = (op for op in module.body.block.ops if isinstance(op, FuncOp))
    return [f for f in functions if not f.is_declaration and KERNEL not in f.attributes]


def _is_private(function: FuncOp) -> bool:
    return function.sym_visibility is not None and function.sym_visibility.data == "private"


def _private_functions_called_by(function: FuncOp, functions: Mapping[str, FuncOp]) -> set[str]:
    found: set[str] = set()
    pending = [function]
    while pending:
        for op in pending.pop().walk():
            callee = functions.get(op.callee.string_value()) if isinstance(op, CallOp) else None
            if callee is not None and _is_private(callee) and callee.sym_name.data not in found:
                found.add(callee.sym_name.data)
                pending.append(callee)
    return found


def _overwritten(function: FuncOp) -> frozenset[int]:
    return frozenset(at for at in range(len(function.args)) if is_writable(function, at))


def _kinds(signature: Signature) -> list[Kind]:
    shapes = (spec.shape if isinstance(spec, ArraySpec) else () for spec in signature.args)
    return [
        (spec.dtype, tuple(None if isinstance(extent, str) else extent for extent in shape))
        for spec, shape in zip(signature.args, shapes, strict=True)
    ]


def _has_free_loops(module: ModuleOp) -> bool:
    return any(
        op.name in ("low.parallel_for", "low.launch") or (isinstance(op, ForOp) and op.kind.data in FREE_KINDS)
        for op in module.walk()
    )


def reduction_length_of(function: FuncOp, extents: Sequence[int] = EXTENTS[0]) -> int:
    """The most terms of a reduction, as far as known."""
    shapes = ConcreteShapes(function, extents)
    longest = 256
    for op in function.walk():
        reduced: list[Any] = []
        if isinstance(op, BlockOp):
            reduced = [e for e, kind in zip(op.extents, op.kinds, strict=True) if kind is IterKind.REDUCE]
        elif isinstance(op, ReduceOp):
            reduced = list(op.extents)
        length = 1
        for extent in reduced:
            number = extent if isinstance(extent, int) else shapes.number(extent)
            length *= number or 1
        longest = max(longest, length)
    return longest


def _outcome(interpreter: Interpreter, signature: Signature, arguments: Sequence[Any]) -> RunOutcome:
    """Raises `CompileError` if the function fails, rejects the arguments, or returns too large results."""
    copies = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
    try:
        with recorded_calls() as calls:
            results = interpreter.call(signature.name, *copies)
    except CompileError:
        raise
    except (TypeError, ValueError) as error:
        raise CompileError(str(error)) from error
    types = interpreter.find(signature.name).function_type.outputs.data
    values: Sequence[Any] = (results,)
    if results is None or isinstance(results, tuple):
        values = cast("tuple[Any, ...]", results or ())
    for number, value in enumerate(values):
        if isinstance(value, np.ndarray) and value.size > MAX_ELEMENTS:  # its size depends on the arguments
            raise CompileError(f"result {number} has {value.size:,} elements, the limit is {MAX_ELEMENTS:,}")
    # Results that the function allocates follow the others.
    passed, allocated = iter(copies), iter(values[len(types) :])
    outputs = [
        _output(spec.name, next(allocated if _is_allocated(spec) else passed), TYPES[spec.dtype])
        for spec in signature.args
    ]
    for number, (value, type_) in enumerate(zip(values, types, strict=False)):
        element_type = type_.element_type if isinstance(type_, TensorType) else type_
        outputs.append(_output(f"result {number}", value, element_type))
    return RunOutcome(outputs, calls)


def _is_allocated(spec: ArraySpec | ScalarSpec) -> bool:
    return isinstance(spec, ArraySpec) and spec.is_allocated


def _output(name: str, value: Any, element_type: Attribute) -> ComparedOutput:
    is_bfloat16 = isinstance(value, np.ndarray) and isinstance(element_type, BFloat16Type)
    return ComparedOutput(name, widen(value, element_type) if is_bfloat16 else value, is_bfloat16)


def _interpreter(module: ModuleOp, max_work: int, order: str) -> Interpreter:
    return Interpreter(module, order=order, max_iterations=max_work)


def _run_case(
    interpreter_of: InterpreterOf, function: FuncOp, case: _Case, order: str, epsilon: float = 0.0
) -> Mismatch | str | None:
    found = _compare_case(interpreter_of(order), function, case, order, epsilon)
    if isinstance(found, Mismatch) and order == "interleaved":
        # Iterations race for a shared temporary unless lowering privatises it.
        return _compare_case(interpreter_of("privatised"), function, case, order, epsilon) and found
    return found


def _compare_case(
    interpreter: Interpreter, function: FuncOp, case: _Case, order: str, epsilon: float
) -> Mismatch | str | None:
    outcome = _outcome_of_case(interpreter, function, case, order)
    return _difference(case, outcome, order, frozenset(), epsilon) if isinstance(outcome, RunOutcome) else outcome


def _difference(
    case: _Case, outcome: RunOutcome, order: str, fast_math: FastMath, epsilon: float = 0.0
) -> Mismatch | None:
    edges = case.comparison(fast_math)
    for position, (old, new) in enumerate(zip(case.outcome.outputs, outcome.outputs, strict=True)):
        if position in case.overwritten:
            continue
        found = _first_difference(old.value, new.value, case.reduction_length, new.is_bfloat16, edges, epsilon)
        if found is not None:
            index, before, after, differing = found
            return Mismatch(case.name, old.name, index, before, after, differing, _described(case), order)
    if order == "forward":  # other orders of parallel loops may reorder calls
        different = _first_other_call(case.outcome.calls, outcome.calls)
        if different is not None:
            at, before, after = different
            return Mismatch(case.name, "calls with effects", (at,), before, after, 1, _described(case), order)
    return None


def _outcome_of_case(
    interpreter: Interpreter, function: FuncOp, case: _Case, order: str
) -> RunOutcome | Mismatch | str:
    try:
        signature = interpreter.signature(function.sym_name.data)
    except CompileError as error:
        return error.message
    count = len(case.kinds)
    kinds = _kinds(signature)
    extra = case.outcome.outputs[count:]
    if kinds[:count] != case.kinds or len(kinds) not in (count, count + len(extra)):
        return f"its parameters changed, now {signature}"
    arguments = list(case.arguments)
    for output, spec in zip(extra, signature.args[count:], strict=False):
        if isinstance(spec, ArraySpec) and not spec.is_allocated:
            arguments.append(np.zeros(np.shape(output.value), numpy_dtype(spec)))
    try:
        return _outcome(interpreter, signature, arguments)
    except InterpreterError as error:
        return Mismatch(case.name, "", (), None, None, 0, _described(case), order, error)
    except CompileError as error:
        return error.message


def _first_other_call(
    before: Sequence[IntrinsicEvent], after: Sequence[IntrinsicEvent]
) -> tuple[int, object, object] | None:
    for at, (old, new) in enumerate(zip_longest(before, after)):
        if old is None or new is None or not _is_same_call(old, new):
            return at, _call_text(old), _call_text(new)
    return None


def _is_same_call(old: IntrinsicEvent, new: IntrinsicEvent) -> bool:
    if old[0] != new[0] or len(old[1]) != len(new[1]):
        return False
    return all(outputs_equal(before, after) for before, after in zip(old[1], new[1], strict=True))


def _call_text(event: IntrinsicEvent | None) -> str:
    return "none" if event is None else f"@{event[0]}({', '.join(map(str, event[1]))})"


def _first_difference(
    before: Any, after: Any, reduction_length: int, brain: bool, edges: _Edges | None, coarsest: float = 0.0
) -> tuple[tuple[int, ...], object, object, int] | None:
    first, second = np.asarray(before), np.asarray(after)
    if first.shape != second.shape:
        return (), f"of shape {first.shape}", f"of shape {second.shape}", 1
    epsilon = _BRAIN_EPSILON if brain else None
    # Roundings of factors are independent: a sum differs by no more than one product.
    terms, epsilon = (0, max(coarsest, epsilon or 0.0)) if coarsest else (reduction_length, epsilon)
    differing = _differences(first, second, terms, epsilon, edges)
    if not differing.any():
        return None
    index = tuple(int(i) for i in np.argwhere(differing)[0])
    return index, first[index].item(), second[index].item(), int(differing.sum())


def _described(case: _Case) -> str:
    texts: list[str] = []
    for output, argument in zip(case.outcome.outputs, case.arguments, strict=False):
        if isinstance(argument, np.ndarray):
            shape = "x".join(map(str, cast("Array", argument).shape))
            texts.append(f"{output.name}: {shape or 'scalar'}")
        else:
            texts.append(f"{output.name} = {argument}")
    if case.edges is not None:
        names = [case.outcome.outputs[at].name for at in sorted(case.edges.parameters)]
        texts.append(f"{case.edges.kind.name} in {' and '.join(names)}")
    return ", ".join(texts)


class Validator:
    """Compares later versions of `module` with it on the same arguments, including edge values. `skipped` has the
    reason for each function not validated, to be shown to users."""

    def __init__(self, module: ModuleOp, *, seed: int = 0, tries: int = 2, max_work: int = MAX_WORK) -> None:
        self._reference = Reference(module, seed=seed, tries=tries, max_work=max_work, edges=True)
        self.skipped: dict[str, str] = dict(self._reference.skipped)

    def check(self, pass_name: str, module: ModuleOp, fast_math: FastMath = frozenset(), epsilon: float = 0.0) -> None:
        """Compare `module` after a pass with flags `fast_math` that rounds operands to a format of `epsilon` (0 for
        none). Raises `CompileError` with the difference."""
        found = self._reference.compare(module, fast_math=fast_math, advance=True, epsilon=epsilon)
        if isinstance(found, Mismatch):
            location = None if found.error is None else found.error.location
            raise CompileError(f"pass '{pass_name}' changed the meaning of the program: {found}", location=location)
        if found is not None:
            for name, reason in found.reasons:
                self.skipped.setdefault(name, f"after '{pass_name}': {reason}")
