"""Emission of expressions as the IR of element regions, each once per scope, at first use.

The affine part of an index expression is an `affine.apply` of the rest: products of symbols, elements of tensors, etc.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import cast

from xdsl.dialects import arith
from xdsl.dialects import math as math_ops
from xdsl.dialects.affine import ApplyOp
from xdsl.dialects.arith import ConstantOp, IndexCastOp, SelectOp
from xdsl.dialects.builtin import (
    AffineMapAttr,
    AnyFloat,
    Float32Type,
    Float64Type,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    LocationAttr,
    UnknownLoc,
    f32,
    i64,
)
from xdsl.dialects.func import CallOp
from xdsl.dialects.scf import IfOp
from xdsl.dialects.scf import YieldOp as ScfYieldOp
from xdsl.dialects.tensor import DimOp, ExtractOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr
from xdsl.irdl import IRDLOperation

from weft.dialects.element_types import STORED
from weft.dialects.index_map import canonical_map
from weft.dialects.integer_arith import constant_integer
from weft.dialects.intervals import INTERVALS_OF_ARITH, UNBOUNDED, Interval, interval_of
from weft.dialects.te import UNSIGNED, ReduceOp, YieldOp
from weft.dialects.upstream.arith import RemFOp
from weft.support.errors import InternalError
from weft.support.locations import SourceLocation
from weft.support.narrow_floats import SMALL_FLOATS
from weft.texpr.expr import (
    DIVISIONS,
    FUNCTIONS,
    UNSIGNED_OPS,
    Accumulator,
    Binary,
    BinaryKind,
    Cast,
    Compare,
    Const,
    Expr,
    Intrinsic,
    IterVar,
    Number,
    Predicate,
    Reinterpret,
    Select,
    Unary,
    Var,
    bits,
    error,
    has_sign,
    is_float,
    type_of,
    value_type_of,
)
from weft.texpr.reductions import CustomCombiner, ReduceValue, Reduction
from weft.texpr.shapes import Extent, value_name
from weft.texpr.tensor import Read, Tensor

_INDEX = IndexType()


class ElementEmitter:
    """Emits into blocks, first the entry block of a function."""

    def __init__(self, entry: Block, tensors: Mapping[Tensor, SSAValue], variables: Mapping[Var, SSAValue]) -> None:
        self.place: SourceLocation | None = None
        """The source location of the expressions being emitted."""
        self._entry = entry
        self._tensors = tensors
        self._variables = variables
        self._iterators: dict[IterVar, SSAValue] = {}
        self._constants: dict[tuple[Attribute, float], SSAValue] = {}
        self._last_constant: Operation | None = None
        self._extents: dict[object, SSAValue] = {}
        self._blocks: list[Block] = [entry]
        self._written: list[dict[object, SSAValue]] = [{}]
        self._alive: dict[int, Expr | Reduction] = {}

    @property
    def location(self) -> LocationAttr:
        return UnknownLoc() if self.place is None else self.place.attribute()

    def append(self, op: Operation, hint: str | None = None) -> SSAValue:
        self.finish(op)
        if hint is not None:
            op.results[0].name_hint = hint
        return op.results[0]

    @contextmanager
    def inside(self, block: Block, iterators: Mapping[IterVar, SSAValue] | None = None) -> Generator[None]:
        """Emit into a region of an op not appended yet; values are not reused outside."""
        added = dict(iterators or {})
        self._blocks.append(block)
        self._written.append({})
        self._iterators.update(added)
        try:
            yield
        finally:
            self._blocks.pop()
            self._written.pop()
            for iterator in added:
                del self._iterators[iterator]

    def finish(self, op: Operation) -> None:
        op.location = self.location
        self._blocks[-1].add_op(op)

    def _known(self, key: object) -> SSAValue | None:
        for scope in reversed(self._written):
            if key in scope:
                return scope[key]
        return None

    def _remember(self, key: object, value: SSAValue) -> SSAValue:
        self._written[-1][key] = value
        return value

    def _once(self, key: object, make: Callable[[], Operation], hint: str | None = None) -> SSAValue:
        known = self._known(key)
        return self._remember(key, self.append(make(), hint)) if known is None else known

    def _identity_of(self, expr: Expr | Reduction) -> int:
        """Keeps `expr` alive, because Python reuses identities."""
        self._alive[id(expr)] = expr
        return id(expr)

    def bind(self, expr: Expr, value: SSAValue) -> None:
        """Use `value` for `expr` in this and nested blocks."""
        self._remember(self._identity_of(expr), value)

    # Constants and extents: at the top

    def constant(self, number: Number, type: Attribute) -> SSAValue:
        attribute = FloatAttr(number, type) if isinstance(type, AnyFloat) else _integer(int(number), type)
        # -0.0 equals 0.0 in Python.
        key = (attribute, math.copysign(1.0, number))
        known = self._constants.get(key)
        if known is not None:
            return known
        op = ConstantOp(attribute)
        op.result.name_hint = _constant_hint(number, type)
        if self._last_constant is not None:
            self._entry.insert_op_after(op, self._last_constant)
        elif self._entry.first_op is not None:
            self._entry.insert_op_before(op, self._entry.first_op)
        else:
            self._entry.add_op(op)
        self._last_constant = op
        self._constants[key] = op.result
        return op.result

    def extent(self, extent: Extent) -> int | SSAValue:
        if isinstance(extent, int):
            return extent
        key = self._extent_key(extent)
        if key not in self._extents:
            blocks, written = self._blocks, self._written
            self._blocks, self._written = blocks[:1], written[:1]
            self._extents[key] = self.index(extent)
            self._blocks, self._written = blocks, written
        return self._extents[key]

    def _extent_key(self, extent: Expr) -> object:
        if isinstance(extent, Binary):
            return extent.kind, self._extent_key(extent.left), self._extent_key(extent.right)
        return extent.value if isinstance(extent, Const) else self._identity_of(extent)

    def value(self, expr: Expr, dtype: str | None = None) -> SSAValue:
        """The value in its dtype; index expressions get `dtype`."""
        target = dtype or expr.dtype
        if isinstance(expr, Const):
            return self.constant(float(expr.value) if is_float(target) else expr.value, value_type_of(target))
        if not expr.is_index:
            return self._native(expr)
        index = self.index(expr)
        return self._once(("cast", index, target), lambda: IndexCastOp(index, value_type_of(target)))

    def index(self, expr: Expr) -> SSAValue:
        key = (self._identity_of(expr), "index")
        known = self._known(key)
        if known is not None:
            return known
        operands: list[SSAValue] = []
        form = self._affine(expr, operands)
        if isinstance(form, AffineDimExpr):
            return self._remember(key, operands[form.position])
        if isinstance(form, AffineConstantExpr):
            return self._remember(key, self.constant(form.value, _INDEX))
        affine_map, values = canonical_map([form], operands)
        properties = {"map": AffineMapAttr(affine_map)}
        result = self._once(
            (affine_map, values),
            lambda: ApplyOp.create(operands=values, result_types=[_INDEX], properties=properties),
        )
        return self._remember(key, result)

    def affine_forms(self, exprs: Sequence[Expr]) -> tuple[list[AffineExpr], list[SSAValue]]:
        operands: list[SSAValue] = []
        return [self._affine(expr, operands) for expr in exprs], operands

    def _affine(self, expr: Expr, operands: list[SSAValue]) -> AffineExpr:
        if isinstance(expr, Const):
            return AffineConstantExpr(int(expr.value))
        if isinstance(expr, IterVar):
            low = AffineConstantExpr(expr.low) if isinstance(expr.low, int) else self._affine(expr.low, operands)
            return _dimension(self._iterator(expr), operands) + low
        if isinstance(expr, Binary) and _is_of_index_width(expr):
            match expr.kind:
                case BinaryKind.ADD:
                    return self._affine(expr.left, operands) + self._affine(expr.right, operands)
                case BinaryKind.SUB:
                    return self._affine(expr.left, operands) + self._affine(expr.right, operands) * -1
                case BinaryKind.MUL if isinstance(expr.right, Const):
                    return self._affine(expr.left, operands) * int(expr.right.value)
                case BinaryKind.MUL if isinstance(expr.left, Const):
                    return self._affine(expr.right, operands) * int(expr.left.value)
                case BinaryKind.FLOORDIV if isinstance(expr.right, Const) and expr.right.value > 0:
                    return self._affine(expr.left, operands) // int(expr.right.value)
                case BinaryKind.FLOORMOD if isinstance(expr.right, Const) and expr.right.value > 0:
                    return self._affine(expr.left, operands) % int(expr.right.value)
                case _:
                    pass
        return _dimension(self._index_leaf(expr), operands)

    def is_not_negative(self, value: SSAValue) -> bool:
        low = self._range(value)[0]
        return low is not None and low >= 0

    def _range(self, value: SSAValue) -> Interval:
        if not isinstance(value.type, IndexType):
            return UNBOUNDED
        op = value.owner
        if isinstance(op, Block):
            return UNBOUNDED if op is self._blocks[0] else (0, None)
        if isinstance(op, DimOp):
            return 0, None
        number = constant_integer(value)
        if number is not None:
            return number, number
        if isinstance(op, ApplyOp):
            return interval_of(op.map.data.results[0], lambda at: self._range(op.mapOperands[at]))
        combine = INTERVALS_OF_ARITH.get(type(op))
        return UNBOUNDED if combine is None else combine(*(self._range(operand) for operand in op.operands))

    def _index_leaf(self, expr: Expr) -> SSAValue:
        key = (self._identity_of(expr), "leaf")
        known = self._known(key)
        if known is not None:
            return known
        if isinstance(expr, Var) and expr.is_index:
            return self._variable(expr)
        if isinstance(expr, Binary) and _is_of_index_width(expr):
            operands = self.index(expr.left), self.index(expr.right)
            return self._remember(key, _binary(self, expr.kind, *operands))
        if isinstance(expr, Select) and _is_of_index_width(expr):
            return self._remember(key, self._select(expr, self.index))
        if not expr.is_index:
            return self._remember(key, self.append(IndexCastOp(self._as_signed(expr), _INDEX)))
        raise InternalError(f"no index value for {type(expr).__name__} {expr}")

    def _as_signed(self, expr: Expr) -> SSAValue:
        """A signed integer, since index casts sign-extend."""
        if has_sign(expr.dtype) or bits(expr.dtype) == 64:
            return self._native(expr)
        value = self._native(expr)
        return self._once(("extend", value), lambda: arith.ExtUIOp(value, i64))

    def _native(self, expr: Expr) -> SSAValue:
        """Non-index expressions. Iterative: sums can be long."""
        pending = [expr]
        while pending:
            top = pending[-1]
            if self._known(id(top)) is not None:
                pending.pop()
            elif missing := [part for part in _operands(top) if self._known(id(part)) is None]:
                pending += reversed(missing)
            else:
                self._remember(self._identity_of(top), self._write(pending.pop()))
        value = self._known(id(expr))
        if value is None:
            raise InternalError(f"{expr} was not emitted")
        return value

    def _write(self, expr: Expr) -> SSAValue:
        match expr:
            case Binary():
                operands = self.value(expr.left, expr.dtype), self.value(expr.right, expr.dtype)
                return _binary(self, expr.kind, *operands, signed=has_sign(expr.dtype))
            case Unary():
                return _unary(self, expr.function, self.value(expr.operand))
            case Intrinsic():
                operands = [self.value(argument) for argument in expr.arguments]
                return self.append(CallOp(expr.function, operands, [value_type_of(expr.dtype)]))
            case Compare():
                as_value = self.index if expr.left.is_index and expr.right.is_index else self.value
                operands = as_value(expr.left), as_value(expr.right)
                return _compare(self, expr.predicate, *operands, signed=has_sign(expr.left.dtype))
            case Select():
                return self._select(expr, lambda branch: self.value(branch, expr.dtype))
            case Cast():
                return _cast(self, self.value(expr.operand), expr.operand.dtype, expr.dtype)
            case Reinterpret():
                value = self.value(expr.operand, expr.operand.dtype)
                return self.append(arith.BitcastOp(value, value_type_of(expr.dtype)))
            case Read():
                return self._read(expr)
            case ReduceValue():
                return self._reduction(expr.reduction)[expr.position]
            case Var():
                return self._variable(expr)
            case Accumulator():
                raise error(f"{expr} of a combiner is used outside it", self.place)
            case _:
                raise InternalError(f"no value for {type(expr).__name__} {expr}")

    def _iterator(self, iterator: IterVar) -> SSAValue:
        found = self._iterators.get(iterator)
        if found is not None:
            return found
        if iterator.is_reduce:
            name = iterator.name
            message = f"reduce axis {name} is used outside a reduction over it: write te.sum(..., axis={name})"
        else:
            message = f"index {iterator.name} belongs to another compute"
        raise error(message, self.place)

    def _variable(self, variable: Var) -> SSAValue:
        found = self._variables.get(variable)
        if found is None:
            raise error(
                f"the value of variable {variable.name} is not known: it is no extent of a listed placeholder; "
                f"list it as a parameter",
                self.place,
            )
        return found

    def _read(self, read: Read) -> SSAValue:
        source = self._tensors.get(read.tensor)
        if source is None:
            raise error(f"placeholder {read.tensor.name} is read, but it is not in the list of parameters", self.place)
        indices = [self.index(index) for index in read.indices]
        hint = value_name(read.tensor.name.lower())
        return self._once((source, *indices), lambda: ExtractOp(source, indices, value_type_of(read.dtype)), hint)

    def _select(self, select: Select, emit: Callable[[Expr], SSAValue]) -> SSAValue:
        condition = self.value(select.condition)
        if not select.lazy:
            return self.append(SelectOp(condition, emit(select.if_true), emit(select.if_false)))
        branches: list[Block] = []
        for branch in (select.if_true, select.if_false):
            block = Block()
            with self.inside(block):
                self.finish(ScfYieldOp(emit(branch)))
            branches.append(block)
        chosen, other = branches
        results = [value.type for value in block_results(chosen)]
        return self.append(IfOp(condition, results, Region(chosen), Region(other)))

    def _reduction(self, reduction: Reduction) -> Sequence[SSAValue]:
        keys = [(self._identity_of(reduction), position) for position in range(len(reduction.values))]
        known = self._known(keys[0])
        if known is not None:
            return known.owner.results if isinstance(known.owner, Operation) else ()
        extents = [self.extent(axis.extent) for axis in reduction.axes]
        types = [value_type_of(value.dtype) for value in reduction.values]
        combiner = reduction.combiner
        if not has_sign(reduction.values[0].dtype):
            combiner = UNSIGNED.get(combiner, combiner)
        op = ReduceOp.over(combiner, extents, types, [value_name(axis.name) for axis in reduction.axes])
        with self.inside(op.body.block, dict(zip(reduction.axes, op.axes, strict=True))):
            self.finish(YieldOp(*(self.value(value) for value in reduction.values)))
        if reduction.custom is not None:
            op.add_region(self._combine(reduction.custom, types))
            identity = Block()
            with self.inside(identity):
                self.finish(YieldOp(*(self.value(expr) for expr in reduction.custom.identity)))
            op.add_region(Region(identity))
        self.append(op)
        for key, result in zip(keys, op.results, strict=True):
            self._remember(key, result)
        return op.results

    def _combine(self, custom: CustomCombiner, types: Sequence[Attribute]) -> Region:
        block = Block(arg_types=[*types, *types])
        accumulators = (*custom.lefts, *custom.rights)
        for argument, role in zip(block.args, ["left"] * len(types) + ["right"] * len(types), strict=True):
            argument.name_hint = role
        with self.inside(block):
            for accumulator, argument in zip(accumulators, block.args, strict=True):
                self._remember(self._identity_of(accumulator), argument)
            self.finish(YieldOp(*(self.value(expr) for expr in custom.combined)))
        return Region(block)


def _operands(expr: Expr) -> list[Expr]:
    match expr:
        case Select() if expr.lazy:
            parts = (expr.condition,)
        case Binary() | Unary() | Intrinsic() | Compare() | Select() | Cast() | Reinterpret():
            parts = expr.parts
        case _:
            return []
    return [part for part in parts if not part.is_index and not isinstance(part, Const)]


def _integer(number: int, type: Attribute) -> IntegerAttr[IntegerType | IndexType]:
    if not isinstance(type, IntegerType | IndexType):
        raise InternalError(f"no integer constant of type {type}")
    return IntegerAttr(number, type)


def block_results(block: Block) -> Sequence[SSAValue]:
    return () if block.last_op is None else block.last_op.operands


def _is_of_index_width(expr: Expr) -> bool:
    """Whether index arithmetic, which analyses can follow, may compute `expr`."""
    return expr.is_index or expr.dtype == "int64"


def _dimension(value: SSAValue, operands: list[SSAValue]) -> AffineExpr:
    if value not in operands:
        operands.append(value)
    return AffineExpr.dimension(operands.index(value))


def _constant_hint(number: Number, type: Attribute) -> str:
    if number in (0, 1) and not isinstance(type, IndexType):
        return ("false", "true")[int(number)] if isinstance(number, bool) else ("zero", "one")[int(number)]
    if isinstance(number, float):
        return "cst"
    suffix = "" if isinstance(type, IndexType) else f"_{type}"
    return f"c{number}{suffix}" if number >= 0 else f"cm{-number}{suffix}"


_FAST_MATH = arith.FastMathFlagsAttr("none")
_OVERFLOW = arith.IntegerOverflowAttr("none")


@cache
def _defaults(op_class: type[Operation]) -> Mapping[str, Attribute]:
    if not issubclass(op_class, IRDLOperation):
        raise InternalError(f"{op_class} declares no properties")
    known = op_class.get_irdl_definition().properties
    return {name: flags for name, flags in (("fastmath", _FAST_MATH), ("overflowFlags", _OVERFLOW)) if name in known}


def _apply(body: ElementEmitter, op_class: type[Operation], *operands: SSAValue) -> SSAValue:
    types = [operands[0].type]
    return body.append(op_class.create(operands=operands, result_types=types, properties=_defaults(op_class)))


def _binary(
    body: ElementEmitter, kind: BinaryKind, left: SSAValue, right: SSAValue, *, signed: bool = True
) -> SSAValue:
    if kind in DIVISIONS and isinstance(left.type, AnyFloat):
        return _float_division(body, kind, left, right)
    if kind is BinaryKind.FLOORMOD and signed:
        return _floor_remainder(body, left, right)
    op_class = kind.float_op if isinstance(left.type, AnyFloat) else kind.integer_op
    if op_class is None:
        raise InternalError(f"no op computes {kind} of {left.type}")
    if kind is BinaryKind.POW and not signed:
        return _unsigned_power(body, left, right)
    return _apply(body, op_class if signed else UNSIGNED_OPS.get(op_class, op_class), left, right)


def _unsigned_power(body: ElementEmitter, base: SSAValue, exponent: SSAValue) -> SSAValue:
    """Squares the power with half the exponent: `math.ipowi` takes signed exponents."""
    one = body.constant(1, base.type)
    root = _apply(body, math_ops.IPowIOp, base, _apply(body, arith.ShRUIOp, exponent, one))
    is_odd = body.append(arith.CmpiOp(_apply(body, arith.AndIOp, exponent, one), one, "eq"))
    square = _apply(body, arith.MuliOp, root, root)
    return _apply(body, arith.MuliOp, square, body.append(arith.SelectOp(is_odd, base, one)))


def _floor_remainder(body: ElementEmitter, left: SSAValue, right: SSAValue) -> SSAValue:
    """The remainder with the sign of `right`."""
    remainder = _apply(body, arith.RemSIOp, left, right)
    if body.is_not_negative(left) and body.is_not_negative(right):
        return remainder
    zero = body.constant(0, left.type)
    if (constant_integer(right) or 0) > 0 or body.is_not_negative(right):
        wrong = body.append(arith.CmpiOp(remainder, zero, "slt"))
    else:
        signs = _apply(body, arith.XOrIOp, remainder, right)
        differ = body.append(arith.CmpiOp(signs, zero, "slt"))
        inexact = body.append(arith.CmpiOp(remainder, zero, "ne"))
        wrong = _apply(body, arith.AndIOp, differ, inexact)
    shifted = _apply(body, arith.AddiOp, remainder, right)
    return body.append(arith.SelectOp(wrong, shifted, remainder))


def _float_division(body: ElementEmitter, kind: BinaryKind, left: SSAValue, right: SSAValue) -> SSAValue:
    if kind is BinaryKind.TRUNCMOD:
        return _apply(body, RemFOp, left, right)
    type_ = cast("AnyFloat", left.type)
    if type_.bitwidth < 32:
        wide = (_convert(body, arith.ExtFOp, operand, f32) for operand in (left, right))
        return _convert(body, arith.TruncFOp, _float_division(body, kind, *wide), type_)
    match kind:
        case BinaryKind.FLOORMOD:
            remainder, is_wrong = _float_remainder(body, left, right)
            return body.append(SelectOp(is_wrong, _apply(body, arith.AddfOp, remainder, right), remainder))
        case BinaryKind.TRUNCDIV:
            return _apply(body, math_ops.TruncOp, _apply(body, arith.DivfOp, left, right))
        case _:
            return _float_floor_quotient(body, left, right)


def _float_remainder(body: ElementEmitter, left: SSAValue, right: SSAValue) -> tuple[SSAValue, SSAValue]:
    """The remainder with the sign of `left`, and whether floor division's differs."""
    zero, remainder = body.constant(0.0, left.type), _apply(body, RemFOp, left, right)
    signs = (body.append(arith.CmpfOp(value, zero, "olt")) for value in (remainder, right))
    is_inexact = body.append(arith.CmpfOp(remainder, zero, "une"))
    return remainder, _apply(body, arith.AndIOp, is_inexact, _apply(body, arith.XOrIOp, *signs))


