"""Models are read without the elements of their large tensors, which stay in the file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed: pip install 'weft[onnx]'")

from onnx import ModelProto, TensorProto, helper, numpy_helper
from onnx_models import model, node

import weft
from weft.frontends.onnx.model_file import ModelFile
from weft.frontends.onnx.wire_format import without_elements

W = np.random.default_rng(0).random((200, 130), np.float32)
B = np.arange(130, dtype=np.float32)


@pytest.fixture
def proto() -> ModelProto:
    return model([node("MatMul", "x w", "p"), node("Add", "p b", "y")], {"x": (3, 200)}, weights={"w": W, "b": B})


def test_elements_stay_in_the_file(tmp_path: Path, proto: ModelProto) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(data := proto.SerializeToString())
    file = ModelFile.read(path)
    assert file.model.ByteSize() < len(data) - W.nbytes + 200
    large, small = file.model.graph.initializer
    assert (large.name, large.data_location, large.HasField("raw_data")) == ("w", TensorProto.EXTERNAL, False)
    assert small == proto.graph.initializer[1]
    assert file.others == set()
    del large.external_data[:]
    large.ClearField("data_location")
    large.raw_data = W.tobytes()
    assert file.model == proto
    x = np.ones((3, 200), np.float32)
    np.testing.assert_allclose(weft.build(path)["main"](x), x @ W + B, rtol=1e-5)


def test_a_link_to_a_model_in_another_folder(tmp_path: Path, proto: ModelProto) -> None:
    """As caches of models have them: only files beside the model must lie in its folder."""
    (tmp_path / "blobs").mkdir()
    (tmp_path / "blobs" / "1f2e").write_bytes(proto.SerializeToString())
    link = tmp_path / "m.onnx"
    link.symlink_to(tmp_path / "blobs" / "1f2e")
    x = np.ones((3, 200), np.float32)
    np.testing.assert_allclose(weft.build(link)["main"](x), x @ W + B, rtol=1e-5)


def test_a_weight_that_is_used_twice_is_one_constant(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    nodes = [node("MatMul", "x w", "p"), node("MatMul", "x w", "q"), node("Sub", "p q", "y")]
    path.write_bytes(model(nodes, {"x": (3, 200)}, weights={"w": W}).SerializeToString())
    constants = [op for op in weft.from_onnx(path).walk() if op.name == "graph.constant"]
    first, *others = (op.properties["value"] for op in constants)
    assert all(other is first for other in others)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8", "bool", "int64"])
def test_element_types(tmp_path: Path, dtype: str) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    array = np.arange(70_000).reshape(7, -1) % 2
    tensor = numpy_helper.from_array(array.astype(getattr(ml_dtypes, dtype, dtype)), "w")
    proto = model([node("Cast", "w", "y", to=TensorProto.INT64)], {"x": (1,)})
    proto.graph.initializer.append(tensor)
    path = tmp_path / "m.onnx"
    path.write_bytes(proto.SerializeToString())
    found = weft.build(path)["main"](np.zeros(1, np.float32))
    np.testing.assert_array_equal(found, array)


def test_too_few_elements(tmp_path: Path, proto: ModelProto) -> None:
    proto.graph.initializer[0].raw_data = W[1:].tobytes()
    path = tmp_path / "m.onnx"
    path.write_bytes(proto.SerializeToString())
    message = r"tensor 'w': its elements in 'm.onnx' have 103480 bytes, but \(200, 130\) of float32 takes 104000"
    with pytest.raises(weft.CompileError, match=message):
        weft.from_onnx(path)


def test_what_is_left_as_it_is(proto: ModelProto) -> None:
    """Elements beside the model, those of typed fields, and several graphs, which protobuf would merge."""
    proto.graph.initializer.append(helper.make_tensor("t", TensorProto.FLOAT, W.shape, W.ravel().tolist()))
    proto.graph.initializer[0].data_location = TensorProto.EXTERNAL
    data = proto.SerializeToString()
    assert without_elements(memoryview(data), "m.onnx") == data
    twice = data + ModelProto(graph=proto.graph).SerializeToString()
    assert without_elements(memoryview(twice), "m.onnx") == twice


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\xff" * 11, "a number that does not end"),
        (b"\x08", "a number that does not end"),
        (b"\x3b\x00", "a field of wire type 3"),
        (b"\x3a\x05\x2a", "a field that ends after its message"),
        (b"\x3a\x02\x2a\x05", "a field that ends after its message"),
        (b"\x0d\x00", "a field that ends after its message"),
    ],
)
def test_what_is_no_message(tmp_path: Path, data: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        without_elements(memoryview(data), "m.onnx")
    path = tmp_path / "m.onnx"
    path.write_bytes(data)
    with pytest.raises(weft.CompileError, match="is no ONNX model"):
        weft.from_onnx(path)
