"""Times of example programs on an NVIDIA GPU, against PyTorch (cuBLAS, cuDNN) and Triton, in one process.

    python benchmarks/gpu/bench_cuda.py [--only matmul,softmax] [--rounds 15]

All contenders of a program use the same arrays on torch's stream. Each is captured in a CUDA graph of several runs,
which excludes the cost of Python; graphs take turns, timed by CUDA events, and the least time of all rounds is
reported. TF32 is off. A ratio is the peer's time over weft's: above 1, weft is faster. Results are checked before they
are timed. Each program runs in a separate process, so that a failure, whose traceback is printed, does not stop the
others.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from from_checkout import make_importable
from isolation import isolated

make_importable()

import elementwise  # noqa: E402
import matmul  # noqa: E402
import normalization  # noqa: E402
import reductions  # noqa: E402
import tensor_cores  # noqa: E402
import torch  # noqa: E402
import transpose  # noqa: E402

import weft  # noqa: E402

RUNS_IN_A_GRAPH = 10
ROWS = {
    "256 x 1": (256, 1, False),
    "256 x 4": (256, 4, False),
    "512 x 4": (512, 4, False),
    "256 x 4, in registers": (256, 4, True),
    "512 x 4, in registers": (512, 4, True),
    "1024 x 4, in registers": (1024, 4, True),
}
"""Threads per row, consecutive elements per thread and access, and whether the row is kept in registers."""
Contender = Callable[[], Any]


@dataclass(frozen=True)
class Benchmark:
    """A program: contenders by name, lower bounds of the bytes and operations of a run, and the shape as text."""

    name: str
    shape: str
    contenders: dict[str, Contender]
    result: torch.Tensor
    """The array that weft writes."""
    expected: Callable[[], torch.Tensor]
    bytes_moved: int
    flops: int = 0


def random(*shape: int) -> torch.Tensor:
    return torch.rand(shape, device="cuda", dtype=torch.float32) * 2 - 1


def error(result: torch.Tensor, expected: torch.Tensor) -> float:
    return float((result.double() - expected.double()).abs().max() / expected.double().abs().max().clamp_min(1e-30))


def compiled(schedule: weft.Schedule) -> Any:
    return weft.build(schedule.mod, target="cuda")["main"]


def matmul_benchmarks(n: int = 4096) -> Benchmark:
    a, b, c, out = random(n, n), random(n, n), random(n, n), random(n, n)
    contenders: dict[str, Contender] = {"torch": lambda: torch.matmul(a, b, out=out)}
    for name, schedule in matmul.VARIANTS.items():
        function = guarded(f"matmul {name}", lambda: compiled(schedule(n, n, n)))  # noqa: B023
        if function is not None:
            contenders[f"weft {name}"] = lambda function=function: function(a, b, c)
    return Benchmark("matmul", f"{n}x{n}x{n} f32", contenders, c, lambda: torch.matmul(a, b), 3 * 4 * n * n, 2 * n**3)


def matmul_f16_benchmarks(n: int = 4096) -> Benchmark:
    """f32 accumulation on tensor cores; weft stores f32, torch rounds to f16."""
    a, b = random(n, n).half(), random(n, n).half()
    c, out = random(n, n), random(n, n).half()
    contenders: dict[str, Contender] = {"torch": lambda: torch.matmul(a, b, out=out)}
    for name, schedule in tensor_cores.VARIANTS.items():
        function = guarded(f"matmul f16 {name}", lambda: compiled(schedule(n, n, n)))  # noqa: B023
        if function is not None:
            contenders[f"weft {name}"] = lambda function=function: function(a, b, c)
    moved = (2 + 2 + 4) * n * n
    expected = lambda: torch.matmul(a.float(), b.float())  # noqa: E731
    return Benchmark("matmul_f16", f"{n}x{n}x{n} f16", contenders, c, expected, moved, 2 * n**3)


def softmax_benchmarks(m: int = 4096, n: int = 4096) -> Benchmark:
    a, c, out = random(m, n), random(m, n), random(m, n)
    contenders: dict[str, Contender] = {"torch": lambda: torch.softmax(a, 1, out=out)}
    for name, (threads, lanes, registers) in ROWS.items():
        function = compiled(normalization.softmax(m, n, threads, lanes, registers))
        contenders[f"weft {name}"] = lambda function=function: function(a, c)
    triton_kernels = guarded("softmax triton", lambda: __import__("triton_rows"))
    if triton_kernels is not None:
        contenders["triton"] = lambda: triton_kernels.softmax(a, out)
    return Benchmark("softmax", f"{m}x{n}", contenders, c, lambda: torch.softmax(a, 1), 2 * 4 * m * n)


def layernorm_benchmarks(m: int = 4096, n: int = 4096) -> Benchmark:
    a, g, b, c, out = random(m, n), random(n), random(n), random(m, n), random(m, n)
    reference = lambda: torch.nn.functional.layer_norm(a, (n,), g, b, normalization.EPSILON)  # noqa: E731
    contenders: dict[str, Contender] = {"torch": reference}
    for name, (threads, lanes, registers) in ROWS.items():
        function = compiled(normalization.layernorm(m, n, threads, lanes, registers))
        contenders[f"weft {name}"] = lambda function=function: function(a, g, b, c)
    triton_kernels = guarded("layernorm triton", lambda: __import__("triton_rows"))
    if triton_kernels is not None:
        contenders["triton"] = lambda: triton_kernels.layernorm(a, g, b, out, normalization.EPSILON)
    return Benchmark("layernorm", f"{m}x{n}", contenders, c, reference, 2 * 4 * m * n)


def add_benchmarks(n: int = 1 << 26) -> Benchmark:
    a, b, c, out = random(n), random(n), random(n), random(n)
    one, four = compiled(elementwise.vector_add(n)), compiled(elementwise.vector_add4(n))
    contenders: dict[str, Contender] = {
        "torch": lambda: torch.add(a, b, out=out),
        "weft 1 a thread": lambda: one(a, b, c),
        "weft 4 a thread": lambda: four(a, b, c),
    }
    return Benchmark("add", f"{n}", contenders, c, lambda: a + b, 3 * 4 * n)


def sigmoid_benchmarks(n: int = 1 << 26) -> Benchmark:
    a, c, out = random(n), random(n), random(n)
    function = compiled(elementwise.sigmoid(n))
    contenders: dict[str, Contender] = {
        "torch": lambda: torch.sigmoid(a, out=out),
        "weft": lambda: function(a, c),
        "copy": lambda: out.copy_(a),
    }
    return Benchmark("sigmoid", f"{n}", contenders, c, lambda: torch.sigmoid(a), 2 * 4 * n)


def transpose_benchmarks(m: int = 8192, n: int = 8192) -> Benchmark:
    a, c, out = random(m, n), random(n, m), random(n, m)
    function = compiled(transpose.transpose(m, n))
    contenders: dict[str, Contender] = {
        "torch": lambda: out.copy_(a.t()),
        "weft": lambda: function(a, c),
        "copy": lambda: out.copy_(a),
    }
    return Benchmark("transpose", f"{m}x{n}", contenders, c, lambda: a.t(), 2 * 4 * m * n)


def row_sum_benchmarks(m: int = 8192, n: int = 8192) -> Benchmark:
    a, c, out = random(m, n), random(m), random(m)
    function = compiled(reductions.row_sum(m, n))
    contenders: dict[str, Contender] = {
        "torch": lambda: torch.sum(a, 1, out=out),
        "weft": lambda: function(a, c),
    }
    return Benchmark("row_sum", f"{m}x{n}", contenders, c, lambda: a.double().sum(1), 4 * m * n)


def column_sum_benchmarks(m: int = 8192, n: int = 8192) -> Benchmark:
    a, c, out = random(m, n), random(n), random(n)
    function = compiled(reductions.column_sum(m, n))
    contenders: dict[str, Contender] = {
        "torch": lambda: torch.sum(a, 0, out=out),
        "weft": lambda: function(a, c),
    }
    return Benchmark("column_sum", f"{m}x{n}", contenders, c, lambda: a.double().sum(0), 4 * m * n)


def bmm_benchmarks(batch: int = 64, n: int = 512) -> Benchmark:
    a, b, c, out = random(batch, n, n), random(batch, n, n), random(batch, n, n), random(batch, n, n)
    function = compiled(matmul.batched_matmul(batch, n, n, n))
    warps = compiled(matmul.batched_matmul_warps(batch, n, n, n))
    contenders: dict[str, Contender] = {
        "torch": lambda: torch.bmm(a, b, out=out),
        "weft": lambda: function(a, b, c),
        "weft warps": lambda: warps(a, b, c),
    }
    moved, flops = 3 * 4 * batch * n * n, 2 * batch * n**3
    return Benchmark("bmm", f"{batch}x{n}^3", contenders, c, lambda: torch.bmm(a, b), moved, flops)


BENCHMARKS: dict[str, Callable[[], Benchmark]] = {
    "add": add_benchmarks,
    "sigmoid": sigmoid_benchmarks,
    "transpose": transpose_benchmarks,
    "row_sum": row_sum_benchmarks,
    "column_sum": column_sum_benchmarks,
    "softmax": softmax_benchmarks,
    "layernorm": layernorm_benchmarks,
    "bmm": bmm_benchmarks,
    "matmul": matmul_benchmarks,
    "matmul_f16": matmul_f16_benchmarks,
}

failures: list[str] = []


def guarded(name: str, run: Callable[[], Any]) -> Any:
    """The result of `run`, None if it fails; failures are reported at the end."""
    try:
        return run()
    except Exception as problem:  # noqa: BLE001 one failure must not stop the rest
        failures.append(f"{name}\n{traceback.format_exc()}")
        print(f"  {name}: FAILED {type(problem).__name__}: {(str(problem).splitlines() or [''])[0][:140]}", flush=True)
        return None


def captured(run: Contender, runs: int) -> Callable[[], Any]:
    """A CUDA graph that repeats `run` without Python, after warm-up runs."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(2):
            run()
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for _ in range(runs):
            run()
    return graph.replay


