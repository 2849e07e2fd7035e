"""The machine model: the table of processors, and the estimates that are made from it."""

from __future__ import annotations

import pytest
from fit_costs import changed, constants, values_around

from weft import te
from weft.autoschedule.default_schedule import default_schedule
from weft.plans import fitted
from weft.plans.cost import Work, cost, step, threads_pay_from
from weft.plans.layouts import conversion, plain_data, saved_by_blocks, saved_by_filtering
from weft.plans.traffic import Cache, LoopNest, Operand, bytes_from_beyond, caches, pages_from_beyond
from weft.support.processors import PROCESSORS, Processor, processor
from weft.support.target import Target

TARGET = Target.parse("llvm -mcpu=haswell -num-threads=4 -l1-bytes=32768 -l2-bytes=262144 -l2-ways=8 -l3-bytes=8388608")
CPU = TARGET.processor


def product(n: int) -> LoopNest:
    """`C[i, j] += A[i, k] * B[k, j]` of floats, with loops i, j, k."""
    inner = [(n, n, n), (1, n, n), (1, 1, n), (1, 1, 1)]

    def operand(first: int, second: int) -> Operand:
        return Operand((n, n), 4, [(box[first], box[second]) for box in inner])

    return LoopNest([n, n, n], [operand(0, 2), operand(2, 1), operand(0, 1)])


@pytest.mark.parametrize(("cpu", "family"), [("znver3", "znver1"), ("haswell", "generic"), ("cascadelake", "haswell")])
def test_families(cpu: str, family: str) -> None:
    assert processor(cpu) == processor(family)


def test_what_families_differ_by() -> None:
    assert processor("znver4").fills_memory and not processor("skylake-avx512").fills_memory
    assert processor("znver3").memory_streams == 4 and processor("znver4").memory_streams == 1
    assert processor("znver5").l1_ways > processor("znver4").l1_ways and processor("znver5").memory_streams == 1
    assert processor("cooperlake").bf16_dots_pay and processor("znver4").bf16_dots_pay
    assert not processor("emeraldrapids").bf16_dots_pay
    assert {row.fmas_in_flight for row in (*PROCESSORS.values(), Processor())} == {8}


def test_nests_that_fit_move_their_operands_once() -> None:
    first, second, third = (sum(bytes_from_beyond(product(32), cache, CPU)) for cache in caches(TARGET))
    assert first == second == third == 3 * 32 * 32 * 4


def test_nests_that_do_not_fit_move_what_comes_again() -> None:
    """L1 holds the lines of a column of B, but not all of B, which comes again for each row of C."""
    a, b, c = bytes_from_beyond(product(250), caches(TARGET)[0], CPU)
    assert (a, b, c) == (250 * 1024, 250 * 250 * 1000, 250 * 1024)


def test_lines_of_few_places_need_more_room() -> None:
    """16 lines, 4096 bytes apart, are two ways of a cache with eight ways, but 512 lines are all of them."""
    columns = LoopNest([64, 256], [Operand((256, 1024), 4, [(256, 64), (256, 1), (1, 1)])])
    near = LoopNest([64, 256], [Operand((256, 1008), 4, [(256, 64), (256, 1), (1, 1)])])
    cache = Cache(32 << 10, 4 << 10)
    assert sum(bytes_from_beyond(columns, cache, CPU)) > sum(bytes_from_beyond(near, cache, CPU))


def test_pages() -> None:
    few, many = (LoopNest([n, 64], [Operand((n, 1024), 4, [(n, 64), (1, 64), (1, 1)])]) for n in (64, 65))
    assert pages_from_beyond(few, CPU) == 64 and pages_from_beyond(many, CPU) == 65


def test_bounds_and_threads() -> None:
    work = Work(operations=1000.0, functions=10.0, loads=400.0, stores=100.0, iterations=50.0, chained=20.0)
    found = cost(work, TARGET)
    assert (found.arithmetic_cycles, found.load_cycles, found.store_cycles) == (580.0, 200.0, 100.0)
    assert found.issue_cycles == (1510 + 100) / 6 and found.chain_cycles == 80.0
    assert found.cycles == fitted.OVERLAP * (580 + 200 + 100 + found.issue_cycles + 80)
    shared = cost(Work(operations=1e6, threads=4.0), TARGET)
    assert shared.cycles == cost(Work(operations=1e6), TARGET).cycles / 4 + CPU.waking_cycles


def test_steps_of_tiles() -> None:
    """Wide tiles load less for each multiply-add, and small ones wait for their sums."""
    costs = [step(fitted.WINDOWS, rows * 2, 2, rows, CPU) / (rows * 2) for rows in (1, 2, 4, 6)]
    assert costs == sorted(costs, reverse=True)
    assert step(fitted.BLOCKS, 2, 1, 2, CPU) == 8 + 0.75


def test_waking_threads() -> None:
    """40 us of one core at 3.3 GHz: 131072 cycles of 16 multiply-adds."""
    assert threads_pay_from(CPU) == 1 << 21


def test_layouts() -> None:
    assert conversion(10) == 220 and plain_data(1000, 3) == 0 and plain_data(1000, 8) == 100
    assert plain_data(1000, 8, 4) == 850
    assert saved_by_blocks(600, (1, 1)) == pytest.approx(100) and saved_by_blocks(600, (3, 3)) == 25
    assert saved_by_blocks(600, (3, 3), is_depthwise=True) == 0
    assert saved_by_blocks(600, (3, 3), is_depthwise=True, is_strided=True) == 2400
    tile, saved = saved_by_filtering(1, (56, 56), 64, 64, 3, (2, 4, 6))
    assert tile in (2, 4, 6) and 0 < saved < 9 * 56 * 56 * 64 * 64
    assert saved_by_filtering(1, (7, 7), 8, 8, 3, (2, 4, 6)) == (0, 0)


@pytest.mark.parametrize("name", ["LOOP_ENTRY", "WINDOWS.vector", "PRODUCTS.loads_wait", "processor.memory_streams"])
def test_constants_are_changed_for_a_while(name: str) -> None:
    before = constants("haswell")
    for value in values_around(before[name]):
        with changed(name, value, "haswell"):
            assert constants("haswell") == {**before, name: value}
    assert constants("haswell") == before


def test_rules_follow_the_constants() -> None:
    """Nine rows are packed for if six are enough, and not if twelve are needed."""
    a, b = te.placeholder((9, 64), name="A"), te.placeholder((64, 320), name="B")
    k = te.reduce_axis((0, 64), name="k")
    module = te.create_func([a, b, te.compute((9, 320), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")])
    found: list[bool] = []
    for rows in (6, 12):
        with changed("PACKED_ROWS", rows, TARGET.cpu):
            (trace,) = default_schedule(module, TARGET)
            found.append("cache_read" in str(trace))
    assert found == [True, False]


@pytest.mark.parametrize("cpu", ["znver4", "znver5"])
def test_packed_panels_are_read_by_rows_that_divide_them(cpu: str) -> None:
    """12 ways of the L1 cache of a Zen 5 do not divide 64 columns: packing would need a remainder."""
    m, k, n = te.var("m"), te.var("k"), te.var("n")
    a, b = te.placeholder((m, k), name="a"), te.placeholder((n, k), name="b")
    module = te.create_func([a, b, te.ops.matmul(a, b, transpose_b=True)])
    traces = default_schedule(module, Target.parse(f"llvm -mcpu={cpu} -mtriple=x86_64-unknown-linux-gnu"))
    (text,) = (str(trace) for trace in traces if "transform_layout" in str(trace))
    assert "factors = [0, 8, 8]" in text and "d0 floordiv 64" in text
