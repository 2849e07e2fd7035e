"""What graph passes know of operators: the traits that they declare hold for their references, and what is derived from
their tensor expressions is what the operators compute."""

import numpy as np
import pytest
from xdsl.dialects.builtin import TensorType
from xdsl.dialects.test import TestOp as AnyOp
from xdsl.traits import Commutative, OpTrait

from weft.analysis.operator_patterns import ChannelAxes, OperatorKind
from weft.dialects.attribute_values import attribute_of
from weft.dialects.graph_shapes import ShapeError
from weft.dialects.graph_traits import (
    Discontinuous,
    Elementwise,
    Idempotent,
    Involution,
    Product,
    RightNeutral,
    ViewLike,
)
from weft.passes.graph.operator_properties import pattern_of
from weft.passes.graph.operators import OPERATOR_OF, with_trait
from weft.texpr.expr import holds_all, type_of
from weft.texpr.graph_operators import Operator

VALUES = {
    "float32": np.array([-2.5, -1.0, -0.0, 0.5, 3.0, np.inf], np.float32),
    "int32": np.array([-7, -1, 0, 1, 4, 9], np.int32),
    "bool": np.array([False, True, True, False, False, True]),
}


def made(name: str, *types: tuple[tuple[int, ...], str], **properties: object) -> Operator:
    """An operator on operands of shapes and dtypes."""
    values = [AnyOp(result_types=[TensorType(type_of(dtype), shape)]).results[0] for shape, dtype in types]
    return OPERATOR_OF[name].of(values, {key: attribute_of(value) for key, value in properties.items()})


def applied(name: str, *arrays: np.ndarray) -> np.ndarray | None:
    """The reference on arrays, None if the operator does not take their dtypes."""
    try:
        made(name, *((array.shape, array.dtype.name) for array in arrays))
    except ShapeError:
        return None
    with np.errstate(all="ignore"):
        return OPERATOR_OF[name].REFERENCE(*arrays)


@pytest.mark.parametrize("name", sorted(with_trait(Commutative)))
def test_commutative_operators_are(name: str) -> None:
    found = [(applied(name, x, x[::-1].copy()), applied(name, x[::-1].copy(), x)) for x in VALUES.values()]
    assert any(one is not None for one, _ in found)
    for one, other in found:
        np.testing.assert_array_equal(one, other)


def test_operators_that_are_not_commutative_declare_it_of_none() -> None:
    for name in ("subtract", "divide", "power", "less", "where", "left_shift", "copysign"):
        assert not OPERATOR_OF[name].has_trait(Commutative)


@pytest.mark.parametrize(
    "name, trait", sorted((name, trait) for trait in (Idempotent, Involution) for name in with_trait(trait)), ids=str
)
def test_operators_of_their_own_result(name: str, trait: type[OpTrait]) -> None:
    for x in VALUES.values():
        once = applied(name, x)
        if once is not None:
            expected = once if trait is Idempotent else x
            np.testing.assert_array_equal(applied(name, np.asarray(once, x.dtype)), expected)


@pytest.mark.parametrize("name", sorted(with_trait(RightNeutral)))
def test_neutral_elements_keep_all_bits(name: str) -> None:
    trait = OPERATOR_OF[name].get_trait(RightNeutral)
    assert isinstance(trait, RightNeutral)
    for x in (VALUES["float32"], VALUES["int32"]):
        number = np.full_like(x, trait.number)
        if x.dtype.kind == "f" and not trait.of_floats:
            assert np.signbit(OPERATOR_OF[name].REFERENCE(x, number)).tolist() != np.signbit(x).tolist()
        elif (found := applied(name, x, number)) is not None:
            assert found.tobytes() == x.tobytes()


