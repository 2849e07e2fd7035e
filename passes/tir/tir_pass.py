"""Helpers of the tir lowering passes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from xdsl.context import Context
from xdsl.dialects import memref
from xdsl.dialects.builtin import ArrayAttr, MemRefType, ModuleOp, StringAttr, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from weft.analysis import integer_ranges
from weft.analysis.block_scopes import bindings_of
from weft.analysis.index import Atom, Index, Quotient, RangeOf
from weft.dialects.intervals import Interval, add_intervals, intersection_of_intervals, scale_interval
from weft.dialects.levels import allowed_at
from weft.dialects.low import PARAMS, stride_symbols, symbols_of
from weft.dialects.low_kernel import KERNEL, ThreadIdOp
from weft.dialects.tir import BlockOp, ForOp
from weft.dialects.tir_kinds import IN_STEP, TIR_FUNCTION, LoopKind
from weft.passes.index_builders import compare_before, index_before, insert_before

LOCAL = StringAttr("local")
"""Memory space of buffers in registers or on the stack."""
_OWN_DIALECTS = ("tir.", "low.")
Allocation = TypeVar("Allocation", bound="memref.AllocOp | memref.AllocaOp")


class FunctionPass(ModulePass, ABC):
    """A pass that rewrites functions separately."""

    def functions(self, module: ModuleOp) -> Iterable[FuncOp]:
        return (op for op in module.ops if isinstance(op, FuncOp))

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in list(self.functions(op)):
            self.rewrite(function)

    @abstractmethod
    def rewrite(self, function: FuncOp) -> None: ...


class TirPass(FunctionPass):
    """A pass on `tir_functions`."""

    def functions(self, module: ModuleOp) -> Iterable[FuncOp]:
        return tir_functions(module)


class KernelPass(FunctionPass):
    """A pass on kernels of `tir-bind-threads`."""

    def functions(self, module: ModuleOp) -> Iterable[FuncOp]:
        return (op for op in module.ops if isinstance(op, FuncOp) and IN_STEP in op.attributes)


def tir_functions(module: ModuleOp) -> Iterator[FuncOp]:
    """`buffer_functions` with an op of tir, or marked `TIR_FUNCTION`."""
    for function in buffer_functions(module):
        if TIR_FUNCTION in function.attributes or any(map(_is_of_tir, function.body.walk())):
            yield function


def _is_of_tir(op: Operation) -> bool:
    return op.name.startswith(_OWN_DIALECTS) and allowed_at("tir", op.name)


def buffer_functions(module: ModuleOp) -> Iterator[FuncOp]:
    """Functions with a body, over buffers, neither lowered nor kernels."""
    for op in module.ops:
        if (
            isinstance(op, FuncOp)
            and op.body.blocks
            and PARAMS not in op.attributes
            and KERNEL not in op.attributes
            and not any(isinstance(t, TensorType) for t in (*op.function_type.inputs, *op.function_type.outputs))
        ):
            yield op


def bind_iterators(block: BlockOp) -> None:
    for variable, binding in zip(block.iter_vars, bindings_of(block), strict=True):
        if variable.first_use is not None:
            value = index_before(binding.simplified(range_of), block, variable.name_hint)
            variable.replace_all_uses_with(value)


def unproved_before(guards: Iterable[tuple[Index, Index]], anchor: Operation) -> list[SSAValue]:
    """The comparisons `left < right` that ranges do not prove."""
    conditions: list[SSAValue] = []
    for left, right in guards:
        low, _ = (right - left).simplified(range_of).range(range_of)
        if low is None or low < 1:
            conditions.append(compare_before("slt", left.simplified(range_of), right.simplified(range_of), anchor))
    return conditions


def repetitions(op: Operation, root: Operation) -> int:
    """Copies of `op` after unrolling the loops around it up to and including `root`."""
    count = 1
    while op is not root and (parent := op.parent_op()) is not None:
        op = parent
        if isinstance(op, ForOp) and op.kind.data is LoopKind.UNROLLED and isinstance(op.extent, int):
            count *= op.extent
    return count


def replace_variable(loop: ForOp, index: Index) -> None:
    first = loop.body.block.first_op
    variable = loop.induction_variable
    if first is None or variable.first_use is None:
        return
    new = index_before(index, first, variable.name_hint)
    variable.replace_uses_with_if(new, lambda use: use.operation is not new.owner)


def set_memory_space(buffer: SSAValue, space: Attribute) -> None:
    old = buffer_type(buffer)
    Rewriter.replace_value_with_new_type(buffer, MemRefType(old.element_type, old.shape, old.layout, space))


def allocate_before(
    anchor: Operation,
    kind: type[Allocation],
    type_: MemRefType,
    hint: str | None,
    alignment: Attribute | None = None,
    sizes: Sequence[SSAValue] = (),
) -> Allocation:
    """`sizes` are the dynamic extents."""
    properties = {} if alignment is None else {"alignment": alignment}
    alloc = kind.build(operands=[list(sizes), []], result_types=[type_], properties=properties)
    alloc.memref.name_hint = hint
    insert_before(anchor, [alloc])
    return alloc


def buffer_type(value: SSAValue) -> MemRefType:
    if not isinstance(value.type, MemRefType):
        raise TypeError(f"{value} is no buffer")
    return value.type


def range_of(value: SSAValue) -> Interval:
    """`integer_ranges.range_of`, with loop variables bounded by the greatest dynamic extent, and extents of flat
    functions non-negative."""
    return _range_of(value, range_of)


def remembered_ranges() -> RangeOf:
    """A memoised `range_of`, valid while no loop extent changes."""
    return integer_ranges.Ranges(_range_of)


def _range_of(value: SSAValue, ranges: RangeOf) -> Interval:
    if isinstance(value, BlockArgument):
        owner = value.block.parent_op()
        if isinstance(owner, ForOp) and owner.dynamic_extent is not None:
            high = Index.of(owner.dynamic_extent).range(ranges)[1]
            return 0, None if high is None else max(high - 1, 0)
        if isinstance(owner, FuncOp) and _is_extent_of_flat(owner, value):
            return intersection_of_intervals(integer_ranges.assumed_range(value, ranges), (0, None))
    elif isinstance(value.owner, ThreadIdOp):
        extent = value.owner.static_extent
        return 0, None if extent is None else extent - 1
    return integer_ranges.range_of(value, ranges)


def _is_extent_of_flat(function: FuncOp, value: BlockArgument) -> bool:
    """Whether `tir-flatten` appended an extent; these are never negative, unlike strides."""
    if KERNEL in function.attributes:
        return value.index >= len(function.args) - len(symbols_of(function))
    params = function.attributes.get(PARAMS)
    if not isinstance(params, ArrayAttr) or value.index < len(params):
        return False
    return symbols_of(function)[value.index - len(params)] not in stride_symbols(function)


def range_of_difference(left: Index, right: Index, ranges: RangeOf | None = None) -> Interval:
    """The range of `left - right`, with relations of quotients at constant distances.

    `x floordiv a - k * (y floordiv (a * k))`, where `x - y` is a number d, is in `d floordiv a .. d ceildiv a + k - 1`,
    and `y - k * (y floordiv k)` in `0 .. k - 1`.
    """
    ranges = ranges or remembered_ranges()
    difference = (left - right).simplified(ranges)
    rest: dict[Atom, int] = dict(difference.terms)
    interval: Interval = (difference.constant, difference.constant)
    for one in [atom for atom in difference.terms if isinstance(atom, Quotient)]:
        factor = rest.get(one, 0)
        if factor and (found := _partner_of(one, factor, rest)) is not None:
            used, reach = found
            for atom in (one, *used):
                del rest[atom]
            interval = add_intervals(interval, reach)
    return add_intervals(interval, Index(rest).range(ranges))


def _partner_of(one: Quotient, factor: int, terms: Mapping[Atom, int]) -> tuple[list[Atom], Interval] | None:
    """Terms correlated with `factor * one`, and the range of their sum with it."""
    for other, times in terms.items():
        if not isinstance(other, Quotient) or other == one or times * factor >= 0:
            continue
        k = -factor // times if factor % times == 0 else 0
        distance = other.numerator - one.numerator
        if k > 0 and one.divisor == other.divisor * k and distance.is_constant:
            d, a = distance.constant, other.divisor
            return [other], scale_interval((d // a, -(-d // a) + k - 1), times)
    times, rest = -factor // one.divisor, factor % one.divisor
    numerator = one.numerator
    if rest == 0 and all(terms.get(atom) == f * times for atom, f in numerator.terms.items()):
        reach = scale_interval((0, one.divisor - 1), times)
        return list(numerator.terms), add_intervals(reach, (-numerator.constant * times, -numerator.constant * times))
    return None
