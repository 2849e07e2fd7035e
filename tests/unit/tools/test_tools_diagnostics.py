"""`--verify-diagnostics`: how annotations are read and compared."""

import pytest

from weft.support.errors import CompileError
from weft.support.locations import SourceLocation
from weft.tools.diagnostics import Diagnostic, expectations_in, unmet


def differences(text: str, *diagnostics: tuple[str, str, int]) -> list[str]:
    """What `text` does not expect of (kind, message, line); line 0 is no place."""
    given = [
        Diagnostic(kind, message, SourceLocation("f.mlir", line, 1) if line else None)
        for kind, message, line in diagnostics
    ]
    return [error.message for error in unmet(expectations_in(text, "f.mlir"), given, "f.mlir")]


@pytest.mark.parametrize(
    ("text", "kind", "line"),
    [
        ("x // expected-error {{m}}", "error", 1),
        ("// expected-warning@+2 {{m}}\n\nx", "warning", 3),
        ("x\n// expected-remark@-1 {{m}}", "remark", 1),
        ("x\n// expected-note @above {{m}}", "note", 1),
        ("x\n// expected-error@+2 {{n}}\n// expected-error@above {{m}}\ny", "error", 1),
        ("// expected-error@below {{m}}\n// expected-error@below 0 {{n}}\nx", "error", 3),
        ("// expected-error@unknown {{m}}", "error", 0),
        ("x // expected-error@+5 0 {{n}} expected-error {{m}}", "error", 1),
    ],
)
def test_where_a_diagnostic_is_expected(text: str, kind: str, line: int) -> None:
    left = ["expected error 'n' was not produced"] if "+2 {{n}}" in text else []
    assert differences(text, (kind, "a message", line)) == left
    wrong = differences(text, (kind, "a message", 9))
    assert wrong[0] == f"unexpected {kind}: a message"
    assert f"expected {kind} 'm' was not produced" in wrong


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{{a b}}", "an a b c"),
        ("{{{a = 1}}}", "of {a = 1}"),
        ("{{[a.b*]}}", "the [a.b*]"),
        ("{{{a = {b = 1}}}}", "{a = {b = 1}}"),
    ],
)
def test_plain_text_is_part_of_the_message(text: str, message: str) -> None:
    assert differences(f"// expected-error {text}", ("error", message, 1)) == []


@pytest.mark.parametrize(
    ("text", "message", "fits"),
    [
        ('{{block "{{[A-Z]}}" has {{[0-9]+}} loops}}', 'block "B" has 12 loops', True),
        ('{{block "{{[A-Z]}}" has {{[0-9]+}} loops}}', 'block "b" has 12 loops', False),
        ("{{{{a|b}}.c}}", "b.c", True),
        ("{{{{a|b}}.c}}", "bxc", False),
        ("{{x{{[0-9]{2}}}}}", "x12", True),
        ("{{x{{[0-9]{2}}}}}", "x1", False),
    ],
)
def test_regular_expressions(text: str, message: str, fits: bool) -> None:
    assert (differences(f"// expected-error-re {text}", ("error", message, 1)) == []) is fits


def test_counts() -> None:
    remark = ("remark", "m", 1)
    assert differences("// expected-remark 2 {{m}}", remark, remark) == []
    assert differences("// expected-remark 2 {{m}}", remark) == ["expected remark 'm' was produced 1 times of 2"]
    assert differences("// expected-remark 1+ {{m}}", remark, remark, remark) == []
    assert differences("// expected-remark 1+ {{m}}") == ["expected remark 'm' was not produced"]
    assert differences("// expected-remark 0-1 {{m}}") == []
    assert differences("// expected-remark 0-1 {{m}}", remark, remark) == ["unexpected remark: m"]
    assert differences("// expected-remark {{m}}", remark, remark) == ["unexpected remark: m"]


def test_kinds_do_not_stand_for_each_other() -> None:
    wrong = ["unexpected error: m", "expected remark 'm' was not produced"]
    assert differences("// expected-remark {{m}}", ("error", "m", 1)) == wrong


def test_a_place_in_another_file_is_no_place() -> None:
    expected = expectations_in("// expected-error {{m}}\n// expected-error@unknown {{m}}", "f.mlir")
    elsewhere = Diagnostic("error", "m", SourceLocation("g.mlir", 1, 1))
    assert [e.message for e in unmet(expected, [elsewhere], "f.mlir")] == ["expected error 'm' was not produced"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("// expected-failure {{m}}", "expected-failure is not known: it is one of error, warning, note, remark"),
        ("// expected-error@next {{m}}", "expected-error@next: the place is"),
        ("// expected-error-re {{ {{(}} }}", "has a wrong regular expression"),
    ],
)
def test_wrong_annotations(text: str, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        expectations_in(text, "f.mlir")
