"""Calls of compiled functions.

The fast path is a C function for CPython that checks its arguments through the buffer protocol. One routine in LLVM IR
(`native_call.ll`), compiled once per process, serves every function by a table of its arguments. It accepts only
certainly valid ones (arrays of NumPy's own class with the exact type, shape and layout; plain numbers) and passes
others to a Python function, which reports errors, converts, or runs a long call interruptibly. So it may be too strict,
but never too lax. It relies on the layouts of `Py_buffer` and `PyMethodDef`, part of the stable ABI since Python 3.11.
"""

from __future__ import annotations

import contextvars
import ctypes
import operator
import sys
import threading
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from weft.backends.llvm.jit import jit_forever
from weft.backends.llvm.resources import ir_text
from weft.runtime.native_preconditions import predicate_address
from weft.runtime.registered_functions import raising_failures
from weft.runtime.runtime_code import optimised_forever
from weft.support.call_arguments import (
    AllocatedResult,
    BoundArguments,
    allocate,
    as_array,
    bind_arguments,
    by_position,
    is_number,
    returned,
    stored_dtype,
)
from weft.support.call_preconditions import CallPrecondition
from weft.support.call_signature import LONG_ITERATIONS, ArraySpec, ElementType, ScalarSpec, Signature

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from weft.support.call_arguments import Array
    from weft.support.call_signature import Signature


MAX_ARGUMENTS: Final = 64
"""Functions with more arguments, or more symbols, are called through Python."""

GIL_THRESHOLD_BYTES: Final = 32 << 10
"""Calls on at least this many bytes of arrays release the interpreter lock. That costs about 0.05 us; touching 32 KiB
takes at least ten times as long."""

_LARGE_BYTES: Final = 64 << 20
"""Calls on at least this many bytes of arrays first check that there is memory for temporaries."""

_FIRST_SYMBOL: Final = -(1 << 63)
"""Strides may be negative, so a symbol is encoded as its index above the least integer."""

_ARRAY, _FLOAT64, _FLOAT32, _INTEGER, _BOOL, _PYTHON = range(6)

# Bits of the element classes, and the format letters of the buffer protocol of each class.
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
        ("preconditions", ctypes.c_void_p),
        ("elements", ctypes.c_int64),
        ("element_table", ctypes.c_void_p),
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
        ("takes_number", ctypes.c_int64),
    )


class _Element(ctypes.Structure):
    _fields_ = (
        ("symbol", ctypes.c_int64),
        ("argument", ctypes.c_int64),
        ("offset", ctypes.c_int64),
        ("bytes", ctypes.c_int64),
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
    """Returns a callable that checks arguments natively and falls back to `slow`, or None.

    It keeps `slow`, which must refer to the compiled code, alive. Not supported are other and 32-bit Pythons, more than
    `MAX_ARGUMENTS` arguments or symbols, preconditions on other numbers, and symbols that are elements of strided or
    unsigned arrays.
    """
    if len(signature.args) > MAX_ARGUMENTS or len(signature.symbols) > MAX_ARGUMENTS:
        return None
    slots = {name: at for at, name in enumerate((*(arg.name for arg in signature.args), *signature.symbols))}
    # Many bytes of temporaries, or an overflow of their size, take the slow path.
    limits = [CallPrecondition(f"{limit.comparisons[0].left_text} < {_LARGE_BYTES}") for limit in signature.limits]
    facts = (*signature.facts, *limits)
    if any(name not in slots for fact in facts for name in fact.names):
        return None
    if any(not _is_plain_integers(signature.args[position]) for position, _ in signature.elements.values()):
        return None
    entry = _entry_address()
    if not entry:
        return None
    arguments = (_Argument * len(signature.args))()
    shapes = [_describe(signature, spec, arguments[index]) for index, spec in enumerate(signature.args)]
    elements = _element_table(signature)
    call = _Call(
        function,
        thunk,
        slow,
        len(signature.args),
        len(signature.symbols),
        0 if always_release_gil else GIL_THRESHOLD_BYTES,
        ctypes.addressof(arguments),
        sum(1 << signature.symbols.index(symbol) for symbol in signature.independent_extents),
        min(signature.iterations, 1 << 62),
        predicate_address(facts, slots) if facts else None,
        len(elements),
        ctypes.addressof(elements),
    )
    name, text = (text.encode(errors="backslashreplace") for text in (signature.name, str(signature)))
    method = _MethodDef(name, entry, _FASTCALL_WITH_KEYWORDS, text)
    # A function object owns its "module", here the tables.
    owner = (slow, call, arguments, shapes, elements, method)
    python = ctypes.pythonapi
    new_capsule = python.PyCapsule_New
    new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    new_function = python.PyCFunction_NewEx
    new_function.restype = ctypes.py_object
    new_function.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.py_object]
    capsule: Any = new_capsule(ctypes.addressof(call), None, None)
    return cast("Callable[..., object]", new_function(ctypes.addressof(method), capsule, owner))


