"""Raise ops to the expressions of a script that compute them.

Raising does not preserve the order and sharing of ops: each statement is emitted as by the parser, and compared.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from xdsl.dialects import arith
from xdsl.dialects.affine import ApplyOp
from xdsl.dialects.builtin import FloatAttr, IndexType, IntegerAttr, MemRefType
from xdsl.dialects.math import AbsFOp, AbsIOp
from xdsl.dialects.memref import LoadOp
from xdsl.dialects.scf import IfOp, YieldOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineConstantExpr, AffineDimExpr, AffineExpr

from weft.analysis.structural_equality import Difference, compare_headers, compare_ops, scalar_constant
from weft.dialects.element_types import STORED
from weft.dialects.index_map import negated
from weft.dialects.low_access import AccessPtrOp, StrideOp
from weft.frontends.script.emit import ScriptEmitter
from weft.frontends.script.text import Operand
from weft.frontends.script.values import (
    Buffer,
    BufferLoad,
    Leaf,
    Opaque,
    Pointer,
    Stride,
    Symbol,
    is_scalar,
    named_value,
)
from weft.support.errors import CompileError
from weft.texpr import math
from weft.texpr.expr import (
    FUNCTIONS,
    UNSIGNED_OPS,
    BinaryKind,
    Cast,
    Const,
    Expr,
    Predicate,
    binary,
    bits,
    cast_to,
    compare,
    has_sign,
    is_integer,
    name_of,
    reinterpret,
    unary,
)

_BINARY = {
    op: kind for kind in BinaryKind if kind is not BinaryKind.FLOORMOD for op in (kind.integer_op, kind.float_op)
} | {
    unsigned_op: kind
    for kind in reversed(BinaryKind)
    if kind.integer_op is not None and (unsigned_op := UNSIGNED_OPS.get(kind.integer_op)) is not None
}
_UNARY = {op: name for name, op in FUNCTIONS.items()} | {AbsFOp: "abs", AbsIOp: "abs"}
_SIGNED = frozenset(UNSIGNED_OPS)
_UNSIGNED = frozenset(UNSIGNED_OPS.values())
_INTEGER_PREDICATE = {predicate.of(signed=signed): predicate for predicate in Predicate for signed in (True, False)}
_FLOAT_PREDICATE = {predicate.of_floats: predicate for predicate in Predicate}
_CASTS = (
    arith.ExtFOp,
    arith.TruncFOp,
    arith.SIToFPOp,
    arith.UIToFPOp,
    arith.FPToSIOp,
    arith.FPToUIOp,
    arith.ExtSIOp,
    arith.ExtUIOp,
    arith.TruncIOp,
)
_SHARED = (ApplyOp, LoadOp, StrideOp, arith.IndexCastOp)
"""Ops that equal expressions share, so that several expressions may contain them."""
_AFFINE = {
    AffineBinaryOpKind.Add: BinaryKind.ADD,
    AffineBinaryOpKind.Mul: BinaryKind.MUL,
    AffineBinaryOpKind.FloorDiv: BinaryKind.FLOORDIV,
    AffineBinaryOpKind.Mod: BinaryKind.FLOORMOD,
}
_DEEPEST = 24
"""The nesting limit of printed expressions, for readability and Python's parser."""


class NotRaised(Exception):
    """Results of the earlier ops `needed` must be named to express a value."""

    def __init__(self, *needed: Operation) -> None:
        super().__init__()
        self.needed = frozenset(needed)


class Mismatch(Exception):
    """A statement would read back as other ops."""


class Restart(Exception):
    """The function must be printed again, with names for results of `named` or with `plain` declarations."""

    def __init__(self, named: frozenset[Operation] = frozenset(), plain: bool = False) -> None:
        super().__init__()
        self.named = named
        self.plain = plain


