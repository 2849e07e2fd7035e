"""Functions of which a pass does not understand every operation: over tensors they stay byte for byte, over buffers the
operation is behind an opaque block."""

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.parser import Parser

from weft.driver.programs import context
from weft.frontends.convert_stablehlo_to_graph import ConvertStablehloToGraphPass
from weft.passes.convert.convert_linalg_to_tir import ConvertLinalgToTirPass
from weft.passes.convert.convert_stablehlo_to_te import ConvertStablehloToTePass
from weft.passes.convert.raise_affine_to_tir import RaiseAffineToTirPass
from weft.support.errors import CompileError, Remark

TENSORS = """func.func @known(%x: tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %0 = linalg.exp ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  func.return %0 : tensor<8xf32>
}
func.func @foreign(%x: tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %0 = linalg.exp ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %1 = "OP"(%0) : (tensor<8xf32>) -> tensor<8xf32>
  func.return %1 : tensor<8xf32>
}
func.func @caller(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = func.call @foreign(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = linalg.exp ins(%0 : tensor<8xf32>) outs(%x : tensor<8xf32>) -> tensor<8xf32>
  func.return %1 : tensor<8xf32>
}"""
BUFFERS = """func.func @main(%x: memref<8xf32>, %y: memref<8xf32>) {
  "OP"() : () -> ()
  affine.for %i = 0 to 8 {
    %0 = affine.load %x[%i] : memref<8xf32>
    affine.store %0, %y[%i] : memref<8xf32>
  }
  "OP"(%x) : (memref<8xf32>) -> ()
  func.return
}"""


def _parsed(text: str, op: str) -> tuple[Context, ModuleOp]:
    """A module with ops of an unregistered dialect, or of one of xDSL that weft has no meaning of."""
    ctx = context()
    ctx.allow_unregistered = True
    return ctx, Parser(ctx, text.replace("OP", op)).parse_module()


def _texts(module: ModuleOp) -> list[str]:
    return [str(function) for function in module.ops]


@pytest.mark.parametrize("op", ["foreign.op", "test.op"])
def test_tensors(op: str) -> None:
    """The function that holds the op and its caller stay; the other one is converted."""
    ctx, module = _parsed(TENSORS, op)
    before = _texts(module)
    with pytest.warns(Remark) as remarks:
        ConvertLinalgToTirPass().apply(ctx, module)
    assert [str(one.message).partition("leaves ")[2] for one in remarks] == [
        f"@foreign as it is: '{op}' is of no dialect that weft knows",
        "@caller as it is: it is connected by calls to a function that stays",
    ]
    after = _texts(module)
    assert after[1:] == before[1:]
    assert "tir.block" in after[0]


def test_tensors_strict() -> None:
    ctx, module = _parsed(TENSORS, "foreign.op")
    with pytest.raises(CompileError, match=r"'foreign\.op' is of no dialect that weft knows"):
        ConvertLinalgToTirPass(strict=True).apply(ctx, module)


@pytest.mark.parametrize("op", ["foreign.op", "test.op"])
def test_buffers(op: str) -> None:
    """Each op has a block of its own, in its place."""
    ctx, module = _parsed(BUFFERS, op)
    RaiseAffineToTirPass().apply(ctx, module)
    lines = [line.strip() for line in str(module).splitlines()]
    places = [at for at, line in enumerate(lines) if f'"{op}"' in line]
    assert [lines[at - 1].partition(" iters")[0].split()[0] for at in places] == ["tir.block", "tir.block"]
    loop = next(at for at, line in enumerate(lines) if line.startswith("tir.for"))
    assert places[0] < loop < places[1]


@pytest.mark.parametrize(
    "op, reason",
    [
        (
            '%h = "foreign.open"() : () -> !foreign.handle\n  "foreign.close"(%h) : (!foreign.handle) -> ()',
            "'foreign.open' gives other ops a value of type !foreign.handle, which no buffer holds",
        ),
        (
            '"foreign.scope"() ({\n    affine.for %j = 0 to 8 { }\n    "foreign.end"() : () -> ()\n  }) : () -> ()',
            "'foreign.scope' contains affine.for, to which it may give another meaning",
        ),
        (
            '"foreign.branch"()[^next] : () -> ()\n^next:',
            "'foreign.branch' branches to other blocks",
        ),
    ],
)
def test_ops_without_a_block(op: str, reason: str) -> None:
    """A function over buffers stays if a foreign op cannot be in an opaque block."""
    ctx, module = _parsed(BUFFERS.replace('"OP"() : () -> ()', op, 1), "foreign.op")
    before = _texts(module)
    with pytest.warns(Remark, match=f"raise-affine-to-tir leaves @main as it is: {reason}"):
        RaiseAffineToTirPass().apply(ctx, module)
    assert _texts(module) == before
    with pytest.raises(CompileError, match=reason):
        RaiseAffineToTirPass(strict=True).apply(ctx, module)


