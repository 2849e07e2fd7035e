"""low-forward-stores: forward stored values to loads, and remove dead stores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from xdsl.context import Context
from xdsl.dialects import memref
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from weft.dialects.aliasing import overlapping
from weft.dialects.effects import is_pure, underlying
from weft.dialects.low_kernel import KERNEL
from weft.support.statistics import Statistic

_FORWARDED: Final = Statistic("low-forward-stores", "loads-forwarded", "loads that are the stored value")
_DROPPED: Final = Statistic("low-forward-stores", "stores-dropped", "stores that another one overwrites unread")


@dataclass(frozen=True)
class ForwardStoresPass(ModulePass):
    """Forward stored values to loads, and drop overwritten stores, in kernels, within straight-line code:

    - a load becomes the value last stored to its element, unless another write to the buffer follows the store;
    - a store is erased if its element is stored again, with no read of the buffer in between.

    A buffer that may overlap counts as another element of the same one. Ops other than computations, scalar loads and
    scalar stores (loops, conditions, barriers, vectors, calls) invalidate all knowledge. Elements are compared by index
    values, which `low-canonicalize` shares.

    ```mlir
    memref.store %zero, %B[%i] : memref<8xf32>
    %b = memref.load %B[%i] : memref<8xf32>
    %sum = arith.addf %b, %x : f32
    memref.store %sum, %B[%i] : memref<8xf32>
    // low-forward-stores
    %sum = arith.addf %zero, %x : f32
    memref.store %sum, %B[%i] : memref<8xf32>
    ```

    Requires: low functions, canonical (`low-canonicalize`).

    Leaves: low functions.
    """

    name = "low-forward-stores"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.ops:
            if isinstance(function, FuncOp) and KERNEL in function.attributes:
                for inner in [function, *function.walk()]:
                    for region in inner.regions:
                        for block in region.blocks:
                            _LastStores().run(block)


class _LastStores:
    """The last store to each buffer, and whether it was read since."""

    def __init__(self) -> None:
        self.last: dict[SSAValue, memref.StoreOp] = {}
        self.read: set[SSAValue] = set()

    def run(self, block: Block) -> None:
        for op in list(block.ops):
            if isinstance(op, memref.StoreOp):
                self.store(op)
            elif isinstance(op, memref.LoadOp):
                self.load(op)
            elif op.regions or not is_pure(op):
                self.last.clear()

    def store(self, op: memref.StoreOp) -> None:
        memory = underlying(op.memref)
        before = self.last.get(memory)
        if before is not None and memory not in self.read and _same_element(before, op):
            Rewriter.erase_op(before)
            _DROPPED.add()
        for other in overlapping(memory):
            self.last.pop(other, None)
        self.last[memory] = op
        self.read.discard(memory)

    def load(self, op: memref.LoadOp) -> None:
        memory = underlying(op.memref)
        before = self.last.get(memory)
        if before is not None and _same_element(before, op):
            op.res.replace_all_uses_with(before.value)
            Rewriter.erase_op(op)
            _FORWARDED.add()
        else:
            self.read.update((memory, *overlapping(memory)))


def _same_element(store: memref.StoreOp, other: memref.StoreOp | memref.LoadOp) -> bool:
    return store.memref is other.memref and list(store.indices) == list(other.indices)
