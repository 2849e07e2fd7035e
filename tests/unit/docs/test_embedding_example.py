"""`examples/embedding`: a package with a dialect, a type and passes of its own, around and beside those of weft."""

from __future__ import annotations

import dataclasses
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiers import first_tier
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass, PassPipeline
from xdsl.utils.exceptions import DiagnosticException
from xdsl.xdsl_opt_main import xDSLOptMain

import weft
from weft.dialects.element_types import unregister_element_type
from weft.dialects.levels import unregister_operation
from weft.dialects.sched import PRIMITIVE_STEPS
from weft.driver.programs import context
from weft.driver.universe import PASSES, load
from weft.interp.compare import Validator
from weft.passes.pipelines import tir_to_low

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "embedding"
OPTIONS = {
    **dict.fromkeys(("block", "blocks", "at", "epilogue-block"), "B"),
    **dict.fromkeys(("loop", "loops", "index", "new-order", "factor-axis", "offset", "axis", "cse-thresh"), "0"),
    **dict.fromkeys(("buffer", "key", "value", "intrinsic", "scope"), "A"),
    **dict.fromkeys(("factor", "padding"), "2"),
    "buffer-type": "read",
    "encoding": "int16",
    "factors": "0,2",
    "func": "scale",
    "index-map": '"lambda i: (7 - i,)"',
    "level": "low",
    "params": '"none.npz"',
    "region": '"lambda i: (i, i + 1)"',
    "shapes": '"A=8"',
    "target": "llvm",
    "thread-axis": '"threadIdx.x"',
}
"""An option that must be given -> what this test gives."""
_PRIMITIVES = {step.pass_name for step in PRIMITIVE_STEPS.values()}


