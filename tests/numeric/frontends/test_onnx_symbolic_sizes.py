"""ONNX models whose axes are symbols: sizes that conditions decide, checked by calls."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed: pip install 'weft[onnx]'")

import onnx
import onnx.reference
from xdsl.dialects.builtin import UnitAttr

import weft

HEADER = '<ir_version: 10, opset_import: ["" : 23]> '


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


def test_quotients_of_quotients_stay_small() -> None:
    """The length after three halvings that round up, as `(n - 1) / 2 + 1`, whose numerator is -1 for n = 0."""
    lines, last = [], "n"
    for at in range(3):
        lines += [f"a{at} = Sub ({last}, one)", f"b{at} = Div (a{at}, two)", f"n{at} = Add (b{at}, one)"]
        last = f"n{at}"
    expand = built(f"""main (float[s] x) => (float[p, q] y) {{
        n = Shape (x)
        one = Constant <value_ints: ints = [1]> ()
        two = Constant <value_ints: ints = [2]> ()
        {" ".join(lines)}
        area = Mul (n2, n2)
        per = Div (area, n2)
        shape = Concat <axis: int = 0> (per, n)
        y = Expand (x, shape)
    }}""")
    for length in (1, 2, 7, 8, 9, 40):
        np.testing.assert_array_equal(expand(data(length)), np.tile(data(length), (-(-length // 8), 1)))


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


@pytest.mark.slow
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


@pytest.mark.slow
def test_scales_of_a_symbolic_length() -> None:
    """A scale or zero point with a symbolic axis has one number, or one for each row or column."""
    product = built("""main (uint8[m, k] a, float[p] sa, uint8[q] za, uint8[k, n] b, float[r] sb, uint8[t] zb,
        float[u] sc, uint8[v] zc) => (uint8[m, n] c) {
        c = QLinearMatMul (a, sa, za, b, sb, zb, sc, zc)
    }""")
    rng = np.random.default_rng(0)
    one, zero = np.ones(1, "float32"), np.full(1, 3, "uint8")
    for m, k, n, p, r in ((3, 4, 5, 1, 1), (3, 4, 5, 3, 5), (1, 7, 1, 1, 1), (17, 33, 20, 17, 1), (0, 4, 5, 1, 5)):
        a, b = (rng.integers(0, 9, shape).astype("uint8") for shape in ((m, k), (k, n)))
        rows, columns = (rng.uniform(0.1, 0.2, count).astype("float32") for count in (p, r))
        zeros = rng.integers(0, 4, r).astype("uint8")
        exact = (a.astype("int64") - 3) @ (b.astype("int64") - zeros.astype("int64"))
        wanted = np.clip(np.rint(exact * (rows[:, None] * columns) / 0.5) + 3, 0, 255)
        found = product(a, rows, zero, b, columns, zeros, one / 2, zero)
        np.testing.assert_allclose(found.astype("float32"), wanted, atol=1)
    with pytest.raises(ValueError, match=r"expected p == 1 or p == m, got p = 2 \(.*: scales and zero points have one"):
        product(
            data(3, 4).astype("uint8"),
            np.ones(2, "float32"),
            zero,
            zero.reshape(1, 1).repeat(4, 0),
            one,
            zero,
            one,
            zero,
        )


def test_blocks_of_a_symbolic_length() -> None:
    quantize = built("""main (float[m, n] x, float[m, b] s) => (int8[m, n] y) {
        y = QuantizeLinear <axis: int = 1, block_size: int = 4, output_dtype: int = 3> (x, s)
    }""")
    for n in (1, 4, 9, 0):
        scales = np.arange(1, 1 + 2 * -(-n // 4), dtype="float32").reshape(2, -1)
        found = quantize(data(2, n) * 3, scales)
        np.testing.assert_array_equal(found, np.rint(data(2, n) * 3 / scales.repeat(4, 1)[:, :n]))
    with pytest.raises(ValueError, match=r"expected s_d1 == \(n \+ 3\) // 4, got s_d1 = 2 \(axis 1 of 's'\), n = 9"):
        quantize(data(2, 9), np.ones((2, 2), "float32"))


def test_carried_values_of_loops_have_one_shape() -> None:
    """The extents of a state and of the value that the body computes are unified, or compared by calls."""
    total = built("""main (float[n, b, c] x, float[e, d] s) => (float[p, q] y, float[r, t, u] z) {
        y, z = Scan <num_scan_inputs: int = 1, body = step (float[e, d] state, float[b, c] row)
            => (float[f, g] next, float[f, g] copy) {
            next = Add (row, state)
            copy = Identity (next)
        }> (s, x)
    }""")
    found = total(data(4, 2, 3), data(2, 3))
    np.testing.assert_array_equal(found[0], data(4, 2, 3).sum(0) + data(2, 3))
    with pytest.raises(ValueError, match="expected shape"):
        total(data(4, 2, 3), data(2, 4))


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("kernel", ["3", "k"])
def test_transposed_convolution_of_symbolic_axes(auto_pad: str, kernel: str) -> None:
    """The padding depends on the kernel, whose extents may be symbols as well."""
    conv = built(f"""main (float[b, 1, n] x, float[1, 1, {kernel}] w) => (float[p, q, r] y) {{
        y = ConvTranspose <auto_pad = "{auto_pad}", strides = [2]> (x, w)
    }}""")
    w = np.array([[[1.0, 2.0, 4.0]]], "float32")
    for n in (1, 2, 5):
        x = data(2, 1, n) + 1
        full = np.zeros((2, 1, 2 * n + 1), "float32")
        for at in range(n):
            full[:, :, 2 * at : 2 * at + 3] += x[:, :, at : at + 1] * w
        start = auto_pad == "SAME_LOWER"
        np.testing.assert_array_equal(conv(x, w), full[:, :, start : start + 2 * n])


def test_resizing_of_symbolic_axes() -> None:
    """`align_corners` by a scale that is not an integer, and filters whose width depends on the size."""
    aligned = built("""main (float[1, 1, n] x) => (float[p, q, r] y) {
        none = Constant <value_floats: floats = [1.0, 1.0, 0.6]> ()
        y = Resize <mode = "linear", coordinate_transformation_mode = "align_corners"> (x, , none)
    }""")
    for n in (2, 4, 9, 40):
        length, size = n * 0.6, int(n * 0.6)
        places = np.arange(size) * ((n - 1) / (length - 1) if length > 1 else 1)
        np.testing.assert_allclose(aligned(data(1, 1, n))[0, 0], np.interp(places, range(n), range(n)), rtol=1e-5)
    smooth = built("""main (float[1, 1, n] x) => (float[p, q, r] y) {
        sizes = Constant <value_ints: ints = [1, 1, 5]> ()
        y = Resize <mode = "linear", antialias: int = 1> (x, , , sizes)
    }""")
    for n in (1, 3, 5, 12, 50):
        wide = max(n / 5, 1)
        centres = (np.arange(5) + 0.5) * n / 5 - 0.5
        weights = np.maximum(0, 1 - np.abs(np.arange(-n, 2 * n)[None] - centres[:, None]) / wide)
        wanted = (weights * np.clip(np.arange(-n, 2 * n), 0, n - 1)).sum(1) / weights.sum(1)
        np.testing.assert_allclose(smooth(data(1, 1, n))[0, 0], wanted, rtol=1e-4, atol=1e-4)


def test_rank_of_a_result_determines_coordinates() -> None:
    """The last extent of the indices of GatherND is the number that follows from the stated rank of the result."""
    gather = built("""main (float[a, b, c] x, int64[n, k] at) => (float[n, c] y) {
        y = GatherND (x, at)
    }""")
    at = np.array([[0, 1], [1, 0], [-1, -1]])
    np.testing.assert_array_equal(gather(data(2, 3, 4), at), data(2, 3, 4)[tuple(at.T)])
    with pytest.raises(ValueError, match=r"argument 2 \('at'\): expected shape \(n, 2\), got shape \(3, 1\)"):
        gather(data(2, 3, 4), at[:, :1])


def test_unpooling_of_symbolic_axes() -> None:
    unpool = built("""main (float[b, 1, n] x, int64[b, 1, n] at) => (float[p, q, r] y) {
        y = MaxUnpool <kernel_shape = [2], strides = [2]> (x, at)
    }""")
    for n in (1, 2, 7):
        at = 2 * np.arange(n)[None, None] + 1
        wanted = np.zeros((1, 1, 2 * n), "float32")
        wanted[0, 0, 1::2] = data(n) + 1
        np.testing.assert_array_equal(unpool(data(1, 1, n) + 1, at), wanted)


@pytest.mark.slow
def test_n_grams_of_a_symbolic_row() -> None:
    count = built("""main (int32[b, n] x) => (float[p, q] y) {
        y = TfIdfVectorizer <mode = "TF", min_gram_length: int = 1, max_gram_length: int = 2, max_skip_count: int = 1,
            ngram_counts = [0, 2], ngram_indexes = [0, 1, 2], pool_int64s = [5, 6, 5, 6]> (x)
    }""")
    for row, wanted in (([5, 6, 6], [1, 2, 2]), ([5], [1, 0, 0]), ([6, 5, 1, 6], [1, 2, 1])):
        np.testing.assert_array_equal(count(np.array([row], "int32")), [wanted])


REPEATED = """main (float[a, b] x, float[c, d] y) => (float[p, q] z, int64[r] n) {
    z = Add (x, y)
    n = Shape (y)
}"""


def model_of(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 23]> {text}')


def test_axes_of_one_element_are_repeated_by_versions(tmp_path: Path) -> None:
    """Symbols that an import unified may also be 1. Each of the operands may be repeated, and keeps its shape."""
    onnx.save(model_of(REPEATED), tmp_path / "model.onnx")
    for program in (weft.from_onnx(model_of(REPEATED)), tmp_path / "model.onnx"):
        add = weft.build(program)["main"]
        for left, right in (((3, 4), (3, 4)), ((3, 4), (1, 4)), ((3, 1), (1, 4)), ((1, 1), (2, 3)), ((0, 4), (1, 4))):
            total, shape = add(x=data(*left), y=data(*right))
            np.testing.assert_array_equal(total, data(*left) + data(*right))
            assert tuple(shape) == right
        with pytest.raises(ValueError, match=r"expected shape \(a, b\) with a = 3 \(from axis 0 of 'x'\), got shape"):
            add(data(3, 4), data(2, 4))


def test_stated_ranges_hold_for_repeated_axes() -> None:
    add = weft.build(weft.from_onnx(model_of(REPEATED), {"x": "a:1..4 x b", "y": "c x d:1..8"}))["main"]
    np.testing.assert_array_equal(add(data(3, 4), data(1, 4))[0], data(3, 4) + data(1, 4))
    with pytest.raises(ValueError, match="a must be at most 4, got 5"):
        add(data(5, 4), data(1, 4))
    with pytest.raises(ValueError, match="b must be at most 8, got 9"):
        add(data(1, 9), data(2, 9))


def test_axes_are_not_repeated_in_a_modified_module() -> None:
    module = weft.from_onnx(model_of(REPEATED))
    (add,) = (op for op in module.walk() if op.name == "graph.add")
    add.attributes["note"] = UnitAttr()
    for left, right in (((3, 4), (1, 4)), ((1, 4), (3, 4))):
        with pytest.raises(ValueError, match=r"with a = . .*; --shape states an axis of 1 that is repeated"):
            weft.build(module)["main"](data(*left), data(*right))


def test_axes_that_must_be_equal_are_not_repeated() -> None:
    product = built("main (float[a, b] x, float[c, d] y) => (float[p, q] z) { z = MatMul (x, y) }")
    with pytest.raises(ValueError, match=r"with b = 4 \(from axis 1 of 'x'\), got shape \(1, 2\)"):
        product(data(3, 4), data(1, 2))


def test_rest_of_a_shape_whose_divisor_may_be_negative() -> None:
    """ONNX truncates quotients, so the number of rows is 1 plus a difference of two maxima."""
    text = """main (float[b, n, 8] x) => (float[p, q, r, t] y) {
        batch = Shape <start: int = 0, end: int = 1> (x)
        length = Shape <start: int = 1, end: int = 2> (x)
        one = Constant <value_ints: ints = [1]> ()
        two = Constant <value_ints: ints = [2]> ()
        three = Constant <value_ints: ints = [3]> ()
        five = Constant <value_ints: ints = [5]> ()
        rest = Constant <value_ints: ints = [-1, 2]> ()
        fifth = Div (length, five)
        less = Sub (fifth, three)
        half = Div (less, two)
        count = Add (half, one)
        shape = Concat <axis: int = 0> (batch, count, rest)
        z = Reshape (x, shape)
        y = Softmax <axis: int = 3> (z)
    }"""
    rows = weft.build(weft.from_onnx(onnx.parser.parse_model(HEADER + text)), cache=False)["main"]
    for length, count in ((10, 1), (15, 1), (25, 2), (36, 3)):
        assert rows(np.ones((2, length, 8), "float32")).shape == (2, count, length * 4 // count, 2)
    with pytest.raises(ValueError, match=r"got n = 37 \(axis 1 of 'x'\): block \"reshape\" requires it"):
        rows(np.ones((2, 37, 8), "float32"))


def test_expansion_to_a_slice_of_at_most_one_row() -> None:
    """PyTorch exports the sums of `index_add` so."""
    expand = built("""main (float[n, 4] x, float[e, 4] y) => (float[p, 4] z) {
        zero = Constant <value_ints: ints = [0]> ()
        one = Constant <value_ints: ints = [1]> ()
        first = Slice (x, zero, one, zero)
        shape = Shape (first)
        z = Expand (y, shape)
    }""")
    for n, e in ((1, 1), (5, 9), (3, 0), (0, 0)):
        np.testing.assert_array_equal(expand(data(n, 4), data(e, 4)), data(e, 4))
    message = r"got e = 3 \(axis 0 of 'y'\), n = 0 \(axis 0 of 'x'\): an axis cannot be expanded to 0 elements"
    with pytest.raises(ValueError, match=message):
        expand(data(0, 4), data(3, 4))


def test_reshapes_of_convolved_images_need_no_remark() -> None:
    """The extents of an image are quotients of the sizes that a call gives."""
    text = """main (float[b, 3, h, w] x, float[8, 3, 3, 3] k, float[4] s) => (float[p, q, r, t] y) {
        conv = Conv <kernel_shape: ints = [3, 3], strides: ints = [2, 2], pads: ints = [1, 1, 1, 1]> (x, k)
        groups = Constant <value_ints: ints = [0, 4, -1]> ()
        grouped = Reshape (conv, groups)
        zero = Sub (s, s)
        normed = InstanceNormalization (grouped, s, zero)
        shape = Shape (conv)
        y = Reshape (normed, shape)
    }"""
    run, reference = built(text), onnx.reference.ReferenceEvaluator(onnx.parser.parse_model(HEADER + text))
    rng = np.random.default_rng(0)
    weights, scale = (rng.normal(size=shape).astype("float32") for shape in ((8, 3, 3, 3), 4))
    for shape in ((2, 3, 7, 10), (1, 3, 3, 3), (1, 3, 20, 5)):
        x = rng.normal(size=shape).astype("float32")
        wanted = reference.run(None, {"x": x, "k": weights, "s": scale})[0]
        np.testing.assert_allclose(run(x, weights, scale), wanted, rtol=1e-3, atol=1e-4)


def test_groups_of_channels_of_images_are_views() -> None:
    """Sizes of the image are numbers that the reshape takes; it is no kernel."""
    text = """main (float[b, 8, h, w] x) => (float[p, q, r] y) {
        pool = MaxPool <kernel_shape: ints = [3, 3], strides: ints = [2, 2], pads: ints = [1, 1, 1, 1]> (x)
        groups = Constant <value_ints: ints = [0, 4, -1]> ()
        grouped = Reshape (pool, groups)
        y = Softmax <axis: int = 2> (grouped)
    }"""
    library = weft.build(weft.from_onnx(onnx.parser.parse_model(HEADER + text)), cache=False)
    assert "softmax" in str(library.report())
    assert "reshape" not in str(library.report())
    reference = onnx.reference.ReferenceEvaluator(onnx.parser.parse_model(HEADER + text))
    for shape in ((2, 8, 7, 10), (1, 8, 1, 1)):
        x = np.random.default_rng(0).normal(size=shape).astype("float32")
        np.testing.assert_allclose(library["main"](x), reference.run(None, {"x": x})[0], rtol=1e-5, atol=1e-6)


def test_both_directions_of_a_recurrent_network_need_no_remark() -> None:
    text = """main (float[t, b, 3] x, float[2, 16, 3] w, float[2, 16, 4] r) => (float[p, q, d, h] y) {
        y = LSTM <direction: string = "bidirectional", hidden_size: int = 4> (x, w, r)
    }"""
    run, rng = built(text), np.random.default_rng(0)
    w, r = (rng.normal(size=(2, 16, n)).astype("float32") for n in (3, 4))
    for shape in ((5, 2, 3), (1, 1, 3)):
        x = rng.normal(size=shape).astype("float32")
        assert run(x, w, r).shape == (shape[0], 2, shape[1], 4)
        forward = run(x, w[[0, 0]], r[[0, 0]])
        backward = run(x[::-1].copy(), w[[0, 0]], r[[0, 0]])
        np.testing.assert_allclose(forward[:, 0], backward[::-1, 1], rtol=1e-5)


def test_operands_of_at_most_one_element_along_an_axis_are_repeated() -> None:
    """Positions are divided by the last of them, as in DETR."""
    scaled = built("""main (float[n, 4] x) => (float[p, 4] y) {
        zero = Constant <value_ints: ints = [0]> ()
        last = Constant <value_ints: ints = [-1]> ()
        end = Constant <value_ints: ints = [9223372036854775807]> ()
        row = Slice (x, last, end, zero)
        y = Sub (x, row)
    }""")
    for n in (1, 2, 7):
        np.testing.assert_array_equal(scaled(data(n, 4)), data(n, 4) - data(n, 4)[-1:])
    assert scaled(data(0, 4)).shape == (0, 4)
    added = built("""main (float[n, 4] x, float[m, 4] y) => (float[p, 4] z) {
        zero = Constant <value_ints: ints = [0]> ()
        one = Constant <value_ints: ints = [1]> ()
        row = Slice (x, zero, one, zero)
        z = Add (y, row)
    }""")
    np.testing.assert_array_equal(added(data(3, 4), data(5, 4)), data(5, 4) + data(3, 4)[:1])
    with pytest.raises(ValueError, match=r"n must be at least 1 unless m is 0, got 0"):
        added(data(0, 4), data(5, 4))


@pytest.mark.parametrize("right", ["1,4,16,t", "b,1,16,t", "1,1,16,t", "1,t,16"])
def test_products_with_one_matrix_for_a_batch(right: str) -> None:
    """Relative positions of attention; the copy with padded columns has no dimension for the batch of one."""
    multiply = built(f"""main (float[b,4,s,16] x, float[{right}] y) => (float[p,q,r,u] z) {{
        {"w = Transpose <perm: ints = [0, 2, 1]> (y)" if right == "1,t,16" else "w = Identity (y)"}
        z = MatMul (x, w)
    }}""")
    rng = np.random.default_rng(0)
    for b, s, t in ((2, 5, 7), (1, 1, 1), (3, 33, 70)):
        sizes = [{"b": b, "t": t}.get(extent) or int(extent) for extent in right.split(",")]
        x, y = (rng.normal(size=shape).astype("float32") for shape in ((b, 4, s, 16), sizes))
        w = y.transpose(0, 2, 1) if right == "1,t,16" else y
        np.testing.assert_allclose(multiply(x, y), x @ w, rtol=1e-4, atol=1e-5)


def test_temporary_with_a_negative_extent() -> None:
    """A call checks the extents of temporaries, although the result has an extent of at least 0."""
    padded = built("""main (float[1, 2, n] x) => (float[1, 2, m] y) {
        p = AveragePool <kernel_shape: ints = [5]> (x)
        around = Constant <value_ints: ints = [0, 0, 2, 0, 0, 2]> ()
        y = Pad <mode: string = "edge"> (p, around)
    }""")
    for size in (1, 3, 4):
        with pytest.raises(ValueError, match=f"n must be at least [45].*, got {size}"):
            padded(data(1, 2, size))
    np.testing.assert_array_equal(padded(data(1, 2, 5)), [[[2.0] * 5, [7.0] * 5]])


@pytest.mark.filterwarnings("ignore:.*is the duty of the caller")
def test_checked_builds_report_reads_of_negative_extents() -> None:
    model = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 23]>
    main (float[n] x) => (float[1, 1, m] y) {
        places = NonZero (x)
        row = Cast <to: int = 1> (places)
        first = Constant <value_ints: ints = [0]> ()
        data = Unsqueeze (row, first)
        p = AveragePool <kernel_shape: ints = [5]> (data)
        around = Constant <value_ints: ints = [0, 0, 2, 0, 0, 2]> ()
        y = Pad <mode: string = "edge"> (p, around)
    }""")
    main = weft.build(weft.from_onnx(model), cache=False, checked=True)["main"]
    with pytest.raises(IndexError, match="the extent is -2"):
        main(np.array([1, 1, 0, 0, 0, 0], "float32"))
    np.testing.assert_array_equal(main(np.ones(5, "float32")), np.full((1, 1, 5), 2.0))
