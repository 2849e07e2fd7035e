"""Scripts that are printed: their text, and that every program reads back equal."""

import sys
from pathlib import Path

import pytest
from tiers import first_tier
from xdsl.dialects.builtin import ModuleOp, StringAttr

import weft
from weft import te
from weft.script import print_script
from weft.support.errors import CompileError

TESTS = Path(__file__).parents[2]
sys.path[:0] = [str(TESTS / "helpers"), str(TESTS / "fuzz")]

import random_tir  # noqa: E402
from cases import Fuzzer, family_of, make_program  # noqa: E402
from script_roundtrip import check_roundtrip  # noqa: E402

FUNCTION = """from weft.script import ir as I, tir as T


@I.ir_module
class Module:
    @T.prim_func
    def mm_relu(
        A: T.Buffer((128, 128), "float32"),
        B: T.Buffer((128, 128), "float32"),
        C: T.Buffer((128, 128), "float32"),
    ):
        T.func_attr({"global_symbol": "mm_relu", "tir.noalias": True})
        Y = T.alloc_buffer((128, 128), "float32")
        for i, j, k in T.grid(128, 128, 128):
            with T.block("Y"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]
        for i, j in T.grid(128, 128):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = T.max(Y[vi, vj], T.float32(0))
"""


def body(text: str) -> str:
    """The lines of the only function, without what stands before its statements."""
    lines = text.split("T.func_attr", 1)[1].split("\n")[1:]
    return "\n".join(line.removeprefix("        ") for line in lines)


def test_the_script_of_the_example() -> None:
    module = weft.parse_file(TESTS.parent / "examples" / "mm_relu.mlir")
    function, schedule = check_roundtrip(module).split("\n    I.mlir", 1)
    assert function == FUNCTION
    assert schedule.startswith(
        '(r"""\n    sched.func @schedule {\n      %y = sched.get_block "Y" in @mm_relu : block\n'
    )


def test_what_is_no_function_of_loops_is_text_of_mlir() -> None:
    constant = """"memref.global"() <{sym_name = "w", type = memref<2xf32>, sym_visibility = "private",
      initial_value = dense<[1.5, 2.5]> : tensor<2xf32>, constant}> : () -> ()"""
    load = """func.func @f(%C: memref<2xf32>) {
      %W = "memref.get_global"() <{name = @w}> : () -> memref<2xf32>
      tir.for %i in 2 { tir.block "C" iters(%v: spatial<2>) = [%i] {
        %w = memref.load %W[%v] : memref<2xf32>
        memref.store %w, %C[%v] : memref<2xf32> } }
      func.return }"""
    text = check_roundtrip(weft.parse(constant + load))
    assert text.index('I.mlir(r"""\n    "memref.global"() <{sym_name = "w"') < text.index("def f(")
    check_roundtrip(weft.parse(load.replace("@w", '@"w\\22\\22\\22"') + constant.replace('"w"', '"w\\22\\22\\22"')))


def test_symbolic_extents_are_declared_where_they_are_stated() -> None:
    m, n = te.var("m"), te.var("n")
    A, B = te.placeholder((m, n), name="A"), te.placeholder((n + 1, 4), name="B")
    C = te.compute((m, n), lambda i, j: A[i, j] * B[j + 1, 3] + A[i, j], name="C")
    text = check_roundtrip(te.create_func([A, B, C]))
    assert "def main(var_A: T.handle, var_B: T.handle, var_C: T.handle):" in text
    assert (
        body(text)
        == """m, n = T.int64(), T.int64()
A = T.match_buffer(var_A, (m, n), "float32")
B = T.match_buffer(var_B, (n + 1, 4), "float32")
C = T.match_buffer(var_C, (m, n), "float32")
for i, j in T.grid(m, n):
    with T.block("C"):
        vi, vj = T.axis.remap("SS", [i, j])
        C[vi, vj] = A[vi, vj] * B[vj + 1, 3] + A[vi, vj]
"""
    )


