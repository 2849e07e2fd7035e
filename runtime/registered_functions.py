"""Calls of registered Python functions from compiled code: `weft_call_registered` looks a name up among the functions
set by `weft_set_function`; the one set for all names calls Python.

After an exception the results are zeros, and later registered functions are not called; the compiled function then
raises it (docs/decisions/0050-registered-functions.md).
"""

from __future__ import annotations

import contextvars
import ctypes
import sys
import traceback
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from weft.backends.llvm.jit import jit_forever, keep_forever
from weft.backends.llvm.resources import ir_text
from weft.backends.names import CALL_REGISTERED
from weft.runtime.c_compiler import address_of
from weft.support.dlpack_types import DLPACK_TYPES
from weft.support.registered_calls import call_registered

if TYPE_CHECKING:
    from collections.abc import Generator

    from weft.support.registered_calls import Array

SET_FUNCTION: Final = "weft_set_function"
FAILURE: Final = "weft_failure"
_FILE: Final = Path(__file__).with_name("registered_functions.ll")
_NAMES: Final = {numbers: name for name, numbers in DLPACK_TYPES.items()}

_failures: contextvars.ContextVar[list[BaseException]] = contextvars.ContextVar("weft_failures")
"""Of registered functions in the current compiled call."""


class _Array(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("rank", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
    )


_FUNCTION_TYPE: Final = ctypes.CFUNCTYPE(
    ctypes.c_int32, ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(_Array), ctypes.c_int32, ctypes.c_int32
)


class _ArrayMemory:
    def __init__(self, address: int, shape: tuple[int, ...], kind: str) -> None:
        self.__array_interface__ = {"version": 3, "data": (address, False), "shape": shape, "typestr": kind}


def _view(row: Any) -> tuple[Array, str]:
    name = _NAMES[row.code, row.bits]
    shape = tuple(row.shape[: row.rank])
    stored = np.dtype(f"u{row.bits // 8}")
    if 0 in shape or not row.data:
        array = np.empty(shape, stored)
    else:
        array = np.asarray(cast("Array", _ArrayMemory(row.data, shape, stored.str)))
    return array.view(_dtype(name)), name


def _dtype(name: str) -> np.dtype[Any]:
    """ml_dtypes's if it is loaded, else that of the bits."""
    try:
        return np.dtype(name)
    except TypeError:
        bits = DLPACK_TYPES[name][1]
        return np.dtype(getattr(sys.modules.get("ml_dtypes"), name, f"u{bits // 8}"))


def _call(_context: int | None, name: bytes, arrays: Any, inputs: int, outputs: int) -> int:
    """Returns 1 if a function has failed, else 0."""
    failures = _failures.get(None)
    if failures:
        return 1
    views: list[tuple[Array, str]] = []
    try:
        views += (_view(arrays[number]) for number in range(inputs + outputs))
        given = [view for view, _ in views]
        call_registered(name.decode(), given[:inputs], given[inputs:], [dtype for _, dtype in views])
    except BaseException as error:  # noqa: BLE001, raised by `raising_failures`
        shown = ", ".join(f"{dtype}[{', '.join(map(str, view.shape))}]" for view, dtype in views)
        error.add_note(f'in graph.call_dps "{name.decode()}" of arrays {shown}')
        if failures is None:
            traceback.print_exception(error)  # a call from C has no other way to report it
        else:
            failures.append(error)
        return 1
    return 0


_CALLBACK: Final = _FUNCTION_TYPE(_call)
keep_forever(_CALLBACK)


@contextmanager
def raising_failures() -> Generator[None]:
    """Raise the first exception of a registered function at the end."""
    failures: list[BaseException] = []
    token = _failures.set(failures)
    try:
        yield
    finally:
        _failures.reset(token)
    if failures:
        raise failures[0]


def registered_functions_ir(*, thread_local: bool) -> str:
    return ir_text(_FILE, thread_local="thread_local" if thread_local else "")


@cache
def call_registered_address() -> int:
    module = jit_forever(registered_functions_ir(thread_local=False), 0)
    _set_callback(module.address(SET_FUNCTION))
    return module.address(CALL_REGISTERED)


_connected: Final[set[int]] = set()
"""Addresses of `weft_set_function` in loaded libraries, which stay loaded."""


def connect(code: ctypes.CDLL) -> bool:
    """Returns whether a loaded library calls registered functions."""
    address = address_of(code, SET_FUNCTION)
    if address is None:
        return False
    if address not in _connected:
        _set_callback(address)
        _connected.add(address)
    return True


def _set_callback(set_function: int) -> None:
    prototype = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p)
    if prototype(set_function)(None, ctypes.cast(_CALLBACK, ctypes.c_void_p), None):
        raise MemoryError("there is no memory to register functions")
