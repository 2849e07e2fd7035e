"""Outputs of the driver: `-t svg` and `-t dot` draw the graph functions of a module.

weft-opt model.mlir -t svg > model.svg            every graph function
weft-opt model.mlir -t 'dot{func=main}'           one of them, for Graphviz
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, ClassVar

from xdsl.utils.target import Target

if TYPE_CHECKING:
    from xdsl.context import Context
    from xdsl.dialects.builtin import ModuleOp


@dataclass(frozen=True)
class DotTarget(Target):
    """Graph functions (or the one called `func`) as a DOT digraph. Raises `CompileError` when there is none."""

    name: ClassVar[str] = "dot"

    func: str | None = None

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        from weft.backends.picture.dot import dot_text
        from weft.backends.picture.graph_model import graph_models

        output.write(dot_text(graph_models(module, self.func)))


@dataclass(frozen=True)
class SvgTarget(Target):
    """Graph functions (or the one called `func`) as a standalone SVG. Raises `CompileError` when there is none."""

    name: ClassVar[str] = "svg"

    func: str | None = None

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        from weft.backends.picture.graph_model import graph_models
        from weft.backends.picture.svg import svg_text

        output.write(svg_text(graph_models(module, self.func)))
