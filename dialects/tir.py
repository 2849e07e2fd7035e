"""tir: loop nests over buffers with self-contained blocks (the role of TVM's TensorIR).

Loops (`tir.for`) determine order and kind of execution. A `tir.block` computes one instance over *iterators* with a
domain and a kind. Only its bindings use loop variables, so that loops can be transformed without changing the block.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import cast

from xdsl.dialects import memref
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AffineMapAttr,
    ArrayAttr,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    StringAttr,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, BlockArgument, Dialect, Operation, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import EffectInstance, HasParent, MemoryEffect, NoTerminator, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from weft.dialects.effects import PointerEffects, StatesFact
from weft.dialects.index_map import (
    canonical_map,
    mixed_extents,
    parse_annotations_and_body,
    parse_extent,
    parse_index_map,
    parse_second_map,
    print_annotations_and_body,
    print_index_map,
    static_extents,
)
from weft.dialects.intervals import Interval, interval_of
from weft.dialects.low_kernel import BLOCK_AXES, THREAD_AXES
from weft.dialects.printing import write
from weft.dialects.tir_assume import AssumeOp, AssumeShapeOp, AssumeStridesOp, CheckSizeOp
from weft.dialects.tir_kinds import PART_OF, VIRTUAL_AXES, IterKind, IterKindAttr, LoopKind, LoopKindAttr
from weft.support.locations import record_places


def verify_single_block(op: Operation, region: Region, arguments: int) -> None:
    if len(region.blocks) != 1:
        raise VerifyException(f"{op.name} holds exactly one block of operations, got {len(region.blocks)}")
    if len(region.block.args) != arguments:
        raise VerifyException(f"{op.name} body takes {arguments} index arguments, got {len(region.block.args)}")
    for argument in region.block.args:
        if not isinstance(argument.type, IndexType):
            raise VerifyException(f"{op.name} body arguments are index values, got {argument.type}")


@cache
def _kind(kind: LoopKind) -> LoopKindAttr:
    return LoopKindAttr(kind)


_INDEX = IndexType()


@lru_cache(maxsize=4096)
def _static(extent: int) -> IntegerAttr:
    return IntegerAttr(extent, i64)


AXES = (*BLOCK_AXES, *THREAD_AXES, *VIRTUAL_AXES)
"""Axes that a loop can be bound to."""


@irdl_op_definition
class ForOp(IRDLOperation):
    """A loop from 0 to its extent, step 1. The kind states how iterations run; by default they are serial.

    ```mlir
    tir.for %i in 128 {
      tir.for %j in %n parallel attributes {note = 1 : i64} {
      }
    }
    tir.for %t in 64 thread_binding<"threadIdx.x"> {
    }
    ```
    Syntax: `tir.for %i in extent [kind] [attributes {...}] { body }`, where the extent is a number or an `index` value,
    and the kind `parallel`, `vectorized`, `unrolled` or `thread_binding<"axis">`.
    """

    name = "tir.for"

    dynamic_extent = opt_operand_def(IndexType)
    static_extent = opt_prop_def(IntegerAttr)
    kind = prop_def(LoopKindAttr)
    thread_axis = opt_prop_def(StringAttr)
    body = region_def()

    traits = traits_def(NoTerminator(), RecursiveMemoryEffect())

    def __init__(
        self,
        extent: int | SSAValue,
        body: Region,
        kind: LoopKind = LoopKind.SERIAL,
        thread_axis: str | None = None,
        annotations: Mapping[str, Attribute] | None = None,
    ) -> None:
        properties: dict[str, Attribute] = {"kind": _kind(kind)}
        if isinstance(extent, int):
            properties["static_extent"] = _static(extent)
        if thread_axis is not None:
            properties["thread_axis"] = StringAttr(thread_axis)
        # Not through IRDL, whose sorting of operands and properties takes four times as long.
        Operation.__init__(
            self,
            operands=[] if isinstance(extent, int) else [extent],
            properties=properties,
            attributes=annotations or {},
            regions=[body],
        )

    @staticmethod
    def empty(extent: int | SSAValue, name_hint: str | None = None, kind: LoopKind = LoopKind.SERIAL) -> ForOp:
        body = Block(arg_types=[_INDEX])
        body.args[0].name_hint = name_hint
        return ForOp(extent, Region(body), kind)

    @property
    def extent(self) -> int | SSAValue:
        # Not through the field, whose look-up dominates the time of analyses.
        static = self.properties.get("static_extent")
        if isinstance(static, IntegerAttr):
            return static.value.data
        if self.dynamic_extent is None:
            raise VerifyException("tir.for has neither a static nor a dynamic extent")
        return self.dynamic_extent

    @property
    def induction_variable(self) -> BlockArgument:
        return self.regions[0].block.args[0]

    def verify_(self) -> None:
        if (self.static_extent is None) == (self.dynamic_extent is None):
            raise VerifyException("tir.for needs either a static or a dynamic extent")
        if self.static_extent is not None and self.static_extent.value.data < 0:
            raise VerifyException(f"tir.for extent must not be negative, got {self.static_extent.value.data}")
        if (self.kind.data is LoopKind.THREAD_BINDING) != (self.thread_axis is not None):
            raise VerifyException("tir.for has a thread axis exactly when its kind is thread_binding")
        if self.thread_axis is not None and self.thread_axis.data not in AXES:
            raise VerifyException(f"tir.for: thread axis '{self.thread_axis.data}' is none of {', '.join(AXES)}")
        verify_single_block(self, self.body, 1)

    @classmethod
    def parse(cls, parser: Parser) -> ForOp:
        variable = parser.parse_argument(expect_type=False)
        parser.parse_keyword("in")
        extent: int | SSAValue | None = parser.parse_optional_integer(allow_boolean=False)
        if extent is None:
            extent = parser.parse_operand(IndexType())
        kind, thread_axis = LoopKind.SERIAL, None
        for candidate in LoopKind:
            if parser.parse_optional_keyword(str(candidate)) is not None:
                kind = candidate
                break
        if kind is LoopKind.THREAD_BINDING:
            with parser.in_angle_brackets():
                thread_axis = parser.parse_str_literal()
        annotations, body = parse_annotations_and_body(parser, (variable.resolve(IndexType()),))
        return cls(extent, body, kind, thread_axis, annotations)

    def print(self, printer: Printer) -> None:
        kind = "" if self.kind.data is LoopKind.SERIAL else f" {self.kind.data.value}"
        thread = "" if self.thread_axis is None else f'<"{self.thread_axis.data}">'
        write(printer, " ", self.induction_variable, " in ", self.extent, kind, thread)
        print_annotations_and_body(printer, self.attributes, self.body)


class AccessRegionOp(IRDLOperation):
    buffer = operand_def(MemRefType)
    corner_operands = var_operand_def(IndexType)
    corner = prop_def(AffineMapAttr)
    sizes = prop_def(DenseArrayBase.constr(i64))

    traits = traits_def(StatesFact())

    def __init__(
        self,
        buffer: SSAValue,
        corner: Sequence[AffineExpr],
        corner_operands: Sequence[SSAValue],
        sizes: Sequence[int] | None = None,
    ) -> None:
        corner_map, values = canonical_map(corner, corner_operands)
        super().__init__(
            operands=[buffer, values],
            properties={
                "corner": AffineMapAttr(corner_map),
                "sizes": DenseArrayBase.from_list(i64, sizes or [1] * len(corner)),
            },
        )

    @property
    def box_sizes(self) -> tuple[int, ...]:
        return self.sizes.get_values()

    def verify_(self) -> None:
        parent = self.parent_op()
        if parent is None or parent.name != "tir.block":
            raise VerifyException(f"{self.name} must be in the body of a tir.block")
        rank = cast(MemRefType[Attribute], self.buffer.type).get_num_dims()
        if len(self.corner.data.results) != rank or len(self.box_sizes) != rank:
            raise VerifyException(
                f"{self.name} gives {len(self.corner.data.results)} corner indices and {len(self.box_sizes)} sizes "
                f"for a buffer of rank {rank}"
            )
        if any(size < 1 for size in self.box_sizes):
            raise VerifyException(f"{self.name} sizes must be positive, got {list(self.box_sizes)}")

    @classmethod
    def parse(cls, parser: Parser) -> AccessRegionOp:
        buffer = parser.parse_unresolved_operand()
        corner, operands = parse_index_map(parser)
        sizes = None
        if parser.parse_optional_keyword("sizes") is not None:
            sizes = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
        parser.parse_punctuation(":")
        return cls(parser.resolve_operand(buffer, parser.parse_type()), corner.results, operands, sizes)

    def print(self, printer: Printer) -> None:
        sizes = (" sizes [", [*self.box_sizes], "]") if any(size != 1 for size in self.box_sizes) else ()
        write(printer, " ", self.buffer)
        print_index_map(printer, self.corner.data.results, self.corner_operands)
        write(printer, sizes, " : ", self.buffer.type)


@irdl_op_definition
class ReadsOp(AccessRegionOp):
    """A box of a buffer that an instance of the block may read: corner and sizes (1 by default).

    ```mlir
    tir.for %i in 128 {
      tir.for %k in 32 {
        tir.block "C" iters(%vi: spatial<128>, %vk: reduce<32>) = [%i, %k] {
          tir.reads %A[%vi, %vk * 4] sizes [1, 4] : memref<128x128xf32>
        }
      }
    }
    ```
    If absent, boxes are inferred; stated ones contain every load in the body except the init: the verifier rejects
    provable misses, and accepts pointers and data-dependent indices.

    Syntax: `tir.reads %buffer[corner] [sizes [number, ...]] : type`, where the corner is a list of index expressions.
    """

    name = "tir.reads"


@irdl_op_definition
class WritesOp(AccessRegionOp):
    """A box of a buffer that an instance of the block may write, including stores of the init; otherwise as
    `tir.reads`.

    ```mlir
    tir.for %i in 32 {
      tir.block "C" iters(%vi: spatial<32>) = [%i] {
        tir.writes %C[%vi * 4] sizes [4] : memref<128xf32>
      }
    }
    ```
    Syntax: `tir.writes %buffer[corner] [sizes [number, ...]] : type`, as for `tir.reads`.
    """

    name = "tir.writes"


_ON_POINTERS = re.compile(
    r"T\.(tvm_(load_matrix_sync|store_matrix_sync|mma_sync|bmma_sync|fill_fragment)|type_annotation"
    r"|ptx[._](ldmatrix|mma|mma_sp)(_legacy)?|mma_(fill|store)(_legacy)?|bool|u?int\d+|b?float\d+\w*)$"
)
"""Access only the memory of their pointers, in the text of an intrinsic."""


class _IntrinsicEffects(MemoryEffect):
    @classmethod
    def get_effects(cls, op: Operation) -> frozenset[EffectInstance] | None:
        call = ast.parse(op.call.data, mode="eval") if isinstance(op, IntrinsicOp) else None
        functions = [ast.unparse(node.func) for node in ast.walk(call) if isinstance(node, ast.Call)] if call else []
        known = bool(functions) and all(_ON_POINTERS.match(name) for name in functions)
        return PointerEffects.get_effects(op) or None if known else None


OPERAND = "_"
"""The prefix of the names of operands in the text of a call."""


@irdl_op_definition
class IntrinsicOp(IRDLOperation):
    """A call that is opaque, unless all functions in its text access only memory of their pointers (loads, stores and
    products of matrix fragments).

    The text refers to operands as `_0`, `_1`, ... A user-supplied pass replaces the op before tir is lowered.

    ```mlir
    tir.intrinsic "T.call_packed(\\"f\\", _0, 4)"(%p) : (!ptr_xdsl.ptr) -> ()
    ```
    """

    name = "tir.intrinsic"

    call = prop_def(StringAttr)
    arguments = var_operand_def()
    values = var_result_def()

    traits = traits_def(_IntrinsicEffects())

    assembly_format = "$call `(` $arguments `)` attr-dict `:` functional-type($arguments, $values)"

    def __init__(self, call: str, arguments: Sequence[SSAValue], results: Sequence[Attribute] = ()) -> None:
        super().__init__(operands=[arguments], result_types=[results], properties={"call": StringAttr(call)})

    def verify_(self) -> None:
        try:
            parsed = ast.parse(self.call.data, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise VerifyException(f"{self.name}: `{self.call.data}` is no Python") from None
        names = {node.id for node in ast.walk(parsed) if isinstance(node, ast.Name)} - {"T"}
        wanted = {f"{OPERAND}{position}" for position in range(len(self.arguments))}
        if names != wanted:
            raise VerifyException(
                f"{self.name} has {len(wanted)} operands, and its call names {', '.join(sorted(names)) or 'none'}: "
                f"`{self.call.data}`"
            )
        if not isinstance(parsed, ast.Call) or not all(isinstance(node, _PARTS) for node in ast.walk(parsed)):
            raise VerifyException(f"{self.name}: `{self.call.data}` is no call of values, numbers and texts")


_PARTS = (ast.Call, ast.Attribute, ast.Name, ast.Constant, ast.UnaryOp, ast.USub, ast.Load)


def range_of_index(value: SSAValue) -> Interval:
    """The range of a loop variable or block iterator, unbounded if dynamic and for others."""
    if type(value) is BlockArgument:
        owner = value.block.parent_op()
        extent: int | SSAValue | None = None
        if type(owner) is ForOp:
            extent = owner.extent
        elif type(owner) is BlockOp:
            extent = owner.extents[value.index]
        if isinstance(extent, int):
            return 0, extent - 1
        if extent is not None:
            return 0, None
    return None, None


@irdl_op_definition
class BlockOp(IRDLOperation):
    """A computation over its own iterators.

    ```mlir
    tir.for %i0 in 32 {
      tir.for %i1 in 4 {
        tir.for %k in %n {
          tir.block "Y" iters(%vi: spatial<126>, %vk: reduce<%n>) = [%i0 * 4 + %i1, %k] where [%i0 * 4 + %i1] < [126] {
            tir.init {
              memref.store %zero, %Y[%vi] : memref<126xf32>
            }
            %y = memref.load %Y[%vi] : memref<126xf32>
            %a = memref.load %A[%vi, %vk] : memref<126x?xf32>
            %s = arith.addf %y, %a : f32
            memref.store %s, %Y[%vi] : memref<126xf32>
          }
        }
      }
    }
    ```
    `iters` declares iterators by kind and domain `0 <= v < extent`, bound to index expressions over the enclosing
    loops. Instances run if `left < right` for each pair of `where`.

    Syntax: `tir.block "name" iters(%v: kind<extent>, ...) = [bindings] [where [left, ...] < [right, ...]] [attributes
    {...}] { body }`, where a kind is `spatial` or `reduce`.
    """

    name = "tir.block"

    extent_operands = var_operand_def(IndexType)
    binding_operands = var_operand_def(IndexType)
    guard_operands = var_operand_def(IndexType)
    block_name = prop_def(StringAttr)
    iter_kinds = prop_def(ArrayAttr[IterKindAttr])
    static_extents = prop_def(DenseArrayBase.constr(i64))
    bindings = prop_def(AffineMapAttr)
    guard = opt_prop_def(AffineMapAttr)
    """All left sides, then all right sides; an instance runs if each left side is less."""
    body = region_def()

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(NoTerminator(), RecursiveMemoryEffect())

    def __init__(
        self,
        name: str,
        kinds: Sequence[IterKindAttr],
        extents: Sequence[int | SSAValue],
        bindings: Sequence[AffineExpr],
        binding_operands: Sequence[SSAValue],
        body: Region,
        guards: Sequence[tuple[AffineExpr, AffineExpr]] = (),
        guard_operands: Sequence[SSAValue] = (),
        annotations: Mapping[str, Attribute] | None = None,
    ) -> None:
        """Canonicalises `bindings` and `guards`."""
        binding_map, binding_values = canonical_map(bindings, binding_operands)
        guard_attr, guard_values = _guard_map(guards, guard_operands)
        super().__init__(
            operands=[[e for e in extents if isinstance(e, SSAValue)], binding_values, guard_values],
            properties={
                "block_name": StringAttr(name),
                "iter_kinds": ArrayAttr(kinds),
                "static_extents": static_extents(extents),
                "bindings": AffineMapAttr(binding_map),
                "guard": guard_attr,
            },
            attributes=dict(annotations or {}),
            regions=[body],
        )

    @property
    def label(self) -> str:
        return self.block_name.data

    @property
    def iter_vars(self) -> Sequence[BlockArgument]:
        return self.body.block.args

    @property
    def kinds(self) -> tuple[IterKind, ...]:
        return tuple(kind.data for kind in self.iter_kinds)

    @property
    def extents(self) -> tuple[int | SSAValue, ...]:
        return mixed_extents(self.static_extents.get_values(), self.extent_operands)

    @property
    def guards(self) -> tuple[tuple[AffineExpr, AffineExpr], ...]:
        """Pairs (left, right) over `guard_operands`; instances run if left < right."""
        if self.guard is None:
            return ()
        results = self.guard.data.results
        half = len(results) // 2
        return tuple(zip(results[:half], results[half:], strict=True))

    @property
    def init(self) -> InitOp | None:
        for op in self.body.block.ops:
            if isinstance(op, InitOp):
                return op
            if not isinstance(op, AccessRegionOp):
                return None
        return None

    def set_bindings(self, bindings: Sequence[AffineExpr], operands: Sequence[SSAValue]) -> None:
        binding_map, values = canonical_map(bindings, operands)
        self._set_operand_groups(values, tuple(self.guard_operands))
        self.bindings = AffineMapAttr(binding_map)

    def _set_operand_groups(self, binding_values: Sequence[SSAValue], guard_values: Sequence[SSAValue]) -> None:
        extent_values = tuple(self.extent_operands)
        self.operands = (*extent_values, *binding_values, *guard_values)
        self.properties["operandSegmentSizes"] = _segments(len(extent_values), len(binding_values), len(guard_values))

    def set_guards(self, guards: Sequence[tuple[AffineExpr, AffineExpr]], operands: Sequence[SSAValue]) -> None:
        guard, values = _guard_map(guards, operands)
        self._set_operand_groups(tuple(self.binding_operands), values)
        self.guard = guard

    def verify_(self) -> None:
        count = len(self.iter_kinds)
        extents = self.static_extents.get_values()
        verify_single_block(self, self.body, count)
        if len(extents) != count:
            raise VerifyException(f'block "{self.label}" declares {count} iterators but {len(extents)} extents')
        if sum(e == DYNAMIC_INDEX for e in extents) != len(self.extent_operands):
            raise VerifyException(f'block "{self.label}": dynamic extents and their operands differ in number')
        _verify_map(self, "bindings", self.bindings, self.binding_operands)
        if len(self.bindings.data.results) != count:
            raise VerifyException(
                f'block "{self.label}" declares {count} iterators but binds {len(self.bindings.data.results)}'
            )
        if self.guard is not None:
            _verify_map(self, "where", self.guard, self.guard_operands)
            if not self.guard.data.results or len(self.guard.data.results) % 2:
                raise VerifyException(f'block "{self.label}": where needs as many left as right sides')
        for position, op in enumerate(self.body.block.ops):
            if isinstance(op, InitOp) and op is not self.init:
                raise VerifyException(f'block "{self.label}": tir.init must be first in the body')
            if isinstance(op, AccessRegionOp) and position and not isinstance(op.prev_op, AccessRegionOp):
                raise VerifyException(f'block "{self.label}": {op.name} must be first in the body')
        self._verify_reach()

    def _verify_reach(self) -> None:
        """Check by intervals that bindings reach the domain's ends.

        `verify-level` checks gaps and repetitions, which need set operations. Blocks that write only temporaries may
        skip spatial instances, parts of a block (`tir.part_of`) those of others.
        """
        operands = self.binding_operands
        for position, (expr, extent) in enumerate(zip(self.bindings.data.results, self.extents, strict=True)):
            low, high = interval_of(expr, lambda d: range_of_index(operands[d]))
            if not isinstance(extent, int) or low is None or high is None or low > high:
                continue
            variable = self.iter_vars[position].name_hint or f"#{position}"
            kind = self.kinds[position].value
            if (
                (low > 0 or high < extent - 1)
                and PART_OF not in self.attributes
                and (self.kinds[position] is IterKind.REDUCE or self._writes_parameters())
            ):
                raise VerifyException(
                    f'block "{self.label}": iterator %{variable}: {kind}<{extent}> is bound to values in '
                    f"{low}..{high}, but its domain is 0..{extent - 1}: the loops do not cover it"
                )
            if self.guard is None and (low < 0 or high > extent - 1) and _exact(expr):
                raise VerifyException(
                    f'block "{self.label}": iterator %{variable}: {kind}<{extent}> is bound to values in '
                    f"{low}..{high}, but its domain is 0..{extent - 1}, and no guard keeps it inside"
                )

    def _writes_parameters(self) -> bool:
        stores = (op for op in self.walk() if isinstance(op, memref.StoreOp))
        return any(not isinstance(op.memref.owner, memref.AllocOp) for op in stores)

    @classmethod
    def parse(cls, parser: Parser) -> BlockOp:
        name = parser.parse_str_literal("block name")
        parser.parse_keyword("iters")
        variables: list[Parser.Argument] = []
        kinds: list[IterKindAttr] = []
        extents: list[int | SSAValue] = []

        def parse_iterator() -> None:
            variables.append(parser.parse_argument(expect_type=False).resolve(IndexType()))
            parser.parse_punctuation(":")
            kinds.append(IterKindAttr(parser.parse_str_enum(IterKind)))
            with parser.in_angle_brackets():
                extents.append(parse_extent(parser))

        parser.parse_comma_separated_list(parser.Delimiter.PAREN, parse_iterator)
        parser.parse_punctuation("=")
        at = parser.pos
        bindings, binding_operands = parse_index_map(parser)
        if len(bindings.results) != len(kinds):
            parser.raise_error(
                f'block "{name}" declares {len(kinds)} iterators but binds {len(bindings.results)}',
                at,
                parser.pos,
            )
        guards, guard_operands = _parse_guard(parser)
        annotations, body = parse_annotations_and_body(parser, variables)
        return cls(name, kinds, extents, bindings.results, binding_operands, body, guards, guard_operands, annotations)

    def print(self, printer: Printer) -> None:
        iterators = [
            (variable, f": {kind.value}<", extent, ">")
            for variable, kind, extent in zip(self.iter_vars, self.kinds, self.extents, strict=True)
        ]
        write(printer, " ", StringAttr(self.label), " iters(", iterators, ") = ")
        print_index_map(printer, self.bindings.data.results, self.binding_operands)
        if self.guard is not None:
            printer.print_string(" where ")
            print_index_map(printer, [left for left, _ in self.guards], self.guard_operands)
            printer.print_string(" < ")
            print_index_map(printer, [right for _, right in self.guards], self.guard_operands)
        print_annotations_and_body(printer, self.attributes, self.body)


def _exact(expr: AffineExpr) -> bool:
    """Each dimension occurs once, so interval bounds are attained."""
    dims = [node.position for node in expr.dfs() if isinstance(node, AffineDimExpr)]
    return len(dims) == len(set(dims))


@lru_cache(maxsize=1024)
def _segments(*sizes: int) -> DenseArrayBase[IntegerType]:
    return DenseArrayBase.from_list(i32, sizes)


def _guard_map(
    guards: Sequence[tuple[AffineExpr, AffineExpr]], operands: Sequence[SSAValue]
) -> tuple[AffineMapAttr | None, tuple[SSAValue, ...]]:
    if not guards:
        return None, ()
    guard, values = canonical_map([left for left, _ in guards] + [right for _, right in guards], operands)
    return AffineMapAttr(guard), values


def _parse_guard(parser: Parser) -> tuple[list[tuple[AffineExpr, AffineExpr]], tuple[SSAValue, ...]]:
    if parser.parse_optional_keyword("where") is None:
        return [], ()
    left, left_operands = parse_index_map(parser)
    parser.parse_punctuation("<")
    at = parser.pos
    right, operands = parse_second_map(parser, left, left_operands)
    if len(left.results) != len(right):
        parser.raise_error(
            f"where compares pairwise: {len(left.results)} left sides, {len(right)} right sides",
            at,
            parser.pos,
        )
    return list(zip(left.results, right, strict=True)), operands


def _verify_map(op: BlockOp, what: str, attribute: AffineMapAttr, operands: Sequence[SSAValue]) -> None:
    if attribute.data.num_symbols or attribute.data.num_dims != len(operands):
        raise VerifyException(
            f'block "{op.label}": {what} is a map of {attribute.data.num_dims} dimensions and '
            f"{attribute.data.num_symbols} symbols over {len(operands)} values"
        )


@irdl_op_definition
class InitOp(IRDLOperation):
    """The initialisation of a reduction block.

    ```mlir
    tir.for %i in 8 {
      tir.for %k in 16 {
        tir.block "Y" iters(%vi: spatial<8>, %vk: reduce<16>) = [%i, %k] {
          tir.init {
            memref.store %zero, %Y[%vi] : memref<8xf32>
          }
        }
      }
    }
    ```
    It runs before the first instance of a spatial point (all reduce iterators are 0) or an empty reduction
    (`tir_empty.py`). It follows `tir.reads` and `tir.writes`, and may use the iterators. If it stores to elements that
    the updates do not read, schedule steps do not treat the block as a reduction.

    Syntax: `tir.init { body }`
    """

    name = "tir.init"

    body = region_def()

    traits = traits_def(NoTerminator(), HasParent(BlockOp), RecursiveMemoryEffect())

    def __init__(self, body: Region) -> None:
        super().__init__(regions=[body])

    def verify_(self) -> None:
        verify_single_block(self, self.body, 0)

    @classmethod
    def parse(cls, parser: Parser) -> InitOp:
        region = parser.parse_region()
        return cls(region if region.blocks else Region(Block()))  # `{ }` has no blocks

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_region(self.body, print_empty_block=False)


TIR = Dialect(
    "tir",
    record_places(
        [ForOp, BlockOp, InitOp, ReadsOp, WritesOp, AssumeShapeOp, AssumeOp, AssumeStridesOp, CheckSizeOp, IntrinsicOp]
    ),
    [IterKindAttr, LoopKindAttr],
)
