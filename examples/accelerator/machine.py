"""A simulated accelerator: it runs an assembly program on arrays, and counts its operations.

The processor has three private memories and instructions on tiles of 16 x 16 floats:

    fill  accumulator[0]              every element of a tile becomes zero
    load  a[0], A[%3], 256            a tile of device memory, with a row stride of 256, into a private memory
    tmm   accumulator[0], a[0], b[0]  accumulator += a @ b.T
    store C[%5], 256, accumulator[0]  a tile back to device memory
    loop  %i, 0, 16, 1 ... end        and arithmetic on counters: add, sub, mul, div, rem

Tiles in private memories are dense; `a[256]` is the second one. `Machine.run` interprets the text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Instruction: TypeAlias = tuple[str, list[str]]
"""The kind and the operands."""

TILE = 16
TILE_BYTES = TILE * TILE * 4
MEMORIES = {"a": 4096, "b": 4096, "accumulator": 2048}
"""Memory -> its size in bytes."""
_SCALAR: dict[str, Callable[[int, int], int]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x // y,
    "rem": lambda x, y: x % y,
}
_PLACE = re.compile(r"(\w+)\[([-%\w]+)\]")


@dataclass
class Counts:
    """Totals of a machine's operations."""

    instructions: Counter[str] = field(default_factory=Counter[str])
    """Kind of instruction -> number of executions."""
    bytes_loaded: int = 0
    bytes_stored: int = 0

    def __str__(self) -> str:
        tiles = ", ".join(f"{self.instructions[kind]} {kind}" for kind in ("fill", "load", "tmm", "store"))
        return f"{tiles}; {self.bytes_loaded} bytes in, {self.bytes_stored} bytes out"


class MachineError(Exception):
    """A program violates a limit of the processor."""


class Machine:
    """One processor. Its private memories are initialised with NaN."""

    def __init__(self) -> None:
        self.counts = Counts()
        self._own = {name: np.full(size // 4, np.nan, np.float32) for name, size in MEMORIES.items()}

    def run(self, text: str, arrays: Mapping[str, Array], numbers: Mapping[str, int]) -> None:
        """Run a program. `arrays` is the device memory by name, flat; `numbers` are the initial registers.

        Raises `MachineError` for an unknown instruction, and for a tile outside of its memory.
        """
        lines = [line.split(";")[0].strip() for line in text.splitlines()]
        words = [line.partition(" ") for line in lines if line]
        code = [(kind, [w.strip() for w in rest.split(",")] if rest else []) for kind, _, rest in words]
        _Run(self, code, arrays, dict(numbers)).from_to_end(0)

    def tile(self, name: str, offset: int) -> Array:
        """A tile of a private memory."""
        memory = self._own.get(name)
        if memory is None:
            raise MachineError(f"the processor has no memory '{name}'")
        if not 0 <= offset <= memory.size - TILE * TILE:
            raise MachineError(f"a tile at {name}[{offset}] lies outside of its {memory.size} floats")
        return memory[offset : offset + TILE * TILE].reshape(TILE, TILE)


class _Run:
    """One run of a program."""

    def __init__(
        self, machine: Machine, code: Sequence[Instruction], arrays: Mapping[str, Array], registers: dict[str, int]
    ) -> None:
        self.machine, self.code, self.arrays, self.registers = machine, code, arrays, registers

    def from_to_end(self, at: int) -> None:
        """Run the instructions from `at` to the end of their loop."""
        while at < len(self.code):
            kind, operands = self.code[at]
            if kind == "end":
                return
            self.machine.counts.instructions[kind] += 1
            if kind == "loop":
                counter, *bounds = operands
                for value in range(*(self.number(bound) for bound in bounds)):
                    self.registers[counter] = value
                    self.from_to_end(at + 1)
                at = self.end_of(at)
            else:
                self.one(kind, operands)
            at += 1

    def end_of(self, at: int) -> int:
        depth = 0
        for place in range(at, len(self.code)):
            depth += (self.code[place][0] == "loop") - (self.code[place][0] == "end")
            if depth == 0:
                return place
        raise MachineError("a loop has no end")

    def one(self, kind: str, operands: Sequence[str]) -> None:
        """Run an instruction other than a loop."""
        if kind in _SCALAR:
            self.registers[operands[0]] = _SCALAR[kind](self.number(operands[1]), self.number(operands[2]))
        elif kind == "fill":
            self.own(operands[0])[...] = 0
        elif kind == "tmm":
            accumulator, a, b = (self.own(operand) for operand in operands)
            accumulator += a @ b.T
        elif kind == "load":
            self.own(operands[0])[...] = self.outside(operands[1], operands[2])
            self.machine.counts.bytes_loaded += TILE_BYTES
        elif kind == "store":
            self.outside(operands[0], operands[1])[...] = self.own(operands[2])
            self.machine.counts.bytes_stored += TILE_BYTES
        else:
            raise MachineError(f"there is no instruction '{kind}'")

    def number(self, text: str) -> int:
        found = self.registers.get(text)
        return int(text) if found is None else found

    def place(self, text: str) -> tuple[str, int]:
        found = _PLACE.fullmatch(text)
        if found is None:
            raise MachineError(f"'{text}' is no place in a memory")
        return found[1], self.number(found[2])

    def own(self, text: str) -> Array:
        return self.machine.tile(*self.place(text))

    def outside(self, text: str, stride: str) -> Array:
        """A tile of device memory."""
        name, offset = self.place(text)
        memory, step = self.arrays[name], self.number(stride)
        if offset < 0 or offset + (TILE - 1) * step + TILE > memory.size:
            raise MachineError(f"a tile at {name}[{offset}], rows {step} apart, lies outside of {memory.size} floats")
        return np.lib.stride_tricks.as_strided(memory[offset:], (TILE, TILE), (4 * step, 4))
