"""`from tvm.script import tir as T`: the names of `weft.script.tir`; functions are `tir.PrimFunc`s."""

from collections.abc import Callable
from typing import Any

from weft.frontends.script import tir as _words
from weft.frontends.script.macros import Macro
from weft.tvm.script.definitions import decorator
from weft.tvm.script.reader import read_prim_func


def prim_func(
    func: Callable[..., Any] | None = None, private: bool = False, check_well_formed: bool = True, s_tir: bool = False
) -> Any:
    """A function of block loops, read from the source of the decorated Python function: see `weft.script.prim_func`."""
    return decorator(func, read_prim_func)


def macro(*func: Callable[..., Any], hygienic: bool = True) -> Any:
    """A function of statements that functions under `@T.prim_func` call. Unless `hygienic`, it sees the caller's
    names."""
    return decorator(func[0] if func else None, Macro.read)


inline = macro


def index_map(
    mapping: Callable[..., Any], *, inverse_index_map: object = None, index_dtype: str = "int64"
) -> Callable[..., Any]:
    """An index map, which `R.layout_transform` takes."""
    return mapping


def __getattr__(name: str) -> Any:
    return getattr(_words, name)


def __dir__() -> list[str]:
    return dir(_words)
