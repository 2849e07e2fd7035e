"""What graphs refuse, with the text of each message."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from c_programs import needs_compiler

import weft
from weft import graph as G
from weft.passes.graph.graph_bind_params import load_arrays
from weft.support.errors import CompileError

T4 = "tensor<4xf32>"


def function(body: str, name: str = "f", result: str = T4) -> str:
    return f"func.func @{name}(%x: {T4}, %y: tensor<3xf32>, %z: tensor<4xi32>) -> {result} {{\n{body}\n}}\n"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        # Shapes and dtypes that do not fit, both named.
        (
            f"%a = graph.add %x, %y : {T4}, tensor<3xf32> -> {T4} func.return %a : {T4}",
            r"2:6: error: graph.add: the shapes \(4,\) and \(3,\) do not broadcast: extents 4 and 3",
        ),
        (
            f"%a = graph.add %x, %z : {T4}, tensor<4xi32> -> {T4} func.return %a : {T4}",
            r"2:6: error: graph.add: `\+` mixes element types: `lhs\[i0\]` is float32 and `rhs\[i0\]` is int32",
        ),
        (
            f"%a = graph.relu %x : {T4} -> tensor<5xf32> func.return %x : {T4}",
            r"graph.relu: result 0 is declared tensor<5xf32>, but the operands give tensor<4xf32>",
        ),
        # Unknown operator and function.
        (
            f"%a = graph.reluu %x : {T4} func.return %x : {T4}",
            "unknown operation 'graph.reluu', did you mean 'graph.relu'",
        ),
        (
            f"%a = graph.call_tir @g(%x) : ({T4}) -> {T4} func.return %a : {T4}",
            "graph.call_tir: there is no function @g with a type in this module",
        ),
        # A cycle of values, and of calls.
        (
            f"%a = graph.relu %b : {T4} %b = graph.exp %a : {T4} func.return %b : {T4}",
            r"2:6: error: 'graph.relu' uses %b before its definition, the result of 'graph.exp' at line 2",
        ),
        (
            f"%a = graph.call_tir @f(%x, %y, %z) : ({T4}, tensor<3xf32>, tensor<4xi32>) -> {T4} func.return %a : {T4}",
            "graph.call_tir: functions of graphs do not call themselves: @f calls @f",
        ),
        # Constants whose data are missing or cut off.
        (
            f"%a = graph.constant dense_resource<graph_errors_none> : {T4} func.return %a : {T4}",
            "graph.constant: the file gives no data for the resource 'graph_errors_none'",
        ),
    ],
)
def test_programs(body: str, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        weft.build(function(body))


def test_functions_that_call_each_other() -> None:
    calls = [
        function(
            f"%a = graph.call_tir @{other}(%x, %y, %z) : ({T4}, tensor<3xf32>, tensor<4xi32>) -> {T4} "
            f"func.return %a : {T4}",
            name,
        )
        for name, other in (("f", "g"), ("g", "h"), ("h", "g"))
    ]
    with pytest.raises(CompileError, match="do not call themselves: @g calls @h calls @g"):
        weft.build("".join(calls))


def test_resources_of_one_key_in_several_files() -> None:
    """Each file has its own data, whatever files before it called theirs."""

    def text(data: str) -> str:
        body = f"%a = graph.constant dense_resource<w> : {T4} %b = graph.add %a, %a : {T4}, {T4} func.return %b : {T4}"
        constant = f"func.func @f() -> {T4} {{ {body} }}"
        return constant.replace(
            "%b = graph.add %a, %a", f"%c = graph.constant dense_resource<w> : {T4} %b = graph.add %a, %c"
        ) + (f'\n{{-# dialect_resources: {{ builtin: {{ w: "0x04000000{data}" }} }} #-}}')

    for value, data in ((2, "0000803f" * 4), (4, "00000040" * 4)):
        assert weft.build(text(data))["f"]().tolist() == [value] * 4
    with pytest.raises(CompileError, match=r"resource 'w\w*' has 12 bytes, but tensor<4xf32> takes 16"):
        weft.build(text("00000040" * 3))


def test_extents_that_contradict_at_a_call() -> None:
    bb, x, y = G.BlockBuilder(), G.var("x", ("n", 3)), G.var("y", ("n", 3))
    with bb.function("f", [x, y]):
        bb.emit_func_output(G.add(x, y))
    arrays = np.ones((2, 3), np.float32), np.ones((4, 3), np.float32)
    for call in (weft.build(bb.get())["f"], lambda *a: weft.Interpreter(bb.get()).call("f", *a)):
        with pytest.raises(
            ValueError, match=r"f: argument 2 \('y'\): expected shape \(n, 3\) with n = 2 \(from axis 0 of 'x'\), got"
        ):
            call(*arrays)


@pytest.mark.parametrize("target", ["llvm", pytest.param("c", marks=needs_compiler)])
def test_no_memory_for_temporaries(target: str) -> None:
    bb, x, y = G.BlockBuilder(), G.var("x", ("n", 1)), G.var("y", (1, "n"))
    with bb.function("f", [x, y]):
        bb.emit_func_output(G.sum(G.matmul(G.softmax(G.matmul(x, y)), x), axis=1))
    f = weft.build(bb.get(), target=target)["f"]
    assert f(np.ones((2, 1), np.float32), np.ones((1, 2), np.float32)).tolist() == [1, 1]
    most = 1 << 24  # of which the product has 1 PiB
    arrays = np.ones((most, 1), np.float32), np.ones((1, most), np.float32)
    with pytest.raises(
        MemoryError,
        match=rf"f: there is no memory for \d{{16}} bytes of temporaries of a call on 'x' \({most}, 1\), 'y' ",
    ):
        f(*arrays)


def bindable() -> G.Module:
    bb, x, y, u = G.BlockBuilder(), G.var("x", ("n", 3)), G.var("y", ("n", 3)), G.var("unused", (3,))
    with bb.function("f", [x, y, u]):
        bb.emit_func_output(G.add(x, y))
    return bb.get()


def ones(*shape: int, dtype: str = "float32") -> Any:
    return np.ones(shape, dtype)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"w": ones(3)}, r"@f has no parameter 'w' \(known: 'unused', 'x', 'y'\)"),
        ({"unused": ones(3)}, "parameter 'unused' of @f is never used: bind no array to it"),
        (
            {"x": ones(2, 4)},
            r"parameter 'x' of @f has shape \(n, 3\), got an array of shape \(2, 4\): dimension 1 is 3, not 4",
        ),
        ({"x": ones(3)}, r"parameter 'x' of @f has shape \(n, 3\), got an array of shape \(3,\)"),
        ({"x": ones(2, 3, dtype="float64")}, "parameter 'x' of @f holds float32 elements, got an array of float64"),
        (
            {"x": ones(2, 3), "y": ones(5, 3)},
            "parameter 'y' of @f: dimension 0 is 'n', which other arrays give as 2, but this",
        ),
    ],
)
def test_bound_parameters(values: dict[str, Any], message: str) -> None:
    with pytest.raises(CompileError, match=message):
        G.bind_params(bindable(), "f", values)


def test_a_parameter_is_bound_once() -> None:
    bound = G.bind_params(bindable(), "f", {"x": ones(2, 3)})
    with pytest.raises(CompileError, match="parameter 'x' of @f is bound already, to tensor<2x3xf32>"):
        G.bind_params(bound, "f", {"x": ones(2, 3)})
    with pytest.raises(CompileError, match="the module has no function @g"):
        G.bind_params(bound, "g", {})


def test_files_of_arrays(tmp_path: Path) -> None:
    path = tmp_path / "weights.npz"
    with pytest.raises(CompileError, match=r"cannot read arrays from '.*weights.npz': .*No such file"):
        load_arrays(str(path))
    np.savez_compressed(path, x=np.random.default_rng(1).random(1000))
    whole = path.read_bytes()
    for content, reason in (
        (whole[:4000], "File is not a zip file"),
        (b"", "No data left in file"),
        (whole[:3000] + bytes(100) + whole[3100:], "(Bad CRC-32|Error -3|invalid)"),
    ):
        path.write_bytes(content)
        with pytest.raises(CompileError, match=rf"cannot read arrays from '.*weights.npz': .*{reason}"):
            load_arrays(str(path))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.npy", b"no array")
    with pytest.raises(CompileError, match=r"cannot read arrays from .*: 'x' is no array"):
        load_arrays(str(path))


x = G.var("x", (2, 3))


def two_functions(second: Callable[[G.BlockBuilder, G.Value], None]) -> None:
    bb = G.BlockBuilder()
    with bb.function("first", [a := G.var("a", (2,))]):
        value = bb.emit(G.relu(a))
        bb.emit_func_output(value)
    second(bb, value)


def in_another(bb: G.BlockBuilder, value: G.Value) -> None:
    with bb.function("second", [b := G.var("b", (2,))]):
        bb.emit_func_output(G.add(value, b))


def parameter_again(bb: G.BlockBuilder, value: G.Value) -> None:
    with bb.function("second", [b := G.var("b", (2,))]):
        bb.emit_func_output(b)
    with bb.function("third", [b]):
        pass


def inside_of_dataflow(bb: G.BlockBuilder, value: G.Value) -> None:
    with bb.function("second", [b := G.var("b", (2,))]):
        with bb.dataflow():
            inner = bb.emit(G.relu(b))
            outer = bb.emit_output(G.exp(inner))
        bb.emit(G.add(inner, outer))


def operator_as_parameter(bb: G.BlockBuilder, value: G.Value) -> None:
    with bb.function("second", [value]):
        pass


def unknown_callee(bb: G.BlockBuilder, value: G.Value) -> None:
    with bb.function("second", [b := G.var("b", (2,))]):
        bb.call_tir("firts", [b], [b.type])


def variable_of_none(bb: G.BlockBuilder, value: G.Value) -> None:
    with bb.function("second", [G.var("b", (2,))]):
        bb.emit(G.relu(G.var("c", (2,))))


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (
            in_another,
            r"Value\(relu: \(2,\) float32\) is no parameter or value of the function",
        ),
        (
            parameter_again,
            "function @third: 'b' is a parameter of @second already: each function takes separate variables",
        ),
        (
            inside_of_dataflow,
            r"Value\(relu: \(2,\) float32\) does not leave the dataflow region: give it to emit_output",
        ),
        (operator_as_parameter, r"function @second: a parameter is a variable \(weft.graph.var\), got Value\(relu"),
        (unknown_callee, "call_tir: the module has no function @firts, did you mean 'first'"),
        (variable_of_none, "variable 'c' is no parameter or value of the function"),
        (lambda bb, _: bb.remove_function("second"), "unknown function 'second'"),
        (lambda *_: G.call_dps("f", [x], [(2,)], ["int8", "int8"]), "call_dps f: 1 shapes for 2 dtypes"),
        (lambda *_: G.call_dps("f", [1], (2,)), "call_dps f: an argument must be a value of a graph, got 1"),  # pyright: ignore[reportArgumentType]
        (lambda *_: G.call_dps("f", [x], (-2,)), "call_dps f: an extent is not negative, got -2"),
    ],
)
def test_builders(second: Callable[[G.BlockBuilder, G.Value], None], message: str) -> None:
    with pytest.raises(CompileError, match=message):
        two_functions(second)
