"""The programs of the course documents that schedule or lower on a CPU, as the examples run them.

`CELLS` is the table: document, cell, what is checked. The other cells of these documents need a GPU or a graph.
"""

from __future__ import annotations

import difflib
import importlib.util
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import weft
from weft import te
from weft.script import parse, script

EXAMPLES = Path(__file__).parents[3] / "examples"
CELLS: dict[str, Callable[[], None]] = {}


def cell(document: str, cells: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    def register(check: Callable[[], None]) -> Callable[[], None]:
        CELLS[f"{document}: {cells}"] = check
        return check

    return register


@cache
def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"examples_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # scripts are read from the source of their module
    spec.loader.exec_module(module)
    return module


def changes(before: str, after: str) -> tuple[list[str], list[str]]:
    """The lines that a diff shows as gone and as new, without their margins."""
    lines = list(difflib.ndiff(before.split("\n"), after.split("\n")))
    return [line[2:].strip() for line in lines if line[0] == "-"], [
        line[2:].strip() for line in lines if line[0] == "+"
    ]


HEAD = ["m, n = T.int64(), T.int64()", "C[vi, vj] = A[vi, vj] * B[vi, vj]"]
GUARD_32 = "T.where(i0 * 32 + i1 < m)"


@cell("000", "In 2-3, a product over symbolic extents and its loops")
def _() -> None:
    text = example("stages_symbolic").base()
    assert all(line in text for line in [*HEAD, "for i, j in T.grid(m, n):"])
    weft.assert_structural_equal(parse(text), parse(script(parse(text))))


@cell("000", "In 4-5, split: the diff shows two loops and the guard, and neither parameters nor the body")
def _() -> None:
    stages = example("stages_symbolic")
    gone, new = changes(stages.base(), stages.split())
    assert gone == ["for i, j in T.grid(m, n):", 'vi, vj = T.axis.remap("SS", [i, j])']
    assert new[0] == "for i0, i1, j in T.grid((m + 31) // 32, 32, n):" and GUARD_32 in new


@cell("000", "In 6-7, tile: four loops, both guards")
def _() -> None:
    stages = example("stages_symbolic")
    gone, new = changes(stages.base(), stages.tile())
    assert gone == ["for i, j in T.grid(m, n):", 'vi, vj = T.axis.remap("SS", [i, j])']
    assert "T.where(i0 * 16 + i1 < m and j0 * 8 + j1 < n)" in new
    assert any(line.startswith("for i0, j0, i1, j1 in T.grid(") and line.endswith(", 16, 8):") for line in new)


@cell("000", "In 8-9, fuse: one loop over m * n")
def _() -> None:
    stages = example("stages_symbolic")
    gone, new = changes(stages.base(), stages.fuse())
    assert gone == ["for i, j in T.grid(m, n):", 'vi, vj = T.axis.remap("SS", [i, j])']
    assert new[0] == "for i_j_fused in range(m * n):"


@cell("000", "In 10-11, bind: blocks and threads of a GPU")
def _() -> None:
    stages = example("stages_symbolic")
    _, new = changes(stages.base(), stages.bind())
    assert new[:3] == [
        'for i0 in T.thread_binding((m + 63) // 64, thread="blockIdx.x"):',
        'for i1 in T.thread_binding(64, thread="threadIdx.x"):',
        "for j in range(n):",
    ]


@cell("000", "In 12-17, reorder: columns first, and back to tiles")
def _() -> None:
    stages = example("stages_symbolic")
    gone, new = changes(stages.tile(), stages.reorder_columns_first())
    assert any(line.startswith("for i0, j0, i1, j1 in") for line in gone)
    assert any(line.startswith("for j0, j1, i0, i1 in") for line in new)
    assert not any("where" in line or "C[" in line for line in [*gone, *new])
    assert stages.reorder_tiles() == stages.tile()


@cell("000", "In 18-20, compute_at: of two loops one is gone, and nothing else")
def _() -> None:
    stages = example("stages_symbolic")
    apart, together = (script(weft.lower(*stages.chain(at_consumer=moved))) for moved in (False, True))
    assert changes(apart, together) == (["for i in range(m):"], [])


@cell("000", "In 21, a reduction along an axis")
def _() -> None:
    text = script(weft.lower(*example("stages_symbolic").row_sums()))
    assert "for i, k in T.grid(n, m):" in text and "with T.init():" in text


@cell("000", "In 22, sigmoid bound to threads")
def _() -> None:
    text = script(weft.lower(*example("stages_symbolic").sigmoid()))
    assert "T.where(i0 * 64 + i1 < n)" in text and 'thread="threadIdx.x"' in text


@cell("000", "all of these run: any (m, n), contiguous or views")
def _() -> None:
    example("stages_symbolic").check_products()
    example("stages_symbolic").check_others()


@cell("001", "TE: mult over symbolic extents, its source and its loops")
def _() -> None:
    library = example("script_and_schedule").product_of_matrices()
    assert "define void @mult(" in library.get_source()
    x, y = np.random.default_rng(0).random((2, 5, 7), dtype=np.float32)
    z = np.empty_like(x)
    library["mult"](x, y, z)
    np.testing.assert_array_equal(z, x * y)


STEPS_001 = {
    "plain": ["for i0 in range(8):", "vi0 = T.axis.spatial(8, i0)", "B[vi0] = A[vi0] + T.float32(1)"],
    "split": ["for i00, i01, i02 in T.grid(2, 2, 2):", "vi0 = T.axis.spatial(8, i00 * 4 + i01 * 2 + i02)"],
    "reorder": ["for i00, i02, i01 in T.grid(2, 2, 2):", "vi0 = T.axis.spatial(8, i00 * 4 + i01 * 2 + i02)"],
    "bind": [
        'for i00 in T.thread_binding(2, thread="blockIdx.x"):',
        'for i02 in T.thread_binding(2, thread="threadIdx.x"):',
        "for i01 in range(2):",
    ],
}


@cell("001", "IRModule: script after create_prim_func, split, reorder, bind")
def _() -> None:
    steps = example("script_and_schedule").scheduled()
    for name, lines in STEPS_001.items():
        found = [line.strip() for line in steps[name].split("\n")]
        assert [line for line in lines if line not in found] == []


@cell("001", "Develop: a pass of one's own in the lowering")
def _() -> None:
    np.testing.assert_array_equal(example("script_and_schedule").with_a_pass(), (np.arange(8) + 1) * 2)


@cell("002", "2.4: mm_relu as script; a block over too few iterations is an error")
def _() -> None:
    text = """
@T.prim_func
def f(C: T.Buffer((128,), "float32")):
    for i in range(127):
        with T.block("C"):
            vi = T.axis.spatial(128, i)
            C[vi] = T.float32(0)
"""
    with pytest.raises(weft.CompileError, match="the loops do not cover it"):
        parse(text)


@cell("002", "4.3-4.4: a stochastic schedule, step by step")
def _() -> None:
    texts = example("random_search").step_by_step()
    assert texts[0].startswith("IntHandle, now [")
    assert [text for text in texts if "as it was" in text] == [
        "the module is as it was: True",
        "the module is as it was: False",
    ]
    assert "decision=[" in texts[1] and "sch.split(j, factors=[t0, t1])" in texts[3]


@cell("002", "4.5: random search")
def _() -> None:
    sch, seconds = example("random_search").random_search(2)
    assert seconds < 10 and len(weft.decisions_of(sch.trace)) == 1


@cell("003", "matmul with the default schedule, built, run, timed")
def _() -> None:
    assert example("stages_matmul").naive(64) > 0


@cell("003", "the optimised matmul, its assembly")
def _() -> None:
    assert example("stages_matmul").optimised(64) > 0


@cell("003", "relu of a matrix-vector product")
def _() -> None:
    example("stages_matmul").fully_connected()


@cell("003", "convolution over a padded input")
def _() -> None:
    example("stages_matmul").conv2d(12, 10, 5)


@cell("003", "split, reorder, tile, vectorize, parallel, unroll, fuse: the loops of each")
def _() -> None:
    loops = {name: text.split("tir.for ")[1:] for name, text in example("stages_matmul").requests().items()}
    extents = {name: [line.split("{")[0].split(" in ")[1].strip() for line in lines] for name, lines in loops.items()}
    assert extents["split"] == ["32", "32", "1024", "1024"]
    assert extents["tile"] == ["32", "32", "32", "32", "1024"]
    assert extents["reorder"] == ["32", "32", "256", "32", "32", "4"]
    assert extents["vectorize"] == ["32", "128", "256", "32", "8 vectorized", "4"]
    assert extents["parallel"] == ["32 parallel", "32", "256", "32", "32", "4"]
    assert extents["unroll"] == ["32", "32", "256", "32", "32", "4 unrolled"]
    assert extents["fuse"] == ["1048576", "1024"]


@cell("003", "exercise 1: relu of a sum, vectorized and parallel")
def _() -> None:
    example("stages_matmul").exercise_relu_of_sum(4096)


@cell("003", "exercise 2: schedules compared; the one that names a gone axis falls back")
def _() -> None:
    speeds = example("stages_matmul").exercise_schedules(64)
    assert list(speeds) == ["Naive", "Tile 16", "Tile 32", "Tile 64", "Tile 32 + vec"]


@cell("003", "exercise 3: the loops at each stage")
def _() -> None:
    plain, split, tiled = example("stages_matmul").exercise_stages_of_lowering()
    assert "for i, j, k in T.grid(8, 8, 8):" in plain
    assert "for i0, i1, j, k in T.grid(2, 4, 8, 8):" in split
    assert "for i0, j0, i1, j1, k in T.grid(2, 2, 4, 4, 8):" in tiled


@cell("004", "mm_relu as script: split, reorder, reverse_compute_at; both versions run and are timed")
def _() -> None:
    lesson = example("script_mm_relu")
    text = str(script(lesson.transform().mod))
    assert "for i, j0 in T.grid(128, 32):" in text and "for k, j1 in T.grid(128, 4):" in text
    lesson.main()


@cell("004", "the same from tensor expressions")
def _() -> None:
    a, b = (te.placeholder((128, 128), "float32", name=name) for name in "AB")
    k = te.reduce_axis((0, 128), "k")
    y = te.compute((128, 128), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="Y")
    c = te.compute((128, 128), lambda i, j: te.max(y[i, j], 0), name="C")
    module = te.create_prim_func([a, b, c], name="mm_relu")
    weft.assert_structural_equal(module, example("script_mm_relu").MyModule)


ELSEWHERE = {
    "002: 2.5, transforms of mm_relu": ("examples/run_mm_relu.py", "tests/numeric/docs/test_te_examples.py"),
    "002: 3.1, add": ("examples/te_add.py", "tests/numeric/docs/test_te_examples.py"),
    "002: 3.1, broadcast add": ("examples/te_broadcast_add.py", "tests/numeric/docs/test_te_examples.py"),
    "002: 3.1, conv2d": ("examples/te_conv2d.py", "tests/numeric/docs/test_te_examples.py"),
    "002: 3.2, bmm_relu to its target": ("examples/te_bmm_relu.py", "tests/numeric/docs/test_te_examples.py"),
    "002: 3.2, bmm_relu as script": ("examples/script_bmm_relu.py", "tests/numeric/frontends/test_script_programs.py"),
    "002: 6.2, blockize and tensorize": (
        "examples/tensorize_tmm16.py",
        "tests/schedule/tensorize/test_tensorize_numeric.py",
    ),
}
"""Cells that other tests run: example, test."""


@pytest.mark.parametrize("name", ELSEWHERE)
def test_other_cells_are_run_elsewhere(name: str) -> None:
    program, test = ELSEWHERE[name]
    assert Path(program).stem in (EXAMPLES.parent / test).read_text()
    assert (EXAMPLES.parent / program).exists()


@pytest.mark.parametrize("name", CELLS)
def test_cell(name: str) -> None:
    CELLS[name]()
