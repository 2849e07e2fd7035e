"""Products with weights of 4 and 8 bits: each packing against NumPy at odd shapes, for few and for many rows."""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import weft
from tests.helpers.machines import runnable
from weft import graph as G
from weft import te
from weft.passes.graph.graph_pack_weights import WEIGHTS
from weft.support.cpu_instructions import SIGNED_BYTE, has_dot_product
from weft.support.target import Target


@dataclass(frozen=True)
class Case:
    """A product of data (rows, depth) with quantized weights (depth, columns)."""

    rows: int
    depth: int
    columns: int
    bits: int = 4
    group: int = 32
    zero: str = ""
    """The type of zero points."""
    scales: str = "float32"
    bias: bool = False

    def arrays(self) -> dict[str, Any]:
        generator = np.random.default_rng([self.depth, self.columns, self.bits])
        groups = -(-self.depth // self.group)
        found: dict[str, Any] = {
            "weight": generator.integers(0, 256, (self.columns, groups * self.group * self.bits // 8), np.uint8),
            "scale": generator.uniform(-1.0, 1.0, (self.columns, groups)).astype(self.scales),
        }
        if self.zero:
            limit = (1 << self.bits) - 1
            found["zero_point"] = (generator.uniform(0, limit, (self.columns, groups))).astype(self.zero)
        if self.bias:
            found["bias"] = generator.standard_normal(self.columns).astype("float32")
        return found

    def data(self) -> Any:
        return np.random.default_rng(self.rows).standard_normal((self.rows, self.depth)).astype("float32")

    def expected(self, data: Any = None) -> Any:
        """The product, of integers that are taken out of their bytes one by one."""
        given = self.arrays()
        weights = np.zeros((self.depth, self.columns))
        for row in range(self.depth):
            byte = given["weight"][:, row * self.bits // 8]
            integers = byte if self.bits == 8 else byte >> 4 if row % 2 else byte & 15
            zero = given["zero_point"][:, row // self.group] if self.zero else 1 << (self.bits - 1)
            weights[row] = (integers.astype(float) - zero) * given["scale"][:, row // self.group].astype(float)
        return (self.data() if data is None else data).astype(float) @ weights + given.get("bias", 0.0)

    def module(self, *, constant: bool, **options: Any) -> Any:
        given = self.arrays()
        bb = G.BlockBuilder()
        x = G.var("x", (self.rows, self.depth))
        parameters = {} if constant else {name: G.var(name, a.shape, str(a.dtype)) for name, a in given.items()}
        with bb.function("main", [x, *parameters.values()]):
            values = {name: G.const(a) for name, a in given.items()} if constant else parameters
            operands = [values.get(name) for name in ("weight", "scale", "zero_point", "bias")]
            options |= {"bits": self.bits, "group_size": self.group}
            y = bb.emit(G.operator("dequantized_matmul")(x, *operands, **options))
            bb.emit_func_output(y)
        return bb.get()


ODD = (
    Case(1, 70, 33, zero="uint8"),
    Case(1, 96, 64, bits=8, group=16, scales="float16", bias=True),
    Case(3, 45, 48, group=16, zero="float32", bias=True),
    Case(9, 70, 33, zero="uint8", bias=True),
    Case(7, 37, 21, bits=8, group=64, zero="uint8"),
)


def has_dots(target: Target, bits: int = 4) -> bool:
    return has_dot_product(target, WEIGHTS[bits], SIGNED_BYTE)


def close(found: Any, case: Case) -> None:
    expected = case.expected()
    assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max()


@pytest.mark.parametrize("case", ODD, ids=str)
def test_packings(case: Case) -> None:
    close(weft.build(case.module(constant=True))["main"](case.data()), case)


ROUNDED = (Case(1, 80, 64, zero="uint8"), Case(3, 64, 48, bits=8), Case(2, 96, 16, group=96), Case(5, 64, 16))


@pytest.mark.parametrize("case", ROUNDED, ids=str)
def test_rounded_data(case: Case) -> None:
    """Data rounded to 8 bits in the groups of the weights: dot products of bytes, if the CPU has them."""
    target = Target.parse("llvm -num-threads=1")
    library = weft.build(case.module(constant=True, compute_dtype="int8"), target=target)
    assert ('"dot_' in "".join(map(weft.trace_as_python, library.traces))) is has_dots(target, case.bits)
    groups = -(-case.depth // case.group)
    data = np.pad(case.data(), ((0, 0), (0, groups * case.group - case.depth))).reshape(case.rows, groups, -1)
    step = np.abs(data).max(axis=-1, keepdims=True) / np.float32(127)
    rounded = (np.rint(data / step) * step.astype(float)).reshape(case.rows, -1)[:, : case.depth]
    found, expected = library["main"](case.data()), case.expected(rounded)
    assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max()
    assert np.abs(expected - case.expected()).max() > 1e-4 * np.abs(expected).max()


@pytest.mark.parametrize(
    "cpu",
    (
        "znver4",
        "haswell",
        *(pytest.param(cpu, marks=pytest.mark.slow) for cpu in ("x86-64-v2", "skylake-avx512")),
    ),
)
@pytest.mark.parametrize(
    ("shape", "rounded"),
    (
        (("m", 72), False),
        (("b", "m", 72), True),
        pytest.param((2, "m", 72), False, marks=pytest.mark.slow),
        pytest.param(("b", "m", 72), False, marks=pytest.mark.slow),
        pytest.param(("m", 72), True, marks=pytest.mark.slow),
    ),
    ids=str,
)
def test_any_number_of_rows(shape: Any, rounded: bool, cpu: str) -> None:
    """One kernel for any number of rows: tiles of rows share unpacked weights, the last one has fewer rows."""
    case = Case(1, 72, 48, zero="uint8", scales="float16", bias=True)
    given, bb = case.arrays(), G.BlockBuilder()
    x, options = G.var("x", shape), {"compute_dtype": "int8"} if rounded else {}
    with bb.function("main", [x]):
        y = bb.emit(G.operator("dequantized_matmul")(x, *map(G.const, given.values()), **options))
        bb.emit_func_output(G.relu(y))
    target = runnable(f"llvm -mcpu={cpu} -num-threads=2")
    library = weft.build(bb.get(), target=target)
    if has_dots(target):
        trace = "".join(map(weft.trace_as_python, library.traces))
        assert "tensorize" in trace
        assert re.search(r"sch\.parallel\(i[12]0_\d", trace), "threads share panels"
    for rows in (1, 2, 3, 4, 5, 13, 0):
        sizes = {"m": rows, "b": 3}
        data = np.random.default_rng(rows).standard_normal([sizes.get(n, n) for n in shape]).astype("float32")
        expected = np.maximum(case.expected(data), 0.0)
        found, limit = library["main"](data), 2e-2 if rounded else 1e-5
        assert found.shape == expected.shape
        assert (np.abs(found - expected) <= limit * np.abs(expected).max(initial=0.0)).all()


@pytest.mark.parametrize(
    ("cpu", "group"), (("znver4", 32), ("znver4", 640), pytest.param("haswell", 32, marks=pytest.mark.slow))
)
@pytest.mark.parametrize("bits", (4, 8))
def test_magnitudes(bits: int, cpu: str, group: int) -> None:
    """Float data become integers if the CPU has dot products of bytes. Each group of up to 128 data is as accurate as
    float32, whatever the magnitude of other groups; NaN and infinity remain in their row."""
    case = Case(4, 640, 32, bits=bits, group=group)
    target = runnable(f"llvm -mcpu={cpu} -num-threads=1")
    library = weft.build(case.module(constant=True), target=target)
    assert ('"dot_' in "".join(map(weft.trace_as_python, library.traces))) is has_dots(target, bits)
    data = case.data() * np.float32(10.0) ** np.repeat([-30, 0, 4, 9, 30], 128).astype("float32")
    data[1, :32], data[2, 40:] = 0.0, 0.0
    weights = case.expected(np.eye(640))
    found, limit = library["main"](data), np.abs(data).astype(float) @ np.abs(weights)
    assert (np.abs(found - data.astype(float) @ weights) <= 1e-6 * limit).all()
    data[0, 3], data[2, 70] = np.nan, -np.inf
    found = library["main"](data)
    assert np.isnan(found[0]).all() and not np.isfinite(found[2]).any() and np.isfinite(found[[1, 3]]).all()


@pytest.mark.parametrize("case", (Case(5, 37, 21, group=40, zero="uint8"), Case(2, 40, 9, bits=8, group=8)), ids=str)
def test_weights_of_calls(case: Case) -> None:
    close(weft.build(case.module(constant=False))["main"](case.data(), *case.arrays().values()), case)


@pytest.mark.slow
@pytest.mark.parametrize(("cpu", "specialize"), [("x86-64", {"m": [1]}), ("x86-64-v3", {})], ids=["words", "bytes"])
def test_decoding_and_prefill_share_weights(cpu: str, specialize: dict[str, list[int]]) -> None:
    """One build for any number of rows, on CPUs without dot products of bytes with a version for one row: weights are
    stored once, and the largest temporary of many rows is a panel of them, also before elementwise operators."""
    case = Case(1, 1024, 128)
    given = case.arrays()
    bb = G.BlockBuilder()
    x = G.var("x", ("m", case.depth))
    with bb.function("main", [x]):
        y = bb.emit(G.operator("dequantized_matmul")(x, G.const(given["weight"]), G.const(given["scale"])))
        y = bb.emit(G.relu(G.add(y, G.const(np.ones(case.columns, "float32")))))
        bb.emit_func_output(y)
    library = weft.build(bb.get(), target=f"llvm -mcpu={cpu} -num-threads=2", specialize=specialize)
    for rows in (1, 13):
        data = np.repeat(case.data(), rows, axis=0)
        expected = np.maximum(np.repeat(case.expected(), rows, axis=0) + 1.0, 0.0)
        assert np.allclose(library["main"](data), expected, rtol=1e-4, atol=1e-3)
    assert [constant.nbytes for constant in library.constants.values()] == [given["weight"].nbytes]
    sizes = re.findall(r"@weft_alloc\(i64 (\d+)\)", library.get_source("ll"))
    assert bool(sizes) is bool(specialize)  # bytes need no panel of floats
    assert max(map(int, sizes), default=0) < 4 * case.depth * case.columns, sizes


def test_few_rows_are_unpacked_once() -> None:
    """The schedule of few rows: a panel of columns at a time, sums of a group before they are scaled."""
    case = Case(3, 64, 64)
    library = weft.build(case.module(constant=True), target="llvm -mcpu=znver4 -num-threads=1")
    (trace,) = [t for t in map(weft.trace_as_python, library.traces) if "dequantized_matmul_groups" in t]
    assert "sch.compute_at(dequantized_matmul_groups" in trace


def test_operands_that_do_not_fit() -> None:
    def product(weight: Any, scale: Any, **options: Any) -> Any:
        x = te.placeholder((3, 64), name="X")
        return te.ops.dequantized_matmul(x, weight, scale, **options)

    scale = te.placeholder((5, 2), name="S")
    weight = te.placeholder((5, 32), "uint8", name="W")
    for given, message in (
        (lambda: product(weight, scale, bits=3), "weights have 4 or 8 bits, got 3"),
        (lambda: product(te.placeholder((5, 31), "uint8", name="W"), scale), r"weight must have the shape \(5, 32\)"),
        (lambda: product(weight, te.placeholder((5, 3), name="S")), r"scale must have the shape \(5, 2\)"),
        (lambda: product(te.placeholder((5, 32), "int8", name="W"), scale), "weights of rank 2 are uint8, W is int8"),
        (lambda: product(weight, scale, group_size=31), "group_size must be a multiple of 2 weights"),
        (lambda: product(weight, scale, compute_dtype="int16"), "compute_dtype must be int8 or None, got 'int16'"),
        (lambda: product(weight, scale, columns=4), r"W of shape \(5, 32\) does not have 4 columns"),
        (
            lambda: product(weight, scale, zero_point=te.placeholder((5, 2), "int32", name="Z")),
            "zero points are uint8 or floats of up to 32 bits, Z is int32",
        ),
    ):
        with pytest.raises(weft.CompileError, match=message):
            given()