class Raiser:
    """Raises the ops of one statement to expressions.

    Values named in `trip` are these names. Ops in `window` directly precede the statement and become parts of
    expressions; earlier ops in `repeated` are recomputed, if the emitter shares them.
    """

    def __init__(self, trip: RoundTrip, window: Sequence[Operation]) -> None:
        self._names = trip.names
        self._window = set(window)
        self._named = trip.named
        self._open: list[Block] = []
        self._depth = 0
        self._memo: dict[SSAValue, Expr] = {}
        self.repeated: set[Operation] = set()
        self.header: Operation | None = None
        """The op with regions that the statement inserts later."""

    def buffer(self, value: SSAValue) -> Buffer:
        found = self._names.get(value)
        if isinstance(found, Buffer):
            return found
        raise self._not_raised(value)

    def _is_ours(self, op: Operation) -> bool:
        return op in self._window or op.parent_block() in self._open

    def _not_raised(self, value: SSAValue) -> NotRaised:
        owner = value.owner
        return NotRaised(*([] if isinstance(owner, Block) or self._is_ours(owner) else [owner]))

    def pointer(self, value: SSAValue) -> Pointer | Opaque:
        """A pointer created at its use, or a value that is neither a scalar nor a buffer."""
        found = self._names.get(value)
        if isinstance(found, Opaque):
            return found
        op = value.owner
        if not isinstance(op, AccessPtrOp) or op not in self._window or not value.has_one_use() or op in self._named:
            raise self._not_raised(value)
        indices = tuple(self.value(index) for index in op.indices)
        return Pointer(self.buffer(op.buffer), indices, op.box_sizes, str(op.access.data))

    def argument(self, value: SSAValue) -> Expr:
        op = value.owner
        named = value in self._names or op in self._named
        if isinstance(op, arith.IndexCastOp) and op in self._window and not named and value.type != IndexType():
            return Cast(self.value(op.input), _dtype(value.type))
        return self.value(value)

    def operand(self, value: SSAValue) -> Operand:
        if isinstance(value.type, MemRefType):
            return self.buffer(value)
        if not is_scalar(value.type):
            return self.pointer(value)
        expr = self.argument(value)
        if expr.is_index and not isinstance(expr, Const) and not isinstance(value.type, IndexType):
            raise NotRaised
        return expr

    def value(self, value: SSAValue) -> Expr:
        """Raises NotRaised."""
        found = self._names.get(value)
        if isinstance(found, Expr):
            return found
        if found is not None:  # naming it again does not help
            raise NotRaised
        constant = scalar_constant(value)
        if constant is not None:
            return _constant(constant)
        owner = value.owner
        if isinstance(owner, Block) or len(owner.results) != 1:
            raise self._not_raised(value)
        return self._inline(owner)

    def _inline(self, op: Operation) -> Expr:
        shared = isinstance(op, _SHARED)
        ours = self._is_ours(op)
        if op in self._named or not (shared or (ours and op.results[0].has_one_use())):
            raise self._not_raised(op.results[0])
        if not ours:
            self.repeated.add(op)
        return self.op(op)

    def op(self, op: Operation) -> Expr:
        """Raises NotRaised for ops without an expression."""
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
        except CompileError:  # dtypes that exist only in IR
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
                name = arith.CMPI_COMPARISON_OPERATIONS[op.predicate.value.data]
                signed = {"s": True, "u": False}.get(name[0])
                return self._compare(_INTEGER_PREDICATE.get(name), op, signed)
            case arith.CmpfOp():
                return self._float_compare(op)
            case arith.SelectOp():
                condition, *branches = map(self.value, op.operands)
                return math.select(condition, *one_sign(branches))
            case IfOp():
                return self._lazy(op)
            case arith.BitcastOp():
                return self._stored(op)
            case arith.ExtUIOp() if isinstance(op.input.owner, arith.BitcastOp) and self._is_ours(op.input.owner):
                return self._stored(op.input.owner)
            case _:
                return self._scalar(op)

    def _scalar(self, op: Operation) -> Expr:
        kind = type(op)
        if isinstance(op, _CASTS):
            return self._cast(op)
        if kind in _BINARY:
            signed = True if kind in _SIGNED else False if kind in _UNSIGNED else None
            left, right = one_sign([self.value(operand) for operand in op.operands], signed)
            return binary(_BINARY[kind], left, right)
        if kind in _UNARY:
            return unary(_UNARY[kind], self.value(op.operands[0]))
        raise NotRaised

    def _cast(self, op: Operation) -> Expr:
        if isinstance(op, arith.ExtFOp) and (dtype := name_of(op.input.type)) in STORED:
            return self._loaded(op, dtype)
        source, target = self.value(op.operands[0]), _dtype(op.results[0].type)
        match op:
            case arith.FPToUIOp():
                target = unsigned(target)
            case arith.ExtSIOp() | arith.SIToFPOp():
                source = with_sign(source, signed=True)
            case arith.ExtUIOp() if is_integer(source.dtype) and not has_sign(source.dtype):
                target = unsigned(target)
            case arith.ExtUIOp() | arith.UIToFPOp():
                source = with_sign(source, signed=False)
            case _:
                pass
        return cast_to(source, target)

    def _loaded(self, op: arith.ExtFOp, dtype: str) -> Expr:
        byte: SSAValue = op.input
        while isinstance(byte.owner, arith.BitcastOp | arith.TruncIOp) and self._is_ours(byte.owner):
            byte = byte.owner.operands[0]
        source = self.value(byte)
        if source.dtype != dtype:
            raise NotRaised
        return cast_to(source, "float32")

    def _stored(self, op: arith.BitcastOp) -> Expr:
        truncation, dtype = op.input.owner, name_of(op.input.type)
        if dtype not in STORED:
            return reinterpret(self.value(op.input), _dtype(op.result.type))
        if not isinstance(truncation, arith.TruncFOp) or not self._is_ours(truncation):
            raise NotRaised
        return cast_to(self.value(truncation.input), dtype)

    def _compare(self, predicate: Predicate | None, op: Operation, signed: bool | None = None) -> Expr:
        if predicate is None:
            raise NotRaised
        left, right = one_sign([self.value(operand) for operand in op.operands], signed)
        return compare(predicate, left, right)

    def _float_compare(self, op: arith.CmpfOp) -> Expr:
        name = arith.CMPF_COMPARISON_OPERATIONS[op.predicate.value.data]
        if name == "uno" and op.lhs is op.rhs:
            return unary("isnan", self.value(op.lhs))
        return self._compare(_FLOAT_PREDICATE.get(name), op)

    def _lazy(self, op: IfOp) -> Expr:
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
        return math.if_then_else(condition, *one_sign(branches))

    def affine(self, expr: AffineExpr, operands: Sequence[SSAValue]) -> Expr:
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
        if isinstance(value.owner, ApplyOp) and value not in self._names:
            raise self._not_raised(value)
        return self.value(value)


