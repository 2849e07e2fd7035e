"""`weft.tvm`: what differs from weft's own names, and errors about names and arguments that it lacks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import weft
import weft.tvm as tvm
from weft.support.errors import CompileError
from weft.tvm import te
from weft.tvm.ir.module import IRModule
from weft.tvm.script import relax as R
from weft.tvm.script import tir as T


@tvm.script.ir_module
class Product:
    @T.prim_func
    def main(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32"), C: T.Buffer((8, 8), "float32")):
        T.func_attr({"global_symbol": "main", "tir.noalias": True})
        for i, j, k in T.grid(8, 8, 8):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = 0.0
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


def scheduled() -> tvm.tir.Schedule:
    sch = tvm.tir.Schedule(Product, seed=0)
    block = sch.get_block("C", "main")
    _, j, k = sch.get_loops(block=block)
    j_0, j_1 = sch.split(loop=j, factors=sch.sample_perfect_tile(loop=j, n=2))
    sch.reorder(j_0, k, j_1)
    sch.decompose_reduction(block, k)
    return sch


def test_scripts_state_regions_and_name_loops() -> None:
    text = scheduled().mod.script()
    assert "for i, j_0 in T.grid(8, " in text
    assert "T.reads(C[vi, vj], A[vi, vk], B[vk, vj])" in text
    assert "T.writes(C[vi, vj])" in text
    again = tvm.script.from_source(text)
    tvm.ir.assert_structural_equal(tvm.script.from_source(again.script()), again)


def test_trace_is_a_function_that_replays() -> None:
    sch = scheduled()
    text = str(sch.trace)
    assert text.startswith("# from weft.tvm import tir\ndef apply_trace(sch: tir.Schedule) -> None:\n")
    assert '    b0 = sch.get_block(name="C", func_name="main")\n' in text
    assert "    l1, l2, l3 = sch.get_loops(block=b0)\n" in text
    assert "    v4, v5 = sch.sample_perfect_tile(loop=l2, n=2, max_innermost_factor=16, decision=[" in text
    names: dict[str, object] = {"tir": tvm.tir}
    exec(text, names)
    again = tvm.tir.Schedule(Product)
    names["apply_trace"](again)  # pyright: ignore
    tvm.ir.assert_structural_equal(again.mod, sch.mod)


def test_modules_run_as_they_are_written() -> None:
    lib = tvm.build(Product, target="llvm")
    assert not lib.library.traces
    a, b = (np.arange(64, dtype="float32").reshape(8, 8) % 7 for _ in range(2))
    c = tvm.nd.empty((8, 8))
    lib["main"](tvm.nd.array(a), tvm.nd.array(b), c)
    np.testing.assert_array_equal(c.numpy(), a @ b)
    assert lib.time_evaluator("main", tvm.cpu(), number=1)(a, b, c).mean > 0


def test_lower_shows_loops_alone() -> None:
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1, name="B")
    s = te.create_schedule(B.op)
    s[B].split(B.op.axis[0], factor=32)
    text = str(tvm.lower(s, [A, B], simple_mode=True))
    assert "for i_outer, i_inner in T.grid((n + 31) // 32, 32):" in text
    assert "if i_outer * 32 + i_inner < n:" in text
    assert "T.block" not in text


def test_modules_are_dictionaries() -> None:
    func = Product["main"].with_attr({"global_symbol": "product", "tir.noalias": True})
    mod = IRModule({"product": func})
    assert [var.name_hint for var in mod.functions] == ["product"]
    mod.update_func(mod.get_global_var("product"), Product["main"])
    assert "product" in mod
    assert IRModule.from_expr(func)["product"].attrs["global_symbol"] == "product"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("autotvm", "meta_schedule tunes"),
        ("nothing", r"weft.tvm has no 'nothing' of TVM \(known: 'IRModule'"),
        ("create_schedule", "weft.tvm has no 'create_schedule' of TVM: weft.tvm.te"),
        ("rpc", "lib.export"),
    ],
)
def test_missing_names(name: str, message: str) -> None:
    with pytest.raises(AttributeError, match=message):
        getattr(tvm, name)
    for module, missing, message in (
        (tvm.contrib, "cublas", "weft.tvm.contrib has no 'cublas' of TVM, did you mean 'utils' or 'clang'"),
        (tvm.relay, "var", "weft.tvm.relay has no 'var' of TVM: weft.tvm.relax"),
        (tvm.topi, "bias_add", "weft.tvm.topi has no 'bias_add' of TVM: add"),
        (tvm.relax, "training", "weft computes no gradients"),
        (tvm.relax.op.nn, "rellu", "relax.op has no 'nn.rellu' of TVM, did you mean 'nn.relu'"),
    ):
        with pytest.raises(AttributeError, match=message):
            getattr(module, missing)
    with pytest.raises(AttributeError, match="did you mean 'placeholder'"):
        te.placeholde  # noqa: B018


def test_names_of_tvm_on_weft_itself() -> None:
    with pytest.raises(AttributeError, match=r"take arrays of NumPy.*; weft.tvm.nd is TVM's spelling"):
        weft.nd  # pyright: ignore # noqa: B018
    with pytest.raises(AttributeError, match=r"^module 'weft' has no attribute 'nothing' \(known: 'CompileError', "):
        weft.nothing  # pyright: ignore # noqa: B018
    with pytest.raises(AttributeError, match=r"weft.build\(mod, target='cuda'\); weft.tvm.device is TVM's spelling"):
        weft.device  # pyright: ignore # noqa: B018
    assert {"tvm", "build", "tune"} <= set(dir(weft))


def test_methods_of_tvm_on_modules_of_schedules() -> None:
    sch = weft.Schedule(te.create_func([X := te.placeholder((4,), name="X"), te.compute((4,), lambda i: X[i] + 1)]))
    with pytest.raises(AttributeError, match=r"no attribute .show.: weft.script.show\(mod\); modules of weft.tvm"):
        sch.mod.show()  # pyright: ignore
    with pytest.raises(AttributeError, match=r"^a module has no attribute 'nothing'$"):
        sch.mod.nothing  # pyright: ignore # noqa: B018
    assert sch.mod.clone().is_structurally_equivalent(sch.mod) and hasattr(sch.mod, "body")


def test_refused_arguments() -> None:
    with pytest.raises(CompileError, match=r"PassContext: weft has no option 'tir.nothing'"):
        tvm.transform.PassContext(config={"tir.nothing": 1})
    with pytest.raises(TypeError, match="unexpected keyword argument 'mem_scope'"):
        tvm.nd.empty((2,), mem_scope="global")  # pyright: ignore
    with pytest.raises(CompileError, match="weft has no attribute 'TOpPattern' of operators"):
        tvm.ir.register_op_attr("tir.f", "TOpPattern", 1)
    with pytest.raises(CompileError, match="a module has its own"):
        tvm.build(Product, [1], target="llvm")
    with pytest.raises(TypeError, match="build: expected a schedule, a module or a function, got int"):
        tvm.build(3)


def test_targets_of_tvm() -> None:
    assert str(tvm.target.Target("nvidia/tesla-p100")) == str(weft.Target("cuda -arch=sm_60"))
    assert str(tvm.target.Target("llvm -mcpu=haswell --num-cores=1")) == str(
        weft.Target("llvm -mcpu=haswell -num-threads=1")
    )
    with pytest.raises(CompileError, match="unknown device 'nvidia/nothing', did you mean 'nvidia/"):
        tvm.target.Target("nvidia/nothing")


@tvm.script.ir_module
class Halves:
    @R.function
    def main(inp_0: R.Tensor((4, 8), "float32"), inp_1: R.Tensor((4, 8), "float32"), inp0: R.Tensor((8,), "float32")):
        with R.dataflow():
            halves = R.split(R.add(R.add(inp_0, inp_1), inp0), indices_or_sections=2, axis=1)
            total = R.add(halves[0], halves[1])
            R.output(halves, total)
        return halves[1], total


def test_outputs_of_several_results_and_numbered_parameters() -> None:
    first, second, row = np.ones((4, 8), np.float32), np.full((4, 8), 2, np.float32), np.arange(8, dtype=np.float32)
    right, total = weft.build(Halves)["main"](first, second, row)
    whole = first + second + row
    np.testing.assert_array_equal(right, whole[:, 4:])
    np.testing.assert_array_equal(total, whole[:, :4] + whole[:, 4:])
    text = Halves.script()
    assert "R.output(halves0, halves1, total)" in text
    again = tvm.script.from_source(text)
    np.testing.assert_array_equal(weft.build(again)["main"](first, second, row)[1], total)


def test_outputs_are_variables() -> None:
    with pytest.raises(CompileError, match=r"R\.output takes variables of the region"):

        @tvm.script.ir_module
        class Wrong:
            @R.function
            def main(x: R.Tensor((4, 8), "float32")):
                with R.dataflow():
                    y = R.topk(x, 2)
                    R.output(y[0])
                return y


def test_parameters_that_come_with_the_result() -> None:
    bb = tvm.relax.BlockBuilder()
    info = tvm.relax.TensorStructInfo((4,), "float32")
    first, second = tvm.relax.Var("x_0", info), tvm.relax.Var("x_1", info)
    with bb.function("main"):
        bb.emit_func_output(bb.emit(tvm.relax.op.subtract(first, second)), [first, second])
    found = weft.build(bb.get())["main"](np.ones(4, np.float32), np.arange(4, dtype=np.float32))
    np.testing.assert_array_equal(found, [1, 0, -1, -2])


def test_names_are_mapped_and_behaviour_is_not_duplicated():
    files = Path(tvm.__file__).parent.rglob("*.py")
    lines = {str(file): len(file.read_text("utf-8").splitlines()) for file in files}
    assert len(lines) > 30
    assert sum(lines.values()) <= 4000, "weft.tvm maps names: what is not TVM's belongs in weft's own API"
