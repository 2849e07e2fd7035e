"""Small random tir programs, for comparing the set analyses with enumeration.

One function with integer buffers (parameters `P0`, `P1`, temporaries `T0`, `T1`) and one or two loop nests with blocks
in them: bindings with quotients and remainders, guards, inits, conditions, several blocks a body, loops of symbolic
or triangular extent. Accesses stay in their buffers unless asked otherwise. Programs need not be legal.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.universe import Universe

from weft.driver.parsing import parse_text

SIZE = 6
SYMBOL_VALUES = (0, 1, 2, 3, 4)


def _context() -> Context:
    context = Context()
    for name, factory in Universe.get_multiverse().all_dialects.items():
        context.register_dialect(name, factory)
    return context


_CONTEXT = _context()


def parse_unchecked(text: str) -> ModuleOp:
    """The module of a text, neither verified nor checked."""
    return parse_text(_CONTEXT, text, "random.mlir")


def function_of_text(text: str) -> FuncOp:
    module = parse_unchecked(text)
    return next(op for op in module.body.block.ops if isinstance(op, FuncOp))


@dataclass(frozen=True)
class Term:
    """An index expression over named variables."""

    text: str

    def at(self, point: dict[str, int]) -> int:
        """Its value where the variables have these values."""
        python = self.text.replace("%", "").replace("mod", "%").replace("floordiv", "//")
        return eval(python, {}, point)


@dataclass(frozen=True)
class Variable:
    name: str
    extent: int
    """The largest number of values."""


@dataclass
class RandomProgram:
    """Draws one program. `text` is the function @f."""

    seed: int
    symbolic: bool = False
    triangular: bool = False
    out_of_bounds: bool = False
    perfect: bool = False
    random: random.Random = field(init=False)
    lines: list[str] = field(default_factory=list)
    counter: int = 0

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.text = self._function()

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def fresh(self, hint: str) -> str:
        self.counter += 1
        return f"{hint}{self.counter}"

    def _function(self) -> str:
        size = f"memref<{SIZE}xi64>"
        plane = f"memref<{SIZE}x{SIZE}xi64>"
        self.buffers = {"P0": 1, "P1": 2, "T0": 1, "T1": 2}
        types = {1: size, 2: plane}
        self.types = {name: types[rank] for name, rank in self.buffers.items()}
        symbol = ", %n: index" if self.symbolic else ""
        self.lines = [f"func.func @f(%P0: {size}, %P1: {plane}{symbol}) {{", "%one = arith.constant 1 : i64"]
        self.lines += [f"%T0 = memref.alloc() : {size}", f"%T1 = memref.alloc() : {plane}"]
        for _ in range(self.random.choice([1, 1, 2]) if not self.perfect else 1):
            self._nest()
        self.lines += ["func.return", "}"]
        return "\n".join(self.lines)

    def _nest(self) -> None:
        depth = self.random.choice([1, 2, 2, 3])
        variables: list[Variable] = []
        for level in range(depth):
            if not self.perfect and level and self.chance(0.3):
                self._block(variables)
            variables.append(self._loop(variables))
        for _ in range(self.random.choice([1, 1, 2, 3])):
            self._block(variables)
        for _ in range(depth):
            self.lines.append("}")
            # A block after an inner loop makes the nest imperfect.
            variables.pop()
            if not self.perfect and variables and self.chance(0.2):
                self._block(variables)

    def _loop(self, outer: Sequence[Variable]) -> Variable:
        name = self.fresh("i")
        if self.symbolic and self.chance(0.6):
            self.lines.append(f"tir.for %{name} in %n {{")
            return Variable(name, max(SYMBOL_VALUES))
        if self.triangular and outer and self.chance(0.6):
            bound = self.random.choice(outer)
            extent = self.fresh("extent")
            self.lines.append(f"%{extent} = affine.apply affine_map<(d0) -> (d0 + 1)>(%{bound.name})")
            self.lines.append(f"tir.for %{name} in %{extent} {{")
            return Variable(name, bound.extent)
        extent = self.random.choice([1, 2, 2, 3, 3, 4])
        self.lines.append(f"tir.for %{name} in {extent} {{")
        return Variable(name, extent)

    def _term(self, variables: Sequence[Variable]) -> Term:
        """A random affine expression, not negative."""
        if not variables or self.chance(0.08):
            return Term(str(self.random.randrange(3)))
        a, b = (self.random.choice(variables) for _ in range(2))
        x, y = f"%{a.name}", f"%{b.name}"
        texts = {
            "value": x,
            "sum": f"{x} + {y}",
            "shift": f"{x} + 1",
            "scale": f"{x} * 2",
            "join": f"{x} * {b.extent} + {y}",
            "quotient": f"({x} + {y}) floordiv 2",
            "remainder": f"({x} + {y} * 2) mod 3",
            "flip": f"{a.extent - 1} - {x}",
            "digits": f"({x} * {b.extent} + {y}) mod 4",
        }
        return Term(texts[self.random.choices(list(texts), [4, 1, 1, 1, 1, 1, 1, 1, 1])[0]])

    def _values(self, term: Term, variables: Sequence[Variable]) -> list[int]:
        names = [v.name for v in variables]
        points = itertools.product(*[range(v.extent) for v in variables])
        return [term.at(dict(zip(names, point, strict=True))) for point in points] or [0]

    def _place(self, rank: int, variables: Sequence[Variable]) -> list[str]:
        """Names of index values that lie in a dimension of SIZE."""
        result: list[str] = []
        for _ in range(rank):
            term = self._term(variables)
            values = self._values(term, variables)
            text = term.text
            if not self.out_of_bounds and (max(values) >= SIZE or min(values) < 0):
                text = f"({text}) mod {SIZE}"
            elif self.out_of_bounds and self.chance(0.2):
                text = f"{text} - 1"
            result.append(self._apply(text, variables))
        return result

    def _apply(self, text: str, variables: Sequence[Variable]) -> str:
        name = self.fresh("x")
        position = {v.name: at for at, v in enumerate(variables)}
        dims = re.sub(r"%(\w+)", lambda match: f"d{position[match[1]]}", text)
        header = ", ".join(f"d{at}" for at in range(len(variables)))
        operands = ", ".join(f"%{v.name}" for v in variables)
        self.lines.append(f"%{name} = affine.apply affine_map<({header}) -> ({dims})>({operands})")
        return name

    def _block(self, loops: Sequence[Variable]) -> None:
        iterators: list[Variable] = []
        kinds: list[str] = []
        bindings: list[str] = []
        guards: list[str] = []
        for loop in self.random.sample(list(loops), k=len(loops)):
            if self.chance(0.15):
                continue
            term = Term(f"%{loop.name}") if self.chance(0.6) else self._term(loops)
            extent = max(self._values(term, loops)) + 1
            if extent > 1 and self.chance(0.15):
                extent -= 1
                guards.append(f"[{term.text}] < [{extent}]")
            iterators.append(Variable(self.fresh("v"), extent))
            kinds.append("reduce" if self.chance(0.35) else "spatial")
            bindings.append(term.text)
        declared = ", ".join(f"%{v.name}: {kind}<{v.extent}>" for v, kind in zip(iterators, kinds, strict=True))
        where = ""
        if guards:
            left = ", ".join(g.split(" < ")[0][1:-1] for g in guards)
            right = ", ".join(g.split(" < ")[1][1:-1] for g in guards)
            where = f" where [{left}] < [{right}]"
        label = self.fresh("b")
        self.lines.append(f'tir.block "{label}" iters({declared}) = [{", ".join(bindings)}]{where} {{')
        spatial = [v for v, kind in zip(iterators, kinds, strict=True) if kind == "spatial"]
        if "reduce" in kinds and self.chance(0.7):
            self._reduction(spatial, iterators)
        else:
            self._statements(iterators)
        self.lines.append("}")

    def _buffer(self) -> str:
        return self.random.choice(list(self.buffers))

    def _load(self, buffer: str, place: Sequence[str]) -> str:
        name = self.fresh("a")
        operands = ", ".join(f"%{p}" for p in place)
        self.lines.append(f"%{name} = memref.load %{buffer}[{operands}] : {self.types[buffer]}")
        return name

    def _store(self, value: str, buffer: str, place: Sequence[str]) -> None:
        operands = ", ".join(f"%{p}" for p in place)
        self.lines.append(f"memref.store %{value}, %{buffer}[{operands}] : {self.types[buffer]}")

    def _reduction(self, spatial: Sequence[Variable], iterators: Sequence[Variable]) -> None:
        """An accumulator with init, its place over spatial iterators."""
        target = self._buffer()
        saved, self.lines = self.lines, []
        place = self._place(self.buffers[target], spatial)
        applies, self.lines = self.lines, saved
        self.lines.append("tir.init {")
        self.lines += applies
        self._store("one", target, place)
        self.lines.append("}")
        # The same expressions again, as values of the body.
        renamed = {name: self.fresh("x") for name in place}
        self.lines += [
            line.replace(f"%{line.split()[0][1:]} =", f"%{renamed[line.split()[0][1:]]} =") for line in applies
        ]
        place = [renamed[name] for name in place]
        source = self._buffer()
        value = self._load(source, self._place(self.buffers[source], iterators))
        accumulated = self._load(target, place)
        total = self.fresh("s")
        self.lines.append(f"%{total} = arith.addi %{accumulated}, %{value} : i64")
        self._store(total, target, place)

    def _statements(self, iterators: Sequence[Variable]) -> None:
        value = "one"
        for _ in range(self.random.choice([0, 1, 1, 2])):
            source = self._buffer()
            value = self._load(source, self._place(self.buffers[source], iterators))
        conditional = bool(iterators) and self.chance(0.2)
        if conditional:
            self._condition(iterators)
        target = self._buffer()
        self._store(value, target, self._place(self.buffers[target], iterators))
        if conditional:
            self.lines.append("}")

    def _condition(self, iterators: Sequence[Variable]) -> None:
        left = self._apply(self._term(iterators).text, iterators)
        right = self.fresh("c")
        self.lines.append(f"%{right} = arith.constant {self.random.randrange(3)} : index")
        predicate = self.random.choice(["eq", "slt", "sle", "sgt", "sge", "ne"])
        condition = self.fresh("p")
        self.lines.append(f"%{condition} = arith.cmpi {predicate}, %{left}, %{right} : index")
        self.lines.append(f"scf.if %{condition} {{")
