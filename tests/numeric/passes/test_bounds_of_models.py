"""Models with symbolic extents: slices clamp as the front ends' own, conditions of kernels are checked by the call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import weft


def ramp(*shape: int) -> Any:
    return np.arange(1, np.prod(shape, dtype=int) + 1, dtype=np.float32).reshape(shape)


def onnx_model(operator: str, inputs: dict[str, Sequence[int]], **attributes: Any) -> Any:
    """A model that applies an operator to `x` of shape (a, b) and to constants."""
    onnx = pytest.importorskip("onnx")
    helper, kinds = onnx.helper, onnx.TensorProto
    constants = [onnx.numpy_helper.from_array(np.array(value, np.int64), name) for name, value in inputs.items()]
    nodes = [helper.make_node(operator, ["x", *inputs], ["h"], **attributes), helper.make_node("Neg", ["h"], ["y"])]
    x = helper.make_tensor_value_info("x", kinds.FLOAT, ["a", "b"])
    graph = helper.make_graph(nodes, "g", [x], [helper.make_empty_tensor_value_info("y")], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)])
    model.ir_version = 10
    return model


SLICES = [(0, 5, 1), (-3, 2**62, 1), (1, -1, 2), (7, 1, -2), (-1, -(2**62), -1), (2, 1, 1), (-100, -2, 1)]


@pytest.mark.parametrize("bounds", SLICES)
def test_onnx_slices_clamp(bounds: tuple[int, int, int]) -> None:
    first, last, step = bounds
    model = onnx_model("Slice", {"s": [first], "e": [last], "axes": [1], "steps": [step]})
    function = weft.build(weft.from_onnx(model))["main"]
    for size in (0, 1, 3, 9):
        np.testing.assert_array_equal(function(ramp(2, size)), -ramp(2, size)[:, slice(first, last, step)])


@pytest.mark.parametrize(
    ("mode", "pads", "least"),
    [
        ("reflect", [0, 2, 0, 2], 3),
        ("wrap", [0, 1, 0, 4], 1),
        ("edge", [0, 0, 0, 3], 1),
        ("constant", [0, -2, 0, 1], 0),
    ],
)
def test_onnx_borders(mode: str, pads: list[int], least: int) -> None:
    function = weft.build(weft.from_onnx(onnx_model("Pad", {"pads": pads}, mode=mode)))["main"]
    widths = [(max(pads[axis], 0), max(pads[axis + 2], 0)) for axis in range(2)]
    for size in (2, 3, 7):
        if size >= least:
            inner = ramp(2, size)[:, max(-pads[1], 0) :]
            np.testing.assert_array_equal(function(ramp(2, size)), -np.pad(inner, widths, mode))  # pyright: ignore
    for size in range(least):
        with pytest.raises(
            ValueError, match=rf"b must be at least \d unless a is 0, got {size} \(axis 1 of 'x'\): block"
        ):
            function(ramp(2, size))


TORCH: dict[str, Callable[[Any], Any]] = {
    "before the start": lambda x: x[:, -100:-1] * 1,
    "last": lambda x: x[:, -3:] * 1,
    "select": lambda x: x[:, 3] * 1,
    "select from the end": lambda x: x[:, -2] * 1,
    "narrow": lambda x: x.narrow(1, 1, 3) * 1,
    "unfold": lambda x: x.unfold(1, 3, 2) * 1,
    "as_strided": lambda x: x.as_strided((2, x.shape[1] - 1), (x.shape[1], 1), 1) * 1,
    "diagonal": lambda x: x.diagonal() * 1,
}


@pytest.mark.parametrize("case", TORCH)
def test_parts_of_dynamic_tensors_of_pytorch(case: str) -> None:
    torch = pytest.importorskip("torch")
    function = TORCH[case]

    class Part(torch.nn.Module):  # pyright: ignore
        def forward(self, x: Any) -> Any:
            return function(x)

    sizes = ({1: torch.export.Dim("m", min=6, max=60)},)
    compiled: Any = weft.compile(Part(), (torch.rand(2, 9),), dynamic_shapes=sizes)
    for size in (6, 7, 12):
        x = torch.rand(2, size)
        assert torch.equal(compiled(x), function(x))
