"""Hand-written low kernels, compiled for this machine: memory, lanes, loops, threads, and what LLVM makes of them."""

import re
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from weft.driver.parsing import parse_text
from weft.driver.programs import context
from weft.passes.low.low_legalize import LowLegalizePass
from weft.runtime.library import Library
from weft.runtime.low_module import load_low_module
from weft.support.narrow_floats import round_bf16
from weft.support.target import Target

Array = NDArray[Any]
HOST = Target("llvm")


def compile_text(text: str, target: Target = HOST) -> Library:
    module = parse_text(context(), text, "test.mlir")
    module.verify()
    LowLegalizePass(str(target)).apply(context(), module)
    return load_low_module(module, target)


def kernel(params: dict[str, str], body: str, symbols: str = "", name: str = "f") -> str:
    """A low function. A parameter is `access element extents...` or a scalar type; buffers are flat inside."""
    described: list[str] = []
    arguments: list[str] = []
    for label, text in params.items():
        access, *rest = text.split()
        if not rest:
            described.append(f'#low.param<"{label}", {access}, read, []>')
            arguments.append(f"%{label}: {access}")
            continue
        element, *extents = rest
        shape = "x".join(extent if extent.isdigit() else "?" for extent in extents)
        names = ", ".join(f'"{extent}"' for extent in extents if not extent.isdigit())
        size = "?" if names else str(int(np.prod([int(extent) for extent in extents])))
        described.append(f'#low.param<"{label}", memref<{shape}x{element}>, {access}, [{names}]>')
        arguments.append(f"%{label}: memref<{size}x{element}>")
    arguments += [f"%{symbol}: index" for symbol in symbols.split()]
    listed = ", ".join(f'"{symbol}"' for symbol in symbols.split())
    attributes = f"low.params = [{', '.join(described)}], low.symbols = [{listed}]"
    return f"""
func.func @{name}({", ".join(arguments)}) attributes {{{attributes}}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  {body}
  func.return
}}"""


# Memory


def test_masked_tail_touches_nothing_else() -> None:
    body = """
    %c8 = arith.constant 8 : index
    %zeros = arith.constant dense<0.0> : vector<8xf32>
    scf.for %i = %c0 to %n step %c8 {
      %left = arith.subi %n, %i : index
      %mask = vector.create_mask %left : vector<8xi1>
      %a = vector.maskedload %A[%i], %mask, %zeros : memref<?xf32>, vector<8xi1>, vector<8xf32> into vector<8xf32>
      %b = arith.addf %a, %a : vector<8xf32>
      vector.maskedstore %B[%i], %mask, %b : memref<?xf32>, vector<8xi1>, vector<8xf32>
    }"""
    f = compile_text(kernel({"A": "read f32 n", "B": "write f32 n"}, body, "n"))["f"]
    for n in range(40):
        memory = np.full(64, 7.0, np.float32)
        a = np.arange(n, dtype=np.float32)
        f(a, memory[:n])
        np.testing.assert_array_equal(memory[:n], 2 * a)
        np.testing.assert_array_equal(memory[n:], 7.0)


def test_masked_load_keeps_the_other_lanes() -> None:
    body = """
    %mask = arith.constant dense<[true, false, true, false]> : vector<4xi1>
    %other = arith.constant dense<[true, true, false, false]> : vector<4xi1>
    %v = vector.maskedload %A[%c0], %mask, %other : memref<4xi1>, vector<4xi1>, vector<4xi1> into vector<4xi1>
    vector.maskedstore %B[%c0], %other, %v : memref<4xi1>, vector<4xi1>, vector<4xi1>"""
    f = compile_text(kernel({"A": "read i1 4", "B": "readwrite i1 4"}, body))["f"]
    b = np.array([True, False, True, True])
    f(np.array([False, False, True, True]), b)
    np.testing.assert_array_equal(b, [False, True, True, True])


@pytest.mark.parametrize("count", [-5, 0, 1, 3, 4, 100, 1 << 40])
def test_create_mask_clamps(count: int) -> None:
    body = """
    %mask = vector.create_mask %n : vector<4xi1>
    vector.store %mask, %B[%c0] : memref<4xi1>, vector<4xi1>"""
    b = np.zeros(4, bool)
    compile_text(kernel({"n": "index", "B": "write i1 4"}, body))["f"](count, b)
    np.testing.assert_array_equal(b, np.arange(4) < count)


