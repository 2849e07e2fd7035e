"""Measures a whole model: contenders with equal results take turns; then each runs alone in a process."""

from __future__ import annotations

import sys
import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from weft.runtime.aligned_arrays import aligned
from weft_bench.contender import Array, WrongResult
from weft_bench.model_contenders import (
    ONNXRUNTIME,
    OPENVINO,
    TORCH,
    WEFT,
    Loaded,
    Source,
    contenders_of,
    export,
    is_python,
    load,
    load_python,
    missing_peers,
    peer_of,
    precision_of,
)
from weft_bench.rounds import take_turns

BUDGET = 60.0
"""Seconds of turns per contender."""
_NARROW_TOLERANCE = 50
"""The tolerance for factors of bf16 and f16, relative to that for float32."""
_ARRAYS, _EXPORTED = "inputs.npz", "model.onnx"


def measure(request: Mapping[str, Any]) -> Generator[dict[str, Any]]:
    """Yields one event: the seconds of each contender's turns, or with `request["alone"]` the start-up cost of one
    contender. `request` has `file`, `against`, `threads`, `rounds`, `target`, `inputs`, `shapes`, `seed`, `tolerance`
    and `folder`, in which inputs and exported models are stored for later processes.
    """
    yield _alone(request) if request.get("alone") else _together(request)


def _together(request: Mapping[str, Any]) -> dict[str, Any]:
    threads, target = request["threads"], request["target"]
    missing = missing_peers(request["file"], request["against"])
    peers = [peer for peer in request["against"] if peer not in missing]
    source = source_of(request, peers)
    contenders: dict[str, Loaded] = {}
    for name in contenders_of(peers, request["precisions"]):
        try:
            contenders[name] = load(name, source, target, threads)
        except Exception as error:
            # A peer that cannot read the model is skipped; peers raise their own error classes.
            if peer_of(name) == WEFT:
                raise
            missing[name] = f"{type(error).__name__}: {str(error).strip().splitlines()[0]}"
    differences = compared({name: loaded.results() for name, loaded in contenders.items()}, request["tolerance"])
    *_, times = take_turns({name: each.call for name, each in contenders.items()}, request["rounds"], threads, BUDGET)
    return {
        "event": "together",
        "seconds": {name: each.seconds for name, each in times.items()},
        "differences": differences,
        "temporary_bytes": next(iter(contenders.values())).temporary_bytes(),
        "constant_bytes": {name: each.constant_bytes() for name, each in contenders.items()},
        "left out": missing,
    }


def compared(results: Mapping[str, Sequence[Array]], tolerance: float) -> dict[str, float]:
    """The greatest difference of each contender from the reference, relative to the largest element of an output. The
    reference is PyTorch, else onnxruntime, else OpenVINO, else weft, in float32 if they have a precision. Raises
    `WrongResult` beyond the tolerance, which is 50 times as large for 16-bit factors.
    """
    wide = [name for name in results if precision_of(name) in ("", "f32")] or [*results]
    reference = next(
        (name for peer in (TORCH, ONNXRUNTIME, OPENVINO) for name in wide if peer_of(name) == peer), wide[0]
    )
    found: dict[str, float] = {}
    for name, arrays in results.items():
        if name == reference:
            continue
        shapes, wanted = ([array.shape for array in each] for each in (arrays, results[reference]))
        if shapes != wanted:
            raise WrongResult(f"{name} computed outputs of shapes {shapes}, {reference} {wanted}")
        found[name] = max(map(_difference, arrays, results[reference]), default=0.0)
        allowed = tolerance * (_NARROW_TOLERANCE if precision_of(name) in ("bf16", "f16") else 1)
        if not found[name] <= allowed:
            raise WrongResult(
                f"{name} and {reference} differ by {found[name]:.2g} of the largest element, tolerated are "
                f"{allowed:.2g} (--tolerance)"
            )
    return found


def _difference(a: Array, b: Array) -> float:
    """Infinite if exactly one is NaN."""
    if not b.size:
        return 0.0
    a, b = a.astype(np.float64), b.astype(np.float64)
    with np.errstate(invalid="ignore"):
        apart = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(a - b))
    finite = np.abs(b[np.isfinite(b)])
    largest = float(finite.max()) if finite.size else 0.0
    worst = float(np.where(np.isnan(apart), np.inf, apart).max())
    return worst / largest if largest else worst


def _alone(request: Mapping[str, Any]) -> dict[str, Any]:
    """Load one contender and run it once: the seconds until the first result, and the additional memory."""
    source = source_of(request, [])
    before = _peak_bytes()
    start = time.perf_counter()
    loaded = load(request["alone"], source, request["target"], request["threads"], cache=request["cache"])
    loaded.call()
    seconds = time.perf_counter() - start
    peak = _peak_bytes()
    return {
        "event": "alone",
        "name": request["alone"],
        "is_cached": request["cache"],
        "seconds": seconds,
        "bytes": None if before is None or peak is None else peak - before,
    }


def source_of(request: Mapping[str, Any], peers: Sequence[str]) -> Source:
    """The model of a request with its inputs, exported to ONNX if a peer needs it."""
    file, folder = request["file"], Path(request["folder"])
    arrays, exported = folder / _ARRAYS, folder / _EXPORTED
    if is_python(file):
        source = load_python(file)
        if not exported.exists() and any(peer in (ONNXRUNTIME, OPENVINO) for peer in peers):
            return export(source, exported)
        if exported.exists():
            return replace(source, onnx=exported, arrays=[aligned(tensor.numpy()) for tensor in source.tensors])
        return source
    if not arrays.exists():
        np.savez(arrays, *_inputs(request))
    with np.load(arrays) as stored:
        inputs = [aligned(stored[name]) for name in stored.files]
    onnx = Path(file) if file.endswith(".onnx") else None
    return Source(Path(file), onnx, arrays=inputs, shapes=tuple(request["shapes"]))


def _inputs(request: Mapping[str, Any]) -> list[Array]:
    """Arrays for the inputs of a file: given ones, else random ones."""
    from weft.driver.build import build
    from weft.driver.programs import parse_file
    from weft.interp.arguments import needs_positive
    from weft.tools.arrays import Request, assigned, assignments, make_arguments, sizes_note

    module = parse_file(Path(request["file"]), assigned(request["shapes"], "--shape"))
    signature = build(module, request["target"])["main"].signature
    names = [spec.name for spec in signature.arrays]
    given = Request(
        assignments(request["inputs"], "--input", names, "input"),
        request["seed"],
        positive=needs_positive(module),
    )
    chosen: dict[str, int] = {}
    values = make_arguments(signature, given, chosen)
    if chosen:
        print(sizes_note(chosen), file=sys.stderr)
    return [np.asarray(values[spec.name]) for spec in signature.arrays if spec.access != "write"]


def _peak_bytes() -> int | None:
    """Peak memory of this process; None if the system does not report it."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM")), None)
