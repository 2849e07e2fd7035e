"""Names of loops and blocks in calls: `i`, `Y`, `Y.i` (a loop around block Y), `Y[0]`, `f.Y.i` (in function f)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from weft.analysis.block_scopes import loops_around
from weft.dialects import sched
from weft.dialects.tir import BlockOp, ForOp
from weft.dialects.traversal import operations_in, operations_of
from weft.passes.module_edits import functions_of
from weft.schedule.recording import BlockHandle, IntHandle, LoopHandle
from weft.schedule.schedule import Schedule
from weft.support.errors import CompileError


class References(MutableMapping[str, object]):
    """The handles of a schedule: those that the user assigned, then those of loops and blocks, made on demand."""

    def __init__(self, schedule: Schedule, assigned: Mapping[str, SSAValue]) -> None:
        self._schedule = schedule
        self._names = names_of(schedule.mod)
        self.assigned = dict(assigned)

    def __contains__(self, path: object) -> bool:
        return path in self.assigned or path in self._names

    def __getitem__(self, path: str) -> object:
        """Raises `CompileError` for a name of several loops or blocks."""
        found = self._names.get(path, ())
        if path in self.assigned:
            handle = _handle(self.assigned[path])
            if not found or self._is_valid(handle):
                return handle
        if len(found) != 1:
            others = [name for name, ops in self._names.items() if len(ops) == 1 and ops[0] in found]
            raise CompileError(f"'{path}' names {len(found)} loops or blocks: write {' or '.join(_shortest(others))}")
        return self._handle_of(found[0])

    def _is_valid(self, handle: BlockHandle | LoopHandle | IntHandle) -> bool:
        try:
            self._schedule.get(handle)
        except CompileError:
            return False
        return True

    def _handle_of(self, op: Operation) -> BlockHandle | LoopHandle:
        known = self._schedule.known_handle(op)
        if known is not None:
            return known
        if isinstance(op, BlockOp):
            return self._schedule.handle_of(op)
        inside = operations_of(op, BlockOp)
        block = next((inner for inner in inside if op in loops_around(inner)), None)
        if block is None or not isinstance(op, ForOp):
            raise CompileError("the loop contains no block, by which schedules find it")
        handle = self._schedule.known_handle(block)
        found = handle if isinstance(handle, BlockHandle) else self._schedule.handle_of(block)
        return self._schedule.get_loops(found)[loops_around(block).index(op)]

    def __setitem__(self, name: str, value: object) -> None:
        if isinstance(value, BlockHandle | LoopHandle | IntHandle):
            self.assigned[name] = value.value

    def __delitem__(self, name: str) -> None:
        del self.assigned[name]

    def __iter__(self) -> Iterator[str]:
        yield from dict.fromkeys((*self.assigned, *self._names))

    def __len__(self) -> int:
        return len(self.assigned.keys() | self._names.keys())


def _handle(value: SSAValue) -> BlockHandle | LoopHandle | IntHandle:
    if value.type == sched.INT:
        return IntHandle(value)
    return LoopHandle(value) if value.type == sched.LOOP else BlockHandle(value)


def names_of(module: ModuleOp) -> dict[str, tuple[Operation, ...]]:
    """Maps every name of blocks and loops to its possible meanings, in program order."""
    found: dict[str, dict[Operation, None]] = {}
    for name, function in functions_of(module).items():
        for block in operations_in(function):
            if not isinstance(block, BlockOp):
                continue
            paths: list[tuple[str, Operation]] = [(block.label, block)]
            for at, loop in enumerate(loops_around(block)):
                variable = loop.induction_variable.name_hint
                paths.append((f"{block.label}[{at}]", loop))
                paths += [(variable, loop), (f"{block.label}.{variable}", loop)] if variable else []
            for path, op in paths:
                found.setdefault(path, {})[op] = None
                found.setdefault(f"{name}.{path}", {})[op] = None
    return {path: tuple(ops) for path, ops in found.items()}


def names_like(module: ModuleOp, kind: type[Operation], prefix: str) -> list[str]:
    """Returns the shortest unambiguous name of each loop or block of a kind."""
    shortest: dict[Operation, str] = {}
    for path, ops in names_of(module).items():
        if len(ops) == 1 and isinstance(ops[0], kind) and path.startswith(prefix):
            known = shortest.get(ops[0])
            if known is None or _length(path) < _length(known):
                shortest[ops[0]] = path
    return list(shortest.values())


def _length(path: str) -> tuple[bool, int, int]:
    return "[" in path, path.count("."), len(path)


def _shortest(paths: list[str]) -> list[str]:
    least = min(map(_length, paths), default=None)
    return [path for path in paths if least is not None and _length(path)[:2] == least[:2]][:4]