def _is_plain_integers(spec: ArraySpec | ScalarSpec) -> bool:
    is_dense = isinstance(spec, ArraySpec) and spec.strides is None
    return is_dense and spec.element.kind == "int" and spec.element.bytes in (4, 8)


def _element_table(signature: Signature) -> ctypes.Array[_Element]:
    places = signature.elements
    table = (_Element * len(places))()
    for row, (symbol, (position, element)) in zip(table, places.items(), strict=True):
        size = signature.args[position].element.bytes
        row.symbol, row.argument = signature.symbols.index(symbol), position
        row.offset, row.bytes = size * element, size
    return table


def _describe(signature: Signature, spec: ArraySpec | ScalarSpec, row: _Argument) -> object:
    element = spec.element
    row.itemsize = element.bytes
    if isinstance(spec, ArraySpec):
        row.kind, row.rank, row.writes = _ARRAY, len(spec.shape), spec.writes
        row.type_class = _CLASSES.get("uint" if spec.dtype == "bfloat16" else element.kind, 0)
        row.takes_number = is_number(spec) and element.kind in ("int", "uint")
        # A symbol is the complement of its index, hence negative.
        extents = [~signature.symbols.index(e) if isinstance(e, str) else e for e in spec.shape]
        shape = (ctypes.c_int64 * len(extents))(*extents)
        row.shape = ctypes.addressof(shape)
        if row.takes_number:
            row.least, row.most = _native_range(element)
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
            row.least, row.most = _native_range(element)
        case "stored":  # `ScalarSpec` refuses it
            row.kind = _PYTHON
    return None


def _native_range(element: ElementType) -> tuple[int, int]:
    """Integers beyond the signed range take the slow path."""
    return element.range[0], min(element.range[1], (1 << 63) - 1)


def native_call_ir() -> str:
    letters = {letter: code for code, known in _FORMATS.items() for letter in known}
    classes = ", ".join(f"i8 {letters.get(chr(code), 0)}" for code in range(256))
    return ir_text(
        _FILE,
        most_arguments=MAX_ARGUMENTS,
        most_slots=2 * MAX_ARGUMENTS,
        type_offset=object.__basicsize__ - 8,
        format_classes=f"[{classes}]",
        long_iterations=f"{LONG_ITERATIONS:.1f}",
        large_bytes=_LARGE_BYTES,
    )


@cache
def _entry_address() -> int:
    if sys.implementation.name != "cpython" or ctypes.sizeof(ctypes.c_void_p) != 8 or sys.byteorder != "little":
        return 0
    # Level 0 takes 4 ms; level 1 takes 27 ms, once, and saves 0.04 us of the 0.19 us of a call.
    symbols = {"weft_ndarray_type": id(np.ndarray)}
    return optimised_forever(native_call_ir(), "weft_call", symbols).address("weft_call")


_THUNK_TYPE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)