def _float_floor_quotient(body: ElementEmitter, left: SSAValue, right: SSAValue) -> SSAValue:
    """Exact: 1.0 // 0.1 is 9, although 1.0 / 0.1 is rounded to 10, because the remainder is subtracted first. Source:
    Python's `float_floor_div`, as in NumPy and PyTorch.
    """
    zero, half, one = (body.constant(number, left.type) for number in (0.0, 0.5, 1.0))
    remainder, is_wrong = _float_remainder(body, left, right)
    plain = _apply(body, arith.DivfOp, left, right)
    whole = _apply(body, arith.DivfOp, _apply(body, arith.SubfOp, left, remainder), right)
    whole = body.append(SelectOp(is_wrong, _apply(body, arith.SubfOp, whole, one), whole))
    floor = _apply(body, math_ops.FloorOp, whole)
    is_less = body.append(arith.CmpfOp(_apply(body, arith.SubfOp, whole, floor), half, "ogt"))
    floor = body.append(SelectOp(is_less, _apply(body, arith.AddfOp, floor, one), floor))
    is_zero = body.append(arith.CmpfOp(whole, zero, "oeq"))
    floor = body.append(SelectOp(is_zero, _apply(body, math_ops.CopySignOp, zero, plain), floor))
    by_zero = body.append(arith.CmpfOp(right, zero, "oeq"))
    return body.append(SelectOp(by_zero, plain, floor))


