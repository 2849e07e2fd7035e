"""SSA values -> the expressions of a script that compute them.

Ops become parts of an expression as far as that is allowed; whether the expression computes the same ops in the same
order is not decided here: the printer emits it and compares.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence

from xdsl.dialects import arith
from xdsl.dialects.affine import ApplyOp
from xdsl.dialects.builtin import FloatAttr, IndexType, IntegerAttr, IntegerType
from xdsl.dialects.math import AbsFOp, AbsIOp
from xdsl.dialects.memref import LoadOp
from xdsl.dialects.scf import IfOp, YieldOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineConstantExpr, AffineDimExpr, AffineExpr

from weft.analysis.structural_equality import scalar_constant
from weft.dialects.index_map import negated
from weft.dialects.low_access import AccessPtrOp, StrideOp
from weft.frontends.script.values import Buffer, BufferLoad, Leaf, Opaque, Pointer, Stride, Symbol, is_scalar
from weft.support.errors import CompileError
from weft.texpr.dtypes import name_of
from weft.texpr.expr import Cast, Const, Expr, Select, binary, cast_to, compare, unary, unified
from weft.texpr.operators import BinaryKind, Predicate
from weft.texpr.scalar_ops import (
    FLOAT_BINARY,
    FLOAT_PREDICATES,
    FUNCTIONS,
    INTEGER_BINARY,
    INTEGER_PREDICATES,
)

_BINARY = {op: kind for kinds in (INTEGER_BINARY, FLOAT_BINARY) for kind, op in kinds.items()}
_UNARY = {op: name for name, op in FUNCTIONS.items()} | {AbsFOp: "abs", AbsIOp: "abs"}
_INTEGER_PREDICATE = {name: predicate for predicate, name in INTEGER_PREDICATES.items()}
_FLOAT_PREDICATE = {name: predicate for predicate, name in FLOAT_PREDICATES.items()}
_CASTS = (
    arith.ExtFOp,
    arith.TruncFOp,
    arith.SIToFPOp,
    arith.UIToFPOp,
    arith.FPToSIOp,
    arith.ExtSIOp,
    arith.ExtUIOp,
    arith.TruncIOp,
)
_SHARED = (ApplyOp, LoadOp, StrideOp, arith.IndexCastOp)
"""Ops that the emitter writes once when a script has them twice: they may become part of several expressions."""
_AFFINE = {
    AffineBinaryOpKind.Add: BinaryKind.ADD,
    AffineBinaryOpKind.Mul: BinaryKind.MUL,
    AffineBinaryOpKind.FloorDiv: BinaryKind.FLOORDIV,
    AffineBinaryOpKind.Mod: BinaryKind.FLOORMOD,
}


_DEEPEST = 24
"""People do not read expressions that are nested more deeply, nor does Python's parser for ever."""


class NotRaised(Exception):
    """A value has no expression here. `needed`: ops before the statement whose values need names for that."""

    def __init__(self, *needed: Operation) -> None:
        super().__init__()
        self.needed = needed


