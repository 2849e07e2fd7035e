"""`builtin.module(func.func(cse))`: how nested pipelines are read, and what passes of one function may do."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import pytest
from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp, StringAttr, UnitAttr, i32
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.traits import SymbolTable
from xdsl.universe import Universe

import weft
from weft.driver.parsing import parse_text
from weft.driver.universe import register_dialects
from weft.passes.nested import NestedPasses, symbol_text
from weft.passes.pass_sequence import PipelineStep, run_pass
from weft.passes.pipeline_text import parse_passes, pipeline_text
from weft.support.errors import CompileError
from weft.tools.printing import text_of

PASSES = Universe.get_multiverse().all_passes

PROGRAM = """
func.func private @outside(i32)
"memref.global"() <{sym_name = "data", sym_visibility = "private", type = memref<2xi32>, initial_value}> : () -> ()
func.func @f(%x: i32) {
  %a = arith.constant 1 : i32
  %b = arith.constant 1 : i32
  func.call @g(%a) : (i32) -> ()
  func.call @outside(%b) : (i32) -> ()
  func.return
}
builtin.module @inner {
  func.func @deep() -> (i32, i32) {
    %a = arith.constant 1 : i32
    %b = arith.constant 1 : i32
    func.return %a, %b : i32, i32
  }
}
func.func @g(%x: i32) {
  %a = arith.constant 1 : i32
  %b = arith.constant 1 : i32
  func.call @outside(%a) : (i32) -> ()
  func.call @outside(%b) : (i32) -> ()
  func.return
}
"""


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("", ""),
        (" cse , canonicalize ", "cse,canonicalize"),
        ("builtin.module(cse)", "cse"),
        ("any(cse,dce)", "cse,dce"),
        ("func.func(cse,canonicalize),dce", "func.func(cse,canonicalize),dce"),
        ("builtin.module( func.func( cse ) )", "func.func(cse)"),
        ("builtin.module(builtin.module(cse),any(dce))", "builtin.module(cse),any(dce)"),
        ("func.func()", "func.func()"),
        (
            'func.func(tir-split{func=f block="a\\"b{(,\\\\" loop=0 factors=0,4})',
            'func.func(tir-split{block="a\\"b{(,\\\\" loop=0 factors=0,4 func="f"})',
        ),
        (
            'lower-tir-to-low{insert="before:vectorize=func.func(cse),dce"}',
            'lower-tir-to-low{insert="before:vectorize=func.func(cse),dce"}',
        ),
        ("mlir-opt[cse,canonicalize],cse", None),
    ],
)
def test_pipelines_are_read_and_printed(text: str, normal: str | None) -> None:
    passes = parse_passes(text, PASSES)
    printed = pipeline_text(passes)
    assert parse_passes(printed, PASSES) == passes
    if normal is not None:
        assert printed == f"builtin.module({normal})"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("func.func(cse", "<pass option>:1:1: error: the '(' of 'func.func' is not closed"),
        ("cse)", "<pass option>:1:4: error: this ')' closes nothing"),
        ("cse,,cse", "<pass option>:1:5: error: expected a pass here"),
        ("(cse)", "<pass option>:1:1: error: expected a pass here"),
        ("func.func(cse) dce", "<pass option>:1:16: error: expected a comma here"),
        ("func.func(cse,tir-split{a)", "<pass option>:1:26: error: Unknown token"),
        ("cse,any(dce)", "error: 'any(...)' stands alone at the outermost level: write builtin.module(cse,any(dce))"),
        ("func.func(ces)", "error: unknown pass 'ces', did you mean "),
    ],
)
def test_errors_of_pipelines(text: str, message: str) -> None:
    with pytest.raises(CompileError) as caught:
        parse_passes(text, PASSES)
    assert str(caught.value).startswith(message)


def constants(module: ModuleOp) -> dict[str, int]:
    return {
        f.sym_name.data: sum(isinstance(op, arith.ConstantOp) for op in f.walk())
        for f in module.walk()
        if isinstance(f, FuncOp)
    }


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("func.func(cse)", {"f", "g"}),
        ("builtin.module(builtin.module(func.func(cse)))", {"deep"}),
        ("builtin.module(any(cse))", {"f", "g", "deep"}),
        ("builtin.module(any(any(cse)))", {"deep"}),
        ("cse", {"f", "g", "deep"}),
    ],
)
def test_passes_run_on_what_the_pipeline_names(text: str, changed: set[str]) -> None:
    module = weft.parse(PROGRAM)
    order = [op.name for op in module.ops]
    for module_pass in parse_passes(text, PASSES):
        module_pass.apply(Context(), module)
    module.verify()
    assert [op.name for op in module.ops] == order
    assert {name for name, count in constants(module).items() if count == 1} == changed


@dataclass(frozen=True)
class DoPass(ModulePass):
    name: ClassVar[str] = "do"
    deed: Callable[[ModuleOp], object]

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        self.deed(op)


def run(deed: Callable[[ModuleOp], object]) -> ModuleOp:
    module = weft.parse(PROGRAM)
    NestedPasses("func.func", (DoPass(deed),)).apply(Context(), module)
    return module


def defined(module: ModuleOp) -> FuncOp:
    (function,) = (op for op in module.ops if isinstance(op, FuncOp) and not op.is_declaration)
    return function


def test_a_function_stands_beside_what_its_symbols_name() -> None:
    seen: list[str] = []

    def look(module: ModuleOp) -> None:
        module.verify()
        seen.append(defined(module).sym_name.data)
        for name in ("f", "g", "outside", "data", "inner"):
            assert SymbolTable.lookup_symbol(module, name) is not None

    assert text_of(run(look)) == text_of(weft.parse(PROGRAM))
    assert seen == ["f", "g"]


def test_a_pass_may_put_another_function_in_its_place() -> None:
    def rebuild(module: ModuleOp) -> None:
        old = defined(module)
        new = old.clone()
        new.attributes["seen"] = UnitAttr()
        Rewriter.replace_op(old, new)

    functions = [op for op in run(rebuild).ops if isinstance(op, FuncOp)]
    assert [("seen" in f.attributes, f.sym_name.data) for f in functions] == [
        (False, "outside"),
        (True, "f"),
        (True, "g"),
    ]


@pytest.mark.parametrize(
    ("deed", "message"),
    [
        (
            lambda m: m.body.block.add_op(arith.ConstantOp.from_int_and_width(1, 32)),
            "adds operations beside 'func.func' @f",
        ),
        (lambda m: Rewriter.erase_op(defined(m)), "removes 'func.func' @f"),
        (lambda m: Rewriter.erase_op(next(iter(m.ops))), "removes 'func.func' @outside beside 'func.func' @f"),
        (
            lambda m: next(iter(m.ops)).properties.update(sym_name=StringAttr("x")),
            "changes 'func.func' @x beside 'func.func' @f",
        ),
        (
            lambda m: defined(m).properties.update(sym_name=StringAttr("x")),
            "changes the name or type of 'func.func' @x",
        ),
        (
            lambda m: (
                defined(m).body.block.insert_arg(i32, 0),
                defined(m).update_function_type(),
            ),
            "changes the name or type of 'func.func' @f",
        ),
        (lambda m: m.attributes.update(a=UnitAttr()), "changes attributes of the module of 'func.func' @f"),
    ],
)
def test_a_pass_that_needs_the_module_is_refused(deed: Callable[[ModuleOp], object], message: str) -> None:
    with pytest.raises(CompileError) as caught:
        run(deed)
    assert f"pass 'do' {message}: it needs the whole module, outside of func.func(...)" in str(caught.value)


def test_functions_of_gpu_modules() -> None:
    kernel = """  gpu.func @%s() kernel {
    %%a = arith.constant 1 : i32
    %%b = arith.constant 1 : i32
    "test.use"(%%a, %%b) : (i32, i32) -> ()
    gpu.return
  }
