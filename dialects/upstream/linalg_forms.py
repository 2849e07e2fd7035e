"""Table of linalg's named ops: loops, indexing maps, functions of elements.

`structure_of` describes structured ops as `linalg.generic` does, also those of xDSL's classes.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, cast

from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    DenseArrayBase,
    MemRefType,
    TensorType,
)
from xdsl.dialects.linalg.abstract_ops import NamedOperation
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from weft.dialects.upstream.linalg_bodies import ELEMENTWISE, body_of
from weft.support.errors import CompileError


@dataclass(frozen=True)
class Form:
    """The definition of a named op.

    `body` names a function of `linalg_bodies`. `loops` has the loops, then each operand's subscripts: `oh~kh` is `oh *
    stride + kh * dilation`, with the next stride and dilation, `oh+kh` is a sum. Without `loops`, operands except
    scalars are indexed like the output. Loops that do not index the output are reductions.
    """

    body: str
    loops: str = ""

    @property
    def has_windows(self) -> bool:
        return "~" in self.loops

    @property
    def rank_of_windows(self) -> int:
        return self.loops.partition(",")[0].count("~")


def _of_loops(body: str, loops: Mapping[str, str]) -> dict[str, Form]:
    return {name: Form(body, text) for name, text in loops.items()}


MAPPED: Final = _of_loops(
    "product",
    {
        "matmul": "m n k: m k, k n, m n",
        "batch_matmul": "b m n k: b m k, b k n, b m n",
        "batch_reduce_matmul": "b m n k: b m k, b k n, m n",
    },
)
"""Products whose attribute `indexing_maps` may override their maps, for transposed and broadcast operands."""

_PRODUCTS: Final = _of_loops(
    "product",
    {
        "matmul_transpose_a": "m n k: k m, k n, m n",
        "matmul_transpose_b": "m n k: m k, n k, m n",
        "batch_matmul_transpose_a": "b m n k: b k m, b k n, b m n",
        "batch_matmul_transpose_b": "b m n k: b m k, b n k, b m n",
        "matvec": "m n: m n, n, m",
        "vecmat": "n m: m, m n, n",
        "batch_matvec": "b m k: b m k, b k, b m",
        "batch_vecmat": "b n k: b k, b k n, b n",
        "dot": "m: m, m,",
        "mmt4d": "m n k m0 n0 k0: m k m0 k0, n k n0 k0, m n m0 n0",
        "batch_mmt4d": "b m n k m0 n0 k0: b m k m0 k0, b n k n0 k0, b m n m0 n0",
        "conv_1d": "ow kw: ow+kw, kw, ow",
        "conv_2d": "oh ow kh kw: oh+kh ow+kw, kh kw, oh ow",
        "conv_3d": "od oh ow kd kh kw: od+kd oh+kh ow+kw, kd kh kw, od oh ow",
        "conv_1d_nwc_wcf": "n ow f kw c: n ow~kw c, kw c f, n ow f",
        "conv_1d_ncw_fcw": "n f ow c kw: n c ow~kw, f c kw, n f ow",
        "conv_2d_nhwc_hwcf": "n oh ow f kh kw c: n oh~kh ow~kw c, kh kw c f, n oh ow f",
        "conv_2d_nhwc_fhwc": "n oh ow f kh kw c: n oh~kh ow~kw c, f kh kw c, n oh ow f",
        "conv_2d_nchw_fchw": "n f oh ow c kh kw: n c oh~kh ow~kw, f c kh kw, n f oh ow",
        "conv_2d_ngchw_fgchw": "n g f oh ow c kh kw: n g c oh~kh ow~kw, f g c kh kw, n g f oh ow",
        "conv_2d_ngchw_gfchw": "n g f oh ow c kh kw: n g c oh~kh ow~kw, g f c kh kw, n g f oh ow",
        "conv_2d_nhwgc_gfhwc": "n oh ow g f kh kw c: n oh~kh ow~kw g c, g f kh kw c, n oh ow g f",
        "conv_3d_ndhwc_dhwcf": "n od oh ow f kd kh kw c: n od~kd oh~kh ow~kw c, kd kh kw c f, n od oh ow f",
        "conv_3d_ncdhw_fcdhw": "n f od oh ow c kd kh kw: n c od~kd oh~kh ow~kw, f c kd kh kw, n f od oh ow",
        "depthwise_conv_1d_nwc_wc": "n ow c kw: n ow~kw c, kw c, n ow c",
        "depthwise_conv_1d_ncw_cw": "n ow c kw: n c ow~kw, c kw, n c ow",
        "depthwise_conv_1d_nwc_wcm": "n ow c m kw: n ow~kw c, kw c m, n ow c m",
        "depthwise_conv_2d_nhwc_hwc": "n oh ow c kh kw: n oh~kh ow~kw c, kh kw c, n oh ow c",
        "depthwise_conv_2d_nchw_chw": "n oh ow c kh kw: n c oh~kh ow~kw, c kh kw, n c oh ow",
        "depthwise_conv_2d_nhwc_hwcm": "n oh ow c m kh kw: n oh~kh ow~kw c, kh kw c m, n oh ow c m",
        "depthwise_conv_3d_ndhwc_dhwc": "n od oh ow kd kh kw c: n od~kd oh~kh ow~kw c, kd kh kw c, n od oh ow c",
        "depthwise_conv_3d_ncdhw_cdhw": "n od oh ow kd kh kw c: n c od~kd oh~kh ow~kw, c kd kh kw, n c od oh ow",
        "depthwise_conv_3d_ndhwc_dhwcm": "n od oh ow m kd kh kw c: n od~kd oh~kh ow~kw c, kd kh kw c m, n od oh ow c m",
    },
)


def _quantized(loops: str) -> str:
    """Subscripts of a product with two scalar zero points."""
    left, right, out = loops.rsplit(",", 2)
    return f"{left},{right}, , ,{out}"


_QUANTIZED: Final = {
    f"{prefix}{name}{suffix}": Form("quantized product", _quantized({**MAPPED, **_PRODUCTS}[name].loops))
    for prefix, suffix, names in (
        ("quantized_", "", ("matmul", "batch_matmul")),
        (
            "",
            "_q",
            (
                "conv_2d_nhwc_hwcf",
                "conv_2d_nhwc_fhwc",
                "conv_2d_nchw_fchw",
                "conv_2d_ngchw_gfchw",
                "conv_2d_nhwgc_gfhwc",
                "conv_3d_ndhwc_dhwcf",
                "depthwise_conv_2d_nhwc_hwc",
                "depthwise_conv_2d_nhwc_hwcm",
            ),
        ),
    )
    for name in names
}

_POOLED: Final[Mapping[str, str]] = {
    "nwc": "n ow c kw: n ow~kw c, kw, n ow c",
    "ncw": "n c ow kw: n c ow~kw, kw, n c ow",
    "nhwc": "n oh ow c kh kw: n oh~kh ow~kw c, kh kw, n oh ow c",
    "nchw": "n c oh ow kh kw: n c oh~kh ow~kw, kh kw, n c oh ow",
    "ndhwc": "n od oh ow c kd kh kw: n od~kd oh~kh ow~kw c, kd kh kw, n od oh ow c",
}
_POOLINGS: Final = {
    f"pooling_{layout}_{name}": Form(f"window {function}", _POOLED[layout])
    for name, function, layouts in (
        ("sum", "add", tuple(_POOLED)),
        ("max", "max_signed", tuple(_POOLED)),
        ("min", "min_signed", ("nwc", "nhwc", "ndhwc")),
        ("max_unsigned", "max_unsigned", ("nwc", "nhwc")),
        ("min_unsigned", "min_unsigned", ("nwc", "nhwc")),
    )
    for layout in layouts
}

_ELEMENTWISE: Final = {
    name.removesuffix("_signed"): Form(name) for name in ELEMENTWISE if name not in ("max_unsigned", "min_unsigned")
}

FORMS: Final[Mapping[str, Form]] = {
    **MAPPED,
    **_PRODUCTS,
    **_QUANTIZED,
    **_POOLINGS,
    **_ELEMENTWISE,
    "copy": Form("copy"),
    "fill": Form("copy"),
    "contract": Form("product"),
    "elementwise": Form(""),
}
"""Name without `linalg.` -> form. The last two have attributes with their maps and function."""


class FormOp(NamedOperation, ABC):
    """The region is the form's; xDSL's classes may have others."""


@dataclass(frozen=True)
class Structure:
    """A linalg op in terms of `linalg.generic`."""

    inputs: tuple[SSAValue, ...]
    outputs: tuple[SSAValue, ...]
    maps: tuple[AffineMap, ...]
    """For each input and output, the subscripts as functions of the loops; none for scalars."""
    loop_names: tuple[str, ...]
    body: Block
    """Elements of inputs and outputs -> new elements of the outputs."""

    @property
    def operands(self) -> tuple[SSAValue, ...]:
        return (*self.inputs, *self.outputs)

    @property
    def yielded(self) -> tuple[SSAValue, ...]:
        last = self.body.last_op
        return () if last is None else tuple(last.operands)


def is_structured(op: Operation) -> bool:
    """Whether `structure_of` accepts such ops."""
    dialect, _, name = op.name.partition(".")
    return dialect == "linalg" and (name in FORMS or name in _WITH_REGIONS)


_WITH_REGIONS: Final = ("broadcast", "generic", "map", "reduce", "transpose")


def output_count(op: Operation) -> int:
    """Outputs are the last operands."""
    segments = op.properties.get("operandSegmentSizes")
    if isinstance(segments, DenseArrayBase):
        return _integers(segments)[-1]
    return len(op.operands) // 2 if op.name == "linalg.reduce" else 1


def structure_of(op: Operation) -> Structure:
    """xDSL's named ops are identified by name, others by their region.

    Raises `CompileError` for mismatched operands, and types on which the op is undefined.
    """
    try:
        return _structure_of(op)
    except VerifyException as error:
        raise CompileError.at(op, f"{op.name}: {error}") from None


def _structure_of(op: Operation) -> Structure:
    count = len(op.operands) - output_count(op)
    inputs, outputs = tuple(op.operands[:count]), tuple(op.operands[count:])
    maps = maps_of(op)
    loops = maps[-1].num_dims if maps else 0
    form = FORMS.get(op.name.removeprefix("linalg."))
    names = _loops_of(form.loops)[0] if form is not None and form.loops else ()
    if form is None or isinstance(op, FormOp):
        body = op.regions[0].block
    else:
        body = region_of(op.name, op.operands, op.properties).block
    return Structure(inputs, outputs, maps, names or tuple(f"d{loop}" for loop in range(loops)), body)


def region_of(name: str, operands: Sequence[SSAValue], properties: Mapping[str, Attribute]) -> Region:
    kind, cast_ = properties.get("kind"), properties.get("cast")
    body = kind.data.value if isinstance(kind, ElementwiseKindAttr) else FORMS[name.removeprefix("linalg.")].body
    unsigned = isinstance(cast_, TypeFnAttr) and cast_.data is TypeFn.CAST_UNSIGNED
    return body_of(body, [element_type(operand) for operand in operands], unsigned)


def element_type(operand: SSAValue) -> Attribute:
    return operand.type.element_type if isinstance(operand.type, MemRefType | TensorType) else operand.type


def _rank(operand: SSAValue) -> int:
    return operand.type.get_num_dims() if isinstance(operand.type, MemRefType | TensorType) else 0


def maps_of(op: Operation) -> tuple[AffineMap, ...]:
    """Operands' subscripts as functions of the loops. Raises `VerifyException` if no maps match the operands."""
    stated = op.properties.get("indexing_maps")
    if not isinstance(stated, ArrayAttr):
        return default_maps(op)
    maps = tuple(map_.data for map_ in stated if isinstance(map_, AffineMapAttr))
    if len(maps) != len(op.operands):
        raise VerifyException(f"has {len(op.operands)} operands and {len(maps)} indexing maps")
    return maps


def default_maps(op: Operation) -> tuple[AffineMap, ...]:
    """`maps_of` without explicit maps."""
    name = op.name.removeprefix("linalg.")
    if name in ("transpose", "broadcast", "reduce"):
        return _maps_by_dimensions(op, name)
    form = FORMS.get(name)
    if form is None or not form.loops:
        rank = _rank(op.operands[-1])
        return tuple(AffineMap.identity(rank) if _is_shaped(v) else AffineMap(rank, 0, ()) for v in op.operands)
    names, subscripts = _loops_of(form.loops)
    if len(subscripts) != len(op.operands):
        raise VerifyException(f"takes {len(subscripts)} operands, got {len(op.operands)}")
    strides, dilations = (_factors(op, attribute, form.rank_of_windows) for attribute in ("strides", "dilations"))
    return tuple(_map(names, terms, strides, dilations) for terms in subscripts)


def _is_shaped(value: SSAValue) -> bool:
    return isinstance(value.type, MemRefType | TensorType)


def _maps_by_dimensions(op: Operation, name: str) -> tuple[AffineMap, ...]:
    listed = _integers(op.properties["permutation" if name == "transpose" else "dimensions"])
    rank = _rank(op.operands[0 if name == "reduce" else -1])
    if any(not 0 <= d < rank for d in listed) or len(set(listed)) != len(listed):
        raise VerifyException(f"has dimensions {list(listed)} of a rank of {rank}")
    if name == "transpose":
        inverse = sorted(range(len(listed)), key=listed.__getitem__)
        return AffineMap(rank, 0, tuple(map(AffineExpr.dimension, inverse))), AffineMap.identity(rank)
    kept = AffineMap(rank, 0, tuple(AffineExpr.dimension(d) for d in range(rank) if d not in listed))
    if name == "broadcast":
        return kept, AffineMap.identity(rank)
    outputs = output_count(op)
    return (AffineMap.identity(rank),) * (len(op.operands) - outputs) + (kept,) * outputs


def _integers(attribute: Attribute) -> tuple[int, ...]:
    return tuple(int(number) for number in cast("Any", attribute).get_values())


@lru_cache(maxsize=256)
def _loops_of(text: str) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    names, _, operands = text.partition(":")
    return tuple(names.split()), tuple(tuple(operand.split()) for operand in operands.split(","))


def _factors(op: Operation, name: str, rank: int) -> tuple[int, ...]:
    attribute = op.properties.get(name)
    if attribute is None:
        return (1,) * rank
    factors = _integers(attribute)
    if len(factors) != rank or any(factor < 1 for factor in factors):
        raise VerifyException(f"has {rank} window dimensions, and {name} {list(factors)}; they are positive")
    return factors


def _map(names: Sequence[str], terms: Sequence[str], strides: Sequence[int], dilations: Sequence[int]) -> AffineMap:
    loop = {name: AffineExpr.dimension(at) for at, name in enumerate(names)}
    results: list[AffineExpr] = []
    windows = 0
    for term in terms:
        outer, _, inner = term.replace("~", "+").partition("+")
        stride, dilation = (strides[windows], dilations[windows]) if "~" in term else (1, 1)
        windows += "~" in term
        place = _times(loop[outer], stride)
        results.append(place + _times(loop[inner], dilation) if inner else place)
    return AffineMap(len(names), 0, tuple(results))


def _times(expr: AffineExpr, factor: int) -> AffineExpr:
    return expr if factor == 1 else expr * factor


class TypeFn(StrEnum):
    """Signedness of widened integers, and of conversions from and to floats."""

    CAST_SIGNED = "cast_signed"
    CAST_UNSIGNED = "cast_unsigned"


ElementwiseKind: Any = StrEnum("ElementwiseKind", [(name.upper(), name) for name in ELEMENTWISE])


class _InAngles:
    """Prints as `#linalg.type_fn<cast_signed>`."""

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Any:
        with parser.in_angle_brackets():
            return super().parse_parameter(parser)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType]

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            super().print_parameter(printer)  # pyright: ignore[reportAttributeAccessIssue]


@irdl_attr_definition
class TypeFnAttr(_InAngles, EnumAttribute[TypeFn]):
    """Signedness of conversions in products and copies (`cast`)."""

    name = "linalg.type_fn"


@irdl_attr_definition
class ElementwiseKindAttr(_InAngles, EnumAttribute[ElementwiseKind]):
    name = "linalg.elementwise_kind"
