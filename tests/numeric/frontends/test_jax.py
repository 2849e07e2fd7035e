"""Functions of JAX compiled by weft give JAX's results, and so do their gradients."""

from functools import partial
from typing import Any

import numpy as np
import pytest

import weft

jax = pytest.importorskip("jax", reason="JAX is not installed: pip install 'weft[jax]'")

import jax.numpy as jnp  # noqa: E402
import jax_models  # noqa: E402
from jax import export, lax  # noqa: E402
from tiers import first_tier  # noqa: E402

MODELS = jax_models.models()


def check(found: Any, expected: Any) -> None:
    def same(one: Any, other: Any) -> None:
        assert isinstance(one, jax.Array) and (one.shape, one.dtype) == (other.shape, other.dtype)
        wide = [np.asarray(array, np.float64) for array in (one, other)]
        np.testing.assert_allclose(*wide, rtol=2e-5, atol=2e-6, equal_nan=True)

    assert jax.tree_util.tree_structure(found) == jax.tree_util.tree_structure(expected)
    jax.tree_util.tree_map(same, found, expected)


@pytest.mark.parametrize("name", first_tier(list(MODELS), "newton", "mapped"))
def test_model(name: str) -> None:
    model = MODELS[name]
    check(weft.jax_jit(model.function)(*model.arguments), jax.jit(model.function)(*model.arguments))


@pytest.mark.parametrize("name", first_tier([name for name, model in MODELS.items() if model.loss], "branches"))
def test_gradient(name: str) -> None:
    model = MODELS[name]
    gradient = model.gradient()
    check(weft.jax_jit(gradient)(*model.arguments), jax.jit(gradient)(*model.arguments))


def scanned(params: Any, x: Any) -> Any:
    h = jnp.tanh(x @ params["w"])
    return jnp.concatenate([h, h]).reshape(-1), lax.scan(lambda c, r: (c + r, c), jnp.zeros((4,)), h), x[::2].sum(0)


def test_symbolic_dimensions() -> None:
    """One program for all sizes, which loop and result depend on."""
    fast = weft.jax_jit(scanned, shapes=(None, "b, ..."), constraints=["b >= 2"])
    params = {"w": np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)}
    for rows in (5, 2):
        x = np.random.default_rng(rows).standard_normal((rows, 3), np.float32)
        check(fast(params, x), jax.jit(scanned)(params, x))
    assert len(fast.libraries) == 1
    with pytest.raises(ValueError, match=r"b - 2 must be at least 0, got 1 .axis 0 of 'x'."):
        fast(params, np.ones((1, 3), np.float32))
    text = str(weft.from_jax(scanned, params, np.ones((4, 3), np.float32), shapes=(None, "b, ...")))
    assert "func.func @main(%params_w: tensor<3x4xf32>, %x: tensor<?x3xf32, #graph.dims<b>>)" in text


def test_equal_and_derived_dimensions() -> None:
    fast = weft.jax_jit(lambda x, y: (x @ y, x.reshape(-1)), shapes=("a, b", "b, 2*a"))
    x, y = np.ones((2, 3), np.float32), np.ones((3, 4), np.float32)
    check(fast(x, y), (jnp.full((2, 4), 3.0), jnp.ones(6)))
    with pytest.raises(ValueError, match=r"expected y_d1 == 2 \* a, got y_d1 = 5"):
        fast(x, np.ones((3, 5), np.float32))


def test_multiples_of_symbolic_dimensions() -> None:
    """JAX divides the extent by functions of its own, and asserts that nothing remains."""

    def halves(x: Any) -> Any:
        return x.reshape(x.shape[0] // 2, 2, -1).sum(1), jnp.split(x, 2)[1]

    fast = weft.jax_jit(halves, shapes=("2*n, m",))
    for rows in (2, 10):
        x = np.random.default_rng(rows).standard_normal((rows, 3), np.float32)
        check(fast(x), jax.jit(halves)(x))
    with pytest.raises(ValueError, match=r"expected .*2.*, got .* 5 .axis 0 of 'x'"):
        fast(np.ones((5, 3), np.float32))


def test_scan_of_symbolic_rows() -> None:
    """Steps read rows of symbolic length, from a start that depends on the step."""

    def sums(x: Any) -> Any:
        return lax.scan(lambda c, r: (c * 0.5 + r, c.sum()), jnp.zeros(x.shape[1]), x)

    fast = weft.jax_jit(sums, shapes=("n, m",))
    for shape in ((1, 1), (5, 3), (2, 9)):
        x = np.random.default_rng(1).standard_normal(shape, np.float32)
        check(fast(x), jax.jit(sums)(x))


@pytest.mark.slow
def test_cumulative_functions_along_symbolic_axes() -> None:
    def function(x: Any) -> Any:
        return jnp.cumsum(x, 0), lax.cummax(x, 1), lax.cumlogsumexp(x, 0), lax.cumprod(x, 0, reverse=True)

    fast = weft.jax_jit(function, shapes=("n, m",))
    for shape in ((3, 4), (1, 7), (33, 17)):
        x = np.random.default_rng(1).standard_normal(shape, np.float32)
        check(fast(x), jax.jit(function)(x))
    assert len(fast.libraries) == 1


@pytest.mark.slow
def test_symbolic_windows() -> None:
    def function(x: Any, w: Any) -> Any:
        pooled = lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 3, 3), (1, 1, 2, 2), "SAME")
        return lax.conv_general_dilated(x, w, (2, 2), "SAME"), pooled

    fast = weft.jax_jit(function, shapes=("1, 2, h, w", None))
    w = np.random.default_rng(0).standard_normal((3, 2, 3, 3), np.float32)
    for rows, columns in ((7, 8), (1, 5)):
        x = np.random.default_rng(rows).standard_normal((1, 2, rows, columns), np.float32)
        check(fast(x, w), jax.jit(function)(x, w))


