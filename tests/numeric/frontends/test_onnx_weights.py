"""ONNX models with weights of 2, 4 and 8 bits: MatMulNBits, and DequantizeLinear in blocks before products."""

from typing import Any

import numpy as np
import pytest

import weft
from weft.interp.interpreter import Interpreter

onnx = pytest.importorskip("onnx")
helper, numpy_helper = onnx.helper, onnx.numpy_helper
ROWS, DEPTH, COLUMNS = 3, 44, 20


def model(nodes: list[Any], constants: dict[str, Any], dtype: int = onnx.TensorProto.FLOAT) -> Any:
    info = helper.make_tensor_value_info
    inputs, outputs = info("x", dtype, [ROWS, DEPTH]), info("y", dtype, [ROWS, COLUMNS])
    initializers = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "g", [inputs], [outputs], initializers)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def nbits(constants: dict[str, Any], inputs: list[str], **attributes: Any) -> Any:
    options = {"K": DEPTH, "N": COLUMNS, "bits": 4, "block_size": 16, **attributes}
    return model([helper.make_node("MatMulNBits", ["x", *inputs], ["y"], domain="com.microsoft", **options)], constants)


def data() -> Any:
    return np.random.default_rng(1).standard_normal((ROWS, DEPTH)).astype("float32")


def run(given: Any) -> Any:
    return weft.build(weft.from_onnx(given), target="llvm -num-threads=1")["main"](data())


def unpacked(data: Any, bits: int, count: int) -> Any:
    """The first integers of each row of bytes."""
    parts = [(data >> at) & ((1 << bits) - 1) for at in range(0, 8, bits)]
    return np.stack(parts, -1).reshape(COLUMNS, -1)[:, :count]


