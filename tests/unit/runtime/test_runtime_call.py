"""Calls of compiled functions: what is accepted, and the message for each way an argument can be wrong."""

import array
import gc
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.func import FuncOp

import weft
from weft.backends.llvm.jit import jit
from weft.dialects.low_signature import signature_of
from weft.runtime.call import Caller, native_entry
from weft.support.call_arguments import bind_arguments
from weft.support.call_preconditions import CallPrecondition
from weft.support.call_signature import ELEMENT_TYPES, Access, ArraySpec, ScalarSpec, Signature
from weft.support.errors import CompileError
from weft.support.target import Target

HOST = Target("llvm")

ADD = """
define void @add(ptr noalias %A, ptr noalias %B, ptr noalias %C, i64 %n) {
entry:
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %loop, label %done
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %a.at = getelementptr float, ptr %A, i64 %i
  %a = load float, ptr %a.at
  %b.at = getelementptr float, ptr %B, i64 %i
  %b = load float, ptr %b.at
  %c = fadd float %a, %b
  %c.at = getelementptr float, ptr %C, i64 %i
  store float %c, ptr %c.at
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}
"""
ADD_SIGNATURE = Signature(
    "add",
    (ArraySpec("A", "float32", ("n",)), ArraySpec("B", "float32", ("n",)), ArraySpec("C", "float32", ("n",), "write")),
    ("n",),
    results=1,
)

Way = Callable[[Caller], Callable[..., Any]]
WAYS: list[Any] = [
    pytest.param(lambda caller: caller.call, id="native"),
    pytest.param(lambda caller: caller.call_in_python, id="python"),
]
both_ways = pytest.mark.parametrize("way", WAYS)


def caller(text: str, signature: Signature) -> Caller:
    module = jit(text, HOST, {})
    return Caller(signature, module.address(signature.name), module)


def nothing(*args: ArraySpec | ScalarSpec, symbols: tuple[str, ...] = (), results: int = 0) -> Caller:
    """A function that does nothing with arguments like these."""
    signature = Signature("nop", args, symbols, results)
    parameters = ", ".join(signature.parameter_types())
    return caller(f"define void @nop({parameters}) {{\n  ret void\n}}", signature)


def floats(*shape: int) -> np.ndarray[Any, Any]:
    return np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)


def test_native_way_exists_on_cpython() -> None:
    if sys.implementation.name == "cpython":
        assert "built-in" in repr(caller(ADD, ADD_SIGNATURE).call)


@both_ways
def test_arrays_and_symbols(way: Way) -> None:
    call = way(caller(ADD, ADD_SIGNATURE))
    a, c = floats(5), np.zeros(5, np.float32)
    assert call(a, a, c) is None
    assert np.array_equal(c, 2 * a)


@both_ways
def test_left_out_result_is_returned(way: Way) -> None:
    call = way(caller(ADD, ADD_SIGNATURE))
    c = call(floats(7), floats(7))
    assert c.dtype == np.float32
    assert np.array_equal(c, 2 * floats(7))


@both_ways
def test_several_results(way: Way) -> None:
    out = [ArraySpec(name, "int8", (2, "n"), "write") for name in ("Y", "Z")]
    call = way(nothing(ArraySpec("X", "float64", ("n",)), *out, symbols=("n",), results=2))
    y, z = call(np.zeros(3))
    assert (y.shape, z.shape, y.dtype) == ((2, 3), (2, 3), np.int8)


@both_ways
def test_arguments_by_name(way: Way) -> None:
    call = way(caller(ADD, ADD_SIGNATURE))
    c = np.zeros(4, np.float32)
    call(C=c, A=floats(4), B=floats(4))
    call(floats(4), C=c, B=floats(4))
    assert np.array_equal(c, 2 * floats(4))
    assert np.array_equal(call(A=floats(4), B=floats(4)), c)


@both_ways
@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
def test_zero_size(way: Way, shape: tuple[int, ...]) -> None:
    spec: tuple[int | str, ...] = tuple("nm"[: len(shape)])
    args = [ArraySpec(name, "float32", spec, access) for name, access in (("A", "read"), ("C", "write"))]
    way(nothing(*args, symbols=tuple("nm"[: len(shape)])))(np.zeros(shape, np.float32), np.zeros(shape, np.float32))
    way(caller(ADD, ADD_SIGNATURE))(*(np.zeros(0, np.float32) for _ in range(3)))


@both_ways
def test_rank_zero_and_unit_extents(way: Way) -> None:
    way(nothing(ArraySpec("X", "int32", (), "write")))(np.array(1, np.int32))
    # The stride of a dimension with one element does not matter.
    view = np.zeros((4, 3), np.float32)[:1]
    way(nothing(ArraySpec("X", "float32", (1, 3), "write")))(view)
    way(nothing(ArraySpec("X", "float32", (1, 3))))(np.lib.stride_tricks.as_strided(view, (1, 3), (999 * 4, 4)))


