"""The index of a file of IR: definitions and uses with their locations."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue
from xdsl.traits import SymbolOpInterface
from xdsl.utils.exceptions import ParseError, VerifyException

from weft.driver.parsing import LocatedParser, parse_with
from weft.driver.verify import verify_module
from weft.support.errors import CompileError
from weft.tools.diagnostics import Diagnostic, diagnostics_of, expectations_in, unmet
from weft.tools.lsp.texts import Text

if TYPE_CHECKING:
    from xdsl.context import Context
    from xdsl.ir import Attribute
    from xdsl.parser import UnresolvedOperand
    from xdsl.utils.lexer import Span
    from xdsl.utils.mlir_lexer import MLIRToken, MLIRTokenKind

_SEPARATOR = re.compile(r"^// -----.*\n?", re.MULTILINE)


@dataclass(frozen=True)
class Mention:
    """`start` and `end` are offsets in the text."""

    start: int
    end: int
    target: SSAValue | Block
    is_definition: bool
    others: tuple[SSAValue, ...] = ()
    """The values of a definition of several, `%a:2`."""


@dataclass
class Chunk:
    module: ModuleOp
    start: int
    """The offset of its text in the file."""
    mentions: list[Mention] = field(default_factory=list[Mention])
    operations: list[tuple[int, int, Operation]] = field(default_factory=list[tuple[int, int, Operation]])
    """Start of the name, end, and operation, sorted by start; the offsets are in the file."""

    @cached_property
    def _starts(self) -> list[int]:
        return [start for start, _, _ in self.operations]

    @cached_property
    def places(self) -> dict[Operation, tuple[int, int]]:
        return {op: (start, end) for start, end, op in self.operations}

    @cached_property
    def _mention_starts(self) -> list[int]:
        return [mention.start for mention in self.mentions]

    def mention_at(self, offset: int) -> Mention | None:
        at = bisect_right(self._mention_starts, offset) - 1
        if at >= 0 and self.mentions[at].start <= offset <= self.mentions[at].end:
            return self.mentions[at]
        return None

    def mentions_of(self, target: SSAValue | Block) -> list[Mention]:
        return [m for m in self.mentions if m.target is target or target in m.others]

    def definition_of(self, target: SSAValue | Block) -> Mention | None:
        return next((m for m in self.mentions_of(target) if m.is_definition), None)

    def operation_at(self, offset: int) -> Operation | None:
        """Returns the innermost operation that contains an offset."""
        at = bisect_right(self._starts, offset) - 1
        while at >= 0:
            start, end, op = self.operations[at]
            if start <= offset <= end:
                return op
            at -= 1
        return None

    def operation_on_line(self, text: Text, line: int) -> Operation | None:
        begin = text.starts[line]
        end = begin + len(text.line(line))
        return next((op for start, _, op in self.operations if begin <= start <= end), None)

    def symbols(self) -> Iterator[tuple[str, Operation]]:
        for _, _, op in self.operations:
            trait = op.get_trait(SymbolOpInterface)
            name = None if trait is None else trait.get_sym_attr_name(op)
            if name is not None:
                yield name.data, op


@dataclass
class FileIndex:
    text: Text
    chunks: list[Chunk]

    def chunk_at(self, offset: int) -> Chunk | None:
        found = None
        for chunk in self.chunks:
            if chunk.start <= offset:
                found = chunk
        return found


@dataclass
class Analysis:
    """`index` is None if no chunk parses, and lacks chunks that do not parse."""

    diagnostics: list[Diagnostic]
    index: FileIndex | None
    complete: bool
    """Whether all chunks were parsed."""


class IndexingParser(LocatedParser):
    def __init__(self, ctx: Context, text: str, name: str, line_offset: int = 0, *, base: int = 0) -> None:
        self.base = base
        self.mentions: list[Mention] = []
        self.spans: list[tuple[int, int, Operation]] = []
        self._used: list[tuple[int, int, SSAValue]] = []
        self._replaced: dict[SSAValue, SSAValue] = {}
        self._consumed = 0
        """The end of the last token: an operation ends there, before comments."""
        super().__init__(ctx, text, name, line_offset)

    def resolve_operand(self, operand: UnresolvedOperand, type: Attribute) -> SSAValue:
        value = super().resolve_operand(operand, type)
        self._used.append((operand.span.start, operand.span.end, value))
        return value

    def _register_ssa_definition(self, name: str, values: Sequence[SSAValue], span: Span) -> None:
        forward = dict(self.forward_ssa_references.get(name, {}))
        super()._register_ssa_definition(name, values, span)
        for index, placeholder in forward.items():
            self._replaced[placeholder] = values[index]
        if values:
            self.mentions.append(
                Mention(self.base + span.start, self.base + span.end, values[0], True, tuple(values[1:]))
            )

    def parse_optional_successor(self) -> Block | None:
        span = self._current_token.span
        block = super().parse_optional_successor()
        if block is not None:
            self.mentions.append(Mention(self.base + span.start, self.base + span.end, block, False))
        return block

    def _parse_block(self) -> Block:
        span = self._current_token.span
        block = super()._parse_block()
        self.mentions.append(Mention(self.base + span.start, self.base + span.end, block, True))
        return block

    def parse_operation(self) -> Operation:
        depth = len(self.spans)
        operation = super().parse_operation()
        self.spans.insert(depth, (self.base + self.last_start, self.base + self._consumed, operation))
        return operation

    def _consume_token(self, expected_kind: MLIRTokenKind | None = None) -> MLIRToken:
        token = super()._consume_token(expected_kind)
        self._consumed = token.span.end
        return token

    def _skip_to(self, position: int) -> None:
        super()._skip_to(position)
        self._consumed = position

    def chunk(self, module: ModuleOp) -> Chunk:
        for start, end, value in self._used:
            target = self._replaced.get(value, value)
            self.mentions.append(Mention(self.base + start, self.base + end, target, False))
        self.mentions.sort(key=lambda mention: mention.start)
        self.spans.sort(key=lambda span: (span[0], -span[1]))
        return Chunk(module, self.base, self.mentions, self.spans)


def analyse(ctx: Context, content: str, name: str) -> Analysis:
    """Parse and verify a text, in chunks between `// -----`. Diagnostics that comments expect (`expected-error`) are
    not reported; missing ones are."""
    text = Text(content)
    diagnostics: list[Diagnostic] = []
    chunks: list[Chunk] = []
    complete = True
    expects = "--verify-diagnostics" in content and not _runs_passes(content)
    for start, part in _chunks(content):
        found: list[Diagnostic] = []
        offset = content.count("\n", 0, start)
        try:
            parser = IndexingParser(ctx, part, name, offset, base=start)
            module = ModuleOp([]) if parser.at_end else parse_with(parser, name)
            chunks.append(parser.chunk(module))
            verify_module(module)
        except (CompileError, ParseError, VerifyException) as error:
            complete = complete and bool(chunks) and chunks[-1].start == start
            found += diagnostics_of(error)
        if expects:
            try:
                wrong = unmet(expectations_in(part, name, offset), found, name)
                found = [Diagnostic("error", error.message, error.location) for error in wrong]
            except CompileError as error:
                found = diagnostics_of(error)
        diagnostics += found
    return Analysis(diagnostics, FileIndex(text, chunks) if chunks else None, complete)


def _runs_passes(content: str) -> bool:
    """Parsing does not determine the diagnostics of passes."""
    return re.search(r"^// RUN:.*\s(-p|--passes|--pass-pipeline)[ =]", content, re.MULTILINE) is not None


def _chunks(content: str) -> Iterator[tuple[int, str]]:
    start = 0
    for separator in _SEPARATOR.finditer(content):
        yield start, content[start : separator.start()]
        start = separator.end()
    yield start, content[start:]


def defining_operation(value: SSAValue) -> Operation | None:
    """The value is a result of the operation or an argument of its region."""
    if isinstance(value, OpResult):
        return value.op
    return value.block.parent_op() if isinstance(value, BlockArgument) else None
