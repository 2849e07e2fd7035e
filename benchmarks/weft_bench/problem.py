"""A row of the operator benchmark: a program for weft, the same work for its peers, and the goals."""

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
"""Called once with the inputs (`numpy`: and then an array for the result, `torch`: after the module), returns the call
to time, which returns the result.
"""
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

    `flops` counts the required arithmetic, `bytes` each input and output once. `bound` selects the reported one.
    """

    name: str
    program: Callable[[Sequence[Array]], ModuleOp]
    """The program, a function `ROW` of the inputs and the result, without inputs that weft gets as constants."""
    inputs: tuple[tuple[tuple[int, ...], str], ...]
    """Shape and element type of each."""
    result: tuple[tuple[int, ...], str]
    expected: Callable[..., Array]
    """The result, computed independently from the inputs, in the result's element type."""
    flops: int
    numpy: Maker | None = None
    torch: Maker | None = None
    onnx: Nodes | None = None
    constants: frozenset[int] = frozenset()
    """Inputs that are weights of onnxruntime's model, which it may pack when loading."""
    folds_constants: bool = False
    """Whether they are constants for weft too."""
    goals: tuple[Goal, ...] = ()
    bound: str = "arithmetic"
    """"arithmetic" or "memory"."""
    schedule: Callable[[Schedule, Target], None] | None = None
    """A hand-written schedule to compare the default one with; the result is block "C"."""
    static: Problem | None = field(default=None, compare=False)
    """The same work with shapes known at compile time."""
    alone: Problem | None = field(default=None, compare=False)
    """The main part of the work, without fused operators."""

    def given(self, inputs: Sequence[Array]) -> list[Array]:
        """The arguments of weft's function."""
        return [array for at, array in enumerate(inputs) if not (self.folds_constants and at in self.constants)]


def of_tensors(parameters: Callable[[], Sequence[Tensor]]) -> Callable[[Sequence[Array]], ModuleOp]:
    """A program of tensor expressions: the inputs, then the result."""
    return lambda _: create_func(list(parameters()), name=ROW)