NUMPY_NAMES = [name for name, element in ELEMENT_TYPES.items() if name != "bfloat16" and element.kind != "stored"]


@both_ways
@pytest.mark.parametrize("dtype", NUMPY_NAMES)
def test_every_element_type(way: Way, dtype: str) -> None:
    call = way(nothing(ArraySpec("X", dtype, (2,), "readwrite")))
    call(np.zeros(2, dtype))
    for other in NUMPY_NAMES:
        if other != dtype:
            with pytest.raises(TypeError, match=rf"argument 1 \('X'\): expected elements of type {dtype}, got {other}"):
                call(np.zeros(2, other))


@both_ways
def test_c_names_of_types(way: Way) -> None:
    for name in ("longlong", "long", "int64"):
        way(nothing(ArraySpec("X", "int64", (2,))))(np.zeros(2, name))


@both_ways
def test_bfloat16_bits(way: Way) -> None:
    call = way(nothing(ArraySpec("X", "bfloat16", (2,)), ArraySpec("Y", "bfloat16", (2,), "write"), results=1))
    assert call(np.zeros(2, np.uint16)).itemsize == 2
    with pytest.raises(TypeError, match=r"elements of type bfloat16 \(or uint16 with its bits\), got int16"):
        call(np.zeros(2, np.int16))


@both_ways
def test_bfloat16_of_ml_dtypes(way: Way) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    call = way(nothing(ArraySpec("X", "bfloat16", (2,)), ArraySpec("Y", "bfloat16", (2,), "write"), results=1))
    assert call(np.zeros(2, ml_dtypes.bfloat16)).dtype == ml_dtypes.bfloat16


class Foreign:
    """An array that only offers DLPack."""

    def __init__(self, data: np.ndarray[Any, Any], **methods: Callable[..., object]) -> None:
        self.data = data
        self.dtype = data.dtype
        self._methods = methods

    def __dlpack__(self, **options: Any) -> Any:
        return self._methods.get("__dlpack__", self.data.__dlpack__)(**options)

    def __dlpack_device__(self) -> Any:
        return self._methods.get("__dlpack_device__", self.data.__dlpack_device__)()

    def is_neg(self) -> object:
        return self._methods.get("is_neg", bool)()

    def is_conj(self) -> object:
        return self._methods.get("is_conj", bool)()


@both_ways
def test_dlpack_shares_memory(way: Way) -> None:
    call = way(caller(ADD, ADD_SIGNATURE))
    c = np.zeros(3, np.float32)
    call(Foreign(floats(3)), floats(3), Foreign(c))
    assert np.array_equal(c, 2 * floats(3))
    assert np.array_equal(call(Foreign(floats(3)), Foreign(floats(3))), c)
    with pytest.raises(TypeError, match=r"argument 1 \('A'\): expected elements of type float32, got int32"):
        call(Foreign(np.zeros(3, np.int32)), floats(3), c)
    with pytest.raises(ValueError, match=r"argument 3 \('C'\): .* overlaps argument 1 \('A'\)"):
        call(Foreign(c), floats(3), Foreign(c))


@both_ways
def test_dlpack_writability(way: Way) -> None:
    c = np.zeros(3, np.float32)
    c.flags.writeable = False
    with pytest.raises((ValueError, TypeError), match=r"argument 3 \('C'\): expected .*(writable|readonly|read-only)"):
        way(caller(ADD, ADD_SIGNATURE))(floats(3), floats(3), Foreign(c))


class Liar(np.ndarray[Any, Any]):
    """An array whose attributes are not those of its memory."""

    shape = (1_000_000,)  # type: ignore[assignment]  # pyright: ignore
    dtype = np.dtype(np.float32)  # type: ignore[assignment]  # pyright: ignore
    strides = (4,)  # type: ignore[assignment]  # pyright: ignore
    ndim = 1  # type: ignore[assignment]  # pyright: ignore
    size = 1_000_000  # type: ignore[assignment]  # pyright: ignore
    flags = np.empty(0).flags  # type: ignore[assignment]  # pyright: ignore
    ctypes = np.empty(1_000_000, np.float32).ctypes  # type: ignore[assignment]  # pyright: ignore


