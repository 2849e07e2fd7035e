"""The code cells of the documents, run in order with `tvm` imported from `weft.tvm`; nothing else in them is changed.

A file in `tests/documents/` holds a document's cells as it shows them: `# %% NUMBER | KIND | place`, then the text.
Cells of the kind `env` need a data set: `stand_ins` has an image and names of classes instead, drawn by a seed.
"""

from __future__ import annotations

import ast
import contextlib
import io
import linecache
import pickle
import re
import sys
import types
import warnings
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parents[1] / "documents"


@dataclass
class Shown:
    """What a cell printed, and the value of its last expression."""

    text: str
    value: Any = None
    error: BaseException | None = None


def cells(document: str) -> Iterator[tuple[int, str, str]]:
    """Number, kind and text of each cell."""
    for part in re.split(r"^# %% ", (FOLDER / f"{document}.cells").read_text(), flags=re.MULTILINE)[1:]:
        head, _, text = part.partition("\n")
        number, kind, *_ = (bit.strip() for bit in head.split("|"))
        yield int(number), kind, text


def translated(text: str, package: str = "weft.tvm") -> str:
    text = re.sub(r"^(\s*)import tvm$", rf"\1import {package} as tvm", text, flags=re.MULTILINE)
    text = re.sub(r"^(\s*)import tvm\.(\S+) as", rf"\1import {package}.\2 as", text, flags=re.MULTILINE)
    return re.sub(r"^(\s*)from tvm\b", rf"\1from {package}", text, flags=re.MULTILINE)


def run_document(document: str, folder: Path, only: Collection[int] | None = None) -> dict[int, Shown]:
    """Run the code cells of a document in `folder`, all or those in `only`; the last expression of a cell is its value,
    as in a notebook."""
    session: dict[str, Any] = {"__name__": "__main__"}
    found: dict[int, Shown] = {}
    with contextlib.chdir(folder), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number, kind, text in cells(document):
            if kind == "env":
                session.update(stand_ins())
            if kind == "code" and (only is None or number in only):
                found[number] = _run(translated(text), f"{folder}/{document}-{number}.py", session)
    return found


def _run(text: str, name: str, session: dict[str, Any]) -> Shown:
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    tree = ast.parse(text, name)
    last = tree.body[-1] if tree.body else None
    out, value = io.StringIO(), None
    try:
        with contextlib.redirect_stdout(out):
            if isinstance(last, ast.Expr):
                exec(compile(ast.Module(tree.body[:-1], []), name, "exec"), session)
                value = eval(compile(ast.Expression(last.value), name, "eval"), session)
            else:
                exec(compile(tree, name, "exec"), session)
    except Exception as error:  # noqa: BLE001, what cells raise is compared
        return Shown(out.getvalue(), None, error)
    return Shown(out.getvalue(), value)


def stand_ins() -> dict[str, Any]:
    """What cells of the kind `env` define."""
    draw = np.random.default_rng(7)
    names = ["T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle-boot"]
    return {"img": draw.random((1, 28, 28)).astype("float32"), "label": [6], "class_names": names}


def weights() -> dict[str, np.ndarray[Any, Any]]:
    """The weights of the perceptron that the documents load."""
    draw = np.random.default_rng(8)
    shapes = {"w0": (128, 784), "b0": (128,), "w1": (10, 128), "b1": (10,)}
    return {name: (draw.standard_normal(shape) * 0.05).astype("float32") for name, shape in shapes.items()}


class _Displayed(str):
    """Text that a notebook shows."""

    __slots__ = ()

    def __new__(cls, data: str, language: str = "") -> _Displayed:
        del language
        return super().__new__(cls, data)

    @property
    def data(self) -> str:
        return str(self)


def prepare(folder: Path) -> None:
    """Files that cells read, and stand-ins of modules that show things."""
    (folder / "fashionmnist_mlp_params.pkl").write_bytes(pickle.dumps(weights()))
    shown = types.ModuleType("IPython.display")
    shown.Code = shown.HTML = _Displayed  # type: ignore[attr-defined]
    python = types.ModuleType("IPython")
    python.version_info = (8, 24)  # pyright: ignore[reportAttributeAccessIssue]  # matplotlib reads it
    python.display = shown  # type: ignore[attr-defined]
    table = types.ModuleType("tabulate")
    table.tabulate = lambda rows, headers=(): "\n".join(map(str, [headers, *rows]))  # type: ignore[attr-defined]
    for name, module in (("IPython", python), ("IPython.display", shown), ("tabulate", table)):
        module.__spec__ = ModuleSpec(name, None)  # PyTorch asks for that of tabulate, in later tests
        sys.modules.setdefault(name, module)


def models(folder: Path) -> None:
    """Small models of ONNX under the names that cells load."""
    from onnx import TensorProto, helper, numpy_helper, save

    def model(name: str, shape: list[int], nodes: list[Any], weights: dict[str, Any], out: list[int]) -> Any:
        inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)]
        outputs = [helper.make_tensor_value_info("out", TensorProto.FLOAT, out)]
        constants = [numpy_helper.from_array(value, key) for key, value in weights.items()]
        graph = helper.make_graph(nodes, "model", inputs, outputs, constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)

    draw = np.random.default_rng(9)
    dense = [helper.make_node("Gemm", ["input", "w", "b"], ["h"], transB=1), helper.make_node("Relu", ["h"], ["out"])]
    w = {"w": draw.standard_normal((4, 8)).astype("float32"), "b": np.ones(4, "float32")}
    (folder.parent / "models").mkdir(exist_ok=True)
    save(model("input", [1, 8], dense, w, [1, 4]), str(folder.parent / "models" / "test-delegate-one-input.onnx"))
    pooled = [
        helper.make_node("Conv", ["data", "w"], ["c"], strides=[8, 8]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("GlobalAveragePool", ["r"], ["p"]),
        helper.make_node("Flatten", ["p"], ["out"]),
    ]
    w = {"w": draw.standard_normal((4, 3, 8, 8)).astype("float32")}
    save(model("data", [1, 3, 224, 224], pooled, w, [1, 4]), str(folder / "resnet50-v2-7.onnx"))
