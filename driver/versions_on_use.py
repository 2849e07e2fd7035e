"""Versions of functions built when their sizes are first used: `weft.build(specialize="auto")`."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.dialects.memref import GlobalOp

from weft.dialects.constant_data import elements_of, shared_attribute
from weft.dialects.element_types import array_name
from weft.dialects.traversal import copy_of
from weft.runtime.library import Function
from weft.support.call_arguments import bind_arguments, by_position
from weft.support.call_signature import ArraySpec
from weft.support.errors import CompileError
from weft.support.input_axes import Axis
from weft.support.sizes import AUTO, OnUse

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from weft.driver.pipeline import Pipeline
    from weft.runtime.library import Library
    from weft.runtime.timing import SecondsOf
    from weft.support.call_arguments import Array

_SizesOfCall: TypeAlias = tuple[int, ...]


class FunctionOfVersions(Function):
    """Calls a version for the sizes of its arguments, built on the first call with them.

    Sizes beyond the number of versions, empty arrays, and arguments that are not arrays use the general function, which
    also checks the first call of each size.
    """

    def __init__(self, general: Function, build: Callable[[Mapping[str, int]], Function], policy: OnUse) -> None:
        self._general = general
        self.signature = general.signature
        self._build = build
        self._policy = policy
        self._axes: dict[str, tuple[int, int]] = {}
        """Maps a symbol to the argument and the axis that determine it."""
        given = len(self.signature.args) - self.signature.results
        for position, spec in enumerate(self.signature.args[:given]):
            for axis, extent in enumerate(spec.shape if isinstance(spec, ArraySpec) else ()):
                if isinstance(extent, str):
                    self._axes.setdefault(extent, (position, axis))
        self._places = tuple(self._axes.values())
        self._versions: dict[_SizesOfCall, Function | None] = {}
        """Maps sizes to a version; None marks one that is being built or failed to build."""
        self._lock = threading.Lock()

    def __call__(self, *positional: Any, **keywords: Any) -> Any:
        return self._chosen(positional, keywords)(*positional, **keywords)

    @contextmanager
    def runs(self, *positional: object, **keywords: object) -> Generator[SecondsOf]:
        with self._chosen(positional, keywords).runs(*positional, **keywords) as seconds:
            yield seconds

    @property
    def versions(self) -> list[Mapping[str, int]]:
        return [dict(zip(self._axes, sizes, strict=True)) for sizes, found in self._versions.items() if found]

    def _chosen(self, positional: tuple[Any, ...], keywords: Mapping[str, Any]) -> Function:
        try:
            values = cast(
                "Sequence[Any]", by_position(self.signature, positional, keywords) if keywords else positional
            )
            sizes = cast("_SizesOfCall", tuple([values[at].shape[axis] for at, axis in self._places]))
        except (AttributeError, IndexError, TypeError):
            return self._general
        found = self._versions.get(sizes)
        if found is None and sizes not in self._versions and len(self._versions) < self._policy.versions:
            found = self._add(sizes, positional, keywords)
        return found or self._general

    def _add(self, sizes: _SizesOfCall, positional: tuple[Any, ...], keywords: Mapping[str, Any]) -> Function | None:
        if not all(isinstance(size, int) and size > 0 for size in sizes):  # pyright: ignore[reportUnnecessaryIsInstance]
            return None
        bind_arguments(self.signature, positional, keywords)
        with self._lock:
            if sizes in self._versions:
                return self._versions[sizes]
            self._versions[sizes] = None
        if self._policy.is_in_background:
            threading.Thread(target=self._make, args=(sizes,), name="weft-version", daemon=True).start()
            return None
        return self._make(sizes)

    def _make(self, sizes: _SizesOfCall) -> Function | None:
        try:
            self._versions[sizes] = self._build(dict(zip(self._axes, sizes, strict=True)))
        except CompileError as error:
            warnings.warn(f"{self.name}: no version for {sizes}: {error.message}", stacklevel=2)
        return self._versions[sizes]

    def __repr__(self) -> str:
        return f"{self._general!r} with versions on use"


class VersionBuilder:
    """Compiles modules through `stage` into libraries that share constants with `library`."""

    def __init__(self, library: Library, stage: Callable[[ModuleOp], Pipeline]) -> None:
        self._stage = stage
        self._pool = [*library.constants.values()]

    def build(self, module: ModuleOp) -> Library:
        from weft.driver.stages import load  # start-up: 1203 ms

        done = self._stage(module)
        _adopt_constants(done.module, self._pool)
        version = load(done)
        self._pool.extend(version.constants.values())
        return version


def add_versions_on_use(
    library: Library, program: Callable[[], ModuleOp], stage: Callable[[ModuleOp], Pipeline], policy: OnUse
) -> None:
    """Let a library's functions with symbols use versions, built from copies of `program` through `stage`. Raises
    `CompileError` for a target whose functions Python cannot replace."""
    if library.target.kind not in ("llvm", "c") or library.target.obstacle:
        raise CompileError(f"specialize: '{AUTO}' is for functions that run here by llvm or c, got '{library.target}'")
    versions = VersionBuilder(library, stage)

    def builder(name: str) -> Callable[[Mapping[str, int]], Function]:
        def build(sizes: Mapping[str, int]) -> Function:
            from weft.passes.specialize_shapes import specialize_shapes  # start-up: 800 ms

            module, signature = copy_of(program()), library[name].signature
            given = signature.args[: len(signature.args) - signature.results]
            shapes = {
                spec.name: [Axis(sizes[extent] if isinstance(extent, str) else extent) for extent in spec.shape]
                for spec in given
                if isinstance(spec, ArraySpec)
            }
            specialize_shapes(module, shapes, name, "specialize")
            return versions.build(module)[name]

        return build

    for name in library:
        general = library[name]
        if general.signature.extent_symbols:
            library.put_function(name, FunctionOfVersions(general, builder(name), policy))


def _adopt_constants(module: ModuleOp, pool: Sequence[Array]) -> None:
    for op in module.ops:
        if not isinstance(op, GlobalOp) or op.constant is None:
            continue
        value = op.initial_value
        if not isinstance(value, DenseIntOrFPElementsAttr) or array_name(op.type.element_type) is None:
            continue
        elements = elements_of(value)
        for known in pool:
            same = known.shape == elements.shape and known.dtype == elements.dtype
            if same and np.array_equal(known.reshape(-1).view(np.uint8), elements.reshape(-1).view(np.uint8)):
                op.properties["initial_value"] = shared_attribute(known, op.type.element_type)
                break
