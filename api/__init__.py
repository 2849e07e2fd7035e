"""weft, a tensor compiler on xDSL whose levels of IR are textual, verified SSA.

    import weft
    from weft import te

    sch = weft.Schedule(te.create_func([A, B, C], name="mm_relu"))
    lib = weft.build(sch.mod, target="llvm")
    lib["mm_relu"](a, b, c)

Names are imported at first use; `__init__.pyi` lists them.
"""

import re
import sys
from importlib import import_module

from weft.support.tracebacks import filter_tracebacks

filter_tracebacks()
if "IPython" in sys.modules:
    from weft.driver.notebooks import adapt_shell  # start-up: 5 ms

    adapt_shell()

with open(f"{__path__[0]}/__init__.pyi", encoding="utf-8") as _stub:
    _PLACES: dict[str, str] = {
        name: module for module, name in re.findall(r"^from (\S+) import (\w+)", _stub.read(), re.MULTILINE)
    }
__all__ = [*_PLACES]  # pyright: ignore[reportUnsupportedDunderAll]

_OF_TVM = {
    **dict.fromkeys(("device", "gpu"), "functions run where their target is: weft.build(mod, target='cuda')"),
    "ndarray": "compiled functions take arrays of NumPy and PyTorch as they are",
    "nd": "compiled functions take arrays of NumPy and PyTorch as they are",
    "cpu": "functions run where their target is: weft.build(mod, target='llvm')",
    "cuda": "functions run where their target is: weft.build(mod, target='cuda')",
    "opencl": "functions run where their target is: weft.build(mod, target='opencl')",
    "tir": "weft.Schedule schedules, `from weft.script import tir as T` writes functions",
    "IRModule": "modules are those of xDSL: weft.lookup, weft.merge and weft.update_function edit them",
    "ir": "weft.assert_structural_equal, weft.register_intrinsic and weft.register_lowering",
    "topi": "weft.te.ops has the operators",
    "relax": "weft.graph builds graphs",
    "relay": "weft.graph builds graphs, weft.from_onnx reads them",
    "target": "weft.Target('llvm -mcpu=native')",
    "transform": "weft.build(mod, passes={'after:vectorize': ...}) inserts passes",
    "meta_schedule": "weft.tune(module, trials=64)",
    "driver": "weft.build(module), and the commands of `weft`",
    "runtime": "weft.Library is the result of weft.build",
    "contrib": "annotations pragma_import_c and pragma_import_llvm import code",
    "get_global_func": "weft.get_func",
}
"""Maps a name of TVM to the counterpart in weft."""


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("weft")
    if name not in _PLACES:
        from weft.support.errors import did_you_mean  # start-up: 20 ms

        if name in _OF_TVM:
            way = f": {_OF_TVM[name]}; weft.tvm.{name} is TVM's spelling"
        else:
            way = "" if name.startswith("_") else did_you_mean(name, _PLACES)
        raise AttributeError(f"module 'weft' has no attribute '{name}'{way}")
    if _PLACES[name] == "weft":
        return import_module(f"weft.{name}")
    return getattr(import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
