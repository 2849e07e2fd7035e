"""Single operators in float32 against onnxruntime and OpenVINO, in one process and with one thread.

    python benchmarks/operator_classes.py                     # needs onnx, onnxruntime and openvino
    python benchmarks/operator_classes.py --only conv --rounds 20

Each row is an ONNX model of one or a few operators with seeded random weights, which is built once by each contender.
OpenVINO computes in float32 (`INFERENCE_PRECISION_HINT=f32`). Prints the least times of calls in turns, the ratio of
the faster peer, and the largest difference from onnxruntime over the largest element of the result.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import numpy as np
import onnx
import onnxruntime
import openvino
from onnx import TensorProto, helper, numpy_helper

import weft
from weft_bench.rounds import least_seconds

_Node = tuple[str, Sequence[str], dict[str, Any]]


@dataclass(frozen=True)
class Row:
    name: str
    inputs: Sequence[tuple[int, ...]]
    nodes: Sequence[_Node]
    """Operator, inputs and attributes; each node has one result, `y` and its number."""
    weights: dict[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    constants: dict[str, Any] = field(default_factory=dict[str, Any])
    integers: int = 0
    """If not 0, the last input holds integers below this."""


def _conv(name: str, data: tuple[int, ...], weight: tuple[int, ...], *, given: bool = False, **attributes: Any) -> Row:
    """With `given`, the weights are an argument."""
    node: _Node = ("Conv", ("x0", "x1" if given else "w"), attributes)
    return Row(name, (data, weight) if given else (data,), (node,), {} if given else {"w": weight})


def _resize(name: str, shape: tuple[int, ...], mode: str, scale: float) -> Row:
    scales = np.asarray([1.0, 1.0, scale, scale], np.float32)
    attributes = {"mode": mode, "coordinate_transformation_mode": "half_pixel"}
    return Row(name, (shape,), (("Resize", ("x0", "", "scales"), attributes),), constants={"scales": scales})


def _grouped(channels: int, groups: int, size: int, stride: int) -> Row:
    width = channels // groups
    name = f"grouped conv, {width} channels a group, {channels} x {size} x {size}, stride {stride}"
    weight = (channels, width, 3, 3)
    return _conv(name, (1, channels, size, size), weight, group=groups, pads=[1] * 4, strides=[stride] * 2)


_GROUPED: Final = ((128, 32, 56), (256, 32, 56), (512, 32, 28), (512, 16, 28))
"""Channels, groups and extents of an image."""
ROWS: Final = (
    *(_grouped(*size, stride) for size in _GROUPED for stride in (1, 2)),
    _resize("resize linear, 64 x 56 x 56 by 2", (1, 64, 56, 56), "linear", 2.0),
    _resize("resize linear, 256 x 32 x 32 by 4", (1, 256, 32, 32), "linear", 4.0),
    _resize("resize cubic, 3 x 224 x 224 by 2", (1, 3, 224, 224), "cubic", 2.0),
    _resize("resize cubic, 64 x 56 x 56 by 2", (1, 64, 56, 56), "cubic", 2.0),
    Row(
        "transpose, conv 1x1 256 to 8, 128 x 128",
        ((1, 128, 128, 256),),
        (("Transpose", ("x0",), {"perm": [0, 3, 1, 2]}), ("Conv", ("y0", "w"), {})),
        {"w": (8, 256, 1, 1)},
    ),
    _conv("conv 1x1 256 to 8, 128 x 128", (1, 256, 128, 128), (8, 256, 1, 1)),
    _conv("conv 1-D dilated by 4, 128 x 1000", (1, 128, 1000), (128, 128, 3), dilations=[4], pads=[4, 4]),
    _conv("conv 1-D dilated by 16, 64 x 4000", (1, 64, 4000), (64, 64, 3), dilations=[16], pads=[16, 16]),
    _conv("conv 3-D, 16 to 32, 16 x 56 x 56", (1, 16, 16, 56, 56), (32, 16, 3, 3, 3), pads=[1] * 6),
    _conv("conv 3-D, 64 to 64, 8 x 28 x 28", (1, 64, 8, 28, 28), (64, 64, 3, 3, 3), pads=[1] * 6),
    Row(
        "max pool 3-D, 64 x 16 x 56 x 56",
        ((1, 64, 16, 56, 56),),
        (("MaxPool", ("x0",), {"kernel_shape": [3] * 3, "strides": [2] * 3, "pads": [1] * 6}),),
    ),
    Row(
        "average pool 3-D, 64 x 16 x 56 x 56",
        ((1, 64, 16, 56, 56),),
        (("AveragePool", ("x0",), {"kernel_shape": [2] * 3, "strides": [2] * 3}),),
    ),
    Row(
        "windows of 7 x 7 tokens of 96", ((1, 8, 7, 8, 7, 96),), (("Transpose", ("x0",), {"perm": [0, 1, 3, 2, 4, 5]}),)
    ),
    Row("heads of 196 tokens, 12 x 64", ((8, 196, 12, 64),), (("Transpose", ("x0",), {"perm": [0, 2, 1, 3]}),)),
    Row("tokens to channels, 3136 x 96", ((1, 3136, 96),), (("Transpose", ("x0",), {"perm": [0, 2, 1]}),)),
    Row("concatenate 2 x 64 x 112 x 112", ((1, 64, 112, 112),) * 2, (("Concat", ("x0", "x1"), {"axis": 1}),)),
    Row("concatenate rows of 96 and 160, 16384", ((16384, 96), (16384, 160)), (("Concat", ("x0", "x1"), {"axis": 1}),)),
    Row("exp of 1 M", ((1 << 20,),), (("Exp", ("x0",), {}),)),
    Row("tanh of 1 M", ((1 << 20,),), (("Tanh", ("x0",), {}),)),
    Row("matrix-vector product 4096", ((1, 4096),), (("MatMul", ("x0", "w"), {}),), {"w": (4096, 4096)}),
    Row("sum of 4 M", ((2048, 2048),), (("ReduceSum", ("x0",), {"keepdims": 0}),)),
    Row("sum of 64 K", ((65536,),), (("ReduceSum", ("x0",), {"keepdims": 0}),)),
    Row(
        "gather 512 rows of 512",
        ((512,),),
        (("Gather", ("w", "x0"), {"axis": 0}),),
        {"w": (30000, 512)},
        integers=30000,
    ),
    _conv("conv 3x3, 512 x 7 x 7, weights given", (1, 512, 7, 7), (512, 512, 3, 3), given=True, pads=[1] * 4),
    _conv("conv 1x1, 2048 to 512, 7 x 7, weights given", (1, 2048, 7, 7), (512, 2048, 1, 1), given=True),
    _conv("conv 1x1, 512 to 2048, 7 x 7, weights given", (1, 512, 7, 7), (2048, 512, 1, 1), given=True),
)


def model_of(row: Row) -> onnx.ModelProto:
    numbers = np.random.default_rng(1)
    kinds = [TensorProto.FLOAT] * len(row.inputs)
    if row.integers:
        kinds[-1] = TensorProto.INT64
    inputs = [helper.make_tensor_value_info(f"x{at}", kinds[at], shape) for at, shape in enumerate(row.inputs)]
    nodes = [
        helper.make_node(kind, list(names), [f"y{at}"], **attributes)
        for at, (kind, names, attributes) in enumerate(row.nodes)
    ]
    arrays = {name: numbers.standard_normal(shape).astype(np.float32) * 0.05 for name, shape in row.weights.items()}
    constants = [numpy_helper.from_array(array, name) for name, array in (arrays | row.constants).items()]
    result = helper.make_tensor_value_info(f"y{len(nodes) - 1}", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "row", inputs, [result], constants)
    found = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    return onnx.shape_inference.infer_shapes(found)


def contenders(model: onnx.ModelProto) -> dict[str, Callable[..., Any]]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    data = model.SerializeToString()
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    core = openvino.Core()
    settings = {"INFERENCE_NUM_THREADS": 1, "INFERENCE_PRECISION_HINT": "f32"}
    request = core.compile_model(core.read_model(data), "CPU", settings).create_infer_request()
    run = weft.build(weft.from_onnx(model), target="llvm -num-threads=1")["main"]
    names = [value.name for value in session.get_inputs()]
    return {
        "onnxruntime": lambda *arrays: session.run(None, dict(zip(names, arrays, strict=True)))[0],
        "OpenVINO": lambda *arrays: request.infer(dict(enumerate(arrays)), share_inputs=True, share_outputs=True)[0],
        "weft": run,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("--rounds", type=int, default=12, help="turns of all contenders")
    arguments = parser.parse_args()
    print("| operator | onnxruntime, us | OpenVINO, us | weft, us | ratio | difference |\n|---|---|---|---|---|---|")
    for row in ROWS:
        if arguments.only not in row.name:
            continue
        numbers = np.random.default_rng(0)
        arrays = [numbers.standard_normal(shape).astype(np.float32) for shape in row.inputs]
        if row.integers:
            arrays[-1] = numbers.integers(0, row.integers, row.inputs[-1])
        calls = contenders(model_of(row))
        wanted = np.asarray(calls["onnxruntime"](*arrays))
        error = float(np.abs(np.asarray(calls["weft"](*arrays)) - wanted).max() / max(np.abs(wanted).max(), 1e-30))
        *peers, own = least_seconds([partial(call, *arrays) for call in calls.values()], arguments.rounds)
        times = " | ".join(f"{seconds * 1e6:.1f}" for seconds in (*peers, own))
        print(f"| {row.name} | {times} | {min(peers) / own:.2f} | {error:.1e} |", flush=True)


if __name__ == "__main__":
    main()