@pytest.mark.parametrize(
    "user",
    [
        '"foreign.table"() {entries = [@known]} : () -> ()',
        'func.func @user() {\n  "foreign.spawn"() {callee = @known} : () -> ()\n  func.return\n}',
    ],
)
def test_references(user: str) -> None:
    """A function over tensors, whose signature would change, stays if a foreign op refers to it."""
    ctx, module = _parsed(f"{TENSORS}\n{user}", "foreign.op")
    before = _texts(module)
    with pytest.warns(Remark, match="leaves @known as it is: 'foreign.(table|spawn)' refers to it"):
        ConvertLinalgToTirPass().apply(ctx, module)
    assert _texts(module) == before


STABLEHLO = """!q = !quant.uniform<i8:f32, 0.5:3>
func.func public @scale(%a: tensor<4x!q>) -> tensor<4x!q> {
  %0 = stablehlo.multiply %a, %a : tensor<4x!q>
  return %0 : tensor<4x!q>
}
func.func public @loop(%a: tensor<4x!q>) -> tensor<4x!q> {
  %0 = stablehlo.constant dense<0> : tensor<i32>
  %n = stablehlo.constant dense<3> : tensor<i32>
  %1 = stablehlo.constant dense<1> : tensor<i32>
  %r:2 = stablehlo.while(%i = %0, %x = %a) : tensor<i32>, tensor<4x!q>
  cond {
    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %y = func.call @scale(%x) : (tensor<4x!q>) -> tensor<4x!q>
    %j = stablehlo.add %i, %1 : tensor<i32>
    stablehlo.return %j, %y : tensor<i32>, tensor<4x!q>
  }
  return %r#1 : tensor<4x!q>
}
func.func public @twice(%a: tensor<4x!q>) -> tensor<4x!q> {
  %0 = call @loop(%a) : (tensor<4x!q>) -> tensor<4x!q>
  %1 = stablehlo.add %0, %0 : tensor<4x!q>
  return %1 : tensor<4x!q>
}
func.func private @unused(%a: tensor<4x!q>) -> tensor<4x!q> {
  %0 = "foreign.op"(%a) : (tensor<4x!q>) -> tensor<4x!q>
  return %0 : tensor<4x!q>
}
func.func private @table(%a: tensor<4xf32>) -> tensor<4xf32> {
  return %a : tensor<4xf32>
}
func.func public @user(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @table(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = stablehlo.add %0, %0 : tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func @refers() {
  "foreign.op"() {to = @table} : () -> ()
  return
}
func.func public @unequal(%a: tensor<4x!quant.uniform<i8:f32, 0.5>>) -> tensor<4x!quant.uniform<i8:f32, 0.25>> {
  %0 = stablehlo.reshape %a : (tensor<4x!quant.uniform<i8:f32, 0.5>>) -> tensor<4x!quant.uniform<i8:f32, 0.25>>
  return %0 : tensor<4x!quant.uniform<i8:f32, 0.25>>
}"""


def _functions(module: ModuleOp) -> dict[str, str]:
    return {op.sym_name.data: str(op) for op in module.ops if isinstance(op, FuncOp)}


def test_stablehlo_loops() -> None:
    """Only functions with loops, and their callers, are converted, in any order; no unrelated function is erased."""
    ctx, module = _parsed(STABLEHLO, "foreign.op")
    before = _functions(module)
    ConvertStablehloToGraphPass().apply(ctx, module)
    module.verify()
    after = _functions(module)
    converted = {"loop", "twice"}
    assert {name for name, text in before.items() if after.get(name) != text} == converted
    assert all("stablehlo." not in after[name] and "quant" not in after[name] for name in converted)


def test_stablehlo_expressions() -> None:
    """A function whose type would change stays with a function that stays and calls it."""
    ctx, module = _parsed(STABLEHLO, "foreign.op")
    before = _functions(module)
    with pytest.warns(Remark) as remarks:
        ConvertStablehloToTePass().apply(ctx, module)
    module.verify()
    after = _functions(module)
    assert {name for name, text in before.items() if after.get(name) != text} == {"user"}
    messages = [str(one.message).partition("leaves ")[2] for one in remarks]
    assert messages[-1] == "@scale as it is: a function that stays refers to it"
    assert any("@unequal as it is: stablehlo.reshape: it moves elements, whose types are" in one for one in messages)
