"""Scalar ops of every element type against NumPy, on edge values and random ones."""

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.universe import Universe

import weft
from weft.driver.parsing import parse_text
from weft.interp.errors import InterpreterError
from weft.interp.interpreter import Interpreter
from weft.interp.scalar_functions import int_to_double
from weft.interp.values import narrow, round_array, widen
from weft.support.narrow_floats import round_bf16, round_f16, round_f32

DTYPES = {
    "f64": np.float64,
    "f32": np.float32,
    "f16": np.float16,
    "i64": np.int64,
    "i32": np.int32,
    "i16": np.int16,
    "i8": np.int8,
    "i1": np.bool_,
    "index": np.int64,
}
FLOATS = ("f64", "f32", "f16")
INTEGERS = ("i8", "i16", "i32", "i64")


def interpreter(text: str) -> Interpreter:
    ctx = Context()
    for name, factory in Universe.get_multiverse().all_dialects.items():
        ctx.register_dialect(name, factory)
    return Interpreter(parse_text(ctx, text, "test.mlir"))


def apply(body: str, types: list[str], result: str, *arrays: np.ndarray[Any, Any], dtype: Any = None) -> Any:
    """Run `%r = body` on each element of `arrays`, whose elements are %x0, %x1, ..."""
    n = len(arrays[0])
    parameters = "".join(f"%a{i}: memref<{n}x{t}>, " for i, t in enumerate(types))
    loads = "".join(f"%x{i} = memref.load %a{i}[%i] : memref<{n}x{t}>\n" for i, t in enumerate(types))
    text = f"""func.func @f({parameters}%r: memref<{n}x{result}>) {{
      tir.for %i in {n} {{
        {loads}
        %y = {body}
        memref.store %y, %r[%i] : memref<{n}x{result}>
      }}
      func.return
    }}"""
    out = np.zeros(n, DTYPES[result] if dtype is None else dtype)
    interpreter(text).call("f", *arrays, out)
    return out


def float_values(dtype: Any) -> np.ndarray[Any, Any]:
    info = np.finfo(dtype)
    special = [0.0, -0.0, 1.0, -1.0, 2.5, 3.0, math.inf, -math.inf, math.nan, info.max, -info.max]
    special += [info.tiny, info.smallest_subnormal, -info.smallest_subnormal, 1 + info.eps, 1 - info.epsneg, 1 / 3]
    with np.errstate(all="ignore"):
        random = np.random.default_rng(0).standard_normal(12) * 10.0 ** np.arange(-6, 6)
        return np.array([*special, *random]).astype(dtype)


def int_values(dtype: Any) -> np.ndarray[Any, Any]:
    info = np.iinfo(dtype)
    random = np.random.default_rng(0).integers(info.min, info.max, 10, dtype=dtype)
    return np.array([0, 1, -1, 2, -2, 3, 7, -7, info.max, info.min, info.max - 1, info.min + 1, *random], dtype)


