"""ONNX models as graphs: symbolic shapes, files of weights, the commands, converters of users, the fallback."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed: pip install 'weft[onnx]'")

import onnx
from example_scripts import printed_by
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from onnx_models import INT64, model, node, perceptron

import weft
from weft import graph as G
from weft.interp.interpreter import Interpreter
from weft.support.errors import CompileError
from weft.support.safetensors import read_safetensors
from weft.tools.weft_cli import execute

X = np.random.default_rng(1).standard_normal((3, 16), np.float32)


def _expected(x: Any) -> Any:
    first, bias, second = (onnx.numpy_helper.to_array(tensor) for tensor in perceptron().graph.initializer)
    return np.maximum(x @ first + bias, 0) @ second


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    onnx.save(perceptron(), tmp_path / "mlp.onnx")
    np.save(tmp_path / "x.npy", X)
    return tmp_path


def _interpreted(module: Any, *arrays: Any) -> Any:
    return weft.Interpreter(module).call("main", *arrays)


def test_shapes_are_computed_with_symbols() -> None:
    weights = {"zero": np.array(0), "axis": np.array([0]), "rest": np.array([-1, 2]), "two": np.array([2])}
    nodes = [
        node("Shape", "x", "s"),
        node("Gather", "s zero", "n"),
        node("Unsqueeze", "n axis", "nv"),
        node("Mul", "nv two", "twice"),
        node("Concat", "twice rest", "target", axis=0),
        node("Reshape", "x target", "r"),
        node("Shape", "r", "y2"),
        node("Relu", "r", "y"),
    ]
    module = weft.from_onnx(model(nodes, {"x": ["n", 4, 6]}, "y y2", weights))
    assert "tensor<?x6x2xf32, #graph.dims<2 * n>>" in str(module)
    x = np.random.default_rng(0).standard_normal((3, 4, 6), np.float32)
    y, shape = _interpreted(module, x)
    np.testing.assert_array_equal(y, np.maximum(x, 0).reshape(6, 6, 2))
    np.testing.assert_array_equal(shape, [6, 6, 2])


QUOTIENTS = {
    "negative-divisor": ([node("Div", "n d", "y")], {"d": [-2]}),
    "negative-dividend": ([node("Div", "d n", "y")], {"d": [-2]}),
    "zeros": ([node("Concat", "d n", "c", axis=0), node("Div", "c e", "y")], {"d": [0], "e": [2]}),
    "rounded-up": ([node("Neg", "n", "m"), node("Div", "m d", "q"), node("Neg", "q", "y")], {"d": [3]}),
    "difference": ([node("Sub", "n k", "m"), node("Div", "m d", "y")], {"d": [2], "k": [5]}),
    "difference-by-negative": ([node("Sub", "n k", "m"), node("Div", "m d", "y")], {"d": [-2], "k": [5]}),
    "by-difference": ([node("Sub", "n k", "m"), node("Div", "d m", "y")], {"d": [9], "k": [9]}),
    "narrow": (
        [node("Mul", "n d", "m"), node("Cast", "m", "c", to=onnx.TensorProto.INT8), node("Cast", "c", "y", to=INT64)],
        {"d": [100]},
    ),
    "remainder": ([node("Mod", "n d", "y")], {"d": [-2]}),
}


@pytest.mark.parametrize("case", QUOTIENTS)
def test_arithmetic_of_extents_is_that_of_numbers(case: str) -> None:
    """Quotients are rounded toward zero, whatever the signs; narrow integers wrap."""
    nodes, numbers = QUOTIENTS[case]
    weights = {name: np.array(value) for name, value in numbers.items()}
    proto = model([node("Shape", "x", "n", start=0, end=1), *nodes], {"x": ["n", 2]}, "y", weights)
    module = weft.from_onnx(proto)
    for extent in (1, 2, 7):
        x = np.ones((extent, 2), np.float32)
        np.testing.assert_array_equal(_interpreted(module, x), ReferenceEvaluator(proto).run(None, {"x": x})[0])


@pytest.mark.parametrize(("operator", "number"), [("Div", 0), ("Gather", 5), ("Gather", -3)])
def test_undefined_arithmetic_of_extents_is_left_to_the_run(operator: str, number: int) -> None:
    weights = {"d": np.array([number])}
    module = weft.from_onnx(model([node("Shape", "x", "s"), node(operator, "s d", "y")], {"x": ["n", 2]}, "y", weights))
    assert f"graph.{'take' if operator == 'Gather' else 'trunc_divide'}" in str(module)


def test_positions_of_a_symbolic_length() -> None:
    weights = {"at": np.array(1), "start": np.array(0), "step": np.array(1)}
    nodes = [node("Shape", "x", "s"), node("Gather", "s at", "n"), node("Range", "start n step", "places")]
    nodes += [node("Cast", "places", "p", to=onnx.TensorProto.FLOAT), node("Add", "x p", "y")]
    x = np.ones((2, 5), np.float32)
    found = _interpreted(weft.from_onnx(model(nodes, {"x": ["b", "n"]}, weights=weights)), x)
    np.testing.assert_array_equal(found, x + np.arange(5, dtype=np.float32))


def test_shapes_of_users_replace_those_of_the_model() -> None:
    relu = model([node("Relu", "x", "y")], {"x": [None, "width"]})
    assert "tensor<?x?xf32, #graph.dims<x_0, width>>" in str(weft.from_onnx(relu))
    assert "tensor<?x8xf32, #graph.dims<m>>" in str(weft.from_onnx(relu, shapes={"x": ("m", 8)}))


def test_inputs_that_must_be_known_are_bound() -> None:
    sums = model([node("ReduceSum", "x axes", "y", keepdims=0)], {"x": [2, 3]})
    sums.graph.input.append(helper.make_tensor_value_info("axes", INT64, [1]))
    with pytest.raises(
        weft.CompileError, match=r"ReduceSum \(opset 18\): input 'axes' must be known at import"
    ) as error:
        weft.from_onnx(sums)
    assert getattr(error.value, "unbound") == {"axes"}  # noqa: B009
    module = weft.from_onnx(sums, constants={"axes": np.array([1])})
    np.testing.assert_array_equal(_interpreted(module, np.ones((2, 3), np.float32)), [3, 3])


def test_functions_of_the_model_are_written_out() -> None:
    scaled = helper.make_function(
        "local",
        "Scaled",
        ["a"],
        ["b"],
        [helper.make_node("Constant", [], ["c"]), helper.make_node("Mul", ["a", "c"], ["b"])],
        [helper.make_opsetid("", 18)],
        attributes=["factor"],
    )
    scaled.node[0].attribute.append(onnx.AttributeProto(name="value_float", ref_attr_name="factor", type=1))
    proto = model([node("Scaled", "x", "y", factor=3.0, domain="local")], {"x": [4]}, functions=[scaled])
    proto.opset_import.append(helper.make_opsetid("local", 1))
    x = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(_interpreted(weft.from_onnx(proto), x), 3 * x)


def test_converters_of_users() -> None:
    proto = model([node("Scale", "x", "y", factor=0.5, domain="com.acme")], {"x": [4]})
    proto.opset_import.append(helper.make_opsetid("com.acme", 2))

    @weft.onnx.register("com.acme", "Scale", since=2)
    def scale(node: Any) -> Any:
        return G.multiply(node.value(0), node.number("factor"))

    try:
        x = np.arange(4, dtype=np.float32)
        np.testing.assert_array_equal(_interpreted(weft.from_onnx(proto), x), x / 2)
    finally:
        weft.onnx.unregister("com.acme", "Scale")
    with pytest.raises(weft.CompileError, match=r"com\.acme\.Scale \(opset 2\): there is no converter"):
        weft.from_onnx(proto)
    with pytest.raises(weft.CompileError, match=r"there is no converter of Scale in domain 'com.acme'"):
        weft.onnx.unregister("com.acme", "Scale")
    with pytest.raises(weft.CompileError, match="versions are counted from 1, got 0"):
        weft.onnx.register("com.acme", "Scale", since=0)
    with pytest.raises(
        weft.CompileError, match=r"register Scale: a converter has one parameter, the node, got \(node, x\)"
    ):
        weft.onnx.register("com.acme", "Scale")(lambda node, x: x)


def test_fallback_to_the_reference() -> None:
    proto = model([node("Relu", "x", "r"), node("ImageDecoder", "r", "y")], {"x": ["n", 3, 3]}, opset=20)
    with pytest.raises(weft.CompileError, match="fallback: ONNX's shape inference fails"):
        weft.from_onnx(proto, fallback=True)
    constant = node("Constant", "", "y", value=helper.make_tensor("", TensorProto.FLOAT, [0], []))
    constant.attribute[0].t.data_location = TensorProto.EXTERNAL
    with pytest.raises(weft.CompileError, match="fallback: the elements of attribute 'value' are in a file"):
        weft.from_onnx(model([constant], {"x": [1]}), fallback=True)
    nodes = [node("Relu", "x", "r"), node("Det", "r", "d"), node("Neg", "d", "y")]
    module = weft.from_onnx(model(nodes, {"x": ["n", 5, 5]}, opset=20), fallback=True)
    assert 'graph.call_dps "onnx.Det.' in str(module)
    library = weft.build(module)
    found = library["main"](np.stack([2 * np.eye(5), -np.eye(5)]).astype(np.float32))
    np.testing.assert_allclose(found, [-32, 0])
    assert "registered functions, between kernels: onnx.Det." in str(library.report())


def test_weights_in_a_file_beside_the_model(folder: Path) -> None:
    onnx.save(perceptron(), folder / "big.onnx", save_as_external_data=True, location="big.data", size_threshold=0)
    found = _interpreted(weft.parse_file(folder / "big.onnx"), X)
    np.testing.assert_allclose(found, _expected(X), rtol=1e-4, atol=1e-5)


def test_commands(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, text = str(folder / "mlp.onnx"), folder / "mlp.mlir"
    assert execute(["import", source, "-o", str(text)]) == 0
    assert "graph.constant dense_resource<fc1_weight> : tensor<16x32xf32>" in text.read_text()
    tensors = read_safetensors(folder / "mlp.safetensors")
    assert tensors["fc1_weight"].shape == (16, 32)
    module = weft.parse_file(text)
    np.testing.assert_allclose(_interpreted(module, X), _expected(X), rtol=1e-4, atol=1e-5)
    again = weft.parse(str(module).replace("mlp.safetensors", str(folder / "mlp.safetensors")), str(text))
    assert str(again) == str(module).replace("mlp.safetensors", str(folder / "mlp.safetensors"))
    assert execute(["run", source, "--input", str(folder / "x.npy"), "--check", "--output", f"y={folder}/y.npy"]) == 0
    assert "the interpreter" in capsys.readouterr().out
    np.testing.assert_allclose(np.load(folder / "y.npy"), _expected(X), rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_compile_and_profile(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = str(folder / "mlp.onnx")
    library, header = folder / "libmlp.so", folder / "mlp.h"
    assert execute(["compile", source, "-o", str(library), "--header", str(header)]) == 0
    np.testing.assert_allclose(weft.load(library)["main"](X), _expected(X), rtol=1e-4, atol=1e-5)
    assert "main(" in header.read_text()
    assert execute(["profile", source]) == 0  # of a batch of 1
    assert "fused_matmul_add_relu" in capsys.readouterr().out


@pytest.mark.slow
def test_accuracy_of_a_trained_net(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sklearn")
    pytest.importorskip("torch")
    before, after, *_ = printed_by("onnx_digits.py", capsys, monkeypatch).splitlines()
    assert before.split()[1:] == after.split()[1:]
    assert int(after.split()[1]) > 0.97 * 450


def test_the_format_is_that_of_safetensors(folder: Path) -> None:
    safetensors = pytest.importorskip("safetensors.numpy")
    execute(["import", str(folder / "mlp.onnx")])
    for name, array in safetensors.load_file(folder / "mlp.safetensors").items():
        expected = {t.name.replace(".", "_"): t for t in perceptron().graph.initializer}[name]
        np.testing.assert_array_equal(array, onnx.numpy_helper.to_array(expected))


def _graph(name: str, nodes: Any, inputs: Any, outputs: Any) -> Any:
    def entries(names: Any) -> Any:
        return [helper.make_tensor_value_info(entry, *type_) for entry, type_ in names.items()]

    return helper.make_graph(nodes, name, entries(inputs), entries(outputs))


def test_loops_and_branches() -> None:
    """A loop of a symbolic number of steps around a branch, which uses values of the model and of the loop."""
    state = (onnx.TensorProto.FLOAT, [4])
    then = _graph("then", [node("Add", "a x", "t")], {}, {"t": state})
    otherwise = _graph("else", [node("Mul", "a half", "e")], {}, {"e": state})
    body = [
        node("ReduceSum", "a", "total", keepdims=0),
        node("Less", "total limit", "small"),
        node("If", "small", "b", then_branch=then, else_branch=otherwise),
        node("Identity", "more", "again"),
    ]
    loop = _graph(
        "body",
        body,
        {"step": (INT64, []), "more": (onnx.TensorProto.BOOL, []), "a": state},
        {"again": (onnx.TensorProto.BOOL, []), "b": state},
    )
    weights = {"at": np.array(0), "limit": np.float32(10), "half": np.float32(0.5)}
    nodes = [node("Shape", "z", "s"), node("Gather", "s at", "n"), node("Loop", "n - x", "y", body=loop)]
    module = weft.from_onnx(model(nodes, {"x": [4], "z": ["n"]}, weights=weights))
    x, z = np.ones(4, np.float32), np.ones(5, np.float32)
    expected = x
    for _ in range(5):
        expected = expected + x if expected.sum() < 10 else expected * np.float32(0.5)
    np.testing.assert_array_equal(_interpreted(module, x, z), expected)
    np.testing.assert_array_equal(weft.build(module)["main"](x, z), expected)


def test_loops_whose_values_grow_are_written_out() -> None:
    of_any = (onnx.TensorProto.FLOAT, None)
    loop = _graph(
        "body",
        [node("Concat", "a x", "b", axis=0), node("Identity", "more", "again")],
        {"step": (INT64, []), "more": (onnx.TensorProto.BOOL, []), "a": of_any},
        {"again": (onnx.TensorProto.BOOL, []), "b": of_any},
    )
    module = weft.from_onnx(model([node("Loop", "n - x", "y", body=loop)], {"x": [2]}, weights={"n": np.array(3)}))
    np.testing.assert_array_equal(_interpreted(module, np.array([1, 2], np.float32)), [1, 2] * 4)


def test_conditions_of_loops_that_depend_on_data_are_refused() -> None:
    loop = _graph(
        "body",
        [node("Add", "a a", "b"), node("ReduceMax", "b", "m", keepdims=0), node("Less", "m limit", "again")],
        {"step": (INT64, []), "more": (onnx.TensorProto.BOOL, []), "a": (onnx.TensorProto.FLOAT, [2])},
        {"again": (onnx.TensorProto.BOOL, []), "b": (onnx.TensorProto.FLOAT, [2])},
    )
    weights = {"n": np.array(100), "limit": np.float32(10)}
    with pytest.raises(weft.CompileError, match="a condition of the attribute 'body' that depends on data"):
        weft.from_onnx(model([node("Loop", "n - x", "y", body=loop)], {"x": [2]}, weights=weights))


def _of_sequence(operator: str, **attributes: Any) -> onnx.ModelProto:
    proto = model([node(operator, "xs", "y", **attributes)], {"xs": []})
    tensor = helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, None)
    proto.graph.input[0].type.CopyFrom(helper.make_sequence_type_proto(tensor))
    return proto


def test_sequences_are_as_many_parameters() -> None:
    proto = _of_sequence("ConcatFromSequence", axis=0)
    with pytest.raises(weft.CompileError, match=r"the length of the sequence is not known: give shapes=\{'xs': \["):
        weft.from_onnx(proto)
    with pytest.raises(weft.CompileError, match=r"the input is a sequence: give the axes of each of its tensors"):
        weft.from_onnx(proto, shapes={"xs": (2, 3)})
    assert "%xs1: tensor<2x3xf32>" in str(weft.from_onnx(proto, shapes={"xs": "1x3,2x3"}))
    module = weft.from_onnx(proto, shapes={"xs": [("n", 2), (1, 2)]})
    assert "@main(%xs0: tensor<?x2xf32, #graph.dims<n>>, %xs1: tensor<1x2xf32>)" in str(module)
    one, other = np.ones((3, 2), np.float32), np.zeros((1, 2), np.float32)
    np.testing.assert_array_equal(_interpreted(module, one, other), np.concatenate([one, other]))
    with pytest.raises(weft.CompileError, match="the input is a tensor, whose axes are numbers, names and ranges"):
        weft.from_onnx(perceptron(), shapes={"x": [(1, 16)]})
    with pytest.raises(
        weft.CompileError, match=r"SequenceAt .*: input 'position' = 2 is out of range of a sequence of 2"
    ):
        at = _of_sequence("SequenceAt")
        at.graph.node[0].input.append("place")
        at.graph.initializer.append(onnx.numpy_helper.from_array(np.array(2), "place"))
        weft.from_onnx(at, shapes={"xs": [(1,), (1,)]})


def test_optionals_without_a_value() -> None:
    proto = model([node("OptionalHasElement", "x", "y")], {"x": [2]})
    kind = helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, [2])
    proto.graph.input[0].type.CopyFrom(helper.make_optional_type_proto(kind))
    assert not _interpreted(weft.from_onnx(proto, shapes={"x": None}))
    assert _interpreted(weft.from_onnx(proto), np.zeros(2, np.float32))
    proto.graph.node[0].op_type = "OptionalGetElement"
    with pytest.raises(weft.CompileError, match="input 'input' is an optional without a value"):
        weft.from_onnx(proto, shapes={"x": None})


TREES = {
    "nodes_treeids": [0, 0, 0, 0, 0, 1, 1, 1],
    "nodes_nodeids": [0, 1, 2, 3, 4, 0, 1, 2],
    "nodes_featureids": [0, 1, 0, 0, 0, 2, 0, 0],
    "nodes_values": [0.1, -0.3, 0.0, 0.0, 0.0, 0.2, 0.0, 0.0],
    "nodes_modes": ["BRANCH_LEQ", "BRANCH_LT", "LEAF", "LEAF", "LEAF", "BRANCH_GT", "LEAF", "LEAF"],
    "nodes_truenodeids": [1, 3, 0, 0, 0, 1, 0, 0],
    "nodes_falsenodeids": [2, 4, 0, 0, 0, 2, 0, 0],
}
LEAVES = {"treeids": [0, 0, 0, 1, 1], "nodeids": [2, 3, 4, 1, 2], "weights": [1.0, 2.0, 3.0, 4.0, 5.0]}
ML: dict[str, dict[str, Any]] = {
    "Scaler": {"offset": [0.5, 1.0, -1.0], "scale": [2.0, 0.5, 1.0]},
    "Normalizer": {"norm": "L2"},
    "Imputer": {"imputed_value_floats": [1.0, 2.0, 3.0], "replaced_value_float": 0.0},
    "LinearRegressor": {"coefficients": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "intercepts": [0.5, -0.5], "targets": 2},
    "LinearClassifier": {
        "coefficients": [1.0, -2.0, 3.0, 4.0, 5.0, -6.0, 0.5, 0.5, 0.5],
        "intercepts": [0.5, -0.5, 0.0],
        "classlabels_ints": [7, 3, 5],
        "post_transform": "SOFTMAX",
    },
    "LabelEncoder": {"keys_floats": [0.0, 1.5], "values_int64s": [4, 9], "default_int64": -1},
    "TreeEnsembleRegressor": {
        **TREES,
        **{f"target_{name}": values for name, values in LEAVES.items()},
        "target_ids": [0, 1, 0, 1, 1],
        "n_targets": 2,
        "base_values": [0.25, -0.5],
    },
    "TreeEnsembleClassifier": {
        **TREES,
        **{f"class_{name}": values for name, values in LEAVES.items()},
        "class_ids": [0, 1, 2, 0, 2],
        "classlabels_int64s": [10, 20, 30],
    },
}


@pytest.mark.parametrize("operator", ML)
def test_traditional_operators(operator: str) -> None:
    """As ONNX's reference computes them."""
    from onnx.reference import ReferenceEvaluator

    outputs = "y z" if operator.endswith("Classifier") else "y"
    proto = model([node(operator, "x", outputs, domain="ai.onnx.ml", **ML[operator])], {"x": ["n", 3]}, outputs)
    proto.opset_import.append(helper.make_opsetid("ai.onnx.ml", 3))
    x = np.random.default_rng(2).standard_normal((16, 3), np.float32)
    x[:4] = np.array([[0, 1.5, 0.1], [0.1, -0.3, 0.2], [0, 0, 0], [0.1, 1.5, 0.2]], np.float32)
    x[2] += 0.0 if operator != "Normalizer" else 1.0
    module = weft.from_onnx(proto)
    is_compiled = operator == "TreeEnsembleRegressor"
    found = weft.build(module)["main"](x) if is_compiled else _interpreted(module, x)
    expected: Any = ReferenceEvaluator(proto).run(None, {"x": x})
    for got, wanted in zip(found if isinstance(found, tuple) else (found,), expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


def test_remainders_of_floats() -> None:
    """Exact, for quotients of any size."""
    for truncates, expected in ((1, np.fmod), (0, np.mod)):
        module = weft.from_onnx(model([node("Mod", "x z", "y", fmod=truncates)], {"x": [7], "z": [7]}, opset=28))
        x = np.array([7.5, -7.5, 1e8, 5.3, -5.3, np.inf, 3.0], np.float32)
        z = np.array([2.0, 2.0, 0.3, -0.1, np.inf, 2.0, 0.0], np.float32)
        with np.errstate(invalid="ignore"):
            np.testing.assert_array_equal(_interpreted(module, x, z), expected(x, z))
            large = np.full(7, 1e30, np.float32)
            np.testing.assert_array_equal(_interpreted(module, large, z), expected(large, z))


def _checked(proto: onnx.ModelProto, *arrays: Any) -> None:
    """A model gives what the reference of ONNX gives."""
    found = weft.build(weft.from_onnx(proto), target="llvm -num-threads=1 -opt-level=0")["main"](*arrays)
    names = [entry.name for entry in proto.graph.input]
    wanted = ReferenceEvaluator(proto).run(None, dict(zip(names, arrays, strict=True)))
    for one, other in zip(found if isinstance(found, tuple) else (found,), wanted, strict=True):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        np.testing.assert_allclose(one, other, rtol=1e-5)


def test_names_of_extents_are_any_text() -> None:
    nodes = [node("Transpose", "x", "t", perm=[1, 0]), node("Add", "t z", "y")]
    proto = model(nodes, {"x": ["é", "è"], "z": ["è", "é"]})
    _checked(proto, np.ones((3, 4), np.float32), np.ones((4, 3), np.float32))
    library = weft.build(weft.from_onnx(proto))
    with pytest.raises(ValueError, match=r"argument 2 \('z'\): expected shape"):
        library["main"](np.ones((3, 4), np.float32), np.ones((4, 4), np.float32))
    # A name of the model is not that of another extent without a name.
    proto = model([node("Relu", "x", "y1"), node("Relu", "z", "y2")], {"x": [None], "z": ["x_0", "?", "?"]}, "y1 y2")
    _checked(proto, np.ones(3, np.float32), np.ones((2, 4, 5), np.float32))


@pytest.mark.parametrize("text", ["a*b", "a - b", "min(a, b)", "n*n", "-n"])
def test_expressions_over_names_that_no_axis_determines_are_names(text: str) -> None:
    nodes = [node("Add", "x z", "y")]
    proto = model(nodes, {"x": [text], "z": [text]})
    _checked(proto, np.ones(6, np.float32), np.ones(6, np.float32))
    with pytest.raises(
        ValueError, match=r"argument 2 \('z'\): expected shape .* = 6 \(from axis 0 of 'x'\), got shape \(5,\)"
    ):
        weft.build(weft.from_onnx(proto))["main"](np.ones(6, np.float32), np.ones(5, np.float32))


@pytest.mark.parametrize("operator", ["Mean", "L1", "L2", "SumSquare", "Prod"])
@pytest.mark.parametrize("dtype", ["int64", "int32", "uint32", "uint64"])
def test_reductions_of_integers(operator: str, dtype: str) -> None:
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    proto = model(
        [node(f"Reduce{operator}", "x a", "y", keepdims=0)], {"x": ["n", 3]}, weights={"a": [0]}, dtype=element
    )
    array = np.array([[1, 7, 2], [4, 3, 9]], dtype) - (0 if dtype[0] == "u" else 5)
    if (operator, dtype) not in (("SumSquare", "int32"), ("SumSquare", "uint32")):  # the reference widens them
        _checked(proto, array.astype(dtype))
    library = weft.build(weft.from_onnx(proto), target="llvm -num-threads=1 -opt-level=0")
    assert library["main"](array.astype(dtype)).dtype == dtype


def test_logarithms_of_integers_are_rounded_to_zero() -> None:
    nodes = [node("ReduceLogSum", "x", "y1", keepdims=0), node("ReduceLogSumExp", "x", "y2", keepdims=0)]
    main = weft.build(weft.from_onnx(model(nodes, {"x": ["n"]}, "y1 y2", dtype=INT64)))["main"]
    assert [int(found) for found in main(np.array([3, 4, 5]))] == [2, 5]


def test_indices_of_a_smaller_shape() -> None:
    x = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
    for axis, shape in ((1, (2, 3, 5)), (-1, (3, 2, 7)), (0, (5, 4, 1)), (2, (1, 1, 1))):
        indices = np.arange(np.prod(shape)).reshape(shape) % x.shape[axis] - 1
        proto = model([node("GatherElements", "x i", "y", axis=axis)], {"x": [3, 4, 5]}, weights={"i": indices})
        first = x[tuple(slice(None if d == axis % 3 else extent) for d, extent in enumerate(shape))]
        found = weft.build(weft.from_onnx(proto), target="llvm -num-threads=1 -opt-level=0")["main"](x)
        np.testing.assert_array_equal(found, np.take_along_axis(first, indices % x.shape[axis], axis))
        updates = np.ones(shape, np.float32)
        if all(extent <= other for extent, other in zip(shape, x.shape, strict=True)):
            scatter = [node("ScatterElements", "x i u", "y", axis=axis, reduction="add")]
            _checked(model(scatter, {"x": [3, 4, 5]}, weights={"i": indices, "u": updates}), x)
    weights = {"i": np.zeros((2, 1, 3), int), "u": np.ones((2, 1, 3), np.float32)}
    for axis in (0, 1, 2):
        nodes = [node("ScatterElements", "x i u", "y", axis=axis)]
        _checked(model(nodes, {"x": ["n", "m", 4]}, weights=weights), np.zeros((3, 2, 4), np.float32))
        proto = model([node("GatherElements", "x i", "y", axis=axis)], {"x": ["n", "m", 4]}, weights=weights)
        main = weft.build(weft.from_onnx(proto), target="llvm -num-threads=1 -opt-level=0")["main"]
        part = tuple(slice(None if d == axis else extent) for d, extent in enumerate((2, 1, 3)))
        found = main(sized := np.arange(24, dtype=np.float32).reshape(3, 2, 4))
        np.testing.assert_array_equal(found, np.take_along_axis(sized[part], weights["i"], axis))
    proto = model([node("GatherElements", "x i", "y", axis=1)], {"x": [3, 5]}, weights={"i": np.zeros((4, 1), int)})
    with pytest.raises(CompileError, match=r"GatherElements .*: the indices have at most the extents of the data"):
        weft.from_onnx(proto)


def test_sorts_of_symbolic_axes() -> None:
    for axis, shape in ((0, ["n", 3]), (-2, ["m", "n", 2])):
        nodes = [
            node("TopK", "x k", "v i", axis=axis, largest=0),
            node("Hardmax", "x", "h", axis=axis),
            node("ArgMax", "x", "a", axis=axis, select_last_index=1),
        ]
        proto = model(nodes, {"x": shape}, "v i h a", weights={"k": [3]})
        sizes = [{"n": 5, "m": 3}.get(str(extent), extent) for extent in shape]
        _checked(proto, np.random.default_rng(0).integers(0, 4, sizes).astype(np.float32))


def test_halves_of_symbolic_axes() -> None:
    proto = model([node("Split", "x", "a b", axis=1, num_outputs=2)], {"x": [2, "n"]}, "a b")
    for extent in (0, 1, 4, 5):
        _checked(proto, np.arange(2 * extent, dtype=np.float32).reshape(2, extent))


@pytest.mark.parametrize("dtype", ["float32", "bool", "uint8", "float16", "bfloat16"])
def test_scalar_constants_in_files(tmp_path: Path, dtype: str) -> None:
    types = pytest.importorskip("ml_dtypes")
    kind = np.dtype(types.bfloat16 if dtype == "bfloat16" else dtype)
    element = helper.np_dtype_to_tensor_dtype(kind)
    operator = "And" if dtype == "bool" else "Mul"
    for at, shape in enumerate(((), (1, 1), (0,), (2,))):
        proto = model([node(operator, "x c", "y")], {"x": [1]}, weights={"c": np.ones(shape, kind)}, dtype=element)
        onnx.save(proto, tmp_path / f"m{at}.onnx")
        assert execute(["import", str(tmp_path / f"m{at}.onnx")]) == 0
        module = weft.parse_file(tmp_path / f"m{at}.mlir")
        assert Interpreter(module).call("main", np.ones(1, "uint16" if dtype == "bfloat16" else kind)).shape == (
            shape if shape else (1,)
        )


def test_conditions_name_the_nodes() -> None:
    pads = np.array([2, 3])
    nodes = [node("Pad", "x p", "h", mode="reflect", name="/stem/pad"), node("Relu", "h", "y", name="/stem/relu")]
    function = weft.build(weft.from_onnx(model(nodes, {"x": ["n"]}, weights={"p": pads})))["main"]
    x = np.arange(5, dtype=np.float32)
    np.testing.assert_array_equal(function(x), np.pad(x, pads, mode="reflect"))
    wanted = r"n must be at least 4, got 3 \(axis 0 of 'x'\): block \"pad\" reads x .*, at /stem/pad, /stem/relu"
    with pytest.raises(ValueError, match=wanted):
        function(x[:3])


def test_stated_shapes_specialise_the_model() -> None:
    proto = model([node("Add", "x z", "y")], {"x": ["n", "m"], "z": ["n", "m"]})
    text = str(weft.from_onnx(proto, shapes={"x": "b:1..4 x 8"}))
    assert "@main(%x: tensor<?x8xf32, #graph.dims<b>>, %z: tensor<?x8xf32, #graph.dims<b>>)" in text
    assert "its stated range is 1..4" in text
    assert "tensor<?x?xf32, #graph.dims<n, n>>" in str(weft.from_onnx(proto, shapes={"x": "nxn"}))
    static = model([node("Relu", "x", "y")], {"x": [1, 8]})
    assert "tensor<?x8xf32, #graph.dims<n>>" in str(weft.from_onnx(static, shapes={"x": "n x 8"}))
    with pytest.raises(weft.CompileError, match="shapes: 'm' is 8 by axis 1 of 'x', but 9 by axis 1 of 'z'"):
        weft.from_onnx(proto, shapes={"x": "nx8", "z": "nx9"})


def test_operators_of_old_versions() -> None:
    """TopK with its number as an attribute, Hardmax over all axes from one on, RoiAlign without half a pixel, and
    activations that an LSTM repeats for its other direction."""

    def of(operator: str, opset: int, inputs: dict[str, Any], outputs: str, **attributes: Any) -> list[Any]:
        shapes = {name: array.shape for name, array in inputs.items()}
        types = {name: INT64 for name, array in inputs.items() if array.dtype == np.int64}
        made = node(operator, " ".join(inputs), outputs, **attributes)
        proto = model([made], shapes, outputs, opset=opset, types=types)
        found = _interpreted(weft.from_onnx(proto), *inputs.values())
        return list(found) if isinstance(found, tuple | list) else [found]

    x = np.random.default_rng(2).standard_normal((2, 3, 4)).astype(np.float32)
    values, places = of("TopK", 9, {"x": x}, "y i", k=2, axis=1)
    np.testing.assert_array_equal(places, np.argsort(-x, 1)[:, :2])
    np.testing.assert_array_equal(values, np.take_along_axis(x, places, 1))
    (found,) = of("Hardmax", 11, {"x": x}, "y", axis=1)
    np.testing.assert_array_equal(found.reshape(2, 12), np.eye(12)[x.reshape(2, 12).argmax(1)])
    (found,) = of("Hardmax", 13, {"x": x}, "y", axis=1)
    np.testing.assert_array_equal(found.argmax(1), x.argmax(1))
    boxes = {"r": np.array([[0, 0, 3, 3], [1, 0, 2, 3]], np.float32), "b": np.array([0, 1])}
    sizes = {"output_height": 2, "output_width": 2}
    old, new = (
        of("RoiAlign", opset, {"x": x[:, None], **boxes}, "y", **sizes, **options)[0]
        for opset, options in ((10, {}), (16, {"coordinate_transformation_mode": "output_half_pixel"}))
    )
    np.testing.assert_array_equal(old, new)
    rois = np.array([[1, 0, 0.5, 2, 2.5], [0, 1, 1, 9, 9], [0, 7, 7, 8, 8]], np.float32)
    (found,) = of("MaxRoiPool", 1, {"x": x[:, None], "r": rois}, "y", pooled_shape=[2, 1])
    # Rows and columns from 0.5 on are those from 1 on, and ends belong to a region; the last one is outside.
    pooled = [[x[1, 1:3, :3].max(), x[1, 2:4, :3].max()], [x[0, 1:, 1:].max(), 0], [0, 0]]
    np.testing.assert_array_equal(found[:, 0, :, 0], pooled)
    weights = {"w": np.ones((2, 8, 4), np.float32) / 4, "r": np.ones((2, 8, 2), np.float32) / 2}
    words = ["Sigmoid", "Tanh", "Tanh"]
    both = {"hidden_size": 2, "direction": "bidirectional"}
    (usual,) = of("LSTM", 7, {"x": x, **weights}, "y", **both)
    (given,) = of("LSTM", 7, {"x": x, **weights}, "y", activations=words * 2, **both)
    np.testing.assert_array_equal(given, usual)
    (mixed,) = of("LSTM", 7, {"x": x, **weights}, "y", activations=[*words, "Relu", "Tanh", "Tanh"], **both)
    np.testing.assert_array_equal(mixed[:, 0], usual[:, 0])
    assert np.abs(mixed[:, 1] - usual[:, 1]).max() > 0.01


ACTIVATIONS: dict[str, tuple[int, Any]] = {
    "Affine": (2, lambda x, a, b: a * x + b),
    "LeakyRelu": (1, lambda x, a: np.where(x < 0, a * x, x)),
    "ThresholdedRelu": (1, lambda x, a: np.where(x > a, x, 0)),
    "ScaledTanh": (2, lambda x, a, b: a * np.tanh(b * x)),
    "HardSigmoid": (2, lambda x, a, b: np.clip(a * x + b, 0, 1)),
    "Elu": (1, lambda x, a: np.where(x < 0, a * np.expm1(x), x)),
    "Softsign": (0, lambda x: x / (1 + np.abs(x))),
    "Softplus": (0, lambda x: np.log1p(np.exp(x))),
}


@pytest.mark.parametrize("word", ACTIVATIONS)
def test_activations_of_recurrent_networks(word: str) -> None:
    """Activations with parameters for each direction, interpreted and compiled."""
    count, apply = ACTIVATIONS[word]
    generator = np.random.default_rng(1)
    x, w = (
        generator.standard_normal((1, 5, 4)).astype("float32"),
        generator.standard_normal((2, 4, 4)).astype("float32"),
    )
    weights = {"x": x, "w": w, "r": np.zeros((2, 4, 4), np.float32)}
    parameters = {"activation_alpha": [0.4, 0.7], "activation_beta": [0.3, 0.6]}
    given = dict(list(parameters.items())[:count])
    made = node("RNN", "x w r", "y", hidden_size=4, direction="bidirectional", activations=[word, word], **given)
    program = weft.from_onnx(model([made], {name: array.shape for name, array in weights.items()}, "y", opset=14))
    products = [x[0].astype(float) @ w[d].T for d in range(2)]
    expected = np.stack([apply(products[d], *(values[d] for values in given.values())) for d in range(2)])[None]
    for found in (_interpreted(program, *weights.values()), weft.build(program)["main"](*weights.values())):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("attributes", "message"),
    (
        ({"activations": ["Gelu"]}, "attribute 'activations' has no activation 'Gelu'; known: affine, elu"),
        ({"activations": ["Affine"]}, "activation 'Affine' needs activation_alpha"),
        ({"activations": ["Elu"], "activation_alpha": [1.0, 2.0]}, "'activation_alpha' has 1 values more than"),
        ({"activation_beta": [1.0]}, "'activation_alpha' and 'activation_beta' need 'activations'"),
    ),
)
def test_wrong_activations(attributes: dict[str, Any], message: str) -> None:
    shapes = {"x": (1, 2, 3), "w": (1, 4, 3), "r": (1, 4, 4)}
    made = node("RNN", "x w r", "y", hidden_size=4, **attributes)
    with pytest.raises(CompileError, match=message):
        weft.from_onnx(model([made], shapes, "y", opset=14))
