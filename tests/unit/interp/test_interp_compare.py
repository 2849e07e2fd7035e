"""Comparing modules by running them, and checking passes."""

from typing import Any

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.universe import Universe

from weft.driver.parsing import parse_text
from weft.interp.arguments import ConcreteShapes, random_arguments
from weft.interp.compare import Mismatch, Reference, Skipped, Validator, compare_modules, outputs_equal
from weft.interp.errors import InterpreterError
from weft.passes.lower_tir_to_low import LowerTirToLowPass
from weft.support.errors import CompileError


def parse(text: str) -> ModuleOp:
    ctx = Context()
    for name, factory in Universe.get_multiverse().all_dialects.items():
        ctx.register_dialect(name, factory)
    return parse_text(ctx, text, "test.mlir")


def function(module: ModuleOp) -> FuncOp:
    op = module.body.block.first_op
    assert isinstance(op, FuncOp)
    return op


MATMUL = """
func.func @matmul(%A: memref<?x?xf32>, %B: memref<?x?xf32>, %C: memref<?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %m = memref.dim %A, %c0 : memref<?x?xf32>
  %k = memref.dim %A, %c1 : memref<?x?xf32>
  %n = memref.dim %B, %c1 : memref<?x?xf32>
  tir.assume_shape %B[%k, %n] : memref<?x?xf32>
  tir.assume_shape %C[%m, %n] : memref<?x?xf32>
  tir.for %i in %m { tir.for %j in %n { tir.for %l in %k {
    tir.block "C" iters(%vi: spatial<%m>, %vj: spatial<%n>, %vk: reduce<%k>) = [%i, %j, %l] {
      tir.init { memref.store %zero, %C[%vi, %vj] : memref<?x?xf32> }
      %a = memref.load %A[%vi, %vk] : memref<?x?xf32>
      %b = memref.load %B[%vk, %vj] : memref<?x?xf32>
      %c = memref.load %C[%vi, %vj] : memref<?x?xf32>
      %p = arith.mulf %a, %b : f32
      %s = arith.addf %c, %p : f32
      memref.store %s, %C[%vi, %vj] : memref<?x?xf32>
    }
  } } }
  func.return
}
"""
SCALE = """
func.func @scale(%A: memref<6x4xTYPE>, %B: memref<6x4xTYPE>) {
  %two = arith.constant TWO : TYPE
  tir.for %i in ROWS {
    tir.for %j in 4 {
      %a = memref.load %A[%i, %j] : memref<6x4xTYPE>
      %b = arith.OP %a, %two : TYPE
      memref.store %b, %B[%i, %j] : memref<6x4xTYPE>
    }
  }
  func.return
}
"""
SCALED = SCALE.replace("TYPE", "f32").replace("TWO", "2.0").replace("ROWS", "6").replace("OP", "mulf")


def scale(*, type_: str = "f32", two: str = "2.0", rows: str = "6", op: str = "mulf") -> ModuleOp:
    text = SCALE.replace("TYPE", type_).replace("TWO", two).replace("ROWS", rows).replace("OP", op)
    return parse(text)


def test_equal_modules() -> None:
    assert compare_modules(parse(MATMUL), parse(MATMUL)) is None
    assert compare_modules(scale(), scale(rows="6 parallel")) is None


@pytest.mark.parametrize(
    ("change", "output"),
    [
        (("arith.addf %c, %p", "arith.subf %c, %p"), "C"),
        (("tir.init { memref.store %zero, %C[%vi, %vj] : memref<?x?xf32> }", ""), "C"),
        (("arith.mulf %a, %b", "arith.mulf %b, %b"), "C"),
    ],
    ids=["operator", "init", "operand"],
)
def test_changed_meanings(change: tuple[str, str], output: str) -> None:
    assert change[0] in MATMUL
    found = compare_modules(parse(MATMUL), parse(MATMUL.replace(*change)))
    assert isinstance(found, Mismatch)
    assert (found.function, found.output, found.order) == ("matmul", output, "forward")
    assert found.before != found.after


def test_an_element_that_is_not_written_shows() -> None:
    found = compare_modules(scale(), scale(rows="5"))
    assert isinstance(found, Mismatch)
    assert (found.output, found.index[0], found.count) == ("B", 5, 4)
    assert str(found).startswith("@scale (A: 6x4, B: 6x4): B[5, 0] was ")
    assert str(found).endswith(" (4 elements differ)")