class Raiser:
    """Makes the expressions of one statement.

    `names` are the values that have names already. Ops in `window`, those just before the statement, become parts of
    expressions and are collected in `taken`; `named` ones never do. Ops from before the window may be computed again
    where the emitter remembers them; these are collected in `repeated`.
    """

    def __init__(
        self,
        names: Mapping[SSAValue, Leaf | Symbol | Buffer | Opaque],
        window: set[Operation],
        named: frozenset[Operation],
    ) -> None:
        self._names = names
        self._window = window
        self._named = named
        self._open: list[Block] = []
        self._depth = 0
        self._memo: MutableMapping[SSAValue, Expr] = {}
        self.taken: set[Operation] = set()
        self.repeated: set[Operation] = set()

    def buffer(self, value: SSAValue) -> Buffer:
        """The buffer that a value is."""
        found = self._names.get(value)
        if isinstance(found, Buffer):
            return found
        owner = value.owner
        raise NotRaised(*([] if isinstance(owner, Block) or owner in self._window else [owner]))

    def pointer(self, value: SSAValue) -> Pointer | Opaque:
        """A pointer that is taken where it is used, or a value that is neither a scalar nor a buffer."""
        found = self._names.get(value)
        if isinstance(found, Opaque):
            return found
        op = value.owner
        if not isinstance(op, AccessPtrOp) or op not in self._window or not value.has_one_use() or op in self._named:
            raise NotRaised(*([] if isinstance(op, Block) or op in self._window else [op]))
        self.taken.add(op)
        indices = tuple(self.value(index) for index in op.indices)
        return Pointer(self.buffer(op.buffer), indices, op.box_sizes, str(op.access.data))

    def argument(self, value: SSAValue) -> Expr:
        """The expression of a scalar argument of a call: an index that is passed as a number is cast."""
        op = value.owner
        named = value in self._names or op in self._named
        if isinstance(op, arith.IndexCastOp) and op in self._window and not named and value.type != IndexType():
            self.taken.add(op)
            return Cast(self.value(op.input), _dtype(value.type))
        return self.value(value)

    def value(self, value: SSAValue) -> Expr:
        """The expression of a scalar. Raises NotRaised."""
        found = self._names.get(value)
        if isinstance(found, Expr):
            return found
        constant = scalar_constant(value)
        if constant is not None:
            return _constant(constant)
        owner = value.owner
        if isinstance(owner, Block) or len(owner.results) != 1:
            raise NotRaised(*([] if isinstance(owner, Block) else [owner]))
        return self._inline(owner)

    def _inline(self, op: Operation) -> Expr:
        shared = isinstance(op, _SHARED)
        ours = op in self._window or op.parent_block() in self._open
        if op in self._named or not (op.results[0].has_one_use() or shared):
            raise NotRaised(*([] if ours else [op]))
        if op in self._window:
            self.taken.add(op)
        elif not ours:
            if not shared:
                raise NotRaised(op)
            self.repeated.add(op)
        return self.op(op)

    def op(self, op: Operation) -> Expr:
        """The expression that computes what `op` gives. Raises NotRaised for ops that no expression computes."""
        if op.attributes:
            raise NotRaised
        result = op.results[0]
        known = self._memo.get(result)
        if known is not None:
            return known
        if self._depth == _DEEPEST:
            raise NotRaised
        self._depth += 1
        try:
            known = self._memo[result] = self._op(op)
        except CompileError:  # the rules of expressions refuse it: dtypes that IR has and scripts have not
            raise NotRaised from None
        finally:
            self._depth -= 1
        return known

    def _op(self, op: Operation) -> Expr:
        match op:
            case LoadOp():
                buffer = self.buffer(op.memref)
                return BufferLoad(buffer, tuple(self.value(index) for index in op.indices), buffer.dtype)
            case StrideOp():
                return Stride(self.buffer(op.buffer), op.dimension.value.data)
            case ApplyOp():
                return self.affine(op.map.data.results[0], op.mapOperands)
            case arith.IndexCastOp():
                return self.value(op.input)
            case arith.CmpiOp():
                return self._compare(
                    _INTEGER_PREDICATE.get(arith.CMPI_COMPARISON_OPERATIONS[op.predicate.value.data]), op
                )
            case arith.CmpfOp():
                return self._float_compare(op)
            case arith.SelectOp():
                values = [self.value(operand) for operand in op.operands]
                return self._select(values[0], values[1], values[2], lazy=False)
            case IfOp():
                return self._lazy(op)
            case _:
                return self._scalar(op)

    def _scalar(self, op: Operation) -> Expr:
        kind = type(op)
        if isinstance(op, _CASTS):
            return cast_to(self.value(op.operands[0]), _dtype(op.results[0].type))
        if kind in _BINARY:
            left, right = (self.value(operand) for operand in op.operands)
            return binary(_BINARY[kind], left, right)
        if kind in _UNARY:
            return unary(_UNARY[kind], self.value(op.operands[0]))
        raise NotRaised

    def _compare(self, predicate: Predicate | None, op: Operation) -> Expr:
        if predicate is None:
            raise NotRaised
        left, right = (self.value(operand) for operand in op.operands)
        return compare(predicate, left, right)

    def _float_compare(self, op: arith.CmpfOp) -> Expr:
        name = arith.CMPF_COMPARISON_OPERATIONS[op.predicate.value.data]
        if name == "uno" and op.lhs is op.rhs:
            return unary("isnan", self.value(op.lhs))
        return self._compare(_FLOAT_PREDICATE.get(name), op)

    def _select(self, condition: Expr, if_true: Expr, if_false: Expr, *, lazy: bool) -> Expr:
        a, b = unified("select", if_true, if_false)
        dtype = a.dtype if a.dtype == b.dtype else "int64"
        return Select(condition, a, b, lazy, dtype, a.is_index and b.is_index)

    def _lazy(self, op: IfOp) -> Expr:
        """`T.if_then_else`, for a condition whose branches only compute a value."""
        condition = self.value(op.cond)
        branches: list[Expr] = []
        for region in op.regions:
            block = region.block
            last = block.last_op
            if not isinstance(last, YieldOp):
                raise NotRaised
            self._open.append(block)
            branches.append(self.value(last.operands[0]))
            self._open.pop()
        return self._select(condition, branches[0], branches[1], lazy=True)

    def affine(self, expr: AffineExpr, operands: Sequence[SSAValue]) -> Expr:
        """An affine expression over SSA values, `operands[d]` for dimension d."""
        try:
            return self._affine(expr, operands)
        except CompileError:
            raise NotRaised from None

    def _affine(self, expr: AffineExpr, operands: Sequence[SSAValue]) -> Expr:
        match expr:
            case AffineConstantExpr():
                return Const(expr.value, "int64")
            case AffineDimExpr():
                return self._dimension(operands[expr.position])
            case AffineBinaryOpExpr() if expr.kind in _AFFINE:
                subtracted = negated(expr.rhs) if expr.kind is AffineBinaryOpKind.Add else None
                if subtracted is not None:
                    return binary(BinaryKind.SUB, self._affine(expr.lhs, operands), self._affine(subtracted, operands))
                left, right = self._affine(expr.lhs, operands), self._affine(expr.rhs, operands)
                return binary(_AFFINE[expr.kind], left, right)
            case _:
                raise NotRaised

    def _dimension(self, value: SSAValue) -> Expr:
        """A dimension of an affine expression: another affine expression would become part of this one."""
        if isinstance(value.owner, ApplyOp) and value not in self._names:
            ours = value.owner in self._window or value.owner.parent_block() in self._open
            raise NotRaised(*([] if ours else [value.owner]))
        return self.value(value)


def _constant(attribute: Attribute) -> Const:
    match attribute:
        case FloatAttr():
            return Const(attribute.value.data, name_of(attribute.type))
        case IntegerAttr() if isinstance(attribute.type, IndexType):
            return Const(attribute.value.data, "int64")
        case IntegerAttr() if attribute.type == IntegerType(1):
            return Const(attribute.value.data != 0, "bool")
        case IntegerAttr() if is_scalar(attribute.type):
            return Const(attribute.value.data, name_of(attribute.type))
        case _:
            raise NotRaised


def _dtype(type: Attribute) -> str:
    if not is_scalar(type) or isinstance(type, IndexType):
        raise NotRaised
    return name_of(type)