def _compare(
    body: ElementEmitter, predicate: Predicate, left: SSAValue, right: SSAValue, *, signed: bool = True
) -> SSAValue:
    if isinstance(left.type, AnyFloat):
        return body.append(arith.CmpfOp(left, right, predicate.of_floats))
    return body.append(arith.CmpiOp(left, right, predicate.of(signed=signed)))


def _unary(body: ElementEmitter, function: str, operand: SSAValue) -> SSAValue:
    match function:
        case "abs":
            floating = isinstance(operand.type, AnyFloat)
            return _apply(body, math_ops.AbsFOp if floating else math_ops.AbsIOp, operand)
        case "sigmoid":
            return _sigmoid(body, operand)
        case "isnan":
            return body.append(arith.CmpfOp(operand, operand, "uno"))
        case "isinf" | "isfinite":
            size = _apply(body, math_ops.AbsFOp, operand)
            infinity = body.constant(math.inf, operand.type)
            return body.append(arith.CmpfOp(size, infinity, "oeq" if function == "isinf" else "olt"))
        case _:
            return _apply(body, FUNCTIONS[function], operand)


_EXP_IS_FINITE: Mapping[type[Attribute], float] = {Float32Type: 88.0, Float64Type: 709.0}
"""Numbers whose exponential is finite and absorbs the addition of 1."""


