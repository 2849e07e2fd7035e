"""Decisions of bufferization, and properties of operations that they depend on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias, cast

from xdsl.dialects import scf
from xdsl.dialects.builtin import (
    IndexType,
    TensorType,
)
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineDimExpr

from weft.dialects.integer_arith import constant_integer
from weft.dialects.upstream.linalg_forms import Structure
from weft.dialects.upstream.views import mixed_lists

Extent: TypeAlias = "int | SSAValue | tuple[SSAValue, int]"
"""An extent: a number, a value of type index, or the extent of a tensor in a dimension."""
Mixed: TypeAlias = "tuple[int | SSAValue, ...]"
"""Offsets, sizes or strides, as numbers if known."""


def is_tensor(value: SSAValue) -> bool:
    return isinstance(value.type, TensorType)


def shape_of_tensor(value: SSAValue) -> tuple[int, ...]:
    return cast("TensorType[Attribute]", value.type).get_shape()


@dataclass(eq=False)
class Storage:
    writable: bool
    home: Block
    """The block where it is allocated or passed in."""
    is_dense: bool = True
    tensors: list[SSAValue] = field(default_factory=list[SSAValue])
    """The tensors in it, or in a part of it, in the order of their definition."""
    shared: dict[Operation, tuple[Views, ...]] = field(default_factory=dict["Operation", "tuple[Views, ...]"])
    """Maps a parallel loop to the parts that each iteration writes, which are disjoint between iterations."""
    is_allocated: bool = False
    """Whether the function itself allocates it."""
    escapes: bool = False
    """Whether the program refers to the buffer."""
    destination: SSAValue | int | None = None
    """The owner of the buffer that replaces an allocation: the result of an operation with regions, the number of an
    operand of `func.return`, or a buffer of the program."""


@dataclass(frozen=True)
class Slice:
    offsets: Mixed
    sizes: Mixed
    strides: Mixed
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Reshape:
    """The elements of a dense tensor in another shape."""

    groups: tuple[tuple[int, ...], ...]
    shape: tuple[int, ...]


Views: TypeAlias = "tuple[Slice | Reshape, ...]"


def varies(view: Slice | Reshape) -> bool:
    return isinstance(view, Slice) and any(
        isinstance(number, SSAValue) for numbers in (view.offsets, view.sizes, view.strides) for number in numbers
    )


@dataclass(frozen=True)
class TensorPlace:
    """The part of a storage that contains a tensor. Tensors at equal places share each element."""

    storage: Storage
    views: Views = ()

    @property
    def is_dense(self) -> bool:
        return self.storage.is_dense and not any(isinstance(view, Slice) for view in self.views)


@dataclass(frozen=True)
class TensorMove:
    source: SSAValue
    target: SSAValue
    is_staged: bool
    """Whether other moves of the same operation write what this one reads, so that it must be read before all of
    them."""
    insertion: Operation | None = None
    """The operation that defines the written slice of the target; None for all of it."""


@dataclass
class Placement:
    """The decisions of the analysis of a function."""

    places: dict[SSAValue, TensorPlace] = field(default_factory=dict["SSAValue", TensorPlace])
    allocated: dict[SSAValue, Storage] = field(default_factory=dict["SSAValue", Storage])
    """Maps a result or block argument to the memory that is allocated for it."""
    carrier: dict[SSAValue, SSAValue] = field(default_factory=dict["SSAValue", "SSAValue"])
    """Maps a tensor to the operand of its operation, or the loop-carried value, whose memory it shares."""
    in_place: set[tuple[Operation, int]] = field(default_factory=set[tuple[Operation, int]])
    """Operations and positions of operands whose memory the operation writes."""
    filled: set[tuple[Operation, int]] = field(default_factory=set[tuple[Operation, int]])
    """Operations and positions of operands whose content is copied into new memory first."""
    moves: dict[Operation, list[TensorMove]] = field(default_factory=dict["Operation", list[TensorMove]])
    """Maps a terminator to the copies before it."""
    extents: dict[SSAValue, tuple[Extent, ...]] = field(default_factory=dict["SSAValue", tuple[Extent, ...]])
    """The shapes of results whose memory is allocated before their operation."""


def offsets_sizes_strides(op: Operation) -> tuple[Mixed, Mixed, Mixed]:
    """`mixed_lists`, with constants folded."""
    offsets, sizes, strides = (tuple(map(folded, values)) for values in mixed_lists(op))
    return offsets, sizes, strides


def folded(value: int | SSAValue) -> int | SSAValue:
    number = value if isinstance(value, int) else constant_integer(value)
    return value if number is None else number


# Destinations


def destinations(op: Operation) -> range:
    """Positions of the operands that results of a linalg operation overwrite: the last ones."""
    return range(len(op.operands) - len(op.results), len(op.operands))


def reads_destination(op: Structure, index: int) -> bool:
    """Whether a linalg operation reads its destination, or keeps a part of it."""
    written = op.maps[index].results
    is_whole = all(isinstance(e, AffineDimExpr) for e in written) and len(set(written)) == len(written)
    return not is_whole or op.body.args[index].first_use is not None


def is_pointwise(op: Structure, index: int, other: int) -> bool:
    """Whether each instance reads the element of operand `index` that only it writes of `other`."""
    read, written = op.maps[index], op.maps[other]
    is_permutation = all(isinstance(e, AffineDimExpr) for e in written.results)
    return read == written and is_permutation and len(set(written.results)) == written.num_dims


VIEWS: Final = frozenset(
    ("tensor.extract_slice", "tensor.cast", "tensor.expand_shape", "tensor.collapse_shape", "tensor.reshape")
)
NO_READS: Final = frozenset(("tensor.dim", "tensor.rank", "bufferization.dealloc_tensor"))
REPEATED: Final = frozenset(("scf.for", "scf.while"))
ONCE: Final = frozenset(("scf.if", "scf.execute_region", "scf.index_switch"))
INSERTS: Final = frozenset(("tensor.insert_slice", "tensor.parallel_insert_slice"))


def dynamic_sizes(op: Operation) -> Sequence[SSAValue]:
    return [operand for operand in op.operands if not is_tensor(operand) and operand.type == IndexType()]


def initial_of(argument: BlockArgument, loop: Operation) -> SSAValue | None:
    if isinstance(loop, scf.ForOp):
        return loop.iter_args[argument.index - 1]
    if loop.name == "scf.forall" and loop.results:
        at = argument.index - len(argument.block.args)
        return loop.operands[at] if -at <= len(loop.results) else None
    if isinstance(loop, scf.WhileOp) and argument.block is loop.before_region.block:
        return loop.arguments[argument.index]
    return None


def block_of(op: Operation) -> Block:
    return cast("Block", op.parent)


def terminator_of(block: Block) -> Operation:
    return cast("Operation", block.last_op)


def region_block(op: Operation, inner: Operation) -> Block | None:
    for region in op.regions:
        for block in region.blocks:
            if block.find_ancestor_op_in_block(inner) is not None:
                return block
    return None


def is_inside(value: SSAValue, op: Operation) -> bool:
    owner = value.owner.parent_op() if isinstance(value.owner, Block) else value.owner
    return owner is not None and op.is_ancestor(owner) and not (isinstance(value, OpResult) and owner is op)