@both_ways
def test_attributes_of_subclasses_are_not_believed(way: Way) -> None:
    call = way(caller(ADD, ADD_SIGNATURE))
    c = np.zeros(4, np.float32)
    call(floats(4).view(Liar), floats(4), c.view(Liar))
    assert np.array_equal(c, 2 * floats(4))
    assert np.array_equal(call(floats(4).view(Liar), floats(4)), c)
    for wrong, kind, message in (
        (floats(2), ValueError, r"argument 3 \('C'\): expected shape .*got shape \(2,\)"),
        (np.zeros(4, np.int8), TypeError, r"argument 3 \('C'\): expected elements of type float32, got int8"),
        (floats(2, 2), ValueError, r"argument 3 \('C'\): expected rank 1"),
        (floats(8)[::2], ValueError, r"argument 3 \('C'\): expected a C-contiguous array"),
        (read_only(), ValueError, r"argument 3 \('C'\): expected a writable array"),
    ):
        with pytest.raises(kind, match=message):
            call(floats(4), floats(4), wrong.view(Liar))


def test_facts_are_checked_of_what_is_passed() -> None:
    """Neither a shape of a subclass nor an integer that changes from one look to the next evades a fact."""

    class Unsteady:
        looks = 0

        def __index__(self) -> int:
            self.looks += 1
            return 4 if self.looks == 1 else 5

    signature = Signature(
        "nop",
        (ArraySpec("A", "float32", ("n",)), ScalarSpec("k", "int64")),
        ("n",),
        facts=(CallPrecondition("n % 4 == 0"), CallPrecondition("k == 4")),
    )
    call = caller("define void @nop(ptr %A, i64 %k, i64 %n) {\n  ret void\n}", signature).call

    class Four(np.ndarray[Any, Any]):
        shape = (4,)  # type: ignore[assignment]  # pyright: ignore

    with pytest.raises(ValueError, match="n % 4 == 0"):
        call(floats(5).view(Four), 4)
    unsteady = Unsteady()
    call(floats(4), unsteady)
    assert unsteady.looks == 1
    with pytest.raises(ValueError, match="k == 4"):
        call(floats(4), unsteady)


@both_ways
@pytest.mark.parametrize(
    ("value", "got"),
    [
        (np.ma.masked_array(floats(4), floats(4) > 2), r"MaskedArray, whose mask would be lost \(pass its .filled"),
        (Foreign(floats(4), is_neg=lambda: True), r"Foreign with its negative bit set \(.resolve_neg\(\) makes"),
        (Foreign(floats(4), is_conj=lambda: True), r"Foreign with its conjugate bit set"),
        (Foreign(floats(4), __dlpack__=lambda **_: [][0]), "Foreign: list index out of range"),
        (Foreign(floats(4), __dlpack__=lambda **_: 5), "Foreign: .*PyCapsule"),
        (Foreign(floats(4), is_neg=lambda: [][0]), "Foreign: list index out of range"),
    ],
    ids=["masked", "negative", "conjugate", "raises", "no capsule", "query raises"],
)
def test_arrays_without_a_plain_view_are_refused(way: Way, value: object, got: str) -> None:
    call = way(caller(ADD, ADD_SIGNATURE))
    with pytest.raises(TypeError, match=rf"argument 1 \('A'\): expected an array A: float32\[n\].*, got {got}"):
        call(value, floats(4), floats(4))


@both_ways
def test_torch_tensors(way: Way) -> None:
    torch = pytest.importorskip("torch")
    c = torch.zeros(3)
    way(caller(ADD, ADD_SIGNATURE))(torch.arange(3.0), torch.arange(3.0), c)
    assert c.tolist() == [0, 2, 4]
    way(nothing(ArraySpec("X", "bfloat16", (2,), "write")))(torch.zeros(2, dtype=torch.bfloat16))
    with pytest.raises(TypeError, match=r"got Tensor with its negative bit set"):
        way(caller(ADD, ADD_SIGNATURE))(torch.zeros(3, dtype=torch.complex64).conj().imag, c, c)


@both_ways
def test_buffers(way: Way) -> None:
    call = way(caller(ADD, ADD_SIGNATURE))
    c = array.array("f", [0, 0, 0])
    call(array.array("f", [1, 2, 3]), memoryview(floats(3)), c)
    assert c.tolist() == [1, 3, 5]
    way(nothing(ArraySpec("X", "uint8", (3,))))(b"abc")
    with pytest.raises(ValueError, match="expected a writable array, since it is an output, got a read-only one"):
        way(nothing(ArraySpec("X", "uint8", (3,), "write")))(b"abc")


# Each case: arguments of `add` and the error they provoke.
def unaligned() -> np.ndarray[Any, Any]:
    return np.zeros(17, np.uint8)[1:].view(np.float32)


def read_only() -> np.ndarray[Any, Any]:
    data = np.zeros(4, np.float32)
    data.flags.writeable = False
    return data


