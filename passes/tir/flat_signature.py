"""What callers of a flat function pass: parameters with their full shapes, and symbols for dynamic extents."""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.dialects import memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, MemRefType, ModuleOp, StringAttr
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, BlockArgument, Operation, OpResult, SSAValue

from weft.dialects.low import PARAMS, ParamAttr, params_of, symbols_of
from weft.dialects.low_access import Access, AccessAttr, AccessPtrOp, StrideOp
from weft.dialects.tir import AssumeShapeOp
from weft.passes.tir.nest import buffer_type, static_value
from weft.support.errors import CompileError


def _extent_source(value: SSAValue) -> tuple[SSAValue, int] | None:
    """The buffer and dimension that `value` is the extent of, through `memref.dim`."""
    if isinstance(value, OpResult) and isinstance(value.op, memref.DimOp):
        dimension = static_value(value.op.index)
        if dimension is None:
            raise CompileError.at(value.op, "the dimension of memref.dim must be a constant")
        return value.op.source, dimension
    return None


@dataclass
class FlatSignature:
    """The parameters of a function as callers see them, and the symbols that are added."""

    types: list[Attribute]
    labels: list[str]
    symbols: list[str]
    of_dimension: dict[tuple[int, int], str]
    """(parameter, dynamic dimension) -> symbol."""
    of_scalar: dict[int, str]
    """Index parameter -> the symbol that it must equal, for those that state extents."""
    memrefs: list[int]
    access: dict[int, Access] = field(default_factory=dict[int, Access])

    @staticmethod
    def of(function: FuncOp) -> FlatSignature:
        """The signature that the body of a tir function asks for."""
        arguments = function.args
        labels = [a.name_hint or f"arg{a.index}" for a in arguments]
        memrefs = [a.index for a in arguments if isinstance(a.type, MemRefType)]
        signature = FlatSignature([a.type for a in arguments], labels, [], {}, {}, memrefs)
        wanted = _shared_extents(function)
        taken = set(labels)
        named: dict[SSAValue | tuple[int, int], str] = {}
        for position in memrefs:
            for dimension, extent in enumerate(buffer_type(arguments[position]).get_shape()):
                if extent != DYNAMIC_INDEX:
                    continue
                key = wanted.get((position, dimension), (position, dimension))
                if key not in named:
                    hint = key.name_hint if isinstance(key, SSAValue) else _dim_hint(arguments[position], dimension)
                    named[key] = _fresh(hint or f"{labels[position]}_d{dimension}", taken)
                    signature.symbols.append(named[key])
                    if isinstance(key, SSAValue) and isinstance(key, BlockArgument):
                        signature.of_scalar[key.index] = named[key]
                signature.of_dimension[position, dimension] = named[key]
        return signature

    @staticmethod
    def of_low(function: FuncOp) -> FlatSignature:
        """The signature of a function that is at low level already."""
        params = params_of(function)
        of_dimension: dict[tuple[int, int], str] = {}
        for position, param in enumerate(params):
            if isinstance(param.type, MemRefType):
                names = iter(param.symbols)
                for dimension, extent in enumerate(param.type.get_shape()):
                    if extent == DYNAMIC_INDEX:
                        of_dimension[position, dimension] = next(names).data
        labels = [p.label.data for p in params]
        return FlatSignature([p.type for p in params], labels, list(symbols_of(function)), of_dimension, {}, [])

    def params(self) -> ArrayAttr[ParamAttr]:
        params: list[ParamAttr] = []
        for position, (label, type_) in enumerate(zip(self.labels, self.types, strict=True)):
            symbols = [name for (p, _), name in sorted(self.of_dimension.items()) if p == position]
            if position in self.of_scalar:
                symbols = [self.of_scalar[position]]
            access = AccessAttr(self.access.get(position, Access.READ))
            params.append(ParamAttr(StringAttr(label), type_, access, ArrayAttr([StringAttr(s) for s in symbols])))
        return ArrayAttr(params)


def _fresh(name: str, taken: set[str]) -> str:
    base, number = name, 2
    while name in taken:
        name, number = f"{base}_{number}", number + 1
    taken.add(name)
    return name


def _dim_hint(argument: BlockArgument, dimension: int) -> str | None:
    """The name under which the function reads this extent, if it does."""
    for use in argument.uses:
        if isinstance(use.operation, memref.DimOp) and static_value(use.operation.index) == dimension:
            return use.operation.result.name_hint
    return None


def _shared_extents(function: FuncOp) -> dict[tuple[int, int], SSAValue | tuple[int, int]]:
    """(parameter, dimension) -> what `tir.assume_shape` says its extent is: another one, or an index parameter."""
    shared: dict[tuple[int, int], SSAValue | tuple[int, int]] = {}

    def resolve(key: tuple[int, int]) -> SSAValue | tuple[int, int]:
        found: SSAValue | tuple[int, int] = key
        while not isinstance(found, SSAValue) and found in shared:
            found = shared[found]
        return found

    for op in function.walk():
        if not isinstance(op, AssumeShapeOp) or not isinstance(op.buffer, BlockArgument):
            continue
        dynamic = [d for d, e in enumerate(buffer_type(op.buffer).get_shape()) if e == DYNAMIC_INDEX]
        for dimension, value in zip(dynamic, op.extents, strict=True):
            source = _extent_source(value)
            if source is not None and isinstance(source[0], BlockArgument):
                same: SSAValue | tuple[int, int] = resolve((source[0].index, source[1]))
            elif isinstance(value, BlockArgument):
                same = value
            else:
                raise CompileError.at(
                    op,
                    f"extent {dimension} of buffer %{op.buffer.name_hint or '?'} must be given by memref.dim of a "
                    "parameter or by an index parameter, so that calls can check it",
                )
            own = resolve((op.buffer.index, dimension))
            if own != same and not isinstance(own, SSAValue):
                shared[own] = same
    return {key: resolve(key) for key in list(shared)}


@dataclass
class ParameterAccesses:
    """How functions use their buffer parameters; calls are followed."""

    module: ModuleOp
    known: dict[tuple[str, int], Access] = field(default_factory=dict[tuple[str, int], Access])

    def of(self, function: FuncOp, position: int) -> Access:
        key = (function.sym_name.data, position)
        if key not in self.known:
            self.known[key] = Access.READWRITE  # what a recursive call is taken to do
            self.known[key] = self._of_value(function.args[position])
        return self.known[key]

    def _of_value(self, buffer: SSAValue) -> Access:
        found = {self._of_use(use.operation, use.index, buffer) for use in buffer.uses} - {None}
        if not found:
            return Access.READ
        return next(iter(found)) or Access.READ if len(found) == 1 else Access.READWRITE

    def _of_use(self, op: Operation, position: int, buffer: SSAValue) -> Access | None:
        if isinstance(op, memref.LoadOp):
            return Access.READ
        if isinstance(op, memref.StoreOp):
            return Access.WRITE
        if isinstance(op, memref.CastOp):
            return self._of_value(op.dest)
        if isinstance(op, CallOp):
            return self._of_callee(op.callee.root_reference.data, position)
        if isinstance(op, AccessPtrOp):
            return op.access.data
        return None if isinstance(op, memref.DimOp | StrideOp | AssumeShapeOp) else Access.READWRITE

    def _of_callee(self, name: str, position: int) -> Access:
        for op in self.module.ops:
            if isinstance(op, FuncOp) and op.sym_name.data == name:
                if PARAMS in op.attributes:
                    return params_of(op)[position].access.data
                return self.of(op, position) if op.body.blocks else Access.READWRITE
        return Access.READWRITE
