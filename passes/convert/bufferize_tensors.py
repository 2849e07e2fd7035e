"""bufferize-tensors: functions over tensors become functions over buffers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Final, cast

from xdsl.context import Context
from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AffineMapAttr,
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    FunctionType,
    IndexType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    StridedLayoutAttr,
    StringAttr,
    TensorType,
    UnitAttr,
    i64,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.dialects.utils import split_dynamic_index_list
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.passes import ModulePass

from weft.dialects.promises import Promise, parse_promises, set_promises
from weft.dialects.traversal import operations_in
from weft.passes.convert.bufferization_analysis import BufferizationAnalysis
from weft.passes.convert.tensor_places import (
    WRITABLE,
    Extent,
    Placement,
    destinations,
    is_tensor,
    kept_dimensions,
    mixed_lists,
    reassociation_of,
    shape_of_tensor,
    static_numbers,
)
from weft.passes.te.bufferize import buffer_type
from weft.support.errors import CompileError, remark
from weft.support.names import free_name


@dataclass(frozen=True)
class BufferizeTensorsPass(ModulePass):
    """Give functions over tensors buffers: their operations write into memory instead of making new values.

    ```mlir
    func.func @f(%A: tensor<4x8xf32>, %B: tensor<8x4xf32>) -> tensor<4x4xf32> {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<4x4xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
      %C = linalg.matmul ins(%A, %B : ...) outs(%f : tensor<4x4xf32>) -> tensor<4x4xf32>
      return %C : tensor<4x4xf32>
    // becomes
    func.func @f(%A: memref<4x8xf32>, %B: memref<8x4xf32>, %C: memref<4x4xf32>) {
      linalg.fill ins(%zero : f32) outs(%C : memref<4x4xf32>)
      linalg.matmul ins(%A, %B : ...) outs(%C : memref<4x4xf32>)
      return
    ```
    Each tensor argument becomes a dense buffer, each tensor result a further parameter at the end. An argument is
    written only if it carries `bufferization.writable = true`; callers pass buffers of results that overlap no other.
    The output holds upstream operations alone: `linalg` on buffers, `memref.alloc` where a value needs memory of its
    own, `linalg.copy` where one that is read later would be overwritten (`bufferization_analysis.py` has the rule),
    `memref.global` for constants.

    Options: `promises` names what the functions promise beside that their parameters do not overlap
    (`dialects/promises.py`); `strict` makes it an error that the module has no function over tensors;
    `deallocation` frees what is allocated, at the end of the block where it is. weft's own lowering places and frees
    buffers itself, and so needs no deallocations.

    Raises `CompileError` for operations on tensors that have no form on buffers; the module is then as it was.
    """

    name = "bufferize-tensors"
    promises: tuple[str, ...] = ()
    strict: bool = False
    deallocation: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        named = parse_promises(self.promises)
        functions = tensor_functions(op)
        if not functions:
            message = f"{self.name}: the module has no function over tensors of upstream operations"
            if self.strict:
                raise CompileError.at(op, message)
            remark(op, message)
        bufferize_functions(functions, named, deallocation=self.deallocation)


_OURS: Final = frozenset(("te", "graph", "tir", "low", "sched"))


def tensor_functions(module: ModuleOp) -> list[func.FuncOp]:
    """The functions of `module` with tensors, but those that hold operations of weft's own levels."""
    return [
        function
        for function in module.ops
        if isinstance(function, func.FuncOp) and not function.is_declaration and _is_over_tensors(function)
    ]


def _is_over_tensors(function: func.FuncOp) -> bool:
    types = (*function.function_type.inputs, *function.function_type.outputs)
    has_tensors = any(isinstance(type_, TensorType) for type_ in types)
    for op in operations_in(function):
        if op.name.split(".")[0] in _OURS:
            return False
        has_tensors = has_tensors or any(map(is_tensor, op.results))
    return has_tensors