X = floats(4)
SHARED = floats(12)
WRONG: list[tuple[str, Sequence[Any], dict[str, Any], type[Exception], str]] = [
    ("too few", (X,), {}, TypeError, "add: expected 2 to 3 arguments, got 1, without 'B'"),
    ("too many", (X, X, X, X), {}, TypeError, "add: expected 2 to 3 arguments, got 4"),
    ("unknown name", (X, X), {"CC": X}, TypeError, "add: unknown argument 'CC', did you mean 'C'"),
    ("twice", (X, X), {"A": X}, TypeError, "add: argument 'A' is given twice"),
    ("list", ([1.0], X, X), {}, TypeError, r"argument 1 \('A'\): expected an array A: float32\[n\], got list"),
    ("none", (X, None, X), {}, TypeError, r"argument 2 \('B'\): expected an array .*, got NoneType"),
    ("number", (X, X, 1.0), {}, TypeError, r"argument 3 \('C'\): expected an array .*, got float"),
    (
        "element type",
        (X, X.astype(np.float64), floats(4)),
        {},
        TypeError,
        r"add: argument 2 \('B'\): expected elements of type float32, got float64",
    ),
    (
        "byte order",
        (X.astype(">f4"), X, floats(4)),
        {},
        TypeError,
        "expected .* float32, got float32 of the other byte",
    ),
    ("rank", (floats(2, 2), X, floats(4)), {}, ValueError, r"expected rank 1 \(shape \(n,\)\), got shape \(2, 2\)"),
    (
        "shape",
        (X, floats(5), floats(4)),
        {},
        ValueError,
        r"argument 2 \('B'\): expected shape \(n,\) with n = 4 \(from axis 0 of 'A'\), got shape \(5,\)",
    ),
    (
        "strides",
        (floats(8)[::2], X, floats(4)),
        {},
        ValueError,
        r"argument 1 \('A'\): expected a C-contiguous array .*, got strides \(8,\) for shape \(4,\)",
    ),
    ("reversed", (X, X[::-1], floats(4)), {}, ValueError, r"argument 2 \('B'\): expected a C-contiguous array"),
    (
        "read-only",
        (X, X, read_only()),
        {},
        ValueError,
        r"argument 3 \('C'\): expected a writable array, since it is an output, got a read-only one",
    ),
    (
        "alignment",
        (unaligned(), X, floats(4)),
        {},
        ValueError,
        r"argument 1 \('A'\): expected memory aligned to 4 bytes, got address 0x[0-9a-f]*",
    ),
    ("same array", (X, floats(4), X), {}, ValueError, r"argument 3 \('C'\): .* overlaps argument 1 \('A'\)"),
    (
        "overlap by one",
        (X, SHARED[:4], SHARED[3:7]),
        {},
        ValueError,
        r"argument 3 \('C'\): expected an output that shares no memory .*, got one that overlaps argument 2 \('B'\)",
    ),
]


@both_ways
@pytest.mark.parametrize(
    ("positional", "keywords", "kind", "message"), [w[1:] for w in WRONG], ids=[w[0] for w in WRONG]
)
def test_wrong_arguments(
    way: Way, positional: Sequence[Any], keywords: dict[str, Any], kind: type[Exception], message: str
) -> None:
    call = way(caller(ADD, ADD_SIGNATURE))
    with pytest.raises(kind, match=message):
        call(*positional, **keywords)
    # Nothing is left behind: the same arrays can be resized, and a right call works.
    assert np.array_equal(call(X, X), 2 * X)


@both_ways
def test_neighbours_do_not_overlap(way: Way) -> None:
    data = floats(12)
    way(caller(ADD, ADD_SIGNATURE))(data[:4], data[8:], data[4:8])
    # Inputs may share memory.
    way(caller(ADD, ADD_SIGNATURE))(data[:4], data[1:5], data[8:])


@both_ways
def test_fixed_shape_mismatch(way: Way) -> None:
    call = way(nothing(ArraySpec("X", "float32", (2, 3))))
    with pytest.raises(ValueError, match=r"expected shape \(2, 3\), got shape \(2, 4\) \(dimension 1 is 4\)"):
        call(floats(2, 4))


@both_ways
def test_transposed_array_is_refused(way: Way) -> None:
    with pytest.raises(ValueError, match=r"C-contiguous.*got strides \(4, 12\) for shape \(3, 3\)"):
        way(nothing(ArraySpec("X", "float32", (3, 3))))(floats(3, 3).T)


@both_ways
def test_symbol_within_one_array(way: Way) -> None:
    call = way(nothing(ArraySpec("X", "float32", ("n", "n")), symbols=("n",)))
    call(floats(3, 3))
    with pytest.raises(ValueError, match=r"with n = 3 \(from axis 0 of 'X'\), got shape \(3, 4\)"):
        call(floats(3, 4))