def _sigmoid(body: ElementEmitter, x: SSAValue) -> SSAValue:
    """t / (1 + t) with t = exp(x); 16-bit floats use f32. In 1 / (1 + exp(-x)) the exponential overflows if the result
    is subnormal; x is clamped where t would overflow.
    """
    if type(x.type) not in _EXP_IS_FINITE:
        wide = _convert(body, arith.ExtFOp, x, f32)
        return _convert(body, arith.TruncFOp, _sigmoid(body, wide), x.type)
    one, end = (body.constant(number, x.type) for number in (1.0, _EXP_IS_FINITE[type(x.type)]))
    is_beyond = body.append(arith.CmpfOp(x, end, "ogt"))
    t = _apply(body, math_ops.ExpOp, body.append(arith.SelectOp(is_beyond, end, x)))
    return _apply(body, arith.DivfOp, t, _apply(body, arith.AddfOp, one, t))


def _cast(body: ElementEmitter, operand: SSAValue, source: str, target: str) -> SSAValue:
    if source in STORED:
        loaded, dtype = _loaded(body, operand, source)
        return _cast(body, loaded, dtype, target)
    if target in STORED:
        return _stored(body, operand, source, target)
    type_ = value_type_of(target)
    if isinstance(type_, AnyFloat):
        return _to_float(body, operand, type_, has_sign(source))
    if target == "bool":
        zero = body.constant(0.0 if is_float(source) else 0, operand.type)
        return _compare(body, Predicate.NE, operand, zero)
    if is_float(source):
        return _convert(body, arith.FPToSIOp if has_sign(target) else arith.FPToUIOp, operand, type_)
    if bits(source) == bits(target):
        return operand
    if bits(source) > bits(target):
        return _convert(body, arith.TruncIOp, operand, type_)
    return _convert(body, arith.ExtSIOp if has_sign(source) else arith.ExtUIOp, operand, type_)


