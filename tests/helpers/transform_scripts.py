"""Transform scripts that both MLIR's interpreter and weft's run, and the results of their payloads."""

from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from upstream_tools import MLIR_OPT, UpstreamLibrary, _run
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

import weft
from weft.backends.upstream import UpstreamTarget
from weft.dialects import sched
from weft.dialects.element_types import array_name
from weft.interp.interpreter import Interpreter
from weft.passes.schedule.apply_schedule import ApplySchedulePass
from weft.schedule.transform.convert_sched_to_transform import ConvertSchedToTransformPass
from weft.schedule.transform.convert_transform_to_sched import ConvertTransformToSchedPass
from weft.schedule.transform.payload import Payload
from weft.schedule.transform.weft_transform_interpreter import WeftTransformInterpreterPass
from weft.support.errors import CompileError

SCRIPTS = sorted((Path(__file__).parent.parent / "data" / "transform").glob("*.mlir"))
_TO_BUFFERS = (
    "--empty-tensor-to-alloc-tensor",
    "--one-shot-bufferize=bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map",
    "--buffer-results-to-out-params=hoist-static-allocs=true modify-public-functions=true",
    "--scf-forall-to-parallel",
    "--convert-linalg-to-loops",
    "--lower-vector-mask",
    "--lower-vector-multi-reduction",
)


def function_of(module: ModuleOp) -> FuncOp:
    """The only function of a payload."""
    (function,) = [op for op in module.body.block.ops if isinstance(op, FuncOp) and op.body.blocks]
    return function


def arrays_of(function: FuncOp) -> list[Any]:
    """Random arrays for the parameters of a function, and zeros for its results."""
    rng = np.random.default_rng(0)
    types = [*function.function_type.inputs, *function.function_type.outputs]
    shapes = [(tuple(type_.get_shape()), np.dtype(array_name(type_.element_type))) for type_ in types]
    inputs = len(function.function_type.inputs)
    return [
        rng.integers(-8, 9, shape).astype(dtype) if at < inputs else np.zeros(shape, dtype)
        for at, (shape, dtype) in enumerate(shapes)
    ]


def by_interpreter(module: ModuleOp, name: str, arrays: Sequence[Any]) -> list[Any]:
    """What a function over buffers computes, in the interpreter."""
    copies = [array.copy() for array in arrays]
    Interpreter(module).call(name, *copies)
    return copies


def unscheduled(text: str) -> tuple[str, list[Any], list[Any]]:
    """The name of the function of a payload, arrays for it, and what it computes of them without the script."""
    module = Payload(weft.parse(text), (), 0).source
    function = function_of(module)
    name, arrays = function.sym_name.data, arrays_of(function)
    module = Payload(module, (), 0).schedule.original
    return name, arrays, by_interpreter(module, name, arrays)


def scheduled(text: str, name: str, arrays: Sequence[Any]) -> list[Any]:
    """What the payload computes after the script, as a schedule, in the interpreter."""
    module = weft.parse(text)
    ConvertTransformToSchedPass().apply(Context(), module)
    module.verify()
    ApplySchedulePass().apply(Context(), module)
    module.verify()
    return by_interpreter(module, name, arrays)


def payload_by_weft(text: str) -> str:
    """The payload that weft's interpreter of scripts leaves."""
    module = weft.parse(text)
    WeftTransformInterpreterPass().apply(Context(), module)
    module.verify()
    output = StringIO()
    UpstreamTarget().emit(Context(), module, output)
    return output.getvalue()


def payload_by_mlir(text: str) -> str:
    """The payload that MLIR's interpreter of scripts leaves."""
    options = ["--transform-interpreter", "--test-transform-dialect-erase-schedule", "--canonicalize"]
    with TemporaryDirectory() as folder:
        output = Path(folder) / "payload.mlir"
        _run([MLIR_OPT, *options, "-o", output], text)  # standard output has what scripts print
        payload = output.read_text()
    return _without_packs(payload) if "linalg.pack" in payload else payload


_LOWER_PACKS = """transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %pack = transform.structured.match ops{["linalg.pack"]} in %root : (!transform.any_op) -> !transform.op<"linalg.pack">
  transform.structured.lower_pack %pack : (!transform.op<"linalg.pack">)
    -> (!transform.op<"tensor.pad">, !transform.op<"tensor.expand_shape">, !transform.op<"linalg.transpose">)
  %unpack = transform.structured.match ops{["linalg.unpack"]} in %root
    : (!transform.any_op) -> !transform.op<"linalg.unpack">
  transform.structured.lower_unpack %unpack : (!transform.op<"linalg.unpack">)
    -> (!transform.op<"tensor.empty">, !transform.op<"linalg.transpose">, !transform.op<"tensor.collapse_shape">,
        !transform.op<"tensor.extract_slice">)
  transform.yield
}
"""


def _without_packs(payload: str) -> str:
    """Packed layouts as pads, shapes and transposes, because MLIR bufferizes no `linalg.pack`."""
    return payload_by_mlir(payload[: payload.rindex("}")] + _LOWER_PACKS + "}")


def by_mlir(text: str, name: str, arrays: Sequence[Any]) -> list[Any]:
    """What a payload computes, compiled by MLIR's passes, which may write tensors that are parameters."""
    for library in (Path(str(MLIR_OPT)).resolve().parent.parent / "lib").glob("libmlir_c_runner_utils.so*"):
        llvm.load_library_permanently(str(library))  # memref.copy of strided buffers is a call of it
    copies = [array.copy() for array in arrays]
    UpstreamLibrary(text, _TO_BUFFERS)[name](*copies)
    return copies


def script_of_schedule(text: str) -> str | None:
    """The payload with the script that weft's schedule of the script becomes; None if a step has no form."""
    module = weft.parse(text)
    ConvertTransformToSchedPass().apply(Context(), module)
    (schedule,) = [op for op in module.body.block.ops if isinstance(op, sched.FuncOp)]
    schedule.detach()
    linalg = Payload(weft.parse(text), (), 0).source
    linalg.body.block.add_op(schedule)
    try:
        ConvertSchedToTransformPass().apply(Context(), linalg)
    except CompileError as error:
        assert "no form in the transform dialect" in error.message, error
        return None
    linalg.verify()
    output = StringIO()
    UpstreamTarget().emit(Context(), linalg, output)
    return output.getvalue()


def result_count(text: str) -> int:
    """The number of results of the function of a payload."""
    return len(function_of(Payload(weft.parse(text), (), 0).source).function_type.outputs)
