"""Block names, annotations, symbols and scopes of any characters print as text that reads back: IR, script, traces."""

import pytest
from script_roundtrip import check_roundtrip

import weft
from weft.script import parse

PROGRAM = """
@T.prim_func
def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    T.func_attr({"global_symbol": NAME, NAME: NAME})
    C = T.alloc_buffer((8,), "float32", scope=NAME)
    for i in T.serial(8, annotations={NAME: NAME}):
        with T.block(NAME):
            vi = T.axis.spatial(8, i)
            T.block_attr({NAME: [NAME, {NAME: 1}]})
            C[vi] = A[vi]
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = C[vi]
"""
NAMES = ["é", "日本 😀", "q\"u'ote\\", "new\nline\r\v\f\t\0\x7f", "\u2028\u200b", '"""', "%x{y}", "kind"]


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_names_of_any_characters(name: str) -> None:
    module = parse(PROGRAM.replace("NAME", repr(name)))
    check_roundtrip(module)
    weft.assert_structural_equal(weft.parse(str(module)), module)
    sch = weft.Schedule(module)
    block = sch.get_block(name, func_name=name)
    (loop,) = sch.get_loops(block)
    sch.annotate(loop, f"{name} 2", [name, 1])
    sch.annotate(block, f"{name} 3", name)
    sch.unannotate(loop, name)
    weft.assert_structural_equal(weft.parse(str(sch.mod)), sch.mod)
    check_roundtrip(sch.mod)
    from_text, from_python = weft.Schedule(module), weft.Schedule(module)
    from_text.replay(next(iter(weft.parse(str(sch.trace)).ops)))
    weft.run_trace(from_python, weft.trace_as_python(sch.trace))
    weft.assert_structural_equal(from_text.mod, sch.mod)
    weft.assert_structural_equal(from_python.mod, sch.mod)


def test_half_a_character_is_no_text() -> None:
    with pytest.raises(weft.CompileError, match=r"user.py:\d+:\d+: error: text has half of a character"):
        parse(PROGRAM.replace("NAME", repr("\ud800")), "user.py")