@pytest.mark.parametrize(("bits", "is_grouped"), ((2, False), (4, False), (8, False), (2, True), (4, True), (8, True)))
@pytest.mark.parametrize("zero", ("", "packed", "float"))
def test_matmul_nbits(bits: int, is_grouped: bool, zero: str) -> None:
    """Groups of consecutive rows, and of the rows that `g_idx` lists."""
    generator = np.random.default_rng(bits)
    blocks = -(-DEPTH // 16)
    weight = generator.integers(0, 256, (COLUMNS, blocks, 16 * bits // 8), np.uint8)
    scales = generator.uniform(-1.0, 1.0, (COLUMNS, blocks)).astype("float32")
    constants, inputs = {"w": weight, "s": scales if zero else scales.reshape(-1)}, ["w", "s"]
    zeros: Any = np.full((COLUMNS, blocks), 1 << (bits - 1))
    if zero == "packed":
        stored = generator.integers(0, 256, (COLUMNS, -(-blocks * bits // 8)), np.uint8)
        zeros = unpacked(stored, bits, blocks)
        constants["z"], inputs = stored, [*inputs, "z"]
    if zero == "float":
        zeros = generator.uniform(0, 15, (COLUMNS, blocks)).astype("float32")
        constants["z"], inputs = zeros, [*inputs, "z"]
    groups = np.arange(DEPTH) // 16
    if is_grouped:
        groups = generator.permutation(groups).astype("int32")
        constants["g"] = groups
    if zero == "float":
        constants["b"] = np.arange(COLUMNS, dtype="float32")
    if is_grouped or zero == "float":
        inputs = [*inputs, *([] if zero else [""]), "g" if is_grouped else "", "b" if zero == "float" else ""]
    integers = unpacked(weight.reshape(COLUMNS, -1), bits, DEPTH).astype(float)
    weights = (integers - zeros[:, groups]) * scales[:, groups]
    expected = data().astype(float) @ weights.T + constants.get("b", 0.0)
    found = run(nbits(constants, inputs, bits=bits))
    assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max()


@pytest.mark.parametrize(
    "change", ({"g_idx": True}, {"bits": 3}, {"block_size": 24}, {"K": 45}, {"weight_prepacked": 1})
)
def test_refused(change: dict[str, Any]) -> None:
    constants = {
        "w": np.zeros((COLUMNS, 3, 8), np.uint8),
        "s": np.ones((COLUMNS, 3), np.float32),
        "g": np.full(DEPTH, 3, np.int32),
    }
    messages = {
        "g_idx": "input 'g_idx' must have 44 numbers of groups from 0 to 2, got",
        "bits": "attribute 'bits' = 3 is not supported",
        "block_size": "attribute 'block_size' = 24 must be a power of two from 16 on",
        "K": r"input 'A' of shape \(3, 44\) must have K = 45 elements",
        "weight_prepacked": "attribute 'weight_prepacked' = 1 is not supported",
    }
    ((name, _),) = change.items()
    grouped = name == "g_idx"
    inputs = ["w", "s", "", "g"] if grouped else ["w", "s"]
    with pytest.raises(weft.CompileError, match=messages[name]):
        weft.from_onnx(nbits(constants, inputs, **({} if grouped else change)))


def test_wrong_shapes() -> None:
    weight, scales = np.zeros((COLUMNS, 3, 8), np.uint8), np.ones((COLUMNS, 3), np.float32)
    for constants, message in (
        (
            {"w": weight[:, :2], "s": scales},
            r"input 'B' must be uint8 of shape \(20, 3, 8\) for 'K' = 44, .*, got uint8 of \(20, 2, 8\)",
        ),
        ({"w": weight, "s": scales[:19]}, r"input 'scales' must have the shape \(20, 3\), got \(19, 3\)"),
        (
            {"w": weight, "s": scales, "z": np.zeros((COLUMNS, 3), np.uint8)},
            r"input 'zero_points' must have the shape \(20, 2\), got \(20, 3\)",
        ),
    ):
        with pytest.raises(weft.CompileError, match=message):
            weft.from_onnx(nbits(constants, list(constants)))


def test_data_shorter_than_its_shape() -> None:
    given = nbits({"w": np.zeros((COLUMNS, 3, 8), np.uint8), "s": np.ones((COLUMNS, 3), np.float32)}, ["w", "s"])
    given.graph.initializer[0].raw_data = given.graph.initializer[0].raw_data[:-1]
    with pytest.raises(weft.CompileError, match="'w'"):
        weft.from_onnx(given)


def test_scales_that_are_not_finite() -> None:
    scales = np.ones((COLUMNS, 3), np.float32)
    scales[4, 1] = np.nan
    given = nbits({"w": np.zeros((COLUMNS, 3, 8), np.uint8), "s": scales}, ["w", "s"])
    with pytest.raises(weft.CompileError, match=r"input 'scales'\[4\]\[1\] must be finite, is nan, at"):
        weft.from_onnx(given)
    for operator, data, scale, message in (
        ("DequantizeLinear", np.ones(3, np.int8), np.inf, r"input 'x_scale' must be finite, is inf"),
        ("QuantizeLinear", None, 0.0, r"input 'y_scale' must be finite and above 0, is 0\.0"),
        ("QuantizeLinear", None, -1.0, r"input 'y_scale' must be finite and above 0, is -1\.0"),
    ):
        constants = {"s": np.array(scale, np.float32), **({} if data is None else {"q": data})}
        nodes = [helper.make_node(operator, ["x" if data is None else "q", "s"], ["y"])]
        if data is not None:
            nodes = [helper.make_node(operator, ["q", "s"], ["z"]), helper.make_node("Add", ["z", "z"], ["y"])]
        with pytest.raises(weft.CompileError, match=message):
            weft.from_onnx(model(nodes, constants))


@pytest.mark.parametrize("axis", (1, -3))
def test_a_single_scale_ignores_the_axis(axis: int) -> None:
    """onnxruntime writes the default axis, 1, for vectors too."""
    q, weight = np.arange(COLUMNS, dtype=np.int8), np.ones((DEPTH, COLUMNS), np.float32)
    constants = {"q": q, "s": np.array([0.5], np.float32), "z": np.array([1], np.int8), "w": weight}
    nodes = [helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"], axis=axis)]
    nodes += [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Add", ["p", "d"], ["y"])]
    found = Interpreter(weft.from_onnx(model(nodes, constants))).call("main", data())
    np.testing.assert_allclose(found, data().sum(1, keepdims=True) + (q - 1.0) / 2, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", ("INT4", "UINT4", "INT8"))
@pytest.mark.parametrize("is_transposed", (False, True))
def test_dequantize_linear(dtype: str, is_transposed: bool) -> None:
    """The product reads the integers: no floats of the size of the weights are stored."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    low, high = {"INT4": (-8, 8), "UINT4": (0, 16), "INT8": (-128, 128)}[dtype]
    generator, axis = np.random.default_rng(0), int(is_transposed)
    shape, blocks = [DEPTH, COLUMNS], [3, COLUMNS]
    if is_transposed:
        shape, blocks = shape[::-1], blocks[::-1]
    element = np.dtype(getattr(ml_dtypes, dtype.lower())) if dtype.endswith("4") else np.dtype("int8")
    integers, zeros = (generator.integers(low, high, s) for s in (shape, blocks))
    scales = generator.uniform(0.5, 1.0, blocks).astype("float32")
    constants = {"q": integers.astype(element), "s": scales, "z": zeros.astype(element)}
    nodes = [
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["w"], axis=axis, block_size=16),
        helper.make_node("Gemm", ["x", "w"], ["y"], transB=axis),
    ]
    spread = [np.take(np.repeat(p.astype(float), 16, axis), range(DEPTH), axis) for p in (zeros, scales)]
    weights = (integers - spread[0]) * spread[1]
    expected = data().astype(float) @ (weights.T if is_transposed else weights)
    library = weft.build(weft.from_onnx(model(nodes, constants)), target="llvm -num-threads=1")
    assert "dequantized_matmul" in library.trace
    assert np.abs(library["main"](data()) - expected).max() <= 1e-5 * np.abs(expected).max()


@pytest.mark.parametrize("bits", (2, 4, 8))
@pytest.mark.parametrize(("rows", "columns"), ((1, 64), (7, 64), (3, 20)))
@pytest.mark.parametrize("level", (3, 4))
def test_accuracy_level(bits: int, rows: int, columns: int, level: int) -> None:
    """An accuracy level of 4 rounds data to 8 bits in groups of a block, as onnxruntime does."""
    generator = np.random.default_rng(bits + rows)
    depth, block = 96, 32
    weight = generator.integers(0, 256, (columns, depth // block, block * bits // 8), np.uint8)
    scales = generator.uniform(0.1, 1.0, (columns, depth // block)).astype("float32")
    options = {"K": depth, "N": columns, "bits": bits, "block_size": block, "accuracy_level": level}
    node = helper.make_node("MatMulNBits", ["x", "w", "s"], ["y"], domain="com.microsoft", **options)
    given = model([node], {"w": weight, "s": scales})
    for value, extents in ((given.graph.input[0], (rows, depth)), (given.graph.output[0], (rows, columns))):
        for axis, extent in enumerate(extents):
            value.type.tensor_type.shape.dim[axis].dim_value = extent
    x = generator.standard_normal((rows, depth)).astype("float32")
    found = weft.build(weft.from_onnx(given), target="llvm -num-threads=1")["main"](x)
    parts = [(weight >> at) & ((1 << bits) - 1) for at in range(0, 8, bits)]
    integers = np.stack(parts, -1).reshape(columns, depth // block, block).astype(float) - (1 << bits - 1)
    grouped = x.reshape(rows, depth // block, block).astype(float)
    step = np.abs(grouped).max(-1, keepdims=True) / 127
    rounded = grouped if level == 3 else np.round(grouped / step) * step
    exact = np.einsum("rgk,cgk,cg->rc", rounded, integers, scales)
    assert np.abs(found - exact).max() <= 3e-6 * np.abs(exact).max()
    if bits > 2:
        onnxruntime = pytest.importorskip("onnxruntime")
        session = onnxruntime.InferenceSession(given.SerializeToString(), providers=["CPUExecutionProvider"])
        (expected,) = session.run(None, {"x": x})
        assert np.abs(found - expected).max() <= 1e-4 * np.abs(exact).max()
