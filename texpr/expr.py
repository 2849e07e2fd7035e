"""Scalar expressions, built by Python's operators: the elements of `te.compute`.

Operands have the same dtype, which Python numbers adopt, without implicit conversions; functions raise CompileError for
dtypes that they do not accept. *Index expressions* are integer arithmetic over indices, axes and extents: exact within
64 bits, of mixed widths, and `affine.apply` if affine.
"""

from __future__ import annotations

import math
import operator
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Any, Final, TypeAlias, cast

from xdsl.dialects import arith
from xdsl.dialects import math as math_ops
from xdsl.dialects.builtin import AnyFloat, IntegerType
from xdsl.ir import Attribute, Operation

from weft.dialects.element_types import STORED, TYPES, element_name, is_unsigned, value_type
from weft.dialects.element_types import greatest as greatest_of
from weft.dialects.element_types import least as least_of
from weft.dialects.upstream.arith import RemFOp
from weft.support import argument_types
from weft.support.argument_types import checked_methods, shown
from weft.support.errors import CompileError, did_you_mean
from weft.support.locations import SourceLocation
from weft.support.narrow_floats import SMALL_FLOATS, small_float

_ROOMS = Path(__file__).parents[1]
_OURS = (f"{_ROOMS / 'texpr'}{os.sep}", f"{_ROOMS / 'frontends'}{os.sep}", argument_types.__file__)


