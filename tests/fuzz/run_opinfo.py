"""Operators of PyTorch on the sample inputs of its own tests: `python tests/fuzz/run_opinfo.py --every 3`.

Each entry of `op_db` (torch.testing._internal.common_methods_invocations) has sample inputs. A sample is a module that
applies the function of the entry; weft compiles it, and its results are compared with PyTorch's. The outcome is one of

- equal: to 1e-4 (float32), 1e-7 (float64), 2e-2 (bfloat16, float16), exactly for integers and bools; results of random
  functions, uninitialised ones, and places of one of equal elements, are compared by shape and element type, singular
  vectors and eigenvectors by what they determine;
- refused: a `CompileError`, which names what is not supported;
- no export: `torch.export` itself does not trace the sample;
- wrong, or an error of another kind: bugs.

Samples with complex, sparse, quantized or nested tensors, and those for which PyTorch raises, do not count. Entries run
in a process of their own, which is killed after `--seconds` for one entry, so that a crash or an endless loop costs one
entry. `--import-only` stops after the import. `--coverage` compiles nothing: it lists the operators without a
converter, and counts the samples without any of them. `--save FILE` appends the outcomes, a line of JSON each, and
`--table FILE...` prints them as the table of docs/models-pytorch.md. OpInfo needs the package expecttest.
"""

from __future__ import annotations

import argparse
import json
import queue
import subprocess
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any, Final, TypeAlias
from unittest.mock import patch

DTYPES: Final = ("float32", "int64", "bool", "bfloat16", "float64")
TOLERANCES: Final = {"float64": 1e-7, "float32": 1e-4, "bfloat16": 2e-2, "float16": 2e-2}
OUTCOMES: Final = ("equal", "refused", "no export", "wrong", "error", "crash", "timeout")
RANDOM: Final = (
    "bernoulli",
    "dropout",
    "multinomial",
    "normal",
    "rand",
    "uniform",
    "exponential",
    "geometric",
    "cauchy",
    "lowrank",
    "fractional_max_pool",
    "rrelu",
)
_OF_TIES: Final = ("kthvalue", "median", "nanmedian", "mode")
"""Functions that return the place of an element, of which PyTorch leaves open which one of equal elements it is."""
_INEXACT: Final = {"special.bessel_": 1e-5, "special.airy_ai": 1e-8}
"""Functions of which PyTorch's own float64 results have errors up to this: it leaves out the leading 1 of the
denominators of Cephes (`p1evl`)."""
_UNINITIALISED: Final = ("empty", "new_empty", "resize_")


def entries() -> list[Any]:
    from torch.testing._internal.common_methods_invocations import op_db

    return list(op_db)


def label(entry: Any) -> str:
    return f"{entry.name}.{entry.variant_test_name}" if entry.variant_test_name else str(entry.name)


def is_real(value: Any, torch: Any) -> bool:
    if not isinstance(value, torch.Tensor):
        return not isinstance(value, complex)
    return value.layout is torch.strided and not (value.is_complex() or value.is_quantized or value.is_nested)


def copied(tensor: Any) -> Any:
    """A copy with the same strides, unless elements of the tensor share memory."""
    import torch

    if 0 in tensor.stride():
        return tensor.clone()
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype).copy_(tensor)


def at_edges(tensor: Any, dtype: str, count: int) -> Any:
    """A tensor of the element type under test with a third of its elements at the edges of the type, or, in turn, the
    tensor with memory in another order."""
    import torch

    if str(tensor.dtype) != f"torch.{dtype}" or not tensor.numel():
        return tensor
    if count % 2 and tensor.dim():
        return tensor.mT.contiguous().mT if tensor.dim() > 1 else tensor.repeat_interleave(2)[::2]
    if tensor.dtype is torch.bool:
        return tensor
    is_float = tensor.dtype.is_floating_point
    limits = torch.finfo(tensor.dtype) if is_float else torch.iinfo(tensor.dtype)
    values = [limits.max, limits.min, 0, -1, 1]
    if is_float:
        values += [float("nan"), float("inf"), float("-inf"), -0.0, 0.5, -2.5, limits.tiny]
    generator = torch.Generator().manual_seed(count)
    chosen = torch.randint(3 * len(values), tensor.shape, generator=generator)
    edges = torch.tensor(values, dtype=tensor.dtype)
    return torch.where(chosen < len(values), edges[chosen.clamp(max=len(values) - 1)], tensor)


