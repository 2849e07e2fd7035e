"""Every scalar and lane-wise op, compiled for this machine, against NumPy on edge values.

Each case is one op in a loop over arrays; it runs with scalars, and with vectors where the op has a vector form.
"""

import itertools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tiers import first_tier

from weft.driver.parsing import parse_text
from weft.driver.programs import context
from weft.passes.low.low_legalize import LowLegalizePass
from weft.runtime.library import Library
from weft.runtime.low_module import load_low_module
from weft.support.narrow_floats import round_bf16
from weft.support.target import Target

Array = NDArray[Any]
HOST = Target("llvm")
LANES = 8

DTYPES: dict[str, Any] = {
    "i1": np.bool_,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "index": np.int64,
    "f16": np.float16,
    "bf16": np.uint16,
    "f32": np.float32,
    "f64": np.float64,
}
INTEGERS = ("i8", "i16", "i32", "i64", "index")
FLOATS = ("f16", "bf16", "f32", "f64")


def compile_text(text: str, target: Target = HOST) -> Library:
    module = parse_text(context(), text, "test.mlir")
    module.verify()
    LowLegalizePass(str(target)).apply(context(), module)
    return load_low_module(module, target)


def elementwise(op: str, inputs: Sequence[str], output: str, lanes: int) -> str:
    """A kernel that applies `op` to arrays A, B, ... of the given element types; `{T0}` and `{R}` in `op` stand for the
    types of the operands and the result, `%a`, `%b` for the operands, and `%r` is the result."""
    names = "ABC"[: len(inputs)]
    types = [f"vector<{lanes}x{t}>" if lanes else t for t in inputs]
    result = f"vector<{lanes}x{output}>" if lanes else output
    loads = "\n".join(
        f"%{n.lower()} = vector.load %{n}[%i] : memref<?x{t}>, vector<{lanes}x{t}>"
        if lanes
        else f"%{n.lower()} = memref.load %{n}[%i] : memref<?x{t}>"
        for n, t in zip(names, inputs, strict=True)
    )
    store = (
        f"vector.store %r, %R[%i] : memref<?x{output}>, {result}"
        if lanes
        else f"memref.store %r, %R[%i] : memref<?x{output}>"
    )
    params = [f'#low.param<"{n}", memref<?x{t}>, read, ["n"]>' for n, t in zip(names, inputs, strict=True)]
    params.append(f'#low.param<"R", memref<?x{output}>, write, ["n"]>')
    arguments = [f"%{n}: memref<?x{t}>" for n, t in zip(names, inputs, strict=True)]
    filled = op.format(
        R=result, M=f"vector<{lanes}xi1>" if lanes else "i1", **{f"T{k}": t for k, t in enumerate(types)}
    )
    return f"""
func.func @f({", ".join(arguments)}, %R: memref<?x{output}>, %n: index)
    attributes {{low.params = [{", ".join(params)}], low.symbols = ["n"]}} {{
  %zero = arith.constant 0 : index
  %step = arith.constant {lanes or 1} : index
  scf.for %i = %zero to %n step %step {{
    {loads}
    {filled}
    {store}
  }}
  func.return
}}"""


def run(op: str, inputs: Sequence[str], output: str, lanes: int, *arrays: Array) -> Array:
    return run_on(HOST, op, inputs, output, lanes, *arrays)


def run_on(target: Target, op: str, inputs: Sequence[str], output: str, lanes: int, *arrays: Array) -> Array:
    size = len(arrays[0])
    padding = -size % (lanes or 1)
    padded = [np.concatenate([array, array[:1].repeat(padding)]) for array in arrays]
    result = np.zeros(size + padding, DTYPES[output])
    compile_text(elementwise(op, inputs, output, lanes), target)["f"](*padded, result)
    return result[:size]


def to_bf16(values: Array) -> Array:
    """Doubles to the bits of the nearest bf16."""
    rounded = np.array([round_bf16(float(value)) for value in np.ravel(values)], np.float32)
    return (rounded.view(np.uint32) >> 16).astype(np.uint16)


def floats(type_: str, values: Sequence[float]) -> Array:
    with np.errstate(over="ignore"):
        return to_bf16(np.array(values)) if type_ == "bf16" else np.array(values, DTYPES[type_])


def as_float(type_: str, array: Array) -> Array:
    """The values of an array as NumPy computes on them."""
    return (array.astype(np.uint32) << 16).view(np.float32) if type_ == "bf16" else array


def rounded(type_: str, values: Array) -> Array:
    """Values in a wider type, rounded to `type_`; bf16 shown as float32."""
    return as_float("bf16", to_bf16(values)) if type_ == "bf16" else values.astype(DTYPES[type_])


def assert_same(actual: Array, expected: Array) -> None:
    """Equal in value, in the sign of zeros, and in which are NaN."""
    np.testing.assert_array_equal(actual, expected)
    if actual.dtype.kind == "f":
        number = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(actual[number]), np.signbit(expected[number]))


