"""low-canonicalize: CSE, loop-invariant code motion and dead code elimination."""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from weft.dialects.effects import Effects, effects_of, is_pure, may_trap, only_computes
from weft.dialects.low import PARAMS, ParallelForOp
from weft.dialects.low_kernel import KERNEL
from weft.dialects.traversal import operations_in
from weft.passes.index_builders import erase_if_unused

_ALLOCATIONS = frozenset((memref.AllocaOp, memref.AllocOp))
_NESTS = frozenset((scf.ForOp, scf.IfOp, ParallelForOp))


@dataclass(frozen=True)
class LowCanonicalizePass(ModulePass):
    """Clean up low functions, without changing their behaviour:

    - constants are at the start of the function, each once;
    - equal computations in one scope are one (common subexpressions);
    - computations invariant in an `scf.for` precede it, except divisions by possible zeros; they stay in a
      `low.parallel_for`, whose body may be another function;
    - unused computations, loads and temporaries, and empty loops and conditions, are erased.

    Requires: low functions.

    Leaves: low functions.
    """

    name = "low-canonicalize"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.ops:
            if not isinstance(function, FuncOp) or not function.body.blocks:
                continue
            if PARAMS in function.attributes or KERNEL in function.attributes:
                canonicalize(function)


def canonicalize(function: FuncOp) -> None:
    _erase_unused(function.body.block)
    entry = _Constants(function.body.block)
    _share(function.body.block, {}, entry)
    for loop in [op for op in operations_in(function, inner_first=True) if isinstance(op, scf.ForOp)]:
        _hoist_invariants(loop)
    _erase_unused(function.body.block)


@dataclass
class _Constants:
    block: Block
    known: dict[object, SSAValue] = field(default_factory=dict[object, SSAValue])
    last: Operation | None = None

    def share(self, op: arith.ConstantOp) -> None:
        found = self.known.get(op.value)
        if found is not None:
            op.result.replace_all_uses_with(found)
            Rewriter.erase_op(op)
            return
        self.known[op.value] = op.result
        first = self.block.first_op
        if self.last is not None:
            op.detach()
            self.block.insert_op_after(op, self.last)
        elif first is not None and first is not op:
            op.detach()
            self.block.insert_op_before(op, first)
        self.last = op


def _share(block: Block, outer: dict[object, Operation], constants: _Constants) -> None:
    known = dict(outer) if outer else {}
    for op in list(block.ops):
        if isinstance(op, arith.ConstantOp):
            constants.share(op)
        elif is_pure(op):
            key = (
                op.name,
                tuple(op.operands),
                tuple(op.result_types),
                frozenset(op.properties.items()),
                frozenset(op.attributes.items()),
            )
            found = known.get(key)
            if found is None:
                known[key] = op
                continue
            for old, new in zip(op.results, found.results, strict=True):
                old.replace_all_uses_with(new)
            Rewriter.erase_op(op)
        else:
            # Shares only within the body, to capture no outer ops.
            inside = {} if isinstance(op, ParallelForOp) else known
            for region in op.regions:
                for inner in region.blocks:
                    _share(inner, inside, constants)


def _hoist_invariants(loop: scf.ForOp) -> None:
    inside: set[SSAValue] = set(loop.body.block.args)
    parent = loop.parent
    if parent is None:
        return
    for op in list(loop.body.block.ops):
        if is_pure(op) and not any(operand in inside for operand in op.operands) and not may_trap(op):
            op.detach()
            parent.insert_op_before(op, loop)
        else:
            inside.update(op.results)


def _erase_unused(block: Block) -> None:
    """In reverse order, so that a single walk suffices."""
    for op in reversed(list(block.ops)):
        if op.parent is not block:
            continue  # erased together with its last use
        for region in op.regions:
            for inner in region.blocks:
                _erase_unused(inner)
        if any([result.first_use is not None for result in op.results]):
            if type(op) in _ALLOCATIONS and _is_never_read(op.results[0]):
                _erase_writes(op)
            else:
                continue
        if only_computes(op) or type(op) in _ALLOCATIONS or _is_idle(op):
            Rewriter.erase_op(op)


def _is_idle(op: Operation) -> bool:
    if type(op) not in _NESTS or op.results:
        return False
    return all(type(inner) is scf.YieldOp for region in op.regions for block in region.blocks for inner in block.ops)


def _is_never_read(buffer: SSAValue) -> bool:
    users = [use.operation for use in buffer.uses]
    return all(effects_of(user) == Effects(writes=(buffer,)) and not user.results for user in users)


def _erase_writes(alloc: Operation) -> None:
    for op in [use.operation for use in alloc.results[0].uses]:
        operands = list(op.operands)
        Rewriter.erase_op(op)
        erase_if_unused(operands)
