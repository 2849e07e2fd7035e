"""`from tvm.script import tir as T`, by `weft.script.tir`, with `tir.PrimFunc`s."""

from collections.abc import Callable
from typing import Any

from weft.frontends.script import tir as _words
from weft.frontends.script.macros import Macro
from weft.tvm.script.definitions import decorator
from weft.tvm.script.reader import read_prim_func
from weft.tvm.tir.function import IndexMap


def prim_func(
    func: Callable[..., Any] | None = None, private: bool = False, check_well_formed: bool = True, s_tir: bool = False
) -> Any:
    """See `weft.script.prim_func`."""
    return decorator(func, read_prim_func)


def macro(*func: Callable[..., Any], hygienic: bool = True) -> Any:
    """Statements. Unless `hygienic`, they see the caller's names."""
    return decorator(func[0] if func else None, Macro.read)


inline = macro
index_map = IndexMap.from_func


def __getattr__(name: str) -> Any:
    return getattr(_words, name)


def __dir__() -> list[str]:
    return dir(_words)
