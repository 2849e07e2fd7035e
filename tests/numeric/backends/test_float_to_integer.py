"""Conversions of floats to integers, of edge values, on every level and target, against the recorded table."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from every_way import check_every_way
from float_to_integer_table import FLOATS, INTEGERS, TABLE
from tiers import first_tier

import weft
import weft.graph as G
from weft import te
from weft.interp.interpreter import Interpreter
from weft.support.float_to_integer import float_to_integer, floats_to_integers

_TABLE: dict[str, dict[str, int]] = {k: v for k, v in json.loads(TABLE.read_text()).items() if k != "versions"}
_LENGTH = 203
"""Larger than each list of numbers, and no multiple of the lanes of a vector: every number is in a body, some in a
tail, and the last ones in both."""
TARGETS = ("llvm", "c")


def _array(source: str, numbers: list[float]) -> Any:
    given = np.resize(np.array(numbers), _LENGTH)
    dtype = ml_dtypes.bfloat16 if source == "bfloat16" else source
    return given.astype(dtype)


def _dtype(name: str) -> Any:
    return getattr(ml_dtypes, name) if name in ("int4", "uint4", "int2", "uint2") else np.dtype(name)


def _cases(source: str) -> tuple[Any, dict[str, Any]]:
    """The numbers of a type, and what each integer type makes of them."""
    rows = {target: _TABLE[f"{source} {target}"] for target in INTEGERS}
    numbers = [float(x) for x in rows["int8"]]
    expected = {
        target: np.resize(np.array([*row.values()], dtype="uint64" if target == "uint64" else "int64"), _LENGTH)
        for target, row in rows.items()
    }
    return _array(source, numbers), expected


def test_the_rule_is_the_table() -> None:
    for pair, row in _TABLE.items():
        source, target = pair.split()
        bits, signed, is_double = int(target.lstrip("uint")), target[0] == "i", source == "float64"
        numbers = [float(x) for x in row]
        scalars = [float_to_integer(x, bits, signed=signed, is_double=is_double) for x in numbers]
        assert [x % 2**bits for x in scalars] == [x % 2**bits for x in row.values()], pair
        array = np.array(numbers, "float64" if is_double else "float32")
        assert floats_to_integers(array, bits, signed=signed).tolist() == [*row.values()], pair


@pytest.mark.parametrize("targets", [TARGETS, pytest.param(("opencl",), marks=pytest.mark.slow)])
@pytest.mark.parametrize("source", first_tier(FLOATS, "float32", "float64"))
def test_every_pair(source: str, targets: tuple[str, ...]) -> None:
    if "opencl" in targets:
        pytest.importorskip("pyopencl")
    array, expected = _cases(source)
    A = te.placeholder((_LENGTH,), name="A", dtype=source)
    computed = [te.compute((_LENGTH,), lambda i, t=target: A(i).astype(t), name=f"to_{target}") for target in INTEGERS]
    wanted = [expected[target].astype(_dtype(target)) for target in INTEGERS]
    check_every_way([A, *computed], [array], wanted, targets)


@pytest.mark.parametrize("source", first_tier(FLOATS, "float32"))
def test_fused_chains(source: str) -> None:
    """The float of the integer of a float that is itself computed: no target may leave the integer out."""
    array, expected = _cases(source)
    A = te.placeholder((_LENGTH,), name="A", dtype=source)
    integers = [target for target in INTEGERS if int(target.lstrip("uint")) >= 8]

    def element(target: str) -> Any:
        return lambda i: (A(i) * te.const(1.0, source)).astype(target).astype("float64") + 1.0

    computed = [te.compute((_LENGTH,), element(target), name=f"by_{target}") for target in integers]
    wanted = [expected[target].astype("float64") + 1.0 for target in integers]
    check_every_way([A, *computed], [array], wanted, TARGETS)


@pytest.mark.parametrize("dtype", ["uint16", "int8", "uint64"])
def test_graph_cast_in_the_body_and_in_the_tail(dtype: str) -> None:
    bb = G.BlockBuilder()
    x = G.var("x", (37,), "float32")
    with bb.function("main", [x]):
        with bb.dataflow():
            y = bb.emit_output(G.cast(x, dtype))
        bb.emit_func_output(y)
    for number in (-300.0, np.nan, np.inf):
        given = np.full(37, number, "f4")
        bits = np.dtype(dtype).itemsize * 8
        wanted = floats_to_integers(given, bits, signed=dtype[0] == "i")
        for found in (
            Interpreter(bb.get()).call("main", given),
            *(weft.build(bb.get(), target=target)["main"](given) for target in TARGETS),
        ):
            np.testing.assert_array_equal(np.asarray(found), wanted)


@pytest.mark.slow
def test_the_table_is_what_the_script_writes() -> None:
    """On x86-64 with the recorded versions."""
    torch = pytest.importorskip("torch")
    versions = json.loads(TABLE.read_text())["versions"]
    if versions != f"torch {torch.__version__.partition('+')[0]}, numpy {np.__version__}, x86-64":
        pytest.skip(f"the table was written with {versions}")
    before = TABLE.read_text()
    script = TABLE.parents[1] / "helpers" / "float_to_integer_table.py"
    subprocess.run([sys.executable, str(script)], check=True, timeout=100)
    assert TABLE.read_text() == before
