"""Modules that mix a dialect that weft does not know with functions that weft's passes convert: a function stays byte
for byte, or each foreign operation is in an opaque block and the function computes the same.

Foreign operations are interpreted as operations with effects on all memory that they can reach: each updates the
buffers of its function, so that an operation that is moved, dropped, or run another number of times changes results.
"""

from __future__ import annotations

import warnings

import pytest
from foreign_modules import foreign_modules
from tiers import first_tier
from xdsl.context import Context
from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import Float32Type, FloatAttr, IndexType, IntegerAttr, MemRefType, ModuleOp, UnregisteredOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.parser import Parser
from xdsl.rewriter import InsertPoint, Rewriter

from weft.dialects.tir import BlockOp
from weft.dialects.traversal import ancestors, operations_in
from weft.driver.programs import context
from weft.driver.universe import PASSES, load
from weft.interp.compare import Validator
from weft.support.errors import CompileError

MODULES = dict(foreign_modules())
CONVERSIONS = (
    "bufferize-tensors",
    "convert-from-upstream",
    "convert-linalg-to-tir",
    "convert-stablehlo-to-graph",
    "convert-stablehlo-to-te",
    "convert-upstream-to-low",
    "raise-affine-to-tir",
)


def parsed(name: str) -> ModuleOp:
    ctx = context()
    ctx.allow_unregistered = True
    return Parser(ctx, MODULES[name], f"{name}.mlir").parse_module()


def converted(name: str, pass_name: str) -> ModuleOp:
    """The module after a pass; unchanged if the pass refuses it."""
    module = parsed(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            load(PASSES[pass_name])().apply(Context(), module)
        except CompileError:
            assert str(module) == str(parsed(name)), "a refused module is unchanged"
    module.verify()
    return module


def interpreted(module: ModuleOp) -> ModuleOp:
    """The module with foreign operations replaced by updates of the buffers of their function."""
    for op in reversed(operations_in(module)):
        if isinstance(op, UnregisteredOp) and not isinstance(op.parent_op(), ModuleOp):
            _interpret(op)
    for op in list(module.ops):
        if isinstance(op, UnregisteredOp):
            Rewriter.erase_op(op)
    return module


def _interpret(op: UnregisteredOp) -> None:
    if op.op_name.data in ("acme.yield", "acme.end"):
        return
    if op.regions:
        block = op.regions[0].block
        last = block.last_op
        assert last is not None
        results = list(last.operands)
        Rewriter.erase_op(last)
        for inner in list(block.ops):
            inner.detach()
            Rewriter.insert_op(inner, InsertPoint.before(op))
        for old, new in zip(op.results, results, strict=True):
            old.replace_all_uses_with(new)
        Rewriter.erase_op(op)
        return
    around = next((one for one in ancestors(op) if isinstance(one, FuncOp)), None)
    if around is None:
        Rewriter.erase_op(op)
        return
    buffers = [argument for argument in around.args if isinstance(argument.type, MemRefType)]
    number: SSAValue = _insert(op, arith.ConstantOp(FloatAttr(0.5, Float32Type())))
    for operand in op.operands:
        if isinstance(operand.type, Float32Type):
            number = _insert(op, arith.AddfOp(number, operand))
    for buffer in buffers:
        zero = _insert(op, arith.ConstantOp(IntegerAttr(0, IndexType())))
        indices = [zero] * len(buffer.type.get_shape())
        old = _insert(op, memref.LoadOp.get(buffer, indices))
        number = _insert(op, arith.AddfOp(_insert(op, arith.MulfOp(old, number)), old))
        Rewriter.insert_op(memref.StoreOp.get(number, buffer, indices), InsertPoint.before(op))
    for result in op.results:
        value = number
        if isinstance(result.type, IndexType):
            value = _insert(op, arith.ConstantOp(IntegerAttr(3, IndexType())))
        result.replace_all_uses_with(value)
    Rewriter.erase_op(op)


def _insert(before: Operation, op: Operation) -> SSAValue:
    Rewriter.insert_op(op, InsertPoint.before(before))
    return op.results[0]


def _in_block(op: Operation) -> bool:
    return any(isinstance(around, BlockOp) for around in ancestors(op))


@pytest.mark.parametrize("pass_name", CONVERSIONS)
@pytest.mark.parametrize("name", first_tier(MODULES, *list(MODULES)[::12]))
def test_module(name: str, pass_name: str) -> None:
    before, after = parsed(name), converted(name, pass_name)
    texts = {str(op) for op in after.ops}
    changed = [op for op in before.ops if str(op) not in texts]
    assert all(isinstance(op, FuncOp) and not op.is_declaration for op in changed)
    if not changed:
        return
    for function in changed:
        (new,) = [op for op in after.ops if isinstance(op, FuncOp) and op.sym_name.data == function.sym_name.data]
        assert _notes(function) == _notes(new)
        foreign = [op for op in operations_in(function) if isinstance(op, UnregisteredOp)]
        assert all(_in_block(op) for op in operations_in(new) if isinstance(op, UnregisteredOp))
        assert sorted(map(_name, foreign)) == sorted(_name(op) for op in operations_in(new) if _name(op) is not None)
    if "!acme" in str(changed[0].function_type):
        return  # no array is an argument
    if any(isinstance(op, UnregisteredOp) and _in_parallel(op) for op in operations_in(before)):
        return  # several results are right
    validator = Validator(interpreted(before))
    validator.check(pass_name, interpreted(after))
    assert "main" not in validator.skipped


_SCRIPT = """
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %op = transform.structured.match ops{["linalg.exp"]} in %root : (!transform.any_op) -> !transform.any_op
  %t, %l = transform.structured.tile_using_for %op tile_sizes [2] : (!transform.any_op)
    -> (!transform.any_op, !transform.any_op)
  transform.yield
}
func.func @scheduled(%x: memref<4x2xf32>, %y: memref<4x2xf32>) {
  linalg.exp ins(%x : memref<4x2xf32>) outs(%y : memref<4x2xf32>)
  func.return
}
"""


@pytest.mark.parametrize("pass_name", ["weft-transform-interpreter", "convert-transform-to-sched"])
@pytest.mark.parametrize("name", ["tensors-op_on_a_value", "tensors-other_function", "stablehlo-op_before"])
def test_scripts_beside_foreign_functions(name: str, pass_name: str) -> None:
    """Functions with foreign operations stay; the script runs on another one."""
    ctx = context()
    ctx.allow_unregistered = True
    module = Parser(ctx, MODULES[name] + _SCRIPT).parse_module()
    before = [str(op) for op in module.ops if isinstance(op, FuncOp) and "acme" in str(op)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        load(PASSES[pass_name])().apply(Context(), module)
    module.verify()
    after = {op.sym_name.data: str(op) for op in module.ops if isinstance(op, FuncOp)}
    assert before and all(text in after.values() for text in before)
    assert "linalg.exp" not in after["scheduled"]


def _in_parallel(op: Operation) -> bool:
    return any(isinstance(around, scf.ParallelOp) for around in ancestors(op))


def _notes(function: FuncOp) -> list[str]:
    """The foreign attributes of a function and of its parameters."""
    entries = [] if function.arg_attrs is None else [entry.data for entry in function.arg_attrs]
    every = [function.attributes, *entries]
    return [f"{key} = {value}" for one in every for key, value in one.items() if key.startswith("acme.")]


def _name(op: Operation) -> str | None:
    return op.op_name.data if isinstance(op, UnregisteredOp) else None


def test_count() -> None:
    """Several hundred pairs of a module and a pass, of which some are converted and some are not."""
    assert len(MODULES) > 101