def _column(frame: FrameType) -> int:
    positions = next(islice(frame.f_code.co_positions(), frame.f_lasti // 2, None), None)
    column = positions[2] if positions is not None else None
    return 1 if column is None else column + 1


def caller() -> SourceLocation | None:
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None and frame.f_code.co_filename.startswith(_OURS):
        frame = frame.f_back
    return None if frame is None else SourceLocation(frame.f_code.co_filename, frame.f_lineno, _column(frame))


def error(message: str, place: SourceLocation | None = None) -> CompileError:
    """A CompileError at `place`, by default the user's line."""
    return CompileError(message, location=place or caller())


_MANTISSA_BITS = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}
_MAX_EXPONENT = {"float16": 16, "bfloat16": 128, "float32": 128, "float64": 1024}


def checked_dtype(dtype: object) -> str:
    name = dtype if isinstance(dtype, str) else getattr(dtype, "name", None) or getattr(dtype, "__name__", None)
    if name == "bool_":
        name = "bool"
    if not isinstance(name, str) or name not in TYPES:
        raise error(f"there is no element type {shown(dtype)}{did_you_mean(str(name), TYPES)}")
    return name


def type_of(dtype: str) -> IntegerType | AnyFloat:
    return TYPES[dtype]


def value_type_of(dtype: str) -> IntegerType | AnyFloat:
    """Integers are signless."""
    return cast("IntegerType | AnyFloat", value_type(TYPES[dtype]))


def name_of(type: Attribute) -> str:
    name = element_name(type)
    if name is None:
        raise error(f"no element type of tensors is {type}")
    return name


def is_float(dtype: str) -> bool:
    return dtype in _MANTISSA_BITS


def is_integer(dtype: str) -> bool:
    """False for bool."""
    return dtype.startswith(("int", "uint")) and dtype not in STORED


def has_sign(dtype: str) -> bool:
    """False for unsigned integers and bool."""
    return dtype != "bool" and not is_unsigned(TYPES[dtype])


def bits(dtype: str) -> int:
    return TYPES[dtype].bitwidth


def holds_all(wide: str, narrow: str) -> bool:
    """Whether `wide` represents all values of `narrow`; False for storage types."""
    if wide == narrow or narrow in STORED or wide in STORED:
        return False
    if is_float(narrow):
        return is_float(wide) and bits(wide) > bits(narrow)
    digits = bits(narrow) - has_sign(narrow)
    if is_float(wide):
        return digits <= _MANTISSA_BITS[wide]
    return digits <= bits(wide) - has_sign(wide) and has_sign(wide) >= has_sign(narrow)


def least(dtype: str) -> int | float:
    """The least finite value."""
    if is_float(dtype) or dtype in SMALL_FLOATS:
        return -greatest(dtype)
    if dtype == "bool":
        raise error(f"{dtype} has no least value")
    return int(least_of(TYPES[dtype]))


def greatest(dtype: str) -> int | float:
    """The greatest finite value."""
    if is_float(dtype):
        mantissa = 2.0 - 2.0 ** (1 - _MANTISSA_BITS[dtype])
        return math.ldexp(mantissa, _MAX_EXPONENT[dtype] - 1)
    if dtype in SMALL_FLOATS:
        return max(filter(math.isfinite, map(small_float(dtype).decode_bits, range(1 << bits(dtype)))))
    if dtype == "bool":
        raise error(f"{dtype} has no greatest value")
    return int(greatest_of(TYPES[dtype]))


Number: TypeAlias = bool | int | float
OpClass: TypeAlias = type[Operation]


class BinaryKind(StrEnum):
    """Binary operators on one dtype: symbol, ops on floats and integers (None without a single one), and whether index
    expressions are preserved.
    """

    ADD = "add", "+", arith.AddfOp, arith.AddiOp, True
    SUB = "sub", "-", arith.SubfOp, arith.SubiOp, True
    MUL = "mul", "*", arith.MulfOp, arith.MuliOp, True
    DIV = "div", "/", arith.DivfOp, None, False
    FLOORDIV = "floordiv", "//", None, arith.FloorDivSIOp, True
    FLOORMOD = "floormod", "%", None, arith.RemSIOp, True
    """The remainder has the sign of the first operand."""
    TRUNCDIV = "truncdiv", "", None, arith.DivSIOp, True
    TRUNCMOD = "truncmod", "", RemFOp, arith.RemSIOp, True
    MIN = "min", "", arith.MinimumfOp, arith.MinSIOp, True
    MAX = "max", "", arith.MaximumfOp, arith.MaxSIOp, True
    POW = "pow", "", math_ops.PowFOp, math_ops.IPowIOp, False
    ATAN2 = "atan2", "", math_ops.Atan2Op, None, False
    COPYSIGN = "copysign", "", math_ops.CopySignOp, None, False
    AND = "and", "&", None, arith.AndIOp, False
    OR = "or", "|", None, arith.OrIOp, False
    XOR = "xor", "^", None, arith.XOrIOp, False
    SHL = "shl", "<<", None, arith.ShLIOp, False
    SHR = "shr", ">>", None, arith.ShRSIOp, False
    """Integer ops are for signed integers, see `UNSIGNED_OPS`."""

    symbol: str
    float_op: OpClass | None
    integer_op: OpClass | None
    is_of_indices: bool

    def __new__(
        cls, label: str, symbol: str, float_op: OpClass | None, integer_op: OpClass | None, is_of_indices: bool
    ) -> BinaryKind:
        kind = str.__new__(cls, label)
        kind._value_ = label
        kind.symbol = symbol
        kind.float_op, kind.integer_op, kind.is_of_indices = float_op, integer_op, is_of_indices
        return kind


UNSIGNED_OPS: Final[Mapping[OpClass, OpClass]] = {
    arith.FloorDivSIOp: arith.DivUIOp,
    arith.DivSIOp: arith.DivUIOp,
    arith.RemSIOp: arith.RemUIOp,
    arith.MinSIOp: arith.MinUIOp,
    arith.MaxSIOp: arith.MaxUIOp,
    arith.ShRSIOp: arith.ShRUIOp,
}
"""Op on signed integers -> op on unsigned integers."""


class Predicate(StrEnum):
    """Comparisons: symbol, predicates of `arith.cmpi` and `arith.cmpf`. False for NaN, except `!=`."""

    EQ = "eq", "==", "eq", "oeq"
    NE = "ne", "!=", "ne", "une"
    LT = "lt", "<", "slt", "olt"
    LE = "le", "<=", "sle", "ole"
    GT = "gt", ">", "sgt", "ogt"
    GE = "ge", ">=", "sge", "oge"

    symbol: str
    of_integers: str
    of_floats: str

    def __new__(cls, label: str, symbol: str, of_integers: str, of_floats: str) -> Predicate:
        predicate = str.__new__(cls, label)
        predicate._value_ = label
        predicate.symbol, predicate.of_integers, predicate.of_floats = symbol, of_integers, of_floats
        return predicate

    def of(self, *, signed: bool) -> str:
        return self.of_integers if signed else self.of_integers.replace("s", "u")


LOGIC: Final = (BinaryKind.AND, BinaryKind.OR, BinaryKind.XOR)
"""Operators on integers and bools."""
DIVISIONS: Final = (BinaryKind.FLOORDIV, BinaryKind.FLOORMOD, BinaryKind.TRUNCDIV, BinaryKind.TRUNCMOD)
_OTHER_NAMES: Final = {"roundeven": "round", "ctpop": "popcount", "ctlz": "clz", "cttz": "ctz"}
_UNARY_MATH: Final = (math_ops.FloatingPointLikeUnaryMathOperation, math_ops.SignlessIntegerLikeUnaryMathOperation)
_MATH: Final = {op.name.removeprefix("math."): op for op in math_ops.Math.operations if issubclass(op, _UNARY_MATH)}
FUNCTIONS: Final[Mapping[str, OpClass]] = {
    "neg": arith.NegfOp,
    **{_OTHER_NAMES.get(name, name): op for name, op in _MATH.items() if name not in ("absf", "absi", "round")},
}
"""Functions that are one op, on floats except `INTEGER_FUNCTIONS`."""
INTEGER_FUNCTIONS: Final = frozenset({"popcount", "clz", "ctz"})


def as_number(value: object) -> Number | None:
    """A Python number, also from a NumPy scalar; else None."""
    if isinstance(value, bool | int | float):
        return value
    item = getattr(value, "item", None)
    if callable(item) and getattr(value, "shape", None) == ():
        number = item()
        return number if isinstance(number, bool | int | float) else None
    return None


_TEXT_DEPTH = 5
"""The depth to which messages print expressions."""


_Method: TypeAlias = "Callable[[Expr, ExprLike], Expr]"


def _operator(kind: BinaryKind) -> tuple[_Method, _Method]:
    return lambda self, other: binary(kind, self, other), lambda self, other: binary(kind, other, self)


def _comparison(predicate: Predicate) -> _Method:
    return lambda self, other: compare(predicate, self, other)


_UFUNCS: Final[Mapping[str, str]] = {
    "add": "add",
    "subtract": "sub",
    "multiply": "mul",
    "divide": "truediv",
    "floor_divide": "floordiv",
    "remainder": "mod",
    "power": "pow",
    "bitwise_and": "and_",
    "bitwise_or": "or_",
    "bitwise_xor": "xor",
    "left_shift": "lshift",
    "right_shift": "rshift",
    "less": "lt",
    "less_equal": "le",
    "greater": "gt",
    "greater_equal": "ge",
    "equal": "eq",
    "not_equal": "ne",
}
"""Ufuncs that NumPy scalars call for operators -> functions of `operator`."""


def _is_array(value: object) -> bool:
    return not isinstance(value, Expr) and getattr(value, "shape", None) != ()


FUNCTION_NAMES: Final = set[str]()
"""Names of the functions of `weft.texpr.math`, for messages; that module depends on this one and adds them."""


class Expr:
    """A scalar expression. `//` and `%` round down, as in Python."""

    __slots__ = ("dtype", "is_index")

    dtype: str
    is_index: bool

    @property
    def parts(self) -> tuple[Expr, ...]:
        return ()

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: object) -> object:
        """Treat NumPy scalars as Python numbers. Raises TypeError for arrays and NumPy's functions."""
        name: str = ufunc.__name__
        combine: Callable[..., object] | None = getattr(operator, _UFUNCS.get(name, ""), None)
        if combine is not None and method == "__call__" and not options and not any(map(_is_array, inputs)):
            return combine(*(value if isinstance(value, Expr) else value.item() for value in inputs))
        is_known = name in FUNCTION_NAMES
        hint = f"write te.{name}" if is_known else "read arrays as te.placeholder, and use functions of te"
        raise TypeError(f"np.{name} computes on arrays, and an operand is an expression of te: {hint}")

    __add__, __radd__ = _operator(BinaryKind.ADD)
    __sub__, __rsub__ = _operator(BinaryKind.SUB)
    __mul__, __rmul__ = _operator(BinaryKind.MUL)
    __truediv__, __rtruediv__ = _operator(BinaryKind.DIV)
    __floordiv__, __rfloordiv__ = _operator(BinaryKind.FLOORDIV)
    __mod__, __rmod__ = _operator(BinaryKind.FLOORMOD)
    __pow__, __rpow__ = _operator(BinaryKind.POW)
    __and__, __rand__ = _operator(BinaryKind.AND)
    __or__, __ror__ = _operator(BinaryKind.OR)
    __xor__, __rxor__ = _operator(BinaryKind.XOR)
    __lshift__, __rlshift__ = _operator(BinaryKind.SHL)
    __rshift__, __rrshift__ = _operator(BinaryKind.SHR)
    __lt__ = _comparison(Predicate.LT)
    __le__ = _comparison(Predicate.LE)
    __gt__ = _comparison(Predicate.GT)
    __ge__ = _comparison(Predicate.GE)

    def __eq__(self, other: object) -> Expr:  # pyright: ignore[reportIncompatibleMethodOverride]
        return compare(Predicate.EQ, self, cast("ExprLike", other))

    def __ne__(self, other: object) -> Expr:  # pyright: ignore[reportIncompatibleMethodOverride]
        return compare(Predicate.NE, self, cast("ExprLike", other))

    def __neg__(self) -> Expr:
        return binary(BinaryKind.SUB, 0, self) if is_integer(self.dtype) else unary("neg", self)

    def __pos__(self) -> Expr:
        return self

    def __invert__(self) -> Expr:
        ones = -1 if has_sign(self.dtype) else greatest(self.dtype) if is_integer(self.dtype) else True
        return binary(BinaryKind.XOR, self, ones)

    def __abs__(self) -> Expr:
        return unary("abs", self)

    __hash__ = object.__hash__

    def __float__(self) -> float:
        raise TypeError(
            f"`{self}` has no value while the expression is built: use functions of te, such as te.exp, in place of "
            "those of math, and te.cast in place of float()"
        )

    def __bool__(self) -> bool:
        raise error(
            f"the truth of `{self}` is not known while the expression is built: use te.all, te.any and te.if_then_else "
            "instead of `and`, `or`, `if` and chained comparisons"
        )

    def text(self, depth: int) -> str:
        """Python syntax; dots replace parts nested deeper than `depth`."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.text(_TEXT_DEPTH)

    def __repr__(self) -> str:
        return str(self)

    def astype(self, dtype: object) -> Expr:
        """Convert. Floats are truncated to integers, other integers keep their low bits, bool is comparison with
        zero.
        """
        return cast_to(self, dtype)


ExprLike: TypeAlias = Expr | bool | int | float


@dataclass(eq=False, slots=True, repr=False)
class Const(Expr):
    value: Number
    dtype: str
    is_index: bool = field(init=False)

    def __post_init__(self) -> None:
        self.is_index = self.dtype in ("int32", "int64")

    def text(self, depth: int) -> str:
        return str(self.value)


@dataclass(eq=False, slots=True, repr=False)
class Named(Expr):
    name: str

    def text(self, depth: int) -> str:
        return self.name


@checked_methods
@dataclass(eq=False, slots=True, repr=False)
class Var(Named):
    """A scalar that calls bind: an extent or parameter."""

    dtype: str
    is_index: bool = field(init=False)

    def __post_init__(self) -> None:
        self.is_index = self.dtype in ("int32", "int64")


@checked_methods
@dataclass(eq=False, slots=True, repr=False)
class IterVar(Named):
    """An index or reduce axis: `low <= value < low + extent`."""

    low: int | Expr
    extent: int | Expr
    is_reduce: bool
    dtype: str = "int64"
    is_index: bool = True

    @property
    def dom(self) -> tuple[int | Expr, int | Expr]:
        """First value and extent."""
        return self.low, self.extent

    @property
    def var(self) -> IterVar:
        return self


@dataclass(eq=False, slots=True, repr=False)
class Accumulator(Expr):
    position: int
    dtype: str
    is_index: bool = False

    def text(self, depth: int) -> str:
        return f"accumulator {self.position}"


@dataclass(eq=False, slots=True, repr=False)
class Binary(Expr):
    kind: BinaryKind
    left: Expr
    right: Expr
    dtype: str
    is_index: bool

    @property
    def parts(self) -> tuple[Expr, ...]:
        return self.left, self.right

    def text(self, depth: int) -> str:
        if not self.kind.symbol:
            return f"{self.kind}({nested(depth, self.left, self.right)})"
        return f"({nested(depth, self.left)} {self.kind.symbol} {nested(depth, self.right)})"


@dataclass(eq=False, slots=True, repr=False)
class Unary(Expr):
    """A function of the same dtype (bool for `isnan`, `isinf`, `isfinite`)."""

    function: str
    operand: Expr
    dtype: str
    is_index: bool = False

    @property
    def parts(self) -> tuple[Expr, ...]:
        return (self.operand,)

    def text(self, depth: int) -> str:
        return f"{self.function}({nested(depth, self.operand)})"


@dataclass(eq=False, slots=True, repr=False)
class Intrinsic(Expr):
    """See `weft.register_intrinsic`."""

    function: str
    arguments: tuple[Expr, ...]
    dtype: str
    is_index: bool = False

    @property
    def parts(self) -> tuple[Expr, ...]:
        return self.arguments

    def text(self, depth: int) -> str:
        return f"{self.function}({', '.join(nested(depth, argument) for argument in self.arguments)})"


@dataclass(eq=False, slots=True, repr=False)
class Compare(Expr):
    predicate: Predicate
    left: Expr
    right: Expr
    dtype: str = "bool"
    is_index: bool = False

    @property
    def parts(self) -> tuple[Expr, ...]:
        return self.left, self.right

    def __bool__(self) -> bool:
        """Compares extents structurally, as in `A.shape[1] == B.shape[0]`."""
        equality = self.predicate in (Predicate.EQ, Predicate.NE)
        if equality and is_extent(self.left) and is_extent(self.right):
            return same(self.left, self.right) == (self.predicate is Predicate.EQ)
        return Expr.__bool__(self)

    def text(self, depth: int) -> str:
        return f"({nested(depth, self.left)} {self.predicate.symbol} {nested(depth, self.right)})"


@dataclass(eq=False, slots=True, repr=False)
class Select(Expr):
    """If `lazy`, only the selected value is evaluated."""

    condition: Expr
    if_true: Expr
    if_false: Expr
    lazy: bool
    dtype: str
    is_index: bool

    @property
    def parts(self) -> tuple[Expr, ...]:
        return self.condition, self.if_true, self.if_false

    def text(self, depth: int) -> str:
        name = "if_then_else" if self.lazy else "select"
        return f"{name}({nested(depth, self.condition, self.if_true, self.if_false)})"


@dataclass(eq=False, slots=True, repr=False)
class Cast(Expr):
    operand: Expr
    dtype: str
    is_index: bool = False

    @property
    def parts(self) -> tuple[Expr, ...]:
        return (self.operand,)

    def text(self, depth: int) -> str:
        return f"{self.dtype}({nested(depth, self.operand)})"


@dataclass(eq=False, slots=True, repr=False)
class Reinterpret(Expr):
    operand: Expr
    dtype: str
    is_index: bool = False

    @property
    def parts(self) -> tuple[Expr, ...]:
        return (self.operand,)

    def text(self, depth: int) -> str:
        return f"reinterpret({nested(depth, self.operand)}, {self.dtype})"


def nested(depth: int, *exprs: Expr) -> str:
    return ", ".join("..." if depth == 0 and expr.parts else expr.text(depth - 1) for expr in exprs)


def subexpressions(roots: Iterable[Expr]) -> Iterator[Expr]:
    """Expressions and their parts, each once and before its parts."""
    pending = list(roots)[::-1]
    seen: set[int] = set()
    while pending:
        expr = pending.pop()
        if id(expr) not in seen:
            seen.add(id(expr))
            yield expr
            pending.extend(reversed(expr.parts))


def same(left: Expr, right: Expr) -> bool:
    if left is right:
        return True
    if type(left) is not type(right):
        return False
    if isinstance(left, Const) and isinstance(right, Const):
        return left.value == right.value
    if isinstance(left, Binary) and isinstance(right, Binary) and left.kind is not right.kind:
        return False
    parts, others = left.parts, right.parts
    return bool(parts) and len(parts) == len(others) and all(map(same, parts, others))


def is_extent(expr: Expr) -> bool:
    if isinstance(expr, Binary):
        return is_extent(expr.left) and is_extent(expr.right)
    return isinstance(expr, Const | Var) and expr.is_index


def number_as(value: Number, dtype: str, beside: str = "") -> Const | Cast:
    """A constant, or a cast for storage types. Raises CompileError if out of range."""
    where = f" beside `{beside}`" if beside else ""
    if dtype == "bool":
        if isinstance(value, bool):
            return Const(value, dtype)
        raise error(f"{shown(value)} is no bool{where}: compare or cast")
    if is_float(dtype) or dtype in SMALL_FLOATS:
        if greatest(dtype) < abs(value) < math.inf:
            raise error(f"{shown(value)}{where} is beyond the greatest {dtype}, {greatest(dtype)}")
        return Const(float(value), dtype) if is_float(dtype) else Cast(Const(float(value), "float32"), dtype)
    if isinstance(value, bool | float):
        raise error(f"{shown(value)} is no {dtype}{where}: cast one side, for example with .astype")
    if not least(dtype) <= value <= greatest(dtype):
        raise error(f"{shown(value)}{where} does not fit {dtype}, which holds {least(dtype)} to {greatest(dtype)}")
    return Cast(Const(value, "int8"), dtype) if dtype in STORED else Const(value, dtype)


def default_number(value: Number) -> Const | Cast:
    """A number without another operand: bool, int64 or float32."""
    if isinstance(value, bool):
        return Const(value, "bool")
    return number_as(value, "int64" if isinstance(value, int) else "float32")


def as_expr(value: object, dtype: str | None = None) -> Expr:
    """A Python number takes `dtype`."""
    if isinstance(value, Expr):
        return value
    number = as_number(value)
    if number is not None:
        return default_number(number) if dtype is None else number_as(number, dtype)
    name = getattr(value, "name", None)
    if getattr(value, "op", None) is not None and isinstance(name, str):
        raise error(f"{name} is a tensor, not a number: read an element of it, as in {name}[i, j]")
    raise error(f"expected an expression or a number, got {shown(value)} of type {type(value).__name__}")


def unified(what: str, left: object, right: object) -> tuple[Expr, Expr]:
    """Two operands of one dtype."""
    left_number, right_number = as_number(left), as_number(right)
    if left_number is not None and right_number is not None:
        both = left_number, right_number
        dtype = "float32" if any(isinstance(n, float) for n in both) else default_number(both[0]).dtype
        return number_as(left_number, dtype), number_as(right_number, dtype)
    if left_number is not None:
        right = as_expr(right)
        return number_as(left_number, right.dtype, str(right)), right
    if right_number is not None:
        left = as_expr(left)
        return left, number_as(right_number, left.dtype, str(left))
    left, right = as_expr(left), as_expr(right)
    if left.is_index != right.is_index and left.dtype != right.dtype and "int32" in (left.dtype, right.dtype):
        # An index is converted to int32.
        left = Cast(left, right.dtype) if left.is_index and right.dtype == "int32" else left
        right = Cast(right, left.dtype) if right.is_index and left.dtype == "int32" else right
    if left.dtype != right.dtype and not (left.is_index and right.is_index):
        raise error(
            f"{what} mixes element types: `{left}` is {left.dtype} and `{right}` is {right.dtype}; "
            f"cast one, for example with .astype({left.dtype!r})"
        )
    return left, right


def joined_dtype(left: Expr, right: Expr) -> str:
    return left.dtype if left.dtype == right.dtype else "int64"


def check_computable(what: str, expr: Expr) -> None:
    if expr.dtype in STORED:
        raise error(f"{what} takes no {expr.dtype}, which is stored only: cast `{expr}`, for example to 'float32'")


def binary(kind: BinaryKind, left: object, right: object) -> Expr:
    symbol = kind.symbol or kind.value
    a, b = unified(f"`{symbol}`", left, right)
    dtype = joined_dtype(a, b)
    check_computable(f"`{symbol}`", a)
    if kind in LOGIC:
        if is_float(dtype):
            raise error(f"`{symbol}` takes integers or bools, got {dtype} in `{a} {symbol} {b}`")
    elif dtype == "bool":
        raise error(f"`{symbol}` takes numbers, got bool in `{a} {symbol} {b}`: cast, or use &, | and ^")
    elif kind.float_op is None and kind not in DIVISIONS and is_float(dtype):
        raise error(f"`{symbol}` takes integers, got {dtype} in `{a} {symbol} {b}`: use a cast")
    elif kind.integer_op is None and not is_float(dtype):
        raise error(
            f"`{symbol}` takes floats, got {dtype} in `{a} {symbol} {b}`: use // or te.truncdiv for integers, or cast"
        )
    if kind in DIVISIONS and not is_float(dtype) and isinstance(b, Const) and b.value == 0:
        raise error(f"`{a} {symbol} {b}` divides by zero")
    return Binary(kind, a, b, dtype, a.is_index and b.is_index and kind.is_of_indices)


def compare(predicate: Predicate, left: object, right: object) -> Expr:
    a, b = unified(f"`{predicate.symbol}`", left, right)
    check_computable(f"`{predicate.symbol}`", a)
    if a.dtype == "bool" and predicate not in (Predicate.EQ, Predicate.NE):
        raise error(f"bools have no order: `{a} {predicate.symbol} {b}`")
    return Compare(predicate, a, b)


def unary(function: str, operand: object) -> Expr:
    expr = as_expr(operand)
    check_computable(function, expr)
    if function == "abs":
        if expr.dtype == "bool":
            raise error(f"abs takes numbers, got bool `{expr}`")
        if not has_sign(expr.dtype):
            return expr
    elif function in INTEGER_FUNCTIONS:
        if not is_integer(expr.dtype):
            raise error(f"{function} takes integers, got {expr.dtype} `{expr}`")
    elif not is_float(expr.dtype):
        raise error(f"{function} takes floats, got {expr.dtype} `{expr}`: cast first, for example .astype('float32')")
    return Unary(function, expr, "bool" if function.startswith("is") else expr.dtype)


def cast_to(operand: object, dtype: object) -> Expr:
    expr, target = as_expr(operand), checked_dtype(dtype)
    return expr if expr.dtype == target else Cast(expr, target)


def reinterpret(operand: object, dtype: object) -> Expr:
    """The bits as another type of equal width, no bool or storage type."""
    expr, target = as_expr(operand), checked_dtype(dtype)
    if "bool" in (expr.dtype, target) or {expr.dtype, target} & STORED or bits(expr.dtype) != bits(target):
        raise error(f"reinterpret takes numbers of one width, got {expr.dtype} `{expr}` as {target}")
    if expr.dtype == target:
        return expr
    # Integers of one width differ only in signedness.
    return Reinterpret(expr, target) if is_float(expr.dtype) or is_float(target) else Cast(expr, target)