@pytest.mark.parametrize("type_", ["f64", "f32", "f16", "bf16"])
def test_floats_are_compared_up_to_rounding(type_: str) -> None:
    two = {"f64": "2.0000000000000004", "f32": "2.0000002", "f16": "2.002", "bf16": "2.0156"}[type_]
    assert compare_modules(scale(type_=type_), scale(type_=type_, two=two)) is None
    assert isinstance(compare_modules(scale(type_=type_), scale(type_=type_, two="3.0")), Mismatch)


def test_integers_are_compared_exactly() -> None:
    large = scale(type_="i64", two="100000000000000", op="addi")
    assert compare_modules(large, scale(type_="i64", two="100000000000000", op="addi")) is None
    found = compare_modules(large, scale(type_="i64", two="100000000000001", op="addi"))
    assert isinstance(found, Mismatch)
    assert found.count == 24


def test_new_errors_are_mismatches() -> None:
    after = SCALE.replace("ROWS", "7").replace("TYPE", "f32").replace("TWO", "2.0").replace("OP", "mulf")
    found = compare_modules(scale(), parse(after))
    assert isinstance(found, Mismatch)
    assert isinstance(found.error, InterpreterError)
    assert "access out of bounds: A[6, 0], the shape of A is 6x4" in str(found)


def test_wrong_parallel_loops_show() -> None:
    wrong = MATMUL.replace("tir.for %l in %k {", "tir.for %l in %k parallel {")
    found = compare_modules(parse(MATMUL), parse(wrong))
    assert isinstance(found, Mismatch)
    assert found.order == "reversed"
    assert "parallel iterations reversed" in str(found)


def test_a_lost_update_shows_only_when_iterations_interleave() -> None:
    text = """func.func @sum(%A: memref<9xi64>, %S: memref<1xi64>) {
      %c0 = arith.constant 0 : index
      tir.for %i in 9 KIND {
        %a = memref.load %A[%i] : memref<9xi64>
        %s = memref.load %S[%c0] : memref<1xi64>
        %t = arith.addi %s, %a : i64
        memref.store %t, %S[%c0] : memref<1xi64>
      }
      func.return
    }"""
    before, after = parse(text.replace("KIND", "")), parse(text.replace("KIND", "parallel"))
    assert compare_modules(before, after, orders=("forward", "reversed")) is None
    found = compare_modules(before, after)
    assert isinstance(found, Mismatch)
    assert (found.output, found.order) == ("S", "interleaved")


LANES = """
func.func @sum(%A: memref<8xf32>, %S: memref<f32>) {
  tir.for %l in 8 KIND {
    %a = memref.load %A[%l] : memref<8xf32>
    %s = memref.load %S[] : memref<f32>
    %r = arith.addf %s, %a : f32
    memref.store %r, %S[] : memref<f32>
  }
  func.return
}
"""


def test_lanes_that_update_one_element_reduce() -> None:
    module = parse(LANES.replace("KIND", "vectorized"))
    assert compare_modules(module, module.clone()) is None


def test_iterations_that_race_before_the_change_are_not_blamed_on_it() -> None:
    module = parse(LANES.replace("KIND", "parallel"))
    found = compare_modules(module, module.clone())
    assert str(found) == (
        "@sum was not compared: before the change, its parallel iterations race when they run interleaved"
    )
    changed = parse(LANES.replace("KIND", "parallel").replace("addf", "subf"))
    assert isinstance(compare_modules(module, changed), Mismatch)


def test_what_is_not_compared_is_told() -> None:
    two = parse(MATMUL + SCALED)
    found = compare_modules(two, parse(MATMUL))
    assert found == Skipped((("scale", "the function is gone"),))
    found = compare_modules(scale(), scale(), max_work=50)
    assert isinstance(found, Skipped)
    assert str(found) == "@scale was not compared: a call executes about 81 operations, the limit is 50"
    found = compare_modules(parse("func.func @f(%A: memref<80xf32>) { func.return }"), scale(), max_work=50)
    assert "@f was not compared: an argument has 80 elements, the limit is 50" in str(found)
    found = compare_modules(scale(), scale(type_="f64"))
    assert isinstance(found, Skipped)
    assert "its parameters changed, now scale(A: float64[6, 4]" in str(found)
    found = compare_modules(scale(rows="7"), scale())
    assert isinstance(found, Skipped)
    assert "it fails before the change: access out of bounds" in str(found)
    strange = 'func.func @f(%c: i1) { "omp.terminator"() : () -> () func.return }'
    found = compare_modules(parse(strange), parse(strange))
    assert isinstance(found, Skipped)
    assert "the interpreter has no meaning for 'omp.terminator'" in str(found)


