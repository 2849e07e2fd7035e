"""Special functions, Fourier transforms, complex numbers, and rarer operators, in models of PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tiers import second_tier

import weft

torch = pytest.importorskip("torch")
special, functional = torch.special, torch.nn.functional
X = torch.tensor([-9.3, -2.6, -1.0, -0.4, 0.0, 0.3, 1.0, 1.9, 2.2, 4.9, 7.5, 12.5], dtype=torch.float64)


def check(function: Callable[..., Any], *inputs: Any, tolerance: float = 0.0) -> None:
    class Model(torch.nn.Module):
        def forward(self, *given: Any) -> Any:
            return function(*given)

    found, expected = weft.compile(Model(), inputs)(*inputs), function(*inputs)
    for number, (one, other) in enumerate(zip(found, expected, strict=True)):
        near = tolerance if other.is_floating_point() else 0.0
        torch.testing.assert_close(
            one, other, rtol=near, atol=near, equal_nan=True, msg=lambda m, n=number: f"{n}: {m}"
        )


def bessel_functions(x: Any) -> tuple[Any, ...]:
    """Those of the first and second kind of PyTorch are exact to 1e-6 alone, in float64 too."""
    return (
        *(special.i0(x), special.i0e(x), special.i1(x), special.i1e(x), special.modified_bessel_k0(x)),
        *(special.modified_bessel_k1(x), special.scaled_modified_bessel_k0(x), special.scaled_modified_bessel_k1(x)),
        special.spherical_bessel_j0(x),
    )


def oscillating(x: Any) -> tuple[Any, ...]:
    return special.bessel_j0(x), special.bessel_j1(x), special.bessel_y0(x), special.bessel_y1(x), special.airy_ai(x)


def gamma_functions(x: Any) -> tuple[Any, ...]:
    """Apart from poles, near which PyTorch's `polygamma` is large and not infinite."""
    x = torch.where((x <= 0) & (x == x.round()), 0.35, x)
    orders = (special.polygamma(n, x) for n in (0, 1, 2, 5))
    return *orders, special.zeta(x.abs() + 1, x), special.zeta(3.0, x), special.gammaln(x), special.digamma(x)


def probabilities(x: Any) -> tuple[Any, ...]:
    incomplete = special.gammainc(x, x.flip(0)), special.gammaincc(x.abs(), 2 * x.abs())
    return *incomplete, special.ndtri(x / 20 + 0.5), special.log_ndtr(x), special.erfcx(x)


def polynomials(x: Any) -> tuple[Any, ...]:
    n, y = torch.arange(-1, x.shape[0] - 1, dtype=x.dtype), x / 10
    kinds = [f"{shift}chebyshev_polynomial_{kind}" for shift in ("", "shifted_") for kind in "tuvw"]
    kinds += ["hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p"]
    return *(getattr(special, kind)(y, n) for kind in kinds), special.legendre_polynomial_p(y, 3)


@pytest.mark.parametrize(
    "function, tolerance",
    [
        (oscillating, 1e-5),
        second_tier(gamma_functions, 1e-7),
        *(second_tier(f, 1e-11) for f in (bessel_functions, probabilities, polynomials)),
    ],
)
def test_special_functions(function: Callable[..., Any], tolerance: float) -> None:
    check(function, X, tolerance=tolerance)


def transforms(x: Any) -> tuple[Any, ...]:
    spectrum = torch.fft.rfft2(x, norm="ortho")
    return (
        *(spectrum.real, torch.fft.fft(x, 7).imag, torch.fft.fft2(x).abs(), torch.fft.irfft2(spectrum)),
        *(torch.fft.hfft(x, norm="forward"), torch.fft.hfftn(x), torch.fft.irfft(x, 6), torch.view_as_real(spectrum)),
        *(torch.fft.ifft(torch.fft.fft(x * 1j), norm="backward").imag, torch.fft.fftshift(x)),
    )


