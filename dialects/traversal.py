"""Variants of xDSL's `walk` and `clone`, faster because xDSL resumes a generator per level and op, and walks copies
twice more.

Operations are listed first, so that a walk may erase them; copies get operands at once, because definitions precede
uses.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TypeVar

from xdsl.ir import Block, Operation, OpResult, Region, SSAValue

OperationT = TypeVar("OperationT", bound=Operation)
NodeT = TypeVar("NodeT", bound=Hashable)


def operations_in(root: Operation | Region | Block, *, inner_first: bool = False) -> list[Operation]:
    """Operations, with `root`; each precedes those in its regions, or follows if `inner_first`."""
    found: list[Operation] = []
    if type(root) is Block:
        _list_block(root, found, inner_first)
    elif type(root) is Region:
        _list_region(root, found, inner_first)
    elif isinstance(root, Operation):
        if not inner_first:
            found.append(root)
        for region in root.regions:
            _list_region(region, found, inner_first)
        if inner_first:
            found.append(root)
    return found


def operations_of(root: Operation | Region | Block, *kinds: type[OperationT]) -> list[OperationT]:
    """`operations_in` of the given classes and their subclasses."""
    # `isinstance` of an abstract class takes longer than the walk.
    found = set[type[Operation]](kinds)
    pending = [*kinds]
    while pending:
        subclasses = pending.pop().__subclasses__()
        found.update(subclasses)
        pending += subclasses
    return [op for op in operations_in(root) if type(op) in found]  # pyright: ignore[reportReturnType]


def post_order(roots: Iterable[NodeT], parts: Callable[[NodeT], Iterable[NodeT]]) -> list[NodeT]:
    """Nodes that `roots` reach, each once and after its parts. Without recursion: programs have thousands of nodes."""
    order: dict[NodeT, None] = {}
    pending = [(root, False) for root in reversed([*roots])]
    while pending:
        node, is_ready = pending.pop()
        if is_ready:
            order[node] = None
        elif node not in order:
            pending.append((node, True))
            pending += [(part, False) for part in reversed([*parts(node)])]
    return list(order)


def ancestors(op: Operation) -> Iterator[Operation]:
    """Enclosing ops, innermost first."""
    parent = op.parent_op()
    while parent is not None:
        yield parent
        parent = parent.parent_op()


def blocks_of(op: Operation) -> list[Block]:
    return [block for region in op.regions for block in region.blocks]


def values_of(op: Operation) -> list[SSAValue]:
    """Results, and arguments of blocks."""
    return [*op.results, *(argument for block in blocks_of(op) for argument in block.args)]


def captured_values(op: Operation) -> list[SSAValue]:
    """Outer values, distinct, in order of use."""
    inside: set[SSAValue] = set()
    captured: dict[SSAValue, None] = {}
    for inner in operations_in(op):
        if inner is not op:
            captured.update(dict.fromkeys(operand for operand in inner.operands if operand not in inside))
            inside.update(inner.results)
        for block in blocks_of(inner):
            inside.update(block.args)
    return list(captured)


def _list_region(region: Region, found: list[Operation], inner_first: bool) -> None:
    block = region.first_block
    while block is not None:
        _list_block(block, found, inner_first)
        block = block.next_block


def _list_block(block: Block, found: list[Operation], inner_first: bool) -> None:
    op = block.first_op
    while op is not None:
        if not op.regions:
            found.append(op)
        else:
            if not inner_first:
                found.append(op)
            for region in op.regions:
                _list_region(region, found, inner_first)
            if inner_first:
                found.append(op)
        op = op._next_op  # pyright: ignore[reportPrivateUsage] (the property costs half of the loop)


def sources_in(values: Iterable[SSAValue]) -> set[SSAValue]:
    """Transitive operands, and `values`."""
    pending, found = list(values), set[SSAValue]()
    while pending:
        value = pending.pop()
        if value not in found:
            found.add(value)
            if isinstance(value, OpResult):
                pending.extend(value.op.operands)
    return found


def copy_of(op: OperationT, mapping: dict[SSAValue, SSAValue] | None = None) -> OperationT:
    """A detached copy. `mapping` replaces operands, and receives copied values."""
    return _copy_operation(op, {} if mapping is None else mapping)


def copies_of_sources(
    values: Iterable[SSAValue], mapping: dict[SSAValue, SSAValue], is_copied: Callable[[Operation], bool]
) -> list[Operation]:
    """Copies of the ops that compute `values`, as far as `is_copied`, in order; see `copy_of`."""
    copies: list[Operation] = []
    for value in values:
        if isinstance(value, OpResult) and value not in mapping and is_copied(value.op):
            copies += copies_of_sources(value.op.operands, mapping, is_copied)
            copies.append(copy_of(value.op, mapping))
    return copies


def _copy_operation(op: OperationT, mapping: dict[SSAValue, SSAValue]) -> OperationT:
    if any(region.first_block is not region.last_block for region in op.regions):
        return op.clone(mapping)  # control flow between blocks
    regions = [Region([_copy_block(block, mapping) for block in region.blocks]) for region in op.regions]
    results = op.results
    copy = type(op).create(
        operands=[mapping.get(operand, operand) for operand in op.operands],
        result_types=[result.type for result in results],
        properties=op.properties,
        attributes=op.attributes,
        location=op.location,
        regions=regions,
    )
    for old, new in zip(results, copy.results, strict=True):
        mapping[old] = new
        new._name = old._name  # pyright: ignore[reportPrivateUsage] (a valid name, which the setter would check again)
    return copy


def _copy_block(block: Block, mapping: dict[SSAValue, SSAValue]) -> Block:
    arguments = block.args
    copy = Block(arg_types=[argument.type for argument in arguments])
    for old, new in zip(arguments, copy.args, strict=True):
        mapping[old] = new
        new.location = old.location
        new._name = old._name  # pyright: ignore[reportPrivateUsage]
    for op in block.ops:
        copy.add_op(_copy_operation(op, mapping))
    return copy
