"""What scripts may say, and that spellings of one thing mean one thing."""

from __future__ import annotations

import numpy as np
import pytest
from script_roundtrip import check_roundtrip
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.dialects.memref import AllocOp

import weft
from weft import te
from weft.dialects.tir import BlockOp, ForOp
from weft.script import ir as I
from weft.script import ir_module, parse
from weft.script import tir as T

HEAD = """@T.prim_func
def f(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16,), "int32"), C: T.Buffer((16, 16), "float32")):
"""


def program(statements: str) -> ModuleOp:
    return parse(HEAD + "".join(f"    {line}\n" for line in statements.strip().splitlines()))


def same(left: str, right: str) -> None:
    weft.assert_structural_equal(program(left), program(right))


def differ(left: str, right: str) -> None:
    assert not weft.structural_equal(program(left), program(right))


def text_of(module: ModuleOp) -> str:
    return str(module)


def in_block(statements: str, loops: str = "i, j in T.grid(16, 16)", axes: str = 'T.axis.remap("SS", [i, j])') -> str:
    lines = [f"for {loops}:", '    with T.block("C"):', f"        vi, vj = {axes}"]
    return "\n".join([*lines, *(f"        {line}" for line in statements.strip().splitlines())])


EXPLICIT = """
for i in range(16):
    for j in T.serial(16):
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            vj = T.axis.S((0, 16), j)
            C[vi, vj] = C[vi, vj] + A[vi, vj]
"""


@pytest.mark.parametrize(
    "other",
    [
        in_block("C[vi, vj] = C[vi, vj] + A[vi, vj]"),
        in_block("C[vi, vj] += A[vi, vj]"),
        in_block("C[vi, vj] += A[vi, vj]").replace("T.block", "T.sblock"),
        in_block("x = A[vi, vj]\nC[vi, vj] += x"),
        in_block("x: T.float32 = A[vi, vj]\nC[vi, vj] = C[vi, vj] + x"),
        in_block("vk = vj\nC[vi, vk] += A[vi, vj]"),
        in_block("C[vi, vj] += A[vi, vj]", loops="i, j in T.grid(T.int64(16), 4 * 4)"),
        in_block("C[vi, vj] += A[vi, vj]", loops="i, j in T.grid(*A.shape)"),
        in_block("C[vi, vj] += A[vi, vj]").replace("vi, vj = T", "[vi, vj] = T"),
        in_block("T.evaluate(0)\npass\nC[vi, vj] += A[vi, vj] if True else 0"),
        in_block("if 1 < 2:\n    C[vi, vj] += A[vi, vj]\nelse:\n    nonsense"),
        in_block("T.block_attr({})\nT.reads()\nT.where(True)\nC[vi, vj] += A[vi, vj]"),
        in_block("T.sblock_attr({})\nC[vi, vj] += T.likely(T.float32(A[vi, vj]))"),
        "shape = (16, 16)\nn, m = shape\n" + in_block("C[vi, vj] += A[vi, vj]", loops="i, j in T.grid(n, m)"),
        EXPLICIT.replace("range(16)", "range(0, 16)").replace("T.serial(16)", "T.serial(0, 16, annotations=None)"),
    ],
)
def test_spellings_of_one_program(other: str) -> None:
    same(EXPLICIT, other)


def test_kinds_of_loops() -> None:
    module = program("""
for a in T.parallel(2):
    for b in T.vectorized(3):
        for c in T.unroll(4, annotations={"x": T.int64(1), "y": [T.bool(True), "z", 0.5, {"w": T.attr("1 : i8")}]}):
            for d in T.thread_binding(5, thread="threadIdx.x"):
                for e in T.thread_binding(0, 6, thread="blockIdx.x"):
                    C[a, b] = 1
""")
    loops = [op for op in module.walk() if isinstance(op, ForOp)]
    assert [(loop.kind.data.value, loop.extent) for loop in loops] == [
        ("parallel", 2),
        ("vectorized", 3),
        ("unrolled", 4),
        ("thread_binding", 5),
        ("thread_binding", 6),
    ]
    assert [loop.thread_axis.data for loop in loops[3:] if loop.thread_axis] == ["threadIdx.x", "blockIdx.x"]
    assert str(loops[2].attributes["x"]) == "1 : i64"
    assert str(loops[2].attributes["y"]) == '[true, "z", 5.000000e-01 : f64, {w = 1 : i8}]'


