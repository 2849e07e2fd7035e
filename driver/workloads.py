"""Functions at tir level as separate programs, for separate compilation and tuning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, MemRefType, ModuleOp, StringAttr
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.dialects.memref import GlobalOp
from xdsl.ir import Operation

from weft.analysis.structural_hash import structural_digest
from weft.dialects.tir import BlockOp
from weft.dialects.traversal import copy_of, operations_in, operations_of
from weft.passes.module_edits import named_ops, rename_symbol, symbol_uses
from weft.passes.tir.tir_pass import buffer_functions
from weft.support.user_functions import intrinsics, names_with_rules


def is_taken_along(op: Operation | None) -> bool:
    """Whether a separately compiled function may refer to a symbol: constants and external functions."""
    if isinstance(op, GlobalOp):
        return op.constant is not None
    return isinstance(op, FuncOp) and op.is_declaration


def function_digest(function: FuncOp, needed: Sequence[Operation]) -> bytes:
    """A digest that is independent of the function's name and those of data."""
    if needed:
        function, needed = copy_of(function), [copy_of(op) for op in needed]
    for at, op in enumerate(op for op in needed if isinstance(op, GlobalOp)):
        rename_symbol(function, op.sym_name.data, f"data{at}")
        op.sym_name = StringAttr(f"data{at}")
    name = function.sym_name
    function.sym_name = StringAttr("kernel")
    try:
        return b"".join(structural_digest(op) for op in (function, *needed))
    finally:
        function.sym_name = name


@dataclass(frozen=True)
class Task:
    """A function of a program that can be scheduled separately."""

    function: FuncOp
    """The function in the program."""
    needed: tuple[Operation, ...]
    calls: int
    """The number of calls in the text of the program; 1 if there are none."""

    @cached_property
    def key(self) -> str:
        """The key of its workload, which is independent of its visibility."""
        function = copy_of(self.function)
        function.properties.pop("sym_visibility", None)
        return function_digest(function, self.needed).hex()

    def unit(self) -> ModuleOp:
        function = copy_of(self.function)
        function.properties.pop("sym_visibility", None)
        return ModuleOp([function, *map(copy_of, self.needed)])

    @property
    def symbolic_parameter(self) -> str:
        """The first parameter with extents that calls determine; empty if there is none."""
        names = self.function.body.block.args
        for at, type_ in enumerate(self.function.function_type.inputs):
            if isinstance(type_, IndexType) or (isinstance(type_, MemRefType) and DYNAMIC_INDEX in type_.get_shape()):
                return names[at].name_hint or f"number {at}"
        return ""

    def obstacle(self, kind: str, *, has_sizes: bool = False) -> str:
        """The reason why a kind of target cannot measure the function, empty if it can. `has_sizes`: sizes of its calls
        are known."""
        if not has_sizes and (parameter := self.symbolic_parameter):
            return (
                f"parameter '{parameter}' has extents that calls decide: give it the sizes that calls will have "
                "(--sizes SYMBOL=SIZE:WEIGHT,...), or a shape (--shape)"
            )
        registered = {*intrinsics(), *(f"math.{name}" for name in names_with_rules(kind))}
        for op in operations_in(self.function):
            if (name := op.callee.string_value() if isinstance(op, CallOp) else op.name) in registered:
                return f"it calls '{name}': builders are other processes, which lack the functions that you registered"
        return ""


def tasks_of(module: ModuleOp) -> list[Task]:
    """The tir functions that contain blocks and call no function of the module, in order."""
    known = named_ops(module)
    calls: dict[str, int] = {}
    for op in operations_in(module):
        if isinstance(op, CallOp):
            calls[op.callee.string_value()] = calls.get(op.callee.string_value(), 0) + 1
    found: list[Task] = []
    for function in buffer_functions(module):
        needed = needed_by(function, known)
        if needed is not None and bool(operations_of(function, BlockOp)):
            found.append(Task(function, needed, calls.get(function.sym_name.data, 1)))
    return found


def needed_by(function: FuncOp, known: Mapping[str, Operation]) -> tuple[Operation, ...] | None:
    """The symbols that a function refers to, or None if one cannot be compiled with it."""
    names = {symbol: None for symbol, op in symbol_uses(function) if op is not function}
    ops = [known.get(name) for name in names]
    return tuple(op for op in ops if op is not None) if all(map(is_taken_along, ops)) else None
