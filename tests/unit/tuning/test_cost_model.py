"""Features of scheduled programs, and the models that rank candidates by them."""

from __future__ import annotations

import json
from random import Random

import pytest

import weft
from weft import te
from weft.support.target import Target
from weft.tuning.cost_model import (
    FORMAT,
    AnalyticalModel,
    BoostedTrees,
    Sample,
    places,
    rank_correlation,
    samples_from_text,
)
from weft.tuning.database import Database
from weft.tuning.features import NAMES, counts_of, features_of

TARGET = Target.parse("llvm -mcpu=haswell -num-threads=4 -l1-bytes=32768")  # vectors of 32 bytes


def product(n: int = 64) -> weft.Schedule:
    a, b = (te.placeholder((n, n), "float32", name=letter) for letter in "AB")
    k = te.reduce_axis((0, n), name="k")
    c = te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return weft.Schedule(te.create_func([a, b, c]))


def tiled(n: int = 64) -> weft.Schedule:
    sch = product(n)
    i, j, k = sch.get_loops("C")
    (i0, i1), (j0, j1) = sch.split(i, [None, 4]), sch.split(j, [None, 16])
    sch.reorder(i0, j0, k, i1, j1)
    init = sch.decompose_reduction("C", k)
    for block in ("C_update", init):
        *_, rows, columns = sch.get_loops(block)
        sch.unroll(rows), sch.vectorize(columns)
    return sch


def test_scalar_counts() -> None:
    found = counts_of(product().mod, TARGET)
    assert (found.scalar_operations, found.vector_operations) == (2 * 64**3, 0)
    # The sum stays in a register while the reduction runs: one load and one store of it a result.
    assert found.scalar_loads == 2 * 64**3 + 64**2 and found.scalar_stores == 64**2
    assert found.loop_iterations == 64**3 and found.nests == 1
    assert found.distinct_bytes == 3 * 4 * 64**2 and found.temporary_bytes == 0


def test_counts_of_register_tiles() -> None:
    """16 x 4 tiles, 64 steps each: 4 x 2 multiply-adds of vectors, 4 broadcasts and 2 loads a step."""
    found = counts_of(tiled().mod, TARGET)
    steps = 16 * 4 * 64
    assert found.vector_operations == 2 * steps * 8 and found.scalar_operations == 0
    assert found.broadcast_loads == steps * 4
    assert found.vector_loads == steps * 2 + 16 * 4 * 8 and found.registers == 8
    assert found.vector_stores == 2 * 16 * 4 * 8  # what the init stores, and the results
    assert found.cycles < counts_of(product().mod, TARGET).cycles / 8


def test_bytes_by_level() -> None:
    """48 KiB: more than the first cache holds; rows of A and the whole of B pass by for each row of results."""
    found = counts_of(product().mod, TARGET)
    assert found.memory_bytes == found.bytes_beyond_l2 == found.distinct_bytes
    assert found.bytes_beyond_l1 == 64 * (2 * 4 * 64) + 4 * 64**2
    small = counts_of(product(16).mod, TARGET)
    assert small.bytes_beyond_l1 == small.distinct_bytes


def transposition(n: int, tile: int = 0) -> weft.Schedule:
    a = te.placeholder((n, n), "float32", name="A")
    sch = weft.Schedule(te.create_func([a, te.compute((n, n), lambda i, j: a[j, i], name="C")]))
    if tile:
        i, j = sch.get_loops("C")
        (i0, i1), (j0, j1) = sch.split(i, [None, tile]), sch.split(j, [None, tile])
        sch.reorder(i0, j0, i1, j1)
    return sch


def test_lines_and_pages_of_columns() -> None:
    """A column of 600 has an element in a line of 64 bytes of each row: together more than the first cache holds."""
    n = 600
    plain, tiled_ = (counts_of(transposition(n, tile).mod, TARGET) for tile in (0, 8))
    assert plain.bytes_beyond_l1 / n**2 == pytest.approx(64 + 4, rel=0.01)
    assert tiled_.bytes_beyond_l1 / n**2 == pytest.approx(8 + 4, rel=0.01)  # a row of a tile is half a line
    # 600 rows of 2400 bytes are more pages than the first translation buffer knows; those of a tile are not.
    assert plain.page_misses / n**2 > 0.5 and tiled_.page_misses / n**2 < 0.1


def test_lines_at_powers_of_two_compete_for_places() -> None:
    """512 lines are the first cache, 4096 bytes apart they have room for 8."""
    near, far = (counts_of(transposition(n, 32).mod, TARGET).bytes_beyond_l1 / n**2 for n in (992, 1024))
    assert far > 4 * near


