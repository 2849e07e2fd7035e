"""Elementary functions: bounds in ulp over the whole range, on CPUs with and without fused multiply-adds."""

import numpy as np
import pytest
from tiers import first_tier
from ulps import BOUNDS, DTYPES, EXACT, IN_DOUBLE, WIDE, WIDER, Array, errors, function_text, sample
from xdsl.dialects import arith, scf

from weft.dialects.low import ORDERED
from weft.driver.parsing import parse_text
from weft.driver.programs import context
from weft.interp.compare import Reference
from weft.interp.interpreter import Interpreter
from weft.passes.low.low_expand_math import FORMULAS, LowExpandMathPass
from weft.runtime.library import Library
from weft.runtime.low_module import load_low_module
from weft.support.target import Target

COUNT = 1 << 17


def compiled(function: str, element: str, lanes: int, target: str, count: int = COUNT, arguments: int = 1) -> Library:
    module = parse_text(context(), function_text(function, element, lanes, count, arguments), "test.mlir")
    module.verify()
    machine = Target.parse(target)
    LowExpandMathPass(str(machine)).apply(context(), module)
    module.verify()
    # Calls that are left are under conditions: of what formulas do not reach.
    assert all(isinstance(op.parent_op(), scf.IfOp) for op in module.walk() if op.name == f"math.{function}")
    return load_low_module(module, machine)


def targets() -> list[str]:
    """This machine, and one without fused multiply-adds where this is an x86."""
    return ["llvm", *(["llvm -mcpu=x86-64"] if Target("llvm").architecture == "x86_64" else [])]


def worst(library: Library, function: str, numbers: Array) -> tuple[float, str]:
    """The largest error of @f, and where it is."""
    largest, place = 0.0, ""
    for start in range(0, len(numbers), COUNT):
        part = np.ascontiguousarray(numbers[start : start + COUNT])
        result = np.empty_like(part)
        library["f"](part, result)
        with np.errstate(all="ignore"):
            exact = EXACT[function](part.astype(WIDER[part.dtype.type]))
        off = errors(result, exact)
        at = int(np.argmax(off))
        if off[at] > largest:
            largest, place = float(off[at]), f"{function}({part[at]!r}) is {exact[at]!r}, got {result[at]!r}"
    return largest, place


@pytest.mark.parametrize("count", first_tier([1, 24], 1))
@pytest.mark.parametrize("target", targets())
@pytest.mark.parametrize("function", BOUNDS)
def test_f32_over_the_whole_range(function: str, target: str, count: int) -> None:
    count = min(count, 4) if function == "erf" else count
    largest, place = worst(compiled(function, "f32", 16, target), function, sample(np.float32, count * COUNT))
    assert largest <= BOUNDS[function][0], place


@pytest.mark.skipif(not WIDE, reason="no arithmetic wider than double")
@pytest.mark.parametrize("target", targets())
@pytest.mark.parametrize("function", BOUNDS)
def test_f64_over_the_whole_range(function: str, target: str) -> None:
    largest, place = worst(compiled(function, "f64", 4, target), function, sample(np.float64, COUNT))
    assert largest <= BOUNDS[function][1], place


@pytest.mark.parametrize("lanes", [0, 3, 64])
@pytest.mark.parametrize("element", DTYPES)
def test_any_number_of_lanes(element: str, lanes: int) -> None:
    """All formulas give the same results whatever the width, scalars included."""
    count = 192
    dtype = DTYPES[element]
    numbers = sample(dtype, COUNT)[:count].copy()
    for function in BOUNDS:
        narrow, wide = np.empty(count, dtype), np.empty(count, dtype)
        compiled(function, element, lanes, "llvm", count)["f"](numbers, narrow)
        compiled(function, element, 16, "llvm", count)["f"](numbers, wide)
        np.testing.assert_array_equal(narrow, wide, err_msg=function)


@pytest.mark.parametrize("element", ["f32", "f64", "f16", "bf16"])
def test_the_expansion_keeps_the_meaning(element: str) -> None:
    """The interpreter computes the formulas as they stand, the function exactly."""
    for function in BOUNDS:
        module = parse_text(context(), function_text(function, element, 8, 64), "test.mlir")
        reference = Reference(module)
        assert not reference.skipped
        LowExpandMathPass().apply(context(), module)
        module.verify()
        assert reference.compare(module) is None, function


