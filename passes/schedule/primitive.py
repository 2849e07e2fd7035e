"""Schedule primitives: parameters, numbered requirements, and a plan with its rewrite.

A primitive is a frozen dataclass whose fields are ops (`ForOp`, `BlockOp`, tuples of loops) and plain parameters
(`int`, `str`, tuples of int). `plan()` checks every requirement and computes the rewrite without changing the IR.

Passes (`tir-split`), `sched` steps, `Schedule` methods and the tuner derive their spellings from the declaration in
`dialects/sched.py`.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import cache
from importlib import import_module
from inspect import getsource
from typing import ClassVar, Final, NoReturn, TypeAlias

from xdsl.ir import Attribute, Block, Operation, SSAValue

from weft.analysis.block_scopes import ancestors, buffers_read, buffers_written
from weft.analysis.dependence import undecided
from weft.analysis.sets import NotProved
from weft.dialects.effects import op_name
from weft.dialects.sched import PRIMITIVE_STEPS
from weft.dialects.tir import BlockOp, ForOp
from weft.support.errors import CompileError, ScheduleError, Violation, did_you_mean

BufferPosition: TypeAlias = tuple[str, int]
"""`("read", 0)` is the first buffer that a block reads, `("write", 0)` the first that it writes."""


@dataclass(frozen=True)
class Plan(ABC):
    """A rewrite whose requirements were checked on the current IR."""

    @abstractmethod
    def rewrite(self) -> tuple[Operation, ...]:
        """Returns the loops and blocks that are results of the primitive."""


@dataclass(frozen=True)
class CheckedStep(ABC):
    """A step with requirements, numbered in the docstring of the subclass: `1. headline: details`."""

    NAME: ClassVar[str]
    """`compute_at` for `ComputeAt`."""

    def __init_subclass__(cls) -> None:
        cls.NAME = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()

    @classmethod
    @cache
    def requirements(cls) -> tuple[str, ...]:
        """The headlines, which errors cite."""
        items = re.compile(r"^( *)\d+\. (.+(?:\n\1 {3}.+)*)", re.MULTILINE)
        found = items.findall(cls.__doc__ or "") or items.findall(getsource(cls))  # python -OO strips docstrings
        return tuple(" ".join(text.split()).partition(": ")[0] for _, text in found)

    def refuse(
        self,
        requirement: int,
        violation: Violation | str,
        operation: Operation | None = None,
        subject: str | None = None,
    ) -> NoReturn:
        """Location and subject default to the field `block`, or else to `operation` if that is a block."""
        block: object = getattr(self, "block", operation)
        default = block_text(block) if isinstance(block, BlockOp) else ""
        raise ScheduleError(
            f"{self.NAME}({', '.join(self._argument_texts())})",
            requirement,
            self.requirements()[requirement - 1],
            Violation(violation) if isinstance(violation, str) else violation,
            operation or (block if isinstance(block, BlockOp) else None),
            default if subject is None else subject,
        )

    def require(
        self,
        requirement: int,
        violation: Violation | str | None,
        operation: Operation | None = None,
        subject: str | None = None,
        legal: str | None = None,
    ) -> None:
        """`legal` is used if the violation states none."""
        if isinstance(violation, str):
            violation = Violation(violation)
        if violation is not None:
            self.refuse(requirement, replace(violation, legal=violation.legal or legal), operation, subject)

    @contextmanager
    def deciding(
        self, requirement: int, operation: Operation | None = None, subject: str | None = None
    ) -> Generator[None]:
        try:
            yield
        except NotProved as error:
            self.refuse(requirement, undecided(error), operation, subject)

    def _argument_texts(self) -> list[str]:
        texts: list[str] = []
        for field in fields(self):
            value: object = getattr(self, field.name)
            if value is None:
                continue
            if isinstance(value, tuple):
                elements: tuple[object, ...] = value  # pyright: ignore[reportUnknownVariableType]
                inner = ", ".join(operation_text(element) for element in elements)
                texts.append(inner if elements and isinstance(elements[0], ForOp) else f"[{inner}]")
            else:
                texts.append(operation_text(value))
        return texts


@dataclass(frozen=True)
class Primitive(CheckedStep):
    """Fields are the parameters that the step declares (`dialects/sched.py`)."""

    @abstractmethod
    def plan(self) -> Plan:
        """Raises a `ScheduleError` for the first violated requirement."""

    def apply(self) -> tuple[Operation, ...]:
        return self.plan().rewrite()


def operation_text(op: object) -> str:
    if isinstance(op, ForOp):
        return f"%{op.induction_variable.name_hint or '?'}"
    if isinstance(op, BlockOp):
        return f'"{op.label}"'
    if isinstance(op, Operation):
        return op_name(op)
    return str(op) if isinstance(op, Attribute) else repr(op)


def value_text(value: SSAValue) -> str:
    if value.name_hint is not None:
        return f"%{value.name_hint}"
    return f"the result of {'a loop' if isinstance(value.owner, Block) else value.owner.name}"


def extent_text(loop: ForOp) -> str:
    return str(loop.extent) if isinstance(loop.extent, int) else f"%{loop.extent.name_hint or '?'}"


def buffers_of(block: BlockOp, verb: str) -> list[SSAValue]:
    """Read buffers, or written ones if `verb` is "write"."""
    return buffers_written(block) if verb == "write" else buffers_read(block)


def buffer_position(block: BlockOp, name: str, verbs: Sequence[str] = ("write", "read")) -> BufferPosition:
    """Written buffers precede read ones by default."""
    names: list[str] = []
    for verb in verbs:
        own = [buffer.name_hint or "" for buffer in buffers_of(block, verb)]
        if name in own:
            return verb, own.index(name)
        names.extend(own)
    verb = verbs[0] if len(verbs) == 1 else "access"
    raise CompileError(f"block '{block.label}' does not {verb} a buffer '{name}'{did_you_mean(name, names)}")


def owner_text(op: Operation) -> str:
    """The innermost block around an operation, or itself."""
    block = next((around for around in (op, *ancestors(op)) if isinstance(around, BlockOp)), None)
    return op_name(op) if block is None else block_text(block)


def block_text(block: BlockOp) -> str:
    return f'block "{block.label}"'


_FILES: Mapping[str, str] = {
    "vectorize": "parallel",
    "unroll": "parallel",
    "unannotate": "annotate",
    "reverse_compute_at": "compute_at",
    "reverse_compute_inline": "compute_inline",
    "fuse_reduction_epilogue": "compute_inline",
    "read_at": "cache_read",
    "cache_inplace": "cache_read",
    "write_at": "cache_write",
    "reindex_cache_read": "reindex",
    "reindex_cache_write": "reindex",
}
"""Primitives in the module of another one: name -> module."""
PRIMITIVES: Mapping[str, str] = {name: _FILES.get(name, name) for name in PRIMITIVE_STEPS}
"""Name -> module in this folder. The step is `sched.<name>`, the pass `tir-<name with dashes>`."""
REGISTERED: Final[dict[str, type[Primitive]]] = {}
"""Primitives of other packages (`driver/registered_primitives.py`)."""


def primitive_class(name: str) -> type[Primitive]:
    return REGISTERED[name] if name in REGISTERED else _own_class(name)


@cache
def _own_class(name: str) -> type[Primitive]:
    module = import_module(f"weft.passes.schedule.{PRIMITIVES[name]}")
    found: type[Primitive] = getattr(module, PRIMITIVE_STEPS[name].class_name)
    return found
