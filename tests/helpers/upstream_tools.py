"""MLIR's own tools as judges of what weft writes in upstream's dialects: `mlir-opt` (Debian: `mlir-22-tools`) and
`iree-opt` (PyPI: `iree-base-compiler`). Programs are lowered to LLVM IR by them, compiled by llvmlite and called."""

import ctypes
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from io import StringIO
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from weft.backends.upstream import UpstreamTarget
from weft.driver.pipeline import Pipeline
from weft.driver.stages import lower
from weft.passes.convert.convert_low_to_upstream import ConvertLowToUpstreamPass
from weft.support.build_options import BuildOptions
from weft.support.target import Target


def _found(name: str) -> str | None:
    return next((path for form in (name, f"{name}-22") if (path := shutil.which(form))), None)


MLIR_OPT, MLIR_TRANSLATE, IREE_OPT = _found("mlir-opt"), _found("mlir-translate"), _found("iree-opt")
needs_mlir = pytest.mark.skipif(
    MLIR_OPT is None or MLIR_TRANSLATE is None, reason="mlir-opt and mlir-translate are not on the PATH"
)
needs_iree = pytest.mark.skipif(IREE_OPT is None, reason="iree-opt is not on the PATH")


def _run(command: Sequence[str | None], text: str) -> str:
    ran = subprocess.run([str(part) for part in command], input=text, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, f"{command[0]} ends with {ran.returncode}:\n{ran.stderr[:3000]}\n{text[:6000]}"
    return ran.stdout


def accepted(text: str) -> str:
    """A module as `mlir-opt` prints it, which knows upstream's dialects only."""
    return _run([MLIR_OPT], text)


def accepted_by_iree(text: str) -> str:
    """A module as `iree-opt` prints it."""
    return _run([IREE_OPT], text)


def cleaned(tool: str, text: str) -> str:
    """A module as `tool` prints it, in its custom syntax, after its canonicalization."""
    return _run([tool, "--canonicalize", "--cse"], text)


def upstream_text(
    module: ModuleOp, default_schedule: bool = True, target: str = "llvm", *, by_xdsl: bool = False
) -> str:
    """The module, lowered for a target, in upstream's dialects; its schedules run first. Printed as by weft's target
    `upstream`, or as by stock `xdsl-opt` if `by_xdsl`."""
    module = module.clone()
    options = BuildOptions(default_schedule=default_schedule)
    lower(Pipeline(module, Target.parse(target), options))
    ConvertLowToUpstreamPass().apply(Context(), module)
    module.verify()
    if by_xdsl:
        return str(module)
    output = StringIO()
    UpstreamTarget().emit(Context(), module, output)
    return output.getvalue()


class UpstreamLibrary:
    """The functions of a module in upstream's dialects, lowered and compiled by MLIR's passes and LLVM."""

    TO_LLVM = (
        *("--convert-vector-to-scf", "--convert-scf-to-cf", "--expand-strided-metadata", "--lower-affine"),
        *("--arith-expand=include-bf16=true", "--convert-math-to-llvm", "--convert-math-to-libm"),
        *(
            "--convert-vector-to-llvm",
            "--finalize-memref-to-llvm",
            "--convert-arith-to-llvm",
            "--convert-index-to-llvm",
        ),
        *("--convert-func-to-llvm", "--convert-cf-to-llvm", "--convert-ub-to-llvm", "--reconcile-unrealized-casts"),
    )

    @classmethod
    def lowered(cls, text: str, first: Sequence[str] = ()) -> str:
        """The module in the llvm dialect; `first` are passes that run before those of `TO_LLVM`."""
        return _run([MLIR_OPT, *first, *cls.TO_LLVM], text)

    def __init__(self, text: str, first: Sequence[str] = ()) -> None:
        ir = _run([MLIR_TRANSLATE, "--mlir-to-llvmir"], self.lowered(text, first))
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        module = llvm.parse_assembly(ir)
        module.verify()
        # Of this processor: without its conversions of f16, LLVM calls functions that are not there.
        cpu, features = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
        machine = llvm.Target.from_default_triple().create_target_machine(cpu=cpu, features=features, opt=2)
        llvm.load_library_permanently("libm.so.6")
        self._engine = llvm.create_mcjit_compiler(module, machine)
        self._engine.finalize_object()

    def __getitem__(self, name: str) -> Callable[..., None]:
        """A function, which takes NumPy arrays as memrefs and numbers."""
        engine = self._engine  # which the function keeps alive
        address = engine.get_function_address(name)
        assert address, f"no function {name}"

        def call(*arguments: Any) -> None:
            assert engine
            values: list[Any] = []
            for argument in arguments:
                values += _descriptor(argument) if isinstance(argument, np.ndarray) else [_scalar(argument)]
            ctypes.CFUNCTYPE(None, *map(type, values))(address)(*values)

        return call


def _descriptor(array: Any) -> list[Any]:
    """Allocated and aligned pointer, offset, extents, strides in elements."""
    strides = [stride // array.itemsize for stride in array.strides]
    numbers = [0, *array.shape, *strides]
    return [ctypes.c_void_p(array.ctypes.data)] * 2 + [ctypes.c_int64(number) for number in numbers]


def _scalar(number: Any) -> Any:
    kinds = {"float32": ctypes.c_float, "float64": ctypes.c_double}
    kind = getattr(number, "dtype", None)
    return kinds[str(kind)](number) if str(kind) in kinds else ctypes.c_int64(int(number))


class IreeLibrary(UpstreamLibrary):
    """The same, lowered to the llvm dialect by `iree-opt` and its final conversion. Programs of IREE have no heap."""

    TO_LLVM = (
        *("--convert-scf-to-cf", "--expand-strided-metadata", "--lower-affine"),
        *("--iree-convert-to-llvm", "--mlir-print-op-generic"),
    )
    _MASKED_ALIGNMENT = re.compile(r'("llvm\.intr\.masked\..*<\{alignment = \d+ : i)64')

    @classmethod
    def lowered(cls, text: str, first: Sequence[str] = ()) -> str:
        # Alignments of masked accesses have 64 bits in its llvm dialect, and 32 in that of mlir-translate.
        return cls._MASKED_ALIGNMENT.sub(r"\g<1>32", _run([IREE_OPT, *first, *cls.TO_LLVM], text))


def by_iree(text: str) -> UpstreamLibrary:
    """The functions of a module that `iree-opt` accepts, lowered by it where they take no memory from the heap."""
    assert accepted_by_iree(text)
    return (UpstreamLibrary if re.search(r"memref\.alloc\b", text) else IreeLibrary)(text)
