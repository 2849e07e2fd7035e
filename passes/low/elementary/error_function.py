"""erf."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from weft.passes.low.elementary.exponential import exp_of_moderate
from weft.passes.low.elementary.lanes import F32, F64, Format

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weft.passes.low.elementary.lanes import Lanes


@dataclass(frozen=True)
class _Erf:
    border: float
    saturation: float
    """From here on erf rounds to 1."""
    small: tuple[float, ...]
    """erf(x) = x + x p(x^2) up to the border."""
    large: tuple[float, ...]
    """What erfc is behind it, by format."""


_CONSTANTS: Final[Mapping[Format, _Erf]] = {
    # Errors: 2^-30.0, 2^-32.1.
    F32: _Erf(
        border=0.93,
        saturation=3.95,
        small=(
            *(0.12837916612625122, -0.37612628936767578, 0.11283625662326813, -0.026855731382966042),
            *(0.0051924050785601139, -0.00080497673479840159, 7.9966339399106801e-5),
        ),
        large=(
            *(-0.12855704128742218, -0.63560092449188232, -0.10530966520309448, 0.022723354399204254),
            *(-0.0029604011215269566, 6.0480128013296053e-5, 4.3452404497656971e-5, -4.7641351557103917e-6),
        ),
    ),
    # Errors: 2^-56.3, 2^-57.7.
    F64: _Erf(
        border=1.0,
        saturation=6.0,
        small=(
            *(0.12837916709551259, -0.37612638903183748, 0.11283791670954857, -0.026866170645072896),
            *(0.0052239776247808714, -0.00085483269787424052, 0.000120553310369046, -1.4925593506969991e-5),
            *(1.6460972817818491e-6, -1.6350025226966545e-7, 1.4657879848309913e-8, -1.1365665908648842e-9),
            5.945261542736695e-11,
        ),
        large=(
            *(0.25539567631050575, -0.42718584741395838, 0.24165819424246673, -0.078978581015749408),
            *(0.0037328924041166679, 0.006997461740322816, -0.00084714322522967103, -0.0009819769788436065),
            *(4.3554667941169636e-5, 0.00017435649525447374, 2.7532498725986876e-5, -2.748594072104755e-5),
            *(-1.3829421321496935e-5, 9.308414800056683e-7, 2.2006968706825301e-6),
        ),
    ),
}


def erf(x: Lanes) -> Lanes:
    """x + x p(x^2) near 0; 1 - erfc(|x|) with the sign of x elsewhere."""
    constants = _CONSTANTS[x.writer.format]
    size = abs(x)
    square = x * x
    small = x * square.polynomial(constants.small) + x
    large = 1.0 - _erfc(size.at_most(constants.saturation), constants.large)
    return (size < constants.border).choose(small, large).with_sign_of(x)


def _erfc(t: Lanes, coefficients: tuple[float, ...]) -> Lanes:
    """f32: exp(-t + t p(t)), as Juffa proposes. f64: exp(-t^2) p(u) with u = (t - 2) / (t + 2)."""
    if t.writer.format is F32:
        return exp_of_moderate(t * t.polynomial(coefficients) - t)
    u = (t - 2.0) / (t + 2.0)
    return exp_of_moderate(-(t * t)) * u.polynomial(coefficients)
