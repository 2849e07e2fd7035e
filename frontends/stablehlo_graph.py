"""Conversion of functions of StableHLO, as `jax.export` prints them, to graph functions.

Loops and branches become `graph.while`, `graph.loop` and `graph.if`, the ops of each level between them one function of
tensor expressions (`docs/decisions/0113-jax.md`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import DYNAMIC_INDEX, IntegerType, ModuleOp, TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue

from weft.dialects import stablehlo
from weft.dialects.element_types import element_name
from weft.dialects.graph_shapes import Expression, KnownExtent, element_symbol, is_element, sum_text
from weft.dialects.stablehlo import CaseOp, ElementwiseOp, IfOp, WhileOp
from weft.dialects.traversal import captured_values, post_order
from weft.frontends.graph_builder import BlockBuilder, Value, call_dps, const, operator
from weft.frontends.stablehlo_scan import Scan, scan_of
from weft.passes.convert.convert_stablehlo_to_te import (
    CUSTOM_CALLS,
    StablehloConversion,
    constant_elements,
    is_constant,
)
from weft.passes.convert.stablehlo_complex import complex_type
from weft.passes.convert.stablehlo_inlining import drop_invariants, inline_calls
from weft.passes.convert.stablehlo_loops import expand_scans
from weft.passes.convert.stablehlo_values import MOST_SIZES, Sizes, parts_of, tensor_of
from weft.passes.convert.stablehlo_values import Value as ConvertedValue
from weft.support.errors import CompileError, did_you_mean
from weft.support.names import new_name
from weft.support.user_functions import registered_names
from weft.texpr.expr import Compare, Expr, Predicate
from weft.texpr.ops.arguments import compute
from weft.texpr.shapes import Extent, ExtentVariables
from weft.texpr.tensor import ComputeOp, Tensor


def import_stablehlo(builder: BlockBuilder, module: ModuleOp, parameters: Sequence[Value], name: str = "main") -> None:
    """Add @main of `module`, which is changed, to a builder as `name`. `parameters` are variables with named extents.
    Raises `CompileError` for unsupported ops."""
    functions = {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp) and not op.is_declaration}
    main = functions.get("main")
    if main is None:
        raise CompileError("a program of StableHLO has a function @main")
    inline_calls(main, functions)
    expand_scans(main)
    drop_invariants(main)
    with builder.function(name, parameters):
        block = main.body.block
        names = {argument: parameter.ssa.name_hint for argument, parameter in zip(main.args, parameters, strict=True)}
        sizes: dict[SSAValue, Sequence[Expression]] = {
            argument: [element_symbol(name, element) for element in range(prod(_shape(argument)))]
            for argument, name in names.items()
            if name is not None and argument in _sources_of_sizes(block) and is_element(argument.type, 0)
        }
        importer = _Importer(builder, functions, sizes)
        found = importer.results(block, _returned(block), dict(zip(main.args, parameters, strict=True)))
        builder.emit_func_output(found)


_BRANCHES = (CaseOp, IfOp)
_RETURNS = (ReturnOp, stablehlo.ReturnOp)
_OF_SIZES = frozenset({"stablehlo.reshape", "stablehlo.broadcast_in_dim", "stablehlo.concatenate", "stablehlo.slice"})
"""Data movement in computations of extents."""


_BROADCASTS = frozenset({"stablehlo.broadcast_in_dim", "stablehlo.dynamic_broadcast_in_dim"})


def _returned(block: Block) -> list[SSAValue]:
    end = block.last_op
    if not isinstance(end, _RETURNS):
        raise CompileError.at(cast("Operation", block.parent_op()), "a block of stablehlo ends in a return")
    return list(end.operands)


_SIZE_OPERANDS: Mapping[str, int] = {
    "stablehlo.dynamic_broadcast_in_dim": 1,
    "stablehlo.dynamic_conv": 2,
    "stablehlo.dynamic_gather": 2,
    "stablehlo.dynamic_iota": 0,
    "stablehlo.dynamic_pad": 2,
    "stablehlo.dynamic_reshape": 1,
    "stablehlo.real_dynamic_slice": 1,
}
"""Index of the first operand that is a size; later ones are sizes too."""


def _sources_of_sizes(block: Block) -> set[SSAValue]:
    """Values from which ops compute sizes by arithmetic, including the sizes."""
    found: set[SSAValue] = set()
    pending = [
        value for op in block.walk() if op.name in _SIZE_OPERANDS for value in op.operands[_SIZE_OPERANDS[op.name] :]
    ]
    while pending:
        value = pending.pop()
        if value in found:
            continue
        found.add(value)
        owner = value.owner
        if isinstance(owner, Operation) and (isinstance(owner, ElementwiseOp) or owner.name in _OF_SIZES):
            pending += owner.operands
    return found


def _shape(value: SSAValue) -> tuple[int, ...]:
    return tuple(cast("TensorType[Attribute]", value.type).get_shape())


def _is_control(op: Operation) -> bool:
    """Loops, and conditionals with branches that are not merely elementwise."""
    if isinstance(op, _BRANCHES):
        return not all(_is_elementwise(inner) for region in op.regions for inner in region.block.ops)
    return isinstance(op, WhileOp) or is_registered_call(op)


def is_registered_call(op: Operation) -> bool:
    """Whether the user registered the callee, without a tensor expression."""
    return isinstance(op, stablehlo.CustomCallOp) and op.call_target_name.data not in CUSTOM_CALLS


def _is_elementwise(op: Operation) -> bool:
    """Whether each element depends on a few elements, so that unused ones cost nothing."""
    return is_constant(op) or isinstance(op, (ElementwiseOp, *_RETURNS)) or op.name in _OF_SIZES


def _taken(op: Operation) -> list[SSAValue]:
    return [*op.operands, *(captured_values(op) if op.regions else ())]


@dataclass
class _Level:
    """Ops that can be computed together, and the loops and branches that follow."""

    ops: list[Operation] = field(default_factory=list[Operation])
    control: list[Operation] = field(default_factory=list[Operation])
    used: dict[SSAValue, None] = field(default_factory=dict[SSAValue, None])
    """Values that other levels, loops, branches and results use."""


class _Importer:
    def __init__(
        self,
        builder: BlockBuilder,
        functions: Mapping[str, FuncOp],
        sizes: Mapping[SSAValue, Sequence[Expression]],
    ) -> None:
        """`functions` are callees of custom calls, `sizes` the elements of parameters that are extents."""
        self._builder = builder
        self._functions = functions
        self._sizes = sizes
        self._rematerialized: dict[SSAValue, bool] = {}

    def results(self, block: Block, wanted: Sequence[SSAValue], env: Mapping[SSAValue, Value]) -> list[Value]:
        """`env` maps captured values and arguments."""
        known = dict(env)
        ops = [op for op in block.ops if not isinstance(op, _RETURNS)]
        for level in self._levels(ops, wanted, known):
            self._segment(level.ops, [value for value in level.used if value not in known], known)
            for op in level.control:
                known |= self._control(op, known)
        return [known[value] for value in wanted]

    def _is_cheap(self, value: SSAValue) -> bool:
        """A constant, a splat, or integers computed only from constants and extents."""
        if value in self._sizes:
            return True
        if value not in self._rematerialized:
            self._rematerialized[value] = isinstance(value, OpResult) and self._is_cheap_op(value.op, value.type)
        return self._rematerialized[value]

    def _is_cheap_op(self, op: Operation, type_: Attribute) -> bool:
        if is_constant(op) or op.name == "stablehlo.get_dimension_size":
            return True
        tensor = cast("TensorType[Attribute]", type_)
        is_short = isinstance(tensor.element_type, IntegerType) and prod(map(abs, tensor.get_shape())) <= MOST_SIZES
        is_arithmetic = isinstance(op, ElementwiseOp) or op.name in _OF_SIZES
        if op.name in _BROADCASTS:
            return all(map(self._is_cheap, op.operands))
        return is_short and is_arithmetic and bool(op.operands) and all(map(self._is_cheap, op.operands))

    def _sources(self, value: SSAValue) -> Iterable[SSAValue]:
        """The value, or the values whose extents it is computed from."""
        if not self._is_cheap(value) or value in self._sizes:
            return (value,)
        return (source for operand in cast("OpResult", value).op.operands for source in self._sources(operand))

    def _leaves(self, values: Iterable[SSAValue], known: Mapping[SSAValue, Value]) -> list[SSAValue]:
        """The values of `known` from which some values are computed cheaply."""
        found: dict[SSAValue, None] = {}
        pending = list(values)
        while pending:
            value = pending.pop(0)
            if value in known:
                found[value] = None
            else:
                pending += cast("OpResult", value).op.operands
        return list(found)

    def _levels(
        self, ops: Sequence[Operation], wanted: Sequence[SSAValue], known: Mapping[SSAValue, Value]
    ) -> list[_Level]:
        levels = [_Level()]
        place: dict[SSAValue, int] = {}

        def use(values: Iterable[SSAValue], at: int) -> None:
            """Record uses outside level `at`, whose function recomputes cheap values."""
            for value in values:
                if value not in known and (value in place or self._is_cheap(value)):
                    levels[place.get(value, at)].used.setdefault(value)

        for op in ops:
            if op.results and all(map(self._is_cheap, op.results)):
                continue
            taken = [source for value in _taken(op) for source in self._sources(value)]
            at = max((place.get(value, 0) for value in taken), default=0)
            is_control = _is_control(op)
            while len(levels) <= at + is_control:
                levels.append(_Level())
            (levels[at].control if is_control else levels[at].ops).append(op)
            use(taken if is_control else (v for v in taken if place.get(v, at) < at), at)
            place |= dict.fromkeys(op.results, at + is_control)
        use(wanted, len(levels) - 1)
        return levels

    def _segment(self, ops: Sequence[Operation], outputs: Sequence[SSAValue], known: dict[SSAValue, Value]) -> None:
        """The function computes `outputs`; the assertions in `ops` become preconditions."""
        if not outputs:
            return
        asserted = [op for op in ops if isinstance(op, stablehlo.CustomCallOp) and not op.results]
        # Arithmetic on extents relies on assertions.
        before = _needed((value for op in asserted for value in op.operands), known)
        needed = [*before, *asserted]
        needed += [op for op in _needed(outputs, known) if op not in before]
        inputs = list(dict.fromkeys(v for op in needed for v in _taken(op) if v in known))
        sizes = [value for value in (*inputs, *outputs) if value in self._sizes]
        inputs = [value for value in inputs if value not in self._sizes]
        elements = [element for value in sizes for element in self._sizes[value]]
        facts: list[str] = []

        def segment(*given: Tensor | Extent) -> list[Tensor]:
            tensors, extents = cast("Sequence[Tensor]", given[: len(inputs)]), iter(given[len(inputs) :])
            conversion = StablehloConversion(self._functions, composes=True)
            values: dict[SSAValue, ConvertedValue] = {
                value: tensor if (kind := complex_type(value.type)) is None else parts_of(tensor, kind)
                for value, tensor in zip(inputs, tensors, strict=True)
            }
            for value in sizes:
                shape = _shape(value)
                known_elements = tuple(cast("Extent", next(extents)) for _ in range(prod(shape)))
                values[value] = Sizes(known_elements, shape, _dtype(value))
            found = conversion.evaluate(needed, values, outputs)
            facts.extend(map(_precondition, conversion.facts))
            made: list[Tensor] = []
            taken = {tensor.name for tensor in tensors}
            for value in found:
                tensor = tensor_of(value, "out")
                if not isinstance(tensor.op, ComputeOp) or any(tensor is other for other in made):
                    tensor = compute(tensor.shape, tensor, "out")
                tensor.name = new_name(tensor.name, taken)
                made.append(tensor)
            return made

        results = _several(self._builder.emit_te(segment, *(known[value] for value in inputs), *elements))
        known |= zip(outputs, results, strict=True)
        self._builder.state(facts)

    def _values(self, wanted: Sequence[SSAValue], known: Mapping[SSAValue, Value]) -> list[Value]:
        found = dict(known)
        self._segment([], [value for value in dict.fromkeys(wanted) if value not in found], found)
        return [found[value] for value in wanted]

    def _control(self, op: Operation, known: Mapping[SSAValue, Value]) -> Mapping[SSAValue, Value]:
        captured = self._leaves(captured_values(op), known)
        if isinstance(op, stablehlo.CustomCallOp):
            return self._registered_call(op, known)
        if isinstance(op, WhileOp):
            scan = scan_of(op)
            steps = None if scan is None else self._extent(scan.bound, known)
            if scan is not None and steps is not None:
                return self._loop(op, scan, steps, known)
            return self._while(op, captured, known)
        return dict(zip(op.results, self._branch(op, captured, known), strict=True))

    def _registered_call(self, op: stablehlo.CustomCallOp, known: Mapping[SSAValue, Value]) -> Mapping[SSAValue, Value]:
        name = op.call_target_name.data
        if name not in registered_names():
            hint = did_you_mean(name, [*registered_names(), *CUSTOM_CALLS])
            raise CompileError.at(op, f"{op.name}: no function is registered as '{name}'{hint}")
        shapes = [_shape(result) for result in op.results]
        if any(DYNAMIC_INDEX in shape for shape in shapes):
            raise CompileError.at(op, f"{op.name}: the shapes of the results of @{name} are not known")
        found = call_dps(name, self._values(op.operands, known), shapes, [_dtype(result) for result in op.results])
        self._builder.emit(found[0])
        return dict(zip(op.results, found, strict=True))

    def _part(self, block: Block, wanted: Sequence[SSAValue], inside: Sequence[SSAValue]) -> Callable[..., list[Value]]:
        return lambda *values: self.results(block, wanted, dict(zip(inside, values, strict=True)))

    def _while(
        self, op: WhileOp, captured: Sequence[SSAValue], known: Mapping[SSAValue, Value]
    ) -> Mapping[SSAValue, Value]:
        test, body = (
            self._part(block, _returned(block), [*block.args, *captured]) for block in (op.cond.block, op.body.block)
        )
        carried, outside = self._values(op.inputs, known), [known[value] for value in captured]
        found = self._builder.emit_while(lambda *values: test(*values)[0], body, carried, outside)
        return dict(zip(op.results, _several(found), strict=True))

    def _extent(self, value: SSAValue, known: Mapping[SSAValue, Value]) -> KnownExtent | None:
        """None for expensive values and unsupported sums."""
        op = value.owner
        match op:
            case stablehlo.DenseConstantOp() | arith.ConstantOp():
                elements = constant_elements(op)
                return None if elements is None else int(next(iter(elements.get_values())))
            case stablehlo.TensorOp() if op.name == "stablehlo.get_dimension_size" and op.operands[0] in known:
                return known[op.operands[0]].shape[op.keyword("dim")[0]]
            case stablehlo.TensorOp() if op.name == "stablehlo.convert":
                return self._extent(op.operands[0], known)
            case _:
                return None

    def _loop(
        self, op: WhileOp, scan: Scan, steps: KnownExtent, known: Mapping[SSAValue, Value]
    ) -> Mapping[SSAValue, Value]:
        """Stacks of rows are not carried."""
        block = op.body.block
        rows = [row for row in scan.rows if row.source in known and known[row.source].shape[0] == steps]
        stacks = scan.stacks
        hidden = {scan.counter, *(stack.place for stack in stacks)}
        carried = [place for place in range(len(op.inputs)) if place not in hidden]
        wanted = [_returned(block)[place] for place in carried] + [stack.value for stack in stacks]
        counter = block.args[scan.counter]
        inside = {counter, *(block.args[place] for place in carried), *(row.value for row in rows)}
        outside = [v for o in _needed(wanted, dict.fromkeys(inside)) if o.parent is block for v in _taken(o)]
        outside = [v for v in (*outside, *wanted) if v not in inside and not _is_of(v, block)]
        captured = self._leaves(dict.fromkeys(outside), known)
        order = [*(block.args[place] for place in carried), *(row.value for row in rows), *captured]

        def step(number: Value, *values: Value) -> list[Value]:
            dtype = _dtype(counter)
            index = number if number.dtype == dtype else cast("Value", operator("cast")(number, dtype=dtype))
            return self.results(block, wanted, {counter: index, **dict(zip(order, values, strict=True))})

        found = (
            _several(
                self._builder.emit_loop(
                    step,
                    steps if isinstance(steps, int) else str(steps),
                    self._values([op.inputs[place] for place in carried], known),
                    [_flipped(known[row.source], row.is_reversed) for row in rows],
                    [known[value] for value in captured],
                )
            )
            if wanted
            else []
        )
        made: dict[SSAValue, Value] = dict(zip((op.results[place] for place in carried), found, strict=False))
        for stack, value in zip(stacks, found[len(carried) :], strict=True):
            made[op.results[stack.place]] = _flipped(value, stack.is_reversed)
        if op.results[scan.counter].uses.get_length():
            made[op.results[scan.counter]] = self._number(steps, _dtype(counter))
        return made

    def _number(self, extent: KnownExtent, dtype: str) -> Value:
        if isinstance(extent, int):
            return const(extent, dtype)

        def number(size: Expr) -> Tensor:
            return compute((), lambda: size.astype(dtype), "number")

        return cast("Value", self._builder.emit_te(number, extent))

    def _branch(self, op: Operation, captured: Sequence[SSAValue], known: Mapping[SSAValue, Value]) -> Sequence[Value]:
        parts = [self._part(region.block, _returned(region.block), captured) for region in op.regions]
        (index,), given = self._values(op.operands[:1], known), [known[value] for value in captured]
        if isinstance(op, IfOp):
            return _several(self._builder.emit_if(index, parts[0], parts[1], *given))

        def choose(first: int, index: Value, *values: Value) -> Sequence[Value]:
            """Branches from `first` on; the last is for numbers out of range."""
            if first == len(parts) - 1:
                return parts[first](*values)

            def here(_: Value, *inner: Value) -> Sequence[Value]:
                return parts[first](*inner)

            def later(index: Value, *inner: Value) -> Sequence[Value]:
                return choose(first + 1, index, *inner)

            is_here = cast("Value", operator("equal")(index, const(first, index.dtype)))
            return _several(self._builder.emit_if(is_here, here, later, index, *values))

        return choose(0, index, *given)


def _needed(wanted: Iterable[SSAValue], known: Mapping[SSAValue, object]) -> list[Operation]:
    def makers(values: Iterable[SSAValue]) -> Iterator[Operation]:
        return (value.op for value in values if value not in known and isinstance(value, OpResult))

    return post_order(makers(wanted), lambda op: makers(_taken(op)))


def _precondition(fact: Compare) -> str:
    left, right = (sum_text(ExtentVariables().polynomial(side)) for side in (fact.left, fact.right))
    match fact.predicate:
        case Predicate.GE | Predicate.GT:
            return f"{right} {'<=' if fact.predicate is Predicate.GE else '<'} {left}"
        case Predicate.NE:
            return f"{left} < {right} or {right} < {left}"
        case _:
            return f"{left} {fact.predicate.symbol} {right}"


def _is_of(value: SSAValue, block: Block) -> bool:
    owner = value.owner
    return owner is block if isinstance(owner, Block) else owner.parent is block


def _dtype(value: SSAValue) -> str:
    return cast("str", element_name(cast("TensorType[Attribute]", value.type).element_type))


def _flipped(value: Value, is_reversed: bool) -> Value:
    return cast("Value", operator("flip")(value, axis=0)) if is_reversed else value


def _several(values: Value | Sequence[Value]) -> list[Value]:
    return [values] if isinstance(values, Value) else list(values)
