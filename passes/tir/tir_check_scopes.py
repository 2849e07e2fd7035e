"""tir-check-scopes: check capacities of memory scopes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import memref
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from weft.dialects.element_types import bytes_of
from weft.passes.tir.tir_pass import buffer_type, tir_functions
from weft.support.errors import CompileError, ScheduleError, Violation
from weft.support.target import TargetKind, registered_kind


@dataclass(frozen=True)
class CheckScopesPass(ModulePass):
    """Check that the temporaries in each memory scope of a registered kind of target (`weft.TargetKind`) fit at once.

    Raises ScheduleError with their sizes if not, and CompileError for dynamic extents and unregistered kinds.

    Requires: temporaries of the size that is used (`tir-compact-buffers`).

    Leaves: the module unchanged.
    """

    name = "tir-check-scopes"

    target: str
    """The registered kind of target whose scopes are checked."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        kind = registered_kind(self.target.partition(" ")[0])
        if kind is None:
            raise CompileError(f"{self.name}: no target kind '{self.target}' is registered")
        for function in tir_functions(op):
            for scope, capacity in kind.scopes.items():
                _check(function, kind, scope, capacity)


def _check(function: FuncOp, kind: TargetKind, scope: str, capacity: int) -> None:
    inside = [
        op
        for op in function.walk()
        if isinstance(op, memref.AllocOp) and buffer_type(op.memref).memory_space == StringAttr(scope)
    ]
    for op in inside:
        if not op.memref.type.has_static_shape():
            raise CompileError.at(op, f"%{op.memref.name_hint} is in '{scope}', and needs a static size")
    needs = f"@{function.sym_name.data} needs {{total}} bytes of '{scope}' ({{listed}}), {kind.name} has {capacity}"
    require_capacity(inside, capacity, "temporaries fit the memories of the target", needs, None, scope)


def require_capacity(
    buffers: Sequence[memref.AllocOp | memref.AllocaOp],
    capacity: int,
    requirement: str,
    needs: str,
    place: Operation | None,
    argument: str,
) -> None:
    """Raise `ScheduleError`, at `place` or the first buffer, if buffers exceed `capacity` bytes; `needs` has the fields
    `total` and `listed`."""
    sizes = [op.memref.type.element_count() * bytes_of(op.memref.type.element_type) for op in buffers]
    if sum(sizes) > capacity:
        listed = ", ".join(f"%{op.memref.name_hint}: {size}" for op, size in zip(buffers, sizes, strict=True))
        violation = Violation(needs.format(total=sum(sizes), listed=listed))
        raise ScheduleError("lower-tir-to-low", 0, requirement, violation, place or buffers[0], argument)
