"""The programs of `examples/` as they are built and called, for judges of what weft writes in upstream's dialects."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

import weft
from weft.backends.upstream import UpstreamTarget
from weft.driver import stages
from weft.passes.convert.convert_low_to_upstream import ConvertLowToUpstreamPass
from weft.runtime import low_module
from weft.support.build_options import BuildOptions

EXAMPLES = Path(__file__).parents[2] / "examples"
SCRIPTS = tuple(sorted(path.name for path in EXAMPLES.glob("*.py")))
FILES = tuple(sorted(path.name for path in EXAMPLES.glob("*.mlir")))
MOST_BUILDS = 6
"""Programs of a script that are judged: some try many schedules."""


def upstream_of_low(module: ModuleOp, *, by_xdsl: bool) -> str:
    """A module at low level in upstream's dialects, printed as by target `upstream`, or as by stock `xdsl-opt`."""
    module = module.clone()
    ConvertLowToUpstreamPass().apply(Context(), module)
    module.verify()
    if by_xdsl:
        return str(module)
    output = StringIO()
    UpstreamTarget().emit(Context(), module, output)
    return output.getvalue()


@dataclass
class _Both:
    """Two functions that do the same."""

    ours: Any
    theirs: Any

    def __getattr__(self, name: str) -> Any:
        return getattr(self.ours, name)

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        given = [np.array(a) if isinstance(a, np.ndarray) else a for a in arguments]
        results = self.ours(*arguments, **keywords)
        returned = () if results is None else results if isinstance(results, tuple) else (results,)
        given += [np.zeros_like(result) for result in returned]
        self.theirs(*given)
        for mine, other in zip((*arguments, *returned), given, strict=True):
            if isinstance(mine, np.ndarray):
                np.testing.assert_allclose(other, mine, rtol=1e-4, atol=1e-4)
        return results


@contextmanager
def judged(
    judge: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch, *, by_xdsl: bool = False
) -> Iterator[list[str]]:
    """Compares each call of a function that is built for LLVM with the one that `judge` makes of the text of the module
    in upstream's dialects; gives the texts."""
    texts: list[str] = []
    load = low_module.load_low_module

    def load_judged(module: ModuleOp, target: weft.Target, **options: Any) -> Any:
        if target.kind != "llvm" or len(texts) == MOST_BUILDS:
            return load(module, target, **options)
        texts.append(upstream_of_low(module, by_xdsl=by_xdsl))
        other, library = judge(texts[-1]), load(module, target, **options)

        class Judged(type(library)):
            def __getitem__(self, name: str) -> Any:
                return _Both(super().__getitem__(name), other[name])

        library.__class__ = Judged
        return library

    with monkeypatch.context() as patch:
        patch.setattr(stages, "load_low_module", load_judged)
        patch.setattr(BuildOptions, "can_compile_apart", lambda *_: False)  # the judges see whole modules
        yield texts


def run_file(name: str) -> None:
    """Builds a module of `examples/` and calls its functions on random arrays."""
    library = weft.build(EXAMPLES / name)
    rng = np.random.default_rng(0)
    for function in library:
        arguments = library[function].signature.args
        library[function](*(rng.standard_normal(argument.shape, np.float32) for argument in arguments))
