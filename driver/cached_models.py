"""Compiled ONNX models in the compile cache.

    cached = CachedModel.of(Path("model.onnx"), target, options, store)
    library = cached.load(stopwatch)     # None if it was not compiled before, or its file has changed
    ...                                  # then it is compiled
    cached.keep(library, kernels, files)

The key covers the content of the model's file, the target, the options, and the versions of weft and its dependencies;
the entry has digests of the model's other files. Loading imports no model and builds no IR.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from weft.frontends.onnx.registry import is_customised
from weft.runtime.compile_cache import CompileCache, ModelEntry, code_depends_on
from weft.runtime.export.library_text import library_text, read_library_text
from weft.runtime.library import Library
from weft.support.build_options import BuildOptions
from weft.support.errors import CompileError
from weft.support.stopwatch import Stopwatch
from weft.support.target import Target
from weft.support.user_functions import intrinsics, names_with_rules

if TYPE_CHECKING:
    from weft.driver.pipeline import ModelKernel


@dataclass(frozen=True)
class CachedModel:
    path: Path
    key: str
    store: CompileCache
    target: Target
    since: float
    """When the file was read, in seconds since the epoch."""

    @staticmethod
    def of(path: Path, target: Target, options: BuildOptions, store: CompileCache | None) -> CachedModel | None:
        """None unless the program is an ONNX model that depends on no state outside keys. Raises `OSError`."""
        if store is None or path.suffix != ".onnx" or options.database is not None:
            return None
        if not options.can_compile_apart(target) or intrinsics() or names_with_rules() or is_customised():
            return None
        since = time.time()
        key = hashlib.blake2b(_digest(path).encode() + code_depends_on(target, options), digest_size=32)
        return CachedModel(path, key.hexdigest(), store, target, since)

    def load(self, stopwatch: Stopwatch) -> Library | None:
        """None if the cache lacks a part, or another file of the model has changed."""
        with stopwatch.measure("compile cache"):
            model = self.store.load_model(self.key)
            if model is None or not self._has(model):
                return None
            kernels = [self.store.load(key) for key in model.kernels]
            try:
                signatures = read_library_text(model.signatures).signatures
            except CompileError:
                return None
        found = [kernel for kernel in kernels if kernel is not None]
        if len(found) != len(kernels):
            return None
        return Library(
            {"ll": model.ir},
            signatures,
            self.target,
            stopwatch=stopwatch,
            constants=model.constants,
            kernels=found,
        )

    def keep(self, library: Library, kernels: Sequence[ModelKernel], files: Collection[str]) -> None:
        """`files` are those that the model refers to, relative to its folder."""
        ir = library.own_ir
        if not kernels or ir is None:
            return
        try:
            if any(file.stat().st_mtime >= self.since for file in (self.path, *map(self._beside, files))):
                return  # the file may have changed after it was read
            digests = {name: _digest(self._beside(name)) for name in files}
        except OSError:
            return
        signatures = library_text([library[name].signature for name in library], self.target)
        keys = tuple(kernel.key for kernel in kernels)
        if self.store.store_model(self.key, ModelEntry(digests, signatures, keys, ir, library.constants)):
            self.store.evict()

    def _beside(self, name: str) -> Path:
        return self.path.parent / name

    def _has(self, model: ModelEntry) -> bool:
        try:
            return all(_digest(self._beside(name)) == digest for name, digest in model.files.items())
        except OSError:
            return False


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