EVERYTHING = """
func.func private @outside(%A: memref<4xf32>)
func.func private @helper(%A: memref<4xf32>) {
  func.call @outside(%A) : (memref<4xf32>) -> ()
  func.return
}
func.func @f(%A: memref<4xf32>, %B: memref<?xf64, "shared">, %s: f32, %q: i64, %b: i1, %n: index) attributes
    {foo = 3 : i64, bar = [1 : i8, "x\\n\\"y"]} {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : i64
  %true = arith.constant true
  %minus_zero = arith.constant -0.0 : f32
  %inf = arith.constant 0x7F800000 : f32
  %d = memref.dim %B, %c0 : memref<?xf64, "shared">
  func.call @helper(%A) : (memref<4xf32>) -> ()
  tir.for %i in 4 parallel attributes {note = 1 : i64, z = 2.5 : f32} {
    tir.block "x" iters(%v: spatial<4>) = [%i] attributes {k = unit} {
      tir.reads %A[%v] : memref<4xf32>
      tir.writes %A[0] sizes [4] : memref<4xf32>
      %x = memref.load %A[%v] : memref<4xf32>
      %x2 = memref.load %A[%v] : memref<4xf32>
      %y = arith.addf %x, %x2 fastmath<fast> : f32
      %z = arith.mulf %y, %y : f32
      %e = math.exp %z : f32
      %nb = arith.xori %b, %true : i1
      %w = arith.select %nb, %e, %minus_zero : f32
      %ww = arith.maximumf %w, %inf : f32
      %qi = arith.index_cast %q : i64 to index
      %q2 = arith.remui %q, %c2 : i64
      %qf = arith.sitofp %q2 : i64 to f32
      %sum = arith.addf %ww, %qf : f32
      %neg = arith.negf %sum : f32
      %c = arith.cmpf ult, %neg, %s : f32
      scf.if %c {
        memref.store %neg, %A[%v] : memref<4xf32>
      }
      %r, %r2 = scf.if %nb -> (f32, index) {
        memref.store %s, %A[%v] : memref<4xf32>
        %k = memref.load %A[%v] : memref<4xf32>
        scf.yield %k, %v : f32, index
      } else {
        scf.yield %minus_zero, %c0 : f32, index
      }
      memref.store %r, %A[%r2] : memref<4xf32>
    }
  }
  func.return
}
"""
EVERYTHING_PRINTED = """@T.prim_func(private=True)
def outside(arg: T.Buffer((4,), "float32")):
    ...

@T.prim_func(private=True)
def helper(A: T.Buffer((4,), "float32")):
    T.func_attr({"global_symbol": "helper", "tir.noalias": True})
    Module.outside(A)

@T.prim_func
def f(
    A: T.Buffer((4,), "float32"),
    var_B: T.handle,
    s: T.float32,
    q: T.type("i64"),
    b: T.bool,
    n: T.int64,
):
    T.func_attr({"global_symbol": "f", "tir.noalias": True, "foo": 3, "bar": [T.attr("1 : i8"), "x\\n\\"y"]})
    d = T.int64()
    B = T.match_buffer(var_B, (d,), "float64", scope="shared")
    Module.helper(A)
    for i in T.parallel(4, annotations={"note": 1, "z": T.attr("2.500000e+00 : f32")}):
        with T.block("x"):
            v = T.axis.spatial(4, i)
            T.block_attr({"k": None})
            T.reads(A[v])
            T.writes(A[0:4])
            x = A[v]
            x2 = T.op("memref.load", A, v, results=["f32"])
            y = T.op("arith.addf", x, x2, results=["f32"], properties={"fastmath": T.attr("#arith.fastmath<fast>")})
            e = T.exp(y * y)
            nb = not b
            ww = T.max(T.Select(nb, e, T.float32(-0.0)), T.float32("inf"))
            qi = T.op("arith.index_cast", q, results=["index"])
            neg = -(ww + T.Cast("float32", T.Cast("int64", T.Cast("uint64", q) % T.uint64(2))))
            c = T.op("arith.cmpf", neg, s, results=["i1"], properties=PROPERTIES)
            if c:
                A[v] = neg
            if nb:
                A[v] = s
                k = A[v]
                r = k
                r2 = v
            else:
                r = T.float32(-0.0)
                r2 = 0
            A[r2] = r
"""


