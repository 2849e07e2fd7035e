"""Elementary functions at infinities, NaN, zeros of both signs, subnormal, largest and threshold numbers: in the
interpreter, compiled by LLVM, and compiled from C."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from exported_programs import needs_compiler
from ulps import EXACT, WIDE, WIDER, Array, errors, special

import weft
from weft import te
from weft.interp.interpreter import Interpreter
from weft.texpr.references import reference_of

NAMES = [name for name in EXACT if name != "powf"]
PAIRS = [0.0, -0.0, 1.0, -1.0, 2.0, -3.0, 0.5, -0.5, np.inf, -np.inf, np.nan, 3.4e38, -3.4e38, 1e-45, -1e-45, 2.5]
"""Bases and exponents of powers."""
WAYS = ["reference", "te", "tir", "llvm", pytest.param("c", marks=needs_compiler)]
ELEMENTS = [
    np.float32,
    pytest.param(
        np.float64,
        marks=[pytest.mark.slow, pytest.mark.skipif(not WIDE, reason="no arithmetic wider than double")],
    ),
]
BOUND = {np.float32: 1.5, np.float64: 3.0}
"""Largest errors in units in the last place: those of sin and cos, and those of the C library."""


def results(way: str, x: Array, bases: Array, exponents: Array) -> list[Array]:
    """The results of the functions, then the powers."""
    if way == "reference":
        with np.errstate(all="ignore"):
            found = [reference_of(name)(x) for name in NAMES]
            return [*found, reference_of("power")(bases, exponents)]
    dtype = str(x.dtype)
    inputs = [te.placeholder(given.shape, dtype, name) for name, given in (("x", x), ("b", bases), ("e", exponents))]
    outputs = [getattr(te.ops, name)(inputs[0], name=f"y_{name}") for name in NAMES]
    outputs.append(te.ops.power(inputs[1], inputs[2], name="y_power"))
    parameters = [*inputs, *outputs]
    if way == "te":
        return list(Interpreter(te.create_te_func(parameters)).call("main", x, bases, exponents))
    module = te.create_func(parameters)
    call: Any = Interpreter(module).call if way == "tir" else weft.build(module, target=way)["main"]
    found = [np.empty(given.shape, dtype) for given in (*[x] * len(NAMES), bases)]
    call(*(("main",) if way == "tir" else ()), x, bases, exponents, *found)
    return found


@pytest.mark.parametrize("kind", ELEMENTS)
@pytest.mark.parametrize("way", WAYS)
def test_edge_values(way: str, kind: Any) -> None:
    x = special(kind)
    bases, exponents = (np.ravel(each).astype(kind) for each in np.meshgrid(PAIRS, PAIRS))
    wide = WIDER[kind]
    with np.errstate(all="ignore"):
        expected = [EXACT[name](x.astype(wide)) for name in NAMES]
        expected.append(np.power(bases.astype(wide), exponents.astype(wide)))
    for name, found, exact in zip([*NAMES, "power"], results(way, x, bases, exponents), expected, strict=True):
        assert found.dtype == kind
        off = errors(np.asarray(found), exact)
        at = int(np.argmax(off))
        given = x[at] if name != "power" else (bases[at], exponents[at])
        assert off[at] <= BOUND[kind], f"{name}({given!r}) is {exact[at]!r}, got {found[at]!r}"