def test_threads_that_are_launched() -> None:
    body = 'T.thread_binding(4, thread="blockIdx.x")'
    inner = 'T.thread_binding(4, thread="threadIdx.x")'
    same(
        'b = T.launch_thread("blockIdx.x", 4)\nt = T.launch_thread("threadIdx.x", 4)\nB[b * 4 + t] = 1',
        f"for b in {body}:\n    for t in {inner}:\n        B[b * 4 + t] = 1",
    )
    same(
        'with T.launch_thread("blockIdx.x", 4) as b:\n    B[b] = 1\nB[8] = 2',
        f"for b in {body}:\n    B[b] = 1\nB[8] = 2",
    )


def test_loops_that_start_elsewhere() -> None:
    same("for i in range(2, 6):\n    B[i] = 1", "for i in range(4):\n    B[i + 2] = 1")
    same(
        "for i in range(4):\n    for j in range(i, 6):\n        B[j] = 1",
        "for i in range(4):\n    for j in range(6 - i):\n        B[j + i] = 1",
    )
    same("for i in range(6, 2):\n    B[i] = 1", "for i in range(0):\n    B[i + 6] = 1")


def test_guards() -> None:
    one = 'for i, j in T.grid(4, 4):\n    with T.block("C"):\n        vi = T.axis.spatial(15, i * 4 + j)\n        '
    tail = "\n        B[vi] = 1"
    plain = program(one + f"T.where(i * 4 + j < 15){tail}")
    weft.assert_structural_equal(program(one + f"T.where(15 > i * 4 + j){tail}"), plain)
    weft.assert_structural_equal(program(one + f"T.where(14 + 1 > i * 4 + j, 3 < 4){tail}"), plain)
    for other in ("i * 4 + j <= 14", "14 >= i * 4 + j"):
        assert "where [%i * 4 + %j] < [15]" in text_of(program(one + f"T.where({other}){tail}"))
    both = program(one + f"T.where(i * 4 + j < 15 and 0 <= i < 4){tail}")
    block = next(op for op in both.walk() if isinstance(op, BlockOp))
    assert len(block.guards) == 3
    assert "where [%i * 4 + %j, 0, %i] < [15, %i + 1, 4]" in text_of(both)


def test_regions() -> None:
    text = text_of(
        program(
            in_block(
                "T.reads(A[vi * 4 : vi * 4 + 4, 0:16], [B[vi]])\nT.writes(C)\nC[vi, vj] = A[vi * 4, vj]",
                loops="i, j in T.grid(4, 16)",
            )
        )
    )
    assert "tir.reads %A[%vi * 4, 0] sizes [4, 16] : memref<16x16xf32>" in text
    assert "tir.reads %B[%vi] : memref<16xi32>" in text
    assert "tir.writes %C[0, 0] sizes [16, 16] : memref<16x16xf32>" in text


def test_axes_take_any_binding_and_kind() -> None:
    module = parse("""
@T.prim_func
def f(A: T.Buffer((8, 8), "float32"), C: T.Buffer((8,), "float32")):
    for io, k, ii in T.grid(2, 8, 4):
        with T.block("C"):
            vi = T.axis.S(8, io * 4 + ii)
            vk = T.axis.R(8, 7 - k)
            with T.init():
                C[vi] = 0
            C[vi] = max(C[vi], A[vi, vk], 3)
""")
    text = text_of(module)
    assert 'tir.block "C" iters(%vi: spatial<8>, %vk: reduce<8>) = [%io * 4 + %ii, %k * -1 + 7]' in text
    assert text.count("arith.maximumf") == 2


def test_elements_are_read_once_until_something_is_stored() -> None:
    assert text_of(program(in_block("C[vi, vj] = A[vi, vj] * A[vi, vj]"))).count("memref.load") == 1
    again = in_block("C[vi, vj] = A[vi, vj]\nC[vi, 0] = A[vi, vj]")
    assert text_of(program(again)).count("memref.load") == 2
    offset = in_block("C[vi, vj // 2] = A[vi, vj // 2]\nC[vj // 2, vi] = 0")
    assert text_of(program(offset)).count("affine.apply") == 1


