"""Calls compiled functions: a `Caller` is made of a signature and an address, and is called with arrays and
numbers."""

from __future__ import annotations

import ctypes
import operator
import threading
from functools import cache
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from weft.runtime.arguments import BoundArguments, as_array, bind_arguments, by_position, empty_array, returned
from weft.runtime.native_call import native_entry
from weft.runtime.signature import ArraySpec, ScalarSpec

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft.backends.llvm.jit import JitModule
    from weft.runtime.arguments import Array
    from weft.runtime.signature import Signature

_THUNK_TYPE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)


class Caller:
    """Calls one native function with checked arguments.

    `call` is the quickest way in: native where possible. `call_in_python` is the same without the native way;
    it lets other Python threads run during every call. Both return None, or the results that the caller left
    out (one array, or a tuple). `owner` is whatever keeps the function's code alive.
    """

    def __init__(self, signature: Signature, address: int, owner: object, *, always_release_gil: bool = False) -> None:
        self.signature = signature
        self.address = address
        self.owner = owner
        self.thunk_address = thunk_address(signature.parameter_types())
        self._thunk = _THUNK_TYPE(self.thunk_address)
        self._extents = _symbol_sources(signature)
        self._native = native_entry(
            signature, address, self.thunk_address, self._call_otherwise, always_release_gil=always_release_gil
        )
        self.call: Callable[..., Any] = self._native or self.call_in_python
        if self._native is not None and signature.facts:
            self._sources = _number_sources(signature)
            self.call = self._call_with_facts

    def call_in_python(self, *positional: object, **keywords: object) -> Any:
        """Check the arguments in Python and call. Raises `TypeError` and `ValueError`, see
        `bind_arguments`."""
        bound = self.bind(*positional, **keywords)
        if self._writes_something(bound):
            slots = (ctypes.c_uint64 * len(bound.slots))(*bound.slots)
            self.run(bound, lambda: self._thunk(self.address, slots))
        return returned(bound.results)

    def run(self, bound: BoundArguments, work: Callable[[], None]) -> None:
        """Run `work`, a call with these arguments; one that may take long can be interrupted."""
        if not self.may_take_long(bound):
            work()
            return
        # It goes on after an interrupt: the thread holds the code and the arrays.
        interruptibly(work, (self, bound))

    def may_take_long(self, bound: BoundArguments) -> bool:
        """See `Signature.may_take_long`."""
        signature = self.signature
        values = dict(zip(signature.symbols, bound.slots[len(signature.args) :], strict=True))
        extents = (values[symbol] for symbol in signature.extent_symbols)
        return signature.may_take_long(extents, sum(array.nbytes for array in bound.arrays))

    def _writes_something(self, bound: BoundArguments) -> bool:
        """Whether a call does anything: loops over 2^40 elements of nothing take long too."""
        pairs = zip(self.signature.arrays, bound.arrays, strict=True)
        written = [array.size for spec, array in pairs if spec.writes]
        return any(written) or not written or self.signature.calls_out

    def bind(self, *positional: object, **keywords: object) -> BoundArguments:
        """Check the arguments of a call without calling."""
        return bind_arguments(self.signature, positional, keywords)

    def _call_with_facts(self, *positional: object, **keywords: object) -> Any:
        """The native way where the facts are seen to hold; else Python finds out what is wrong."""
        native = self._native
        try:
            values = {name: source(positional) for name, source in self._sources.items()}
            holds = all(fact.holds(values) for fact in self.signature.facts)
        except (AttributeError, IndexError, KeyError, TypeError):
            holds = False
        if native is None or not holds:
            return self.call_in_python(*positional, **keywords)
        return native(*positional, **keywords)

    def _call_otherwise(self, *positional: object, **keywords: object) -> Any:
        """What the native way could not take: make plain arrays in the right order of it and try once more,
        or find out in Python what is wrong. Never calls the native way with what it was just given."""
        native, signature = self._native, self.signature
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

    def _allocated(self, values: list[object]) -> tuple[Array, ...] | None:
        """Memory for the results that `values` lacks: shapes from the arrays that are there, None when they
        do not tell. The check that follows covers all of it."""
        missing = len(self.signature.args) - len(values)
        if missing == 0:
            return ()
        if missing != self.signature.results:
            return None
        try:
            extents = {
                name: cast("Any", values[argument]).shape[dimension]
                for name, (argument, dimension) in self._extents.items()
            }
            return tuple(
                empty_array(spec, tuple(extents[e] if isinstance(e, str) else e for e in spec.shape))
                for spec in self.signature.result_specs
            )
        except (AttributeError, IndexError, KeyError, TypeError):
            return None


def interruptibly(work: Callable[[], None], held: object) -> None:
    """Run native code that may take long; `KeyboardInterrupt` is raised at once in the main thread.

    Python's main thread sees signals only while it runs Python or waits for a lock.
    Another thread runs `work` while the main thread waits, which costs about 0.1 ms. After an interrupt the code goes
    on in the background until it is done, since native code cannot be stopped: `held` is kept for it, and arrays that
    it writes still change. Other threads get no signals; there it is a plain call.
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
        threading.Thread(target=run, args=(held,), name="weft-call", daemon=True).start()
    except RuntimeError:  # the system has no more threads, or the interpreter ends
        work()
        return
    done.acquire()


def _number_sources(signature: Signature) -> dict[str, Callable[[tuple[object, ...]], int]]:
    """How to find the symbols and integers of a call in its arguments given by position; arrays of NumPy and numbers of
    Python only."""

    def extent(argument: int, dimension: int) -> Callable[[tuple[object, ...]], int]:
        return lambda values: _exactly(np.ndarray, values[argument]).shape[dimension]

    def scalar(argument: int) -> Callable[[tuple[object, ...]], int]:
        return lambda values: _exactly(int, values[argument])

    sources = {name: extent(argument, dimension) for name, (argument, dimension) in _symbol_sources(signature).items()}
    for position, spec in enumerate(signature.args):
        if isinstance(spec, ScalarSpec) and spec.element.kind == "int":
            sources[spec.name] = scalar(position)
            if spec.symbol:
                sources.setdefault(spec.symbol, scalar(position))
    return sources


def _exactly(kind: type[Any], value: object) -> Any:
    """`value`, whose class is `kind`: what a subclass says need not be what the native way finds."""
    if type(value) is not kind:
        raise TypeError
    return value


def _symbol_sources(signature: Signature) -> dict[str, tuple[int, int]]:
    """For each symbol an argument that always comes, and the dimension of it that tells the symbol's
    value."""
    sources: dict[str, tuple[int, int]] = {}
    for index, spec in enumerate(signature.args[: len(signature.args) - signature.results]):
        if isinstance(spec, ArraySpec):
            for dimension, extent in enumerate(spec.shape):
                if isinstance(extent, str):
                    sources.setdefault(extent, (index, dimension))
    return sources


def thunk_address(parameter_types: tuple[str, ...]) -> int:
    """The address of `void thunk(ptr function, ptr slots)`, which calls a function whose parameters have
    these LLVM types with values from an array of 8-byte slots. Compiled once per list of types (about a
    millisecond)."""
    return _thunk_module(parameter_types).address("weft_thunk")


@cache
def _thunk_module(parameter_types: tuple[str, ...]) -> JitModule:
    from weft.backends.llvm.jit import jit, keep_forever
    from weft.support.target import Target

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
    module = jit("\n".join(lines), Target.of_process(0), {})
    keep_forever(module)
    return module