@both_ways
def test_result_with_unknown_extent(way: Way) -> None:
    call = way(nothing(ArraySpec("Y", "float32", ("m",), "write"), symbols=("m",), results=1))
    call(floats(3))
    with pytest.raises(TypeError, match="result 'Y' must be given: no argument determines the extent 'm'"):
        call()


def test_calls_that_leave_results_out_take_the_native_way(monkeypatch: pytest.MonkeyPatch) -> None:
    specs = (ArraySpec("X", "float32", ("n", 3)), ArraySpec("Y", "float64", ("n", 2), "write"))
    caller = nothing(*specs, ArraySpec("Z", "int8", (), "write"), symbols=("n",), results=2)
    slow = nothing(*specs, ArraySpec("Z", "int8", (), "write"), symbols=("n",), results=2)
    monkeypatch.setattr(Caller, "call_in_python", None)
    first, second = caller.call(floats(5, 3))
    assert (first.shape, first.dtype, second.shape, second.dtype) == ((5, 2), np.float64, (), np.int8)
    monkeypatch.undo()
    for wrong in (floats(5), floats(5, 4), floats(5, 3).astype(np.float64), 7):
        with pytest.raises((TypeError, ValueError)) as native:
            caller.call(wrong)
        with pytest.raises(native.type, match=re.escape(str(native.value))):
            slow.call_in_python(wrong)


@both_ways
def test_all_results_or_none(way: Way) -> None:
    out = [ArraySpec(name, "float32", (2,), "write") for name in ("Y", "Z")]
    with pytest.raises(TypeError, match="give all results or none, 'Z' is missing"):
        way(nothing(*out, results=2))(floats(2))


def scalar_caller(dtype: str) -> Caller:
    """Stores its scalar argument into an array."""
    kind = ELEMENT_TYPES[dtype].llvm
    stored = ("  %w = zext i1 %x to i8\n", "i8 %w") if kind == "i1" else ("", f"{kind} %x")
    text = f"define void @put({kind} %x, ptr %y) {{\n{stored[0]}  store {stored[1]}, ptr %y\n  ret void\n}}"
    signature = Signature("put", (ScalarSpec("x", dtype), ArraySpec("Y", dtype, (), "write")), (), 1)
    return caller(text, signature)


@both_ways
@pytest.mark.parametrize("dtype", NUMPY_NAMES)
def test_scalars(way: Way, dtype: str) -> None:
    call = way(scalar_caller(dtype))
    element = ELEMENT_TYPES[dtype]
    if element.kind == "bool":
        values: list[Any] = [True, False, np.True_]
    elif element.kind == "float":
        values = [0, 1.5, -1.0, -2, np.float32(0.25), np.array(3.5), float("inf")]
    else:
        values = [0, 1, -1 if element.kind == "int" else 7, *element.range, np.int8(5)]
    for value in values:
        out = np.zeros((), dtype)
        call(value, out)
        assert out == np.asarray(value).astype(dtype), value


@both_ways
@pytest.mark.parametrize(
    ("value", "bits"),
    [
        (1.0, 0x3F80),
        (-2.5, 0xC020),
        (1 + 2**-8, 0x3F80),
        (1 + 2**-8 + 2**-40, 0x3F81),
        (1e39, 0x7F80),
        (3.4e38, 0x7F80),
    ],
)
def test_bfloat16_scalars(way: Way, value: float, bits: int) -> None:
    out = np.zeros((), np.uint16)
    way(scalar_caller("bfloat16"))(value, out)
    assert out == bits


