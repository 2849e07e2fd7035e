"""convert-tir-to-affine: block loops in `affine`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

from xdsl.dialects import affine, arith, memref, scf
from xdsl.dialects.builtin import (
    AffineMapAttr,
    AffineSetAttr,
    ArrayAttr,
    DenseIntElementsAttr,
    IndexType,
    IntegerAttr,
    TensorType,
    i32,
    i64,
)
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.ir.affine import (
    AffineConstraintExpr,
    AffineConstraintKind,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
    AffineSet,
    AffineSymExpr,
)
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.traits import is_side_effect_free

from weft.analysis.index import Index, exprs_of
from weft.dialects.integer_arith import constant_integer
from weft.dialects.tir import ForOp
from weft.dialects.tir_kinds import LoopKind
from weft.dialects.traversal import ancestors, operations_in
from weft.dialects.upstream.affine import ParallelOp
from weft.passes.convert.tir_nests import convert_functions
from weft.passes.index_builders import (
    conjunction_before,
    constant_before,
    defining_block,
    detached_ops,
    dissolve,
    erase_if_unused,
    if_around,
    insert_before,
)
from weft.passes.tir.guards import Constraint, conjuncts, constraint_of
from weft.passes.tir.tir_lower_loops import IndexEmitter, lower_loop
from weft.passes.tir.tir_pass import remembered_ranges
from weft.support.errors import remark

if TYPE_CHECKING:
    from xdsl.context import Context
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.dialects.func import FuncOp


@dataclass(frozen=True)
class ConvertTirToAffinePass(ModulePass):
    """Convert functions of block loops to `affine.for`, `affine.parallel`, `affine.if`, `affine.load` and
    `affine.store`, for polyhedral tools.

    ```mlir
    func.func @f(%A: memref<126xf32>, %B: memref<126xf32>) {
      tir.for %i in 32 parallel {
        tir.for %r in 4 {
          tir.block "B" iters(%vi: spatial<126>) = [%i * 4 + %r] where [%i * 4 + %r] < [126] {
            %a = memref.load %A[%vi] : memref<126xf32>
            %e = math.exp %a : f32
            memref.store %e, %B[%vi] : memref<126xf32>
          }
        }
      }
      func.return
    }
    // becomes
    func.func @f(%A: memref<126xf32>, %B: memref<126xf32>) {
      affine.parallel (%i) = (0) to (32) {
        affine.for %r = 0 to 4 {
          affine.if affine_set<(d0, d1) : (d0 * -4 + d1 * -1 + 125 >= 0)> (%i, %r) {
            %a = affine.load %A[%i * 4 + %r] : memref<126xf32>
            %e = math.exp %a : f32
            affine.store %e, %B[%i * 4 + %r] : memref<126xf32>
          }
        }
      }
      func.return
    }
    ```
    An index is affine if it is a sum of multiples of variables of affine loops and of symbols, and of quotients and
    remainders of such sums by constants. Symbols are index values at the start of the function: parameters, extents of
    buffers, and values computed from these.

    Other parts are converted as by `convert-tir-to-scf`, with a remark, or, with `strict`, are a `CompileError`: a loop
    whose extent is not affine becomes `scf.for` or `scf.parallel`, and its variable is no dimension; an access at
    another index stays `memref.load` or `memref.store`; the part of a condition that is no affine comparison stays
    `scf.if`.

    Requires: functions of block loops (tir).

    Leaves: functions of `affine`, `memref`, `arith` and `math`, and `scf` for the parts that are not affine.
    """

    name = "convert-tir-to-affine"

    strict: bool = False
    """Whether it is an error, not a remark, that the pass finds nothing, or that a part is not affine."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        convert_functions(op, self.name, partial(_convert, strict=self.strict), strict=self.strict)


def _convert(function: FuncOp, *, strict: bool) -> None:
    _hoist_symbols(function)
    writer = _AffineWriter(function, strict=strict)
    writer.run()
    emitter = IndexEmitter(function)
    emitter.run()
    for loop in operations_in(function, inner_first=True):
        if isinstance(loop, ForOp) and not writer.replaces(loop):
            lower_loop(loop, emitter)


