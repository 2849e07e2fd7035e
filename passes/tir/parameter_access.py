"""Whether a function reads, writes or updates each of its buffer parameters."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from xdsl.dialects import memref
from xdsl.dialects.builtin import ArrayAttr, MemRefType, ModuleOp
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Operation, SSAValue

from weft.analysis.accesses import Access, accesses
from weft.analysis.privatization import read_is_covered
from weft.analysis.sets import NotProved
from weft.dialects.low import PARAMS, params_of
from weft.dialects.low_access import AccessAttr, AccessMode, access_by
from weft.dialects.tir_kinds import PARAMETER_ACCESS
from weft.passes.tir.nest import tir_functions

_ByBuffer: TypeAlias = dict[SSAValue, list[Access]]


def state_parameter_accesses(module: ModuleOp) -> None:
    """Note on every tir function how it accesses each parameter, unless that is noted already.

    The signature belongs to the program as given, so this runs before schedules and lowering passes, which may remove
    loads, stores and loops of no iteration.
    """
    parameters = ParameterAccesses(module)
    for function in tir_functions(module):
        found = [AccessAttr(parameters.of(function, argument.index)) for argument in function.args]
        function.attributes[PARAMETER_ACCESS] = ArrayAttr(found)


@dataclass
class ParameterAccesses:
    """How functions access their buffer parameters, as noted on them or as their bodies do; calls are followed.

    A parameter is `write` when every element that is read was surely written before in the same call, as by the init
    of a reduction (decided by integer sets; where they do not decide, it is `readwrite`).
    """

    module: ModuleOp
    _known: dict[tuple[str, int], AccessMode] = field(default_factory=dict[tuple[str, int], AccessMode])
    _inside: dict[str, _ByBuffer] = field(default_factory=dict[str, _ByBuffer])

    @cached_property
    def _functions(self) -> dict[str, FuncOp]:
        return {op.sym_name.data: op for op in self.module.ops if isinstance(op, FuncOp)}

    def of(self, function: FuncOp, position: int) -> AccessMode:
        if not isinstance(function.args[position].type, MemRefType):
            return AccessMode.READ
        noted = _noted(function)
        # Passes of users may have added parameters, or writes of what was only read.
        if len(noted) == len(function.args) and noted[position] is not AccessMode.READ:
            return noted[position]
        key = (function.sym_name.data, position)
        if key not in self._known:
            self._known[key] = AccessMode.READWRITE  # what a recursive call is taken to do
            found = self._of_value(function.args[position])
            if found is AccessMode.READWRITE and self._is_written_first(function, function.args[position]):
                found = AccessMode.WRITE
            self._known[key] = found
        return self._known[key]

    def _is_written_first(self, function: FuncOp, buffer: SSAValue) -> bool:
        """Whether each element that is read of a parameter was written before in the same call."""
        if any(isinstance(use.operation, memref.CastOp) for use in buffer.uses):
            return False  # an alias, whose accesses are not those of `buffer`
        found = self._accesses_in(function).get(buffer, [])
        reads = [a for a in found if not a.is_write and self._may_read(a.op, buffer)]
        try:
            return all(read_is_covered(read, found, None) for read in reads)
        except NotProved:
            return False

    def _accesses_in(self, function: FuncOp) -> _ByBuffer:
        name = function.sym_name.data
        if name not in self._inside:
            by_buffer: _ByBuffer = defaultdict(list)
            for access in accesses(function):
                by_buffer[access.buffer].append(access)
            self._inside[name] = by_buffer
        return self._inside[name]

    def _may_read(self, op: Operation, buffer: SSAValue) -> bool:
        uses = (self._of_use(op, position) for position, operand in enumerate(op.operands) if operand is buffer)
        return any(access in (AccessMode.READ, AccessMode.READWRITE) for access in uses)

    def _of_value(self, buffer: SSAValue) -> AccessMode:
        return joined(self._of_use(use.operation, use.index) for use in buffer.uses)

    def _of_use(self, op: Operation, position: int) -> AccessMode | None:
        match op:
            case memref.CastOp():
                return self._of_value(op.dest)
            case CallOp():
                return self._of_callee(op.callee.root_reference.data, position)
            case _:
                return access_by(op, op.operands[position])

    def _of_callee(self, name: str, position: int) -> AccessMode:
        callee = self._functions.get(name)
        if callee is not None and PARAMS in callee.attributes:
            return params_of(callee)[position].access.data
        return self.of(callee, position) if callee is not None and callee.body.blocks else AccessMode.READWRITE


def joined(accesses: Iterable[AccessMode | None]) -> AccessMode:
    """Several accesses as one; None is no access."""
    found = set(accesses) - {None}
    if found <= {AccessMode.READ}:
        return AccessMode.READ
    return AccessMode.WRITE if found == {AccessMode.WRITE} else AccessMode.READWRITE


def _noted(function: FuncOp) -> list[AccessMode]:
    attribute = function.attributes.get(PARAMETER_ACCESS)
    entries = attribute.data if isinstance(attribute, ArrayAttr) else ()
    return [entry.data for entry in entries if isinstance(entry, AccessAttr)]
