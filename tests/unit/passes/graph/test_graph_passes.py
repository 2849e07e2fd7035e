"""The graph passes from Python: bound parameters, resources, and that every operator is complete."""

from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp, f32
from xdsl.dialects.func import FuncOp, ReturnOp

from weft.dialects.constant_data import elements_of, shared_attribute
from weft.dialects.graph import ConstantOp, dense_value
from weft.dialects.graph_shapes import ShapeError
from weft.driver.parsing import parse_text
from weft.driver.programs import context
from weft.interp.interpreter import Interpreter
from weft.interp.registry import emit_rule
from weft.passes.graph.graph_bind_params import bind_params, load_arrays
from weft.passes.graph.graph_simplify import simplify
from weft.support.errors import CompileError
from weft.texpr.graph_operators import OPERATORS

LINEAR = """
func.func @main(
    %x: tensor<1x?xf32, #graph.dims<m>>, %w: tensor<?x?xf32, #graph.dims<n, m>>, %b: tensor<?xf32, #graph.dims<n>>
) -> tensor<1x?xf32, #graph.dims<n>> {
  %y = graph.dataflow -> tensor<1x?xf32, #graph.dims<n>> {
    %t = graph.transpose %w : tensor<?x?xf32, #graph.dims<n, m>>
    %h = graph.matmul %x, %t : tensor<1x?xf32, #graph.dims<m>>, tensor<?x?xf32, #graph.dims<m, n>>
    %s = graph.add %h, %b : tensor<1x?xf32, #graph.dims<n>>, tensor<?xf32, #graph.dims<n>>
    graph.output %s : tensor<1x?xf32, #graph.dims<n>>
  }
  func.return %y : tensor<1x?xf32, #graph.dims<n>>
}
"""
random = np.random.default_rng(0)
W = random.standard_normal((3, 5), np.float32)
B = random.standard_normal(3, np.float32)
X = random.standard_normal((1, 5), np.float32)


def parse(text: str) -> ModuleOp:
    module = parse_text(context(), text, "test.mlir")
    module.verify()
    return module


def test_bound_parameters_are_constants_and_name_their_extents():
    module = parse(LINEAR)
    bind_params(module, "main", {"w": W, "b": B})
    module.verify()
    text = str(module)
    assert "func.func @main(%x: tensor<1x5xf32>) -> tensor<1x3xf32>" in text
    assert "graph.dims" not in text
    assert "%w = graph.constant dense<[[" in text
    np.testing.assert_allclose(Interpreter(module).call("main", X), X @ W.T + B, rtol=1e-5)


def test_one_bound_parameter_leaves_the_others():
    module = parse(LINEAR)
    bind_params(module, "main", {"b": B})
    module.verify()
    assert "(%x: tensor<1x?xf32, #graph.dims<m>>, %w: tensor<3x?xf32, #graph.dims<m>>) -> tensor<1x3xf32>" in str(
        module
    )
    np.testing.assert_allclose(Interpreter(module).call("main", X, W), X @ W.T + B, rtol=1e-5)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"v": W}, r"@main has no parameter 'v'"),
        ({"w": W.astype(np.float64)}, r"parameter 'w' of @main holds float32 elements, got an array of float64"),
        ({"w": B}, r"parameter 'w' of @main has shape \(n, m\), got an array of shape \(3,\)"),
        ({"x": np.zeros((2, 5), np.float32)}, r"shape \(1, m\), got .* \(2, 5\): dimension 0 is 1, not 2"),
        (
            {"w": W, "b": np.zeros(4, np.float32)},
            r"'n', which other arrays give as 3, but this one has 4",
        ),
    ],
)
def test_arrays_that_do_not_fit(values, message):
    module = parse(LINEAR)
    before = str(module)
    with pytest.raises(CompileError, match=message):
        bind_params(module, "main", values)
    assert str(module) == before


def test_function_that_is_not_there():
    with pytest.raises(CompileError, match=r"the module has no function @mian, did you mean 'main'\?"):
        bind_params(parse(LINEAR), "mian", {})


def test_parameters_from_a_file(tmp_path: Path):
    np.savez(tmp_path / "w.npz", w=W, b=B)
    np.testing.assert_array_equal(load_arrays(str(tmp_path / "w.npz"))["w"], W)
    (tmp_path / "no.npz").write_text("nothing")
    for name in ("no.npz", "missing.npz"):
        with pytest.raises(CompileError, match=f"cannot read arrays from '.*{name}'"):
            load_arrays(str(tmp_path / name))


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.int16, np.int32, np.int64, np.float16, np.float32, np.float64])
def test_constants_of_each_element_type(dtype):
    element = {"b": "i1", "i": f"i{np.dtype(dtype).itemsize * 8}", "f": f"f{np.dtype(dtype).itemsize * 8}"}[
        np.dtype(dtype).kind
    ]
    values = (random.standard_normal((20, 8)) * 50).astype(dtype)
    type_ = f"tensor<20x8x{element}>"
    module = parse(f"func.func @f(%a: {type_}) -> {type_} {{ func.return %a : {type_} }}")
    bind_params(module, "f", {"a": values})
    again = parse(str(module))
    np.testing.assert_array_equal(Interpreter(again).call("f"), values)


