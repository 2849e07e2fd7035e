"""Passes that consist of steps."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.utils.fast_math import FastMathFlag
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import ArgSpecParseError, DiagnosticException, ShrinkException

from weft.support.errors import CompileError, InternalError, WeftError, did_you_mean

_POINTS: Mapping[str, str] = {"tir-lower-vectorized": "vectorize"}
"""Steps whose short name differs from that of their pass without its dialect."""


@dataclass(frozen=True)
class PipelineStep:
    """A pass in a sequence; `point` is None for a user pass."""

    run: ModulePass
    point: str | None
    operation: Operation | None = None
    """The operation that the pass runs on, if that is a part of the module."""


class ForeignPassError(CompileError):
    """Another package's pass failed by `__cause__`, no error about the program."""


def run_pass(module_pass: ModulePass, ctx: Context, module: ModuleOp) -> None:
    """Apply a pass. Errors of another package's pass name it, and become `CompileError`s unless they are weft's."""
    package = type(module_pass).__module__
    foreign = not package.startswith("weft.")
    try:
        module_pass.apply(ctx, module)
    except WeftError as error:
        if foreign:
            error.add_pass(module_pass.name)
        raise
    except ShrinkException:
        raise
    except DiagnosticException as error:
        raise CompileError(f"pass '{module_pass.name}': {error}") from error
    except (Exception, ArgSpecParseError) as error:  # the latter derives from BaseException
        if not foreign or isinstance(error, InternalError):
            error.add_note(f"while running pass '{module_pass.name}'")
            raise
        detail = f"{type(error).__name__}: {error}".removesuffix(": ")
        raise ForeignPassError(f"pass '{module_pass.name}' of {package} failed: {detail}") from error


def fast_math_of(module_pass: ModulePass) -> frozenset[FastMathFlag]:
    """Floating-point changes of a pass, which otherwise preserves results up to rounding: its attribute `fast_math`, in
    words of `arith.fastmath`. Raises `CompileError` for other words.
    """
    known = [flag.value for flag in FastMathFlag]
    flags: tuple[str, ...] = tuple(getattr(module_pass, "fast_math", ()))
    for flag in flags:
        if flag not in known:
            hint = did_you_mean(flag, known)
            raise CompileError(f"pass '{module_pass.name}' takes an unknown liberty of `fast_math`, '{flag}'{hint}")
    return frozenset(map(FastMathFlag, flags))


def epsilon_of(module_pass: ModulePass) -> float:
    """The distance from 1 to the next number of the format to which operands are rounded (attribute `epsilon`); 0 if
    not.
    """
    return float(getattr(module_pass, "epsilon", 0.0))


RunStep: TypeAlias = Callable[[PipelineStep, Context, ModuleOp], None]


def run_step(step: PipelineStep, ctx: Context, module: ModuleOp) -> None:
    run_pass(step.run, ctx, module)


class PassSequence(ModulePass):
    """A pass of steps, each of which tools may verify, print or measure."""

    @abstractmethod
    def run_steps(self, ctx: Context, op: ModuleOp, run: RunStep) -> None:
        """Apply each step by `run`."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        self.run_steps(ctx, op, run_step)


def points_of(passes: Sequence[ModulePass]) -> list[str]:
    """Short names: `vectorize`, `flatten`; the second of a kind is `canonicalize-2`."""
    names: list[str] = []
    counts: dict[str, int] = {}
    for module_pass in passes:
        short = _POINTS.get(module_pass.name, module_pass.name.partition("-")[2] or module_pass.name)
        counts[short] = counts.get(short, 0) + 1
        names.append(short if counts[short] == 1 else f"{short}-{counts[short]}")
    return names
