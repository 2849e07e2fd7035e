"""Judges the ONNX importer by the node tests that the package `onnx` ships.

    python tests/helpers/onnx_cases.py --operator Conv --operator Relu     # each case that is not passed, and the table
    python tests/helpers/onnx_cases.py --write                             # all, into the table of docs/models.md
    python tests/helpers/onnx_cases.py --table --target interpreter        # without compiling: a minute
    python tests/helpers/onnx_cases.py --kind simple --kind light          # the models of the package, see KINDS
    python tests/helpers/onnx_cases.py --symbolic                          # a symbol for each axis of each input
    python tests/helpers/onnx_cases.py --symbolic --write                  # all, into the other table of docs/models.md

A case that needs the values of inputs at import (shapes, axes, ...), which the node tests pass as arguments, is
imported again with these bound by `constants`.
"""

from __future__ import annotations

import argparse
import re
import traceback
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
from onnx import ModelProto, TensorProto

import weft
from weft.interp.errors import InterpreterError
from weft.support.machine import host_cpu

VERDICTS = ("passed", "bound", "refused", "wrong")
"""`bound`: passed with values of inputs known at import. `wrong`: values that differ, and crashes."""


TWO_ULP = {"float16": 2.0**-9, "bfloat16": 2.0**-6}
"""Two units in the last place, as the runner of `onnx.backend.test` allows them for bfloat16: weft forms sums and
products in float32 where the references round each step."""

SPECTRAL = ("DFT", "STFT")
"""Operators whose expected values NumPy computes in float32: what cancels in a sum leaves a unit in the last place of
the largest element, as 2e-7 in the place of 0."""


KINDS = ("node", "simple", "light", "pytorch-operator", "pytorch-converted")
"""Tests of the package: nodes, small graphs, nets whose weights are constants, and what PyTorch exported."""


@dataclass(frozen=True)
class ModelCase:
    """A case of a model in a file, with the attributes that cases of nodes have."""

    name: str
    model: ModelProto
    data_sets: Sequence[tuple[Sequence[Any], Sequence[Any]]]
    rtol: float
    atol: float
    operator: str = ""
    is_symbolic: bool = False
    """Whether each axis of an input has a symbol."""


@dataclass(frozen=True)
class Verdict:
    case: str
    operator: str
    kind: str
    message: str = ""

    @property
    def reasons(self) -> list[str]:
        """Why nodes were refused, without where these are."""
        lines = [line.strip() for line in self.message.splitlines()[1:]] or [self.message]
        found = [re.sub(r" \(opset \d+\)|, at [^,]*(, [^ ]+)*$", "", line) for line in lines]
        return [
            text.removeprefix(f"{self.operator}: ") for text in found if text and not text.startswith("fallback=True")
        ]


