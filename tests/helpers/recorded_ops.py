"""The cases of `test_llvm_ops.py` as data: each module with its arguments and what LLVM makes of it."""

import importlib.util
import inspect
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

_FOLDER = Path(__file__).parent.parent / "numeric"


def load_tests(name: str) -> ModuleType:
    """A file of `tests/numeric/<room>`, as a separate module that may be changed."""
    (path,) = _FOLDER.rglob(f"{name}.py")
    spec = importlib.util.spec_from_file_location(f"recorded_{name}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@dataclass
class RecordedOp:
    """One kernel `@f(A, B, ..., R, n)`."""

    name: str
    text: str
    arrays: list[NDArray[Any]]
    """Inputs, padded to whole vectors."""
    result: NDArray[Any]
    """What the LLVM backend computes."""
    output: str
    """Element type of the result."""


SOME_TYPES = {"i1", "i32", "f32"}
"""Of the first tier of tests: the spelling of an op in C depends little on the width of its type."""


def has_some_types(values: dict[str, Any]) -> bool:
    """A scalar case of `SOME_TYPES`."""
    types = {values[name] for name in ("type_", "element", "source", "target") if name in values}
    return types <= SOME_TYPES and values.get("lanes", 0) == 0


@cache
def recorded_ops(wanted: Callable[[dict[str, Any]], bool] | None = None) -> list[RecordedOp]:
    """Every kernel that the tests run, or those of cases whose parameters are `wanted`."""
    module = load_tests("test_llvm_ops")
    records: list[RecordedOp] = []
    current = ""

    def run(op: str, inputs: Any, output: str, lanes: int, *arrays: NDArray[Any]) -> NDArray[Any]:
        text = module.elementwise(op, inputs, output, lanes)
        padding = -len(arrays[0]) % module.LANES
        padded = [np.concatenate([array, array[:1].repeat(padding)]) for array in arrays]
        result = np.zeros(len(padded[0]), module.DTYPES[output])
        module.compile_text(text)["f"](*padded, result)
        records.append(RecordedOp(current, text, padded, result, output))
        return result[: len(arrays[0])]

    module.run = run
    for name, test in inspect.getmembers(module, inspect.isfunction):
        if not name.startswith("test_") or not any(call in inspect.getsource(test) for call in ("run(", "cast(")):
            continue
        for values in parameters_of(test):
            if wanted is not None and not wanted(values):
                continue
            current = f"{name}[{', '.join(f'{k}={v}' for k, v in values.items())}]"
            test(**values)
    return records


def parameters_of(test: Any) -> Iterator[dict[str, Any]]:
    """The arguments of each case of a parametrized test."""
    choices: list[list[dict[str, Any]]] = []
    for mark in getattr(test, "pytestmark", []):
        if mark.name != "parametrize":
            continue
        given = mark.args[0]
        names = [name.strip() for name in given.split(",")] if isinstance(given, str) else list(given)
        choices.append([dict(zip(names, _values_of(case, len(names)), strict=True)) for case in mark.args[1]])
    for chosen in itertools.product(*choices):
        yield {name: value for part in chosen for name, value in part.items()}


def _values_of(case: Any, count: int) -> Sequence[Any]:
    """The values of a case of `parametrize`, a `pytest.param` or not."""
    if hasattr(case, "marks"):
        return case.values
    return case if count > 1 else (case,)
