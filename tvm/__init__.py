"""TVM's spellings, of several ages, for weft: a reader of a text about TVM changes the import and types its code.

    import weft.tvm as tvm
    from weft.tvm import te
    from weft.tvm.script import tir as T

Each function here is one or a few lines over weft's own, and `docs/coming-from-tvm.md` says which. Nothing in weft
depends on this package.
"""

from __future__ import annotations

from importlib import import_module

from weft.tvm.absent import refuses

_PLACES = {
    "IRModule": "ir.module",
    "build": "driver.build_module",
    "lower": "driver.build_module",
    "cpu": "runtime",
    "cuda": "runtime",
    "gpu": "runtime",
    "opencl": "runtime",
    "metal": "runtime",
    "device": "runtime",
    "get_global_func": "runtime",
    "register_func": "runtime",
}
"""Names -> the modules that define them."""
_MODULES = (
    "contrib", "driver", "ir", "meta_schedule", "nd", "relax", "relay", "runtime", "script", "target", "te", "tir",
    "topi",
)  # fmt: skip
_ALIASES = {"transform": "ir.transform", "ndarray": "nd"}
_NEAREST = {
    "autotvm": "weft.tvm.meta_schedule tunes",
    "auto_scheduler": "weft.tvm.meta_schedule tunes; default schedules of weft.build need no search",
    "rpc": "the library that weft.build gives is exported (lib.export) and run where its target is",
    "micro": "weft.build(mod, target='c').get_source() is C without dependencies",
    "contrib": "weft.tvm.contrib has clang and utils",
    "arith": "weft simplifies in its passes (`weft-opt`)",
    "instrument": "lib.timing of weft.build says how long each stage took",
    "vulkan": "the kinds of GPU are cuda, opencl and metal",
    "rocm": "the kinds of GPU are cuda, opencl and metal",
    "parser": "weft.tvm.script.from_source reads scripts",
}
__all__ = [*_PLACES, *_MODULES, *_ALIASES]  # pyright: ignore[reportUnsupportedDunderAll]
_missing = refuses(__name__, _NEAREST)


def __getattr__(name: str) -> object:
    if name in _PLACES:
        return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
    if name in _MODULES or name in _ALIASES:
        return import_module(f"{__name__}.{_ALIASES.get(name, name)}")
    return _missing(name)


def __dir__() -> list[str]:
    return sorted(__all__)
