"""Random index maps: indices change places, fall apart and come together; a wild one may lose elements."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap


def random_index_map(
    random: np.random.Generator, extents: Sequence[int | None], wild: bool, exact: bool = False
) -> AffineMap:
    """A map of indices below `extents` (None: known at run time), by up to three splits and joins and a permutation.

    An `exact` one is a bijection.
    """
    parts: list[tuple[AffineExpr, int | None]] = [(AffineDimExpr(at), extent) for at, extent in enumerate(extents)]
    for _ in range(int(random.integers(0, 4))):
        at = int(random.integers(0, len(parts))) if parts else 0
        if parts and random.random() < 0.6:
            part, extent = parts[at]
            divisors = [d for d in range(2, 1 + (extent or 0)) if extent is not None and extent % d == 0]
            if exact and not divisors:
                continue
            by = int(random.integers(2, 7))
            if divisors and (exact or random.random() < 0.6):
                by = int(random.choice(divisors))
            parts[at : at + 1] = [(part // by, None if extent is None else -(-extent // by)), (part % by, by)]
        elif at + 1 < len(parts):
            (outer, rows), (inner, columns) = parts[at : at + 2]
            if columns is not None:
                parts[at : at + 2] = [(outer * columns + inner, None if rows is None else rows * columns)]
    results = [parts[int(at)][0] for at in random.permutation(len(parts))]
    if wild and results:
        results[0] = results[0] // 2 if random.random() < 0.5 else results[0] + -1
    return AffineMap(len(extents), 0, tuple(results))


def random_iterator_map(
    random: np.random.Generator, extents: Sequence[int | None], groups: Sequence[object], wild: bool
) -> AffineMap:
    """A map of iterators of which those of different `groups` stay apart."""
    results: list[AffineExpr] = []
    for group in dict.fromkeys(groups):
        members = [at for at, other in enumerate(groups) if other == group]
        part = random_index_map(random, [extents[at] for at in members], wild, exact=not wild)
        dims = [AffineDimExpr(at) for at in members]
        results.extend(expr.replace_dims_and_symbols(dims, ()) for expr in part.results)
    return AffineMap(len(extents), 0, tuple(results[int(at)] for at in random.permutation(len(results))))
