"""`relax.dpl`, by `weft.graph.pattern`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from weft.analysis import graph_patterns
from weft.analysis.graph_patterns import Pattern
from weft.dialects.traversal import copy_of
from weft.frontends import graph_pattern
from weft.frontends.graph_builder import Value
from weft.passes.module_edits import lookup
from weft.tvm.absent import refuses
from weft.tvm.relax.expr import Expr, expr_of
from weft.tvm.relax.function import Function
from weft.tvm.relax.names import weft_name

_numbers = count()


class DFPattern:
    """Occurrences of one pattern in another match the same value."""

    def __init__(self, pattern: Pattern, parts: Sequence[DFPattern] = ()) -> None:
        self.key = f"p{next(_numbers)}"
        self.pattern = pattern.named(self.key)
        self.parts = tuple(parts)

    def all_parts(self) -> dict[str, DFPattern]:
        """Contained patterns, by capture name."""
        found: dict[str, DFPattern] = {self.key: self}
        for part in self.parts:
            found.update(part.all_parts())
        return found

    def __or__(self, other: DFPattern) -> DFPattern:
        return DFPattern(self.pattern | other.pattern, (self, other))

    def has_dtype(self, dtype: str) -> DFPattern:
        return DFPattern(self.pattern.where(lambda ssa: Value(ssa).dtype == dtype), (self,))

    def has_shape(self, shape: Sequence[Any]) -> DFPattern:
        return DFPattern(self.pattern.where(lambda ssa: Value(ssa).shape == tuple(shape)), (self,))

    def has_attr(self, attrs: Mapping[str, Any]) -> DFPattern:
        """Requires attributes, by weft's names."""

        def holds(ssa: Any) -> bool:
            known = graph_patterns.arguments_of(ssa.owner)
            return all(known.get(key) == value for key, value in attrs.items())

        return DFPattern(self.pattern.where(holds), (self,))

    def match(self, expr: Expr) -> bool:
        return graph_pattern.match(self.pattern, expr) is not None


def _binary(name: str) -> Callable[[DFPattern, Any], DFPattern]:
    return lambda left, right: is_op(f"relax.{name}")(left, right)


for _sign, _name in {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide"}.items():
    setattr(DFPattern, f"__{_sign}__", _binary(_name))


class _OpPattern:
    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, *args: Any, varg_default_wildcard: bool = False) -> DFPattern:
        parts = [arg for arg in args if isinstance(arg, DFPattern)]
        operands = [arg.pattern if isinstance(arg, DFPattern) else arg for arg in args]
        return DFPattern(graph_patterns.op(self._name, *operands), parts)


def is_op(op_name: str) -> _OpPattern:
    """A call: `is_op("relax.add")(wildcard(), is_const())`."""
    return _OpPattern(weft_name(op_name.removeprefix("relax.")))


def wildcard() -> DFPattern:
    return DFPattern(graph_patterns.var())


def is_var(name: str = "") -> DFPattern:
    """Matches parameters and bound values, optionally by name."""
    found = graph_patterns.var()
    return DFPattern(found.where(lambda ssa: ssa.name_hint == name) if name else found)


def is_const() -> DFPattern:
    return DFPattern(graph_patterns.const())


def rewrite_call(
    pattern: DFPattern, rewriter: Callable[[Expr, Mapping[DFPattern, Expr]], Expr], func: Function
) -> Function:
    """A copy with each match replaced by `rewriter(value, matchings)`; returning the value keeps it."""
    parts = pattern.all_parts()
    owner = func.func_op.parent_op()
    if isinstance(owner, ModuleOp):
        copy = lookup(copy_of(owner), func.func_op.sym_name.data)
    else:
        ModuleOp([copy := copy_of(func.func_op)])

    def build(found: dict[str, Value]) -> Value | None:
        matched = {parts[name]: expr_of(value.ssa) for name, value in found.items() if name in parts}
        root = matched[pattern]
        made = rewriter(root, matched)
        return None if made == root else made

    graph_pattern.rewrite(copy, pattern.pattern, build, allow_shared=True)
    return Function(copy)


__getattr__ = refuses(__name__)
