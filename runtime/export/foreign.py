"""Programs for CPUs that have what this one lacks: compiled here, exported, and run there."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from weft.backends.llvm.compile import DEFAULT_OPTIONS
from weft.runtime.library import Library
from weft.support.errors import CompileError
from weft.support.stopwatch import Stopwatch

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from weft.backends.llvm.compile import CodegenOptions
    from weft.runtime.signature import Signature
    from weft.support.target import Target


class ForeignLibrary(Library):
    """Functions for a CPU that this process does not run on.

    All that a library has but calls: `get_source("asm")`, `export("f.o")`. Asking for a function raises `CompileError`.
    """

    def __init__(
        self,
        text: str,
        signatures: Iterable[Signature],
        target: Target,
        c_sources: Sequence[str] = (),
        options: CodegenOptions | None = None,
    ) -> None:
        self.target = target
        self.timing = Stopwatch()
        self._sources = {"ll": text}
        self._c_sources = tuple(c_sources)
        self._options = DEFAULT_OPTIONS if options is None else options
        self._signatures = {signature.name: signature for signature in signatures}

    def _function(self, name: str) -> NoReturn:
        raise CompileError(f"'{name}': {self.target.obstacle}; export it")

    def _place(self) -> str:
        return f"{self.target}, to export"