class Caller:
    """Calls one native function with checked arguments. `call` is native if possible; `call_in_python` releases the
    interpreter lock. Both return None, or the omitted results (one array, or a tuple). `owner` keeps the code alive.
    With `calls_registered`, `call` and `run` raise exceptions of registered functions."""

    def __init__(
        self,
        signature: Signature,
        address: int,
        owner: object,
        *,
        always_release_gil: bool = False,
        calls_registered: bool = False,
    ) -> None:
        self.signature = signature
        self.address = address
        self.owner = owner
        self.thunk_address = thunk_address(signature.parameter_types())
        self._thunk = _THUNK_TYPE(self.thunk_address)
        self._sources = _number_sources(signature)
        self._elements = signature.elements
        self._definitions = _definitions(signature, self._sources.keys() | self._elements.keys())
        self._results = _plain_results(signature, self._sources, self._elements.keys() | self._definitions.keys())
        self._native = native_entry(
            signature.with_descriptors(),
            address,
            self.thunk_address,
            self._call_after_allocation if signature.allocates else self._call_otherwise,
            always_release_gil=always_release_gil,
        )
        self._specs = signature.result_specs
        self._given = len(signature.args) - signature.results
        self._allocates_all = all(spec.is_allocated for spec in self._specs)
        self.call: Callable[..., Any] = self._native or self.call_in_python
        if self._native is not None and signature.allocates:
            self.call = self._call_allocating
        self._calls_registered = calls_registered
        self._unchecked_call = self.call
        if calls_registered:
            self.call = self._call_raising

    def _call_raising(self, *positional: object, **keywords: object) -> Any:
        with raising_failures():
            return self._unchecked_call(*positional, **keywords)

    def call_in_python(self, *positional: object, **keywords: object) -> Any:
        """Raises `TypeError` and `ValueError`, see `bind_arguments`."""
        bound = self.bind(*positional, **keywords)
        if self._writes_something(bound):
            slots = (ctypes.c_uint64 * len(bound.slots))(*bound.slots)
            self.run(bound, lambda: self._thunk(self.address, slots))
        return returned(bound.results)

    def run(self, bound: BoundArguments, work: Callable[[], None]) -> None:
        with raising_failures() if self._calls_registered else nullcontext():
            size = sum(array.nbytes for array in bound.arrays.values())
            is_long = self._may_take_long(bound, size)
            if is_long or size >= _LARGE_BYTES or self.signature.limits:
                self._check_memory(bound)
            if is_long:
                interruptibly(work, (self, bound))
            else:
                work()

    def _check_memory(self, bound: BoundArguments) -> None:
        """Raises `MemoryError` without memory for temporaries: the compiled code would end the process."""
        sizes = (size.defined(bound.symbols) for size in self.signature.temporaries)
        needed = max((size for size in sizes if size is not None), default=0)
        if needed < _LARGE_BYTES:
            return
        try:
            np.empty(needed, np.uint8)
        except (MemoryError, ValueError) as error:  # NumPy raises ValueError for more bytes than addresses
            shapes = ", ".join(f"'{self.signature.args[at].name}' {a.shape}" for at, a in bound.arrays.items())
            raise MemoryError(
                f"{self.signature.name}: there is no memory for {needed} bytes of temporaries of a call on {shapes}"
            ) from error

    def _may_take_long(self, bound: BoundArguments, size: int) -> bool:
        signature = self.signature
        extents = (bound.symbols[symbol] for symbol in signature.independent_extents)
        return signature.may_take_long(extents, size)

    def _writes_something(self, bound: BoundArguments) -> bool:
        """A loop over 2^40 empty rows would still take long."""
        pairs = zip(self.signature.arrays, bound.arrays.values(), strict=True)
        written = [array.size for spec, array in pairs if spec.writes]
        return any(written) or not written or self.signature.calls_out

    def bind(self, *positional: object, **keywords: object) -> BoundArguments:
        return bind_arguments(self.signature, positional, keywords)

    def _call_allocating(self, *positional: object, **keywords: object) -> Any:
        """Natively if the other arguments determine all extents of results that the call does not allocate."""
        native = self._native
        if native is None or keywords or len(positional) != self._given:
            return self.call_in_python(*positional, **keywords)
        if self._allocates_all:
            results = tuple(map(AllocatedResult, self._specs))
        else:
            try:
                results = allocate(self.signature, self._specs, self._numbers(positional))
            except (IndexError, KeyError, MemoryError, TypeError):
                results = ()
        if not results:
            return self.call_in_python(*positional)
        places = [result.descriptor if isinstance(result, AllocatedResult) else result for result in results]
        found = native(*positional, *places)
        return returned(results) if found is None else found

    def _call_after_allocation(self, *positional: object) -> Any:
        return self.call_in_python(*positional[: self._given])

    def _call_otherwise(self, *positional: object, **keywords: object) -> Any:
        """Convert arguments to plain arrays and retry the native path; if they are plain, call in Python."""
        native, signature = self._native, self.signature
        made = None if keywords or native is None else self._made(positional)
        if native is not None and made is not None:
            native(*positional, *made)
            return made[0] if len(made) == 1 else tuple(made)
        values = by_position(signature, positional, keywords)
        plain = [
            as_array(signature, position, value) if isinstance(spec, ArraySpec) else value
            for position, (spec, value) in enumerate(zip(signature.args, values, strict=False))
        ]
        unchanged = len(plain) == len(positional) and all(map(operator.is_, plain, positional))
        results = None if native is None or unchanged else self._allocated(plain)
        if native is None or results is None:
            return self.call_in_python(*plain)
        native(*plain, *results)
        return returned(results)

    def _made(self, values: tuple[object, ...]) -> list[Array] | None:
        """The common case: plain arrays, and no results. The native path then checks all arguments."""
        if self._results is None or len(values) != len(self.signature.args) - len(self._results):
            return None
        try:
            made: list[Array] = []
            numbers: dict[str, int] = {}
            for dtype, extents in self._results:
                shape: list[int] = []
                for extent in extents:
                    if type(extent) is int:
                        shape.append(extent)
                        continue
                    if type(extent) is str:
                        numbers = numbers or self._numbers(values)
                        shape.append(numbers[extent])
                        continue
                    argument, dimension = cast("tuple[int, int]", extent)
                    value = values[argument]
                    if type(value) is not np.ndarray:
                        return None
                    shape.append(value.shape[dimension])
                made.append(np.empty(shape, dtype))
        except (IndexError, KeyError, MemoryError, TypeError, ValueError):
            return None
        return made

    def _allocated(self, values: list[object]) -> tuple[Any, ...] | None:
        """Returns None if the arrays do not determine the extents. The check follows."""
        missing = len(self.signature.args) - len(values)
        if missing == 0:
            return ()
        if missing != self.signature.results:
            return None
        try:
            return allocate(self.signature, self.signature.result_specs, self._numbers(values))
        except (IndexError, MemoryError, TypeError):  # also for extents that preconditions reject
            return None

    def _numbers(self, values: Sequence[object]) -> dict[str, int]:
        """Returns symbols and integers, and extents that preconditions define by them. Raises `IndexError` and
        `TypeError` unless `values` are plain: a subclass may report other shapes than the native path finds."""
        found: dict[str, int] = {}
        for name, (argument, dimension) in self._sources.items():
            value = values[argument]
            if type(value) is np.ndarray and dimension is not None:
                found[name] = value.shape[dimension]
            elif type(value) is int and dimension is None:
                found[name] = value
            else:
                raise TypeError
        for name, (argument, element) in self._elements.items():
            value = values[argument]
            if type(value) is np.ndarray:
                found[name] = value.item(element)
            elif type(value) is int:
                found[name] = value
            else:
                raise TypeError
        for symbol, fact in self._definitions.items():
            found[symbol] = fact.defined(found)
        return found


