"""weft.te: names and shapes of what it builds, and the messages of what it refuses."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.affine import ApplyOp
from xdsl.dialects.builtin import IndexType, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block
from xdsl.ir.affine import AffineExpr

import weft
from weft import te
from weft.support.errors import CompileError
from weft.texpr.emit import ElementEmitter

EXAMPLES = Path(__file__).parents[3] / "examples"


def mm_relu() -> list[te.Tensor]:
    A = te.placeholder((128, 128), "float32", name="A")
    B = te.placeholder((128, 128), "float32", name="B")
    k = te.reduce_axis((0, 128), name="k")
    Y = te.compute((128, 128), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="Y")
    C = te.compute((128, 128), lambda i, j: te.max(Y[i, j], 0.0), name="C")
    return [A, B, C]


def function(module: ModuleOp) -> FuncOp:
    found = module.body.block.first_op
    assert isinstance(found, FuncOp)
    return found


def test_create_func_gives_the_program_of_the_example() -> None:
    written = weft.parse_file(str(EXAMPLES / "mm_relu.mlir"))
    weft.assert_structural_equal(function(te.create_func(mm_relu(), name="mm_relu")), function(written))


def test_names_of_loops_iterators_blocks_and_buffers() -> None:
    text = str(te.create_func(mm_relu(), name="mm_relu"))
    for line in (
        "func.func @mm_relu(%A: memref<128x128xf32>, %B: memref<128x128xf32>, %C: memref<128x128xf32>) {",
        "%Y = memref.alloc() : memref<128x128xf32>",
        'tir.block "Y" iters(%vi: spatial<128>, %vj: spatial<128>, %vk: reduce<128>) = [%i, %j, %k] {',
        'tir.block "C" iters(',
    ):
        assert line in text


def test_both_argument_orders_and_defaults() -> None:
    m, n = te.var("m"), te.var("n", "int32")
    assert repr(te.placeholder((m, n), name="A")) == "Tensor(A: (m, n), float32)"
    assert repr(te.placeholder((4, 4), "int64", name="B")) == "Tensor(B: (4, 4), int64)"
    assert repr(te.placeholder((4,), "float16", "C")) == "Tensor(C: (4,), float16)"
    assert te.placeholder(7, dtype=np.int8).shape == (7,)
    assert te.placeholder((np.int64(3),), np.dtype("float64")).dtype == "float64"
    assert te.create_prim_func is te.create_func


def test_what_tensors_tell() -> None:
    A, B, C = mm_relu()
    Y = C.op.input_tensors[0]
    assert isinstance(Y, te.Tensor)
    assert (Y.name, Y.dtype, Y.shape, Y.ndim) == ("Y", "float32", (128, 128), 2)
    operation: Any = Y.op
    assert [axis.name for axis in operation.axis] == ["i", "j"]
    assert [(axis.name, axis.dom) for axis in operation.reduce_axis] == [("k", (0, 128))]
    assert operation.input_tensors == (A, B)
    assert operation.output(0) is Y
    assert str(operation.body[0]) == "sum((A[i, k] * B[k, j]), axis=[k])"
    assert len(A) == 128


def test_shapes_compare_by_form() -> None:
    m, n = te.var("m"), te.var("n")
    A, B = te.placeholder((m, n + 1), name="A"), te.placeholder((n + 1, 4), name="B")
    assert A.shape[1] == B.shape[0]
    assert A.shape[0] != B.shape[0]
    assert A.shape[0] != 4


def test_equal_names_of_hidden_tensors_are_told_apart() -> None:
    A = te.placeholder((4,), name="A")
    first = te.compute((4,), lambda i: te.max(A[i], 0.0), name="relu")
    second = te.compute((4,), lambda i: te.max(first[i] - 1.0, 0.0), name="relu")
    text = str(te.create_func([A, second]))
    assert 'tir.block "relu" ' in text
    assert 'tir.block "relu_1" ' in text


def test_names_that_ir_cannot_keep_become_names_that_it_can() -> None:
    first, second = te.placeholder((4,), name="x_1"), te.placeholder((4,), name="x_2")
    total = te.compute((4,), lambda ι: first[ι] + second[ι], name="total_1")
    text = str(te.create_func([first, second, total]))
    assert "(%x1: memref<4xf32>, %x2: memref<4xf32>, %total1: memref<4xf32>)" in text
    assert 'tir.block "total_1" iters(%vi0: spatial<4>) = [%i0]' in text


def test_functions_are_independent_of_each_other() -> None:
    tensors = mm_relu()
    first, second = te.create_func(tensors, name="f"), te.create_func(tensors, name="f")
    weft.assert_structural_equal(first, second)
    assert function(first) is not function(second)


def test_equal_parts_are_written_once() -> None:
    A = te.placeholder((4, 4), name="A")

    def element(i: Any, j: Any) -> Any:
        x = te.exp(A[i, j + 1 - 1])
        return x / (x + 1.0) + A[i, j]

    text = str(te.create_te_func([A, te.compute((4, 4), element, name="C")]))
    assert text.count("math.exp") == 1
    assert text.count("tensor.extract") == 1


def test_errors_have_the_place_of_the_expression() -> None:
    A, B = te.placeholder((4,), "float32", name="A"), te.placeholder((4,), "int32", name="B")
    with pytest.raises(CompileError) as caught:
        te.compute((4,), lambda i: A[i] + B[i], name="C")
    location = caught.value.location
    assert location is not None
    assert location.file == __file__
    assert "A[i] + B[i]" in Path(__file__).read_text().splitlines()[location.line - 1]
    assert "lambda i: A[i] + B[i]" in str(caught.value)


def test_operations_keep_the_place_of_their_definition() -> None:
    from weft.support.locations import location_of

    module = te.create_func(mm_relu(), name="f")
    blocks = [op for op in module.walk() if op.name == "tir.block"]
    lines = Path(__file__).read_text().splitlines()
    for block, name in zip(blocks, ("Y", "C"), strict=True):
        location = location_of(block)
        assert location is not None
        assert f'name="{name}"' in lines[location.line - 1]


def tensor(dtype: str = "float32", name: str = "A") -> te.Tensor:
    return te.placeholder((4, 5), dtype, name)


def build(element: Callable[..., Any], *inputs: te.Tensor) -> ModuleOp:
    return te.create_func([*inputs, te.compute((4, 5), element, name="C")])


k = te.reduce_axis((0, 5), "k")
A, B, INT, F64, FLAG = (
    tensor(),
    tensor("float64", "B"),
    tensor("int32", "I"),
    tensor("float64", "F"),
    tensor("bool", "P"),
)

REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "mixed floats": (
        lambda: build(lambda i, j: A[i, j] + F64[i, j]),
        "`+` mixes element types: `A[i, j]` is float32 and `F[i, j]` is float64; cast one, for example with "
        ".astype('float32')",
    ),
    "index and int8": (
        lambda: build(lambda i, j: INT[i, j].astype("int8") * i),
        "`*` mixes element types: `int8(I[i, j])` is int8 and `i` is int64; cast one",
    ),
    "float number beside an integer": (
        lambda: build(lambda i, j: INT[i, j] * 0.5),
        "0.5 is no int32 beside `I[i, j]`: cast one side",
    ),
    "number too big": (
        lambda: build(lambda i, j: tensor("int8")[i, j] + 300),
        "300 beside `A[i, j]` does not fit int8, which holds -128 to 127",
    ),
    "number beyond float16": (
        lambda: build(lambda i, j: tensor("float16")[i, j] + 1e9),
        "1000000000.0 beside `A[i, j]` is beyond the greatest float16, 65504.0",
    ),
    "division of integers": (
        lambda: build(lambda i, j: INT[i, j] / 2),
        "`/` takes floats, got int32 in `I[i, j] / 2`: use // or te.truncdiv for integers, or cast",
    ),
    "division by zero": (lambda: build(lambda i, j: INT[i, j] % 0), "`I[i, j] % 0` divides by zero"),
    "arithmetic on bool": (
        lambda: build(lambda i, j: FLAG[i, j] + FLAG[i, j]),
        "`+` takes numbers, got bool in `P[i, j] + P[i, j]`: cast, or use &, | and ^",
    ),
    "order of bools": (
        lambda: build(lambda i, j: FLAG[i, j] < FLAG[i, j]),
        "bools have no order: `P[i, j] < P[i, j]`",
    ),
    "logic on floats": (lambda: build(lambda i, j: A[i, j] & A[i, j]), "`&` takes integers or bools, got float32"),
    "function of an integer": (
        lambda: build(lambda i, j: te.exp(INT[i, j])),
        "exp takes floats, got int32 `I[i, j]`: cast first",
    ),
    "bits of a float": (
        lambda: build(lambda i, j: te.popcount(A[i, j])),
        "popcount takes integers, got float32 `A[i, j]`",
    ),
    "truth": (
        lambda: build(lambda i, j: A[i, j] if i < 3 else A[i, 0]),
        "the truth of `(i < 3)` is not known while the expression is built: use te.all, te.any and te.if_then_else",
    ),
    "chained comparison": (
        lambda: build(lambda i, j: te.select(0 <= i < 3, A[i, j], 0)),
        "the truth of `(i >= 0)` is not known",
    ),
    "condition": (
        lambda: build(lambda i, j: te.if_then_else(A[i, j], A[i, j], 0.0)),
        "if_then_else needs a bool condition, got float32 `A[i, j]`: compare it",
    ),
    "branches": (
        lambda: build(lambda i, j: te.select(i > 0, A[i, j], INT[i, j])),
        "select mixes element types: `A[i, j]` is float32 and `I[i, j]` is int32",
    ),
    "all of numbers": (
        lambda: build(lambda i, j: te.all(i > 0, INT[i, j])),
        "te.all takes bools, got int32 `I[i, j]`: compare it",
    ),
    "rank": (
        lambda: build(lambda i, j: A[i]),
        "A has rank 2 (shape (4, 5)) but is read with 1 index, A[i]",
    ),
    "rank of a call": (lambda: build(lambda *i: A(*i, 0)), "but is read with 3 indices, A[i0, i1, 0]"),
    "slice": (lambda: build(lambda i, j: A[i, 0:3]), "A[i, :]: slices are not elements; give 2 indices"),
    "float index": (
        lambda: build(lambda i, j: A[A[i, j], 0]),
        "index 0 of A must be an integer, got float32 `A[i, j]`",
    ),
    "out of bounds": (
        lambda: build(lambda i, j: A[i, 5]),
        "A[i, 5] reads out of bounds: index 1 is 5, its extent 5",
    ),
    "arithmetic on tensors": (
        lambda: A + B,
        "A is a tensor: operators work on its elements, as in te.compute(A.shape, lambda *i: A(*i) + 1)",
    ),
    "tensor as a number": (lambda: build(lambda i, j: i + A), "A is a tensor"),
    "no expression": (lambda: build(lambda i, j: "x"), "expected an expression or a number, got 'x' of type str"),
    "indices": (
        lambda: te.compute((4, 5), lambda i: A[i, 0], name="C"),
        "compute C: the shape has rank 2, but its function takes 1 indices",
    ),
    "keyword": (
        lambda: te.compute((4,), lambda i, *, j: A[i, j], name="C"),
        "its function must take indices only, but needs j=",
    ),
    "no element": (lambda: te.compute((4,), lambda i: (), name="C"), "compute C returns no element"),
    "free reduce axis": (
        lambda: te.create_func([A, te.compute((4,), lambda i: A[i, k], name="C")]),
        "reduce axis k is used outside a reduction over it: write te.sum(..., axis=k)",
    ),
    "axis reduced twice": (
        lambda: build(lambda i, j: te.sum(te.sum(A[i, k], axis=k) * A[i, k], axis=k)),
        "reduce axis k is reduced twice, in a reduction and in one around it",
    ),
    "axis named twice": (
        lambda: build(lambda i, j: te.sum(A[i, k], axis=[k, k])),
        "te.sum: axis ['k', 'k'] names one axis twice",
    ),
    "no axis": (
        lambda: build(lambda i, j: te.sum(A[i, j])),
        "te.sum needs the axis to reduce over: te.sum(expr, axis=k)",
    ),
    "axis of another kind": (
        lambda: build(lambda i, j: te.sum(A[i, j], axis=j)),
        "te.sum reduces over axes made by te.reduce_axis, got j",
    ),
    "sum of bools": (
        lambda: te.compute((4,), lambda i: te.sum(FLAG[i, k], axis=k)),
        "te.sum takes numbers, got bool `P[i, k]`: cast, or use te.any and te.all",
    ),
    "max of one": (lambda: build(lambda i, j: te.max(A[i, j])), "te.max takes two numbers, or one and axis="),
    "max of two and an axis": (
        lambda: build(lambda i, j: te.max(A[i, k], 0.0, axis=k)),
        "te.max takes either a second number or an axis, got both",
    ),
    "range": (lambda: te.reduce_axis((3, 1), "r"), "reduce axis r: the range (3, 1) ends before it starts"),
    "no range": (lambda: te.reduce_axis(5, "r"), "reduce axis r: its range is (low, high), got 5"),  # pyright: ignore
    "combiner": (
        lambda: te.comm_reducer(lambda x, y: x > y, lambda t: te.const(0, t), name="best")(A[0, k], axis=k),
        "best: what the combiner returns is bool `(accumulator 0 > accumulator 1)`, but what is reduced is float32",
    ),
    "identity": (
        lambda: te.comm_reducer(lambda x, y: x, lambda t: (te.const(0, t), 1), name="best")(A[0, k], axis=k),
        "best: the identity has 2 values for 1 that are reduced",
    ),
    "index of another compute": (
        lambda: te.create_func([A, te.compute((4,), lambda i: te.compute((5,), lambda j: A[i, j])[0], name="C")]),
        "index i belongs to another compute",
    ),
    "dtype": (lambda: te.placeholder((4,), "uint4x"), "there is no element type 'uint4x', did you mean"),
    "extent": (lambda: te.placeholder((4, -1), name="A"), "placeholder A: extent 1 must not be negative, got -1"),
    "float extent": (
        lambda: te.placeholder((4.5,), name="A"),
        "placeholder A: extent 0 must be an integer, got 4.5",
    ),
    "extent that is read": (
        lambda: te.compute((INT[0, 0],), lambda i: i),
        "compute compute: extent 0 is `I[0, 0]`: extents are made of integers and integer variables by + - * // %, min "
        "and max",
    ),
    "name": (
        lambda: te.placeholder((4,), name="a b"),
        "names are words of letters, digits, underscores and dots, got 'a b'",
    ),
    "name that is a number": (
        lambda: te.var("1"),
        "names are words that start with a letter or an underscore, got '1'",
    ),
    "shape as dtype": (lambda: te.placeholder((4,), (5,)), "there is no element type (5,)"),
    "unlisted placeholder": (
        lambda: te.create_func([te.compute((4,), lambda i: A[i, 0], name="C")]),
        "placeholder A is read, but it is not in the list of parameters",
    ),
    "nothing computed": (
        lambda: te.create_func([A]),
        "a function computes at least one of its parameters: list a computed tensor, got A",
    ),
    "listed twice": (lambda: te.create_func([A, A]), "A is listed twice"),
    "one name": (
        lambda: te.create_func([A, te.compute((4,), lambda i: A[i, 0], name="A")]),
        "two parameters are called 'A': Tensor(A: (4, 5), float32) and Tensor(A: (4,), float32); give one another name",
    ),
    "no tensor": (lambda: te.create_func([A, 3]), "parameters are tensors and variables, got 3 of type int"),  # pyright: ignore
    "unknown variable": (
        lambda: te.create_func([A, te.compute((te.var("n"),), lambda i: A[0, 0], name="C")]),
        "the value of variable n is not known: it is no extent of a listed placeholder; list it as a parameter",
    ),
    "infinity of an integer": (lambda: te.infinity("int8"), "int8 has no infinity: use te.max_value"),
    "limits of bool": (lambda: te.max_value("bool"), "bool has no greatest value"),
    "no number": (lambda: te.const("1"), "const takes a number, got '1' of type str"),  # pyright: ignore
    "function name": (lambda: te.create_func(mm_relu(), name=""), "the name of a function is a word, got ''"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    provoke, message = REFUSED[case]
    with pytest.raises(CompileError) as caught:
        provoke()
    assert message in str(caught.value)
    assert caught.value.location is not None
    assert caught.value.location.file == __file__


def test_long_sums_are_written() -> None:
    def deep(i: Any) -> Any:
        total = A[0, 0]
        for _ in range(5000):
            total = total + A[i, 0]
        return total

    C = te.compute((4,), deep, name="C")
    assert len(str(C.op.body[0])) < 400  # pyright: ignore
    assert sum(op.name == "arith.addf" for op in te.create_func([A, C]).walk()) == 5000


def test_deeply_nested_choices_are_refused_with_advice() -> None:
    def deep(i: Any) -> Any:
        total = A[0, 0]
        for position in range(2000):
            total = te.if_then_else(i < position, total, A[i, 0])
        return total

    C = te.compute((4,), deep, name="C")
    with pytest.raises(
        CompileError, match="an expression is nested too deeply: compute parts of it as separate tensors"
    ):
        te.create_func([A, C])


def test_shared_parts_do_not_blow_up() -> None:
    def doubled(i: Any) -> Any:
        total = A[i, 0]
        for _ in range(60):
            total = total + total
        return total

    text = str(te.create_te_func([A, te.compute((4,), doubled, name="C")]))
    assert text.count("arith.addf") == 60


def test_expressions_that_are_gone_are_not_taken_for_new_ones() -> None:
    n = te.var("n")
    entry = Block(arg_types=[IndexType()])
    emitter = ElementEmitter(entry, {}, {n: entry.args[0]})
    for factor in range(2, 20):
        value = emitter.index(n * factor)  # dies here, and Python may build the next one in its place
        assert isinstance(value.owner, ApplyOp)
        assert value.owner.map.data.results[0] == AffineExpr.dimension(0) * factor
    for count in range(1, 20):
        emitter.value((n * n * count).astype("float32"))
        assert sum(op.name == "arith.sitofp" for op in entry.ops) == count
