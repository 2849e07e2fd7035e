"""Kinds of target: weft's own, and those that vendors register.

A vendor describes a processor once, in a package of its own, and registers it; nothing of weft changes:

```python
weft.register_target_kind(weft.TargetKind("npu", load, scopes={"global.A_reg": 1 << 10}))
lib = weft.build(sch.mod, target="npu")
```
`load` gets the module at low level, in which memory of the kind's scopes is `memref.alloca` with that memory space, and
gives the library of its functions: it is the backend.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from weft.support.argument_types import checked, checked_argument, checked_methods
from weft.support.errors import CompileError, did_you_mean
from weft.support.gpu_machine import GPU_KINDS

if TYPE_CHECKING:
    from xdsl.passes import ModulePass

OWN_KINDS: Final = ("llvm", "c", *GPU_KINDS)
"""The kinds that weft brings along."""


@checked_methods
@dataclass(frozen=True)
class TargetKind:
    """A kind of target that is registered.

    Raises `CompileError` for a name that cannot stand in a target, and for scopes of no size.
    """

    name: str
    load: Callable[..., object]
    """From the module at low level and the `Target` to a `weft.runtime.library.Library`. Raises `CompileError` for what
    the processor cannot do."""
    scopes: Mapping[str, int] = field(default_factory=dict[str, int])
    """Memory scope -> its capacity in bytes. All that a function allocates in a scope has room there at once."""
    passes: tuple[ModulePass, ...] = ()
    """What runs on the low level before `load`."""

    def __post_init__(self) -> None:
        from xdsl.passes import ModulePass

        checked_argument("TargetKind", "passes", tuple[ModulePass, ...], self.passes)
        if not self.name.replace("_", "").isalnum():
            raise CompileError(f"a target kind is named by letters, digits and _, got '{self.name}'")
        for scope, size in self.scopes.items():
            if size < 1:
                raise CompileError(f"target kind {self.name}: scope '{scope}' must have at least 1 byte, got {size}")


_REGISTERED: Final[dict[str, TargetKind]] = {}


@checked
def register_target_kind(kind: TargetKind, *, override: bool = False) -> TargetKind:
    """Make a kind of target known by its name. Raises `CompileError` when the name is weft's own, or taken and
    `override` is not given."""
    if kind.name in OWN_KINDS:
        raise CompileError(f"target kind '{kind.name}' is weft's own")
    if kind.name in _REGISTERED and not override:
        raise CompileError(f"a target kind '{kind.name}' is registered already; override=True replaces it")
    _REGISTERED[kind.name] = kind
    return kind


def unregister_target_kind(name: str) -> None:
    """Forget a registered kind. Raises `CompileError` when there is none of that name."""
    if _REGISTERED.pop(name, None) is None:
        raise CompileError(f"no target kind '{name}' is registered{did_you_mean(name, _REGISTERED)}")


def registered_kind(name: str) -> TargetKind | None:
    """The registered kind of a name, None for weft's own and for unknown ones."""
    return _REGISTERED.get(name)


def target_kinds() -> tuple[str, ...]:
    """The names of all kinds, weft's own first."""
    return (*OWN_KINDS, *_REGISTERED)
