"""The signatures of a library as text, which shared libraries carry along: JSON under the symbol `weft_library`.

{"weft": 2, "checksum": "...", "target": "llvm -mtriple=... -mcpu=znver4 ...", "requires": ["avx2", ...], "functions": [
  {"name": "mm", "symbol": "mm", "args": [{"name": "A", "dtype": "float32", "shape": [128, "n"], ...}], ...}]}
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from weft.backends.names import symbol_name
from weft.runtime.export.checksum import UNSEALED
from weft.runtime.signature import ArraySpec, ScalarSpec, Signature
from weft.support.errors import CompileError
from weft.support.facts import CallFact
from weft.support.target import Target

if TYPE_CHECKING:
    from collections.abc import Iterable

LIBRARY_SYMBOL: Final = "weft_library"
_VERSION: Final = 2


@dataclass(frozen=True)
class LibraryText:
    """What the text says. `requires`: features of the CPU that the code was compiled for, where they are known."""

    target: Target
    requires: tuple[str, ...]
    signatures: tuple[Signature, ...]
    symbols: tuple[str, ...]
    """The symbol of each function."""


def library_text(signatures: Iterable[Signature], target: Target) -> str:
    """The text for functions compiled for `target`."""
    spelled = str(target)
    if "-mtriple=" not in spelled:
        spelled = spelled.replace(target.kind, f"{target.kind} -mtriple={target.triple}", 1)
    functions = [_function(signature) for signature in signatures]
    return json.dumps(
        {
            "weft": _VERSION,
            "checksum": UNSEALED,
            "target": spelled,
            "requires": target.required_features,
            "functions": functions,
        }
    )


def read_library_text(text: str) -> LibraryText:
    """What the text of a library says. Raises `CompileError` for text of another version, or of something else."""
    try:
        known = json.loads(text)
        if known["weft"] != _VERSION:
            raise CompileError(f"the library was exported by another version of weft (its text is {known['weft']})")
        return LibraryText(
            Target.parse(known["target"]),
            tuple(known["requires"]),
            tuple(_signature(function) for function in known["functions"]),
            tuple(function["symbol"] for function in known["functions"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise CompileError(f"the text about the library's functions is not weft's: {error!r}") from error


def _function(signature: Signature) -> dict[str, object]:
    return {
        "name": signature.name,
        "symbol": symbol_name(signature.name),
        "args": [_argument(argument) for argument in signature.args],
        "symbols": signature.symbols,
        "results": signature.results,
        "facts": [fact.text for fact in signature.facts],
        "iterations": signature.iterations,
        "calls_out": signature.calls_out,
        "bounds_log": signature.bounds_log,
    }


def _argument(spec: ArraySpec | ScalarSpec) -> dict[str, object]:
    if isinstance(spec, ScalarSpec):
        return {"name": spec.name, "dtype": spec.dtype, "symbol": spec.symbol}
    return {
        "name": spec.name,
        "dtype": spec.dtype,
        "shape": spec.shape,
        "access": spec.access,
        "strides": spec.strides,
    }


def _signature(function: dict[str, Any]) -> Signature:
    return Signature(
        function["name"],
        tuple(_spec(argument) for argument in function["args"]),
        tuple(function["symbols"]),
        function["results"],
        tuple(CallFact(fact) for fact in function["facts"]),
        tuple(function["bounds_log"]),
        iterations=function["iterations"],
        calls_out=function["calls_out"],
    )


def _spec(argument: dict[str, Any]) -> ArraySpec | ScalarSpec:
    if "shape" not in argument:
        return ScalarSpec(argument["name"], argument["dtype"], argument["symbol"])
    strides = cast("list[int | str] | None", argument["strides"])
    return ArraySpec(
        argument["name"],
        argument["dtype"],
        tuple(argument["shape"]),
        argument["access"],
        None if strides is None else tuple(strides),
    )
