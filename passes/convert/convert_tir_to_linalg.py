"""convert-tir-to-linalg: structured blocks as `linalg.generic`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeGuard

from xdsl.context import Context
from xdsl.dialects import memref
from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, MemRefType, ModuleOp
from xdsl.dialects.linalg.attrs import IteratorType, IteratorTypeAttr
from xdsl.dialects.linalg.ops import FillOp, YieldOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from weft.analysis.index import Index, exprs_of
from weft.dialects.aliasing import may_overlap
from weft.dialects.effects import effects_of
from weft.dialects.tir import AccessRegionOp, AssumeShapeOp, BlockOp, ForOp
from weft.dialects.tir_kinds import PART_OF, TIR_FUNCTION, IterKind, LoopKind
from weft.dialects.traversal import copy_of
from weft.dialects.upstream.linalg import GenericOp, IndexOp
from weft.passes.tir.tir_pass import tir_functions
from weft.support.errors import remark


@dataclass(frozen=True)
class ConvertTirToLinalgPass(ModulePass):
    """Convert nests of loops around one block to linalg on memrefs, from the block's domain, reads and writes; the
    loops do not matter.

    ```mlir
    func.func @f(%A: memref<8x4xf32>, %B: memref<8xf32>) {
      %zero = arith.constant 0.0 : f32
      tir.for %i in 8 {
        tir.for %k in 4 {
          tir.block "B" iters(%vi: spatial<8>, %vk: reduce<4>) = [%i, %k] {
            tir.init {
              memref.store %zero, %B[%vi] : memref<8xf32>
            }
            %a = memref.load %A[%vi, %vk] : memref<8x4xf32>
            %b = memref.load %B[%vi] : memref<8xf32>
            %s = arith.addf %b, %a : f32
            memref.store %s, %B[%vi] : memref<8xf32>
          }
        }
      }
      func.return
    }
    // becomes
    func.func @f(%A: memref<8x4xf32>, %B: memref<8xf32>) {
      %zero = arith.constant 0.0 : f32
      linalg.fill ins(%zero : f32) outs(%B : memref<8xf32>)
      linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>],
                      iterator_types = ["parallel", "reduction"]} ins(%A : memref<8x4xf32>) outs(%B : memref<8xf32>) {
      ^bb0(%a: f32, %b: f32):
        %s = arith.addf %b, %a : f32
        linalg.yield %s : f32
      }
      func.return
    }
    ```
    Requires: functions of block loops over buffers of static shape.

    Leaves: linalg for blocks that read and write at affine functions of their iterators, with extents that equal
    dimensions of their buffers. Other nests stay, with a remark, or, with `strict`, a `CompileError`.
    """

    name = "convert-tir-to-linalg"

    strict: bool = False
    """Whether it is an error, not a remark, if the pass finds nothing, or does not convert a nest."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = list(tir_functions(op))
        if not functions:
            self._tell(op, "the module has no function of block loops")
        for function in functions:
            for outer in list(function.body.block.ops):
                if isinstance(outer, ForOp | BlockOp):
                    try:
                        new = _Structured(outer).ops()
                    except _Left as left:
                        self._tell(outer, str(left))
                        continue
                    for one in new:
                        one.location = outer.location
                    Rewriter.replace_op(outer, new, [])
                elif isinstance(outer, AssumeShapeOp):
                    self._tell(outer, "linalg does not state that extents may differ")
            if not any(inner.name.startswith("tir.") for inner in function.walk()):
                function.attributes.pop(TIR_FUNCTION, None)

    def _tell(self, op: Operation, reason: str) -> None:
        remark(op, f"{self.name}: {reason}", strict=self.strict)


class _Left(Exception):
    """The reason why a nest is not converted."""


