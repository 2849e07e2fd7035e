"""Models of ONNX files from the compile cache: when an entry serves, what makes it stale, and what is kept."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed: pip install 'weft[onnx]'")

import onnx
from onnx_models import model as onnx_model
from onnx_models import node, perceptron

import weft
from weft import graph as G
from weft.driver import build as building
from weft.runtime import compile_cache
from weft.runtime.compile_cache import CompileCache
from weft.support.errors import CompileError
from weft.tuning.database import Database

X = np.random.default_rng(1).standard_normal((3, 16), np.float32)
BEFORE = time.time() - 100


def save(path: Path, proto: Any = None, **options: Any) -> Path:
    """A file that was written a while ago: what was written while a build ran is not kept."""
    onnx.save(perceptron() if proto is None else proto, path, **options)
    for file in path.parent.iterdir():
        if file.is_file():
            os.utime(file, (BEFORE, BEFORE))
    return path


def expected(scale: float = 1.0) -> Any:
    first, bias, second = (onnx.numpy_helper.to_array(tensor) for tensor in perceptron().graph.initializer)
    return (np.maximum(X @ first + bias, 0) @ second) * np.float32(scale)


def check(library: weft.Library, scale: float = 1.0) -> None:
    np.testing.assert_allclose(library["main"](X), expected(scale), rtol=1e-4, atol=1e-5)


def scaled(scale: float) -> Any:
    proto = perceptron()
    last = proto.graph.initializer[2]
    last.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(last) * np.float32(scale), last.name))
    return proto


@pytest.fixture
def imported(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the model files that are imported."""
    names: list[str] = []
    compiled = building._compiled_file

    def counted(path: Path, *others: Any) -> Any:
        names.append(path.name)
        return compiled(path, *others)

    monkeypatch.setattr(building, "_compiled_file", counted)
    return names


def models(cache: CompileCache) -> list[Path]:
    return [entry.path for entry in cache.entries() if entry.path.suffix == ".model"]


@pytest.mark.slow
def test_a_second_build_imports_nothing(tmp_path: Path, cache: CompileCache, imported: list[str]) -> None:
    path = save(tmp_path / "m.onnx")
    first = weft.build(path)
    check(first)
    assert imported == ["m.onnx"] and len(models(cache)) == 1
    second = weft.build(path)
    check(second)
    assert imported == ["m.onnx"] and "compile cache" in second.timing.milliseconds
    assert second.get_source("ll") == first.get_source("ll") and second.get_source("asm") == first.get_source("asm")
    assert list(second) == list(first) and second["main"].signature == first["main"].signature
    second.export(str(tmp_path / "libm.so"))
    np.testing.assert_array_equal(weft.load(tmp_path / "libm.so")["main"](X), second["main"](X))
    # The file is imported where somebody wants to know what its kernels do.
    assert second.trace == first.trace and imported == ["m.onnx"] * 2
    assert str(second.report()) == str(first.report()) and imported == ["m.onnx"] * 2
    assert len(second.profile("main", X).rows) == len(first.report().rows)


def test_a_copy_of_the_file_is_the_same_model(tmp_path: Path, cache: CompileCache, imported: list[str]) -> None:
    weft.build(save(tmp_path / "m.onnx"))
    check(weft.build(save(tmp_path / "n.onnx")))
    assert imported == ["m.onnx"]


@pytest.mark.parametrize(
    "change",
    ["content", "target", "layouts", "default_schedule", "another weft", "damaged", "no kernel", "no cache", "off"],
)
def test_what_an_entry_is_not_taken_for(
    change: str, tmp_path: Path, cache: CompileCache, imported: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = save(tmp_path / "m.onnx")
    weft.build(path)
    options: dict[str, Any] = {}
    match change:
        case "content":
            save(path, scaled(2.0))
        case "target":
            options["target"] = "llvm -opt-level=1"
        case "layouts" | "default_schedule":
            options[change] = False
        case "another weft":
            monkeypatch.setattr(compile_cache, "compiler_fingerprint", lambda: "another")
        case "damaged":
            (entry,) = models(cache)
            entry.write_bytes(entry.read_bytes()[:-3] + b"xyz")
        case "no kernel":
            next(entry.path for entry in cache.entries() if entry.path.suffix == ".kernel").unlink()
        case "no cache":
            options["cache"] = False
        case _:
            monkeypatch.setenv("WEFT_CACHE", "0")
    check(weft.build(path, **options), 2.0 if change == "content" else 1.0)
    assert imported == ["m.onnx"] * 2


def test_files_of_weights_are_compared(tmp_path: Path, cache: CompileCache, imported: list[str]) -> None:
    (tmp_path / "model").mkdir()
    beside: dict[str, Any] = {"save_as_external_data": True, "location": "m.data", "size_threshold": 0}
    path = save(tmp_path / "model" / "m.onnx", **beside)
    check(weft.build(path))
    check(weft.build(path))
    assert imported == ["m.onnx"] and len(models(cache)) == 1
    data = path.with_name("m.data")
    whole = data.read_bytes()
    data.unlink()  # or what is saved next is appended to it
    save(path, scaled(2.0), **beside)
    check(weft.build(path), 2.0)
    assert imported == ["m.onnx"] * 2
    data.unlink()
    with pytest.raises(CompileError, match=r"m\.data"):
        weft.build(path)
    data.write_bytes(whole)
    os.utime(data, (BEFORE, BEFORE))
    check(weft.build(path))


def test_a_file_that_changed_meanwhile_is_not_explained(tmp_path: Path, cache: CompileCache) -> None:
    path = save(tmp_path / "m.onnx")
    weft.build(path)
    library = weft.build(path)
    save(path, scaled(2.0))
    check(library)
    with pytest.raises(CompileError, match=r"m\.onnx' has changed since it was built: build it again to see how"):
        _ = library.trace
    with pytest.raises(CompileError, match="has changed since it was built"):
        library.report()


@pytest.mark.parametrize("what", ["a new file", "a database", "a converter", "checked", "other types"])
def test_what_is_not_kept(what: str, tmp_path: Path, cache: CompileCache) -> None:
    path = save(tmp_path / "m.onnx")
    options: dict[str, Any] = {}
    match what:
        case "a new file":
            onnx.save(perceptron(), path)  # in the moment in which it is read
            os.utime(path, (time.time() + 100,) * 2)
        case "a database":
            options["database"] = tmp_path / "tune.db"
            Database(options["database"]).close()
        case "checked":
            options["checked"] = True
        case "other types":
            weights = {"w": np.ones((16, 5), np.float32)}
            nodes = [node("Cast", "w", "v", to=onnx.TensorProto.BFLOAT16)]
            nodes += [node("Cast", "x", "u", to=onnx.TensorProto.BFLOAT16), node("MatMul", "u v", "y")]
            proto = onnx_model(nodes, {"x": [3, 16]}, weights=weights)
            proto.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.BFLOAT16
            save(path, proto)
        case _:
            weft.onnx.register("com.acme", "Other")(lambda node: G.relu(node.value(0)))
    try:
        weft.build(path, **options)
    finally:
        if what == "a converter":
            weft.onnx.unregister("com.acme", "Other")
    assert what == "other types" or not models(cache)


def test_programs_of_other_files_are_not_kept_whole(tmp_path: Path, cache: CompileCache) -> None:
    path = tmp_path / "m.mlir"
    path.write_text(str(weft.from_onnx(perceptron())))
    check(weft.build(path))
    assert cache.entries() and not models(cache)