def samples(entry: Any, dtype: str, most: int, edges: bool = False) -> Iterator[tuple[Any, Any, list[Any]]]:
    """A function of tensors, the tensors, and the flat results of PyTorch."""
    import torch
    from torch.utils import _pytree as pytree

    found = entry.sample_inputs("cpu", getattr(torch, dtype), requires_grad=False)
    for count, sample in enumerate(found):
        if count >= most:
            return
        leaves, spec = pytree.tree_flatten((sample.input, tuple(sample.args), dict(sample.kwargs)))
        if not all(is_real(leaf, torch) for leaf in leaves):
            continue
        places = [at for at, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
        tensors = [copied(leaves[at].detach()) for at in places]
        tensors = [at_edges(tensor, dtype, count) for tensor in tensors] if edges else tensors

        def function(*given: Any, leaves: Any = leaves, places: Any = places, spec: Any = spec) -> Any:
            merged = list(leaves)
            for at, tensor in zip(places, given, strict=True):
                merged[at] = tensor
            first, args, keywords = pytree.tree_unflatten(merged, spec)
            return entry.op(first, *args, **keywords)

        try:
            with torch.no_grad():
                expected = pytree.tree_leaves(function(*(copied(tensor) for tensor in tensors)))
        except Exception:  # noqa: BLE001 (PyTorch refuses its own sample)
            continue
        if not all(is_real(value, torch) for value in expected):
            continue
        yield function, tensors, expected


def determined(name: str, results: Sequence[Any]) -> list[Any]:
    """Results without what an operator leaves open: of singular values and eigenvalues the signs of vectors, and the
    basis of those of equal values. The matrix itself and the products of the vectors are compared. Elements of the
    exponential of a matrix are parts of the largest one, to which their errors are proportional."""
    if name == "matrix_exp":
        return [result / result.abs().amax((-2, -1), keepdim=True).clamp(min=1e-30) for result in results]
    if name == "linalg.eigh":
        values, vectors = results
        return [values, vectors * values[..., None, :] @ vectors.mT, vectors.mT @ vectors]
    if name not in ("svd", "linalg.svd"):
        return list(results)
    left, values, right = results
    right, count = right.mT if name == "svd" else right, values.shape[-1]
    product = left[..., :count] * values[..., None, :] @ right[..., :count, :]
    return [values, product, left.mT @ left, right @ right.mT]


Sample: TypeAlias = tuple[Any, Sequence[Any], Sequence[Any]]
"""A function of tensors, the tensors, and the flat results of PyTorch."""
Outcome: TypeAlias = tuple[str, str]


def outcomes(entry: Any, batch: Sequence[Sample], compiles: bool) -> list[Outcome]:
    """The outcomes of samples of an entry: as one program, because each export and compilation has a fixed cost, and of
    halves of them if not all are equal."""
    if len(batch) == 1:
        function, tensors, expected = batch[0]
        found = results(function, tensors, compiles)
        if not isinstance(found, list):
            return [found]
        judged = compared(entry.name, found, expected)
        is_right = judged[0] == "wrong" and is_as_good(batch[0], found)
        return [("equal", "by another criterion") if is_right else judged]
    ends = list(accumulate(len(tensors) for _, tensors, _ in batch))

    def together(*given: Any) -> list[Any]:
        return [
            function(*given[end - len(tensors) : end]) for (function, tensors, _), end in zip(batch, ends, strict=True)
        ]

    found = results(together, [tensor for _, tensors, _ in batch for tensor in tensors], compiles)
    if isinstance(found, list) and len(found) == sum(len(expected) for _, _, expected in batch):
        left = iter(found)
        judged = [compared(entry.name, [next(left) for _ in expected], expected) for _, _, expected in batch]
        if all(kind == "equal" for kind, _ in judged):
            return judged
    half = len(batch) // 2
    return [*outcomes(entry, batch[:half], compiles), *outcomes(entry, batch[half:], compiles)]


def results(function: Any, tensors: Sequence[Any], compiles: bool) -> list[Any] | Outcome:
    """The flat results of a function compiled by weft, or why there are none. None of those of a function that is only
    imported."""
    import torch
    from torch.utils import _pytree as pytree

    import weft

    class Model(torch.nn.Module):
        def forward(self, *given: Any) -> Any:
            return function(*given)

    given = tuple(copied(tensor) for tensor in tensors)
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            program = torch.export.export(Model().eval(), given)
    except Exception as error:  # noqa: BLE001
        return "no export", f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    try:
        if not compiles:
            weft.from_torch(program)
            return "equal", ""
        return pytree.tree_leaves(weft.compile(program)(*(copied(tensor) for tensor in tensors)))
    except weft.CompileError as error:
        lines = str(error).splitlines()
        return "refused", (lines[1] if len(lines) > 1 and "not supported" in lines[0] else lines[0]).strip()
    except Exception as error:  # noqa: BLE001
        return "error", f"{type(error).__name__}: {error}".splitlines()[0]


def compared(name: str, found: Sequence[Any], expected: Sequence[Any]) -> Outcome:
    """Whether results of the function `name` are those of PyTorch."""
    import torch

    shapes = [[(t.shape, t.dtype) if isinstance(t, torch.Tensor) else t for t in part] for part in (found, expected)]
    if shapes[0] == shapes[1]:
        found, expected = determined(name, found), determined(name, expected)
    is_random = any(word in name for word in (*RANDOM, *_UNINITIALISED))
    for position, (one, other) in enumerate(zip(found, expected, strict=True)):
        if not isinstance(other, torch.Tensor):
            if one != other:
                return "wrong", f"{one} for {other}"
            continue
        if (one.shape, one.dtype) != (other.shape, other.dtype):
            return "wrong", f"{tuple(one.shape)} {one.dtype} for {tuple(other.shape)} {other.dtype}"
        tolerance = TOLERANCES.get(str(other.dtype).removeprefix("torch."), 0.0)
        tolerance = max([tolerance, *(error for word, error in _INEXACT.items() if name.startswith(word))])
        try:
            if not is_random and not (position == 1 and name in _OF_TIES):
                torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance, equal_nan=True)
        except AssertionError as error:
            return "wrong", " ".join(str(error).split())[:300]
    return "equal", ""


