"""Programs as modules, read from text and files."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from weft.dialects.traversal import copy_of
from weft.driver.parsing import decode_text, parse_text
from weft.driver.unified_models import UNIFIED, UnifiedModel
from weft.driver.verify import verify_module
from weft.support.argument_types import checked
from weft.support.errors import CompileError
from weft.support.input_axes import axes_of
from weft.support.locations import remember_text
from weft.support.packages import installed_universe

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from onnx import ModelProto

    from weft.frontends.graph_builder import BlockBuilder
    from weft.frontends.onnx.importer import InputShape, Outcome


def context() -> Context:
    """The dialects of xDSL, weft and installed packages (entry points `xdsl.universe`), imported on first use. Raises
    `CompileError` for a package that cannot be loaded."""
    from weft.driver.universe import register_dialects  # start-up: 8 ms

    ctx = Context()
    register_dialects(ctx, installed_universe())
    return ctx


def refuse_file_name(function: str, program: str) -> None:
    """Raises `ValueError` if the text of a module is the name of a file."""
    if "\n" not in program and program.endswith((".mlir", ".onnx")):
        raise ValueError(f"{function}: argument 'program' is MLIR text; a file is given as pathlib.Path({program!r})")


@checked
def parse(text: str, name: str = "<string>") -> ModuleOp:
    """Parse and verify `text`, called `name` in errors. Raises `CompileError`."""
    remember_text(name, text)
    module = parse_text(context(), text, name)
    verify_module(module)
    return module


@checked
def parse_file(
    file: str | Path, shapes: Mapping[str, str | Sequence[int | str]] | None = None, *, name: str | None = None
) -> ModuleOp:
    """The verified module of an `.mlir` or `.onnx` file, specialised to `shapes` of inputs (`specialize`). Raises
    `CompileError` and `OSError`."""
    path = Path(file)
    if path.suffix == ".onnx":
        return onnx_module(path, shapes)[0]
    if path.suffix != ".mlir":
        raise CompileError(f"'{file}': weft runs .mlir and .onnx files, got '{path.suffix or path.name}'")
    module = parse(decode_text(path.read_bytes(), str(file)), str(file))
    return specialize(module, shapes, name=name) if shapes else module


@checked
def specialize(
    module: ModuleOp, shapes: Mapping[str, str | Sequence[int | str]], *, name: str | None = None
) -> ModuleOp:
    """Returns a copy of a module with a function, by default the one without callers, specialised to shapes of its
    parameters.

        weft.specialize(module, {"ids": "1x128"})  # numbers replace symbols
        weft.specialize(module, {"ids": "b:1..8 x s:1..512"})  # names rename them; ranges are preconditions of calls
        weft.specialize(module, {"ids": ("b", "s:1..512"), "mask": "b x s"})  # symbols of one name are equal

    Functions other than graphs are lowered to buffers first. Raises `CompileError` for an unknown parameter, another
    rank, and shapes that contradict each other or the module.
    """
    from weft.passes.specialize_shapes import specialize_shapes  # start-up: 800 ms

    found = copy_of(module)
    specialize_shapes(found, {key: axes_of(value, f"shape of '{key}'") for key, value in shapes.items()}, name)
    return found


def onnx_module(
    model: str | os.PathLike[str] | bytes | ModelProto,
    shapes: Mapping[str, InputShape] | None = None,
    constants: Mapping[str, ArrayLike] | None = None,
    *,
    fallback: bool = False,
    weights: str | os.PathLike[str] | None = None,
    into: Callable[[], BlockBuilder] | None = None,
) -> tuple[ModuleOp, frozenset[str]]:
    """The module of an ONNX model (`weft.from_onnx`) and the files that it refers to, relative to its folder; `into`
    creates the module's builder. Raises `CompileError` and `OSError`."""
    from weft.frontends.graph_builder import BlockBuilder  # start-up: 344 ms

    importer = _onnx_importer()

    def again(shapes: Mapping[str, InputShape]) -> ModuleOp:
        return onnx_module(model, shapes, constants, fallback=fallback, weights=weights)[0]

    builder, files, unified = importer.import_model(
        model, into or BlockBuilder, shapes or {}, constants or {}, fallback, weights
    )
    module = builder.get()
    if unified.extents:
        UNIFIED[module] = UnifiedModel(unified.axes, unified.extents, dict(shapes or {}), again)
    return module, files


def onnx_operators(
    model: str | os.PathLike[str] | bytes | ModelProto,
    shapes: Mapping[str, InputShape] | None = None,
    constants: Mapping[str, ArrayLike] | None = None,
) -> tuple[Mapping[str, Outcome], Sequence[str]]:
    """The outcomes of an import, by operator, and lines about the cost of a fallback for rejected nodes. Raises
    `CompileError` for an invalid model, and `OSError`."""
    return _onnx_importer().operators_of(model, shapes or {}, constants or {})


def _onnx_importer() -> ModuleType:
    try:
        from weft.frontends.onnx import importer  # start-up: 430 ms
    except ModuleNotFoundError as error:
        if error.name not in ("onnx", "ml_dtypes", "google"):
            raise
        raise CompileError("ONNX models need the package onnx: pip install 'weft[onnx]'") from None
    return importer