def with_sign(expr: Expr, *, signed: bool) -> Expr:
    """Integers have the same value in IR; other expressions are unchanged."""
    if not is_integer(expr.dtype) or has_sign(expr.dtype) == signed:
        return expr
    dtype = expr.dtype.removeprefix("u") if signed else unsigned(expr.dtype)
    if isinstance(expr, Const):  # an ambiguous constant is stored as signed
        return Const(int(expr.value) % (1 << bits(dtype)), dtype)
    return expr if expr.is_index else cast_to(expr, dtype)


def one_sign(operands: Sequence[Expr], signed: bool | None = None) -> list[Expr]:
    """The sign is by default that of the first operand that is not a constant."""
    if signed is None:
        first = next((operand for operand in operands if not isinstance(operand, Const)), operands[0])
        signed = has_sign(first.dtype)
    return [with_sign(operand, signed=signed) for operand in operands]


def unsigned(dtype: str) -> str:
    return f"u{dtype}"


def _constant(attribute: Attribute) -> Const:
    if not isinstance(attribute, FloatAttr | IntegerAttr) or not is_scalar(attribute.type):
        raise NotRaised
    number = attribute.value.data
    if isinstance(attribute.type, IndexType):
        return Const(number, "int64")
    dtype = name_of(attribute.type)
    return Const(number != 0 if dtype == "bool" else number, dtype)


def _dtype(type: Attribute) -> str:
    if not is_scalar(type) or isinstance(type, IndexType):
        raise NotRaised
    return name_of(type)


class RoundTrip:
    """Builds the function that the printed text will be parsed into."""

    def __init__(self, entry: Block, named: frozenset[Operation]) -> None:
        self.emitter = ScriptEmitter(entry)
        self.names: dict[SSAValue, Leaf | Symbol | Buffer | Opaque] = {}
        """Printed values -> named values of the rebuilt function."""
        self.named = named
        self._values: dict[SSAValue, SSAValue] = {}
        """Values of the rebuilt function -> printed values."""

    def bind(
        self,
        printed: SSAValue,
        mine: SSAValue,
        name: str,
        extent: int | Expr | None = None,
        element: Attribute | None = None,
    ) -> None:
        """`extent` is that of a loop variable; for `element` see `named_value`."""
        self.names[printed] = named_value(mine, name, element) if extent is None else Leaf.of(mine, name, extent)
        self._values[mine] = printed

    def operand(self, operand: Operand, type: Attribute) -> SSAValue:
        if isinstance(operand, Buffer | Opaque):
            return operand.value
        if isinstance(operand, Pointer):
            return self.emitter.pointer(operand)
        return self.emitter.index(operand) if isinstance(type, IndexType) else self.emitter.argument(operand)

    @contextmanager
    def attempt(self, window: Sequence[Operation], header: Operation | None = None) -> Generator[Raiser]:
        """Emit ops and compare them with `window`. Roll back and raise Mismatch if they differ.

        With `header`, the op in `raiser.header` must equal `header` except for its regions. Raises Restart if values
        from before the window need names.
        """
        raiser = Raiser(self, window)
        block = Block()
        with self.emitter.trial(block) as keep:
            try:
                yield raiser
                if self._equal(list(block.ops), window, raiser.header, header):
                    keep()
                    return
            except NotRaised as failure:
                if failure.needed:
                    raise Restart(failure.needed) from None
                raiser.repeated.clear()
            except (CompileError, Mismatch):
                pass
        if raiser.header is not None:
            raiser.header.erase()
        for op in reversed(list(block.ops)):
            op.detach()
            op.erase()
        if raiser.repeated:
            raise Restart(frozenset(raiser.repeated))
        raise Mismatch

    def _equal(
        self,
        emitted: Sequence[Operation],
        window: Sequence[Operation],
        made: Operation | None,
        header: Operation | None,
    ) -> bool:
        if len(emitted) != len(window):
            return False
        values: dict[SSAValue, SSAValue] = {}
        overlay = ChainMap(values, self._values)
        try:
            for mine, other in zip(emitted, window, strict=True):
                compare_ops(mine, other, overlay)
            if made is not None and header is not None:
                compare_headers(made, header, overlay)
        except Difference:
            return False
        self._values.update(values)
        return True