def seconds(replay: Callable[[], Any], runs: int) -> float:
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    replay()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) * 1e-3 / runs


def error_of(benchmark: Benchmark, run: Contender) -> float:
    """The error of one of weft's contenders."""
    benchmark.result.fill_(float("nan"))
    run()
    return error(benchmark.result, benchmark.expected())


def compare(name: str, make: Callable[[], Benchmark], rounds: int) -> None:
    benchmark = guarded(name, make)
    if benchmark is None:
        return
    print(f"{benchmark.name} {benchmark.shape}", flush=True)
    replays: dict[str, Callable[[], Any]] = {}
    for contender, run in benchmark.contenders.items():
        if contender.startswith("weft"):
            problem = guarded(f"{name}, {contender}", lambda: error_of(benchmark, run))  # noqa: B023
            if problem is None:
                continue
            if not problem < 1e-4:
                print(f"  {contender}: WRONG, error {problem:.2e}")
                failures.append(f"{name}, {contender}: error {problem}")
                continue
        replay = guarded(f"{name}, {contender}", lambda: captured(run, RUNS_IN_A_GRAPH))  # noqa: B023
        if replay is not None:
            replays[contender] = replay
    times = dict.fromkeys(replays, float("inf"))
    for _ in range(rounds):
        for contender, replay in replays.items():
            times[contender] = min(times[contender], seconds(replay, RUNS_IN_A_GRAPH))
    best = min((t for contender, t in times.items() if contender.startswith("weft")), default=None)
    for contender, time_ in times.items():
        rate = f"{benchmark.flops / time_ / 1e12:8.2f} TFLOP/s" if benchmark.flops else ""
        ratio = "" if best is None or contender.startswith("weft") else f"   peer/weft {time_ / best:.3f}"
        bandwidth = f"{benchmark.bytes_moved / time_ / 1e12:6.2f} TB/s"
        print(f"  {contender:34} {time_ * 1e6:10.1f} us {bandwidth} {rate}{ratio}", flush=True)


