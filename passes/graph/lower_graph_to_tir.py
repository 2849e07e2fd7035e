"""`lower-graph-to-tir`: lower a graph function to a function over buffers that calls tensor functions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, count
from typing import Final, cast

from xdsl.context import Context
from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    IndexType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    TensorType,
    TupleType,
    UnitAttr,
    i8,
    i64,
)
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import VerifyException

from weft.analysis.index import Index
from weft.dialects.argument_attributes import argument_attributes, has_argument_attribute, set_argument_attribute
from weft.dialects.element_types import buffer_bytes, bytes_of
from weft.dialects.graph import (
    CallDpsOp,
    CallTirOp,
    ConstantOp,
    MakeTupleOp,
    MatchShapeOp,
    TupleGetOp,
    bound_in,
    callee_of,
    dense_value,
    elements_in,
    function_of,
    preconditions_of,
)
from weft.dialects.graph_control import CONDITION, STEP, IfOp, LoopOp, WhileOp
from weft.dialects.graph_shapes import (
    EXTENTS,
    KnownExtent,
    names_in,
    shape_of,
    show_extent,
    solutions,
    symbol,
    tensor_type,
)
from weft.dialects.low_access import AccessAttr, AccessMode
from weft.dialects.low_registered import CallRegisteredOp
from weft.dialects.low_results import ReturnResultOp
from weft.dialects.strides import dense_buffer
from weft.dialects.tir import AssumeShapeOp, BlockOp
from weft.dialects.tir_assume import CheckSizeOp
from weft.dialects.tir_kinds import (
    CONSTANT,
    CONSTANTS_FROM_MEMORY,
    DONATED,
    ELEMENT,
    PARAMETER_ACCESS,
    RETURNED,
    TIR_FUNCTION,
)
from weft.dialects.traversal import copy_of, operations_in, operations_of
from weft.passes.extent_values import ExtentValues
from weft.passes.graph.contiguous_copies import ContiguousCopies
from weft.passes.graph.functions import graph_functions, inline_dataflow, shape_at
from weft.passes.graph.row_functions import copy_function, number_function
from weft.passes.graph.views import Views
from weft.passes.index_builders import (
    dim_before,
    erase_dead,
    extent_before,
    index_before,
    insert_before,
)
from weft.passes.module_edits import named_ops, symbol_uses
from weft.passes.schedule.nest_builders import new_loop
from weft.passes.te.bufferize import Bufferization, buffer_type
from weft.passes.tir.flat_signature import Quantity, quantity_of, stated_quantities
from weft.passes.tir.tir_pass import buffer_type as tir_buffer_type
from weft.support.call_preconditions import CallPrecondition
from weft.support.errors import CompileError, InternalError
from weft.support.names import free_name
from weft.texpr.graph_operators import Operator

Tensor = TensorType[Attribute]
_MOST: Final = (1 << 63) - 1
"""The bound of extents that have no other bound."""


def lower_graph_function(function: FuncOp, copies: ContiguousCopies | None = None, parts: bool = True) -> None:
    """Give a graph function buffers and calls, as `lower-graph-to-tir`. Calls in `copies` become views if possible,
    which with `parts` may start inside a buffer.

    Raises `CompileError` for operators that were not legalised, callees over tensors, and unknown extents.
    """
    inline_dataflow(function)
    tuples = fold_tuples(function)
    erase_dead(function.body.block)
    returned = _returned(function, tuples)
    calls = CallTirOp | CallDpsOp | IfOp | LoopOp | WhileOp
    views = Views(function, returned, copies, parts)
    computed = [value for value in returned if isinstance(value.owner, calls)]
    is_read = any(isinstance(use.operation, calls) for value in computed for use in value.uses)
    is_read |= len(set(computed)) < len(computed)  # the second is copied from the first
    is_read |= any(isinstance(value.owner, LoopOp | WhileOp) for value in computed)  # it holds the carried value
    is_read |= bool(views.held_by)
    lowering = _FunctionLowering(function, returned, views)
    for op in list(lowering.old.ops):
        lowering.lower(op)
    lowering.finish()
    if any(has_argument_attribute(function, argument.index, DONATED) for argument in function.args):
        names = [StringAttr(parameter.name_hint or "") for _, parameter in lowering.results]
        function.attributes[RETURNED] = ArrayAttr(names)
    if is_read:  # a result that other calls read is still written first
        accesses = [AccessMode.READ] * len(function.args)
        for _, parameter in lowering.results:
            accesses[cast("BlockArgument", parameter).index] = AccessMode.WRITE
        function.attributes[PARAMETER_ACCESS] = ArrayAttr(list(map(AccessAttr, accesses)))


def fold_tuples(function: FuncOp) -> dict[SSAValue, Sequence[SSAValue]]:
    """Replace elements of tuples by their values, and return these by tuple."""
    tuples: dict[SSAValue, Sequence[SSAValue]] = {}
    for op in function.body.block.ops:
        if isinstance(op, MakeTupleOp):
            tuples[op.result] = list(op.values)
        elif isinstance(op, TupleGetOp) and op.source in tuples:
            op.result.replace_all_uses_with(tuples[op.source][op.index])
    return tuples


def _returned(function: FuncOp, tuples: dict[SSAValue, Sequence[SSAValue]]) -> list[SSAValue]:
    returned = function.get_return_op()
    leaves: list[SSAValue] = []

    def visit(value: SSAValue) -> None:
        if not isinstance(value.type, TupleType):
            leaves.append(value)
            return
        if value not in tuples:
            raise CompileError.at(function, f"@{function.sym_name.data}: a tuple must be made in the function")
        for inner in tuples[value]:
            visit(inner)

    for value in () if returned is None else returned.arguments:
        visit(value)
    return leaves


def mark_constants(module: ModuleOp, callers: Iterable[FuncOp]) -> None:
    """Mark parameters of private functions that get constants in every call (`tir.constant`). A function with a
    reduction that gets a constant from some calls of `callers` is copied for these
    (docs/decisions/0048-constants.md)."""
    names = named_ops(module)
    constants = [op.type for op in module.ops if isinstance(op, memref.GlobalOp) and op.constant is not None]
    are_many = sum(map(buffer_bytes, constants)) > _IN_CACHES
    inside = set(callers)
    calls: dict[str, dict[frozenset[int], list[CallOp]]] = {}
    for holder in module.ops:
        for op in operations_in(holder):
            if isinstance(op, CallOp):
                mask = _constant_positions(op) if holder in inside else frozenset[int]()
                calls.setdefault(op.callee.string_value(), {}).setdefault(mask, []).append(op)
    for name, by_mask in calls.items():
        function = names[name]
        if not isinstance(function, FuncOp) or function.is_declaration or function.sym_visibility != _PRIVATE:
            continue
        if operations_of(function, CallOp):
            continue  # because its callees may write its arguments
        if not any(isinstance(op, BlockOp) and op.init is not None for op in operations_in(function)):
            by_mask = {frozenset[int].intersection(*by_mask): list[CallOp]()}
        owners = [function]
        for same in list(by_mask.values())[1:]:
            owners.append(copy_of(function))
            owners[-1].sym_name = StringAttr(free_name(name, names))
            names[owners[-1].sym_name.data] = owners[-1]
            Rewriter.insert_op(owners[-1], InsertPoint.after(function))
            for call in same:
                call.callee = SymbolRefAttr(owners[-1].sym_name.data)
        for owner, mask in zip(owners, by_mask, strict=True):
            if mask:
                set_argument_attribute(owner, sorted(mask), CONSTANT)
                if are_many:
                    owner.attributes[CONSTANTS_FROM_MEMORY] = UnitAttr()


_PRIVATE = StringAttr("private")
_IN_CACHES: Final = 16 << 20
"""Bytes of constants that a shared cache keeps between calls of a model."""


def _constant_positions(call: CallOp) -> frozenset[int]:
    return frozenset(at for at, value in enumerate(call.arguments) if isinstance(value.owner, memref.GetGlobalOp))


@dataclass(frozen=True)
class LowerGraphToTirPass(ModulePass):
    """Give graph functions buffers and calls.

    Parameters and results become `memref` parameters (results last, under their own names), intermediates
    `memref.alloc`, constants `memref.global`, `graph.call_tir` a `func.call`, `graph.call_dps` a
    `low.call_registered`. A call that only copies becomes a view if possible: of a part of an operand, such as a
    reshape or a slice along the first axis, or of a concatenation, into whose parts temporaries are then computed.
    Parameters of private functions that get constants in every call are marked `tir.constant`; with more than 16 MiB
    of constants, their functions are marked `tir.constants_from_memory`. Raises `CompileError` for unknown extents.

    Requires: graph functions whose callees work on buffers (`lower-te-to-tir`).

    Leaves: functions over buffers that allocate and call.
    """

    name = "lower-graph-to-tir"

    views: bool = True
    """Whether calls that only copy become views."""
    parts: bool = True
    """Whether views may start inside a buffer, and tensors be computed directly into their concatenation."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        copies = ContiguousCopies() if self.views else None
        lowered = list(graph_functions(op))
        for function in lowered:
            lower_graph_function(function, copies, self.parts)
        if copies is not None:
            _erase_unused(op, copies.functions())
        mark_constants(op, lowered)


