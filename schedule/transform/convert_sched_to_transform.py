"""convert-sched-to-transform: a schedule as a transform script on linalg."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

from xdsl.context import Context
from xdsl.dialects.builtin import (
    BoolAttr,
    DenseArrayBase,
    DictionaryAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    UnitAttr,
    i32,
    i64,
)
from xdsl.dialects.transform import AnyOpType, AnyParamType, MatchOp, NamedSequenceOp
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from weft.analysis.block_scopes import bindings_of, functions, loops_around
from weft.dialects import sched
from weft.dialects.tir import BlockOp, ForOp
from weft.dialects.tir_kinds import ORIGIN, LoopKind
from weft.dialects.traversal import copy_of, operations_in
from weft.dialects.upstream.transform import OPERATIONS, YieldOp, no_flags
from weft.schedule.traces import steps_of
from weft.schedule.transform.payload import Origin, Payload
from weft.support.errors import CompileError
from weft.support.locations import location_of

_FORMS: Final = frozenset(
    (
        *("split", "tile", "reorder", "parallel", "vectorize", "unroll", "compute_at", "annotate", "unannotate"),
        *("add_unit_loop", "decompose_reduction", "reorder_block_iter_var"),
    )
)
"""The primitives that only affect loops around blocks, from which the script is derived."""
_CLASSES: Final[Mapping[str, Any]] = {one.name: one for one in OPERATIONS}
_ANY: Final = AnyOpType()


@dataclass(frozen=True)
class ConvertSchedToTransformPass(ModulePass):
    """Convert a module's schedules to a transform script for its linalg payload.

    ```mlir
    %matmul = sched.get_block "matmul" in @f : block
    %m, %n, %k = sched.get_loops %matmul : loop, loop, loop
    %n0, %n1 = sched.split %n {factors = [0, 8]} : loop, loop
    sched.reorder %n0, %m, %n1, %k
    // becomes
    %0 = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
    %1, %2 = transform.structured.tile_using_for %0 tile_sizes [0, 8] : (!transform.any_op) -> (...)
    ```
    The schedule is checked on the payload's block loops. The script generates the resulting loops: tiles, outermost
    first, with fused producers; then vectors and unrolled loops.

    Raises `CompileError` that lists all steps without a form in the transform dialect.

    Requires: functions with operations of `linalg`, and `sched.func`s that name their blocks as `convert-linalg-to-tir`
    does.

    Leaves: the functions unchanged, and `transform.named_sequence @__transform_main`.
    """

    name = "convert-sched-to-transform"

    promises: tuple[str, ...] = ("reassoc",)
    """Assumptions of the payload: `noalias`, `contract`, `reassoc`. MLIR reassociates the reductions of linalg."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        schedules = [one for one in op.body.block.ops if isinstance(one, sched.FuncOp)]
        if not schedules:
            raise CompileError("the module has no sched.func")
        bare = ModuleOp([copy_of(one) for one in op.body.block.ops if not isinstance(one, sched.FuncOp)])
        payload = Payload(bare, self.promises, 0)
        for schedule in schedules:
            payload.schedule.replay(schedule)
        script = script_of(payload, [step for schedule in schedules for step in steps_of(schedule)])
        for schedule in schedules:
            Rewriter.erase_op(schedule)
        op.body.block.add_op(script)
        op.attributes["transform.with_named_sequence"] = UnitAttr()


def transform_script(source: ModuleOp, trace: sched.FuncOp, promises: Sequence[str]) -> str:
    """A script with the effect of a trace on `source`, as text."""
    payload = Payload(source, promises, 0)
    payload.schedule.replay(trace)
    return str(script_of(payload, steps_of(trace)))


def script_of(payload: Payload, steps: Sequence[sched.StepOp]) -> NamedSequenceOp:
    """Raises `CompileError` for steps without a form."""
    original = operations_in(payload.schedule.original)
    others = {block.label for block in original if isinstance(block, BlockOp) and ORIGIN not in block.attributes}
    for step in steps:
        if isinstance(step, sched.GetBlockOp) and step.label.data in others:
            raise CompileError.at(step, f"block '{step.label.data}' is no operation of linalg")
    without = [step for step in steps if not isinstance(step, sched.QueryOp | sched.SamplingOp) and not _has_form(step)]
    if without:
        places = [(f"'{step.name}' has no form", place) for step in without if (place := location_of(step)) is not None]
        names = ", ".join(dict.fromkeys(step.name for step in without))
        raise CompileError(f"no form in the transform dialect: {names}", notes=tuple(places))
    return _Script(payload).build()


