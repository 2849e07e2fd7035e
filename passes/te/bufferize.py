"""In-place conversion of functions over tensors to functions over buffers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from xdsl.dialects import scf
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    FunctionType,
    MemRefType,
    ModuleOp,
    StringAttr,
    TensorType,
    UnitAttr,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.dialects.memref import GetGlobalOp, GlobalOp, LoadOp, StoreOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from weft.dialects.element_types import element_of, joined_attributes, stated_elements, value_elements, value_type
from weft.dialects.low_results import RESULT, descriptor_type
from weft.dialects.tir_kinds import SPATIAL
from weft.passes.module_edits import named_ops
from weft.passes.schedule.nest_builders import block_in_loops
from weft.support.errors import InternalError
from weft.support.names import free_name


@lru_cache(maxsize=4096)
def buffer_type(tensor: Attribute) -> MemRefType[Attribute]:
    """The shape and signless elements, without encoding."""
    if not isinstance(tensor, TensorType):
        raise InternalError(f"expected a tensor, got {tensor}")
    return MemRefType(value_type(tensor.element_type), tensor.get_shape())


class Bufferization:
    """Moves a function over tensors into a new entry block over buffers.

    Returned tensors become trailing parameters. Sections of inserted ops: head (extents, allocations), assumptions,
    body. `finish` erases ops that were not moved.
    """

    def __init__(
        self,
        function: FuncOp,
        returned: Sequence[SSAValue],
        names: Sequence[str | None],
        order: Sequence[int] | None = None,
    ) -> None:
        """`names` and `order` index the arguments, then `returned`."""
        self.function = function
        self.old = function.body.block
        self.memory: dict[SSAValue, SSAValue] = {}
        sources = [*self.old.args, *returned]
        self._order = range(len(sources)) if order is None else order
        types = [buffer_type(s.type) if isinstance(s.type, TensorType) else s.type for s in sources]
        allocated = [at for at, value in enumerate(returned) if self.is_allocated(value)]
        for at in allocated:
            types[len(self.old.args) + at] = descriptor_type(buffer_type(returned[at].type).get_num_dims())
        self.head, self.assumptions, self.end = scf.YieldOp(), scf.YieldOp(), ReturnOp()
        """Ends of the sections: ops are inserted before these."""
        self.block = Block([self.head, self.assumptions, self.end], arg_types=[types[at] for at in self._order])
        self.sections = [self.head, self.assumptions]
        """They end sections; `finish` erases them."""
        for new in (*self.block.ops, *self.block.args):
            new.location = function.location
        parameters: dict[int, SSAValue] = dict(zip(self._order, self.block.args, strict=True))
        for position, (source, name) in enumerate(zip(sources, names, strict=True)):
            parameter = parameters[position]
            parameter.name_hint = name
            if position < len(self.old.args):
                if isinstance(source.type, TensorType):
                    self.memory[source] = parameter
                else:
                    source.replace_all_uses_with(parameter)
        self._globals: dict[Attribute, str] = {}
        self._symbols: set[str] = set()
        """Collected with the first constant."""
        self.results = [(value, parameters[len(self.old.args) + at]) for at, value in enumerate(returned)]
        """Returned tensors with their parameters."""
        self.allocated = {self.results[at][1] for at in allocated}
        """Parameters that are descriptors of results."""

    def is_allocated(self, returned: SSAValue) -> bool:
        """Whether the function allocates the result: its extents depend on data."""
        return False

    def insert(self, op: Operation, section: Operation) -> None:
        if op.parent is not None:
            op.detach()
        self.block.insert_op_before(op, section)

    def result_parameter(self, tensor: SSAValue) -> SSAValue | None:
        found = (parameter for value, parameter in self.results if value is tensor and parameter not in self.allocated)
        return next(found, None)

    def constant(self, elements: DenseIntOrFPElementsAttr[Any], tensor: SSAValue, at: Operation) -> None:
        """Make a global, which equal constants share."""
        module, type_ = self.function.parent_op(), buffer_type(tensor.type)
        if not isinstance(module, ModuleOp):
            raise InternalError(f"@{self.function.sym_name.data} has constants, and is not in a module")
        if not self._symbols:
            self._symbols.update(named_ops(module))
        name = self._globals.get(elements)
        if name is None:
            name = free_name(f"{self.function.sym_name.data}_{tensor.name_hint or 'constant'}", self._symbols)
            self._symbols.add(name)
            self._globals[elements] = name
            data = GlobalOp.get(StringAttr(name), type_, value_elements(elements), constant=UnitAttr())
            data.location = at.location
            module.body.block.insert_op_before(data, self.function)
        get = GetGlobalOp(name, type_)
        get.location = at.location
        get.memref.name_hint = tensor.name_hint
        self.insert(get, self.head)
        self.memory[tensor] = get.memref

    def copy(
        self,
        source: SSAValue,
        target: SSAValue,
        extents: Sequence[int | SSAValue],
        label: str,
        hint: str,
        at: Operation,
    ) -> None:
        numbers, kinds = range(len(extents)), [SPATIAL] * len(extents)
        hints, loop_hints = [f"{hint}{number}" for number in numbers], [f"i{number}" for number in numbers]
        block, nest = block_in_loops(label, kinds, extents, hints, at, loop_hints)
        load = LoadOp.get(source, block.iter_vars)
        block.body.block.add_ops([load, StoreOp.get(load.res, target, block.iter_vars)])
        for op in block.body.block.ops:
            op.location = at.location
        self.insert(nest, self.end)

    def finish(self) -> None:
        for placeholder in self.sections:
            Rewriter.erase_op(placeholder)
        function = self.function
        inputs = list(function.arg_attrs or [DictionaryAttr({})] * len(self.old.args))
        results = list(function.res_attrs or [DictionaryAttr({})] * len(self.results))
        sources = [*self.old.args, *(value for value, _ in self.results)]
        stated = stated_elements(element_of(source.type) for source in sources)
        for at, (value, parameter) in enumerate(self.results):
            if parameter in self.allocated:
                results[at] = DictionaryAttr({**results[at].data, RESULT: value.type})
        attributes = joined_attributes(ArrayAttr([*inputs, *results]), stated)
        if attributes is not None and any(entry.data for entry in attributes):
            function.arg_attrs = ArrayAttr([attributes.data[position] for position in self._order])
        function.res_attrs = None
        function.function_type = FunctionType.from_lists(list(self.block.arg_types), [])
        function.body.detach_block(self.old)
        function.body.add_block(self.block)
        self.old.erase()
