"""Bessel functions of orders 0 and 1, and Airy's function, by rational and Chebyshev approximations in float64.

Source: coefficients of S. L. Moshier, Methods and Programs for Mathematical Functions (Cephes).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import inf, nan, pi, sqrt
from typing import Final

from weft.dialects.graph_traits import Elementwise, declare
from weft.texpr import math
from weft.texpr.expr import Expr
from weft.texpr.ops.arguments import constant
from weft.texpr.ops.elementwise import UnaryOperator
from weft.texpr.ops.special import polynomial, special_function

__all__ = ["airy_ai", "bessel_i0", "bessel_i0e", "bessel_i1", "bessel_i1e", "bessel_j0", "bessel_j1"]
__all__ += ["bessel_k0", "bessel_k0e", "bessel_k1", "bessel_k1e", "bessel_y0", "bessel_y1", "spherical_bessel_j0"]

_J0_RP: Final = (-4794432209.782018, 1956174919465.5657, -249248344360967.72, 9708622510473064.0)
_J0_RQ: Final = (
    *(1.0, 499.563147152651, 173785.4016763747, 48440965.83399621, 11185553704.535683, 2112775201154.892),
    *(310518229857422.56, 3.1812195594320496e16, 1.7108629408104315e18),
)
_J0_PP: Final = (
    *(0.0007969367292973471, 0.08283523921074408, 1.239533716464143, 5.447250030587687, 8.74716500199817),
    *(5.303240382353949, 1.0),
)
_J0_PQ: Final = (
    *(0.0009244088105588637, 0.08562884743544745, 1.2535274390105895, 5.470977403304171, 8.761908832370695),
    *(5.306052882353947, 1.0),
)
_J0_QP: Final = (
    *(-0.011366383889846916, -1.2825271867050931, -19.553954425773597, -93.20601521237683),
    *(-177.68116798048806, -147.07750515495118, -51.41053267665993, -6.050143506007285),
)
_J0_QQ: Final = (
    *(1.0, 64.3178256118178, 856.4300259769806, 3882.4018360540163, 7240.467741956525, 5930.727011873169),
    *(2062.0933166032783, 242.0057402402914),
)
_Y0_P: Final = (
    *(15592.436785523574, -14663929.59039716, 5435264770.518765, -982136065717.9115, 87590639439536.7),
    *(-3466283033847297.0, 4.4273326857256984e16, -1.8495080043698668e16),
)
_Y0_Q: Final = (
    *(1.0, 1041.2835366425984, 626107.330137135, 268919633.39381415, 86400248710.3935, 20297961275010.555),
    *(3171577528429750.5, 2.5059625617265306e17),
)
_J1_RP: Final = (-899971225.7055594, 452228297998.19403, -72749424522181.83, 3682957328638529.0)
_J1_RQ: Final = (
    *(1.0, 620.8364781180543, 256987.25675774884, 83514679.14319493, 22151159547.97925, 4749141220799.914),
    *(784369607876235.9, 8.952223361846274e16, 5.322786203326801e18),
)
_J1_PP: Final = (
    *(0.0007621256162081731, 0.07313970569409176, 1.1271960812968493, 5.112079511468076, 8.424045901417724),
    *(5.214515986823615, 1.0),
)
_J1_PQ: Final = (
    *(0.0005713231280725487, 0.06884559087544954, 1.105142326340617, 5.073863861286015, 8.399855543276042),
    *(5.209828486823619, 1.0),
)
_J1_QP: Final = (
    *(0.05108625947501766, 4.982138729512334, 75.82382841325453, 366.7796093601508, 710.8563049989261),
    *(597.4896124006136, 211.68875710057213, 25.207020585802372),
)
_J1_QQ: Final = (
    *(1.0, 74.23732770356752, 1056.4488603826283, 4986.410583376536, 9562.318924047562, 7997.041604473507),
    *(2826.1927851763908, 336.0936078106983),
)
_Y1_P: Final = (
    *(1263204747.9017804, -647355876379.1603, 114509511541823.73, -8127702555013251.0),
    *(2.024394757135949e17, -7.788771962659501e17),
)
_Y1_Q: Final = (
    *(1.0, 594.3015923461282, 235564.09294306856, 73481194.44597217, 18760131610.870617, 3882312774962.3857),
    *(620557727146953.8, 6.871410873553005e16, 3.9727060811656064e18),
)
_I0_NEAR: Final = (
    *(-4.4153416464793395e-18, 3.3307945188222384e-17, -2.431279846547955e-16, 1.715391285555133e-15),
    *(-1.1685332877993451e-14, 7.676185498604936e-14, -4.856446783111929e-13, 2.95505266312964e-12),
    *(-1.726826291441556e-11, 9.675809035373237e-11, -5.189795601635263e-10, 2.6598237246823866e-09),
    *(-1.300025009986248e-08, 6.046995022541919e-08, -2.670793853940612e-07, 1.1173875391201037e-06),
    *(-4.4167383584587505e-06, 1.6448448070728896e-05, -5.754195010082104e-05, 0.00018850288509584165),
    *(-0.0005763755745385824, 0.0016394756169413357, -0.004324309995050576, 0.010546460394594998),
    *(-0.02373741480589947, 0.04930528423967071, -0.09490109704804764, 0.17162090152220877),
    *(-0.3046826723431984, 0.6767952744094761),
)
_I0_FAR: Final = (
    *(-7.233180487874754e-18, -4.830504485944182e-18, 4.46562142029676e-17, 3.461222867697461e-17),
    *(-2.8276239805165836e-16, -3.425485619677219e-16, 1.7725601330565263e-15, 3.8116806693526224e-15),
    *(-9.554846698828307e-15, -4.150569347287222e-14, 1.54008621752141e-14, 3.8527783827421426e-13),
    *(7.180124451383666e-13, -1.7941785315068062e-12, -1.3215811840447713e-11, -3.1499165279632416e-11),
    *(1.1889147107846439e-11, 4.94060238822497e-10, 3.3962320257083865e-09, 2.266668990498178e-08),
    *(2.0489185894690638e-07, 2.8913705208347567e-06, 6.889758346916825e-05),
    *(0.0033691164782556943, 0.8044904110141088),
)
_K0_NEAR: Final = (
    *(1.374465435613523e-16, 4.25981614279661e-14, 1.0349695257633842e-11, 1.904516377220209e-09),
    *(2.5347910790261494e-07, 2.286212103119452e-05, 0.001264615411446926, 0.0359799365153615),
    *(0.3442898999246285, -0.5353273932339028),
)
_K0_FAR: Final = (
    *(5.300433772686263e-18, -1.6475804301524212e-17, 5.2103915050390274e-17, -1.678231096805412e-16),
    *(5.512055978524319e-16, -1.848593377343779e-15, 6.3400764774050706e-15, -2.2275133269916698e-14),
    *(8.032890775363575e-14, -2.9800969231727303e-13, 1.140340588208475e-12, -4.514597883373944e-12),
    *(1.8559491149547177e-11, -7.957489244477107e-11, 3.577397281400301e-10, -1.69753450938906e-09),
    *(8.574034017414225e-09, -4.660489897687948e-08, 2.766813639445015e-07, -1.8317555227191195e-06),
    *(1.39498137188765e-05, -0.00012849549581627802, 0.0015698838857300533),
    *(-0.0314481013119645, 2.4403030820659555),
)
_I1_NEAR: Final = (
    *(2.7779141127610464e-18, -2.111421214358166e-17, 1.5536319577362005e-16, -1.1055969477353862e-15),
    *(7.600684294735408e-15, -5.042185504727912e-14, 3.223793365945575e-13, -1.9839743977649436e-12),
    *(1.1736186298890901e-11, -6.663489723502027e-11, 3.625590281552117e-10, -1.8872497517228294e-09),
    *(9.381537386495773e-09, -4.445059128796328e-08, 2.0032947535521353e-07, -8.568720264695455e-07),
    *(3.4702513081376785e-06, -1.3273163656039436e-05, 4.781565107550054e-05, -0.00016176081582589674),
    *(0.0005122859561685758, -0.0015135724506312532, 0.004156422944312888, -0.010564084894626197),
    *(0.024726449030626516, -0.05294598120809499, 0.1026436586898471),
    *(-0.17641651835783406, 0.25258718644363365),
)
_I1_FAR: Final = (
    *(7.517296310842105e-18, 4.414348323071708e-18, -4.6503053684893586e-17, -3.209525921993424e-17),
    *(2.96262899764595e-16, 3.3082023109209285e-16, -1.8803547755107825e-15, -3.8144030724370075e-15),
    *(1.0420276984128802e-14, 4.272440016711951e-14, -2.1015418427726643e-14, -4.0835511110921974e-13),
    *(-7.198551776245908e-13, 2.0356285441470896e-12, 1.4125807436613782e-11, 3.2526035830154884e-11),
    *(-1.8974958123505413e-11, -5.589743462196584e-10, -3.835380385964237e-09, -2.6314688468895196e-08),
    *(-2.512236237870209e-07, -3.882564808877691e-06, -0.00011058893876262371),
    *(-0.009761097491361469, 0.7785762350182801),
)
_K1_NEAR: Final = (
    *(-7.023863479386288e-18, -2.427449850519366e-15, -6.666901694199329e-13, -1.4114883926335278e-10),
    *(-2.213387630734726e-08, -2.4334061415659684e-06, -0.0001730288957513052, -0.006975723859639864),
    *(-0.12261118082265715, -0.3531559607765449, 1.5253002273389478),
)
_K1_FAR: Final = (
    *(-5.756744483665017e-18, 1.7940508731475592e-17, -5.689462558442859e-17, 1.838093544366639e-16),
    *(-6.057047248373319e-16, 2.038703165624334e-15, -7.019837090418314e-15, 2.4771544244813043e-14),
    *(-8.976705182324994e-14, 3.3484196660784293e-13, -1.2891739609510289e-12, 5.13963967348173e-12),
    *(-2.1299678384275683e-11, 9.218315187605006e-11, -4.1903547593418965e-10, 2.015049755197033e-09),
    *(-1.0345762465678097e-08, 5.7410841254500495e-08, -3.5019606030878126e-07, 2.406484947837217e-06),
    *(-1.936197974166083e-05, 0.00019521551847135162, -0.002857816859622779),
    *(0.10392373657681724, 2.7206261904844427),
)
_AIRY_AN: Final = (
    *(0.346538101525629, 12.007595273964581, 76.27960536152345, 168.08922493463058, 159.75639135016442),
    *(70.53609068404442, 14.026469116338967, 1.0),
)
_AIRY_AD: Final = (
    *(0.5675945326387702, 14.75625625848472, 84.51389701414746, 177.31808814540045, 164.2346928715297),
    *(71.47784008255756, 14.095913560783403, 1.0),
)
_AIRY_AFN: Final = (
    *(-0.1316963234183318, -0.6264565444319123, -0.6931580360369335, -0.2797799815451191),
    *(-0.04919001326095003, -0.004062659235948854, -0.0001592764962392621),
    *(-2.776491081552329e-06, -1.6778769848911465e-08),
)
_AIRY_AFD: Final = (
    *(1.0, 13.356042070655324, 32.682503279522464, 26.736704094149957, 9.187074029072596, 1.4752914677166642),
    *(0.11568717379518804, 0.004402916416152112, 7.547203482874142e-05, 4.5185009297058035e-07),
)
_AIRY_AGN: Final = (
    *(0.01973399320916857, 0.39110302961568827, 1.0657989759959559, 0.9391692298166502, 0.35146565610554764),
    *(0.06338889196289255, 0.005858041130483885, 0.000282851600836737, 6.98793669997261e-06),
    *(8.117892395543892e-08, 3.415517847659236e-10),
)
_AIRY_AGD: Final = (
    *(1.0, 9.30892908077442, 19.835292871831214, 15.564662893286462, 5.476860694229755, 0.9542936116189619),
    *(0.08645808263523921, 0.004126565238242226, 0.00010125908511650914),
    *(1.1716673321441352e-06, 4.9183457006293e-09),
)

_QUARTER: Final = pi / 4
_AMPLITUDE: Final = sqrt(2 / pi)


def _number(value: float) -> Expr:
    return constant(value, "float64")


def _chebyshev(x: Expr, coefficients: Sequence[float]) -> Expr:
    """Clenshaw's sum, highest degree first; degree 0 has weight 1/2."""
    total, before, last = _number(coefficients[0]), _number(0.0), _number(0.0)
    for coefficient in coefficients[1:]:
        before, last = last, total
        total = x * last - before + coefficient
    return 0.5 * (total - before)


