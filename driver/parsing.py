"""Parsing of text into a module in which every operation has its location.

xDSL's parser records no positions and reports undefined values at the end of the module. This one stores
`file:line:col` of the name on each operation (an explicit `loc(...)` takes precedence), reports an undefined value at
its first use, suggests similar names for unknown operations, and turns every failure into a located `CompileError`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn, TypeAlias

from xdsl.dialects.builtin import (
    FileLineColLoc,
    IntAttr,
    IntegerAttr,
    LocationAttr,
    ModuleOp,
    StringAttr,
    UnknownLoc,
    i64,
)
from xdsl.ir import BlockArgument
from xdsl.parser import ParserState
from xdsl.traits import IsolatedFromAbove
from xdsl.utils.exceptions import MultipleSpansParseError, ParseError, VerifyException
from xdsl.utils.lexer import Input, Span, Token
from xdsl.utils.mlir_lexer import KIND_BY_PUNCTUATION_SPELLING, MLIRLexer, MLIRToken, MLIRTokenKind

from weft.support.bits_parser import BitsParser
from weft.support.constant_file import WEIGHTS
from weft.support.errors import CompileError, WeftError, did_you_mean
from weft.support.locations import SourceLocation, source_location

if TYPE_CHECKING:
    from xdsl.context import Context
    from xdsl.dialect_interfaces.op_asm import OpAsmDialectInterface
    from xdsl.dialects.builtin import IndexType
    from xdsl.ir import Attribute, Operation, SSAValue, TypeAttribute
    from xdsl.ir.affine import AffineExpr, AffineMap
    from xdsl.parser import UnresolvedOperand

_BETTER_MESSAGES = {
    "Could not parse entire input!": "expected an operation, got {found}",
    " in block definition": "expected an operation or '}}', got {found}",
    "Expected shape type.": "expected an element type and the end of the shape, got {found}",
    "End of file reached before closing string literal.": "this string is not closed on its line, or holds a wrong "
    "escape",
    "Expected suffix identifier after {first_char}": "expected a name after the sign",
}
"""xDSL's messages that lack what was expected or found, and replacements."""

_INHERENT = frozenset(("alignment", "nontemporal", "offsets", "sizes", "strides"))
"""Attributes of `memref` and `vector` operations that MLIR prints by name outside of braces."""


Resources: TypeAlias = dict[str, dict[str, str | bool | int]]
"""The `external_resources` of a file, as a map from name and key to value."""


def parse_text(
    ctx: Context,
    text: str,
    name: str,
    *,
    line_offset: int = 0,
    implicit_module: bool = True,
    resources: Resources | None = None,
) -> ModuleOp:
    """Parse `text`, called `name` in locations and errors, from line `line_offset + 1` of `name`.

    Text without operations is an empty module. The file's `external_resources` are stored in `resources`. Raises
    `CompileError`, which shows the line of texts given to `remember_text`.
    """
    try:
        parser = LocatedParser(ctx, text, name, line_offset)
    except ParseError as error:
        raise _placed(error, line_offset) from None
    if implicit_module and parser.at_end:
        return ModuleOp([])
    module = parse_with(parser, name, implicit_module=implicit_module)
    if resources is not None:
        resources.update(parser.resources)
    return module


def parse_with(parser: LocatedParser, name: str, *, implicit_module: bool = True) -> ModuleOp:
    try:
        module = parser.parse_module(implicit_module)
        if WEIGHTS in module.attributes:
            from weft.driver.weights import load_weights  # start-up: 110 ms

            load_weights(module, Path(name), parser.resource_keys)
        return module
    except ParseError as error:
        raise _placed(error, parser.line_offset) from None
    except VerifyException as error:
        raise CompileError(str(error), location=parser.place_of_operation()) from error
    except RecursionError:
        raise CompileError("nested too deeply to be read", location=parser.place_of_operation()) from None
    except WeftError:
        raise
    except Exception as error:
        # Custom formats of xDSL raise bare exceptions.
        detail = f"{type(error).__name__}: {error}".removesuffix(": ")
        raise CompileError(
            f"this operation cannot be parsed ({detail})", location=parser.place_of_operation()
        ) from error