def _has_form(step: sched.StepOp) -> bool:
    return step.name.removeprefix("sched.") in _FORMS


@dataclass
class _Script:
    """A script derived from the loops around scheduled blocks.

    An op includes its innermost loops over single elements, one per dimension in order. Each outer loop is a tiling by
    one size.
    """

    payload: Payload
    body: Block = field(default_factory=lambda: Block(arg_types=[_ANY]))
    handles: dict[int, SSAValue] = field(default_factory=dict[int, SSAValue])
    """Number of the origin of an op -> its handle."""

    def build(self) -> NamedSequenceOp:
        self.body.args[0].name_hint = "root"
        for function in functions(self.payload.schedule.mod):
            blocks = [op for op in operations_in(function) if isinstance(op, BlockOp) and ORIGIN in op.attributes]
            changed = [block for block in blocks if self._is_changed(block)]
            if changed:
                self._match(function.sym_name.data, [self._origin(block) for block in blocks])
            for nest in [op for op in function.body.block.ops if isinstance(op, ForOp)]:
                inside = [op for op in operations_in(nest) if isinstance(op, BlockOp) and op in blocks]
                if inside and any(block in changed for block in inside):
                    self._tile(inside[-1], inside, 0)
        self.body.add_op(YieldOp.create())
        return NamedSequenceOp("__transform_main", ([_ANY], []), Region(self.body))

    def _origin(self, block: BlockOp) -> Origin:
        return self.payload.origins[cast("IntegerAttr", block.attributes[ORIGIN]).value.data]

    def _is_changed(self, block: BlockOp) -> bool:
        around = loops_around(block)
        plain = len(around) == len(block.iter_vars) and all(
            index.single_value is loop.induction_variable
            for index, loop in zip(bindings_of(block), around, strict=True)
        )
        notes = {key for key in block.attributes if not key.startswith("tir.")} - {"block_name"}
        return (
            not plain or bool(notes) or any(loop.kind.data is not LoopKind.SERIAL or loop.attributes for loop in around)
        )

    def _add(self, name: str, operands: Sequence[SSAValue], results: int, /, **properties: Attribute) -> list[SSAValue]:
        op = _CLASSES[f"transform.{name}"].create(
            operands=operands, result_types=[_ANY] * results, properties=properties
        )
        self.body.add_op(op)
        return list(op.results)

    def _match(self, function: str, origins: Sequence[Origin]) -> None:
        root: SSAValue = self.body.args[0]
        if len(functions(self.payload.source)) > 1:
            found = MatchOp(root, ["func.func"], op_attrs=DictionaryAttr({"sym_name": StringAttr(function)}))
            self.body.add_op(found)
            root = found.result
        every = [o for o in self.payload.origins.values() if o.function == function]
        for name in dict.fromkeys(origin.name for origin in origins):
            found = MatchOp(root, [name])
            self.body.add_op(found)
            same = [origin for origin in every if origin.name == name]
            split = [found.result] if len(same) == 1 else self._add("split_handle", [found.result], len(same))
            self.handles |= {origin.number: handle for origin, handle in zip(same, split, strict=True)}

    def _tile(self, block: BlockOp, inside: Sequence[BlockOp], depth: int) -> None:
        """Tile by a block's loops from `depth` on, and fuse the preceding blocks in them."""
        number, around = self._origin(block).number, loops_around(block)
        own = self._own_loops(block, around[depth:])
        outer = [loop for loop in around[depth : len(around) - own] if not _is_idle(block, loop)]
        producers = [other for other in inside if other is not block]
        loops: list[tuple[ForOp, SSAValue]] = []
        at = 0
        while at < len(outer):
            group = [outer[at]]
            is_parallel = outer[at].kind.data is LoopKind.PARALLEL
            while is_parallel and at + len(group) < len(outer) and self._joins(block, group, outer[at + len(group)]):
                group.append(outer[at + len(group)])
            sizes = [0] * len(block.iter_vars)
            for loop in group:
                dimension, stride = self._step(block, loop)
                sizes[dimension] = stride
            attribute = DenseArrayBase.from_list(i64, sizes)
            if is_parallel:
                segments = DenseArrayBase.from_list(i32, [1, 0, 0, 0, 0])
                tiled, made = self._add(
                    "structured.tile_using_forall",
                    [self.handles[number]],
                    2,
                    static_tile_sizes=attribute,
                    operandSegmentSizes=segments,
                )
            else:
                tiled, made = self._add(
                    "structured.tile_using_for",
                    [self.handles[number]],
                    2,
                    static_sizes=attribute,
                    scalable_sizes=no_flags(len(sizes)),
                )
            self.handles[number] = tiled
            loops.append((group[-1], made))
            for producer in reversed(producers):
                if all(loop.is_ancestor(producer) for loop in group):
                    of = self._origin(producer).number
                    self.handles[of], _ = self._add("structured.fuse_into_containing_op", [self.handles[of], made], 2)
            self._annotate(made, group[0].attributes)
            at += len(group)
        for producer in producers:
            shared = [loop for loop in outer if loop.is_ancestor(producer)]
            if not shared:
                raise CompileError.at(
                    producer, f"block '{producer.label}' is in a nest with others, but in no loop of '{block.label}'"
                )
            self._tile(producer, [producer], depth + len(shared))
        self._annotate(self.handles[number], {k: v for k, v in block.attributes.items() if k != "block_name"})
        if any(loop.kind.data is LoopKind.VECTORIZED for loop in around[len(around) - own :]):
            self._add("structured.vectorize", [self.handles[number]], 0)
        for loop, made in reversed(loops):
            if loop.kind.data is LoopKind.UNROLLED and isinstance(loop.extent, int):
                self._add("loop.unroll", [made], 0, factor=IntegerAttr(loop.extent, i64))

    def _joins(self, block: BlockOp, group: Sequence[ForOp], loop: ForOp) -> bool:
        if loop.kind.data is not LoopKind.PARALLEL or next(iter(group[-1].body.block.ops)) is not loop:
            return False
        dimensions = [self._step(block, one)[0] for one in group]
        return self._step(block, loop)[0] > dimensions[-1] and loop.next_op is None

    def _step(self, block: BlockOp, loop: ForOp) -> tuple[int, int]:
        found = [
            (dimension, index.coefficient(loop.induction_variable))
            for dimension, index in enumerate(bindings_of(block))
            if index.depends_on([loop.induction_variable])
        ]
        if len(found) != 1 or found[0][1] < 1:
            name = loop.induction_variable.name_hint
            raise CompileError.at(
                block, f"loop %{name} around block '{block.label}' is not over tiles of one dimension"
            )
        return found[0]

    def _own_loops(self, block: BlockOp, around: Sequence[ForOp]) -> int:
        """Loops that are part of the op."""
        count, last = 0, len(block.iter_vars)
        for loop in reversed(around):
            kinds = (LoopKind.SERIAL, LoopKind.VECTORIZED) if count == 0 else (LoopKind.SERIAL,)
            only = [op for op in loop.body.block.ops if isinstance(op, ForOp | BlockOp)]
            if loop.kind.data not in kinds or loop.attributes.keys() - {"kind"} or len(only) > 1:
                break
            if _is_idle(block, loop):
                count += 1
                continue
            dimension, stride = self._step(block, loop)
            if stride != 1 or dimension >= last:
                break
            count, last = count + 1, dimension
        return count

    def _annotate(self, handle: SSAValue, attributes: Mapping[str, Attribute]) -> None:
        for name, value in attributes.items():
            if name.startswith(("tir.", "low.")) or name in ("kind", "location"):
                continue
            if isinstance(value, UnitAttr) or value == BoolAttr.from_bool(True):
                self._add("annotate", [handle], 0, name=StringAttr(name))
                continue
            param = _CLASSES["transform.param.constant"].create(
                properties={"value": value}, result_types=[AnyParamType()]
            )
            self.body.add_op(param)
            self._add("annotate", [handle, param.results[0]], 0, name=StringAttr(name))


def _is_idle(block: BlockOp, loop: ForOp) -> bool:
    return loop.extent == 1 and not any(index.depends_on([loop.induction_variable]) for index in bindings_of(block))
