"""Random programs of one to four blocks.

Halos, strides, reversals, broadcasts, reductions, gathers, padding, predicates, updates in place, scans, halves that
two blocks write, scatters, blocks that share a loop, extents known at run time only.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from program_text import (
    Affine,
    Binary,
    Buffer,
    Constant,
    Extent,
    Fact,
    Gathered,
    Group,
    Guarded,
    Iter,
    Load,
    ProgramText,
    Stage,
    Value,
    iterator,
    loads_of,
)
from programs import Array, Draw, Program, Run

import weft

LARGEST_SYMBOL = 9
LIMITS = {"float16": 2**10, "float32": 2**23, "float64": 2**50}
"""Values up to there are whole numbers that the type holds exactly, sums of two of them too."""
TYPES = ("float32", "float32", "int32", "float64", "int8", "float16", "int64")
IN_PLACE, SCAN, HALVES, SCATTER = "in place", "scan", "halves", "scatter"


@dataclass
class Generator:
    """Draws a program stage by stage; `bounds` keeps how large the values of a buffer may be."""

    draw: Draw
    dtype: str
    inputs: list[Buffer] = field(default_factory=list[Buffer])
    gathers: list[tuple[Buffer, Extent]] = field(default_factory=list[tuple[Buffer, Extent]])
    """Buffers of indices, with the extent that the indices stay below."""
    written: list[Buffer] = field(default_factory=list[Buffer])
    stages: list[Stage] = field(default_factory=list[Stage])
    bounds: dict[str, int] = field(default_factory=dict[str, int])
    dims: list[Extent] = field(default_factory=list[Extent])
    unfinished: Buffer | None = None
    """A buffer of which a part was not written yet."""

    def program(self) -> ProgramText:
        self._dims()
        count = self.draw.number(1, 4)
        while len(self.stages) < count:
            kind = self.draw.choose((IN_PLACE, SCAN, HALVES, SCATTER)) if self.draw.chance(0.25) else ""
            room = count - len(self.stages)
            if kind == IN_PLACE and self.written:
                self._in_place()
            elif kind == SCAN and room > 1:
                self._scan()
            elif kind == HALVES and room > 1:
                self._halves()
            elif kind == SCATTER and room > 1:
                self._scatter()
            else:
                self._plain()
        self._read_all([b for b in self.written if not self._may_be_output(b)])
        return self._finished()

    def _may_be_output(self, buffer: Buffer) -> bool:
        """Not where guards leave instances out."""
        return not any(stage.guards for stage in self.stages if stage.target == buffer)

    def _read_all(self, buffers: list[Buffer]) -> None:
        """Stages that copy buffers that nobody reads."""
        read = {load.buffer for stage in self.stages for load in self._own_loads(stage)}
        for buffer in buffers:
            if buffer in read:
                continue
            whole = tuple(Extent(0, extent.symbol) if extent.symbol else extent for extent in buffer.shape)
            iters = tuple(Iter(f"v{at}", extent) for at, extent in enumerate(whole))
            indices = tuple(iterator(it.name) for it in iters)
            conditions = tuple(
                Affine(((it.name, -1), (own.symbol, 1)), own.offset - 1)
                for it, own in zip(iters, buffer.shape, strict=True)
                if own.symbol and own.offset
            )
            load = Load(buffer, indices)
            value = Guarded(conditions, load) if conditions else load
            self._add(
                Stage(f"S{len(self.stages)}", iters, self._new_buffer(whole), indices, value), self.bounds[buffer.name]
            )

    def _dims(self) -> None:
        draw = self.draw
        dynamic = draw.chance(0.35)
        static = (Extent(draw.number(1, 7)), Extent(draw.number(2, 9)), Extent(2 * draw.number(1, 3) + 1))
        named = (Extent(0, "n"), Extent(0, "m")) if draw.chance(0.4) else (Extent(0, "n"),)
        self.dims = [*named, static[2]] if dynamic else list(static[: draw.number(2, 3)])

    def _finished(self) -> ProgramText:
        """Outputs are what nobody reads, and now and then what somebody does."""
        read = {load.buffer.name for stage in self.stages for load in self._own_loads(stage)}
        outputs = [b for b in self.written if self._may_be_output(b) and (b.name not in read or self.draw.chance(0.15))]
        extents = [e for b in self._all() for e in b.shape]
        extents += [it.extent for stage in self.stages for it in stage.iters]
        symbols = sorted({e.symbol for e in extents if e.symbol})
        for symbol in symbols:  # each is the extent of an input
            if not any(e == Extent(0, symbol) for b in self.inputs for e in b.shape):
                self._input((Extent(0, symbol),))
        return ProgramText(
            tuple(symbols),
            (*self.inputs, *(b for b, _ in self.gathers)),
            tuple(outputs),
            tuple(b for b in self.written if b not in outputs),
            tuple(self._groups()),
            self.dtype,
            tuple((buffer.name, extent) for buffer, extent in self.gathers),
            tuple(fact for symbol in symbols for fact in self._facts(symbol)),
        )

    def _facts(self, symbol: str) -> list[Fact]:
        """Now and then, something that holds for a symbol."""
        if not self.draw.chance(0.3):
            return []
        multiple = self.draw.choose((2, 3, 4))
        return [
            self.draw.choose(
                (
                    Fact(Affine(((symbol, 1),), mod=multiple), "==", Affine(())),
                    Fact(Affine(((symbol, 1),)), "<=", Affine((), LARGEST_SYMBOL)),
                    Fact(Affine((), 1), "<", Affine(((symbol, 1),))),
                )
            )
        ]

    def _own_loads(self, stage: Stage) -> list[Load]:
        return [load for load in loads_of(stage.value) if load.buffer != stage.target]

    def _all(self) -> list[Buffer]:
        return [*self.inputs, *(b for b, _ in self.gathers), *self.written]

    # Stages.

    def _plain(self) -> None:
        """A stage that writes a new buffer, perhaps by a reduction."""
        draw = self.draw
        rank = draw.choose((1, 2, 2, 2, 3))
        iters = [Iter(f"v{at}", self._extent()) for at in range(rank)]
        combine = draw.choose(("add", "add", "max", "min")) if draw.chance(0.45) else None
        if combine is not None:
            for at in range(draw.choose((1, 1, 2))):
                iters.append(
                    Iter(f"r{at}", Extent(draw.number(1, 4)) if draw.chance(0.4) else draw.choose(self.dims), True)
                )
        iters = self._tiles(iters)
        spatial = [it for it in iters if not it.reduce]
        target = self._new_buffer(tuple(it.extent for it in spatial))
        value, bound = self._value(iters, self.draw.choose((1, 1, 2, 2, 3)))
        start = None if combine is None else {"add": 0, "max": -64, "min": 64}[combine]
        if combine == "add":
            for it in iters:
                bound *= self._most(it.extent) if it.reduce else 1
            if bound > self._limit():
                combine, start, bound = "max", -64, 64
        elif combine is not None:
            bound = max(bound, 64)
        indices = [iterator(it.name) for it in spatial]
        if draw.chance(0.15) and rank > 1:  # stored transposed
            indices.reverse()
            target = self._renewed(target, tuple(reversed(target.shape)))
        self._add(Stage(f"S{len(self.stages)}", tuple(iters), target, tuple(indices), value, combine, start), bound)

    def _in_place(self) -> None:
        """An update of what an earlier stage wrote, of all of it or of a part."""
        target = self.draw.choose(self.written)
        iters = self._tiles([Iter(f"v{at}", extent) for at, extent in enumerate(target.shape)])
        here = Load(target, tuple(iterator(it.name) for it in iters))
        value, bound = self._value(iters, 1)
        guards: tuple[Affine, ...] = ()
        if self.draw.chance(0.5):
            other = iters[-1]
            guards = (Affine(((iters[0].name, 1), (other.name, -1)), self.draw.number(0, 2)),)
            if iters[0] == other:
                guards = (Affine(((other.name, 1),), -1),)
        combined, bound = self._binary(here, self.bounds[target.name], value, bound)
        if not self._updated(target, bound):
            return
        self._add(Stage(f"S{len(self.stages)}", tuple(iters), target, here.indices, combined, guards=guards), bound)

    def _scan(self) -> None:
        """A new buffer, then an update of each element from the one before along an axis."""
        self._copy_stage()
        target = self.written[-1]
        axis = self.draw.number(0, len(target.shape) - 1)
        short = target.shape[axis].less(1)
        if short.symbol is None and short.offset < 1:
            return
        iters = [Iter(f"v{at}", short if at == axis else extent) for at, extent in enumerate(target.shape)]
        back = self.draw.chance(0.3)
        names = [it.name for it in iters]
        near = tuple(Affine(((name, 1),), 1 if at == axis else 0) for at, name in enumerate(names))
        far = tuple(iterator(name) for name in names)
        to, source = (far, near) if back else (near, far)
        extra = self.draw.number(0, 1) and len(target.shape) > 1
        if extra:  # from the diagonal neighbour: a wavefront
            other = (axis + 1) % len(target.shape)
            if (target.shape[other].static or 2) > 1:
                iters[other] = replace(iters[other], extent=target.shape[other].less(1))
                moved = [*to]
                moved[other] = Affine(((names[other], 1),), 1)
                to = tuple(moved)
        bound = self.bounds[target.name] * (1 + self._most(target.shape[axis]))
        op = "add" if bound <= self._limit() else "max"
        value = Binary(op, Load(target, to), Load(target, source))
        bound = bound if op == "add" else self.bounds[target.name]
        self._add(Stage(f"S{len(self.stages)}", tuple(iters), target, to, value), bound)

    def _halves(self) -> None:
        """Two stages that write the two parts of one buffer."""
        first, second = self.draw.number(1, 5), self.draw.number(1, 5)
        rest = self._extent()
        target = self._new_buffer((Extent(first + second), rest))
        for length, offset in ((first, 0), (second, first)):
            iters = self._tiles([Iter("v0", Extent(length)), Iter("v1", rest)])
            value, bound = self._value(iters, self.draw.choose((1, 2)))
            indices = (Affine((("v0", 1),), offset), iterator("v1"))
            self._add(Stage(f"S{len(self.stages)}", tuple(iters), target, indices, value), bound)
            self.unfinished = None if offset else target

    def _scatter(self) -> None:
        """A new buffer, then sums into elements that indices pick."""
        self._copy_stage()
        target = self.written[-1]
        iters = [Iter("v0", self._extent()), *(Iter(f"v{at}", e) for at, e in enumerate(target.shape) if at)]
        value, bound = self._value(iters, 1)
        bound = bound * self._most(iters[0].extent) + self.bounds[target.name]
        if not self._updated(target, bound):
            return
        picked = self._gather(iterator("v0"), iters[0].extent, target.shape[0])
        indices = (picked, *(iterator(it.name) for it in iters[1:]))
        self._add(Stage(f"S{len(self.stages)}", tuple(iters), target, indices, value, "add"), bound)

    def _copy_stage(self) -> None:
        """A new buffer of something, whole."""
        rank = self.draw.choose((1, 2, 2))
        iters = self._tiles([Iter(f"v{at}", self._extent()) for at in range(rank)])
        target = self._new_buffer(tuple(it.extent for it in iters))
        value, bound = self._value(iters, self.draw.choose((1, 2)))
        self._add(
            Stage(f"S{len(self.stages)}", tuple(iters), target, tuple(iterator(it.name) for it in iters), value), bound
        )

    def _add(self, stage: Stage, bound: int) -> None:
        self.stages.append(stage)
        name = stage.target.name
        self.bounds[name] = max(bound, self.bounds.get(name, 0))
        if stage.target not in self.written:
            self.written.append(stage.target)

    def _updated(self, target: Buffer, bound: int) -> bool:
        """Whether values up to `bound` fit the type."""
        return bound <= self._limit()

    # Shapes.

    def _extent(self) -> Extent:
        """One of the extents of this program, perhaps a little less."""
        extent = self.draw.choose(self.dims)
        less = self.draw.choose((0, 0, 0, 1, 2))
        return extent.less(less) if extent.symbol or extent.offset > less else extent

    def _most(self, extent: Extent) -> int:
        return extent.offset + (LARGEST_SYMBOL if extent.symbol else 0)

    def _limit(self) -> int:
        return LIMITS.get(self.dtype, 2**62)

    def _tiles(self, iters: list[Iter]) -> list[Iter]:
        """Some iterators run in two loops with a guard, as programs that were tiled already."""
        if not self.draw.chance(0.12):
            return iters
        at = self.draw.number(0, len(iters) - 1)
        return [replace(it, tile=self.draw.number(2, 4)) if p == at else it for p, it in enumerate(iters)]

    def _new_buffer(self, shape: tuple[Extent, ...]) -> Buffer:
        return Buffer(f"B{len(self.written)}", shape, self.dtype)

    def _renewed(self, buffer: Buffer, shape: tuple[Extent, ...]) -> Buffer:
        return Buffer(buffer.name, shape, buffer.dtype)

    def _input(self, shape: tuple[Extent, ...]) -> Buffer:
        found = Buffer(f"A{len(self.inputs)}", shape, self.dtype)
        self.inputs.append(found)
        self.bounds[found.name] = 3
        return found

    def _gather(self, index: Affine, extent: Extent, below: Extent) -> Gathered:
        whole = Extent(0, extent.symbol) if extent.symbol and self.draw.chance(0.5) else extent
        buffer = Buffer(f"X{len(self.gathers)}", (whole,), self.draw.choose(("int32", "int64")))
        self.gathers.append((buffer, below))
        return Gathered(buffer, index)

    # Values.

    def _value(self, iters: list[Iter], leaves: int) -> tuple[Value, int]:
        """An expression over loads, and how large it may be."""
        value, bound = self._leaf(iters)
        for _ in range(leaves - 1):
            if self.draw.chance(0.2):
                number = self.draw.number(-2, 3)
                other: tuple[Value, int] = (Constant(number), abs(number))
            else:
                other = self._leaf(iters)
            value, bound = self._binary(value, bound, *other)
        return value, bound

    def _binary(self, left: Value, left_bound: int, right: Value, right_bound: int) -> tuple[Value, int]:
        op = self.draw.choose(("add", "sub", "mul", "max", "min"))
        bound = {"mul": left_bound * right_bound, "add": left_bound + right_bound, "sub": left_bound + right_bound}.get(
            op
        )
        if bound is not None and bound <= self._limit():
            return Binary(op, left, right), bound
        return Binary("max", left, right), max(left_bound, right_bound)

    def _leaf(self, iters: list[Iter]) -> tuple[Value, int]:
        """A load, of what was written before when there is something, perhaps guarded."""
        draw = self.draw
        for _ in range(4):
            whole = [b for b in self.written if b != self.unfinished]
            if whole and draw.chance(0.75):
                buffer = draw.choose(whole[-2:])
            elif self.inputs and draw.chance(0.5):
                buffer = draw.choose(self.inputs)
            else:
                break
            found = self._load(buffer, iters)
            if found is not None:
                return found, self.bounds[buffer.name]
        count = draw.choose((1, 2, 2, len(iters)))
        picked = [iters[int(at)] for at in draw.random.permutation(len(iters))[:count]]
        exact = draw.chance(0.5)
        whole = tuple(Extent(0, it.extent.symbol) if it.extent.symbol and not exact else it.extent for it in picked)
        buffer = self._input(whole)
        return self._load(buffer, iters) or Load(buffer, tuple(iterator(it.name) for it in picked)), 3

    def _load(self, buffer: Buffer, iters: list[Iter]) -> Value | None:
        """A load of a buffer at indices that stay inside, None when no iterator fits an extent."""
        indices: list[Affine | Gathered] = []
        conditions: list[Affine] = []
        for extent in buffer.shape:
            found = self._index(extent, iters, conditions)
            if found is None:
                return None
            indices.append(found)
        load = Load(buffer, tuple(indices))
        return Guarded(tuple(conditions), load) if conditions else load

    def _index(self, extent: Extent, iters: list[Iter], conditions: list[Affine]) -> Affine | Gathered | None:
        draw = self.draw
        fits = [(it, over) for it in iters if (over := extent.excess_over(it.extent)) is not None]
        inside = [(it, over) for it, over in fits if over >= 0]
        style = draw.random.random()
        if style < 0.55 and inside:
            return self._near(inside, iters)
        if style < 0.62 and inside:
            it, over = draw.choose(inside)
            symbol = ((extent.symbol, 1),) if extent.symbol else ()
            return Affine(((it.name, -1), *symbol), extent.offset - 1)  # reversed
        if style < 0.7:
            it = draw.choose(iters)
            return self._gather(iterator(it.name), it.extent, extent)
        if style < 0.8 and fits:
            return self._padded(extent, fits, conditions)
        if style < 0.86 and extent.static:
            return self._digit(extent.static, iters)
        if style < 0.9 and extent.static:  # others may be 0
            return Affine((), draw.number(0, min(extent.static, 3) - 1))
        if style < 0.94 and extent.static:
            return self._strided(extent.static, iters)
        return iterator(draw.choose(inside)[0].name) if inside else None

    def _near(self, inside: list[tuple[Iter, int]], iters: list[Iter]) -> Affine:
        """An iterator, shifted as far as there is room, perhaps by a short reduction."""
        exact = [pair for pair in inside if pair[1] <= 2]
        it, over = self.draw.choose(exact or inside)
        windows = [r for r in iters if r.reduce and r != it and (r.extent.static or 99) - 1 <= over]
        if windows and self.draw.chance(0.7):
            window = self.draw.choose(windows)
            slack = over - ((window.extent.static or 1) - 1)
            return Affine(((it.name, 1), (window.name, 1)), self.draw.number(0, min(slack, 2)))
        return Affine(((it.name, 1),), self.draw.number(0, min(over, 2)))

    def _padded(self, extent: Extent, fits: list[tuple[Iter, int]], conditions: list[Affine]) -> Affine:
        """An index that may lie outside, and the conditions that keep it inside."""
        it, over = self.draw.choose(fits)
        shift = self.draw.number(-2, 2)
        index = Affine(((it.name, 1),), shift)
        if shift < 0:
            conditions.append(index)
        if over < shift:
            symbol = ((extent.symbol, 1),) if extent.symbol else ()
            conditions.append(Affine(((it.name, -1), *symbol), extent.offset - 1 - shift))
        return index

    def _digit(self, extent: int, iters: list[Iter]) -> Affine | None:
        """floordiv or mod of an iterator, or of two of them fused."""
        it = self.draw.choose(iters)
        length = it.extent.static
        if length is not None and self.draw.chance(0.5):
            by = -(-length // extent)
            return Affine(((it.name, 1),), 0, floordiv=max(by, 2))
        return Affine(((it.name, 1),), self.draw.number(0, 1), mod=extent) if extent > 1 else None

    def _strided(self, extent: int, iters: list[Iter]) -> Affine | None:
        found = [(it, (extent - 1) // (it.extent.offset - 1)) for it in iters if (it.extent.static or 1) > 1]
        found = [(it, factor) for it, factor in found if factor >= 2]
        if not found:
            return None
        it, factor = self.draw.choose(found)
        return Affine(((it.name, self.draw.number(2, min(factor, 3))),))

    # Groups.

    def _groups(self) -> list[Group]:
        """Stages that follow each other share their first loop where that keeps the meaning."""
        groups: list[list[Stage]] = []
        for stage in self.stages:
            if groups and self.draw.chance(0.4) and all(may_share(other, stage) for other in groups[-1]):
                groups[-1].append(stage)
            else:
                groups.append([stage])
        return [Group(tuple(stages)) for stages in groups]


def may_share(first: Stage, second: Stage) -> bool:
    """Whether two stages may run in one loop over their first iterators: what both touch, they touch at its value."""
    one, other = first.iters[0], second.iters[0]
    if one.extent != other.extent or one.reduce or other.reduce or one.tile or other.tile:
        return False
    for written, stage, against in ((first.target, first, second), (second.target, second, first)):
        for toucher in (stage, against):
            name = toucher.iters[0].name
            touched = [load.indices for load in toucher.loads() if load.buffer == written]
            touched += [toucher.indices] if toucher.target == written else []
            if any(indices[0] != iterator(name) for indices in touched):
                return False
    return True


def random_program(draw: Draw) -> Program:
    """A program of one to four blocks; one with symbols runs twice, with other sizes."""
    return program_of(Generator(draw, draw.choose(TYPES)).program(), draw)


def program_of(text: ProgramText, draw: Draw) -> Program:
    """A program with arguments that are drawn."""
    first, *others = [make_run(draw, text, small=at > 0) for at in range(2 if text.symbols else 1)]
    module = weft.parse(text.mlir())
    return Program(
        "random", module, first.inputs, first.expected, others=tuple(others), text=text, initial=first.initial
    )


def _is_about(fact: Fact, symbol: str) -> bool:
    return symbol in dict((*fact.left.terms, *fact.right.terms))


def make_run(draw: Draw, text: ProgramText, small: bool) -> Run:
    """Arguments for the sizes of this call, and what they give."""
    sizes: dict[str, int] = {}
    for symbol in text.symbols:
        least = max(1, *(1 - e.offset for e in text.extents() if e.symbol == symbol))
        sizes[symbol] = draw.number(least, max(least, 4 if small else LARGEST_SYMBOL))
        while not all(fact.holds({symbol: sizes[symbol]}) for fact in text.facts if _is_about(fact, symbol)):
            sizes[symbol] = draw.number(least, LARGEST_SYMBOL)
    below = dict(text.below)
    inputs: list[Array] = []
    for buffer in text.inputs:
        shape = tuple(e.value(sizes) for e in buffer.shape)
        if buffer.name in below:
            inputs.append(draw.random.integers(0, below[buffer.name].value(sizes), shape).astype(buffer.dtype))
        else:
            inputs.append(draw.array(shape, buffer.dtype))
    initial = [
        draw.array(tuple(e.value(sizes) for e in b.shape), b.dtype) if b.name in text.updated else None
        for b in text.outputs
    ]
    return Run(tuple(inputs), tuple(text.evaluate(inputs, sizes, initial)), tuple(initial))