def decode_text(data: bytes, name: str) -> str:
    """Raises `CompileError` with the place of the first byte that is not UTF-8."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line = before.count(b"\n") + 1
        column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8")) + 1
        raise CompileError(
            f"'{name}' is not a text file: byte 0x{data[error.start]:02x} is not valid UTF-8",
            location=SourceLocation(name, line, column),
        ) from None


_REGISTERED_STEPS: Final = (
    "a primitive that a script registers exists in its process only, one of a package with an entry point "
    "'xdsl.universe' also in tools and in the processes of a search"
)


_PLAIN_TYPE: Final = re.compile(r"(?:memref|tensor|vector)<[^<>!#/]*+>")
"""A type whose text alone determines it: without aliases, layouts and comments."""


_FREQUENT_TOKEN: Final = re.compile(
    r"""(?:\s++|//[^\n]*+)*+
    (?:([a-zA-Z_][a-zA-Z0-9_$.]*+)
      |(%(?:[0-9]++|[a-zA-Z$._-][a-zA-Z0-9$._-]*+))
      |([:,()}\[\]<>=+/*?|]|->|-(?!>)|\{(?!-\#))
      |([0-9]++(?![.xX]))
      |(@[a-zA-Z_][a-zA-Z0-9_$.]*+))""",
    re.ASCII | re.VERBOSE,
)
_KIND_OF_GROUP: Final = (
    None,
    MLIRTokenKind.BARE_IDENT,
    MLIRTokenKind.PERCENT_IDENT,
    None,
    MLIRTokenKind.INTEGER_LIT,
    MLIRTokenKind.AT_IDENT,
)
"""Of `_FREQUENT_TOKEN`; None for punctuation, whose spelling is its kind."""


class _Lexer(MLIRLexer):
    """One pattern for frequent tokens halves the time; one for strings avoids exponential time if unclosed."""

    _unescaped_characters_regex = re.compile(r'"(?:[^"\\\n\v\f]++|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*+"')

    def lex(self) -> MLIRToken:
        found = _FREQUENT_TOKEN.match(self.input.content, self.pos)
        if found is None or (group := found.lastindex) is None:
            return super().lex()
        start, end = found.span(group)
        self.pos = end
        # The constructor of a frozen dataclass takes as long as the match.
        span: Span[str] = object.__new__(Span)
        span.__dict__.update(start=start, end=end, input=self.input, line_offset=0)
        return Token(_KIND_OF_GROUP[group] or KIND_BY_PUNCTUATION_SPELLING[found[group]], span)


@lru_cache(maxsize=1 << 14)
def _integer(number: int) -> IntAttr:
    """Attributes are shared: making and verifying one takes longer than finding it."""
    return IntAttr(number)


class LocatedParser(BitsParser):
    """xDSL's parser with locations. Raises `ParseError`."""

    def __init__(self, ctx: Context, text: str, name: str, line_offset: int = 0) -> None:
        super().__init__(ctx, "", name)
        self._resume_from(ParserState(_Lexer(Input(text, name))))
        self.line_offset = line_offset
        self._file = StringAttr(name)
        self._line_starts = [0]
        self._line_starts.extend(i + 1 for i, character in enumerate(text) if character == "\n")
        self._operation_starts: list[int] = []
        """Positions of the names of the operations being parsed, outermost first."""
        self.last_start = 0
        """Position of the name of the last operation."""
        self._first_uses: dict[str, Span] = {}
        """Maps a name to its first use before its definition."""
        self._definitions: dict[str, int] = {}
        """Maps a name to its last definition, also in closed scopes."""
        self.resources: Resources = {}
        """The parsed `external_resources`."""
        self._handles: dict[tuple[str, str], str] = {}
        """Maps the dialect and key of each `dialect_resource` to its key in the process."""
        self._types: dict[str, TypeAttribute] = {}
        """Types by their texts."""

    @property
    def at_end(self) -> bool:
        return self._current_token.kind is MLIRTokenKind.EOF

    def place(self, position: int, length: int = 0) -> SourceLocation:
        line = bisect_right(self._line_starts, position)
        column = position - self._line_starts[line - 1] + 1
        return SourceLocation(self._file.data, line + self.line_offset, column, length)

    def _parse_dialect_resource_handle(self, dialect_name: str, interface: OpAsmDialectInterface) -> str:
        """The dialect's key of a resource of this file; another one if an earlier file used the same."""
        # xDSL declares a key again for each use.
        key = self.parse_identifier(" for resource handle")
        handle = self._handles.get((dialect_name, key))
        if handle is None:
            handle = self._handles[dialect_name, key] = interface.declare_resource(key)
            self.dialect_resources.add((dialect_name, handle))
        return handle

    @property
    def resource_keys(self) -> dict[str, str]:
        """Maps the key in the process to the key in the text, for each resource."""
        return {handle: key for (_, key), handle in self._handles.items()}

    def _location(self, position: int) -> FileLineColLoc:
        place = self.place(position)
        return FileLineColLoc(self._file, _integer(place.line), _integer(place.column))

    def place_of_operation(self) -> SourceLocation:
        """The place of the innermost operation being parsed."""
        return self.place(self._operation_starts[-1] if self._operation_starts else self.pos)

    def parse_module(self, allow_implicit_module: bool = True) -> ModuleOp:
        module = super().parse_module(allow_implicit_module)
        if not allow_implicit_module and not self.at_end:
            self.raise_error("expected the end of the file after the module")
        return module

    def parse_optional_type(self) -> TypeAttribute | None:
        token = self._current_token
        if token.kind is not MLIRTokenKind.BARE_IDENT:
            return super().parse_optional_type()
        plain = _PLAIN_TYPE.match(self.lexer.input.content, token.span.start)
        if plain is None:
            return super().parse_optional_type()
        known = self._types.get(plain[0])
        if known is not None:
            self._skip_to(plain.end())
            return known
        found = super().parse_optional_type()
        if found is not None:
            self._types[plain[0]] = found
        return found

    def _skip_to(self, position: int) -> None:
        self._resume_from(position)

    def parse_operation(self) -> Operation:
        self._operation_starts.append(self.pos)
        operation = super().parse_operation()
        start = self.last_start = self._operation_starts.pop()
        if source_location(operation.location) is None:  # also if the location is only a name
            operation.location = self._location(start)
        if self.forward_ssa_references and (
            operation.has_trait(IsolatedFromAbove, value_if_unregistered=False) or not self._operation_starts
        ):
            self._raise_undefined()
        return operation

    def _parse_op_result_list(self) -> list[tuple[Span, int]]:
        results = super()._parse_op_result_list()
        self._operation_starts[-1] = self.pos
        return results

    def _parse_location(self) -> LocationAttr:
        """Aliases defined later, as at the end of JAX's output, are ignored; a range `"f.py":1:2 to 3:4` counts as its
        start."""
        token = self._current_token
        if token.kind is MLIRTokenKind.HASH_IDENT and token.text not in self.attribute_aliases:
            self._consume_token(MLIRTokenKind.HASH_IDENT)
            return UnknownLoc()
        location = super()._parse_location()
        if isinstance(location, FileLineColLoc) and self.parse_optional_keyword("to") is not None:
            self.parse_optional_integer(allow_boolean=False)
            self.parse_punctuation(":")
            self.parse_integer(allow_boolean=False)
        return location

    def _get_op_by_name(self, name: str) -> type[Operation]:
        found = self.ctx.get_optional_op(name, dialect_stack=self._parser_state.dialect_stack)
        if found is not None:
            return found
        start = self._operation_starts[-1]
        quotes = 2 if self.lexer.input.at(start) == '"' else 0
        self.raise_error(self._unknown_operation(name), start, start + len(name) + quotes)

    def _unknown_operation(self, name: str) -> str:
        dialect, dot, _ = name.partition(".")
        if dot and self.ctx.get_optional_dialect(dialect) is None:
            near = did_you_mean(dialect, self.ctx.registered_dialect_names)
            return f"unknown operation '{name}': there is no dialect '{dialect}'{near}"
        known = [op.name for op in self.ctx.loaded_ops]
        if dot:
            known = [op for op in known if op.startswith(f"{dialect}.")]
        elsewhere = f"; {_REGISTERED_STEPS}" if dot and dialect == "sched" else ""
        return f"unknown operation '{name}'{did_you_mean(name, known)}{elsewhere}"

    def resolve_operand(self, operand: UnresolvedOperand, type: Attribute) -> SSAValue:
        if operand.operand_name not in self.ssa_values:
            self._first_uses.setdefault(operand.operand_name, operand.span)
        return super().resolve_operand(operand, type)

    def _register_ssa_definition(self, name: str, values: Sequence[SSAValue], span: Span) -> None:
        if name in self.ssa_values:
            before = self.place(self._definitions[name], len(name) + 1)
            raise CompileError(
                f"value %{name} is already defined, at line {before.line}",
                location=self.place(span.start, span.len),
                notes=(("it is defined here", before),),
            )
        super()._register_ssa_definition(name, values, span)
        for value in values:
            if isinstance(value, BlockArgument) and isinstance(value.location, UnknownLoc):
                value.location = self._location(span.start)
        self._definitions[name] = span.start
        self._first_uses.pop(name, None)

    def _parse_external_resources(self) -> None:
        """Parse `{name: {key: "text", other: true}}`; xDSL supports only the resources of dialects."""
        self.parse_comma_separated_list(self.Delimiter.BRACES, self._parse_external_resource)

    def _parse_external_resource(self) -> None:
        entries = self.resources.setdefault(self.parse_identifier(), {})

        def parse_entry() -> None:
            key = self.parse_identifier()
            self.parse_punctuation(":")
            value = self.parse_optional_str_literal()
            if value is None:
                value = self.parse_optional_boolean()
            entries[key] = self.parse_integer() if value is None else value

        self.parse_punctuation(":")
        self.parse_comma_separated_list(self.Delimiter.BRACES, parse_entry)

    def _raise_undefined(self) -> NoReturn:
        name = min(self.forward_ssa_references, key=lambda n: self._first_uses[n].start)
        use = self._first_uses[name]
        if name in self._definitions:
            definition = self.place(self._definitions[name], len(name) + 1)
            raise CompileError(
                f"value %{name} is used outside its scope (it is defined at line {definition.line}, in a region "
                "that does not hold this use)",
                location=self.place(use.start, use.len),
                notes=(("it is defined here", definition),),
            )
        near = did_you_mean(f"%{name}", (f"%{known}" for known in self._definitions))
        near = near if "did you mean" in near else ""
        self.raise_error(f"value %{name} is used but not defined{near}", use)

    def parse_optional_attr_dict(self) -> dict[str, Attribute]:
        """Parse attributes, including those that MLIR prints by name since version 23: `alignment = 64 {a = 1}`."""
        inherent: dict[str, Attribute] = {}
        while self._current_token.kind is MLIRTokenKind.BARE_IDENT and self._current_token.text in _INHERENT:
            name = self.parse_identifier()
            is_parenthesized = self.parse_optional_punctuation("=") is None
            if is_parenthesized:
                self.parse_punctuation("(")
            number = self.parse_optional_integer(allow_boolean=False)
            inherent[name] = self.parse_attribute() if number is None else IntegerAttr(number, i64)
            if is_parenthesized:
                self.parse_punctuation(")")
            self.parse_optional_punctuation(",")
        return {**inherent, **super().parse_optional_attr_dict()}

    def parse_affine_map_of_ssa_ids(self) -> tuple[AffineMap, Sequence[SSAValue[IndexType]]]:
        start = self.pos
        try:
            index_map, values = super().parse_affine_map_of_ssa_ids()
        except NotImplementedError:
            self.raise_error(
                "an index expression multiplies and divides by integer constants only: compute a product of values "
                "with arith.muli and index with its result",
                start,
                self.pos,
            )
        if any(_divides_by_nothing(node) for expr in index_map.results for node in expr.dfs()):
            self.raise_error("an index expression divides by positive constants only", start, self.pos)
        if any(map(is_too_large, index_map.results)):
            self.raise_error("a constant of an index expression fits 64 bits", start, self.pos)
        return index_map, values


def _divides_by_nothing(expr: AffineExpr) -> bool:
    from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineConstantExpr

    return (
        isinstance(expr, AffineBinaryOpExpr)
        and expr.kind not in (AffineBinaryOpKind.Add, AffineBinaryOpKind.Mul)
        and isinstance(expr.rhs, AffineConstantExpr)
        and expr.rhs.value <= 0
    )


def is_too_large(expr: AffineExpr) -> bool:
    """Whether an index expression has a constant that exceeds 64 bits."""
    from xdsl.ir.affine import AffineConstantExpr

    return any(isinstance(node, AffineConstantExpr) and not -(2**63) <= node.value < 2**63 for node in expr.dfs())


def _placed(error: ParseError, line_offset: int) -> CompileError:
    span, message = error.span, error.msg.strip()
    better = _BETTER_MESSAGES.get(error.msg)
    if better is not None:
        message = better.format(found=repr(span.text) if span.text else "the end of the text")
    if isinstance(error, MultipleSpansParseError) and error.refs:
        other = error.refs[0][0]
        if "missing block declarations" in message:  # xDSL points at the end of the region
            span, message = other, f"block {other.text} is used but not defined in this region"
        else:
            message += f" ({(error.ref_text or 'see').strip(' :')}: line {other.get_location().line + line_offset})"
    start = span.get_location()
    location = SourceLocation(start.file, start.line + line_offset, start.col, span.len)
    return CompileError(message, location=location)
