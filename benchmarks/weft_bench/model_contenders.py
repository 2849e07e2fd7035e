"""The contenders for a whole model: weft, onnxruntime, OpenVINO, PyTorch, each with the model loaded."""

from __future__ import annotations

import dataclasses
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from weft.runtime.aligned_arrays import aligned, empty
from weft.support.errors import CompileError, did_you_mean
from weft_bench.contender import Array

if TYPE_CHECKING:
    from weft.runtime.library import Library

WEFT, ONNXRUNTIME, OPENVINO, TORCH, TORCH_COMPILE = "weft", "onnxruntime", "openvino", "torch", "torch.compile"
_PACKAGES: Final[Mapping[str, str]] = {
    ONNXRUNTIME: "onnxruntime",
    OPENVINO: "openvino",
    TORCH: "torch",
    TORCH_COMPILE: "torch",
}
PEERS: Final = tuple(_PACKAGES)
_WITH_PRECISION: Final = (WEFT, OPENVINO)
"""Contenders that can compute in another precision than the model's."""
_MODEL_NAMES: Final = {".onnx": "ONNX", ".mlir": "MLIR"}


@dataclass(frozen=True)
class Loaded:
    """A loaded model: `call` is timed, `results` also computes and returns the arrays in order."""

    call: Callable[[], object]
    results: Callable[[], Sequence[Array]]
    temporary_bytes: Callable[[], int | None] = lambda: None
    """For weft: bytes of the values between kernels in a call."""
    constant_bytes: Callable[[], int | None] = lambda: None
    """For weft: bytes of the weights."""


@dataclass(frozen=True)
class Source:
    """A model and its inputs: an ONNX or MLIR file with arrays, or a PyTorch module with tensors.

    `onnx` is the ONNX file: the model itself, or PyTorch's export.
    """

    file: Path
    onnx: Path | None
    module: Any = None
    tensors: Sequence[Any] = ()
    arrays: Sequence[Array] = ()
    shapes: Sequence[str] = ()
    """Stated shapes, to which weft specialises the model."""


def is_python(file: str) -> bool:
    """Whether the model is given as `FILE.py:FUNCTION`."""
    return file.partition(":")[0].endswith(".py")


def checked_file(file: str) -> str:
    """The name of a model, checked. Raises `CompileError` for other files, and for a missing one."""
    path, colon, function = file.partition(":") if is_python(file) else (file, "", "")
    if not Path(path).is_file():
        raise CompileError(f"there is no file '{path}'")
    if path.endswith(".py") and not (colon and function.isidentifier()):
        raise CompileError(
            f"'{file}': a model in Python is given as FILE.py:FUNCTION, a function that returns it with its inputs"
        )
    if not path.endswith((".py", *_MODEL_NAMES)):
        raise CompileError(f"'{file}' is no model: expected a file .onnx or .mlir, or FILE.py:FUNCTION")
    return file


def missing_peers(file: str, against: Sequence[str]) -> dict[str, str]:
    """The excluded peers with the reasons. Raises `CompileError` for unknown peers."""
    found: dict[str, str] = {}
    for peer in against:
        if peer not in _PACKAGES:
            raise CompileError(f"--against: there is no peer '{peer}'{did_you_mean(peer, PEERS)}")
        if find_spec(_PACKAGES[peer]) is None:
            found[peer] = f"the package {_PACKAGES[peer]} is not installed"
        elif peer in (TORCH, TORCH_COMPILE) and not is_python(file):
            found[peer] = "PyTorch reads models in Python only (FILE.py:FUNCTION)"
        elif file.endswith(".mlir"):
            found[peer] = "it reads no MLIR"
        elif is_python(file) and peer in (ONNXRUNTIME, OPENVINO) and find_spec("onnxscript") is None:
            found[peer] = "the package onnxscript, with which PyTorch exports to ONNX, is not installed"
    return found


def contenders_of(against: Sequence[str], precisions: Sequence[str]) -> list[str]:
    """The names of contenders, weft's first, followed by a precision if they have several."""
    found: list[str] = []
    for name in (WEFT, *against):
        found += [f"{name} {one}" for one in precisions] if precisions and name in _WITH_PRECISION else [name]
    return found


def peer_of(contender: str) -> str:
    """The name of a contender without its precision."""
    return contender.partition(" ")[0]


def precision_of(contender: str) -> str:
    """The precision in the name of a contender; empty without one."""
    return contender.partition(" ")[2]


def load_python(file: str) -> Source:
    """The module and the inputs that `FILE.py:FUNCTION` returns. Raises `CompileError` for other results."""
    path, _, function = file.partition(":")
    spec = spec_from_file_location(Path(path).stem, path)
    if spec is None or spec.loader is None:
        raise CompileError(f"'{path}' cannot be imported")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    make = getattr(module, function, None)
    if not callable(make):
        raise CompileError(f"'{path}' has no function '{function}'")
    found: Any = make()
    torch: Any = sys.modules.get("torch")  # imported by the file if it returns a module
    is_model = isinstance(found, tuple) and len(cast("tuple[Any, ...]", found)) == 2 and torch is not None
    if not is_model or not isinstance(found[0], torch.nn.Module):
        raise CompileError(f"'{file}' returns {type(found).__name__}, expected a torch.nn.Module and a tuple of inputs")
    return Source(Path(path), None, found[0].eval(), tuple(found[1]))


