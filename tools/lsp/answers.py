"""Answers to an editor about a file of IR, based on the last successful parse."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from lsprotocol.types import (
    CompletionItem,
    CompletionItemKind,
    DocumentHighlight,
    DocumentSymbol,
    FoldingRange,
    FoldingRangeKind,
    Hover,
    InlayHint,
    InlayHintKind,
    InsertTextFormat,
    Location,
    MarkupContent,
    MarkupKind,
    Position,
    Range,
    SymbolKind,
    TextEdit,
)
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue, TypeAttribute

from weft.analysis.block_scopes import buffers_read, buffers_written
from weft.dialects.effects import effects_of, is_opaque
from weft.dialects.tir import BlockOp, ForOp
from weft.driver.programs import context
from weft.driver.universe import pass_factories
from weft.passes.pass_descriptions import PassDescription, describe_pass
from weft.support.packages import installed_universe
from weft.tools.lsp.index import Chunk, FileIndex, Mention, defining_operation
from weft.tools.lsp.texts import Change, Text, Token
from weft.tools.printing import ScopedMLIRTarget

if TYPE_CHECKING:
    from xdsl.context import Context

_SHOWN = 400
"""Maximum number of characters of an operation in a hover."""
_BUILTIN_TYPES = (
    *("index", "i1", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64"),
    *("memref", "tensor", "vector", "complex", "tuple", "none"),
)
_KINDS = {"func.func": SymbolKind.Function, "tir.for": SymbolKind.Array, "tir.block": SymbolKind.Method}


@dataclass
class Document:
    """`index` is of the last successful parse."""

    uri: str
    text: Text
    index: FileIndex | None = None
    change: Change | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if self.index is not None and self.index.text.content != self.text.content:
            self.change = Change(self.index.text.content, self.text.content)

    def to_index(self, offset: int) -> int | None:
        """Returns None in a changed part."""
        return offset if self.change is None else self.change.to_old(offset)

    def range(self, start: int, end: int) -> Range | None:
        """Returns None if the range changed."""
        if self.change is None:
            return self.text.range(start, end)
        first, last = self.change.to_new(start), self.change.to_new(end)
        return None if first is None or last is None else self.text.range(first, last)

    @cached_property
    def lines_of_comments(self) -> list[int]:
        return [n for n in range(len(self.text.starts)) if self.text.line(n).lstrip().startswith("//")]

    # Hover

    def hover(self, position: Position) -> Hover | None:
        offset = self.text.offset(position)
        token = self.text.token_at(offset)
        if token is None:
            return None
        if token.kind == "comment":
            found = _word_of_run_line(self.text, token, offset)
            return None if found is None else _hover(_about_pass(found), None)
        content = self._about(token, offset)
        return None if content is None else _hover(content, self.text.range(token.start, token.end))

    def _about(self, token: Token, offset: int) -> str | None:
        mention = self._mention(offset)
        if mention is not None:
            return about_value(mention.target) if isinstance(mention.target, SSAValue) else about_block(mention)
        if token.text.startswith("@"):
            op = self._symbol(token.text[1:], offset)
            return None if op is None else about_operation(op)
        if token.text[:1] in "!#":
            return self._alias(token.text) or about_attribute(token.text)
        place = self.to_index(token.start)
        chunk = self._chunk(offset)
        if place is not None and chunk is not None:
            op = chunk.operation_at(place)
            start = -1 if op is None else chunk.places[op][0]
            if op is not None and start == place:
                return about_operation(op)
        return about_operation_class(token.text)

    def _alias(self, name: str) -> str | None:
        """Returns the definition `#map = affine_map<...>`."""
        found = re.search(rf"^{re.escape(name)} *=.*", self.text.content, re.MULTILINE)
        return None if found is None else f"```mlir\n{found[0][:_SHOWN]}\n```"

    # Definitions and references

    def _chunk(self, offset: int) -> Chunk | None:
        place = self.to_index(offset)
        return None if self.index is None or place is None else self.index.chunk_at(place)

    def _mention(self, offset: int) -> Mention | None:
        place, chunk = self.to_index(offset), self._chunk(offset)
        return None if place is None or chunk is None else chunk.mention_at(place)

    def _symbol(self, name: str, offset: int) -> Operation | None:
        chunk = self._chunk(offset)
        return None if chunk is None else next((op for symbol, op in chunk.symbols() if symbol == name), None)

    def definition(self, position: Position) -> list[Location]:
        offset = self.text.offset(position)
        mention, chunk, token = self._mention(offset), self._chunk(offset), self.text.token_at(offset)
        if chunk is None:
            return []
        if mention is not None:
            found = chunk.definition_of(mention.target)
            return [] if found is None else self._locations([(found.start, found.end)])
        if token is not None and token.text.startswith("@"):
            op = self._symbol(token.text[1:], offset)
            return [] if op is None else self._locations([self._name_of_symbol(chunk, op, token.text)])
        return []

    def _name_of_symbol(self, chunk: Chunk, op: Operation, name: str) -> tuple[int, int]:
        start, end = chunk.places[op]
        content = "" if self.index is None else self.index.text.content
        at = content.find(name, start, end)
        return (at, at + len(name)) if at >= 0 else (start, start)

    def references(self, position: Position) -> list[Location]:
        offset = self.text.offset(position)
        mention, chunk, token = self._mention(offset), self._chunk(offset), self.text.token_at(offset)
        if mention is not None and chunk is not None:
            return self._locations((m.start, m.end) for m in chunk.mentions_of(mention.target))
        if token is None or not token.text.startswith("@") or token.kind != "name":
            return []
        same = [t for t in self.text.tokens if t.kind == "name" and t.text == token.text]
        inside = [t for t in same if self._chunk(t.start) is chunk]
        return [Location(self.uri, self.text.range(t.start, t.end)) for t in inside]

    def highlights(self, position: Position) -> list[DocumentHighlight]:
        return [DocumentHighlight(found.range) for found in self.references(position)]

    def _locations(self, spans: Iterable[tuple[int, int]]) -> list[Location]:
        ranges = [self.range(start, end) for start, end in spans]
        return [Location(self.uri, found) for found in ranges if found is not None]

    # Outline, folding, hints

    def outline(self) -> list[DocumentSymbol]:
        return self._outline

    @cached_property
    def _outline(self) -> list[DocumentSymbol]:
        return [] if self.index is None else [s for c in self.index.chunks for s in self._symbols(c, c.module)]

    def _symbols(self, chunk: Chunk, parent: Operation) -> Iterator[DocumentSymbol]:
        for op in [op for region in parent.regions for block in region.blocks for op in block.ops]:
            inner = list(self._symbols(chunk, op)) if op.regions else []
            name = _title(op)
            span = None if name is None else chunk.places.get(op)
            whole = None if span is None else self.range(*span)
            if name is None or whole is None:
                yield from inner
                continue
            line = Range(whole.start, Position(whole.start.line, whole.start.character + len(op.name)))
            if line.end.line == whole.end.line and line.end.character > whole.end.character:
                line = whole
            yield DocumentSymbol(name, _KINDS.get(op.name, SymbolKind.Object), whole, line, _detail(op), children=inner)

    def folding(self) -> list[FoldingRange]:
        """Returns regions between brackets, and runs of comment lines."""
        found: list[FoldingRange] = []
        opened: list[int] = []
        for token in self.text.tokens:
            if token.kind == "open":
                opened.append(token.start)
            elif token.kind == "close" and opened:
                first, last = self.text.position(opened.pop()).line, self.text.position(token.start).line
                if last > first + 1:
                    found.append(FoldingRange(first, last - 1))
        for first, last in _runs(self.lines_of_comments):
            if last > first:
                found.append(FoldingRange(first, last, kind=FoldingRangeKind.Comment))
        return found

    def hints(self, within: Range) -> list[InlayHint]:
        """Returns the types of results that lines do not contain, except indices of loops and blocks."""
        if self.index is None:
            return []
        hints: list[InlayHint] = []
        first, last = self.text.offset(within.start), self.text.offset(within.end)
        for chunk in self.index.chunks:
            for mention in chunk.mentions:
                if not mention.is_definition or not isinstance(mention.target, SSAValue):
                    continue
                if isinstance(defining_operation(mention.target), ForOp | BlockOp):
                    continue
                place = self.range(mention.start, mention.end)
                if place is None or not first <= self.text.offset(place.start) <= last:
                    continue
                types = ", ".join(str(value.type) for value in (mention.target, *mention.others))
                if types not in self.text.line(place.start.line):
                    hints.append(InlayHint(place.end, f": {types}", InlayHintKind.Type))
        return hints

    # Formatting

    def formatted(self) -> list[TextEdit]:
        """Indent by two spaces for each open brace, strip trailing spaces, and end the text in one newline."""
        opened: list[int] = []
        """The lines of the open brackets. Several brackets on one line indent once."""
        own: dict[int, int] = {}
        after: dict[int, int] = {}
        for token in self.text.tokens:
            if token.kind not in ("open", "close"):
                continue
            line = self.text.position(token.start).line
            if token.kind == "open":
                opened.append(line)
            elif opened:
                opened.pop()
                if not self.text.content[self.text.starts[line] : token.start].strip("})] \t"):
                    own[line] = len(set(opened))
            after[line] = len(set(opened))
        depth, lines = 0, list[str]()
        for number in range(len(self.text.starts)):
            line = self.text.line(number).strip()
            level = max(own.get(number, depth) - line.startswith("^"), 0)
            lines.append(("  " * level + line) if line else "")
            depth = after.get(number, depth)
        wanted = "\n".join(lines).rstrip("\n") + "\n" if self.text.content.strip() else ""
        if wanted == self.text.content:
            return []
        return [TextEdit(self.text.range(0, len(self.text.content)), wanted)]

    # Completion

    def completions(self, position: Position, ctx: Context) -> list[CompletionItem]:
        """Complete names, operations, types and attributes; in RUN lines passes, options and targets."""
        line = self.text.line(position.line)
        offset = self.text.offset(position)
        before = line[: offset - self.text.starts[position.line]]
        if re.match(r"\s*//\s*RUN:", before):
            return _in_run_line(before)
        if "//" in re.sub(r'"[^"]*"', "", before):
            return []
        sign = re.search(r"([%@^!#])[\w$.-]*$", before)
        if sign is not None and sign[1] in "%@^":
            return self._names(sign[1], position)
        if sign is not None:
            aliases = re.findall(rf"^({sign[1]}[\w$-]+) *=", self.text.content, re.MULTILINE)
            own = [
                CompletionItem(a, kind=CompletionItemKind.Reference, insert_text=a[1:], filter_text=a[1:])
                for a in aliases
            ]
            return [*own, *_attribute_items(ctx, sign[0], is_type=sign[1] == "!")]
        if re.search(r"(?:[:>(,<x] *|-> *)[a-z0-9]*$", before) and not re.search(r"= *[a-z]*$", before):
            types = [CompletionItem(name, kind=CompletionItemKind.Struct) for name in _BUILTIN_TYPES]
        else:
            types = []
        word = re.search(r"(?:^|[\s=>({])([a-z_][\w.]*)$", before)
        return [*types, *([] if word is None else _operation_items(ctx, word[1]))]

    def _names(self, sign: str, position: Position) -> list[CompletionItem]:
        """Returns the names before a position in the same program; for values, in the same function."""
        limit = self.text.offset(position)
        content = self.text.content
        start = max(content.rfind("\n// -----", 0, limit), 0)
        end = content.find("\n// -----", limit)
        if sign == "%":
            start = max(
                start, *(content.rfind(f"\n{word}", 0, limit) for word in ("func.func", "  func.func", "sched.func"))
            )
        names: dict[str, None] = {}
        for token in self.text.tokens:
            if token.start < start or token.kind != "name" or not token.text.startswith(sign):
                continue
            if token.end >= limit and (sign == "%" or (end >= 0 and token.start > end)):
                break
            names.setdefault(token.text.partition("#")[0], None)
        types = self._types_by_name() if sign == "%" else {}
        kind = {"%": CompletionItemKind.Variable, "@": CompletionItemKind.Function, "^": CompletionItemKind.Reference}
        return [
            CompletionItem(name, kind=kind[sign], detail=types.get(name), insert_text=name[1:], filter_text=name[1:])
            for name in reversed(names)
        ]

    def _types_by_name(self) -> dict[str, str]:
        if self.index is None:
            return {}
        content = self.index.text.content
        return {
            content[m.start : m.end]: str(m.target.type)
            for chunk in self.index.chunks
            for m in chunk.mentions
            if m.is_definition and isinstance(m.target, SSAValue)
        }


# Descriptions


def about_value(value: SSAValue) -> str:
    name = f"%{value.name_hint}" if value.name_hint else "%"
    lines = [f"```mlir\n{name} : {value.type}\n```"]
    op = defining_operation(value)
    if op is not None:
        what = "argument" if not op.results or value not in op.results else "result"
        uses = sum(1 for _ in value.uses)
        lines.append(f"{what} of `{op.name}`, {uses} use{'' if uses == 1 else 's'}")
        lines += _domain_of(op)
    return "\n\n".join(lines)


def about_block(mention: Mention) -> str | None:
    block = mention.target
    if not isinstance(block, Block):
        return None
    types = ", ".join(str(type_) for type_ in block.arg_types)
    return f"block with arguments ({types}) and {len(block.ops)} operations"


def about_operation(op: Operation) -> str:
    parts = [f"```mlir\n{_first_line(op)}\n```", *_domain_of(op), _effects_text(op)]
    documented = about_operation_class(op.name, type(op))
    return "\n\n".join([*parts, *([documented] if documented else [])])


def _first_line(op: Operation) -> str:
    return ScopedMLIRTarget(elide_above=16).text(op).split("\n", 1)[0][:_SHOWN]


def _domain_of(op: Operation) -> list[str]:
    if isinstance(op, ForOp):
        extent = op.extent if isinstance(op.extent, int) else f"%{op.extent.name_hint or '?'}"
        return [f"iterations: 0 .. {extent}"]
    if isinstance(op, BlockOp):

        def names(values: Iterable[SSAValue]) -> str:
            return ", ".join(f"%{v.name_hint or '?'}" for v in values) or "nothing"

        domain = (
            ScopedMLIRTarget(elide_above=16).text(op).split("\n", 1)[0].partition("iters")[2].removesuffix("{").strip()
        )
        reads, writes = names(buffers_read(op)), names(buffers_written(op))
        return [f"domain: `{domain}`" if domain else "domain: one instance", f"reads {reads}; writes {writes}"]
    return []


def _effects_text(op: Operation) -> str:
    if is_opaque(op):
        return "effects: unknown"
    effects = effects_of(op)
    parts: list[str] = []
    for what, values in (("reads", effects.reads), ("writes", effects.writes)):
        if values:
            parts.append(f"{what} {', '.join(f'%{v.name_hint or chr(63)}' for v in values)}")
    return "effects: " + ("; ".join(parts) or "none of its own")


@cache
def _context() -> Context:
    return context()


def about_operation_class(name: str, kind: type[Operation] | None = None) -> str | None:
    if kind is None:
        if "." not in name:
            return None
        kind = _context().get_optional_op(name)
    doc = None if kind is None else inspect.getdoc(kind)
    if kind is None or doc is None or doc == inspect.getdoc(Operation):
        return None if kind is None else f"`{name}`"
    return f"`{name}`: {doc}"


def about_attribute(name: str) -> str | None:
    """`name` is as in `!sched.loop` or `#graph.dims`."""
    ctx = _context()
    if "." not in name:
        return None
    kind = ctx.get_optional_type(name[1:]) if name.startswith("!") else ctx.get_optional_attr(name[1:])
    doc = None if kind is None else inspect.getdoc(kind)
    return None if kind is None else f"`{name}`" + (f": {doc}" if doc else "")


def _hover(content: str | None, where: Range | None) -> Hover | None:
    return None if content is None else Hover(MarkupContent(MarkupKind.Markdown, content), where)


# Outline


def _title(op: Operation) -> str | None:
    if isinstance(op, BlockOp):
        return op.label
    if isinstance(op, ForOp):
        return f"%{op.induction_variable.name_hint or '?'}"
    if isinstance(op, FuncOp):
        return f"@{op.sym_name.data}"
    symbol: Attribute | None = op.properties.get("sym_name") or op.attributes.get("sym_name")
    if symbol is not None:
        return f"@{getattr(symbol, 'data', symbol)}"
    return op.name if isinstance(op, ModuleOp) else None


def _detail(op: Operation) -> str:
    if isinstance(op, ForOp):
        return f"in {op.extent}" if isinstance(op.extent, int) else "in a symbolic extent"
    return str(op.function_type) if isinstance(op, FuncOp) else op.name


def _runs(numbers: list[int]) -> Iterator[tuple[int, int]]:
    first = last = -2
    for number in numbers:
        if number != last + 1:
            if first >= 0:
                yield first, last
            first = number
        last = number
    if first >= 0:
        yield first, last


# Passes and operations


@cache
def _factories() -> dict[str, Callable[[], Any]]:
    return pass_factories(installed_universe())


@cache
def _described(name: str) -> PassDescription | None:
    if name not in _factories():
        return None
    try:
        return describe_pass(_factories()[name]())
    except Exception:  # noqa: BLE001 - a package that cannot be imported has no description
        return None


def _about_pass(name: str) -> str | None:
    found = _described(name)
    if found is None:
        return None
    lines: list[str] = []
    for o in found.options:
        default = "" if o.default is None else f", default {o.default}"
        lines.append(f"- `{o.name}`: {o.type}{default}. {o.meaning}")
    options = "\n".join(lines)
    return "\n\n".join(part for part in (f"pass `{found.usage}`", found.text, options) if part)


def _word_of_run_line(text: Text, token: Token, offset: int) -> str | None:
    if not re.match(r"//\s*RUN:", token.text):
        return None
    for word in re.finditer(r"[a-z][a-z0-9-]*", token.text):
        if token.start + word.start() <= offset <= token.start + word.end():
            return word[0]
    return None


def _in_run_line(before: str) -> list[CompletionItem]:
    options = re.search(r"([a-z][a-z0-9-]*)\{[^{}]*$", before)
    if options is not None:
        found = _described(options[1])
        return [
            CompletionItem(
                option.name,
                kind=CompletionItemKind.Property,
                detail=option.type,
                documentation=option.meaning,
                insert_text=f"{option.name}=",
            )
            for option in (() if found is None else found.options)
        ]
    if re.search(r"(?:-t|--target)[= ]'?[\w-]*$", before):
        return [CompletionItem(n, kind=CompletionItemKind.EnumMember) for n in sorted(installed_universe().all_targets)]
    if re.search(r"(?:-p|--passes|--pass-pipeline)[= ]\s*['\"]?(?:[^'\"]*[,(\s])?[\w-]*$", before):
        return [CompletionItem(name, kind=CompletionItemKind.Function) for name in sorted(_factories())]
    return []


@cache
def _operations_of(dialect: str) -> list[tuple[str, str]]:
    found = _context().get_optional_dialect(dialect)
    if found is None:
        return []
    return [(op.name, (inspect.getdoc(op) or "").partition("\n")[0]) for op in found.operations]


def _operation_items(ctx: Context, word: str) -> list[CompletionItem]:
    dialect, dot, _ = word.partition(".")
    if not dot:
        return [CompletionItem(name, kind=CompletionItemKind.Module) for name in sorted(ctx.registered_dialect_names)]
    return [
        CompletionItem(
            name,
            kind=CompletionItemKind.Keyword,
            detail=summary,
            insert_text=name[len(dialect) + 1 :],
            filter_text=name[len(dialect) + 1 :],
            insert_text_format=InsertTextFormat.PlainText,
        )
        for name, summary in _operations_of(dialect)
    ]


def _attribute_items(ctx: Context, word: str, *, is_type: bool) -> list[CompletionItem]:
    dialect, dot, _ = word[1:].partition(".")
    names = sorted(ctx.registered_dialect_names)
    if not dot:
        return [CompletionItem(name, kind=CompletionItemKind.Module) for name in names]
    found = _context().get_optional_dialect(dialect)
    kinds = [] if found is None else list(found.attributes)
    return [
        CompletionItem(kind.name, kind=CompletionItemKind.Class, detail=(inspect.getdoc(kind) or "").partition("\n")[0],
                       insert_text=kind.name[len(dialect) + 1 :], filter_text=kind.name[len(dialect) + 1 :])
        for kind in kinds
        if _is_type(kind) == is_type
    ]  # fmt: skip


def _is_type(kind: type[Attribute]) -> bool:
    return issubclass(kind, TypeAttribute)
