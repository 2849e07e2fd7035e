"""Compiled modules."""

from pathlib import Path
from typing import Any

from weft.runtime.library import Function, Library
from weft.runtime.timing import TimeEvaluator
from weft.support.gpu_machine import GPU_KINDS
from weft.tvm.runtime.ndarray import Device


class DeviceModule:
    def __init__(self, library: Library) -> None:
        self._library = library

    def get_source(self, fmt: str = "") -> str:
        """The kernels' source, or another form (`ptx`)."""
        return self._library.get_source("" if fmt in ("", "cu", "cl") else fmt)


class Module:
    """A library of `weft.build`: `mod(a, b, c)` calls the first function, or `mod["main"](a, b, c)`."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self.imported_modules = [DeviceModule(library)] if library.target.kind in GPU_KINDS else []
        """The kernels, if any."""

    @property
    def entry_name(self) -> str:
        return "main" if "main" in self.library else next(iter(self.library))

    def __getitem__(self, name: str) -> Function:
        return self.library[name]

    get_function = __getitem__

    def __call__(self, *args: Any) -> Any:
        return self[self.entry_name](*args)

    def get_source(self, fmt: str = "") -> str:
        """LLVM's "ll" or "asm", by default the host's code."""
        return self.library.get_source("host" if self.imported_modules and not fmt else {"s": "asm"}.get(fmt, fmt))

    def time_evaluator(
        self, func_name: str, dev: Device | None = None, number: int = 10, repeat: int = 1, min_repeat_ms: float = 0
    ) -> TimeEvaluator:
        """A measuring function; its result's `.mean` is in seconds."""
        del dev
        return self.library.time_evaluator(func_name, number, repeat, min_repeat_ms)

    def export_library(self, file_name: str | Path) -> Path:
        return self.library.export(file_name)
