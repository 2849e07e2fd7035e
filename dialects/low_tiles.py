"""What a warp does with tiles: loads them as fragments, multiplies them, stores them.

At tir level each op runs once and works on whole tiles in memory: a fragment is a box of a buffer in a scope such as
`wmma.matrix_a`, with its elements where the program puts them. In a kernel the 32 threads of a warp run it together;
`tir-lower-tiles` says what each of them does (`low_tensor_cores.py`).

```mlir
%s = low.access_ptr %S[%i, %k] sizes [16, 16] read : memref<64x32xf16, "shared">
%s_rows = low.stride %S {dimension = 0} : memref<64x32xf16, "shared">
%f = low.access_ptr %F[%i, %k] sizes [16, 16] write : memref<64x32xf16, "wmma.matrix_a">
%f_rows = low.stride %F {dimension = 0} : memref<64x32xf16, "wmma.matrix_a">
low.tile_load <wmma, a, row, [16, 16, 16], f16> %s, %s_rows to %f, %f_rows
```
Every tile is a pointer to its first element and the distance of its rows.
"""

from __future__ import annotations

from typing import Final, TypeAlias, cast

from xdsl.dialects.builtin import Float32Type, FloatAttr, IndexType, MemRefType, StringAttr, f32
from xdsl.dialects.ptr import PtrType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation, ParsePropInAttrDict, irdl_op_definition, operand_def, prop_def, traits_def
from xdsl.utils.exceptions import VerifyException

from weft.dialects.effects import PointerEffects
from weft.dialects.low_access import AccessPtrOp
from weft.dialects.low_fragments import Family, FragmentAttr, Order, Role, is_fragment_scope
from weft.dialects.low_kernel import SHARED

_LOCAL = StringAttr("local")


class TileOp(IRDLOperation):
    """What the ops of this file share. `fragments` are those that an op takes, each with its pointer."""

    traits = traits_def(PointerEffects())

    def fragments(self) -> tuple[tuple[FragmentAttr, SSAValue], ...]:
        raise NotImplementedError

    def memory(self) -> SSAValue | None:
        """The pointer to a tile that is no fragment."""
        return None

    def verify_(self) -> None:
        for fragment, pointer in self.fragments():
            space = _verify_box(self, pointer, fragment)
            if space is not None and space not in (StringAttr(fragment.scope), _LOCAL):
                raise VerifyException(f'{self.name}: {fragment} lies in scope "{fragment.scope}", got {space}')
        other = self.memory()
        if other is not None:
            space = _verify_box(self, other, self.fragments()[0][0])
            if space is not None and (is_fragment_scope(space) or space == _LOCAL):
                raise VerifyException(f"{self.name} copies to or from memory that threads share, got {space}")


def _verify_box(op: Operation, pointer: SSAValue, fragment: FragmentAttr) -> Attribute | None:
    """The memory space of the buffer that a pointer to a tile points into."""
    if not isinstance(pointer.owner, AccessPtrOp):
        raise VerifyException(f"{op.name} takes pointers of low.access_ptr")
    type_ = cast("MemRefType[Attribute]", pointer.owner.buffer.type)
    if type_.element_type != fragment.element:
        raise VerifyException(f"{op.name}: {fragment} is loaded from and stored to elements of its type, got {type_}")
    sizes = pointer.owner.box_sizes
    if sizes is not None and (sizes[-2:] != fragment.tile or any(size != 1 for size in sizes[:-2])):
        raise VerifyException(f"{op.name}: {fragment} is a tile of {list(fragment.tile)}, got {list(sizes)}")
    return type_.memory_space


class _TileCopyOp(TileOp):
    """A tile from one place to another, each given by a pointer and the distance of its rows."""

    source = operand_def(PtrType())
    source_rows = operand_def(IndexType())
    target = operand_def(PtrType())
    target_rows = operand_def(IndexType())
    fragment = prop_def(FragmentAttr)

    assembly_format = "$fragment $source `,` $source_rows `to` $target `,` $target_rows attr-dict"


