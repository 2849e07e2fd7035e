"""te.extern: tensors written by statements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseArrayBase, IndexType, MemRefType, StringAttr, TensorType, i64
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import EffectInstance, NoTerminator, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from weft.dialects.effects import effects_of
from weft.dialects.index_map import (
    Extent,
    mixed_extents,
    parse_annotations_and_body,
    parse_domain,
    print_annotations_and_body,
    static_extents,
)
from weft.dialects.printing import Piece, write
from weft.dialects.strides import dense_buffer
from weft.dialects.traversal import operations_in


class WritesOwnBuffers(RecursiveMemoryEffect):
    """Affects only the region's buffers, or anything if other ops have effects."""

    @classmethod
    def get_effects(cls, op: Operation) -> frozenset[EffectInstance] | None:
        own = set(op.regions[0].block.args)
        for inner in operations_in(op):
            effects = effects_of(inner) if inner is not op else None
            if effects is not None and (
                effects.is_opaque or effects.reads_all or effects.synchronizes or not own.issuperset(_touched(inner))
            ):
                return None
        return frozenset()


def _touched(op: Operation) -> tuple[SSAValue, ...]:
    effects = effects_of(op)
    return (*effects.reads, *effects.writes)


@irdl_op_definition
class ExternOp(IRDLOperation):
    """New tensors, written by loops, conditions, loads and stores, for each value of the indices, in any order: no
    instance accesses elements that another writes. All elements of a used result are written.

    ```mlir
    %S, %T = te.extern "running_sum" (%i in 4) into (%s : tensor<4x?xf32>[%n], %t : tensor<4xf32>) {
      memref.store %zero, %t[%i] : memref<4xf32>
      tir.for %k in %n {
        %old = memref.load %t[%i] : memref<4xf32>
        %a = tensor.extract %A[%i, %k] : tensor<4x?xf32>
        %new = arith.addf %old, %a : f32
        memref.store %new, %t[%i] : memref<4xf32>
        memref.store %new, %s[%i, %k] : memref<4x?xf32>
      }
    }
    ```
    Only the op accesses the buffers; results may be temporaries of an instance. Other tensors are read as in
    `te.compute`.

    Syntax: `te.extern "name" (%i in extent, ...) into (%buffer : type[extent, ...], ...) [attributes {...}] { body }`,
    with an extent for each dynamic dimension of a type.
    """

    name = "te.extern"

    domain_operands = var_operand_def(IndexType)
    """One for each dynamic index, in order."""
    extent_operands = var_operand_def(IndexType)
    """One for each dynamic dimension of the results, in order."""
    extern_name = prop_def(StringAttr)
    static_extents = prop_def(DenseArrayBase.constr(i64))
    tensors = var_result_def(TensorType)
    body = region_def()

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(WritesOwnBuffers(), NoTerminator())

    def __init__(
        self,
        name: str,
        domain: Sequence[Extent],
        types: Sequence[Attribute],
        extents: Sequence[SSAValue],
        body: Region,
        annotations: Mapping[str, Attribute] | None = None,
    ) -> None:
        """`extents`: one per dynamic dimension."""
        super().__init__(
            operands=[[extent for extent in domain if isinstance(extent, SSAValue)], extents],
            result_types=[types],
            properties={"extern_name": StringAttr(name), "static_extents": static_extents(domain)},
            attributes=dict(annotations or {}),
            regions=[body],
        )

    @staticmethod
    def over(
        name: str,
        domain: Sequence[Extent],
        types: Sequence[Attribute],
        extents: Sequence[SSAValue],
        index_hints: Sequence[str | None] = (),
        buffer_hints: Sequence[str | None] = (),
    ) -> ExternOp:
        block = Block(arg_types=[*[IndexType()] * len(domain), *map(dense_buffer, types)])
        for argument, hint in zip(block.args, (*index_hints, *buffer_hints), strict=False):
            argument.name_hint = hint
        return ExternOp(name, domain, types, extents, Region(block))

    @property
    def label(self) -> str:
        """Names the block."""
        return self.extern_name.data

    @property
    def domain(self) -> tuple[Extent, ...]:
        return mixed_extents(self.static_extents.get_values(), self.domain_operands)

    @property
    def indices(self) -> Sequence[BlockArgument]:
        return self.body.block.args[: len(self.static_extents.get_values())]

    @property
    def buffers(self) -> Sequence[BlockArgument]:
        return self.body.block.args[len(self.static_extents.get_values()) :]

    def extents_of(self, result: OpResult) -> tuple[Extent, ...]:
        dynamic = iter(self.extent_operands)
        for other in self.results:
            shape = cast("TensorType[Attribute]", other.type).get_shape()
            extents = tuple(next(dynamic) if extent == DYNAMIC_INDEX else extent for extent in shape)
            if other is result:
                return extents
        raise ValueError(f"{result} is no result of this op")

    def verify_(self) -> None:
        what = f'te.extern "{self.label}"'
        if not self.results:
            raise VerifyException(f"{what} has no result")
        if self.static_extents.get_values().count(DYNAMIC_INDEX) != len(self.domain_operands):
            raise VerifyException(f"{what}: dynamic extents of indices and their operands differ in number")
        shapes = [cast("TensorType[Attribute]", result.type).get_shape() for result in self.results]
        dynamic = sum(shape.count(DYNAMIC_INDEX) for shape in shapes)
        if dynamic != len(self.extent_operands):
            raise VerifyException(
                f"{what} gives {len(self.extent_operands)} extents for {dynamic} dynamic dimensions of its results"
            )
        if len(self.body.blocks) != 1:
            raise VerifyException(f"{what} holds exactly one block of statements, got {len(self.body.blocks)}")
        wanted = [*[IndexType()] * len(self.static_extents.get_values()), *map(dense_buffer, self.result_types)]
        if list(self.body.block.arg_types) != wanted:
            raise VerifyException(
                f"{what} takes arguments of types {', '.join(map(str, wanted))}, got "
                f"{', '.join(map(str, self.body.block.arg_types)) or 'none'}"
            )
        own = set(self.body.block.args)
        for inner in operations_in(self):
            if inner is not self and any(isinstance(v.type, MemRefType) and v not in own for v in inner.operands):
                raise VerifyException(f"{what}: '{inner.name}' accesses a buffer that belongs to none of its results")
            if inner is not self and inner.name.startswith("te."):
                raise VerifyException(f"{what} holds statements, got '{inner.name}'")

    @classmethod
    def parse(cls, parser: Parser) -> ExternOp:
        name = parser.parse_str_literal("name of the computation")
        buffers: list[Parser.Argument] = []
        types: list[Attribute] = []
        extents: list[SSAValue] = []

        def parse_buffer() -> None:
            argument = parser.parse_argument(expect_type=False)
            parser.parse_punctuation(":")
            at = parser.pos
            type_ = parser.parse_type()
            if not isinstance(type_, TensorType):
                parser.raise_error(f'te.extern "{name}" makes tensors, got {type_}', at, parser.pos)
            buffers.append(argument.resolve(dense_buffer(type_)))
            types.append(type_)
            given = parser.parse_optional_comma_separated_list(
                parser.Delimiter.SQUARE, lambda: parser.parse_operand(IndexType())
            )
            extents.extend(given or ())

        indices, domain = parse_domain(parser)
        parser.parse_keyword("into")
        parser.parse_comma_separated_list(parser.Delimiter.PAREN, parse_buffer)
        annotations, body = parse_annotations_and_body(parser, [*indices, *buffers])
        return cls(name, domain, types, extents, body, annotations)

    def print(self, printer: Printer) -> None:
        buffers: list[Piece] = []
        for buffer, result in zip(self.buffers, self.results, strict=True):
            dynamic = [extent for extent in self.extents_of(result) if isinstance(extent, SSAValue)]
            buffers.append((buffer, " : ", result.type, *(("[", dynamic, "]") if dynamic else ())))
        domain = [(index, " in ", extent) for index, extent in zip(self.indices, self.domain, strict=True)]
        write(printer, " ", StringAttr(self.label), " (", domain, ") into (", buffers, ")")
        print_annotations_and_body(printer, self.attributes, self.body)