def _hoist_symbols(function: FuncOp) -> None:
    entry = function.body.block
    for op in operations_in(function):
        if (
            op.parent not in (None, entry)
            and op.name.startswith(_COMPUTED)
            and len(op.results) == 1
            and isinstance(op.results[0].type, IndexType)
            and is_side_effect_free(op)
            and not op.regions
            and all(defining_block(operand) is entry for operand in op.operands)
        ):
            outermost = [around for around in ancestors(op) if around.parent is entry]
            op.detach()
            entry.insert_op_before(op, outermost[-1])


_COMPUTED: Final = ("arith.", "affine.apply", "memref.dim")


@dataclass
class _AffineWriter:
    function: FuncOp
    strict: bool
    _bounds: dict[ForOp, list[Index]] = field(default_factory=dict[ForOp, list[Index]])
    """The extents of loops that become affine. An extent is the minimum of several values."""
    _variables: set[SSAValue] = field(default_factory=set[SSAValue])

    def __post_init__(self) -> None:
        self._ranges = remembered_ranges()

    def run(self) -> None:
        """A loop is visited before the operations in it."""
        for op in operations_in(self.function):
            match op:
                case ForOp():
                    self._find_bounds(op)
                case memref.LoadOp() | memref.StoreOp():
                    self._replace_access(op)
                case scf.IfOp():
                    self._replace_condition(op)
                case _:
                    pass

    def replaces(self, loop: ForOp) -> bool:
        bounds = self._bounds.get(loop)
        if bounds is None:
            return False
        if loop.extent == 1:
            dissolve(loop, constant_before(0, loop))
            return True
        exprs, operands, map_of = self._map(bounds)
        body = loop.detach_region(loop.body)
        body.block.add_op(affine.YieldOp.get())
        if loop.kind.data is LoopKind.PARALLEL:
            new: Operation = ParallelOp.create(
                operands=operands,
                properties={
                    "reductions": ArrayAttr([]),
                    "lowerBoundsMap": AffineMapAttr(AffineMap(0, 0, (AffineExpr.constant(0),))),
                    "lowerBoundsGroups": _group(1),
                    "upperBoundsMap": AffineMapAttr(AffineMap(*map_of, tuple(exprs))),
                    "upperBoundsGroups": _group(len(exprs)),
                    "steps": ArrayAttr([IntegerAttr(1, i64)]),
                },
                regions=[body],
            )
        else:
            upper = AffineMapAttr(AffineMap(*map_of, tuple(exprs)))
            new = affine.ForOp.from_region([], operands, [], [], 0, upper, body)
        insert_before(loop, [new])
        extent = loop.dynamic_extent
        Rewriter.erase_op(loop)
        erase_if_unused([] if extent is None else [extent])
        return True

    # Affine indices

    def _is_affine(self, index: Index) -> bool:
        entry = self.function.body.block
        return all(value in self._variables or defining_block(value) is entry for value in index.values())

    def _index(self, value: SSAValue) -> Index:
        return Index.of(value).simplified(self._ranges)

    def _map(self, indices: Sequence[Index]) -> tuple[list[AffineExpr], list[SSAValue], tuple[int, int]]:
        """Expressions, operands, and the numbers of dimensions and symbols among these."""
        exprs, values = exprs_of(indices)
        dims = [value for value in values if value in self._variables]
        symbols = [value for value in values if value not in self._variables]
        places: Mapping[SSAValue, AffineExpr] = {
            **{value: AffineDimExpr(at) for at, value in enumerate(dims)},
            **{value: AffineSymExpr(at) for at, value in enumerate(symbols)},
        }
        new = [places[value] for value in values]
        return [e.replace_dims_and_symbols(new, []) for e in exprs], [*dims, *symbols], (len(dims), len(symbols))

    def _tell(self, op: Operation, reason: str) -> None:
        remark(op, f"{ConvertTirToAffinePass.name}: {reason}", strict=self.strict)

    # Loops

    def _find_bounds(self, loop: ForOp) -> None:
        extent = loop.extent
        bounds = [Index.of(extent)] if isinstance(extent, int) else [*map(self._index, _least_of(extent))]
        if all(map(self._is_affine, bounds)):
            self._bounds[loop] = bounds
            self._variables.add(loop.induction_variable)
        else:
            name = loop.induction_variable.name_hint
            self._tell(loop, f"the extent of loop %{name} is not affine: it becomes a loop of scf")

    # Accesses

    def _replace_access(self, op: memref.LoadOp | memref.StoreOp) -> None:
        indices = [self._index(index) for index in op.indices]
        if not all(map(self._is_affine, indices)):
            at = next(at for at, index in enumerate(indices) if not self._is_affine(index))
            self._tell(op, f"index {at} is not affine: it stays {op.name}")
            return
        exprs, operands, map_of = self._map(indices)
        map_ = AffineMapAttr(AffineMap(*map_of, tuple(exprs)))
        if isinstance(op, memref.LoadOp):
            new: Operation = affine.LoadOp(op.memref, operands, map_, op.res.type)
            new.results[0].name_hint = op.res.name_hint
        else:
            new = affine.StoreOp(op.value, op.memref, operands, map_)
        old = list(op.indices)
        new.location = op.location
        Rewriter.replace_op(op, new)
        erase_if_unused(old)

    # Conditions

    def _replace_condition(self, op: scf.IfOp) -> None:
        """If it has one branch, only the affine part is replaced."""
        parts = list(conjuncts(op.cond))
        constraints = {part: found for part in parts if (found := self._constraint(part)) is not None}
        rest = [part for part in parts if part not in constraints]
        if rest:
            self._tell(op, "the condition is no conjunction of affine comparisons: it stays scf.if")
        if not constraints or (rest and (op.results or op.false_region.blocks)):
            return
        condition, old = op.cond, list(rest)
        inner = detached_ops(op.true_region.block)
        end = inner.pop()
        if rest:
            held = if_around(conjunction_before(rest, op), inner)
            held.location = op.location
            inner = [held]
        self._write_if(op, constraints.values(), inner, end)
        erase_if_unused([condition, *old])

    def _constraint(self, condition: SSAValue) -> Constraint | None:
        if not isinstance(condition, OpResult) or not isinstance(condition.op, arith.CmpiOp):
            return None
        found = constraint_of(condition.op, self._ranges)
        return found if found is not None and not found.negated and self._is_affine(found.index) else None

    def _write_if(
        self, op: scf.IfOp, constraints: Iterable[Constraint], inner: Sequence[Operation], end: Operation
    ) -> None:
        constraints = list(constraints)
        exprs, operands, (dims, symbols) = self._map([constraint.index for constraint in constraints])
        kinds = [AffineConstraintKind.eq if one.equality else AffineConstraintKind.ge for one in constraints]
        zero = AffineExpr.constant(0)
        rows = [AffineConstraintExpr(kind, expr, zero) for kind, expr in zip(kinds, exprs, strict=True)]
        then_region, else_region = (op.detach_region(region) for region in tuple(op.regions))
        then_region.block.add_ops([*inner, affine.YieldOp.get(*end.operands)])
        end.erase()
        for block in else_region.blocks:
            last = block.last_op
            if last is not None:
                Rewriter.replace_op(last, affine.YieldOp.get(*last.operands))
        new = affine.IfOp.create(
            operands=operands,
            result_types=[result.type for result in op.results],
            properties={"condition": AffineSetAttr(AffineSet(dims, symbols, tuple(rows)))},
            regions=[then_region, else_region],
        )
        for result, value in zip(new.results, op.results, strict=True):
            result.name_hint = value.name_hint
        new.location = op.location
        Rewriter.replace_op(op, new)


def _least_of(extent: SSAValue) -> list[SSAValue]:
    """The values whose minimum an extent is. A minimum of 0 changes no loop."""
    if isinstance(extent, OpResult):
        op = extent.op
        if isinstance(op, arith.MinSIOp):
            return [*_least_of(op.lhs), *_least_of(op.rhs)]
        if isinstance(op, arith.MaxSIOp):
            for one, other in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
                if constant_integer(one) == 0:
                    return _least_of(other)
    return [extent]


def _group(size: int) -> DenseIntElementsAttr:
    return DenseIntElementsAttr.from_list(TensorType(i32, [1]), [size])
