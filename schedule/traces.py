"""Traces: decisions, simplification, and Python form.

```
y = sch.get_block("Y", func_name="mm_relu")
i, j, k = sch.get_loops(y)
t0, t1 = sch.sample_perfect_tile(i, n=2, max_innermost_factor=16, decision=[16, 8])
i0, i1 = sch.split(i, factors=[t0, t1])
```
"""

from __future__ import annotations

import ast
import inspect
import keyword
from collections.abc import Callable, Collection, Iterator, Mapping, MutableMapping
from typing import cast

from xdsl.dialects.builtin import AffineMapAttr
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.irdl import VarResultDef

from weft.dialects import sched
from weft.dialects.attribute_values import python_text
from weft.dialects.sched import DECLARATIONS
from weft.dialects.sched_parameters import ANNOTATION, LOOP_OR_BLOCKS
from weft.passes.schedule.index_maps import function_text, parse_function
from weft.passes.schedule.replay import plain_value, step_name
from weft.passes.schedule.sampling import Decision
from weft.schedule.schedule import Schedule
from weft.support.argument_types import checked
from weft.support.errors import CompileError, did_you_mean
from weft.support.locations import SourceLocation, remember_text
from weft.support.names import free_name, string_text

NON_REWRITING = (sched.QueryOp, sched.SamplingOp)


def steps_of(trace: sched.FuncOp) -> list[sched.StepOp]:
    return [step for step in trace.body.block.ops if isinstance(step, sched.StepOp)]


@checked
def decisions_of(trace: sched.FuncOp) -> list[Decision | None]:
    """The sampling steps' decisions, for `Schedule.replay`; None before sampling."""
    drawing = [step for step in steps_of(trace) if isinstance(step, sched.SamplingOp)]
    return [cast("Decision | None", plain_value(step.properties.get("decision"))) for step in drawing]


def trace_without_decisions(trace: sched.FuncOp) -> str:
    """Text whose sampling steps draw again."""
    copy = trace.clone()
    for step in steps_of(copy):
        step.properties.pop("decision", None)
    return str(copy)


@checked
def simplify_trace(trace: sched.FuncOp, *, keep_sampling: bool = False) -> sched.FuncOp:
    """Drop unused queries and, unless `keep_sampling`, unused sampling steps."""
    removable = sched.QueryOp if keep_sampling else NON_REWRITING
    used: set[SSAValue] = set()
    kept: list[sched.StepOp] = []
    for step in reversed(steps_of(trace)):
        if isinstance(step, removable) and used.isdisjoint(step.results):
            continue
        used.update(step.operands)
        kept.append(step)
    mapping: dict[SSAValue, SSAValue] = {}
    body = Block([step.clone(value_mapper=mapping) for step in reversed(kept)])
    return sched.FuncOp(trace.sym_name.data, Region(body))


@checked
def trace_as_python(trace: sched.FuncOp, name: str = "sch") -> str:
    """Calls on the schedule `name`, for `exec` or `run_python`. Raises `CompileError` for properties without a Python
    form."""
    return "".join(f"{call}\n" for call in calls_of(trace, name))


def calls_of(
    trace: sched.FuncOp,
    name: str = "sch",
    handle_name: Callable[[SSAValue, Collection[str]], str] | None = None,
    *,
    named: bool = False,
) -> Iterator[str]:
    """Calls of `trace_as_python`. `handle_name` returns unique names; with `named`, handles and labels are keyword
    arguments."""
    names: dict[SSAValue, str] = {}
    for step in steps_of(trace):
        arguments = ", ".join(_argument_texts(step, names, named))
        for result in step.results:
            names[result] = (handle_name or _name)(result, [name, *names.values()])
        targets = ", ".join(names[result] for result in step.results)
        if targets:
            several = isinstance(type(step).get_irdl_definition().results[0][1], VarResultDef)
            targets += ", = " if several and len(step.results) == 1 else " = "
        yield f"{targets}{name}.{step_name(step)}({arguments})"


def _name(value: SSAValue, taken: Collection[str]) -> str:
    hint = value.name_hint or "handle"
    return free_name(hint if hint.isidentifier() and not keyword.iskeyword(hint) else "handle", taken)


def _argument_texts(step: sched.StepOp, names: Mapping[SSAValue, str], named: bool) -> Iterator[str]:
    handles = iter([operand for operand in step.operands if operand.type != sched.INT])
    integers = iter([names[operand] for operand in step.operands if operand.type == sched.INT])
    if isinstance(step, sched.GetBlockOp):
        yield f"{'name=' if named else ''}{string_text(step.label.data)}"
        if step.func is not None:
            yield f"func_name={string_text(step.func.data)}"
        return
    parameters = DECLARATIONS[step_name(step)].parameters
    # Positional handles must not follow a keyword argument.
    named = named and not any(p.kind.several and p.kind is not LOOP_OR_BLOCKS for p in parameters)
    for parameter in parameters:
        kind, name = parameter.kind, parameter.name
        prefix = f"{parameter.argument}=" if named else ""
        if kind is LOOP_OR_BLOCKS:
            given = [names[handle] for handle in handles]
            yield prefix + (given[0] if len(given) == 1 else f"[{', '.join(given)}]")
        elif kind.several:
            yield from (names[handle] for handle in handles)
        elif kind.handles:
            yield prefix + names[next(handles)]
        elif name in step.properties:
            listed = kind.sampled and kind is not ANNOTATION
            text = _integers(step, name, integers) if listed else _value(step, step.properties[name])
            yield f"{parameter.argument}={text}"
        elif kind is ANNOTATION:
            yield f"{parameter.argument}={next(integers)}"


