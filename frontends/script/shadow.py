"""The function that a printed script will be read as, built while the script is printed.

Each statement is emitted as the parser would emit it, and compared with the ops that are printed.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, MutableMapping, Sequence
from typing import TypeVar

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Block, Operation, SSAValue

from weft.analysis.structural_equality import Difference, compare_headers, compare_ops
from weft.frontends.script.emit import ScriptEmitter
from weft.frontends.script.names import Names
from weft.frontends.script.raising import NotRaised, Raiser
from weft.frontends.script.values import Buffer, Leaf, Opaque, Symbol, is_scalar
from weft.support.errors import CompileError

_Result = TypeVar("_Result")


class Restart(Exception):
    """The function must be printed again: with names for what `named` ops give, or with `plain` declarations."""

    def __init__(self, named: frozenset[Operation] = frozenset(), plain: bool = False) -> None:
        super().__init__()
        self.named = named
        self.plain = plain


class Shadow:
    """A function of the parser's making that follows the one that is printed."""

    def __init__(self, entry: Block, words: Names, restart: Restart) -> None:
        self.emitter = ScriptEmitter(entry)
        self.words = words
        self.plain = restart.plain
        self.names: dict[SSAValue, Leaf | Symbol | Buffer | Opaque] = {}
        """What the printed values are called; the values in it are the shadow's."""
        self._named = restart.named
        self._values: dict[SSAValue, SSAValue] = {}
        """Values of the shadow -> the printed ones."""

    def match(self, mine: SSAValue, printed: SSAValue) -> None:
        """`mine` stands for `printed`."""
        self._values[mine] = printed

    def bind(self, printed: SSAValue, mine: SSAValue, name: str) -> Leaf | Buffer | Opaque:
        """Give a value its name; the extents of a buffer are those of its type."""
        if isinstance(mine.type, MemRefType):
            extents = tuple(None if extent < 0 else extent for extent in mine.type.get_shape())
            leaf: Leaf | Buffer | Opaque = Buffer(mine, name, extents)
        elif not is_scalar(mine.type):
            leaf = Opaque(mine, name)
        else:
            leaf = Leaf.of(mine, name)
        self.names[printed] = leaf
        self._values[mine] = printed
        return leaf

    def raiser(self, window: Sequence[Operation]) -> Raiser:
        return Raiser(self.names, set(window), self._named)

    def must_be_named(self, op: Operation) -> bool:
        return op in self._named

    def attempt(
        self,
        window: Sequence[Operation],
        raised: Callable[[Raiser], _Result],
        produce: Callable[[_Result], Operation | None],
        printed: Operation | None = None,
    ) -> _Result | None:
        """What `raised` gives, if `produce` then emits ops equal to those of `window`; else None, and nothing is left.

        `produce` may give an op that it does not append: it must equal `printed` but for its regions, which stay empty.
        Raises Restart where values from before the window need names.
        """
        raiser = self.raiser(window)
        try:
            result = raised(raiser)
        except NotRaised as failure:
            if failure.needed:
                raise Restart(frozenset(failure.needed)) from None
            return None
        if not self._equal(window, raiser, lambda: produce(result), printed):
            if raiser.repeated:
                raise Restart(frozenset(raiser.repeated))
            return None
        return result

    def _equal(
        self,
        window: Sequence[Operation],
        raiser: Raiser,
        produce: Callable[[], Operation | None],
        printed: Operation | None,
    ) -> bool:
        taken = {op for op in window if op is not printed}
        if not raiser.taken <= taken:
            return False
        block = Block()
        equal = False
        made: Operation | None = None
        with self.emitter.trial(block):
            overlay: MutableMapping[SSAValue, SSAValue] = ChainMap({}, self._values)
            try:
                made = produce()
                equal = self._same(list(block.ops), made, window, printed, overlay)
            except CompileError:  # the emitter refuses what it cannot write
                equal = False
            if equal:
                self.emitter.keep()
                self._values.update(overlay)
        if made is not None:
            made.erase()
        if not equal:
            for op in reversed(list(block.ops)):
                op.detach()
                op.erase()
        return equal

    def _same(
        self,
        emitted: Sequence[Operation],
        made: Operation | None,
        window: Sequence[Operation],
        printed: Operation | None,
        values: MutableMapping[SSAValue, SSAValue],
    ) -> bool:
        if len(emitted) != len(window):
            return False
        try:
            for mine, other in zip(emitted, window, strict=True):
                compare_ops(mine, other, values)
            if made is not None and printed is not None:
                compare_headers(made, printed, values)
        except Difference:
            return False
        return True