def pairs(values: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    a, b = zip(*itertools.product(values, values), strict=True)
    return np.array(a, values.dtype), np.array(b, values.dtype)


def same_floats(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> None:
    """Equal, NaNs and signs of zeros included."""
    np.testing.assert_array_equal(a, b)
    number = ~np.isnan(b)
    np.testing.assert_array_equal(np.signbit(a)[number], np.signbit(b)[number])


def signed_zero(choose: Any, a: Any, b: Any, largest: bool) -> Any:
    """NumPy's choice, but +0 is larger than -0."""
    result = choose(a, b)
    zeros = (a == 0) & (b == 0)
    negative = np.signbit(a) & np.signbit(b) if largest else np.signbit(a) | np.signbit(b)
    return np.where(zeros, np.where(negative, -0.0, 0.0), result).astype(a.dtype)


FLOAT_BINARY = {
    "arith.addf": np.add,
    "arith.subf": np.subtract,
    "arith.mulf": np.multiply,
    "arith.divf": np.divide,
    "arith.maximumf": lambda a, b: signed_zero(np.maximum, a, b, True),
    "arith.minimumf": lambda a, b: signed_zero(np.minimum, a, b, False),
    "arith.maxnumf": lambda a, b: signed_zero(np.fmax, a, b, True),
    "arith.minnumf": lambda a, b: signed_zero(np.fmin, a, b, False),
    "math.copysign": np.copysign,
}


@pytest.mark.parametrize("type_", FLOATS)
@pytest.mark.parametrize("op", FLOAT_BINARY)
def test_float_binary_is_exact(op: str, type_: str) -> None:
    a, b = pairs(float_values(DTYPES[type_]))
    with np.errstate(all="ignore"):
        expected = FLOAT_BINARY[op](a, b)
    same_floats(apply(f"{op} %x0, %x1 : {type_}", [type_, type_], type_, a, b), expected)


@pytest.mark.parametrize("op", ["arith.addf", "arith.subf", "arith.mulf", "arith.divf", "arith.maximumf"])
def test_bf16_binary_is_exact(op: str) -> None:
    bits = np.random.default_rng(1).integers(0, 1 << 16, 40).astype(np.uint16)
    bits = np.array([*bits, 0, 0x8000, 1, 0x3F80, 0x7F80, 0xFF80, 0x7F7F], np.uint16)
    a, b = pairs(bits)
    x, y = ((v.astype(np.uint32) << 16).view(np.float32).astype(np.float64) for v in (a, b))
    with np.errstate(all="ignore"):
        expected = np.array([nearest_bf16(v) for v in FLOAT_BINARY[op](x, y)])
    got = apply(f"{op} %x0, %x1 : bf16", ["bf16", "bf16"], "bf16", a, b, dtype=np.uint16)
    same_floats((got.astype(np.uint32) << 16).view(np.float32).astype(np.float64), expected)


def nearest_bf16(x: float) -> float:
    """By search: the nearest of the two neighbours, ties to the even one."""
    if not math.isfinite(x) or x == 0.0:
        return x
    magnitude = Fraction(abs(x))
    low, high = 0, 0x7F80
    while high - low > 1:
        middle = (low + high) // 2
        if bf16_value(middle) <= magnitude:
            low = middle
        else:
            high = middle
    below, above = magnitude - bf16_value(low), bf16_value(high) - magnitude
    bits = low if below < above or (below == above and low % 2 == 0) else high
    value = math.inf if bits == 0x7F80 else float(bf16_value(bits))
    return math.copysign(value, x)


def bf16_value(bits: int) -> Fraction:
    """The positive bf16 with these bits; the bits of infinity stand for 2^128."""
    exponent, fraction = bits >> 7, bits & 127
    if exponent == 0:
        return Fraction(fraction, 1) * Fraction(2) ** -133
    return Fraction(128 + fraction) * Fraction(2) ** (exponent - 134)


def test_rounding_to_narrow_floats() -> None:
    generator = np.random.default_rng(2)
    bits = generator.integers(0, 1 << 63, 4000).astype(np.uint64)
    wide = [*bits.view(np.float64), *(generator.standard_normal(4000) * 2.0 ** generator.integers(-140, 130, 4000))]
    ties = [
        1 + 2**-8,
        1 + 3 * 2**-8,
        2.0**-134,
        3 * 2.0**-134,
        1 + 2**-8 + 2**-50,
        65519.999,
        65520.0,
        3.4e38,
        -65520.0,
    ]
    for x in map(float, [*wide, *ties]):
        with np.errstate(all="ignore"):
            assert round_f16(x) == float(np.float16(x)) or math.isnan(x)
            assert round_f32(x) == float(np.float32(x)) or math.isnan(x)
        assert round_bf16(x) == nearest_bf16(x) or math.isnan(x)
    from xdsl.dialects.builtin import bf16

    array = np.array([*wide, *ties])
    np.testing.assert_array_equal(round_array(array, bf16), [round_bf16(float(x)) for x in array])
    narrowed = narrow(round_array(array, bf16), bf16, np.dtype(np.uint16))
    np.testing.assert_array_equal(widen(narrowed, bf16), round_array(array, bf16))


def wrapped(value: int, width: int) -> int:
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


def truncated(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


INT_BINARY = {
    "arith.addi": lambda a, b, w: a + b,
    "arith.subi": lambda a, b, w: a - b,
    "arith.muli": lambda a, b, w: a * b,
    "arith.divsi": lambda a, b, w: truncated(a, b),
    "arith.remsi": lambda a, b, w: a - b * truncated(a, b),
    "arith.floordivsi": lambda a, b, w: math.floor(Fraction(a, b)),
    "arith.ceildivsi": lambda a, b, w: math.ceil(Fraction(a, b)),
    "arith.divui": lambda a, b, w: (a % 2**w) // (b % 2**w),
    "arith.remui": lambda a, b, w: (a % 2**w) % (b % 2**w),
    "arith.ceildivui": lambda a, b, w: math.ceil(Fraction(a % 2**w, b % 2**w)),
    "arith.maxsi": lambda a, b, w: max(a, b),
    "arith.minsi": lambda a, b, w: min(a, b),
    "arith.maxui": lambda a, b, w: max(a % 2**w, b % 2**w),
    "arith.minui": lambda a, b, w: min(a % 2**w, b % 2**w),
    "arith.andi": lambda a, b, w: a & b,
    "arith.ori": lambda a, b, w: a | b,
    "arith.xori": lambda a, b, w: a ^ b,
    "arith.shli": lambda a, b, w: a << b,
    "arith.shrsi": lambda a, b, w: a >> b,
    "arith.shrui": lambda a, b, w: (a % 2**w) >> b,
}


@pytest.mark.parametrize("type_", INTEGERS)
@pytest.mark.parametrize("op", INT_BINARY)
def test_integer_binary(op: str, type_: str) -> None:
    width = int(type_[1:])
    a, b = pairs(int_values(DTYPES[type_]))
    if "div" in op or "rem" in op:
        legal = (b != 0) & ~((a == np.iinfo(a.dtype).min) & (b == -1))
    elif "sh" in op:
        legal = (b >= 0) & (b < width)
    else:
        legal = np.ones(len(a), bool)
    a, b = a[legal], b[legal]
    expected = [wrapped(INT_BINARY[op](int(x), int(y), width), width) for x, y in zip(a, b, strict=True)]
    np.testing.assert_array_equal(apply(f"{op} %x0, %x1 : {type_}", [type_, type_], type_, a, b), expected)


def test_truth_values() -> None:
    a, b = np.array([False, False, True, True]), np.array([False, True, False, True])
    for op, expected in {
        "arith.addi": a ^ b,
        "arith.muli": a & b,
        "arith.andi": a & b,
        "arith.ori": a | b,
        "arith.xori": a ^ b,
        "arith.maxsi": a & b,  # true is -1
        "arith.maxui": a | b,
        "arith.minsi": a | b,
    }.items():
        np.testing.assert_array_equal(apply(f"{op} %x0, %x1 : i1", ["i1", "i1"], "i1", a, b), expected, op)
    np.testing.assert_array_equal(apply("arith.extsi %x0 : i1 to i32", ["i1"], "i32", a), [0, 0, -1, -1])
    np.testing.assert_array_equal(apply("arith.extui %x0 : i1 to i32", ["i1"], "i32", a), [0, 0, 1, 1])
    np.testing.assert_array_equal(apply("arith.sitofp %x0 : i1 to f32", ["i1"], "f32", a), [0, 0, -1, -1])
    np.testing.assert_array_equal(apply("arith.uitofp %x0 : i1 to f32", ["i1"], "f32", a), [0, 0, 1, 1])


@pytest.mark.parametrize("type_", ["i8", "i64"])
def test_integer_comparisons(type_: str) -> None:
    a, b = pairs(int_values(DTYPES[type_]))
    u, v = (x.view(f"u{x.dtype.itemsize}") for x in (a, b))
    expected = {"eq": a == b, "ne": a != b, "slt": a < b, "sle": a <= b, "sgt": a > b, "sge": a >= b}
    expected |= {"ult": u < v, "ule": u <= v, "ugt": u > v, "uge": u >= v}
    for predicate, wanted in expected.items():
        got = apply(f"arith.cmpi {predicate}, %x0, %x1 : {type_}", [type_, type_], "i1", a, b)
        np.testing.assert_array_equal(got, wanted, predicate)


def test_float_comparisons() -> None:
    a, b = pairs(float_values(np.float32))
    unordered = np.isnan(a) | np.isnan(b)
    ordered = {"eq": a == b, "gt": a > b, "ge": a >= b, "lt": a < b, "le": a <= b, "ne": (a != b) & ~unordered}
    expected = {"o" + name: value for name, value in ordered.items()}
    expected |= {"u" + name: value | unordered for name, value in ordered.items()}
    expected |= {"ord": ~unordered, "uno": unordered, "true": unordered | True, "false": unordered & False}
    for predicate, wanted in expected.items():
        got = apply(f"arith.cmpf {predicate}, %x0, %x1 : f32", ["f32", "f32"], "i1", a, b)
        np.testing.assert_array_equal(got, wanted, predicate)


def test_float_conversions() -> None:
    wide = float_values(np.float64)
    with np.errstate(all="ignore"):
        same_floats(apply("arith.truncf %x0 : f64 to f32", ["f64"], "f32", wide), wide.astype(np.float32))
        same_floats(apply("arith.truncf %x0 : f64 to f16", ["f64"], "f16", wide), wide.astype(np.float16))
    half = float_values(np.float16)
    same_floats(apply("arith.extf %x0 : f16 to f32", ["f16"], "f32", half), half.astype(np.float32))
    same_floats(apply("arith.negf %x0 : f16", ["f16"], "f16", half), -half)
    same_floats(apply("math.absf %x0 : f16", ["f16"], "f16", half), np.abs(half))


def test_integer_conversions() -> None:
    wide, narrow_ = int_values(np.int64), int_values(np.int8)
    np.testing.assert_array_equal(apply("arith.trunci %x0 : i64 to i8", ["i64"], "i8", wide), wide.astype(np.int8))
    np.testing.assert_array_equal(apply("arith.trunci %x0 : i64 to i1", ["i64"], "i1", wide), wide & 1 == 1)
    np.testing.assert_array_equal(apply("arith.extsi %x0 : i8 to i32", ["i8"], "i32", narrow_), narrow_)
    np.testing.assert_array_equal(apply("arith.extui %x0 : i8 to i32", ["i8"], "i32", narrow_), narrow_.view(np.uint8))
    np.testing.assert_array_equal(apply("arith.index_cast %x0 : i8 to index", ["i8"], "index", narrow_), narrow_)
    np.testing.assert_array_equal(
        apply("arith.index_cast %x0 : index to i32", ["index"], "i32", wide), wide.astype(np.int32)
    )


def test_integers_to_floats_round_once() -> None:
    wide = np.array(
        [*int_values(np.int64), 2**53 + 1, 2**60 + 2**36 + 1, 2**60 + 2**36, -(2**62) - 2**38 - 1], np.int64
    )
    for type_ in ("f64", "f32"):
        expected = wide.astype(DTYPES[type_])
        np.testing.assert_array_equal(apply(f"arith.sitofp %x0 : i64 to {type_}", ["i64"], type_, wide), expected)
        expected = wide.view(np.uint64).astype(DTYPES[type_])
        np.testing.assert_array_equal(apply(f"arith.uitofp %x0 : i64 to {type_}", ["i64"], type_, wide), expected)
    for n in (2**70 + 2**46 + 1, -(2**53) - 1, 2**60 + 2**52 + 1):
        assert round_bf16(int_to_double(n)) == nearest_bf16_of_integer(n)


def nearest_bf16_of_integer(n: int) -> float:
    quantum = 2 ** max(abs(n).bit_length() - 8, 0)
    return math.copysign(float(round(Fraction(abs(n), quantum)) * quantum), n)


def test_floats_to_integers() -> None:
    x = np.array([0.0, -0.0, 1.5, -1.5, 127.9, -128.9, 2.0**31 - 1, -(2.0**31)])
    expected = np.trunc(x).astype(np.int32)
    np.testing.assert_array_equal(apply("arith.fptosi %x0 : f64 to i32", ["f64"], "i32", x), expected)
    x = np.array([0.0, 200.7, 255.9, -0.5])
    got = apply("arith.fptoui %x0 : f64 to i8", ["f64"], "i8", x)
    np.testing.assert_array_equal(got.view(np.uint8), [0, 200, 255, 0])
    beyond = np.array([2.0**31, -(2.0**31) - 1, math.nan, math.inf])
    found = apply("arith.fptosi %x0 : f64 to i32", ["f64"], "i32", beyond)
    np.testing.assert_array_equal(found, np.full(4, -(2**31), np.int32))
    found = apply("arith.fptoui %x0 : f64 to i8", ["f64"], "i8", np.array([-1.0, 256.0, math.nan]))
    np.testing.assert_array_equal(found, np.array([-1, 0, 0], np.int8))


def test_bitcasts() -> None:
    for float_type, int_type in (("f64", "i64"), ("f32", "i32"), ("f16", "i16")):
        x = float_values(DTYPES[float_type])
        bits = x.view(DTYPES[int_type])
        x, bits = x[~np.isnan(x)], bits[~np.isnan(x)]
        got = apply(f"arith.bitcast %x0 : {float_type} to {int_type}", [float_type], int_type, x)
        np.testing.assert_array_equal(got, bits)
        same_floats(apply(f"arith.bitcast %x0 : {int_type} to {float_type}", [int_type], float_type, bits), x)
    bits = np.array([0, 0x3F80, 0xC040, 0x7F80, 1], np.uint16)
    got = apply("arith.bitcast %x0 : bf16 to i16", ["bf16"], "i16", bits)
    np.testing.assert_array_equal(got.view(np.uint16), bits)
    got = apply("arith.bitcast %x0 : i16 to bf16", ["i16"], "bf16", bits.view(np.int16), dtype=np.uint16)
    np.testing.assert_array_equal(got, bits)


MATH = {
    **{name: getattr(np, name) for name in ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "cbrt")},
    **{name: getattr(np, name) for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "floor", "ceil", "trunc")},
    **{name: getattr(np, "arc" + name[1:]) for name in ("acos", "asin", "atan", "acosh", "asinh", "atanh")},
    "erf": np.vectorize(math.erf, [float]),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "roundeven": np.rint,
    "round": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x),
}


