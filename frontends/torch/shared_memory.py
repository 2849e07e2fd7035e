"""Tensors that share memory. A compiled model computes the tensors that it writes in separate memory and copies them at
the end, so a tensor that it writes must share no byte with another argument.

Interleaved views, such as `x[::2]` and `x[1::2]`, are distinguished exactly; views for which NumPy needs more than
10,000 steps are assumed to share memory.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any, TypeAlias

from weft.frontends.torch.library import torch
from weft.support.call_arguments import overlaps_itself, share_memory
from weft.support.errors import CompileError

Span: TypeAlias = tuple[int, int, int]
"""The addresses of the first byte of a tensor and of the byte after its last one, and its index in a list."""


def span_of(tensor: Any, position: int) -> Span:
    start = tensor.data_ptr()
    if tensor.is_contiguous():
        return start, start + tensor.nbytes, position
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    return start, start + (1 + sum((extent - 1) * stride for extent, stride in steps)) * tensor.itemsize, position


def array_view(tensor: Any) -> Any:
    """An array of bits for element types that NumPy lacks."""
    bits = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    plain = tensor.detach()
    return (plain.view(bits[tensor.itemsize]) if tensor.itemsize in bits else plain).numpy()


def overlapping(tensors: Sequence[Any], written: Sequence[bool]) -> list[tuple[int, int]]:
    """Indices of tensors that share a byte, at least one of which is `written`."""
    spans = sorted(span_of(tensor, at) for at, tensor in enumerate(tensors) if tensor.numel())
    end = written_end = 0
    for start, stop, at in spans:
        if start < (end if written[at] else written_end):
            break
        end = max(end, stop)
        written_end = max(written_end, stop) if written[at] else written_end
    else:
        return []
    views = {at: array_view(tensors[at]) for _, _, at in spans}
    return [
        (one, other)
        for one in sorted(views)
        for other in sorted(views)
        if written[one] and one != other and not (written[other] and other < one)
        if share_memory(views[one], views[other])
    ]


class WrittenTensors:
    """Checks that tensors that a model writes share no memory with others."""

    def __init__(
        self,
        inputs: Mapping[int, str],
        state: Mapping[str, Any],
        fixed: Mapping[str, Any],
        written: Collection[int | str | None],
    ) -> None:
        """`inputs` has indices and names, `state` parameters and buffers, `fixed` constants; `written` has indices of
        inputs and names of state."""
        self._leaves, self._state = list(inputs), list(state.values())
        self._names = [*(f"input '{name}'" for name in inputs.values()), *(f"'{name}' of the model" for name in state)]
        self._is_written = [place in written for place in (*inputs, *state)]
        self._fixed = {f"'{name}' of the model": tensor for name, tensor in fixed.items() if tensor.numel()}
        spans = sorted(span_of(tensor, at) for at, tensor in enumerate(self._fixed.values()))
        self._starts = [start for start, _, _ in spans]
        self._ends = list(accumulate((end for _, end, _ in spans), max, initial=0))

    def check(self, leaves: Sequence[Any]) -> None:
        """Raises `ValueError` for tensors of a call that share memory and must not."""
        tensors = [*(leaves[leaf] for leaf in self._leaves), *self._state]
        pair = next(iter(overlapping(tensors, self._is_written)), None)
        if pair is not None:
            raise ValueError(self._refusal(self._names[pair[0]], self._names[pair[1]]))
        for tensor, is_written, name in zip(tensors, self._is_written, self._names, strict=True):
            if not is_written or not tensor.numel():
                continue
            if not tensor.is_contiguous() and overlaps_itself(array_view(tensor)):
                layout = f"strides {tensor.stride()} for shape {tuple(tensor.shape)}"
                raise ValueError(f"{name}: expected a tensor whose elements are at different places, got {layout}")
            start, end, _ = span_of(tensor, 0)
            if self._ends[bisect_left(self._starts, end)] > start:
                self._check_fixed(tensor, name)

    def _check_fixed(self, tensor: Any, name: str) -> None:
        for other, fixed in self._fixed.items():
            if overlapping((tensor, fixed), (True, False)):
                raise ValueError(self._refusal(name, other))

    @staticmethod
    def _refusal(name: str, other: str) -> str:
        expected = "expected a tensor that shares no memory with others, since the model writes it"
        return f"{name}: {expected}, got one that overlaps {other}"


class TracedOverlaps:
    """The inputs of a graph of `torch.compile` that overlap, at least one of them written. PyTorch traces a graph for
    one set of overlaps and may later run it on others, which its guards do not check.

    `names` are the inputs. `written` states which ones the graph writes; None if PyTorch has merged overlapping inputs
    into one, so that the graph requires the overlaps of the first call.
    """

    def __init__(self, names: Sequence[str], written: Sequence[bool] | None) -> None:
        self._names = names
        self._written = [True] * len(names) if written is None else written
        self._traced: set[tuple[int, int, int]] | None = set() if written is not None else None

    def check(self, inputs: Sequence[Any]) -> None:
        """Raises `ValueError` for inputs whose overlaps differ from the traced ones."""
        places = [at for at, value in enumerate(inputs) if _is_dense(value)]
        tensors = [inputs[at] for at in places]
        pairs = overlapping(tensors, [self._written[at] for at in places])
        found = {
            (places[one], places[other], tensors[other].data_ptr() - tensors[one].data_ptr()) for one, other in pairs
        }
        if self._traced is None:
            self._traced = found
        if found == self._traced:
            return
        one, other, _ = min(found ^ self._traced)
        raise ValueError(
            f"input '{self._names[one]}': the graph was traced for inputs that overlap otherwise, and it writes some: "
            f"this one and '{self._names[other]}' share memory {'now' if found - self._traced else 'no more'} "
            "(clone one of them, or call torch.compiler.reset())"
        )


def _is_dense(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.layout == torch.strided and value.device.type == "cpu"


def check_state(names: Sequence[str], tensors: Iterable[Any], written: Sequence[bool]) -> None:
    """Raises `CompileError` for parameters and buffers that share memory if the model writes one."""
    for one, other in overlapping(list(tensors), written):
        raise CompileError(
            f"from_torch: '{names[one]}' and '{names[other]}' of the model share memory, and the model writes "
            f"'{names[one]}': clone one of them, or read both through one name"
        )