def test_choices_evaluate_one_side() -> None:
    lazy = text_of(program(in_block("C[vi, vj] = A[vi, vj - 1] if vj > 0 else 0.0")))
    assert "scf.if" in lazy and "arith.select" not in lazy
    eager = text_of(program(in_block("C[vi, vj] = T.Select(vj > 0, A[vi, vj], 0.0)")))
    assert "arith.select" in eager and "scf.if" not in eager
    conjunction = in_block("if vj > 0 and A[vi, vj - 1] > 0:\n    C[vi, vj] = 1")
    assert text_of(program(conjunction)).count("scf.if") == 2
    assert text_of(program(in_block("if vj > 0 and vi < 3:\n    C[vi, vj] = 1"))).count("scf.if") == 1
    same(in_block("if 0 < vj < 5:\n    C[vi, vj] = 1"), in_block("if 0 < vj and vj < 5:\n    C[vi, vj] = 1"))


def test_temporaries_and_scopes() -> None:
    module = program("""
Y = T.alloc_buffer((4, 4), "float16", scope="shared")
Z = T.sblock_alloc_buffer([4], scope="global")
W = T.alloc_buffer(4, T.int8, scope="global.A_reg")
for i in range(4):
    Y[i, i] = T.Cast("float16", A[i, i])
    Z[i] = T.cast(Y[i, i], "float32") + Y[i, i].astype("float32") + T.float32(Y[i, i])
    W[i] = T.Cast(W.dtype, Z[i])
""")
    types = [str(op.memref.type) for op in module.walk() if isinstance(op, AllocOp)]
    assert types == ['memref<4x4xf16, "shared">', "memref<4xf32>", 'memref<4xi8, "global.A_reg">']


def test_parameters() -> None:
    module = parse("""
@T.prim_func(private=True)
def f(a: T.handle, n: T.int64, s: T.float32, b: T.bool, C: T.Buffer(("m", 4), T.float16, scope="shared"),
      x: "T.handle", t: T.type("memref<4x4xf32, strided<[8, 1]>>"), q: T.type("i64")) -> None:
    '''Documented.'''
    T.func_attr({"global_symbol": "renamed", "tir.noalias": T.bool(True), "note": T.int64(3)})
    m = T.int64(is_size_var=True)
    X = T.match_buffer(x, (n + 1, m), "float32", align=64, offset_factor=1)
    A = T.match_buffer(a, [m], dtype="int8", strides=None)
    for i in range(m):
        A[i] = T.int8(3)
""")
    function = module.body.block.first_op
    assert isinstance(function, FuncOp)
    assert function.sym_name.data == "renamed"
    assert str(function.sym_visibility) == '"private"'
    assert str(function.attributes["note"]) == "3 : i64"
    assert [(argument.name_hint, str(argument.type)) for argument in function.args] == [
        ("A", "memref<?xi8>"),
        ("n", "index"),
        ("s", "f32"),
        ("b", "i1"),
        ("C", 'memref<?x4xf16, "shared">'),
        ("X", "memref<?x?xf32>"),
        ("t", "memref<4x4xf32, strided<[8, 1]>>"),
        ("q", "i64"),
    ]
    text = text_of(module)
    assert "%m = memref.dim %C, %c0" in text
    assert "tir.assume_shape %X[%0, %m]" in text
    assert "tir.assume_shape %A[%m]" in text