def _wave(x: Expr, order: int, *, is_second: bool) -> Expr:
    """Hankel's expansion above 5, of the first or second kind."""
    pp, pq, qp, qq = ((_J0_PP, _J0_PQ, _J0_QP, _J0_QQ), (_J1_PP, _J1_PQ, _J1_QP, _J1_QQ))[order]
    z = 25.0 / (x * x)
    even = polynomial(z, pp) / polynomial(z, pq)
    odd = 5.0 / x * (polynomial(z, qp) / polynomial(z, qq))
    phase = x - (1 + 2 * order) * _QUARTER
    sine, cosine = math.sin(phase), math.cos(phase)
    found = even * sine + odd * cosine if is_second else even * cosine - odd * sine
    return found * _AMPLITUDE / math.sqrt(x)


def _j0(x: Expr) -> Expr:
    size, square = math.abs(x), x * x
    zeros = (square - 5.78318596294678452118) * (square - 30.4712623436620863991)
    near = zeros * polynomial(square, _J0_RP) / polynomial(square, _J0_RQ)
    return math.select(size <= 5.0, near, _wave(size, 0, is_second=False))


def _j1(x: Expr) -> Expr:
    size, square = math.abs(x), x * x
    zeros = (square - 14.6819706421238932572) * (square - 49.2184563216946036703)
    near = polynomial(square, _J1_RP) / polynomial(square, _J1_RQ) * size * zeros
    found = math.select(size <= 5.0, near, _wave(size, 1, is_second=False))
    return math.select(x < 0.0, -found, found)