def is_as_good(sample: Sample, found: Sequence[Any]) -> bool:
    """Whether results that differ from PyTorch's are right, too: those of a function that draws random numbers, places
    of one of equal elements, and results whose errors, relative to PyTorch's on float64, are at most PyTorch's own.
    Rounded intermediate results with cancellation, or that overflow, differ by more than any tolerance."""
    import torch
    from torch.utils import _pytree as pytree

    function, tensors, expected = sample
    if [(t.shape, t.dtype) for t in found] != [(t.shape, t.dtype) for t in expected]:
        return False
    wide = [tensor.double() if tensor.dtype.is_floating_point else copied(tensor) for tensor in tensors]
    with torch.no_grad():
        again: list[list[Any]] = []
        for seed in range(8):
            torch.manual_seed(seed)
            with patch.object(torch, "manual_seed"):  # functions of OpInfo set the seed
                again.append(pytree.tree_leaves(function(*map(copied, tensors))))
        try:
            exact = pytree.tree_leaves(function(*wide))
        except Exception:  # noqa: BLE001 (the function has an argument of the narrow type)
            exact = list(expected)
    for position, (one, other, truth) in enumerate(zip(found, expected, exact, strict=True)):
        if not all(torch.allclose(other.double(), run[position].double(), equal_nan=True) for run in again):
            continue
        if not other.dtype.is_floating_point:
            if not torch.equal(one, other) and not has_equal_elements(tensors[0], one, other):
                return False
            continue
        own, theirs = ((result.double() - truth).abs().nan_to_num(nan=torch.inf) for result in (one, other))
        if own.numel() and not bool(own.max() <= theirs.max()):
            return False
    return True


def has_equal_elements(data: Any, places: Any, others: Any) -> bool:
    """Whether two tensors of places along an axis of some data lead to the same elements."""
    import torch

    if places.dtype is not torch.int64 or places.dim() != data.dim():
        return False
    for axis in range(data.dim()):
        with suppress(RuntimeError, IndexError):  # of other extents, or places beyond this axis
            one, other = data.gather(axis, places).double(), data.gather(axis, others).double()
            if torch.allclose(one, other, rtol=0, atol=0, equal_nan=True):
                return True
    return False


