"""Annotation of the regions that blocks access."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from math import prod
from typing import cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import AffineMapAttr, FunctionType, ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue
from xdsl.rewriter import Rewriter

from weft.analysis.accesses import Access, accesses_of_instance, is_fixed, is_loop_value
from weft.analysis.code_motion import disturbed_unnamed
from weft.analysis.dependence import buffer_name
from weft.analysis.index import Index, exprs_of
from weft.analysis.questions import instances_where, point_text
from weft.dialects.effects import is_pure
from weft.dialects.tir import AccessRegionOp, BlockOp, ReadsOp, WritesOp
from weft.passes.index_builders import insert_at_start
from weft.passes.schedule.caching import buffer_at, buffer_extents
from weft.passes.schedule.index_maps import why_not_function
from weft.passes.schedule.primitive import Plan, Primitive
from weft.support.errors import Violation


@dataclass(frozen=True)
class RegionPlan(Plan):
    block: BlockOp
    buffer: SSAValue
    kind: type[AccessRegionOp]
    corner: tuple[Index, ...]
    sizes: tuple[int, ...]

    def rewrite(self) -> tuple[Operation, ...]:
        exprs, operands = exprs_of(self.corner)
        region = self.kind(self.buffer, exprs, operands, self.sizes)
        region.location = self.block.location
        body = self.block.body.block
        for op in list(body.ops):
            if isinstance(op, self.kind) and op.buffer is self.buffer:
                Rewriter.erase_op(op)
        insert_at_start(body, region)
        return ()


@dataclass(frozen=True)
class AnnotateBufferAccess(Primitive):
    """Annotate the region of a buffer that an instance of a block reads or writes, instead of inferring it.

    Requirements:
    1. the block reads or writes a buffer at this index
    2. the region is a box of constant size over the iterators: a begin and an end for each dimension, in turn, that
       differ by a constant of at least 1, an index of 64 bits
    3. every access of an instance is in the region: indices computed by other than integer arithmetic are evaluated at
       each value of the iterators

    Replaces an older annotation for that buffer.

    ```mlir
    tir.block "C" iters(%vi: spatial<30>) = [%i] { memref.load %A[%vi] ... memref.load %A[%vi + 2] ... }
    // annotate_buffer_access "C" {index = 0, buffer_type = "read", region = (i) -> (i, i + 4)}
    tir.block "C" iters(%vi: spatial<30>) = [%i] {
      tir.reads %A[%vi] sizes [4]
      memref.load %A[%vi] ... memref.load %A[%vi + 2] ... }
    ```
    """

    block: BlockOp
    index: int
    buffer_type: str
    region: AffineMapAttr

    def plan(self) -> RegionPlan:
        block = self.block
        buffer = buffer_at(self, block, self.buffer_type, self.index)
        rank = len(buffer_extents(buffer))
        map_ = self.region.data
        self.require(2, why_not_function(map_, len(block.iter_vars)))
        if len(map_.results) != 2 * rank:
            detail = f"it has {len(map_.results)} results"
            self.refuse(2, Violation(detail, legal=f"{2 * rank}: begin and end of {rank} dimensions"))
        results = [Index.of_expr(expr, list(map(Index.of, block.iter_vars))) for expr in map_.results]
        corner = tuple(results[::2])
        sizes = [end - begin for begin, end in zip(corner, results[1::2], strict=True)]
        for at, size in enumerate(sizes):
            if not size.is_constant or not 1 <= size.constant < 1 << 63:
                self.refuse(2, f"dimension {at} ends {size!r} above its begin")
        constants = tuple(size.constant for size in sizes)
        wants = self.buffer_type == "write"
        self.require(3, disturbed_unnamed((block,), buffer, writes=wants))
        for access in accesses_of_instance(block):
            if access.buffer is buffer and access.is_write == wants:
                self._require_inside(access, corner, constants)
        return RegionPlan(block, buffer, WritesOp if wants else ReadsOp, corner, constants)

    def _require_inside(self, access: Access, corner: Sequence[Index], sizes: Sequence[int]) -> None:
        name, extents = buffer_name(access.buffer), buffer_extents(access.buffer)
        for at, (first, size) in enumerate(zip(corner, sizes, strict=True)):
            whole = first.is_constant and first.constant <= 0 and extents[at].is_constant
            if whole and first.constant + size >= extents[at].constant:
                continue
            offset = None if access.indices is None else access.indices[at] - first
            own = self.block.iter_vars
            computed = None if offset is None else _Computed.of(self.block, offset)
            if offset is not None and computed is not None:
                self._require_all_inside(access, computed, offset, size, at)
                continue
            if offset is None or not all(v in own or is_loop_value(v) or is_fixed(v) for v in offset.values()):
                detail = f"which elements of {name} it touches is not known"
                self.refuse(3, Violation(detail, "not proved"), access.op)
            for beyond in (offset * -1 - 1, offset - size):
                question = instances_where(access, beyond)
                # including instances that only another part of the block runs
                for variable in own:
                    question.row(Index.of(variable), question.naming(""))
                with self.deciding(3, access.op):
                    found = question.counterexample()
                if found is None:
                    continue
                instance = {v.name_hint or f"v{n}": found.value("", v) for n, v in enumerate(self.block.iter_vars)}
                verb = "writes" if access.is_write else "reads"
                where = f"an element of {name} that is outside, in dimension {at}"
                detail = f"instance {point_text(instance.items())} {verb} {where}"
                if not access.conditions.exact:
                    self.refuse(3, Violation(f"leaving out conditions, {detail}", "not proved"), access.op)
                validate = partial(found.holds, otherwise=True)
                violation = Violation(detail, counterexample={"instance": instance}, validate=validate)
                self.refuse(3, violation, access.op)

    def _require_all_inside(self, access: Access, computed: _Computed, offset: Index, size: int, at: int) -> None:
        for point, number in computed.numbers(offset):
            if 0 <= number < size:
                continue
            verb = "writes" if access.is_write else "reads"
            where = f"an element of {buffer_name(access.buffer)} that is outside, in dimension {at}"
            detail = f"instance {point_text(point.items())} {verb} {where}"
            conditional = access.conditions.indices or not access.conditions.exact
            if conditional:
                self.refuse(3, Violation(f"leaving out conditions, {detail}", "not proved"), access.op)
            self.refuse(3, Violation(detail, counterexample={"instance": point}), access.op)


_MOST_POINTS = 1 << 14


@dataclass(frozen=True)
class _Computed:
    """Values that pure operations compute from iterators, as for a resized image."""

    values: tuple[SSAValue, ...]
    operations: tuple[Operation, ...]
    iterators: tuple[BlockArgument, ...]
    extents: tuple[int, ...]

    @staticmethod
    def of(block: BlockOp, index: Index) -> _Computed | None:
        """None if no value is computed, if values depend on memory or on others, or if there are too many points."""
        own = block.body.block
        values = tuple(v for v in index.values() if isinstance(v.owner, Operation) and not is_fixed(v))
        operations: dict[Operation, None] = {}
        used = {value for value in index.values() if value not in values}

        def visit(value: SSAValue) -> bool:
            op = value.owner
            if not isinstance(op, Operation):
                used.add(value)
                return value in block.iter_vars
            if op in operations:
                return True
            if not is_pure(op) or not (op.parent is own or isinstance(op, arith.ConstantOp)):
                return False
            found = all(map(visit, op.operands))
            operations[op] = None
            return found

        if not values or not all(map(visit, values)):
            return None
        iterators = tuple(variable for variable in block.iter_vars if variable in used)
        extents = [block.extents[variable.index] for variable in iterators]
        numbers = tuple(extent for extent in extents if isinstance(extent, int))
        if len(iterators) < len(used) or len(numbers) < len(extents) or prod(numbers) > _MOST_POINTS:
            return None
        return _Computed(values, tuple(operations), iterators, numbers)

    def numbers(self, index: Index) -> Iterator[tuple[dict[str, int], int]]:
        from weft.interp.interpreter import Interpreter  # start-up: 50 ms

        entry = Block(arg_types=[variable.type for variable in self.iterators])
        copies: dict[SSAValue, SSAValue] = dict(zip(self.iterators, entry.args, strict=True))
        for op in self.operations:
            entry.add_op(op.clone(copies))
            copies.update(zip(op.results, cast("Operation", entry.last_op).results, strict=True))
        results = [copies[value] for value in self.values]
        entry.add_op(ReturnOp(*results))
        type_ = FunctionType.from_lists([a.type for a in entry.args], [result.type for result in results])
        interpreter = Interpreter(ModuleOp([FuncOp("index", type_, Region(entry))]))
        for point in product(*map(range, self.extents)):
            found: object = interpreter.call("index", *point)
            numbers = cast("tuple[int, ...]", found if isinstance(found, tuple) else (found,))
            computed = dict(zip(self.values, numbers, strict=True))
            known = {**dict(zip(self.iterators, point, strict=True)), **computed}
            names = {v.name_hint or f"v{v.index}": number for v, number in zip(self.iterators, point, strict=True)}
            yield names, index.evaluate(lambda value, known=known: int(known[value]))