def _of_positive(x: Expr, at_zero: float, found: Expr) -> Expr:
    return math.select(x > 0.0, found, math.select(x == 0.0, _number(at_zero), _number(nan)))


def _y0(x: Expr) -> Expr:
    square = x * x
    near = polynomial(square, _Y0_P) / polynomial(square, _Y0_Q) + 2 / pi * math.log(x) * _j0(x)
    return _of_positive(x, -inf, math.select(x <= 5.0, near, _wave(x, 0, is_second=True)))


def _y1(x: Expr) -> Expr:
    square = x * x
    smooth = x * (polynomial(square, _Y1_P) / polynomial(square, _Y1_Q))
    near = smooth + 2 / pi * (_j1(x) * math.log(x) - 1.0 / x)
    return _of_positive(x, -inf, math.select(x <= 5.0, near, _wave(x, 1, is_second=True)))


def _i0e(x: Expr) -> Expr:
    size = math.abs(x)
    far = _chebyshev(32.0 / size - 2.0, _I0_FAR) / math.sqrt(size)
    return math.select(size <= 8.0, _chebyshev(size / 2.0 - 2.0, _I0_NEAR), far)


def _i0(x: Expr) -> Expr:
    return math.exp(math.abs(x)) * _i0e(x)


def _i1e(x: Expr) -> Expr:
    size = math.abs(x)
    far = _chebyshev(32.0 / size - 2.0, _I1_FAR) / math.sqrt(size)
    found = math.select(size <= 8.0, _chebyshev(size / 2.0 - 2.0, _I1_NEAR) * size, far)
    return math.select(x < 0.0, -found, found)


