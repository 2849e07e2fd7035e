"""The other libraries: their installation, and their version of the work of a row."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from weft.runtime.aligned_arrays import empty
from weft_bench.contender import Array, Contender
from weft_bench.problem import NUMPY, ONNX, TORCH, Maker, Problem

_NEEDS = {TORCH: ("torch",), ONNX: ("onnxruntime", "onnx")}
OPSET, IR_VERSION = 17, 10
"""Versions of ONNX that have all operators used here and that several years of onnxruntime support."""


def missing_peers() -> dict[str, str]:
    """The unavailable peers, with the missing packages."""
    missing = {peer: [name for name in names if find_spec(name) is None] for peer, names in _NEEDS.items()}
    return {peer: f"no package {' or '.join(names)}" for peer, names in missing.items() if names}


def peers_of(problem: Problem, inputs: Sequence[Array], threads: int) -> dict[str, Contender]:
    """The installed peers of a row, by name."""
    missing = missing_peers()
    found: dict[str, Contender] = {}
    if problem.numpy is not None:
        call = problem.numpy(*inputs, empty(*problem.result))
        found[NUMPY] = Contender(call, call)
    if problem.torch is not None and TORCH not in missing:
        found[TORCH] = _torch(problem.torch, inputs, threads)
    if problem.onnx is not None and ONNX not in missing:
        found[ONNX] = _onnxruntime(problem, inputs, threads)
    return found


def _torch(make: Maker, inputs: Sequence[Array], threads: int) -> Contender:
    torch = import_module("torch")
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    call = make(torch, *map(torch.from_numpy, inputs))
    return Contender(call, lambda: call().numpy())


def _onnxruntime(problem: Problem, inputs: Sequence[Array], threads: int) -> Contender:
    """A session on a model of the row, with inputs and output bound to arrays."""
    runtime = import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 3
    session = runtime.InferenceSession(model_of(problem, inputs), options, providers=["CPUExecutionProvider"])
    result = empty(*problem.result)
    binding = session.io_binding()
    values = {f"x{at}": array for at, array in enumerate(inputs) if at not in problem.constants}
    for name, array in values.items():
        binding.bind_input(name, "cpu", 0, array.dtype, array.shape, array.ctypes.data)
    binding.bind_output("y", "cpu", 0, result.dtype, result.shape, result.ctypes.data)

    def call() -> Array:
        session.run_with_iobinding(binding)
        return result

    return Contender(call, call)


def model_of(problem: Problem, inputs: Sequence[Array]) -> bytes:
    """The serialised ONNX model of a row, which contains its constant inputs."""
    onnx = import_module("onnx")
    helper: Any = onnx.helper

    def value(name: str, shape: tuple[int, ...], dtype: str) -> Any:
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)

    graph = helper.make_graph(
        [] if problem.onnx is None else list(problem.onnx(helper)),
        "row",
        [value(f"x{at}", *spec) for at, spec in enumerate(problem.inputs) if at not in problem.constants],
        [value("y", *problem.result)],
        [onnx.numpy_helper.from_array(inputs[at], f"x{at}") for at in sorted(problem.constants)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    return model.SerializeToString()