def call_overhead() -> None:
    """The cost of a call from Python, with arrays on the device."""
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, CUDA {torch.version.cuda}")
    a, b, c = random(1024), random(1024), random(1024)
    function = compiled(elementwise.vector_add(1024))
    for _ in range(100):
        function(a, b, c)
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(1000):
        function(a, b, c)
    middle = time.perf_counter()
    for _ in range(1000):
        torch.add(a, b, out=c)
    ours, theirs = (middle - start) * 1e3, (time.perf_counter() - middle) * 1e3
    print(f"call of vector_add from Python: {ours:.1f} us (torch.add {theirs:.1f} us)")
    torch.cuda.synchronize()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="names of programs, with commas")
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    wanted = set(filter(None, arguments.only.split(",")))
    parts = {name: partial(compare, name, make, arguments.rounds) for name, make in BENCHMARKS.items()}
    parts["call"] = call_overhead
    failed = sum(
        isolated(partial(reported, name, run), name) for name, run in parts.items() if not wanted or name in wanted
    )
    print(f"{failed} failures")
    return min(failed, 100)


def reported(name: str, run: Callable[[], None]) -> int:
    """Run a part, then print the tracebacks of its failures. Returns their number."""
    guarded(name, run)
    for failure in failures:
        print(f"==== {failure}", flush=True)
    return len(failures)


if __name__ == "__main__":
    sys.exit(main())
