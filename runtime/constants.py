"""Large constants of low modules: arrays that the code reads under external symbols
(docs/decisions/0048-constants.md)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, ModuleOp, StringAttr, SymbolRefAttr, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.dialects.memref import GetGlobalOp, GlobalOp

from weft.backends.llvm.memory_ops import BUFFER_ALIGNMENT
from weft.backends.llvm.types import byte_text
from weft.dialects.constant_data import LARGE_BYTES, dense_attribute, elements_of, new_constant
from weft.dialects.element_types import array_name
from weft.dialects.traversal import operations_in
from weft.support.names import free_name
from weft.support.pages import LARGE_PAGE, fresh_pages

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from numpy.typing import NDArray

_EXTERNAL: Final = re.compile(r"^@(weft_const_\d+) = external constant (\[\d+ x i8\])(.*)$", re.MULTILINE)


def take_constants(module: ModuleOp, kept: Collection[str] = ()) -> dict[str, NDArray[Any]]:
    """Move large constants, except those in `kept`, out of a module, which declares them as `weft_const_0`, ... Returns
    read-only arrays, aligned as buffers are."""
    taken = {op.sym_name.data for op in module.ops if isinstance(op, FuncOp | GlobalOp)}
    names: dict[str, str] = {}
    constants: dict[str, NDArray[Any]] = {}
    for op in module.ops:
        if not isinstance(op, GlobalOp) or op.constant is None or op.sym_name.data in kept:
            continue
        elements = _large_elements(op)
        if elements is not None:
            name = free_name(f"weft_const_{len(constants)}", taken)
            names[op.sym_name.data] = name
            constants[name] = elements
            op.sym_name = StringAttr(name)
            op.properties["initial_value"] = UnitAttr()
    _put_together(constants)
    for op in operations_in(module) if names else ():
        if isinstance(op, GetGlobalOp) and (name := names.get(op.name_.string_value())) is not None:
            op.properties["name"] = SymbolRefAttr(name)
    return constants


def _put_together(constants: dict[str, NDArray[Any]]) -> None:
    """Constants too small for large pages share one mapping."""
    import numpy as np

    names = [name for name, array in constants.items() if array.nbytes < 2 * LARGE_PAGE]
    total = sum(_padded(constants[name].nbytes) for name in names)
    if total < 2 * LARGE_PAGE:
        return
    memory, at = np.frombuffer(fresh_pages(total), np.uint8), 0
    for name in names:
        array = constants[name]
        size = array.nbytes
        constants[name] = memory[at : at + size].view(array.dtype).reshape(array.shape)
        constants[name][...] = array
        constants[name].flags.writeable = False
        at += _padded(size)


def _padded(size: int) -> int:
    return -(-size // BUFFER_ALIGNMENT) * BUFFER_ALIGNMENT


def _large_elements(op: GlobalOp) -> NDArray[Any] | None:
    """Returns None for small constants, and for zeros, which need no space in a program."""
    value, element_type = op.initial_value, op.type.element_type
    if not isinstance(value, DenseIntOrFPElementsAttr) or array_name(element_type) is None:
        return None
    elements = elements_of(value)
    is_zero = len(value.data.data) < elements.nbytes and not elements.flat[0]
    if elements.nbytes < LARGE_BYTES or is_zero:
        return None
    if elements.ctypes.data % BUFFER_ALIGNMENT or not elements.flags.c_contiguous:
        given = elements
        elements, _ = new_constant(given.shape, element_type)
        elements[...] = given
    elements.flags.writeable = False
    return elements


def put_constants(module: ModuleOp, constants: Mapping[str, NDArray[Any]]) -> None:
    for op in module.ops:
        if isinstance(op, GlobalOp) and (array := constants.get(op.sym_name.data)) is not None:
            op.properties["initial_value"] = dense_attribute(array, op.type.element_type)


def with_constants(text: str, constants: Mapping[str, NDArray[Any]]) -> str:
    def defined(found: re.Match[str]) -> str:
        name, type_, rest = found.groups()
        data = constants[name].tobytes()
        return f"@{name} = private unnamed_addr constant {type_} {byte_text(data)}{rest}"

    return _EXTERNAL.sub(defined, text) if constants else text