def complex_numbers(x: Any) -> tuple[Any, ...]:
    y = torch.view_as_complex(x.reshape(3, -1, 2))
    z = y * torch.polar(torch.ones_like(x[:, :2]), x[:, :2]) + torch.conj(y)
    quotient, powers = torch.view_as_real(z / (y + 3)), torch.view_as_real(torch.exp(1j * x))
    product = (z @ z.transpose(0, 1)).real
    sums = (y - 3).imag, (2 - y).real, torch.add(y, z, alpha=2).imag, functional.pad(y, (1, 0), value=2.0).imag
    return (
        *sums,
        quotient,
        powers,
        product,
        torch.cat([z, y], 1).imag,
        z.angle(),
        z[:, 1:].sum(0).abs(),
        (z.mean() * 2).real,
    )


@pytest.mark.parametrize("function", [transforms, second_tier(complex_numbers)])
def test_complex_numbers_inside_of_a_model(function: Callable[..., Any]) -> None:
    check(function, torch.randn(3, 4, generator=torch.Generator().manual_seed(1)), tolerance=1e-5)


@pytest.mark.slow
def test_complex_results_and_operators_without_parts_are_refused() -> None:
    class Model(torch.nn.Module):
        def __init__(self, function: Any) -> None:
            super().__init__()
            self.function = function

        def forward(self, x: Any) -> Any:
            return self.function(x)

    x = torch.zeros(2)
    with pytest.raises(weft.CompileError, match=r"an output is complex, and must be real: torch.view_as_real"):
        weft.compile(Model(torch.fft.fft), (x,))
    with pytest.raises(weft.CompileError, match=r"aten.tan.default: complex numbers"):
        weft.compile(Model(lambda x: torch.tan(x * 1j).real), (x,))


def rarer(x: Any, n: Any) -> tuple[Any, ...]:
    index, flat = torch.tensor([2, 0, 2]), x.reshape(-1)
    pool = functional.adaptive_max_pool2d(x[None, None], (2, 3), return_indices=True)
    reduced = (x.index_reduce(0, index, x + 1, kind, include_self=kind != "mean") for kind in ("amax", "prod", "mean"))
    return (
        *(*torch.frexp(x), *torch.frexp(x * 1e-40), torch.mode(n, 1).values, torch.mode(n, 0, keepdim=True).values),
        *(*pool, *reduced, n.index_reduce(1, torch.tensor([0, 4, 4, 1, 0]), n, "amin")),
        *(
            x.put(torch.tensor([0, -1]), flat[:2], accumulate=True),
            torch.as_strided_scatter(x, x[:2, :2], (2, 2), (3, 1), 1),
        ),
        *(torch.scatter(x, 0, index[None], x, reduce="multiply"), torch.nonzero_static(n, size=20, fill_value=-1)),
        *(torch.nonzero_static(n, size=2), torch.addbmm(x[:, :3], x[None, :, :3], x[None, :, 2:], alpha=2)),
        *(functional.bilinear(x, x, torch.ones(2, 5, 5)), functional.avg_pool2d(n[None], 2), x.var(correction=1.5)),
        *(torch.view_copy(x, (-1,)), torch.angle(n), torch.angle(x), *torch.std_mean(x, 1, correction=0.5)),
        *(torch.tril_indices(3, 4), functional.avg_pool2d(n[None], 2, divisor_override=3)),
        torch.segment_reduce(flat, "max", lengths=torch.tensor([4, 0, 11])),
        torch.segment_reduce(x, "mean", offsets=torch.tensor([0, 1, 3]), initial=2.0),
        functional.interpolate(x[None, None], (2, 3), mode="bilinear", antialias=True),
        functional.interpolate(x[None, None], (2, 3), mode="bicubic", antialias=True),
    )


@pytest.mark.slow
def test_rarer_operators() -> None:
    generator = torch.Generator().manual_seed(2)
    check(
        rarer,
        torch.randn(3, 5, generator=generator),
        torch.randint(-3, 4, (3, 5), generator=generator),
        tolerance=1e-5,
    )


@pytest.mark.slow
def test_repetitions_are_dropped() -> None:
    def function(x: Any) -> tuple[Any, ...]:
        rows = torch.unique_consecutive(x, dim=0, return_inverse=True)
        return *torch.unique_consecutive(x, return_inverse=True, return_counts=True), *rows

    check(function, torch.tensor([[1, 1], [1, 1], [2, 2], [1, 1]]))


