"""Places of nodes in the source of a model."""

from __future__ import annotations

from os.path import dirname
from typing import Any

from weft.frontends.torch.library import torch


def place_of(node: Any) -> str:
    """A source line outside of PyTorch's own files if possible."""
    frames: list[list[str]] = []
    for line in map(str.strip, (node.meta.get("stack_trace") or "").splitlines()):
        if line.startswith("File "):
            frames.append([line, ""])
        elif frames:
            frames[-1][1] = frames[-1][1] or line
    own = [frame for frame in frames if dirname(torch.__file__) not in frame[0]] or frames
    if not own:
        return ""
    head, code = own[-1]
    path, line, *_ = head.removeprefix("File ").split(", ")
    return f"{path.strip(chr(34))}:{line.removeprefix('line ')}: {code}"