@pytest.mark.parametrize("element", ["f32", "f64"])
def test_the_expansion_for_a_cpu_keeps_the_meaning(element: str) -> None:
    for function in BOUNDS:
        module = parse_text(context(), function_text(function, element, 16, 64), "test.mlir")
        reference = Reference(module)
        LowExpandMathPass("llvm -mcpu=cascadelake").apply(context(), module)
        module.verify()
        assert ("low.ldexp" in str(module)) == (function in ("exp", "exp2")), function
        assert reference.compare(module) is None, function


@pytest.mark.parametrize("lanes", [0, 3, 16, 48])
@pytest.mark.parametrize("element", ["f32", "f64"])
def test_ldexp(element: str, lanes: int) -> None:
    """By instructions where there are some, and as the interpreter does it, against NumPy."""
    dtype = DTYPES[element]
    p = np.array([1.0, -1.5, 0.0, -0.0, 1.9999999, 0.7, np.inf, -np.inf, np.nan, 1e-40, 3e38, -1e-45], dtype)
    n = np.array([0, 1, -1, 127, 128, -126, -127, -149, -150, -151, 1023, 1024, -1074, -1075, 3e9, -3e9], dtype)
    p, n = (np.ascontiguousarray(grid.ravel()) for grid in np.meshgrid(p, n))
    type_ = f"vector<{lanes}x{element}>" if lanes else element
    load, store = ("vector.load", "vector.store") if lanes else ("memref.load", "memref.store")
    suffix = f", {type_}" if lanes else ""
    buffer = f"memref<{len(p)}x{element}>"
    text = f"""
    func.func @f(%P: {buffer}, %N: {buffer}, %Y: {buffer}) attributes {{low.params = [
        #low.param<"P", {buffer}, read, []>, #low.param<"N", {buffer}, read, []>, #low.param<"Y", {buffer}, write, []>],
        low.symbols = []}} {{
      %c0 = arith.constant 0 : index
      %step = arith.constant {lanes or 1} : index
      %end = arith.constant {len(p)} : index
      scf.for %i = %c0 to %end step %step {{
        %p = {load} %P[%i] : {buffer}{suffix}
        %n = {load} %N[%i] : {buffer}{suffix}
        %y = low.ldexp %p, %n : {type_}
        {store} %y, %Y[%i] : {buffer}{suffix}
      }}
      func.return
    }}"""
    module = parse_text(context(), text, "test.mlir")
    module.verify()
    with np.errstate(all="ignore"):
        exact = np.ldexp(p, np.clip(n, -5000, 5000).astype(np.int32))
    interpreted, run = np.empty_like(p), np.empty_like(p)
    Interpreter(module).call("f", p, n, interpreted)
    np.testing.assert_array_equal(interpreted, exact)
    load_low_module(module, Target("llvm"))["f"](p, n, run)
    np.testing.assert_array_equal(run, exact)
    np.testing.assert_array_equal(np.signbit(run), np.signbit(exact))


@pytest.mark.parametrize("element", DTYPES)
def test_a_sum_has_one_product_at_most_to_be_fused_with(element: str) -> None:
    """Else LLVM chooses, and chooses differently for scalars and vectors."""
    for function in (*BOUNDS, *(["powf", *IN_DOUBLE] if element == "f32" else [])):
        arguments = 2 if function == "powf" else 1
        module = parse_text(context(), function_text(function, element, 0, 1, arguments), "test.mlir")
        LowExpandMathPass().apply(context(), module)
        for op in module.walk():
            if isinstance(op, arith.AddfOp | arith.SubfOp):
                fused = [v for v in op.operands if isinstance(v.owner, arith.MulfOp) and ORDERED in v.owner.attributes]
                assert len(fused) < 2, f"{function}: {op}"


def test_special_values_in_the_interpreter() -> None:
    numbers = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1.0, -1.0, 89.0, -104.0, 3e38], np.float32)
    for function in BOUNDS:
        module = parse_text(context(), function_text(function, "f32", 4, len(numbers)), "test.mlir")
        LowExpandMathPass().apply(context(), module)
        result = np.empty_like(numbers)
        Interpreter(module).call("f", numbers, result)
        with np.errstate(all="ignore"):
            exact = EXACT[function](numbers.astype(np.float64))
        assert errors(result, exact).max() <= BOUNDS[function][0], function


@pytest.mark.parametrize("target", targets())
@pytest.mark.parametrize("element", DTYPES)
@pytest.mark.parametrize("function", ["sin", "cos"])
def test_a_large_argument_changes_no_other_lane(function: str, element: str, target: str) -> None:
    """Beside an argument that the C library is called for, the others have the results of the formula."""
    library = compiled(function, element, 16, target, 16)
    numbers = np.linspace(-40, 40, 16).astype(DTYPES[element])
    alone, beside = np.empty_like(numbers), np.empty_like(numbers)
    library["f"](numbers, alone)
    numbers[5], numbers[9] = 1e30, -np.inf
    with np.errstate(all="ignore"):
        library["f"](numbers, beside)
        exact = EXACT[function](numbers.astype(WIDER[numbers.dtype.type]))
    others = np.delete(np.arange(16), [5, 9])
    np.testing.assert_array_equal(beside[others], alone[others])
    assert errors(beside, exact).max() <= 1.5 or not WIDE


