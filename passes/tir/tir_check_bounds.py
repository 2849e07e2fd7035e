"""tir-check-bounds: guards and a log of unproved accesses."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

from xdsl.context import Context
from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    IntegerAttr,
    IntegerType,
    MemRefType,
    ModuleOp,
    StringAttr,
    i64,
)
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from weft.analysis.accesses import Access, accesses
from weft.analysis.block_scopes import block_around, function_of
from weft.analysis.bounds import may_leave
from weft.analysis.dependence import buffer_name
from weft.analysis.index import Index
from weft.analysis.integer_ranges import dynamic_extents_of, is_not_negative
from weft.dialects.aliasing import add_argument_attributes, set_noalias
from weft.dialects.integer_arith import DIVISIONS, constant_integer
from weft.dialects.low import BOUNDS_LOG
from weft.dialects.low_access import AccessAttr, AccessMode
from weft.dialects.promises import PROMISES
from weft.dialects.strides import dynamic_extents
from weft.dialects.tir_assume import CheckSizeOp, assumptions_of
from weft.dialects.tir_kinds import PARAMETER_ACCESS
from weft.dialects.traversal import operations_in, operations_of
from weft.passes.index_builders import (
    constant_before,
    dim_before,
    index_before,
    insert_before,
    number_attribute,
    result_before,
)
from weft.passes.tir.tir_pass import buffer_type, tir_functions
from weft.support.call_signature import BAD_SIZE, BY_ZERO
from weft.support.errors import CompileError
from weft.support.locations import location_of
from weft.support.names import free_name
from weft.support.statistics import Statistic

_GUARDED: Final = Statistic("tir-check-bounds", "accesses-guarded", "loads and stores that are not proved in bounds")
_DIVISIONS: Final = Statistic("tir-check-bounds", "divisions-checked", "integer divisions whose divisor may be zero")


@dataclass(frozen=True)
class CheckBoundsPass(ModulePass):
    r"""Guard each load and store that is not proved to stay in its buffer, and log those out of bounds.

    ```mlir
    func.func @gather(%A: memref<16xf32>, %I: memref<8xindex>, %B: memref<8xf32>) { ...
      %a = memref.load %A[%p] : memref<16xf32>
    // becomes
    func.func @gather(%bounds_log: memref<1x3xi64>, %A: memref<16xf32>, ...)
        attributes {low.bounds_log = ["block \\"B\\" reads A out of bounds: index 0"]} { ...
      %inside = arith.cmpi ult, %p, %c16 : index
      %a = scf.if %inside -> (f32) {
        %value = memref.load %A[%p] : memref<16xf32>
        scf.yield %value : f32
      } else {
        // bounds_log[0] = max(bounds_log[0], [1, %p, 16]), as unsigned integers
        scf.yield 0.0 : f32
      }
    ```
    The log has a row per guarded dimension: whether it failed, a failing index, and the extent. Callers pass zeros and
    read it afterwards; callers in the module pass on theirs. Maxima are independent of the order of threads, and a
    reduction in vectorized loops.

    Accesses proved in bounds (`analysis.bounds.may_leave`) are unchanged. A division of integers, except indices, by a
    non-constant divisor gets a row: 2 after a division by zero.

    ```mlir
      %q = arith.divsi %x, %y : i32
    // becomes
      %by_zero = arith.cmpi eq, %y, %zero : i32
      scf.if %by_zero {
        // bounds_log[1] = max(bounds_log[1], [2, 0, 0])
      }
      %q = arith.divsi %x, %y : i32
    ```
    A data-dependent size (`tir.check_size`) gets a row: 3, the size, and its bound.

    Raises `CompileError` for unproved pointers passed to outside code, and for calls by functions that are not tir.

    Requires: block loops.

    Leaves: block loops whose accesses stay in their buffers; functions with guarded accesses take a log.
    """

    name = "tir-check-bounds"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = list(tir_functions(op))
        for function in functions:
            if function.sym_visibility == StringAttr("private"):
                # Conditions that calls do not provably meet keep their reason (`tir-state-preconditions`).
                for assumed in [assumed for assumed in assumptions_of(function) if assumed.reason is not None]:
                    Rewriter.erase_op(assumed)
        guards = [guard for function in functions for guard in _unproved(function)]
        divisions: list[_Division | _Size] = [division for function in functions for division in _divisions(function)]
        sizes = [(function, op) for function in functions for op in operations_in(function)]
        divisions += [_Size(function, op) for function, op in sizes if isinstance(op, CheckSizeOp)]
        _GUARDED.add(len(guards))
        _DIVISIONS.add(len(divisions))
        if guards or divisions:
            _BoundsLog(op, guards, divisions).run()


@dataclass(frozen=True)
class _Guard:
    function: FuncOp
    access: Access
    op: memref.LoadOp | memref.StoreOp
    dimensions: tuple[int, ...]

    def texts(self) -> list[str]:
        block = "" if self.access.block is None else f'block "{self.access.block.label}" '
        verb = "writes" if self.access.is_write else "reads"
        place = location_of(self.access.op)
        at = "" if place is None else f" at {place}"
        return [
            f"{block}{verb} {buffer_name(self.access.buffer)} out of bounds{at}: index {dimension}"
            for dimension in self.dimensions
        ]


def _unproved(function: FuncOp) -> list[_Guard]:
    found: list[_Guard] = []
    named = dynamic_extents_of(function)
    for access in accesses(function):
        type_ = access.buffer.type
        if access.indices is None or not isinstance(type_, MemRefType):
            continue
        dimensions = tuple(
            dimension
            for dimension, extent in enumerate(type_.get_shape())
            if may_leave(access, dimension, _extent(named, access.buffer, dimension, extent))
        )
        if not dimensions:
            continue
        if not isinstance(access.op, memref.LoadOp | memref.StoreOp):
            raise CompileError.at(
                access.op,
                f"{access.op.name} takes an index of {buffer_name(access.buffer)} that cannot be checked: it is not "
                "proved to stay inside",
            )
        found.append(_Guard(function, access, access.op, dimensions))
    return found


@dataclass(frozen=True)
class _Division:
    function: FuncOp
    op: Operation

    def texts(self) -> list[str]:
        block = block_around(self.op)
        label = "" if block is None else f'block "{block.label}" '
        place = location_of(self.op)
        return [f"{label}divides by zero{'' if place is None else f' at {place}'}"]


def _divisions(function: FuncOp) -> list[_Division]:
    return [
        _Division(function, op)
        for op in operations_in(function)
        if isinstance(op, DIVISIONS)
        and isinstance(op.operands[1].type, IntegerType)
        and not constant_integer(op.operands[1])
    ]


@dataclass(frozen=True)
class _Size:
    function: FuncOp
    op: CheckSizeOp

    def texts(self) -> list[str]:
        place = location_of(self.op)
        return [f"extent '{self.op.label.data}', which data decide{'' if place is None else f' at {place}'},"]


def _extent(
    named: Mapping[tuple[SSAValue, int], SSAValue], buffer: SSAValue, dimension: int, extent: int
) -> Index | None:
    if extent != DYNAMIC_INDEX:
        return Index({}, extent)
    value = named.get((buffer, dimension))
    if value is None and isinstance(buffer.owner, memref.AllocOp):  # a temporary in a loop
        value = dict(zip(dynamic_extents(buffer.type), buffer.owner.dynamic_sizes, strict=True))[dimension]
    return None if value is None else Index.of(value)


class _BoundsLog:
    def __init__(self, module: ModuleOp, guards: Sequence[_Guard], divisions: Sequence[_Division | _Size]) -> None:
        self.module = module
        self.guards = guards
        self.divisions = divisions
        self.texts = ArrayAttr([StringAttr(text) for checked in (*guards, *divisions) for text in checked.texts()])
        self.logs: dict[FuncOp, SSAValue] = {}

    def run(self) -> None:
        functions = set(tir_functions(self.module))
        for checked in (*self.guards, *self.divisions):
            self._give_log(checked.function, functions)
        row = 0
        for guard in self.guards:
            rows = dict(zip(guard.dimensions, range(row, row + len(guard.dimensions)), strict=True))
            row += len(guard.dimensions)
            _guard(guard.op, rows, self.logs[guard.function])
        for division in self.divisions:
            log = self.logs[division.function]
            if isinstance(division, _Size):
                _check_size(division.op, row, log)
            else:
                _check_divisor(division.op, row, log)
            row += 1

    def _give_log(self, function: FuncOp, functions: Collection[FuncOp]) -> None:
        if function in self.logs:
            return
        names = {argument.name_hint for argument in function.args}
        log = function.body.block.insert_arg(MemRefType(i64, [len(self.texts), 3]), 0)
        add_argument_attributes(function, before=1)
        if PROMISES in function.attributes:
            set_noalias(function, [0])
        log.name_hint = free_name("bounds_log", {name for name in names if name is not None})
        self.logs[function] = log
        function.attributes[BOUNDS_LOG] = self.texts
        stated = function.attributes.get(PARAMETER_ACCESS)
        if isinstance(stated, ArrayAttr):
            function.attributes[PARAMETER_ACCESS] = ArrayAttr([AccessAttr(AccessMode.READWRITE), *stated])
        function.update_function_type()
        for call in operations_of(self.module, CallOp):
            if call.callee.root_reference.data != function.sym_name.data:
                continue
            caller = function_of(call)
            if caller not in functions:
                raise CompileError.at(
                    call, f"@{function.sym_name.data} is called where its out-of-bounds accesses cannot be logged"
                )
            self._give_log(caller, functions)
            call.operands = [self.logs[caller], *call.operands]


def _guard(access: memref.LoadOp | memref.StoreOp, rows: Mapping[int, int], log: SSAValue) -> None:
    types = [result.type for result in access.results]
    named = dynamic_extents_of(function_of(access))
    anchor: Operation = access
    for dimension, row in rows.items():
        index, extent = access.indices[dimension], dim_before(access.memref, dimension, anchor)
        known = _extent(named, access.memref, dimension, buffer_type(access.memref).get_shape()[dimension])
        end = extent
        if known is not None and not is_not_negative(known):
            # As an unsigned number, an extent below 0 exceeds all indices. `memref.dim` is assumed not to be negative.
            end = result_before(arith.MaxSIOp(index_before(known, anchor), constant_before(0, anchor)), anchor)
        inside = result_before(arith.CmpiOp(index, end, "ult"), anchor)
        then, otherwise = scf.YieldOp(), scf.YieldOp()
        then.location = otherwise.location = access.location
        guard = scf.IfOp(inside, types, [then], [otherwise])
        insert_before(anchor, [guard])
        if anchor is access:
            for old, new in zip(access.results, guard.results, strict=True):
                old.replace_all_uses_with(new)
                new.name_hint = None  # the access keeps the name
        else:
            anchor.operands = guard.results
        one = result_before(arith.ConstantOp(IntegerAttr(1, i64)), otherwise)
        numbers = [one, *(result_before(arith.IndexCastOp(value, i64), otherwise) for value in (index, extent))]
        _log_before(otherwise, log, row, numbers)
        zeros = [arith.ConstantOp.create(result_types=[t], properties={"value": number_attribute(0, t)}) for t in types]
        insert_before(otherwise, zeros)
        otherwise.operands = [zero.result for zero in zeros]
        anchor = then
    access.detach()
    insert_before(anchor, [access])
    anchor.operands = access.results


def _check_divisor(division: Operation, row: int, log: SSAValue) -> None:
    divisor = division.operands[1]
    zero = result_before(arith.ConstantOp(IntegerAttr(0, cast("IntegerType", divisor.type))), division)
    by_zero = result_before(arith.CmpiOp(divisor, zero, "eq"), division)
    end = scf.YieldOp()
    end.location = division.location
    insert_before(division, [scf.IfOp(by_zero, [], [end])])
    _log_before(end, log, row, [result_before(arith.ConstantOp(IntegerAttr(BY_ZERO, i64)), end)])


def _check_size(op: CheckSizeOp, row: int, log: SSAValue) -> None:
    outside = result_before(arith.CmpiOp(op.size, op.most, "ugt"), op)
    end = scf.YieldOp()
    end.location = op.location
    insert_before(op, [scf.IfOp(outside, [], [end])])
    numbers = [result_before(arith.IndexCastOp(value, i64), end) for value in (op.size, op.most)]
    _log_before(end, log, row, [result_before(arith.ConstantOp(IntegerAttr(BAD_SIZE, i64)), end), *numbers])


def _log_before(anchor: Operation, log: SSAValue, row: int, numbers: Sequence[SSAValue]) -> None:
    first = constant_before(row, anchor)
    for column, number in enumerate(numbers):
        place = [first, constant_before(column, anchor)]
        old = result_before(memref.LoadOp.get(log, place), anchor)
        most = result_before(arith.MaxUIOp(old, number), anchor)
        insert_before(anchor, [memref.StoreOp.get(most, log, place)])
