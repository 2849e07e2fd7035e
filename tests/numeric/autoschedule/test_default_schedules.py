"""Default schedules mean what the plain program means, whatever the shapes, and replay from their text."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable

import numpy as np
import pytest
from schedule_checks import check_compiled
from tiers import first_tier
from xdsl.dialects.builtin import ModuleOp

import weft
from weft import te
from weft.analysis.structural_equality import first_difference
from weft.autoschedule.default_schedule import apply_default_schedule
from weft.interp.compare import compare_modules
from weft.passes.verify_level import verify_level
from weft.support.target import Target
from weft.te import ops

TARGET = Target.parse("llvm -num-threads=2")
WAITS = weft.Target.parse("llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=cascadelake -num-threads=2")
"""A processor whose own prefetching ends with the page."""
GOES_ON = weft.Target.parse(
    "llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=znver4 -num-threads=2 -l2-bytes=1048576 -l3-bytes=33554432"
)
"""One that crosses pages."""


def check(module: ModuleOp, target: Target = TARGET) -> str:
    """Schedule by default, and compare with the plain program. Returns the trace."""
    scheduled = module.clone()
    traces = apply_default_schedule(scheduled, target)
    verify_level(scheduled, "tir")
    difference = compare_modules(module, scheduled)
    assert difference is None, f"{difference}\n{scheduled}"
    replayed = weft.Schedule(module)
    for trace in traces:
        replayed.replay(weft.parse_trace(str(trace)))
    assert (found := first_difference(scheduled, replayed.mod)) is None, found
    check_compiled(module, scheduled)
    return "".join(str(trace) for trace in traces)


def tensor(*shape: int, dtype: str = "float32", name: str = "A") -> te.Tensor:
    return te.placeholder(shape, dtype, name=name)


def chain(m: int, n: int, dtype: str) -> ModuleOp:
    A, B = tensor(m, n, dtype=dtype), tensor(n, dtype=dtype, name="B")
    C = te.compute((m, n), lambda i, j: A[i, j] + B[j], name="C")
    D = te.compute((m, n), lambda i, j: te.max(C[i, j], 0), name="D")
    E = te.compute((m, n), lambda i, j: D[i, j] * D[i, j], name="E")
    return te.create_func([A, B, E])


def two_outputs(m: int, n: int, dtype: str) -> ModuleOp:
    A = tensor(m, n, dtype=dtype)
    C = te.compute((m, n), lambda i, j: A[i, j] * A[i, j] + A[i, j], name="C")
    D = te.compute((m, n), lambda i, j: C[i, j] + 1, name="D")
    E = te.compute((m, n), lambda i, j: C[i, j] - 1, name="E")
    return te.create_func([A, D, E])


def softmax(m: int, n: int, dtype: str) -> ModuleOp:
    A = tensor(m, n, dtype=dtype)
    k, q = te.reduce_axis((0, n), name="k"), te.reduce_axis((0, n), name="q")
    M = te.compute((m,), lambda i: te.max(A[i, k], axis=k), name="M")
    E = te.compute((m, n), lambda i, j: te.exp(A[i, j] - M[i]), name="E")
    S = te.compute((m,), lambda i: te.sum(E[i, q], axis=q), name="S")
    return te.create_func([A, te.compute((m, n), lambda i, j: E[i, j] / S[i], name="O")])


def normalised(m: int, n: int, dtype: str) -> ModuleOp:
    A = tensor(m, n, dtype=dtype)
    k, q = te.reduce_axis((0, n), name="k"), te.reduce_axis((0, n), name="q")
    S = te.compute((m,), lambda i: te.sum(A[i, k], axis=k), name="S")
    mean = te.compute((m,), lambda i: S[i] / max(n, 1), name="mean")
    V = te.compute((m,), lambda i: te.sum((A[i, q] - mean[i]) * (A[i, q] - mean[i]), axis=q), name="V")
    scale = te.compute((m,), lambda i: te.rsqrt(V[i] / max(n, 1) + 1), name="scale")
    return te.create_func([A, te.compute((m, n), lambda i, j: (A[i, j] - mean[i]) * scale[i], name="O")])


def rows(m: int, n: int, dtype: str) -> ModuleOp:
    A = tensor(m, n, dtype=dtype)
    k = te.reduce_axis((0, n), name="k")
    return te.create_func([A, te.compute((m,), lambda i: te.sum(A[i, k], axis=k), name="S")])


def columns(m: int, n: int, dtype: str) -> ModuleOp:
    A = tensor(m, n, dtype=dtype)
    k = te.reduce_axis((0, m), name="k")
    S = te.compute((n,), lambda j: te.max(A[k, j], axis=k), name="S")
    return te.create_func([A, te.compute((n,), lambda j: S[j] + 1, name="T")])


def everything(m: int, n: int, dtype: str) -> ModuleOp:
    A = tensor(m, n, dtype=dtype)
    i, k = te.reduce_axis((0, m), name="i"), te.reduce_axis((0, n), name="k")
    return te.create_func([A, te.compute((1,), lambda z: te.sum(A[i, k], axis=[i, k]), name="S")])


def transposed(m: int, n: int, dtype: str) -> ModuleOp:
    A = tensor(m, n, dtype=dtype)
    return te.create_func([A, te.compute((n, m), lambda i, j: A[j, i] + 1, name="T")])


def windows(m: int, n: int, dtype: str) -> ModuleOp:
    A = tensor(m + 2, n + 2, dtype=dtype)
    p, q = te.reduce_axis((0, 3), name="p"), te.reduce_axis((0, 3), name="q")
    return te.create_func([A, te.compute((m, n), lambda i, j: te.max(A[i + p, j + q], axis=[p, q]), name="W")])


def flipped(m: int, n: int, dtype: str) -> ModuleOp:
    A = tensor(m, n, dtype=dtype)
    return te.create_func([A, te.compute((m, n), lambda i, j: A[i, n - 1 - j] + A[m - 1 - i, j], name="F")])


def gathered(m: int, n: int, dtype: str) -> ModuleOp:
    A, rows = tensor(7, n, dtype=dtype), tensor(m, dtype="int32", name="rows")
    chosen = te.compute((m, n), lambda i, j: A[te.min(te.max(rows[i], 0), 6), j], name="G")
    return te.create_func([A, rows, chosen])


def padded(m: int, n: int, dtype: str) -> ModuleOp:
    A = tensor(m, n, dtype=dtype)
    inside = lambda i, j: te.all(i >= 1, i <= m, j >= 2, j < n + 2)  # noqa: E731
    P = te.compute((m + 2, n + 4), lambda i, j: te.if_then_else(inside(i, j), A[i - 1, j - 2], 0), name="P")
    return te.create_func([A, P])


def best(m: int, n: int, dtype: str) -> ModuleOp:
    A = tensor(m, n, dtype=dtype)
    k = te.reduce_axis((0, n), name="k")
    value, place = te.compute((m,), lambda i: te.argmax(A[i, k], axis=k), name="best")
    return te.create_func([A, value, place])


PROGRAMS: list[Callable[[int, int, str], ModuleOp]] = [
    chain,
    two_outputs,
    rows,
    columns,
    everything,
    transposed,
    windows,
    flipped,
    gathered,
    padded,
    best,
]
SHAPES = [(3, 37), (1, 1), (2, 64), (33, 3), (17, 16)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("program", PROGRAMS)
def test_same_meaning(program: Callable[[int, int, str], ModuleOp], shape: tuple[int, int]) -> None:
    check(program(*shape, "float32"))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("program", [softmax, normalised])
def test_rows_of_floats(program: Callable[[int, int, str], ModuleOp], shape: tuple[int, int]) -> None:
    assert "sched.merge" in check(program(*shape, "float32"))


@pytest.mark.parametrize("shape", [(66, 300), (67, 65), (128, 1100)], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_long_columns(dtype: str, shape: tuple[int, int]) -> None:
    assert "sched.unroll" in check(columns(*shape, dtype), Target.parse("llvm -num-threads=2 -vector-bytes=16"))


@pytest.mark.parametrize(
    "dtype", first_tier(["float16", "float64", "int8", "int32", "int64", "bfloat16"], "float64", "int8", "bfloat16")
)
@pytest.mark.parametrize("program", PROGRAMS)
def test_types(program: Callable[[int, int, str], ModuleOp], dtype: str) -> None:
    check(program(3, 21, dtype))


@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (0, 0)], ids=str)
@pytest.mark.parametrize("program", [chain, rows, columns, everything, transposed, softmax])
def test_nothing_to_do(program: Callable[[int, int, str], ModuleOp], shape: tuple[int, int]) -> None:
    check(program(*shape, "float32"))


def symbolic(program: str) -> ModuleOp:
    m, n = te.size_var("m"), te.size_var("n")
    A = te.placeholder((m, n), "float32", name="A")
    k, q = te.reduce_axis((0, n), name="k"), te.reduce_axis((0, n), name="q")
    if program == "chain":
        C = te.compute((m, n), lambda i, j: A[i, j] + 1, name="C")
        return te.create_func([A, te.compute((m, n), lambda i, j: te.max(C[i, j], 0), name="D")])
    if program == "rows":
        return te.create_func([A, te.compute((m,), lambda i: te.sum(A[i, k], axis=k), name="S")])
    if program == "columns":
        p = te.reduce_axis((0, m), name="p")
        return te.create_func([A, te.compute((n,), lambda j: te.sum(A[p, j], axis=p), name="S")])
    if program == "transposed":
        return te.create_func([A, te.compute((n, m), lambda i, j: A[j, i] * 2, name="T")])
    M = te.compute((m,), lambda i: te.max(A[i, k], axis=k), name="M")
    E = te.compute((m, n), lambda i, j: te.exp(A[i, j] - M[i]), name="E")
    S = te.compute((m,), lambda i: te.sum(E[i, q], axis=q), name="S")
    return te.create_func([A, te.compute((m, n), lambda i, j: E[i, j] / S[i], name="O")])


def shares(powers: np.ndarray) -> np.ndarray:
    return powers / powers.sum(axis=1, keepdims=True)


EXPECTED: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "chain": lambda a: np.maximum(a + 1, 0),
    "rows": lambda a: a.sum(axis=1),
    "columns": lambda a: a.sum(axis=0),
    "transposed": lambda a: a.T * 2,
    "softmax": lambda a: shares(np.exp(a - a.max(axis=1, keepdims=True))),
}


@pytest.mark.parametrize("program", EXPECTED)
def test_extents_known_at_run_time(program: str) -> None:
    module = symbolic(program)
    assert "vectorize" in check(module)
    library = weft.build(module, target=TARGET)
    for shape in ((1, 1), (3, 37), (64, 130), (2, 16), *(((0, 5),) if program != "softmax" else ())):
        a = np.random.default_rng(0).standard_normal(shape).astype("float32")
        wanted = EXPECTED[program](a)
        found = np.full_like(wanted, np.nan, order="C")
        library["main"](a, found)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("place", ["%x, %y", "%y, %x", "%x, %x"])
def test_sums_of_one_term_each(place: str) -> None:
    """A block that starts and updates an element, but has no iterator to reduce over, as schedules leave behind."""
    check(
        weft.parse(f"""
