"""Two programs up to the names of values: equal ones, and the first difference of others."""

from __future__ import annotations

import pytest
from schedule_programs import PROGRAMS

import weft
from weft.analysis.structural_equality import first_difference

TEXT = PROGRAMS["row_sum"].text


def difference(old: str, new: str, count: int = 1) -> str:
    """What is said when a piece of the program is another one."""
    assert TEXT.count(old) >= count
    left, right = weft.parse(TEXT, "left.mlir"), weft.parse(TEXT.replace(old, new), "right.mlir")
    assert not weft.structural_equal(left, right)
    found, mirrored = first_difference(left, right), first_difference(right, left)
    assert found is not None and mirrored is not None
    with pytest.raises(AssertionError) as caught:
        weft.assert_structural_equal(left, right)
    assert str(caught.value) == f"the programs differ: {found}"
    return str(found)


def test_names_of_values_and_places_in_files_do_not_count():
    left = weft.parse(TEXT, "left.mlir")
    renamed = TEXT.replace("%vi", "%row").replace("%A", "%Input").replace("\n", "\n\n")
    weft.assert_structural_equal(left, weft.parse(renamed, "other.mlir"))
    assert weft.structural_equal(left, left.clone())


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_equals_its_text(name: str):
    module = weft.parse(PROGRAMS[name].text)
    weft.assert_structural_equal(module, weft.parse(str(module)))
    for other, program in PROGRAMS.items():
        assert weft.structural_equal(module, weft.parse(program.text)) == (name == other)


def test_the_first_difference_is_shown_with_its_places():
    text = difference('"S"', '"T"')
    assert text.splitlines()[0] == 'property \'block_name\' is "S" against "T"'
    assert "left.mlir:6:5" in text and "right.mlir:6:5" in text and 'tir.block "T"' in text
    assert "^^^" in text


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("arith.addf %s, %a", "arith.mulf %s, %a", "arith.addf against arith.mulf"),
        ("arith.subf %a, %s", "arith.subf %s, %a", "operand 0 is %a against %s"),
        ("spatial<13>) = [%i, %j]", "spatial<13>) = [%i, %j] where [%j] < [13]", "property 'guard' is none against"),
        ("= [%i, %j] {\n      tir.init", "= [%i, 12 - %j] {\n      tir.init", "property 'bindings' is"),
        (" {\n    tir.block \"C\"", " unrolled {\n    tir.block \"C\"", "property 'kind' is"),
        ("tir.for %j in 13 {\n    tir.block \"C\"", "tir.for %j in 13 attributes {n = 1 : i64} {\n    tir.block \"C\"",
         "attribute 'n' is none against 1 : i64"),
        ("      %c = arith.subf", "      %d = arith.addf %a, %s : f32\n      %c = arith.subf",
         "arith.subf against arith.addf"),
        ("@f", "@g", "property 'sym_name' is \"f\" against \"g\""),
    ],
)  # fmt: skip
def test_differences(old: str, new: str, message: str):
    assert message in difference(old, new).splitlines()[0]


def test_types_of_results_and_arguments():
    left = "func.func @f(%n: index) {\n  %a = arith.index_cast %n : index to i32\n  func.return\n}"
    text = str(first_difference(weft.parse(left), weft.parse(left.replace("i32", "i64"))))
    assert "gives i32 against i64" in text
    body = weft.parse("func.func @f(%n: index) { func.return }"), weft.parse("func.func @f(%n: f32) { func.return }")
    assert "function_type" in str(first_difference(*body))


def test_one_program_goes_on():
    short = weft.parse("func.func @f() { func.return }")
    long = weft.parse("func.func @f() { func.return }\nfunc.func @g() { func.return }")
    assert "only the right program has another operation here" in str(first_difference(short, long))
    assert "only the left program has another operation here" in str(first_difference(long, short))
