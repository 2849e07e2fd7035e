"""ONNX files as people have them: graphs in any order, old opsets, sparse constants, weights in other files, folders of
optimum."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed: pip install 'weft[onnx]'")

import onnx
from onnx import ModelProto, helper, numpy_helper
from onnx_models import BOOL, FLOAT, model, node, perceptron

import weft
from weft.support.safetensors import StoredTensor, write_safetensors
from weft.tools.weft_cli import execute

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def _interpreted(proto: Any, *arrays: Any, **options: Any) -> Any:
    return weft.Interpreter(weft.from_onnx(proto, **options)).call("main", *arrays)


def test_nodes_in_any_order() -> None:
    nodes = [node("Add", "b c", "y"), node("Neg", "a", "c"), node("Abs", "a", "b"), node("Sub", "x w", "a")]
    proto = model(nodes, {"x": [2, 3]}, weights={"w": np.float32(2)})
    np.testing.assert_array_equal(_interpreted(proto, X), np.abs(X - 2) - (X - 2))


def test_nodes_whose_graphs_use_later_names() -> None:
    branches = {
        f"{name}_branch": helper.make_graph(
            [node(operator, "late", "out")], name, [], [helper.make_tensor_value_info("out", FLOAT, [2, 3])]
        )
        for name, operator in (("then", "Neg"), ("else", "Abs"))
    }
    nodes = [helper.make_node("If", ["cond"], ["y"], **branches), node("Sub", "x w", "late")]
    proto = model(nodes, {"cond": [], "x": [2, 3]}, weights={"w": np.float32(2)}, types={"cond": BOOL})
    for cond in (True, False):
        found = _interpreted(proto, np.array(cond), X)
        np.testing.assert_array_equal(found, 2 - X if cond else np.abs(X - 2))


def test_order_of_functions() -> None:
    body = [node("Neg", "a", "out"), node("Abs", "in", "a")]
    function = helper.make_function("acme", "F", ["in"], ["out"], body, [helper.make_opsetid("", 18)])
    proto = model([node("F", "x", "y", domain="acme")], {"x": [2, 3]}, domains={"acme": 1}, functions=[function])
    np.testing.assert_array_equal(_interpreted(proto, X - 3), -np.abs(X - 3))


@pytest.mark.parametrize("opset", [7, 9, 11, 13])
def test_initializers_that_are_inputs_of_old_versions(opset: int) -> None:
    weights = {"w": np.ones(3, np.float32)}
    proto = model([node("Add", "x w", "a"), node("Relu", "a", "y")], {"x": [2, 3]}, weights=weights, opset=opset)
    proto.ir_version = 3
    proto.graph.input.insert(0, helper.make_tensor_value_info("w", FLOAT, [3]))
    proto.graph.output[0].ClearField("type")
    proto.graph.ClearField("name")
    np.testing.assert_array_equal(_interpreted(proto, X), X + 1)


@pytest.mark.parametrize("indices", [[1, 5], [[0, 1], [1, 2]]])
def test_sparse_tensors(indices: Any) -> None:
    values = numpy_helper.from_array(np.array([5, 7], np.float32), "c")
    sparse = helper.make_sparse_tensor(values, numpy_helper.from_array(np.array(indices, np.int64), "i"), [2, 3])
    constant = helper.make_node("Constant", [], ["c"], sparse_value=sparse)
    proto = model([constant, node("Add", "x c", "y")], {"x": [2, 3]})
    wanted = X + np.array([[0, 5, 0], [0, 0, 7]])
    np.testing.assert_array_equal(_interpreted(proto, X), wanted)
    proto = model([node("Add", "x c", "y")], {"x": [2, 3]})
    proto.graph.sparse_initializer.append(sparse)
    np.testing.assert_array_equal(_interpreted(proto, X), wanted)


def _sparse(indices: Any, dims: list[int]) -> ModelProto:
    values = numpy_helper.from_array(np.array([5, 7], np.float32), "c")
    sparse = helper.make_sparse_tensor(values, numpy_helper.from_array(np.array(indices, np.int64), "i"), dims)
    return model([helper.make_node("Constant", [], ["y"], sparse_value=sparse)], {})


REFUSED = {
    "two definitions": (
        model([node("Neg", "x", "a"), node("Abs", "x", "a"), node("Relu", "a", "y")], {"x": [2]}),
        "'a' is computed by node 0 and by node 1",
    ),
    "a cycle": (
        model([node("Neg", "x", "y"), node("Abs", "c", "b"), node("Abs", "b", "c")], {"x": [2]}),
        r"Abs \(opset 18\): nothing computes 'c', or only what depends on it \(the graph has a cycle\), at node 1",
    ),
    "a sparse tensor of many zeros": (
        _sparse([0, 1], [1 << 20, 1 << 20]),
        r"sparse tensor 'c' of shape \(1048576, 1048576\) is not made dense: it must have 0 to \d+ elements",
    ),
    "indices outside": (_sparse([0, 9], [2, 3]), r"indices \(2,\) do not fit \(2,\) values"),
    "coordinates outside": (_sparse([[0, 0], [2, 0]], [2, 3]), r"indices \(2, 2\) do not fit \(2,\) values"),
    "a beam search": (
        model([node("BeamSearch", "x", "y", domain="com.microsoft")], {"x": [2]}, domains={"com.microsoft": 1}),
        "com.microsoft.BeamSearch .*: a search generates many tokens: import the decoder in its attribute",
    ),
    "a tokenizer": (
        model([node("Tokenizer", "x", "y", domain="com.microsoft")], {"x": [2]}, domains={"com.microsoft": 1}),
        "com.microsoft.Tokenizer .*: strings are not supported",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    proto, message = REFUSED[name]
    with pytest.raises(weft.CompileError, match=message):
        weft.from_onnx(proto)


def test_fallback_is_named_with_its_cost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    proto = model([node("Bernoulli", "x", "a"), node("Relu", "a", "y")], {"x": [2]})
    cost = (
        "fallback=True (weft import --fallback) imports the model: onnx's reference implementation runs 1 of 4 "
        "operators (RandomUniformLike). They read and write 16 B of the "
    )
    with pytest.raises(weft.CompileError, match=re.escape(cost)):
        weft.from_onnx(proto)
    onnx.save(proto, tmp_path / "m.onnx")
    assert execute(["import", str(tmp_path / "m.onnx"), "--list-operators"]) == 1
    assert capsys.readouterr().out.splitlines()[-1].startswith(cost)
    branch = helper.make_graph(
        [node("Foo", "x", "out")], "branch", [], [helper.make_tensor_value_info("out", FLOAT, [2])]
    )
    proto = model(
        [node("If", "p", "y", then_branch=branch, else_branch=branch)], {"x": [2], "p": []}, types={"p": BOOL}
    )
    for fallback in (False, True):
        with pytest.raises(weft.CompileError, match="Foo") as error:
            weft.from_onnx(proto, fallback=fallback)
        assert "imports the model" not in str(error.value)
    proto = model([node("Attention", "x", "y", domain="com.microsoft")], {"x": [2]}, domains={"com.microsoft": 1})
    with pytest.raises(weft.CompileError) as error:
        weft.from_onnx(proto)
    assert "fallback" not in str(error.value)


def test_operators_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(perceptron(), path)
    assert execute(["import", str(path), "--list-operators"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split() == ["Gemm", "(opset", "18)", "1", "1"]
    assert list(tmp_path.iterdir()) == [path]
    nodes = [node("Neg", "x", "a"), node("Foo", "a", "b"), node("Abs", "b", "c"), node("Abs", "x", "d")]
    onnx.save(model(nodes, {"x": [2]}, "c d"), path)
    assert execute(["import", str(path), "--list-operators"]) == 1
    with pytest.raises(weft.CompileError, match="it takes --shape and --bind, not --fallback"):
        execute(["import", str(path), "--list-operators", "--fallback"])
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines[1:] == [
        "Abs (opset 18) 2 1",
        "1 follow nodes that are refused",
        "Foo (opset 18) 1 0",
        "refused: ONNX has no such operator in this opset, did you mean 'Floor' or 'Loop'?, at node 1",
        "Neg (opset 18) 1 1",
    ]


# Weights in other files, and folders


def _mlp_of(x: Any, weights: dict[str, Any]) -> Any:
    return np.maximum(x @ weights["fc1.weight"] + weights["fc1.bias"], 0) @ weights["fc2.weight"]


def _save_safetensors(path: Path, arrays: dict[str, Any]) -> None:
    stored = {name: StoredTensor("F32", a.shape, memoryview(a.tobytes())) for name, a in arrays.items()}
    write_safetensors(path, stored)


def test_weights_by_name(tmp_path: Path) -> None:
    """Tensors of a file take the place of initializers and of inputs."""
    arrays = {t.name: numpy_helper.to_array(t) * 2 for t in perceptron().graph.initializer}
    x, path = np.random.default_rng(0).standard_normal((3, 16)).astype(np.float32), tmp_path / "w.safetensors"
    _save_safetensors(path, {**arrays, "other": np.zeros(3, np.float32)})
    wanted = _mlp_of(x, arrays)
    np.testing.assert_allclose(_interpreted(perceptron(), x, weights=path), wanted, rtol=1e-4, atol=1e-5)
    proto = perceptron()
    proto.graph.input.extend(
        helper.make_tensor_value_info(t.name, FLOAT, list(t.dims)) for t in proto.graph.initializer
    )
    del proto.graph.initializer[:]
    module = weft.from_onnx(proto, weights=path)
    found = weft.Interpreter(module).call("main", x)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
    onnx.save(proto, tmp_path / "m.onnx")
    command = ["import", str(tmp_path / "m.onnx"), "--bind-weights", str(path)]
    assert execute(command) == 0
    found = weft.Interpreter(weft.parse_file(tmp_path / "m.mlir")).call("main", x)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
    before = path.read_bytes()
    with pytest.raises(weft.CompileError, match="is read: it cannot be the output as well"):
        execute([*command, "--weights", str(path)])
    assert path.read_bytes() == before


def test_weights_that_do_not_fit(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    _save_safetensors(path, {"fc1.bias": np.zeros(31, np.float32)})
    with pytest.raises(weft.CompileError, match=r"'fc1.bias' is float32 of shape \(31,\), but .* \(32,\)"):
        weft.from_onnx(perceptron(), weights=path)
    _save_safetensors(path, {"bias": np.zeros(31, np.float32)})
    with pytest.raises(weft.CompileError, match="has no tensor of the model: its names are 'bias' and so on"):
        weft.from_onnx(perceptron(), weights=path)


def test_weights_far_into_a_file(tmp_path: Path) -> None:
    """The offset of external data does not fit 32 bits; the file has a hole before them."""
    proto, offset = perceptron(), (5 << 30) + 4096
    tensors = {t.name: numpy_helper.to_array(t) for t in proto.graph.initializer}
    with (tmp_path / "m.onnx.data").open("wb") as file:
        for tensor in proto.graph.initializer:
            data = tensors[tensor.name].tobytes()
            file.seek(offset)
            file.write(data)
            tensor.ClearField("raw_data")
            tensor.data_location = onnx.TensorProto.EXTERNAL
            for key, value in (("location", "m.onnx.data"), ("offset", offset), ("length", len(data))):
                tensor.external_data.add(key=key, value=str(value))
            offset += len(data)
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    x = np.ones((2, 16), np.float32)
    np.testing.assert_allclose(_interpreted(tmp_path, x), _mlp_of(x, tensors), rtol=1e-4, atol=1e-5)


def test_folders(tmp_path: Path) -> None:
    with pytest.raises(weft.CompileError, match=r"is a folder, which must hold one \.onnx file: found none"):
        weft.from_onnx(tmp_path)
    for name in ("decoder_model.onnx", "encoder_model.onnx"):
        onnx.save(perceptron(), tmp_path / name)
    with pytest.raises(weft.CompileError, match=r"found 'decoder_model\.onnx', 'encoder_model\.onnx'"):
        weft.from_onnx(tmp_path)
    (tmp_path / "encoder_model.onnx").unlink()
    x = np.ones((2, 16), np.float32)
    np.testing.assert_array_equal(_interpreted(tmp_path, x), _interpreted(perceptron(), x))
    (tmp_path / "hub" / "onnx").mkdir(parents=True)
    for name in ("model", "model_fp16"):
        onnx.save(perceptron(), tmp_path / "hub" / "onnx" / f"{name}.onnx")
    with pytest.raises(weft.CompileError, match=r"found 'onnx/model\.onnx', 'onnx/model_fp16\.onnx'"):
        weft.from_onnx(tmp_path / "hub")
    (tmp_path / "hub" / "onnx" / "model_fp16.onnx").unlink()
    np.testing.assert_array_equal(_interpreted(tmp_path / "hub", x), _interpreted(perceptron(), x))


def test_a_domain_of_one_version_need_not_be_imported() -> None:
    proto = model([node("QuickGelu", "x", "y", domain="com.microsoft", alpha=1.0)], {"x": [2, 3]})
    np.testing.assert_allclose(_interpreted(proto, X), X / (1 + np.exp(-X)), rtol=1e-6)


def _merged() -> ModelProto:
    """A decoder as optimum merges those of the first step, and of others with a cache, into one."""

    def branch(nodes: Any, outputs: str) -> onnx.GraphProto:
        entries = [helper.make_tensor_value_info(name, FLOAT, None) for name in outputs.split()]
        return helper.make_graph(nodes, "branch", [], entries)

    first = branch([node("MatMul", "x w", "k"), node("MatMul", "k w", "l")], "l k")
    others = [node("MatMul", "x w", "k"), node("Concat", "past k", "all", axis=1), node("MatMul", "k w", "l")]
    chosen = helper.make_node(
        "If", ["use_cache_branch"], ["logits", "present"], then_branch=branch(others, "l all"), else_branch=first
    )
    inputs = {"x": ["batch", "length", 4], "past": ["batch", "past_length", 4], "use_cache_branch": [1]}
    weights = {"w": np.eye(4, dtype=np.float32) * 2}
    return model([chosen], inputs, "logits present", weights, types={"use_cache_branch": BOOL})


def test_merged_decoders() -> None:
    """The branch that is bound is the model; without, results have the sizes of the branch that runs."""
    x, past = np.ones((1, 2, 4), np.float32), np.zeros((1, 3, 4), np.float32)
    for uses, length in ((True, 5), (False, 2)):
        bound = {"use_cache_branch": np.array([uses])}
        logits, present = _interpreted(_merged(), x, past, constants=bound)
        np.testing.assert_array_equal(logits, 4 * x)
        assert present.shape == (1, length, 4)
        logits, present = _interpreted(_merged(), x, past, np.array([uses]))
        np.testing.assert_array_equal(logits, 4 * x)
        assert present.shape == (1, length, 4)
