"""weft, a tensor compiler whose every stage is textual, verified SSA IR on xDSL.

    import weft
    from weft import te

    sch = weft.Schedule(te.create_func([A, B, C], name="mm_relu"))
    lib = weft.build(sch.mod, target="llvm")
    lib["mm_relu"](a, b, c)

The public names are listed in `__init__.pyi`; each is imported when it is first used.
"""

import re
from importlib import import_module

with open(f"{__path__[0]}/__init__.pyi", encoding="utf-8") as _stub:
    _PLACES: dict[str, str] = {
        name: module for module, name in re.findall(r"^from (\S+) import (\w+)", _stub.read(), re.MULTILINE)
    }
__all__ = [*_PLACES]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("weft")
    if name not in _PLACES:
        raise AttributeError(f"module 'weft' has no attribute '{name}'")
    if _PLACES[name] == "weft":
        return import_module(f"weft.{name}")
    return getattr(import_module(_PLACES[name]), name)
