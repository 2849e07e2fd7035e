"""TVM's spellings, of several versions: code for TVM runs after a change of the import.

    import weft.tvm as tvm
    from weft.tvm import te
    from weft.tvm.script import tir as T

`docs/coming-from-tvm.md` lists the counterparts. Parameters that only TVM uses have no effect.
"""

from importlib import import_module

from weft.tvm.absent import refuses

_PLACES = {
    **{"IRModule": "ir.module", "register_global_func": "runtime"},
    **dict.fromkeys(("build", "compile", "lower"), "driver.build_module"),
    **dict.fromkeys(("cpu", "cuda", "gpu", "opencl", "metal", "device", "get_global_func", "register_func"), "runtime"),
}
"""Names -> defining modules."""
_MODULES = "contrib dlight driver ir meta_schedule nd relax relay runtime script target te tir topi".split()  # noqa: SIM905
_ALIASES = {"transform": "ir.transform", "ndarray": "nd", "s_tir": "tir", "tirx": "tir"}
__all__ = [*_PLACES, *_MODULES, *_ALIASES]  # pyright: ignore[reportUnsupportedDunderAll]
_missing = refuses(__name__)


def __getattr__(name: str) -> object:
    if name in _PLACES:
        return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
    if name in _MODULES or name in _ALIASES:
        return import_module(f"{__name__}.{_ALIASES.get(name, name)}")
    return _missing(name)


def __dir__() -> list[str]:
    return sorted(__all__)