def pairs(values: Array) -> tuple[Array, Array]:
    left, right = np.meshgrid(values, values)
    return left.ravel().copy(), right.ravel().copy()


def integer_values(type_: str) -> Array:
    if type_ == "i1":
        return np.array([False, True])
    dtype = DTYPES[type_]
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    return np.array([low, low + 1, -100, -8, -7, -3, -2, -1, 0, 1, 2, 3, 5, 7, 8, 100, high - 1, high], dtype)


FLOAT_EDGES = {
    "f16": [6e-8, 6.1e-5, 65504.0, 2049.0, 0.333251953125],
    "bf16": [9.2e-41, 1.18e-38, 3.38e38, 257.0, 1.0078125],
    "f32": [1e-45, 1.18e-38, 3.4e38, 16777217.0, 0.1],
    "f64": [5e-324, 2.3e-308, 1.7e308, 9007199254740993.0, 0.1],
}


def float_values(type_: str) -> Array:
    edges = FLOAT_EDGES[type_]
    plain = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 7.25, 100.0, *edges, math.inf]
    return floats(type_, [*plain, *(-value for value in plain), math.nan])


SHAPES = pytest.mark.parametrize("lanes", [0, LANES], ids=["scalar", "vector"])


# Integers


def floor_divide(a: Array, b: Array) -> Array:
    return np.where(b == 0, 0, a // np.where(b == 0, 1, b)).astype(a.dtype)


def truncated_divide(a: Array, b: Array) -> Array:
    quotient, rest = floor_divide(a, b), np.where(b == 0, 0, np.mod(a, np.where(b == 0, 1, b)))
    return (quotient + ((rest != 0) & ((a < 0) != (b < 0)))).astype(a.dtype)


def truncated_remainder(a: Array, b: Array) -> Array:
    return np.where(b == 0, 0, np.fmod(a, np.where(b == 0, 1, b))).astype(a.dtype)


def ceil_divide(a: Array, b: Array) -> Array:
    quotient, rest = floor_divide(a, b), np.where(b == 0, 0, np.mod(a, np.where(b == 0, 1, b)))
    return (quotient + (rest != 0)).astype(a.dtype)


def unsigned(function: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    def on_unsigned(a: Array, b: Array) -> Array:
        kind = np.dtype(f"u{a.dtype}")
        return function(a.view(kind), b.view(kind)).astype(kind).view(a.dtype)

    return on_unsigned


INTEGER_OPS: dict[str, Callable[[Array, Array], Array]] = {
    "addi": operator.add,
    "subi": operator.sub,
    "muli": operator.mul,
    "andi": operator.and_,
    "ori": operator.or_,
    "xori": operator.xor,
    "minsi": np.minimum,
    "maxsi": np.maximum,
    "minui": unsigned(np.minimum),
    "maxui": unsigned(np.maximum),
    "divsi": truncated_divide,
    "divui": unsigned(floor_divide),
    "remsi": truncated_remainder,
    "remui": unsigned(truncated_remainder),
    "floordivsi": floor_divide,
    "ceildivsi": ceil_divide,
    "ceildivui": unsigned(ceil_divide),
}


@SHAPES
@pytest.mark.parametrize("type_", first_tier(INTEGERS, "i8", "i32", "index"))
@pytest.mark.parametrize("op", INTEGER_OPS)
def test_integer_op(op: str, type_: str, lanes: int) -> None:
    a, b = pairs(integer_values(type_))
    with np.errstate(all="ignore"):
        expected = INTEGER_OPS[op](a, b)
    assert_same(run(f"%r = arith.{op} %a, %b : {{R}}", [type_, type_], type_, lanes, a, b), expected)


@SHAPES
@pytest.mark.parametrize("op", ["andi", "ori", "xori"])
def test_truth_value_op(op: str, lanes: int) -> None:
    a, b = pairs(integer_values("i1"))
    assert_same(run(f"%r = arith.{op} %a, %b : {{R}}", ["i1", "i1"], "i1", lanes, a, b), INTEGER_OPS[op](a, b))


@SHAPES
@pytest.mark.parametrize("divisor", [1, 2, 8, 7, -1, -2, -5])
@pytest.mark.parametrize("op", ["divsi", "remsi", "floordivsi", "ceildivsi"])
def test_division_by_a_constant(op: str, divisor: int, lanes: int) -> None:
    a = integer_values("i32")
    constant = f"dense<{divisor}> : {{R}}" if lanes else f"{divisor} : {{R}}"
    text = f"%d = arith.constant {constant} %r = arith.{op} %a, %d : {{R}}"
    with np.errstate(all="ignore"):
        expected = INTEGER_OPS[op](a, np.full_like(a, divisor))
    assert_same(run(text, ["i32"], "i32", lanes, a), expected)


@SHAPES
@pytest.mark.parametrize("type_", INTEGERS)
@pytest.mark.parametrize("op", ["shli", "shrsi", "shrui"])
def test_shift(op: str, type_: str, lanes: int) -> None:
    values = integer_values(type_)
    amounts = np.arange(8, dtype=values.dtype)
    a, b = (array.ravel().copy() for array in np.meshgrid(values, amounts))
    kind = np.dtype(f"u{a.dtype}")
    expected = {
        "shli": lambda: a << b,
        "shrsi": lambda: a >> b,
        "shrui": lambda: (a.view(kind) >> b.view(kind)).view(a.dtype),
    }[op]()
    assert_same(run(f"%r = arith.{op} %a, %b : {{R}}", [type_, type_], type_, lanes, a, b), expected)


@SHAPES
@pytest.mark.parametrize("type_", INTEGERS)
def test_integer_comparisons(type_: str, lanes: int) -> None:
    a, b = pairs(integer_values(type_))
    kind = np.dtype(f"u{a.dtype}")
    dialect = "low" if lanes else "arith"
    for predicate, compare in {
        "eq": operator.eq,
        "ne": operator.ne,
        "lt": operator.lt,
        "le": operator.le,
        "gt": operator.gt,
        "ge": operator.ge,
    }.items():
        for sign in ("",) if predicate in ("eq", "ne") else ("s", "u"):
            x, y = (a.view(kind), b.view(kind)) if sign == "u" else (a, b)
            text = f"%r = {dialect}.cmpi {sign}{predicate}, %a, %b : {{T0}}"
            assert_same(run(text, [type_, type_], "i1", lanes, a, b), compare(x, y))


@SHAPES
@pytest.mark.parametrize("op", ["addui_extended", "mulsi_extended", "mului_extended"])
def test_extended_op(op: str, lanes: int) -> None:
    a, b = pairs(integer_values("i32"))
    if op == "addui_extended":
        low = f"%r, %o = arith.{op} %a, %b : {{R}}, {{M}}"
        assert_same(run(low, ["i32", "i32"], "i32", lanes, a, b), a + b)
        high = f"%s, %r = arith.{op} %a, %b : {{T0}}, {{M}}"
        wide = a.view(np.uint32).astype(np.uint64) + b.view(np.uint32)
        assert_same(run(high, ["i32", "i32"], "i1", lanes, a, b), wide >= 1 << 32)
        return
    wide_type = np.int64 if op == "mulsi_extended" else np.uint64
    product = a.view("i4" if op == "mulsi_extended" else "u4").astype(wide_type) * b.view(
        "i4" if op == "mulsi_extended" else "u4"
    ).astype(wide_type)
    assert_same(run(f"%r, %h = arith.{op} %a, %b : {{R}}", ["i32", "i32"], "i32", lanes, a, b), a * b)
    high = run(f"%l, %r = arith.{op} %a, %b : {{R}}", ["i32", "i32"], "i32", lanes, a, b)
    assert_same(high, (product >> np.array(32, wide_type)).astype(np.uint32).view(np.int32))


@SHAPES
@pytest.mark.parametrize("type_", INTEGERS[:4])
def test_bit_functions(type_: str, lanes: int) -> None:
    a = integer_values(type_)
    bits = a.dtype.itemsize * 8
    raw = [int(value) & (1 << bits) - 1 for value in a]
    expected = {
        "absi": np.abs(a),
        "ctpop": [value.bit_count() for value in raw],
        "ctlz": [bits - value.bit_length() for value in raw],
        "cttz": [(value & -value).bit_length() - 1 if value else bits for value in raw],
    }
    for op, values in expected.items():
        actual = run(f"%r = math.{op} %a : {{R}}", [type_], type_, lanes, a)
        assert_same(actual, np.array(values, a.dtype))


@SHAPES
@pytest.mark.parametrize("type_", INTEGERS[:4])
def test_integer_power(type_: str, lanes: int) -> None:
    a, b = (
        array.ravel().copy() for array in np.meshgrid(integer_values(type_), np.arange(-3, 12, dtype=DTYPES[type_]))
    )
    bits = a.dtype.itemsize * 8

    def power(base: int, exponent: int) -> int:
        value = base**exponent if exponent >= 0 else {1: 1, -1: -1 if exponent % 2 else 1}.get(base, 0)
        return (value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)

    expected = np.array([power(int(x), int(y)) for x, y in zip(a, b, strict=True)], a.dtype)
    assert_same(run("%r = math.ipowi %a, %b : {R}", [type_, type_], type_, lanes, a, b), expected)


# Floating point


def maximum(a: Array, b: Array) -> Array:
    """NaN when either is; -0 is less than +0."""
    return np.where((a == 0) & (b == 0), np.where(np.signbit(a), b, a), np.maximum(a, b))


def minimum(a: Array, b: Array) -> Array:
    return np.where((a == 0) & (b == 0), np.where(np.signbit(a), a, b), np.minimum(a, b))


FLOAT_OPS: dict[str, Callable[[Array, Array], Array]] = {
    "addf": operator.add,
    "subf": operator.sub,
    "mulf": operator.mul,
    "divf": operator.truediv,
    "maximumf": maximum,
    "minimumf": minimum,
}


def computed(type_: str, function: Callable[..., Array], *arrays: Array) -> Array:
    """`function` on arrays of `type_` as IEEE 754 rounds it. bf16 goes through double."""
    values = [as_float(type_, array) for array in arrays]
    with np.errstate(all="ignore"):
        if type_ == "bf16":
            return rounded("bf16", function(*(value.astype(np.float64) for value in values)))
        return function(*values)


@SHAPES
@pytest.mark.parametrize("type_", FLOATS)
@pytest.mark.parametrize("op", FLOAT_OPS)
def test_float_op(op: str, type_: str, lanes: int) -> None:
    a, b = pairs(float_values(type_))
    actual = run(f"%r = arith.{op} %a, %b : {{R}}", [type_, type_], type_, lanes, a, b)
    assert_same(as_float(type_, actual), computed(type_, FLOAT_OPS[op], a, b))


NANS = {
    "f32": np.array([0x7FC00000, 0xFFC00000, 0x7F800001, 0xFFBFFFFF], np.uint32),
    "f64": np.array([0x7FF8 << 48, 0xFFF8 << 48, (0x7FF0 << 48) + 1, (0xFFF8 << 48) - 1], np.uint64),
}
"""Quiet and signalling, of both signs."""


@pytest.mark.parametrize("features", ["", "-avx512dq"])
@pytest.mark.parametrize("lanes", first_tier([2, 3, 4, 8, 16, 24, 32], 3, 8, 16, 24))
@pytest.mark.parametrize("type_", NANS)
@pytest.mark.parametrize("op", ["maximumf", "minimumf"])
def test_extrema_of_all_pairs(op: str, type_: str, lanes: int, features: str) -> None:
    """Every form that instructions of this machine give to vectors of a length."""
    if features and HOST.architecture != "x86_64":
        pytest.skip("a feature of x86")
    a, b = pairs(np.concatenate([float_values(type_), NANS[type_].view(DTYPES[type_])]))
    target = Target("llvm", features=features)
    actual = run_on(target, f"%r = arith.{op} %a, %b : {{R}}", [type_, type_], type_, lanes, a, b)
    assert_same(actual, computed(type_, FLOAT_OPS[op], a, b))


@SHAPES
@pytest.mark.parametrize("type_", FLOATS)
def test_maxnum_prefers_numbers(type_: str, lanes: int) -> None:
    a, b = pairs(float_values(type_))
    for op, function in {"maxnumf": np.fmax, "minnumf": np.fmin}.items():
        actual = as_float(type_, run(f"%r = arith.{op} %a, %b : {{R}}", [type_, type_], type_, lanes, a, b))
        np.testing.assert_array_equal(actual, computed(type_, function, a, b))  # the sign of a zero is free


@SHAPES
@pytest.mark.parametrize("type_", FLOATS)
@pytest.mark.parametrize("constant", [0.0, -0.0, 6.0])
@pytest.mark.parametrize("op", ["maximumf", "minimumf"])
def test_clamp_against_a_constant(op: str, constant: float, type_: str, lanes: int) -> None:
    a = float_values(type_)
    b = floats(type_, [constant] * len(a))
    literal = f"dense<{constant}> : {{R}}" if lanes else f"{constant} : {{R}}"
    text = f"%k = arith.constant {literal} %r = arith.{op} %a, %k : {{R}}"
    assert_same(as_float(type_, run(text, [type_], type_, lanes, a)), computed(type_, FLOAT_OPS[op], a, b))


@pytest.mark.parametrize("lanes", [2, 3, 4, 16, 64])
@pytest.mark.parametrize("type_", ["f32", "f64"])
@pytest.mark.parametrize("op", ["maximumf", "minimumf"])
def test_extrema_of_lanes(op: str, type_: str, lanes: int) -> None:
    """NaN in any lane is the result, and zeros have signs, in whatever lanes they stand."""
    rng = np.random.default_rng(lanes)
    dtype = np.float32 if type_ == "f32" else np.float64
    special = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1.5, -2.5], dtype)
    rows = [
        rng.choice(special[kept], lanes)
        for kept in ([0, 1], [0, 1, 5], [1, 6], [3, 4], [5, 6, 0, 1])
        for _ in range(20)
    ]
    nans = np.array([np.nan, np.copysign(np.nan, -1.0)], dtype)
    rows += [np.where(np.arange(lanes) == at, nan, dtype(1.0)) for at in range(lanes) for nan in nans]
    data = np.ascontiguousarray(rows)
    count = len(rows)
    text = f"""
    func.func @f(%A: memref<{data.size}x{type_}>, %Y: memref<{count}x{type_}>) attributes {{low.params = [
        #low.param<"A", memref<{data.size}x{type_}>, read, []>, #low.param<"Y", memref<{count}x{type_}>, write, []>],
        low.symbols = []}} {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %lanes = arith.constant {lanes} : index
      %end = arith.constant {count} : index
      scf.for %i = %c0 to %end step %c1 {{
        %at = arith.muli %i, %lanes : index
        %a = vector.load %A[%at] : memref<{data.size}x{type_}>, vector<{lanes}x{type_}>
        %r = vector.reduction <{op}>, %a : vector<{lanes}x{type_}> into {type_}
        memref.store %r, %Y[%i] : memref<{count}x{type_}>
      }}
      func.return
    }}"""
    result = np.empty(count, dtype)
    compile_text(text)["f"](data.reshape(-1), result)
    wanted = data[:, 0]
    for lane in range(1, lanes):
        wanted = FLOAT_OPS[op](wanted, data[:, lane])
    assert_same(result, wanted)