@pytest.mark.parametrize("name", MATH)
def test_math_functions(name: str) -> None:
    x = np.array([0.0, 0.1, -0.1, 0.5, 1.5, -2.5, 3.25, 1.0, -1.0, 7.0, 710.0, -750.0, math.inf, -math.inf, math.nan])
    with np.errstate(all="ignore"):
        expected = MATH[name](x)
        got = apply(f"math.{name} %x0 : f64", ["f64"], "f64", x)
        np.testing.assert_allclose(got, expected, rtol=4e-16 * 8, atol=0)
        number = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(got)[number], np.signbit(expected)[number])
        single = x.astype(np.float32)
        expected = MATH[name](single.astype(np.float64)).astype(np.float32)
        np.testing.assert_allclose(apply(f"math.{name} %x0 : f32", ["f32"], "f32", single), expected, rtol=1.2e-7)


def test_math_with_two_operands() -> None:
    a, b = pairs(np.array([0.0, 1.0, -2.0, 0.5, 3.0, math.inf, math.nan]))
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(apply("math.powf %x0, %x1 : f64", ["f64"] * 2, "f64", a, b), np.power(a, b))
        np.testing.assert_allclose(apply("math.atan2 %x0, %x1 : f64", ["f64"] * 2, "f64", a, b), np.arctan2(a, b))
    base, exponent = np.array([2, 3, -3, 1, -1, -1, 5], np.int32), np.array([10, 25, 3, -2, -3, -2, -1], np.int32)
    expected = [1024, wrapped(3**25, 32), -27, 1, -1, 1, 0]
    got = apply("math.ipowi %x0, %x1 : i32", ["i32"] * 2, "i32", base, exponent)
    np.testing.assert_array_equal(got, expected)


