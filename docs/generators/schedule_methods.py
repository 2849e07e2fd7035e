"""The methods of `Schedule`: `python docs/generators/schedule_methods.py > schedule/schedule.py`.

A test compares the file with the output.
"""

from __future__ import annotations

from inspect import Parameter
from textwrap import wrap

from weft.dialects import sched_parameters as kinds
from weft.dialects.sched import DECLARATIONS
from weft.dialects.sched_parameters import REQUIRED, Step
from weft.schedule.step_calls import HANDLES

_WIDTH = 120
_HEAD = '''"""`Schedule`: each method runs one step on a module and records it.

Generated from the declarations of the steps (`dialects/sched.py`) by
`python docs/generators/schedule_methods.py > schedule/schedule.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir.affine import AffineMap

from weft.passes.schedule.annotate import Annotation
from weft.schedule.recording import BlockHandle, IntHandle, LoopHandle, step_methods
from weft.schedule.step_calls import BufferOf, IndexMap, StepCalls

__all__ = ["Annotation", "BlockHandle", "BufferOf", "IndexMap", "IntHandle", "LoopHandle", "Schedule"]


@step_methods
class Schedule(StepCalls):
    """A module being scheduled, a copy of the given one, and the trace of its steps.

    Names and parameters follow the field's: `sch.split(loop, factors=[None, 4])`, `sch.cache_read(block, 0, "local")`.
    A method that would change results raises `ScheduleError` and has no effect; a consumed handle raises
    `CompileError`. `docs/primitives.md` lists the requirements of each method.
    """
'''


def schedule_source() -> str:
    """The source of `weft.schedule.schedule`."""
    return _HEAD + "".join(map(_method, DECLARATIONS.values()))


def _method(step: Step) -> str:
    """A method, formatted as Ruff formats it."""
    parameters = ["self", *_parameters(step)]
    result = _result(step)
    line = f"    def {step.name}({', '.join(parameters)}) -> {result}:"
    if len(line) > _WIDTH:
        line = f"    def {step.name}(\n        {', '.join(parameters)}\n    ) -> {result}:"
    if max(map(len, line.split("\n"))) > _WIDTH:
        listed = "".join(f"        {parameter},\n" for parameter in parameters)
        line = f"    def {step.name}(\n{listed}    ) -> {result}:"
    given = [f'"{step.name}"', *(f"{p.argument}={p.argument}" for p in step.parameters)]
    returned = "" if step.gives is None else "return "
    call = f"        {returned}self._step({', '.join(given)})"
    if len(call) > _WIDTH:
        call = f"        {returned}self._step(\n            {', '.join(given)}\n        )"
    if max(map(len, call.split("\n"))) > _WIDTH:
        call = f"        {returned}self._step(\n" + "".join(f"            {part},\n" for part in given) + "        )"
    return f"\n{line}\n{_docstring(step)}\n{call}\n"


def _parameters(step: Step) -> list[str]:
    """The parameters, those that have no effect at the end: the method accepts them as that of TVM does."""
    parameters, position = list[str](), Parameter.POSITIONAL_OR_KEYWORD
    for declared in step.parameters:
        variadic = declared.kind in (kinds.LOOP_HANDLES, kinds.LOOPS_OF_BLOCKS)
        if declared.keyword_only and position is not Parameter.KEYWORD_ONLY:
            parameters.append("*")
        if declared.keyword_only or variadic:
            position = Parameter.KEYWORD_ONLY
        default = "" if declared.default is REQUIRED else f" = {_literal(declared.default)}"
        parameters.append(f"{'*' * variadic}{declared.argument}: {declared.kind.argument}{default}")
    if step.ignores and position is not Parameter.KEYWORD_ONLY:
        parameters.append("*")
    return [*parameters, *(f"{name}: object = None" for name in step.ignores)]


def _literal(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _result(step: Step) -> str:
    if isinstance(step.gives, tuple):
        return f"list[{HANDLES[step.gives[0]].__name__}]"
    return "None" if step.gives is None else HANDLES[step.gives].__name__


def _docstring(step: Step) -> str:
    paragraphs = [" ".join(paragraph.split()) for paragraph in step.doc.split("\n\n")]
    if len(paragraphs) == 1 and len(paragraphs[0]) <= _WIDTH - 14:
        return f'        """{paragraphs[0]}"""'
    paragraphs[0] = f'"""{paragraphs[0]}'
    if len(paragraphs) == 1:
        paragraphs[0] += '"""'
    filled = [wrap(text, _WIDTH, initial_indent=" " * 8, subsequent_indent=" " * 8) for text in paragraphs]
    return "\n\n".join("\n".join(lines) for lines in filled) + ('\n        """' if len(paragraphs) > 1 else "")


if __name__ == "__main__":
    print(schedule_source(), end="")
