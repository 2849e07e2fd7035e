"""Constants of a model, laid out when it is built: the same results at every level, and nothing packed in a call."""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tiers import first_tier
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp

import weft
from weft import graph as G
from weft.analysis.block_scopes import buffers_read, child_blocks, functions
from weft.analysis.constants import is_constant_nest
from weft.autoschedule.default_schedule import apply_default_schedule
from weft.driver.constants import pack_constants
from weft.interp.interpreter import Interpreter
from weft.passes.lower_to_tir import lower_to_tir
from weft.passes.tir.flat_signature import state_parameter_accesses
from weft.passes.tir.tir_fold_constant_calls import FoldConstantCallsPass
from weft.passes.tir.tir_split_constant_packing import split_constant_packing
from weft.support.target import Target

Array = NDArray[Any]
random = np.random.default_rng(7)
AVX2 = Target.parse("llvm -mcpu=haswell -num-threads=1")


def normal(*shape: int) -> Array:
    return random.standard_normal(shape).astype("float32")


def model(op: Any, x: Array, **weights: Array) -> ModuleOp:
    """A graph function of x that applies `op` to it and to constants."""
    bb = G.BlockBuilder()
    inputs = [G.var("x", x.shape, x.dtype.name), *(G.var(k, w.shape, w.dtype.name) for k, w in weights.items())]
    with bb.function("main", inputs):
        with bb.dataflow():
            out = bb.emit_output(bb.emit(op(*inputs)))
        bb.emit_func_output(out)
    return G.bind_params(bb.get(), "main", weights)


CASES = {
    "few rows": (G.matmul, normal(3, 20), {"w": normal(20, 72)}),
    "ragged": (G.matmul, normal(2, 7), {"w": normal(7, 13)}),
    "many rows": (G.matmul, normal(40, 24), {"w": normal(24, 40)}),
    "transposed": (G.dense, normal(3, 20), {"w": normal(72, 20)}),
    "bytes": (
        partial(G.matmul, out_dtype="int32"),
        random.integers(-128, 128, (3, 30), dtype="int8"),
        {"w": random.integers(-128, 128, (30, 40), dtype="int8")},
    ),
    "unsigned bytes": (
        partial(G.matmul, out_dtype="uint32"),
        random.integers(0, 256, (9, 30), dtype="uint8"),
        {"w": random.integers(0, 256, (30, 40), dtype="uint8")},
    ),
    "short rows": (lambda x, w: G.relu(G.conv2d(x, w, padding=1)), normal(1, 8, 5, 7), {"w": normal(16, 8, 3, 3)}),
    "convolution": (partial(G.conv2d, padding=1), normal(1, 16, 4, 5), {"w": normal(16, 16, 3, 3)}),
}


@pytest.mark.parametrize("case", first_tier(CASES, "few rows", "transposed", "unsigned bytes", "short rows"))
def test_packing_ahead_keeps_results(case: str):
    op, x, weights = CASES[case]
    module = model(op, x, **weights)
    expected = Interpreter(module).call("main", x)

    def check(lowered: ModuleOp) -> None:
        found = np.zeros_like(expected)
        Interpreter(lowered).call("main", x, found)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)

    lower_to_tir(module)
    state_parameter_accesses(module)
    apply_default_schedule(module, AVX2)
    check(module)
    split_constant_packing(module)
    assert any("_pack_" in function.sym_name.data for function in functions(module))
    check(module)
    check_nothing_is_packed(module, packed=False)
    copy = module.clone()
    FoldConstantCallsPass().apply(None, copy)  # pyright: ignore[reportArgumentType]
    pack_constants(module)
    for folded in (copy, module):
        check(folded)
        check_nothing_is_packed(folded)
    assert [str(op) for op in copy.ops] == [str(op) for op in module.ops]


@pytest.mark.slow
def test_threads_share_the_filters_of_small_images():
    """Two threads and seven rows: strips of rows would keep one of them waiting."""
    x = normal(1, 16, 7, 7)
    module = model(partial(G.conv2d, padding=1), x, w=normal(64, 16, 3, 3))
    expected = Interpreter(module).call("main", x)
    lower_to_tir(module)
    (trace,) = apply_default_schedule(module, Target.parse("llvm -mcpu=haswell -num-threads=2"))
    assert "factors = [0, 8]} : loop, loop\n  %h10, %h11" in str(trace)  # one strip of rows, two by two
    pack_constants(module)
    found = np.zeros_like(expected)
    Interpreter(module).call("main", x, found)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def check_nothing_is_packed(module: ModuleOp, packed: bool = True) -> None:
    """Kernels read their parameters, of which those that are constants have the packed layout."""
    kernels = [f for f in functions(module) if f.sym_name.data != "main" and "_pack_" not in f.sym_name.data]
    for kernel in kernels:
        assert not any(map(is_constant_nest, kernel.body.block.ops))
        for block in child_blocks(kernel):
            assert not any(b.name_hint in ("tensor_b", "weight") for b in buffers_read(block))
    (host,) = (f for f in functions(module) if f.sym_name.data == "main")
    calls = [op for op in host.walk() if isinstance(op, CallOp)]
    assert (len(calls) == 1) is packed


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("target", ["llvm", "c"])
def test_built_models_keep_results(case: str, target: str):
    op, x, weights = CASES[case]
    module = model(op, x, **weights)
    expected = Interpreter(module).call("main", x)
    np.testing.assert_allclose(weft.build(module, target=target)["main"](x), expected, rtol=1e-4, atol=1e-4)


