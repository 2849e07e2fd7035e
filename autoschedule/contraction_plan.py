"""Tiling and packing of a contraction for a machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from weft.autoschedule.contraction_roles import Roles
from weft.autoschedule.contraction_tiles import (
    cache_for_panels,
    depth_of_panels,
    panels_together,
    product,
    register_tile,
)
from weft.autoschedule.machine import keeps_up_with_streams
from weft.autoschedule.register_tile import RegisterTile
from weft.dialects.element_types import bytes_of
from weft.support.target import Target

_ROWS_THAT_PAY: Final = 12
"""Rows from which on a panel is read often enough to be packed."""
_ROWS_THAT_PAY_TRANSPOSED: Final = 8
"""The same, where a panel is read column by column otherwise."""
_WORK_OF_THREADS: Final = 1 << 21
"""Multiply-adds, some 40 us of one core, from which on it pays to wake other threads."""
_LINE_BYTES: Final = 64
"""What caches move at once."""
_STEPS_AT_ONCE: Final = 2
"""Steps of the reduction that share a test for its end, where registers are left for what the second loads."""


@dataclass(frozen=True)
class Plan:
    """How a contraction is cut up. Sizes are in elements; `depth` is None where the whole reduction runs at once."""

    tile: RegisterTile
    together: int
    """Panels of the right factor that are packed before rows pass by them."""
    depth: int | None
    pack_right: bool
    pack_left: bool
    pad_columns: bool
    """Compute columns up to whole vectors, so that only loads of the right factor and stores of results need masks."""
    asks_for_panels: bool
    """Ask for the next steps of a panel while it is used."""
    steps_at_once: int
    """Steps of the reduction between two tests for its end."""
    threads: int

    @property
    def panel_columns(self) -> int:
        return self.tile.columns * self.together


def plan_of(roles: Roles, target: Target) -> Plan:
    """The sizes for a contraction on a machine."""
    paying = _ROWS_THAT_PAY if roles.right.contiguous else _ROWS_THAT_PAY_TRANSPOSED
    many = roles.row_count is None or roles.row_count >= paying
    pack_left = many and roles.left.contiguous and not roles.same_buffer
    tile = _tile(roles, target, pack_left)
    columns, element_bytes = roles.columns, roles.right.element_bytes
    in_place = roles.right.contiguous and columns is not None and columns <= tile.columns
    ragged = columns is None or columns % tile.lanes != 0
    pack_right = many and (ragged or not in_place)
    depth = product(roles.extents[at] for at in roles.reduced)
    steps = depth_of_panels(depth, tile.columns, element_bytes, target.l2_bytes)
    if len(roles.reduced) != 1 or not pack_right:
        steps = None
    work = product(roles.extents)
    threads = target.num_threads if work is None or work >= _WORK_OF_THREADS else 1
    batches = product(roles.extents[at] for at in roles.batch)
    panels = None if columns is None else -(-columns // tile.columns)
    deep = steps or depth
    panel_bytes = None if deep is None else max(deep, 1) * tile.columns * element_bytes
    sharing = 1 if batches is not None and batches >= threads else threads
    cache = cache_for_panels(target.l2_bytes, target.l2_ways)
    return Plan(
        tile,
        panels_together(panels, panel_bytes, cache, sharing) if pack_right else 1,
        steps,
        pack_right,
        pack_left and pack_right,
        pack_right and ragged,
        pack_right and _streams(panel_bytes, target),
        _STEPS_AT_ONCE if _fuses(target) else 1,
        threads,
    )


def _tile(roles: Roles, target: Target, pack_left: bool) -> RegisterTile:
    lanes = max(target.vector_bytes // max(bytes_of(roles.element), 4), 1)
    return register_tile(
        roles.row_count,
        roles.columns,
        lanes,
        target.vector_registers,
        fused=_fuses(target),
        packed_rows=pack_left,
    )


def _streams(panel_bytes: int | None, target: Target) -> bool:
    """Whether each vector of a panel is known to be a line that neither the first cache nor the processor's own
    prefetching has: vectors are as long as lines, and the rest of the panel has passed by since the last tile."""
    if keeps_up_with_streams(target):
        return False
    return target.vector_bytes >= _LINE_BYTES and panel_bytes is not None and panel_bytes >= 2 * target.l1_bytes


def _fuses(target: Target) -> bool:
    """Whether products take no registers of their own: 16 vectors of 16 bytes are SSE's, whose instructions overwrite
    an operand, too."""
    return target.vector_bytes > 16 or target.vector_registers > 16