def work(units: Sequence[str], most: int, compiles: bool, edges: bool) -> None:
    """Print a line of JSON before and after each unit: an entry and element types, such as `add:float32,bool`."""
    known = {label(entry): entry for entry in entries()}
    for unit in units:
        name, dtypes = unit.split(":")
        print(json.dumps({"begin": unit}), flush=True)
        found: list[Sample] = []
        of: list[str] = []
        for dtype in dtypes.split(","):
            with suppress(Exception):  # there are no samples of this element type, or no more
                for sample in samples(known[name], dtype, most, edges):
                    found.append(sample)
                    of.append(dtype)
        judged = outcomes(known[name], found, compiles) if found else []
        lines = [{"operator": name, "dtype": dtype, "outcome": one} for dtype, one in zip(of, judged, strict=True)]
        print(json.dumps({"end": lines}), flush=True)


def missing_operators(function: Any, tensors: Sequence[Any]) -> set[str]:
    """The operators of a sample, decomposed as far as importing does, that have no converter."""
    import torch
    from torch.utils import _pytree as pytree
    from torch.utils._python_dispatch import TorchDispatchMode

    from weft.frontends.torch.complex_numbers import complex_converter
    from weft.frontends.torch.importing import CHECKS
    from weft.frontends.torch.symbols import UnsupportedError

    rules, known = importing_rules()
    missing: set[str] = set()

    class Listing(TorchDispatchMode):
        def __torch_dispatch__(self, op: Any, types: Any, args: Any = (), keywords: Any = None) -> Any:
            name, keywords = str(op), keywords or {}
            if name not in known and name not in CHECKS and "fft" not in name:
                for decomposed in (rules.get(op), op.decompose):
                    try:
                        with self:
                            found = NotImplemented if decomposed is None else decomposed(*args, **keywords)
                    except Exception:  # noqa: BLE001 (a rule for tensors without data)
                        continue
                    if found is not NotImplemented:
                        return found
            found = op(*args, **keywords)
            leaves = pytree.tree_leaves((args, keywords, found))
            if any(isinstance(leaf, torch.Tensor) and leaf.is_complex() for leaf in leaves):
                try:
                    complex_converter(name)
                except UnsupportedError:
                    missing.add(name)
            elif name not in known and name not in CHECKS and not name.split(".")[1].endswith("_"):
                missing.add(name)  # operators in place become others
            return found

    with torch.no_grad(), Listing():
        function(*(copied(tensor) for tensor in tensors))
    return missing


@cache
def importing_rules() -> tuple[Any, frozenset[str]]:
    """The decompositions that importing applies, and the operators with a converter."""
    import weft
    from weft.frontends.torch.exporting import decompositions

    return decompositions(), frozenset(weft.torch.operators())


def coverage(names: Sequence[str], dtypes: Sequence[str], most: int) -> None:
    """Print how many samples consist of operators with a converter, and the others."""
    known = {label(entry): entry for entry in entries()}
    for dtype in dtypes:
        lacks: Counter[str] = Counter()
        count = covered = 0
        for name in names:
            try:
                for function, tensors, _ in samples(known[name], dtype, most):
                    found = missing_operators(function, tensors)
                    lacks.update(found)
                    count, covered = count + 1, covered + (not found)
            except Exception:  # noqa: BLE001 (there are no samples of this element type)
                continue
        print(f"{dtype}: {covered} of {count} samples ({100 * covered / max(count, 1):.1f} %)")
        for operator, times in lacks.most_common():
            print(f"{times:5} {operator}")