@pytest.mark.parametrize("element", ["i1", "i8", "f16", "bf16", "f32", "f64", "i64"])
def test_gather_and_scatter(element: str) -> None:
    dtype: Any = {"i1": bool, "i8": "i1", "f16": "f2", "bf16": "u2", "f32": "f4", "f64": "f8", "i64": "i8"}[element]
    body = f"""
    %indices = vector.load %I[%c0] : memref<8xindex>, vector<8xindex>
    %mask = vector.load %M[%c0] : memref<8xi1>, vector<8xi1>
    %all = low.gather %A[%indices] : memref<32x{element}>, vector<8xindex> -> vector<8x{element}>
    %some = low.gather %A[%indices] mask %mask : memref<32x{element}>, vector<8xindex> -> vector<8x{element}>
    vector.store %all, %B[%c0] : memref<16x{element}>, vector<8x{element}>
    %c8 = arith.constant 8 : index
    vector.store %some, %B[%c8] : memref<16x{element}>, vector<8x{element}>
    low.scatter %all, %C[%indices] mask %mask : vector<8x{element}>, memref<32x{element}>, vector<8xindex>
    low.scatter %all, %D[%indices] : vector<8x{element}>, memref<32x{element}>, vector<8xindex>"""
    params = {"A": f"read {element} 32", "I": "read index 8", "M": "read i1 8", "B": f"write {element} 16"}
    f = compile_text(kernel({**params, "C": f"readwrite {element} 32", "D": f"readwrite {element} 32"}, body))["f"]
    rng = np.random.default_rng(0)
    a, b, c, d = (rng.integers(0, 2 if element == "i1" else 100, size).astype(dtype) for size in (32, 16, 32, 32))
    indices, mask = rng.permutation(32)[:8], rng.integers(0, 2, 8).astype(bool)
    expected_c, expected_d = c.copy(), d.copy()
    expected_c[indices[mask]] = a[indices[mask]]
    expected_d[indices] = a[indices]
    f(a, indices, mask, b, c, d)
    np.testing.assert_array_equal(b, np.concatenate([a[indices], np.where(mask, a[indices], 0).astype(dtype)]))
    np.testing.assert_array_equal(c, expected_c)
    np.testing.assert_array_equal(d, expected_d)


def test_masked_out_lanes_may_point_anywhere() -> None:
    body = """
    %far = arith.constant dense<[0, 4611686018427387904, 1, -4611686018427387904]> : vector<4xindex>
    %mask = arith.constant dense<[true, false, true, false]> : vector<4xi1>
    %v = low.gather %A[%far] mask %mask : memref<2xf64>, vector<4xindex> -> vector<4xf64>
    vector.store %v, %B[%c0] : memref<4xf64>, vector<4xf64>
    low.scatter %v, %C[%far] mask %mask : vector<4xf64>, memref<2xf64>, vector<4xindex>"""
    f = compile_text(kernel({"A": "read f64 2", "B": "write f64 4", "C": "write f64 2"}, body))["f"]
    b, c = np.zeros(4), np.zeros(2)
    f(np.array([1.5, 2.5]), b, c)
    np.testing.assert_array_equal(b, [1.5, 0, 2.5, 0])
    np.testing.assert_array_equal(c, [1.5, 2.5])


def test_nontemporal_stores() -> None:
    body = """
    %v = vector.load %A[%c0] {nontemporal = true} : memref<16xf32>, vector<16xf32>
    vector.store %v, %B[%c0] {nontemporal = true} : memref<16xf32>, vector<16xf32>"""
    lib = compile_text(kernel({"A": "read f32 16", "B": "write f32 16"}, body))
    assert lib.get_source("ll").count(", !nontemporal !") == 2
    a, b = np.arange(16, dtype=np.float32), np.zeros(16, np.float32)
    lib["f"](a, b)
    np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("element, dtype", [("f32", "float32"), ("f64", "float64"), ("i8", "int8"), ("i1", "bool")])
