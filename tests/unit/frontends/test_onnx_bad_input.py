"""What the ONNX importer refuses, each with its message; and files that are damaged."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed: pip install 'weft[onnx]'")

import onnx
from onnx import ModelProto, TensorProto, helper
from onnx_models import model, node, perceptron

import weft
from weft.tools.weft_cli import execute


def _edited(edit: Callable[[ModelProto], Any]) -> ModelProto:
    proto = perceptron()
    edit(proto)
    return proto


def _of(operator: str, inputs: str = "x", shape: tuple[Any, ...] = (2, 3, 8, 8), **attributes: Any) -> ModelProto:
    weights = {"w": np.zeros((4, 3, 3, 3), np.float32), "i": np.array([0, 1])}
    return model([node(operator, inputs, "y", **attributes)], {"x": shape}, weights=weights)


REFUSED = {
    "several operators": (
        model([node("Foo", "x", "a"), node("Foo", "a", "b"), node("Bar", "b", "y", name="last")], {"x": [2]}),
        r"the model: 3 nodes cannot be imported:\n"
        r"  Foo \(opset 18\): ONNX has no such operator in this opset.*, at node 0, node 1\n"
        r"  Bar \(opset 18\): ONNX has no such operator.*, at last",
    ),
    "an operator of a newer opset": (
        model([node("Gelu", "x", "y")], {"x": [2]}, opset=10),
        r"Gelu \(opset 10\): ONNX has no such operator in this opset",
    ),
    "regions of two numbers": (
        model([node("MaxRoiPool", "x r", "y", pooled_shape=[1, 1])], {"x": (1, 1, 3, 3), "r": (2, 2)}),
        r"input 'rois' must be rows of 5 numbers, got shape \(2, 2\)",
    ),
    "no bins": (
        model([node("MaxRoiPool", "x r", "y", pooled_shape=[0, 1])], {"x": (1, 1, 3, 3), "r": (2, 5)}),
        r"attribute 'pooled_shape' must be 2 positive numbers, got \[0, 1\]",
    ),
    "a newer opset": (model([], {"x": [2]}, opset=999), "uses opset 999 of domain 'ai.onnx': supported are .* 1 to"),
    "no opset": (_edited(lambda m: m.ClearField("opset_import")), "is no ONNX model: it has no graph or no opset"),
    "another domain": (
        model([node("Foo", "x", "y", domain="com.acme")], {"x": [2]}),
        "the model imports no opset of the domain 'com.acme'",
    ),
    "an unknown attribute": (
        _of("Relu", slope=1.0),
        r"Relu \(opset 18\): the operator has no attribute 'slope' in this opset, at node 0",
    ),
    "an attribute of another type": (_of("Conv", "x w", group=1.5), "attribute 'group' is of type int, got float"),
    "an attribute out of range": (_of("Softmax", axis=4), "attribute 'axis' must be -4 to 3, got 4"),
    "another word": (_of("Conv", "x w", auto_pad="ALL"), "attribute 'auto_pad' must be one of NOTSET, .*, got 'ALL'"),
    "too few numbers": (_of("Conv", "x w", strides=[1]), r"attribute 'strides' must be 2 numbers, got \[1\]"),
    "a number that is too small": (_of("Conv", "x w", strides=[0, 1]), "attribute 'strides' must be at least 1"),
    "an attribute that is missing": (_of("MaxPool"), "attribute 'kernel_shape' is missing"),
    "too many inputs": (_of("Relu", "x x"), "the operator has 1 input, got 2"),
    "shapes that do not fit": (_of("Conv", "x w", (2, 5, 8, 8)), r"Conv \(opset 18\): graph\.conv2d"),
    "an output that is not made": (
        model([node("BatchNormalization", "x a a a a", "y b")], {"x": [2, 3], "a": [3]}),
        "output '.*' is not supported",
    ),
    "a cycle": (
        model([node("Add", "x b", "a"), node("Relu", "a", "b"), node("Relu", "b", "y")], {"x": [2]}),
        r"Add \(opset 18\): nothing computes 'b', or only what depends on it \(the graph has a cycle",
    ),
    "an output that nothing computes": (model([], {"x": [2]}), "output: nothing computes 'y'"),
    "strings": (
        _edited(lambda m: setattr(m.graph.input[0].type.tensor_type, "elem_type", TensorProto.STRING)),
        "input of Gemm: elements of type string are not supported, at x",
    ),
    "complex numbers": (
        _edited(lambda m: setattr(m.graph.input[0].type.tensor_type, "elem_type", TensorProto.COMPLEX64)),
        "input of Gemm: elements of type complex64 are not supported, at x",
    ),
    "an input of unknown rank": (
        _edited(lambda m: m.graph.input[0].type.tensor_type.ClearField("shape")),
        r"input of Gemm: the rank is not known: give shapes=\{'x': \(...\)\}, at x",
    ),
    "weights that are too short": (
        _edited(lambda m: setattr(m.graph.initializer[0], "raw_data", b"1234")),
        r"initializer: tensor 'fc1.weight' of shape \(16, 32\) and type float32: cannot reshape",
    ),
    "weights of a negative shape": (
        _edited(lambda m: m.graph.initializer[0].dims.append(-1)),
        r"initializer: a tensor has the negative shape \(16, 32, -1\)",
    ),
    "external weights without a folder": (
        _edited(lambda m: setattr(m.graph.initializer[0], "data_location", TensorProto.EXTERNAL)),
        "need the model as a file, which says where their folder is",
    ),
    "functions that call themselves": (
        model(
            [node("F", "x", "y", domain="local")],
            {"x": [2]},
            domains={"local": 1},
            functions=[
                helper.make_function(
                    "local",
                    "F",
                    ["a"],
                    ["b"],
                    [
                        helper.make_node("F", ["a"], ["c"], domain="local"),
                        helper.make_node("F", ["c"], ["b"], domain="local"),
                    ],
                    [helper.make_opsetid("local", 1)],
                )
            ],
        ),
        "functions within functions become too many nodes",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    proto, message = REFUSED[name]
    with pytest.raises(weft.CompileError) as error:
        weft.from_onnx(proto)
    assert re.search(message, error.value.message, re.DOTALL), error.value.message


def test_options() -> None:
    with pytest.raises(weft.CompileError, match="from_onnx: shapes: the model has no input 'z'"):
        weft.from_onnx(perceptron(), shapes={"z": (1,)})
    with pytest.raises(weft.CompileError, match=r"shapes: axis 1 of 'x' is 16 in the program, got 17"):
        weft.from_onnx(perceptron(), shapes={"x": (1, 17)})
    with pytest.raises(weft.CompileError, match="the input holds float32, but constants gives int64"):
        weft.from_onnx(perceptron(), constants={"x": np.zeros((1, 16), np.int64)})
    library = weft.build(weft.from_onnx(perceptron()))
    with pytest.raises(ValueError, match=r"argument 1 \('x'\): expected shape \(batch, 16\), got shape \(1, 17\)"):
        library["main"](np.zeros((1, 17), np.float32))


@pytest.fixture
def external(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    onnx.save(perceptron(), folder / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    return folder / "m.onnx"


def test_external_weights(external: Path) -> None:
    data = external.with_name("m.data")
    content = data.read_bytes()
    data.write_bytes(content[:100])
    with pytest.raises(weft.CompileError, match=r"'m.data' has 100 bytes, but is read up to 2"):
        weft.parse_file(external)
    data.unlink()
    with pytest.raises(weft.CompileError, match=r"there is no file 'm.data' in the folder of the model"):
        weft.parse_file(external)
    for location in ("../secret", "/etc/passwd", str(data.parent.parent / "secret")):
        (data.parent.parent / "secret").write_bytes(content)
        proto = onnx.load(external, load_external_data=False)
        for tensor in proto.graph.initializer:
            tensor.external_data[0].value = location
        external.write_bytes(proto.SerializeToString())
        with pytest.raises(weft.CompileError, match=f"external data '{location}' are outside of the model's folder"):
            weft.parse_file(external)


def test_links_do_not_lead_out_of_the_folder(external: Path) -> None:
    data = external.with_name("m.data")
    elsewhere = data.rename(data.parent.parent / "elsewhere")
    data.symlink_to(elsewhere)
    with pytest.raises(weft.CompileError, match="are outside of the model's folder"):
        weft.parse_file(external)


def test_files_of_weights(tmp_path: Path) -> None:
    onnx.save(perceptron(), tmp_path / "m.onnx")
    execute(["import", str(tmp_path / "m.onnx")])
    text, weights = tmp_path / "m.mlir", tmp_path / "m.safetensors"
    content = weights.read_bytes()
    for damaged, message in (
        (b"", "is no safetensors file, or is cut off: it has 0 bytes"),
        (content[:40], "is no safetensors file, or is cut off: it has 40 bytes"),
        (content[:-9], r"tensor 'fc.*' of shape .* lies at \d+ to \d+ of \d+ bytes"),
        (content.replace(b'{"fc1', b'[[[[["'), "its index is no JSON"),
        (content.replace(b"fc1_weight", b"fc3_weight"), "has no tensor 'fc1_weight', did you mean 'fc3_weight'"),
        (content.replace(b"[16, 32]", b"[32, 16]"), "tensor 'fc1_weight' of the weights is 32x16 of F32, but"),
        (content.replace(b'"F32"', b'"F31"'), "tensor 'fc1_weight' has no known type, shape and place"),
    ):
        weights.write_bytes(damaged)
        with pytest.raises(weft.CompileError, match=message):
            weft.parse_file(text)
    weights.unlink()
    with pytest.raises(weft.CompileError, match=r"the weights 'm.safetensors' cannot be read: no such file"):
        weft.parse_file(text)
    text.write_text(text.read_text().replace('"m.safetensors"', '"../m.safetensors"'))
    with pytest.raises(weft.CompileError, match=r"the weights '../m.safetensors' are outside of the folder"):
        weft.parse_file(text)


def test_weights_larger_than_memory() -> None:
    proto = perceptron()
    proto.graph.initializer[0].dims[:] = [1 << 20, 1 << 30]
    with pytest.raises(weft.CompileError, match=r"the weights take 4194304\.0 GiB, but this machine has .* GiB"):
        weft.from_onnx(proto)


def test_types_that_a_target_does_not_have() -> None:
    proto = model([node("Exp", "x", "y")], {"x": [4]}, dtype=TensorProto.DOUBLE)
    with pytest.raises(weft.CompileError, match=r"float64|f64|double"):
        weft.build(weft.from_onnx(proto), target="metal").get_source()


def test_no_model(tmp_path: Path) -> None:
    file = tmp_path / "m.onnx"
    file.write_bytes(b"no protobuf at all")
    with pytest.raises(weft.CompileError, match=r"m\.onnx' is no ONNX model: "):
        weft.from_onnx(file)
    with pytest.raises(FileNotFoundError):
        weft.from_onnx(tmp_path / "missing.onnx")
    file.write_bytes(b"")
    with pytest.raises(weft.CompileError, match="it has no graph or no opset"):
        weft.from_onnx(file)


def _models() -> list[bytes]:
    pool = model(
        [
            node("Conv", "x w", "c", pads=[1, 1, 1, 1]),
            node("MaxPool", "c", "p", kernel_shape=[2, 2], strides=[2, 2]),
            node("Shape", "p", "s"),
            node("Gather", "s i", "t"),
            node("Reshape", "p t", "y"),
        ],
        {"x": ["n", 3, 8, 8]},
        weights={"w": np.zeros((4, 3, 3, 3), np.float32), "i": np.array([0, 1, 3, 2])},
    )
    norm = model(
        [node("LayerNormalization", "x g", "z"), node("Split", "z", "y1 y2", num_outputs=2)], {"x": [2, 8], "g": [8]}
    )
    return [proto.SerializeToString() for proto in (perceptron(), pool, norm)]


def _damage(count: int) -> None:
    random = np.random.default_rng(0)
    models = _models()
    for turn in range(count):
        data = bytearray(models[turn % len(models)])
        for _ in range(int(random.integers(1, 4))):
            data[int(random.integers(len(data)))] = int(random.integers(256))
        start = time.process_time()
        with suppress(weft.CompileError):
            weft.from_onnx(bytes(data))
        assert time.process_time() - start < 5.0


def test_damaged_files() -> None:
    _damage(150)


@pytest.mark.slow
def test_many_damaged_files() -> None:
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    _damage(10_000)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500_000  # KiB


def test_what_is_no_model_is_named() -> None:
    wanted = r"from_onnx: argument 'model' must be str or PathLike or bytes or ModelProto, got \(1, 2\) of type tuple"
    with pytest.raises(TypeError, match=wanted):
        weft.from_onnx((1, 2))  # pyright: ignore[reportArgumentType]


def _calls(levels: int) -> ModelProto:
    """Functions that call the one before twice."""
    made = [
        helper.make_function(
            "local",
            f"F{level}",
            ["a"],
            ["b"],
            [
                helper.make_node(f"F{level - 1}" if level else "Relu", [a], [b], domain="local" if level else "")
                for a, b in (("a", "c"), ("c", "b"))
            ],
            [helper.make_opsetid("local", 1), helper.make_opsetid("", 18)],
        )
        for level in range(levels)
    ]
    last = node(f"F{levels - 1}", "x", "y", domain="local")
    return model([last], {"x": [2]}, domains={"local": 1}, functions=made)


def _arithmetic(operator: str, steps: int) -> ModelProto:
    """An extent that grows at each step."""
    nodes = [node("Shape", "x", "s"), node("Gather", "s zero", "a0"), node("Gather", "s one", "b")]
    for step in range(steps):
        if operator == "Mul":
            nodes.append(node("Mul", f"a{step} a{step}", f"a{step + 1}"))
        else:
            nodes += [node("Div", f"a{step} b", f"d{step}"), node("Mod", f"a{step} b", f"m{step}")]
            nodes.append(node("Add", f"d{step} m{step}", f"a{step + 1}"))
    return model([*nodes, node("Identity", f"a{steps}", "y")], {"x": ["n", "m"]}, weights={"zero": 0, "one": 1})


def _mel(bins: int) -> ModelProto:
    weights = {"b": bins, "l": bins, "r": bins, "low": np.float32(0), "high": np.float32(8)}
    return model([node("MelWeightMatrix", "b l r low high", "y")], {}, weights=weights)


def _nested_loops(depth: int) -> ModelProto:
    """Loops whose value grows from step to step, so that they are written out."""
    body: Any = None
    for level in range(depth + 1):
        inner = [node("Concat", "a0 x", "b0", axis=0)]
        if body is not None:
            inner = [helper.make_node("Loop", ["count", "", f"a{level}"], [f"b{level}"], body=body)]
        body = helper.make_graph(
            [*inner, node("Identity", f"in{level}", f"out{level}")],
            f"level{level}",
            [
                helper.make_tensor_value_info(f"i{level}", TensorProto.INT64, []),
                helper.make_tensor_value_info(f"in{level}", TensorProto.BOOL, []),
                helper.make_tensor_value_info(f"a{level}", TensorProto.FLOAT, None),
            ],
            [helper.make_empty_tensor_value_info(name) for name in (f"out{level}", f"b{level}")],
        )
    loop = helper.make_node("Loop", ["count", "", "x"], ["y"], body=body)
    return model([loop], {"x": [2]}, weights={"count": 50})


MISFITS = {
    "a scalar": (_of("Split", shape=(), axis=0, num_outputs=1), "attribute 'axis' is an axis, but the tensor has none"),
    "a vector": (
        model([node("ReverseSequence", "x i", "y")], {"x": [3]}, weights={"i": [1, 2, 3]}),
        "inputs must have rank 2 or more, and rank 1, got 1 and 1",
    ),
    "lengths of sequences that are fewer than these": (
        model([node("ReverseSequence", "x i", "y", batch_axis=0, time_axis=1)], {"x": [2, 3]}, weights={"i": [1]}),
        "input 'sequence_lens' must have a length for each of the 2 elements of axis 0 of the input, got 1",
    ),
    "an input left out": (_of("Relu", "-"), r"Relu \(opset 18\): input 'X' is missing, at node 0"),
    "one of several left out": (_of("Add", "- x"), "input 'A' is missing"),
    "few dilations": (
        _of("ConvTranspose", "x w", dilations=[2]),
        r"attribute 'dilations' must be 2 numbers, got \[2\]",
    ),
    "another kernel": (
        _of("ConvTranspose", "x w", (2, 4, 8, 8), kernel_shape=[3, 2]),
        r"attribute 'kernel_shape' must be that of the weights, \[3, 3\], got \[3, 2\]",
    ),
    "weights of another rank": (_of("Conv", "x w", (2, 3, 8)), "the weights must have rank 3 as the data, got 4"),
    "a word of a function": (
        model(
            [node("SoftmaxCrossEntropyLoss", "x i", "y", reduction="cubic")], {"x": [3, 5]}, weights={"i": [0, 1, 2]}
        ),
        "attribute 'reduction' must be one of none, sum, mean, got 'cubic'",
    ),
    "no text": (_of("Conv", "x w", auto_pad=b"\xff"), "do not fit the operator .UnicodeDecodeError"),
    "parts": (_of("Split", num_outputs=1 << 31), "attribute 'num_outputs' = 2147483648, but the node has 1"),
    "a long sequence": (
        model([node("SplitToSequence", "x", "s"), node("SequenceLength", "s", "y")], {"x": [1 << 31]}),
        "a sequence of up to 2147483648 tensors is too long",
    ),
    "a large matrix": (_mel(1 << 31), "is not computed at import: it is too large"),
    "functions of functions": (_calls(50), "functions within functions become too many nodes: 2251799813685247"),
    "products of products": (_arithmetic("Mul", 64), "an extent of n has more than 512 factors"),
    "quotients of quotients": (_arithmetic("Div", 64), "an extent of m, n has more than 512 factors"),
    "loops of loops": (_nested_loops(3), "functions, loops and branches within others become too many nodes"),
    "Gemm of other ranks": (_of("Gemm", "x x"), "inputs 'A' and 'B' must be matrices, got the ranks 4 and 4"),
    "a rank that fits nothing": (
        model([node("GlobalAveragePool", "x", "a"), node("DFT", "a", "y")], {"x": []}, opset=18),
        r"at node 1|do not fit",
    ),
}


@pytest.mark.parametrize("name", MISFITS)
def test_refused_where_they_do_not_fit(name: str) -> None:
    proto, message = MISFITS[name]
    start = time.process_time()
    with pytest.raises(weft.CompileError) as error:
        weft.from_onnx(proto)
    assert re.search(message, error.value.message, re.DOTALL), error.value.message
    assert time.process_time() - start < 10.0


def test_errors_of_converters_of_users_are_theirs() -> None:
    @weft.onnx.register("", "Relu")
    def wrong(node: Any) -> Any:
        raise IndexError("mine")

    try:
        with pytest.raises(IndexError, match="mine"):
            weft.from_onnx(_of("Relu"))
    finally:
        weft.onnx.unregister("", "Relu")


def test_arguments_of_other_types() -> None:
    for wrong in (5, {"x": 5}, {"x": [1.5]}, {3: (1,)}):
        with pytest.raises(TypeError, match="from_onnx: argument 'shapes' must be a mapping from str"):
            weft.from_onnx(perceptron(), shapes=wrong)  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="argument 'constants' must be a mapping"):
        weft.from_onnx(perceptron(), constants=5)  # pyright: ignore[reportArgumentType]
    for text in ("(" * 5000 + "n" + ")" * 5000, "é", "n *"):
        with pytest.raises(weft.CompileError, match="is no extent: write a name or an expression"):
            weft.from_onnx(perceptron(), shapes={"x": (text, 16)})
    with pytest.raises(weft.CompileError, match="constants gives no array"):
        weft.from_onnx(perceptron(), constants={"x": [[1.0], [2.0, 3.0]]})


def test_names_that_are_no_files(external: Path) -> None:
    proto = onnx.load(external, load_external_data=False)
    link = external.with_name("circle")
    link.symlink_to(link)
    for location in ("circle", "a" * 5000, "a\0b"):
        for tensor in proto.graph.initializer:
            tensor.external_data[0].value = location
        external.write_bytes(proto.SerializeToString())
        with pytest.raises(weft.CompileError, match=r"names no file: |there is no file 'circle'"):
            weft.parse_file(external)