def run(names: Sequence[str], arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """All outcomes, by workers that are replaced when they crash or exceed their time. The element types of such an
    entry are then run one by one. Entries with saved outcomes are not repeated."""
    kept: list[dict[str, Any]] = []
    if arguments.save and arguments.save.exists():
        kept = [json.loads(line) for line in arguments.save.read_text().splitlines()]

    def keep(results: Sequence[dict[str, Any]]) -> None:
        kept.extend(results)
        if arguments.save:
            with arguments.save.open("a") as file:
                file.writelines(json.dumps(result) + "\n" for result in results)

    done = {result["operator"] for result in kept}
    left = [f"{name}:{','.join(arguments.dtypes)}" for name in names if name not in done]
    while left:
        command = [sys.executable, __file__, "--worker", "--samples", str(arguments.samples)]
        command += ["--import-only"] * arguments.import_only + ["--edges"] * arguments.edges
        worker = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert worker.stdin is not None and worker.stdout is not None
        worker.stdin.write("\n".join(left))
        worker.stdin.close()
        lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()

        def read(stream: Any = worker.stdout, lines: Any = lines) -> None:
            for line in stream:
                lines.put(line)
            lines.put(None)

        threading.Thread(target=read, daemon=True).start()
        current, begun, problem = "", time.monotonic(), ""
        while True:
            try:
                line = lines.get(timeout=max(begun + arguments.seconds - time.monotonic(), 0.01))
            except queue.Empty:
                worker.kill()
                problem = "timeout"
                break
            if line is None:
                problem = "crash" if worker.wait() else ""
                break
            entry = json.loads(line)
            if "begin" in entry:
                current, begun = entry["begin"], time.monotonic()
            else:
                keep(entry["end"])
                left.remove(current)
                current = ""
        worker.wait()
        if not problem:
            return kept
        if not current:
            raise SystemExit(f"a worker ended with status {worker.returncode} before its first entry")
        name, dtypes = current.split(":")
        left.remove(current)
        if "," in dtypes:
            left[:0] = [f"{name}:{dtype}" for dtype in dtypes.split(",")]
        else:
            keep([{"operator": name, "dtype": dtypes, "outcome": [problem, f"status {worker.returncode}"]}])
    return kept


def summary(results: Sequence[dict[str, Any]]) -> str:
    counts = Counter(result["outcome"][0] for result in results)
    operators = {result["operator"] for result in results}
    whole = {o for o in operators if all(r["outcome"][0] == "equal" for r in results if r["operator"] == o)}
    parts = ", ".join(f"{counts[kind]} {kind}" for kind in OUTCOMES if counts[kind])
    share = 100 * counts["equal"] / max(len(results), 1)
    return f"{len(results)} samples: {parts} ({share:.1f} % equal); {len(whole)} of {len(operators)} operators wholly"


def table(results: Sequence[dict[str, Any]]) -> str:
    """The operators that are not equal for all samples, with the reason of most others."""
    lines = ["| operator | samples | equal | others |", "|---|---|---|---|"]
    for operator in sorted({result["operator"] for result in results}):
        own = [result["outcome"] for result in results if result["operator"] == operator]
        others = Counter((kind, reason) for kind, reason in own if kind != "equal")
        if others:
            (kind, reason), _ = others.most_common(1)[0]
            equal = sum(kind == "equal" for kind, _ in own)
            lines.append(f"| `{operator}` | {len(own)} | {equal} | {kind}: {reason[:90].replace('|', '/')} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="entries, such as std or nn.functional.conv2d; all for none")
    parser.add_argument("--every", type=int, default=1, help="each N-th entry")
    parser.add_argument("--start", type=int, default=0, help="the first entry")
    parser.add_argument("--dtypes", default=",".join(DTYPES), type=lambda text: text.split(","))
    parser.add_argument("--samples", type=int, default=1000, help="samples of an entry and element type at most")
    parser.add_argument("--seconds", type=float, default=300.0, help="for an entry")
    parser.add_argument("--import-only", action="store_true")
    parser.add_argument("--coverage", action="store_true", help="list operators without a converter, compile nothing")
    parser.add_argument("--edges", action="store_true", help="NaN, infinities, extreme numbers, strided tensors")
    parser.add_argument("--save", type=Path, help="append outcomes, and leave out entries that have some")
    parser.add_argument("--table", type=Path, nargs="+", help="print saved outcomes as a table")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        work(sys.stdin.read().split(), arguments.samples, not arguments.import_only, arguments.edges)
        return 0
    if arguments.table:
        results = [json.loads(line) for path in arguments.table for line in path.read_text().splitlines()]
        print(f"{summary(results)}\n\n{table(results)}")
        return 0
    known = [label(entry) for entry in entries()]
    names = [name for name in known if name.split(".")[0] in arguments.names or name in arguments.names]
    names = names if arguments.names else known[arguments.start :: arguments.every]
    if arguments.coverage:
        coverage(names, arguments.dtypes, arguments.samples)
        return 0
    results = run(names, arguments)
    reasons = Counter((r["outcome"][0], r["outcome"][1]) for r in results if r["outcome"][0] != "equal")
    for (kind, reason), count in reasons.most_common():
        places = sorted({r["operator"] for r in results if list(r["outcome"]) == [kind, reason]})
        print(f"{count:5} {kind}: {reason[:200]} ({', '.join(places[:4])})")
    print(summary(results))
    return int(any(r["outcome"][0] in ("wrong", "error", "crash", "timeout") for r in results))


if __name__ == "__main__":
    sys.exit(main())
