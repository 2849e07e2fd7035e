"""Rewriting of a function by its bufferization analysis."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from math import prod
from typing import Final, TypeAlias, cast

from xdsl.dialects import arith, cf, func, memref, scf
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AffineMapAttr,
    AnyFloat,
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    FunctionType,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    ModuleOp,
    StridedLayoutAttr,
    StringAttr,
    TensorType,
    UnitAttr,
    i32,
    i64,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.dialects.utils import split_dynamic_index_list
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.ir.affine import AffineMap

from weft.dialects.index_map import mixed_extents
from weft.dialects.integer_arith import constant_integer
from weft.dialects.low_access import AccessAttr, AccessMode
from weft.dialects.strides import dense_buffer
from weft.dialects.tir_kinds import PARAMETER_ACCESS
from weft.dialects.upstream.arith import element_form
from weft.dialects.upstream.bufferization import WRITABLE
from weft.dialects.upstream.views import (
    extent_of,
    kept_dimensions,
    mixed_lists,
    reassociation_groups,
    static_numbers,
)
from weft.passes.convert.assertions import is_known_at_calls
from weft.passes.convert.tensor_places import (
    Extent,
    Placement,
    destinations,
    folded,
    is_tensor,
    shape_of_tensor,
)
from weft.support.names import free_name

_INDEX: Final = IndexType()


def _element(type_: Attribute) -> Attribute:
    return type_.element_type if isinstance(type_, TensorType | MemRefType) else type_


def _is_plain(values: Sequence[int | SSAValue], predicate: str) -> bool:
    left, right = values
    if isinstance(left, SSAValue) and isinstance(left.owner, memref.DimOp) and predicate == "sge" and right == 0:
        return True
    return left is right or (isinstance(left, int) and isinstance(right, int))


def _is_number(type_: Attribute) -> bool:
    """Whether xDSL's `linalg.copy` and `linalg.fill` accept a type; they reject indices."""
    return isinstance(type_, AnyFloat | IntegerType)


def _memref(value: SSAValue) -> MemRefType[Attribute]:
    return cast("MemRefType[Attribute]", value.type)


Rule: TypeAlias = "Callable[[FunctionBufferization, Operation], None]"


