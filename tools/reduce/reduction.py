"""The search for a smaller program: edits apply to many places at once, then to fewer, while any succeeds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import MISSING, dataclass, field, fields, replace
from hashlib import sha256
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from weft.dialects.traversal import copy_of, operations_in
from weft.driver.parsing import parse_text
from weft.passes.nested import NestedPasses
from weft.passes.pipeline_text import pipeline_text
from weft.support.errors import CompileError
from weft.tools.printing import ScopedMLIRTarget
from weft.tools.reduce.edits import EDITS, size_of, smaller_numbers, total_of_numbers

if TYPE_CHECKING:
    from xdsl.context import Context
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.passes import ModulePass

    from weft.tools.reduce.questions import InterestingnessTest

T = TypeVar("T")


@dataclass(frozen=True)
class Candidate:
    text: str
    passes: tuple[ModulePass, ...]
    operations: int
    size: int
    """Twice the number of operations, plus the numbers of parameters and results of functions."""

    @property
    def pipeline(self) -> str:
        return pipeline_text(self.passes) if self.passes else ""

    @property
    def key(self) -> str:
        return sha256(f"{self.pipeline}\n{self.text}".encode()).hexdigest()[:24]

    @property
    def size_in_words(self) -> str:
        passes = f", {_count(self.passes)} passes" if self.passes else ""
        return f"{self.operations} operations{passes}"

    def is_smaller_than(self, other: Candidate) -> bool:
        """Compare passes and operations, then numbers, then the length of the text."""

        def measure(c: Candidate) -> tuple[int, int, int]:
            return c.size + 2 * _count(c.passes), total_of_numbers(c.text), len(c.text) + len(c.pipeline)

        return measure(self) < measure(other)


@dataclass
class Journal:
    """Answers in a file, so that an interrupted reduction repeats no test."""

    path: Path
    answers: dict[str, bool] = field(default_factory=dict[str, bool])

    def begin(self, settings: str, *, resume: bool) -> None:
        """Read the answers if `resume`. Raises `CompileError` for a journal with other settings."""
        if resume and self.path.exists():
            head, *lines = self.path.read_text().splitlines() or [""]
            if head != settings:
                raise CompileError(f"--resume: '{self.path}' is of a reduction with other options: {head}")
            for line in lines:
                key, _, answer = line.partition(" ")
                self.answers[key] = answer == "1"
        else:
            self.path.write_text(f"{settings}\n")

    def add(self, key: str, answer: bool) -> None:
        self.answers[key] = answer
        with self.path.open("a") as file:
            file.write(f"{key} {int(answer)}\n")


class Reduction:
    """Passes each smaller interesting candidate to `found`."""

    def __init__(
        self,
        context: Context,
        question: InterestingnessTest,
        journal: Journal,
        found: Callable[[Candidate], None],
        jobs: int,
        told: Callable[[str], None],
    ) -> None:
        """`jobs` is the number of processes; `told` receives the name of the current edit."""
        self._context, self.question, self._journal = context, question, journal
        self._found, self._told, self._jobs = found, told, jobs
        self._rejected: set[str] = set()
        """Candidates that are not smaller, or cannot be printed."""
        self.asked = 0
        """The number of programs that were tested."""

    def candidate(self, module: ModuleOp, passes: tuple[ModulePass, ...]) -> Candidate:
        stream = StringIO()
        ScopedMLIRTarget().emit(self._context, module, stream)
        return Candidate(stream.getvalue(), passes, len(operations_in(module)) - 1, size_of(module))

    def run(self, start: Candidate) -> Candidate:
        best, before = start, None
        with ThreadPoolExecutor(self._jobs) as pool:
            self._pool = pool
            while before is not best:
                before = best
                best = self._reduce_passes(best)
                for what in EDITS:
                    best = self._reduce_module(best, what)
                best = self._reduce_numbers(best)
        return best

    def _reduce_passes(self, best: Candidate) -> Candidate:
        self._told("passes")
        number = 0
        while True:
            smaller = list(_smaller_pipelines(best.passes))
            found = self._first(best, (replace(best, passes=p) for p in smaller[number:]))
            if found is None:
                return best
            number = min(smaller.index(found.passes), len(smaller))
            best = found

    def _reduce_module(self, best: Candidate, what: str) -> Candidate:
        self._told(what)
        listing = EDITS[what]

        def edited(module: ModuleOp, places: Sequence[int], passes: tuple[ModulePass, ...]) -> Candidate | None:
            copy = copy_of(module)
            try:
                edits = listing(copy)
                for place in places:
                    edits[place]()
                return self.candidate(copy, passes)
            except Exception:  # noqa: BLE001 - edits leave IR that printers of operations do not expect
                return None

        module = self._parsed(best)
        count = len(listing(module))
        length = count
        while length:
            start = 0
            while start < count:
                parts = ((s, range(s, min(s + length, count))) for s in range(start, count, length))
                tried = ((s, edited(module, part, best.passes)) for s, part in parts)
                found = self._first_of(best, tried)
                if found is None:
                    break
                start, best = found
                module = self._parsed(best)
                count = len(listing(module))
                length = min(length, max(count, 1))
            length = length // 2 if length > 1 else 0
        return best

    def _reduce_numbers(self, best: Candidate) -> Candidate:
        self._told("numbers")
        while (
            found := self._first(best, (replace(best, text=text) for text in smaller_numbers(best.text)))
        ) is not None:
            best = self.candidate(self._parsed(found), found.passes)
        return best

    def _parsed(self, candidate: Candidate) -> ModuleOp:
        return parse_text(self._context, candidate.text, "<candidate>")

    def _first(self, best: Candidate, candidates: Iterable[Candidate]) -> Candidate | None:
        found = self._first_of(best, ((0, candidate) for candidate in candidates))
        return None if found is None else found[1]

    def _first_of(
        self, best: Candidate, candidates: Iterable[tuple[int, Candidate | None]]
    ) -> tuple[int, Candidate] | None:
        pending = (
            (number, candidate)
            for number, candidate in candidates
            if candidate is not None and self._is_worth_asking(candidate, best)
        )
        for batch in _batches(pending, self._jobs):
            answers = list(self._pool.map(self._ask, [candidate for _, candidate in batch]))
            for (number, candidate), answer in zip(batch, answers, strict=True):
                self._journal.add(candidate.key, answer)
                self._told("")
                if answer:
                    self._found(candidate)
                    return number, candidate
        return None

    def _is_worth_asking(self, candidate: Candidate, best: Candidate) -> bool:
        key = candidate.key
        if key in self._rejected or self._journal.answers.get(key) is False:
            return False
        if candidate.is_smaller_than(best):
            return True
        self._rejected.add(key)
        return False

    def _ask(self, candidate: Candidate) -> bool:
        known = self._journal.answers.get(candidate.key)
        if known is not None:
            return known
        self.asked += 1
        question = replace(self.question, run=replace(self.question.run, passes=candidate.pipeline))
        answer = question.ask(candidate.text)
        return answer.verifies and answer.interesting


def _batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch


def _count(passes: Sequence[ModulePass]) -> int:
    return sum(_count(p.passes) if isinstance(p, NestedPasses) else 1 for p in passes)


def _smaller_pipelines(passes: tuple[ModulePass, ...]) -> Iterator[tuple[ModulePass, ...]]:
    """Omit runs of passes, longest first; then options."""
    length = len(passes)
    while length:
        for start in range(0, len(passes), length):
            yield passes[:start] + passes[start + length :]
        length //= 2
    for at, module_pass in enumerate(passes):
        for simpler in _simpler(module_pass):
            yield (*passes[:at], simpler, *passes[at + 1 :])


def _simpler(module_pass: ModulePass) -> Iterator[ModulePass]:
    """Omit one option, or nested passes."""
    if isinstance(module_pass, NestedPasses):
        for inner in _smaller_pipelines(module_pass.passes):
            if inner:
                yield replace(module_pass, passes=inner)
        return
    optional = [f for f in fields(module_pass) if f.init and f.default is not MISSING]
    defaults: Mapping[str, Any] = {f.name: f.default for f in optional}
    for name, default in defaults.items():
        if getattr(module_pass, name) != default:
            try:
                yield replace(module_pass, **{name: default})
            except ValueError:  # for interdependent options
                continue