def _erase_unused(module: ModuleOp, functions: Iterable[FuncOp]) -> None:
    private = [function for function in functions if function.sym_visibility == _PRIVATE]
    used = {symbol for op in module.ops for symbol, _ in symbol_uses(op)} if private else set[str]()
    for function in private:
        if function.sym_name.data not in used:
            Rewriter.erase_op(function)


def _parameter_names(function: FuncOp, returned: Sequence[SSAValue]) -> list[str | None]:
    """No result name ends in `_<number>`, which xDSL removes from hints."""
    names = [argument.name_hint for argument in function.args]
    for value in returned:
        base = value.name_hint or "out"
        candidates = chain((base, f"{base}_out"), (f"{base}_out{number}" for number in count(2)))
        names.append(next(name for name in candidates if name not in names))
    return names


def _add_elements(function: FuncOp) -> list[str]:
    """Append an index parameter per element of a parameter that extents name (`tir.element_of`). Returns the names."""
    names = elements_in(function)
    entries = argument_attributes(function)
    for name, place in names.items():
        index = function.body.block.insert_arg(IndexType(), len(function.args))
        index.name_hint = name
        entries.append(DictionaryAttr({ELEMENT: ArrayAttr([IntegerAttr(number, i64) for number in place])}))
    if names:
        function.arg_attrs = ArrayAttr(entries)
        function.update_function_type()
    return list(names)