@SHAPES
@pytest.mark.parametrize("type_", FLOATS)
def test_negation_and_absolute_value(type_: str, lanes: int) -> None:
    a = float_values(type_)
    for op, function in {"arith.negf": np.negative, "math.absf": np.abs}.items():
        actual = as_float(type_, run(f"%r = {op} %a : {{R}}", [type_], type_, lanes, a))
        assert_same(actual, computed(type_, function, a))


PREDICATES: dict[str, Callable[[Array, Array], Array]] = {
    "false": lambda a, b: np.zeros(a.shape, bool),
    "oeq": operator.eq,
    "ogt": operator.gt,
    "oge": operator.ge,
    "olt": operator.lt,
    "ole": operator.le,
    "one": lambda a, b: (a < b) | (a > b),
    "ord": lambda a, b: ~(np.isnan(a) | np.isnan(b)),
    "ueq": lambda a, b: ~((a < b) | (a > b)),
    "ugt": lambda a, b: ~(a <= b),
    "uge": lambda a, b: ~(a < b),
    "ult": lambda a, b: ~(a >= b),
    "ule": lambda a, b: ~(a > b),
    "une": operator.ne,
    "uno": lambda a, b: np.isnan(a) | np.isnan(b),
    "true": lambda a, b: np.ones(a.shape, bool),
}


