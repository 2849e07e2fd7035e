"""`Schedule`: each method runs one primitive on a module and records it as a `sched` step."""

from __future__ import annotations

from typing import NoReturn

from weft.analysis.structure import find_block, functions
from weft.passes.schedule.decompose_padding import DecomposePadding
from weft.schedule.recording import BlockHandle, IntHandle, LoopHandle, step_methods
from weft.schedule.steps import Steps
from weft.support.errors import CompileError, ScheduleError

__all__ = ["BlockHandle", "IntHandle", "LoopHandle", "Schedule"]


@step_methods
class Schedule(Steps):
    """A module being scheduled, and the trace of what was done.

    The given module stays as it is: the schedule works on a copy. Names and parameters follow the field's:
    `sch.split(loop, factors=[None, 4])`, `sch.cache_read(block, 0, "local")`. Every method checks that the result means
    the same; one that is refused raises `ScheduleError` and changes nothing. A used-up handle raises `CompileError`.
    """

    def can_decompose_padding(self, block: BlockHandle | str, loop: LoopHandle) -> bool:
        """Whether `decompose_padding` accepts a block and a loop. Changes nothing, and is no step."""
        op = find_block(self.mod, block) if isinstance(block, str) else self._replay.block(block.value)
        try:
            DecomposePadding(op, self._replay.loop(loop.value)).plan()
        except ScheduleError:
            return False
        return True

    def unsafe_set_dtype(self, block: BlockHandle | str, buffer_index: int | str, dtype: str) -> NoReturn:
        """Refused, with the reason: elements of another type round or wrap in another way, so that results change."""
        name = block if isinstance(block, str) else self._replay.block(block.value).label
        raise CompileError(
            f"unsafe_set_dtype: buffer {buffer_index!r} of block '{name}' as {dtype} would change what the program "
            "computes; cast in the program, or recode integers that fit (`recode`)"
        )

    def __repr__(self) -> str:
        names = ", ".join(f"@{f.sym_name.data}" for f in functions(self.mod))
        return f"Schedule of {names} after {len(list(self.trace.body.block.ops))} steps"