@both_ways
@pytest.mark.parametrize(
    ("dtype", "value", "kind", "message"),
    [
        ("int32", 1.0, TypeError, r"argument 1 \('x'\): expected an integer \(int32\), got float 1.0"),
        ("int32", "1", TypeError, r"expected an integer \(int32\), got str '1'"),
        ("int8", 128, ValueError, r"expected an integer from -128 to 127 \(int8\), got 128"),
        ("uint8", -1, ValueError, r"expected an integer from 0 to 255 \(uint8\), got -1"),
        ("int64", 1 << 63, ValueError, r"expected an integer from .* \(int64\), got 9223372036854775808"),
        ("uint64", 1 << 64, ValueError, r"expected an integer from .* \(uint64\), got 18446744073709551616"),
        ("float32", "1.0", TypeError, r"expected a number \(float32\), got str '1.0'"),
        ("float64", 1j, TypeError, r"expected a number \(float64\), got complex 1j"),
        ("float16", None, TypeError, r"expected a number \(float16\), got NoneType None"),
        ("bool", 1, TypeError, r"expected a bool, got int 1"),
    ],
)
def test_wrong_scalars(way: Way, dtype: str, value: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        way(scalar_caller(dtype))(value, np.zeros((), dtype))


@both_ways
def test_integers_of_too_many_digits_are_shown_by_their_size(way: Way) -> None:
    with pytest.raises(ValueError, match=r"an integer from -128 to 127 \(int8\), got an integer of 16610 bits"):
        way(scalar_caller("int8"))(10**5000, np.zeros((), np.int8))
    with pytest.raises(TypeError, match=r"expected a number \(float64\), got an integer of 16610 bits"):
        way(scalar_caller("float64"))(10**5000, np.zeros(()))


@both_ways
def test_scalars_between_arrays(way: Way) -> None:
    text = """
    define void @mix(ptr %y, double %a, i8 %b, float %c, ptr %x, i64 %n) {
      %b.f = sitofp i8 %b to double
      %c.f = fpext float %c to double
      %n.f = sitofp i64 %n to double
      %x.v = load double, ptr %x
      %s1 = fadd double %a, %b.f
      %s2 = fadd double %s1, %c.f
      %s3 = fadd double %s2, %n.f
      %s4 = fadd double %s3, %x.v
      store double %s4, ptr %y
      ret void
    }"""
    args = (
        ArraySpec("Y", "float64", (1,), "write"),
        ScalarSpec("a", "float64"),
        ScalarSpec("b", "int8"),
        ScalarSpec("c", "float32"),
        ArraySpec("X", "float64", ("n",)),
    )
    y = np.zeros(1)
    way(caller(text, Signature("mix", args, ("n",))))(y, 1000.0, -3, 0.5, np.full(20, 4.0))
    assert y[0] == 1000.0 - 3 + 0.5 + 20 + 4


def test_references_are_returned() -> None:
    call = caller(ADD, ADD_SIGNATURE).call
    a, c = floats(4), floats(4)
    gc.collect()  # objects of other tests may refer to None
    before = [sys.getrefcount(a), sys.getrefcount(c), sys.getrefcount(None)]
    for _ in range(1000):
        call(a, a, c)
        with pytest.raises(ValueError, match="overlaps"):
            call(a, c, c)
    after = [sys.getrefcount(a), sys.getrefcount(c), sys.getrefcount(None)]
    assert all(abs(new - old) < 100 for new, old in zip(after, before, strict=True))
    data = bytearray(4)
    nothing(ArraySpec("X", "uint8", (4,))).call(data)
    data.append(1)  # An exported buffer would forbid it.


def test_native_function_outlives_its_maker() -> None:
    import gc

    call = caller(ADD, ADD_SIGNATURE).call
    gc.collect()
    assert np.array_equal(call(floats(4), floats(4)), 2 * floats(4))
    assert call.__name__ == "add"
    assert call.__doc__ == str(ADD_SIGNATURE)


def test_many_arguments_go_through_python() -> None:
    args = [ArraySpec(f"x{i}", "float32", (1,)) for i in range(70)]
    made = nothing(*args)
    assert native_entry(made.signature, made.address, 0, made.call_in_python, always_release_gil=False) is None
    made.call(*(floats(1) for _ in args))


def test_signature_text() -> None:
    assert str(ADD_SIGNATURE) == "add(A: float32[n], B: float32[n], out C: float32[n])"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ArraySpec("A", "float23", ()), "unknown element type 'float23', did you mean 'float32'"),
        (lambda: ScalarSpec("a", "complex"), "unknown element type 'complex'"),
        (lambda: ArraySpec("A", "float32", (-1,)), "argument 'A': negative extent -1"),
        (lambda: Signature("f", (ScalarSpec("a", "int8"), ScalarSpec("a", "int8"))), "f: two arguments are named 'a'"),
        (lambda: Signature("f", (ArraySpec("A", "int8", ("n",)),)), r"f: the shapes use the symbols \['n'\]"),
        (
            lambda: Signature("f", (ArraySpec("A", "int8", (1,)),), (), 1),
            "result 'A' is not an array that is only written",
        ),
    ],
)
def test_wrong_signatures(make: Callable[[], object], message: str) -> None:
    with pytest.raises(CompileError, match=message):
        make()


def test_unknown_access_is_refused() -> None:
    access: Any = "rw"
    checked: Access = access
    with pytest.raises(CompileError, match=re.escape("argument 'A': unknown access 'rw'")):
        ArraySpec("A", "int8", (), checked)


