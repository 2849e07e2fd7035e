"""tir-fold-constant-calls: compile-time evaluation of calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from xdsl.context import Context
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, MemRefType, ModuleOp, NoneAttr, StringAttr, UnitAttr
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.dialects.memref import AllocOp, GetGlobalOp, GlobalOp, LoadOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from weft.dialects.constant_data import LARGE_BYTES, elements_of, new_constant
from weft.dialects.effects import callee_of
from weft.dialects.element_types import array_name, buffer_bytes
from weft.dialects.low import PARAMS
from weft.dialects.low_access import AccessMode
from weft.dialects.traversal import copy_of, operations_in, operations_of
from weft.passes.module_edits import named_ops, symbol_uses
from weft.passes.tir.flat_signature import ParameterAccesses
from weft.passes.tir.tir_pass import tir_functions
from weft.support.names import free_name

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Run: TypeAlias = Callable[[str, Sequence[NDArray[Any]]], object]
    """Call a function by name, with arrays that it reads and writes."""
    Compile: TypeAlias = Callable[[ModuleOp], Run]
    """Compile the functions of a module at tir level; may change the module."""

_MOST_GROWTH: Final = 16
"""Largest ratio of the sizes of a large result and its operands; larger results are cheaper to recompute."""


@dataclass(frozen=True)
class FoldConstantCallsPass(ModulePass):
    """Evaluate the calls whose buffers are all constants of the module and temporaries that only they write.

    The temporaries become constants; unused constants and private functions are erased. Results many times larger than
    operands are not folded. Calls are interpreted; `weft.build` compiles them.

    Requires: functions of block loops, and functions over buffers that call them (`tir-split-constant-packing`).

    Leaves: functions without such calls.
    """

    name = "tir-fold-constant-calls"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        fold_constant_calls(op, _interpreted)


def _interpreted(module: ModuleOp) -> Run:
    from weft.interp.interpreter import Interpreter  # start-up: 50 ms

    interpreter = Interpreter(module)
    return lambda name, arrays: interpreter.call(name, *arrays)


def fold_constant_calls(module: ModuleOp, compile_: Compile, *, declared: bool = False) -> int:
    """Returns the number of folded calls; `declared` includes those of compiled functions."""
    # unnamed: it references constants that are erased below
    calls = _Search(module, declared).calls()
    if not calls:
        return 0
    callees = {call.function.sym_name.data: call.function for call in calls}
    run = compile_(ModuleOp([copy_of(function) for function in callees.values()]))
    folding = _Folding(module, run)
    for call in calls:
        folding.fold(call)
    for name, function in callees.items():
        if function.sym_visibility == StringAttr("private"):
            folding.erase_unused(name)
    return len(calls)


@dataclass(frozen=True)
class _ConstantCall:
    op: CallOp
    function: FuncOp
    sources: tuple[SSAValue, ...]
    """Buffers that it reads: constants, or results of earlier constant calls."""
    results: tuple[AllocOp, ...]


class _Search:
    def __init__(self, module: ModuleOp, declared: bool) -> None:
        self._declared = declared
        self._accesses = ParameterAccesses()
        self._globals = {op.sym_name.data: op for op in module.ops if isinstance(op, GlobalOp)}
        self._functions = list(tir_functions(module))

    def calls(self) -> list[_ConstantCall]:
        return [call for function in self._functions for call in self._calls_in(function)]

    def _calls_in(self, function: FuncOp) -> list[_ConstantCall]:
        known: set[SSAValue] = set()
        found: list[_ConstantCall] = []
        for op in operations_in(function):
            if isinstance(op, GetGlobalOp) and self._has_elements(op):
                known.add(op.memref)
            elif isinstance(op, CallOp) and (call := self._constant_call(op, known)) is not None:
                found.append(call)
                known.update(alloc.memref for alloc in call.results)
        return found

    def _has_elements(self, op: GetGlobalOp) -> bool:
        data = self._globals.get(op.name_.string_value())
        if data is None or data.constant is None or not isinstance(data.initial_value, DenseIntOrFPElementsAttr):
            return False
        return array_name(data.type.element_type) is not None

    def _constant_call(self, op: CallOp, known: set[SSAValue]) -> _ConstantCall | None:
        function = callee_of(op)
        if function is None or op.results or not op.arguments:
            return None
        if function.is_declaration and not (self._declared and PARAMS in function.attributes):
            return None
        if operations_of(function, CallOp, GetGlobalOp):
            return None
        sources: list[SSAValue] = []
        results: list[AllocOp] = []
        for position, value in enumerate(op.arguments):
            mode = self._accesses.of(function, position)
            if mode is AccessMode.READ and value in known:
                sources.append(value)
            elif mode is AccessMode.WRITE and isinstance(value.owner, AllocOp) and self._is_result(value, op):
                results.append(value.owner)
            else:
                return None
        read = sum(buffer_bytes(source.type) for source in sources)
        written = sum(buffer_bytes(alloc.memref.type) for alloc in results)
        if not results or written > max(LARGE_BYTES, _MOST_GROWTH * read):
            return None
        return _ConstantCall(op, function, tuple(sources), tuple(results))

    def _is_result(self, buffer: SSAValue, call: CallOp) -> bool:
        type_ = buffer.type
        if not isinstance(type_, MemRefType) or not type_.has_static_shape() or array_name(type_.element_type) is None:
            return False
        if not isinstance(type_.layout, NoneAttr) or not isinstance(type_.memory_space, NoneAttr):
            return False
        return all(use.operation is call or self._is_read(use.operation, use.index) for use in buffer.uses) and (
            sum(use.operation is call for use in buffer.uses) == 1
        )

    def _is_read(self, op: object, position: int) -> bool:
        if isinstance(op, CallOp):
            callee = callee_of(op)
            return callee is not None and self._accesses.of(callee, position) is AccessMode.READ
        return isinstance(op, LoadOp)


class _Folding:
    """Evaluates calls in order and erases unused constants: memory holds one call's operands and results."""

    def __init__(self, module: ModuleOp, run: Run) -> None:
        self._module, self._run = module, run
        self._ops = named_ops(module)
        self._uses = Counter(symbol for op in module.ops for symbol, _ in symbol_uses(op))
        self._known: dict[tuple[str, ...], tuple[GlobalOp, ...]] = {}
        """Function and constants -> the constants computed from them."""

    def fold(self, call: _ConstantCall) -> None:
        gets = [source.owner for source in call.sources]
        names = [get.name_.string_value() for get in gets if isinstance(get, GetGlobalOp)]
        key = (call.function.sym_name.data, *names)
        if key not in self._known:
            self._known[key] = self._evaluated(call, names)
        for alloc, data in zip(call.results, self._known[key], strict=True):
            get = GetGlobalOp(data.sym_name.data, data.type)
            get.location = alloc.location
            Rewriter.replace_op(alloc, get)
            self._uses[data.sym_name.data] += 1
        Rewriter.erase_op(call.op)
        self._uses[call.function.sym_name.data] -= 1
        for get in dict.fromkeys(gets):
            if isinstance(get, GetGlobalOp) and get.memref.first_use is None:
                Rewriter.erase_op(get)
                self._uses[get.name_.string_value()] -= 1
        for name in dict.fromkeys(names):
            self.erase_unused(name)

    def erase_unused(self, name: str) -> None:
        if not self._uses[name]:
            Rewriter.erase_op(self._ops.pop(name))

    def _evaluated(self, call: _ConstantCall, names: Sequence[str]) -> tuple[GlobalOp, ...]:
        sources = dict(zip(call.sources, (self._ops[name] for name in names), strict=True))
        arrays: list[NDArray[Any]] = []
        made: list[GlobalOp] = []
        for value in call.op.arguments:
            data = sources.get(value)
            if isinstance(data, GlobalOp) and isinstance(data.initial_value, DenseIntOrFPElementsAttr):
                arrays.append(elements_of(data.initial_value))
                continue
            type_ = value.type
            if not isinstance(type_, MemRefType):
                continue
            array, attribute = new_constant(type_.get_shape(), type_.element_type)
            arrays.append(array)
            name = free_name(f"{names[0] if names else call.function.sym_name.data}_packed", self._ops)
            new = GlobalOp.get(StringAttr(name), type_, attribute, constant=UnitAttr())
            new.location = call.op.location
            Rewriter.insert_op(new, InsertPoint.at_start(self._module.body.block))
            self._ops[name] = new
            made.append(new)
        self._run(call.function.sym_name.data, arrays)
        return tuple(made)
