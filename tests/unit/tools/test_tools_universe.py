"""The universe names what there is, once, and nothing that clashes with xDSL."""

import ast
import importlib
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


def classes_in(folder: str) -> set[str]:
    """ "module:Class" of the public classes under `folder` whose bases are written as a pass or a target."""
    found: set[str] = set()
    for file in (ROOT / folder).rglob("*.py"):
        module = "weft." + ".".join(file.relative_to(ROOT).with_suffix("").parts)
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                kind = getattr(importlib.import_module(module), node.name, None)
                if isinstance(kind, type) and issubclass(kind, ModulePass | Target) and "name" in vars(kind):
                    found.add(f"{module}:{node.name}")
    return found


@pytest.mark.slow
def test_every_pass_and_target_is_in_the_tables() -> None:
    generated = {place for place in PASSES.values() if place.startswith("weft.passes.schedule.primitive_passes:")}
    assert len(generated) == len(PRIMITIVES)
    assert {step.pass_name for step in PRIMITIVE_STEPS.values()} <= set(PASSES)
    declared = set().union(*map(classes_in, ("passes", "schedule", "autoschedule", "frontends")))
    assert declared == set(PASSES.values()) - generated
    assert classes_in("backends") | classes_in("runtime") == set(TARGETS.values())


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