def test_work_counts_loops_reductions_and_calls() -> None:
    buffers = "memref<6x4xf32>, memref<6x4xf32>"
    call = f"func.call @scale(%A, %B) : ({buffers}) -> ()"
    caller = f"func.func @main(%A: memref<6x4xf32>, %B: memref<6x4xf32>) {{ {call} {call} func.return }}"
    module = parse(SCALED + caller)
    functions = {op.sym_name.data: op for op in module.body.block.ops if isinstance(op, FuncOp)}
    scale_work = ConcreteShapes(functions["scale"], (3,)).work(functions.get).operations
    assert scale_work == 1 + (1 + 6 * (1 + 4 * 3)) + 1  # the constant, the loops, the return
    assert ConcreteShapes(functions["main"], (3,)).work(functions.get).operations == 2 * scale_work + 1
    assert ConcreteShapes(function(parse(MATMUL)), (5, 7, 3)).work(functions.get).operations > 5 * 7 * 3 * 8


def test_work_counts_launches_and_each_callee_once() -> None:
    chain = "".join(
        f"func.func @f{at}() {{ func.call @f{at + 1}() : () -> () func.call @f{at + 1}() : () -> () func.return }}"
        for at in range(40)
    )
    module = parse(f"""{chain} func.func @f40() {{ func.return }}
    func.func @again() {{ func.call @again() : () -> () func.return }}
    func.func @k(%A: memref<4xf32>) attributes {{low.kernel = #low.kernel<[32, 1, 1], source = "x">}} {{ func.return }}
    func.func @launch(%A: memref<4xf32>) {{
      %c1 = arith.constant 1 : index
      %c32 = arith.constant 32 : index
      %many = arith.constant 4611686018427387904 : index
      low.launch @k blocks(%many, %c1, %c1) threads(%c32, %c1, %c1) (%A) : memref<4xf32>
      func.return
    }}""")
    functions = {op.sym_name.data: op for op in module.body.block.ops if isinstance(op, FuncOp)}
    assert ConcreteShapes(functions["f0"], (3,)).work(functions.get).operations > 2**40
    assert ConcreteShapes(functions["launch"], (3,)).work(functions.get).operations > 2**67
    found = compare_modules(module, module, max_work=1000)
    assert "@launch was not compared: a call executes about" in str(found)
    assert "@again was not compared: it fails before the change: 'func.call': calls nest too deeply" in str(found)


def test_work_counts_loops_between_parameters_and_far_constants() -> None:
    """A parameter of low functions is the number that validation passes; an unknown bound is near the known one."""
    module = parse("""
    func.func @to(%n: index) attributes {low.params = [#low.param<"n", index, read, []>], low.symbols = []} {
      %low = arith.constant -9223372036854775808 : index
      %one = arith.constant 1 : index
      scf.for %i = %low to %n step %one { }
      func.return
    }
    func.func @between(%A: memref<2xi64>, %far: index) {
      %zero = arith.constant 0 : index
      %low = arith.constant -1000000 : index
      %one = arith.constant 1 : index
      %number = memref.load %A[%zero] : memref<2xi64>
      %bound = arith.index_cast %number : i64 to index
      scf.for %i = %low to %bound step %one { }
      scf.for %i = %bound to %zero step %one { }
      func.return
    }""")
    functions = {op.sym_name.data: op for op in module.body.block.ops if isinstance(op, FuncOp)}
    assert ConcreteShapes(functions["to"], (3,)).work(functions.get).operations > 2**63
    assert 1_000_000 < ConcreteShapes(functions["between"], (3,)).work(functions.get).operations < 1_000_100


def test_random_arguments_agree_on_tied_extents() -> None:
    matmul = function(parse(MATMUL))
    for extents in ((5, 7, 3), (1, 2), (4,)):
        a, b, c = random_arguments(matmul, 0, extents=extents)
        assert (a.shape[1], *c.shape) == (b.shape[0], a.shape[0], b.shape[1])
        assert {*a.shape, *b.shape} == set(extents)


