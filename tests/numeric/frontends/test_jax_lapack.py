"""Functions of JAX that call LAPACK: factorizations, and what `jax.numpy.linalg` computes from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")

from jax import lax  # noqa: E402
from jax.scipy import linalg  # noqa: E402
from tiers import first_tier  # noqa: E402

import weft  # noqa: E402
from weft.frontends.jax_export import exported  # noqa: E402
from weft.interp.interpreter import Interpreter  # noqa: E402

_NUMBERS = np.random.default_rng(0)
SQUARE = _NUMBERS.standard_normal((3, 4, 4)).astype(np.float32)
POSITIVE = SQUARE @ SQUARE.transpose(0, 2, 1) + np.eye(4, dtype=np.float32)
TALL = _NUMBERS.standard_normal((3, 5, 4)).astype(np.float32)
RIGHT = _NUMBERS.standard_normal((3, 4, 2)).astype(np.float32)
IMAGINARY = _NUMBERS.standard_normal((3, 4, 4)).astype(np.float32)


def parts(x: Any, full: bool) -> Any:
    """What determines singular vectors: the matrix they give, and that they are orthonormal."""
    u, s, v = jnp.linalg.svd(x, full_matrices=full)
    count = s.shape[-1]
    return (u[..., :count] * s[..., None, :]) @ v[..., :count, :], s, jnp.swapaxes(u, -1, -2) @ u


def eigen(x: Any, **keywords: Any) -> Any:
    values, vectors = jnp.linalg.eigh(x, **keywords)
    return values, (vectors * values[..., None, :]) @ jnp.swapaxes(vectors, -1, -2)


def of_complex(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the parts of a complex array, with the parts of its result."""

    def on_parts(real: Any, imaginary: Any) -> Any:
        found = function(lax.complex(real, imaginary))
        return jnp.real(found), jnp.imag(found)

    return on_parts


def hermitian(x: Any) -> Any:
    return x @ jnp.conj(x).mT + jnp.eye(x.shape[-1])


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "cholesky": (jnp.linalg.cholesky, (POSITIVE,)),
    "cholesky_upper": (lambda x: jnp.linalg.cholesky(x, upper=True), (POSITIVE,)),
    "cholesky_of_others": (jnp.linalg.cholesky, (SQUARE,)),
    "cholesky_gradient": (jax.grad(lambda x: jnp.sum(jnp.linalg.cholesky(x) ** 3)), (POSITIVE[0],)),
    "cho_solve": (lambda a, b: linalg.cho_solve(linalg.cho_factor(a), b), (POSITIVE[0], RIGHT[0])),
    "qr": (jnp.linalg.qr, (TALL,)),
    "qr_wide": (jnp.linalg.qr, (TALL.transpose(0, 2, 1),)),
    "qr_complete": (lambda x: jnp.linalg.qr(x, mode="complete"), (TALL,)),
    "svd": (lambda x: parts(x, full=True), (TALL,)),
    "svd_reduced": (lambda x: parts(x, full=False), (TALL.transpose(0, 2, 1),)),
    "singular_values": (lambda x: jnp.linalg.svd(x, compute_uv=False), (TALL,)),
    "eigh": (eigen, (POSITIVE,)),
    "eigh_upper": (lambda x: eigen(x, UPLO="U"), (SQUARE,)),
    "lu": (linalg.lu, (SQUARE[0],)),
    "lu_solve": (lambda a, b: linalg.lu_solve(linalg.lu_factor(a), b, trans=1), (SQUARE[0], RIGHT[0])),
    "solve": (jnp.linalg.solve, (SQUARE, RIGHT)),
    "solve_mapped": (jax.vmap(jnp.linalg.solve), (SQUARE, RIGHT)),
    "solve_gradient": (jax.grad(lambda a, b: jnp.sum(jnp.linalg.solve(a, b) ** 2)), (SQUARE[0], RIGHT[0])),
    "inverse": (jnp.linalg.inv, (SQUARE,)),
    "determinants": (lambda x: (jnp.linalg.det(x), jnp.linalg.slogdet(x)), (SQUARE,)),
    "exponential": (linalg.expm, (SQUARE[0],)),
    "triangular": (lambda a, b: linalg.solve_triangular(a, b, lower=True), (SQUARE[0], RIGHT[0])),
    "triangular_unit": (lambda a, b: linalg.solve_triangular(a, b, trans=1, unit_diagonal=True), (SQUARE[0], RIGHT[0])),
    "triangular_right": (
        lambda a, b: lax.linalg.triangular_solve(a, b.T, lower=True, transpose_a=True),
        (SQUARE[0], RIGHT[0]),
    ),
    "complex_cholesky": (of_complex(lambda x: jnp.linalg.cholesky(hermitian(x))), (SQUARE, IMAGINARY)),
    "complex_cholesky_upper": (
        of_complex(lambda x: jnp.linalg.cholesky(hermitian(x), upper=True)),
        (SQUARE, IMAGINARY),
    ),
    "complex_cholesky_of_others": (of_complex(jnp.linalg.cholesky), (SQUARE, IMAGINARY)),
    "complex_triangular": (
        of_complex(lambda a: linalg.solve_triangular(a, a[:, 1:], lower=True, trans=2)),
        (SQUARE[0], IMAGINARY[0]),
    ),
    "complex_triangular_unit": (
        of_complex(lambda a: linalg.solve_triangular(a, a[:, :2], unit_diagonal=True)),
        (SQUARE[0], IMAGINARY[0]),
    ),
    "complex_triangular_right": (
        of_complex(lambda a: lax.linalg.triangular_solve(a, a[:, :3], lower=True, transpose_a=True, conjugate_a=True)),
        (SQUARE, IMAGINARY),
    ),
    "in_a_scan": (
        lambda x: lax.scan(lambda c, m: (jnp.linalg.cholesky(c @ c.T + m), jnp.linalg.det(m)), jnp.eye(4), x),
        (POSITIVE,),
    ),
}