def node_cases() -> list[Any]:
    """All cases."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return load_model_tests(kind="node")


def model_cases(kind: str) -> list[ModelCase]:
    """The cases of a kind whose models are files of the package."""
    from onnx.backend.test.loader import DATA_DIR

    folder = Path(DATA_DIR) / kind
    if kind == "light":
        return [light_case(file) for file in sorted(folder.glob("*.onnx"))]
    found: list[ModelCase] = []
    for place in sorted(path.parent for path in folder.glob("*/model.onnx")):
        model = onnx.load(place / "model.onnx")
        data_sets = [
            tuple(
                [loaded(data / f"{what}_{at}.pb", proto.type) for at, proto in enumerate(protos) if has(data, what, at)]
                for what, protos in (("input", model.graph.input), ("output", model.graph.output))
            )
            for data in sorted(place.glob("test_data_set_*"))
        ]
        found.append(ModelCase(place.name, model, cast("Any", data_sets), 1e-3, 1e-7))
    return found


def has(folder: Path, what: str, at: int) -> bool:
    return (folder / f"{what}_{at}.pb").exists()


def light_case(file: Path) -> ModelCase:
    """A net on the numbers from 0 to 1 in order, as the runner of the package makes them."""
    model = onnx.load(file)
    initialized = {tensor.name for tensor in model.graph.initializer}
    (proto,) = (entry for entry in model.graph.input if entry.name not in initialized)
    shape = [dim.dim_value or 1 for dim in proto.type.tensor_type.shape.dim]
    data = (np.arange(np.prod(shape)).reshape(shape) / np.prod(shape)).astype(np.float32)
    expected = [loaded(file.with_name(f"{file.stem}_output_0.pb"), model.graph.output[0].type)]
    return ModelCase(file.stem, model, [([data], expected)], 2e-3 if "densenet" in file.stem else 1e-3, 1e-7)


def loaded(file: Path, kind: onnx.TypeProto) -> Any:
    """The value in a file: a tensor, a sequence as a list, None for an optional without a value."""
    data = file.read_bytes()
    if kind.HasField("optional_type"):
        return onnx.numpy_helper.to_optional(onnx.OptionalProto.FromString(data))
    if kind.HasField("sequence_type"):
        return onnx.numpy_helper.to_list(onnx.SequenceProto.FromString(data))
    return onnx.numpy_helper.to_array(TensorProto.FromString(data))


def cases_of(kind: str) -> Sequence[Any]:
    """All cases of a kind."""
    return node_cases() if kind == "node" else model_cases(kind)


def with_symbols(case: Any) -> ModelCase:
    """The case with a symbol of its own for each axis of each input, and open outputs."""
    model = ModelProto()
    model.CopyFrom(case.model)
    initialized = {tensor.name for tensor in model.graph.initializer}
    del model.graph.value_info[:]
    for at, proto in enumerate(model.graph.input):
        if proto.name not in initialized:
            for axis, dim in enumerate(dims_of(proto.type)):
                dim.dim_param = f"s{at}_{axis}"
    for proto in model.graph.output:
        for dim in dims_of(proto.type):
            dim.Clear()
    return ModelCase(case.name, model, case.data_sets, case.rtol, case.atol, operator_of(case), is_symbolic=True)


def dims_of(kind: onnx.TypeProto) -> Sequence[Any]:
    """The dimensions that a type states, of the tensors in it."""
    kind = kind.optional_type.elem_type if kind.HasField("optional_type") else kind
    kind = kind.sequence_type.elem_type if kind.HasField("sequence_type") else kind
    return kind.tensor_type.shape.dim


def operator_of(case: Any) -> str:
    """The operator that a case tests, also where it is written out by others. The name of a case of a model."""
    if isinstance(case, ModelCase):
        return case.operator or case.name
    nodes = case.model.graph.node
    if len(nodes) == 1:
        node = nodes[0]
    else:
        node = nodes[-1]
        for candidate in nodes:
            if "_expanded_function_" in "".join((*candidate.input, *candidate.output)):
                text = next(t for t in (*candidate.output, *candidate.input) if "_expanded_function_" in t)
                return text.partition("_")[0]
    return f"{node.domain}.{node.op_type}" if node.domain else node.op_type


def judge(case: Any, target: str = "llvm") -> Verdict:
    """Import, build and run one case; on the target "interpreter" the graph is interpreted."""
    operator = operator_of(case)
    try:
        kind = "passed"
        for inputs, outputs in case.data_sets:
            difference, bound = run_case(case, inputs, outputs, target)
            if difference:
                return Verdict(case.name, operator, "wrong", difference)
            kind = "bound" if bound else kind
        return Verdict(case.name, operator, kind)
    except weft.CompileError as error:
        return Verdict(case.name, operator, "refused", error.message)
    except Exception as error:  # noqa: BLE001
        place = traceback.extract_tb(error.__traceback__)[-1]
        return Verdict(
            case.name, operator, "wrong", f"{type(error).__name__}: {error} ({place.filename}:{place.lineno})"
        )


def run_case(case: Any, inputs: Sequence[Any], outputs: Sequence[Any], target: str) -> tuple[str, bool]:
    """How the results differ from those expected, empty where they do not; and whether inputs were bound."""
    model: ModelProto = case.model
    initialized = {tensor.name for tensor in model.graph.initializer}
    names = [proto.name for proto in model.graph.input if proto.name not in initialized]
    given = {name: tensors_of(value) for name, value in zip(names, inputs, strict=True)}
    # The lengths of sequences; and beside them the extents of tensors, which may be those of their elements.
    has_structure = any(isinstance(value, list) or is_none(value) for value in inputs)
    is_symbolic = isinstance(case, ModelCase) and case.is_symbolic
    shapes = {
        name: symbols_of(value, f"s{at}") if is_symbolic else shape_of(value)
        for at, (name, value) in enumerate(zip(names, inputs, strict=True))
        if has_structure
    }
    constants: dict[str, Any] = {}
    while True:
        try:
            found = imported_and_called(model, shapes, constants, given, target)
            break
        except (weft.CompileError, ValueError) as error:
            # Sizes that a call refuses, such as the -1 of a reshape, must be known at import as well.
            sizes = {name for name, arrays in given.items() if is_size(arrays)}
            refused = isinstance(error, ValueError | InterpreterError)
            more = (sizes if refused else getattr(error, "unbound", frozenset())) - constants.keys()
            if not more:
                raise
            constants |= {name: given[name][0] for name in more}
    results = found if isinstance(found, tuple | list) else (found,)
    wanted = [array for value in outputs for array in tensors_of(value)]
    if len(results) != len(wanted):
        return f"{len(results)} results, expected {len(wanted)}", bool(constants)
    for position, (got, expected) in enumerate(zip(results, wanted, strict=True)):
        atol = case.atol
        if operator_of(case) in SPECTRAL:
            atol = max(atol, float(np.finfo(expected.dtype).eps * np.max(np.abs(expected))))
        difference = differs(np.asarray(got), expected, case.rtol, atol)
        if difference:
            return f"result {position}: {difference}", bool(constants)
    return "", bool(constants)


def imported_and_called(
    model: ModelProto, shapes: Any, constants: dict[str, Any], given: dict[str, Any], target: str
) -> Any:
    """The results of a model with some inputs bound."""
    module = weft.from_onnx(model, shapes, constants=constants)
    arguments = [array for name, arrays in given.items() if name not in constants for array in arrays]
    if target == "interpreter":
        return weft.Interpreter(module).call("main", *arguments)
    return weft.build(module, target, cache=False)["main"](*arguments)


def is_size(arrays: Sequence[np.ndarray[Any, Any]]) -> bool:
    """Whether an input may be sizes: a few integers."""
    return len(arrays) == 1 and arrays[0].ndim <= 1 and arrays[0].size <= 64 and arrays[0].dtype.kind == "i"


def is_none(value: Any) -> bool:
    """Whether an input is an optional without a value."""
    return value is None or (isinstance(value, np.ndarray) and value.dtype == object and value.tolist() is None)


def shape_of(value: Any) -> Any:
    """What `shapes` says of an input."""
    found = [array.shape for array in tensors_of(value)]
    return None if is_none(value) else found if isinstance(value, list) else found[0]


def symbols_of(value: Any, prefix: str) -> Any:
    """What `shapes` says of an input whose axes all have symbols."""
    found = [tuple(f"{prefix}_{at}_{axis}" for axis in range(array.ndim)) for at, array in enumerate(tensors_of(value))]
    return None if is_none(value) else found if isinstance(value, list) else found[0]


def tensors_of(value: Any) -> list[np.ndarray[Any, Any]]:
    """An input or output of a case as arrays: several of a sequence, none of an optional without a value."""
    if isinstance(value, TensorProto):
        return [onnx.numpy_helper.to_array(value)]
    if isinstance(value, list | tuple):
        return [array for item in cast("Iterable[Any]", value) for array in tensors_of(item)]
    return [] if is_none(value) else [np.asarray(value)]


def differs(got: np.ndarray[Any, Any], expected: np.ndarray[Any, Any], rtol: float, atol: float) -> str:
    """How an array differs from that expected, empty where it does not."""
    if expected.dtype.name == "bfloat16" and got.dtype == np.uint16:
        got = got.view(expected.dtype)
    if got.dtype != expected.dtype:
        return f"is of {got.dtype}, expected {expected.dtype}"
    if got.shape != expected.shape:
        return f"has shape {got.shape}, expected {expected.shape}"
    if expected.dtype.kind in "biu" and expected.dtype.name in np.sctypeDict:
        same = got == expected
        return "" if np.all(same) else f"{int(np.sum(~same))} of {same.size} integers differ"
    rtol = max(rtol, TWO_ULP.get(expected.dtype.name, 0.0))
    wide, wanted = got.astype(np.float64), expected.astype(np.float64)
    if np.allclose(wide, wanted, rtol, atol, equal_nan=True):
        return ""
    with np.errstate(all="ignore"):
        error = np.abs(wide - wanted) - rtol * np.abs(wanted)
    at = np.unravel_index(int(np.nanargmax(np.where(np.isnan(error), np.inf, error))), error.shape)
    return f"at {tuple(map(int, at))} is {wide[at]}, expected {wanted[at]}"


def table(verdicts: Iterable[Verdict], *, is_short: bool = False) -> str:
    """A table of docs/models.md, which has only the operators with cases that are not passed if it `is_short`."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    reasons: dict[str, dict[str, None]] = defaultdict(dict)
    total: Counter[str] = Counter()
    for verdict in verdicts:
        counts[verdict.operator][verdict.kind] += 1
        total[verdict.kind] += 1
        if verdict.kind == "refused":
            reasons[verdict.operator] |= dict.fromkeys(verdict.reasons)
    lines = [
        "| operator | passed | with inputs bound | refused | wrong | refused because |",
        "|---|---|---|---|---|---|",
    ]
    shown = [(name, row) for name, row in sorted(counts.items()) if not is_short or row["refused"] or row["wrong"]]
    for name, row in (*shown, ("all", total)):
        why = "; ".join(reasons[name])
        lines.append(f"| {name} | {' | '.join(str(row[kind] or '') for kind in VERDICTS)} | {why} |")
    return "\n".join(lines)