def test_nontemporal_stores_at_any_address(element: str, dtype: str) -> None:
    """Aligned to elements is all that callers promise; threads see what others stored when the loop is done."""
    body = f"""
    low.parallel_for %i in %n {{
      %c32 = arith.constant 32 : index
      %at = arith.muli %i, %c32 : index
      %v = vector.load %A[%at] : memref<?x{element}>, vector<32x{element}>
      vector.store %v, %B[%at] {{nontemporal = true}} : memref<?x{element}>, vector<32x{element}>
    }}
    %last = arith.subi %m, %c1 : index
    %a = memref.load %B[%last] : memref<?x{element}>
    memref.store %a, %C[%c0] : memref<1x{element}>"""
    params = {"n": "index", "A": f"read {element} m", "B": f"readwrite {element} m", "C": f"write {element} 1"}
    f = compile_text(kernel(params, body, "m"), Target("llvm", num_threads=2))["f"]
    rows = 999
    a = np.random.default_rng(0).integers(0, 2, 32 * rows).astype(dtype)
    for shift in range(18):
        whole, last = np.zeros(32 * rows + 64, dtype), np.zeros(1, dtype)
        b = whole[shift : shift + a.size]
        f(rows, a, b, last)
        np.testing.assert_array_equal(b, a)
        assert last[0] == a[-1]
        assert not whole[:shift].any()
        assert not whole[shift + a.size :].any()


def test_temporary_buffers_of_dynamic_size() -> None:
    body = """
    %T = memref.alloc(%n) : memref<?xf32>
    scf.for %i = %c0 to %n step %c1 {
      %a = memref.load %A[%i] : memref<?xf32>
      memref.store %a, %T[%i] : memref<?xf32>
    }
    scf.for %i = %c0 to %n step %c1 {
      %last = arith.subi %n, %c1 : index
      %j = arith.subi %last, %i : index
      %t = memref.load %T[%j] : memref<?xf32>
      memref.store %t, %B[%i] : memref<?xf32>
    }
    memref.dealloc %T : memref<?xf32>"""
    f = compile_text(kernel({"A": "read f32 n", "B": "write f32 n"}, body, "n"))["f"]
    for n in (0, 1, 5, 5000):
        a = np.random.default_rng(0).standard_normal(n).astype(np.float32)
        b = np.zeros_like(a)
        f(a, b)
        np.testing.assert_array_equal(b, a[::-1])


def test_dynamic_extents_and_scalars() -> None:
    """B[j, i] = A[i, j] * s + k for any shape."""
    body = """
    scf.for %i = %c0 to %m step %c1 {
      scf.for %j = %c0 to %n step %c1 {
        %row = arith.muli %i, %n : index
        %at = arith.addi %row, %j : index
        %a = memref.load %A[%at] : memref<?xf64>
        %scaled = arith.mulf %a, %s : f64
        %shift = arith.sitofp %k : i32 to f64
        %r = arith.addf %scaled, %shift : f64
        %column = arith.muli %j, %m : index
        %to = arith.addi %column, %i : index
        memref.store %r, %B[%to] : memref<?xf64>
      }
    }"""
    params = {"A": "read f64 m n", "s": "f64", "B": "write f64 n m", "k": "i32"}
    f = compile_text(kernel(params, body, "m n"))["f"]
    for shape in [(1, 1), (3, 5), (0, 4), (16, 2)]:
        a = np.random.default_rng(0).standard_normal(shape)
        b = np.zeros(shape[::-1])
        f(a, 2.0, b, -3)
        np.testing.assert_array_equal(b, (a * 2.0 - 3).T)


@pytest.mark.parametrize("element, value", [("i1", True), ("i8", -7), ("i64", 1 << 40), ("f16", 1.5), ("f32", -0.1)])
def test_scalar_parameters(element: str, value: float) -> None:
    dtype: Any = {"i1": bool, "i8": "i1", "i64": "i8", "f16": "f2", "f32": "f4"}[element]
    lib = compile_text(
        kernel({"s": element, "B": f"write {element} 1"}, f"memref.store %s, %B[%c0] : memref<1x{element}>")
    )
    b = np.zeros(1, dtype)
    lib["f"](value, b)
    assert b[0] == np.array(value, dtype)


# Lanes