"""
    program = "gpu.module @kernels {\n" + kernel % "one" + kernel % "two" + "}\n"
    ctx = Context(allow_unregistered=True)
    register_dialects(ctx, Universe.get_multiverse())
    module = parse_text(ctx, program, "gpu.mlir")
    seen: list[str] = []

    def run(step: PipelineStep, ctx: Context, module: ModuleOp) -> None:
        module.verify()
        seen.append("" if step.operation is None else symbol_text(step.operation))
        run_pass(step.run, ctx, module)

    (nested,) = parse_passes("gpu.module(gpu.func(cse))", PASSES)
    assert isinstance(nested, NestedPasses)
    nested.run_steps(ctx, module, run)
    module.verify()
    assert seen == ["@one", "@two"]
    assert text_of(module).count("arith.constant") == 2


def test_operations_that_see_values_around_them_are_refused() -> None:
    module = weft.parse("%n = arith.constant 4 : index\ntir.for %i in %n {\n}\n")
    with pytest.raises(CompileError, match=r"passes run on operations that are isolated from above, 'tir\.for' is not"):
        NestedPasses("tir.for", ()).apply(Context(), module)


def test_a_schedule_step_runs_on_one_function() -> None:
    text = """
func.func @f(%A: memref<64xf32>) {
  %z = arith.constant 0.0 : f32
  tir.for %i in 64 { tir.block "B" iters(%v: spatial<64>) = [%i] { memref.store %z, %A[%v] : memref<64xf32> } }
  func.return
}
"""
    module = weft.parse(text)
    (nested,) = parse_passes("func.func(tir-split{block=B loop=0 factors=0,4})", PASSES)
    nested.apply(Context(), module)
    assert text_of(module).count("tir.for") == 2