def test_names_from_around_the_function() -> None:
    n, pair, scale = 8, (2, 4), np.float32(0.5)

    class Config:
        threads = 4

    @T.prim_func
    def scaled(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
        for i, j in T.grid(pair[0], Config.threads):
            with T.block("C"):
                vi = T.axis.spatial(n, i * pair[1] + j)
                C[vi] = A[vi] * scale

    weft.assert_structural_equal(
        scaled,
        parse("""
N = 8
HALF, REST = 0.5, 2
@T.prim_func
def scaled(A: T.Buffer((N,), "float32"), C: T.Buffer((N,), "float32")):
    for i, j in T.grid(REST, N // 2):
        with T.block("C"):
            vi = T.axis.spatial(N, i * 4 + j)
            C[vi] = A[vi] * HALF
"""),
    )
    with pytest.raises(weft.CompileError, match="is an expression from outside the function"):
        outside = te.var("outside")

        @T.prim_func
        def wrong(A: T.Buffer((8,), "float32")):
            A[outside] = 1

    assert isinstance(outside, te.Var)


def test_functions_are_read_and_never_run() -> None:
    @T.prim_func
    def f(A: T.Buffer((8,), "float32")):
        for i in range(8):
            A[i] = T.max(A[i], 0.0)

    assert isinstance(f, ModuleOp)

    @I.ir_module
    class Module:
        size = 8

        @T.prim_func(s_tir=True)
        def f(A: T.Buffer((8,), "float32")):
            for i in range(size):  # noqa: F821
                A[i] = T.max(A[i], 0.0)

    weft.assert_structural_equal(f, Module)


def test_classes_of_one_name_are_told_apart() -> None:
    modules = []
    for _ in range(1):

        @ir_module
        class Twice:
            @T.prim_func
            def f(A: T.Buffer((8,), "float32")):
                A[0] = 1

        modules.append(Twice)

        @ir_module
        class Twice:
            @T.prim_func
            def f(A: T.Buffer((8,), "float32")):
                A[0] = 2

        modules.append(Twice)
    assert not weft.structural_equal(modules[0], modules[1])


TVM_PRINTED = """
# from tvm.script import ir as I
# from tvm.script import tir as T

@I.ir_module
class Module:
    I.module_attrs({"note": 1})
    @T.prim_func
    def main(A: T.Buffer((T.int64(8),), "float32"), var_B: T.handle, var_C: T.handle) -> None:
        # function attr dict
        T.func_attr({"global_symbol": "main", "tir.noalias": T.bool(True)})
        n = T.int32()
        B = T.match_buffer(var_B, (n,))
        C = T.match_buffer(var_C, (n * 2,))
        # with T.block("root"):
        for i0_0, i0_1 in T.grid((n + 3) // 4, 4):
            with T.block("B"):
                v_i0 = T.axis.spatial(n, i0_0 * 4 + i0_1)
                T.where(i0_0 * 4 + i0_1 < n)
                T.reads(A[0], C[v_i0 * 2])
                T.writes(B[v_i0])
                B[v_i0] = A[0] + C[v_i0 * 2] + T.float32(1.0)
"""


def test_what_tvm_prints() -> None:
    module = parse(TVM_PRINTED)
    text = text_of(module)
    assert "attributes {note = 1 : i64}" in text
    assert text.count("tir.assume_shape") == 1
    assert "= [%i00 * 4 + %i01] where [%i00 * 4 + %i01] < [%n]" in text
    older = TVM_PRINTED.replace("@I.ir_module", "@tvm.script.ir_module").replace(
        "# from tvm.script import tir", "import tvm"
    )
    older = older.replace('T.Buffer((T.int64(8),), "float32")', 'T.Buffer[8, "float32"]').replace(
        "import tvm as T", "import tvm"
    )
    weft.assert_structural_equal(parse(older), module)
    newer = TVM_PRINTED.replace("T.block", "T.sblock").replace("@T.prim_func", "@T.prim_func(s_tir=True)")
    weft.assert_structural_equal(parse(newer), module)
    with pytest.raises(weft.CompileError, match=r"there is no T\.var"):
        parse(TVM_PRINTED.replace("T.int32()", "T.var()"))


def test_other_names_of_the_namespaces() -> None:
    weft.assert_structural_equal(
        parse(
            "from weft.script import ir as Mod, tir as tt\n@Mod.ir_module\nclass M:\n    @tt.prim_func\n"
            "    def f(A: tt.Buffer((8,), 'float32')):\n        A[0] = tt.float32(1)\n"
        ),
        parse("@T.prim_func\ndef f(A: T.Buffer((8,), 'float32')):\n    A[0] = 1\n"),
    )


def test_numbers_of_dtypes() -> None:
    module = parse("""
@T.prim_func
def f(
    A: T.Buffer((8,), "float64"), B: T.Buffer((8,), "int8"), D: T.Buffer((8,), "bool"), E: T.Buffer((8,), "bfloat16")
):
    A[0] = T.float64("inf")
    A[1] = T.float64("-inf")
    A[2] = T.min_value("float64")
    A[3] = -T.float64(3)
    B[0] = T.max_value("int8")
    B[1] = T.int8(-128)
    B[2] = ~B[0] & T.int8(7) | B[1] ^ 3
    B[3] = T.shift_left(B[1], T.int8(2)) >> 1
    D[0] = True
    D[1] = not D[0] or B[1] == 3 and D[2]
    E[0] = T.bfloat16(1.5)
    E[1] = T.infinity("bfloat16")
""")
    text = text_of(module)
    for number in ("0x7ff0000000000000 : f64", "127 : i8", "-128 : i8", "1.500000e+00 : bf16", "true"):
        assert number in text


TILES = """
@T.prim_func
def kernel_tile(a: T.handle, C: T.Buffer((16, 16), "float32", scope="global.accumulator")):
    sa, sc = T.int32(), T.int64()
    A = T.match_buffer(a, (16, 16), "float32", offset_factor=16, strides=[sa, -1], scope="global.A_reg")
    with T.block("root"):
        T.reads(A[0:16, 0:16])
        T.writes(C[0:16, 0:16])
        T.evaluate(T.call_extern("kernel", C.access_ptr("w"), A.access_ptr("r"), sa, C.strides[0], 3, dtype="int32"))
"""


def test_functions_outside_of_the_module() -> None:
    text = text_of(parse(TILES))
    for line in (
        '%sa = low.stride %A {dimension = 0 : i64} : memref<16x16xf32, strided<[?, 1], offset: ?>, "global.A_reg">',
        "%0 = low.access_ptr %C[%c0, %c0] sizes [16, 16] write :",
        "%1 = low.access_ptr %A[%c0, %c0] sizes [16, 16] read :",
        "%2 = arith.index_cast %sa : index to i32",
        "%3 = low.stride %C {dimension = 0 : i64}",
        "%4 = func.call @kernel(%0, %1, %2, %3, %c3) : (!ptr_xdsl.ptr, !ptr_xdsl.ptr, i32, index, index) -> i32",
        "func.func private @kernel(!ptr_xdsl.ptr, !ptr_xdsl.ptr, i32, index, index) -> i32",
    ):
        assert line in text
    newer = TILES.replace(', dtype="int32"))', "))").replace('call_extern("kernel"', 'call_extern("int32", "kernel"')
    weft.assert_structural_equal(parse(newer), parse(TILES))
    named = TILES.replace("[sa, -1]", '("sa", 1)').replace("sa, sc = T.int32(), T.int64()", "sa = T.int32()")
    weft.assert_structural_equal(parse(named), parse(TILES))


def test_a_function_outside_is_pure_where_all_calls_say_so() -> None:
    pure = TILES.replace("call_extern", "call_pure_extern")
    assert "index) -> i32 attributes {low.pure}" in text_of(parse(pure))
    assert "index) -> i32 attributes {low.pure}" in text_of(parse(TILES)), "the block states what is accessed"
    silent = TILES.replace("        T.writes(C[0:16, 0:16])\n", "")
    assert "low.pure" not in text_of(parse(silent))
    call = next(line for line in TILES.splitlines(keepends=True) if "call_extern" in line)
    outside = f'    with T.block("other"):\n{call}'
    assert "low.pure" not in text_of(parse(pure + outside))


def test_what_is_written_may_be_read_unless_the_block_says_what_it_reads() -> None:
    assert "readwrite" not in text_of(parse(TILES))
    for silent in (
        TILES.replace("        T.reads(A[0:16, 0:16])\n", ""),
        TILES.replace("T.reads(", "T.reads(C[0:16, 0:16], "),
    ):
        assert "%0 = low.access_ptr %C[%c0, %c0] sizes [16, 16] readwrite" in text_of(parse(silent))


def test_pointers_to_elements() -> None:
    text = text_of(
        parse("""
@T.prim_func
def f(A: T.Buffer((64, 32), "float32"), C: T.Buffer((64, 32), "float32")):
    for i, j in T.grid(8, 4):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            x = vi * 8
            part = T.call_extern("kernel", T.access_ptr(C[x : x + 8, vj], "write"), A.access_ptr(3), dtype="int8")
            r = T.Cast("float32", part)
            T.call_extern("void", "other", T.address_of(A[vi, vj]), r, T.int8(3), T.Cast("int32", vi))
""")
    )
    assert "low.access_ptr %C[%0, %vj] sizes [8, 1] write" in text
    assert "low.access_ptr %A[%c0, %c0] sizes [64, 32] readwrite" in text
    assert "low.access_ptr %A[%vi, %vj] readwrite" in text
    assert "func.func private @other(!ptr_xdsl.ptr, f32, i8, i32)" in text
    assert "func.func private @kernel(!ptr_xdsl.ptr, !ptr_xdsl.ptr) -> i8" in text


def test_calls_that_differ_in_type() -> None:
    with pytest.raises(weft.CompileError, match="kernel gives i32, and the call expects nothing"):
        parse(
            TILES + '        T.call_extern("", "kernel", C.access_ptr("w"), A.access_ptr("r"), sa, C.strides[0], 3)\n'
        )
    with pytest.raises(weft.CompileError, match="argument 4 of kernel is index, and i8 is given"):
        again = 'T.call_extern("int32", "kernel", C.access_ptr("w"), A.access_ptr("r"), sa, C.strides[0], T.int8(3))'
        parse(TILES + f"        {again}\n")
    with pytest.raises(weft.CompileError, match=r"X: stride 0 must be an integer, got 1\.5"):
        parse("@T.prim_func\ndef f(x: T.handle):\n    X = T.match_buffer(x, (8, 8), strides=[1.5, 1])\n")
    with pytest.raises(weft.CompileError, match="X has 2 dimensions, and 1 strides are given"):
        parse("@T.prim_func\ndef f(x: T.handle):\n    X = T.match_buffer(x, (8, 8), strides=[9])\n")
    with pytest.raises(weft.CompileError, match="f returns nothing"):
        parse("@T.prim_func\ndef f() -> T.float32:\n    pass\n")


REGION = """
@T.prim_func(s_tir=True)
def main(A: T.Buffer((64, 64), "float32", offset_factor=1), B: T.Buffer((64, 64), "float32", offset_factor=1)):
    for i, j in T.grid(4, 4):
        with T.sblock("tile"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi * 16:vi * 16 + 16, vj * 16:vj * 16 + 16])
            T.writes(B[vi * 16:vi * 16 + 16, vj * 16:vj * 16 + 16])
            As = T.match_buffer(A[vi * 16:vi * 16 + 16, vj * 16:vj * 16 + 16], (16, 16), strides=("s0", "s1"))
            Bs = T.match_buffer(B[vi * 16:vi * 16 + 16, vj * 16:vj * 16 + 16], (16, 16), strides=("t0", "t1"))
            T.call_extern("int32", "tile", ARGUMENTS)
"""


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        (
            'T.tvm_access_ptr(T.type_annotation("float32"), As.data, As.elem_offset, s0 * 16, 1), '
            'T.tvm_access_ptr(T.type_annotation("float32"), Bs.data, Bs.elem_offset, t0 * 16, 2), s0',
            'T.access_ptr(A[vi * 16, vj * 16], "read"), T.access_ptr(B[vi * 16, vj * 16], "write"), A.strides[0]',
        ),
        (
            'T.tvm_access_ptr(T.type_annotation("float32"), A.data, A.elem_offset, 4096, 3)',
            'T.access_ptr(A[0:64, 0:64], "readwrite")',
        ),
        ('T.tvm_access_ptr(T.type_annotation("float32"), A.data, 130, 16, 1)', 'T.access_ptr(A[2, 2], "read")'),
        ('A.data, Bs.access_ptr("w")', 'A[0, 0], "read"), T.access_ptr(B[vi * 16:vi * 16 + 16, vj * 16:vj'),
        ("T.address_of(As[1, 2])", 'T.access_ptr(A[vi * 16 + 1, vj * 16 + 2], "readwrite")'),
    ],
)
def test_pointers_into_regions(arguments: str, printed: str) -> None:
    assert printed in check_roundtrip(parse(REGION.replace("ARGUMENTS", arguments)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ('T.type_annotation("int8"), A.data, 0, 16, 1', "A has elements of float32, got T.int8"),
        ('"float32", A.data, 0, 16, 1', "A has elements of float32, got 'float32'"),
        ('T.type_annotation("float32"), vi, 0, 16, 1', "a pointer points into a buffer, A.data"),
        ('T.type_annotation("float32"), A.data, 0, 16, 4', "a mask is 1 for reading, 2 for writing, or 3, got 4"),
        ('T.type_annotation("float32"), A.data, 1.5, 16, 1', "an offset must be an integer, got float32"),
        ('T.type_annotation("float32"), A.data', "it has a dtype, a buffer, an offset, an extent and a mask"),
    ],
)
def test_pointers_that_are_refused(arguments: str, message: str) -> None:
    with pytest.raises(weft.CompileError, match=message):
        parse(REGION.replace("ARGUMENTS", f"T.tvm_access_ptr({arguments})"))


