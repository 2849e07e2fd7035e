"""PyTorch itself, imported on first use and untyped, because its stubs are incomplete."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from weft.support.errors import CompileError

try:
    torch: Any = import_module("torch")
except ImportError as error:
    raise CompileError(f"models of PyTorch need the package torch: pip install 'weft[torch]' ({error})") from None

pytree: Any = import_module("torch.utils._pytree")