REDUCTIONS: dict[str, Any] = {
    "add": np.add,
    "mul": np.multiply,
    "minsi": np.minimum,
    "maxsi": np.maximum,
    "minui": np.minimum,
    "maxui": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


@pytest.mark.parametrize("accumulated", [False, True])
@pytest.mark.parametrize("element", ["i1", "i8", "i32", "i64"])
@pytest.mark.parametrize("kind", REDUCTIONS)
def test_integer_reductions(kind: str, element: str, accumulated: bool) -> None:
    if element == "i1" and kind not in ("and", "or", "xor"):
        return
    dtype = np.dtype({"i1": "bool", "i8": "i1", "i32": "i4", "i64": "i8"}[element])
    body = f"""
    %a = vector.load %A[%c0] : memref<8x{element}>, vector<8x{element}>
    %s = memref.load %S[%c0] : memref<1x{element}>
    %r = vector.reduction <{kind}>, %a{", %s" if accumulated else ""} : vector<8x{element}> into {element}
    memref.store %r, %B[%c0] : memref<1x{element}>"""
    params = {"A": f"read {element} 8", "S": f"read {element} 1", "B": f"write {element} 1"}
    f = compile_text(kernel(params, body.replace("<add>", "<add>")))["f"]
    rng = np.random.default_rng(0)
    for _ in range(4):
        a, s = (rng.integers(0, 256, size).astype(dtype) for size in (8, 1))
        b = np.zeros(1, dtype)
        f(a, s, b)
        view = f"u{dtype}" if kind.endswith("ui") else dtype
        values = np.concatenate([a, s]) if accumulated else a
        assert b.view(view)[0] == REDUCTIONS[kind].reduce(values.view(view), dtype=view)


@pytest.mark.parametrize("accumulated", [False, True])
@pytest.mark.parametrize("element", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("kind", ["add", "mul", "minimumf", "maximumf", "minnumf", "maxnumf"])
def test_float_reductions(kind: str, element: str, accumulated: bool) -> None:
    """From the first lane to the last, rounded at each step."""
    dtype: Any = {"f16": np.float16, "bf16": np.float32, "f32": np.float32, "f64": np.float64}[element]
    body = f"""
    %a = vector.load %A[%c0] : memref<8x{element}>, vector<8x{element}>
    %s = memref.load %S[%c0] : memref<1x{element}>
    %r = vector.reduction <{kind}>, %a{", %s" if accumulated else ""} : vector<8x{element}> into {element}
    memref.store %r, %B[%c0] : memref<1x{element}>"""
    params = {"A": f"read {element} 8", "S": f"read {element} 1", "B": f"write {element} 1"}
    f = compile_text(kernel(params, body))["f"]
    combine: Any = {
        "add": np.add,
        "mul": np.multiply,
        "minimumf": np.minimum,
        "maximumf": np.maximum,
        "minnumf": np.fmin,
        "maxnumf": np.fmax,
    }[kind]
    rng = np.random.default_rng(0)
    for poison in (None, 0, 5):
        values = (rng.standard_normal(9) + 1).astype(dtype)
        if poison is not None:
            values[poison] = np.nan
        if element == "bf16":
            values = np.array([round_bf16(float(value)) for value in values], np.float32)
        ordered = values[[8, *range(8)]] if accumulated else values[:8]
        total = ordered[0]
        for value in ordered[1:]:
            total = combine(total, value)
            total = np.float32(round_bf16(float(total))) if element == "bf16" else total
        stored = (values.view(np.uint32) >> 16).astype(np.uint16) if element == "bf16" else values
        b = np.zeros(1, stored.dtype)
        f(stored[:8].copy(), stored[8:].copy(), b)
        result = (b.astype(np.uint32) << 16).view(np.float32) if element == "bf16" else b
        np.testing.assert_array_equal(result[0], total)


def test_reassociated_sums() -> None:
    body = """
    %a = vector.load %A[%c0] : memref<16xf32>, vector<16xf32>
    %r = vector.reduction <add>, %a : vector<16xf32> into f32
    memref.store %r, %B[%c0] : memref<1xf32>"""
    text = kernel({"A": "read f32 16", "B": "write f32 1"}, body)
    sources = {}
    for reassociate in (False, True):
        lib = compile_text(text, Target("llvm", reassociate=reassociate))
        b = np.zeros(1, np.float32)
        lib["f"](np.arange(16, dtype=np.float32), b)
        assert b[0] == 120
        sources[reassociate] = lib.get_source("asm")
    additions = {key: len(re.findall(r"\tv?f?add(ss|ps)?\b", source)) for key, source in sources.items()}
    assert additions[True] < additions[False]


def test_shuffles_of_different_lengths() -> None:
    body = """
    %a = vector.load %A[%c0] : memref<8xi32>, vector<8xi32>
    %b = vector.load %B[%c0] : memref<2xi32>, vector<2xi32>
    %r = vector.shuffle %a, %b [9, 0, 7, 8] : vector<8xi32>, vector<2xi32>
    vector.store %r, %R[%c0] : memref<8xi32>, vector<4xi32>
    %s = vector.shuffle %b, %a [1, 2, 9, 0] : vector<2xi32>, vector<8xi32>
    %c4 = arith.constant 4 : index
    vector.store %s, %R[%c4] : memref<8xi32>, vector<4xi32>"""
    f = compile_text(kernel({"A": "read i32 8", "B": "read i32 2", "R": "write i32 8"}, body))["f"]
    r = np.zeros(8, np.int32)
    f(np.arange(8, dtype=np.int32), np.array([100, 101], np.int32), r)
    np.testing.assert_array_equal(r, [101, 0, 7, 100, 101, 0, 7, 100])


def test_single_lanes() -> None:
    body = """
    %a = vector.load %A[%c0] : memref<4xf32>, vector<4xf32>
    %x = vector.extract %a[3] : f32 from vector<4xf32>
    %y = vector.extract %a[%k] : f32 from vector<4xf32>
    %b = vector.insert %x, %a[0] : f32 into vector<4xf32>
    %c = vector.insert %y, %b[%k] : f32 into vector<4xf32>
    %d = vector.insert %y, %c[%c1] : f32 into vector<4xf32>
    vector.store %d, %R[%c0] : memref<4xf32>, vector<4xf32>"""
    f = compile_text(kernel({"A": "read f32 4", "k": "index", "R": "write f32 4"}, body))["f"]
    r = np.zeros(4, np.float32)
    f(np.array([1, 2, 3, 4], np.float32), 2, r)
    np.testing.assert_array_equal(r, [4, 3, 3, 4])


def test_broadcasts() -> None:
    body = """
    %s = memref.load %A[%c0] : memref<1xi1>
    %v = vector.broadcast %s : i1 to vector<4xi1>
    %k = arith.constant 7 : i16
    %w = vector.broadcast %k : i16 to vector<4xi16>
    %wide = low.extui %v : vector<4xi1> to vector<4xi16>
    %r = arith.muli %wide, %w : vector<4xi16>
    vector.store %r, %R[%c0] : memref<4xi16>, vector<4xi16>"""
    lib = compile_text(kernel({"A": "read i1 1", "R": "write i16 4"}, body))
    assert "splat (i16 7)" in lib.get_source("ll")
    r = np.zeros(4, np.int16)
    lib["f"](np.array([True]), r)
    np.testing.assert_array_equal(r, 7)


# Loops and conditions


def test_loops_that_carry_values() -> None:
    """Fibonacci numbers; also with no iteration at all."""
    body = """
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %x, %y = scf.for %i = %c0 to %n step %c1 iter_args(%a = %zero, %b = %one) -> (i64, i64) {
      %c = arith.addi %a, %b : i64
      scf.yield %b, %c : i64, i64
    }
    memref.store %x, %R[%c0] : memref<1xi64>"""
    f = compile_text(kernel({"n": "index", "R": "write i64 1"}, body))["f"]
    for n, expected in [(-3, 0), (0, 0), (1, 1), (2, 1), (10, 55), (50, 12586269025)]:
        r = np.zeros(1, np.int64)
        f(n, r)
        assert r[0] == expected


@pytest.mark.parametrize("upper, step", [(0, 1), (-5, 1), (1, 7), (7, 7), (8, 7), (20, 3)])
def test_constant_trip_counts(upper: int, step: int) -> None:
    body = f"""
    %upper = arith.constant {upper} : index
    %step = arith.constant {step} : index
    %r = scf.for %i = %c0 to %upper step %step iter_args(%a = %c0) -> (index) {{
      %b = arith.addi %a, %i : index
      %c = arith.addi %b, %c1 : index
      scf.yield %c : index
    }}
    memref.store %r, %R[%c0] : memref<1xindex>"""
    r = np.zeros(1, np.int64)
    compile_text(kernel({"R": "write index 1"}, body))["f"](r)
    assert r[0] == sum(i + 1 for i in range(0, upper, step))


@pytest.mark.parametrize("lower, upper, step", [(-128, 127, 100), (120, 127, 5), (0, 127, 1), (5, 5, 1), (-3, -1, 1)])
def test_narrow_counters_do_not_overflow(lower: int, upper: int, step: int) -> None:
    body = """
    %r = scf.for %i = %l to %u step %s iter_args(%a = %c0) -> (index) : i8 {
      %b = arith.addi %a, %c1 : index
      scf.yield %b : index
    }
    memref.store %r, %R[%c0] : memref<1xindex>"""
    r = np.zeros(1, np.int64)
    compile_text(kernel({"l": "i8", "u": "i8", "s": "i8", "R": "write index 1"}, body))["f"](lower, upper, step, r)
    assert r[0] == len(range(lower, upper, step))


def test_conditions_guard_loads() -> None:
    """A padded read: outside of A nothing is loaded."""
    body = """
    %zero = arith.constant 0.0 : f32
    scf.for %i = %c0 to %m step %c1 {
      %inside = arith.cmpi slt, %i, %n : index
      %v = scf.if %inside -> (f32) {
        %a = memref.load %A[%i] : memref<?xf32>
        scf.yield %a : f32
      } else {
        scf.yield %zero : f32
      }
      scf.if %inside {
        memref.store %v, %C[%i] : memref<?xf32>
      }
      memref.store %v, %B[%i] : memref<?xf32>
    }"""
    params = {"A": "read f32 n", "B": "write f32 m", "C": "readwrite f32 m"}
    f = compile_text(kernel(params, body, "n m"))["f"]
    a, b, c = np.arange(1, 4, dtype=np.float32), np.full(6, 9, np.float32), np.full(6, 9, np.float32)
    f(a, b, c)
    np.testing.assert_array_equal(b, [1, 2, 3, 0, 0, 0])
    np.testing.assert_array_equal(c, [1, 2, 3, 9, 9, 9])


# Registers and unrolling

DOT = """
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %zeros = arith.constant dense<0.0> : vector<16xf32>
  %acc = memref.alloca() : memref<64xf32, "local">
  scf.for %j = %c0 to %c64 step %c16 {
    vector.store %zeros, %acc[%j] : memref<64xf32, "local">, vector<16xf32>
  } {low.unroll}
  scf.for %k = %c0 to %n step %c1 {
    %a = memref.load %A[%k] : memref<?xf32>
    %va = vector.broadcast %a : f32 to vector<16xf32>
    %row = arith.muli %k, %c64 : index
    scf.for %j = %c0 to %c64 step %c16 {
      %at = arith.addi %row, %j : index
      %b = vector.load %B[%at] : memref<?xf32>, vector<16xf32>
      %c = vector.load %acc[%j] : memref<64xf32, "local">, vector<16xf32>
      %p = arith.mulf %va, %b : vector<16xf32>
      %s = arith.addf %c, %p : vector<16xf32>
      vector.store %s, %acc[%j] : memref<64xf32, "local">, vector<16xf32>
    } {low.unroll}
  }
  scf.for %j = %c0 to %c64 step %c16 {
    %c = vector.load %acc[%j] : memref<64xf32, "local">, vector<16xf32>
    vector.store %c, %C[%j] : memref<64xf32>, vector<16xf32>
  } {low.unroll}"""
DOT_PARAMS = {"A": "read f32 n", "B": "read f32 n 64", "C": "write f32 64"}


def test_local_buffers_become_registers() -> None:
    lib = compile_text(kernel(DOT_PARAMS, DOT, "n"))
    assert "alloca [64 x float], align 64" in lib.get_source("ll")
    optimized = lib.get_source("ll-opt")
    assert "alloca" not in optimized
    assert optimized.count("br i1") <= 2, "only the loop over k is left"
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal(100).astype(np.float32), rng.standard_normal((100, 64)).astype(np.float32)
    c = np.zeros(64, np.float32)
    lib["f"](a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-5)


def test_unmarked_loops_stay_loops() -> None:
    lib = compile_text(kernel(DOT_PARAMS, DOT.replace("{low.unroll}", ""), "n"))
    assert lib.get_source("ll-opt").count("br i1") > 2
    assert "unroll.full" not in lib.get_source("ll")


def micro_kernel(size: int) -> str:
    """C = A @ B with B packed as [size/64][size][64], in blocks of 4 x 64 held in 16 registers of 16 lanes."""
    body = f"""
    %c4 = arith.constant 4 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    %n = arith.constant {size} : index
    %zeros = arith.constant dense<0.0> : vector<16xf32>
    scf.for %jo = %c0 to %n step %c64 {{
      %panel = arith.muli %jo, %n : index
      scf.for %io = %c0 to %n step %c4 {{
        %acc = memref.alloca() : memref<256xf32, "local">
        scf.for %i = %c0 to %c4 step %c1 {{
          %r = arith.muli %i, %c64 : index
          scf.for %j = %c0 to %c64 step %c16 {{
            %at = arith.addi %r, %j : index
            vector.store %zeros, %acc[%at] : memref<256xf32, "local">, vector<16xf32>
          }} {{low.unroll}}
        }} {{low.unroll}}
        scf.for %k = %c0 to %n step %c1 {{
          %krow = arith.muli %k, %c64 : index
          %brow = arith.addi %panel, %krow : index
          scf.for %i = %c0 to %c4 step %c1 {{
            %ii = arith.addi %io, %i : index
            %arow = arith.muli %ii, %n : index
            %aat = arith.addi %arow, %k : index
            %a = memref.load %A[%aat] : memref<{size * size}xf32>
            %va = vector.broadcast %a : f32 to vector<16xf32>
            %r = arith.muli %i, %c64 : index
            scf.for %j = %c0 to %c64 step %c16 {{
              %bat = arith.addi %brow, %j : index
              %b = vector.load %B[%bat] : memref<{size * size}xf32>, vector<16xf32>
              %at = arith.addi %r, %j : index
              %c = vector.load %acc[%at] : memref<256xf32, "local">, vector<16xf32>
              %p = arith.mulf %va, %b : vector<16xf32>
              %s = arith.addf %c, %p : vector<16xf32>
              vector.store %s, %acc[%at] : memref<256xf32, "local">, vector<16xf32>
            }} {{low.unroll}}
          }} {{low.unroll}}
        }}
        scf.for %i = %c0 to %c4 step %c1 {{
          %ii = arith.addi %io, %i : index
          %crow = arith.muli %ii, %n : index
          %crow_j = arith.addi %crow, %jo : index
          %r = arith.muli %i, %c64 : index
          scf.for %j = %c0 to %c64 step %c16 {{
            %at = arith.addi %r, %j : index
            %c = vector.load %acc[%at] : memref<256xf32, "local">, vector<16xf32>
            %cat = arith.addi %crow_j, %j : index
            vector.store %c, %C[%cat] : memref<{size * size}xf32>, vector<16xf32>
          }} {{low.unroll}}
        }} {{low.unroll}}
      }}
    }}"""
    params = {"A": f"read f32 {size} {size}", "B": f"read f32 {size // 64} {size} 64", "C": f"write f32 {size} {size}"}
    return kernel(params, body)


def test_matmul_micro_kernel() -> None:
    size = 256
    lib = compile_text(micro_kernel(size))
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((size, size)).astype(np.float32) for _ in range(2))
    packed = np.ascontiguousarray(b.reshape(size, size // 64, 64).transpose(1, 0, 2))
    c = np.zeros_like(a)
    lib["f"](a, packed, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-4)
    assert "alloca" not in lib.get_source("ll-opt")


@pytest.mark.parametrize("cpu, register, count", [("znver4", "zmm", 16), ("sapphirerapids", "zmm", 16)])
def test_micro_kernel_stays_in_registers(cpu: str, register: str, count: int) -> None:
    from weft.backends.llvm.compile import assembly
    from weft.backends.llvm.emit import emit_module

    target = Target("llvm", triple="x86_64-unknown-linux-gnu", cpu=cpu)
    asm = assembly(emit_module(parse_text(context(), micro_kernel(256), "t.mlir"), target), target)
    assert len(re.findall(rf"vfmadd\w*ps\s.*%{register}", asm)) == count
    assert "%rsp" not in asm, "something is spilled"


# Threads


def test_parallel_loops_capture_values() -> None:
    body = """
    %two = arith.constant 2.0 : f32
    %t = arith.addf %s, %two : f32
    %last = arith.subi %n, %c1 : index
    %T = memref.alloc(%n) : memref<?xf32>
    low.parallel_for %i in %n {
      %a = memref.load %A[%i] : memref<?xf32>
      %p = arith.mulf %a, %t : f32
      %q = arith.mulf %p, %two : f32
      memref.store %q, %T[%i] : memref<?xf32>
    }
    low.parallel_for %i in %n {
      %j = arith.subi %last, %i : index
      %v = memref.load %T[%j] : memref<?xf32>
      scf.if %flag {
        memref.store %v, %B[%i] : memref<?xf32>
      }
    }
    memref.dealloc %T : memref<?xf32>"""
    params = {"A": "read f32 n", "s": "f32", "flag": "i1", "B": "readwrite f32 n"}
    f = compile_text(kernel(params, body, "n"), Target("llvm", num_threads=3))["f"]
    for n in (0, 1, 2, 7, 1000):
        a = np.arange(n, dtype=np.float32)
        b = np.full(n, -1, np.float32)
        f(a, 1.0, False, b)
        np.testing.assert_array_equal(b, -1)
        f(a, 1.0, True, b)
        np.testing.assert_array_equal(b, (a * 6)[::-1])


def test_nested_parallel_loops_with_local_buffers() -> None:
    body = """
    %zero = arith.constant 0.0 : f32
    low.parallel_for %i in %m {
      %acc = memref.alloca() : memref<1xf32, "local">
      %row = arith.muli %i, %n : index
      low.parallel_for %j in %n {
        %at = arith.addi %row, %j : index
        %a = memref.load %A[%at] : memref<?xf32>
        %b = arith.addf %a, %a : f32
        memref.store %b, %B[%at] : memref<?xf32>
      }
      memref.store %zero, %acc[%c0] : memref<1xf32, "local">
      scf.for %j = %c0 to %n step %c1 {
        %at = arith.addi %row, %j : index
        %b = memref.load %B[%at] : memref<?xf32>
        %s = memref.load %acc[%c0] : memref<1xf32, "local">
        %t = arith.addf %s, %b : f32
        memref.store %t, %acc[%c0] : memref<1xf32, "local">
      }
      %r = memref.load %acc[%c0] : memref<1xf32, "local">
      memref.store %r, %R[%i] : memref<?xf32>
    }"""
    params = {"A": "read f32 m n", "B": "write f32 m n", "R": "write f32 m"}
    f = compile_text(kernel(params, body, "m n"), Target("llvm", num_threads=2))["f"]
    a = np.arange(35, dtype=np.float32).reshape(5, 7)
    b, r = np.zeros_like(a), np.zeros(5, np.float32)
    f(a, b, r)
    np.testing.assert_array_equal(b, 2 * a)
    np.testing.assert_array_equal(r, 2 * a.sum(axis=1))


# Names


@pytest.mark.parametrize("name", ["exp", "memset", "malloc", "weft_alloc", "llvm.fma", '"a name: 100%"'])
def test_any_function_name_works(name: str) -> None:
    """A function named as one of the C library's, which it calls itself, is another function."""
    body = """
    low.parallel_for %i in %n {
      %a = memref.load %A[%i] : memref<?xf64>
      %e = math.exp %a : f64
      memref.store %e, %B[%i] : memref<?xf64>
    }"""
    lib = compile_text(kernel({"A": "read f64 n", "B": "write f64 n"}, body, "n", name))
    a = np.linspace(-1, 1, 10)
    b = np.zeros_like(a)
    lib[name.strip('"')](a, b)
    np.testing.assert_allclose(b, np.exp(a), rtol=1e-15)


def test_names_of_values_are_kept_apart() -> None:
    """Hints that repeat, that look like labels or like numbered names."""
    body = """
    %entry = arith.addf %s, %s : f32
    %v.1 = arith.addf %entry, %s : f32
    %end = scf.for %i = %c0 to %c1 step %c1 iter_args(%v = %v.1) -> (f32) {
      %w = arith.addf %v, %entry : f32
      scf.yield %w : f32
    }
    memref.store %end, %R[%c0] : memref<1xf32>"""
    r = np.zeros(1, np.float32)
    compile_text(kernel({"s": "f32", "R": "write f32 1"}, body))["f"](1.0, r)
    assert r[0] == 5.0