def test_sums_that_wait_for_the_sum_before() -> None:
    alone, beside = counts_of(product().mod, TARGET), counts_of(tiled().mod, TARGET)
    assert alone.chain_cycles == 4 * 64**3 and beside.chain_cycles == 4 * 16 * 4 * 64
    sch = product()
    i, j, k = sch.get_loops("C")
    sch.reorder(i, k, j)  # the next sum is another one
    assert counts_of(sch.mod, TARGET).chain_cycles < 4 * 64**3 / 16


def test_loops_that_begin() -> None:
    assert counts_of(product().mod, TARGET).loop_entries == 64**2
    # Of tiles the loop of the reduction begins once each, that of the init once for a row of tiles.
    assert counts_of(tiled().mod, TARGET).loop_entries == 16 * 4 + 16


def test_threads_that_wait() -> None:
    sch = product()
    i, *_ = sch.get_loops("C")
    outer, _ = sch.split(i, [5, None])
    sch.parallel(outer)
    found = counts_of(sch.mod, TARGET)
    assert found.parallel_iterations == 5 and found.idle_threads == pytest.approx(100 * (1 - 5 / 8))


def test_features_are_logarithms_in_the_order_of_names() -> None:
    found = dict(zip(NAMES, features_of(product().mod, TARGET), strict=True))
    assert found["nests"] == 1.0 and found["vector_operations"] == 0.0 and 18 < found["scalar_operations"] < 20


def test_the_analytical_model_prefers_tiles() -> None:
    plain, fast = features_of(product().mod, TARGET), features_of(tiled().mod, TARGET)
    slow, quick = AnalyticalModel().predict([plain, fast], plain)
    assert slow == 0.0 and quick < -3.0


def test_rank_correlation() -> None:
    assert rank_correlation([1, 2, 3, 4], [10, 20, 30, 400]) == pytest.approx(1.0)
    assert rank_correlation([1, 2, 3], [3, 2, 1]) == pytest.approx(-1.0)
    assert rank_correlation([1, 1, 2, 3], [1, 2, 3, 4]) == pytest.approx(0.9486833)  # ties share a rank
    assert rank_correlation([1, 1], [1, 2]) == rank_correlation([1], [1]) == 0.0


def samples(count: int, seed: int = 0) -> list[Sample]:
    """Times that two features decide."""
    random, found = Random(seed), list[Sample]()
    for _ in range(count):
        features = tuple(random.uniform(0, 20) for _ in NAMES)
        found.append(Sample(features, (10.0,) * len(NAMES), 2.0 ** (features[0] / 4 - features[3] / 5)))
    return found


def test_trees_learn_and_are_the_same_again() -> None:
    pytest.importorskip("lightgbm")
    model, again, seen, unseen = BoostedTrees(), BoostedTrees(), samples(400), samples(100, seed=1)
    features, default = [sample.features for sample in unseen], unseen[0].default
    # Before there is anything to learn from, the analytical model serves.
    assert model.predict(features, default) == AnalyticalModel().predict(features, default)
    model.learn(seen)
    predicted = model.predict(features, default)
    assert rank_correlation(predicted, [sample.ratio for sample in unseen]) > 0.8
    again.learn(samples_from_text(model.to_text()))
    assert again.predict(features, default) == predicted


def test_trees_learn_places_within_programs() -> None:
    ratios = {(1.0,): [100.0, 1.0, 1.02], (2.0,): [1.0, 1.0], (3.0,): [7.0]}
    given = [Sample((0.0,), default, ratio) for default, found in ratios.items() for ratio in found]
    assert places(given) == [1.0, 0.0, 0.5, 0.5, 0.5, 0.5]


def test_saved_models_are_data() -> None:
    text = BoostedTrees(samples(3)).to_text()
    assert samples_from_text(text) == samples(3)
    assert samples_from_text(text.replace(f'"format": {FORMAT}', '"format": 99')) == []
    assert samples_from_text(text.replace('"cycles"', '"ticks"')) == []
    found = json.loads(text)
    for change in ({"samples": [[[1.0], [1.0], 1.0]]}, {"samples": [[*found["samples"][0][:2], -1.0]]}, {"samples": 5}):
        with pytest.raises(weft.CompileError, match="no cost model"):
            samples_from_text(json.dumps({**found, **change}))
    with pytest.raises(weft.CompileError, match="no cost model"):
        samples_from_text("[1, 2")


def test_a_search_begins_with_the_model_that_was_there_when_it_began_first() -> None:
    with Database(":memory:") as database:
        begun = database.begin_search("a search")
        assert database.model("llvm", "x86_64 znver4", until=begun) is None
        for at in range(6):
            database.save_model("llvm", "x86_64 znver4", f"model {at}")
        assert database.model("llvm", "x86_64 znver4", until=begun) == "model 5"
        assert database.model("llvm", "x86_64 haswell", until=begun) is None
        assert database._connection.execute("SELECT COUNT(*) FROM models").fetchone()[0] == 4
