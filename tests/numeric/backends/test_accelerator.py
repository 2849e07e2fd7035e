"""A vendor's backend beside weft: instructions by `tensorize`, memories by scope, assembly on a simulator."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
from weft.support.target import unregister_target_kind

ROOT = str(Path(__file__).resolve().parents[3])
ASSEMBLY = """\
; main(A: float32[32, 32], B: float32[32, 32], out C: float32[32, 32])
loop %i0, 0, 2, 1
  mul %x, %i0, 512
  loop %j0, 0, 2, 1
    mul %x, %j0, 512
    mul %x, %j0, 16
    add %x, %x, %x
    fill accumulator[0]
    loop %k0, 0, 2, 1
      mul %x, %k0, 16
      add %x, %x, %x
      add %x, %x, %x
      load a[0], A[%x], 32
      load b[0], B[%x], 32
      tmm accumulator[0], a[0], b[0]
    end
    store C[%x], 32, accumulator[0]
  end
end"""


@pytest.fixture(name="example")
def _example() -> Iterator[dict[str, Any]]:
    sys.path.insert(0, ROOT)
    try:
        modules = {
            n: importlib.import_module(f"examples.accelerator.{n}")
            for n in ("backend", "matmul", "instructions", "machine")
        }
    finally:
        sys.path.remove(ROOT)
    modules["backend"].register()
    yield modules
    unregister_target_kind("accelerator")


@pytest.mark.parametrize("n", [16, 64, 96])
def test_product(example: dict[str, Any], n: int) -> None:
    """Equal to NumPy, in as many instructions and moved bytes as the schedule says."""
    lib = weft.build(example["matmul"].scheduled(n).mod, target="accelerator")
    a, b = (np.random.default_rng(seed).random((n, n), dtype=np.float32) for seed in (0, 1))
    c = np.full((n, n), np.nan, np.float32)
    counts = example["backend"].MACHINE.counts
    counts.__init__()
    lib["main"](a, b, c)
    np.testing.assert_allclose(c, a @ b.T, rtol=1e-5)
    tiles = n // 16
    done = counts.instructions
    assert [done[kind] for kind in ("fill", "load", "tmm", "store")] == [tiles**2, 2 * tiles**3, tiles**3, tiles**2]
    assert (counts.bytes_loaded, counts.bytes_stored) == (2 * tiles**3 * 1024, n * n * 4)


def test_assembly(example: dict[str, Any]) -> None:
    text = weft.build(example["matmul"].scheduled(32).mod, target="accelerator").get_source()
    counters = re.sub(r"%([ijk]0)_\d+", r"%\1", text)
    assert re.sub(r"%\d+", "%x", counters) == ASSEMBLY


def panels(example: dict[str, Any], n: int) -> weft.Schedule:
    """The rows of A that a row of tiles reads are loaded once."""
    instructions = example["instructions"]
    sch = example["matmul"].product(n)
    (i, i1), (j, j1), (k, k1) = (sch.split(loop, factors=[None, 16]) for loop in sch.get_loops("C"))
    sch.reorder(i, j, k, i1, j1, k1)
    tile = sch.blockize(i1)
    load = sch.cache_read(tile, 0, storage_scope=instructions.A_REG)
    sch.compute_at(load, i)
    return sch


def test_memories_that_are_too_small(example: dict[str, Any]) -> None:
    message = (
        r"temporaries fit the memories of the target\s+@main needs 8192 bytes of 'global.A_reg' "
        r"\(%A_global_A_reg: 8192\), accelerator has 4096"
    )
    with pytest.raises(weft.ScheduleError, match=message):
        weft.build(panels(example, 128).mod, target="accelerator")


def test_work_that_no_instruction_does(example: dict[str, Any]) -> None:
    with pytest.raises(weft.CompileError, match=r"no instruction for memref\.load: it works on tiles"):
        weft.build(panels(example, 32).mod, target="accelerator")


def test_temporaries_in_no_memory_of_the_processor(example: dict[str, Any]) -> None:
    plain = example["matmul"].product(32)
    plain.cache_write("C", 0, storage_scope="local")
    with pytest.raises(weft.CompileError, match=r"the accelerator has memories global.A_reg, .* is in"):
        weft.build(plain.mod, target="accelerator")


def test_calls_are_checked(example: dict[str, Any]) -> None:
    lib = weft.build(example["matmul"].scheduled(16).mod, target="accelerator")
    a = np.zeros((16, 16), np.float32)
    with pytest.raises(ValueError, match="'B'"):
        lib["main"](a, np.zeros((16, 8), np.float32), a.copy())
    with pytest.raises(weft.CompileError, match="its time is not that of the processor"):
        lib.time_evaluator("main")


def test_the_machine_refuses_what_it_does_not_have(example: dict[str, Any]) -> None:
    machine, error = example["machine"].Machine(), example["machine"].MachineError
    with pytest.raises(error, match="there is no instruction 'jump'"):
        machine.run("jump 1", {}, {})
    with pytest.raises(error, match=r"a tile at accumulator\[512\] lies outside of its 512 floats"):
        machine.run("fill accumulator[512]", {}, {})
    with pytest.raises(error, match=r"a tile at A\[16\], rows 16 apart, lies outside of 256 floats"):
        machine.run("load a[0], A[16], 16", {"A": np.zeros(256, np.float32)}, {})
