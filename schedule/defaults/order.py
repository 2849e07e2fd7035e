"""The rules of the default schedule, in the order in which they are asked."""

from __future__ import annotations

from typing import Final

from weft.schedule.defaults.rules import Rule

RULES: Final[tuple[Rule, ...]] = ()
"""Each rule is offered every block that is still plain, in program order, before the next rule is asked."""
