"""Blocks that a warp runs together: on tiles of matrices, by its tensor cores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xdsl.dialects import memref
from xdsl.dialects.builtin import f16
from xdsl.ir import Operation, SSAValue

from weft.analysis.structure import ancestors
from weft.analysis.threads import axis_of
from weft.dialects.low_access import AccessPtrOp, StrideOp
from weft.dialects.low_kernel import THREAD_AXES
from weft.dialects.low_tensor_cores import WARP, Family, FragmentAttr, Role, TileOp
from weft.dialects.tir import BlockOp, ForOp
from weft.support.errors import CompileError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft.support.target import Target

LANES: Final = THREAD_AXES[0]
"""The axis whose threads are a warp, where there is work on tiles."""


def works_on_tiles(block: BlockOp) -> bool:
    """Whether a block works on tiles itself, and not only in blocks inside of it."""
    return any(isinstance(op, TileOp) and _block_of(op) is block for op in block.walk())


def _block_of(op: Operation) -> BlockOp | None:
    return next((parent for parent in ancestors(op) if isinstance(parent, BlockOp)), None)


def is_of_warp(op: Operation) -> bool:
    """Whether an op is a pointer to a tile: what is done through it, a warp does together."""
    return isinstance(op, AccessPtrOp) and any(isinstance(use.operation, TileOp) for use in op.pointer.uses)


def require_tensor_cores(root: Operation, target: Target) -> None:
    """Raise `CompileError` for work on tiles that a target cannot do."""
    available = target.gpu.tensor_cores if target.gpu is not None else frozenset[str]()
    name = f"{target.kind} -arch={target.arch}" if target.arch else target.kind
    for op in root.walk():
        if not isinstance(op, TileOp):
            continue
        for fragment, _ in op.fragments():
            needed = instruction_of(fragment)
            if needed not in available:
                known = f"it has {', '.join(sorted(available))}" if available else "it has no tensor cores"
                raise CompileError.at(op, f"{op.name} needs {needed}, which target {name} does not have: {known}")
    if available and target.gpu is not None and target.gpu.warp_size != WARP:
        raise CompileError(f"work on tiles needs warps of {WARP} threads, target {name} has {target.gpu.warp_size}")


def instruction_of(fragment: FragmentAttr) -> str:
    """What `GpuMachine.tensor_cores` calls the instructions on a fragment; all of a family accumulate in `f32`."""
    element = f16 if fragment.role is Role.C else fragment.element
    return f"wmma {element}" if fragment.family is Family.WMMA else f"mma.sync m16n8k16 {element}"


def require_fragment(alloc: memref.AllocOp) -> None:
    """Raise `CompileError` where a buffer of fragments is used by other code than work on tiles."""
    for use in alloc.memref.uses:
        op = use.operation
        if isinstance(op, StrideOp) or is_of_warp(op):
            continue
        block = _block_of(op)
        where = f'block "{block.label}"' if block is not None else op.name
        type_ = alloc.memref.type
        raise CompileError.at(
            op,
            f"{where} uses %{alloc.memref.name_hint} in memory of space {type_.memory_space}, which only tensor cores "
            "can use: tensorize it",
        )


def require_lanes(blocks: Sequence[BlockOp], loops: Sequence[ForOp], extent: int | SSAValue | None) -> None:
    """Raise `CompileError` unless threadIdx.x can be the threads of a warp, for the blocks of a kernel that work on
    tiles."""
    for block in blocks:
        inside = next((loop for loop in loops if loop.is_ancestor(block)), None)
        if inside is not None:
            name = inside.induction_variable.name_hint
            raise CompileError.at(
                block,
                f'block "{block.label}" works on tiles, which the {WARP} threads of a warp do together, but stands in '
                f"loop %{name} over them ({LANES}): bind warps to threadIdx.y or threadIdx.z",
            )
    if extent is not None and extent != WARP:
        raise CompileError.at(
            loops[0],
            f'block "{blocks[0].label}" works on tiles, which the {WARP} threads of a warp do together: loops over '
            f"{LANES} have {WARP} iterations, got {extent}",
        )


def lanes_around(op: Operation) -> ForOp:
    """The loop over the threads of a warp around an op in a kernel."""
    for parent in ancestors(op):
        if isinstance(parent, ForOp) and axis_of(parent) == LANES:
            return parent
    raise CompileError.at(op, f"{op.name} stands in no loop over {LANES}: run tir-bind-threads before")
