"""What a refusal test states, and the small programs that its tables are made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import EllipsisType

from weft import Schedule
from weft.schedule.schedule import LoopHandle

Steps = Callable[[Schedule], object]


def nothing(_: Schedule) -> None:
    """No steps."""


@dataclass(frozen=True)
class Refusal:
    """Steps of which the last is refused. `prepare` runs before, and must not be refused."""

    primitive: str
    requirement: int
    program: str
    steps: Steps
    message: str
    """Regular expression, searched in the text of the error."""
    counterexample: dict[str, dict[str, int]] | EllipsisType | None = None
    """None where the refusal claims none, ... where there are several as good."""
    prepare: Steps = nothing
    proved: bool = True

    def __str__(self) -> str:
        return f"{self.primitive}-{self.requirement}"


def loop(s: Schedule, block: str, at: int = 0) -> LoopHandle:
    """The loop at a position around a block."""
    return s.get_loops(block)[at]


def function(*bodies: str, parameters: str = "%A: memref<12xf32>, %C: memref<12xf32>", temporaries: str = "") -> str:
    """A function of some nests, with constants."""
    values = "\n".join(
        f"  %{name} = arith.constant {value}"
        for name, value in (("zero", "0.0 : f32"), ("one", "1.0 : f32"), ("c0", "0 : index"), ("c8", "8 : index"))
    )
    body = "\n".join(bodies)
    return f"func.func @f({parameters}) {{\n{values}\n{temporaries}\n{body}\n  func.return\n}}"


def block(label: str, body: str, over: str = "%i in 12", iterator: str = "%v: spatial<12>", at: str = "%i") -> str:
    """A loop around a block."""
    return f'tir.for {over} {{ tir.block "{label}" iters({iterator}) = [{at}] {{\n{body}\n}} }}'


def copy(source: str, target: str, *, at: str = "%v", to: str = "%v") -> str:
    """An element of a buffer of 12 into another one."""
    type_ = "memref<12xf32>"
    return f"%a = memref.load %{source}[{at}] : {type_}\nmemref.store %a, %{target}[{to}] : {type_}"


TEMPORARY = "  %B = memref.alloc() : memref<12xf32>"
SHIFTED = "%x = affine.apply affine_map<(d0) -> (d0 + 1)>(%v)\n"
TURNED = "%x = affine.apply affine_map<(d0) -> (11 - d0)>(%v)\n"
DOUBLED = "%x = affine.apply affine_map<(d0) -> (d0 * 2)>(%v)\n"
PRODUCER_CONSUMER = function(block("B", copy("A", "B")), block("C", copy("B", "C")), temporaries=TEMPORARY)
