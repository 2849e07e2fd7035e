"""Factorizations of matrices and what follows from them, in models of PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tiers import second_tier

import weft

torch = pytest.importorskip("torch")


def solutions(a: Any, b: Any) -> tuple[Any, ...]:
    factors, pivots = torch.linalg.lu_factor(a)
    ways = ((True, False), (True, True), (False, False), (False, True))
    several = (
        torch.linalg.lu_solve(factors, pivots, b if left else b.mT, left=left, adjoint=adjoint)
        for left, adjoint in ways
    )
    return (
        *(factors, pivots, *torch.linalg.inv_ex(a), torch.linalg.solve(a, b), torch.linalg.solve(a, b[..., 0])),
        *(torch.linalg.solve(a, b.mT, left=False), torch.linalg.matrix_power(a, -2), *several),
    )


def determinants(a: Any, b: Any) -> tuple[Any, ...]:
    part, other = a[:, 1:], a[..., 1:]
    return (
        *(torch.linalg.det(a), *torch.linalg.slogdet(a), torch.linalg.det(a * 0), *torch.linalg.lu_factor_ex(a * 0)),
        *(*torch.linalg.lu(part), *torch.linalg.lu(other), *torch.lu_unpack(*torch.linalg.lu_factor(a))),
    )


def positive(a: Any, b: Any) -> tuple[Any, ...]:
    definite = a @ a.mT
    lower, upper = torch.linalg.cholesky(definite), torch.linalg.cholesky(definite, upper=True)
    return (
        *(lower, upper, torch.linalg.cholesky_ex(-definite).info, torch.cholesky_solve(b, lower)),
        *(torch.cholesky_solve(b, upper, upper=True), torch.cholesky_inverse(lower)),
    )


def triangles(a: Any, b: Any) -> tuple[Any, ...]:
    solve = torch.linalg.solve_triangular
    return (
        *(solve(a, b, upper=upper, unitriangular=unit) for upper in (False, True) for unit in (False, True)),
        *(solve(a, b.mT, upper=upper, left=False) for upper in (False, True)),
        *torch.triangular_solve(b, a, transpose=True, upper=False),
    )


def orthogonal(a: Any, b: Any) -> tuple[Any, ...]:
    part, other = a[:, 1:], a[..., 1:]
    return (
        *(*torch.linalg.qr(part), *torch.linalg.qr(other), *torch.linalg.qr(other, "complete")),
        *(torch.linalg.qr(other, "r").R, *torch.geqrf(a), torch.linalg.householder_product(*torch.geqrf(other))),
        *(torch.ormqr(*torch.geqrf(other), b), torch.ormqr(*torch.geqrf(a), b.mT, left=False, transpose=True)),
    )


def spectra(a: Any, b: Any) -> tuple[Any, ...]:
    """What singular vectors and eigenvectors determine: products in which their signs cancel."""
    symmetric, part, other = a + a.mT, a[:, 1:], a[..., 1:]
    values, vectors = torch.linalg.eigh(symmetric)
    found = [values, (vectors * values[..., None, :]) @ vectors.mT, vectors.mT @ vectors]
    found.append(torch.linalg.eigvalsh(a, "U"))
    for matrix in (part, other):
        for full in (False, True):
            u, s, v = torch.linalg.svd(matrix, full)
            k = s.shape[-1]
            found += [u[..., :k] * s[..., None, :] @ v[..., :k, :], u.mT @ u, v @ v.mT]
    found += [torch.linalg.svdvals(a), torch.linalg.pinv(part), torch.linalg.pinv(symmetric, hermitian=True)]
    return tuple(found)


@pytest.mark.parametrize(
    "function, dtype",
    [
        (solutions, "float64"),
        (orthogonal, "float32"),
        *(second_tier(f, "float64") for f in (determinants, positive, triangles, orthogonal, spectra)),
        *(second_tier(f, "float32") for f in (solutions, determinants, positive, triangles, spectra)),
    ],
)
def test_batches_of_matrices(function: Callable[..., Any], dtype: str) -> None:
    class Model(torch.nn.Module):
        def forward(self, a: Any, b: Any) -> Any:
            return function(a, b)

    generator = torch.Generator().manual_seed(0)
    a, b = (torch.randn(2, 4, width, generator=generator, dtype=getattr(torch, dtype)) for width in (4, 2))
    a = a + 2 * torch.eye(4, dtype=a.dtype)
    tolerance = 1e-10 if dtype == "float64" else 2e-4
    found = weft.compile(Model(), (a, b))(a, b)
    for number, (one, other) in enumerate(zip(found, function(a, b), strict=True)):
        torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance, msg=lambda m, n=number: f"{n}: {m}")


@pytest.mark.slow
def test_matrices_without_rows() -> None:
    class Model(torch.nn.Module):
        def forward(self, a: Any) -> Any:
            return torch.linalg.det(a), torch.linalg.inv(a), torch.linalg.svdvals(a), torch.linalg.qr(a).R

    a = torch.zeros(2, 0, 0)
    for one, other in zip(weft.compile(Model(), (a,))(a), Model()(a), strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_exponentials_of_matrices(dtype: str) -> None:
    """Each matrix of a batch is scaled by its own norm: one of zeros, a large one, and one whose exponential is 0."""

    class Model(torch.nn.Module):
        def forward(self, a: Any) -> Any:
            return torch.linalg.matrix_exp(a)

    torch.manual_seed(0)
    a = torch.randn(2, 3, 4, 4, dtype=getattr(torch, dtype)) * torch.tensor([0.0, 1e-3, 1.0, 5.0, 20.0, 1.0]).reshape(
        2, 3, 1, 1
    )
    a[-1, -1] = -900 * torch.eye(4)
    found, expected = weft.compile(Model(), (a,))(a), torch.linalg.matrix_exp(a)
    size = expected.abs().amax((-1, -2), keepdim=True).clamp(min=1e-30)
    assert ((found - expected).abs() / size).max() < (1e-5 if dtype == "float32" else 1e-12)
    assert weft.compile(Model(), (a * torch.nan,))(a * torch.nan).isnan().all()


@pytest.mark.slow
def test_zero_and_repeated_singular_values() -> None:
    class Model(torch.nn.Module):
        def forward(self, a: Any) -> Any:
            u, s, v = torch.linalg.svd(a)
            return u @ torch.diag_embed(s) @ v, u.mT @ u, s

    a = torch.stack([torch.zeros(3, 3), torch.eye(3), torch.ones(3, 3)])
    for one, other in zip(weft.compile(Model(), (a,))(a), Model()(a), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("size", [1e200, 1e-200])
def test_squares_of_elements_do_not_overflow(size: float) -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 4, 3, dtype=torch.float64) * size

    class Model(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            square = x[:, :3] + x[:, :3].mT
            return (*torch.linalg.svd(x, full_matrices=False), torch.linalg.eigh(square)[0])

    left, values, right, eigenvalues = weft.compile(Model(), (x,))(x)
    square = x[:, :3] + x[:, :3].mT
    for found, expected in (
        (values, torch.linalg.svdvals(x)),
        ((left * values[..., None, :]) @ right, x),
        (eigenvalues, torch.linalg.eigvalsh(square)),
    ):
        torch.testing.assert_close(found / size, expected / size, rtol=1e-12, atol=1e-12)
