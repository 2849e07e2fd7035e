"""Runs GPU programs under Oclgrind, also with planted bugs, and tells what it finds.

    OCLGRIND_LOG=file OCLGRIND_DATA_RACES=1 OCLGRIND_UNINITIALIZED=1 python oclgrind_programs.py MODE names...

MODE is `good`, `barriers` (without each barrier in turn), `guards` (each comparison lets one more through in turn) or
`atomics` (plain stores in the place of atomic operations).

Oclgrind reads its settings when it is loaded, so this is a program of its own. It prints one line of JSON for each
program: its name, the error against NumPy, and what was logged while it ran.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples" / "gpu"))

import numpy as np  # noqa: E402
from gpu_programs import CASES  # noqa: E402
from plain_stores import with_plain_stores  # noqa: E402
from running import Case  # noqa: E402
from xdsl.context import Context  # noqa: E402
from xdsl.dialects import arith  # noqa: E402
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64  # noqa: E402
from xdsl.dialects.func import FuncOp  # noqa: E402
from xdsl.ir import Operation  # noqa: E402

from weft.dialects.low_kernel import (  # noqa: E402
    AtomicOp,
    BarrierOp,
    kernel_of,
)
from weft.passes.lower_tir_to_low import lower_tir_to_low  # noqa: E402
from weft.passes.lower_to_tir import lower_to_tir  # noqa: E402
from weft.runtime.gpu_library import load_gpu_module  # noqa: E402
from weft.support.target import Target  # noqa: E402

TARGET = Target.parse("opencl -device=oclgrind -opt-level=0")
SIZES = (19, 21, 13, 7)
"""Small, for the simulator is slow, and no multiples of a tile."""
SIZES_OF = {
    **{"vector_add": (150,), "row_sum": (2, 300), "softmax": (2, 21), "layernorm": (2, 300)},
    **{"attention": (1, 11, 5), "conv2d": (3, 5, 6, 7), "depthwise": (3, 6, 33), "batched_matmul": (2, 9, 11, 9)},
    **{"batched_matmul_warps": (1, 1, 1, 1), "softmax_rows": (2, 1), "layernorm_rows": (2, 1)},
    **{"matmul_split_k": (5, 9, 70), "dot": (1100,)},
}
"""Where a few more or less make a difference: a full block and a part of one, more than one element a thread."""
_SHOWN = 2000
"""Characters of the log that are told."""
_LESS = {2: 3, 6: 7}
"""Predicate of a comparison -> the one that lets one more through."""


def sizes_of(case: Case) -> dict[str, int]:
    return case.fitting(*SIZES_OF.get(case.name, SIZES))


def lowered(case: Case) -> ModuleOp:
    module = case.schedule(**sizes_of(case)).mod.clone()
    lower_to_tir(module)
    lower_tir_to_low(Context(), module, str(TARGET))
    return module


def in_kernels(module: ModuleOp, kind: type[Operation]) -> list[Any]:
    kernels = [op for op in module.ops if isinstance(op, FuncOp) and kernel_of(op) is not None]
    return [op for kernel in kernels for op in kernel.walk() if isinstance(op, kind)]


def without_barrier(number: int) -> Callable[[ModuleOp], None]:
    def plant(module: ModuleOp) -> None:
        barrier = in_kernels(module, BarrierOp)[number]
        barrier.detach()
        barrier.erase()

    return plant


def guard_off_by_one(number: int) -> Callable[[ModuleOp], None]:
    def plant(module: ModuleOp) -> None:
        guard = guards(module)[number]
        guard.properties["predicate"] = IntegerAttr(_LESS[guard.predicate.value.data], i64)

    return plant


def guards(module: ModuleOp) -> list[arith.CmpiOp]:
    return [op for op in in_kernels(module, arith.CmpiOp) if op.predicate.value.data in _LESS]


def planted(module: ModuleOp, mode: str) -> Iterator[tuple[str, Callable[[ModuleOp], object]]]:
    """Every bug of a kind that can be planted in a program."""
    if mode == "barriers":
        for number in range(len(in_kernels(module, BarrierOp))):
            yield f"barrier {number} removed", without_barrier(number)
    elif mode == "atomics":
        if in_kernels(module, AtomicOp):
            yield "plain stores", with_plain_stores
    else:
        for number in range(len(guards(module))):
            yield f"guard {number} off by one", guard_off_by_one(number)


def run(case: Case, name: str, module: ModuleOp) -> None:
    log = Path(os.environ["OCLGRIND_LOG"])
    before = log.stat().st_size if log.exists() else 0
    arguments, expected = case.arguments(sizes_of(case))
    load_gpu_module(module, TARGET)["main"](*arguments)
    logged = ""
    if log.exists():
        with log.open() as file:
            file.seek(before)
            logged = file.read(_SHOWN)
    error = case.error(arguments[-1], expected)
    result = {"name": name, "error": error if np.isfinite(error) else 1e30, "log": logged.strip().splitlines()[:12]}
    print(json.dumps(result), flush=True)


def main() -> None:
    mode, names = sys.argv[1], sys.argv[2:]
    for case in CASES:
        if case.name not in names:
            continue
        module = lowered(case)
        if mode == "good":
            run(case, case.name, module)
            continue
        for bug, plant in planted(module, mode):
            broken = module.clone()
            plant(broken)
            run(case, f"{case.name}: {bug}", broken)


if __name__ == "__main__":
    main()