def test_random_arguments_of_each_level() -> None:
    low = """func.func @f(%X: memref<?xbf16>, %Y: memref<?xi8>, %s: f16, %n: index) attributes {
      low.params = [#low.param<"X", memref<?x3xbf16>, read, ["n"]>, #low.param<"Y", memref<2x?xi8>, readwrite, ["n"]>,
                    #low.param<"s", f16, read, []>], low.symbols = ["n"]} { func.return }"""
    x, y, s = random_arguments(function(parse(low)), extents=(5,))
    assert (x.shape, y.shape, y.dtype) == ((5, 3), (2, 5), np.int8)
    assert isinstance(s, float)
    tensors = """func.func @f(%X: tensor<?x4xf64, #graph.dims<n>>, %Y: tensor<?xi1, #graph.dims<2 * n + 1>>) {
      func.return }"""
    x, y = random_arguments(function(parse(tensors)), extents=(5,))
    assert (x.shape, y.shape, y.dtype) == ((5, 4), (11,), np.bool_)


def test_random_arguments_suit_the_program() -> None:
    text = """func.func @f(%A: memref<50xi32>, %B: memref<50xi32>, %C: memref<9xf32>, %X: memref<50xf32>) {
      %c0 = arith.constant 0 : index
      %a = memref.load %A[%c0] : memref<50xi32>
      USE
      func.return
    }"""
    signed = random_arguments(function(parse(text.replace("USE", ""))), 3)
    assert signed[0].min() < 0 < signed[0].max() <= 8
    assert (signed[3] < 0).any()
    divided = random_arguments(function(parse(text.replace("USE", "%d = arith.divsi %a, %a : i32"))), 3)
    assert divided[0].min() > 0 and divided[3].min() > 0
    index = random_arguments(function(parse(text.replace("USE", "%i = arith.index_cast %a : i32 to index"))), 3)
    assert index[0].min() >= 0 and index[0].max() < 9


def test_random_arguments_repeat_with_their_seed() -> None:
    matmul = function(parse(MATMUL))
    first, second, other = (random_arguments(matmul, seed)[0] for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)


def test_sums_of_random_floats_do_not_round() -> None:
    """So that another order of a sum gives the same number."""
    a, b, _ = random_arguments(function(parse(MATMUL)), extents=(64, 64, 64))
    products = a.astype(np.float64)[:, :, None] * b.astype(np.float64)[None, :, :]
    np.testing.assert_array_equal((a @ b).astype(np.float64), products.sum(axis=1))


def test_outputs_equal() -> None:
    x = np.linspace(1, 2, 5, dtype=np.float32)
    cases: list[tuple[Any, Any, bool]] = [
        (x, x * np.float32(1 + 2e-7), True),
        (x, x * np.float32(1.01), False),
        (x, x.astype(np.float64), False),
        (x, x[:4], False),
        (np.float32([np.nan, np.inf]), np.float32([np.nan, np.inf]), True),
        (np.float32([np.nan, 1]), np.float32([1, 1]), False),
        (np.float32([np.inf]), np.float32([-np.inf]), False),
        (np.float32([np.inf]), np.float32([3e38]), False),
        (np.int8([1, 2]), np.int8([1, 3]), False),
        (np.array([True]), np.array([True]), True),
        (3, 3, True),
        (np.float32([1e-30]), np.float32([0]), True),
    ]
    for first, second, equal in cases:
        assert outputs_equal(first, second) is equal, (first, second)
    far = x + np.float32(2e-5)
    assert not outputs_equal(x, far, reduction_length=1)
    assert outputs_equal(x, far, reduction_length=10_000)


def test_tensor_functions_may_become_functions_over_buffers() -> None:
    before = """func.func @add(%x: tensor<3x4xf32>, %y: tensor<3x4xf32>) -> tensor<3x4xf32> {
      %z = graph.add %x, %y : tensor<3x4xf32>, tensor<3x4xf32> -> tensor<3x4xf32>
      func.return %z : tensor<3x4xf32>
    }"""
    after = """func.func @add(%x: memref<3x4xf32>, %y: memref<3x4xf32>, %out: memref<3x4xf32>) {
      tir.for %i in 3 { tir.for %j in 4 {
        %a = memref.load %x[%i, %j] : memref<3x4xf32>
        %b = memref.load %y[%i, %j] : memref<3x4xf32>
        %c = arith.addf %a, %b : f32
        memref.store %c, %out[%i, %j] : memref<3x4xf32>
      } }
      func.return
    }"""
    assert compare_modules(parse(before), parse(after)) is None
    found = compare_modules(parse(before), parse(after.replace("arith.addf", "arith.subf")))
    assert isinstance(found, Mismatch)
    assert found.output == "result 0"


