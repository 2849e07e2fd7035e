"""The namespace that scripts call `I`: `from weft.script import ir as I`."""

from weft.frontends.script.decorators import ir_module

__all__ = ["ir_module", "mlir", "module_attrs"]


def module_attrs(attributes: dict[str, object]) -> None:
    """`I.module_attrs({"key": 1})`: the attributes of the module; read from the source of a class under
    `@I.ir_module`, it does nothing when it runs."""


def mlir(text: str) -> None:
    """`I.mlir("memref.global ...")`: operations of the module that are no functions of block loops, such as constants
    and schedules; read from the source of a class under `@I.ir_module`, it does nothing when it runs."""