def power_cases() -> tuple[Array, Array]:
    """Pairs of base and exponent: every special value with every other, all encodings, and where results are finite."""
    rng = np.random.default_rng(0)
    edges = [0.0, 0.25, 0.5, 0.99999994, 1.0, 1.0000001, 1.5, 2.0, 3.0, 1e-40, 3e38, 16777215.0, 16777216.0, 2.0**31]
    numbers = np.array([*edges, *(-edge for edge in edges), np.inf, -np.inf, np.nan], np.float32)
    bases, exponents = (grid.ravel() for grid in np.meshgrid(numbers, numbers))
    part = (COUNT - len(bases)) // 4
    bits = rng.integers(0, 1 << 32, (2, COUNT), dtype=np.uint64).astype(np.uint32).view(np.float32)
    bases = np.concatenate(
        [bases, rng.uniform(0, 10, part), -rng.uniform(0, 10, part), rng.uniform(0.999, 1.001, part)]
    )
    exponents = np.concatenate(
        [exponents, rng.uniform(-40, 40, part), rng.integers(-40, 40, part), rng.uniform(-80000, 80000, part)]
    )
    bits[0, : len(bases)], bits[1, : len(bases)] = bases, exponents
    return bits[0].copy(), bits[1].copy()


@pytest.mark.parametrize("lanes", [0, 16])
@pytest.mark.parametrize("target", targets())
def test_powers_of_f32(target: str, lanes: int) -> None:
    base, exponent = power_cases()
    result = np.empty_like(base)
    compiled("powf", "f32", lanes, target, arguments=2)["f"](base, exponent, result)
    with np.errstate(all="ignore"):
        exact = np.power(base.astype(np.float64), exponent.astype(np.float64))
    off = errors(result, exact)
    at = int(np.argmax(off))
    assert off[at] <= 0.51, f"pow({base[at]!r}, {exponent[at]!r}) is {exact[at]!r}, got {result[at]!r}"


@pytest.mark.parametrize("element", ["f32", "f16", "bf16"])
def test_the_expansion_of_powers_keeps_the_meaning(element: str) -> None:
    module = parse_text(context(), function_text("powf", element, 8, 64, 2), "test.mlir")
    reference = Reference(module)
    assert not reference.skipped
    LowExpandMathPass().apply(context(), module)
    module.verify()
    assert "math.powf" not in str(module)
    assert reference.compare(module) is None


def test_order_is_kept_where_sums_may_be_reassociated() -> None:
    target = "llvm -reassociate"
    for function in BOUNDS:
        largest, place = worst(compiled(function, "f32", 16, target), function, sample(np.float32, COUNT))
        assert largest <= BOUNDS[function][0], place


def test_every_formula_has_a_bound() -> None:
    assert {op.name for op in FORMULAS} == {"math.powf", *(f"math.{function}" for function in (*BOUNDS, *IN_DOUBLE))}


@pytest.mark.parametrize("lanes", [0, 16])
@pytest.mark.parametrize("target", targets())
@pytest.mark.parametrize("function", IN_DOUBLE)
def test_functions_in_double(function: str, target: str, lanes: int) -> None:
    library = compiled(function, "f32", lanes, target)
    near = np.random.default_rng(0).uniform(-1.5, 3, COUNT).astype(np.float32)
    largest, place = worst(library, function, np.concatenate([sample(np.float32, COUNT), near]))
    assert largest <= IN_DOUBLE[function], place


@pytest.mark.parametrize("function", IN_DOUBLE)
def test_signs_and_ends_of_functions_in_double(function: str) -> None:
    ends = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 89.4, 89.5, -3e38, 1e-45, -1e-45, 2.0, 0.5], "f4")
    numbers = np.zeros(COUNT, np.float32)
    numbers[: len(ends)] = ends
    result = np.empty_like(numbers)
    compiled(function, "f32", 16, "llvm")["f"](numbers, result)
    with np.errstate(all="ignore"):
        exact = EXACT[function](numbers.astype(np.float64)).astype(np.float32)
    np.testing.assert_array_equal(result, exact)
    assert (np.signbit(result) == np.signbit(exact))[~np.isnan(exact)].all()
