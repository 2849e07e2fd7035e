"""Differences between the results of back ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.driver.build import build_module
from weft.interp.arguments import needs_positive
from weft.interp.interpreter import Interpreter
from weft.passes.module_edits import entry_function, functions_of
from weft.support.build_options import BuildOptions
from weft.support.target import Target
from weft.tools.arrays import Request, compare, make_arguments
from weft.tools.run_command import call, copied, interpreted, outputs_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from xdsl.dialects.builtin import ModuleOp

    from weft.tools.arrays import Array

INTERPRETER = "interpreter"


def difference_between(module: ModuleOp, backends: Sequence[str]) -> str | None:
    """Returns the first difference between outputs on the same random arguments, or None. `backends` are targets, at
    least one, and "interpreter". Raises `CompileError`."""
    name = entry_function(module, None).sym_name.data
    compiled = {
        kind: build_module(module, Target.parse(kind), BuildOptions())[name] for kind in backends if kind != INTERPRETER
    }
    signature = next(iter(compiled.values())).signature
    values = make_arguments(signature, Request({}, 0, positive=needs_positive(module)))
    outputs: dict[str, Mapping[str, Array]] = {}
    for kind in backends:
        own = copied(values)
        if kind == INTERPRETER:
            outputs[kind] = interpreted(Interpreter(module), functions_of(module)[name], signature, own).outputs
        else:
            call(compiled[kind], own)
            outputs[kind] = outputs_of(signature, own)
    first, *others = backends
    for other in others:
        for spec in signature.arrays:
            if spec.writes:
                found = compare(outputs[other][spec.name], outputs[first][spec.name], spec.dtype)
                if not found.agrees:
                    return f"{spec.name} of {other} differs from {first}: {found}"
    return None