def test_bit_counts() -> None:
    x = int_values(np.int16)
    bits = [format(int(v) & 0xFFFF, "016b") for v in x]
    expected = {"ctlz": [16 - len(b.lstrip("0")) for b in bits], "cttz": [16 - len(b.rstrip("0")) for b in bits]}
    for name, wanted in {**expected, "ctpop": [b.count("1") for b in bits]}.items():
        np.testing.assert_array_equal(apply(f"math.{name} %x0 : i16", ["i16"], "i16", x), wanted, name)
    small = np.array([3, -3, 127, -128], np.int8)
    np.testing.assert_array_equal(apply("math.absi %x0 : i8", ["i8"], "i8", small), [3, 3, 127, -128])


@pytest.mark.parametrize("type_", ["f64", "f32"])
def test_fma_rounds_once(type_: str) -> None:
    generator = np.random.default_rng(3)
    a, b, c = (generator.standard_normal(400) * 2.0 ** generator.integers(-40, 40, 400) for _ in range(3))
    c[:200] = -(a * b)[:200] * (1 + 2.0**-30)
    a, b, c = (v.astype(DTYPES[type_]) for v in (a, b, c))
    got = apply(f"math.fma %x0, %x1, %x2 : {type_}", [type_] * 3, type_, a, b, c)
    for x, y, z, value in zip(a, b, c, got, strict=True):
        exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
        error = abs(Fraction(float(value)) - exact)
        for neighbour in (np.nextafter(value, DTYPES[type_](np.inf)), np.nextafter(value, -DTYPES[type_](np.inf))):
            assert error <= abs(Fraction(float(neighbour)) - exact)
    special = [np.array(v, DTYPES[type_]) for v in ([math.inf, 0.0, -0.0], [0.0, 5.0, 1.0], [1.0, -0.0, -0.0])]
    same_floats(
        apply(f"math.fma %x0, %x1, %x2 : {type_}", [type_] * 3, type_, *special),
        np.array([math.nan, 0.0, -0.0], DTYPES[type_]),
    )


