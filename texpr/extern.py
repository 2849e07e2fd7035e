"""Tensors written by statements, such as sorts, which no expression of an element defines.

```python
def write(code: Statements, indices: Sequence[Expr], sums: Written) -> None:
    (i,) = indices
    sums.store(0.0, i)
    with code.loop(A.shape[1], "k") as k:
        sums.store(sums.load(i) + A[i, k], i)

(S,) = extern([A.shape[0]], [Result((A.shape[0],), "float32", "S")], [A], write, "sums")
```
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.dialects.memref import LoadOp, StoreOp
from xdsl.dialects.scf import IfOp
from xdsl.dialects.scf import YieldOp as ScfYieldOp
from xdsl.ir import Block, Region, SSAValue

from weft.dialects.te_extern import ExternOp as TeExternOp
from weft.dialects.tir import ForOp
from weft.dialects.tir_kinds import LoopKind
from weft.texpr.emit import ElementEmitter
from weft.texpr.expr import Const, Expr, ExprLike, IterVar, Named, as_expr, caller, error, value_type_of
from weft.texpr.shapes import Extent, checked_shape, value_name
from weft.texpr.tensor import ComputeOp, Tensor


@dataclass(eq=False, slots=True, repr=False)
class Loaded(Named):
    dtype: str
    is_index: bool = False


@dataclass(frozen=True)
class Result:
    shape: tuple[Extent, ...]
    dtype: str
    name: str


@dataclass(eq=False)
class ExternOp(ComputeOp):
    """Statements run per value of `axis`; `body` is empty."""

    inputs: tuple[Tensor, ...]
    write: Callable[..., None]
    """A function of `Statements`, the sequence of indices, and a `Written` for each result."""

    @property
    def input_tensors(self) -> tuple[Tensor, ...]:
        return self.inputs

    def emit(self, emitter: ElementEmitter) -> TeExternOp:
        domain = [emitter.extent(index.extent) for index in self.axis]
        types = [
            TensorType(value_type_of(t.dtype), [e if isinstance(e, int) else DYNAMIC_INDEX for e in t.shape])
            for t in self.outputs
        ]
        extents = [emitter.extent(extent) for tensor in self.outputs for extent in tensor.shape]
        dynamic = [extent for extent in extents if isinstance(extent, SSAValue)]
        hints = [value_name(index.name) for index in self.axis], [value_name(t.name) for t in self.outputs]
        op = TeExternOp.over(self.name, domain, types, dynamic, *hints)
        with emitter.inside(op.body.block, dict(zip(self.axis, op.indices, strict=True))):
            buffers = [
                Written(emitter, buffer, t.dtype, t.name) for buffer, t in zip(op.buffers, self.outputs, strict=True)
            ]
            self.write(Statements(emitter), self.axis, *buffers)
        return op


def extern(
    domain: Sequence[Extent],
    results: Sequence[Result],
    inputs: Sequence[Tensor],
    write: Callable[..., None],
    name: str,
) -> tuple[Tensor, ...]:
    """Tensors written by `write(code, indices, *buffers)`, called at emission, per index of `domain`, in any order,
    reading `inputs`.
    """
    axis = [IterVar(f"i{d}", 0, extent, False) for d, extent in enumerate(checked_shape(domain, f"extern {name}"))]
    op = ExternOp(name, caller(), tuple(axis), (), tuple(inputs), write)
    op.outputs += [Tensor(r.shape, r.dtype, r.name, op, position) for position, r in enumerate(results)]
    return tuple(op.outputs)


class Statements:
    def __init__(self, emitter: ElementEmitter) -> None:
        self._emitter = emitter

    @contextmanager
    def loop(self, extent: ExprLike, name: str, *, unrolled: bool = False) -> Generator[Expr]:
        count = as_expr(extent)
        number = count.value if isinstance(count, Const) else None
        size = number if isinstance(number, int) else self._emitter.index(count)
        loop = ForOp.empty(size, value_name(name), kind=LoopKind.UNROLLED if unrolled else LoopKind.SERIAL)
        variable = IterVar(name, 0, number if isinstance(number, int) else count, False)
        with self._emitter.inside(loop.body.block, {variable: loop.induction_variable}):
            yield variable
        self._emitter.finish(loop)

    @contextmanager
    def loops(self, extents: Sequence[Extent], names: Sequence[str]) -> Generator[tuple[Expr, ...]]:
        if not extents:
            yield ()
            return
        with self.loop(extents[0], names[0]) as first, self.loops(extents[1:], names[1:]) as rest:
            yield (first, *rest)

    @contextmanager
    def when(self, condition: ExprLike) -> Generator[None]:
        held = self._emitter.value(as_expr(condition))
        block = Block()
        with self._emitter.inside(block):
            yield
            self._emitter.finish(ScfYieldOp())
        self._emitter.finish(IfOp(held, [], Region(block)))


class Written:
    def __init__(self, emitter: ElementEmitter, buffer: SSAValue, dtype: str, name: str) -> None:
        self._emitter = emitter
        self._buffer = buffer
        self.dtype = dtype
        self.name = name

    def load(self, *indices: ExprLike) -> Expr:
        places = [self._emitter.index(as_expr(index)) for index in indices]
        value = Loaded(self.name, self.dtype)
        op = LoadOp.create(operands=[self._buffer, *places], result_types=[value_type_of(self.dtype)])
        self._emitter.bind(value, self._emitter.append(op))
        return value

    def store(self, value: ExprLike, *indices: ExprLike) -> None:
        element = as_expr(value, self.dtype)
        if element.dtype != self.dtype and not element.is_index:
            raise error(f"{self.name} holds {self.dtype}, got {element.dtype} `{element}`")
        places = [self._emitter.index(as_expr(index)) for index in indices]
        operands = [self._emitter.value(element, self.dtype), self._buffer, *places]
        self._emitter.finish(StoreOp.create(operands=operands))