func.func @f(%A: memref<33x33xf32>, %B: memref<33x33xf32>, %C: memref<33x33xf32>) {{
  %z = arith.constant 0.0 : f32
  tir.for %i in 33 {{ tir.for %j in 33 {{
    tir.block "C" iters(%x: spatial<33>, %y: spatial<33>) = [%i, %j] {{
      tir.init {{ memref.store %z, %C[%x, %y] : memref<33x33xf32> }}
      %a = memref.load %A[{place}] : memref<33x33xf32>
      %b = memref.load %B[%x, %y] : memref<33x33xf32>
      %c = memref.load %C[%x, %y] : memref<33x33xf32>
      %p = arith.mulf %a, %b : f32
      %s = arith.addf %c, %p : f32
      memref.store %s, %C[%x, %y] : memref<33x33xf32> }} }} }}
  func.return
}}""")
    )


@pytest.mark.parametrize("program", [softmax, rows, columns, transposed, chain])
def test_as_c(program: Callable[[int, int, str], ModuleOp]) -> None:
    module = program(5, 70, "float32")
    rng = np.random.default_rng(0)
    scheduled = weft.build(module, target="c")
    plain = weft.build(module, target="c", default_schedule=False)
    assert scheduled.trace
    shapes = [spec.shape for spec in scheduled["main"].signature.arrays]
    arrays = [rng.standard_normal(shape).astype("float32") for shape in shapes]
    copies = [array.copy() for array in arrays]
    scheduled["main"](*arrays)
    plain["main"](*copies)
    np.testing.assert_allclose(arrays[-1], copies[-1], rtol=1e-5)


@pytest.mark.parametrize("program", [everything, transposed, rows, columns, chain])
def test_enough_work_for_threads(program: Callable[[int, int, str], ModuleOp]) -> None:
    module = program(517, 301, "int32")
    library = weft.build(module, target=TARGET)
    assert "sched.parallel" in library.trace
    plain = weft.build(module, target=TARGET, default_schedule=False)
    rng = np.random.default_rng(0)
    arrays = [rng.integers(-9, 9, spec.shape, "int32") for spec in plain["main"].signature.arrays]
    copies = [array.copy() for array in arrays]
    library["main"](*arrays)
    plain["main"](*copies)
    assert np.array_equal(arrays[-1], copies[-1])


@pytest.mark.slow
def test_short_rows_are_computed_some_at_a_time():
    """As many as stay in the first cache with what is read and written, so that the end of a sum is no wait; two
    where rows are of unknown length; one where threads would have too little, and where nothing comes after a sum."""

    def rows(module: ModuleOp, target: weft.Target = GOES_ON, **facts: int) -> list[str]:
        trace = check(module, dataclasses.replace(target, l1_bytes=32 << 10, **facts))
        return re.findall(r"sched.split %i\w* \{factors = \[0, (\d)\]", trace)

    assert rows(softmax(48, 256, "float32")) == ["4"] * 4
    assert rows(softmax(37, 1024, "float32")) == ["2"] * 4
    assert rows(softmax(37, 512, "float64")) == ["2"] * 4
    assert rows(softmax(48, 4096, "float32")) == []
    assert rows(softmax(48, 128, "float32"), WAITS) == ["4"] * 4
    assert rows(softmax(37, 256, "float32"), WAITS) == ["2"] * 4
    assert rows(softmax(37, 512, "float32"), WAITS) == []
    assert rows(softmax(48, 256, "float32"), num_threads=4) == []
    gamma, beta = tensor(200, name="gamma"), tensor(200, name="beta")
    norm = te.create_func([x := tensor(te.size_var("m"), 200), gamma, beta, ops.layer_norm(x, gamma, beta)])
    assert set(rows(norm)) == {"4"}
    A = tensor(te.var("m"), te.var("n"))
    assert rows(te.create_func([A, ops.softmax(A)])) == ["2"] * 4
    assert rows(te.create_func([A := tensor(48, 256), ops.mean(A, axis=1)])) == []


def test_next_rows_are_asked_for():
    """By the nest that computes most of those that read rows again, and by the one that writes them, unless another
    computes functions; also if the length of a row is unknown, but not if rows are long or read once."""
    trace = check(softmax(48, 256, "float32"), GOES_ON)
    assert trace.count('"prefetch"') == 1
    assert '%e {key = "prefetch", value = [["read", 0, [4, 0]], ["write", 0, [0, 0], "O"]]}' in trace, trace
    gamma, beta = tensor(256, name="gamma"), tensor(256, name="beta")
    norm = check(te.create_func([x := tensor(48, 256), gamma, beta, ops.layer_norm(x, gamma, beta)]), GOES_ON)
    assert 'value = [["read", 0, [4, 0]], ["write", 0, [4, 0]]]' in norm, norm
    long = softmax(4, 1 << 18, "float32")
    assert "prefetch" not in "".join(str(t) for t in apply_default_schedule(long, TARGET))
    A = tensor(te.var("m"), te.var("n"))
    unknown = "".join(str(t) for t in apply_default_schedule(te.create_func([A, ops.softmax(A)]), TARGET))
    assert 'value = [["read", 0, [2, 0]], ["write", 0, [0, 0], "softmax"]]' in unknown, unknown


SMALL = weft.Target.parse("llvm -mcpu=znver4 -num-threads=2 -l2-bytes=4096 -l3-bytes=16384")
"""One whose caches are exceeded at once."""


def trace_for(target: weft.Target, arguments: list[te.Tensor]) -> str:
    return "".join(map(str, apply_default_schedule(te.create_func(arguments), target)))


def test_rows_from_beyond_the_caches_are_asked_for_ahead():
    """By reductions; not those that stay in the second caches, nor those of unknown length."""

    def trace(*shape: te.Extent, dtype: str = "float32", target: weft.Target = WAITS) -> str:
        A = te.placeholder(shape, dtype, name="A")
        return trace_for(target, [A, ops.max(A, axis=1, name="O")])

    rows, zen3 = WAITS.l2_bytes * WAITS.num_threads // 4096, dataclasses.replace(GOES_ON, cpu="znver3")
    assert "prefetch" not in trace(GOES_ON.l3_bytes // 4096, 1024, target=zen3)
    assert 'value = [["read", 0, [0, 4096]]]' in trace(GOES_ON.l3_bytes // 4096 + 1, 1024, target=zen3)
    assert "prefetch" not in trace(GOES_ON.l3_bytes // 4096 + 1, 1024, target=GOES_ON)
    assert 'value = [["read", 0, [0, 1024]]]' in trace(rows + 1, 1024)
    assert 'value = [["read", 0, [0, 512]]]' in trace(rows + 1, 512, dtype="float64")
    assert "prefetch" not in trace(rows, 1024)
    assert "prefetch" not in trace(te.var("n"), 1024)


def test_rows_from_memory_pass_by_four_at_a_time():
    """Not from near caches, where there are few, or of unknown length; nor on a Zen 4."""

    def trace(rows: te.Extent, columns: te.Extent, target: weft.Target = WAITS) -> str:
        A = te.placeholder((rows, columns), "float32", name="A")
        return trace_for(target, [A, ops.sum(A, axis=1, name="O")])

    near = 8 * WAITS.l2_bytes * WAITS.num_threads // 4096
    assert "sched.unroll" not in trace(near, 1024)
    far = trace(near + 1, 1024)
    (some, few), (k0, k1) = (found.groups() for found in [*re.finditer(r"(%\w+), (%\w+) = sched.split", far)][::-1])
    assert f"sched.reorder {some}, {k0}, {few}, {k1}\n" in far, far
    assert f"sched.unroll {few}\n" in far
    assert "sched.unroll" not in trace(near + 1, 1024, dataclasses.replace(WAITS, cpu="znver4"))
    assert "sched.unroll" not in trace(16, 1024 * near)
    assert "sched.unroll" not in trace(te.var("m"), 1024)
    tiny = weft.Target.parse("llvm -mcpu=cascadelake -num-threads=2 -l2-bytes=512 -l3-bytes=16384")
    for rows in (32, 33):
        A = tensor(rows, 100)
        assert "sched.unroll" in check(te.create_func([A, ops.max(A, axis=1)]), tiny)
    images = tensor(3, 12, 5, 20)
    pooled = check(te.create_func([images, ops.sum(images, axis=(2, 3))]), tiny)
    assert "factors = [0, 4]" not in pooled  # a channel is less than the vectors of a row


def test_what_is_larger_than_the_caches_is_stored_past_them():
    """By streams, on processors that are faster for it; not where another nest reads it, nor in tiles, nor where the
    length is unknown."""

    def trace(length: te.Extent, target: weft.Target = GOES_ON, dtype: str = "float32") -> str:
        A, B = (te.placeholder((length,), dtype, name=name) for name in "AB")
        return trace_for(target, [A, B, te.compute((length,), lambda i: A[i] + B[i], name="O")])

    fits = GOES_ON.l3_bytes // 12
    assert "nontemporal" not in trace(fits)
    assert 'sched.annotate %o {key = "nontemporal", value = [0]}' in trace(fits + 1)
    assert "nontemporal" in trace(fits // 2 + 1, dtype="float64")
    assert "nontemporal" not in trace(fits + 1, WAITS)
    assert "nontemporal" not in trace(te.var("n"))
    side = 4096
    A = te.placeholder((side, side), "float32", name="A")
    assert "nontemporal" not in trace_for(GOES_ON, [A, te.compute((side, side), lambda i, j: A[j, i], name="O")])
    half = te.compute((side, side), lambda i, j: A[i, j] * 0.5, name="H")
    sums = te.compute((side, side), lambda i, j: half[i, j] + half[j, i], name="S")
    assert "nontemporal" not in trace_for(GOES_ON, [A, half, sums])
    assert "nontemporal" in trace_for(GOES_ON, [A, half])
    small = tensor(48, 256)
    assert "nontemporal" in check(te.create_func([small, te.compute(small.shape, lambda i, j: small[i, j] + 1)]), SMALL)


def test_streams_are_asked_for_ahead():
    """Where whole arrays pass by, half a page ahead; not what is read again and again, and nothing of short ones."""
    A, B = tensor(64, 256), tensor(256, name="B")
    added = [A, B, te.compute(A.shape, lambda i, j: A[i, j] + B[j], name="O")]
    long = check(te.create_func(added), WAITS)
    assert 'value = [["read", 0, [0, 512]], ["write", 0, [0, 512]]]' in long, long
    assert "prefetch" not in trace_for(GOES_ON, added)
    short = tensor(32, 32)
    assert "prefetch" not in check(te.create_func([short, te.compute(short.shape, lambda i, j: -short[i, j])]), WAITS)
    halves = tensor(te.var("m"), dtype="float16")
    assert "[1024]" in check(te.create_func([halves, te.compute(halves.shape, lambda i: -halves[i])]), WAITS)


def test_what_is_written_is_asked_for_ahead_in_l3():
    """Where the processor keeps up with what is read."""

    def trace(*shape: te.Extent) -> str:
        A = te.placeholder(shape, "float64", name="A")
        return trace_for(GOES_ON, [A, te.compute(shape, lambda *at: -A(*at), name="O")])

    half = GOES_ON.l3_bytes // 2 // (2 * 8)
    assert 'value = [["write", 0, [0, 512]]]' in trace(half // 512, 512)
    assert "prefetch" not in trace(half // 512 + 1, 512)
    assert "prefetch" not in trace(GOES_ON.l2_bytes // (2 * 8))
    assert "prefetch" not in trace(te.var("n"))


@pytest.mark.parametrize(("shape", "threads"), [((8, 20000), 2), ((16, 7, 17, 64), 4), ((2, 4, 20000), 2)])
def test_parts_of_a_reduction_that_are_whole_rows(shape: tuple[int, ...], threads: int) -> None:
    """As many rows as parts: `rfactor` leaves a loop of one iteration."""
    data = tensor(*shape)
    trace = check(te.create_func([data, ops.sum(data)]), Target("llvm", num_threads=threads))
    assert "sched.rfactor" in trace and "sched.parallel" in trace


@pytest.mark.parametrize(("method", "scale", "period"), [("linear", 2.0, 2), ("cubic", 1.5, 3), ("nearest", 4.0, 4)])
@pytest.mark.parametrize("width", [5, 11, "n"])
def test_periods_of_resized_rows(method: str, scale: float, period: int, width: int | str):
    data = te.placeholder((2, 3, te.var(width) if isinstance(width, str) else width), name="A")
    module = te.create_func([data, ops.resize1d(data, scales=scale, method=method)])
    assert f"{{factors = [0, {period}]}}" in check(module)


def test_periods_of_downsampled_rows():
    """Positions that are a whole number of elements apart have no longer period."""
    data = tensor(2, 3, 12)
    assert "unroll" not in check(te.create_func([data, ops.resize1d(data, scales=0.5, method="linear")]))
