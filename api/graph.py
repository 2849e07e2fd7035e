"""Graphs: functions of whole tensors, built in Python. `from weft import graph as G`.

    bb = G.BlockBuilder()
    x, w = G.var("x", ("n", 784)), G.var("w", (784, 128))
    with bb.function("main", [x, w]):
        with bb.dataflow():
            y = bb.emit_output(G.relu(x @ w))
        bb.emit_func_output(y)
    mod = G.bind_params(bb.get(), "main", {"w": weights})
    lib = weft.build(mod)

Besides the names below, every operator of `weft.te.ops` is a function of values here: `G.relu`, `G.conv2d`, ...
"""

from collections.abc import Callable

from weft.frontends.graph_builder import BlockBuilder, Value, bind_params, const, operator, operator_names, var

__all__ = ["BlockBuilder", "Value", "bind_params", "const", "svg", "var"]


def svg(module: object, function: str | None = None) -> str:
    """The picture of the graph functions of a module, or of one, as SVG text. Raises `CompileError` for none."""
    from xdsl.dialects.builtin import ModuleOp

    from weft.backends.picture.graph_model import graph_models
    from weft.backends.picture.svg import svg_text

    if not isinstance(module, ModuleOp):
        raise TypeError(f"svg: argument 'module' must be a module, got a value of type {type(module).__name__}")
    return svg_text(graph_models(module, function))


def __getattr__(name: str) -> Callable[..., Value | tuple[Value, ...]]:
    return operator(name)


def __dir__() -> list[str]:
    return [*__all__, *operator_names()]