def same(found: Any, expected: Any) -> None:
    for one, other in zip(jax.tree_util.tree_leaves(found), jax.tree_util.tree_leaves(expected), strict=True):
        assert np.asarray(one).shape == other.shape
        np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-5, equal_nan=True)


@pytest.mark.parametrize("name", first_tier(list(CASES), "solve", "in_a_scan"))
def test_function(name: str) -> None:
    function, arguments = CASES[name]
    same(weft.jax_jit(function)(*arguments), jax.jit(function)(*arguments))


@pytest.mark.parametrize(
    "name",
    first_tier(
        [
            "cholesky_upper",
            "complex_cholesky_upper",
            "complex_triangular_right",
            "qr",
            "svd",
            "eigh",
            "solve",
            "triangular_right",
        ],
        "qr",
    ),
)
def test_interpreter(name: str) -> None:
    """Of the program as JAX prints it."""
    function, arguments = CASES[name]
    module = weft.parse(exported(function, arguments, {}, None, ()).mlir_module())
    same(Interpreter(module).call("main", *arguments), jax.jit(function)(*arguments))


@pytest.mark.parametrize(
    ("name", "shapes"),
    [("cholesky", ("n, k, k",)), ("solve", ("n, 4, 4", "n, 4, m")), ("qr", ("n, 5, 4",)), ("eigh", ("n, k, k",))],
)
def test_symbolic_dimensions(name: str, shapes: Any) -> None:
    function, arguments = CASES[name]
    fast = weft.jax_jit(function, shapes=shapes)
    for count in (3, 1):
        some = [argument[:count] for argument in arguments]
        same(fast(*some), jax.jit(function)(*some))


def test_double_precision() -> None:
    with jax.enable_x64(True):
        x = POSITIVE.astype(np.float64)
        np.testing.assert_allclose(weft.jax_jit(jnp.linalg.inv)(x), np.linalg.inv(x), rtol=1e-10)


def test_refusals() -> None:
    text = """func.func @main(%a: tensor<2x2xf32>) -> tensor<2x2xf32> {{
  %0:2 = stablehlo.custom_call @lapack_spotrf_ffi({operands}) {{{config}}}
    : ({types}) -> (tensor<2x2xf32>, tensor<i32>)
  return %0#0 : tensor<2x2xf32>
}}"""
    with pytest.raises(weft.CompileError, match=r"@lapack_spotrf_ffi has an integer 'uplo' in mhlo.backend_config"):
        weft.build(text.format(operands="%a", types="tensor<2x2xf32>", config="mhlo.backend_config = {}"))
    with pytest.raises(weft.CompileError, match=r"@lapack_spotrf_ffi needs more operands: 1, got 0"):
        weft.build(text.format(operands="", types="", config="mhlo.backend_config = {uplo = 76 : ui8}"))