def test_what_has_no_words_is_written_by_name() -> None:
    text = check_roundtrip(weft.parse(EVERYTHING))
    printed = text.split("class Module:\n", 1)[1].replace("\n    ", "\n").removeprefix("    ")
    predicate = '{"predicate": 11, "fastmath": T.attr("#arith.fastmath<none>")}'
    assert printed == EVERYTHING_PRINTED.replace("PROPERTIES", predicate)


OUTSIDE = """
func.func private @add_tile(!ptr_xdsl.ptr, !ptr_xdsl.ptr, index, index, f32) -> i32 attributes {low.pure}
func.func private @notify(memref<?xf32>, i32)
func.func @f(%A: memref<64x32xf32>, %C: memref<64x32xf32>, %V: memref<?xf32>) {
  %one = arith.constant 1.0 : f32
  %n = arith.constant 3 : i32
  %s = low.stride %A {dimension = 0} : memref<64x32xf32>
  tir.for %i in 8 { tir.for %j in 4 {
    tir.block "C" iters(%vi: spatial<8>, %vj: spatial<4>) = [%i, %j] {
      %x = affine.apply affine_map<(d0) -> (d0 * 8)>(%vi)
      %p = low.access_ptr %A[%x, %vj] read : memref<64x32xf32>
      %q = low.access_ptr %C[%x, %vj] sizes [8, 1] write : memref<64x32xf32>
      %t = low.stride %C {dimension = 0} : memref<64x32xf32>
      %r = func.call @add_tile(%p, %q, %s, %t, %one) : (!ptr_xdsl.ptr, !ptr_xdsl.ptr, index, index, f32) -> i32
      %late = low.access_ptr %A[%vi, %vj] read : memref<64x32xf32>
      %v = arith.index_cast %vi : index to i32
      func.call @notify(%V, %v) : (memref<?xf32>, i32) -> ()
      func.call @notify(%V, %r) : (memref<?xf32>, i32) -> ()
      %r2 = func.call @add_tile(%late, %q, %s, %s, %one) : (!ptr_xdsl.ptr, !ptr_xdsl.ptr, index, index, f32) -> i32
    } } }
  func.return
}
"""


def test_assumptions_with_a_reason() -> None:
    """Written by name, and verified where they are: at the top of a function."""
    text = check_roundtrip(
        weft.parse(
            """
            func.func @main(%A: memref<?xf32>, %n: index) {
              tir.assume [%n mod 4] == [0] because "block \\22A\\22 requires it"
              func.return
            }"""
        )
    )
    assert 'T.op("tir.assume", n, ' in text


def test_indices_do_not_share_a_name_with_iterators() -> None:
    """`v: T.int64 = ...` would be a variable in a buffer, because the function assigns `v` twice."""
    text = check_roundtrip(
        weft.parse(
            """
            func.func @main(%A: memref<9xf32>) {
              %x = arith.constant 1.0 : f32
              tir.for %i in 8 {
                tir.block "A" iters(%v: spatial<8>) = [%i] {
                  memref.store %x, %A[%v] : memref<9xf32>
                }
              }
              tir.for %i in 8 {
                tir.block "B" iters(%u: spatial<8>) = [%i] {
                  %v = affine.apply affine_map<(d0) -> (d0 + 1)> (%u)
                  memref.store %x, %A[%u] : memref<9xf32>
                }
              }
              func.return
            }"""
        )
    )
    assert "v = T.axis.spatial(8, i)" in text
    assert "v1: T.int64 = u + 1" in text


def test_functions_outside_of_the_module() -> None:
    text = check_roundtrip(weft.parse(OUTSIDE))
    for line in (
        "    def add_tile(\n        arg: T.handle,\n        arg1: T.handle,\n        arg2: T.int64,\n",
        '        arg4: T.float32,\n    ) -> T.int32:\n        T.func_attr({"low.pure": None})\n        ...\n',
        'def notify(arg: T.Buffer((None,), "float32"), arg1: T.type("i32")):',
        "s: T.int64 = A.strides[0]",
        'r = T.call_extern("add_tile", p, q, s, C.strides[0], T.float32(1), dtype="int32")',
        'Module.notify(V, T.Cast("int32", vi))',
        "Module.notify(V, r)",
        'T.evaluate(T.call_extern("add_tile", late, q, s, s, T.float32(1), dtype="int32"))',
    ):
        assert line in text


