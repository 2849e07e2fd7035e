"""Validation runs functions on edge values and extents: rewrites that are wrong there alone are caught."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tiers import first_tier
from wrong_rewrites import WrongLoopPass, WrongPass
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.utils.fast_math import FastMathFlag

import weft
from weft.interp.arguments import argument_recipe
from weft.interp.compare import Validator
from weft.interp.edge_values import KINDS, plantings
from weft.passes.lower_graph import LowerGraphPass
from weft.support.errors import CompileError

REASSOC = frozenset({FastMathFlag.REASSOC})


def elementwise(body: str, type_: str = "f32", shape: str = "33") -> ModuleOp:
    """`%y` of `%a` and `%b`, elements of two arrays."""
    buffer = f"memref<{shape}x{type_}>"
    return weft.parse(f"""
func.func @f(%A: {buffer}, %B: {buffer}, %Y: {buffer}) {{
  tir.for %i in {shape} {{
    %a = memref.load %A[%i] : {buffer}
    %b = memref.load %B[%i] : {buffer}
    {body.replace("TYPE", type_)}
    memref.store %y, %Y[%i] : {buffer}
  }}
  func.return
}}""")


def scalars(body: str, type_: str = "f32") -> ModuleOp:
    return weft.parse(f"""
func.func @f(%a: {type_}, %b: {type_}) -> {type_} {{
  {body.replace("TYPE", type_)}
  func.return %y : {type_}
}}""")


BODIES = {
    "relu6_to_relu": """%zero = arith.constant 0.0 : TYPE
      %six = arith.constant 6.0 : TYPE
      %r = arith.maximumf %a, %zero : TYPE
      %y = arith.minimumf %r, %six : TYPE""",
    "max_to_maxnum": "%y = arith.maximumf %a, %b : TYPE",
    "times_zero": """%zero = arith.constant 0.0 : TYPE
      %y = arith.mulf %a, %zero : TYPE""",
    "minus_itself": "%y = arith.subf %a, %a : TYPE",
    "over_itself": "%y = arith.divf %a, %a : TYPE",
    "plus_zero": """%zero = arith.constant 0.0 : TYPE
      %y = arith.addf %a, %zero : TYPE""",
    "not_less": """%c = arith.cmpf olt, %a, %b : TYPE
      %y = arith.select %c, %a, %b : TYPE""",
    "absolute_by_square": "%y = math.absf %a : TYPE",
    "flush": "%y = math.absf %a : TYPE",
}
INTEGER_BODIES = {
    "no_overflow": """%one = arith.constant 1 : TYPE
      %n = arith.addi %a, %one : TYPE
      %c = arith.cmpi sgt, %n, %a : TYPE
      %y = arith.extui %c : i1 to TYPE""",
    "half_of_sum": """%two = arith.constant 2 : TYPE
      %n = arith.muli %a, %two : TYPE
      %y = arith.divsi %n, %two : TYPE""",
}


def check(module: ModuleOp, *passes: Any, fast_math: frozenset[FastMathFlag] = frozenset()) -> Validator:
    validator = Validator(module)
    for one in passes:
        one.apply(Context(), module)
        validator.check(one.name, module, fast_math)
    return validator


@pytest.mark.parametrize("type_", first_tier(["f16", "bf16", "f32", "f64"], "f32"))
@pytest.mark.parametrize("rewrite", BODIES)
def test_wrong_rewrites_of_floats_are_caught(rewrite: str, type_: str) -> None:
    if rewrite == "flush" and type_ == "bf16":
        pytest.skip("the test has the smallest number of f16")
    for program in (elementwise, scalars):
        assert not check(program(BODIES[rewrite], type_)).skipped
        with pytest.raises(CompileError, match="pass 'wrong' changed the meaning of the program: @f"):
            check(program(BODIES[rewrite], type_), WrongPass(rewrite))


@pytest.mark.parametrize("type_", first_tier(["i8", "i16", "i32", "i64"], "i32"))
@pytest.mark.parametrize("rewrite", INTEGER_BODIES)
def test_wrong_rewrites_of_integers_are_caught(rewrite: str, type_: str) -> None:
    for program in (elementwise, scalars):
        with pytest.raises(CompileError, match=r"@f \(.*(extreme integers|saturating values) in"):
            check(program(INTEGER_BODIES[rewrite], type_), WrongPass(rewrite))


SUM = """
func.func @sum(%A: memref<?x?xf32>, %Y: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %n = memref.dim %A, %c0 : memref<?x?xf32>
  %m = memref.dim %A, %c1 : memref<?x?xf32>
  tir.assume_shape %Y[%n] : memref<?xf32>
  scf.for %i = %c0 to %n step %c1 {
    memref.store %zero, %Y[%i] : memref<?xf32>
    scf.for %j = %c0 to %m step %c1 {
      %a = memref.load %A[%i, %j] : memref<?x?xf32>
      %y = memref.load %Y[%i] : memref<?xf32>
      %s = arith.addf %y, %a : f32
      memref.store %s, %Y[%i] : memref<?xf32>
    }
  }
  func.return
}"""


@pytest.mark.parametrize("how", ["one", "empty", "tail"])
def test_wrong_loops_are_caught(how: str) -> None:
    assert not check(weft.parse(SUM)).skipped
    with pytest.raises(CompileError, match="pass 'wrong-loop' changed the meaning"):
        check(weft.parse(SUM), WrongLoopPass(how))


def test_a_message_names_the_values() -> None:
    with pytest.raises(CompileError) as caught:
        check(elementwise(BODIES["relu6_to_relu"], shape="64"), WrongPass("relu6_to_relu"))
    message = str(caught.value)
    assert "@f (A: 64, B: 64, Y: 64, saturating values in A and B and Y): Y[" in message
    assert "was 6.0, is " in message


def test_the_sign_of_zero_may_be_given_up() -> None:
    check(elementwise(BODIES["plus_zero"]), WrongPass("plus_zero"), fast_math=frozenset({FastMathFlag.NO_SIGNED_ZEROS}))
    with pytest.raises(CompileError, match=r"was 0.0, is -0.0"):
        check(elementwise(BODIES["plus_zero"]), WrongPass("plus_zero"))


def test_programs_give_up_what_their_operations_do() -> None:
    body = "%y = arith.maximumf %a, %b fastmath<nnan> : TYPE"
    check(elementwise(body), WrongPass("max_to_maxnum"))
    body = BODIES["minus_itself"].replace(" : TYPE", " fastmath<nnan,ninf> : TYPE")
    check(elementwise(body), WrongPass("minus_itself"))
    with pytest.raises(CompileError, match="NaN in"):
        check(elementwise(body.replace("nnan,ninf", "nsz")), WrongPass("minus_itself"))


REDUCTION = """
func.func @f(%A: memref<64xf32>, %S: memref<1xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  tir.for %i in 64 {
    tir.block "S" iters(%vi: reduce<64>) = [%i] {
      tir.init { memref.store %zero, %S[%c0] : memref<1xf32> }
      %a = memref.load %A[%vi] : memref<64xf32>
      %m = arith.maximumf %a, %a : f32
      %s = memref.load %S[%c0] : memref<1xf32>
      %r = arith.addf %s, %m : f32
      memref.store %r, %S[%c0] : memref<1xf32>
    }
  }
  func.return
}"""


def test_reordered_reductions_are_compared_on_finite_values() -> None:
    check(weft.parse(REDUCTION), WrongPass("minus_itself"), fast_math=REASSOC)  # nothing to rewrite
    check(weft.parse(REDUCTION.replace("maximumf %a, %a", "subf %a, %a")), WrongPass("minus_itself"), fast_math=REASSOC)
    with pytest.raises(CompileError, match="saturating values"):
        body = (
            BODIES["relu6_to_relu"]
            .replace("TYPE", "f32")
            .replace("%y =", "%m =")
            .replace("%zero", "%low")
            .replace("%r", "%m0")
        )
        module = weft.parse(REDUCTION.replace("%m = arith.maximumf %a, %a : f32", body))
        check(module, WrongPass("relu6_to_relu"), fast_math=REASSOC)


def test_without_reductions_nothing_is_reordered() -> None:
    with pytest.raises(CompileError, match="NaN in"):
        check(elementwise(BODIES["minus_itself"]), WrongPass("minus_itself"), fast_math=REASSOC)


def test_a_pass_after_one_that_takes_liberties_is_compared_on_all_values() -> None:
    """The liberties of a pass are not those of the passes after it."""
    module = elementwise(BODIES["plus_zero"] + "\n%z = arith.subf %a, %a : f32".replace("%z", "%unused"))
    validator = Validator(module)
    WrongPass("plus_zero").apply(Context(), module)
    validator.check("first", module, frozenset({FastMathFlag.NO_SIGNED_ZEROS}))
    validator.check("same", module)
    module = weft.parse(REDUCTION)
    validator = Validator(module)
    validator.check("first", module, REASSOC)
    WrongPass("max_to_maxnum").apply(Context(), module)
    validator.check("second", module)  # of one operand
    module = weft.parse(REDUCTION.replace("maximumf %a, %a", "mulf %a, %zero"))
    validator = Validator(module)
    validator.check("first", module, REASSOC)
    WrongPass("times_zero").apply(Context(), module)
    with pytest.raises(CompileError, match=r"pass 'second' changed .*(NaN|infinities) in A"):
        validator.check("second", module)


@pytest.mark.parametrize(
    "use",
    [
        "%y = arith.divsi %a, %b : i32",
        "%y = arith.shli %a, %b : i32",
        "%y = arith.remui %a, %b : i32",
        """%i = arith.index_cast %b : i32 to index
        %y = memref.load %A[%i] : memref<33xi32>""",
    ],
)
def test_operands_without_a_meaning_stay_ordinary(use: str) -> None:
    """A divisor, an amount of a shift or a subscript is no reason to leave a function out."""
    module = elementwise(use.replace("%i =", "%at =").replace("[%i]", "[%at]"), "i32")
    validator = check(module)
    assert not validator.skipped
    if "index_cast" not in use:
        body = use.replace("%y", "%q") + INTEGER_BODIES["no_overflow"].replace("%y", "%o").replace("TYPE", "i32")
        body += "\n%y = arith.addi %q, %o : i32"
        with pytest.raises(CompileError, match="in A"):
            check(elementwise(body, "i32"), WrongPass("no_overflow"))


@pytest.mark.parametrize(
    "body",
    [
        """%n = arith.index_cast %a : i32 to index
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        scf.for %k = %c0 to %n step %c1 { memref.store %b, %Y[%i] : memref<33xi32> }""",
        """%r = scf.while (%k = %a) : (i32) -> i32 {
          %c = arith.cmpi ne, %k, %b : i32
          scf.condition(%c) %k : i32
        } do {
        ^bb0(%k: i32):
          scf.yield %b : i32
        }""",
    ],
)
def test_extreme_integers_do_not_bound_loops(body: str) -> None:
    module = elementwise(body + "\n%y = arith.addi %a, %b : i32", "i32")
    check(module)


def test_the_number_of_runs_is_bounded() -> None:
    """Large functions run on one set of edge values, small ones on all."""
    small, large = (
        Validator(elementwise(BODIES["plus_zero"])),
        Validator(elementwise(BODIES["plus_zero"], shape="90000")),
    )
    assert len(small._reference.edge_cases) == 7 - 1  # no integers
    assert len(large._reference.edge_cases) == 6
    reference = Validator(elementwise(BODIES["plus_zero"], shape="9000"), max_work=100_000)._reference
    assert len(reference.edge_cases) == 1
    assert reference.edge_cases[0].edges is not None
    assert reference.edge_cases[0].edges.kind.name == "saturating values"


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint64", "float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float4_e2m1fn"]
)
def test_values_of_every_type(dtype: str) -> None:
    if dtype.startswith(("float8", "float4")):
        pytest.importorskip("ml_dtypes")
    type_ = {"bool": "i1", "uint64": "i64", "float8_e4m3fn": "i8", "float4_e2m1fn": "i8"}.get(dtype, dtype)
    type_ = type_.replace("bfloat", "bf").replace("float", "f").replace("int", "i")
    element = {"uint64": "ui64", "float8_e4m3fn": "f8E4M3FN", "float4_e2m1fn": "f4E2M1FN"}.get(dtype)
    attribute = "" if element is None else f" {{tir.element = {element}}}"
    module = weft.parse(f"func.func @f(%A: memref<64x{type_}>{attribute}) {{ func.return }}")
    function: Any = module.body.block.first_op
    recipe = argument_recipe(function)
    seen = {
        kind.name: np.asarray(recipe.draw(0, p)[0])
        for kind in KINDS
        for p in plantings(recipe.parameters, recipe.indices, kind)
    }
    if dtype == "bool":
        assert not seen
    elif "int" in dtype:
        info = np.iinfo(dtype)
        values = set(seen["extreme integers"].tolist())
        assert {info.min, info.max, info.max - 1} <= values
    else:
        assert set(seen) == {kind.name for kind in KINDS if kind.name != "extreme integers"}
        if dtype.startswith("float") and dtype in ("float16", "float32", "float64"):
            info = np.finfo(dtype)
            assert np.isnan(seen["NaN"]).sum() == 2 and np.isnan(seen["NaN"][-1])
            assert {np.inf, -np.inf} <= set(seen["infinities"].tolist())
            assert {float(info.max), -float(info.max)} <= set(seen["the largest numbers"].tolist())
            assert float(info.smallest_subnormal) in set(seen["subnormal numbers"].tolist())
            zeros = seen["zeros of both signs"]
            assert {False, True} == set(np.signbit(zeros[zeros == 0]).tolist())


def test_values_differ_between_parameters() -> None:
    """Operations see a value of an array beside another one of a second array."""
    module = weft.parse("func.func @f(%a: f32, %b: f32) { func.return }")
    function: Any = module.body.block.first_op
    recipe = argument_recipe(function)
    infinite = next(kind for kind in KINDS if kind.name == "infinities")
    drawn = [tuple(recipe.draw(0, planting)) for planting in plantings(recipe.parameters, recipe.indices, infinite)]
    assert {(np.inf, -np.inf), (-np.inf, np.inf)} <= set(drawn)
    assert {np.inf, -np.inf} <= {a for a, b in drawn if np.isfinite(b)}
    assert {np.inf, -np.inf} <= {b for a, b in drawn if np.isfinite(a)}


@pytest.mark.parametrize(
    "operator",
    [
        "%y = graph.floor_divide %a, %b : tensor<4xi32>, tensor<4xi32> -> tensor<4xi32>",
        "%y = graph.left_shift %a, %b : tensor<4xi32>, tensor<4xi32> -> tensor<4xi32>",
    ],
)
def test_operators_on_tensors_that_mean_more_than_their_loops(operator: str) -> None:
    """NumPy divides by 0 and shifts by 40; the interpreter of loops does not."""
    module = weft.parse(f"""func.func @f(%a: tensor<4xi32>, %b: tensor<4xi32>) -> tensor<4xi32> {{
      {operator}
      func.return %y : tensor<4xi32> }}""")
    assert not check(module, LowerGraphPass("llvm")).skipped


def test_extreme_integers_do_not_bound_loops_of_called_functions() -> None:
    module = weft.parse("""func.func @main(%A: memref<33xi32>) {
      func.call @count(%A) : (memref<33xi32>) -> ()
      func.return
    }
    func.func private @count(%A: memref<33xi32>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %a = memref.load %A[%c1] : memref<33xi32>
      %n = arith.index_cast %a : i32 to index
      scf.for %k = %c0 to %n step %c1 { memref.store %a, %A[%c0] : memref<33xi32> }
      func.return
    }""")
    assert not check(module).skipped


def test_runs_with_results_that_are_too_large_are_left_out() -> None:
    """A size that is an argument takes extreme values: what has no room is not compared."""
    text = """func.func @f(%x: tensor<f32>, %s: tensor<1xi32>) -> tensor<?xf32> {
      %y = stablehlo.dynamic_broadcast_in_dim %x, %s, dims = [] : (tensor<f32>, tensor<1xi32>) -> tensor<?xf32>
      func.return %y : tensor<?xf32>
    }"""
    module = weft.parse(text)
    validator = Validator(module)
    assert validator.check("nothing", module.clone()) is None