@pytest.mark.parametrize("name", sorted(with_trait(Elementwise)))
def test_elementwise_operators_read_at_the_index_of_the_result(name: str) -> None:
    operator = OPERATOR_OF[name]
    assert not {"axis", "axes", "shape", "newshape"} & operator.SIGNATURE.parameters.keys()
    given = {"bitcast": {"dtype": "int32"}, "cast": {"dtype": "int8"}, "clip": {"a_min": 0.5}}.get(name, {})
    for dtype in VALUES:
        of = ((2, 3, 4), dtype)
        operands = [((2, 3, 4), "bool") if name == "where" and not at else of for at in range(len(operator.ROLES))]
        try:
            op = made(name, *operands, **given)
        except ShapeError:
            continue
        pattern = pattern_of(op)
        assert pattern is not None
        assert pattern.kind is OperatorKind.ELEMENTWISE
        return
    pytest.fail(f"{name} takes none of {', '.join(VALUES)}")


@pytest.mark.parametrize("name", sorted(with_trait(ViewLike)))
def test_views_keep_the_order_of_elements(name: str) -> None:
    x = np.arange(24).reshape(2, 1, 3, 4)
    arguments = {"reshape": [(6, 4)], "expand_dims": [1]}.get(name, [])
    np.testing.assert_array_equal(OPERATOR_OF[name].REFERENCE(x, *arguments).ravel(), x.ravel())


def image(*shape: int) -> tuple[tuple[int, ...], str]:
    return shape, "float32"


@pytest.mark.parametrize(
    "op, channels",
    [
        (made("matmul", image(3, 4), image(4, 5)), ChannelAxes((1,), 1, (1,))),
        (made("matmul", image(4, 3), image(4, 5), transpose_a=True), ChannelAxes((1,), 1, (0,))),
        (made("matmul", image(3, 4), image(5, 4), transpose_b=True), ChannelAxes((0,), 1, (1,))),
        (made("matmul", image(2, 3, 4), image(2, 4, 5)), ChannelAxes((2,), 2, (2,))),
        (made("matmul", image(4), image(4, 5)), ChannelAxes((1,), 0, (0,))),
        (made("matmul", image(1, 4), image(4, 1)), ChannelAxes((1,), 1, (1,))),
        (made("matmul", image(3, 4), image(4)), None),
        (made("batch_matmul", image(2, 3, 4), image(1, 5, 4)), ChannelAxes((1,), 2, (2,))),
        (made("dense", image(3, 4), image(5, 4)), ChannelAxes((0,), 1, (1,))),
        (made("dense", image(3, 4), image(5, 4), image(5)), ChannelAxes((0,), 1, (1,))),
        (made("conv1d", image(1, 4, 9), image(6, 4, 3)), ChannelAxes((0,), 1, (1, 2))),
        (made("conv2d", image(1, 4, 9, 9), image(6, 2, 3, 3), groups=2, padding=1), ChannelAxes((0,), 1)),
        (made("conv2d", image(1, 9, 9, 4), image(3, 3, 4, 6), data_layout="NHWC"), ChannelAxes((3,), 3, (1, 2, 3))),
        (made("depthwise_conv2d", image(1, 4, 9, 9), image(4, 1, 3, 3)), ChannelAxes((0,), 1, (2, 3))),
        (made("depthwise_conv2d", image(1, 4, 9, 9), image(4, 2, 3, 3)), ChannelAxes((0, 1), 1, (2, 3))),
        (made("conv2d_transpose", image(1, 4, 5, 5), image(4, 6, 3, 3), strides=2), ChannelAxes((1,), 1)),
        (made("conv2d_transpose", image(1, 4, 5, 5), image(4, 6, 3, 3), groups=2), None),
        (made("add", image(3, 4), image(3, 4)), None),
        (made("attention", image(1, 2, 3, 4), image(1, 2, 3, 4), image(1, 2, 3, 4)), None),
    ],
    ids=str,
)
def test_channels_of_products(op: Operator, channels: ChannelAxes | None) -> None:
    pattern = pattern_of(op)
    assert pattern is not None
    assert pattern.channels == channels