def test_select_and_constants() -> None:
    condition = np.array([True, False, True, False])
    a, b = np.float32([1.0, 2.0, math.nan, 4.0]), np.float32([5.0, 6.0, 7.0, math.inf])
    got = apply("arith.select %x0, %x1, %x2 : f32", ["i1", "f32", "f32"], "f32", condition, a, b)
    np.testing.assert_array_equal(got, np.where(condition, a, b))
    text = """func.func @g() -> (f32, f32, i8, i1, index, f16) {
      %a = arith.constant 0.1 : f32
      %b = arith.constant 0xFF800000 : f32
      %c = arith.constant 255 : i8
      %d = arith.constant true
      %e = arith.constant -7 : index
      %f = arith.constant 0.1 : f16
      func.return %a, %b, %c, %d, %e, %f : f32, f32, i8, i1, index, f16
    }"""
    assert interpreter(text).call("g") == (float(np.float32(0.1)), -math.inf, -1, True, -7, float(np.float16(0.1)))


def test_extended_arithmetic() -> None:
    text = """func.func @g(%a: i8, %b: i8) -> (i8, i1, i8, i8, i8, i8) {
      %s, %c = arith.addui_extended %a, %b : i8, i1
      %l, %h = arith.mulsi_extended %a, %b : i8
      %m, %n = arith.mului_extended %a, %b : i8
      func.return %s, %c, %l, %h, %m, %n : i8, i1, i8, i8, i8, i8
    }"""
    assert interpreter(text).call("g", -1, 100) == (99, True, -100, -1, -100, 99)