@SHAPES
@pytest.mark.parametrize("type_", FLOATS)
def test_float_comparisons(type_: str, lanes: int) -> None:
    a, b = pairs(float_values(type_))
    x, y = as_float(type_, a), as_float(type_, b)
    dialect = "low" if lanes else "arith"
    for predicate, compare in PREDICATES.items():
        text = f"%r = {dialect}.cmpf {predicate}, %a, %b : {{T0}}"
        assert_same(run(text, [type_, type_], "i1", lanes, a, b), compare(x, y))


@SHAPES
@pytest.mark.parametrize("type_", ["i1", *INTEGERS, *FLOATS])
def test_select(type_: str, lanes: int) -> None:
    rng = np.random.default_rng(0)
    condition = rng.integers(0, 2, 32).astype(bool)
    a, b = (rng.integers(0, 2, 32).astype(DTYPES[type_]) for _ in range(2))
    op = "%r = low.select %a, %b, %c : {R}" if lanes else "%r = arith.select %a, %b, %c : {R}"
    assert_same(run(op, ["i1", type_, type_], type_, lanes, condition, a, b), np.where(condition, a, b))


def test_any_byte_but_zero_is_true() -> None:
    a = np.array([0, 1, 2, 255, 128, 0, 3, 1], np.uint8).view(np.bool_)
    for lanes in (0, LANES):
        text = "%r = arith.extui %a : i1 to i32" if not lanes else "%r = low.extui %a : {T0} to {R}"
        assert_same(run(text, ["i1"], "i32", lanes, a), np.array([0, 1, 1, 1, 1, 0, 1, 1], np.int32))


