"""The structure of a tir function: blocks and their loops, scopes, producers and consumers.

A *scope* is a function or the body of a block; its *child blocks* are not nested in another block of it. A consumer
reads a buffer that a producer in its scope writes. A function is *plain* while unscheduled, with one nest of serial
loops per block. Functions `why_*` return None if the property holds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import cmp_to_key

from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType, ModuleOp, NoneAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from weft.analysis.index import Index
from weft.dialects.aliasing import may_overlap, overlap_advice, overlap_text, overlapping
from weft.dialects.effects import (
    effects_of,
    opaque_advice,
    opaque_op,
    opaque_text,
    touches_memory,
    underlying,
    views_of,
)
from weft.dialects.low_access import AccessPtrOp
from weft.dialects.low_kernel import AtomicOp
from weft.dialects.promises import PROMISES
from weft.dialects.tir import BlockOp, ForOp, InitOp
from weft.dialects.tir_kinds import (
    COMMUTATIVE,
    MAX_PARALLEL,
    MAX_VECTORIZE,
    PART_OF,
    UNROLL_ANNOTATIONS,
    IterKind,
    LoopKind,
)
from weft.dialects.traversal import ancestors as ancestors
from weft.dialects.traversal import operations_in, operations_of
from weft.support.errors import CompileError, Violation, did_you_mean

ROOT = "root"
"""The name of the root block of a function, which denotes the function itself."""


def function_of(op: Operation) -> FuncOp:
    for parent in ancestors(op):
        if isinstance(parent, FuncOp):
            return parent
    raise CompileError.at(op, f"{op.name} is outside of any function")


def scope_of(op: Operation) -> Operation:
    for parent in ancestors(op):
        if isinstance(parent, BlockOp | InitOp | FuncOp):
            return parent
    raise CompileError.at(op, f"{op.name} is outside of any function")


def loops_around(op: Operation) -> list[ForOp]:
    """The loops within the scope, outermost first."""
    found: list[ForOp] = []
    for parent in ancestors(op):
        if isinstance(parent, BlockOp | FuncOp):
            break
        if isinstance(parent, ForOp):
            found.append(parent)
    return found[::-1]


def block_around(op: Operation) -> BlockOp | None:
    return next((parent for parent in ancestors(op) if isinstance(parent, BlockOp)), None)


def vectorized_loop_around(op: Operation) -> ForOp | None:
    around = (parent for parent in ancestors(op) if isinstance(parent, ForOp))
    return next((loop for loop in around if loop.kind.data is LoopKind.VECTORIZED), None)


def bindings_of(block: BlockOp) -> tuple[Index, ...]:
    return Index.of_map(block.bindings.data, block.binding_operands)


def guards_of(block: BlockOp) -> list[tuple[Index, Index]]:
    operands = [Index.of(value) for value in block.guard_operands]
    return [(Index.of_expr(left, operands), Index.of_expr(right, operands)) for left, right in block.guards]


def sources_of(block: BlockOp, kind: IterKind) -> set[SSAValue]:
    bindings = zip(bindings_of(block), block.kinds, strict=True)
    return {value for index, own in bindings if own is kind for value in index.sources()}


def child_blocks(root: Operation) -> list[BlockOp]:
    """The child blocks in order; an init is a separate scope."""
    found: list[BlockOp] = []
    for region in root.regions:
        for block in region.blocks:
            for op in block.ops:
                if isinstance(op, BlockOp):
                    found.append(op)
                elif op.regions and not isinstance(op, InitOp):
                    found.extend(child_blocks(op))
    return found


def parts_of(block: BlockOp) -> list[BlockOp]:
    """Blocks that together run the domain of `block`, in program order (docs/decisions/0004-parts-of-a-block.md). The
    scope of a part includes the other parts of an enclosing block."""
    group = block.attributes.get(PART_OF)
    if group is None:
        return [block]
    scope = scope_of(block)
    scopes = parts_of(scope) if isinstance(scope, BlockOp) else [scope]
    return [other for around in scopes for other in child_blocks(around) if other.attributes.get(PART_OF) == group]


def functions(module: ModuleOp) -> list[FuncOp]:
    return [op for op in module.body.block.ops if isinstance(op, FuncOp) and op.body.blocks]


def find_function(module: ModuleOp, name: str) -> FuncOp:
    """Raises `CompileError`."""
    known = {f.sym_name.data: f for f in functions(module)}
    if name not in known:
        raise CompileError(f"unknown function '{name}'{did_you_mean(name, known)}")
    return known[name]


def find_block(module: ModuleOp, name: str, func_name: str | None = None) -> BlockOp:
    """The block called `name` in the named function, or in the only one that has it. Raises `CompileError` if there
    is none or more than one."""
    candidates = [find_function(module, func_name)] if func_name else functions(module)
    blocks = [op for f in candidates for op in operations_in(f) if isinstance(op, BlockOp)]
    matching = [b for b in blocks if b.label == name]
    where = f" in function '{func_name}'" if func_name else ""
    if not matching:
        raise CompileError(f"unknown block '{name}'{where}{did_you_mean(name, {b.label for b in blocks})}")
    if len(matching) > 1:
        owners = sorted({function_of(b).sym_name.data for b in matching})
        raise CompileError(
            f"{len(matching)} blocks are called '{name}'{where or ' (functions: ' + ', '.join(owners) + ')'}: "
            "name the function, or give the blocks different names"
        )
    return matching[0]


def find_block_or_root(module: ModuleOp, name: str, func_name: str | None = None) -> BlockOp | FuncOp:
    """As `find_block`, but "root" is the function, unless a block has that name."""
    candidates = [find_function(module, func_name)] if func_name else functions(module)
    if name != ROOT or any(isinstance(op, BlockOp) and op.label == ROOT for f in candidates for op in operations_in(f)):
        return find_block(module, name, func_name)
    if len(candidates) != 1:
        names = ", ".join(sorted(f.sym_name.data for f in candidates))
        raise CompileError(f"{len(candidates)} functions have a root block ({names}): name the function")
    return candidates[0]


def output_blocks(root: Operation) -> list[BlockOp]:
    """Blocks, also nested, that write a buffer which the function does not allocate."""
    blocks = (op for op in operations_in(root) if isinstance(op, BlockOp) and op is not root)
    return [
        block
        for block in blocks
        if any(not isinstance(underlying(buffer).owner, memref.AllocOp) for buffer in buffers_written(block))
    ]


def stored_buffer(op: Operation) -> SSAValue | None:
    """The buffer that `op` writes, directly or through its pointer."""
    # `isinstance` of an abstract class is slower, and this runs for every operation.
    if type(op) is memref.StoreOp:
        return underlying(op.memref)
    return op.buffer if type(op) is AtomicOp or (type(op) is AccessPtrOp and op.writes) else None


def buffers_stored_by(op: Operation) -> tuple[SSAValue, ...]:
    if type(op) is memref.StoreOp:
        return (underlying(op.memref),)
    return () if type(op) is memref.LoadOp or not touches_memory(op) else _buffers(effects_of(op).writes)


def buffers_loaded_by(op: Operation) -> tuple[SSAValue, ...]:
    if type(op) is memref.LoadOp:
        return (underlying(op.memref),)
    return () if type(op) is memref.StoreOp or not touches_memory(op) else _buffers(effects_of(op).reads)


def overlapping_pair(loaded: Iterable[SSAValue], written: Iterable[SSAValue]) -> tuple[SSAValue, SSAValue] | None:
    stored = tuple(written)
    pairs = ((one, other) for one in stored for other in (*loaded, *stored) if one is not other)
    return next(((one, other) for one, other in pairs if may_overlap(one, other)), None)


def why_overlapping(block: BlockOp) -> Violation | None:
    if not any(isinstance(parent, FuncOp) and PROMISES in parent.attributes for parent in ancestors(block)):
        return None  # The usual case needs no walk of the block.
    found = overlapping_pair(buffers_loaded(block), buffers_written(block))
    if found is None:
        return None
    written, other = found
    verb = "writes" if other in buffers_written(block) else "reads"
    detail = f'block "{block.label}" writes {written.name_hint} and {verb} {other.name_hint}: '
    return Violation(detail + overlap_text(written, other), "not proved", {}, overlap_advice(written))


def _buffers(values: Iterable[SSAValue]) -> tuple[SSAValue, ...]:
    return tuple(underlying(value) for value in values if isinstance(value.type, MemRefType))


def why_opaque(op: Operation, subject: str) -> Violation | None:
    """A violation for an op whose number and order of executions must be preserved."""
    found = opaque_op(op)
    return (
        None if found is None else Violation(f"{subject} {opaque_text(found)}", "not proved", {}, opaque_advice(found))
    )


def why_named_twice(block: BlockOp) -> str | None:
    for op in operations_in(block):
        if isinstance(op, memref.LoadOp | memref.StoreOp) and (root := underlying(op.memref)) is not op.memref:
            return f'block "{block.label}" accesses {root.name_hint} under another name, {op.memref.name_hint}'
    return None


def takes_pointers(root: Operation) -> bool:
    return bool(operations_of(root, AccessPtrOp))


def buffers_written(root: Operation) -> list[SSAValue]:
    """The buffers in order of first store."""
    return list(dict.fromkeys(buffer for op in operations_in(root) for buffer in buffers_stored_by(op)))


def buffers_loaded(block: BlockOp) -> list[SSAValue]:
    return list(dict.fromkeys(buffer for op in operations_in(block) for buffer in buffers_loaded_by(op)))


def buffers_read(block: BlockOp) -> list[SSAValue]:
    """The buffers read, except accumulators of a block with init."""
    own = buffers_written(block) if block.init is not None else []
    return [buffer for buffer in buffers_loaded(block) if buffer not in own]


def producers_of(block: BlockOp) -> list[BlockOp]:
    read = set(buffers_loaded(block))
    siblings = _blocks_using(read, scope_of(block))
    return [b for b in siblings if b is not block and not read.isdisjoint(buffers_written(b))]


def consumers_of(block: BlockOp) -> list[BlockOp]:
    written = set(buffers_written(block))
    siblings = _blocks_using(written, scope_of(block))
    return [b for b in siblings if b is not block and not written.isdisjoint(buffers_loaded(b))]


def writers_of(buffer: SSAValue, scope: Operation) -> list[BlockOp]:
    return [b for b in _blocks_using((buffer,), scope) if buffer in buffers_written(b)]


def readers_of(buffer: SSAValue, scope: Operation) -> list[BlockOp]:
    return [b for b in _blocks_using((buffer,), scope) if buffer in buffers_loaded(b)]


_FEW = 8
"""Up to this number, blocks are sorted by pairwise comparison."""


def _blocks_using(buffers: Iterable[SSAValue], scope: Operation) -> list[BlockOp]:
    """Follows uses, because a function may have thousands of blocks."""
    found: dict[BlockOp, None] = {}
    pending = list(buffers)
    while pending:
        for use in pending.pop().uses:
            block = _child_block_around(use.operation, scope)
            if block is not None:
                found[block] = None
            else:
                pending.extend(result for result in use.operation.results if isinstance(result.type, MemRefType))
    if len(found) > _FEW:
        return [block for block in child_blocks(scope) if block in found]
    return sorted(found, key=cmp_to_key(lambda one, other: -1 if precedes(one, other) else 1))


def _child_block_around(op: Operation, scope: Operation) -> BlockOp | None:
    found: BlockOp | None = None
    for parent in (op, *ancestors(op)):
        if parent is scope:
            return found
        if isinstance(parent, BlockOp | InitOp):
            found = parent if isinstance(parent, BlockOp) else None
    return None


def why_not_complete(block: BlockOp) -> Violation | str | None:
    """A *complete* block computes distinct elements per instance: all iterators are spatial, there is no init, it is
    the only writer of its outputs, reads neither these nor buffers that may overlap them, and contains no opaque op."""
    name = f'block "{block.label}"'
    if block.init is not None:
        return f"{name} has an init: it is a reduction"
    if any(kind is IterKind.REDUCE for kind in block.kinds):
        return f"{name} has a reduce iterator"
    named = why_opaque(block, name) or why_named_twice(block) or why_overlapping(block)
    return named or why_not_sole_writer(block, reads_own_output=False)


def updates_in_place(block: BlockOp) -> bool:
    """Whether a block is *complete*, except that it reads what it overwrites."""
    if block.init is not None or any(kind is IterKind.REDUCE for kind in block.kinds):
        return False
    unknown = why_opaque(block, "") or why_named_twice(block) or why_overlapping(block)
    if unknown is not None or load_elsewhere(block) is not None:
        return False
    return why_not_sole_writer(block, reads_own_output=True) is None


def reduced_store_indices(block: BlockOp) -> Iterator[tuple[Operation, int, SSAValue]]:
    """Store, dimension and reduce iterator that the index depends on."""
    reduced = [v for v, kind in zip(block.iter_vars, block.kinds, strict=True) if kind is IterKind.REDUCE]
    for op in operations_in(block) if reduced else ():
        if stored_buffer(op) is not None and isinstance(op, memref.StoreOp | AccessPtrOp):
            for dimension, operand in enumerate(op.indices):
                sources = Index.of(operand).sources()
                yield from ((op, dimension, variable) for variable in reduced if variable in sources)


def load_elsewhere(block: BlockOp) -> memref.LoadOp | None:
    """A load from a written buffer, in the init or from an element that is not stored to."""
    places: dict[SSAValue, set[tuple[Index, ...]]] = {}
    for op in operations_in(block):
        if isinstance(op, memref.StoreOp):
            places.setdefault(op.memref, set()).add(tuple(Index.of(i) for i in op.indices))
    for op in operations_in(block):
        if isinstance(op, memref.LoadOp):
            place = tuple(Index.of(i) for i in op.indices)
            if place not in places.get(op.memref, {place}):
                return op
            if op.memref in places and block.init is not None and block.init.is_ancestor(op):
                return op
    return None


def why_not_sole_writer(block: BlockOp, *, reads_own_output: bool) -> Violation | str | None:
    name = f'block "{block.label}"'
    scope = scope_of(block)
    for buffer in buffers_written(block):
        uses = (use.operation for name_of_it in (buffer, *views_of(buffer)) for use in name_of_it.uses)
        stores = (op for op in uses if buffer in buffers_stored_by(op))
        alone = all(block.is_ancestor(store) for store in stores)
        others = [] if alone else [b.label for b in writers_of(buffer, scope) if b is not block]
        if others:
            return f'{name} is not the only writer of {buffer.name_hint}: block "{others[0]}" writes it too'
        for other in overlapping(buffer):
            writers = [b.label for b in writers_of(other, scope) if b is not block]
            if writers:
                detail = f'{name} may not be the only writer of {buffer.name_hint}: block "{writers[0]}" writes '
                detail += f"{other.name_hint}, and {overlap_text(buffer, other)}"
                return Violation(detail, "not proved", {}, overlap_advice(buffer))
        if not reads_own_output and buffer in buffers_loaded(block):
            return f"{name} reads {buffer.name_hint}, which it writes"
    return None


def precedes(first: Operation, second: Operation) -> bool:
    path = [second, *ancestors(second)]
    op: Operation | None = first
    while op is not None:
        for other in path:
            if other.parent is op.parent and other is not op and isinstance(op.parent, Block):
                return bool(preceding((op,), other))
        op = op.parent_op()
    return False


def preceding(operations: Collection[Operation], place: Operation | None) -> set[Operation]:
    """The `operations`, in one block, that precede `place` (None: the end). Searches in both directions to find
    neighbours among thousands of ops early."""
    if place is None:
        return set(operations)
    left, found = set(operations) - {place}, set[Operation]()
    before, after = place.prev_op, place.next_op
    while left and before is not None:
        if after is None:
            return found | left
        if before in left:
            found.add(before)
            left.discard(before)
        left.discard(after)
        before, after = before.prev_op, after.next_op
    return found


def child_towards(ancestor: Operation, op: Operation) -> Operation:
    child = op
    for parent in ancestors(op):
        if parent is ancestor:
            return child
        child = parent
    raise CompileError.at(op, f"{op.name} is not inside the given {ancestor.name}")


def is_plain(block: BlockOp, *, alone: bool = True) -> bool:
    """Whether a block without nested blocks is in a nest with one serial loop per iterator, in order, without
    annotations; if `alone`, no other block is in it."""
    loops = loops_around(block)
    if len(loops) != len(block.iter_vars):
        return False
    variables = [loop.induction_variable for loop in loops]
    if [binding.single_value for binding in bindings_of(block)] != variables or block.guards:
        return False
    if list(block.extents) != [loop.extent for loop in loops]:
        return False
    if not set(block.attributes) <= {COMMUTATIVE} or bool(operations_of(block.body, BlockOp)):
        return False
    is_serial = all(loop.kind.data is LoopKind.SERIAL and not loop.attributes for loop in loops)
    return is_serial and (not alone or all(map(holds_one_nest, loops)))


def holds_one_nest(loop: ForOp) -> bool:
    return sum(isinstance(op, ForOp | BlockOp) or bool(op.regions) for op in loop.body.block.ops) == 1


def why_not_plain(function: FuncOp, *, alone: bool = True) -> str | None:
    """Explain why a function counts as scheduled. Blocks may share loops unless `alone`."""
    asked = {MAX_PARALLEL, MAX_VECTORIZE, *UNROLL_ANNOTATIONS} & function.attributes.keys()
    if asked:
        return f"the function has annotations: {', '.join(sorted(asked))}"
    for block in child_blocks(function):
        if not is_plain(block, alone=alone):
            return f'block "{block.label}" is not alone in a nest of serial loops, one for each iterator'
    for op in operations_in(function):
        if isinstance(op, memref.AllocOp) and not isinstance(op.memref.type.memory_space, NoneAttr):
            return f"temporary {op.memref.name_hint} has a memory scope"
        if isinstance(op, memref.AllocOp) and op.attributes:
            return f"temporary {op.memref.name_hint} has attributes: {', '.join(op.attributes)}"
    return None