class _FunctionLowering(Bufferization):
    """Emits extents, temporaries, constants and calls. Lower the ops in order, then `finish`."""

    def __init__(self, function: FuncOp, returned: Sequence[SSAValue], views: Views) -> None:
        self._name = function.sym_name.data
        self._views = views
        self._helpers: dict[tuple[str, FunctionType], str] = {}
        """Maps a wanted name and type to the function that loops call."""
        self._ties: dict[FuncOp, list[tuple[Quantity, Quantity]]] = {}
        """Maps a callee to the dimensions that it states to be equal."""
        for argument in function.args:
            if isinstance(argument.type, TupleType):
                raise CompileError.at(
                    function, f"@{self._name}: tuple parameters cannot be lowered, got {argument.type}"
                )
        for value in returned:
            if not isinstance(value.type, TensorType):
                raise CompileError.at(function, f"@{self._name} must return tensors, got {value.type}")
        self._bound = bound_in(function)
        """The names of extents that depend on data."""
        self._matched: dict[tuple[SSAValue, int, SSAValue | int], SSAValue] = {}
        """Maps the tensor and the index that define such a name, and its bound, to its value."""
        elements = _add_elements(function)
        tensors, results = len(function.args) - len(elements), len(returned)
        order = [*range(tensors), *range(len(function.args), len(function.args) + results)]
        order += range(tensors, len(function.args))
        super().__init__(function, returned, _parameter_names(function, returned), order)
        self._extents = ExtentValues(self.head, function)
        self._bytes: dict[SSAValue, SSAValue] = {}
        """Byte buffers that contain several tensors."""
        function.attributes[TIR_FUNCTION] = UnitAttr()  # it may contain only calls
        places = [
            (buffer, axis, extent)
            for tensor, buffer in self.memory.items()
            for axis, extent in enumerate(self._shape(cast("Tensor", tensor.type)))
        ]
        for found in solutions([extent for _, _, extent in places]):
            buffer, axis, _ = places[found.position]
            value = dim_before(buffer, axis, self.head)
            if (found.factor, found.rest) != (1, 0):
                quotient = (Index.of(value) - self._extents.index(found.rest)) // found.factor
                value = index_before(quotient, self.head)
            self._extents.know(symbol(found.name), value)
            if found.rest != 0:
                self._extents.assume(CallPrecondition(f"0 <= {found.name}"))
        for name, parameter in zip(elements, self.block.args[len(order) - len(elements) :], strict=True):
            self._extents.know(symbol(name), parameter)
        results = [(value, parameter) for value, parameter in self.results if parameter not in self.allocated]
        for tensor, buffer in (*self.memory.items(), *results):
            self._tie(buffer, cast("Tensor", tensor.type))
        for precondition in preconditions_of(function):
            self._extents.assume(precondition)

    def is_allocated(self, returned: SSAValue) -> bool:
        names = (names_in(extent) for extent in shape_at(self.function, cast("Tensor", returned.type)))
        return not set[str]().union(*names).isdisjoint(self._bound)

    def _tie(self, buffer: SSAValue, type_: Tensor) -> None:
        extents = self._dynamic(type_)
        if not all(isinstance(e.owner, memref.DimOp) and e.owner.source is buffer for e in extents) or (
            len(set(extents)) < len(extents)
        ):
            insert_before(self.head, [AssumeShapeOp(buffer, extents)])

    # Extents

    def _shape(self, type_: Tensor) -> Sequence[KnownExtent]:
        shape = shape_at(self.function, type_)
        if None in shape:
            raise CompileError.at(
                self.function,
                f"@{self._name}: {type_} has an unknown extent; name the dynamic extents with #graph.dims<...>",
            )
        return cast("Sequence[KnownExtent]", shape)

    def _dynamic(self, type_: Tensor) -> list[SSAValue]:
        values = [self._extents.value(extent) for extent in self._shape(type_)]
        return [value for value in values if isinstance(value, SSAValue)]

    # The body

    def lower(self, op: Operation) -> None:
        match op:
            case ConstantOp():
                self._constant(op)
            case CallTirOp():
                self._call(op)
            case IfOp():
                self._if(op)
            case LoopOp():
                self._loop(op)
            case WhileOp():
                self._while(op)
            case MatchShapeOp():
                self._match_shape(op)
            case ReturnOp():
                self._copy_results()
            case MakeTupleOp() | TupleGetOp():
                pass
            case CallDpsOp():
                self._call_registered(op)
            case Operator():
                raise CompileError.at(op, f"{op.name} must be legalised first (pass legalize-graph-to-te)")
            case _ if any(isinstance(result.type, TensorType) for result in op.results):
                raise CompileError.at(op, f"{op.name} makes a tensor that graph functions cannot lower")
            case _:
                self.insert(op, self.end)

    def _match_shape(self, op: MatchShapeOp) -> None:
        """Load the values of the names, clamped to their bounds, before later buffers are allocated."""
        sizes = self._buffer(op, op.sizes)
        is_scalar = not cast("MemRefType[Attribute]", sizes.type).get_num_dims()
        bounds = [_MOST if bound is None else self._extents.value(bound) for bound in op.bounds]
        for at, (name, most) in enumerate(zip(op.bound_names, bounds, strict=True)):
            if (known := self._matched.get((op.sizes, at, most))) is not None:
                self._extents.know(symbol(name), known)
                continue
            place = [] if is_scalar else [extent_before(at, self.end)]
            size = self._value(memref.LoadOp.get(sizes, place), self.end, op)
            if not isinstance(size.type, IndexType):
                size = self._value(arith.IndexCastOp(size, IndexType()), self.end, op)
            limit = extent_before(most, self.end)
            check = CheckSizeOp(name, size, limit)
            check.location = op.location
            self.insert(check, self.end)
            matched = self._value(arith.MaxSIOp(size, extent_before(0, self.end)), self.end, op, name)
            if most != _MOST:
                matched = self._value(arith.MinSIOp(matched, limit), self.end, op, name)
            self._extents.know(symbol(name), matched)
            self._matched[op.sizes, at, most] = matched
        self.head = scf.YieldOp()
        self.sections.append(self.head)
        self.head.location = op.location
        self.insert(self.head, self.end)
        self._extents.move(self.head)

    def _constant(self, op: ConstantOp) -> None:
        try:
            value = dense_value(op)
        except VerifyException as error:
            raise CompileError.at(op, str(error)) from None
        self.constant(value, op.result, op)

    def _call(self, op: CallTirOp) -> None:
        callee = callee_of(op)
        wanted = callee.function_type.inputs.data
        if callee.function_type.outputs or not all(isinstance(t, MemRefType | IndexType) for t in wanted):
            raise CompileError.at(
                op, f"graph.call_tir: @{callee.sym_name.data} works on tensors, lower it first (pass lower-te-to-tir)"
            )
        if callee not in self._ties:
            self._ties[callee] = _ties(callee)
        _check_call_shapes(op, callee, self._ties[callee])
        if op in self._views.calls:
            return
        self._allocate_results(op)
        inputs, outputs = ([self._buffer(op, value) for value in values] for values in (op.operands, op.results))
        extents = [index_before(self._extents.index(extent), self.head) for extent in op.passed_extents]
        self.insert(self._call_of(op, callee, [*inputs, *extents, *outputs]), self.end)

    def _call_registered(self, op: CallDpsOp) -> None:
        self._allocate_results(op)
        types = [_tensor(value) for value in (*op.operands, *op.results)]
        extents = [extent for type_ in types for extent in self._dynamic(type_)]
        shapes = list(map(dense_buffer, types))
        operands, results = ([self._buffer(op, value) for value in group] for group in (op.operands, op.results))
        call = CallRegisteredOp(op.callee.data, operands, results, extents, shapes)
        call.location = op.location
        self.insert(call, self.end)

    def _allocate_results(self, op: Operation) -> None:
        for result in op.results:
            self._memory(op, result)

    def _memory(self, op: Operation, tensor: SSAValue) -> SSAValue:
        if tensor not in self.memory:
            self.memory[tensor] = self.result_parameter(tensor) or self._place(op, tensor)
        return self.memory[tensor]

    def _place(self, op: Operation, tensor: SSAValue) -> SSAValue:
        root, before = self._views.place(tensor)
        type_ = cast("Tensor", tensor.type)
        if root in self._views.shifted:
            size = bytes_of(type_.element_type)
            if root not in self._bytes:
                bytes_ = self._extents.value(EXTENTS.product(self._shape(_tensor(root))) * size)
                extents, static = ([], bytes_) if isinstance(bytes_, int) else ([bytes_], DYNAMIC_INDEX)
                allocation = memref.AllocOp(extents, (), MemRefType(i8, [static]))
                self._bytes[root] = self._value(allocation, self.head, op, root.name_hint)
            shift = extent_before(self._extents.value(before * size), self.head)
            view = memref.ViewOp(self._bytes[root], shift, self._dynamic(type_), buffer_type(type_))
            return self._value(view, self.head, op, tensor.name_hint)
        source = self._views.held_by.get(root, root)
        if source is tensor:
            return self._allocate(op, type_, tensor.name_hint)
        return self._reshaped(self._memory(op, source), type_, op, tensor.name_hint)

    def _reshaped(self, buffer: SSAValue, type_: Tensor, op: Operation, hint: str | None) -> SSAValue:
        extents = self._extents_of(type_)
        strides: list[int | SSAValue] = []
        for stride, static in zip(
            EXTENTS.row_major(self._shape(type_)), buffer_type(type_).get_strides() or (), strict=True
        ):
            value = self._extents.value(stride)
            strides.append(value if static is not None else extent_before(value, self.head))
        cast_ = memref.ReinterpretCastOp.from_dynamic(buffer, [0], extents, strides, buffer_type(type_))
        return self._value(cast_, self.head, op, hint)

    def _allocate(self, op: Operation, type_: Tensor, hint: str | None) -> SSAValue:
        return self._value(memref.AllocOp(self._dynamic(type_), (), buffer_type(type_)), self.head, op, hint)

    def _call_of(self, op: Operation, callee: FuncOp, given: Sequence[SSAValue]) -> CallOp:
        type_ = callee.function_type
        wanted = [buffer_type(t) if isinstance(t, TensorType) else t for t in (*type_.inputs, *type_.outputs)]
        arguments = [self._cast(op, value, type_) for value, type_ in zip(given, wanted, strict=True)]
        call = CallOp(callee.sym_name.data, arguments, ())
        call.location = op.location
        return call

    def _if(self, op: IfOp) -> None:
        self._allocate_results(op)
        buffers = [self._buffer(op, value) for value in (*op.arguments, *op.results)]
        condition = self._value(memref.LoadOp.get(self._buffer(op, op.condition), []), self.end, op)
        calls = [self._call_of(op, function_of(op, callee.string_value()), buffers) for callee in op.callees]
        then, otherwise = ([call, scf.YieldOp()] for call in calls)
        branch = scf.IfOp(condition, [], then, otherwise)
        for new in (branch, *(inner for region in branch.regions for inner in region.block.ops)):
            new.location = op.location
        self.insert(branch, self.end)

    def _loop(self, op: LoopOp) -> None:
        """Results hold the carried values and are overwritten after each step; rows are copied from and to whole
        tensors."""
        self._allocate_results(op)
        results, number = list(op.results), len(op.carried)
        carried = [self.memory[result] for result in results[:number]]
        stacked = [self.memory[result] for result in results[number:]]
        callee = function_of(op, op.body.string_value())
        label = callee.sym_name.data
        for value, buffer in zip(op.carried, carried, strict=True):
            self.insert(self._copied(f"{label}_copy", self._buffer(op, value), buffer, op), self.end)
        row_types = [tensor_type(shape_of(t)[1:], t.element_type) for t in map(_tensor, results[number:])]
        step = self._value(memref.AllocOp((), (), buffer_type(STEP)), self.head, op, "step")
        rows = [self._allocate(op, type_, "row") for type_ in op.row_types()]
        following = [self._allocate(op, _tensor(result), "next") for result in results[:number]]
        made = [self._allocate(op, type_, "made") for type_ in row_types]
        loop = new_loop(self._extents.value(op.count), "t", op)
        body = loop.body.block
        number = number_function(f"{label}_number", op)
        body.add_op(self._helper_call(number, [loop.induction_variable, step]))
        for value, row in zip(op.scanned, rows, strict=True):
            body.add_op(self._copied(f"{label}_row", self._buffer(op, value), row, op, step))
        captured = [self._buffer(op, value) for value in op.captured]
        body.add_op(self._call_of(op, callee, [step, *carried, *rows, *captured, *following, *made]))
        for source, target in zip(following, carried, strict=True):
            body.add_op(self._copied(f"{label}_copy", source, target, op))
        for row, whole in zip(made, stacked, strict=True):
            body.add_op(self._copied(f"{label}_stack", row, whole, op, step))
        self.insert(loop, self.end)

    def _while(self, op: WhileOp) -> None:
        self._allocate_results(op)
        carried = [self.memory[result] for result in op.results]
        test, body = (function_of(op, callee.string_value()) for callee in op.callees)
        label = f"{body.sym_name.data}_copy"
        for value, buffer in zip(op.carried, carried, strict=True):
            self.insert(self._copied(label, self._buffer(op, value), buffer, op), self.end)
        holds = self._value(memref.AllocOp((), (), buffer_type(CONDITION)), self.head, op, "holds")
        following = [self._allocate(op, _tensor(result), "next") for result in op.results]
        taken = [*carried, *(self._buffer(op, value) for value in op.captured)]
        condition = memref.LoadOp.get(holds, [])
        before = [self._call_of(op, test, [*taken, holds]), condition, scf.ConditionOp(condition.res)]
        copies = [self._copied(label, source, target, op) for source, target in zip(following, carried, strict=True)]
        after = [self._call_of(op, body, [*taken, *following]), *copies, scf.YieldOp()]
        loop = scf.WhileOp([], [], Region(Block(before)), Region(Block(after)))
        for new in (loop, *before, *after):
            new.location = op.location
        self.insert(loop, self.end)

    def _copied(self, name: str, source: SSAValue, target: SSAValue, op: Operation, *step: SSAValue) -> CallOp:
        function = copy_function(name, tir_buffer_type(source), tir_buffer_type(target), op)
        return self._helper_call(function, [*step, source, target])

    def _helper_call(self, function: FuncOp, arguments: Sequence[SSAValue]) -> CallOp:
        name, key = function.sym_name.data, (function.sym_name.data, function.function_type)
        if key not in self._helpers:
            module = cast("ModuleOp", self.function.parent_op())
            self._helpers[key] = free_name(name, named_ops(module))
            function.sym_name = StringAttr(self._helpers[key])
            module.body.block.add_op(function)
        call = CallOp(self._helpers[key], arguments, ())
        call.location = function.location
        return call

    def _extents_of(self, type_: Tensor) -> list[int | SSAValue]:
        return [self._extents.value(extent) for extent in self._shape(type_)]

    def _value(self, op: Operation, section: Operation, like: Operation, hint: str | None = None) -> SSAValue:
        op.location = like.location
        self.insert(op, section)
        op.results[0].name_hint = hint
        return op.results[0]

    def _buffer(self, op: Operation, tensor: SSAValue) -> SSAValue:
        if tensor.owner in self._views.calls:
            self._memory(op, tensor)
        buffer = self.memory.get(tensor)
        if buffer is None:
            raise InternalError(f"{op.name} uses %{tensor.name_hint}, which has no buffer")
        return buffer

    def _cast(self, op: Operation, buffer: SSAValue, type_: Attribute) -> SSAValue:
        if buffer.type == type_:
            return buffer
        return self._value(memref.CastOp.get(buffer, cast("MemRefType[Attribute]", type_)), self.end, op)

    def _copy_results(self) -> None:
        for value, target in self.results:
            source = self._buffer(self.function, value)
            if target in self.allocated:
                type_ = cast("Tensor", value.type)
                given = ReturnResultOp(source, target, self._dynamic(type_), buffer_type(type_))
                given.location = self.function.location
                self.insert(given, self.end)
            elif source is not target:
                extents = self._extents_of(cast("Tensor", value.type))
                self.copy(source, target, extents, f"copy_{target.name_hint}", "v", self.function)