@irdl_op_definition
class TileLoadOp(_TileCopyOp):
    """A tile of memory that threads share, copied into a fragment."""

    name = "low.tile_load"

    def fragments(self) -> tuple[tuple[FragmentAttr, SSAValue], ...]:
        return ((self.fragment, self.target),)

    def memory(self) -> SSAValue:
        return self.source

    def verify_(self) -> None:
        super().verify_()
        space = cast("MemRefType[Attribute]", cast("AccessPtrOp", self.source.owner).buffer.type).memory_space
        if self.fragment.family is Family.MMA and space != SHARED:
            raise VerifyException(f"{self.name}: fragments of mma are loaded from shared memory, got {space}")


@irdl_op_definition
class TileStoreOp(_TileCopyOp):
    """A fragment, copied to a tile of memory that threads share."""

    name = "low.tile_store"

    def fragments(self) -> tuple[tuple[FragmentAttr, SSAValue], ...]:
        return ((self.fragment, self.source),)

    def memory(self) -> SSAValue:
        return self.target

    def verify_(self) -> None:
        super().verify_()
        if self.fragment.role is not Role.C:
            raise VerifyException(f"{self.name} stores what was accumulated, got {self.fragment}")


@irdl_op_definition
class TileFillOp(TileOp):
    """Every element of a fragment becomes a number."""

    name = "low.tile_fill"

    value = prop_def(FloatAttr)
    target = operand_def(PtrType())
    target_rows = operand_def(IndexType())
    fragment = prop_def(FragmentAttr)

    assembly_format = "$fragment $target `,` $target_rows `with` $value attr-dict"

    def fragments(self) -> tuple[tuple[FragmentAttr, SSAValue], ...]:
        return ((self.fragment, self.target),)

    def verify_(self) -> None:
        super().verify_()
        if self.fragment.role is not Role.C or not isinstance(self.value.type, Float32Type):
            raise VerifyException(f"{self.name} fills what is accumulated with numbers of f32, got {self.fragment}")


@irdl_op_definition
class TileMmaOp(TileOp):
    """C += A * B, the products exact and summed in `f32`, in an order that is not specified.

    `low.tile_mma %a, %a_rows by %b, %b_rows onto %c, %c_rows {a = #low.fragment<...>, b = #low.fragment<...>}`
    """

    name = "low.tile_mma"

    a = operand_def(PtrType())
    a_rows = operand_def(IndexType())
    b = operand_def(PtrType())
    b_rows = operand_def(IndexType())
    c = operand_def(PtrType())
    c_rows = operand_def(IndexType())
    a_fragment = prop_def(FragmentAttr, prop_name="a")
    b_fragment = prop_def(FragmentAttr, prop_name="b")

    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$a `,` $a_rows `by` $b `,` $b_rows `onto` $c `,` $c_rows attr-dict"

    @property
    def c_fragment(self) -> FragmentAttr:
        return self.a_fragment.with_role(Role.C, Order.ROW, f32)

    def fragments(self) -> tuple[tuple[FragmentAttr, SSAValue], ...]:
        return ((self.c_fragment, self.c), (self.a_fragment, self.a), (self.b_fragment, self.b))

    def verify_(self) -> None:
        verify_factors(self, self.a_fragment, self.b_fragment)
        super().verify_()


def verify_factors(op: Operation, a: FragmentAttr, b: FragmentAttr) -> None:
    """Two fragments are the factors of one product."""
    if (a.role, b.role) != (Role.A, Role.B):
        raise VerifyException(f"{op.name} multiplies a fragment of a and one of b, got {a} and {b}")
    if a != b.with_role(Role.A, a.order, b.element):
        raise VerifyException(f"{op.name} multiplies fragments of one family, shape and type, got {a} and {b}")


Copy: TypeAlias = "TileLoadOp | TileStoreOp"
TILE_OPS: Final[tuple[type[TileOp], ...]] = (TileLoadOp, TileStoreOp, TileFillOp, TileMmaOp)