def _histograms(x: Any, y: Any, edges: Any) -> tuple[Any, ...]:
    weight = x.reshape(-1).abs()
    several = torch.histogramdd(y, [2, 3], weight=y[..., 0].abs()), torch.histogramdd(y, (edges, edges), density=True)
    return (
        *torch.histogram(x, 7),
        *torch.histogram(x, 5, range=(-1.0, 1.0), weight=weight.reshape(x.shape), density=True),
        *torch.histogram(x, edges, density=True),
        *torch.histogram(torch.ones_like(x), 3),
        *(part for counts, (first, last) in several for part in (counts, first, last)),
    )


def _pools_of_random_windows(x: Any, y: Any, samples: Any) -> tuple[Any, ...]:
    indices = {"return_indices": True}
    return (
        *functional.fractional_max_pool2d(x, (2, 3), output_size=(4, 3), _random_samples=samples[..., :2], **indices),
        functional.fractional_max_pool2d(x[0], 2, output_ratio=(0.5, 0.5), _random_samples=samples[:1, :, :2]),
        *functional.fractional_max_pool3d(y, (2, 3, 2), output_size=(2, 3, 1), _random_samples=samples, **indices),
    )


@pytest.mark.slow
def test_histograms_and_pools_of_random_windows() -> None:
    torch.manual_seed(3)
    x, y = torch.randn(5, 8), torch.randn(4, 5, 2)
    check(_histograms, x, y, torch.tensor([-1.0, -0.5, 0.0, 0.7]), tolerance=1e-5)
    samples = torch.rand(2, 3, 3)
    check(_pools_of_random_windows, torch.randn(2, 3, 8, 9), torch.randn(2, 3, 5, 6, 7), samples, tolerance=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [{}, {"bidirectional": True, "num_layers": 2, "batch_first": True}, {"bias": False}]
)
def test_projected_states_of_lstms(options: dict[str, Any]) -> None:
    torch.manual_seed(4)
    model = torch.nn.LSTM(5, 7, proj_size=3, **options).eval()
    with torch.no_grad():
        check(lambda x: (lambda y, states: (y, *states))(*model(x)), torch.randn(4, 2, 5), tolerance=1e-5)


