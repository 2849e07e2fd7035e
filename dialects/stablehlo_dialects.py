"""The dialects stablehlo and chlo."""

from __future__ import annotations

from xdsl.ir import Dialect

from weft.dialects import chlo, stablehlo
from weft.dialects.stablehlo_library import LIBRARY, TokenType
from weft.support.locations import record_places

STABLEHLO = Dialect("stablehlo", record_places([*stablehlo.OPS, *LIBRARY]), [*stablehlo.ATTRIBUTES, TokenType])
CHLO_DIALECT = Dialect("chlo", record_places(chlo.CHLO_OPS), chlo.ATTRIBUTES)
