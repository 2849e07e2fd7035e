"""Examples of documentation as modules that verify."""

from __future__ import annotations

from xdsl.dialects import func
from xdsl.dialects.builtin import FunctionType, ModuleOp
from xdsl.ir import Attribute, Block, Operation, Region
from xdsl.parser import Parser
from xdsl.utils.mlir_lexer import MLIRTokenKind

from weft.dialects.low_kernel import KERNEL, InKernel, KernelAttr
from weft.dialects.sched_parameters import FuncOp, StepOp
from weft.driver.programs import context
from weft.driver.verify import verify_module

_TOP_LEVEL = ("builtin.module", "func.func", "memref.global", "sched.func")


def example_module(text: str) -> ModuleOp:
    """The module of an example: whole functions, or operations. Values that operations use and do not define are the
    parameters of a function around them. Raises `ParseError` or `CompileError`."""
    parser = _ExampleParser(context(), text)
    operations = parser.operations()
    arguments = parser.arguments()
    if all(op.name in _TOP_LEVEL for op in operations):
        assert not arguments, f"values used but not defined: {[argument.name_hint for argument in arguments]}"
        module = ModuleOp(operations)
    else:
        module = ModuleOp([_around(operations, arguments)])
    verify_module(module)
    return module


def example_attributes(text: str) -> list[Attribute]:
    """The attributes and types of an example, one a line."""
    return [Parser(context(), line).parse_attribute() for line in text.splitlines() if line]


class _ExampleParser(Parser):
    def operations(self) -> list[Operation]:
        found: list[Operation] = []
        while self._current_token.kind is not MLIRTokenKind.EOF:
            found.append(self.parse_operation())
        return found

    def arguments(self) -> list:
        """The values that are used and not defined."""
        return [value for values in self.forward_ssa_references.values() for value in values.values()]


def _around(operations: list[Operation], used: list) -> Operation:
    block = Block(arg_types=[value.type for value in used])
    for argument, value in zip(block.args, used, strict=True):
        value.replace_all_uses_with(argument)
    block.add_ops(operations)
    if isinstance(operations[0], StepOp):
        return FuncOp("example", Region(block))
    block.add_op(func.ReturnOp())
    function = func.FuncOp("example", FunctionType.from_lists(block.arg_types, []), Region(block))
    if any(inner.get_traits_of_type(InKernel) for op in operations for inner in op.walk()):
        function.attributes[KERNEL] = KernelAttr.of((32, 1, 1), "example")
    return function
