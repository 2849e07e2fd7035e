"""The recorded table of conversions of floats to integers: `python tests/helpers/float_to_integer_table.py`.

Written with PyTorch 2.13 and NumPy 2.4 on x86-64: an entry is their result if they agree in vectors of every length,
else NaN gives 0 and other numbers saturate to the 64-bit range and wrap modulo 2^N. NumPy has no bfloat16, and neither
has integers of fewer than 8 bits.
"""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path

import numpy as np

TABLE = Path(__file__).parents[1] / "data" / "float_to_integer.json"
FLOATS = {"float16": 16, "bfloat16": 16, "float32": 32, "float64": 64}
INTEGERS = (
    *("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"),
    *("int4", "uint4", "int2", "uint2"),
)
_EDGES = (0.0, 0.5, 1.0, 1.5, 7.9, 8.0, 15.0, 16.0, 100.25, *(2.0**n for n in (7, 8, 15, 16, 24, 31, 32, 33, 52, 53)))
_NEAR = (*(2.0**n + d for n in (7, 8, 15, 16, 31, 32) for d in (-1, -0.5, 5, 256)), 3e9, 1e10, 1099511640121.0)
_LARGE = (2.0**63 - 1024, 2.0**63, 2.0**63 + 2048, 1e19, 2.0**64 - 2048, 2.0**64, 1e20, 1e30, math.inf)
NUMBERS = (*(sign * x for x in (*_EDGES, *_NEAR, *_LARGE) for sign in (1.0, -1.0)), math.nan)
_LENGTHS = (1, 3, 67)


def inputs(dtype: str) -> list[float]:
    """The edge values, rounded to a floating-point type, each once."""
    from weft.support.narrow_floats import ROUNDINGS

    rounded = (ROUNDINGS[dtype](number) for number in NUMBERS)
    return list({struct.pack("d", number): number for number in rounded}.values())


def _by_rule(x: float, dtype: str) -> int:
    bits, signed = int(dtype.lstrip("uint")), dtype[0] == "i"
    low, high = -(2**63), 2**64 - 1 if dtype == "uint64" else 2**63 - 1
    number = 0 if math.isnan(x) else (high if x > 0 else low) if math.isinf(x) else min(max(math.trunc(x), low), high)
    wrapped = number % 2**bits
    return wrapped - 2**bits if signed and wrapped >= 2 ** (bits - 1) else wrapped


def _recorded(x: float, source: str, target: str) -> int:
    import torch

    if int(target.lstrip("uint")) < 8:
        return _by_rule(x, target)
    found: set[int] = set()
    for length in _LENGTHS:
        given = torch.full((length,), x, dtype=torch.float64).to(getattr(torch, source))
        found |= set(given.to(getattr(torch, target)).tolist())
        if source != "bfloat16":
            with np.errstate(invalid="ignore"):
                found |= set(given.numpy().astype(target).tolist())
    return found.pop() if len(found) == 1 else _by_rule(x, target)


def main() -> None:
    import torch

    table = {
        f"{source} {target}": {repr(x): _recorded(x, source, target) for x in inputs(source)}
        for source in FLOATS
        for target in INTEGERS
    }
    versions = f"torch {torch.__version__.partition('+')[0]}, numpy {np.__version__}, x86-64"
    lines = (f'"{pair}": {json.dumps(entries)}' for pair, entries in table.items())
    TABLE.write_text(f'{{"versions": "{versions}",\n' + ",\n".join(lines) + "}\n")


if __name__ == "__main__":
    main()
