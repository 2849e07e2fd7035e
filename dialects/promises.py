"""Promises of a function's author that allow optimisations: attribute `tir.promises`.

weft's own functions make all promises of `Promise`. Functions converted from upstream dialects make none, as in
upstream, unless the attribute lists some:

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
"""Attribute of a function: an array of names of promises. A function without it makes all promises."""


class Promise(StrEnum):
    """A promise of the function's author."""

    NOALIAS = "noalias"
    """Buffers of different parameters do not overlap."""
    CONTRACT = "contract"
    """Products and sums of floats may be contracted to fused multiply-adds."""
    REASSOC = "reassoc"
    """Reductions of floats may be reassociated."""


ALL_PROMISES: Final = frozenset(Promise)


def promises_of(function: FuncOp) -> frozenset[Promise]:
    """The promises of `function`. Raises `CompileError` for an attribute with a name that is not in `Promise`."""
    attribute = function.attributes.get(PROMISES)
    if attribute is None:
        return ALL_PROMISES
    try:
        return promises_in(attribute)
    except CompileError as error:
        raise CompileError.at(function, error.message) from None


def promises_in(attribute: Attribute | None) -> frozenset[Promise]:
    """The promises in an attribute of a function. Raises `CompileError` for a name that is not in `Promise`."""
    if attribute is None:
        return ALL_PROMISES
    if not isinstance(attribute, ArrayAttr) or not all(isinstance(name, StringAttr) for name in attribute):
        raise CompileError(f"{PROMISES} must be an array of names, got {attribute}")
    return parse_promises(name.data for name in attribute if isinstance(name, StringAttr))


def parse_promises(names: Iterable[str]) -> frozenset[Promise]:
    """The promises with these names. Raises `CompileError` for an unknown name."""
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
    """Restrict the promises of a function converted from upstream to those that it states and `promises`."""
    stated = promises_of(function) if PROMISES in function.attributes else frozenset[Promise]()
    function.attributes[PROMISES] = promises_attribute(stated.union(promises))


def promises_attribute(promises: Iterable[Promise]) -> ArrayAttr[StringAttr]:
    """The attribute of a function that makes exactly `promises`."""
    return ArrayAttr([StringAttr(name) for name in sorted(promise.value for promise in promises)])
