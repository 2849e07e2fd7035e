"""Declared intrinsics and rules for what they become on a target, as in courses: `mylog` from tensor expression to
OpenCL, and built-in functions that are replaced."""

import shutil
from collections.abc import Iterator

import numpy as np
import pytest

import weft
from weft import te
from weft.interp.compare import Reference
from weft.passes.low.low_lower_intrinsics import LowerIntrinsicsPass
from weft.support.user_functions import IntrinsicCall, register_intrinsic, register_lowering, unregister_intrinsic

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


@pytest.fixture
def mylog() -> Iterator[None]:
    weft.register_intrinsic("mylog", meaning=np.log)

    @weft.register_lowering("mylog", target="opencl", level=99)
    def _(call: IntrinsicCall) -> str | None:
        return "log" if call.dtype == "float32" else None

    @weft.register_lowering("mylog")
    def _(call: IntrinsicCall) -> str | None:
        return {"float32": "logf", "float64": "log"}.get(call.dtype)

    yield
    unregister_intrinsic("mylog")


def kernel(threads: bool, dtype: str = "float32") -> weft.Schedule:
    n = te.var("n")
    A = te.placeholder((n,), dtype, name="A")
    B = te.compute(A.shape, lambda i: te.call_intrin(A.dtype, "mylog", A[i]) + 1, name="B")
    sch = weft.Schedule(te.create_func([A, B], name="mykernel"))
    if threads:
        blocks, thread = sch.split(sch.get_loops("B")[0], factors=[None, 64])
        sch.bind(blocks, "blockIdx.x")
        sch.bind(thread, "threadIdx.x")
    return sch


@pytest.mark.usefixtures("mylog")
def test_each_target_has_its_function() -> None:
    cuda = weft.build(kernel(True).mod, target="cuda").get_source("cuda")
    opencl = weft.build(kernel(True).mod, target="opencl").get_source("opencl")
    assert "B[at] = logf(A[at]) + 1.0f;" in cuda and "B[at] = log(A[at]) + 1.0f;" in opencl
    assert "logf(A[i]) + 1.0f" in weft.build(kernel(False).mod, target="c").get_source("c")


@pytest.mark.usefixtures("mylog")
@pytest.mark.parametrize("target", ["llvm", "c", "opencl"])
def test_results(target: str) -> None:
    if target == "opencl":
        pytest.importorskip("pyopencl", reason="OpenCL is not installed: pip install 'weft[opencl]'")
    if target == "c" and COMPILER is None:
        pytest.skip("no C compiler (cc, gcc, clang) is on the PATH")
    a = np.linspace(0.1, 9, 1000, dtype=np.float32)
    b = np.zeros_like(a)
    weft.build(kernel(target == "opencl").mod, target=target)["mykernel"](a, b)
    np.testing.assert_allclose(b, np.log(a) + 1, rtol=1e-5)


@pytest.mark.usefixtures("mylog")
def test_lowering_keeps_the_meaning() -> None:
    module = kernel(False).mod
    reference = Reference(module)
    assert not reference.skipped
    from xdsl.context import Context

    from weft.passes.lower_tir_to_low import LowerTirToLowPass

    LowerTirToLowPass("llvm").apply(Context(), module)
    assert "@logf" in str(module) and "@mylog" not in str(module)
    assert reference.compare(module) is None


def test_builtin_functions_are_replaced_by_level() -> None:
    text = """
func.func @f(%A: memref<8xf32>, %B: memref<8xf32>) {
  tir.for %i in 2 { tir.for %j in 4 vectorized {
    tir.block "B" iters(%v: spatial<8>) = [%i * 4 + %j] {
      %a = memref.load %A[%v] : memref<8xf32>
      %e = math.exp %a : f32
      memref.store %e, %B[%v] : memref<8xf32>
    } } }
  func.return
}"""
    try:
        register_lowering("exp", target="llvm", level=20)(lambda call: "exp2f")
        register_lowering("exp", level=30)(lambda call: None)
        register_lowering("exp", target="c", level=40)(lambda call: "expm1f")
        library = weft.build(weft.parse(text), target="llvm")
        assert "@exp2f" in library.get_source("ll")
        a, b = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
        library["f"](a, b)
        np.testing.assert_allclose(b, 2**a)
    finally:
        unregister_intrinsic("exp")
    assert "@exp2f" not in weft.build(weft.parse(text), target="llvm").get_source("ll")


def test_refusals() -> None:
    with pytest.raises(weft.CompileError, match="no intrinsic is registered as 'mylog'"):
        kernel(False)
    with pytest.raises(weft.CompileError, match=r"unknown target kind 'openCL' .* did you mean 'opencl'"):
        register_lowering("mylog", target="openCL")
    register_intrinsic("mylog", meaning=lambda x: 1 / 0)
    try:
        with pytest.raises(weft.CompileError, match="an intrinsic 'mylog' is registered already"):
            register_intrinsic("mylog")
        message = r"intrinsic 'mylog' of \(float32\) has no lowering for target llvm: register one with .*\"mylog\""
        with pytest.raises(weft.CompileError, match=message):
            weft.build(kernel(False).mod, target="llvm")
        with pytest.raises(weft.CompileError, match=r"meaning of intrinsic 'mylog' fails on \(.*\): ZeroDivisionError"):
            weft.Interpreter(kernel(False).mod).call("mykernel", np.ones(2, np.float32), np.ones(2, np.float32))
        register_lowering("mylog")(lambda call: "other")
        module = weft.parse("func.func private @other(f64) -> f32\n" + str(kernel(False).mod).partition("{")[2][:-2])
        from xdsl.context import Context

        with pytest.raises(weft.CompileError, match="an intrinsic is lowered to one with other types"):
            LowerIntrinsicsPass("llvm").apply(Context(), module)
    finally:
        unregister_intrinsic("mylog")
