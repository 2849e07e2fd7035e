"""A row of the operator benchmark: a program for weft, the same work for its peers, and what is aimed at."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from xdsl.dialects.builtin import ModuleOp

from weft.frontends.create_func import create_func
from weft.schedule.schedule import Schedule
from weft.support.target import Target
from weft.texpr.tensor import Tensor
from weft_bench.contender import Array

NUMPY, TORCH, ONNX = "NumPy", "PyTorch", "onnxruntime"
PEERS = (NUMPY, TORCH, ONNX)
STATIC, ALONE = "weft, static shape", "weft, alone"
ROW = "row"

Maker: TypeAlias = Callable[..., Callable[[], Any]]
"""Called once with the inputs (`numpy`: and then an array for the result, `torch`: after the module), returns what is
timed. That returns the result."""
Nodes: TypeAlias = Callable[[Any], Sequence[Any]]
"""Called with `onnx.helper`, returns the nodes of a graph from `x0`, `x1`, ... to `y`."""


@dataclass(frozen=True)
class Goal:
    """The fastest of `peers` takes at least `ratio[threads]` times as long as weft."""

    peers: tuple[str, ...]
    ratio: Mapping[int, float]


@dataclass(frozen=True)
class Problem:
    """One piece of work.

    `flops` counts what the arithmetic needs, `bytes` each input and output once. `bound` says which of the two is
    reported.
    """

    name: str
    program: Callable[[Sequence[Array]], ModuleOp]
    """The program, a function `ROW` of the inputs and the result; where weft gets the constants as such, of the other
    inputs."""
    inputs: tuple[tuple[tuple[int, ...], str], ...]
    """Shape and element type of each."""
    result: tuple[tuple[int, ...], str]
    expected: Callable[..., Array]
    """The result from the inputs, computed in another way, in the element type of the result."""
    flops: int
    numpy: Maker | None = None
    torch: Maker | None = None
    onnx: Nodes | None = None
    constants: frozenset[int] = frozenset()
    """Inputs that onnxruntime gets as weights of the model, and may pack when it loads that."""
    folds_constants: bool = False
    """Whether weft gets them so too."""
    goals: tuple[Goal, ...] = ()
    bound: str = "arithmetic"
    """Or "memory"."""
    schedule: Callable[[Schedule, Target], None] | None = None
    """A schedule by hand, to compare the default one with; the result is block "C"."""
    static: Problem | None = field(default=None, compare=False)
    """The same work with shapes that are known when it is compiled."""
    alone: Problem | None = field(default=None, compare=False)
    """The part of the work that takes the most, without what is fused with it."""

    def given(self, inputs: Sequence[Array]) -> list[Array]:
        """The inputs that weft is called with."""
        return [array for at, array in enumerate(inputs) if not (self.folds_constants and at in self.constants)]


def of_tensors(parameters: Callable[[], Sequence[Tensor]]) -> Callable[[Sequence[Array]], ModuleOp]:
    """A program of tensor expressions: the inputs, then the result."""
    return lambda _: create_func(list(parameters()), name=ROW)
