"""Random programs of affine and scf loops over buffers of integers, as text for MLIR. All accesses are in bounds."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

SIZE = 10
"""Extent of all buffers in all dimensions."""
BUFFERS = {"A": 2, "B": 2, "C": 1, "D": 1}
"""Parameters and their ranks."""


@dataclass
class Loops:
    """A program that grows line by line."""

    random: random.Random
    lines: list[str] = field(default_factory=list[str])
    sets: list[str] = field(default_factory=list[str])
    count: int = 0
    ranks: dict[str, int] = field(default_factory=lambda: dict(BUFFERS))

    def fresh(self, hint: str) -> str:
        self.count += 1
        return f"%{hint}{self.count}"

    def emit(self, depth: int, text: str) -> None:
        self.lines.append("  " * (depth + 1) + text)

    def type_of(self, buffer: str) -> str:
        layout = f", strided<[1, {SIZE}]>" if buffer == "V" else ""
        return "memref<" + f"{SIZE}x" * self.ranks[buffer] + f"i32{layout}>"

    def subscript(self, variables: dict[str, tuple[int, int]]) -> str:
        """An expression of loop variables, each with its range, that lies in 0 .. SIZE - 1."""
        names = list(variables)
        kind = self.random.choice(["one", "one", "one", "sum", "constant", "back", "div"] if names else ["constant"])
        one = self.random.choice(names) if names else ""
        low, high = variables.get(one, (0, 0))
        if kind == "one":
            shift = self.random.choice([0, 0, 0, 1, -1, 2])
            text = one if not shift else f"{one} + {shift}" if shift > 0 else f"{one} - {-shift}"
            low, high = low + shift, high + shift
        elif kind == "sum":
            other = self.random.choice(names)
            factor = self.random.choice([1, 2])
            text = f"{one} + {other} * {factor}"
            low, high = low + variables[other][0] * factor, high + variables[other][1] * factor
        elif kind == "back":
            text = f"-{one} + {SIZE - 1}"
            low, high = SIZE - 1 - high, SIZE - 1 - low
        elif kind == "div":
            text = f"{one} floordiv 2"
            low, high = low // 2, high // 2
        else:
            return str(self.random.randrange(SIZE))
        return text if low >= 0 and high < SIZE else f"({text}) mod {SIZE}"

    def place(self, buffer: str, variables: dict[str, tuple[int, int]]) -> str:
        indices = ", ".join(self.subscript(variables) for _ in range(self.ranks[buffer]))
        return f"%{buffer}[{indices}] : {self.type_of(buffer)}"

    def load(self, depth: int, variables: dict[str, tuple[int, int]]) -> str:
        buffer = self.random.choice(list(self.ranks))
        name = self.fresh("v")
        self.emit(depth, f"{name} = affine.load {self.place(buffer, variables)}")
        return name

    def value(self, depth: int, variables: dict[str, tuple[int, int]], known: list[str]) -> str:
        operands = [
            self.random.choice(known) if known and self.random.random() < 0.4 else self.load(depth, variables)
            for _ in range(self.random.choice([1, 2, 2, 3]))
        ]
        result = operands[0]
        for operand in operands[1:]:
            name = self.fresh("x")
            op = self.random.choice(["addi", "addi", "muli", "subi", "maxsi", "minsi", "xori"])
            self.emit(depth, f"{name} = arith.{op} {result}, {operand} : i32")
            result = name
        return result

    def store(self, depth: int, variables: dict[str, tuple[int, int]], known: list[str]) -> None:
        buffer = self.random.choice(list(self.ranks))
        place = self.place(buffer, variables)
        if self.random.random() < 0.4:  # an update of one element
            old, new = self.fresh("o"), self.fresh("n")
            self.emit(depth, f"{old} = affine.load {place}")
            value = self.value(depth, variables, known)
            op = self.random.choice(["addi", "addi", "maxsi", "muli"])
            self.emit(depth, f"{new} = arith.{op} {old}, {value} : i32")
            self.emit(depth, f"affine.store {new}, {place}")
            return
        value = self.random.choice(["%zero"] * 3 + [self.value(depth, variables, known)])
        self.emit(depth, f"affine.store {value}, {place}")

    def update(self, depth: int, variable: str) -> None:
        """Combine an element of a vector into another one, by accesses whose subscripts are no maps."""
        loaded, old, new = self.fresh("l"), self.fresh("o"), self.fresh("n")
        source, target = self.random.choice("CD"), self.random.choice("CD")
        place = self.random.choice([variable, "%c1"])
        self.emit(depth, f"{loaded} = memref.load %{source}[{variable}] : {self.type_of(source)}")
        self.emit(depth, f"{old} = memref.load %{target}[{place}] : {self.type_of(target)}")
        self.emit(depth, f"{new} = arith.addi {old}, {loaded} : i32")
        self.emit(depth, f"memref.store {new}, %{target}[{place}] : {self.type_of(target)}")

    def condition(self, depth: int, variables: dict[str, tuple[int, int]], known: list[str], inside: int) -> None:
        names = list(variables)
        if names and self.random.random() < 0.6:
            one, other = self.random.choice(names), self.random.choice(names)
            form = self.random.choice(["d0 - d1 >= 0", "d0 + d1 - 6 >= 0", "-d0 + 5 >= 0", "d0 mod 2 == 0"])
            self.sets.append(f"#set{len(self.sets)} = affine_set<(d0, d1) : ({form})>")
            head = f"affine.if #set{len(self.sets) - 1}({one}, {other})"
        else:
            value, test = self.value(depth, variables, known), self.fresh("t")
            self.emit(depth, f"{test} = arith.cmpi sgt, {value}, %zero : i32")
            head = f"scf.if {test}"
        self.emit(depth, head + " {")
        self.body(depth + 1, variables, known, inside)
        if self.random.random() < 0.3:
            self.emit(depth, "} else {")
            self.body(depth + 1, variables, known, inside)
        self.emit(depth, "}")

    def loop(self, depth: int, variables: dict[str, tuple[int, int]], known: list[str], inside: int) -> None:
        variable = self.fresh("i")
        names = list(variables)
        if self.random.random() < 0.08:  # data decides how often it runs
            masked, bound = self.fresh("m"), self.fresh("n")
            self.emit(depth, f"{masked} = arith.andi {self.value(depth, variables, known)}, %seven : i32")
            self.emit(depth, f"{bound} = arith.index_cast {masked} : i32 to index")
            self.emit(depth, f"scf.for {variable} = %c0 to {bound} step %c1 {{")
            self.update(depth + 1, variable)
            self.emit(depth, "}")
            return
        form = self.random.choice(
            ["constant", "constant", "constant", "triangle", "upper", "tile"] if names else ["constant"]
        )
        step = 1
        if form == "constant":
            low, high = self.random.choice([(0, SIZE), (0, SIZE), (1, SIZE - 1), (2, 7), (0, 1), (3, 3)])
            step = self.random.choice([1, 1, 1, 2, 3])
            bounds = f"{low} to {high}"
        else:
            outer = self.random.choice(names)
            least, most = variables[outer]
            if form == "triangle":
                low, high, bounds = 0, most + 1, f"0 to affine_map<(d0) -> (d0 + 1)>({outer})"
            elif form == "upper":
                low, high, bounds = least, SIZE, f"affine_map<(d0) -> (d0)>({outer}) to {SIZE}"
            else:
                low, high = least, min(most + 3, SIZE)
                bounds = f"affine_map<(d0) -> (d0)>({outer}) to min affine_map<(d0) -> (d0 + 3, {SIZE})>({outer})"
        within = {**variables, variable: (low, max(high - 1, low))}
        stepped = f" step {step}" if step != 1 else ""
        if self.random.random() < 0.25:
            start = self.random.choice([*known, "%zero"])
            result, carried, new = self.fresh("r"), self.fresh("a"), self.fresh("b")
            self.emit(
                depth,
                f"{result} = affine.for {variable} = {bounds}{stepped} iter_args({carried} = {start}) -> (i32) {{",
            )
            if self.random.random() < 0.4:
                self.body(depth + 1, within, [*known, carried], inside)
            value = self.value(depth + 1, within, known)
            self.emit(
                depth + 1, f"{new} = arith.{self.random.choice(['addi', 'maxsi', 'subi'])} {carried}, {value} : i32"
            )
            self.emit(depth + 1, f"affine.yield {new} : i32")
            self.emit(depth, "}")
            known.append(result)
            return
        self.emit(depth, f"affine.for {variable} = {bounds}{stepped} {{")
        self.body(depth + 1, within, list(known), inside)
        self.emit(depth, "}")

    def body(self, depth: int, variables: dict[str, tuple[int, int]], known: list[str], inside: int) -> None:
        known = list(known)
        for _ in range(self.random.choice([1, 1, 2, 3])):
            kind = self.random.random()
            if inside and kind < 0.5:
                self.loop(depth, variables, known, inside - 1)
            elif inside and kind < 0.6:
                self.condition(depth, variables, known, inside - 1)
            elif kind < 0.7:
                known.append(self.load(depth, variables))
            else:
                self.store(depth, variables, known)
        self.store(depth, variables, known)


def random_loops(seed: int) -> str:
    """A module with a function @f over the buffers of `BUFFERS`."""
    program = Loops(random.Random(seed))
    if program.random.random() < 0.5:
        program.emit(0, "%T = memref.alloc() : memref<" + f"{SIZE}x{SIZE}xi32>")
        program.ranks["T"] = 2
        program.emit(0, f"affine.for %p = 0 to {SIZE} {{")
        program.emit(1, f"affine.for %q = 0 to {SIZE} {{")
        program.emit(2, f"affine.store %zero, %T[%p, %q] : {program.type_of('T')}")
        program.emit(1, "}")
        program.emit(0, "}")
    if program.random.random() < 0.3:
        program.ranks["V"] = 2
        program.emit(0, f"%V = memref.transpose %A (i, j) -> (j, i) : {program.type_of('A')} to {program.type_of('V')}")
    for _ in range(program.random.choice([1, 1, 2])):
        program.loop(0, {}, [], program.random.choice([1, 2, 2]))
    parameters = ", ".join(f"%{name}: {program.type_of(name)}" for name in BUFFERS)
    constants = ["%zero = arith.constant 0 : i32", "%seven = arith.constant 7 : i32"]
    constants += [f"%c{number} = arith.constant {number} : index" for number in (0, 1)]
    head = [*program.sets, f"func.func @f({parameters}) {{", *(f"  {line}" for line in constants)]
    return "\n".join([*head, *program.lines, "  return", "}", ""])
