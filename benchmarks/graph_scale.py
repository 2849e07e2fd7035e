"""Times of the passes of `lower-graph` on graphs of many operators, and their growth.

    python benchmarks/graph_scale.py [operators ...]

Layers of nine operators (product, bias, gelu, product, bias, residual, norm, split into halves that are added), with a
symbolic number of rows. Wall time in seconds, least of three, of each pass on a fresh copy of the graph.
"""

from __future__ import annotations

import sys
import time
from collections import defaultdict

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from weft import graph as G
from weft.driver.verify import verify_module
from weft.passes.graph_pipeline import graph_to_tir

WIDTH = 32


def graph(operators: int) -> G.Module:
    """A graph with about this many operators."""
    bb = G.BlockBuilder()
    x, w, b = G.var("x", ("n", WIDTH)), G.var("w", (WIDTH, WIDTH)), G.var("b", (WIDTH,))
    with bb.function("main", [x, w, b]):
        value = x
        for layer in range(max(1, operators // 9)):
            h = G.gelu(G.matmul(value, w) + b)
            h = G.layer_norm(G.matmul(h, w) + b + value, b, b)
            left, right = G.split(h, 2, axis=1)
            value = G.concatenate([left + right, G.multiply(left, float(layer))], axis=1)
        bb.emit_func_output(value)
    return bb.get()


def passes(module: ModuleOp) -> dict[str, float]:
    """Seconds of each pass, by name."""
    spent: dict[str, float] = defaultdict(float)
    module = module.clone()
    for step in graph_to_tir("llvm", named=("main",)):
        begin = time.perf_counter()
        step.apply(Context(), module)
        spent[step.name] += time.perf_counter() - begin
    begin = time.perf_counter()
    verify_module(module)
    spent["verify"] = time.perf_counter() - begin
    return spent


def main() -> None:
    sizes = [int(size) for size in sys.argv[1:]] or [1000, 2000, 10000]
    passes(graph(50))
    table: list[dict[str, float]] = []
    for size in sizes:
        module = graph(size)
        rounds = [passes(module) for _ in range(3)]
        table.append({name: min(spent[name] for spent in rounds) for name in rounds[0]})
        print(f"{size}: {sum(1 for op in module.walk() if op.name.startswith('graph.'))} operators", file=sys.stderr)
    print(f"{'pass':28}", *(f"{size:>9}" for size in sizes))
    for name in table[0]:
        print(f"{name:28}", *(f"{spent[name]:9.3f}" for spent in table))
    print(f"{'sum':28}", *(f"{sum(spent.values()):9.3f}" for spent in table))


if __name__ == "__main__":
    main()