def test_resources_of_a_file():
    module = parse("""
func.func @f() -> tensor<2xf32> {
  %c = graph.constant dense_resource<graph_test_c> : tensor<2xf32>
  func.return %c : tensor<2xf32>
}
{-# dialect_resources: { builtin: { graph_test_c: "0x040000000000803F00000040" } } #-}
""")
    np.testing.assert_array_equal(Interpreter(module).call("f"), np.array([1, 2], np.float32))


def test_resources_that_do_not_fit():
    module = parse("""
func.func @f() {
  %c = graph.constant dense_resource<graph_test_short> : tensor<2xf32>
  %d = graph.constant dense_resource<graph_test_none> : tensor<2xf32>
  func.return
}
{-# dialect_resources: { builtin: { graph_test_short: "0x040000000000803F" } } #-}
""")
    constants = [op for op in module.walk() if isinstance(op, ConstantOp)]
    with pytest.raises(CompileError, match=r"resource 'graph_test_short' has 4 bytes, but tensor<2xf32> takes 8"):
        Interpreter(module).call("f")
    with pytest.raises(Exception, match=r"the file gives no data for the resource 'graph_test_none'"):
        dense_value(constants[1])


def test_operators_have_a_meaning_and_are_documented():
    for operator in OPERATORS:
        assert emit_rule(operator.name) is not None
        assert operator.__doc__


def operator_of(name: str):
    return next(operator for operator in OPERATORS if operator.name == f"graph.{name}")


@pytest.mark.parametrize(
    ("operands", "result"),
    [
        (("tensor<?xf32>", "tensor<8xf32>"), "tensor<8xf32>"),
        (("tensor<?xf32>", "tensor<1xf32>"), "tensor<?xf32>"),
        (("tensor<?xf32>", "tensor<?xf32, #graph.dims<n>>"), "tensor<?xf32>"),
        (
            ("tensor<?x1xf32, #graph.dims<n>>", "tensor<?xf32, #graph.dims<2 * m + 1>>"),
            "tensor<?x?xf32, #graph.dims<n, 2 * m + 1>>",
        ),
    ],
)
def test_extents_that_are_unknown_or_computed(operands: tuple[str, str], result: str):
    """An unknown extent fits any other; one computed from names that no operand has is taken as a whole."""
    module = parse(f"func.func @f(%a: {operands[0]}, %b: {operands[1]}) {{ func.return }}")
    assert str(operator_of("add").of(module.body.block.first_op.body.block.args).results[0].type) == result


def test_building_in_python_infers():
    module = parse("func.func @f(%a: tensor<2x3xf32>, %b: tensor<3x4xf32>) { func.return }")
    a, b = module.body.block.first_op.body.block.args
    matmul = operator_of("matmul")
    assert str(matmul.of([a, b]).results[0].type) == "tensor<2x4xf32>"
    with pytest.raises(
        ShapeError, match=r"tensor_a of shape \(3, 4\) has 4 elements in axis 1, tensor_b of shape \(2, 3\) has 2"
    ):
        matmul.of([b, a])


def test_calls_check_that_names_agree():
    interpreter = Interpreter(parse(LINEAR))
    with pytest.raises(ValueError, match=r"'b'\): expected shape \(n,\) with n = 3 \(from axis 0 of 'w'\)"):
        interpreter.call("main", X, W, np.zeros(4, np.float32))


@pytest.mark.parametrize("is_writable", [True, False])
def test_equal_constants_in_memory_of_others_become_one(is_writable: bool):
    weights = random.standard_normal((130, 130), np.float32)
    weights.flags.writeable = is_writable
    shared = shared_attribute(weights, f32)
    assert elements_of(shared).ctypes.data == weights.ctypes.data
    attributes = [shared, shared_attribute(weights.copy(), f32), shared_attribute(weights + 1, f32)]
    a, b, c = constants = [ConstantOp(attribute) for attribute in attributes]
    function = FuncOp("main", ((), [op.result.type for op in constants]))
    function.body.block.add_ops([*constants, ReturnOp(a.result, b.result, c.result)])
    assert simplify(function) == 1
    assert [op for op in function.body.block.ops if isinstance(op, ConstantOp)] == [a, c]