# Casts


def cast(op: str, inputs: Array, source: str, target: str, lanes: int) -> Array:
    dialect = "low" if lanes and op not in ("extf", "truncf", "bitcast") else "arith"
    return run(f"%r = {dialect}.{op} %a : {{T0}} to {{R}}", [source], target, lanes, inputs)


@SHAPES
@pytest.mark.parametrize("source", ["i1", *INTEGERS[:4]])
@pytest.mark.parametrize("target", INTEGERS[:4])
def test_integer_casts(source: str, target: str, lanes: int) -> None:
    a = integer_values(source)
    size = {name: 1 if name == "i1" else int(name[1:]) for name in (source, target)}
    if size[source] < size[target]:
        signed = -a.astype(DTYPES[target]) if source == "i1" else a.astype(DTYPES[target])
        assert_same(cast("extsi", a, source, target, lanes), signed)
        raw = a.astype(np.uint8) if source == "i1" else a.view(f"u{a.dtype}")
        assert_same(cast("extui", a, source, target, lanes), raw.astype(DTYPES[target]))
    elif size[source] > size[target]:
        assert_same(cast("trunci", a, source, target, lanes), a.astype(DTYPES[target]))


@SHAPES
@pytest.mark.parametrize("type_", ["i1", *INTEGERS[:4]])
def test_index_casts(type_: str, lanes: int) -> None:
    a = integer_values(type_)
    wide = -a.astype(np.int64) if type_ == "i1" else a.astype(np.int64)
    assert_same(cast("index_cast", a, type_, "index", lanes), wide)
    values = integer_values("index")
    narrow = (values & 1).astype(bool) if type_ == "i1" else values.astype(DTYPES[type_])
    assert_same(cast("index_cast", values, "index", type_, lanes), narrow)