@pytest.mark.parametrize(
    ("op", "a", "b", "message"),
    [
        ("divsi", 1, 0, "'arith.divsi' divides by zero"),
        ("remsi", 1, 0, "'arith.remsi' divides by zero"),
        ("floordivsi", 1, 0, "'arith.floordivsi' divides by zero"),
        ("divui", 1, 0, "'arith.divui' divides by zero"),
        ("divsi", -(2**31), -1, "'arith.divsi' overflows: the quotient 2147483648 does not fit 32 bits"),
        ("shli", 1, 32, "'arith.shli' shifts 32 bits by 32"),
        ("shrui", 1, -1, "'arith.shrui' shifts 32 bits by -1"),
    ],
)
def test_undefined_integer_arithmetic(op: str, a: int, b: int, message: str) -> None:
    with pytest.raises(InterpreterError, match=message):
        apply(f"arith.{op} %x0, %x1 : i32", ["i32", "i32"], "i32", np.int32([a]), np.int32([b]))


def test_indices_wrap_where_they_are_stored() -> None:
    text = """
    func.func @f(%A: memref<4xindex>) {
      %c = arith.constant 18446744073709551616 : index
      tir.for %i in 4 {
        tir.block "B" iters(%v: spatial<4>) = [%i] {
          %x = affine.apply affine_map<(d0, d1) -> (d0 * -9223372036854775808 + d1)> (%c, %v)
          memref.store %x, %A[%v] : memref<4xindex>
        }
      }
      func.return
    }"""
    got, expected = np.zeros((2, 4), np.int64)
    interpreter(text).call("f", got)
    weft.build(text)["f"](expected)
    np.testing.assert_array_equal(got, expected)