def bufferize_functions(
    functions: Sequence[func.FuncOp], promises: frozenset[Promise] = frozenset(), *, deallocation: bool = False
) -> None:
    """Give `functions` of one module buffers in the place of tensors, in place, all or (`CompileError`) none.

    Behind it no value of theirs is a tensor. Each function computes what it did, for arguments of which a result's
    buffer overlaps no other; it writes no argument that it may not. All operations of linalg are on buffers and have
    no results, copies are `linalg.copy`, and memory is allocated by `memref.alloc` of identity layout. `tir.promises`
    names `promises` and, where all buffers of the signature were tensors, `noalias`.
    """
    known = {function.sym_name.data: function for function in functions}
    placements = [BufferizationAnalysis(function, known).run() for function in functions]
    for function, placement in zip(functions, placements, strict=True):
        is_ours = not any(isinstance(type_, MemRefType) for type_ in function.function_type.inputs)
        _Bufferization(function, placement).run(deallocation=deallocation)
        set_promises(function, promises | {Promise.NOALIAS} if is_ours else promises)


_INDEX: Final = IndexType()


def _element(type_: Attribute) -> Attribute:
    return type_.element_type if isinstance(type_, TensorType | MemRefType) else type_


def _memref(value: SSAValue) -> MemRefType[Attribute]:
    return cast("MemRefType[Attribute]", value.type)