@pytest.mark.parametrize(
    "op, moves",
    [
        (made("transpose", image(3, 4)), True),
        (made("strided_slice", image(3, 4), begin=[0, 1], end=[2, 4]), True),
        (made("tile", image(3, 4), reps=2), True),
        (made("max_pool2d", image(1, 4, 8, 8), kernel=3, padding=1), True),
        (made("max", image(3, 4), axis=1), True),
        (made("avg_pool2d", image(1, 4, 8, 8), kernel=2), False),
        (made("pad", image(3, 4), pad_width=1), False),
        (made("relu", image(3, 4)), False),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_operators_that_move_elements(op: Operator, moves: bool) -> None:
    pattern = pattern_of(op)
    assert pattern is not None
    assert pattern.moves is moves


@pytest.mark.parametrize(
    "name, operands, properties, rounds_once",
    [
        ("softmax", [(3, 4)], {"axis": 1}, True),
        ("layer_norm", [(3, 4)], {"axis": 1}, True),
        ("silu", [(3, 4)], {}, True),
        ("matmul", [(3, 4), (4, 5)], {}, True),
        ("sum", [(3, 4)], {"axis": 1}, True),
        ("conv2d", [(1, 4, 8, 8), (4, 4, 3, 3)], {"padding": 1}, True),
        ("relu", [(3, 4)], {}, False),
        ("exp", [(3, 4)], {}, False),
        ("add", [(3, 4), (3, 4)], {}, False),
        ("transpose", [(3, 4)], {}, False),
        ("dense", [(3, 4), (5, 4), (5,)], {}, False),
    ],
)
def test_operators_that_round_once(
    name: str, operands: list[tuple[int, ...]], properties: dict[str, object], rounds_once: bool
) -> None:
    for dtype in ("float16", "bfloat16"):
        pattern = pattern_of(made(name, *((shape, dtype) for shape in operands), **properties))
        assert pattern is not None
        assert pattern.rounds_once is rounds_once


def test_dtypes_that_hold_all_values_of_others() -> None:
    numbers = {dtype: np.dtype(dtype) for dtype in ("int8", "int16", "int32", "int64", "uint8", "uint16", "float16")}
    for narrow, of in numbers.items():
        for wide, into in numbers.items():
            is_wider = narrow != wide and np.can_cast(of, into, "safe")
            assert holds_all(wide, narrow) == is_wider, f"{wide} of {narrow}"
    assert holds_all("float64", "int32")
    assert not holds_all("float64", "int64")
    assert not holds_all("float16", "bfloat16")
    assert not holds_all("float32", "float8_e4m3fn")


@pytest.mark.parametrize("name", sorted(with_trait(Discontinuous)))
def test_discontinuous_operators_jump_between_neighbouring_floats(name: str) -> None:
    """Comparisons and quotients jump where the operand is 2 or a multiple of it."""
    at = np.array([0.0, 0.5, 1.0, 2.0, np.finfo(np.float32).max], np.float32)
    others = [np.full_like(at, 2.0)] * (len(OPERATOR_OF[name].ROLES) - 1)
    jumps = False
    with np.errstate(over="ignore"):
        neighbours = [np.nextafter(at, np.float32(sign * np.inf)) for sign in (-1, 1)]
    for neighbour in neighbours:
        one, other = applied(name, at, *others), applied(name, neighbour, *others)
        assert one is not None
        assert other is not None
        jumps |= bool(np.any(np.abs(one.astype(float) - other.astype(float)) >= 1))
    assert jumps


@pytest.mark.parametrize("name", sorted(with_trait(Product)))
def test_factors_of_matrix_products_may_have_different_types(name: str) -> None:
    trait, rank = OPERATOR_OF[name].get_trait(Product), {"batch_matmul": 3, "conv2d": 4, "attention": 4}.get(name, 2)
    assert isinstance(trait, Product)
    types = [((4,) * rank, dtype) for dtype in ("float32", "bfloat16", "float32")[: trait.factors]]
    if trait.of_matrices:
        assert made(name, *types, out_dtype="float32").results[0].type.element_type == type_of("float32")
    else:
        with pytest.raises(ShapeError, match="bfloat16"):
            made(name, *types)
