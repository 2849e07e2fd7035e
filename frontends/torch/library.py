"""PyTorch itself, imported when a model is, and taken without types: its stubs know too few of them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from weft.support.errors import CompileError

try:
    torch: Any = import_module("torch")
except ImportError as error:
    raise CompileError(f"models of PyTorch need the package torch: pip install 'weft[torch]' ({error})") from None

pytree: Any = import_module("torch.utils._pytree")