@SHAPES
@pytest.mark.parametrize(
    "source, target",
    [(s, t) for s, t in itertools.permutations(FLOATS, 2) if DTYPES[s]().itemsize != DTYPES[t]().itemsize],
)
def test_float_casts(source: str, target: str, lanes: int) -> None:
    values = float_values(source)
    if source == "f64":
        # Half way between two 16-bit values, and a hair beside: a detour over f32 would round twice.
        near = [1 + 2.0**-8, 1 + 2.0**-8 + 2.0**-40, 1 + 3 * 2.0**-8 - 2.0**-40, 1 + 2.0**-11 + 2.0**-40, 1e39, -1e39]
        values = np.concatenate([values, near, [2.0**-134, 2.0**-134 + 2.0**-170, -(2.0**-25) - 2.0**-70]])
    if source == "f32" and target == "bf16":
        bits = [
            0x7F800001,
            0xFFFFFFFF,
            0x3F808000,
            0x3F818000,
            0x3F808001,
            0x7F7FFFFF,
            0x00008000,
            0x00018000,
            0x0000C000,
        ]
        values = np.concatenate([values, np.array(bits, np.uint32).view(np.float32)])
    op = "extf" if DTYPES[source]().itemsize < DTYPES[target]().itemsize else "truncf"
    with np.errstate(all="ignore"):
        expected = rounded(target, as_float(source, values).astype(np.float64))
    assert_same(as_float(target, cast(op, values, source, target, lanes)), expected)


@SHAPES
@pytest.mark.parametrize("type_", ["i1", *INTEGERS[:4]])
@pytest.mark.parametrize("target", FLOATS)
def test_integers_to_floats(type_: str, target: str, lanes: int) -> None:
    a = integer_values(type_)
    if type_ == "i64":
        ties = [(1 << 60) + (1 << 52), (1 << 60) + (1 << 52) + 1, -(1 << 60) - (1 << 52) - 1, (1 << 62) - 1, 1 << 53]
        a = np.concatenate([a, ties, [65519, 65520, 257, 258, 259, (1 << 24) + (1 << 16) + 1]])
    unsigned_ = a if type_ == "i1" else a.view(f"u{a.dtype}")

    def expected(values: list[int]) -> Array:
        if target == "bf16":
            return as_float("bf16", np.array([exact_bf16(value) for value in values], np.uint16))
        with np.errstate(over="ignore"):
            # The double is exact up to 53 bits; beyond, no tie of f16 and f32 is missed by these values.
            kind = np.uint64 if max(values) > 1 << 63 else np.int64
            return np.array(values, kind).astype(DTYPES[target])

    signed_values = [-int(value) for value in a] if type_ == "i1" else [int(value) for value in a]
    assert_same(as_float(target, cast("sitofp", a, type_, target, lanes)), expected(signed_values))
    actual = cast("uitofp", a, type_, target, lanes)
    assert_same(as_float(target, actual), expected([int(value) for value in unsigned_]))


def exact_bf16(value: int) -> int:
    """The bits of the bf16 nearest to an integer of any size, ties to even."""
    size = abs(value)
    shift = max(size.bit_length() - 8, 0)
    kept, rest = size >> shift, size & (1 << shift) - 1
    half = 1 << shift >> 1
    kept += rest > half or (rest == half and bool(half) and kept % 2 == 1)
    result = np.float32(math.ldexp(kept, shift) * (-1 if value < 0 else 1))
    return int(np.array(result).view(np.uint32)) >> 16


@SHAPES
@pytest.mark.parametrize("source", FLOATS)
@pytest.mark.parametrize("target", INTEGERS[:4])
def test_floats_to_integers(source: str, target: str, lanes: int) -> None:
    """Towards zero; only values that fit."""
    a = floats(source, [0.0, -0.0, 0.5, 0.99, 1.0, 1.5, 2.5, 100.25, 127.0, -0.5, -1.5, -100.75, -128.0])
    x = as_float(source, a)
    assert_same(cast("fptosi", a, source, target, lanes), np.trunc(x).astype(DTYPES[target]))
    b = floats(source, [0.0, -0.5, 0.75, 1.5, 200.5, 255.0])
    kind = np.dtype(f"u{np.dtype(DTYPES[target])}")
    expected = np.trunc(as_float(source, b)).astype(kind).view(DTYPES[target])
    assert_same(cast("fptoui", b, source, target, lanes), expected)