def test_validator_names_the_pass() -> None:
    module = scale()
    validator = Validator(module)
    validator.check("first-pass", scale(rows="6 vectorized"))
    message = r"pass 'second-pass' changed the meaning of the program: @scale .* B\[5, 0\]"
    with pytest.raises(CompileError, match=message):
        validator.check("second-pass", scale(rows="5"))
    assert validator.skipped == {}


def test_validator_snapshots_results() -> None:
    """The module may be rewritten in place after."""
    module = scale()
    validator = Validator(module)
    for op in list(module.walk()):
        if op.name == "arith.mulf":
            op.operands[0] = op.operands[1]
    with pytest.raises(CompileError, match="pass 'p' changed the meaning"):
        validator.check("p", module)


def test_validator_tells_what_it_skipped() -> None:
    validator = Validator(scale(), max_work=50)
    assert "the limit is 50" in validator.skipped["scale"]
    validator = Validator(scale())
    validator.check("rename", parse(MATMUL))
    assert validator.skipped == {"scale": "after 'rename': the function is gone"}


def test_errors_of_validated_programs_keep_their_place() -> None:
    with pytest.raises(CompileError) as caught:
        Validator(scale()).check("p", scale(rows="7"))
    assert str(caught.value).startswith("test.mlir:6:12: error: pass 'p' changed the meaning of the program: @scale")


def test_reference_runs_each_function_once() -> None:
    reference = Reference(parse(MATMUL), tries=3)
    assert [case.name for case in reference.cases] == ["matmul"] * 3
    assert len({case.arguments[0].shape for case in reference.cases}) == 3


TILE = """func.func @tile() {
  %c0 = arith.constant 0 : index
  %S = memref.alloc() : memref<16x16xf16, "shared">
  %F = memref.alloc() : memref<16x16xf16, "wmma.matrix_a">
  %C = memref.alloc() : memref<16x16xf32, "wmma.accumulator">
  %s = low.access_ptr %S[%c0, %c0] sizes [16, 16] read : memref<16x16xf16, "shared">
  %f = low.access_ptr %F[%c0, %c0] sizes [16, 16] readwrite : memref<16x16xf16, "wmma.matrix_a">
  %c = low.access_ptr %C[%c0, %c0] sizes [16, 16] readwrite : memref<16x16xf32, "wmma.accumulator">
  low.tile_load <wmma, a, row, [16, 16, 16], f16> %s, %c0 to %f, %c0
  low.tile_mma %f, %c0 by %f, %c0 onto %c, %c0 {a = #low.fragment<wmma, a, row, [16, 16, 16], f16>,
    b = #low.fragment<wmma, b, row, [16, 16, 16], f16>}
  func.return
}""".replace("by %f", "by %g").replace(
    "  low.tile_load",
    """  %G = memref.alloc() : memref<16x16xf16, "wmma.matrix_b">
  %g = low.access_ptr %G[%c0, %c0] sizes [16, 16] read : memref<16x16xf16, "wmma.matrix_b">
  low.tile_load""",
)


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (f"func.func @f(%A: tensor<{'1x' * 72}f32>) {{ func.return }}", "72 dimensions, NumPy has 64 at most"),
        (
            """func.func @f(%A: memref<?xf32>, %B: memref<?xf32>) {
              %c0 = arith.constant 0 : index
              %n = memref.dim %A, %c0 : memref<?xf32>
              %m = affine.apply affine_map<(d0) -> (d0 - 9)> (%n)
              tir.assume_shape %B[%m] : memref<?xf32>
              func.return }""",
            "parameter B would have shape (-4,)",
        ),
        (
            f"""func.func @f(%n: index) -> index {{
              %x = affine.apply affine_map<(d0) -> ({"(" * 150}d0{" floordiv 2 + 1)" * 150})> (%n)
              func.return %x : index }}""",
            "an expression of @f is nested too deeply to interpret",
        ),
        (TILE, "'low.tile_mma' reads memory that was never written"),
    ],
)
def test_what_cannot_be_run_is_no_failure(program: str, reason: str) -> None:
    assert reason in str(compare_modules(parse(program), parse(program)))


def test_tiles_are_copied_from_shared_memory_outside_of_kernels_too() -> None:
    """Memory of a function may be on the stack, which copies of tiles do not take for shared."""
    module = parse(TILE)
    LowerTirToLowPass("llvm").apply(Context(), module)
    assert 'memref.alloc() {alignment = 64 : i64} : memref<256xf16, "shared">' in str(module)