def _i1(x: Expr) -> Expr:
    return math.exp(math.abs(x)) * _i1e(x)


def _k0(is_scaled: bool, x: Expr) -> Expr:
    near = _chebyshev(x * x - 2.0, _K0_NEAR) - math.log(0.5 * x) * _i0(x)
    far = _chebyshev(8.0 / x - 2.0, _K0_FAR) / math.sqrt(x)
    near, far = (near * math.exp(x), far) if is_scaled else (near, far * math.exp(-x))
    return _of_positive(x, inf, math.select(x <= 2.0, near, far))


def _k1(is_scaled: bool, x: Expr) -> Expr:
    near = math.log(0.5 * x) * _i1(x) + _chebyshev(x * x - 2.0, _K1_NEAR) / x
    far = _chebyshev(8.0 / x - 2.0, _K1_FAR) / math.sqrt(x)
    near, far = (near * math.exp(x), far) if is_scaled else (near, far * math.exp(-x))
    return _of_positive(x, inf, math.select(x <= 2.0, near, far))


def _spherical_j0(x: Expr) -> Expr:
    square = x * x
    series = (-1 / 39916800, 1 / 362880, -1 / 5040, 1 / 120, -1 / 6, 1.0)
    found = math.select(math.abs(x) < 0.5, polynomial(square, series), math.sin(x) / x)
    return math.select(math.isinf(x), _number(0.0), found)


