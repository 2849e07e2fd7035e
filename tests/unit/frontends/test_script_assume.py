"""`T.assume`: facts about extents in scripts."""

from __future__ import annotations

import re

import pytest
from script_roundtrip import check_roundtrip

import weft
from weft import te
from weft.script import parse
from weft.support.errors import CompileError

COPY = """
@T.prim_func
def f(a: T.handle, d: T.handle, k: T.int64):
    m = T.int64()
    n = T.int64()
    A = T.match_buffer(a, (m, n), "float32")
    D = T.match_buffer(d, (m, n + 1), "float32")
    {facts}
    for i, j in T.grid(m, n):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = A[vi, vj]
"""


def test_facts_are_read_and_printed():
    module = parse(COPY.format(facts="T.assume(n % 32 == 0, m >= k)\n    T.assume(1024 > m)"))
    facts = [str(op).strip() for op in module.walk() if op.name == "tir.assume"]
    assert len(facts) == 3
    text = str(module)
    for fact in ("tir.assume [%n mod 32] == [0]", "tir.assume [%k] <= [%m]", "tir.assume [%m] < [1024]"):
        assert fact in text
    script = check_roundtrip(module)
    for fact in ("T.assume(n % 32 == 0)", "T.assume(k <= m)", "T.assume(m < 1024)"):
        assert fact in script


def test_facts_of_tensor_expressions_are_printed():
    n, m = te.var("n"), te.var("m")
    a = te.placeholder((m, n), name="A")
    b = te.compute((m, n), lambda i, j: a[i, j] * 2, name="B")
    module = te.create_func([a, b], assume=[n % 32 == 0, n == m * 2])
    script = check_roundtrip(module)
    assert "T.assume(n % 32 == 0)" in script and "T.assume(n == m * 2)" in script


def test_scheduled_functions_keep_their_facts():
    sch = weft.Schedule(parse(COPY.format(facts="T.assume(n % 32 == 0)")))
    sch.split(sch.get_loops(sch.get_block("B"))[1], [None, 32])
    script = check_roundtrip(sch.mod)
    assert "T.assume(n % 32 == 0)" in script and "T.where" not in script


@pytest.mark.parametrize(
    ("fact", "message"),
    [
        ("T.assume()", "T.assume takes comparisons of extents"),
        ("T.assume(n)", "T.assume takes comparisons of extents by ==, <=, <, >= or >"),
        ("T.assume(n != 3)", "T.assume takes comparisons of extents by ==, <=, <, >= or >"),
        ("x = T.assume(n == 4)", "T.assume"),
    ],
)
def test_wrong_facts(fact: str, message: str):
    with pytest.raises(CompileError, match=re.escape(message)):
        parse(COPY.format(facts=fact))
