"""Programs for other kinds of machines: compiled here, exported, and run there."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from weft.backends.llvm.compile import DEFAULT_OPTIONS
from weft.runtime.library import Library, UnknownFunctionError
from weft.support.errors import CompileError, did_you_mean
from weft.support.machine import host_triple
from weft.support.stopwatch import Stopwatch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from weft.backends.llvm.compile import CodegenOptions
    from weft.runtime.signature import Signature
    from weft.support.target import Target


class ForeignLibrary(Library):
    """Functions for a machine that this process does not run on.

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

    def __getitem__(self, name: str) -> NoReturn:
        if name not in self._signatures:
            raise UnknownFunctionError(f"the library has no function '{name}'{did_you_mean(name, self._signatures)}")
        raise CompileError(
            f"'{name}' is code for {self.target.triple}, which cannot run in this process, which is {host_triple()}: "
            "export it"
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self._signatures)

    def __len__(self) -> int:
        return len(self._signatures)

    def __contains__(self, name: object) -> bool:
        return name in self._signatures

    def _signatures_of(self) -> tuple[Signature, ...]:
        return tuple(self._signatures.values())

    def __repr__(self) -> str:
        functions = ", ".join(map(str, self._signatures.values()))
        return f"<weft library for {self.target}, to export: {functions}>"
