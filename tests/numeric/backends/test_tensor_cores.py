"""What tensor cores compute, in the interpreter: at tir level on tiles, in kernels by the registers of each thread."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tiers import second_tier
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr, f16
from xdsl.dialects.func import FuncOp

import weft
from weft import te
from weft.dialects import sched
from weft.dialects.low_tensor_cores import (
    SHAPES,
    TENSOR_CORE_OPS,
    Family,
    FragmentAttr,
    FragmentRole,
    LdmatrixOp,
    Order,
    WmmaLoadOp,
)
from weft.interp.compare import compare_modules
from weft.interp.errors import InterpreterError
from weft.interp.interpreter import Interpreter
from weft.passes.gpu_pipeline import kernels_to_low
from weft.passes.lower_tir_to_low import lower_tir_to_low
from weft.passes.schedule.tensor_core_intrinsics import tensor_core_intrinsics
from weft.support.errors import CompileError

INTRINSICS = sorted(
    name
    for name in tensor_core_intrinsics()
    if ("16x16x16" in name and "bf16" not in name) or ("m16n8k16" in name and "_f16" not in name)
)
"""Of each kind one shape and one type: texts are the same but for numbers."""
SIZES = {(family, shape) for family in Family for shape in SHAPES[family]}


@pytest.mark.parametrize("name", INTRINSICS)
def test_implementations_compute_what_descriptions_say(name: str) -> None:
    modules = [weft.parse(text) for text in tensor_core_intrinsics()[name]]
    for module in modules:
        for function in module.ops:
            assert isinstance(function, FuncOp)
            function.sym_name = StringAttr("intrinsic")
    assert compare_modules(*modules) is None


def test_every_intrinsic_is_found() -> None:
    sch = product((16, 16, 16))
    with pytest.raises(
        CompileError, match="unknown tensor intrinsic 'wmma_fill_16x16x8_f32', did you mean 'wmma_fill_16x16x16_f32'"
    ):
        sch.tensorize("C", "wmma_fill_16x16x8_f32")


def test_names_are_taken() -> None:
    description, implementation = (weft.parse(text) for text in tensor_core_intrinsics()["wmma_fill_16x16x16_f32"])
    with pytest.raises(CompileError, match="tensor intrinsic 'wmma_fill_16x16x16_f32' is registered already"):
        weft.register_tensor_intrinsic("wmma_fill_16x16x16_f32", description, implementation)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("llvm", "low.tile_fill has no lowering in the llvm backend"),
        ("c", "low.tile_fill has no form in C"),
        ("opencl", "low.tile_fill needs wmma f16, which target opencl does not have: it has no tensor cores"),
        ("metal", "low.tile_fill needs wmma f16, which target metal does not have: it has no tensor cores"),
    ],
)
def test_targets_without_tensor_cores(target: str, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        weft.build(one_warp(Family.WMMA, (16, 16, 16), "float16").mod, target=target)


@pytest.mark.slow
def test_traces_replay_and_text_says_it_all() -> None:
    """The trace makes the same program again, and each pass the same of text that is read back."""
    sch = one_warp(Family.MMA, (16, 16, 16), "float16")
    replayed = product(sizes_of((16, 16, 16)))
    trace = weft.parse(str(sch.trace), "trace.mlir")
    replayed.replay(next(op for op in trace.ops if isinstance(op, sched.FuncOp)))
    assert str(replayed.mod) == str(sch.mod)
    module, read = sch.mod.clone(), weft.parse(str(sch.mod))
    for step in kernels_to_low("cuda -arch=sm_80"):
        step.apply(Context(), module)
        step.apply(Context(), read)
        assert str(read) == str(module), f"after {step.name}"
        read = weft.parse(str(read))


def product(
    sizes: tuple[int, int, int], dtype: str = "float16", *, a_trans: bool = False, b_trans: bool = False
) -> weft.Schedule:
    m, n, k = sizes
    A = te.placeholder((k, m) if a_trans else (m, k), dtype, name="A")
    B = te.placeholder((n, k) if b_trans else (k, n), dtype, name="B")
    r = te.reduce_axis((0, k), name="k")

    def element(i: Any, j: Any) -> Any:
        a, b = A[r, i] if a_trans else A[i, r], B[j, r] if b_trans else B[r, j]
        return te.sum(a.astype("float32") * b.astype("float32"), axis=r)

    return weft.Schedule(te.create_func([A, B, te.compute((m, n), element, name="C")]))


def tiles_of(shape: tuple[int, int, int]) -> tuple[int, int, int]:
    """How many tiles of each dimension; those of 8 elements start where `wmma` may not load."""
    return (2, 2, 2) if 8 not in shape[:2] else (1, 1, 2)


def sizes_of(shape: tuple[int, int, int]) -> tuple[int, int, int]:
    m, n, k = (count * size for count, size in zip(tiles_of(shape), shape, strict=True))
    return m, n, k


def one_warp(
    family: Family, shape: tuple[int, int, int], dtype: str, *, a_trans: bool = False, b_trans: bool = False
) -> weft.Schedule:
    """Some tiles each way and two steps, by one warp: whatever family and layout."""
    m, n, k = shape
    tiles = tiles_of(shape)
    name = "f16" if dtype == "float16" else "bf16"
    sizes = f"{m}x{n}x{k}" if family is Family.WMMA else f"m{m}n{n}k{k}"
    suffix = ("_a_trans" if a_trans else "") + ("_b_trans" if b_trans else "")
    sch = product(sizes_of(shape), dtype, a_trans=a_trans, b_trans=b_trans)
    i, j, r = sch.get_loops("C")
    (i, i1), (j, j1), (r, r1) = (
        sch.split(loop, factors=[count, size]) for loop, count, size in zip((i, j, r), tiles, shape, strict=True)
    )
    sch.reorder(r, i, j, i1, j1, r1)
    block = sch.add_unit_loop(r)
    sch.bind(block, "blockIdx.x")
    tile = sch.blockize(i1)
    store = sch.cache_write(tile, 0, f"{family}.accumulator")
    sch.reverse_compute_at(store, block)
    shared = [sch.cache_read(tile, at, "shared") for at in range(2)]
    loads = [sch.cache_read(tile, at, f"{family}.matrix_{role}") for at, role in enumerate("ab")]
    for load in loads:
        sch.compute_at(load, r)
    for fetch in shared:
        sch.compute_at(fetch, block)
        _, thread = sch.split(sch.fuse(*sch.get_loops(fetch)[-2:]), factors=[None, 32])
        sch.bind(thread, "threadIdx.x")
        sch.storage_align(fetch, 0, -2, 16, 0)
    fill = sch.decompose_reduction(tile, r)
    sch.tensorize(fill, f"{family}_fill_{sizes}_f32")
    sch.tensorize(tile, f"{family}_sync_{sizes}_{name}{name}f32{suffix}")
    copies = {
        loads[0]: ((k, m) if a_trans else (m, k), f"load_{sizes}_{name}_a{'_trans' if a_trans else ''}_shared"),
        loads[1]: ((n, k) if b_trans else (k, n), f"load_{sizes}_{name}_b{'_trans' if b_trans else ''}_shared"),
        store: ((m, n), f"store_{sizes}_f32_global"),
    }
    for copy, (extents, intrinsic) in copies.items():
        *_, rows, columns = sch.get_loops(copy)
        (x, x1), (y, y1) = (
            sch.split(loop, factors=[None, extent]) for loop, extent in zip((rows, columns), extents, strict=True)
        )
        sch.reorder(x, y, x1, y1)
        sch.tensorize(x1, f"{family}_{intrinsic}")
    return sch


def lowered(sch: weft.Schedule, target: str = "cuda -arch=sm_90") -> ModuleOp:
    module = sch.mod.clone()
    lower_tir_to_low(Context(), module, target)
    return module


def arguments(shape: tuple[int, int, int], dtype: str, *, a_trans: bool, b_trans: bool) -> tuple[list[Any], Any]:
    m, n, k = sizes_of(shape)
    rng = np.random.default_rng(0)
    a, b = (rng.uniform(-1, 1, sizes).astype(np.float32) for sizes in ((m, k), (k, n)))
    if dtype == "float16":
        given: list[Any] = [x.astype(np.float16) for x in (a, b)]
        a, b = (x.astype(np.float32) for x in given)
    else:
        given = [(x.view(np.uint32) >> 16).astype(np.uint16) for x in (a, b)]
        a, b = ((x.astype(np.uint32) << 16).view(np.float32) for x in given)
    inputs = [np.ascontiguousarray(x.T) if trans else x for x, trans in zip(given, (a_trans, b_trans), strict=True)]
    return [*inputs, np.full((m, n), np.nan, np.float32)], a @ b


@pytest.mark.parametrize(
    ("a_trans", "b_trans"), [second_tier(False, False), (True, False), (False, True), second_tier(True, True)]
)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(("family", "shape"), sorted(SIZES))
def test_every_layout(family: Family, shape: tuple[int, int, int], dtype: str, a_trans: bool, b_trans: bool) -> None:
    sch = one_warp(family, shape, dtype, a_trans=a_trans, b_trans=b_trans)
    for module in (sch.mod, lowered(sch)):
        given, expected = arguments(shape, dtype, a_trans=a_trans, b_trans=b_trans)
        Interpreter(module).call("main", *given)
        np.testing.assert_allclose(given[-1], expected, atol=1e-5)


def test_places_are_those_of_the_isa() -> None:
    """Some entries of the tables "Matrix Fragments for mma.m16n8k16"."""
    shape = (16, 8, 16)
    a = FragmentAttr.of(Family.MMA, FragmentRole.A, Order.ROW, shape, f16)
    assert [a.place(0, number) for number in range(8)] == [
        *((0, 0), (0, 1), (8, 0), (8, 1), (0, 8), (0, 9), (8, 8), (8, 9)),
    ]
    b = a.with_role(FragmentRole.B, Order.ROW, f16)
    assert [b.place(5, number) for number in range(4)] == [(2, 1), (3, 1), (10, 1), (11, 1)]
    assert a.place(31, 7) == (15, 15)
    for role, count in ((FragmentRole.A, 8), (FragmentRole.B, 4)):
        fragment = a.with_role(role, Order.ROW, f16)
        places = {fragment.place(lane, number) for lane in range(32) for number in range(count)}
        assert len(places) == 32 * count  # each element once


MESSAGES = {
    "missing": r"is not reached by all threads of a warp: 0 is missing",
    "different": r"'low.wmma_load': threads 0 and 1 of a warp name different tiles",
    "aligned": r"'low.wmma_load': a row starts at element 4, which is no multiple of 16",
    "bounds": r"access out of bounds: 'low.wmma_load' takes 16 elements from 512 of 512",
    "threads": r"'low.wmma_load' is for 32 threads, and the warp has 16",
}
KERNEL = """
func.func @main(%A: memref<512xf16>) attributes {{low.params = [#low.param<"A", memref<512xf16>, read, []>],
    low.symbols = []}} {{
  %c1 = arith.constant 1 : index
  %n = arith.constant {threads} : index
  low.launch @k blocks(%c1, %c1, %c1) threads(%n, %c1, %c1) (%A) : memref<512xf16>
  func.return
}}
func.func @k(%A: memref<512xf16>) attributes {{
    low.kernel = #low.kernel<[{threads}, 1, 1], source = "C">, low.arg_access = [#low<access read>]}} {{
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %t = low.thread_id "threadIdx.x" extent {threads} : index
  %R = memref.alloca() : memref<16xf16, "local">
  %at = arith.muli %t, %c0 : index
  %place = {place}
  {open}
  %a = low.access_ptr %A[%place] read : memref<512xf16>
  %r = low.access_ptr %R[%c0] write : memref<16xf16, "local">
  low.wmma_load <wmma, a, row, [16, 16, 16], f16> %a, %c16 to %r
  {close}
  func.return
}}"""


@pytest.mark.parametrize("case", MESSAGES)
def test_what_a_warp_must_not_do(case: str) -> None:
    place = {
        "different": "arith.muli %t, %c16 : index",
        "aligned": "arith.constant 4 : index",
        "bounds": "arith.constant 272 : index",
    }.get(case, "arith.addi %at, %c0 : index")
    condition = "%c = arith.cmpi sgt, %t, %c0 : index  scf.if %c {" if case == "missing" else ""
    text = KERNEL.format(
        threads=16 if case == "threads" else 32, place=place, open=condition, close="}" if condition else ""
    )
    with pytest.raises(InterpreterError, match=MESSAGES[case]):
        Interpreter(weft.parse(text)).call("main", np.ones(512, np.float16))


def test_a_wrong_layout_is_a_wrong_result() -> None:
    """ldmatrix and mma.sync hold elements where the tables say: nothing else fits together."""
    sch = one_warp(Family.MMA, (16, 16, 16), "float16")
    module = lowered(sch)
    (first, *_) = [op for op in module.walk() if isinstance(op, LdmatrixOp)]
    first.transposed = type(first.transposed).from_bool(not first.is_transposed)
    given, expected = arguments((16, 16, 16), "float16", a_trans=False, b_trans=False)
    Interpreter(module).call("main", *given)
    assert np.abs(given[-1] - expected).max() > 0.1


def test_fragments_that_were_not_loaded_are_found() -> None:
    module = lowered(one_warp(Family.WMMA, (16, 16, 16), "float16"))
    load = next(op for op in module.walk() if isinstance(op, WmmaLoadOp))
    load.detach()
    load.erase()
    given, _ = arguments((16, 16, 16), "float16", a_trans=False, b_trans=False)
    with pytest.raises(InterpreterError, match="never written"):
        Interpreter(module).call("main", *given)


def test_nothing_of_tiles_is_left_in_kernels() -> None:
    names = {op.name for op in lowered(one_warp(Family.MMA, (16, 8, 16), "bfloat16")).walk()}
    assert not any(name.startswith("low.tile_") for name in names)
    assert {"low.ldmatrix", "low.mma_sync"} <= names & {op.name for op in TENSOR_CORE_OPS}