INTRINSICS = """
@T.prim_func(s_tir=True)
def main(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32"), n: T.int32):
    for i in range(8):
        with T.sblock("b"):
            vi = T.axis.spatial(8, i)
            As = T.match_buffer(A[vi, 0:8], (8,), offset_factor=1)
            T.call_packed("f", T.tvm_tuple(As.data, T.tvm_tuple(8), As.elem_offset), -1, A[vi, 0], "_0", n)
            T.evaluate(T.tvm_storage_sync("shared", T.bool(False), -1))
            T.ptx_legacy.ldmatrix(4, ".b16", A.data, vi)
            x: T.let[T.float32] = T.call_intrin("float32", "tirx.f", T.address_of(B[vi, 0]))
            y = T.call_llvm_intrin("int32", T.int32(7), x)
            B[vi, 0] = x + T.Cast("float32", y)
"""


def test_functions_that_are_not_known_are_kept() -> None:
    module = parse(INTRINSICS)
    weft.assert_structural_equal(weft.parse(str(module)), module)
    text = check_roundtrip(module)
    for line in (
        "T.call_packed('f', T.tvm_tuple(T.access_ptr(A[0:8, 0:8], 'readwrite'), T.tvm_tuple(8), vi * 8), "
        "-1, A[vi, 0], '_0', n)",
        "T.tvm_storage_sync('shared', T.bool(False), -1)",
        "T.ptx_legacy.ldmatrix(4, '.b16', T.access_ptr(A[0:8, 0:8], 'readwrite'), vi)",
        "x: T.float32 = T.call_intrin('float32', 'tirx.f', T.access_ptr(B[vi, 0], 'readwrite'))",
        "y: T.int32 = T.call_llvm_intrin('int32', T.int32(7), x)",
    ):
        assert line in text
    with pytest.raises(weft.CompileError, match=r"the interpreter has no meaning for 'tir\.intrinsic'"):
        weft.Interpreter(module).call("main", np.zeros((8, 8), np.float32), np.zeros((8, 8), np.float32), 1)
    for target in ("llvm", "c"):
        with pytest.raises(weft.CompileError, match=r"`T\.call_packed\(.*\)` calls a function that weft does not know"):
            weft.build(module, target=target)
    sch = weft.Schedule(module)
    with pytest.raises(weft.ScheduleError, match="requirement 2, the iterations are independent"):
        sch.parallel(sch.get_loops("b")[0])


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("x = T.call_packed(n)", "the dtype of this value is not known: x: T.float32 = "),
        ("T.call_packed(f=n)", r"arguments of T\.call_packed are given by position"),
        ("T.call_packed([1])", "expected a number or a value, got"),
        ("A[0, 0] = T.call_packed(1)", "the dtype of this value is not known"),
        ("T.call_nothing(1)", r"there is no T\.call_nothing"),
    ],
)
def test_unknown_functions_that_are_refused(statement: str, message: str) -> None:
    with pytest.raises(weft.CompileError, match=message):
        parse(INTRINSICS.replace('T.evaluate(T.tvm_storage_sync("shared", T.bool(False), -1))', statement))


STATED = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            T.evaluate(A.access_ptr("r", extent=8))
            B[vi] = T.floor(A[vi], dtype="float32")
"""


def test_dtypes_of_functions_and_pointers_as_statements() -> None:
    text = text_of(parse(STATED))
    assert "low.access_ptr %A[%c0] read :" in text, "the first half is no box of all elements"
    assert "sizes [16] read" in text_of(parse(STATED.replace("extent=8", "extent=16")))
    with pytest.raises(weft.CompileError, match=r"T\.floor gives float32 here, got dtype='int32'"):
        parse(STATED.replace('dtype="float32"', 'dtype="int32"'))
    with pytest.raises(weft.CompileError, match="pointers start at the first element"):
        parse(STATED.replace("extent=8", "offset=8"))