def write_page(text: str, begin: str, target: str) -> None:
    """Put a table into docs/models.md after a comment, with the versions that it was made with."""
    where = "the interpreter" if target == "interpreter" else f"target `{target}` on {host_cpu()}"
    made = f"onnx {onnx.__version__}, {where}, {date.today()}:"
    page = PAGE.read_text()
    head, rest = page.split(begin)
    PAGE.write_text(f"{head}{begin}\n{made}\n\n{text}\n{END}{rest.partition(END)[2]}")


PAGE = Path(__file__).parents[2] / "docs/models.md"
BEGIN, END = "<!-- table of node tests -->", "<!-- end of the table -->"
BEGIN_SYMBOLIC = "<!-- table of node tests with a symbol for each axis -->"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--operator", action="append", default=[], help="only cases with a node of this operator")
    parser.add_argument("--case", action="append", default=[], help="only this case")
    parser.add_argument("--kind", action="append", choices=KINDS, help="the kind of cases (default node)")
    parser.add_argument("--target", default="llvm", help='such as "c", or "interpreter" (default llvm)')
    parser.add_argument("--table", action="store_true", help="print the table alone")
    parser.add_argument("--symbolic", action="store_true", help="give each axis of each input a symbol")
    parser.add_argument("--write", action="store_true", help="write the table to docs/models.md")
    arguments = parser.parse_args()
    verdicts: list[Verdict] = []
    for case in [case for kind in arguments.kind or ["node"] for case in cases_of(kind)]:
        operators = {node.op_type for node in case.model.graph.node}
        if arguments.operator and operators.isdisjoint(arguments.operator):
            continue
        if arguments.case and case.name not in arguments.case:
            continue
        verdicts.append(judge(with_symbols(case) if arguments.symbolic else case, arguments.target))
        if verdicts[-1].kind in ("refused", "wrong") and not (arguments.table or arguments.write):
            print(f"{verdicts[-1].kind:8} {case.name}: {verdicts[-1].message}", flush=True)
    text = table(verdicts, is_short=arguments.symbolic)
    print(text)
    if arguments.write:
        write_page(text, BEGIN_SYMBOLIC if arguments.symbolic else BEGIN, arguments.target)


if __name__ == "__main__":
    main()
