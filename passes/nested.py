"""`func.func(cse,canonicalize)`: passes that run on each function separately.

xDSL only has passes on modules. A function is therefore moved to a temporary module, with the symbols that it may refer
to: other functions as declarations, copies of globals, schedules, patterns and other ops with a symbol. Passes that
change the function's name or type, or other ops, are refused: the program relies on them.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation
from xdsl.passes import ModulePass
from xdsl.traits import IsolatedFromAbove, SymbolOpInterface

from weft.passes.pass_sequence import PassSequence, PipelineStep, RunStep
from weft.support.errors import CompileError

ANY = "any"
"""The name of pipelines that run on operations of any kind."""


@dataclass(frozen=True)
class NestedPasses(PassSequence):
    """Run `passes` on each operation called `name` directly in the module.

    Raises `CompileError` unless operations are isolated from above, and for passes that change the interface to the
    program.
    """

    name: str  # pyright: ignore[reportIncompatibleVariableOverride]
    passes: tuple[ModulePass, ...]

    def run_steps(self, ctx: Context, op: ModuleOp, run: RunStep) -> None:
        self._run_in(op, ctx, run)

    def _run_in(self, parent: Operation, ctx: Context, run: RunStep) -> None:
        blocks = [block for region in parent.regions for block in region.blocks]
        for child, around in [(op, block) for block in blocks for op in block.ops if self._takes(op)]:
            self._run_on(child, around, parent, ctx, run)

    def _takes(self, op: Operation) -> bool:
        if self.name not in (ANY, op.name) or not any(region.blocks for region in op.regions):
            return False
        isolated = op.has_trait(IsolatedFromAbove, value_if_unregistered=False)
        if not isolated and self.name != ANY:
            raise CompileError.at(op, f"passes run on operations that are isolated from above, '{op.name}' is not")
        return isolated

    def _run_on(self, child: Operation, block: Block, parent: Operation, ctx: Context, run: RunStep) -> None:
        for nested in self.passes:
            if isinstance(nested, NestedPasses):
                nested._run_in(child, ctx, run)
            elif isinstance(child, ModuleOp):
                run(PipelineStep(nested, None, child), ctx, child)
            else:
                alone = _Alone(child, block, parent, nested.name)
                with alone.in_its_module() as module:
                    run(PipelineStep(nested, None, child), ctx, module)
                    child = alone.result()


class _Alone:
    def __init__(self, operation: Operation, block: Block, parent: Operation, pass_name: str) -> None:
        self._operation, self._block, self._parent = operation, block, parent
        self._interface = _interface(operation)
        self._pass = pass_name

    @contextmanager
    def in_its_module(self) -> Generator[ModuleOp]:
        operation, block = self._operation, self._block
        behind = operation.next_op
        others = [_visible(op) for op in block.ops if op is not operation and _symbol(op) is not None]
        operation.detach()
        self._others = {op: _interface(op) for op in others}
        self._place = Block([*others, operation])
        around: Operation = self._parent.clone_without_regions()
        around.regions[0].add_block(self._place)
        self._around, self._attributes = around, dict(around.attributes)
        try:
            yield around if isinstance(around, ModuleOp) else ModuleOp([around])
        finally:
            found = self._found()
            for back in [operation] if operation in found else found[:1]:
                back.detach()
                if behind is None:
                    block.add_op(back)
                else:
                    block.insert_op_before(back, behind)

    def _found(self) -> list[Operation]:
        return [op for op in self._place.ops if op not in self._others]

    def result(self) -> Operation:
        """The operation after the pass, or another one with its interface. Raises `CompileError`."""
        found = self._found()
        if len(found) == 1 and _interface(found[0]) != self._interface:
            self._refuse("changes the name or type of", found[0])
        if len(found) != 1:
            self._refuse("adds operations beside" if found else "removes", self._operation)
        for other, interface in self._others.items():
            if other.parent is not self._place:
                self._refuse(f"removes '{other.name}' {symbol_text(other)} beside", found[0])
            if _interface(other) != interface:
                self._refuse(f"changes '{other.name}' {symbol_text(other)} beside", found[0])
        if self._around.attributes != self._attributes:
            self._refuse("changes attributes of the module of", found[0])
        return found[0]

    def _refuse(self, deed: str, operation: Operation) -> None:
        what = f"'{operation.name}' {symbol_text(operation)}".rstrip()
        error = CompileError.at(
            operation,
            f"pass '{self._pass}' {deed} {what}: it needs the whole module, outside of {self._operation.name}(...)",
        )
        error.add_pass(self._pass)
        raise error


def _visible(op: Operation) -> Operation:
    if not isinstance(op, FuncOp):
        return op.clone()
    declaration = FuncOp.external(op.sym_name.data, op.function_type.inputs.data, op.function_type.outputs.data)
    declaration.location = op.location
    return declaration


def _interface(op: Operation) -> object:
    """Kind, symbol, and type of a function; all attributes of others."""
    if isinstance(op, FuncOp):
        return op.name, op.sym_name, op.function_type
    symbol = _symbol(op)
    return (op.name, symbol) if op.regions else (op.name, symbol, dict(op.properties), dict(op.attributes))


def _symbol(op: Operation) -> StringAttr | None:
    trait = op.get_trait(SymbolOpInterface)
    return None if trait is None else trait.get_sym_attr_name(op)


def symbol_text(op: Operation) -> str:
    symbol: Attribute | None = _symbol(op)
    return "" if symbol is None else f"@{symbol.data}"
