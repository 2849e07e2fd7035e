"""A synchronisation request that a kernel thread yields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from xdsl.ir import Operation


@dataclass(frozen=True)
class Meeting:
    """Where a thread waits: at a barrier (without a value), or with what it brings to an op of its warp."""

    op: Operation
    value: Any = None
    offset: int = 0
