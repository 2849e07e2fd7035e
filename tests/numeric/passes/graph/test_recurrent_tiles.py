"""Recurrent networks in tiles for vectors, registers and threads of several CPUs, at odd sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tiers import first_tier

import weft
from weft import graph as G
from weft.interp.interpreter import Interpreter

random = np.random.default_rng(5)
GATES = {"rnn": 1, "gru": 3, "lstm": 4}
MACHINES = tuple(
    f"llvm -vector-bytes={size} -vector-registers={registers} -num-threads={threads}"
    for size, registers in ((32, 16), (64, 32), (16, 16), (16, 32))
    for threads in (1, 2)
)
CASES = tuple((kind, hidden, batch) for kind in GATES for hidden in (5, 19, 33) for batch in (1, 3, 7, 9, "b"))


@pytest.mark.parametrize("machine", first_tier(MACHINES, MACHINES[0], MACHINES[3]))
@pytest.mark.parametrize("case", first_tier(CASES, CASES[6]))
def test_tiles(machine: str, case: tuple[str, int, int | str]) -> None:
    kind, hidden, batch = case
    directions = 2 if hidden == 5 else 1
    rows = GATES[kind] * hidden
    weight, recurrence, bias = (
        G.const((random.standard_normal((directions, *shape)) * 0.3).astype(np.float32))
        for shape in ((rows, 6), (rows, hidden), (2 * rows,))
    )
    builder = G.BlockBuilder()
    x = G.var("x", (4, batch, 6), "float32")
    with builder.function("main", [x]):
        found: Any = getattr(G, kind)(
            x, weight, recurrence, bias, direction=("", "forward", "bidirectional")[directions]
        )
        builder.emit_func_output(found[0])
    module = builder.get()
    main = weft.build(module, target=machine, cache=False)["main"]
    for sequences in (batch,) if isinstance(batch, int) else (1, 4, 6, 11):
        data = random.standard_normal((4, sequences, 6)).astype(np.float32)
        np.testing.assert_allclose(main(data), Interpreter(module).call("main", data), rtol=1e-4, atol=1e-5)
