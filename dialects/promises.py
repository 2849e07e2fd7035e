"""A function's promises, which allow optimisations: attribute `tir.promises`.

weft's functions make all. Those converted from upstream make the listed ones:

    func.func @f(%A: memref<8xf32>, %B: memref<8xf32>) attributes {tir.promises = ["noalias", "contract"]}
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute
from xdsl.utils.str_enum import StrEnum

from weft.support.errors import CompileError, did_you_mean

PROMISES: Final = "tir.promises"
"""Names of promises. A function without it makes all."""


class Promise(StrEnum):
    NOALIAS = "noalias"
    """Buffers of different parameters do not overlap."""
    CONTRACT = "contract"
    """Products and sums may be contracted to fused multiply-adds."""
    REASSOC = "reassoc"
    """Reductions of floats may be reassociated."""


ALL_PROMISES: Final = frozenset(Promise)


def promises_of(function: FuncOp) -> frozenset[Promise]:
    """Raises `CompileError` for an unknown name."""
    attribute = function.attributes.get(PROMISES)
    if attribute is None:
        return ALL_PROMISES
    try:
        return promises_in(attribute)
    except CompileError as error:
        raise CompileError.at(function, error.message) from None


def promises_in(attribute: Attribute | None) -> frozenset[Promise]:
    """Raises `CompileError` for an unknown name."""
    if attribute is None:
        return ALL_PROMISES
    if not isinstance(attribute, ArrayAttr) or not all(isinstance(name, StringAttr) for name in attribute):
        raise CompileError(f"{PROMISES} must be an array of names, got {attribute}")
    return parse_promises(name.data for name in attribute if isinstance(name, StringAttr))


def parse_promises(names: Iterable[str]) -> frozenset[Promise]:
    """Raises `CompileError` for an unknown name."""
    found: set[Promise] = set()
    for name in names:
        try:
            found.add(Promise(name))
        except ValueError:
            known = [promise.value for promise in Promise]
            raise CompileError(
                f"unknown promise '{name}'{did_you_mean(name, known)}; there are {', '.join(known)}"
            ) from None
    return frozenset(found)


def state_promises(function: FuncOp, promises: Iterable[Promise]) -> None:
    """Restrict an upstream function to its stated promises and `promises`."""
    stated = promises_of(function) if PROMISES in function.attributes else frozenset[Promise]()
    function.attributes[PROMISES] = promises_attribute(stated.union(promises))


def promises_attribute(promises: Iterable[Promise]) -> ArrayAttr[StringAttr]:
    return ArrayAttr([StringAttr(name) for name in sorted(promise.value for promise in promises)])
