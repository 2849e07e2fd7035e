"""`from tvm.script import relax as R`: functions of graphs as script, and the words in them."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

from weft.frontends import graph_builder
from weft.frontends.graph_builder import Value
from weft.support.errors import CompileError
from weft.texpr.shapes import items
from weft.tvm.relax import op
from weft.tvm.relax.expr import Call, GlobalVar, TensorStructInfo
from weft.tvm.script.definitions import decorator
from weft.tvm.script.graph_reader import read_function


def Tensor(shape: Sequence[Any], dtype: str = "float32", ndim: int = -1) -> TensorStructInfo:
    """A type of tensors: `R.Tensor((1, "n"), "float32")`. `ndim` has no effect: it is that of the shape."""
    return TensorStructInfo(shape, dtype)


def function(func: Callable[..., Any] | None = None, *, private: bool = False, pure: bool = True) -> Any:
    """A function of a graph, read from the source of the Python function that this decorates, as is `private`. In a
    class under `@ir_module` it belongs to its module. `pure` has no effect."""
    return decorator(func, read_function)


def _only_read(name: str, *_: Any, **__: Any) -> Any:
    raise CompileError(f"R.{name} stands in functions under @R.function, which are read, not run")


dataflow, output, func_attr = (partial(_only_read, name) for name in ("dataflow", "output", "func_attr"))


def call_dps_packed(func: str | GlobalVar, args: Any, out_sinfo: Any = None, dtype: str | None = None) -> Any:
    """A call of a registered function, or of a function of the module, that fills results. Older versions of TVM take
    their shape and dtype apart."""
    infos = [TensorStructInfo(out_sinfo, dtype)] if dtype is not None else list(items(out_sinfo))
    shapes, dtypes = list[Any](), list[str]()
    for info in infos:
        if not isinstance(info, TensorStructInfo):
            raise CompileError("out_sinfo: a result is R.Tensor(shape, dtype), or there is a dtype beside its shape")
        shapes.append(info.shape)
        dtypes.append(info.dtype)
    name = func.name_hint if isinstance(func, GlobalVar) else str(func)
    found = graph_builder.call_dps(name, cast("list[Value]", list(items(args))), shapes, dtypes)
    calls = tuple(Call.at(value.ssa) for value in found)
    return calls[0] if len(calls) == 1 else calls


call_tir = call_dps_packed


def __getattr__(name: str) -> Any:
    return getattr(op, name)
