"""The table of meanings: what is found does not depend on what was loaded before."""

import subprocess
import sys
from importlib import import_module

from weft.interp import registry

SCRIPT = """
from weft.interp.registry import call_rule, emit_rule
print(*[name for name in {names} if emit_rule(name) is None and call_rule(name) is None])
"""


def test_the_module_of_a_dialect_loads_all_its_rules() -> None:
    for room in set(registry.ROOMS.values()):
        import_module(f"weft.interp.{room}")
    names = {*registry._emit_rules, *registry._call_rules}
    for dialect in registry.ROOMS:
        own = sorted(name for name in names if name.startswith(f"{dialect}."))
        command = [sys.executable, "-c", SCRIPT.format(names=own)]
        assert subprocess.check_output(command, text=True).split() == [], dialect