FALLBACKS = {
    "extents in another order": """
func.func @h(%A: memref<?x?xf32>, %B: memref<?xf32>, %C: memref<?x4xf32>, %n: index) {
  %c1 = arith.constant 1 : index
  %c0 = arith.constant 0 : index
  %k = memref.dim %B, %c0 : memref<?xf32>
  %m = memref.dim %A, %c1 : memref<?x?xf32>
  tir.assume_shape %C[%n] : memref<?x4xf32>
  tir.assume_shape %A[%n, %m] : memref<?x?xf32>
  %nm = arith.muli %n, %m : index
  tir.assume_shape %B[%nm] : memref<?xf32>
  %mx = arith.maxsi %n, %m : index
  %one = arith.constant 1.5 : f32
  tir.for %i in %nm { tir.for %j in %mx { memref.store %one, %B[%i] : memref<?xf32> } }
  func.return
}""",
    "maps that nobody writes so": """
func.func @f(%A: memref<64xi64>, %n: index) {
  %c4 = arith.constant 4 : index
  tir.for %i in 8 {
    %same = affine.apply affine_map<(d0) -> (d0)>(%i)
    %five = affine.apply affine_map<() -> (5)>()
    %sum = affine.apply affine_map<(d0, d1) -> ((d0 - d1 * 3) ceildiv 2 + 9)>(%i, %same)
    %twice = affine.apply affine_map<(d0) -> (d0 * 2)>(%sum)
    %again = affine.apply affine_map<(d0) -> (d0 * 2 - 1)>(%twice)
    %product = arith.muli %i, %c4 : index
    %element = arith.index_cast %again : index to i64
    memref.store %element, %A[%product] : memref<64xi64>
    memref.store %element, %A[%five] : memref<64xi64>
  }
  func.return
}""",
    "numbers that are compared": """
func.func @f(%A: memref<8xf32>) {
  %low = arith.constant -2 : index
  %zero = arith.constant 0 : index
  %inside = arith.cmpi sge, %low, %zero : index
  %a = scf.if %inside -> (f32) {
    %read = memref.load %A[%zero] : memref<8xf32>
    scf.yield %read : f32
  } else {
    %outside = arith.constant 1.0 : f32
    scf.yield %outside : f32
  }
  memref.store %a, %A[%zero] : memref<8xf32>
  func.return
}""",
    "constants in odd places, twice, and unused": """
func.func @f(%A: memref<8xf32>) {
  %unused = arith.constant 9 : i32
  tir.for %i in 8 {
    %a = arith.constant 0.1 : f32
    %b = arith.constant 0.1 : f32
    %nan = arith.constant 0x7FC00000 : f32
    %s = arith.addf %a, %b : f32
    %t = arith.mulf %s, %nan : f32
    memref.store %t, %A[%i] : memref<8xf32>
  }
  func.return
}""",
    "buffers of other kinds": """
func.func @f(%A: memref<4x4xf32, strided<[8, 1]>>, %B: memref<i1>, %t: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %X = memref.alloc() {alignment = 64 : i64} : memref<4xbf16, "global.A_reg">
  %Z = memref.alloc() : memref<f64>
  %T = "memref.cast"(%t) : (memref<?xf32>) -> memref<7xf32>
  %x = memref.load %T[%c0] : memref<7xf32>
  memref.store %x, %A[%c0, %c0] : memref<4x4xf32, strided<[8, 1]>>
  %b = memref.load %B[] : memref<i1>
  %c = arith.cmpi ne, %b, %b : i1
  memref.store %c, %B[] : memref<i1>
  func.return
}""",
    "a computation that a branch does not use": """
func.func @f(%A: memref<8xf32>) {
  %zero = arith.constant 0.0 : f32
  tir.for %i in 8 {
    %c3 = arith.constant 3 : index
    %c = arith.cmpi slt, %i, %c3 : index
    %x = scf.if %c -> (f32) {
      %u = affine.apply affine_map<(d0) -> (d0 + 1)>(%i)
      %v = affine.apply affine_map<(d0) -> (d0 + 1)>(%i)
      %y = memref.load %A[%v] : memref<8xf32>
      scf.yield %y : f32
    } else {
      scf.yield %zero : f32
    }
    %unused = scf.if %c -> (f32) {
      memref.store %x, %A[%i] : memref<8xf32>
      scf.yield %x : f32
    } else {
      scf.yield %zero : f32
    }
    scf.if %c { } else { }
  }
  func.return
}""",
    "reads before and after a store": """
func.func @f(%A: memref<8xf32>, %B: memref<8xf32>) {
  tir.for %i in 8 {
    %x = memref.load %A[%i] : memref<8xf32>
    memref.store %x, %B[%i] : memref<8xf32>
    %y = memref.load %A[%i] : memref<8xf32>
    %s = arith.addf %x, %y : f32
    memref.store %s, %A[%i] : memref<8xf32>
    tir.for %j in 2 {
      %z = memref.load %A[%i] : memref<8xf32>
      %t = arith.addf %s, %z : f32
      memref.store %t, %A[%i] : memref<8xf32>
    }
  }
  func.return
}""",
    "names that Python keeps for itself": """
func.func @for(%for: memref<8xf32>, %max: memref<8xf32>, %T: f32, %Module: index) {
  tir.for %range in 8 {
    tir.block "for \\"all\\"" iters(%lambda: spatial<8>) = [%range] {
      %if = memref.load %for[%lambda] : memref<8xf32>
      %x.y = math.absf %if : f32
      %else = arith.maximumf %x.y, %if : f32
      memref.store %else, %max[%lambda] : memref<8xf32>
    }
  }
  func.return
}""",
    "blocks without axes, empty regions, symbolic domains": """
func.func @f(%A: memref<?xf32>, %n: index) {
  %one = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : index
  tir.assume_shape %A[%n] : memref<?xf32>
  tir.block "root" iters() = [] {
    %e = affine.apply affine_map<(d0) -> ((d0 + 3) floordiv 4)>(%n)
    tir.for %i in %e { tir.for %j in 4 {
      tir.block "A" iters(%v: spatial<%n>) = [%i * 4 + %j] where [%i * 4 + %j, 0] < [%n, %n] {
        memref.store %one, %A[%v] : memref<?xf32>
      }
    } }
    tir.for %k in 0 { }
    tir.block "nothing" iters() = [] { }
  }
  tir.for %t in 32 thread_binding<"threadIdx.x"> { tir.for %u in 2 vectorized { tir.for %v in 2 unrolled { } } }
  func.return
}""",
    "triangular loops and other integers": """
func.func @f(%A: memref<8xi8>, %B: memref<8xi32>, %C: memref<8xi64>) {
  %c3 = arith.constant 3 : i8
  tir.for %i in 8 {
    %e = affine.apply affine_map<(d0) -> (d0 + 1)>(%i)
    tir.for %j in %e {
      %x = memref.load %A[%j] : memref<8xi8>
      %y = arith.addi %x, %c3 : i8
      %w = arith.extsi %y : i8 to i32
      %v = arith.index_cast %j : index to i32
      %s = arith.muli %w, %v : i32
      %s2 = arith.floordivsi %s, %v : i32
      %s3 = arith.shrsi %s2, %w : i32
      %g = arith.index_cast %s3 : i32 to index
      %r = memref.load %C[%g] : memref<8xi64>
      %r2 = arith.index_cast %i : index to i64
      %r3 = arith.xori %r, %r2 : i64
      memref.store %r3, %C[%g] : memref<8xi64>
      memref.store %v, %B[%j] : memref<8xi32>
    }
  }
  func.return
}""",
}


