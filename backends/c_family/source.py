"""What emission gives: the text of a program, and what its kernels take."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class KernelText:
    """A kernel of a program."""

    name: str
    """What the module calls it."""
    symbol: str
    """What the text calls it."""
    threads: tuple[int, int, int]
    """Threads of a block along x, y and z, as it was compiled for."""
    parameters: tuple[str, ...]
    """`ptr` for a buffer, the element type (`f32`, `i64`) of a number passed by value; an index is `i64`."""
    shared_bytes: int = 0
    """Shared memory that the launch must give, beyond what the text declares."""


@dataclass(frozen=True)
class KernelSource:
    """The text of a program."""

    text: str
    kernels: tuple[KernelText, ...] = ()
    header: str = ""
    """Declarations of its functions, for C."""
    symbols: dict[str, str] = field(default_factory=dict[str, str])
    """Function of the module -> name in the text."""