def _loaded(body: ElementEmitter, byte: SSAValue, dtype: str) -> tuple[SSAValue, str]:
    """The number in a byte, whose higher bits are ignored, and its dtype."""
    if dtype in SMALL_FLOATS:
        code = _convert(body, arith.TruncIOp, byte, IntegerType(bits(dtype))) if bits(dtype) < 8 else byte
        return _convert(body, arith.ExtFOp, body.append(arith.BitcastOp(code, type_of(dtype))), f32), "float32"
    if not has_sign(dtype):
        return _lowest_bits(body, byte, dtype), "uint8"
    rest = body.constant(8 - bits(dtype), byte.type)
    return _apply(body, arith.ShRSIOp, _apply(body, arith.ShLIOp, byte, rest), rest), "int8"


def _lowest_bits(body: ElementEmitter, byte: SSAValue, dtype: str) -> SSAValue:
    return _apply(body, arith.AndIOp, byte, body.constant((1 << bits(dtype)) - 1, byte.type))


def _stored(body: ElementEmitter, operand: SSAValue, source: str, dtype: str) -> SSAValue:
    """A byte of a storage type: floats via float32, integers by their low bits."""
    if dtype not in SMALL_FLOATS:
        byte = _low_byte(body, operand, source) if is_float(source) else _cast(body, operand, source, "int8")
        return _lowest_bits(body, byte, dtype)
    rounded = _convert(body, arith.TruncFOp, _cast(body, operand, source, "float32"), type_of(dtype))
    code = body.append(arith.BitcastOp(rounded, IntegerType(bits(dtype))))
    return _convert(body, arith.ExtUIOp, code, value_type_of(dtype)) if bits(dtype) < 8 else code


