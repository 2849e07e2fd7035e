"""The fast way into compiled code: a C function for CPython that checks its arguments through the buffer
protocol.

One routine, written in LLVM IR and compiled once per process, serves every function: a table describes the
arguments. It accepts what is surely right (arrays of NumPy's own class, not of a subclass, with the exact type, shape
and layout, plain numbers) and calls the kernel; for anything else it calls a Python function with the same arguments,
which finds out what is wrong, converts, or runs a call that may take long where it can be interrupted. Being too strict
here is therefore safe, too lax would not be.

The layouts relied on are `Py_buffer` and `PyMethodDef`, part of the stable ABI since Python 3.11.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from weft.backends.llvm.resources import ir_text
from weft.runtime.signature import LONG_BYTES, LONG_ITERATIONS, ArraySpec, ScalarSpec, Signature

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_ARGUMENTS: Final = 64
"""Functions with more arguments, or more symbols, are called through Python."""

GIL_THRESHOLD_BYTES: Final = 32 << 10
"""Calls on this many bytes of arrays let other Python threads run meanwhile. Letting go of the interpreter
lock costs about 0.05 us, and touching 32 KiB takes at least ten times that."""

_FIRST_SYMBOL: Final = -(1 << 63)
"""Strides may be negative: a symbol among them is its number, counted from the least integer."""

# Kinds of argument in the table.
_ARRAY, _FLOAT64, _FLOAT32, _INTEGER, _BOOL, _PYTHON = range(6)

# Classes of element types, by the letters of the buffer protocol's formats.
_CLASSES: Final = {"bool": 1, "int": 2, "uint": 4, "float": 8}
_FORMATS: Final = {1: "?", 2: "bhilqn", 4: "BHILQN", 8: "efd"}


class _Call(ctypes.Structure):
    _fields_ = (
        ("function", ctypes.c_void_p),
        ("thunk", ctypes.c_void_p),
        ("slow", ctypes.py_object),
        ("arguments", ctypes.c_int64),
        ("symbols", ctypes.c_int64),
        ("gil_bytes", ctypes.c_int64),
        ("table", ctypes.c_void_p),
        ("extents", ctypes.c_uint64),
        ("iterations", ctypes.c_double),
    )


class _Argument(ctypes.Structure):
    _fields_ = (
        ("kind", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("itemsize", ctypes.c_int64),
        ("type_class", ctypes.c_int64),
        ("shape", ctypes.c_void_p),
        ("writes", ctypes.c_int64),
        ("least", ctypes.c_int64),
        ("most", ctypes.c_int64),
        ("strides", ctypes.c_void_p),
    )


class _MethodDef(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("method", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


_FILE: Final = Path(__file__).with_name("native_call.ll")
_FASTCALL_WITH_KEYWORDS: Final = 0x0080 | 0x0002


def native_entry(
    signature: Signature, function: int, thunk: int, slow: Callable[..., object], *, always_release_gil: bool
) -> Callable[..., object] | None:
    """A callable that checks arguments natively and falls back to `slow`. It keeps `slow` (and what that
    refers to) alive, so `slow` must refer to the compiled code. None where there is no such way in: another
    Python than CPython, a 32-bit one, or a function with very many arguments.
    """
    if len(signature.args) > MAX_ARGUMENTS or len(signature.symbols) > MAX_ARGUMENTS:
        return None
    entry = _entry_address()
    if not entry:
        return None
    arguments = (_Argument * len(signature.args))()
    shapes = [_describe(signature, spec, arguments[index]) for index, spec in enumerate(signature.args)]
    call = _Call(
        function,
        thunk,
        slow,
        len(signature.args),
        len(signature.symbols),
        0 if always_release_gil else GIL_THRESHOLD_BYTES,
        ctypes.addressof(arguments),
        sum(1 << signature.symbols.index(symbol) for symbol in signature.extent_symbols),
        min(signature.iterations, 1 << 62),
    )
    method = _MethodDef(signature.name.encode(), entry, _FASTCALL_WITH_KEYWORDS, str(signature).encode())
    # The function object holds its "module", which is any object: this one keeps the tables alive.
    owner = (slow, call, arguments, shapes, method)
    python = ctypes.pythonapi
    new_capsule = python.PyCapsule_New
    new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    new_function = python.PyCFunction_NewEx
    new_function.restype = ctypes.py_object
    new_function.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.py_object]
    capsule: Any = new_capsule(ctypes.addressof(call), None, None)
    return cast("Callable[..., object]", new_function(ctypes.addressof(method), capsule, owner))


def _describe(signature: Signature, spec: ArraySpec | ScalarSpec, row: _Argument) -> object:
    """Fill in the table's row of one argument; returns what the row points to."""
    element = spec.element
    row.itemsize = element.bytes
    if isinstance(spec, ArraySpec):
        row.kind, row.rank, row.writes = _ARRAY, len(spec.shape), spec.writes
        row.type_class = _CLASSES["uint" if spec.dtype == "bfloat16" else element.kind]
        # A symbol is its number, complemented, so that it is negative.
        extents = [~signature.symbols.index(e) if isinstance(e, str) else e for e in spec.shape]
        shape = (ctypes.c_int64 * len(extents))(*extents)
        row.shape = ctypes.addressof(shape)
        if spec.strides is None:
            return shape
        numbers = [_FIRST_SYMBOL + signature.symbols.index(s) if isinstance(s, str) else s for s in spec.strides]
        strides = (ctypes.c_int64 * len(numbers))(*numbers)
        row.strides = ctypes.addressof(strides)
        return shape, strides
    if spec.symbol:
        row.kind = _PYTHON
        return None
    match element.kind:
        case "float":
            row.kind = {"float64": _FLOAT64, "float32": _FLOAT32}.get(spec.dtype, _PYTHON)
        case "bool":
            row.kind = _BOOL
        case "int" | "uint":
            row.kind = _INTEGER
            # An unsigned number past the signed range goes the slow way.
            row.least, row.most = element.range[0], min(element.range[1], (1 << 63) - 1)
    return None


def native_call_ir() -> str:
    """The routine as LLVM IR."""
    letters = {letter: code for code, known in _FORMATS.items() for letter in known}
    classes = ", ".join(f"i8 {letters.get(chr(code), 0)}" for code in range(256))
    return ir_text(
        _FILE,
        most_arguments=MAX_ARGUMENTS,
        most_slots=2 * MAX_ARGUMENTS,
        type_offset=object.__basicsize__ - 8,
        format_classes=f"[{classes}]",
        long_iterations=f"{LONG_ITERATIONS:.1f}",
        long_bytes=LONG_BYTES,
    )


@cache
def _entry_address() -> int:
    """The address of the compiled routine; 0 where it cannot serve."""
    if sys.implementation.name != "cpython" or ctypes.sizeof(ctypes.c_void_p) != 8 or sys.byteorder != "little":
        return 0
    from weft.backends.llvm.jit import jit, keep_forever
    from weft.support.target import Target

    # Level 0 takes 4 ms, level 1 takes 27 ms and saves 0.04 us of 0.19 us a call.
    module = jit(native_call_ir(), Target.of_process(0), {"weft_ndarray_type": id(np.ndarray)})
    keep_forever(module)
    return module.address("weft_call")