class FunctionBufferization:
    """New ops precede replaced ones, which are erased last: until then they define the uses."""

    def __init__(
        self, function: func.FuncOp, placement: Placement, rules: Mapping[str, Rule], *, asserts: bool
    ) -> None:
        """With `asserts`, sizes that callers must pass are asserted."""
        self._asserts = asserts
        self.function = function
        self.placement = placement
        self._rules = rules
        self.buffers: dict[SSAValue, SSAValue] = {}
        """The buffer of each tensor so far."""
        self.results: dict[int, SSAValue] = {}
        """The parameter of each returned tensor."""
        self._at: Operation = cast("Operation", function.body.block.first_op)
        self._replaced: list[Operation] = []
        self._arguments: list[BlockArgument] = []
        """Block arguments that are replaced by buffers."""
        self._allocations: list[memref.AllocOp] = []
        self._escaped: set[SSAValue] = set()
        """Allocations that the program refers to."""
        self._globals: dict[tuple[Attribute, Attribute], str] = {}

    def run(self, *, deallocation: bool) -> None:
        function = self.function
        entry = function.body.block
        returned = cast("Operation", entry.last_op)
        inputs = list(function.arg_attrs or [DictionaryAttr({})] * len(entry.args))
        outputs = list(function.res_attrs or [DictionaryAttr({})] * len(returned.operands))
        for argument in list(entry.args):
            if is_tensor(argument):
                self.buffers[argument] = self.parameter(argument, argument.type, argument.index)
                self._arguments.append(argument)
        for at, value in enumerate(returned.operands):
            if value in self.placement.places:
                type_ = function.function_type.outputs.data[at]
                self.results[at] = self.parameter(value, type_, len(entry.args))
        self.block(entry)
        self._finish(deallocation=deallocation)
        kept = [at for at in range(len(outputs)) if at not in self.results]
        attributes = [*inputs, *(outputs[at] for at in self.results)]
        attributes = [DictionaryAttr({k: v for k, v in one.data.items() if k != WRITABLE}) for one in attributes]
        function.arg_attrs = ArrayAttr(attributes) if any(one.data for one in attributes) else None
        left = [outputs[at] for at in kept]
        function.res_attrs = ArrayAttr(left) if any(one.data for one in left) else None
        if self._asserts:  # no store shows that a buffer without elements is a result
            written = set(self.results.values())
            modes = [AccessMode.WRITE if argument in written else AccessMode.READ for argument in entry.args]
            function.attributes[PARAMETER_ACCESS] = ArrayAttr(list(map(AccessAttr, modes)))
        results = [type_ for at, type_ in enumerate(function.function_type.outputs) if at not in self.results]
        function.function_type = FunctionType.from_lists([argument.type for argument in entry.args], results)

    def parameter(self, value: SSAValue, type_: Attribute, index: int) -> SSAValue:
        parameter = self.function.body.block.insert_arg(dense_buffer(type_), index)
        parameter.name_hint = value.name_hint
        parameter.location = self.function.location
        return parameter

    def _finish(self, *, deallocation: bool) -> None:
        for op in reversed(self._replaced):
            op.detach()
            op.erase()
        for argument in self._arguments:
            argument.block.erase_arg(argument)
        for alloc in reversed(self._allocations):
            if alloc.memref.first_use is None:
                alloc.detach()
                alloc.erase()
            elif deallocation and alloc.memref not in self._escaped:
                block = cast("Block", alloc.parent)
                self._at = cast("Operation", block.last_op)
                self.insert(memref.DeallocOp.get(alloc.memref))

    # Building

    def add(self, op: Operation, hint: str | None = None) -> SSAValue:
        self.insert(op)
        op.results[0].name_hint = hint
        return op.results[0]

    def insert(self, op: Operation) -> None:
        op.location = self._at.location
        cast("Block", self._at.parent).insert_op_before(op, self._at)

    def index(self, number: int) -> SSAValue:
        return self.add(arith.ConstantOp(IntegerAttr(number, _INDEX)))

    def dim(self, buffer: SSAValue, dimension: int) -> SSAValue:
        number = _memref(buffer).get_shape()[dimension]
        return self.index(number) if number != DYNAMIC_INDEX else self.add(memref.DimOp(buffer, self.index(dimension)))

    def extents(self, buffer: SSAValue) -> list[int | SSAValue]:
        return [self._extent(buffer, d) for d in range(_memref(buffer).get_num_dims())]

    def _extent(self, buffer: SSAValue, dimension: int) -> int | SSAValue:
        return extent_of(buffer, dimension, self.product, self.dim)

    def require(self, predicate: str, left: int | SSAValue, right: int | SSAValue, message: str) -> None:
        """Assert a comparison that callers determine, for operations that always run."""
        values = [folded(side) for side in (left, right)]
        if not self._asserts or self._at.parent is not self.function.body.block or _is_plain(values, predicate):
            return
        if all(isinstance(value, int) or is_known_at_calls(value) for value in values):
            holds = self.add(arith.CmpiOp(self.as_value(values[0]), self.as_value(values[1]), predicate))
            self.insert(cf.AssertOp(holds, StringAttr(message)))

    def require_inside(self, buffer: SSAValue, indices: Sequence[int | SSAValue], what: str) -> None:
        for dimension, index in enumerate(indices if self._asserts else ()):
            self.require("sge", index, 0, f"{what}: index {dimension} is negative")
            self.require("slt", index, self._extent(buffer, dimension), f"{what}: index {dimension} is too large")

    def require_shape(self, buffer: SSAValue, extents: Sequence[int | SSAValue]) -> None:
        for dimension, (known, extent) in enumerate(zip(_memref(buffer).get_shape(), extents, strict=True)):
            if known == DYNAMIC_INDEX and self._asserts:
                actual = self._extent(buffer, dimension)
                self.require("eq", actual, extent, f"dimension {dimension} of a result has another extent")

    def value_of(self, extent: Extent) -> int | SSAValue:
        if isinstance(extent, tuple):
            return self.dim(self.buffers[extent[0]], extent[1])
        return extent

    def copy(self, source: SSAValue, target: SSAValue) -> None:
        element = _element(target.type)
        if _is_number(element):
            self.insert(linalg.CopyOp([source], [target], res=[]))
        else:
            block = Block(arg_types=[element, element])
            block.add_op(linalg.YieldOp(block.args[0]))
            self.pointwise([source], target, block)

    def pointwise(self, inputs: Sequence[SSAValue], output: SSAValue, block: Block) -> None:
        rank = len(_memref(output).get_shape())
        maps = [AffineMapAttr(AffineMap.identity(rank))] * (len(inputs) + 1)
        iterators = [IteratorTypeAttr.parallel()] * rank
        self.insert(linalg.GenericOp(inputs, [output], Region(block), maps, iterators))

    def fill(self, value: SSAValue, target: SSAValue) -> None:
        if _is_number(value.type):
            self.insert(linalg.FillOp([value], [target], res=[]))
        else:
            block = Block([linalg.YieldOp(value)], arg_types=[value.type])
            self.pointwise([], target, block)

    def allocate(self, value: SSAValue, extents: Callable[[], Sequence[int | SSAValue]]) -> SSAValue:
        type_ = dense_buffer(value.type)
        destination = self.placement.allocated[value].destination
        if destination is not None:
            if not isinstance(destination, int):
                return self.cast(self.buffers.get(destination, destination), type_)
            if self._asserts and DYNAMIC_INDEX in _memref(self.results[destination]).get_shape():
                self.require_shape(self.results[destination], extents())
            return self.cast(self.results[destination], type_)
        sizes: list[SSAValue] = []
        if DYNAMIC_INDEX in type_.get_shape():
            for extent, known in zip(extents(), type_.get_shape(), strict=True):
                if known == DYNAMIC_INDEX:
                    sizes.append(self.as_value(extent))
        alloc = memref.AllocOp(sizes, [], type_)
        self._allocations.append(alloc)
        if self.placement.allocated[value].escapes:
            self._escaped.add(alloc.memref)
        return self.add(alloc, value.name_hint)

    def cast(self, buffer: SSAValue, type_: Attribute) -> SSAValue:
        return buffer if buffer.type == type_ else self.add(memref.CastOp.get(buffer, cast("MemRefType", type_)))

    def new_like(self, source: SSAValue) -> SSAValue:
        type_ = _memref(source)
        sizes = [size for size in self.extents(source) if isinstance(size, SSAValue)]
        alloc = memref.AllocOp(sizes, [], MemRefType(type_.element_type, type_.shape))
        self._allocations.append(alloc)
        return self.add(alloc, source.name_hint)

    def destination(self, op: Operation, index: int, value: SSAValue) -> None:
        """Give `value`, which `op` makes of its operand `index`, its buffer."""
        source = self.buffers[op.operands[index]]
        if (op, index) in self.placement.in_place:
            self.buffers[value] = source
            return
        buffer = self.buffers[value] = self.allocate(value, lambda: self.extents(source))
        if (op, index) in self.placement.filled:
            self.copy(source, buffer)

    def on_buffers(self, op: Operation, operands: Sequence[SSAValue]) -> Operation:
        """`op` with these operands, and only its non-tensor results."""
        regions = [op.detach_region(region) for region in list(op.regions)]
        kept = [result for result in op.results if not is_tensor(result)]
        new = type(op).create(
            operands=operands,
            result_types=[result.type for result in kept],
            properties=dict(op.properties),
            attributes=dict(op.attributes),
            regions=regions,
        )
        self.replace(op, new)
        return new

    def replace(self, op: Operation, new: Operation) -> None:
        self.insert(new)
        kept = [result for result in op.results if not is_tensor(result)]
        for old, result in zip(kept, new.results, strict=True):
            result.name_hint = old.name_hint
            old.replace_all_uses_with(result)

    def others(self, values: Sequence[SSAValue]) -> list[SSAValue]:
        return [value for value in values if value not in self.placement.places]

    # Operations

    def block(self, block: Block) -> None:
        for op in list(block.ops):
            self._at = op
            rule = self._rules.get(op.name)
            has_tensors = any(value in self.placement.places for value in (*op.operands, *op.results))
            if rule is not None:
                rule(self, op)
            elif op.name.startswith("linalg.") and has_tensors:
                self._linalg(op)
            elif has_tensors:
                self._elementwise(op)
            else:
                self.regions(op)

    def regions(self, op: Operation) -> None:
        for region in list(op.regions):
            for block in region.blocks:
                self.block(block)
        self._at = op

    def done(self, op: Operation) -> None:
        self._replaced.append(op)

    def _linalg(self, op: Operation) -> None:
        self.regions(op)
        for at, result in zip(destinations(op), op.results, strict=True):
            self.destination(op, at, result)
        written = {at: self.buffers[result] for at, result in zip(destinations(op), op.results, strict=True)}
        operands = [written.get(at, self.buffers.get(value, value)) for at, value in enumerate(op.operands)]
        self.on_buffers(op, operands)
        self.done(op)

    def _elementwise(self, op: Operation) -> None:
        result = op.results[0]
        sources = [value for value in op.operands if is_tensor(value)]
        first = self.buffers[sources[0]]
        buffer = self.buffers[result] = self.allocate(result, lambda: self.extents(first))
        inputs = [self.buffers[value] for value in sources]
        block = element_form(op)
        block.insert_arg(_element(buffer.type), len(inputs))
        block.add_op(linalg.YieldOp(*cast("Operation", block.last_op).results))
        self.pointwise(inputs, buffer, block)
        self.done(op)

    def constant(self, op: Operation) -> None:
        result = op.results[0]
        if not is_tensor(result):
            return
        self.done(op)
        if result.first_use is None:
            return
        type_, value = dense_buffer(result.type), op.properties["value"]
        name = self._globals.get((type_, value))
        if name is None:
            module = cast("ModuleOp", self.function.parent_op())
            taken = {o.sym_name.data for o in module.ops if isinstance(o, func.FuncOp | memref.GlobalOp)}
            shape = "x".join(map(str, (*type_.get_shape(), type_.element_type)))
            name = self._globals[type_, value] = free_name(f"__constant_{shape}", taken)
            data = memref.GlobalOp.get(StringAttr(name), type_, value, constant=UnitAttr())
            data.location = op.location
            module.body.block.insert_op_before(data, cast("Operation", module.body.block.first_op))
        self.buffers[result] = self.add(memref.GetGlobalOp(name, type_), result.name_hint)

    def dim_of(self, op: Operation) -> None:
        source, dimension = self.buffers[op.operands[0]], constant_integer(op.operands[1])
        if dimension is None or not 0 <= dimension < len(_memref(source).get_shape()):
            extent: int | SSAValue = self.add(memref.DimOp(source, op.operands[1]))
        else:
            extent = self._extent(source, dimension)
        extent = self.as_value(extent)
        extent.name_hint = extent.name_hint or op.results[0].name_hint
        op.results[0].replace_all_uses_with(extent)
        self.done(op)

    def rank_of(self, op: Operation) -> None:
        op.results[0].replace_all_uses_with(self.index(len(shape_of_tensor(op.operands[0]))))
        self.done(op)

    def extract(self, op: Operation) -> None:
        self.require_inside(self.buffers[op.operands[0]], op.operands[1:], op.name)
        load = self.add(memref.LoadOp.get(self.buffers[op.operands[0]], op.operands[1:]), op.results[0].name_hint)
        op.results[0].replace_all_uses_with(load)
        self.done(op)

    def insert_element(self, op: Operation) -> None:
        self.require_inside(self.buffers[op.operands[1]], op.operands[2:], op.name)
        self.destination(op, 1, op.results[0])
        self.insert(memref.StoreOp.get(op.operands[0], self.buffers[op.results[0]], op.operands[2:]))
        self.done(op)

    # Views

    def slice_of(self, op: Operation, source: SSAValue, shape: Sequence[int]) -> SSAValue:
        offsets, sizes, strides = mixed_lists(op)
        if self._asserts:
            self._require_part(op, source, offsets, sizes, strides)
        return self.subview(source, offsets, sizes, strides, kept_dimensions(sizes, shape))

    def _require_part(
        self,
        op: Operation,
        source: SSAValue,
        offsets: Sequence[int | SSAValue],
        sizes: Sequence[int | SSAValue],
        strides: Sequence[int | SSAValue],
    ) -> None:
        for dimension, (offset, size, stride) in enumerate(zip(offsets, sizes, strides, strict=True)):
            self.require("sge", offset, 0, f"{op.name}: offset {dimension} is negative")
            self.require("sge", size, 0, f"{op.name}: size {dimension} is negative")
            if not all(isinstance(n, int) or is_known_at_calls(n) for n in (offset, size, stride)):
                continue
            last = self.sum(offset, self.product([self.sum(size, -1), stride]))
            self.require(
                "slt", last, self._extent(source, dimension), f"{op.name}: it ends after dimension {dimension}"
            )

    def subview(
        self,
        source: SSAValue,
        offsets: Sequence[int | SSAValue],
        sizes: Sequence[int | SSAValue],
        strides: Sequence[int | SSAValue],
        kept: Sequence[int],
    ) -> SSAValue:
        whole = memref.SubviewOp.infer_result_type(_memref(source), offsets, sizes, strides)
        layout = cast("StridedLayoutAttr", whole.layout)
        layout = StridedLayoutAttr([layout.strides.data[at] for at in kept], layout.offset)
        type_ = MemRefType(whole.element_type, [whole.get_shape()[at] for at in kept], layout, whole.memory_space)
        return self.add(memref.SubviewOp.get(source, offsets, sizes, strides, type_), source.name_hint)

    def extract_slice(self, op: Operation) -> None:
        result = op.results[0]
        self.buffers[result] = self.slice_of(op, self.buffers[op.operands[0]], shape_of_tensor(result))
        self.done(op)

    def insert_slice(self, op: Operation) -> None:
        source, result = op.operands[0], op.results[0]
        self.destination(op, 1, result)
        if (op, 0) not in self.placement.in_place:
            target = self.slice_of(op, self.buffers[result], shape_of_tensor(source))
            self.copy(self.buffers[source], target)
        self.done(op)

    def cast_of(self, op: Operation) -> None:
        source = self.buffers[op.operands[0]]
        stated = shape_of_tensor(op.results[0])
        self.require_shape(source, [self._extent(source, d) if n == DYNAMIC_INDEX else n for d, n in enumerate(stated)])
        type_ = MemRefType(_element(source.type), shape_of_tensor(op.results[0]), _memref(source).layout)
        self.buffers[op.results[0]] = self.cast(source, type_)
        self.done(op)

    def reshape(self, op: Operation) -> None:
        """A view of a dense buffer, or a copy of another."""
        result, source = op.results[0], self.buffers[op.operands[0]]
        sizes = self.shape_of_reshape(op)
        if op.name == "tensor.expand_shape" and self._asserts:
            for dimension, group in enumerate(reassociation_groups(op)):
                whole = self.product([sizes[at] for at in group])
                self.require("eq", whole, self._extent(source, dimension), f"{op.name} changes the number of elements")
        if result in self.placement.allocated:
            shape = self.extents(source)
            buffer = self.allocate(result, lambda: sizes)
            self.copy(source, self.reshaped(op, buffer, shape))
        else:
            buffer = self.reshaped(op, source, sizes)
        self.buffers[result] = buffer
        self.done(op)

    def shape_of_reshape(self, op: Operation) -> list[int | SSAValue]:
        shape, source = shape_of_tensor(op.results[0]), self.buffers[op.operands[0]]
        if op.name == "tensor.expand_shape":
            given = mixed_extents(static_numbers(op, "static_output_shape"), op.operands[1:])
            return [known if known != DYNAMIC_INDEX else size for known, size in zip(shape, given, strict=True)]
        if op.name == "tensor.reshape":
            numbers = self.buffers[op.operands[1]]
            return [
                self.as_index(self.add(memref.LoadOp.get(numbers, [self.index(d)]))) if n == DYNAMIC_INDEX else n
                for d, n in enumerate(shape)
            ]
        extents = self.extents(source)
        return [
            self.product([extents[d] for d in group]) if n == DYNAMIC_INDEX else n
            for n, group in zip(shape, reassociation_groups(op), strict=True)
        ]

    def as_index(self, value: SSAValue) -> SSAValue:
        return value if value.type == _INDEX else self.add(arith.IndexCastOp(value, _INDEX))

    def as_value(self, extent: int | SSAValue) -> SSAValue:
        return self.index(extent) if isinstance(extent, int) else extent

    def sum(self, *terms: int | SSAValue) -> int | SSAValue:
        number = sum(term for term in terms if isinstance(term, int))
        values = [term for term in terms if isinstance(term, SSAValue)]
        if not values:
            return number
        if number:
            values.append(self.index(number))
        return reduce(lambda left, right: self.add(arith.AddiOp(left, right)), values)

    def product(self, factors: Sequence[int | SSAValue]) -> int | SSAValue:
        number = prod(factor for factor in factors if isinstance(factor, int))
        values = [factor for factor in factors if isinstance(factor, SSAValue)]
        if not values or number == 0:
            return number
        if number != 1:
            values.append(self.index(number))
        return reduce(lambda left, right: self.add(arith.MuliOp(left, right)), values)

    def reshaped(self, op: Operation, buffer: SSAValue, shape: Sequence[int | SSAValue]) -> SSAValue:
        """Reshapes a dense buffer to one of the two shapes of `op`."""
        known = [extent if isinstance(extent, int) else DYNAMIC_INDEX for extent in shape]
        type_ = MemRefType(_element(buffer.type), known)
        properties = dict(op.properties)
        if op.name == "tensor.reshape":
            strides = [self.product(shape[at + 1 :]) for at in range(len(shape))]
            view: Operation = memref.ReinterpretCastOp.from_dynamic(buffer, [0], shape, strides, type_)
        elif len(shape) <= len(_memref(buffer).get_shape()):
            properties = {"reassociation": properties["reassociation"]}
            view = memref.CollapseShapeOp.create(operands=[buffer], result_types=[type_], properties=properties)
        else:
            static, dynamic = split_dynamic_index_list(list(shape), DYNAMIC_INDEX)
            properties["static_output_shape"] = DenseArrayBase.from_list(i64, static)
            operands = [buffer, *dynamic]
            view = memref.ExpandShapeOp.create(operands=operands, result_types=[type_], properties=properties)
        return self.add(view, buffer.name_hint)

    # Structure

    def moves(self, op: Operation) -> None:
        """Copy at the end of a region. Sources that other copies overwrite are staged."""
        moves = self.placement.moves.get(op, [])
        sources: list[SSAValue] = []
        for move in moves:
            source = self.buffers[move.source]
            if move.is_staged:
                stage = self.new_like(source)
                self.copy(source, stage)
                source = stage
            sources.append(source)
        for move, source in zip(moves, sources, strict=True):
            target = self.buffers[move.target]
            if move.insertion is not None:
                target = self.slice_of(move.insertion, target, shape_of_tensor(move.source))
            self.copy(source, target)

    def terminator(self, op: Operation) -> None:
        if not any(value in self.placement.places for value in op.operands):
            return
        self.moves(op)
        self.insert(type(op).create(operands=self.others(op.operands), properties=dict(op.properties)))
        self.done(op)

    def enter(self, op: Operation, first: int, arguments: Sequence[BlockArgument]) -> None:
        for at, argument in enumerate(arguments):
            if argument in self.placement.places:
                self.destination(op, first + at, argument)
                self._arguments.append(argument)

    def leave(self, op: Operation, arguments: Sequence[SSAValue]) -> None:
        for result, argument in zip(op.results, arguments, strict=True):
            if result in self.placement.places:
                self.buffers[result] = self.buffers[argument]
        self.done(op)

    def loop(self, op: Operation) -> None:
        if not any(map(is_tensor, op.results)):
            self.regions(op)
            return
        arguments = cast("scf.ForOp", op).body.block.args[1:]
        self.enter(op, 3, arguments)
        self.regions(op)
        self.on_buffers(op, self.others(op.operands))
        self.leave(op, arguments)

    def while_loop(self, op: Operation) -> None:
        loop = cast("scf.WhileOp", op)
        before, after = loop.before_region.block, loop.after_region.block
        self.enter(op, 0, before.args)
        for argument in after.args:
            if argument in self.placement.allocated:
                self.buffers[argument] = self.allocate_for(argument)
        self.block(before)
        for argument in after.args:
            if argument in self.placement.places:
                self.buffers.setdefault(argument, self.buffers[self.placement.carrier.get(argument, argument)])
                self._arguments.append(argument)
        self.block(after)
        self._at = op
        self.on_buffers(op, self.others(op.operands))
        self.leave(op, after.args)

    def allocate_for(self, value: SSAValue) -> SSAValue:
        return self.allocate(value, lambda: [self.value_of(extent) for extent in self.placement.extents[value]])

    def forall(self, op: Operation) -> None:
        if not op.results:
            self.regions(op)
            return
        body = op.regions[0].block
        first = len(op.operands) - len(op.results)
        arguments = body.args[len(body.args) - len(op.results) :]
        for at, (argument, result) in enumerate(zip(arguments, op.results, strict=True), first):
            if result in self.placement.allocated:
                source = self.buffers[argument] = self.buffers[op.operands[at]]
                self.buffers[result] = self.allocate(result, lambda source=source: self.extents(source))
                if (op, at) in self.placement.filled:
                    self.copy(source, self.buffers[result])
            else:
                self.destination(op, at, argument)
                self.buffers[result] = self.buffers[argument]
            self._arguments.append(argument)
        self.block(body)
        self._at = cast("Operation", body.last_op)
        read = [self.buffers[argument] for argument in arguments]
        for argument, result in zip(arguments, op.results, strict=True):
            self.buffers[argument] = self.buffers[result]
        self.moves(op)
        for argument, buffer in zip(arguments, read, strict=True):
            self.buffers[argument] = buffer
        self._at = op
        new = self.on_buffers(op, op.operands[:first])
        sizes = cast("DenseArrayBase[IntegerType]", op.properties["operandSegmentSizes"]).get_values()
        new.properties["operandSegmentSizes"] = DenseArrayBase.from_list(i32, [*sizes[:-1], 0])
        self.done(op)

    def branches(self, op: Operation) -> None:
        for result in op.results:
            if result in self.placement.allocated:
                self.buffers[result] = self.allocate_for(result)
            elif result in self.placement.places:
                self.buffers[result] = self.buffers[self.placement.carrier[result]]
        self.regions(op)
        if any(result in self.placement.places for result in op.results):
            self.on_buffers(op, op.operands)
            self.done(op)

    def call(self, op: Operation) -> None:
        if not any(value in self.placement.places for value in (*op.operands, *op.results)):
            return
        arguments: list[SSAValue] = []
        for at, value in enumerate(op.operands):
            buffer = self.buffers.get(value, value)
            if (op, at) in self.placement.filled:
                source, buffer = buffer, self.new_like(buffer)
                self.copy(source, buffer)
            arguments.append(buffer)
        for result in op.results:
            if result in self.placement.places:
                self.buffers[result] = self.allocate_for(result)
                arguments.append(self.buffers[result])
        self.on_buffers(op, arguments)
        self.done(op)

    # Conversions between tensors and buffers

    def to_tensor(self, op: Operation) -> None:
        source, result = op.operands[0], op.results[0]
        self.buffers[result] = source
        if result in self.placement.allocated:
            self.buffers[result] = self.allocate(result, lambda: self.extents(source))
            self.copy(source, self.buffers[result])
        self.done(op)

    def to_buffer(self, op: Operation) -> None:
        source = self.buffers[op.operands[0]]
        if (op, 0) not in self.placement.in_place:
            stage = self.new_like(source)
            self._escaped.add(stage)
            self.copy(source, stage)
            source = stage
        op.results[0].replace_all_uses_with(self.cast(source, op.results[0].type))
        self.done(op)

    def materialize(self, op: Operation) -> None:
        source, target = (self.buffers.get(value, value) for value in op.operands)
        if op.results:
            self.destination(op, 1, op.results[0])
            target = self.buffers[op.results[0]]
        if (op, 0) not in self.placement.in_place:
            self.copy(source, target)
        self.done(op)

    def clone(self, op: Operation) -> None:
        source = self.buffers.get(op.operands[0], op.operands[0])
        copied = self.new_like(source)
        self._escaped.add(copied)
        self.copy(source, copied)
        op.results[0].replace_all_uses_with(self.cast(copied, op.results[0].type))
        self.done(op)

    def drop(self, op: Operation) -> None:
        self.done(op)

    def returns(self, op: Operation) -> None:
        for at, value in enumerate(op.operands):
            if at in self.results and self.placement.places[value].storage.destination != at:
                self.require_shape(self.results[at], self.extents(self.buffers[value]))
                self.copy(self.buffers[value], self.results[at])
        if self.results:
            self.insert(func.ReturnOp(*self.others(op.operands)))
            self.done(op)