def interruptibly(work: Callable[[], None], held: object) -> None:
    """Run native code that may take long; `KeyboardInterrupt` is raised at once in the main thread.

    Python handles signals only while the main thread runs Python or waits for a lock, so another thread runs `work`,
    which costs about 0.1 ms. After an interrupt it continues, keeps `held` alive, and still writes its arrays.
    """
    if threading.current_thread() is not threading.main_thread():
        work()
        return
    done = threading.Semaphore(0)

    def run(_: object) -> None:
        try:
            work()
        finally:
            done.release()

    try:
        in_context = contextvars.copy_context().run  # registered functions record their exceptions in it
        threading.Thread(target=in_context, args=(run, held), name="weft-call", daemon=True).start()
    except RuntimeError:  # the system is out of threads, or the interpreter is exiting
        work()
        return
    done.acquire()


def _plain_results(
    signature: Signature, sources: Mapping[str, tuple[int, int | None]], numbers: Collection[str]
) -> list[tuple[np.dtype[Any], list[int | str | tuple[int, int]]]] | None:
    """Returns type and extents of optional results: a number, a dimension of an argument, or one of `numbers`, symbols
    that array elements or preconditions define. None without results, or for other extents or types that NumPy
    lacks."""
    found: list[tuple[np.dtype[Any], list[int | str | tuple[int, int]]]] = []
    for spec in signature.result_specs:
        extents: list[int | str | tuple[int, int]] = []
        if spec.dtype == "bfloat16":
            return None
        for extent in spec.shape:
            source = sources.get(extent) if isinstance(extent, str) else None
            if isinstance(extent, int) or extent in numbers:
                extents.append(extent)
            elif source is not None and source[1] is not None:
                extents.append((source[0], source[1]))
            else:
                return None
        dtype = stored_dtype(spec.dtype) if spec.element.kind == "stored" else np.dtype(spec.dtype)
        if dtype is None:
            return None
        found.append((dtype, extents))
    return found or None