def test_bitcasts() -> None:
    a = float_values("f32")
    assert_same(cast("bitcast", a, "f32", "i32", 0), a.view(np.int32))
    text = "%r = vector.bitcast %a : {T0} to {R}"
    assert_same(run(text, ["f32"], "i32", LANES, a), a.view(np.int32))


# Mathematical functions

INSTRUCTIONS: dict[str, Callable[[Array], Array]] = {
    "sqrt": np.sqrt,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "roundeven": np.rint,
    "round": lambda a: np.where(np.isfinite(a), np.copysign(np.floor(np.abs(a) + 0.5), a), a),
}


@SHAPES
@pytest.mark.parametrize("type_", FLOATS)
@pytest.mark.parametrize("op", INSTRUCTIONS)
def test_exact_function(op: str, type_: str, lanes: int) -> None:
    a = float_values(type_)
    expected = computed(type_, lambda x: INSTRUCTIONS[op](x.astype(np.float64)).astype(x.dtype), a)
    assert_same(as_float(type_, run(f"%r = math.{op} %a : {{R}}", [type_], type_, lanes, a)), expected)


SMALL = (-1.0, -0.75, -0.3, 0.0, 0.2, 0.5, 0.9, 1.0)
WIDE = (-20.0, -3.0, -1.0, -0.1, 0.0, 0.1, 1.0, 2.0, 9.5, math.inf, math.nan)
POSITIVE = (0.0, 1e-3, 0.5, 1.0, 2.0, 10.0, 1000.0, -1.0, math.inf)
FUNCTIONS: dict[str, tuple[Callable[[float], float], Sequence[float]]] = {
    "exp": (math.exp, WIDE),
    "exp2": (math.exp2, WIDE),
    "expm1": (math.expm1, WIDE),
    "log": (math.log, POSITIVE),
    "log2": (math.log2, POSITIVE),
    "log10": (math.log10, POSITIVE),
    "log1p": (math.log1p, POSITIVE),
    "rsqrt": (lambda x: 1 / math.sqrt(x), POSITIVE),
    "sin": (math.sin, WIDE),
    "cos": (math.cos, WIDE),
    "tan": (math.tan, WIDE),
    "asin": (math.asin, SMALL),
    "acos": (math.acos, SMALL),
    "atan": (math.atan, WIDE),
    "sinh": (math.sinh, WIDE),
    "cosh": (math.cosh, WIDE),
    "tanh": (math.tanh, WIDE),
    "asinh": (math.asinh, WIDE),
    "acosh": (math.acosh, POSITIVE),
    "atanh": (math.atanh, SMALL),
    "cbrt": (math.cbrt, WIDE),
    "erf": (math.erf, WIDE),
}
LIMITS = {"log": -math.inf, "log2": -math.inf, "log10": -math.inf, "log1p": -math.inf, "rsqrt": math.inf}


def value_at(op: str, x: float) -> float:
    """The function at x, with the poles where Python raises."""
    pole = {"atanh": (1.0, -1.0), "log1p": (-1.0,)}.get(op, (0.0,) if op in LIMITS else ())
    if x in pole:
        return math.copysign(math.inf, x) if op == "atanh" else LIMITS[op]
    try:
        return FUNCTIONS[op][0](x)
    except ValueError:
        return math.nan


@SHAPES
@pytest.mark.parametrize("type_", first_tier(FLOATS, "bf16", "f32", "f64"))
@pytest.mark.parametrize("op", FUNCTIONS)
def test_function(op: str, type_: str, lanes: int) -> None:
    a = floats(type_, FUNCTIONS[op][1])
    exact = np.array([value_at(op, float(x)) for x in as_float(type_, a)])
    actual = as_float(type_, run(f"%r = math.{op} %a : {{R}}", [type_], type_, lanes, a))
    with np.errstate(over="ignore"):
        expected = rounded(type_, exact)
    precision = {"f16": 2.0**-10, "bf16": 2.0**-7, "f32": 2.0**-22, "f64": 2.0**-51}[type_]
    np.testing.assert_allclose(actual.astype(np.float64), expected.astype(np.float64), rtol=precision, atol=1e-300)


@SHAPES
@pytest.mark.parametrize("type_", FLOATS)
def test_functions_of_two(type_: str, lanes: int) -> None:
    a, b = pairs(floats(type_, [-2.5, -1.0, 0.5, 1.0, 2.0, 3.0]))
    x, y = (as_float(type_, array).astype(np.float64) for array in (a, b))
    precision = {"f16": 2.0**-10, "bf16": 2.0**-7, "f32": 2.0**-22, "f64": 2.0**-51}[type_]
    for op, function in {"powf": np.power, "atan2": np.arctan2, "copysign": np.copysign}.items():
        actual = as_float(type_, run(f"%r = math.{op} %a, %b : {{R}}", [type_, type_], type_, lanes, a, b))
        with np.errstate(invalid="ignore"):
            expected = rounded(type_, function(x, y))
        np.testing.assert_allclose(actual.astype(np.float64), expected.astype(np.float64), rtol=precision)


