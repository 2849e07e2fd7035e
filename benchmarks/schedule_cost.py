"""Costs of schedules: a long schedule of a matmul, its trace, its lowering, and primitives among many blocks.

    python benchmarks/schedule_cost.py [rounds]

CPU time, which is less sensitive to other load; minima of several runs after a warm-up, always including legality
checks. Every step that changes the program is counted, as are look-ups of blocks and loops.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

import weft
from weft import te
from weft.backends.llvm.emit import emit_module
from weft.passes.lower_tir_to_low import LowerTirToLowPass
from weft.schedule.traces import steps_of

N = 1024
BLOCKS = (10, 50, 100, 200)


def matmul_relu() -> ModuleOp:
    a = te.placeholder((N, N), name="A")
    b = te.placeholder((N, N), name="B")
    k = te.reduce_axis((0, N), name="k")
    y = te.compute((N, N), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="Y")
    c = te.compute((N, N), lambda i, j: te.max(y[i, j], 0.0), name="C")
    return te.create_func([a, b, c], name="mm_relu")


def schedule(sch: weft.Schedule) -> None:
    """Three levels of tiles, both inputs packed, results in registers, relu fused into the tile, threads and
    vectors.
    """
    y = sch.get_block("Y", func_name="mm_relu")
    i, j, k = sch.get_loops(y)
    i0, i1, i2 = sch.split(i, factors=[None, 32, 4])
    j0, j1, j2 = sch.split(j, factors=[None, 2, 64])
    k0, k1 = sch.split(k, factors=[None, 128])
    sch.reorder(i0, j0, k0, j1, i1, k1, i2, j2)
    tiles = sch.fuse(i0, j0)
    acc = sch.cache_write(y, 0, "local")
    sch.reverse_compute_at(acc, tiles)
    packed_a = sch.cache_read(y, 0, "global.A_packed")
    packed_b = sch.cache_read(y, 1, "global.B_packed")
    sch.compute_at(packed_a, k0)
    sch.compute_at(packed_b, k0)
    relu = sch.get_block("C")
    sch.reverse_compute_inline(relu)
    for block in (packed_a, packed_b, acc):
        *_, row, column = sch.get_loops(block)
        _, lanes = sch.split(column, factors=[None, 16])
        sch.vectorize(lanes)
        if block is not acc:
            _, rows = sch.split(row, factors=[None, 4])
            sch.unroll(rows)
    init = sch.decompose_reduction(y, k0)
    *_, column = sch.get_loops(init)
    sch.vectorize(sch.split(column, factors=[None, 16])[1])
    j3, j4 = sch.split(j2, factors=[None, 16])
    sch.vectorize(j4)
    sch.unroll(j3)
    sch.unroll(i2)
    sch.parallel(tiles)


def lowered(module: ModuleOp) -> str:
    LowerTirToLowPass("llvm").apply(Context(), module)
    return emit_module(module, weft.Target("llvm"))


def measure(run: Callable[[], object], rounds: int) -> float:
    """The least CPU time of a call in seconds, after a warm-up call."""
    run()
    best = float("inf")
    for _ in range(rounds):
        start = time.process_time()
        run()
        best = min(best, time.process_time() - start)
    return best


def measure_matmul(rounds: int) -> None:
    program = matmul_relu()

    def scheduled() -> weft.Schedule:
        sch = weft.Schedule(program)
        schedule(sch)
        return sch

    first = scheduled()
    steps = steps_of(first.trace)
    looking = sum(step.name.startswith("sched.get_") for step in steps)
    changing = len(steps) - looking
    print(f"mm_relu {N}: {changing} steps that change the program, {looking} look-ups; CPU ms, minimum of {rounds}")
    replayed = partial(lambda trace: weft.Schedule(program).replay(trace), first.trace)
    rows = {
        "schedule from Python": (measure(scheduled, rounds), 40),
        "replay of its trace": (measure(replayed, rounds), 40),
        "schedule, lower, LLVM IR text": (measure(lambda: lowered(scheduled().mod), rounds), 70),
    }
    for name, (seconds, target) in rows.items():
        print(f"  {name:30} {seconds * 1e3:8.1f}   target {target}")


def chain(blocks: int) -> ModuleOp:
    """A chain of `blocks` computations, each reading the preceding one; every fifth is a reduction."""
    shape = (64, 64)
    first = last = te.placeholder(shape, name="A")
    for at in range(blocks):
        source = last
        if at % 5 == 4:
            k = te.reduce_axis((0, 8), name="k")
            last = te.compute(shape, lambda i, j, s=source, k=k: te.sum(s[i, j] * s[i, k], axis=k), name=f"X{at}")
        else:
            last = te.compute(shape, lambda i, j, s=source: s[i, j] + 1.0, name=f"X{at}")
    return te.create_func([first, last], name="chain")


def primitives(middle: int) -> dict[str, Callable[[weft.Schedule], Callable[[], object]]]:
    """Name -> a function that prepares a schedule and returns the call to measure. `middle` is an elementwise block
    with elementwise producer and consumer, `middle + 2` a reduction.
    """
    x, before, reduction = f"X{middle}", f"X{middle - 1}", f"X{middle + 2}"

    def at(block: str, loop: int, call: Callable[..., object]) -> Callable[[weft.Schedule], Callable[[], object]]:
        def prepare(sch: weft.Schedule) -> Callable[[], object]:
            handle = sch.get_loops(block)[loop]
            return lambda: call(sch, handle)

        return prepare

    def whole(call: Callable[[weft.Schedule], object]) -> Callable[[weft.Schedule], Callable[[], object]]:
        return lambda sch: lambda: call(sch)

    def decompose(sch: weft.Schedule, loop: object) -> object:
        return sch.decompose_reduction(reduction, loop)

    return {
        "get_block": whole(lambda sch: sch.get_block(x)),
        "get_loops": whole(lambda sch: sch.get_loops(x)),
        "get_producers": whole(lambda sch: sch.get_producers(x)),
        "split": at(x, 0, lambda sch, loop: sch.split(loop, [None, 4])),
        "fuse": lambda sch: partial(sch.fuse, *sch.get_loops(x)),
        "reorder": lambda sch: partial(sch.reorder, *reversed(sch.get_loops(x))),
        "parallel": at(x, 0, lambda sch, loop: sch.parallel(loop)),
        "vectorize": at(x, 1, lambda sch, loop: sch.vectorize(loop)),
        "compute_at": at(x, 0, lambda sch, loop: sch.compute_at(before, loop)),
        "reverse_compute_at": at(before, 0, lambda sch, loop: sch.reverse_compute_at(x, loop)),
        "compute_inline": whole(lambda sch: sch.compute_inline(before)),
        "reverse_compute_inline": whole(lambda sch: sch.reverse_compute_inline(x)),
        "cache_read": whole(lambda sch: sch.cache_read(x, 0, "local")),
        "cache_write": whole(lambda sch: sch.cache_write(x, 0, "local")),
        "set_scope": whole(lambda sch: sch.set_scope(x, 0, "local")),
        "decompose_reduction": at(reduction, 2, decompose),
        "rfactor": at(reduction, 2, lambda sch, loop: sch.rfactor(loop, 0)),
        "blockize": at(x, 1, lambda sch, loop: sch.blockize(loop)),
    }


def measure_growth(rounds: int) -> None:
    programs = {blocks: chain(blocks) for blocks in BLOCKS}
    few, many = BLOCKS[0], BLOCKS[-1]
    print(
        f"\none primitive in a function of many blocks, CPU ms, minimum of {rounds}; growth from {few} to {many} blocks"
    )
    print(" " * 26 + "".join(f"{blocks:>9}" for blocks in BLOCKS) + f"{'growth':>9}  (linear: {many // few})")
    for name in primitives(2):
        times: list[float] = []
        for blocks, program in programs.items():
            prepare = primitives(5 * (blocks // 10) + 2)[name]
            best = float("inf")
            for number in range(rounds + 1):
                call = prepare(weft.Schedule(program))
                start = time.process_time()
                call()
                best = min(best, time.process_time() - start) if number else best
            times.append(best)
        shown = "".join(f"{seconds * 1e3:9.2f}" for seconds in times)
        print(f"  {name:24}{shown}{times[-1] / times[0]:9.1f}")


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    measure_matmul(rounds)
    measure_growth(rounds)


if __name__ == "__main__":
    main()
