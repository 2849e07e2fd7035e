"""The arrays of a run: what fits, and what a wrong file, name or shape says."""

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from weft.support.array_files import read_npy
from weft.support.call_preconditions import CallPrecondition
from weft.support.call_signature import ArraySpec, ScalarSpec, Signature
from weft.support.errors import CompileError
from weft.tools.arrays import Request, assignments, make_arguments, sizes_note, write_npy

MATMUL = Signature(
    "mm",
    (
        ArraySpec("A", "float32", ("m", "k")),
        ArraySpec("B", "float32", ("k", 128)),
        ScalarSpec("alpha", "float32"),
        ArraySpec("C", "float32", ("m", 128), "write"),
    ),
    ("m", "k"),
)


def make(inputs: dict[str, str] | None = None) -> dict[str, object]:
    return dict(make_arguments(MATMUL, Request({"alpha": "2", **(inputs or {})}, 0)))


def test_shapes_reach_every_array_through_the_symbols(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.ones((3, 5), np.float32))
    values = make({"A": str(tmp_path / "a.npy")})
    assert [getattr(v, "shape", v) for v in values.values()] == [(3, 5), (5, 128), 2.0, (3, 128)]
    assert np.isnan(values["C"]).all()
    again = make({"A": str(tmp_path / "a.npy")})
    assert np.array_equal(values["B"], again["B"])
    assert not np.array_equal(values["B"], np.zeros((5, 128)))


def test_extents_that_nothing_tells_meet_the_preconditions() -> None:
    facts = (CallPrecondition("3 <= m"), CallPrecondition("m <= 5"))
    values = make_arguments(replace(MATMUL, facts=facts), Request({"alpha": "2"}, 0))
    assert [getattr(v, "shape", v) for v in values.values()] == [(3, 1), (1, 128), 2.0, (3, 128)]


def test_chosen_sizes_are_told() -> None:
    """Sizes that nothing states meet the preconditions, elements of integer arguments among them."""
    args = (
        ArraySpec("x", "float32", ("n", 6)),
        ArraySpec("s", "int64", (3,)),
        ArraySpec("y", "float32", ("s.2",), "write"),
    )
    facts = (CallPrecondition("6 * n == s.0 * s.1 * s.2"), CallPrecondition("2 <= s.1"))
    signature, chosen = Signature("f", args, ("s.0", "s.1", "n", "s.2"), 1, facts), dict[str, int]()
    values = make_arguments(signature, Request({}, 0), chosen)
    sizes = cast("np.ndarray[Any, Any]", values["s"]).tolist()
    assert {**chosen} == {"n": chosen["n"], **{f"s.{at}": size for at, size in enumerate(sizes)}}
    assert 6 * chosen["n"] == sizes[0] * sizes[1] * sizes[2]
    assert sizes[1] >= 2
    assert sizes_note({"n": 1, "s.0": 6}) == "sizes     n = 1, s.0 = 6 (chosen: --shape and --input state others)"
    assert sizes_note({}) == ""


def test_elements_of_given_arrays_are_sizes(tmp_path: Path) -> None:
    np.save(tmp_path / "s.npy", np.array([2, 3]))
    args = (ArraySpec("s", "int64", (2,)), ArraySpec("y", "float32", ("s.0", "s.1"), "write"))
    chosen = dict[str, int]()
    values = make_arguments(Signature("f", args, ("s.0", "s.1"), 1), Request({"s": str(tmp_path / "s.npy")}, 0), chosen)
    assert (getattr(values["y"], "shape", None), chosen) == ((2, 3), {})


def test_every_element_type_has_random_arrays() -> None:
    for dtype in ("bool", "int8", "int64", "uint8", "float16", "bfloat16", "float32", "float64"):
        spec = ArraySpec("x", dtype, (64,))
        out = ArraySpec("y", dtype, (64,), "write")
        x, y = make_arguments(Signature("f", (spec, out)), Request({}, 1)).values()
        assert isinstance(x, np.ndarray) and isinstance(y, np.ndarray)
        assert x.dtype == y.dtype == (np.uint16 if dtype == "bfloat16" else np.dtype(dtype))
        assert len(np.unique(x)) > 1
        (positive, _) = make_arguments(Signature("f", (spec, out)), Request({}, 1, positive=True)).values()
        assert dtype in ("bool", "bfloat16") or np.all(np.greater(positive, 0))


def test_a_file_round_trip_keeps_rank_and_makes_rows_contiguous(tmp_path: Path) -> None:
    file = str(tmp_path / "a.npy")
    for array in (np.float32(3.5) * np.ones(()), np.asfortranarray(np.arange(6.0).reshape(2, 3))):
        write_npy(file, array)
        loaded = read_npy(file)
        assert loaded.shape == array.shape
        assert np.array_equal(loaded, array)
        assert loaded.flags.c_contiguous


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"A": "{a35}", "B": "{b6}"}, "extent 'k' is 5 in argument 'A', but 6 in 'B'"),
        ({"A": "{double}"}, "argument 'A: float32[m, k]' takes float32, the file holds float64"),
        ({"B": "{a35}"}, "argument 'B: float32[k, 128]' does not take shape 3x5"),
        ({"A": "{text}"}, "text.npy' is not a .npy file with an array of numbers"),
        ({"A": "{objects}"}, "objects.npy' is not a .npy file with an array of numbers: Object arrays cannot"),
        ({"A": "{several}"}, "several.npz' holds several arrays (.npz): give a .npy file with one"),
        ({"alpha": "x"}, "--input alpha=x: argument 'alpha: float32' takes a float, got 'x'"),
    ],
)
def test_what_does_not_fit(inputs: dict[str, str], message: str, tmp_path: Path) -> None:
    np.save(tmp_path / "a35.npy", np.ones((3, 5), np.float32))
    np.save(tmp_path / "b6.npy", np.ones((6, 128), np.float32))
    np.save(tmp_path / "double.npy", np.ones((3, 5)))
    np.save(tmp_path / "objects.npy", np.array([None, {}]), allow_pickle=True)
    np.savez(tmp_path / "several.npz", a=np.ones(2), b=np.ones(3))
    (tmp_path / "text.npy").write_text("1 2 3")
    files = {p.stem: str(p) for p in tmp_path.iterdir()}
    with pytest.raises(CompileError) as caught:
        make({name: text.format(**files) for name, text in inputs.items()})
    assert message in str(caught.value)


def test_a_scalar_has_no_random_value() -> None:
    with pytest.raises(CompileError, match="scalar argument 'alpha: float32' needs a value: --input alpha=NUMBER"):
        make_arguments(MATMUL, Request({}, 0))


def test_a_missing_file_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_npy(str(tmp_path / "none.npy"))


def test_assignments() -> None:
    assert assignments(["A=a=b.npy"], "--input", ["A"], "argument") == {"A": "a=b.npy"}
    for words, message in (
        (["A"], "--input takes NAME=VALUE, got 'A'"),
        (["A="], "--input takes NAME=VALUE, got 'A='"),
        (["a=x"], "--input a=x: there is no argument 'a' (known: 'A', 'B')"),
        (["A=x", "A=y"], "--input gives 'A' twice: x and y"),
    ):
        with pytest.raises(CompileError) as caught:
            assignments(words, "--input", ["A", "B"], "argument")
        assert caught.value.message == message