@pytest.mark.parametrize("name", FALLBACKS)
def test_ir_of_any_shape(name: str) -> None:
    check_roundtrip(weft.parse(FALLBACKS[name]))


def test_values_that_are_no_scalars_have_names() -> None:
    """Ops that compute with vectors are calls by name, in functions of any level."""
    text = print_script(
        weft.parse("""
func.func @f(%A: memref<16xf32>, %C: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %a = vector.load %A[%c0] : memref<16xf32>, vector<8xf32>
  %b = vector.load %A[%c8] : memref<16xf32>, vector<8xf32>
  %c = arith.addf %a, %b : vector<8xf32>
  %d = arith.mulf %c, %a : vector<8xf32>
  vector.store %d, %C[%c0] : memref<8xf32>, vector<8xf32>
  func.return
}""")
    )
    assert 'c = T.op("arith.addf", a, b, results=["vector<8xf32>"]' in text


def filecheck_programs() -> list[tuple[str, ModuleOp]]:
    """The programs of the FileCheck tests that are functions of block loops."""
    found: list[tuple[str, ModuleOp]] = []
    files = [
        path for folder in ("filecheck/tir", "schedule", "filecheck/te") for path in (TESTS / folder).rglob("*.mlir")
    ]
    for path in sorted(files):
        for position, text in enumerate(path.read_text().split("// -----")):
            try:
                module = weft.parse(text)
            except CompileError:  # a test of an error
                continue
            if "tir.constant" in text:  # graphs state it, and scripts have no word for it
                continue
            dialects = {op.name.split(".")[0] for op in module.walk()}
            if "tir" in dialects and not dialects & {"te", "tensor", "graph", "vector", "low"}:
                found.append((f"{path.parent.name}/{path.stem}-{position}", module))
    return found


