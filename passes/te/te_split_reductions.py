"""`te-split-reductions`: make every reduction a separate computation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import IfOp
from xdsl.dialects.scf import YieldOp as ScfYieldOp
from xdsl.dialects.tensor import ExtractOp
from xdsl.dialects.utils.fast_math import FastMathFlag
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from weft.dialects.effects import opaque_advice, opaque_op, opaque_text
from weft.dialects.index_map import Extent
from weft.dialects.te import Combiner, ComputeOp, ReduceOp, YieldOp, is_element_type
from weft.dialects.traversal import operations_in, operations_of
from weft.passes.index_builders import detached_ops, insert_before, result_before
from weft.passes.te.combiners import ConstantPool, identity
from weft.support.errors import CompileError, InternalError


def reduction_of(compute: ComputeOp) -> ReduceOp | None:
    """The only reduction of a `compute` that returns its results unchanged."""
    values = list(compute.yielded.values)
    owner = values[0].owner if values else None
    if not isinstance(owner, ReduceOp) or owner.parent is not compute.body.block or len(set(values)) != len(values):
        return None
    if any(value.owner is not owner for value in values):
        return None
    only = all(op is owner for op in operations_in(compute) if isinstance(op, ReduceOp))
    return owner if only else None


def split_reductions(function: FuncOp, constants: ConstantPool) -> None:
    """`TeSplitReductionsPass` on a function. Operands of a conditional reduction are read under its condition.

    ```mlir
    %y = te.compute "y" (%i) : tensor<4xf32> {
      %s = te.reduce sum (%k in 8) : f32 { ... te.yield %p : f32 }
      %b = tensor.extract %bias[%i] : tensor<4xf32>
      %r = arith.addf %s, %b : f32
      te.yield %r : f32
    }
    // becomes
    %y_sum = te.compute "y_sum" (%i) : tensor<4xf32> {
      %s = te.reduce sum (%k in 8) : f32 { ... te.yield %p : f32 }
      te.yield %s : f32
    }
    %y = te.compute "y" (%i) : tensor<4xf32> {
      %s = tensor.extract %y_sum[%i] : tensor<4xf32>
      %b = tensor.extract %bias[%i] : tensor<4xf32>
      %r = arith.addf %s, %b : f32
      te.yield %r : f32
    }
    ```
    """
    for compute in operations_of(function.body, ComputeOp):
        # Innermost first: the current reduction contains no other.
        for reduce in [op for op in operations_in(compute.body, inner_first=True) if isinstance(op, ReduceOp)]:
            _check_extents(compute, reduce)
            if reduction_of(compute) is not reduce:
                _Split(compute, reduce, constants).apply()


def _check_extents(compute: ComputeOp, reduce: ReduceOp) -> None:
    for axis, extent in zip(reduce.axes, reduce.extents, strict=True):
        if isinstance(extent, SSAValue) and compute.is_ancestor(extent.owner):
            raise CompileError.at(
                reduce,
                f'te.compute "{compute.label}": the extent of reduce axis %{axis.name_hint or axis.index} depends on '
                "the element: it must be the same for all elements, defined outside te.compute",
            )


class _Split:
    def __init__(self, compute: ComputeOp, reduce: ReduceOp, constants: ConstantPool) -> None:
        self._constants = constants
        self._compute = compute
        self._reduce = reduce
        self._path = self._enclosing()
        self._needed = self._slice()
        self._indices = self._used_indices()

    def _enclosing(self) -> list[tuple[Operation, Block]]:
        path: list[tuple[Operation, Block]] = []
        op: Operation = self._reduce
        while op is not self._compute:
            block, parent = op.parent_block(), op.parent_op()
            if block is None or parent is None:
                raise InternalError(f"{self._reduce.name} stands outside the computation it was found in")
            path.append((parent, block))
            op = parent
        return path[::-1]

    def _slice(self) -> set[Operation]:
        needed: set[Operation] = set()
        pending: list[SSAValue] = [op.cond for op, _ in self._path if isinstance(op, IfOp)]
        pending += _used_by(self._reduce)
        while pending:
            value = pending.pop()
            owner = value.owner
            if not isinstance(owner, Operation) or owner in needed or self._reduce.is_ancestor(owner):
                continue
            if self._compute.is_ancestor(value.owner):
                needed.add(owner)
                pending += _used_by(owner)
        return needed

    def _used_indices(self) -> dict[SSAValue, Extent]:
        used = {value for op in (*self._needed, self._reduce) for value in _used_by(op)}
        used |= {op.cond for op, _ in self._path if isinstance(op, IfOp)}
        indices: dict[SSAValue, Extent] = {}
        for op, _ in self._path:
            if isinstance(op, ComputeOp | ReduceOp):
                domain = zip(op.body.block.args, op.extents, strict=True)
                indices.update((index, extent) for index, extent in domain if index in used)
        return indices

    def apply(self) -> None:
        reduce, compute = self._reduce, self._compute
        self._require_known_effects()
        types = [result.type for result in reduce.results]
        for type in types:
            _check_storable(compute, reduce, type)
        label = f"{compute.label}_{'reduce' if reduce.kind is Combiner.CUSTOM else reduce.kind.value}"
        hints = [index.name_hint for index in self._indices]
        temporary = ComputeOp.over(label, list(self._indices.values()), types, hints)
        mapped: dict[SSAValue, SSAValue] = dict(zip(self._indices, temporary.indices, strict=True))
        self._fill(temporary.body.block, mapped)
        insert_before(compute, [temporary])
        temporary.location = reduce.location
        self._read_instead(temporary)

    def _require_known_effects(self) -> None:
        """The split part runs once per element of the temporary, shared ops twice."""
        for op in (*self._needed, self._reduce):
            found = opaque_op(op)
            if found is not None:
                raise CompileError.at(
                    found,
                    f'te.compute "{self._compute.label}" {opaque_text(found)}, in a reduction within a larger '
                    f"expression: compute the reduction as a tensor of its own; {opaque_advice(found)}",
                )

    def _fill(self, block: Block, mapped: dict[SSAValue, SSAValue]) -> None:
        first_branch = next((i for i, (op, _) in enumerate(self._path) if isinstance(op, IfOp)), len(self._path))
        for _, region in self._path[:first_branch]:
            self._copy_needed(region, block, mapped)
        reduce = self._reduce.clone(mapped)
        block.add_op(reduce)
        block.add_op(YieldOp(*reduce.results))
        if first_branch < len(self._path):
            _check_combiner(compute=self._compute, reduce=reduce)
            self._guard(reduce, self._path[first_branch:], mapped)

    def _copy_needed(self, source: Block, target: Block, mapped: dict[SSAValue, SSAValue]) -> None:
        for op in source.ops:
            if op in self._needed:
                target.add_op(op.clone(mapped))

    def _guard(
        self, reduce: ReduceOp, branches: Sequence[tuple[Operation, Block]], mapped: dict[SSAValue, SSAValue]
    ) -> None:
        level = inner = reduce.body.block
        body_ops = detached_ops(inner)
        pending: list[tuple[Block, IfOp]] = []
        for op, region in branches:
            if isinstance(op, IfOp):
                taken, other = Block(), Block()
                results = [result.type for result in reduce.results]
                other.add_op(ScfYieldOp(*self._identity(reduce, other)))
                first = op.true_region.blocks and op.true_region.block is region
                regions = (Region(taken), Region(other)) if first else (Region(other), Region(taken))
                guard = IfOp.create(operands=[mapped.get(op.cond, op.cond)], result_types=results, regions=regions)
                guard.location = op.location
                pending.append((level, guard))
                level = taken
            self._copy_needed(region, level, mapped)
        terminator = body_ops.pop()
        level.add_ops(body_ops)
        values = list(terminator.operands)
        terminator.erase()
        for outer, guard in reversed(pending):
            level.add_op(ScfYieldOp(*values))
            outer.add_op(guard)
            values, level = list(guard.results), outer
        inner.add_op(YieldOp(*values))

    def _identity(self, reduce: ReduceOp, block: Block) -> list[SSAValue]:
        def append(op: Operation) -> SSAValue:
            block.add_op(op)
            return op.results[0]

        return identity(reduce, self._constants.get, append)

    def _read_instead(self, temporary: ComputeOp) -> None:
        reduce = self._reduce
        for result, tensor in zip(list(reduce.results), temporary.results, strict=True):
            read = result_before(ExtractOp(tensor, list(self._indices), result.type), reduce)
            read.name_hint = result.name_hint
            result.replace_all_uses_with(read)
        Rewriter.erase_op(reduce)


def _used_by(op: Operation) -> list[SSAValue]:
    return [operand for inner in operations_in(op) for operand in inner.operands]


def _check_combiner(compute: ComputeOp, reduce: ReduceOp) -> None:
    """It must not use values of the branch that the reduction leaves."""
    for region in reduce.combiner_regions:
        for op in operations_in(region):
            if any(compute.is_ancestor(operand.owner) for operand in op.operands):
                raise CompileError.at(
                    op,
                    f'te.compute "{compute.label}": the combiner of a reduction under a condition uses a value that is '
                    "computed under that condition",
                )


def _check_storable(compute: ComputeOp, reduce: ReduceOp, type: Attribute) -> None:
    if not is_element_type(type):
        raise CompileError.at(
            reduce,
            f'te.compute "{compute.label}": the result of a reduction within a larger expression is stored, which '
            f"{type} cannot be: cast it within the reduction",
        )


@dataclass(frozen=True)
class TeSplitReductionsPass(ModulePass):
    """Give every reduction of tensor expressions a separate `te.compute`.

    A larger expression reads its reduction from a temporary, indexed by exactly the indices that the reduction depends
    on, so that no sum is repeated. Raises `CompileError` for an axis whose extent depends on the element.

    Requires: functions of tensor expressions.

    Leaves: the same functions; a `te.compute` with a `te.reduce` yields nothing else.
    """

    name = "te-split-reductions"
    fast_math = (FastMathFlag.REASSOC,)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in op.body.ops:
            if isinstance(inner, FuncOp) and bool(operations_of(inner, ComputeOp)):
                constants = ConstantPool(inner)
                split_reductions(inner, constants)
                constants.place(inner.body.block)