@pytest.fixture(scope="module")
def acme(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The passes of the package, found through its entry point as if it were installed."""
    path = tmp_path_factory.mktemp("site")
    _write_entry_point(path)
    added = [str(path), str(EXAMPLE)]
    sys.path[:0] = added
    try:
        context()
        yield sys.modules["acme.passes"] if "acme.passes" in sys.modules else __import__("acme.passes").passes
    finally:
        sys.path[:] = [entry for entry in sys.path if entry not in added]
        dialect = sys.modules["acme.dialect"]
        for op in dialect.ACME.operations:
            unregister_operation(op)
        unregister_element_type(dialect.FixedType)
        for name in [name for name in sys.modules if name.partition(".")[0] == "acme"]:
            del sys.modules[name]


def _write_entry_point(site: Path) -> None:
    """What pip writes of a package, as far as its entry points are concerned."""
    about = site / "acme-0.1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 0.1.0\n")
    (about / "entry_points.txt").write_text("[xdsl.universe]\nacme = acme.universe:ACME_UNIVERSE\n")


def program(name: str) -> ModuleOp:
    return weft.parse((EXAMPLE / name).read_text(), name)


def clip_arguments() -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(7)
    x, k = rng.normal(size=(64, 32)).astype("f4"), rng.integers(-5, 20, (64, 32)).astype("i4")
    return x, k, rng.random(16).astype("f4"), np.empty((64, 32), "f4")


def fixed_arguments() -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(7)
    return rng.integers(-1000, 1000, 256).astype("i2"), np.array([300], "i2"), rng.integers(-99, 99, 256).astype("i2")


def expected_clip() -> np.ndarray:
    x, k, table, _ = clip_arguments()
    return x.clip(-1, 1) * table[k.clip(0, 15)]


def expected_fixed() -> np.ndarray:
    x, a, y = fixed_arguments()
    return (y + ((a.astype("i4") * x.astype("i4")) >> 8)).astype("i2")


@pytest.mark.parametrize(
    "point, options",
    [
        ("before:place-buffers", {}),
        ("before:place-buffers", {"scheduled": False}),
        ("after:lower-blocks", {"scheduled": False, "default_schedule": False}),
        ("before:vectorize", {}),
    ],
)
def test_its_ops_stand_in_blocks_until_its_pass_lowers_them(acme: Any, point: str, options: dict[str, bool]) -> None:
    arguments = clip_arguments()
    weft.build(program("clip.mlir"), passes={point: acme.LowerOpsPass()}, **options)["activate"](*arguments)
    np.testing.assert_allclose(arguments[-1], expected_clip(), rtol=1e-6)


def test_its_type_is_that_of_elements_of_buffers(acme: Any) -> None:
    arguments = fixed_arguments()
    weft.build(program("fixed.mlir"), passes={"before:place-buffers": "acme-fixed-to-integers"})["axpy"](*arguments)
    np.testing.assert_array_equal(arguments[-1], expected_fixed())


@pytest.mark.usefixtures("acme")
def test_the_interpreter_runs_its_ops_and_its_type() -> None:
    clip, fixed = clip_arguments(), fixed_arguments()
    weft.Interpreter(program("clip.mlir")).call("activate", *clip)
    weft.Interpreter(program("fixed.mlir")).call("axpy", *fixed)
    np.testing.assert_allclose(clip[-1], expected_clip(), rtol=1e-6)
    np.testing.assert_array_equal(fixed[-1], expected_fixed())


def test_validation_finds_a_wrong_pass_of_its(acme: Any) -> None:
    for name, passes in (("clip.mlir", (acme.LowerOpsPass(),)), ("fixed.mlir", (acme.FixedToIntegersPass(),))):
        module = program(name)
        validator = Validator(module)
        PassPipeline(passes).apply(context(), module)
        validator.check("acme", module)
        assert not validator.skipped
    module = program("fixed.mlir")
    validator = Validator(module)
    for op in [op for op in module.walk() if op.name == "acme.mul"]:
        op.results[0].replace_all_uses_with(op.operands[0])
    with pytest.raises(weft.CompileError, match="wrong"):
        validator.check("wrong", module)


@pytest.mark.usefixtures("acme")
def test_an_op_that_no_pass_lowers_is_refused_at_its_place() -> None:
    expected = r"clip\.mlir:8:14: error: acme\.clip is not allowed at level 'low'"
    with pytest.raises(weft.CompileError, match=expected):
        weft.build(program("clip.mlir"))
    with pytest.raises(weft.CompileError, match=expected):
        weft.build(program("clip.mlir"), passes={"before:vectorize": "cse"})
    unregister_operation("acme.clip")
    try:
        with pytest.raises(
            weft.CompileError, match=r"clip\.mlir:8:14: error: acme\.clip is not allowed at level 'tir'"
        ):
            weft.build(program("clip.mlir"), passes={"before:vectorize": "acme-lower-ops"})
    finally:
        universe = sys.modules["acme.universe"]
        weft.register_operation("acme.clip", levels=("tir",), effects=(), meaning=universe._clip)


def test_its_own_pipeline_holds_passes_of_weft(acme: Any) -> None:
    for name in ("clip.mlir", "fixed.mlir"):
        module = program(name)
        acme.ToUpstreamPass().apply(context(), module)
        module.verify()
        dialects = {op.name.partition(".")[0] for op in module.walk()}
        assert dialects <= {"builtin", "func", "scf", "arith", "memref", "math", "vector"}


def test_a_pass_of_its_that_raises_is_named(acme: Any) -> None:
    message = r"pass 'acme-limit-lookups' of acme\.passes failed: ValueError: 1 lookups, at most 0 are allowed"
    with pytest.raises(weft.CompileError, match=message):
        weft.build(program("clip.mlir"), passes={"before:flatten": acme.LimitLookupsPass(0)})
    insert = 'lower-tir-to-low{insert="before:flatten=acme-limit-lookups{limit=0}"}'
    with pytest.raises(weft.CompileError, match=message):
        run_stock_driver("clip.mlir", insert)


def run_stock_driver(name: str, pipeline: str) -> ModuleOp:
    """xDSL's own driver, without its printing."""
    driver = xDSLOptMain(args=[str(EXAMPLE / name), "-p", pipeline])
    chunks, extension = driver.prepare_input()
    module = driver.parse_chunk(chunks[0][0], extension)
    assert module is not None
    driver.apply_passes(module)
    module.verify()
    return module


def foreign_functions(module: ModuleOp) -> dict[str, str]:
    found = {op.sym_name.data: str(op) for op in module.ops if isinstance(op, FuncOp)}
    return {name: found[name] for name in ("square", "clip_all", "log")}


def usage(name: str) -> str:
    """A pass with all options that it needs."""
    needed = [
        option
        for field in dataclasses.fields(load(PASSES[name]))
        if field.default is dataclasses.MISSING and (option := field.name.replace("_", "-"))
    ]
    return f"{name}{{{' '.join(f'{option}={OPTIONS[option]}' for option in needed)}}}" if needed else name


@pytest.mark.usefixtures("acme")
@pytest.mark.filterwarnings("ignore::weft.support.errors.Remark")
@pytest.mark.parametrize("name", first_tier(PASSES, *(name for name in PASSES if name not in _PRIMITIVES), "tir-split"))
def test_each_pass_alone_in_the_stock_driver_leaves_foreign_functions(name: str) -> None:
    """What the pass refuses is xDSL's kind of error. A pass that takes loops of scf takes those of others too."""
    before = foreign_functions(program("beside.mlir"))
    try:
        module = run_stock_driver("beside.mlir", usage(name))
    except DiagnosticException as error:
        assert str(error)
        return
    after = foreign_functions(module)
    if name in ("convert-from-upstream", "raise-affine-to-tir"):
        assert "tir.for" in after.pop("clip_all") and before.pop("clip_all")
    if name == "raise-affine-to-tir":  # the other one makes a parameter of the result
        Validator(program("beside.mlir")).check(name, module)
    assert after == before


@pytest.mark.usefixtures("acme")
@pytest.mark.parametrize("target", ["llvm", "c", "cuda"])
def test_each_step_of_the_lowering_leaves_foreign_functions(target: str) -> None:
    module = program("beside.mlir")
    before = foreign_functions(module)
    bind = [load(PASSES["tir-bind"])("B", 0, "threadIdx.x")]
    steps: list[ModulePass] = [*(bind if target == "cuda" else ()), *tir_to_low(target)]
    for step in steps:
        step.apply(context(), module)
        module.verify()
        assert foreign_functions(module) == before, step.name
    assert not any(op.name.startswith("tir.") for op in module.walk())


@pytest.mark.slow
def test_the_commands_of_the_readme_run_once_it_is_installed(tmp_path: Path) -> None:
    source, site = tmp_path / "source", tmp_path / "site"
    shutil.copytree(EXAMPLE, source, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", "build"))
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*pip, "--target", str(site), str(source)], check=True)
    (commands,) = re.findall(r"^```\n(.*?)^```$", (EXAMPLE / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    lines = [line for line in commands.splitlines() if not line.startswith("cd ")]
    for line in [*lines, "weft-opt clip.mlir -p lower-tir-to-low"]:
        program, *arguments = shlex.split(line, comments=True)
        done = subprocess.run(
            [Path(sys.executable).parent / program, *arguments],
            cwd=EXAMPLE,
            env={**os.environ, "PYTHONPATH": str(site)},
            capture_output=True,
            text=True,
            check=False,
        )
        refused = "acme.clip is not allowed at level 'low'" in done.stderr
        assert (done.returncode == 0 and done.stdout) or refused == (line not in lines), f"{line}\n{done.stderr}"
