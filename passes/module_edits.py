"""Modules of several functions: look up, replace, add and remove functions, merge modules, set attributes.

```python
mod = weft.merge(te.create_func([A, B, Y], name="mm"), te.create_func([Y, C], name="relu"))
sch = weft.Schedule(mod)
...                                                # steps on sch.get_block("Y", func_name="mm")
weft.update_function(mod, "mm", sch.mod)           # the scheduled @mm takes the place of the plain one
weft.update_function(mod, "mm_plain", weft.lookup(other, "mm"))
```
Callees exist with matching signatures: a change that would violate this raises `CompileError` and is not made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias, Union

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
)
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, Operation
from xdsl.rewriter import Rewriter
from xdsl.traits import SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from weft.analysis.block_scopes import find_function, functions
from weft.dialects import sched
from weft.dialects.attribute_values import attribute_of, value_of
from weft.dialects.graph import CallTirOp, verify_callee
from weft.dialects.traversal import operations_in
from weft.support.argument_types import checked
from weft.support.errors import CompileError, did_you_mean

AttributeValue: TypeAlias = Union[Attribute, bool, int, float, str, Sequence["AttributeValue"]]  # noqa: UP007
"""The value of a function attribute: integers become `i64`, floats `f64`."""


@checked
def function_names(module: ModuleOp) -> list[str]:
    """The names of functions with a body, in order."""
    return [function.sym_name.data for function in functions(module)]


@checked
def lookup(module: ModuleOp, name: str) -> FuncOp:
    """The function called `name`, not a copy. Raises `CompileError` with suggestions."""
    return find_function(module, name)


@checked
def update_function(module: ModuleOp, name: str, function: FuncOp | ModuleOp) -> None:
    """Replace the function called `name`, in its place, by a copy of `function`, or add it at the end.

    The copy is renamed, with recursive calls. Of a module, the function called `name` is used, or else its only one.
    References to the old op become references to an erased op.

    Raises `CompileError` if the symbol `name` is not a function, if a callee or used symbol is missing or has another
    signature, and if existing calls do not match.
    """
    if not name:
        raise CompileError("update_function: the name of a function is not empty")
    source = _chosen(function, name)
    old = named_ops(module).get(name)
    if old is not None and not isinstance(old, FuncOp):
        raise CompileError.at(old, f"update_function: @{name} is no function, but a {old.name}")
    new = _renamed_copy(source, name)
    _check_callees(module, new)
    _check_callers(module, new)
    if old is None:
        module.body.block.add_op(new)
        return
    module.body.block.insert_op_before(new, old)
    Rewriter.erase_op(old)


@checked
def remove_function(module: ModuleOp, name: str) -> None:
    """Remove a function or declaration.

    Raises `CompileError` with suggestions if there is none, and if another op calls, uses or schedules it.
    """
    known = {op.sym_name.data: op for op in module.body.block.ops if isinstance(op, FuncOp)}
    if name not in known:
        raise CompileError(f"unknown function '{name}'{did_you_mean(name, known)}")
    users = {holder: op for holder, op in _references(module, name) if holder != name}
    users.update(_schedules_of(module, name))
    if users:
        listed = ", ".join(f"@{user}" for user in users)
        raise CompileError.at(next(iter(users.values())), f"remove_function: @{name} is used by {listed}")
    Rewriter.erase_op(known[name])


@checked
def merge(*modules: ModuleOp) -> ModuleOp:
    """A new module with copies of the contents of the given ones, in order.

    Definitions replace declarations. Raises `CompileError` if two modules define one name, or disagree on a declared
    type or a module attribute.
    """
    if not modules:
        raise CompileError("merge takes at least one module")
    merged = modules[0].clone()
    for module in modules[1:]:
        added = module.clone()
        for key, value in added.attributes.items():
            if merged.attributes.setdefault(key, value) != value:
                raise CompileError.at(
                    module,
                    f"merge: the modules disagree on the attribute '{key}': {merged.attributes[key]} and {value}",
                )
        taken = named_ops(merged)
        for op in list(added.body.block.ops):
            op.detach()
            name = symbol_name(op)
            if name is None or name not in taken:
                merged.body.block.add_op(op)
            else:
                _link(merged, name, taken[name], op)
    return merged


@checked
def function_attributes(module: ModuleOp, name: str) -> dict[str, object]:
    """A function's attributes: integers, floats, strings, lists and dicts as Python values. Raises `CompileError` for
    an unknown function.
    """
    return {key: value_of(attribute) for key, attribute in lookup(module, name).attributes.items()}


@checked
def set_function_attribute(module: ModuleOp, name: str, key: str, value: AttributeValue | None) -> None:
    """Set a function's attribute; None removes it.

    Raises `CompileError` for an unknown function, a key that is a property (such as `sym_name`), a value that is not an
    attribute, and removal of a missing key.
    """
    function = lookup(module, name)
    if not key or key in FuncOp.get_irdl_definition().properties:
        raise CompileError.at(function, f"'{key}' is no attribute of @{name} that can be set")
    if value is not None:
        try:
            function.attributes[key] = attribute_of(value)
        except CompileError as error:
            raise CompileError.at(function, f"attribute '{key}': {error.message}") from None
    elif key in function.attributes:
        del function.attributes[key]
    else:
        raise CompileError.at(function, f"@{name} has no attribute '{key}'{did_you_mean(key, function.attributes)}")


def symbol_name(op: Operation) -> str | None:
    interface = op.get_trait(SymbolOpInterface)
    symbol = interface.get_sym_attr_name(op) if interface is not None else None
    return None if symbol is None else symbol.data


def named_ops(module: ModuleOp) -> dict[str, Operation]:
    named = ((symbol_name(op), op) for op in module.body.block.ops)
    return {name: op for name, op in named if name is not None}


def _chosen(function: FuncOp | ModuleOp, name: str) -> FuncOp:
    """Of a module, the function called `name`, or else its only one."""
    if isinstance(function, FuncOp):
        return function
    known = {f.sym_name.data: f for f in functions(function)}
    if name not in known and len(known) != 1:
        listed = ", ".join(f"'{k}'" for k in known) if known else "none"
        raise CompileError.at(
            function, f"update_function: the given module has no function '{name}' and not just one (it has: {listed})"
        )
    return known[name] if name in known else next(iter(known.values()))


def _renamed_copy(source: FuncOp, name: str) -> FuncOp:
    new = source.clone()
    old_name = source.sym_name.data
    new.sym_name = StringAttr(name)
    if old_name != name:
        rename_symbol(new, old_name, name)
    return new


def rename_symbol(root: Operation, old: str, new: str) -> None:
    for region in root.regions:
        for op in region.walk():
            for attributes in (op.properties, op.attributes):
                for key, attribute in attributes.items():
                    attributes[key] = _with_symbol(attribute, old, new)


def _with_symbol(attribute: Attribute, old: str, new: str) -> Attribute:
    match attribute:
        case SymbolRefAttr() if attribute.root_reference.data == old:
            return SymbolRefAttr(new, attribute.nested_references)
        case ArrayAttr():
            return ArrayAttr([_with_symbol(inner, old, new) for inner in attribute.data])
        case DictionaryAttr():
            return DictionaryAttr({key: _with_symbol(inner, old, new) for key, inner in attribute.data.items()})
        case _:
            return attribute


_WITH_SYMBOLS: Final = frozenset((SymbolRefAttr, ArrayAttr, DictionaryAttr))
"""Attributes that may contain symbols. `isinstance` of an abstract class costs more than the rest of `symbol_uses`."""


def _symbols_in(attribute: Attribute) -> Iterator[str]:
    match attribute:
        case SymbolRefAttr():
            yield attribute.root_reference.data
        case ArrayAttr():
            for inner in attribute.data:
                yield from _symbols_in(inner)
        case DictionaryAttr():
            for inner in attribute.data.values():
                yield from _symbols_in(inner)
        case _:
            pass


def symbol_uses(root: Operation) -> Iterator[tuple[str, Operation]]:
    """Each symbol referred to in `root`, with the op."""
    for op in operations_in(root):
        for attributes in (op.properties, op.attributes):
            for attribute in attributes.values():
                if type(attribute) in _WITH_SYMBOLS:
                    for symbol in _symbols_in(attribute):
                        yield symbol, op


def calls_by_name(module: ModuleOp) -> dict[str, list[CallOp]]:
    """The calls of each function that only calls refer to. A pass may change its parameters together with these
    calls.
    """
    found: dict[str, list[CallOp]] = {name: [] for name, op in named_ops(module).items() if isinstance(op, FuncOp)}
    for name, op in symbol_uses(module):
        if not isinstance(op, CallOp):
            found.pop(name, None)
        elif name in found:
            found[name].append(op)
    return found


def _references(module: ModuleOp, name: str) -> Iterator[tuple[str, Operation]]:
    for holder in module.body.block.ops:
        for symbol, op in symbol_uses(holder):
            if symbol == name:
                yield symbol_name(holder) or holder.name, op


def _schedules_of(module: ModuleOp, name: str) -> dict[str, Operation]:
    return {
        schedule.sym_name.data: step
        for schedule in module.body.block.ops
        if isinstance(schedule, sched.FuncOp)
        for step in schedule.body.block.ops
        if isinstance(step, sched.GetBlockOp) and step.func is not None and step.func.data == name
    }


def _check_callees(module: ModuleOp, new: FuncOp) -> None:
    known = {**named_ops(module), new.sym_name.data: new}
    for symbol, op in symbol_uses(new):
        if symbol not in known:
            raise CompileError.at(
                op,
                f"update_function: @{new.sym_name.data} uses @{symbol}, which the module does not have"
                f"{did_you_mean(symbol, known)}; add it first, or merge the modules",
            )
        if reason := _why_not_callable(op, known[symbol]):
            raise CompileError.at(op, f"update_function: @{new.sym_name.data} does not fit the module: {reason}")


def _check_callers(module: ModuleOp, new: FuncOp) -> None:
    name = new.sym_name.data
    refused = {
        holder: (op, reason)
        for holder, op in _references(module, name)
        if holder != name and (reason := _why_not_callable(op, new)) is not None
    }
    if refused:
        callers = ", ".join(f"@{holder}" for holder in refused)
        op, reason = next(iter(refused.values()))
        raise CompileError.at(
            op, f"update_function: @{name} is called by {callers}, which its new signature does not fit: {reason}"
        )


def _why_not_callable(op: Operation, callee: Operation) -> str | None:
    if not isinstance(callee, FuncOp) or not isinstance(op, CallTirOp | CallOp):
        return None
    if op.callee.string_value() != callee.sym_name.data:
        return None
    match op:
        case CallTirOp():
            try:
                verify_callee(op, callee)
            except VerifyException as error:
                return str(error)
        case CallOp():
            takes, gives = callee.function_type.inputs.data, callee.function_type.outputs.data
            if tuple(op.operand_types) != tuple(takes) or tuple(op.result_types) != tuple(gives):
                given = _show_signature(op.operand_types, op.result_types)
                return f"the call is {given}, @{callee.sym_name.data} is {_show_signature(takes, gives)}"
    return None


def _show_signature(inputs: Sequence[Attribute], outputs: Sequence[Attribute]) -> str:
    return f"({', '.join(map(str, inputs))}) -> ({', '.join(map(str, outputs))})"


def _link(merged: ModuleOp, name: str, first: Operation, second: Operation) -> None:
    """Replace a declaration by the definition. `second` is detached."""
    if not (
        isinstance(first, FuncOp) and isinstance(second, FuncOp) and (first.is_declaration or second.is_declaration)
    ):
        raise CompileError.at(
            second, f"merge: two of the modules define @{name}: remove one, or add it under another name"
        )
    if first.function_type != second.function_type:
        raise CompileError.at(
            second,
            f"merge: the modules disagree on the type of @{name}: {first.function_type} and {second.function_type}",
        )
    if first.is_declaration and not second.is_declaration:
        merged.body.block.insert_op_before(second, first)
        Rewriter.erase_op(first)
    else:
        second.erase()


def functions_of(module: ModuleOp) -> dict[str, FuncOp]:
    return {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp) and not op.is_declaration}


def entry_function(module: ModuleOp, name: str | None) -> FuncOp:
    """The function called `name`, or the only one that no other calls. Raises `CompileError`."""
    functions = functions_of(module)
    if not functions:
        raise CompileError("the file holds no function with a body")
    if name is not None:
        if name not in functions:
            raise CompileError(f"the file has no function '{name}'{did_you_mean(name, functions)}")
        return functions[name]
    operations = [operation for function in functions.values() for operation in function.body.walk()]
    attributes = (a for op in operations for a in (*op.properties.values(), *op.attributes.values()))
    called = {attribute.root_reference.data for attribute in attributes if isinstance(attribute, SymbolRefAttr)}
    entries = [function for known, function in functions.items() if known not in called]
    if len(entries) != 1:
        listed = ", ".join(f"'{known}'" for known in functions)
        raise CompileError(f"the file has several functions ({listed}): name one with --func")
    return entries[0]


def schedules_of(module: ModuleOp) -> list[sched.FuncOp]:
    return [op for op in module.ops if isinstance(op, sched.FuncOp)]
