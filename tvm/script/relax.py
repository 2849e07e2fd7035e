"""`from tvm.script import relax as R`: functions of graphs as script, and the words in them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

from weft.frontends import graph_builder
from weft.frontends.graph_builder import Value
from weft.support.errors import CompileError
from weft.texpr.shapes import items
from weft.tvm.ir.module import GlobalVar
from weft.tvm.relax import op
from weft.tvm.relax.expr import Call, TensorStructInfo, const
from weft.tvm.relax.function import Function


def Tensor(shape: Sequence[Any] | None = None, dtype: str = "float32", ndim: int = -1) -> TensorStructInfo:
    """A type of tensors: `R.Tensor((1, "n"), "float32")`."""
    del ndim
    return TensorStructInfo(shape, dtype)


def function(func: Callable[..., Any] | None = None, *, private: bool = False, pure: bool = True) -> Any:
    """A function of a graph, read from the source of the Python function that this decorates. In a class under
    `@ir_module` it belongs to its module."""
    from weft.tvm.script.graph_reader import read_function

    del private, pure  # the reader finds them in the source
    read = partial(read_function, frame=sys._getframe(1))  # pyright: ignore[reportPrivateUsage]
    return read if func is None else read(func)


def _only_read(name: str) -> Callable[..., Any]:
    def word(*_: Any, **__: Any) -> Any:
        raise CompileError(f"R.{name} stands in functions under @R.function, which are read, not run")

    return word


dataflow, output, func_attr = _only_read("dataflow"), _only_read("output"), _only_read("func_attr")


def _results(out_sinfo: Any, dtype: Any) -> list[TensorStructInfo]:
    """The types of results, of which older versions of TVM take shape and dtype apart."""
    if dtype is not None:
        return [TensorStructInfo(out_sinfo, dtype)]
    given = items(out_sinfo)
    found = [info for info in given if isinstance(info, TensorStructInfo)]
    if not found or len(found) < len(given):
        raise CompileError("out_sinfo: a result is R.Tensor(shape, dtype), or there is a dtype beside its shape")
    return found


def call_dps_packed(func: str | GlobalVar, args: Any, out_sinfo: Any = None, dtype: str | None = None) -> Any:
    """A call of a registered function, or of a function of the module, that fills results."""
    infos = _results(out_sinfo, dtype)
    name = func.name_hint if isinstance(func, GlobalVar) else str(func)
    found = graph_builder.call_dps(
        name, cast("list[Value]", list(items(args))), [i.extents for i in infos], [i.dtype for i in infos]
    )
    calls = tuple(Call.at(value.ssa) for value in found)
    return calls[0] if len(calls) == 1 else calls


call_tir = call_dps_packed


def __getattr__(name: str) -> Any:
    return getattr(op, name)


__all__ = ["Function", "Tensor", "call_dps_packed", "call_tir", "const", "dataflow", "func_attr", "function", "output"]