def _tensor(value: SSAValue) -> Tensor:
    return cast("Tensor", value.type)


def _ties(callee: FuncOp) -> list[tuple[Quantity, Quantity]]:
    stated = [pair for op in callee.walk() if isinstance(op, AssumeShapeOp) for pair in stated_quantities(op)]
    pairs = [(first, quantity_of(value)) for first, value in stated]
    return [(first, second) for first, second in pairs if second is not None and not second.is_stride]


def _check_call_shapes(call: CallTirOp, callee: FuncOp, ties: Sequence[tuple[Quantity, Quantity]]) -> None:
    """Compiled calls pass each extent once, so a result declared too small would be written out of bounds. Raises
    `CompileError` for different dimensions that `callee` states to be equal."""
    tensors = (*call.operands, *[None] * len(call.passed_extents), *call.results)
    shapes = [() if value is None else shape_of(cast("Tensor", value.type)) for value in tensors]

    def show(dimension: Quantity) -> str:
        position = dimension.parameter - len(shapes) + len(call.results)
        role = f"operand {dimension.parameter}" if position < 0 else f"result {position}"
        return f"dimension {dimension.dimension} of {role}"

    for first, second in ties:
        one, other = (shapes[quantity.parameter][quantity.dimension] for quantity in (first, second))
        if one != other:
            raise CompileError.at(
                call,
                f"graph.call_tir @{callee.sym_name.data}: {show(first)} is {show_extent(one)}, but the function states "
                f"that it equals {show(second)}, which is {show_extent(other)}",
            )
