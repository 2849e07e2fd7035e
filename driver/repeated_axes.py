"""Versions of ONNX models for axes of one element that operators repeat, built by the first call that passes them.

The import of `add(x: tensor<n>, y: tensor<m>)` unifies n and m (`unified_models.py`) for faster code. ONNX also allows
m = 1: such calls use the model imported with that axis.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from weft.driver.versions_on_use import VersionBuilder
from weft.runtime.library import Function
from weft.support.call_arguments import by_position
from weft.support.call_signature import ArraySpec
from weft.support.errors import CompileError

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from weft.driver.pipeline import Pipeline
    from weft.driver.unified_models import UnifiedModel
    from weft.runtime.library import Library
    from weft.runtime.timing import SecondsOf

_MOST_VERSIONS = 8
"""The number of versions of a function."""


class RepeatingFunction(Function):
    """Calls a version of itself for arrays with axes of one element that the version repeats."""

    def __init__(
        self, general: Function, build: Callable[[ModuleOp], Function], model: Callable[[], UnifiedModel | None]
    ) -> None:
        self._general = general
        self.signature = general.signature
        self._build = build
        self._model = cache(model)
        self._versions: dict[frozenset[str], Function | None] = {}
        """By the symbols that are 1. None for a version that cannot be built."""

    def __call__(self, *positional: Any, **keywords: Any) -> Any:
        try:
            return self._general(*positional, **keywords)
        except ValueError:
            version = self._version(positional, keywords)
            if version is None:
                raise
        return version(*positional, **keywords)

    @contextmanager
    def runs(self, *positional: object, **keywords: object) -> Generator[SecondsOf]:
        version = self._version(positional, keywords) or self._general
        with version.runs(*positional, **keywords) as seconds:
            yield seconds

    def _version(self, positional: tuple[Any, ...], keywords: Mapping[str, Any]) -> Function | None:
        try:
            values = cast(
                "Sequence[Any]", by_position(self.signature, positional, keywords) if keywords else positional
            )
            pairs = zip(self.signature.args, values, strict=False)
            shapes = {spec.name: tuple(value.shape) for spec, value in pairs if isinstance(spec, ArraySpec)}
        except (AttributeError, TypeError):
            return None
        if not any(1 in shape for shape in shapes.values()):
            return None
        model = self._model()
        repeated = frozenset[str]() if model is None else model.repeated(shapes)
        if model is None or not repeated:
            return None
        if repeated not in self._versions and len(self._versions) < _MOST_VERSIONS:
            self._versions[repeated] = None
            with suppress(CompileError):
                self._versions[repeated] = self._build(model.import_with(repeated))
        return self._versions.get(repeated)

    def __repr__(self) -> str:
        return repr(self._general)


def add_repeating_versions(
    library: Library, model: Callable[[], UnifiedModel | None], stage: Callable[[ModuleOp], Pipeline]
) -> None:
    if "main" not in library or library.target.obstacle or not library["main"].signature.extent_symbols:
        return
    versions = VersionBuilder(library, stage)

    def build(module: ModuleOp) -> Function:
        return versions.build(module)["main"]

    library.put_function("main", RepeatingFunction(library["main"], build, model))