def _integers(step: sched.StepOp, parameter: str, handles: Iterator[str]) -> str:
    """An inferred factor (0) is None in Python."""
    inferred = "None" if parameter == "factors" else "0"
    values = sched.integers_of(step.properties[parameter])
    texts = [next(handles) if v == sched.SAMPLED else inferred if v == 0 else str(v) for v in values]
    return f"[{', '.join(texts)}]"


def _value(step: sched.StepOp, attribute: Attribute) -> str:
    def other(attribute: Attribute) -> str:
        if isinstance(attribute, AffineMapAttr):
            return function_text(attribute.data)
        raise CompileError.at(step, f"{step.name}: {attribute} has no Python form")

    return python_text(attribute, other)


def run_python(
    schedule: Schedule, text: str, name: str = "sch", handles: MutableMapping[str, object] | None = None
) -> None:
    """Run a trace's Python form, which only calls methods of the schedule. `handles` maps names such as
    `Y.i` to handles, and receives assigned ones.

    The calls may be the body of a function of the schedule, as TVM prints: `def apply_trace(sch: tir.Schedule) ->
    None:`. Raises `CompileError` with line and column for anything else, and the steps' errors.
    """
    remember_text("<trace>", text)
    try:
        module = ast.parse(text, "<trace>")
    except SyntaxError as error:
        raise CompileError(error.msg, location=_place(error.lineno or 1, (error.offset or 1) - 1)) from None
    known: MutableMapping[str, object] = {} if handles is None else handles
    body = module.body
    if len(body) == 1 and isinstance(body[0], ast.FunctionDef) and len(body[0].args.args) == 1:
        name, body = body[0].args.args[0].arg, body[0].body
    for statement in body:
        _run_statement(schedule, statement, name, known)


def _run_statement(schedule: Schedule, statement: ast.stmt, name: str, known: MutableMapping[str, object]) -> None:
    targets: list[str] | None = None
    several = False
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        (target,) = statement.targets
        several = isinstance(target, ast.Tuple | ast.List)
        elements = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
        targets = [element.id for element in elements if isinstance(element, ast.Name)]
        if len(targets) != len(elements):
            raise _wrong(statement, "results are given names")
    elif not isinstance(statement, ast.Expr):
        raise _wrong(statement, f"a trace is calls like {name}.get_block(...)")
    call = statement.value
    result = _call(schedule, call, name, known)
    if targets is None:
        return
    if not several:
        known[targets[0]] = result
        return
    given = cast("list[object]", result) if isinstance(result, list) else [result]
    if len(given) != len(targets):
        raise _wrong(statement, f"{len(given)} handles are given, {len(targets)} are named")
    known.update(zip(targets, given, strict=True))


def _call(schedule: Schedule, call: ast.expr, name: str, known: Mapping[str, object]) -> object:
    function = call.func if isinstance(call, ast.Call) else None
    owner = function.value if isinstance(function, ast.Attribute) else None
    if not isinstance(call, ast.Call) or not isinstance(function, ast.Attribute) or not isinstance(owner, ast.Name):
        raise _wrong(call, f"a trace is calls like {name}.get_block(...)")
    if owner.id != name or function.attr not in sched.STEPS:
        raise _wrong(call, f"unknown step '{function.attr}'{did_you_mean(function.attr, sched.STEPS)}")
    positional = [_argument(argument, known) for argument in call.args]
    keywords: dict[str, object] = {}
    for word in call.keywords:
        if word.arg is None:
            raise _wrong(call, "arguments are written one by one")
        keywords[word.arg] = _argument(word.value, known)
    method = getattr(schedule, function.attr)
    try:
        inspect.signature(method).bind(*positional, **keywords)
    except TypeError as error:
        raise _wrong(call, f"{function.attr}: {error}") from None
    return method(*positional, **keywords)


def _argument(expression: ast.expr, known: Mapping[str, object]) -> object:
    if isinstance(expression, ast.Name | ast.Attribute | ast.Subscript):
        path = ast.unparse(expression)
        if path not in known:
            raise _wrong(expression, f"unknown handle '{path}'{did_you_mean(path, known)}")
        return known[path]
    if isinstance(expression, ast.List | ast.Tuple):
        return [_argument(element, known) for element in expression.elts]
    if isinstance(expression, ast.Lambda):
        try:
            return parse_function(expression)
        except CompileError as error:
            raise _wrong(expression, error.message) from None
    try:
        return ast.literal_eval(expression)
    except ValueError:
        raise _wrong(expression, "an argument is a handle, a constant or a list of them") from None


def _place(line: int, column: int) -> SourceLocation:
    return SourceLocation("<trace>", line, column + 1)


def _wrong(node: ast.stmt | ast.expr, message: str) -> CompileError:
    return CompileError(message, location=_place(node.lineno, node.col_offset))
