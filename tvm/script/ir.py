"""`from tvm.script import ir as I`."""

from weft.frontends.script.ir import mlir, module_attrs
from weft.tvm.script.reader import ir_module


def module_global_infos(infos: object) -> None:
    """No effect: weft's modules run on one device."""


def vdevice(target: object = None, vdevice_id: int = 0, memory_scope: str = "global") -> None:
    """No effect: weft's modules run on one device."""


def dummy_global_info() -> None:
    """No effect."""


__all__ = ["dummy_global_info", "ir_module", "mlir", "module_attrs", "module_global_infos", "vdevice"]
