"""Random innermost loops over flat buffers: what `tir-vectorize-serial` may vectorize, and what it must not.

The distance between the elements that iterations load and store is small or a multiple of a vector, so that programs on
both sides of each limit of the pass occur. Values are small multiples of 1/8, whose sums and products are exact.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"

SIZE = 400
_TYPES = ("f32", "f32", "f64", "i32", "i8", "i16", "i64", "f16", "bf16")
_DISTANCES = (0, 0, 0, 1, 2, 3, 4, 7, 8, 16, 17, 32, 64, 100)
_PLACES = (
    *("d0 + {}", "d0 + {}", "d0 + {}", "d0 * 2 + {}", "{}", "d0 floordiv 4 + {}", "d0 mod 8 + {}"),
    *("d0 floordiv 8 * 16 + d0 mod 8 + {}", "-d0 + 90 + {}"),
)
_OF_FLOATS = ("addf", "mulf", "subf", "maximumf", "minimumf", "maxnumf", "select")
_OF_INTEGERS = ("addi", "muli", "subi", "maxsi", "minui", "andi", "xori", "ori", "select")
_COMBINE_FLOATS = ("addf", "maximumf", "minimumf", "maxnumf")
_COMBINE_INTEGERS = ("addi", "muli", "maxsi", "minui", "xori")
_PROMISES = ("", "", ' attributes {tir.promises = ["contract"]}', ' attributes {tir.promises = ["noalias"]}')


@dataclass
class SerialLoop:
    """The program of a seed: `@f(A, B, C, N)`, where `N` gives a dynamic extent, which may be negative."""

    seed: int
    text: str = ""
    type_: str = ""
    _lines: list[str] = field(default_factory=list[str])
    _names: int = 0

    def __post_init__(self) -> None:
        self.draw = random.Random(self.seed)
        self.type_ = self.draw.choice(_TYPES)
        extent = self.draw.choice((str(self.draw.randint(1, 80)), str(self.draw.randint(1, 80)), "%n", "%less"))
        for _ in range(self.draw.choice((1, 1, 2))):
            self._statement()
        body = "\n".join(f"    {line}" for line in self._lines)
        buffer = f"memref<{SIZE}x{self.type_}>"
        self.text = (
            f"func.func @f(%A: {buffer}, %B: {buffer}, %C: {buffer}, %N: memref<?xf32>)"
            f"{self.draw.choice(_PROMISES)} {{\n"
            "  %c0 = arith.constant 0 : index\n  %n = memref.dim %N, %c0 : memref<?xf32>\n"
            "  %less = affine.apply affine_map<(d0) -> (d0 - 40)> (%n)\n"
            f"  tir.for %i in {extent} {{\n{body}\n  }}\n  func.return\n}}\n"
        )

    @property
    def is_float(self) -> bool:
        return not self.type_.startswith("i")

    def arguments(self) -> list[Array]:
        generator = np.random.default_rng(self.seed)
        numbers = [generator.integers(-8, 8, SIZE) for _ in range(3)]
        return [
            *((n / 8).astype(self._dtype()) if self.is_float else n.astype(self._dtype()) for n in numbers),
            np.zeros(self.draw.randint(0, 90), np.float32),
        ]

    def _dtype(self) -> np.dtype[Any]:
        if self.type_ == "bf16":
            import ml_dtypes

            return np.dtype(ml_dtypes.bfloat16)
        return np.dtype({"f": "float", "i": "int"}[self.type_[0]] + self.type_[1:])

    def _define(self, text: str) -> str:
        self._names += 1
        self._lines.append(f"%v{self._names} = {text}")
        return f"%v{self._names}"

    def _place(self) -> str:
        form = self.draw.choice(_PLACES).format(self.draw.choice(_DISTANCES))
        return self._define(f"affine.apply affine_map<(d0) -> ({form})> (%i)")

    def _load(self, buffer: str, place: str) -> str:
        return self._define(f"memref.load %{buffer}[{place}] : memref<{SIZE}x{self.type_}>")

    def _value(self, depth: int) -> str:
        if depth == 0 or self.draw.random() < 0.2:
            return self._load(self.draw.choice("ABABC"), self._place())
        if self.draw.random() < 0.1:
            number = self.draw.choice(("1.5", "-0.0", "2.0") if self.is_float else ("1", "3", "-2"))
            return self._define(f"arith.constant {number} : {self.type_}")
        left, right = self._value(depth - 1), self._value(depth - 1)
        op = self.draw.choice(_OF_FLOATS if self.is_float else _OF_INTEGERS)
        if op != "select":
            return self._define(f"arith.{op} {left}, {right} : {self.type_}")
        comparison = "cmpf olt" if self.is_float else "cmpi slt"
        condition = self._define(f"arith.{comparison}, {left}, {right} : {self.type_}")
        return self._define(f"arith.select {condition}, {right}, {left} : {self.type_}")

    def _statement(self) -> None:
        buffer = self.draw.choice("BC")
        if self.draw.random() < 0.3:
            place = self._define(f"arith.constant {self.draw.choice((0, 5))} : index")
            value = self._value(self.draw.choice((0, 1)))
            old = self._load(buffer, place)
            op = self.draw.choice(_COMBINE_FLOATS if self.is_float else _COMBINE_INTEGERS)
            value = self._define(f"arith.{op} {old}, {value} : {self.type_}")
        else:
            value, place = self._value(self.draw.choice((0, 1, 2))), self._place()
        self._lines.append(f"memref.store {value}, %{buffer}[{place}] : memref<{SIZE}x{self.type_}>")
