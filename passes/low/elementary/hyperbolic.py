"""tanh."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from weft.passes.low.elementary.exponential import exp_of_moderate
from weft.passes.low.elementary.lanes import F32, F64, Format

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weft.passes.low.elementary.lanes import Lanes


@dataclass(frozen=True)
class _Tanh:
    saturation: float
    """From here on tanh rounds to 1."""
    small: tuple[float, ...]
    """tanh(x) = x + x^3 p(x^2) for |x| <= 0.55."""


_CONSTANTS: Final[Mapping[Format, _Tanh]] = {
    # Errors: 2^-29.4, 2^-57.6.
    F32: _Tanh(
        saturation=10.0,
        small=(
            *(-0.33333313465118408, 0.13332436978816986, -0.053835757076740265),
            *(0.02100037969648838, -0.0061696222983300686),
        ),
    ),
    F64: _Tanh(
        saturation=20.0,
        small=(
            *(-0.33333333333333282, 0.13333333333323943, -0.053968253962189884, 0.021869488340445515),
            *(-0.0088632318503277536, 0.0035920843753383556, -0.0014554931413362461, 0.00058823839754194222),
            *(-0.0002328534374896955, 8.2554524838730699e-5, -1.9021524010869052e-5),
        ),
    ),
}


def tanh(x: Lanes) -> Lanes:
    """1 - 2 / (exp(2 x) + 1) for x > 0.55, which is odd; a polynomial between."""
    constants = _CONSTANTS[x.writer.format]
    size = abs(x)
    square = x * x
    small = x * square * square.polynomial(constants.small) + x
    limited = size.at_most(constants.saturation)
    large = 1.0 - 2.0 / (exp_of_moderate(limited + limited) + 1.0)
    # The sum of -0 and a product that is 0 loses the sign.
    return (size < 0.55).choose(small, large).with_sign_of(x)