@SHAPES
@pytest.mark.parametrize("type_", ["f16", "f32", "f64"])
def test_float_to_an_integer_power(type_: str, lanes: int) -> None:
    values, powers = np.array([-2.0, -0.5, 0.0, 1.0, 3.0]), np.arange(-3, 5, dtype=np.int32)
    a, b = (array.ravel().copy() for array in np.meshgrid(values.astype(DTYPES[type_]), powers))
    op = "%r = math.fpowi %a, %b : {T0}, {T1}"
    with np.errstate(divide="ignore"):
        expected = np.power(a.astype(np.float64), b).astype(DTYPES[type_])
    assert_same(run(op, [type_, "i32"], type_, lanes, a, b), expected)


@SHAPES
@pytest.mark.parametrize("type_", FLOATS)
def test_fused_multiply_add(type_: str, lanes: int) -> None:
    rng = np.random.default_rng(1)
    a, b, c = (floats(type_, rng.standard_normal(64)) for _ in range(3))
    if type_ in ("f16", "bf16"):
        # Products in the middle between two numbers: what is added, too small for f32 to hold it too, decides.
        first, second = (2.0**-5, 2.0**-6) if type_ == "f16" else (2.0**-4, 2.0**-4)
        ties = [(1 + s * first, 1 + s * second, t * 2.0**-24) for s in (1, -1) for t in (1, -1, 0)]
        a, b, c = (np.concatenate([old, floats(type_, [tie[at] for tie in ties])]) for at, old in enumerate((a, b, c)))
    x, y, z = (as_float(type_, array).astype(np.longdouble) for array in (a, b, c))
    names = ["math.fma", "vector.fma"] if lanes else ["math.fma"]
    for name in names:
        actual = as_float(type_, run(f"%r = {name} %a, %b, %c : {{R}}", [type_] * 3, type_, lanes, a, b, c))
        # Exact in double for 16-bit floats (NumPy rounds long doubles to them twice), near enough in long double for
        # the others that one rounding shows.
        exact = x * y + z
        expected = rounded(type_, exact.astype(np.float64) if type_ in ("f16", "bf16") else exact)
        assert_same(actual, expected)


def test_multiplication_and_addition_are_fused() -> None:
    """The product 1 + 2^-11 + 2^-24 keeps its last bit in a fused multiply-add only."""
    a = np.full(8, 1 + 2.0**-12, np.float32)
    c = np.full(8, -1.0, np.float32)
    text = "%m = arith.mulf %a, %a : {T0} %r = arith.addf %m, %b : {T0}"
    fused = compile_text(elementwise(text, ["f32", "f32"], "f32", LANES))
    if "vfmadd" not in fused.get_source("asm") and "fmla" not in fused.get_source("asm"):
        pytest.skip("this machine has no fused multiply-add")
    for lanes in (0, LANES):
        np.testing.assert_array_equal(run(text, ["f32", "f32"], "f32", lanes, a, c), np.float32(2.0**-11 + 2.0**-24))


# Constants


@SHAPES
@pytest.mark.parametrize("type_", first_tier(FLOATS, "f16", "f32"))
def test_float_constants(type_: str, lanes: int) -> None:
    zeros = floats(type_, [0.0] * LANES)
    digits = {"f16": 4, "bf16": 4, "f32": 8, "f64": 16}[type_]
    for value in float_values(type_):
        bits = value.tobytes()[::-1].hex().upper()
        assert len(bits) == digits
        # xDSL reads hexadecimal numbers within `dense` as integers, but strings as bytes.
        constant = f'dense<"0x{value.tobytes().hex()}"> : {{R}}' if lanes else f"0x{bits} : {{R}}"
        actual = run(f"%r = arith.constant {constant}", [type_], type_, lanes, zeros)
        assert_same(as_float(type_, actual), np.repeat(as_float(type_, np.array([value])), LANES))


@pytest.mark.parametrize("type_", ["i1", *INTEGERS])
def test_integer_constants(type_: str) -> None:
    for value in integer_values(type_):
        text = str(value).lower()
        scalar = f"{text} : {{R}}" if type_ != "i1" else text
        zeros = np.zeros(LANES, DTYPES[type_])
        assert_same(run(f"%r = arith.constant {scalar}", [type_], type_, 0, zeros), np.full(LANES, value))
    values = np.resize(integer_values(type_), LANES)
    lanes = ", ".join(str(value).lower() for value in values)
    actual = run(f"%r = arith.constant dense<[{lanes}]> : {{R}}", [type_], type_, LANES, np.zeros_like(values))
    assert_same(actual, values)