SPIN = """
define void @spin(ptr %A, ptr %B, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  store volatile float 1.0, ptr %B
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, TIMES
  br i1 %more, label %loop, label %done
done:
  ret void
}
"""
INTERRUPTED = """
import os, signal, sys, threading
import numpy as np
from test_runtime_call import spinning
from weft.runtime.library import Function

signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background ignore it

def interrupted(call):
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        call()
    except KeyboardInterrupt:
        return True

few, b = np.zeros((4, 0), np.float32), np.zeros(4, np.float32)
many = np.zeros((2**40, 0), np.float32)
known, told, short = spinning(1 << 60, iterations=1 << 60), spinning(1 << 60), spinning(1 << 20)
calls = {
    "extents known": lambda: known.call(few, b),
    "extents told": lambda: told.call(many, b),
    "in Python": lambda: told.call_in_python(many, b),
    "a long run": lambda: Function(known).time_evaluator(1, 1)(few, b),
    "short runs": lambda: Function(short).time_evaluator(10**9, 1)(few, b),
}
sys.exit(", ".join(name for name, call in calls.items() if not interrupted(call)) or 0)
"""


def spinning(times: int, iterations: int = 1) -> Caller:
    """A function that runs so many times; `iterations` is what its signature says of it."""
    arguments = (ArraySpec("A", "float32", ("n", 0)), ArraySpec("B", "float32", (4,), "write"))
    return caller(SPIN.replace("TIMES", str(times)), Signature("spin", arguments, ("n",), iterations=iterations))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="locks are not interruptible")
def test_long_calls_and_timings_can_be_interrupted() -> None:
    """In a process of its own, where the code that was interrupted goes on until the process ends. Any CPU will do."""
    here = Path(__file__).resolve().parent
    environment = {name: value for name, value in os.environ.items() if name != "WEFT_HOST_CPU"}
    command = [sys.executable, "-c", INTERRUPTED]
    result = subprocess.run(command, cwd=here, env=environment, capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stderr) == (0, "")


def test_calls_that_write_nothing_are_done_at_once() -> None:
    arguments = (ArraySpec("A", "float32", ("n", "m")), ArraySpec("B", "float32", ("n", "m"), "write"))
    text = SPIN.replace("%n)", "%n, i64 %m)").replace("TIMES", str(1 << 60))
    nothing_outside = caller(text, Signature("spin", arguments, ("n", "m"), 1, calls_out=False))
    assert nothing_outside.call(np.zeros((2**40, 0), np.float32)).shape == (2**40, 0)


@both_ways
@pytest.mark.parametrize("extent", [1 << 45, 1 << 61])
def test_results_that_are_too_large_are_named(way: Way, extent: int) -> None:
    call = way(
        nothing(ArraySpec("A", "int8", ("n", 0)), ArraySpec("B", "float32", ("n",), "write"), symbols=("n",), results=1)
    )
    with pytest.raises(MemoryError, match=rf"there is no memory for 'B' of shape \({extent},\): "):
        call(np.empty((extent, 0), np.int8))


def test_signatures_count_iterations() -> None:
    module = weft.parse("""
    func.func private @outside()
    func.func @f(%A: memref<?xf32>, %n: index) attributes {
        low.params = [#low.param<"A", memref<?xf32>, readwrite, ["n"]>], low.symbols = ["n"]} {
      %c0 = arith.constant 0 : index
      %c3 = arith.constant 3 : index
      %c100 = arith.constant 100 : index
      low.parallel_for %i in %c100 {
        scf.for %j = %c0 to %c100 step %c3 {
          scf.for %k = %c0 to %n step %c3 {
          }
        }
      }
      func.return
    }
    func.func @g() attributes {low.params = []} {
      func.call @outside() : () -> ()
      func.return
    }""")
    _, f, g = (op for op in module.ops if isinstance(op, FuncOp))
    assert signature_of(f).iterations == 1 + 100 * (1 + 34 * 2)
    assert [signature_of(op).calls_out for op in (f, g)] == [False, True]


@pytest.mark.parametrize(
    ("dtype", "number", "expected"),
    [
        ("float32", 2.5, 2.5),
        ("float32", True, 1.0),
        ("int8", -128, -128),
        ("bool", True, True),
        ("uint64", (1 << 64) - 1, (1 << 64) - 1),
        ("int8", 200, r"argument 1 \('A'\): expected an integer from -128 to 127 \(int8\), got 200"),
        ("int64", 3.0, r"argument 1 \('A'\): expected an integer \(int64\), got float 3.0"),
        ("bool", 1, r"argument 1 \('A'\): expected a bool, got int 1"),
    ],
)
def test_numbers_stand_for_arrays_of_rank_0(dtype: str, number: object, expected: object) -> None:
    signature = Signature("f", (ArraySpec("A", dtype, ()),))
    if isinstance(expected, str):
        with pytest.raises((TypeError, ValueError), match=expected):
            bind_arguments(signature, [number], {})
    else:
        (array,) = bind_arguments(signature, [number], {}).arrays.values()
        assert (array.shape, array.dtype, array[()]) == ((), np.dtype(dtype), expected)