@pytest.mark.slow
def test_pools_of_regions_of_torchvision() -> None:
    """Schemas of its operators, with results that need no torchvision: of images of one bin per channel, those of each
    bin are those of one channel for all bins."""
    library = torch.library.Library("torchvision", "FRAGMENT")
    arguments = "Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width"
    for name, more in (("roi_pool", ""), ("ps_roi_pool", ""), ("ps_roi_align", ", int sampling_ratio")):
        if not hasattr(torch.ops.torchvision, name):
            library.define(f"{name}({arguments}{more}) -> (Tensor, Tensor)")
        bins = 1 if name == "roi_pool" else 6

        def shaped(x: Any, rois: Any, scale: float, h: int, w: int, *_: Any, bins: int = bins) -> tuple[Any, Any]:
            found = x.new_empty(rois.shape[0], x.shape[1] // bins, h, w)
            return found, found.to(torch.int32)

        library.impl(name, shaped, "Meta")

    class Model(torch.nn.Module):
        def forward(self, x: Any, rois: Any) -> Any:
            sensitive = torch.ops.torchvision.ps_roi_align(x, rois, 1.0, 3, 2, 2)[0]
            return (
                torch.ops.torchvision.roi_pool(x, rois, 0.5, 3, 2)[0],
                torch.ops.torchvision.ps_roi_pool(x, rois, 1.0, 3, 2)[0],
                sensitive,
            )

    x = torch.arange(72.0).reshape(1, 1, 9, 8).expand(1, 12, 9, 8).contiguous()
    rois = torch.tensor([[0.0, 0.6, 2.5, 5.4, 7.7]])
    most, mean, aligned = weft.compile(Model(), (x, rois))(x, rois)
    # Rows 1.25 and 3.85 are 1 and 4, columns 0.3 and 2.7 are 0 and 3: bins of 4 / 3 x 2 elements.
    last = torch.tensor([[2, 1], [2, 3], [3, 1], [3, 3], [4, 1], [4, 3]])
    torch.testing.assert_close(most, (last[:, 0] * 8.0 + last[:, 1]).reshape(3, 2).expand(1, 12, 3, 2))
    # Rows 2.5 and 7.7 are 3 and 8, columns 0.6 and 5.4 are 1 and 5: bins of 5 / 3 x 2 elements.
    centres = torch.tensor([[3.5 * 8 + 1.5, 3.5 * 8 + 3.5], [5 * 8 + 1.5, 5 * 8 + 3.5], [6.5 * 8 + 1.5, 6.5 * 8 + 3.5]])
    torch.testing.assert_close(mean, centres.expand(1, 2, 3, 2))
    rows, columns = 2.0 + 5.2 / 6 * torch.tensor([1, 3, 5]), 0.1 + 4.8 / 4 * torch.tensor([1, 3])
    torch.testing.assert_close(aligned, (rows[:, None] * 8 + columns).expand(1, 2, 3, 2))


@pytest.mark.slow
def test_regions_of_torchvision() -> None:
    """Its schema, with a result that needs no torchvision: the mean of a region without fractions."""
    library = torch.library.Library("torchvision", "FRAGMENT")
    if not hasattr(torch.ops.torchvision, "roi_align"):
        library.define(
            "roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, "
            "int sampling_ratio, bool aligned) -> Tensor"
        )
    library.impl("roi_align", lambda x, rois, s, h, w, *_: x.new_empty(rois.shape[0], x.shape[1], h, w), "Meta")

    class Model(torch.nn.Module):
        def forward(self, x: Any, rois: Any) -> Any:
            return torch.ops.torchvision.roi_align(x, rois, 1.0, 2, 3, 1, True)

    x = torch.arange(96.0).reshape(2, 2, 4, 6)
    rois = torch.tensor([[0.0, 0.0, 0.0, 6.0, 4.0], [1.0, 0.0, 0.0, 6.0, 4.0]])
    torch.testing.assert_close(weft.compile(Model(), (x, rois))(x, rois), functional.avg_pool2d(x, 2))


@pytest.mark.slow
@pytest.mark.parametrize("use_mask", [False, True])
def test_deformable_convolution_of_torchvision(use_mask: bool) -> None:
    """Its schema, with a result that needs no torchvision: moves by whole elements are a convolution of moved images,
    and a mask scales what is read."""
    library = torch.library.Library("torchvision", "FRAGMENT")
    if not hasattr(torch.ops.torchvision, "deform_conv2d"):
        library.define(
            "deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h, "
            "SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups, "
            "SymInt offset_groups, bool use_mask) -> Tensor"
        )
        library.impl(
            "deform_conv2d", lambda x, w, offset, *_: x.new_empty(x.shape[0], w.shape[0], *offset.shape[2:]), "Meta"
        )

    class Model(torch.nn.Module):
        def forward(self, x: Any, weight: Any, offset: Any, mask: Any, bias: Any) -> Any:
            options = (2, 1, 1, 2, 1, 2, 2, 2, use_mask)
            return torch.ops.torchvision.deform_conv2d(x, weight, offset, mask, bias, *options)

    torch.manual_seed(0)
    x, weight, bias = torch.randn(2, 4, 7, 6), torch.randn(6, 2, 3, 2), torch.randn(6)
    moves = torch.tensor([[1.0, 0.0], [0.0, -1.0]])  # of two groups: a row down, a column to the left
    offset = moves[:, None].expand(2, 6, 2).reshape(1, 24, 1, 1).expand(2, -1, 4, 8)
    mask = torch.tensor([0.5, 2.0]).repeat_interleave(6).reshape(1, 12, 1, 1).expand(2, -1, 4, 8)
    inputs = (x, weight, offset.contiguous(), mask.contiguous(), bias)
    wide = functional.pad(x, (3, 3, 3, 3))
    moved = torch.cat([wide[:, :2].roll(-1, 2), wide[:, 2:].roll(1, 3)], 1)[:, :, 2:-2, 1:-1]
    if use_mask:
        moved = moved * torch.tensor([0.5, 0.5, 2.0, 2.0]).reshape(4, 1, 1)
    expected = functional.conv2d(moved, weight, bias, (2, 1), 0, (1, 2), 2)
    torch.testing.assert_close(weft.compile(Model(), inputs)(*inputs), expected, rtol=1e-5, atol=1e-5)
