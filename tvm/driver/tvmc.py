"""`tvm.driver.tvmc`; also `python -m weft.tvm tvmc`."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from weft.driver.build import build
from weft.driver.tune import tune as _tune
from weft.support.errors import CompileError
from weft.texpr.shapes import items
from weft.tools.tvmc_words import translated
from weft.tvm.ir.module import IRModule
from weft.tvm.relax.frontend.onnx import from_onnx
from weft.tvm.runtime.module import Module
from weft.tvm.script.printer import plain
from weft.tvm.target import spelling


@dataclass
class TVMCModel:
    mod: IRModule


@dataclass
class TVMCPackage:
    module: Module


@dataclass
class TVMCResult:
    """Outputs by name: `output_0`, ..."""

    outputs: dict[str, Any]

    def get_output(self, name: str) -> Any:
        return self.outputs[name]

    def __str__(self) -> str:
        return "\n".join(f"{name}: {array.dtype}{list(array.shape)}\n{array}" for name, array in self.outputs.items())


def load(
    path: str, model_format: str | None = None, shape_dict: Mapping[str, Sequence[Any]] | None = None
) -> TVMCModel:
    """Raises `CompileError` for formats other than ONNX."""
    if model_format not in (None, "onnx"):
        raise CompileError(f"tvmc.load: weft reads onnx here, got '{model_format}': weft.from_torch reads PyTorch")
    return TVMCModel(from_onnx(path, shape_dict))


def tune(model: TVMCModel, target: Any, tuning_records: str = "tune.db", trials: int = 64) -> str:
    """Returns the path of the records."""
    _tune(plain(model.mod), trials=trials, database=Path(tuning_records), target=spelling(target))
    return tuning_records


def compile(
    tvmc_model: TVMCModel, target: Any, tuning_records: str | None = None, package_path: str | None = None
) -> TVMCPackage:
    """Apply records of a search, or default schedules; also writes a library to `package_path`."""
    database = None if tuning_records is None else Path(tuning_records)
    module = Module(build(plain(tvmc_model.mod), spelling(target), database=database))
    if package_path is not None:
        module.export_library(package_path)
    return TVMCPackage(module)


def run(tvmc_package: TVMCPackage, device: str = "cpu", inputs: Mapping[str, Any] | None = None) -> TVMCResult:
    """Missing inputs are random."""
    module, given = tvmc_package.module, dict(inputs or {})
    if device == "cpu" and module.imported_modules:
        raise CompileError("tvmc.run: the package is for a GPU")
    function, draw = module[module.entry_name], np.random.default_rng(0)
    arrays, results = function.signature.arrays, function.signature.results
    for arg in arrays[: len(arrays) - results]:
        if arg.name not in given and arg.symbols:
            raise CompileError(f"tvmc.run: input '{arg.name}' has extents {', '.join(arg.symbols)}: give it")
        given.setdefault(arg.name, draw.random(cast("tuple[int, ...]", arg.shape)).astype(arg.dtype))
    found = items(function(**given))
    return TVMCResult({f"output_{at}": np.asarray(output) for at, output in enumerate(found)})


def main() -> None:
    """Run weft's `tune`, `compile`, `run`: `python -m weft.tvm tvmc compile --target llvm model.onnx -o model.so`."""
    from weft.tools.weft_cli import main as command  # start-up: 11 ms

    sys.argv[1:] = translated(sys.argv[1:])
    command()


if __name__ == "__main__":
    main()
