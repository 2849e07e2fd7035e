"""ONNX models whose axes are symbols: sizes that conditions decide, checked by calls."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed: pip install 'weft[onnx]'")

import onnx

import weft


def built(text: str, opset: int = 23) -> Any:
    header = f'<ir_version: 10, opset_import: ["" : {opset}]>'
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".* depends on sizes in a way that calls do not check")
        return weft.build(weft.from_onnx(onnx.parser.parse_model(f"{header} {text}")), cache=False)["main"]


def data(*shape: int) -> np.ndarray[Any, Any]:
    return np.arange(np.prod(shape), dtype="float32").reshape(shape)


def test_rest_of_a_shape_without_common_factors() -> None:
    """The -1 of a reshape is a quotient in which equal symbols cancel."""
    split = built("""main (float[b, s, d] x) => (float[p, q, r, t] y) {
        n = Shape <start: int = 0, end: int = 2> (x)
        rest = Constant <value_ints: ints = [3, -1]> ()
        shape = Concat <axis: int = 0> (n, rest)
        y = Reshape (x, shape)
    }""")
    for shape in ((2, 5, 6), (1, 1, 3), (4, 2, 9)):
        np.testing.assert_array_equal(split(data(*shape)), data(*shape).reshape(*shape[:2], 3, -1))
    assert split(np.ones((0, 2, 6), "float32")).shape == (0, 2, 3, 2)
    with pytest.raises(ValueError, match=r"expected d % 3 == 0, got d = 7 \(axis 2 of 'x'\): block \"reshape\""):
        split(data(2, 5, 7))


GROUPED = """main (float[b, h, s] q, float[b, g, s] k) => (float[p, r, t] y) {
    heads = Shape <start: int = 1, end: int = 2> (q)
    groups = Shape <start: int = 1, end: int = 2> (k)
    zero = Constant <value_ints: ints = [0]> ()
    one = Constant <value_ints: ints = [1]> ()
    same = Equal (heads, groups)
    differ = Not (same)
    rest = Mod (heads, groups)
    divides = Equal (rest, zero)
    repeats = And (differ, divides)
    quotient = Div (heads, groups)
    times = Where (repeats, quotient, one)
    batch = Shape <start: int = 0, end: int = 1> (k)
    length = Shape <start: int = 2, end: int = 3> (k)
    axes = Constant <value_ints: ints = [2]> ()
    wide = Unsqueeze (k, axes)
    expanded = Concat <axis: int = 0> (batch, groups, times, length)
    repeated = Expand (wide, expanded)
    shape = Concat <axis: int = 0> (batch, heads, length)
    keys = Reshape (repeated, shape)
    y = Add (q, keys)
}"""


def test_heads_by_conditions() -> None:
    """Keys are repeated for groups of heads if these are a multiple: conditions on sizes decide the extent."""
    add = built(GROUPED)
    for heads, groups in ((6, 2), (4, 4), (3, 1), (5, 5)):
        q, k = data(2, heads, 3), data(2, groups, 3)
        np.testing.assert_array_equal(add(q, k), q + np.repeat(k, heads // groups, 1))
    for heads, groups in ((5, 2), (2, 4)):
        sizes = rf"(?=.*h = {heads} \(axis 1 of 'q'\))(?=.*g = {groups} \(axis 1 of 'k'\))"
        with pytest.raises(ValueError, match=sizes + r'.*: block "reshape"'):
            add(data(2, heads, 3), data(2, groups, 3))


def test_channels_of_a_causal_convolution() -> None:
    causal = built(
        """main (float[b, c, t] x, float[c, m, k] w, float[c] bias, float[b, c, p] past)
        => (float[d, e, f] y, float[g, h, i] state) {
        y, state = CausalConvWithState (x, w, bias, past)
    }""",
        27,
    )
    rng = np.random.default_rng(0)
    for channels, width, length in ((3, 4, 5), (2, 1, 6), (4, 3, 1)):
        x, w = rng.random((2, channels, length), "float32"), rng.random((channels, 1, width), "float32")
        bias, past = rng.random(channels, "float32"), rng.random((2, channels, width - 1), "float32")
        padded = np.concatenate([past, x], 2)
        windows = np.lib.stride_tricks.sliding_window_view(padded, width, 2)
        y, state = causal(x, w, bias, past)
        np.testing.assert_allclose(y, np.einsum("bctk,ck->bct", windows, w[:, 0]) + bias[:, None], 1e-5)
        np.testing.assert_array_equal(state, padded[:, :, length:])
    with pytest.raises(ValueError, match=r"argument 4 \('past'\)"):
        causal(x, w, bias, past[:, :, :1])
    with pytest.raises(ValueError, match=r"argument 2 \('w'\): expected shape \(c, 1, "):
        causal(x, np.ones((4, 2, 3), "float32"), bias, past)


def test_parts_of_a_transform() -> None:
    """Calls decide whether a signal has imaginary parts."""
    transform = built(
        """main (float[b, n, parts] x) => (float[c, m, two] y) {
        y = DFT (x)
    }""",
        20,
    )
    real = np.random.default_rng(1).random((2, 5, 1), "float32")
    whole = np.random.default_rng(2).random((2, 6, 2), "float32")
    for x in (real, whole):
        complex_ = x[..., 0] + 1j * (x[..., 1] if x.shape[2] == 2 else 0)
        expected = np.fft.fft(complex_, axis=1)
        np.testing.assert_allclose(transform(x), np.stack([expected.real, expected.imag], 2), 1e-4, 1e-5)
    with pytest.raises(ValueError, match=r"parts.* got 3 \(axis 2 of 'x'\): the last axis of the data holds real"):
        transform(data(2, 5, 3))
