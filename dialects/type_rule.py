"""Types that an assembly format infers from another type."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from typing import Any

from xdsl.ir import Attribute
from xdsl.irdl import AnyAttr, AttrConstraint, InferenceContext, VarConstraint, VerificationContext


@dataclass(frozen=True)
class TypeByRule(AttrConstraint[Attribute]):
    """The type follows from the named type, by a rule that `verify_` checks. `check` raises `VerifyException` for other
    types."""

    name: str
    rule: Callable[[Attribute], Attribute]
    check: Callable[[Attribute], object] = bool

    def verify(self, attr: Attribute, constraint_context: VerificationContext) -> None:
        self.check(attr)

    def can_infer(self, var_constraint_names: Set[str]) -> bool:
        return self.name in var_constraint_names

    def infer(self, context: InferenceContext) -> Attribute:
        return self.rule(VarConstraint(self.name, AnyAttr()).infer(context))

    def mapping_type_vars(self, type_var_mapping: Mapping[Any, Any]) -> TypeByRule:
        return self
