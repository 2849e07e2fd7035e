"""What a function promises of its callers and allows compilers to do: attribute `tir.promises`.

weft's own functions promise all of `Promise`. Functions converted from upstream dialects promise what upstream does,
nothing, unless their attribute names more:

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
"""Attribute of a function: an array of the names of promises. A function without it promises all."""


class Promise(StrEnum):
    """A promise of the function's author."""

    NOALIAS = "noalias"
    """Buffers of different parameters do not overlap."""
    CONTRACT = "contract"
    """Products and sums of floats may become fused multiply-adds."""
    REASSOC = "reassoc"
    """Reductions of floats may combine their values in another order."""


ALL_PROMISES: Final = frozenset(Promise)


def promises_of(function: FuncOp) -> frozenset[Promise]:
    """What `function` promises. Raises `CompileError` for an attribute that names none of `Promise`."""
    attribute = function.attributes.get(PROMISES)
    if attribute is None:
        return ALL_PROMISES
    try:
        return promises_in(attribute)
    except CompileError as error:
        raise CompileError.at(function, error.message) from None


def promises_in(attribute: Attribute | None) -> frozenset[Promise]:
    """What the attribute of a function says it promises. Raises `CompileError` where it names none of `Promise`."""
    if attribute is None:
        return ALL_PROMISES
    if not isinstance(attribute, ArrayAttr) or not all(isinstance(name, StringAttr) for name in attribute):
        raise CompileError(f"{PROMISES} must be an array of names, got {attribute}")
    return parse_promises(name.data for name in attribute if isinstance(name, StringAttr))


def parse_promises(names: Iterable[str]) -> frozenset[Promise]:
    """The promises of these names. Raises `CompileError` for an unknown name."""
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
    """Make `function`, which comes from upstream, promise what it states already and `promises`, and no more."""
    stated = promises_of(function) if PROMISES in function.attributes else frozenset[Promise]()
    function.attributes[PROMISES] = promises_attribute(stated.union(promises))


def promises_attribute(promises: Iterable[Promise]) -> ArrayAttr[StringAttr]:
    """The attribute of a function that promises exactly `promises`."""
    return ArrayAttr([StringAttr(name) for name in sorted(promise.value for promise in promises)])
