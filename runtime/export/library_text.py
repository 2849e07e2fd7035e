"""The signatures of a shared library: JSON under the symbol `weft_library`.

{"weft": 2, "checksum": "...", "target": "llvm -mtriple=... -mcpu=znver4 ...", "requires": ["avx2", ...], "functions": [
  {"name": "mm", "symbol": "mm", "args": [{"name": "A", "dtype": "float32", "shape": [128, "n"], ...}], ...}]}

The checksum covers the loadable segments of an ELF file, so a library stays valid after `strip`. Files of other formats
have no checksum: signatures of the system may cover them.
"""

from __future__ import annotations

import hashlib
import json
import re
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from weft.backends.names import symbol_name
from weft.support.call_preconditions import CallPrecondition
from weft.support.call_signature import ArraySpec, ScalarSpec, Signature
from weft.support.errors import CompileError
from weft.support.target import Target

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LIBRARY_SYMBOL: Final = "weft_library"
_VERSION: Final = 3
_UNSEALED: Final = "0" * 64
"""Placeholder of the checksum."""
_TEXT: Final = re.compile(rb'\{"weft": \d+, "checksum": "([0-9a-f]{64})"[^\0]*')
_ELF: Final = b"\x7fELF\x02\x01"
"""64-bit little-endian ELF."""
_FORMATS: Final = (b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"MZ")
_RELATIONS: Final = ("facts", "temporaries")
_PT_LOAD: Final = 1
_SECTION_FIELDS: Final = ((0x28, 0x30), (0x3A, 0x40))
"""Fields of an ELF header with the position of the section table, which the loader does not read."""


@dataclass(frozen=True)
class LibraryText:
    """The signatures of a library."""

    target: Target
    requires: tuple[str, ...]
    """CPU features that the code was compiled for, if known."""
    signatures: tuple[Signature, ...]
    symbols: tuple[str, ...]


def library_text(signatures: Iterable[Signature], target: Target) -> str:
    spelled = str(target)
    if "-mtriple=" not in spelled:
        spelled = spelled.replace(target.kind, f"{target.kind} -mtriple={target.triple}", 1)
    functions = [
        {
            **vars(signature),
            "symbol": symbol_name(signature.name),
            "args": [vars(spec) for spec in signature.args],
            **{name: [fact.text for fact in vars(signature)[name]] for name in _RELATIONS},
        }
        for signature in signatures
    ]
    return json.dumps(
        {
            "weft": _VERSION,
            "checksum": _UNSEALED,
            "target": spelled,
            "requires": target.required_features,
            "functions": functions,
        }
    )


def read_library_text(text: str) -> LibraryText:
    """Raises `CompileError` for text of another version or kind."""
    try:
        known = json.loads(text)
        if known["weft"] != _VERSION:
            raise CompileError(f"the library was exported by another version of weft (its text is {known['weft']})")
        return LibraryText(
            Target.parse(known["target"]),
            tuple(known["requires"]),
            tuple(_signature(dict(function)) for function in known["functions"]),
            tuple(function["symbol"] for function in known["functions"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise CompileError(f"the text about the library's functions is not weft's: {error!r}") from error


def _signature(function: dict[str, Any]) -> Signature:
    del function["symbol"]
    args = tuple(ArraySpec(**_tuples(spec)) if "shape" in spec else ScalarSpec(**spec) for spec in function["args"])
    relations = {name: tuple(CallPrecondition(text) for text in function[name]) for name in _RELATIONS}
    fields: dict[str, Any] = {**_tuples(function), "args": args, **relations}
    return Signature(**fields)


def _tuples(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(cast("list[object]", v)) if isinstance(v, list) else v for name, v in fields.items()}


def sealed(library: bytes) -> bytes:
    found = _TEXT.search(library)
    if found is None or not library.startswith(_ELF):
        return library
    digest = _digest(library, found.span(1)).encode()
    return library[: found.start(1)] + digest + library[found.end(1) :]


def checked_text(library: bytes) -> str:
    """Raises `CompileError` if the file is not a shared library, is truncated, was not exported by weft, or was
    changed."""
    if not library.startswith(_FORMATS):
        raise CompileError("not a shared library")
    is_elf = library.startswith(_ELF)
    if is_elf:
        size = max((start + length for start, length in _segments(library)), default=0)
        if size > len(library):
            raise CompileError(f"cut off: it has {len(library)} bytes of at least {size}")
    texts = list(_TEXT.finditer(library))
    if len(texts) != 1:
        raise CompileError("says nothing about its functions: weft did not export it as a library, or another version")
    (found,) = texts
    if is_elf and _digest(library, found.span(1)) != found[1].decode():
        raise CompileError("damaged: its checksum is not that of the export")
    return found[0].decode(errors="replace")


def _segments(library: bytes) -> Iterator[tuple[int, int]]:
    """Yield offset and size of each mapped segment. Raises `CompileError` if the file is too short."""
    try:
        (table,) = struct.unpack_from("<Q", library, 0x20)
        entry, count = struct.unpack_from("<HH", library, 0x36)
        for index in range(count):
            at = table + index * entry
            (kind,) = struct.unpack_from("<I", library, at)
            start, _, _, length = struct.unpack_from("<4Q", library, at + 8)
            if kind == _PT_LOAD:
                yield start, length
    except struct.error as error:
        raise CompileError(f"cut off or damaged: {len(library)} bytes hold no segment table") from error


def _digest(library: bytes, checksum: tuple[int, int]) -> str:
    """SHA-256 of segments, with zeros for the fields of the section table and for the checksum."""
    content = bytearray(library)
    for start, end in (*_SECTION_FIELDS, checksum):
        content[start:end] = b"0" * (end - start)
    digest = hashlib.sha256()
    for start, length in _segments(library):
        digest.update(struct.pack("<QQ", start, length))
        digest.update(content[start : start + length])
    return digest.hexdigest()
