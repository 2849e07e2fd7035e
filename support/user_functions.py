"""User-registered scalar intrinsics with lowering rules per target, and Python functions that programs call by name.

`graph.call_dps "env.linear"` looks its function up at run time. Intrinsics:

    weft.register_intrinsic("mylog", meaning=np.log)

    @weft.register_lowering("mylog", target="opencl", level=99)
    def _(call):
        return "log" if call.dtype == "float32" else None

A program declares an intrinsic as a function: `func.call @mylog(%x) : (f32) -> f32` with `func.func private @mylog(f32)
-> f32`. Rules for functions of `math` (`exp`, `sqrt`, ...) replace the built-in lowering. Rules of the highest level
are tried first; at the same level, rules for the target precede those for all targets ("default"). A rule returns the
name of a function of the target's language with the same arguments, or None to defer to the next rule.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypeVar

from weft.support.argument_types import checked
from weft.support.errors import CompileError, did_you_mean
from weft.support.target import is_target_kind, target_kinds

F = TypeVar("F", bound=Callable[..., Any])

DEFAULT: Final = "default"
"""The target of rules for all targets."""


@dataclass(frozen=True)
class IntrinsicCall:
    """Element types have NumPy's names, or are `bfloat16` and `index`."""

    name: str
    dtype: str
    """The element type of the result, "void" if there is none."""
    arguments: tuple[str, ...]


LoweringRule: TypeAlias = Callable[[IntrinsicCall], "str | None"]


@dataclass(frozen=True)
class DeclaredIntrinsic:
    """A declared intrinsic."""

    name: str
    pure: bool
    meaning: Callable[..., float] | None


@dataclass(frozen=True)
class _Rule:
    target: str
    level: int
    rule: LoweringRule
    number: int


_intrinsics: dict[str, DeclaredIntrinsic] = {}
_rules: dict[str, list[_Rule]] = {}


@checked
def register_intrinsic(
    name: str, *, pure: bool = True, meaning: Callable[..., float] | None = None, override: bool = False
) -> None:
    """Declare the intrinsic `name`. `meaning` computes it on Python numbers, for the interpreter. It must accept all
    numbers (`np.log`, which returns NaN where `math.log` raises).

    A `pure` intrinsic computes its result from its arguments alone. Calls of others are not repeated, removed,
    reordered, or run by several threads or lanes. Raises `CompileError` if the name is taken and `override` is not
    given.
    """
    if name in _intrinsics and not override:
        raise CompileError(f"an intrinsic '{name}' is registered already; override=True replaces it")
    _intrinsics[name] = DeclaredIntrinsic(name, pure, meaning)


@checked
def register_lowering(name: str, target: str = DEFAULT, level: int = 10) -> Callable[[LoweringRule], LoweringRule]:
    """Returns a decorator that registers a rule for an intrinsic or a function of `math`. Raises `CompileError` for an
    unknown kind of target."""
    if target != DEFAULT and not is_target_kind(target):
        kinds = (*target_kinds(), DEFAULT)
        raise CompileError(f"unknown target kind '{target}' for the lowering of '{name}'{did_you_mean(target, kinds)}")

    def register(rule: LoweringRule) -> LoweringRule:
        rules = _rules.setdefault(name, [])
        rules.append(_Rule(target, level, rule, len(rules)))
        # The latest of equal rules is first, so that a new rule replaces an old one.
        rules.sort(key=lambda r: (-r.level, r.target == DEFAULT, -r.number))
        return rule

    return register


def unregister_intrinsic(name: str) -> None:
    _intrinsics.pop(name, None)
    _rules.pop(name, None)


def intrinsics() -> Mapping[str, DeclaredIntrinsic]:
    return _intrinsics


def names_with_rules(target: str | None = None) -> frozenset[str]:
    """Without a target, returns the names with rules of any target."""
    kinds = (target, DEFAULT)
    return frozenset(name for name, rules in _rules.items() if target is None or any(r.target in kinds for r in rules))


def lowered_name(call: IntrinsicCall, target: str) -> str | None:
    for rule in _rules.get(call.name, ()):
        if rule.target in (target, DEFAULT):
            found = rule.rule(call)
            if found is not None:
                return found
    return None


ARRAY_FORMS: Final = ("numpy", "torch")
"""Arguments of registered functions: NumPy arrays or PyTorch tensors."""


@dataclass(frozen=True)
class RegisteredFunction:
    """A function, and the form of its arrays."""

    call: Callable[..., Any]
    arrays: str


_functions: dict[str, RegisteredFunction] = {}


@checked
def register_func(name: str, *, arrays: str = "numpy", override: bool = False) -> Callable[[F], F]:
    """Returns a decorator that registers a function for `graph.call_dps` and `BlockBuilder.call_dps`.

        @weft.register_func("env.linear")
        def linear(x, w, out):
            np.matmul(x, w, out=out)

    Its arguments are the operands, read-only, and then the results, which it writes in place: views of the program's
    memory, valid during the call; with `arrays="torch"` PyTorch tensors through DLPack.

    Raises `CompileError` if the name is taken and `override` is not given, and for an unknown form of arrays.
    """

    def register(function: F) -> F:
        set_func(name, function, arrays=arrays, override=override)
        return function

    return register


def set_func(name: str, function: Callable[..., Any], *, arrays: str = "numpy", override: bool = False) -> None:
    """Register a function. Raises as `register_func` does, and `TypeError` unless it is callable."""
    if not callable(function):
        raise TypeError(f"registering '{name}': expected a function, got {type(function).__name__}")
    if name in _functions and not override:
        raise CompileError(f"a function named '{name}' is registered already; override=True replaces it")
    if not name or "\0" in name:
        raise CompileError(f"a function is registered under a name without zero bytes, got {name!r}")
    if arrays not in ARRAY_FORMS:
        raise CompileError(
            f"registering '{name}': unknown form of arrays '{arrays}'{did_you_mean(arrays, ARRAY_FORMS)}"
        )
    _functions[name] = RegisteredFunction(function, arrays)


@checked
def get_func(name: str) -> Callable[..., Any]:
    """Returns a registered function. Raises `CompileError`, with similar names, if there is none."""
    return registered_function(name).call


def registered_function(name: str) -> RegisteredFunction:
    if name not in _functions:
        raise CompileError(f"no function is registered as '{name}'{did_you_mean(name, _functions)}")
    return _functions[name]


def registered_names() -> tuple[str, ...]:
    return tuple(sorted(_functions))


def unregister_func(name: str) -> None:
    """Unregister a function. Raises `CompileError` if there is none."""
    registered_function(name)
    del _functions[name]
