"""Fragments: how the 32 threads of a warp hold a tile of a matrix, for the tensor cores."""

from __future__ import annotations

from collections.abc import Sequence
from enum import auto
from typing import Final

from xdsl.dialects.builtin import I64, BFloat16Type, DenseArrayBase, Float16Type, Float32Type, StringAttr, i64
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

WARP: Final = 32
"""Threads that hold a fragment together."""


class Family(StrEnum):
    """The instructions that work on a fragment, which decide where its elements are."""

    WMMA = auto()
    """`wmma.*`: which thread holds which element is up to the architecture."""
    MMA = auto()
    """`mma.sync` and `ldmatrix`: the tables of the PTX ISA say it."""


class Role(StrEnum):
    """Which matrix of D = A * B + C a fragment belongs to."""

    A = auto()
    """m rows, k columns."""
    B = auto()
    """k rows, n columns."""
    C = auto()
    """m rows, n columns: what is accumulated."""


class Order(StrEnum):
    """How a tile, as a program indexes it, is the matrix."""

    ROW = auto()
    """Its rows are the rows of the matrix."""
    COL = auto()
    """Its rows are the columns of the matrix."""


_SCOPES: Final = {
    f"{family}.{name}": (family, role)
    for family in Family
    for role, name in ((Role.A, "matrix_a"), (Role.B, "matrix_b"), (Role.C, "accumulator"))
}
SHAPES: Final = {Family.WMMA: ((16, 16, 16), (32, 8, 16), (8, 32, 16)), Family.MMA: ((16, 8, 16), (16, 16, 16))}
"""Family -> m, n, k. Two instructions m16n8k16 make the 16 columns of the last one."""


def fragment_scopes() -> tuple[str, ...]:
    """The memory scopes whose buffers are fragments: `wmma.matrix_a` and its like."""
    return tuple(_SCOPES)


def is_fragment_scope(space: Attribute) -> bool:
    """Whether buffers of a memory space are fragments."""
    return isinstance(space, StringAttr) and space.data in _SCOPES


@irdl_attr_definition
class FragmentAttr(ParametrizedAttribute):
    """A tile of a matrix as a warp holds it: `#low.fragment<wmma, a, row, [16, 16, 16], f16>`.

    The shape is m, n, k of the product. A and B hold `f16` or `bf16`, C holds `f32`.
    """

    name = "low.fragment"

    family_name: StringAttr = param_def()
    role_name: StringAttr = param_def()
    order_name: StringAttr = param_def()
    sizes: DenseArrayBase[I64] = param_def()
    element: Attribute = param_def()

    @staticmethod
    def of(family: Family, role: Role, order: Order, shape: Sequence[int], element: Attribute) -> FragmentAttr:
        names = StringAttr(str(family)), StringAttr(str(role)), StringAttr(str(order))
        return FragmentAttr(*names, DenseArrayBase.from_list(i64, list(shape)), element)

    @property
    def family(self) -> Family:
        return Family(self.family_name.data)

    @property
    def role(self) -> Role:
        return Role(self.role_name.data)

    @property
    def order(self) -> Order:
        return Order(self.order_name.data)

    @property
    def shape(self) -> tuple[int, int, int]:
        """m, n, k."""
        m, n, k = self.sizes.get_values()
        return m, n, k

    @property
    def matrix(self) -> tuple[int, int]:
        """Rows and columns of the matrix."""
        m, n, k = self.shape
        return {Role.A: (m, k), Role.B: (k, n), Role.C: (m, n)}[self.role]

    @property
    def tile(self) -> tuple[int, int]:
        """Rows and columns of the tile, as the program indexes it."""
        rows, columns = self.matrix
        return (rows, columns) if self.order is Order.ROW else (columns, rows)

    @property
    def scope(self) -> str:
        """The memory scope of buffers of such fragments."""
        return next(scope for scope, known in _SCOPES.items() if known == (self.family, self.role))

    @property
    def elements_per_thread(self) -> int:
        """How many elements each thread holds; `wmma` holds those of A and B of type `f16` twice."""
        rows, columns = self.matrix
        if self.family is Family.WMMA and self.role is not Role.C:
            # PTX ISA, "Matrix Fragments for WMMA".
            return 16 if isinstance(self.element, Float16Type) else rows * columns // WARP
        return rows * columns // WARP

    @property
    def parts(self) -> tuple[tuple[int, int], ...]:
        """Of family `mma`: the first row and column of each 8 x 8 part of the matrix, of which a thread holds two
        neighbours (`place`)."""
        return tuple((8 * (part % 2), 8 * (part // 2)) for part in range(self.elements_per_thread // 2))

    def place(self, lane: int, number: int) -> tuple[int, int]:
        """Of family `mma`: the row and column, in the matrix, of an element that a thread of the warp holds.

        PTX ISA, "Matrix Fragments for mma.m16n8k16".
        """
        row, column = self.parts[number // 2]
        across, along = lane // 4, 2 * (lane % 4) + number % 2
        return (row + along, column + across) if self.role is Role.B else (row + across, column + along)

    def with_role(self, role: Role, order: Order, element: Attribute) -> FragmentAttr:
        """The fragment of another matrix of the same product."""
        return FragmentAttr.of(self.family, role, order, self.shape, element)

    def verify(self) -> None:
        for word, words in ((self.family_name, Family), (self.role_name, Role), (self.order_name, Order)):
            if word.data not in tuple(words):
                raise VerifyException(f"{self.name}: '{word.data}' is none of {', '.join(words)}")
        if self.sizes.get_values() not in SHAPES[self.family]:
            known = ", ".join(str(list(shape)) for shape in SHAPES[self.family])
            raise VerifyException(
                f"{self.name}: {self.family} has the shapes {known}, got {list(self.sizes.get_values())}"
            )
        wanted = (Float32Type,) if self.role is Role.C else (Float16Type, BFloat16Type)
        if not isinstance(self.element, wanted):
            raise VerifyException(f"{self.name}: {self.role} of {self.family} does not hold {self.element}")
        if self.order is Order.COL and self.role is Role.C:
            raise VerifyException(f"{self.name}: what is accumulated has its rows as they are")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            words: list[StringAttr] = []
            for kind in (Family, Role, Order):
                words.append(StringAttr(str(parser.parse_str_enum(kind))))
                parser.parse_punctuation(",")
            sizes = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
            parser.parse_punctuation(",")
            return [*words, DenseArrayBase.from_list(i64, sizes), parser.parse_type()]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(f"{self.family}, {self.role}, {self.order}, {list(self.shape)}, ")
            printer.print_attribute(self.element)
