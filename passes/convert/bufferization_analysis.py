"""In-place writes of tensors, and ops that need new buffers.

The problem is that of MLIR's One-Shot Bufferize (https://mlir.llvm.org/docs/Bufferization; Vasilache et al.,
"Composable and Modular Code Generation in MLIR", 2022): an op may write into the buffer of its destination unless that
changes a value which is read later. It is decided once per destination, in program order.

A write by op O to memory S is a conflict if S is not writable, or some tensor in S

- is defined at a point that dominates O, with content (no `tensor.empty`),
- is read by an op that may run after O before the tensor is redefined: one after O, or after the op around O, in the
  block of the definition; or any in a loop around O without the definition,
- and this read includes elements that O writes; the read of the destination of a `tensor.insert_slice` does not if O
  writes the inserted slice.

Operands of O are such reads, too, unless O is pointwise and reads the element that it writes. Views (slices, reshapes,
casts) share the memory of their source, and read it if they are read. Parallel loops write no memory that other
iterations access.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, cast

from xdsl.dialects import func, scf
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseIntOrFPElementsAttr,
    MemRefType,
    NoneAttr,
    TensorType,
    UnrankedTensorType,
)
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue, Use

from weft.dialects.traversal import ancestors, operations_in
from weft.dialects.upstream.bufferization import is_writable
from weft.dialects.upstream.linalg_forms import Structure, is_structured, structure_of
from weft.dialects.upstream.views import reassociation_groups
from weft.passes.convert.tensor_places import (
    INSERTS,
    NO_READS,
    ONCE,
    REPEATED,
    VIEWS,
    Extent,
    Placement,
    Reshape,
    Slice,
    Storage,
    TensorMove,
    TensorPlace,
    block_of,
    destinations,
    is_inside,
    is_pointwise,
    is_tensor,
    offsets_sizes_strides,
    reads_destination,
    region_block,
    shape_of_tensor,
    terminator_of,
    varies,
)
from weft.passes.convert.tensor_shapes import TensorShapes
from weft.support.errors import CompileError


class BufferizationAnalysis:
    """Assigns memory to the tensors of a function, without changing it.

    Raises `CompileError` at the first operation on tensors without a rule.
    """

    def __init__(self, function: func.FuncOp, callees: Mapping[str, func.FuncOp]) -> None:
        self.placement = Placement()
        self._function = function
        self._shapes = TensorShapes(self.placement)
        self._callees = callees
        self._order = {op: at for at, op in enumerate(operations_in(function))}
        self._structures: dict[Operation, Structure] = {}
        self._written_by: dict[Operation, set[Storage]] = {}
        """The memory that an operation writes in place so far."""
        self._carrier = self.placement.carrier
        self._external: dict[SSAValue, Storage] = {}
        """Buffers of the program that contain tensors."""

    def run(self) -> Placement:
        function = self._function
        if len(function.body.blocks) != 1:
            raise CompileError.at(function, f"bufferize-tensors: @{function.sym_name.data} has several blocks")
        entry = function.body.block
        for at, argument in enumerate(entry.args):
            self._check_type(argument, function)
            if is_tensor(argument):
                self._put(argument, TensorPlace(Storage(is_writable(function, at), entry)))
        self._block(entry)
        return self.placement

    # Places

    def _put(self, value: SSAValue, place: TensorPlace) -> None:
        self.placement.places[value] = place
        place.storage.tensors.append(value)

    def _allocate(self, value: SSAValue, home: Block) -> Storage:
        storage = Storage(writable=True, home=home)
        storage.is_allocated = True
        self.placement.allocated[value] = storage
        self._put(value, TensorPlace(storage))
        return storage

    def _fresh(self, op: Operation) -> None:
        for result in op.results:
            if is_tensor(result):
                self._allocate(result, block_of(op))

    def place(self, value: SSAValue) -> TensorPlace:
        return self.placement.places[value]

    def _write(self, op: Operation, index: int, value: SSAValue, home: Block, *, reads: bool) -> None:
        """Place `value`, which `op` makes of its operand `index`, in the memory of that operand, or new memory."""
        operand = op.operands[index]
        place = self.place(operand)
        if self._may_write(op, index, place):
            self.placement.in_place.add((op, index))
            self._written_by.setdefault(op, set()).add(place.storage)
            self._carrier[value] = operand
            self._put(value, place)
            return
        if reads and not self._is_undefined(operand):
            self.placement.filled.add((op, index))
        self._allocate(value, home)

    # Conflicts

    def _may_write(self, op: Operation, index: int, place: TensorPlace) -> bool:
        storage = place.storage
        if not storage.writable or storage in self._written_by.get(op, ()):
            return False
        if not self._is_private(op, place):
            return False
        return not any(
            self._is_clobbered(tensor_, op, index, place)
            for tensor_ in storage.tensors
            if not self._is_undefined(tensor_)
        )

    def _is_private(self, op: Operation, place: TensorPlace) -> bool:
        home = place.storage.home.parent_op()
        for around in ancestors(op):
            if home is None or around is home or around.is_ancestor(home):
                return True
            if around.name in REPEATED or around.name in ONCE:
                continue
            shared = place.storage.shared.get(around, ())
            if not any(place.views[: len(views)] == views for views in shared):
                return False
        return True

    def _is_clobbered(self, value: SSAValue, op: Operation, index: int, place: TensorPlace) -> bool:
        """Whether a write by `op` to operand `index`, at `place`, changes `value` before a read."""
        for use in value.uses:
            user = use.operation
            if user is op:
                if self._reads(use) and (self._runs_again(value, op) or self._is_overwritten(use, index, place)):
                    return True
                continue
            if self._reads(use) and self._runs_after(value, user, op) and not self._writes_inserted(use, op, place):
                return True
        return False

    def _is_overwritten(self, use: Use, index: int, place: TensorPlace) -> bool:
        """Whether an op writes elements of operand `index` before it reads them by another."""
        op = use.operation
        if use.index == index or op.name in REPEATED:
            return False
        if op.name in INSERTS and use.index == 0 and self._is_filled_already(op):
            return False
        if self.place(op.operands[use.index]) != place or not is_structured(op):
            return True
        return not is_pointwise(self._structure(op), use.index, index)

    def _structure(self, op: Operation) -> Structure:
        if op not in self._structures:
            self._structures[op] = structure_of(op)
        return self._structures[op]

    def _runs_again(self, value: SSAValue, op: Operation) -> bool:
        """Whether `op` may run several times per definition of `value`."""
        block = value.owner if isinstance(value.owner, Block) else block_of(value.owner)
        around = op
        while around.parent is not block:
            parent = around.parent_op()
            if parent is None:
                return False
            if parent.name not in ONCE:
                return True
            around = parent
        return False

    def _runs_after(self, value: SSAValue, user: Operation, op: Operation) -> bool:
        """Whether `user` may run after `op` within one definition of `value`."""
        block = value.owner if isinstance(value.owner, Block) else block_of(value.owner)
        while True:
            writer, reader = block.find_ancestor_op_in_block(op), block.find_ancestor_op_in_block(user)
            if writer is None or reader is None:
                return False
            if writer is not reader:
                return self._order[writer] < self._order[reader]
            if writer is op:
                return True
            if reader is user:
                return False
            if writer.name not in ONCE:
                return True
            inner = region_block(writer, op)
            if inner is None or inner is not region_block(writer, user):
                return False
            block = inner

    def _reads(self, use: Use) -> bool:
        op = use.operation
        if op.name in NO_READS:
            return False
        if op.name in VIEWS and use.index == 0:
            return any(self._reads(inner) for inner in op.results[0].uses)
        if op.name.startswith("linalg.") and op.results and use.index in destinations(op):
            return reads_destination(self._structure(op), use.index)
        return not (op.name == "bufferization.materialize_in_destination" and use.index == 1)

    def _writes_inserted(self, use: Use, op: Operation, place: TensorPlace) -> bool:
        """Whether the use is the destination of an inserted slice, and `op` writes only in it."""
        insert = use.operation
        inserted = self._inserted(insert) if insert.name in INSERTS and use.index == 1 else None
        if inserted is None or place.views[: len(inserted.views)] != inserted.views:
            return False
        # In another iteration the slice may be another one.
        return not any(map(varies, inserted.views)) or not self._runs_again(insert.operands[1], op)

    def _inserted(self, op: Operation) -> TensorPlace | None:
        destination = self.placement.places.get(op.operands[1])
        if destination is None:
            return None
        part = Slice(*offsets_sizes_strides(op), shape_of_tensor(op.operands[0]))
        return TensorPlace(destination.storage, (*destination.views, part))

    def _is_filled_already(self, op: Operation) -> bool:
        return self.place(op.operands[0]) == self._inserted(op)

    def _is_undefined(self, value: SSAValue) -> bool:
        owner = value.owner
        if not isinstance(owner, Operation):
            return False
        if owner.name in VIEWS:
            return self._is_undefined(owner.operands[0])
        is_bare = owner.name == "bufferization.alloc_tensor" and getattr(owner, "copy", None) is None
        return owner.name == "tensor.empty" or is_bare

    # Operations

    def _block(self, block: Block) -> None:
        for op in block.ops:
            self._operation(op)

    def _regions(self, op: Operation) -> None:
        for region in op.regions:
            for block in region.blocks:
                for argument in block.args:
                    self._check_type(argument, op)
                    if is_tensor(argument) and argument not in self.placement.places:
                        raise _without_rule(op)
                self._block(block)

    def _check_type(self, value: SSAValue, op: Operation) -> None:
        type_ = value.type
        if isinstance(type_, UnrankedTensorType):
            raise CompileError.at(op, f"bufferize-tensors: '{op.name}' has a tensor without rank, {type_}")
        if isinstance(type_, TensorType) and not isinstance(type_.encoding, NoneAttr):
            raise CompileError.at(op, f"bufferize-tensors: '{op.name}' has a tensor with an encoding, {type_}")

    def _operation(self, op: Operation) -> None:
        for value in (*op.operands, *op.results):
            self._check_type(value, op)
        rule = _RULES.get(op.name)
        if rule is not None:
            rule(self, op)
            return
        has_tensors = any(map(is_tensor, (*op.operands, *op.results)))
        if op.name.startswith("linalg.") and has_tensors:
            self._linalg(op)
        elif op.name.startswith(("arith.", "math.")) and has_tensors:
            self._elementwise(op)
        elif has_tensors:
            raise _without_rule(op)
        else:
            self._regions(op)

    def _linalg(self, op: Operation) -> None:
        if len(op.results) > len(op.operands) or any(
            op.operands[at].type != result.type for at, result in zip(destinations(op), op.results, strict=False)
        ):
            raise _without_rule(op)
        if not is_structured(op):
            raise _without_rule(op)
        self._regions(op)
        for at, result in zip(destinations(op), op.results, strict=True):
            self._write(op, at, result, block_of(op), reads=reads_destination(self._structure(op), at))

    def _elementwise(self, op: Operation) -> None:
        shapes = {shape_of_tensor(value) for value in (*op.operands, *op.results) if is_tensor(value)}
        if len(op.results) != 1 or op.regions or len(shapes) != 1 or not any(map(is_tensor, op.operands)):
            raise _without_rule(op)
        self._fresh(op)

    def constant(self, op: Operation) -> None:
        result = op.results[0]
        if not is_tensor(result):
            return
        value = op.properties["value"]
        if not isinstance(value, DenseIntOrFPElementsAttr):
            raise CompileError.at(op, f"bufferize-tensors: a constant is dense, got {value}")
        self._put(result, TensorPlace(Storage(writable=False, home=self._function.body.block)))

    def nothing(self, op: Operation) -> None:
        self._regions(op)

    def view(self, op: Operation) -> None:
        source, result = op.operands[0], op.results[0]
        place = self.place(source)
        view: Slice | Reshape | None = None
        if op.name == "tensor.extract_slice":
            view = Slice(*offsets_sizes_strides(op), shape_of_tensor(result))
        elif op.name != "tensor.cast":
            shape = shape_of_tensor(result)
            if not place.is_dense:
                self._allocate(result, block_of(op))
                return
            groups = () if op.name == "tensor.reshape" else reassociation_groups(op)
            view = Reshape(groups, shape)
        self._carrier[result] = source
        self._put(result, place if view is None else TensorPlace(place.storage, (*place.views, view)))

    def insert(self, op: Operation) -> None:
        self._write(op, 1, op.results[0], block_of(op), reads=not self._is_whole(op))
        if op.name == "tensor.insert_slice" and (op, 1) in self.placement.in_place and self._is_filled_already(op):
            self.placement.in_place.add((op, 0))

    def _is_whole(self, op: Operation) -> bool:
        if op.name != "tensor.insert_slice":
            return False
        offsets, sizes, strides = offsets_sizes_strides(op)
        return (
            all(offset == 0 for offset in offsets)
            and all(stride == 1 for stride in strides)
            and sizes == shape_of_tensor(op.operands[1])
        )

    def generate(self, op: Operation) -> None:
        self._regions(op)
        self._fresh(op)

    # Structure

    def _enter(self, op: Operation, first: int, initial: Sequence[SSAValue], arguments: Sequence[SSAValue]) -> None:
        for at, (value, argument) in enumerate(zip(initial, arguments, strict=True)):
            self._check_type(argument, op)
            if is_tensor(value):
                self._write(op, first + at, argument, block_of(op), reads=True)

    def _move(self, terminator: Operation, sources: Sequence[SSAValue], targets: Sequence[SSAValue]) -> None:
        pairs = [
            (source, target)
            for source, target in zip(sources, targets, strict=True)
            if is_tensor(source)
            and self.place(source) != self.place(target)
            and self.place(source).storage.destination is not target
        ]
        written = {self.place(target).storage for _, target in pairs}
        self.placement.moves[terminator] = [
            TensorMove(source, target, self.place(source).storage in written) for source, target in pairs
        ]

    def loop(self, op: Operation) -> None:
        loop = cast("scf.ForOp", op)
        body = loop.body.block
        arguments = body.args[1:]
        self._enter(op, 3, loop.iter_args, arguments)
        self._block(body)
        terminator = terminator_of(body)
        for value, argument in zip(terminator.operands, arguments, strict=True):
            self._check_same_shape(op, value, argument)
        self._move(terminator, terminator.operands, arguments)
        self._leave(op, arguments)

    def _leave(self, op: Operation, arguments: Sequence[SSAValue]) -> None:
        for result, argument in zip(op.results, arguments, strict=True):
            if is_tensor(result):
                self._carrier[result] = argument
                self._put(result, self.place(argument))

    def while_loop(self, op: Operation) -> None:
        loop = cast("scf.WhileOp", op)
        before, after = loop.before_region.block, loop.after_region.block
        self._enter(op, 0, loop.arguments, before.args)
        self._block(before)
        condition = terminator_of(before)
        passed = condition.operands[1:]
        carried = {self.place(argument): argument for argument in before.args if is_tensor(argument)}
        for value, argument in zip(passed, after.args, strict=True):
            if not is_tensor(value):
                continue
            same = carried.pop(self.place(value), None)
            if same is not None:
                self._carrier[argument] = same
                self._put(argument, self.place(same))
            else:
                self._allocate(argument, block_of(op))
                self.placement.extents[argument] = self._extents_outside(op, value)
        self._move(condition, passed, after.args)
        self._block(after)
        terminator = terminator_of(after)
        for value, argument in zip(terminator.operands, before.args, strict=True):
            self._check_same_shape(op, value, argument)
        self._move(terminator, terminator.operands, before.args)
        self._leave(op, after.args)

    def branches(self, op: Operation) -> None:
        """Each region runs at most once, and yields the results."""
        self._regions(op)
        if not any(map(is_tensor, op.results)):
            return
        terminators = [terminator_of(region.block) for region in op.regions]
        for at, result in enumerate(op.results):
            if not is_tensor(result):
                continue
            yielded = [terminator.operands[at] for terminator in terminators]
            outside = [self._outside(value, op) for value in yielded]
            first = outside[0]
            if first is not None and all(
                value is not None and self.place(value) == self.place(first) for value in outside
            ):
                self._carrier[result] = first
                self._put(result, self.place(yielded[0]))
                continue
            extents = [self._extents_outside(op, value) for value in yielded]
            if any(other != extents[0] for other in extents):
                message = f"bufferize-tensors: the branches of '{op.name}' may yield tensors of different shapes"
                raise CompileError.at(op, message)
            self._allocate(result, block_of(op))
            self.placement.extents[result] = extents[0]
            for value, terminator in zip(yielded, terminators, strict=True):
                self._lead(value, result, block_of(terminator))
        for terminator in terminators:
            self._move(terminator, terminator.operands, op.results)

    def _lead(self, value: SSAValue, result: SSAValue, home: Block) -> None:
        """Allocate `value`, if in `home`, in the memory of `result`."""
        place = self.place(value)
        storage = place.storage
        if storage.home is home and storage.is_allocated and storage.destination is None and not place.views:
            storage.destination = result

    def _outside(self, value: SSAValue, op: Operation) -> SSAValue | None:
        while is_inside(value, op):
            carrier = self._carrier.get(value)
            if carrier is None or self.place(carrier) != self.place(value) or carrier.type != value.type:
                return None
            value = carrier
        return value

    def forall(self, op: Operation) -> None:
        """Parallel iterations that write one slice each of the results.

        A result reuses the memory of its initial value if each iteration reads only the slice that it writes.
        """
        first = len(op.operands) - len(op.results)
        body = op.regions[0].block
        inserts = _inserts_of(terminator_of(body))
        arguments = body.args[len(body.args) - len(op.results) :]
        for at, (argument, result) in enumerate(zip(arguments, op.results, strict=True)):
            self._check_type(result, op)
            own = [insert for insert in inserts if insert.operands[1] is argument]
            part = Slice(*offsets_sizes_strides(own[0]), shape_of_tensor(own[0].operands[0])) if own else None
            if len(own) == 1 and part is not None and all(_is_of_slice(use, own[0], part) for use in argument.uses):
                self._write(op, first + at, argument, block_of(op), reads=True)
                place = self.place(argument)
                shared = place.storage.shared
                shared[op] = (*shared.get(op, ()), (*place.views, part))
            else:
                self._put(argument, self.place(op.operands[first + at]))
                if not self._is_undefined(op.operands[first + at]):
                    self.placement.filled.add((op, first + at))
                self._allocate(result, block_of(op))
        self._block(body)
        for argument, result in zip(arguments, op.results, strict=True):
            if result not in self.placement.places:
                self._carrier[result] = argument
                self._put(result, self.place(argument))
        targets = dict(zip(arguments, op.results, strict=True))
        moved = [insert for insert in inserts if self.place(insert.operands[0]) != self._inserted(insert)]
        written = {self.place(targets[cast("BlockArgument", insert.operands[1])]).storage for insert in moved}
        self.placement.moves[op] = [
            TensorMove(
                insert.operands[0], insert.operands[1], self.place(insert.operands[0]).storage in written, insert
            )
            for insert in moved
        ]

    def call(self, op: Operation) -> None:
        if not any(map(is_tensor, (*op.operands, *op.results))):
            return
        call = cast("func.CallOp", op)
        name = call.callee.string_value()
        callee = self._callees.get(name)
        if callee is None:
            raise CompileError.at(
                op, f"bufferize-tensors: @{name} is not in the module, so how it takes tensors is not known"
            )
        for at, value in enumerate(op.operands):
            if not is_tensor(value):
                continue
            if is_writable(callee, at):
                place = self.place(value)
                others = [other for other in op.operands if other is not value and is_tensor(other)]
                is_alone = all(self.place(other).storage is not place.storage for other in others)
                if is_alone and op.operands.count(value) == 1 and place.is_dense and self._may_write(op, at, place):
                    self.placement.in_place.add((op, at))
                    self._written_by.setdefault(op, set()).add(place.storage)
                else:
                    self.placement.filled.add((op, at))
            elif not self.place(value).is_dense:
                self.placement.filled.add((op, at))
        for at, result in enumerate(op.results):
            if is_tensor(result):
                self._allocate(result, block_of(op))
                self.placement.extents[result] = self._extents_of_call(op, callee, at)

    def returns(self, op: Operation) -> None:
        """Compute a result in the parameter that returns it, if it is a whole new allocation."""
        home = block_of(op)
        for at, value in enumerate(op.operands):
            if not is_tensor(value):
                continue
            place = self.place(value)
            storage = place.storage
            can_lead = storage.home is home and storage.is_allocated and storage.destination is None
            if can_lead and not place.views:
                storage.destination = at

    # Conversions between tensors and buffers

    def to_tensor(self, op: Operation) -> None:
        """Copy tensors without exclusive access to a buffer."""
        source, result = op.operands[0], op.results[0]
        if "restrict" not in op.properties:
            self._allocate(result, block_of(op))
            return
        storage = self._external.get(source)
        if storage is None:
            home = source.owner if isinstance(source.owner, Block) else block_of(source.owner)
            is_dense = isinstance(cast("MemRefType[Attribute]", source.type).layout, NoneAttr)
            storage = self._external[source] = Storage("writable" in op.properties, home, is_dense)
        self._put(result, TensorPlace(storage))

    def to_buffer(self, op: Operation) -> None:
        """Copy a tensor that the program may write; another is not written from here on."""
        place = self.place(op.operands[0])
        storage = place.storage
        layout = cast("MemRefType[Attribute]", op.results[0].type).layout
        if not place.is_dense and isinstance(layout, NoneAttr):
            return
        is_constant = "read_only" in op.properties and not storage.writable
        if is_constant or (storage.home is block_of(op) and self._may_write(op, 0, place)):
            self.placement.in_place.add((op, 0))
            storage.writable = False
            storage.escapes = True

    def materialize(self, op: Operation) -> None:
        """Compute the source in the destination, if that is a parameter without other uses."""
        source, target = op.operands
        if op.results:
            self._write(op, 1, op.results[0], block_of(op), reads=False)
            return
        storage = self.place(source).storage
        is_dense = isinstance(cast("MemRefType[Attribute]", target.type).layout, NoneAttr)
        is_lone = target.owner is self._function.body.block and target.has_one_use()
        is_ours = {"restrict", "writable"} <= op.properties.keys()
        can_lead = storage.home is block_of(op) and storage.is_allocated and storage.destination is None
        if is_dense and is_lone and is_ours and can_lead and not self.place(source).views:
            storage.destination = target
            storage.writable = False
            self.placement.in_place.add((op, 0))

    # Shapes

    def _extents_outside(self, op: Operation, value: SSAValue) -> tuple[Extent, ...]:
        extents = self._shapes.extents(value)
        for extent in extents:
            base = extent[0] if isinstance(extent, tuple) else extent
            if isinstance(base, SSAValue) and is_inside(base, op):
                message = f"bufferize-tensors: the shape of a result of '{op.name}' is not known in front of it"
                raise CompileError.at(op, message)
        return extents

    def _check_same_shape(self, op: Operation, value: SSAValue, argument: SSAValue) -> None:
        if not is_tensor(value) or self.place(value) == self.place(argument):
            return
        if self._shapes.extents(value) != self._shapes.extents(argument):
            message = f"the shape of a tensor that '{op.name}' carries may change, of type {value.type}"
            raise CompileError.at(op, f"bufferize-tensors: {message}")

    def _extents_of_call(self, op: Operation, callee: func.FuncOp, at: int) -> tuple[Extent, ...]:
        returned = terminator_of(callee.body.block).operands[at]
        shape = shape_of_tensor(op.results[at])
        if DYNAMIC_INDEX not in shape:
            return shape
        extents: list[Extent] = []
        arguments: dict[SSAValue, SSAValue] = dict(zip(callee.body.block.args, op.operands, strict=True))
        for extent in TensorShapes(Placement()).extents(returned):
            match extent:
                case int():
                    extents.append(extent)
                case (SSAValue() as base, int() as dimension) if base in arguments:
                    extents.append(self._shapes.extent(arguments[base], dimension))
                case SSAValue() if extent in arguments:
                    extents.append(self._shapes.of_index(arguments[extent]))
                case _:
                    name = callee.sym_name.data
                    message = (
                        f"bufferize-tensors: the shape of result {at} of @{name} does not follow from its arguments"
                    )
                    raise CompileError.at(op, message)
        return tuple(extents)


def _inserts_of(terminator: Operation) -> list[Operation]:
    return [op for op in operations_in(terminator) if op.name == "tensor.parallel_insert_slice"]


def _is_of_slice(use: Use, insert: Operation, part: Slice) -> bool:
    op = use.operation
    if op.name == "tensor.extract_slice":
        return Slice(*offsets_sizes_strides(op), shape_of_tensor(op.results[0])) == part
    return op is insert or op.name in NO_READS


def _without_rule(op: Operation) -> CompileError:
    return CompileError.at(op, f"bufferize-tensors: '{op.name}' on tensors has no form on buffers")


_RULES: Final[Mapping[str, Callable[[BufferizationAnalysis, Operation], None]]] = {
    "arith.constant": BufferizationAnalysis.constant,
    "bufferization.materialize_in_destination": BufferizationAnalysis.materialize,
    "bufferization.to_buffer": BufferizationAnalysis.to_buffer,
    "bufferization.to_tensor": BufferizationAnalysis.to_tensor,
    "func.call": BufferizationAnalysis.call,
    "func.return": BufferizationAnalysis.returns,
    "scf.execute_region": BufferizationAnalysis.branches,
    "scf.for": BufferizationAnalysis.loop,
    "scf.forall": BufferizationAnalysis.forall,
    "scf.if": BufferizationAnalysis.branches,
    "scf.index_switch": BufferizationAnalysis.branches,
    "scf.while": BufferizationAnalysis.while_loop,
    **dict.fromkeys(VIEWS, BufferizationAnalysis.view),
    **dict.fromkeys(("tensor.insert", "tensor.insert_slice"), BufferizationAnalysis.insert),
    **dict.fromkeys(
        (
            "bufferization.alloc_tensor",
            *(f"tensor.{n}" for n in ("concat", "empty", "from_elements", "gather", "generate", "pad", "splat")),
        ),
        BufferizationAnalysis.generate,
    ),
    **dict.fromkeys(
        (
            *("bufferization.dealloc_tensor", "linalg.yield", "scf.condition", "scf.forall.in_parallel", "scf.yield"),
            *("tensor.dim", "tensor.extract", "tensor.parallel_insert_slice", "tensor.rank", "tensor.yield"),
        ),
        BufferizationAnalysis.nothing,
    ),
}
