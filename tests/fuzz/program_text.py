"""Programs as data that print twice: as tir, and as plain Python loops that say what they compute.

The Python text shares nothing with the compiler: buffers are dictionaries from index tuples to numbers, so that an
element out of bounds, or one that was never written, is a `KeyError` there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

MLIR_TYPES = {"float16": "f16", "float32": "f32", "float64": "f64", "int8": "i8", "int32": "i32", "int64": "i64"}


@dataclass(frozen=True)
class Extent:
    """`symbol + offset`, or just `offset` when there is no symbol."""

    offset: int
    symbol: str | None = None

    def value(self, sizes: Mapping[str, int]) -> int:
        return self.offset + (sizes[self.symbol] if self.symbol else 0)

    def less(self, count: int) -> Extent:
        return Extent(self.offset - count, self.symbol)

    def excess_over(self, other: Extent) -> int | None:
        """How much larger this is than `other`; None when that depends on symbols."""
        return self.offset - other.offset if self.symbol == other.symbol else None

    @property
    def static(self) -> int | None:
        return None if self.symbol else self.offset

    def python(self) -> str:
        return f"({self.symbol} + {self.offset})" if self.symbol else str(self.offset)


@dataclass(frozen=True)
class Affine:
    """A sum of iterators and symbols times factors, then perhaps floordiv or mod of it."""

    terms: tuple[tuple[str, int], ...]
    constant: int = 0
    floordiv: int = 0
    mod: int = 0

    def python(self) -> str:
        text = " + ".join([*(f"{factor} * {name}" for name, factor in self.terms), str(self.constant)])
        if self.floordiv:
            return f"(({text}) // {self.floordiv})"
        return f"(({text}) % {self.mod})" if self.mod else f"({text})"

    def map_text(self, dims: Sequence[str]) -> str:
        """The expression of an affine map over `dims`."""
        names = {name: f"d{at}" for at, name in enumerate(dims)}
        text = " + ".join([*(f"{names[name]} * {factor}" for name, factor in self.terms), str(self.constant)])
        if self.floordiv:
            return f"({text}) floordiv {self.floordiv}"
        return f"({text}) mod {self.mod}" if self.mod else text

    def index_text(self) -> str:
        """The expression as it stands in brackets, over values."""
        text = " + ".join([*(f"%{name} * {factor}" for name, factor in self.terms), str(self.constant)])
        if self.floordiv:
            return f"({text}) floordiv {self.floordiv}"
        return f"({text}) mod {self.mod}" if self.mod else text


@dataclass(frozen=True)
class Fact:
    """`left relation right` over symbols: `==`, `<=` or `<`."""

    left: Affine
    relation: str
    right: Affine

    def holds(self, sizes: Mapping[str, int]) -> bool:
        return bool(eval(f"{self.left.python()} {self.relation} {self.right.python()}", dict(sizes)))


def iterator(name: str) -> Affine:
    return Affine(((name, 1),))


@dataclass(frozen=True)
class Gathered:
    """An index that is read from a buffer of whole numbers."""

    buffer: Buffer
    index: Affine

    def python(self) -> str:
        return f"{self.buffer.name}[{self.index.python()},]"


@dataclass(frozen=True)
class Buffer:
    """`of` names the buffer whose memory this is another name of, with extents that the type leaves open."""

    name: str
    shape: tuple[Extent, ...]
    dtype: str
    of: str | None = None

    @property
    def memory(self) -> str:
        """The name of the buffer that is touched."""
        return self.of or self.name

    @property
    def mlir(self) -> str:
        extents = "".join(f"{'?' if e.symbol or self.of else e.offset}x" for e in self.shape)
        return f"memref<{extents}{MLIR_TYPES[self.dtype]}>"


@dataclass(frozen=True)
class Load:
    buffer: Buffer
    indices: tuple[Affine | Gathered, ...]

    def python(self) -> str:
        return f"{self.buffer.name}[{', '.join(i.python() for i in self.indices)},]"


@dataclass(frozen=True)
class Constant:
    value: int

    def python(self) -> str:
        return str(self.value)


@dataclass(frozen=True)
class Binary:
    """`op` is add, sub, mul, max or min."""

    op: str
    left: Value
    right: Value

    def python(self) -> str:
        left, right = self.left.python(), self.right.python()
        if self.op in ("max", "min"):
            return f"{self.op}({left}, {right})"
        return f"wrap({left} {dict(add='+', sub='-', mul='*')[self.op]} {right})"


@dataclass(frozen=True)
class Guarded:
    """`value` where `0 <= left` for all `conditions`, else 0; `value` is not evaluated there."""

    conditions: tuple[Affine, ...]
    value: Value

    def python(self) -> str:
        test = " and ".join(f"0 <= {c.python()}" for c in self.conditions)
        return f"({self.value.python()} if {test} else 0)"


Value = Load | Constant | Binary | Guarded


@dataclass(frozen=True)
class Iter:
    """An iterator of a block. `tile` is the length of the inner one of two loops that run it, with a guard."""

    name: str
    extent: Extent
    reduce: bool = False
    tile: int = 0


@dataclass(frozen=True)
class Store:
    """`target[indices] = value`, or combined with what is there when `combine` names how, where no index in
    `conditions` is negative."""

    target: Buffer
    indices: tuple[Affine | Gathered, ...]
    value: Value
    combine: str | None = None
    conditions: tuple[Affine, ...] = ()

    def stored(self) -> Value:
        here = Load(self.target, self.indices)
        return self.value if self.combine is None else Binary(self.combine, here, self.value)


@dataclass(frozen=True)
class Stage:
    """One block: `target[indices] = value`, or combined with what is there when `combine` names how.

    `start` is what an init stores there, None for none. `guards` (affine, at least 0) keep instances from running, and
    `conditions` from storing. With `calls`, an instance calls a function instead, which replaces each element x of the
    target by 1 - x. An init may store elsewhere (`inits`), and the block may store `more`. The last two iterators of
    static extents may be `fused`: they run in one loop.
    """

    name: str
    iters: tuple[Iter, ...]
    target: Buffer
    indices: tuple[Affine | Gathered, ...]
    value: Value
    combine: str | None = None
    start: int | None = None
    guards: tuple[Affine, ...] = ()
    conditions: tuple[Affine, ...] = ()
    calls: bool = False
    inits: tuple[Store, ...] = ()
    more: tuple[Store, ...] = ()
    fused: bool = False

    def starts(self) -> tuple[Store, ...]:
        """The stores of the init."""
        if self.start is None:
            return self.inits
        return (Store(self.target, self.indices, Constant(self.start)), *self.inits)

    def stores(self) -> tuple[Store, ...]:
        """The stores besides those of the init."""
        return (Store(self.target, self.indices, self.value, self.combine, self.conditions), *self.more)

    def targets(self) -> tuple[Buffer, ...]:
        """The buffers that the block writes."""
        return tuple(dict.fromkeys(store.target for store in (*self.stores(), *self.starts())))

    def loads(self) -> list[Load]:
        return [load for store in (*self.stores(), *self.starts()) for load in loads_of(store.stored())]


def loads_of(value: Value) -> Iterator[Load]:
    """All loads in an expression, those of subscripts not among them."""
    if isinstance(value, Load):
        yield value
    elif isinstance(value, Binary):
        yield from loads_of(value.left)
        yield from loads_of(value.right)
    elif isinstance(value, Guarded):
        yield from loads_of(value.value)


@dataclass(frozen=True)
class Group:
    """Stages that run one after the other, the first iterator of each bound to one loop when there are several."""

    stages: tuple[Stage, ...]


@dataclass(frozen=True)
class ProgramText:
    """`parameters` are inputs and outputs in order; what else is written is a temporary.

    Outputs that are `updated` come with values, which stages may read.
    """

    symbols: tuple[str, ...]
    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]
    temporaries: tuple[Buffer, ...]
    groups: tuple[Group, ...]
    dtype: str
    below: tuple[tuple[str, Extent], ...] = ()
    """Inputs that hold indices, and the extent that these stay below."""
    facts: tuple[Fact, ...] = ()
    """What calls keep to, and schedules may rely on."""
    updated: frozenset[str] = frozenset()
    aliases: tuple[Buffer, ...] = ()

    def stages(self) -> list[Stage]:
        return [stage for group in self.groups for stage in group.stages]

    def mlir(self) -> str:
        return TirPrinter(self).text()

    def python(self) -> str:
        return python_text(self)

    def evaluate(
        self,
        inputs: Sequence[np.ndarray[Any, Any]],
        sizes: Mapping[str, int],
        initial: Sequence[np.ndarray[Any, Any] | None] = (),
    ) -> list[np.ndarray[Any, Any]]:
        """What the outputs are, by the plain loops. `initial` are the values that come in them."""
        scope: dict[str, Any] = {"wrap": wrap_for(self.dtype), **sizes}
        for buffer in (*self.outputs, *self.temporaries):
            scope[buffer.name] = {}
        given = [pair for pair in zip(self.outputs, initial, strict=False) if pair[1] is not None]
        for buffer, array in (*zip(self.inputs, inputs, strict=True), *given):
            scope[buffer.name] = dict(np.ndenumerate(array.astype(object)))
        for buffer in self.aliases:
            scope[buffer.name] = scope[buffer.memory]
        exec(compile(self.python(), "program", "exec"), scope)
        return [self._array(scope[buffer.name], buffer, sizes) for buffer in self.outputs]

    def _array(
        self, found: Mapping[tuple[int, ...], Any], buffer: Buffer, sizes: Mapping[str, int]
    ) -> np.ndarray[Any, Any]:
        shape = tuple(e.value(sizes) for e in buffer.shape)
        array = np.empty(shape, buffer.dtype)
        for index in np.ndindex(*shape):
            array[index] = found[index]
        if len(found) != array.size:
            raise IndexError(f"{buffer.name} is written out of bounds")
        return array

    def extents(self) -> list[Extent]:
        """Of all buffers and iterators."""
        buffers = (*self.inputs, *self.outputs, *self.temporaries)
        return [e for b in buffers for e in b.shape] + [it.extent for s in self.stages() for it in s.iters]


def wrap_for(dtype: str) -> Any:
    """How a result is cut down to what the type holds; floating-point values stay small enough to be exact."""
    if not dtype.startswith("int"):
        return lambda x: x
    half = 1 << (int(dtype[3:]) - 1)
    return lambda x: (x + half) % (2 * half) - half


def python_text(program: ProgramText) -> str:
    lines: list[str] = []
    for group in program.groups:
        depth = 0
        if len(group.stages) > 1:
            lines.append(f"for shared in range({group.stages[0].iters[0].extent.python()}):")
            depth = 1
        for stage in group.stages:
            lines += [f"{'  ' * depth}{line}" for line in _python_stage(stage, "shared" if depth else None)]
    return "\n".join(lines) + "\n"


def _python_stage(stage: Stage, shared: str | None) -> list[str]:
    lines: list[str] = []
    for at, it in enumerate(stage.iters):
        pad = "  " * at
        values = f"[{shared}]" if shared and at == 0 else f"range({it.extent.python()})"
        lines.append(f"{pad}for {it.name} in {values}:")
    pad = "  " * len(stage.iters)
    for guard in stage.guards:
        lines.append(f"{pad}if not 0 <= {guard.python()}: continue")
    first = [f"{it.name} == 0" for it in stage.iters if it.reduce]
    lines += [f"{pad}{_python_store(store, first)}" for store in stage.starts()]
    if stage.calls:
        name = stage.target.name
        lines.append(f"{pad}for at in {name}: {name}[at] = wrap(1 - {name}[at])")
    else:
        lines += [f"{pad}{_python_store(store)}" for store in stage.stores()]
    return lines


def _python_store(store: Store, also: Sequence[str] = ()) -> str:
    """A store under its conditions and others."""
    tests = [*also, *(f"0 <= {condition.python()}" for condition in store.conditions)]
    text = f"{Load(store.target, store.indices).python()} = {store.stored().python()}"
    return f"if {' and '.join(tests)}: {text}" if tests else text


@dataclass
class TirPrinter:
    """A program as tir."""

    program: ProgramText
    lines: list[str] = field(default_factory=list[str])
    count: int = 0
    known: dict[Extent, str] = field(default_factory=dict[Extent, str])

    def text(self) -> str:
        program = self.program
        parameters = ", ".join(f"%{b.name}: {b.mlir}" for b in (*program.inputs, *program.outputs))
        self.line(0, f"func.func @main({parameters}) {{")
        self._shapes()
        for buffer in program.temporaries:
            sizes = ", ".join(self.extent(e) for e in buffer.shape if e.symbol)
            self.line(1, f"%{buffer.name} = memref.alloc({sizes}) : {buffer.mlir}")
        buffers = {b.name: b for b in (*program.inputs, *program.outputs, *program.temporaries)}
        for alias in program.aliases:
            source = f'"memref.cast"(%{alias.memory}) : ({buffers[alias.memory].mlir})'
            self.line(1, f"%{alias.name} = {source} -> {alias.mlir}")
        for group in program.groups:
            self._group(group)
        self.line(1, "func.return")
        self.line(0, "}")
        for target in dict.fromkeys(stage.target for stage in program.stages() if stage.calls):
            self._called(target)
        return "\n".join(self.lines) + "\n"

    def _called(self, buffer: Buffer) -> None:
        """A function that replaces each element x of a buffer by 1 - x."""
        self.line(0, f"func.func private @turn_{buffer.name}(%{buffer.name}: {buffer.mlir}) {{")
        iters = tuple(Iter(f"v{at}", extent) for at, extent in enumerate(buffer.shape))
        indices = tuple(iterator(it.name) for it in iters)
        value = Binary("sub", Constant(1), Load(buffer, indices))
        self._stage(1, Stage(f"turn_{buffer.name}", iters, buffer, indices, value), None)
        self.line(1, "func.return")
        self.line(0, "}")

    def line(self, depth: int, text: str) -> None:
        self.lines.append("  " * depth + text)

    def fresh(self) -> str:
        self.count += 1
        return f"%t{self.count}"

    def extent(self, extent: Extent) -> str:
        """An extent as it stands in text: a number, or a value that was defined at the top."""
        return str(extent.offset) if extent.symbol is None else self.known[extent]

    def _shapes(self) -> None:
        """Symbols from the first parameter that has them, sums of them, and what ties the other parameters."""
        sources: set[tuple[str, int]] = set()
        for symbol in self.program.symbols:
            buffer, at = next(
                (b, d) for b in self.program.inputs for d, e in enumerate(b.shape) if e == Extent(0, symbol)
            )
            self.line(1, f"%c_{symbol} = arith.constant {at} : index")
            self.line(1, f"%{symbol} = memref.dim %{buffer.name}, %c_{symbol} : {buffer.mlir}")
            sources.add((buffer.name, at))
            self.known[Extent(0, symbol)] = f"%{symbol}"
        for extent in self.program.extents():
            if extent.symbol and extent not in self.known:
                name = f"%{extent.symbol}_{'less' if extent.offset < 0 else 'more'}{abs(extent.offset)}"
                self.line(1, f"{name} = affine.apply affine_map<(d0) -> (d0 + {extent.offset})>(%{extent.symbol})")
                self.known[extent] = name
        for fact in self.program.facts:
            self.line(1, f"tir.assume [{fact.left.index_text()}] {fact.relation} [{fact.right.index_text()}]")
        for buffer in (*self.program.inputs, *self.program.outputs):
            if any(e.symbol and (buffer.name, at) not in sources for at, e in enumerate(buffer.shape)):
                sizes = ", ".join(self.extent(e) for e in buffer.shape if e.symbol)
                self.line(1, f"tir.assume_shape %{buffer.name}[{sizes}] : {buffer.mlir}")

    def _group(self, group: Group) -> None:
        if len(group.stages) == 1:
            self._stage(1, group.stages[0], None)
            return
        shared = self.fresh()
        self.line(1, f"tir.for {shared} in {self.extent(group.stages[0].iters[0].extent)} {{")
        for stage in group.stages:
            self._stage(2, stage, shared)
        self.line(1, "}")

    def _stage(self, depth: int, stage: Stage, shared: str | None) -> None:
        bindings: list[str] = []
        guards: list[tuple[str, str]] = []
        bound: dict[str, str] = {}
        start = depth
        last = stage.iters[-2:] if stage.fused and len(stage.iters) > (2 if shared else 1) else ()
        for at, it in enumerate(stage.iters):
            if it in last:
                if it is last[0]:
                    together = self.fresh()
                    self.line(depth, f"tir.for {together} in {last[0].extent.offset * last[1].extent.offset} {{")
                    depth += 1
                operation = "floordiv" if it is last[0] else "mod"
                bound[it.name] = f"{together} {operation} {last[1].extent.offset}"
            elif shared and at == 0:
                bound[it.name] = shared
            elif it.tile:
                bound[it.name] = self._tiled(depth, it)
                guards.append((bound[it.name], self.extent(it.extent)))
                depth += 2
            else:
                loop = f"%{it.name}_{self.fresh()[1:]}"
                self.line(depth, f"tir.for {loop} in {self.extent(it.extent)} {{")
                bound[it.name] = loop
                depth += 1
            bindings.append(bound[it.name])
        for guard in stage.guards:
            terms = [f"({bound.get(name, f'%{name}')}) * {factor}" for name, factor in guard.terms]
            guards.append(("-1", " + ".join([*terms, str(guard.constant)])))
        iters = ", ".join(
            f"%{it.name}: {'reduce' if it.reduce else 'spatial'}<{self.extent(it.extent)}>" for it in stage.iters
        )
        where = f" where [{', '.join(g for g, _ in guards)}] < [{', '.join(g for _, g in guards)}]" if guards else ""
        self.line(depth, f'tir.block "{stage.name}" iters({iters}) = [{", ".join(bindings)}]{where} {{')
        self._body(depth + 1, stage)
        self.line(depth, "}")
        for at in reversed(range(start, depth)):
            self.line(at, "}")

    def _tiled(self, depth: int, it: Iter) -> str:
        """Two loops, of which the second has `tile` iterations; returns what they give together."""
        outer, inner = self.fresh(), self.fresh()
        if it.extent.symbol is None:
            length = str(-(-it.extent.offset // it.tile))
        else:
            # Defined where it is used: the loop stands at the top level, or just below a shared loop.
            length = self.fresh()
            map_text = f"affine_map<(d0) -> (d0 ceildiv {it.tile})>"
            self.line(depth, f"{length} = affine.apply {map_text}({self.extent(it.extent)})")
        self.line(depth, f"tir.for {outer} in {length} {{")
        self.line(depth + 1, f"tir.for {inner} in {it.tile} {{")
        return f"{outer} * {it.tile} + {inner}"

    def _body(self, depth: int, stage: Stage) -> None:
        if starts := stage.starts():
            self.line(depth, "tir.init {")
            for start in starts:
                self._store(depth + 1, start)
            self.line(depth, "}")
        if stage.calls:
            name = stage.target.name
            self.line(depth, f"func.call @turn_{name}(%{name}) : ({stage.target.mlir}) -> ()")
            return
        for store in stage.stores():
            self._store(depth, store)

    def _store(self, depth: int, store: Store) -> None:
        if store.conditions:
            self.line(depth, f"scf.if {self._all_hold(depth, store.conditions)} {{")
            self._store(depth + 1, replace(store, conditions=()))
            self.line(depth, "}")
            return
        result = self.value(depth, store.stored())
        indices = ", ".join(self.index(depth, i) for i in store.indices)
        self.line(depth, f"memref.store {result}, %{store.target.name}[{indices}] : {store.target.mlir}")

    def index(self, depth: int, index: Affine | Gathered) -> str:
        result = self.fresh()
        if isinstance(index, Gathered):
            read, type_ = self.fresh(), MLIR_TYPES[index.buffer.dtype]
            at = self.index(depth, index.index)
            self.line(depth, f"{read} = memref.load %{index.buffer.name}[{at}] : {index.buffer.mlir}")
            self.line(depth, f"{result} = arith.index_cast {read} : {type_} to index")
            return result
        if index == iterator(index.terms[0][0] if index.terms else ""):
            return f"%{index.terms[0][0]}"
        if not index.terms:
            self.line(depth, f"{result} = arith.constant {index.constant} : index")
            return result
        names = [name for name, _ in index.terms]
        dims = ", ".join(f"d{at}" for at in range(len(names)))
        operands = ", ".join(f"%{name}" for name in names)
        self.line(depth, f"{result} = affine.apply affine_map<({dims}) -> ({index.map_text(names)})>({operands})")
        return result

    def value(self, depth: int, value: Value) -> str:
        if isinstance(value, Load):
            indices = ", ".join(self.index(depth, i) for i in value.indices)
            result = self.fresh()
            self.line(depth, f"{result} = memref.load %{value.buffer.name}[{indices}] : {value.buffer.mlir}")
            return result
        if isinstance(value, Constant):
            result = self.fresh()
            number = f"{value.value}" if self.is_integer else f"{float(value.value)}"
            self.line(depth, f"{result} = arith.constant {number} : {self.element}")
            return result
        if isinstance(value, Guarded):
            return self._guarded(depth, value)
        left, right = self.value(depth, value.left), self.value(depth, value.right)
        result = self.fresh()
        self.line(depth, f"{result} = arith.{self._operation(value.op)} {left}, {right} : {self.element}")
        return result

    def _guarded(self, depth: int, value: Guarded) -> str:
        test = self._all_hold(depth, value.conditions)
        result = self.fresh()
        self.line(depth, f"{result} = scf.if {test} -> ({self.element}) {{")
        inside = self.value(depth + 1, value.value)
        self.line(depth + 1, f"scf.yield {inside} : {self.element}")
        self.line(depth, "} else {")
        outside = self.value(depth + 1, Constant(0))
        self.line(depth + 1, f"scf.yield {outside} : {self.element}")
        self.line(depth, "}")
        return result

    def _all_hold(self, depth: int, conditions: Sequence[Affine]) -> str:
        """An i1: whether none of some indices is negative."""
        zero = self.fresh()
        self.line(depth, f"{zero} = arith.constant 0 : index")
        tests: list[str] = []
        for condition in conditions:
            at = self.index(depth, condition)
            tests.append(self.fresh())
            self.line(depth, f"{tests[-1]} = arith.cmpi sge, {at}, {zero} : index")
        test = tests[0]
        for other in tests[1:]:
            both = self.fresh()
            self.line(depth, f"{both} = arith.andi {test}, {other} : i1")
            test = both
        return test

    @property
    def element(self) -> str:
        return MLIR_TYPES[self.program.dtype]

    @property
    def is_integer(self) -> bool:
        return self.program.dtype.startswith("int")

    def _operation(self, op: str) -> str:
        if op in ("max", "min"):
            return f"{op}si" if self.is_integer else f"{op}imumf"
        return f"{op}{'i' if self.is_integer else 'f'}"