def test_private_functions_are_compared_through_their_callers() -> None:
    """A pass may change what a private function takes, together with its calls."""
    program = """
        func.func @main(%A: memref<4xf32>, %B: memref<4xf32>) {{
          tir.for %i in 4 {{
            tir.block "B" iters(%v: spatial<4>) = [%i] {{
              %a = memref.load %A[%v] : memref<4xf32>
              %b = arith.addf %a, %a : f32
              %r = func.call @half({argument}) : (f32) -> f32
              memref.store %r, %B[%v] : memref<4xf32>
            }}
          }}
          func.return
        }}
        func.func private @half(%x: f32) -> f32 {{
          %h = arith.constant {factor} : f32
          %r = arith.mulf %x, %h : f32
          func.return %r : f32
        }}
    """
    before, after = (parse(program.format(argument=a, factor=f)) for a, f in (("%a", "0.5"), ("%b", "0.25")))
    assert compare_modules(before, after) is None
    wrong = parse(program.format(argument="%b", factor="0.5"))
    found = compare_modules(before, wrong)
    assert isinstance(found, Mismatch) and found.function == "main"
    for module in (before, after):
        main = function(module)
        main.detach()
        main.erase()
    found = compare_modules(before, after)  # nothing calls it
    assert isinstance(found, Mismatch) and found.function == "half"


def test_writable_tensors_may_be_overwritten() -> None:
    program = """
        func.func @f(%A: tensor<4xf32> {{bufferization.writable = {writable}}}) -> tensor<4xf32> {{
          %r = linalg.exp ins(%A : tensor<4xf32>) outs(%A : tensor<4xf32>) -> tensor<4xf32>
          func.return %r : tensor<4xf32>
        }}
    """
    overwriting = parse("""
        func.func @f(%A: memref<4xf32>, %r: memref<4xf32>) {
          linalg.exp ins(%A : memref<4xf32>) outs(%A : memref<4xf32>)
          linalg.copy ins(%A : memref<4xf32>) outs(%r : memref<4xf32>)
          func.return
        }
    """)
    assert compare_modules(parse(program.format(writable="true")), overwriting) is None
    found = compare_modules(parse(program.format(writable="false")), overwriting)
    assert isinstance(found, Mismatch) and found.output == "A"


ENDLESS = """
  %r = scf.while (%v = %x) : (f32) -> f32 {
    scf.condition(%yes) %v : f32
  } do {
  ^bb0(%u: f32):
    scf.yield %u : f32
  }
"""
LONG = "%r = scf.for %i = %zero to %many step %one iter_args(%v = %x) -> (f32) { scf.yield %v : f32 }"
NESTED = """
  %some = arith.minsi %many, %thousands : index
  %r = scf.for %i = %zero to %some step %one iter_args(%v = %x) -> (f32) {
    %s = scf.for %j = %zero to %some step %one iter_args(%w = %v) -> (f32) {
      scf.yield %w : f32
    }
    scf.yield %s : f32
  }
"""


@pytest.mark.parametrize("loops", [ENDLESS, LONG, NESTED], ids=["endless", "long", "nested"])
def test_programs_that_run_too_long_are_not_compared(loops: str) -> None:
    module = parse(f"""
        func.func @f(%x: f32, %m: memref<1xi64>) -> f32 {{
          %yes = arith.constant true
          %zero = arith.constant 0 : index
          %one = arith.constant 1 : index
          %thousands = arith.constant 2000 : index
          %most = arith.constant 9223372036854775807 : index
          %loaded = memref.load %m[%zero] : memref<1xi64>
          %n = arith.index_cast %loaded : i64 to index
          %many = arith.maxsi %most, %n : index
          {loops}
          func.return %r : f32
        }}
    """)
    found = compare_modules(module, module, max_work=1_000_000)
    assert isinstance(found, Skipped)
    assert "a call runs more than 1,000,000 iterations, the limit" in str(found)


def test_stablehlo_programs_that_run_too_long_are_not_compared() -> None:
    module = parse("""
        func.func @loop(%x: tensor<4xf32>) -> tensor<4xf32> {
          %0 = stablehlo.while(%v = %x) : tensor<4xf32>
          cond {
            %p = stablehlo.constant dense<true> : tensor<i1>
            stablehlo.return %p : tensor<i1>
          } do {
            stablehlo.return %v : tensor<4xf32>
          }
          return %0 : tensor<4xf32>
        }
    """)
    assert "more than 1,000 iterations" in str(compare_modules(module, module, max_work=1_000))
