"""`relax.op.nn`: operators of networks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def __getattr__(name: str) -> Callable[..., Any]:
    if name.startswith("__"):
        raise AttributeError(name)
    from weft.tvm.relax.op import applied

    return applied(f"nn.{name}")
