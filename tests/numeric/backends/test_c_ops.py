"""Every scalar and lane-wise op as C, under sanitizers, against what the LLVM backend computes on edge values.

All cases are one C file: what would be undefined in C, or out of bounds, fails here too.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from c_programs import Call, merged, needs_compiler, run_module
from numpy.typing import NDArray
from recorded_ops import RecordedOp, has_some_types, recorded_ops
from tiers import second_tier
from xdsl.context import Context
from xdsl.universe import Universe

from weft.driver.parsing import parse_text

PRECISION = {"f16": 2.0**-9, "bf16": 2.0**-6, "f32": 2.0**-21, "f64": 2.0**-50}


def values(type_: str, array: NDArray[Any]) -> NDArray[Any]:
    return (array.astype(np.uint32) << 16).view(np.float32) if type_ == "bf16" else array


def agree(record: RecordedOp, actual: NDArray[Any]) -> bool:
    """Equal, signs of zeros included; functions of libm may differ in the last bits."""
    a, b = values(record.output, actual), values(record.output, record.result)
    if a.dtype.kind != "f":
        return bool(np.array_equal(a, b))
    numbers = ~np.isnan(b)
    if "maxnum" not in record.name and not np.array_equal(np.signbit(a[numbers]), np.signbit(b[numbers])):
        return False
    if "function" in record.name:
        return bool(np.allclose(a.astype(float), b.astype(float), rtol=PRECISION[record.output], equal_nan=True))
    return bool(np.array_equal(a, b, equal_nan=True))


@needs_compiler
@pytest.mark.parametrize(("wanted", "least"), [(has_some_types, 200), second_tier(None, 1500)])
def test_every_op(wanted: Callable[[dict[str, Any]], bool] | None, least: int) -> None:
    context = Context()
    for name, factory in Universe.get_multiverse().all_dialects.items():
        context.register_dialect(name, factory)
    # C99 leaves multiplications and additions apart.
    records = [record for record in recorded_ops(wanted) if "are_fused" not in record.name]
    assert len(records) > least
    module = merged([parse_text(context, record.text, "op.mlir") for record in records])
    calls: list[Call] = []
    for number, record in enumerate(records):
        result = np.zeros_like(record.result)
        calls.append(Call(f"f{number}", [*record.arrays, result, np.int64(len(result))]))
    run_module(module, calls)
    for record, call in zip(records, calls, strict=True):
        assert agree(record, call.arguments[-2]), f"{record.name}\n{record.text}"
