"""The symbol table of an ELF object.

Code generation adds calls that are not in the IR (`fmodf` for `frem`, `__truncdfhf2` for a conversion), so only the
object has the symbols to resolve.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass

_SYMBOL_TABLE = 2
"""Section type SHT_SYMTAB."""


@dataclass(frozen=True)
class ObjectSymbols:
    """Names of global symbols, in the order of the table."""

    defined: tuple[str, ...]
    undefined: tuple[str, ...]


def object_symbols(data: bytes) -> ObjectSymbols | None:
    """None unless `data` is a 64-bit little-endian ELF object."""
    if data[:6] != b"\x7fELF\x02\x01":
        return None
    (section_table,) = struct.unpack_from("<Q", data, 0x28)
    entry_size, count = struct.unpack_from("<HH", data, 0x3A)
    # Type, file offset, size and link of each section header; a symbol table links to the section of its names.
    sections = [_section(data, section_table + i * entry_size) for i in range(count)]
    defined: list[str] = []
    undefined: list[str] = []
    for kind, offset, size, link in sections:
        if kind != _SYMBOL_TABLE:
            continue
        names = sections[link][1]
        for name, info, _other, section, _value, _size in struct.iter_unpack("<IBBHQQ", data[offset : offset + size]):
            binding = info >> 4
            if name == 0 or binding == 0:
                continue
            start = names + name
            text = data[start : data.index(b"\0", start)].decode()
            (undefined if section == 0 else defined).append(text)
    return ObjectSymbols(tuple(defined), tuple(undefined))


def undefined_symbols(objects: Iterable[bytes]) -> list[str] | None:
    """None if an object has another format."""
    tables = [object_symbols(code) for code in objects]
    known = [table for table in tables if table is not None]
    if len(known) < len(tables):
        return None
    defined = {name for table in known for name in table.defined}
    return list(dict.fromkeys(name for table in known for name in table.undefined if name not in defined))


def _section(data: bytes, at: int) -> tuple[int, int, int, int]:
    kind, _flags, _address, offset, size, link = struct.unpack_from("<IQQQQI", data, at + 4)
    return kind, offset, size, link
