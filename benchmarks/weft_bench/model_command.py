"""`weft bench FILE`: a whole model against onnxruntime, OpenVINO and PyTorch.

  weft bench model.onnx --against onnxruntime,openvino --plot bench.png
  weft bench model.onnx --shape x=1x3x224x224 --input ids=ids.npy --threads 1 --save bench.md
  weft bench model.onnx --precision bf16,f32 --against onnxruntime,openvino
  weft bench nets.py:resnet --against onnxruntime,openvino,torch,torch.compile

In Python, a model is a function without parameters that returns a torch.nn.Module and a tuple of example inputs. The
peers get PyTorch's ONNX export of it. A ratio is the time of the peer over weft's: above 1, weft is faster. Results are
compared before anything is timed. Peers that are not installed, or cannot read the model, are skipped.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass, field
from importlib import import_module
from tempfile import TemporaryDirectory
from typing import Any

from weft.support.errors import CompileError
from weft.support.precision import check_precision, parse_precision
from weft.support.target import Target
from weft.tools.failures import INTERRUPTED
from weft.tools.shapes import add_shape_argument
from weft_bench.child import events
from weft_bench.ladder_report import require_matplotlib
from weft_bench.model_contenders import PEERS, WEFT, checked_file, contenders_of, missing_peers, peer_of
from weft_bench.options import positive, positives, progress, words
from weft_bench.report import Report
from weft_bench.rounds import Times
from weft_bench.table import Table, duration


def _prepared_name(name: str, is_cached: bool) -> str:
    """The name of a contender that is loaded alone."""
    return f"{name}, from its cache" if is_cached and peer_of(name) == WEFT else name


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", help="the model: a file .onnx or .mlir, or FILE.py:FUNCTION")
    parser.add_argument("--against", type=words, default=list(PEERS), metavar="PEER,...", help=f"of {', '.join(PEERS)}")
    parser.add_argument("--threads", type=positives, default=[1, 2], metavar="1,2", help="numbers (default 1,2)")
    parser.add_argument("--rounds", type=positive, default=20, metavar="N", help="turns of each contender (default 20)")
    parser.add_argument("--target", default="llvm", help='such as "llvm -mcpu=haswell" (default: this machine)')
    parser.add_argument("--input", metavar="NAME=FILE.npy", action="append", default=[], help="else random numbers")
    add_shape_argument(parser)
    parser.add_argument("--seed", type=int, default=0, help="of the random inputs (default 0)")
    parser.add_argument(
        "--tolerance",
        type=float,
        default=1e-3,
        metavar="X",
        help="results may differ by that part of the largest element (default 0.001)",
    )
    parser.add_argument(
        "--precision",
        type=words,
        default=[],
        metavar="bf16,f32",
        help="precisions of weft and OpenVINO, each a contender (default: that of the model; OpenVINO in f32)",
    )
    parser.add_argument("--times-only", action="store_true", help="leave out preparing and memory")
    parser.add_argument("--plot", metavar="FILE", help="draw a picture; needs matplotlib")
    parser.add_argument("--save", metavar="FILE.md", help="write the tables as Markdown")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")


def run(arguments: argparse.Namespace) -> int:
    """Raises `CompileError` and `OSError`."""
    checked_file(arguments.file)
    missing_peers(arguments.file, arguments.against)
    for precision in arguments.precision:
        check_precision(parse_precision(precision, "--precision"), Target.parse(arguments.target))
    if arguments.plot is not None:
        require_matplotlib()
    result = ModelResult(arguments.file)
    status = 0
    with TemporaryDirectory(prefix="weft_bench_") as folder:
        try:
            _measure(arguments, folder, result)
        except KeyboardInterrupt:
            status = INTERRUPTED
    report = result.report(status != 0)
    print(json.dumps({**report.head(), **result.as_json()}) if arguments.json else report.text())
    if arguments.save:
        report.save(arguments.save)
    if arguments.plot and result.times:
        result.plot(arguments.plot, report.head()["processor"])
    return status


def _measure(arguments: argparse.Namespace, folder: str, result: ModelResult) -> None:
    """Measure all contenders together for each number of threads, then each alone with the last of these numbers."""
    request: dict[str, Any] = {
        "what": "model",
        "file": arguments.file,
        "against": arguments.against,
        "precisions": arguments.precision,
        "rounds": arguments.rounds,
        "target": arguments.target,
        "inputs": arguments.input,
        "shapes": arguments.shape,
        "seed": arguments.seed,
        "tolerance": arguments.tolerance,
        "folder": folder,
    }
    for threads in arguments.threads:
        progress(f"measuring with {threads} thread{'s' * (threads > 1)} ...")
        for event in events({**request, "threads": threads}):
            result.take(event, threads)
    if arguments.times_only:
        return
    threads = arguments.threads[-1]
    present = [
        name
        for name in contenders_of(arguments.against, arguments.precision)
        if not {name, peer_of(name)} & {*result.left_out}
    ]
    cold = [name for name in present if peer_of(name) == WEFT]
    for name, is_cached in [*((name, False) for name in cold), *((name, True) for name in present)]:
        progress(f"preparing {_prepared_name(name, is_cached)} ...")
        for event in events({**request, "threads": threads, "alone": name, "cache": is_cached}):
            result.take(event, threads)


@dataclass
class ModelResult:
    """The results so far."""

    file: str
    times: dict[int, dict[str, Times]] = field(default_factory=dict[int, "dict[str, Times]"])
    """By number of threads, then by contender."""
    differences: dict[str, float] = field(default_factory=dict[str, float])
    temporary_bytes: int | None = None
    constant_bytes: dict[str, int | None] = field(default_factory=dict[str, "int | None"])
    """Bytes of the weights by contender, known for weft."""
    left_out: dict[str, str] = field(default_factory=dict[str, str])
    prepared: dict[str, tuple[float, int | None]] = field(default_factory=dict[str, "tuple[float, int | None]"])
    """Seconds and bytes until the first result, by contender."""

    def take(self, event: dict[str, Any], threads: int) -> None:
        """Record an event of a measuring process."""
        if event["event"] == "alone":
            name = _prepared_name(event["name"], event["is_cached"])
            self.prepared[name] = (event["seconds"], event["bytes"])
            return
        self.times[threads] = {name: Times(tuple(seconds)) for name, seconds in event["seconds"].items()}
        for name, difference in event["differences"].items():
            self.differences[name] = max(difference, self.differences.get(name, 0.0))
        self.temporary_bytes = event["temporary_bytes"]
        self.constant_bytes = event["constant_bytes"]
        self.left_out.update(event["left out"])

    def report(self, interrupted: bool) -> Report:
        """The tables, and the skipped contenders."""
        report = Report(f"Model {self.file}", interrupted)
        if self.times:
            caption = (
                "Time of a call; ratio: time of the contender / that of the first; error: greatest difference from the "
                "reference / the largest element"
            )
            report.tables.append((caption, self._times()))
            caption = "Latency of a call over all turns, and calls per second at the median"
            report.tables.append((caption, self._latencies()))
        if self.prepared:
            caption = "Alone in a process, until the first result: loading and compiling, and the memory for that"
            report.tables.append((caption, self._prepared()))
        if self.temporary_bytes is not None:
            report.notes.append(f"values between weft's kernels share {_mib(self.temporary_bytes)}")
        apart = ", ".join(f"{name} {difference:.1e}" for name, difference in self.differences.items())
        report.notes.append(
            f"results: greatest difference from the reference over the largest element: {apart}"
            if apart
            else "results were not compared: there is no peer"
        )
        report.notes += [f"left out: {peer}, {reason}" for peer, reason in self.left_out.items()]
        return report

    def _times(self) -> Table:
        table = Table(("contender", "threads", "time", "spread", "ratio", "error", "weights"))
        for threads, times in self.times.items():
            first = next(iter(times))
            for name, each in times.items():
                ratio = f"{each.min / times[first].min:.2f}" if name != first else ""
                error, size = self.differences.get(name), self.constant_bytes.get(name)
                shown = ("" if error is None else f"{error:.1e}", "" if size is None else _mib(size))
                table.add(name, str(threads), duration(each.min), f"{each.spread:.2f}", ratio, *shown)
        return table

    def _latencies(self) -> Table:
        table = Table(("contender", "threads", "median", "p90", "p99", "calls/s"))
        for threads, times in self.times.items():
            for name, each in times.items():
                shown = [duration(each.quantile(fraction)) for fraction in (0.5, 0.9, 0.99)]
                table.add(name, str(threads), *shown, f"{1.0 / each.median:.4g}")
        return table

    def _prepared(self) -> Table:
        table = Table(("contender", "ready after", "memory"))
        for name, (seconds, size) in self.prepared.items():
            table.add(name, duration(seconds), "" if size is None else _mib(size))
        return table

    def as_json(self) -> dict[str, Any]:
        return {
            "model": self.file,
            "seconds": {
                threads: {name: each.seconds for name, each in times.items()} for threads, times in self.times.items()
            },
            "latency": {
                threads: {name: each.summary() for name, each in times.items()} for threads, times in self.times.items()
            },
            "prepared": {name: {"seconds": s, "bytes": size} for name, (s, size) in self.prepared.items()},
            "differences": self.differences,
            "temporary bytes": self.temporary_bytes,
            "constant bytes": self.constant_bytes,
            "left out": self.left_out,
        }

    def plot(self, file: str, machine: str) -> None:
        """Plot the times as bars, a group per number of threads. Raises `CompileError` for an unknown picture
        format.
        """
        figure = import_module("matplotlib.figure").Figure(figsize=(9, 4.5), layout="constrained")
        axes = figure.subplots()
        names = list(dict.fromkeys(name for times in self.times.values() for name in times))
        width = 0.8 / len(names)
        for at, name in enumerate(names):
            places = [group + (at - (len(names) - 1) / 2) * width for group in range(len(self.times))]
            heights = [times[name].min * 1e3 if name in times else 0.0 for times in self.times.values()]
            axes.bar_label(axes.bar(places, heights, width, label=name), [f"{height:.3g}" for height in heights])
        axes.set_xticks(range(len(self.times)), [f"{n} thread{'s' * (n > 1)}" for n in self.times])
        axes.set_title(f"{self.file}\n{machine}", fontsize="medium")
        axes.set_ylabel("ms per call")
        figure.legend(loc="outside right upper")
        try:
            figure.savefig(file, dpi=150)
        except ValueError as error:
            raise CompileError(f"--plot {file}: {error}") from error


def _mib(size: int) -> str:
    return f"{size / 2**20:.1f} MiB"
