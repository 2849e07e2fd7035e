"""Whatever a file holds, reading it ends with a module or with an error at a place."""

import math
import random
import re
from pathlib import Path

import pytest
from tiers import first_tier
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FileLineColLoc, UnknownLoc

import weft
from weft.driver.parsing import decode_text, parse_text
from weft.driver.programs import context
from weft.driver.verify import verify_module
from weft.support.errors import CompileError
from weft.support.locations import SourceLocation, location_of, remember_text, render_source_line

ROOT = Path(__file__).parents[3]
TOKEN = re.compile(r'\s+|"[^"]*"|[%@^!#]?[\w.$-]+|.', re.DOTALL)
WORDS = (
    *("0", "-1", "99999999999999999999", "%x", "{", "}", "(", ")", "<", ">", "[", "]", '"', ":", "="),
    *("f32", "i1", "memref<?xf32>", "tensor<4xf32>", "loc(unknown)", "tir.for", "^bb0", "affine_map<(d0)->(d0 mod 0)>"),
)


def programs() -> list[str]:
    found = [(ROOT / "examples" / "mm_relu.mlir").read_text()]
    for file in sorted((ROOT / "tests").rglob("*.mlir")):
        found.extend(file.read_text().split("// -----"))
    return found


def mutated(text: str, generator: random.Random) -> str:
    tokens = TOKEN.findall(text)
    for _ in range(generator.randint(1, 3)):
        at, other = generator.randrange(len(tokens)), generator.randrange(len(tokens))
        match generator.randrange(4):
            case 0:
                del tokens[at]
            case 1:
                tokens[at] = generator.choice(WORDS)
            case 2:
                tokens.insert(at, tokens[other])
            case _:
                tokens[at], tokens[other] = tokens[other], tokens[at]
        if not tokens:
            break
    return "".join(tokens)


@pytest.mark.parametrize("count", first_tier([150, 2000], 150))
def test_mutated_programs_are_read_or_refused_at_a_place(count: int) -> None:
    generator = random.Random(7)
    texts = [text for text in programs() if text.strip()]
    refused = 0
    for _ in range(count):
        text = mutated(generator.choice(texts), generator)
        try:
            verify_module(parse_text(context(), text, "mutated.mlir"))
        except CompileError as error:
            refused += 1
            assert error.location is not None, f"{error}\n{text}"
            assert error.location.line <= text.count("\n") + 1
    assert refused > count // 4


def test_locations_are_those_of_operation_names_and_explicit_ones_win() -> None:
    text = "func.func @f(%a: i32) {\n  %x, %y = arith.addui_extended %a, %a : i32, i1\n  func.return loc(unknown)\n}\n"
    text += 'func.func @g() {\n  "func.return"() : () -> () loc("other.mlir":3:4)\n}\n'
    module = parse_text(context(), text, "f.mlir", line_offset=10)
    places = [(op.name, str(location_of(op))) for op in module.walk() if isinstance(op.location, FileLineColLoc)]
    assert places == [
        ("func.func", "f.mlir:11:1"),
        ("arith.addui_extended", "f.mlir:12:12"),
        ("func.return", "f.mlir:13:3"),  # unknown is what an operation without a location has
        ("func.func", "f.mlir:15:1"),
        ("func.return", "other.mlir:3:4"),
    ]
    assert isinstance(module.location, UnknownLoc)


def test_a_line_is_shown_around_its_place() -> None:
    line = "x" * 1000 + " here " + "y" * 1000
    remember_text("long", f"first\r\n\t{line}\r\n")
    shown, carets = render_source_line(SourceLocation("long", 2, 1003, 4)).split("\n")
    assert len(shown) < 200
    assert shown.startswith("... x") and shown.endswith("y ...")
    start = carets.index("^")
    assert shown[start : start + carets.count("^")] == "here"
    shown, carets = render_source_line(SourceLocation("long", 2, 2)).split("\n")
    assert shown.startswith("\txxx")
    assert carets.startswith("\t^")
    assert render_source_line(SourceLocation("long", 9, 1)) == ""


def test_text_that_is_not_utf8() -> None:
    assert decode_text("é".encode(), "a.mlir") == "é"
    with pytest.raises(CompileError) as caught:
        decode_text(b"ab\n\xc3\xa9 \xff", "a.mlir")
    assert caught.value.location == SourceLocation("a.mlir", 2, 3)


def test_deep_nesting_is_no_crash() -> None:
    deep = "scf.execute_region {\n" * 5000
    with pytest.raises(CompileError, match="nested too deeply to be read"):
        parse_text(context(), f"func.func @f() {{\n{deep}", "deep.mlir")


@pytest.mark.parametrize(
    "type_, bits", [("f16", "0xfc00"), ("bf16", "0xff80"), ("f32", "0xff800000"), ("f64", "0xfff0000000000000")]
)
def test_dense_floats_may_be_written_as_bits(type_: str, bits: str) -> None:
    for literal in (f"dense<{bits}>", f"dense<[{bits}, 1.0]>"):
        module = weft.parse(f"builtin.module attributes {{x = {literal} : vector<2x{type_}>}} {{}}")
        assert str(weft.parse(str(module))) == str(module)
        value = module.attributes["x"]
        assert isinstance(value, DenseIntOrFPElementsAttr)
        assert next(iter(value.get_values())) == -math.inf
    with pytest.raises(CompileError, match=f"{bits}0 has more than the"):
        weft.parse(f"builtin.module attributes {{x = dense<{bits}0> : vector<2x{type_}>}} {{}}")


def test_functions_without_a_name_are_refused_where_others_are_called() -> None:
    text = """
    "builtin.module"() ({
      "func.func"() <{function_type = () -> ()}> ({ "func.return"() : () -> () }) : () -> ()
      func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {
        %y = graph.call_tir @g(%x) : (tensor<2xf32>) -> tensor<2xf32>
        func.return %y : tensor<2xf32>
      }
    }) : () -> ()
    """
    with pytest.raises(weft.CompileError, match=r"property 'sym_name' expected in operation 'func\.func'"):
        weft.parse(text)
