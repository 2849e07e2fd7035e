"""Operations that find and group payload ops, and run operations."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, StringAttr, SymbolRefAttr, i64
from xdsl.dialects.transform import NamedSequenceOp
from xdsl.ir import Attribute, Block, Operation

from weft.dialects.attribute_values import value_of
from weft.dialects.effects import op_name
from weft.dialects.upstream.transform import MODES, PREDICATES
from weft.schedule.recording import IntHandle
from weft.schedule.transform.interpreter import (
    Associated,
    Interpreter,
    Param,
    Silenceable,
    handles,
    has_flag,
    integer_of,
    mode_of,
    text_of,
)
from weft.schedule.transform.payload import PayloadBlock, PayloadInit, PayloadItem, PayloadLoops, program_ops
from weft.support.errors import CompileError, Remark, did_you_mean

_ISOLATED = ("func.func", "builtin.module")
_INTERFACES = ((PayloadBlock, PayloadInit), (PayloadBlock, PayloadInit), (PayloadLoops,))
"""Payload classes with the interfaces LinalgOp, TilingInterface, LoopLikeInterface."""
_PROPAGATE = MODES.index("propagate")


@handles("structured.match")
def match(interpreter: Interpreter, op: Operation) -> list[list[Associated]]:
    names, attributes = op.properties.get("ops"), op.properties.get("op_attrs")
    interface = op.properties.get("interface")
    wanted = [cast("StringAttr", name).data for name in names] if isinstance(names, ArrayAttr) else None
    found: list[Associated] = []
    for target in interpreter.ops(op):
        for one in interpreter.payload.inside(target):
            if wanted is not None and one.name not in wanted:
                continue
            if isinstance(interface, IntegerAttr) and not isinstance(one, _INTERFACES[interface.value.data]):
                continue
            if isinstance(attributes, DictionaryAttr) and any(
                one.attributes.get(key) != value for key, value in attributes.data.items()
            ):
                continue
            if not _has_types(op, one):
                continue
            found.append(one)
    return [found]


def _has_types(op: Operation, one: PayloadItem) -> bool:
    result, operands = op.properties.get("filter_result_type"), op.properties.get("filter_operand_types")
    if result is not None and (one.origin is None or one.origin.result_types != (result,)):
        return False
    if isinstance(operands, ArrayAttr):
        types = () if one.origin is None else one.origin.operand_types
        wanted: tuple[Attribute, ...] = tuple(operands.data)
        return types == (wanted * len(types) if len(wanted) == 1 else wanted)
    return True


@handles("get_parent_op")
def get_parent_op(interpreter: Interpreter, op: Operation) -> list[list[Associated]]:
    name, steps = text_of(op, "op_name"), integer_of(op, "nth_parent", 1)
    found: list[Associated] = []
    for target in interpreter.ops(op):
        around = [
            one
            for one in interpreter.payload.around(target)
            if (name is None or one.name == name) and (not has_flag(op, "isolated_from_above") or one.name in _ISOLATED)
        ]
        if len(around) >= steps:
            found.append(around[steps - 1])
        elif not has_flag(op, "allow_empty_results"):
            raise interpreter.failure(op, "could not find a parent op that matches all requirements", target)
    return [list(dict.fromkeys(found)) if has_flag(op, "deduplicate") else found]


@handles("get_producer_of_operand")
def get_producer_of_operand(interpreter: Interpreter, op: Operation) -> list[list[Associated]]:
    number = integer_of(op, "operand_number")
    found: list[Associated] = []
    for target in interpreter.ops(op):
        if target.origin is not None and number >= len(target.origin.producers):
            count = len(target.origin.producers)
            raise interpreter.failure(op, f"it has {count} operands, there is no operand {number}", target)
        producer = interpreter.payload.producer(target, number)
        if producer is None:
            raise interpreter.failure(op, f"could not find a producer for operand number: {number}", target)
        found.append(producer)
    return [found]


@handles("get_consumers_of_result")
def get_consumers_of_result(interpreter: Interpreter, op: Operation) -> list[list[Associated]]:
    targets = interpreter.ops(op)
    if len(targets) > 1:
        raise CompileError.at(op, f"{op_name(op)} needs a handle to at most one payload op, it has {len(targets)}")
    number = integer_of(op, "result_number")
    if targets and targets[0].origin is not None and number >= len(targets[0].origin.result_types):
        count = len(targets[0].origin.result_types)
        raise interpreter.failure(op, f"it has {count} results, there is no result {number}", targets[0])
    return [[one for target in targets for one in interpreter.payload.consumers(target)]]


@handles("split_handle")
def split_handle(interpreter: Interpreter, op: Operation) -> list[Sequence[Associated]]:
    found = interpreter.associated(op.operands[0], op)
    count = len(op.results)
    too_small = op.properties.get("fail_on_payload_too_small")
    overflow = op.properties.get("overflow_result")
    if not found and (
        op.properties.get("pass_through_empty_handle") is None or has_flag(op, "pass_through_empty_handle")
    ):
        return [[] for _ in op.results]
    if len(found) < count and (too_small is None or has_flag(op, "fail_on_payload_too_small")):
        raise interpreter.failure(op, f"the handle has {len(found)} payload ops, {count} are expected")
    if len(found) > count and overflow is None:
        raise interpreter.failure(op, f"the handle has {len(found)} payload ops, {count} are expected")
    results: list[list[Associated]] = [[] for _ in op.results]
    for at, one in enumerate(found):
        results[at if at < count else integer_of(op, "overflow_result")].append(one)
    return list(results)


@handles("merge_handles")
def merge_handles(interpreter: Interpreter, op: Operation) -> list[list[Associated]]:
    found = [one for operand in op.operands for one in interpreter.associated(operand, op)]
    return [list(dict.fromkeys(found)) if has_flag(op, "deduplicate") else found]


@handles("cast")
def cast_handle(interpreter: Interpreter, op: Operation) -> list[Sequence[Associated]]:
    found = interpreter.associated(op.operands[0], op)
    wanted = getattr(op.results[0].type, "operation", None)
    if isinstance(wanted, StringAttr):
        for one in found:
            if isinstance(one, PayloadItem) and one.name != wanted.data:
                raise interpreter.failure(
                    op, f"incompatible payload operation name: {one.name} is not {wanted.data}", one
                )
    return [found]


@handles("select")
def select(interpreter: Interpreter, op: Operation) -> list[list[Associated]]:
    return [[one for one in interpreter.ops(op) if one.name == text_of(op, "op_name")]]


@handles("num_associations")
def num_associations(interpreter: Interpreter, op: Operation) -> list[list[Associated]]:
    return [[Param(IntegerAttr(len(interpreter.associated(op.operands[0], op)), i64))]]


@handles("param.constant")
def param_constant(interpreter: Interpreter, op: Operation) -> list[list[Associated]]:
    return [[Param(op.properties["value"])]]


@handles("annotate")
def annotate(interpreter: Interpreter, op: Operation) -> None:
    name = text_of(op, "name") or ""
    value: Attribute | None = None
    if len(op.operands) == 2:
        found = interpreter.associated(op.operands[1], op)
        if len(found) != 1 or not isinstance(found[0], Param):
            raise interpreter.failure(op, f"the parameter has {len(found)} values, one is expected")
        value = found[0].value
    for target in interpreter.ops(op):
        plain = True if value is None else value_of(value)
        if isinstance(target, PayloadBlock):
            interpreter.payload.schedule.annotate(target.block, name, plain)  # pyright: ignore[reportArgumentType]
        elif isinstance(target, PayloadLoops):
            interpreter.payload.schedule.annotate(target.loops[0], name, plain)  # pyright: ignore[reportArgumentType]
        interpreter.payload.annotate(target, name, value)


@handles("print")
def print_payload(interpreter: Interpreter, op: Operation) -> None:
    name = text_of(op, "name")
    targets = interpreter.ops(op) if op.operands else [interpreter.payload.root()]
    print(f"[[[ IR printer: {name or ''} {'top-level ' if not op.operands else ''}]]]")
    for target in targets:
        print(interpreter.payload.place(target))


@handles("debug.emit_remark_at")
def emit_remark_at(interpreter: Interpreter, op: Operation) -> None:
    for target in interpreter.ops(op):
        warnings.warn(Remark(text_of(op, "message") or "", target.location), stacklevel=2)


@handles("sequence")
def sequence(interpreter: Interpreter, op: Operation) -> list[Sequence[Associated]]:
    given = [interpreter.associated(operand, op) for operand in op.operands] or [[interpreter.payload.root()]]
    return interpreter.run_block(op.regions[0].block, given, mode_of(op))


@handles("include")
def include(interpreter: Interpreter, op: Operation) -> list[Sequence[Associated]]:
    name = text_of(op, "target") or ""
    block = _block(op, _sequence(interpreter, op, SymbolRefAttr(name)), op.operands)
    given = [interpreter.associated(operand, op) for operand in op.operands]
    if name in interpreter.including:
        raise CompileError.at(op, f"{op_name(op)}: '@{name}' includes itself")
    interpreter.including.append(name)
    try:
        return interpreter.run_block(block, given, mode_of(op))
    finally:
        interpreter.including.pop()


@handles("foreach")
def foreach(interpreter: Interpreter, op: Operation) -> list[list[Associated]]:
    targets = [interpreter.associated(operand, op) for operand in op.operands]
    counts = {len(target) for target in targets}
    if len(counts) > 1 and not has_flag(op, "with_zip_shortest"):
        raise interpreter.failure(op, f"prior targets' payload size ({', '.join(map(str, sorted(counts)))}) differ")
    results: list[list[Associated]] = [[] for _ in op.results]
    for given in zip(*targets, strict=False):
        found = interpreter.run_block(op.regions[0].block, [[one] for one in given], _PROPAGATE)
        for result, one in zip(results, found, strict=True):
            result.extend(one)
    return results


@handles("alternatives")
def alternatives(interpreter: Interpreter, op: Operation) -> list[Sequence[Associated]]:
    given: list[Sequence[Associated]] = [
        [one] for one in (interpreter.ops(op) if op.operands else [interpreter.payload.root()])
    ]
    if len(given) != 1:
        raise CompileError.at(op, f"{op_name(op)} is supported for a scope of one payload op, it has {len(given)}")
    failures: list[str] = []
    for region in op.regions:
        try:
            with interpreter.undone_on_error():
                return interpreter.run_block(region.block, given[: len(region.block.args)], _PROPAGATE)
        except Silenceable as error:
            failures.append(error.message)
    listed = "; ".join(f"{number}: {message}" for number, message in enumerate(failures))
    raise interpreter.failure(op, f"all alternatives failed: {listed}")


@handles("foreach_match")
def foreach_match(interpreter: Interpreter, op: Operation) -> list[Sequence[Associated]]:
    matchers = [_sequence(interpreter, op, one) for one in cast("ArrayAttr[SymbolRefAttr]", op.properties["matchers"])]
    actions = [_sequence(interpreter, op, one) for one in cast("ArrayAttr[SymbolRefAttr]", op.properties["actions"])]
    roots = interpreter.ops(op)
    forwarded = [interpreter.associated(operand, op) for operand in op.operands[1:]]
    interpreter.consume(op)
    outputs: list[list[Associated]] = [[] for _ in op.results[1:]]
    failure: Silenceable | None = None
    for root in roots:
        for one in interpreter.payload.inside(root):
            if one is root and not has_flag(op, "restrict_root"):
                continue
            for matcher, action in zip(matchers, actions, strict=True):
                matched = _matched(interpreter, op, matcher, [[one], *forwarded])
                if matched is None:
                    continue
                try:
                    with interpreter.undone_on_error():
                        found = interpreter.run_block(_block(op, action, matched), matched, _PROPAGATE)
                except Silenceable as error:
                    failure = failure or error
                    break
                for output, part in zip(outputs, found, strict=True):
                    if len(part) != 1 and not has_flag(op, "flatten_results"):
                        raise CompileError.at(
                            op,
                            f"{op_name(op)}: the action @{action.sym_name.data} must yield one payload op for each "
                            f"result, got {len(part)}",
                        )
                    output.extend(part)
                break
    if failure is not None:
        raise failure
    return [list(roots), *outputs]


@handles("collect_matching")
def collect_matching(interpreter: Interpreter, op: Operation) -> list[list[Associated]]:
    matcher = _sequence(interpreter, op, cast("SymbolRefAttr", op.properties["matcher"]))
    results: list[list[Associated]] = [[] for _ in op.results]
    for root in interpreter.ops(op):
        for one in interpreter.payload.inside(root):
            for result, part in zip(results, _matched(interpreter, op, matcher, [[one]]) or (), strict=False):
                result.extend(part)
    return results


def _matched(
    interpreter: Interpreter, op: Operation, matcher: NamedSequenceOp, given: Sequence[Sequence[Associated]]
) -> list[Sequence[Associated]] | None:
    try:
        return interpreter.run_block(_block(op, matcher, given), given, _PROPAGATE)
    except Silenceable:
        return None


def _sequence(interpreter: Interpreter, op: Operation, symbol: SymbolRefAttr) -> NamedSequenceOp:
    name = symbol.root_reference.data
    known = {one.sym_name.data: one for one in program_ops(interpreter.module) if isinstance(one, NamedSequenceOp)}
    if name not in known:
        raise CompileError.at(op, f"{op_name(op)}: unknown sequence '@{name}'{did_you_mean(name, known)}")
    return known[name]


def _block(op: Operation, sequence: NamedSequenceOp, given: Sequence[object]) -> Block:
    block = sequence.body.block
    if len(block.args) != len(given):
        name = sequence.sym_name.data
        raise CompileError.at(op, f"@{name} takes {len(block.args)} arguments, got {len(given)}")
    return block


@handles("match.operation_name")
def match_name(interpreter: Interpreter, op: Operation) -> None:
    names = [cast("StringAttr", name).data for name in cast("ArrayAttr[Attribute]", op.properties["op_names"])]
    target = interpreter.single(op)
    if target.name not in names:
        raise interpreter.failure(op, f"wrong operation name, expected one of {', '.join(names)}", target)


@handles("match.operation_empty")
def match_empty(interpreter: Interpreter, op: Operation) -> None:
    found = interpreter.ops(op)
    if found:
        raise interpreter.failure(op, "the handle is not empty", found[0])


@handles("match.param.cmpi")
def compare_params(interpreter: Interpreter, op: Operation) -> None:
    predicate = PREDICATES[integer_of(op, "predicate")]
    compare = getattr(operator, predicate)
    left, right = (interpreter.associated(operand, op) for operand in op.operands)
    if len(left) != len(right):
        raise interpreter.failure(op, f"the parameters have {len(left)} and {len(right)} values")
    for one, other in zip(left, right, strict=True):
        numbers = [value.value for value in (one, other) if isinstance(value, Param)]
        integers = [number.value.data for number in numbers if isinstance(number, IntegerAttr)]
        if len(integers) != len((one, other)):
            raise CompileError.at(op, f"{op_name(op)} compares integers, got {one} and {other}")
        if not compare(*integers):
            raise interpreter.failure(op, f"{integers[0]} {predicate} {integers[1]} does not hold")


@handles("tune.knob")
def knob(interpreter: Interpreter, op: Operation) -> list[list[Associated]]:
    name, options = text_of(op, "name") or "", list(cast("ArrayAttr[Attribute]", op.properties["options"]))
    selected = op.properties.get("selected")
    texts = [str(value_of(option)) for option in options]
    if name in interpreter.choices:
        if interpreter.choices[name] not in texts:
            raise CompileError.at(op, f"knob '{name}' is one of {', '.join(texts)}, got {interpreter.choices[name]}")
        selected = options[texts.index(interpreter.choices[name])]
    decision = None if selected is None else options.index(selected)
    numbers = [option.value.data for option in options if isinstance(option, IntegerAttr)]
    if len(numbers) == len(options):
        drawn = _drawn(interpreter, numbers, decision)
        return [[Param(options[numbers.index(interpreter.number(drawn))], drawn)]]
    if interpreter.draws:
        decision = interpreter.number(_drawn(interpreter, range(len(options)), decision))
    if decision is None:
        raise CompileError.at(op, f"knob '{name}' has options that are no integers, and none is selected")
    return [[Param(options[decision])]]


def _drawn(interpreter: Interpreter, options: Sequence[int], decision: int | None) -> IntHandle:
    return interpreter.payload.schedule.sample_categorical(list(options), [1 / len(options)] * len(options), decision)


@handles("tune.alternatives")
def tune_alternatives(interpreter: Interpreter, op: Operation) -> list[Sequence[Associated]]:
    name, number = text_of(op, "name") or "", None
    if name in interpreter.choices:
        text = interpreter.choices[name]
        number = int(text) if text.isdecimal() else -1
    elif op.operands:
        number = interpreter.number(interpreter.size(op, op.operands[0]))
    elif "selected_region_attr" in op.properties:
        number = integer_of(op, "selected_region_attr")
    elif not interpreter.draws:
        raise CompileError.at(
            op, f"no region of '{name}' is selected: give selected_region, or the option choices={name}=N"
        )
    if number is not None and not 0 <= number < len(op.regions):
        raise CompileError.at(op, f"'{name}' has {len(op.regions)} regions, there is no region {number}")
    if interpreter.draws and not op.operands:
        number = interpreter.number(_drawn(interpreter, range(len(op.regions)), number))
    return interpreter.run_block(op.regions[cast("int", number)].block, [], _PROPAGATE)