_AI_0: Final = 0.355028053887817239260
"""Ai(0)."""
_AI_1: Final = 0.258819403792806798405
"""-Ai'(0)."""
_AIRY_TERMS: Final = 14
"""Terms of the power series, sufficient below 2.09."""


def _airy_ai(x: Expr) -> Expr:
    cube, one, other = x * x * x, _number(1.0), x
    even, odd = one, other
    for term in range(1, _AIRY_TERMS + 1):
        one = one * cube / float((3 * term - 1) * 3 * term)
        other = other * cube / float(3 * term * (3 * term + 1))
        even, odd = even + one, odd + other
    near = _AI_0 * even - _AI_1 * odd
    size = math.abs(x)
    root = math.sqrt(size)
    zeta = 2.0 * size * root / 3.0
    z, amplitude = 1.0 / zeta, 1 / sqrt(pi) / math.sqrt(root)
    decay = amplitude * polynomial(z, _AIRY_AN) / polynomial(z, _AIRY_AD) / (2.0 * math.exp(zeta))
    square, phase = z * z, zeta + _QUARTER
    even = 1.0 + square * polynomial(square, _AIRY_AFN) / polynomial(square, _AIRY_AFD)
    odd = z * polynomial(square, _AIRY_AGN) / polynomial(square, _AIRY_AGD)
    wave = amplitude * (math.sin(phase) * even - math.cos(phase) * odd)
    found = math.select(size < 2.09, near, math.select(x > 0.0, decay, wave))
    found = math.select(x > 103.892, _number(0.0), found)
    return math.select(math.isinf(x), _number(nan), found)


_EXACT: Final = "The relative error in float64 is 1e-13, and the absolute error near zeros 1e-15."


def _function(name: str, text: str, scalar: Callable[[Expr], Expr], equals: str = "") -> UnaryOperator:
    """By default, SciPy has the function under the name without `bessel_`."""
    return special_function(
        name, f"{text} {_EXACT}", equals or f"scipy.special.{name.removeprefix('bessel_')}(data)", scalar
    )


bessel_j0 = _function("bessel_j0", "The Bessel function J0 of the first kind.", _j0)
bessel_j1 = _function("bessel_j1", "The Bessel function J1 of the first kind.", _j1)
bessel_y0 = _function("bessel_y0", "The Bessel function Y0 of the second kind; -inf at 0, NaN below.", _y0)
bessel_y1 = _function("bessel_y1", "The Bessel function Y1 of the second kind; -inf at 0, NaN below.", _y1)
bessel_i0 = _function("bessel_i0", "The modified Bessel function I0 of the first kind.", _i0, "np.i0(data)")
bessel_i0e = _function("bessel_i0e", "exp(-|x|) I0(x), which does not overflow.", _i0e)
bessel_i1 = _function("bessel_i1", "The modified Bessel function I1 of the first kind.", _i1)
bessel_i1e = _function("bessel_i1e", "exp(-|x|) I1(x), which does not overflow.", _i1e)
bessel_k0 = _function(
    "bessel_k0", "The modified Bessel function K0 of the second kind; inf at 0, NaN below.", partial(_k0, False)
)
bessel_k0e = _function("bessel_k0e", "exp(x) K0(x), which does not underflow.", partial(_k0, True))
bessel_k1 = _function(
    "bessel_k1", "The modified Bessel function K1 of the second kind; inf at 0, NaN below.", partial(_k1, False)
)
bessel_k1e = _function("bessel_k1e", "exp(x) K1(x), which does not underflow.", partial(_k1, True))
spherical_bessel_j0 = _function(
    "spherical_bessel_j0",
    "The spherical Bessel function of order 0, sin(x) / x.",
    _spherical_j0,
    "np.sinc(data / np.pi)",
)
airy_ai = _function("airy_ai", "Airy's function Ai; NaN at infinities.", _airy_ai, "scipy.special.airy(data)[0]")

declare(Elementwise(), *map(globals().__getitem__, __all__))
