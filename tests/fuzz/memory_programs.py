"""Random programs whose order matters: several writers of a buffer, reads before writes, updates in place, scatters.

Outputs come with values that stages read before and after others overwrite them, in part or whole, under predicates, at
indices from data. Stages share loops although one touches what another writes in other iterations. With `effects`,
instances call functions that update a buffer, and buffers have a second name.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from program_text import (
    Affine,
    Buffer,
    Extent,
    Gathered,
    Group,
    Iter,
    Load,
    ProgramText,
    Stage,
    Value,
    iterator,
    loads_of,
)
from programs import Draw, Program
from random_programs import Generator, program_of

TYPES = ("int32", "int32", "int8", "int64", "float32")
"""Integers mostly: what goes round between buffers grows beyond what a float holds exactly."""
ATTEMPTS = 40
OVERWRITE, REDUCE, CALL, SCATTER, PLAIN, IN_PLACE = "overwrite", "reduce", "call", "scatter", "plain", "in place"
KINDS = (OVERWRITE, OVERWRITE, OVERWRITE, REDUCE, SCATTER, PLAIN, PLAIN, PLAIN, IN_PLACE)


@dataclass
class MemoryGenerator(Generator):
    """Draws stages over a few buffers again and again."""

    effects: bool = False
    updated: list[Buffer] = field(default_factory=list[Buffer])
    aliases: list[Buffer] = field(default_factory=list[Buffer])

    @property
    def grows(self) -> bool:
        """Whether values may grow without bound: integers wrap."""
        return self.dtype.startswith("int")

    def program(self) -> ProgramText:
        draw = self.draw
        self.dims = [Extent(draw.number(2, 6)) for _ in range(draw.choose((1, 2, 2)))]
        for _ in range(draw.choose((1, 2, 2, 3))):
            shape = tuple(draw.choose(self.dims) for _ in range(draw.choose((1, 1, 2))))
            buffer = self._new_buffer(shape)
            self.updated.append(buffer)
            self.written.append(buffer)
            self.bounds[buffer.name] = 3
            if self.effects and draw.chance(0.3):
                self.aliases.append(replace(buffer, name=f"{buffer.name}_too", of=buffer.name))
        count = draw.number(2, 5)
        while len(self.stages) < count:
            kind = draw.choose((*KINDS, CALL) if self.effects and self.grows else KINDS)
            target = draw.choose(self.written)
            if kind == PLAIN:
                self._plain()
            elif kind == IN_PLACE:
                self._in_place()
            elif kind == CALL:
                iters = tuple(Iter(f"v{at}", draw.choose(self.dims)) for at in range(draw.number(1, 2)))
                indices = tuple(iterator(iters[0].name) for _ in target.shape)
                self._add(replace(self._stage(iters, target, indices, Load(target, indices)), calls=True), 0)
            else:
                self._overwrite(target, reduces=kind == REDUCE, scatters=kind == SCATTER)
        read = {load.buffer.name for stage in self.stages for load in self._own_loads(stage)}
        outputs = [b for b in self.written if b in self.updated or b.name not in read]
        self.stages = [  # every instance that writes an output runs
            replace(stage, guards=(), conditions=stage.guards) if stage.guards and stage.target in outputs else stage
            for stage in self.stages
        ]
        return self._text(outputs)

    def _text(self, outputs: list[Buffer]) -> ProgramText:
        """The program of the stages drawn so far, whose results are in `outputs`."""
        return ProgramText(
            (),
            (*self.inputs, *(b for b, _ in self.gathers)),
            tuple(outputs),
            tuple(b for b in self.written if b not in outputs),
            tuple(self._groups()),
            self.dtype,
            tuple((buffer.name, extent) for buffer, extent in self.gathers),
            updated=frozenset(b.name for b in self.updated),
            aliases=tuple(self.aliases),
        )

    def _stage(
        self, iters: tuple[Iter, ...], target: Buffer, indices: tuple[Affine | Gathered, ...], value: Value
    ) -> Stage:
        return Stage(f"S{len(self.stages)}", iters, target, indices, value)

    def _overwrite(self, target: Buffer, *, reduces: bool, scatters: bool) -> None:
        """A stage that stores to all or a part of a buffer that there is already."""
        draw = self.draw
        iters: list[Iter] = []
        indices: list[Affine | Gathered] = []
        for at, extent in enumerate(target.shape):
            less = draw.choose((0, 0, 0, 1)) if extent.offset > 1 else 0
            iters.append(Iter(f"v{at}", extent.less(less)))
            shift = draw.number(0, less)
            turned = draw.chance(0.1)
            indices.append(Affine(((f"v{at}", -1 if turned else 1),), extent.offset - 1 - shift if turned else shift))
        if scatters:
            at = draw.number(0, len(iters) - 1)
            indices[at] = self._gather(iterator(iters[at].name), iters[at].extent, target.shape[at])
        spare = draw.chance(0.25)
        if reduces:
            iters.append(Iter("r0", Extent(draw.number(1, 4)) if draw.chance(0.5) else draw.choose(self.dims), True))
        elif spare:  # an iterator that the target does not have: the last of its values stays
            iters.insert(0, Iter("w", draw.choose(self.dims)))
        value, bound = self._value(self._tiles(iters) if draw.chance(0.5) else iters, draw.choose((1, 1, 2, 3)))
        if not self.grows and any(load.buffer == target for load in loads_of(value)):
            return
        if reduces:
            bound = max(bound * self._most(iters[-1].extent), 64)
        elif draw.chance(0.3):  # together with what is there
            here = Load(target, tuple(indices))
            value, bound = self._binary(here, self.bounds[target.name], value, bound)
            bound *= self._most(iters[0].extent) if spare or scatters else 1
        if bound > self._limit() and not self.grows:
            return
        conditions: tuple[Affine, ...] = ()
        if draw.chance(0.25):
            conditions = (Affine(((iters[-1].name, draw.choose((1, -1))),), draw.number(-1, 3)),)
        names = [alias for alias in self.aliases if alias.memory == target.name]
        name = draw.choose(names) if names and draw.chance(0.6) else target
        stage = replace(self._stage(tuple(iters), name, tuple(indices), value), conditions=conditions)
        if reduces:
            stage = replace(stage, combine="add", start=0, conditions=())
        self.stages.append(stage)
        self.bounds[target.name] = max(bound, self.bounds[target.name])

    def _load(self, buffer: Buffer, iters: list[Iter]) -> Value | None:
        found = super()._load(buffer, iters)
        names = [alias for alias in self.aliases if alias.memory == buffer.name]
        if isinstance(found, Load) and names and self.draw.chance(0.5):
            return replace(found, buffer=self.draw.choose(names))
        return found

    def _groups(self) -> list[Group]:
        """Stages that follow each other share their first loop, whatever that means."""
        if not self.grows:
            return super()._groups()
        groups: list[list[Stage]] = []
        for stage in self.stages:
            first = stage.iters[0]
            shareable = not (first.reduce or first.tile)
            if groups and shareable and self.draw.chance(0.5) and groups[-1][0].iters[0].extent == first.extent:
                before = groups[-1][0].iters[0]
                if not (before.reduce or before.tile):
                    groups[-1].append(stage)
                    continue
            groups.append([stage])
        return [Group(tuple(stages)) for stages in groups]


def memory_program(draw: Draw, effects: bool = False) -> Program:
    """A program that reads nothing before it is written."""
    for _ in range(ATTEMPTS):
        text = MemoryGenerator(draw, draw.choose(TYPES), effects=effects).program()
        try:
            return program_of(text, draw)
        except LookupError:
            continue
    return program_of(Generator(draw, "int32").program(), draw)
