"""The universe names what there is, once, and nothing that clashes with xDSL."""

import ast
from pathlib import Path

import pytest
from xdsl.dialects import get_all_dialects
from xdsl.ir import Dialect
from xdsl.passes import ModulePass
from xdsl.targets import get_all_targets
from xdsl.transforms import get_all_passes
from xdsl.utils.target import Target

from weft.dialects.sched import PRIMITIVE_STEPS
from weft.driver.universe import DIALECTS, PASSES, TARGETS, WEFT_UNIVERSE, load
from weft.passes.schedule.primitive import PRIMITIVES
from weft.passes.schedule.primitive_passes import PrimitivePass

ROOT = Path(__file__).parents[3]
CARRY_NO_DIALECT = {
    *("apply-schedule", "bufferize-tensors", "convert-from-upstream", "default-schedule", "plan-memory"),
    *("specialize-shapes", "verify-level", "weft-transform-interpreter"),
}
"""Passes that work on more than one dialect, or name what they do better without."""
LEVELS = ("graph", "te", "tir", "low", "sched")


@pytest.mark.parametrize("name", DIALECTS)
def test_dialects_load_under_their_name(name: str) -> None:
    dialect = load(DIALECTS[name])
    assert isinstance(dialect, Dialect)
    assert dialect.name == name


@pytest.mark.parametrize("name", PASSES)
def test_passes_load_under_their_name(name: str) -> None:
    kind = load(PASSES[name])
    assert issubclass(kind, ModulePass)
    assert kind.name == name
    if not issubclass(kind, PrimitivePass):
        assert kind.__module__.rpartition(".")[2] == name.replace("-", "_"), "the file of a pass is named as the pass"


@pytest.mark.parametrize("name", TARGETS)
def test_targets_load_under_their_name(name: str) -> None:
    kind = load(TARGETS[name])
    assert issubclass(kind, Target)
    assert kind.name == name


def classes_in(folder: str, suffix: str) -> set[str]:
    """ "module:Class" of the classes under `folder` with this suffix and a name, as passes and targets have it. Reads
    the sources, because importing all modules takes seconds."""
    found: set[str] = set()
    for file in (ROOT / folder).rglob("*.py"):
        module = "weft." + ".".join(file.relative_to(ROOT).with_suffix("").parts)
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ClassDef) and node.name.endswith(suffix) and has_name(node):
                found.add(f"{module}:{node.name}")
    return found


def has_name(node: ast.ClassDef) -> bool:
    for part in node.body:
        targets = (
            part.targets if isinstance(part, ast.Assign) else [part.target] if isinstance(part, ast.AnnAssign) else []
        )
        if any(isinstance(target, ast.Name) and target.id == "name" for target in targets):
            return isinstance(part, ast.Assign | ast.AnnAssign) and isinstance(part.value, ast.Constant)
    return False


def missing_lines(declared: set[str], listed: set[str], table: str) -> str:
    """The lines that `table` of driver/universe.py lacks, to copy; and those of classes that are gone."""
    lines = [f'    "{load(place).name}": "{place}",' for place in sorted(declared - listed)]
    gone = [f"no such class: {place}" for place in sorted(listed - declared)]
    return "\n".join(
        [f"driver/universe.py, add to {table}:" if lines else f"driver/universe.py, {table}:", *lines, *gone]
    )


def test_every_pass_and_target_is_in_the_tables() -> None:
    generated = {place for place in PASSES.values() if place.startswith("weft.passes.schedule.primitive_passes:")}
    primitives = {step.pass_name for step in PRIMITIVE_STEPS.values()}
    assert primitives <= set(PASSES), f"driver/universe.py, add to _PRIMITIVES: {sorted(primitives - set(PASSES))}"
    assert len(generated) == len(PRIMITIVES)
    rooms = ("passes", "schedule", "autoschedule", "frontends")
    declared = set().union(*(classes_in(room, "Pass") for room in rooms))
    passes = set(PASSES.values()) - generated
    assert declared == passes, missing_lines(declared, passes, "PASSES")
    declared = classes_in("backends", "Target") | classes_in("runtime", "Target")
    assert declared == set(TARGETS.values()), missing_lines(declared, set(TARGETS.values()), "TARGETS")


def test_names_carry_their_dialect_and_clash_with_nothing() -> None:
    for name in PASSES:
        assert name in CARRY_NO_DIALECT or any(level in name.split("-") for level in LEVELS), name
    assert set(PASSES).isdisjoint(get_all_passes())
    assert set(TARGETS).isdisjoint(get_all_targets())
    assert set(DIALECTS).isdisjoint(get_all_dialects())


def test_the_universe_offers_the_tables() -> None:
    assert set(WEFT_UNIVERSE.all_dialects) == set(DIALECTS)
    assert set(WEFT_UNIVERSE.all_passes) == set(PASSES)
    assert set(WEFT_UNIVERSE.all_targets) == set(TARGETS)