@pytest.mark.slow
def test_programs_of_the_filecheck_tests() -> None:
    programs = filecheck_programs()
    assert len(programs) > 100
    for name, module in programs:
        try:
            check_roundtrip(module)
        except (AssertionError, CompileError) as failure:
            pytest.fail(f"{name}: {failure}")


@pytest.mark.parametrize("count", first_tier([20, 60], 20))
@pytest.mark.parametrize("kind", ["plain", "symbolic", "triangular"])
def test_random_programs(kind: str, count: int) -> None:
    checked = 0
    for seed in range(count):
        program = random_tir.RandomProgram(seed, symbolic=kind == "symbolic", triangular=kind == "triangular")
        try:
            module = weft.parse(program.text)
        except CompileError:  # random programs need not be legal
            continue
        check_roundtrip(module)
        checked += 1
    assert checked > count // 12


@pytest.mark.parametrize("seed", first_tier(range(30), *range(10)))
def test_random_schedules_of_tensor_expressions(seed: int) -> None:
    program = make_program(family_of(seed), seed)
    check_roundtrip(program.module)
    fuzzer = Fuzzer(program, seed)
    fuzzer.run(12)
    check_roundtrip(fuzzer.sch.mod)


def test_long_straight_code_is_cut_into_variables() -> None:
    for shared in (False, True):
        lines = ["func.func @f(%A: memref<4xf32>) {", "%c0 = arith.constant 0 : index"]
        lines += ["%v0 = memref.load %A[%c0] : memref<4xf32>"]
        lines += [f"%v{n + 1} = arith.addf %v{n}, %v{n if shared else 0} : f32" for n in range(150)]
        lines += ["memref.store %v150, %A[%c0] : memref<4xf32>", "func.return", "}"]
        check_roundtrip(weft.parse("\n".join(lines)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("func.func @f(%a: f32) -> f32 { func.return %a : f32 }", "@f returns values: scripts have none that do"),
        ("func.func @f() { func.call @g() : () -> () func.return }", "@g is not in the module"),
        (
            "func.func @f(%n: index) { scf.for %i = %n to %n step %n { scf.yield } func.return }",
            "scf.for has no form in scripts",
        ),
    ],
)
def test_what_has_no_script(text: str, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        print_script(random_tir.parse_unchecked(text))


def test_modules_keep_their_attributes() -> None:
    module = weft.parse('builtin.module attributes {target = "llvm"} { func.func @f() { func.return } }')
    text = check_roundtrip(module)
    assert 'I.module_attrs({"target": "llvm"})' in text
    assert print_script(ModuleOp([])).endswith("class Module:\n    pass\n")


def test_what_is_printed_runs_as_a_file(tmp_path: Path) -> None:
    module = weft.parse_file(TESTS.parent / "examples" / "mm_relu.mlir")
    module.attributes["target"] = StringAttr("llvm")
    file = tmp_path / "mm_relu.py"
    file.write_text(text := print_script(module))
    names: dict[str, object] = {}
    exec(compile(text, str(file), "exec"), names)
    weft.assert_structural_equal(names["Module"], module)  # pyright: ignore
