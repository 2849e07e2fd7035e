"""Checks of arguments of public functions against their annotations."""

from __future__ import annotations

import inspect
import os
import sys
import types
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, wraps
from itertools import chain, repeat
from numbers import Integral, Real
from pathlib import Path
from reprlib import Repr
from typing import Any, Final, ParamSpec, TypeVar, Union, cast, get_args, get_origin

from weft.support.errors import did_you_mean

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=type)

_UNCHECKED: Final = object()
"""The annotation of parameters of any type, and of names defined for type checkers only."""
_SHORT: Final = Repr()
_SHORT.maxstring = _SHORT.maxother = 160
_SHORT.maxlist = _SHORT.maxtuple = _SHORT.maxdict = _SHORT.maxset = 16


_COMMON: Final[dict[str, object]] = {
    "Callable": Callable,
    "Collection": Collection,
    "Iterable": Iterable,
    "Mapping": Mapping,
    "Path": Path,
    "Sequence": Sequence,
}
"""Names in annotations that modules import only for type checkers."""
_DEEPEST: Final = 32
"""The deepest nesting of lists."""


class _WrongTypeError(Exception):
    """Raised for a value that does not match the annotation."""


def checked_methods(class_: C) -> C:
    for name, method in list(vars(class_).items()):
        if name.startswith("_") and name != "__init__":
            continue
        if inspect.isfunction(method):
            setattr(class_, name, checked(method))
        elif isinstance(method, staticmethod):
            setattr(class_, name, staticmethod(checked(method.__func__)))
    return class_


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Check the arguments of each call. NumPy integers and floats become Python's.

    Raises `TypeError` for a wrong number of arguments, an unknown keyword and a value that does not match its
    annotation, and `ValueError` for an integer of more than 64 bits.
    """
    signature = inspect.signature(function)
    unwrapped = cast("types.FunctionType", inspect.unwrap(function))
    own = int(next(iter(signature.parameters), None) in ("self", "cls"))
    names = _Names.of(signature)

    @wraps(function)
    def call(*args: P.args, **keywords: P.kwargs) -> R:
        subject = type(args[0]).__name__ if function.__name__ == "__init__" else function.__name__
        if not names.fit(len(args), keywords):
            # `bind` takes several times as long as `fit`, and has the text.
            try:
                signature.bind(*args, **keywords)
            except TypeError as error:
                raise TypeError(f"{subject}: {_count_text(signature, own, keywords, str(error))}") from None
        hints = _hints(unwrapped)
        values: list[object] = [*args[:own]]
        for name, value in zip(chain(names.positional[own:], repeat(names.rest)), args[own:], strict=False):
            values.append(checked_argument(subject, name, hints.get(name, _UNCHECKED), value))
        by_name = {
            name: checked_argument(subject, name, hints.get(name, _UNCHECKED), value)
            for name, value in keywords.items()
        }
        return cast("Callable[..., R]", function)(*values, **by_name)

    return call


@dataclass(frozen=True)
class _Names:
    positional: tuple[str, ...]
    keywords: frozenset[str]
    """Names that may be keywords."""
    required: tuple[tuple[int, str], ...]
    """Parameters without defaults, with their positions; a position beyond all arguments if they need a keyword.
    Names of positional-only parameters are empty."""
    rest: str
    """The name of `*rest`; empty if there is none."""
    takes_others: bool
    """Whether there is `**others`."""

    @staticmethod
    def of(signature: inspect.Signature) -> _Names:
        every = list(signature.parameters.values())
        kinds = inspect.Parameter
        positional = [p.name for p in every if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)]
        return _Names(
            tuple(positional),
            frozenset(p.name for p in every if p.kind in (kinds.POSITIONAL_OR_KEYWORD, kinds.KEYWORD_ONLY)),
            tuple(
                (
                    positional.index(p.name) if p.name in positional else sys.maxsize,
                    "" if p.kind is kinds.POSITIONAL_ONLY else p.name,
                )
                for p in every
                if p.default is p.empty and p.kind not in (kinds.VAR_POSITIONAL, kinds.VAR_KEYWORD)
            ),
            next((p.name for p in every if p.kind is kinds.VAR_POSITIONAL), ""),
            any(p.kind is kinds.VAR_KEYWORD for p in every),
        )

    def fit(self, count: int, keywords: Mapping[str, object]) -> bool:
        """Whether a call with `count` positional arguments binds each parameter once."""
        return (
            (count <= len(self.positional) or bool(self.rest))
            and all(at < count or name in keywords for at, name in self.required)
            and (self.takes_others or self.keywords.issuperset(keywords))
            and (not keywords or self.keywords.intersection(self.positional[:count]).isdisjoint(keywords))
        )


def shown(value: object) -> str:
    if isinstance(value, int) and value.bit_length() > 64:
        return f"an integer of {value.bit_length()} bits"
    try:
        return _SHORT.repr(value)
    except Exception:  # noqa: BLE001 - the value is a stranger's, and so is its __repr__
        return "a value that has no text"


def _count_text(signature: inspect.Signature, own: int, keywords: Mapping[str, object], problem: str) -> str:
    parameters = list(signature.parameters.values())[own:]
    unknown = next((name for name in keywords if name not in signature.parameters), None)
    if unknown is not None:
        names = [parameter.name for parameter in parameters]
        return f"unknown keyword '{unknown}'{did_you_mean(unknown, names)}"
    return f"{problem}; it takes ({', '.join(map(_parameter_text, parameters))})"


def _parameter_text(parameter: inspect.Parameter) -> str:
    if isinstance(parameter.annotation, str):
        # `str` quotes annotations that are texts; defaults keep their quotes.
        kind = "**" if parameter.kind is parameter.VAR_KEYWORD else "*" * (parameter.kind is parameter.VAR_POSITIONAL)
        default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
        return f"{kind}{parameter.name}: {parameter.annotation}{default}"
    return str(parameter)


def checked_argument(subject: str, name: str, hint: object, value: object) -> Any:
    """For classes that a module imports lazily."""
    try:
        return _converted(value, hint)
    except _WrongTypeError:
        given = f"{shown(value)} of type {type(value).__name__}"
        raise TypeError(f"{subject}: argument '{name}' must be {_hint_text(hint)}, got {given}") from None
    except OverflowError as error:
        raise ValueError(f"{subject}: argument '{name}' takes integers of at most 64 bits, got {error}") from None


def _hint_text(hint: object) -> str:
    origin, arguments = get_origin(hint), [_hint_text(part) for part in get_args(hint) if not isinstance(part, list)]
    if origin in (types.UnionType, Union):
        return " or ".join(arguments)
    if hint is None or hint is types.NoneType:
        return "None"
    if origin is type:
        return f"a subclass of {_hint_text(get_args(hint)[0])}"
    if origin is Callable:
        return "a function"
    if origin is not None and issubclass(origin, Mapping) and arguments:
        return f"a mapping from {arguments[0]} to {arguments[1]}"
    if origin is not None and _is_sequence(origin):
        return f"a sequence of {arguments[0]}" if arguments else "a sequence"
    return str(getattr(cast("object", origin or hint), "__name__", "such values, nested"))


@cache
def _hints(function: types.FunctionType) -> dict[str, object]:
    found: dict[str, object] = {}
    names = {**_COMMON, **function.__globals__}
    for name, annotation in inspect.get_annotations(function).items():
        try:
            found[name] = eval(annotation, names) if isinstance(annotation, str) else annotation
        except NameError:
            found[name] = _UNCHECKED
    return found


def _converted(value: object, hint: object) -> Any:
    """Raises `_WrongTypeError`, and `OverflowError` for an integer of more than 64 bits."""
    kind = cast("object", type(value))
    if kind is hint and kind is not int:
        return value
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (types.UnionType, Union):
        if kind in arguments and kind is not int:
            return value
        for part in arguments:
            with suppress(_WrongTypeError):
                return _converted(value, part)
        raise _WrongTypeError
    if hint is int or hint is float:
        if isinstance(value, bool) or not isinstance(value, Integral if hint is int else Real):
            raise _WrongTypeError
        return _integer(int(value)) if isinstance(value, Integral) else float(value)
    if origin is not None and issubclass(origin, Mapping):
        _require(isinstance(value, Mapping))
        _scan(value)
        for part in cast("Mapping[object, object]", value).items():
            for one, wanted in zip(part, arguments, strict=False):
                _converted(one, _UNCHECKED if wanted is Any else wanted)
    elif origin is not None and _is_sequence(origin):
        # `tuple[int, str]` does not occur in public signatures.
        _require(isinstance(value, Sequence if origin is tuple else origin) and not isinstance(value, str | bytes))
        wanted = arguments[0] if arguments else _UNCHECKED
        parts = [_converted(part, wanted) for part in cast("Sequence[object]", value)]
        return tuple(parts) if isinstance(value, tuple) else parts
    elif hint is None or hint is types.NoneType:
        _require(value is None)
    elif origin is type:
        _require(isinstance(value, type) and issubclass(value, arguments[0]))
    elif origin is Callable:
        _require(callable(value))
    elif isinstance(kind := origin or hint, type) and kind is not object:
        _require(isinstance(value, os.PathLike if kind is Path else kind))
    else:
        _scan(value)
    return value


def _require(condition: bool) -> None:
    if not condition:
        raise _WrongTypeError


def _is_sequence(origin: Any) -> bool:
    """Exclude iterators, because a check would exhaust them."""
    return origin is Iterable or (origin is not Callable and issubclass(origin, Collection))


def _scan(value: object, depth: int = 0) -> None:
    """Reject integers of more than 64 bits in nested lists, and lists that contain themselves."""
    if isinstance(value, int):
        _integer(value)
    elif isinstance(value, list | tuple | Mapping):
        _require(depth <= _DEEPEST)
        nested = cast("Mapping[str, object] | Sequence[object]", value)
        for part in nested.values() if isinstance(nested, Mapping) else nested:
            _scan(part, depth + 1)


def _integer(value: int) -> int:
    if not -(1 << 63) <= value < 1 << 63:
        raise OverflowError(shown(value))
    return value