def _number_sources(signature: Signature) -> dict[str, tuple[int, int | None]]:
    """Maps a symbol or integer to the position of a required argument, and its dimension, or None for its value."""
    sources: dict[str, tuple[int, int | None]] = {}
    certain = list(enumerate(signature.args[: len(signature.args) - signature.results]))
    for position, spec in certain:
        for dimension, extent in enumerate(spec.shape if isinstance(spec, ArraySpec) else ()):
            if isinstance(extent, str):
                sources.setdefault(extent, (position, dimension))
    for position, spec in certain:
        if isinstance(spec, ScalarSpec) and spec.element.kind == "int":
            sources.setdefault(spec.name, (position, None))
            sources.setdefault(spec.symbol or spec.name, (position, None))
    return sources


def _definitions(signature: Signature, sources: Collection[str]) -> dict[str, CallPrecondition]:
    found: dict[str, CallPrecondition] = {}
    for fact in signature.facts:
        symbol = fact.defines
        known = {*sources, *found}
        if symbol in signature.symbols and symbol not in known and {*fact.names} <= {*known, symbol}:
            found[symbol] = fact
    return found


@cache
def thunk_address(parameter_types: tuple[str, ...]) -> int:
    """Returns the address of `void thunk(ptr function, ptr slots)`, which calls a function of these LLVM types with
    values from 8-byte slots. Compiled once per list of types (about 1 ms)."""
    lines = ["define void @weft_thunk(ptr %function, ptr %slots) {"]
    for index, kind in enumerate(parameter_types):
        stored = "i8" if kind == "i1" else kind
        lines.append(f"  %p{index} = getelementptr i64, ptr %slots, i64 {index}")
        lines.append(f"  %v{index} = load {stored}, ptr %p{index}")
        if kind == "i1":
            lines.append(f"  %b{index} = trunc i8 %v{index} to i1")
    values = (f"{kind} %{'b' if kind == 'i1' else 'v'}{index}" for index, kind in enumerate(parameter_types))
    lines.append(f"  call void %function({', '.join(values)})")
    lines.append("  ret void\n}")
    return jit_forever("\n".join(lines), 0).address("weft_thunk")
