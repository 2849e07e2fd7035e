"""Large constants of exported programs: data of the program, or a separate file of weights.

LLVM would hold text of four times their size, so data is compiled as a marker followed by zeros, and filled into the
object. Functions that read the constants end the program if `weft_load_weights` (`weights.ll`) was not called.

A file contains: 16 bytes of magic number; the bytes of the constants and their checksum, as little-endian 64-bit
integers; zeros up to byte 64; then each constant, padded with zeros to a multiple of 64 bytes.
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weft.backends.llvm.link import LinkedText
from weft.backends.llvm.memory_ops import BUFFER_ALIGNMENT
from weft.backends.llvm.resources import ir_text
from weft.backends.llvm.types import byte_text
from weft.support.errors import InternalError
from weft.support.files import write_output
from weft.support.pages import LARGE_PAGE

if TYPE_CHECKING:
    from numpy.typing import NDArray

LOAD_WEIGHTS: Final = "weft_load_weights"
_CHECK: Final = "weft_check_weights"
_FILE: Final = Path(__file__).with_name("weights.ll")
_MAGIC: Final = b"weft weights 1\n\0"
_DECLARATION: Final = re.compile(r"^@(weft_const_\d+) = external constant (\[(\d+) x i8\]).*$", re.MULTILINE)
_USE: Final = re.compile(r"@(weft_const_\d+)\b")
_FUNCTION: Final = re.compile(r"^define [^\n]*\{\nentry:\n.*?^\}$", re.MULTILINE | re.DOTALL)
_MARK_BYTES: Final = 32
_ADVISE: Final = "%advised = call i32 @madvise(ptr %pages, i64 %span, i32 14)"
"""14 is MADV_HUGEPAGE of Linux."""


@dataclass(frozen=True)
class ExportedConstants:
    """LLVM IR declares them as `weft_const_<n>`."""

    arrays: Mapping[str, NDArray[Any]]
    in_file: bool = False
    """Whether elements are in a file of weights."""
    large_pages: bool = False
    """Whether the system provides large pages on request, as Linux does."""

    def renamed(self, text: str) -> str:
        """Names become unique among programs; functions check that a file was loaded."""
        text = _USE.sub(lambda found: f"@{self._symbol(found[1])}", _DECLARATION.sub(self._declaration, text))
        if not self.in_file or not self.arrays:
            return text
        text = _FUNCTION.sub(lambda found: _checked(found[0]) if "@weft_const_" in found[0] else found[0], text)
        return f"{text}\ndeclare void @{_CHECK}()\n"

    def part(self) -> LinkedText | None:
        if not self.arrays:
            return None
        if self.in_file:
            return LinkedText(self._loader(), kept=(_CHECK,), visible=(LOAD_WEIGHTS,))
        lines: list[str] = []
        for name, array in self.arrays.items():
            mark, rest = self._mark(name), array.nbytes - _MARK_BYTES
            type_ = f"<{{ [{_MARK_BYTES} x i8], [{rest} x i8] }}>"
            value = f"<{{ [{_MARK_BYTES} x i8] {byte_text(mark)}, [{rest} x i8] zeroinitializer }}>"
            # Weak linkage keeps LLVM from folding the zeros.
            lines.append(f"@{self._symbol(name)} = weak hidden constant {type_} {value}, align {BUFFER_ALIGNMENT}")
        return LinkedText("\n".join(lines) + "\n")

    def filled(self, code: bytes) -> bytes:
        if self.in_file or not self.arrays:
            return code
        content = bytearray(code)
        for name, array in self.arrays.items():
            place = code.find(self._mark(name))
            if place < 0 or code.find(self._mark(name), place + 1) >= 0:
                raise InternalError(f"the object has no place, or several, for the constant {name}")
            content[place : place + array.nbytes] = _bytes_of(array)
        return bytes(content)

    def write(self, path: Path) -> None:
        """Raises `CompileError` if the system refuses."""
        head = _MAGIC + struct.pack("<QQ", self._bytes, self._checksum)
        parts: list[bytes | memoryview] = [head.ljust(BUFFER_ALIGNMENT, b"\0")]
        for array in self.arrays.values():
            parts += [_bytes_of(array), bytes(-array.nbytes % BUFFER_ALIGNMENT)]
        write_output(path, b"".join(parts))

    @cached_property
    def _digest(self) -> str:
        digest = hashlib.sha256()
        for name, array in self.arrays.items():
            digest.update(f"{name} {array.nbytes} ".encode())
            digest.update(_bytes_of(array))
        return digest.hexdigest()

    def _symbol(self, name: str) -> str:
        return f"{name}_{self._digest[:16]}"

    def _declaration(self, found: re.Match[str]) -> str:
        name, type_, size = found.groups()
        if int(size) != self.arrays[name].nbytes:
            raise InternalError(f"the program reads {size} bytes of {name}, which has {self.arrays[name].nbytes}")
        return f"@{name} = external hidden constant {type_}, align {BUFFER_ALIGNMENT}"

    def _mark(self, name: str) -> bytes:
        return hashlib.sha256(f"{self._digest} {name}".encode()).digest()

    @property
    def _sizes(self) -> list[int]:
        return [array.nbytes + -array.nbytes % BUFFER_ALIGNMENT for array in self.arrays.values()]

    @property
    def _bytes(self) -> int:
        return sum(self._sizes)

    @cached_property
    def _checksum(self) -> int:
        """The sum of the words, each mixed with its position (SplitMix64's mixing)."""
        total, first = 0, 0
        for array, size in zip(self.arrays.values(), self._sizes, strict=True):
            words = np.frombuffer(b"".join((_bytes_of(array), bytes(size - array.nbytes))), "<u8")
            for start in range(0, len(words), 1 << 20):
                part = words[start : start + (1 << 20)]
                total += _mixed_sum(part, first + start)
            first += len(words)
        return total & (1 << 64) - 1

    def _loader(self) -> str:
        symbols = [self._symbol(name) for name in self.arrays]
        pairs = list(zip(symbols, self._sizes, strict=True))
        return ir_text(
            _FILE,
            definitions="\n".join(
                f"@{symbol} = hidden global [{size} x i8] zeroinitializer, align {BUFFER_ALIGNMENT}"
                for symbol, size in pairs
            ),
            table=", ".join(f"{{ ptr, i64 }} {{ ptr @{symbol}, i64 {size} }}" for symbol, size in pairs),
            count=len(pairs),
            bytes=self._bytes,
            checksum=self._checksum,
            advise=_ADVISE if self.large_pages and self._bytes >= 2 * LARGE_PAGE else "",
        )


def _checked(function: str) -> str:
    head, _, body = function.partition("entry:\n")
    return f"{head}entry:\n  call void @{_CHECK}()\n{body}"


def _mixed_sum(words: NDArray[np.uint64], first: int) -> int:
    with np.errstate(over="ignore"):
        places = np.arange(first + 1, first + 1 + len(words), dtype=np.uint64)
        mixed = words + places * np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> np.uint64(31)
        return int(mixed.sum(dtype=np.uint64))


def _bytes_of(array: NDArray[Any]) -> memoryview:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
