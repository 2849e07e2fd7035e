"""`tirx` is `tir` since TVM 0.25."""

from typing import Any

from weft.tvm.script import tir
from weft.tvm.script.tir import inline, macro, prim_func


def __getattr__(name: str) -> Any:
    return getattr(tir, name)


__all__ = ["inline", "macro", "prim_func"]