@dataclass
class _Structured:
    outer: Operation
    block: BlockOp = field(init=False)

    def __post_init__(self) -> None:
        op = self.outer
        while isinstance(op, ForOp):
            if op.kind.data is LoopKind.THREAD_BINDING:
                raise _Left("loops bound to threads have no form in linalg")
            inner = list(op.body.block.ops)
            if len(inner) != 1:
                raise _Left(f"loop %{op.body.block.args[0].name_hint} holds more than one loop or block")
            op = inner[0]
        if not isinstance(op, BlockOp):
            raise _Left(f"{op.name} is between the loops")
        if op.guards or PART_OF in op.attributes:
            raise _Left(f'block "{op.label}" runs on a part of its domain')
        self.block = op

    def ops(self) -> list[Operation]:
        block, init = self.block, self.block.init
        body = [op for op in block.body.block.ops if not isinstance(op, AccessRegionOp) and op is not init]
        store = body[-1] if body else None
        if not _is_store(store):
            raise _Left(f'block "{block.label}" does not end in its only store')
        output, place = store.memref, self._map(store.indices)
        inputs: dict[tuple[SSAValue, AffineMap], list[memref.LoadOp]] = {}
        accumulators: list[memref.LoadOp] = []
        for op in body[:-1]:
            effects = effects_of(op)
            if isinstance(op, memref.LoadOp):
                map_ = self._map(op.indices)
                if op.memref is output and map_ == place:
                    accumulators.append(op)
                elif op.memref is output:
                    raise _Left(f'block "{block.label}" reads other elements of what it writes')
                else:
                    inputs.setdefault((op.memref, map_), []).append(op)
            elif op.regions or effects.reads or effects.writes or effects.is_opaque or effects.allocates:
                raise _Left(f'block "{block.label}" holds {op.name}')
        new: list[Operation] = []
        if init is not None:
            new.append(self._fill(init.body.block, output, place, [buffer for buffer, _ in inputs]))
        self._check_extents([*inputs, (output, place)])
        new.append(self._generic(body, store, inputs, accumulators, place))
        return new

    def _map(self, indices: Sequence[SSAValue]) -> AffineMap:
        exprs, operands = exprs_of([Index.of(index) for index in indices])
        places: dict[SSAValue, int] = {variable: at for at, variable in enumerate(self.block.iter_vars)}
        if any(operand not in places for operand in operands):
            raise _Left(f'block "{self.block.label}" is indexed by other values than its iterators')
        dims: list[AffineExpr] = [AffineDimExpr(places[operand]) for operand in operands]
        return AffineMap(len(places), 0, tuple(expr.replace_dims_and_symbols(dims, []) for expr in exprs))

    def _check_extents(self, accesses: Sequence[tuple[SSAValue, AffineMap]]) -> None:
        """Each extent is that of a buffer dimension that only its iterator indexes."""
        label = self.block.label
        for at, extent in enumerate(self.block.extents):
            shapes = [
                shape[position]
                for buffer, map_ in accesses
                for shape in (_shape(buffer),)
                for position, expr in enumerate(map_.results)
                if isinstance(expr, AffineDimExpr) and expr.position == at
            ]
            if not isinstance(extent, int) or set(shapes) != {extent}:
                name = self.block.iter_vars[at].name_hint
                raise _Left(f'no buffer of block "{label}" has a dimension that determines the extent of %{name}')

    def _fill(self, init: Block, output: SSAValue, place: AffineMap, inputs: Sequence[SSAValue]) -> Operation:
        label = self.block.label
        store = init.first_op
        if store is not init.last_op or not _is_store(store) or self._map(store.indices) != place:
            raise _Left(f'the init of block "{label}" is more than a value')
        if store.value.owner is self.block.body.block:
            raise _Left(f'the init of block "{label}" depends on the instance')
        dims = [expr.position for expr in place.results if isinstance(expr, AffineDimExpr)]
        spatial = [at for at, kind in enumerate(self.block.kinds) if kind is IterKind.SPATIAL]
        if len(dims) != len(place.results) or sorted(dims) != spatial:
            raise _Left(f'block "{label}" does not write all of its buffer')
        if any(may_overlap(output, buffer) for buffer in inputs):
            raise _Left(f'the buffers of block "{label}" may overlap, so its init cannot run before it')
        return FillOp([store.value], [output], ())

    def _generic(
        self,
        body: Sequence[Operation],
        store: memref.StoreOp,
        inputs: dict[tuple[SSAValue, AffineMap], list[memref.LoadOp]],
        accumulators: Sequence[memref.LoadOp],
        place: AffineMap,
    ) -> Operation:
        buffers = [*(buffer for buffer, _ in inputs), store.memref]
        inner = Block(arg_types=[_type(buffer).element_type for buffer in buffers])
        values: dict[SSAValue, SSAValue] = {}
        for argument, loads in zip(inner.args, [*inputs.values(), accumulators], strict=True):
            for load in loads:
                values[load.res] = argument
                argument.name_hint = load.res.name_hint
        needed = _computations_of(store.value, body)
        for at, variable in enumerate(self.block.iter_vars):
            if any(use.operation in needed for use in variable.uses) or store.value is variable:
                index = IndexOp(at)
                inner.add_op(index)
                values[variable] = index.results[0]
        for op in body:
            if op in needed:
                inner.add_op(copy_of(op, values))
        inner.add_op(YieldOp(values.get(store.value, store.value)))
        kinds = [
            IteratorTypeAttr(IteratorType.PARALLEL if kind is IterKind.SPATIAL else IteratorType.REDUCTION)
            for kind in self.block.kinds
        ]
        maps: list[Attribute] = [AffineMapAttr(map_) for _, map_ in inputs]
        return GenericOp(
            [buffer for buffer, _ in inputs],
            [store.memref],
            Region(inner),
            ArrayAttr([*maps, AffineMapAttr(place)]),  # pyright: ignore[reportArgumentType]
            kinds,
        )


def _computations_of(value: SSAValue, body: Sequence[Operation]) -> set[Operation]:
    """The ops of `body`, except loads, that compute a value."""
    found: set[Operation] = set()
    pending = [value]
    while pending:
        op = pending.pop().owner
        if isinstance(op, Operation) and op in body and op not in found and not isinstance(op, memref.LoadOp):
            found.add(op)
            pending += op.operands
    return found


def _is_store(op: Operation | None) -> TypeGuard[memref.StoreOp]:
    return isinstance(op, memref.StoreOp)


def _type(buffer: SSAValue) -> MemRefType[Attribute]:
    if not isinstance(buffer.type, MemRefType):
        raise _Left(f"{buffer.type} is no buffer")
    return buffer.type


def _shape(buffer: SSAValue) -> Sequence[int]:
    return _type(buffer).get_shape()
