"""Graphs: functions of whole tensors, built in Python. `from weft import graph as G`.

    bb = G.BlockBuilder()
    x, w = G.var("x", ("n", 784)), G.var("w", (784, 128))
    with bb.function("main", [x, w]):
        with bb.dataflow():
            y = bb.emit_output(G.relu(x @ w))
        bb.emit_func_output(y)
    mod = G.bind_params(bb.get(), "main", {"w": weights})
    lib = weft.build(mod)

Every operator of `weft.te.ops` is a function of values here. `G.pattern` matches and rewrites patterns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Self

from xdsl.dialects.builtin import ModuleOp

from weft.dialects.traversal import copy_of
from weft.frontends import graph_builder
from weft.frontends import graph_pattern as pattern
from weft.frontends.graph_builder import Value, bind_params, call_dps, const, operator, operator_names, var

if TYPE_CHECKING:
    from typing import TextIO

    from weft.frontends.script.show import Script

__all__ = ["BlockBuilder", "Module", "Value", "bind_params", "call_dps", "const", "pattern", "svg", "var"]


class Module(ModuleOp):
    """A module of graph functions, with methods that display it."""

    @classmethod
    def of(cls, module: ModuleOp) -> Self:
        """`module` if it is an instance, else a copy as one."""
        if isinstance(module, cls):
            return module
        copy = copy_of(module)
        return cls(copy.detach_region(copy.body), dict(copy.attributes), copy.sym_name)

    def script(self) -> Script:
        """The Python that builds the graph functions, coloured in notebooks."""
        from weft.frontends.graph_script import print_graph_script  # start-up: 6 ms
        from weft.frontends.script.show import Script  # start-up: 95 ms

        return Script(print_graph_script(self))

    def show(self, *, color: bool | None = None, file: TextIO | None = None) -> None:
        """Show the script; see `weft.script.show`."""
        from weft.frontends.script.show import show_text  # start-up: 95 ms

        show_text(self.script(), color=color, file=file)

    def svg(self, function: str | None = None) -> Picture:
        """The graph functions, or one, as SVG. Raises `CompileError` if there are none."""
        return svg(self, function)

    def _repr_html_(self) -> str:
        return self.svg()


class BlockBuilder(graph_builder.BlockBuilder):
    __doc__ = graph_builder.BlockBuilder.__doc__

    def __init__(self, module: ModuleOp | None = None) -> None:
        """Add to `module` if it is a `Module`, else to a copy; by default, to a new one."""
        self._own = Module([]) if module is None else Module.of(module)
        super().__init__(self._own)

    def get(self) -> Module:
        """The module, verified. Raises `CompileError` while a function is open."""
        super().get()
        return self._own


class Picture(str):
    """The text of an SVG, shown as a picture in notebooks."""

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return str(self)


def svg(module: object, function: str | None = None) -> Picture:
    """A module's graph functions, or one, as SVG. Raises `CompileError` if there are none."""
    from weft.backends.picture.graph_model import graph_models  # start-up: 12 ms
    from weft.backends.picture.svg import svg_text  # start-up: 59 ms

    if not isinstance(module, ModuleOp):
        raise TypeError(f"svg: argument 'module' must be a module, got a value of type {type(module).__name__}")
    return Picture(svg_text(graph_models(module, function)))


def __getattr__(name: str) -> Callable[..., Value | tuple[Value, ...]]:
    return operator(name)


def __dir__() -> list[str]:
    return [*__all__, *operator_names()]