def test_large_constants_lie_beside_the_code(tmp_path: Path):
    """192 columns are whole panels on every CPU: nothing is padded."""
    x, w = normal(2, 192), normal(192, 192)
    module = model(G.matmul, x, w=w)
    lib = weft.build(module, target="llvm -num-threads=1")
    ((name, array),) = lib.constants.items()
    assert name == "weft_const_0"
    assert array.nbytes == w.nbytes and not array.flags.writeable
    np.testing.assert_array_equal(np.sort(array.ravel()), np.sort(w.ravel()))
    assert f"@{name} = external constant [147456 x i8]" in lib.get_source("ll")
    np.testing.assert_allclose(lib["main"](x), x @ w, rtol=1e-4, atol=1e-4)
    main = lib["main"]
    del lib
    np.testing.assert_allclose(main(x), x @ w, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", ["bool", "float32"])
def test_large_constants_are_attributes_like_others(dtype: str):
    """They print, parse and compare, and are recognised as the same number everywhere."""
    x, w = normal(256, 256), np.ones((256, 256), dtype)
    module, same = (model(lambda x, w: G.multiply(x, G.cast(w, "float32")), x, w=w) for _ in range(2))
    assert same.is_structurally_equivalent(module)
    assert str(weft.parse(str(module))) == str(module)
    np.testing.assert_array_equal(Interpreter(module).call("main", x), x)
    np.testing.assert_array_equal(weft.build(module, target="llvm -num-threads=1")["main"](x), x)


@pytest.mark.slow
def test_exported_code_holds_large_constants(tmp_path: Path):
    x, w = normal(2, 192), normal(192, 192)
    module = model(G.matmul, x, w=w)
    path = weft.build(module, target="llvm -num-threads=1").export(tmp_path / "model.so")
    np.testing.assert_allclose(weft.load(path)["main"](x), x @ w, rtol=1e-4, atol=1e-4)
    lib = weft.build(module, target="c -num-threads=1")
    np.testing.assert_allclose(lib["main"](x), x @ w, rtol=1e-4, atol=1e-4)
    source = lib.get_source("c")
    assert "[36864] = {" in source and "extern" not in source


def test_a_constant_that_only_some_calls_get_is_packed_for_these():
    x, w = normal(4, 16), normal(16, 16)
    bb = G.BlockBuilder()
    a, b = G.var("a", (4, 16), "float32"), G.var("b", (16, 16), "float32")
    with bb.function("main", [a, b]):
        with bb.dataflow():
            out = bb.emit_output(bb.emit(G.matmul(bb.emit(G.matmul(a, G.const(w))), b)))
        bb.emit_func_output(out)
    lib = weft.build(bb.get(), target="llvm -num-threads=1")
    v = normal(16, 16)
    np.testing.assert_allclose(lib["main"](x, v), x @ w @ v, rtol=1e-4, atol=1e-4)
    assert [row.names for row in lib.report().rows] == [("matmul",), ("matmul_1",)]


PEAK = """
import numpy as np
import weft
from weft import graph as G

def built(extent):
    bb = G.BlockBuilder()
    x, w = G.var("x", (4, extent), "float32"), G.var("w", (extent, extent), "float32")
    with bb.function("main", [x, w]):
        with bb.dataflow():
            out = bb.emit_output(bb.emit(G.relu(G.matmul(x, w))))
        bb.emit_func_output(out)
    module = G.bind_params(bb.get(), "main", {"w": np.ones((extent, extent), "float32")})
    return module, weft.build(module, target="llvm -num-threads=1")

def in_use(field):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(field))

kept = built(256)
with open("/proc/self/clear_refs", "w") as peak:
    peak.write("5")
before = in_use("VmRSS")
kept = built(4096)
print((in_use("VmHWM") - before) / (4096 * 4096 * 4 / 1024))
"""


@pytest.mark.slow
@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="the system does not tell peak memory")
def test_building_takes_twice_the_weights():
    run = subprocess.run([sys.executable, "-c", PEAK], capture_output=True, text=True, check=True)
    assert float(run.stdout) < 2.2
