"""The table of meanings: what is found does not depend on what was loaded before."""

import subprocess
import sys
from importlib import import_module

import pytest

from weft.interp import registry

SCRIPT = """
from weft.interp.registry import call_rule, emit_rule
print(*[name for name in {names} if emit_rule(name) is None and call_rule(name) is None])
"""


@pytest.mark.slow
def test_the_module_of_a_dialect_loads_all_its_rules() -> None:
    for room in set(registry.ROOMS.values()):
        import_module(f"weft.interp.{room}")
    rules = {**registry._emit_rules, **registry._call_rules}
    for dialect, room in registry.ROOMS.items():
        own = {name: rule.__module__ for name, rule in rules.items() if name.startswith(f"{dialect}.")}
        elsewhere = sorted(name for name, module in own.items() if module != f"weft.interp.{room}")
        if elsewhere:
            command = [sys.executable, "-c", SCRIPT.format(names=elsewhere)]
            assert subprocess.check_output(command, text=True).split() == [], dialect
