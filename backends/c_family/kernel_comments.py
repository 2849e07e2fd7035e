"""The comment above each kernel: the blocks of the program that it runs, and the shape of its launches.

    // Blocks "A_shared", "B" of the program: 8 x 1 x 1 blocks of 128 x 1 x 1 threads.

`?` stands for a number of blocks that only calls tell, or that differs between the launches of a kernel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.backends.names import in_comment
from weft.dialects.integer_arith import constant_integer
from weft.dialects.low_kernel import LaunchOp
from weft.dialects.traversal import operations_in

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xdsl.dialects.builtin import ModuleOp

    from weft.dialects.low_kernel import KernelAttr


def grids_of(module: ModuleOp) -> dict[str, tuple[int | None, ...]]:
    """Kernel -> blocks along x, y and z of its launches, None where that is not one number."""
    found: dict[str, tuple[int | None, ...]] = {}
    for op in operations_in(module):
        if isinstance(op, LaunchOp):
            name, grid = op.kernel.string_value(), tuple(map(constant_integer, op.grid))
            known = found.setdefault(name, grid)
            found[name] = tuple(a if a == b else None for a, b in zip(known, grid, strict=True))
    return found


def kernel_comment(name: str, kernel: KernelAttr, grids: Mapping[str, tuple[int | None, ...]]) -> str:
    """What stands above a kernel."""
    labels = kernel.source.data.split(", ")
    what = ", ".join(f'"{in_comment(label)}"' for label in labels)
    threads = " x ".join(map(str, kernel.threads_per_axis))
    grid = " x ".join("?" if extent is None else str(extent) for extent in grids.get(name, ()))
    blocks = f"{grid} blocks of {threads} threads" if grid else f"blocks of {threads} threads"
    return f"// Block{'s' if len(labels) > 1 else ''} {what} of the program: {blocks}."