def export(source: Source, file: Path) -> Source:
    """The PyTorch model also as ONNX, with its inputs as arrays."""
    torch = import_module("torch")
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.onnx.export(source.module, tuple(source.tensors), str(file), dynamo=True, verbose=False)
    return dataclasses.replace(source, onnx=file, arrays=[aligned(tensor.numpy()) for tensor in source.tensors])


def load(name: str, source: Source, target: str, threads: int, *, cache: bool = True) -> Loaded:
    """A contender with the model loaded. Raises the errors of loading it."""
    peer, precision = peer_of(name), precision_of(name)
    if peer == WEFT:
        return _weft(source, target, threads, cache, precision)
    if peer in (TORCH, TORCH_COMPILE):
        return _torch(source, threads, is_compiled=peer == TORCH_COMPILE)
    return _onnxruntime(source, threads) if peer == ONNXRUNTIME else _openvino(source, threads, precision or "f32")


def _weft(source: Source, target: str, threads: int, cache: bool, precision: str) -> Loaded:
    from weft.driver.build import build
    from weft.driver.programs import parse_file
    from weft.support.target import Target
    from weft.tools.arrays import assigned

    machine = dataclasses.replace(Target.parse(target), num_threads=threads)
    if source.module is not None:
        from weft.driver.torch_models import compile as compile_model

        fast = compile_model(source.module, tuple(source.tensors), target=machine, cache=cache, precision=precision)
        computing = _of_tensors(lambda: fast(*source.tensors))
        library = fast.library
        return dataclasses.replace(
            computing,
            temporary_bytes=lambda: _temporary_bytes(library),
            constant_bytes=lambda: _constant_bytes(library),
        )
    program = parse_file(source.file, assigned(source.shapes, "--shape")) if source.shapes else source.file
    library = build(program, machine, cache=cache, precision=precision)
    function = library["main"]
    found = function(*source.arrays)
    results = [empty(each.shape, each.dtype) for each in (found if isinstance(found, tuple) else (found,))]
    given = (*source.arrays, *results)

    def computed() -> Sequence[Array]:
        function(*given)
        return results

    return Loaded(
        lambda: function(*given), computed, lambda: _temporary_bytes(library), lambda: _constant_bytes(library)
    )


def _constant_bytes(library: Library) -> int | None:
    """The bytes of the packed constants of kernels; None for a program without kernels."""
    try:
        return sum(row.constant_bytes for row in library.report("main").rows)
    except CompileError:
        return None


def _temporary_bytes(library: Library) -> int | None:
    """None if they depend on extents, and for a program without kernels."""
    try:
        return library.report("main").temporary_bytes
    except CompileError:
        return None


def _torch(source: Source, threads: int, *, is_compiled: bool) -> Loaded:
    torch = import_module("torch")
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    model = torch.compile(source.module) if is_compiled else source.module
    return _of_tensors(lambda: model(*source.tensors))


def _of_tensors(call: Callable[[], Any]) -> Loaded:
    def results() -> Sequence[Array]:
        leaves: Sequence[Any] = import_module("torch.utils._pytree").tree_leaves(call())
        return [leaf.detach().numpy() for leaf in leaves if hasattr(leaf, "detach")]

    return Loaded(call, results)


def _onnxruntime(source: Source, threads: int) -> Loaded:
    """A session with inputs and outputs bound to fixed arrays."""
    runtime = import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 3
    session = runtime.InferenceSession(str(source.onnx), options, providers=["CPUExecutionProvider"])
    inputs = dict(zip([entry.name for entry in session.get_inputs()], source.arrays, strict=True))
    names = [entry.name for entry in session.get_outputs()]
    found: list[Array] = session.run(names, inputs)
    outputs = {name: empty(array.shape, array.dtype) for name, array in zip(names, found, strict=True)}
    binding = session.io_binding()
    for name, array in inputs.items():
        binding.bind_input(name, "cpu", 0, array.dtype, array.shape, array.ctypes.data)
    for name, array in outputs.items():
        binding.bind_output(name, "cpu", 0, array.dtype, array.shape, array.ctypes.data)

    def computed() -> Sequence[Array]:
        session.run_with_iobinding(binding)
        return list(outputs.values())

    return Loaded(lambda: session.run_with_iobinding(binding), computed)


def _openvino(source: Source, threads: int, precision: str) -> Loaded:
    """An inference request in a precision, on the arrays themselves."""
    runtime = import_module("openvino")
    settings = {
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": 1,
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": precision,
    }
    core = runtime.Core()
    request = core.compile_model(core.read_model(str(source.onnx)), "CPU", settings).create_infer_request()
    for at, array in enumerate(source.arrays):
        request.set_input_tensor(at, runtime.Tensor(array, shared_memory=True))

    def computed() -> Sequence[Array]:
        request.infer()
        return [np.array(request.get_output_tensor(at).data) for at in range(len(request.model_outputs))]

    return Loaded(request.infer, computed)