def _low_byte(body: ElementEmitter, operand: SSAValue, source: str) -> SSAValue:
    """The low byte of a saturating conversion to 64 bits (`weft.support.float_to_integer`)."""
    single = source != "float64"
    x = _cast(body, operand, source, "float32") if single else operand
    # float32 beyond 2^31 has a low byte of zeros
    wide = value_type_of("int32" if single else "int64")
    is_large = body.append(arith.CmpfOp(x, body.constant(2.0**63, x.type), "oge"))
    integer = _convert(body, arith.FPToSIOp, x, wide)
    saturated = body.append(arith.SelectOp(is_large, body.constant(-1, wide), integer))
    return _convert(body, arith.TruncIOp, saturated, value_type_of("int8"))


def _to_float(body: ElementEmitter, operand: SSAValue, target: AnyFloat, from_signed: bool) -> SSAValue:
    source = operand.type
    if source == target:
        return operand
    if isinstance(source, AnyFloat):
        if source.bitwidth == target.bitwidth:  # neither float16 nor bfloat16 includes the other
            return _convert(body, arith.TruncFOp, _convert(body, arith.ExtFOp, operand, f32), target)
        wider = target.bitwidth > source.bitwidth
        return _convert(body, arith.ExtFOp if wider else arith.TruncFOp, operand, target)
    if isinstance(source, IndexType):
        raise InternalError("an index becomes an integer before it becomes a float")
    return _convert(body, arith.SIToFPOp if from_signed else arith.UIToFPOp, operand, target)


def _convert(body: ElementEmitter, op_class: type[Operation], operand: SSAValue, target: Attribute) -> SSAValue:
    return body.append(op_class.create(operands=[operand], result_types=[target]))
