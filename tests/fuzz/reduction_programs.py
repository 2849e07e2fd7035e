"""Random programs of reductions whose init and updates may access different elements.

Shifted, transposed, reversed, strided and overlapping places; several stores; starts under conditions, of one of two
accumulators, or from data; iterators that no accumulator has; loops in any order. Outputs come with values, on which
updates go on that no init starts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from memory_programs import ATTEMPTS, MemoryGenerator
from program_text import (
    Affine,
    Buffer,
    Constant,
    Extent,
    Gathered,
    Iter,
    Load,
    ProgramText,
    Stage,
    Store,
    Value,
    iterator,
)
from programs import Draw, Program
from random_programs import Generator, program_of

TYPES = ("int32", "int32", "int8", "int64", "float32")
PLACES = (*["same"] * 6, *["shifted"] * 6, "reversed", "reversed", "halved", "fixed")
FAMILY = "reductions"
STARTS = {"add": 0, "max": -64, "min": 64}


@dataclass
class ReductionGenerator(MemoryGenerator):
    """Draws one or two such reductions, between stages that read and write the same buffers."""

    def program(self) -> ProgramText:
        draw = self.draw
        self.dims = [Extent(draw.number(2, 6)) for _ in range(draw.choose((1, 2, 2)))]
        for _ in range(draw.choose((1, 1, 2))):
            buffer = self._new_buffer(tuple(draw.choose(self.dims) for _ in range(draw.choose((1, 2, 2)))))
            self.updated.append(buffer)
            self.written.append(buffer)
            self.bounds[buffer.name] = 3
        if draw.chance(0.25):
            self._plain()
        for _ in range(draw.choose((1, 1, 1, 2))):
            self._reduction()
            if draw.chance(0.2):
                self._plain()
        read = {load.buffer.name for stage in self.stages for load in stage.loads() if load.buffer != stage.target}
        outputs = [b for b in self.written if b in self.updated or b.name not in read]
        return self._text(outputs)

    def _reduction(self) -> None:
        draw = self.draw
        targets = [draw.choose(self.updated)]
        if len(self.updated) > 1 and draw.chance(0.5):
            targets.append(next(b for b in self.updated if b != targets[0]))
        extents = [extent.less(min(draw.choose((0, 1, 1, 2)), extent.offset - 1)) for extent in targets[0].shape]
        spatial = [Iter(f"v{at}", extent) for at, extent in enumerate(extents)]
        if draw.chance(0.08):
            spatial.append(Iter("w", draw.choose(self.dims)))
        reduced = [Iter(f"r{at}", Extent(draw.number(1, 4)), True) for at in range(draw.choose((1, 1, 2)))]
        iters = self._tiles([*spatial, *reduced])
        if draw.chance(0.4):
            iters = [iters[int(at)] for at in draw.random.permutation(len(iters))]
        spatial = [it for it in iters if not it.reduce]
        updates = [self._update(target, spatial, iters) for target in targets]
        if draw.chance(0.1):
            updates.append(self._update(targets[0], spatial, iters))
        inits = [self._start(update, spatial, iters) for update in updates if draw.chance(0.9)]
        if not inits or draw.chance(0.1):
            inits.append(self._start(draw.choose(updates), spatial, iters))
        fused = draw.chance(0.4) and not any(it.tile for it in iters[-2:])
        first, *more = updates
        stage = Stage(
            f"S{len(self.stages)}", tuple(iters), first.target, first.indices, first.value, first.combine,
            conditions=first.conditions, inits=tuple(inits), more=tuple(more), fused=fused,
        )  # fmt: skip
        self.stages.append(stage)

    def _update(self, target: Buffer, spatial: list[Iter], iters: list[Iter]) -> Store:
        combine = self.draw.choose(("add", "add", "max", "min"))
        conditions = self._conditions(iters) if self.draw.chance(0.15) else ()
        return Store(target, self._place(target, spatial), self._term(iters), combine, conditions)

    def _start(self, update: Store, spatial: list[Iter], iters: list[Iter]) -> Store:
        """What starts an update, or something else."""
        draw = self.draw
        indices = update.indices if draw.chance(0.35) else self._moved(update, spatial)
        value: Value = Constant(draw.choose((STARTS[update.combine or "add"], 7)))
        if draw.chance(0.25):
            value = self._term(iters if draw.chance(0.3) else spatial)
        conditions = self._conditions(spatial) if draw.chance(0.2) else ()
        return Store(update.target, indices, value, conditions=conditions)

    def _moved(self, update: Store, spatial: list[Iter]) -> tuple[Affine | Gathered, ...]:
        """The place of an update, another one in one of its dimensions, or any."""
        other = self._place(update.target, spatial)
        if self.draw.chance(0.3):
            return other
        at = self.draw.number(0, len(other) - 1)
        return (*update.indices[:at], other[at], *update.indices[at + 1 :])

    def _place(self, target: Buffer, spatial: list[Iter]) -> tuple[Affine | Gathered, ...]:
        """An element of a buffer, by spatial iterators, usually another one for each dimension."""
        indices: list[Affine | Gathered] = []
        rank = len(target.shape)
        order = [int(at) for at in self.draw.random.permutation(rank)] if self.draw.chance(0.25) else list(range(rank))
        for at, extent in zip(order, target.shape, strict=True):
            it = next((it for it in spatial if it.name == f"v{at}"), spatial[0])
            style = self.draw.choose(PLACES)
            room = extent.offset - it.extent.offset
            if style == "fixed":
                indices.append(Affine((), self.draw.number(0, min(2, extent.offset - 1))))
            elif room < 0:
                indices.append(Affine(((it.name, 1),), mod=extent.offset))
            elif style == "reversed":
                indices.append(Affine(((it.name, -1),), it.extent.offset - 1 + self.draw.number(0, room)))
            elif style == "halved":
                indices.append(Affine(((it.name, 1),), self.draw.number(0, room), floordiv=2))
            else:
                indices.append(Affine(((it.name, 1),), self.draw.number(0, room) if style == "shifted" else 0))
        return tuple(indices)

    def _term(self, iters: list[Iter]) -> Value:
        """A value; of inputs alone where sums must stay small."""
        if self.grows and self.draw.chance(0.4):
            return self._value(iters, self.draw.choose((1, 2)))[0]
        picked = [iters[int(at)] for at in self.draw.random.permutation(len(iters))[: self.draw.choose((1, 2))]]
        return Load(self._input(tuple(it.extent for it in picked)), tuple(iterator(it.name) for it in picked))

    def _conditions(self, iters: list[Iter]) -> tuple[Affine, ...]:
        it = self.draw.choose(iters)
        return (Affine(((it.name, self.draw.choose((1, -1))),), self.draw.number(-1, 3)),)


def reduction_program(draw: Draw) -> Program:
    """A program that reads nothing before it is written."""
    for _ in range(ATTEMPTS):
        try:
            text = ReductionGenerator(draw, draw.choose(TYPES)).program()
            return replace(program_of(text, draw), name=FAMILY)
        except LookupError:
            continue
    return program_of(Generator(draw, "int32").program(), draw)