def test_element_types_and_keys() -> None:
    for dtype in (jnp.bfloat16, jnp.int8, jnp.bool_, jnp.uint32):
        x = jnp.asarray(np.arange(6).reshape(2, 3) % 3).astype(dtype)
        check(weft.jax_jit(lambda x: (x.T, x.astype(jnp.float32)))(x), (x.T, x.astype(jnp.float32)))
    key = jax.random.key(3)
    (first, second), (one, other) = weft.jax_jit(jax.random.split)(key), jax.random.split(key)
    assert first == one and second == other


def test_memory_is_shared() -> None:
    """Arguments are read, and results made, without copies."""
    x = jnp.ones((64, 64))
    fast = weft.jax_jit(lambda x: x + 1)
    fast(x)
    compiled = next(iter(fast._compiled.values()))
    assert compiled._readers[0](x).ctypes.data == x.unsafe_buffer_pointer()
    base = np.zeros(4096 + 16, np.float32)
    skipped = -base.ctypes.data % 64 // 4  # JAX copies memory that is not aligned to 64 bytes
    made = base[skipped : skipped + 4096]
    assert compiled._writers[0](made).unsafe_buffer_pointer() == made.ctypes.data


@pytest.mark.parametrize(("first", "bound"), [(0.0, 4.5), (np.uint32(0), np.uint32(5))])
def test_counters(first: Any, bound: Any) -> None:
    """A counter in floats is no number of rows; one in integers keeps its type."""

    def function(x: Any) -> Any:
        return lax.while_loop(lambda c: c[0] < bound, lambda c: (c[0] + 1, c[1] * 2), (jnp.asarray(first), x))

    check(weft.jax_jit(function)(jnp.ones(3)), function(jnp.ones(3)))


def test_arrays_of_pytorch() -> None:
    torch = pytest.importorskip("torch")
    fast = weft.jax_jit(lambda x: x * 2)
    for dtype in (torch.float32, torch.bfloat16):
        for start in (0, 1):
            x = torch.arange(5, dtype=dtype)[start:]
            np.testing.assert_array_equal(np.asarray(fast(x), np.float32), (x * 2).float().numpy())


def test_exported_functions() -> None:
    program = export.export(jax.jit(lambda x: jnp.sin(x)), platforms=("cpu",))(np.ones(3, np.float32))
    found = weft.build(weft.from_jax(program))["main"](np.ones(3, np.float32))
    np.testing.assert_allclose(found, np.sin(np.ones(3, np.float32)), rtol=1e-6)
    with pytest.raises(TypeError, match=r"an exported function takes no examples"):
        weft.from_jax(program, np.ones(3, np.float32))
    with pytest.raises(TypeError, match=r"expected a function or a jax.export.Exported, got int"):
        weft.from_jax(3)
    with pytest.raises(TypeError, match=r"jax_jit: expected a function, got int"):
        weft.jax_jit(3)  # pyright: ignore[reportArgumentType]


def test_refusals() -> None:
    with pytest.raises(TypeError, match=r"arguments are arrays and numbers, got str: bind others by functools.partial"):
        weft.jax_jit(lambda x, how: x)(jnp.ones(3), "how")
    check(weft.jax_jit(partial(lambda how, x: x * len(how), "how"))(jnp.ones(3)), jnp.full(3, 3.0))
    with pytest.raises(
        TypeError, match=r"cannot be transformed by JAX: transform first, weft.jax_jit\(jax.grad\(f\)\)"
    ):
        jax.grad(weft.jax_jit(lambda x: x.sum()))(jnp.ones(3))
    with pytest.raises(
        weft.CompileError, match=r"no function is registered as 'lapack_sgeev_ffi', did you mean 'lapack_ssyevd_ffi'"
    ):
        weft.jax_jit(jnp.linalg.eigvals)(jnp.eye(4))


def test_strided_arrays() -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    check(weft.jax_jit(lambda x, y: x @ y)(x[:, ::2], x[::-1, :2].T), jnp.asarray(x[:, ::2] @ x[::-1, :2].T))
