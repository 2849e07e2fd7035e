"""Edits that make a module smaller. Each function lists its places, in the same order in copies of a module. An edit
changes the module in place and may leave IR that does not verify."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, TypeAlias

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import (
    AnyFloat,
    ArrayAttr,
    BytesAttr,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    FloatAttr,
    FunctionType,
    IndexType,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    SymbolRefAttr,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Operation, ParametrizedAttribute, SSAValue
from xdsl.irdl import OptPropertyDef
from xdsl.rewriter import Rewriter
from xdsl.traits import IsolatedFromAbove, IsTerminator, SymbolOpInterface

from weft.dialects.traversal import ancestors, operations_in

Edit: TypeAlias = Callable[[], None]
"""A change of the module that it was listed for. It has no effect if its place was erased."""
Listing: TypeAlias = Callable[[ModuleOp], list[Edit]]


def erase_operations(module: ModuleOp) -> list[Edit]:
    """Erase an operation and its dependents: functions, regions, steps of schedules."""
    return [partial(_erase, op, module) for op in _inside(module) if not _is_terminator(op)]


def erase_bodies(module: ModuleOp) -> list[Edit]:
    """Replace a function by its declaration; drop parameters and results of declarations."""

    def declare(function: FuncOp) -> None:
        if function.parent is not None:
            types = function.function_type if function.body.blocks else FunctionType.from_lists([], [])
            external = FuncOp.external(function.sym_name.data, types.inputs.data, types.outputs.data)
            Rewriter.replace_op(function, external)

    return [partial(declare, op) for op in _inside(module) if isinstance(op, FuncOp)]


def replace_by_operands(module: ModuleOp) -> list[Edit]:
    """Replace results by operands of their types; in schedules, omit a step."""

    def replace(op: Operation) -> None:
        _replace(op, [next((v for v in op.operands if v.type == result.type), None) for result in op.results])

    return [partial(replace, op) for op in _with_results(module)]


def replace_by_earlier_values(module: ModuleOp) -> list[Edit]:
    """Replace results by the first visible values of their types."""

    def replace(op: Operation) -> None:
        visible = list(_visible(op)) if op.parent is not None else []
        _replace(op, [next((v for v in visible if v.type == result.type), None) for result in op.results])

    return [partial(replace, op) for op in _with_results(module)]


def replace_by_constants(module: ModuleOp) -> list[Edit]:

    def replace(op: Operation) -> None:
        constant = _constant(op.results[0].type)
        if op.parent is not None and constant is not None:
            op.parent.insert_op_before(constant, op)
            _replace(op, [constant.result])

    return [
        partial(replace, op) for op in _with_results(module) if len(op.results) == 1 and not isinstance(op, ConstantOp)
    ]


def replace_by_parameters(module: ModuleOp) -> list[Edit]:

    def replace(op: Operation) -> None:
        function = next((around for around in ancestors(op) if isinstance(around, FuncOp)), None)
        if function is None or function.arg_attrs is not None or len(function.body.blocks) != 1:
            return
        block = function.body.block
        _replace(op, [block.insert_arg(result.type, len(block.args)) for result in op.results])
        _update_type(function)

    return [partial(replace, op) for op in _with_results(module)]


def unwrap_regions(module: ModuleOp) -> list[Edit]:
    """Inline a region once: arguments become 0 or operands, results the yielded values."""
    return [
        partial(_unwrap, op)
        for op in _inside(module)
        if len(op.regions) == 1
        and len(op.regions[0].blocks) == 1
        and not op.has_trait(IsolatedFromAbove, value_if_unregistered=False)
    ]


def return_earlier(module: ModuleOp) -> list[Edit]:
    """Return, or yield, an operand of the returned operation."""

    def shorten(terminator: Operation, position: int) -> None:
        if terminator.parent is None or position >= len(terminator.operands):
            return
        source = terminator.operands[position].owner
        if isinstance(source, Operation) and source.operands:
            terminator.operands[position] = source.operands[0]
            _follow_type(terminator, position)

    return [
        partial(shorten, op, position)
        for op in _inside(module)
        if isinstance(op, ReturnOp) or (_is_terminator(op) and _yields(op))
        for position in range(len(op.operands))
    ]


def drop_parameters(module: ModuleOp) -> list[Edit]:

    def drop(function: FuncOp, position: int, calls: Sequence[Operation]) -> None:
        # Later parameters first, so that indices stay valid.
        argument = function.body.block.args[position]
        if function.parent is None or argument.first_use is not None:
            return
        function.body.block.erase_arg(argument)
        if function.arg_attrs is not None:
            rest = [entry for at, entry in enumerate(function.arg_attrs.data) if at != position]
            function.arg_attrs = ArrayAttr(rest)
        _update_type(function)
        for call in calls:
            operands = list(call.operands)
            if call.parent is not None and position < len(operands):
                call.operands = operands[:position] + operands[position + 1 :]

    return [
        partial(drop, function, position, _references(module, function))
        for function in _functions(module)
        for position in reversed(range(len(function.body.block.args)))
        if function.body.block.args[position].first_use is None
    ]


def drop_results(module: ModuleOp) -> list[Edit]:

    def drop(function: FuncOp, position: int) -> None:
        end = function.body.block.last_op
        if isinstance(end, ReturnOp) and function.parent is not None and position < len(end.operands):
            end.operands = [v for at, v in enumerate(end.operands) if at != position]
            if function.res_attrs is not None:
                function.res_attrs = None
            _update_type(function)

    return [
        partial(drop, function, position)
        for function in _functions(module)
        if not _references(module, function)
        for position in reversed(range(len(function.function_type.outputs.data)))
    ]


def drop_attributes(module: ModuleOp) -> list[Edit]:

    def drop(table: dict[str, Attribute], name: str) -> None:
        table.pop(name, None)

    edits: list[Edit] = []
    for op in [module, *_inside(module)]:
        edits += [partial(drop, op.attributes, name) for name in op.attributes]
        optional = _optional_properties(type(op))
        edits += [partial(drop, op.properties, name) for name in op.properties if name in optional]
    return edits


def simplify_constants(module: ModuleOp) -> list[Edit]:
    """Replace the elements of a constant by its first one, then by 0, then floats by 1."""

    def replace(table: dict[str, Attribute], name: str, simpler: Callable[[Attribute], Attribute]) -> None:
        table[name] = _rewritten(table[name], simpler)

    edits: list[Edit] = []
    for simpler, kind in ((_splat, DenseIntOrFPElementsAttr), (_zeros, DenseIntOrFPElementsAttr), (_one, FloatAttr)):
        for op in _inside(module):
            for table in (op.properties, op.attributes):
                edits += [partial(replace, table, name, simpler) for name, a in table.items() if _holds(a, kind)]
    return edits


EDITS: Final[Mapping[str, Listing]] = {
    "operations": erase_operations,
    "bodies of functions": erase_bodies,
    "regions": unwrap_regions,
    "operations with an operand of their type": replace_by_operands,
    "operations after earlier values": replace_by_earlier_values,
    "ends of functions": return_earlier,
    "operations that compute a scalar": replace_by_constants,
    "operations that compute arguments": replace_by_parameters,
    "parameters": drop_parameters,
    "results": drop_results,
    "constants": simplify_constants,
    "attributes": drop_attributes,
}
"""Edits by the names of their subjects, ordered by the amount of code that they remove."""


# Numbers in the text are extents in types, loops, bounds, steps of schedules and constants.

_NUMBER = re.compile(r"(?:(?<![\w.%@#^!$\"+-])|(?<=\dx)|(?<=\?x)|(?<=<)|(?<=, ))(?<!%)[1-9]\d*(?=x[\d?a-z!]|(?![\w.]))")


def numbers_in(text: str) -> list[int]:
    """Returns the integers above 1 in descending order."""
    return sorted({number for m in _NUMBER.finditer(text) if (number := int(m[0])) > 1}, reverse=True)


def smaller_numbers(text: str) -> Iterator[str]:
    """Replace a number, or also its multiples, by a smaller one everywhere."""
    for number in numbers_in(text):
        for smaller in dict.fromkeys((1, 2, 4, number // 2, number - 1)):
            if smaller < number:
                yield _NUMBER.sub(lambda m, n=number, s=smaller: str(s) if int(m[0]) == n else m[0], text)
                yield _NUMBER.sub(lambda m, n=number, s=smaller: _scaled(int(m[0]), n, s), text)


def _scaled(found: int, number: int, smaller: int) -> str:
    return str(found // number * smaller) if found % number == 0 else str(found)


_FLOAT = re.compile(r"-?\d\.\d+e[+-]\d+")


def total_of_numbers(text: str) -> int:
    """Returns the bit lengths of integers, plus the number of floats other than 0 and 1."""
    floats = sum(float(found) not in (0.0, 1.0) for found in _FLOAT.findall(text))
    return sum(int(m[0]).bit_length() for m in _NUMBER.finditer(text)) + floats


# Helpers


def _inside(module: ModuleOp) -> list[Operation]:
    return operations_in(module)[1:]


def _functions(module: ModuleOp) -> list[FuncOp]:
    return [op for op in _inside(module) if isinstance(op, FuncOp) and len(op.body.blocks) == 1]


def _with_results(module: ModuleOp) -> list[Operation]:
    return [op for op in _inside(module) if op.results and not _is_terminator(op)]


def _is_terminator(op: Operation) -> bool:
    return op.has_trait(IsTerminator, value_if_unregistered=False) or bool(op.successors)


def _erase(op: Operation, module: ModuleOp) -> None:
    """Erase `op` and its dependents, unless they include a terminator."""
    if op.parent is None:
        return
    doomed = dict.fromkeys([op])
    pending = [op]
    while pending:
        current = pending.pop()
        users = [use.operation for result in current.results for use in result.uses]
        for user in [*users, *_references(module, current)]:
            if user not in doomed:
                if _is_terminator(user):
                    return
                doomed[user] = None
                pending.append(user)
    for each in reversed(doomed):
        if each.parent is not None:
            each.detach()
            each.erase(safe_erase=False)


def _references(module: ModuleOp, op: Operation) -> list[Operation]:
    trait = op.get_trait(SymbolOpInterface)
    symbol = None if trait is None else trait.get_sym_attr_name(op)
    if symbol is None:
        return []
    return [
        user
        for user in _inside(module)
        if user is not op
        for attribute in (*user.properties.values(), *user.attributes.values())
        if isinstance(attribute, SymbolRefAttr) and attribute.root_reference == symbol
    ]


def _replace(op: Operation, values: Sequence[SSAValue | None]) -> None:
    """An unused result needs no value."""
    if op.parent is None:
        return
    for result, value in zip(op.results, values, strict=True):
        if result.first_use is not None and (value is None or value is result):
            return
    for result, value in zip(op.results, values, strict=True):
        if value is not None and result.first_use is not None:
            result.replace_all_uses_with(value)
    op.detach()
    op.erase(safe_erase=False)


def _visible(op: Operation) -> Iterator[SSAValue]:
    """Outermost first, up to the function."""
    chain = [op]
    for around in ancestors(op):
        if around.has_trait(IsolatedFromAbove, value_if_unregistered=False):
            break
        chain.append(around)
    for inner in reversed(chain):
        block = inner.parent
        if block is not None:
            yield from block.args
            for before in block.ops:
                if before is inner:
                    break
                yield from before.results


def _constant(type_: Attribute) -> ConstantOp | None:
    if isinstance(type_, IntegerType | IndexType):
        return ConstantOp(IntegerAttr(0, type_))
    return ConstantOp(FloatAttr(1.0, type_)) if isinstance(type_, AnyFloat) else None


def _unwrap(op: Operation) -> None:
    block = op.parent
    body = op.regions[0].first_block
    if block is None or body is None:
        return
    end = body.last_op
    yielded = [*end.operands] if end is not None and _is_terminator(end) else []
    if any(r.first_use is not None for r in op.results) and [v.type for v in yielded] != [*op.result_types]:
        return
    given: list[SSAValue | None] = []
    for argument in body.args:
        constant = _constant(argument.type)
        if constant is not None:
            block.insert_op_before(constant, op)
            given.append(constant.result)
        else:
            given.append(next((v for v in op.operands if v.type == argument.type), None))
    if any(value is None and a.first_use is not None for a, value in zip(body.args, given, strict=True)):
        return
    for argument, value in zip(body.args, given, strict=True):
        if value is not None:
            argument.replace_all_uses_with(value)
    for inner in list(body.ops):
        if not (inner is end and _is_terminator(inner)):
            inner.detach()
            block.insert_op_before(inner, op)
    _replace(op, [*yielded] if len(yielded) == len(op.results) else [None] * len(op.results))


def _yields(op: Operation) -> bool:
    """Returns whether the operands of a terminator are the results of the parent."""
    parent = op.parent_op()
    return parent is not None and len(parent.results) == len(op.operands) > 0 and not isinstance(parent, FuncOp)


def _follow_type(terminator: Operation, position: int) -> None:
    """Propagate the type of an operand to the results of the parent."""
    parent, type_ = terminator.parent_op(), terminator.operands[position].type
    if isinstance(parent, FuncOp):
        _update_type(parent)
        return
    if parent is None or parent.results[position].type == type_:
        return
    result = Rewriter.replace_value_with_new_type(parent.results[position], type_)
    for use in list(result.uses):
        if isinstance(use.operation, ReturnOp) and isinstance(function := use.operation.parent_op(), FuncOp):
            _update_type(function)


def _update_type(function: FuncOp) -> None:
    end = function.body.block.last_op
    outputs = [*function.function_type.outputs.data] if end is None else [v.type for v in end.operands]
    function.function_type = FunctionType.from_lists([*function.body.block.arg_types], outputs)


def _optional_properties(kind: type[Operation]) -> frozenset[str]:
    definition = getattr(kind, "get_irdl_definition", None)
    if definition is None:
        return frozenset()
    return frozenset(name for name, entry in definition().properties.items() if isinstance(entry, OptPropertyDef))


def _parts(attribute: Attribute) -> Iterable[Attribute]:
    if isinstance(attribute, ArrayAttr):
        return attribute.data
    if isinstance(attribute, DictionaryAttr):
        return attribute.data.values()
    return attribute.parameters if isinstance(attribute, ParametrizedAttribute) else ()


def _holds(attribute: Attribute, kind: type[Attribute]) -> bool:
    return isinstance(attribute, kind) or (
        isinstance(attribute, ArrayAttr | DictionaryAttr) and any(_holds(part, kind) for part in _parts(attribute))
    )


def _rewritten(attribute: Attribute, simpler: Callable[[Attribute], Attribute]) -> Attribute:
    if isinstance(attribute, ArrayAttr):
        return ArrayAttr([_rewritten(part, simpler) for part in attribute.data])
    if isinstance(attribute, DictionaryAttr):
        return DictionaryAttr({name: _rewritten(part, simpler) for name, part in attribute.data.items()})
    return simpler(attribute)


def _splat(attribute: Attribute) -> Attribute:
    if not isinstance(attribute, DenseIntOrFPElementsAttr):
        return attribute
    return DenseIntOrFPElementsAttr(attribute.type, BytesAttr(attribute.data.data[: _element_bytes(attribute)]))


def _zeros(attribute: Attribute) -> Attribute:
    if not isinstance(attribute, DenseIntOrFPElementsAttr):
        return attribute
    return DenseIntOrFPElementsAttr(attribute.type, BytesAttr(bytes(_element_bytes(attribute))))


def _element_bytes(attribute: DenseIntOrFPElementsAttr) -> int:
    count = 1 if attribute.is_splat() else len(attribute)
    return len(attribute.data.data) // max(count, 1)


def _one(attribute: Attribute) -> Attribute:
    return FloatAttr(1.0, attribute.type) if isinstance(attribute, FloatAttr) else attribute


def size_of(module: ModuleOp) -> int:
    size = 0
    for op in _inside(module):
        size += 2
        if isinstance(op, FuncOp):
            size += len(op.function_type.inputs.data) + len(op.function_type.outputs.data)
    return size