class _Bufferization:
    """Rewrites one function by what its analysis decided.

    New operations stand in front of those that they replace, which are erased when all are done: until then they tell
    what uses what.
    """

    def __init__(self, function: func.FuncOp, placement: Placement) -> None:
        self.function = function
        self.placement = placement
        self.buffers: dict[SSAValue, SSAValue] = {}
        """The buffer of each tensor so far."""
        self.results: dict[int, SSAValue] = {}
        """The parameter of each tensor that the function returns."""
        self._at: Operation = cast("Operation", function.body.block.first_op)
        self._replaced: list[Operation] = []
        self._arguments: list[BlockArgument] = []
        """Block arguments that are replaced by buffers."""
        self._allocations: list[memref.AllocOp] = []
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
        results = [type_ for at, type_ in enumerate(function.function_type.outputs) if at not in self.results]
        function.function_type = FunctionType.from_lists([argument.type for argument in entry.args], results)

    def parameter(self, value: SSAValue, type_: Attribute, index: int) -> SSAValue:
        """A new parameter for a tensor, at this position."""
        parameter = self.function.body.block.insert_arg(buffer_type(type_), index)
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
            elif deallocation:
                block = cast("Block", alloc.parent)
                self._at = cast("Operation", block.last_op)
                self.add(memref.DeallocOp.get(alloc.memref))

    # Building

    def add(self, op: Operation, hint: str | None = None) -> SSAValue:
        """Insert an operation; its result, which `hint` names."""
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
        """The shape of a buffer."""
        shape = _memref(buffer).get_shape()
        return [self.dim(buffer, d) if extent == DYNAMIC_INDEX else extent for d, extent in enumerate(shape)]

    def value_of(self, extent: Extent) -> int | SSAValue:
        if isinstance(extent, tuple):
            return self.dim(self.buffers[extent[0]], extent[1])
        return extent

    def copy(self, source: SSAValue, target: SSAValue) -> None:
        self.insert(linalg.CopyOp([source], [target], res=[]))

    def allocate(self, value: SSAValue, extents: Callable[[], Sequence[int | SSAValue]]) -> SSAValue:
        """The memory of `value`, of this shape: a new buffer, or that of a result."""
        type_ = buffer_type(value.type)
        destination = self.placement.allocated[value].destination
        if destination is not None:
            buffer = self.results[destination] if isinstance(destination, int) else self.buffers[destination]
            return self.cast(buffer, type_)
        sizes: list[SSAValue] = []
        if DYNAMIC_INDEX in type_.get_shape():
            for extent, known in zip(extents(), type_.get_shape(), strict=True):
                if known == DYNAMIC_INDEX:
                    sizes.append(self.index(extent) if isinstance(extent, int) else extent)
        alloc = memref.AllocOp(sizes, [], type_)
        self._allocations.append(alloc)
        return self.add(alloc, value.name_hint)

    def cast(self, buffer: SSAValue, type_: Attribute) -> SSAValue:
        return buffer if buffer.type == type_ else self.add(memref.CastOp.get(buffer, cast("MemRefType", type_)))

    def new_like(self, source: SSAValue) -> SSAValue:
        """A new dense buffer of the shape of another one."""
        type_ = _memref(source)
        sizes = [size for size in self.extents(source) if isinstance(size, SSAValue)]
        alloc = memref.AllocOp(sizes, [], MemRefType(type_.element_type, type_.shape))
        self._allocations.append(alloc)
        return self.add(alloc, source.name_hint)

    def destination(self, op: Operation, index: int, value: SSAValue) -> None:
        """Give `value`, what `op` makes of its operand `index`, the buffer that it is written to."""
        source = self.buffers[op.operands[index]]
        if (op, index) in self.placement.in_place:
            self.buffers[value] = source
            return
        buffer = self.buffers[value] = self.allocate(value, lambda: self.extents(source))
        if (op, index) in self.placement.filled:
            self.copy(source, buffer)

    def on_buffers(self, op: Operation, operands: Sequence[SSAValue]) -> Operation:
        """The operation with these operands, its regions and attributes, and no results that are tensors."""
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
        """Insert `new` for `op`; the results that are no tensors go over to it."""
        self.insert(new)
        kept = [result for result in op.results if not is_tensor(result)]
        for old, result in zip(kept, new.results, strict=True):
            result.name_hint = old.name_hint
            old.replace_all_uses_with(result)

    def others(self, values: Sequence[SSAValue]) -> list[SSAValue]:
        """The values that are neither tensors nor buffers of them."""
        return [value for value in values if value not in self.placement.places]

    # Operations

    def block(self, block: Block) -> None:
        for op in list(block.ops):
            self._at = op
            rule = _RULES.get(op.name)
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
        """`op` is replaced."""
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
        block = Block(arg_types=[_element(value.type) for value in (*inputs, buffer)])
        elements = dict(zip(sources, block.args, strict=False))
        scalar = type(op).create(
            operands=[elements.get(value, value) for value in op.operands],
            result_types=[_element(result.type)],
            properties=dict(op.properties),
            attributes=dict(op.attributes),
        )
        scalar.location = op.location
        block.add_ops([scalar, linalg.YieldOp(scalar.results[0])])
        rank = len(shape_of_tensor(result))
        maps = [AffineMapAttr(AffineMap.identity(rank))] * (len(inputs) + 1)
        iterators = [IteratorTypeAttr.parallel()] * rank
        self.insert(linalg.GenericOp(inputs, [buffer], Region(block), maps, iterators))
        self.done(op)

    def constant(self, op: Operation) -> None:
        result = op.results[0]
        if not is_tensor(result):
            return
        type_, value = buffer_type(result.type), op.properties["value"]
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
        self.done(op)

    def empty(self, op: Operation) -> None:
        result = op.results[0]
        sizes = iter(op.operands)
        shape = shape_of_tensor(result)
        self.buffers[result] = self.allocate(result, lambda: [next(sizes) if n == DYNAMIC_INDEX else n for n in shape])
        self.done(op)

    def dim_of(self, op: Operation) -> None:
        dim = self.add(memref.DimOp(self.buffers[op.operands[0]], op.operands[1]), op.results[0].name_hint)
        op.results[0].replace_all_uses_with(dim)
        self.done(op)

    def rank_of(self, op: Operation) -> None:
        op.results[0].replace_all_uses_with(self.index(len(shape_of_tensor(op.operands[0]))))
        self.done(op)

    def extract(self, op: Operation) -> None:
        load = self.add(memref.LoadOp.get(self.buffers[op.operands[0]], op.operands[1:]), op.results[0].name_hint)
        op.results[0].replace_all_uses_with(load)
        self.done(op)

    def insert_element(self, op: Operation) -> None:
        self.destination(op, 1, op.results[0])
        self.insert(memref.StoreOp.get(op.operands[0], self.buffers[op.results[0]], op.operands[2:]))
        self.done(op)

    # Views

    def slice_of(self, op: Operation, source: SSAValue, shape: Sequence[int]) -> SSAValue:
        """The part of a buffer that an operation on slices names; `shape` is that of its type."""
        offsets, sizes, strides = mixed_lists(op)
        whole = memref.SubviewOp.infer_result_type(_memref(source), offsets, sizes, strides)
        layout = cast("StridedLayoutAttr", whole.layout)
        kept = kept_dimensions(sizes, shape)
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
        type_ = MemRefType(_element(source.type), shape_of_tensor(op.results[0]), _memref(source).layout)
        self.buffers[op.results[0]] = self.cast(source, type_)
        self.done(op)

    def reshape(self, op: Operation) -> None:
        """A view of a dense buffer; of another one, a copy."""
        result, source = op.results[0], self.buffers[op.operands[0]]
        sizes = self.shape_of_reshape(op)
        if result in self.placement.allocated:
            shape = self.extents(source)
            buffer = self.allocate(result, lambda: sizes)
            self.copy(source, self.reshaped(op, buffer, shape))
        else:
            buffer = self.reshaped(op, source, sizes)
        self.buffers[result] = buffer
        self.done(op)

    def shape_of_reshape(self, op: Operation) -> list[int | SSAValue]:
        """The shape of the result of a reshape."""
        shape, source = shape_of_tensor(op.results[0]), self.buffers[op.operands[0]]
        if op.name == "tensor.expand_shape":
            sizes = iter(op.operands[1:])
            given = [next(sizes) if n == DYNAMIC_INDEX else n for n in static_numbers(op, "static_output_shape")]
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
            for n, group in zip(shape, reassociation_of(op), strict=True)
        ]

    def as_index(self, value: SSAValue) -> SSAValue:
        return value if value.type == _INDEX else self.add(arith.IndexCastOp(value, _INDEX))

    def product(self, factors: Sequence[int | SSAValue]) -> int | SSAValue:
        """The product of numbers and values of type index."""
        number = prod(factor for factor in factors if isinstance(factor, int))
        values = [factor for factor in factors if isinstance(factor, SSAValue)]
        if not values or number == 0:
            return number
        if number != 1:
            values.append(self.index(number))
        found = values[0]
        for value in values[1:]:
            found = self.add(arith.MuliOp(found, value))
        return found

    def reshaped(self, op: Operation, buffer: SSAValue, shape: Sequence[int | SSAValue]) -> SSAValue:
        """A dense buffer in another shape, one of the two of the reshape `op`."""
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

    def moves(self, terminator: Operation) -> None:
        """The copies in front of a terminator. What others of them overwrite is copied twice."""
        moves = self.placement.moves.get(terminator, [])
        sources: list[SSAValue] = []
        for move in moves:
            source = self.buffers[move.source]
            if move.is_staged:
                stage = self.new_like(source)
                self.copy(source, stage)
                source = stage
            sources.append(source)
        for move, source in zip(moves, sources, strict=True):
            self.copy(source, self.buffers[move.target])

    def terminator(self, op: Operation) -> None:
        """What passes on tensors copies them, where they are not in place."""
        if not any(value in self.placement.places for value in op.operands):
            return
        self.moves(op)
        self.insert(type(op).create(operands=self.others(op.operands), properties=dict(op.properties)))
        self.done(op)

    def enter(self, op: Operation, first: int, arguments: Sequence[BlockArgument]) -> None:
        """Buffers for the tensors that a loop carries."""
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
        """The memory of a value whose shape the analysis found."""
        return self.allocate(value, lambda: [self.value_of(extent) for extent in self.placement.extents[value]])

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

    def returns(self, op: Operation) -> None:
        for at, value in enumerate(op.operands):
            if at in self.results and self.placement.places[value].storage.destination != at:
                self.copy(self.buffers[value], self.results[at])
        if self.results:
            self.insert(func.ReturnOp(*self.others(op.operands)))
            self.done(op)


_RULES: Final[Mapping[str, Callable[[_Bufferization, Operation], None]]] = {
    "arith.constant": _Bufferization.constant,
    "func.call": _Bufferization.call,
    "func.return": _Bufferization.returns,
    "scf.condition": _Bufferization.terminator,
    "scf.execute_region": _Bufferization.branches,
    "scf.for": _Bufferization.loop,
    "scf.if": _Bufferization.branches,
    "scf.index_switch": _Bufferization.branches,
    "scf.while": _Bufferization.while_loop,
    "scf.yield": _Bufferization.terminator,
    "tensor.cast": _Bufferization.cast_of,
    "tensor.collapse_shape": _Bufferization.reshape,
    "tensor.dim": _Bufferization.dim_of,
    "tensor.empty": _Bufferization.empty,
    "tensor.expand_shape": _Bufferization.reshape,
    "tensor.extract": _Bufferization.extract,
    "tensor.extract_slice": _Bufferization.extract_slice,
    "tensor.insert": _Bufferization.insert_element,
    "tensor.insert_slice": _Bufferization.insert_slice,
    "tensor.rank": _Bufferization.rank_of,
    "tensor.reshape": _Bufferization.reshape,
}