def element_caller(dtype: str, shape: tuple[int, ...], *facts: str) -> Caller:
    """Stores its symbol `s.1`, or `s.0` of a number, the extent of its result, into each element of that."""
    symbol = "s.1" if shape else "s.0"
    text = """
    define void @fill(ptr %s, ptr %y, i64 %n) {
    entry:
      %some = icmp sgt i64 %n, 0
      br i1 %some, label %loop, label %done
    loop:
      %i = phi i64 [ 0, %entry ], [ %next, %loop ]
      %at = getelementptr i64, ptr %y, i64 %i
      store i64 %n, ptr %at
      %next = add i64 %i, 1
      %more = icmp slt i64 %next, %n
      br i1 %more, label %loop, label %done
    done:
      ret void
    }"""
    args = (ArraySpec("s", dtype, shape), ArraySpec("Y", "int64", (symbol,), "write"))
    preconditions = tuple(CallPrecondition(fact.format(symbol)) for fact in facts)
    return caller(text, Signature("fill", args, (symbol,), 1, preconditions))


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_elements_take_the_native_way(monkeypatch: pytest.MonkeyPatch, dtype: str) -> None:
    sizes, number = element_caller(dtype, (3,), "0 <= {}"), element_caller(dtype, (), "0 <= {}")
    monkeypatch.setattr(Caller, "call_in_python", None)
    assert sizes.call(np.array([7, 2, -5], dtype)).tolist() == [2, 2]
    assert number.call(3).tolist() == number.call(np.array(3, dtype)).tolist() == [3, 3, 3]
    y = np.zeros(1, np.int64)
    assert number.call(1, y) is None
    assert y.tolist() == [1]


@both_ways
def test_wrong_elements(way: Way) -> None:
    sizes, number = (
        way(element_caller("int64", (3,), "0 <= {}")),
        way(element_caller("int32", (), "0 <= {}", "{} <= 9")),
    )
    with pytest.raises(ValueError, match=r"an extent of at least 0 \(axis 0 of 'Y'\) as element 1, got -2"):
        sizes(np.array([7, -2, 5]))
    with pytest.raises(
        ValueError, match=r"argument 1 \('s'\): expected an extent of at least 0 \(axis 0 of 'Y'\), got -1"
    ):
        number(-1)
    with pytest.raises(ValueError, match=r"fill: s\.0 must be at most 9, got 10 \('s'\)"):
        number(10)
    with pytest.raises(
        ValueError, match=r"argument 1 \('s'\): expected 4 as element 1 \(s\.1 = 4, from axis 0 of 'Y'\)"
    ):
        sizes(np.array([7, 3, 5]), np.zeros(4, np.int64))
    with pytest.raises(
        ValueError, match=r"expected an integer from -2147483648 to 2147483647 \(int32\), got 4294967296"
    ):
        number(1 << 32)
    with pytest.raises(TypeError, match=r"argument 1 \('s'\): expected an integer \(int32\), got float 2.0"):
        number(2.0)


def test_unsigned_elements_go_through_python() -> None:
    signature = element_caller("uint32", (3,)).signature
    assert native_entry(signature, 0, 0, print, always_release_gil=False) is None
    assert element_caller("uint32", (3,)).call(np.array([1, 2, 3], np.uint32)).tolist() == [2, 2]


@both_ways
def test_bytes_of_temporaries(way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes whose products overflow, and those for which there is no memory."""
    args = (ArraySpec("s", "int64", (2,)), ArraySpec("Y", "float32", ("n",), "write"))
    signature = Signature("f", args, ("s.0", "s.1", "n"), 0, temporaries=(CallPrecondition("bytes == 4 * s.0 * s.1"),))
    text = "define void @f(ptr %s, ptr %y, i64 %a, i64 %b, i64 %n) {\n  ret void\n}"
    call, y = way(caller(text, signature)), np.zeros(1, np.float32)
    assert call(np.array([1 << 10, 1 << 14]), y) is None
    message = (
        r"f: 4 \* s\.0 \* s\.1 must be at most 9223372036854775807, got s\.0 = 4294967296 \(element 0 of 's'\), "
        r"s\.1 = 4294967296 \(element 1 of 's'\): bytes of temporaries have 64 bits"
    )
    with pytest.raises(ValueError, match=message):
        call(np.array([1 << 32, 1 << 32]), y)
    with pytest.raises(
        MemoryError, match=r"f: there is no memory for \d+ bytes of temporaries of a call on 's' \(2,\)"
    ):
        call(np.array([1 << 30, 1 << 28]), y)
    native = caller(text, signature)
    monkeypatch.setattr(Caller, "call_in_python", None)
    assert native.call(np.array([1 << 10, 1 << 10]), y) is None
