"""One function -> the lines of its script.

The statements of a region are printed from its ops in order. The next effect (a store, a loop, a block, a call) and the
ops before it become one statement if the statement would be read as just those ops; else the longest run of ops that a
local variable stands for becomes an assignment, and the rest is tried again.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager

from xdsl.dialects.builtin import IndexType, MemRefType
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.dialects.memref import AllocOp, DimOp, StoreOp
from xdsl.dialects.scf import IfOp, YieldOp
from xdsl.ir import Block, Operation, SSAValue

from weft.analysis.structural_equality import scalar_constant
from weft.dialects.tir import AssumeOp, BlockOp, ForOp, InitOp, IntrinsicOp
from weft.frontends.script.attributes import attributes_text, to_attributes
from weft.frontends.script.block_printer import BlockHead, block_head, head_lines, region_lines
from weft.frontends.script.function import NOALIAS, SYMBOL
from weft.frontends.script.head_printer import HeadPrinter, result_annotation
from weft.frontends.script.lines import loop_text, nest_of, only_computes, signature, statements
from weft.frontends.script.names import Names
from weft.frontends.script.raising import Raiser
from weft.frontends.script.shadow import Restart, Shadow
from weft.frontends.script.statement_printer import StatementPrinter
from weft.frontends.script.text import expr_text, index_text
from weft.frontends.script.values import Leaf
from weft.support.errors import CompileError
from weft.support.names import string_text
from weft.texpr.expr import Expr

_LONGEST = 64
"""How many ops an assignment may take, so that the search for the longest one stays short."""


class FunctionPrinter:
    """Prints one of the functions of a module; `words` are their Python names."""

    def __init__(
        self, function: FuncOp, functions: Mapping[str, FuncOp], words: Mapping[str, str], restart: Restart
    ) -> None:
        self._function = function
        self._words = words
        types = list(function.function_type.inputs)
        self._entry = Block(arg_types=types)
        self._names = Names({"Module", *words.values()})
        self._shadow = Shadow(self._entry, self._names, restart)
        self._emitter = self._shadow.emitter
        self._head = HeadPrinter(self._shadow)
        self._lines: list[str] = []
        self._depth = 1
        self._statements = StatementPrinter(self._shadow, functions, words, self._write)

    def lines(self) -> list[str]:
        """The lines, decorator included. Raises Restart, and CompileError for what has no script."""
        function = self._function
        symbol = function.sym_name.data
        self._check()
        private = function.sym_visibility is not None and function.sym_visibility.data == "private"
        decorator = "@T.prim_func(private=True)" if private else "@T.prim_func"
        block = None if function.is_declaration else function.body.block
        arguments = Block(arg_types=function.function_type.inputs).args if block is None else block.args
        parameters = self._head.parameters(arguments, self._entry.args, function.is_declaration)
        self._lines += [decorator, *signature(self._words[symbol], parameters, self._result())]
        if block is None:
            if function.attributes:
                self._write(f"T.func_attr({attributes_text({**function.attributes})})")
            self._write("...")
            return self._lines
        attributes = to_attributes({SYMBOL: symbol, NOALIAS: True})
        self._write(f"T.func_attr({attributes_text({**attributes, **function.attributes})})")
        ops = statements(block)
        for line in self._head.unstated(ops):
            self._write(line)
        self._body(ops)
        return self._lines

    def _check(self) -> None:
        function = self._function
        if function.function_type.outputs.data and not function.is_declaration:
            raise CompileError.at(function, f"@{function.sym_name.data} returns values: scripts have none that do")
        if function.arg_attrs is not None or function.res_attrs is not None:
            raise CompileError.at(function, f"@{function.sym_name.data}: attributes of arguments have no script")
        if len(function.body.blocks) > 1:
            raise CompileError.at(function, f"@{function.sym_name.data}: branches between blocks have no script")

    def _result(self) -> str:
        """What a function that is defined elsewhere gives."""
        outputs = self._function.function_type.outputs.data
        if len(outputs) > 1:
            raise CompileError.at(self._function, f"@{self._function.sym_name.data} gives more than one value")
        return f" -> {result_annotation(outputs[0])}" if outputs else ""

    def _write(self, line: str) -> None:
        self._lines.append(f"{'    ' * self._depth}{line}")

    @contextmanager
    def _indented(self) -> Generator[None]:
        self._depth += 1
        with self._names.scope():
            yield
        self._depth -= 1

    # Regions

    def _body(self, ops: Sequence[Operation]) -> None:
        """The statements for `ops`; a region without any is `pass`."""
        count = len(self._lines)
        position = 0
        while position < len(ops):
            position = self._next(ops, position)
        if len(self._lines) == count:
            self._write("pass")

    def _next(self, ops: Sequence[Operation], start: int) -> int:
        """Print the next statement; where the rest starts."""
        declared = self._head.group(ops, start) if isinstance(ops[start].parent_op(), FuncOp) else None
        if declared is not None:
            for line in declared[0]:
                self._write(line)
            return declared[1]
        end = start
        while end < len(ops) and not self._is_statement(ops[end]):
            end += 1
        if end < len(ops) and self._statement(ops[start : end + 1]):
            return end + 1
        for last in range(min(end, len(ops) - 1, start + _LONGEST), start - 1, -1):
            if not self._is_statement(ops[last]) and self._statements.assignment(ops[start : last + 1]):
                return last + 1
        first = ops[start]
        if not isinstance(first, IfOp) or not self._if([first], first):
            self._statements.other(first)
        return start + 1

    def _is_statement(self, op: Operation) -> bool:
        """Whether `op` is a statement, not a part of an expression."""
        if isinstance(op, IfOp):
            return len(op.results) != 1 or not only_computes(op)
        return (
            len(op.results) != 1
            or isinstance(op, DimOp | CallOp | IntrinsicOp)
            or isinstance(op.results[0].type, MemRefType)
        )

    def _statement(self, ops: Sequence[Operation]) -> bool:
        """Print the last of `ops`, with those before it as its expressions, if that reads back as they are."""
        op = ops[-1]
        match op:
            case StoreOp():
                return self._statements.store(ops, op)
            case ForOp():
                return self._loops(ops, op)
            case BlockOp():
                return self._block(ops, op)
            case InitOp() if len(ops) == 1:
                self._init(op)
                return True
            case IfOp():
                return self._if(ops, op)
            case AllocOp():
                return self._statements.allocation(ops, op)
            case AssumeOp():
                return self._statements.assumption(ops, op)
            case CallOp():
                return self._statements.call(ops, op)
            case IntrinsicOp():
                return self._statements.intrinsic(ops, op)
            case _:
                return False

    # Loops, blocks and conditions

    def _loops(self, ops: Sequence[Operation], op: ForOp) -> bool:
        nest = nest_of(op, self._shadow.names)

        def raised(raiser: Raiser) -> list[Expr | int]:
            extents = [loop.extent for loop in nest]
            return [e if isinstance(e, int) else raiser.value(e) for e in extents]

        def produce(extents: list[Expr | int]) -> Operation:
            for extent in extents:
                if isinstance(extent, Expr):
                    self._emitter.note(extent)
                    self._emitter.index(extent)
            return self._loop(op, extents[0])

        extents = self._shadow.attempt(ops[:-1], raised, produce, op)
        if extents is None:
            return False
        with self._names.scope():
            names = [self._names.new(loop.induction_variable.name_hint, "i") for loop in nest]
            self._write(loop_text(nest[0], names, extents))
            self._inside_loops(nest, names, extents)
        return True

    def _loop(self, op: ForOp, extent: Expr | int) -> ForOp:
        thread = None if op.thread_axis is None else op.thread_axis.data
        return self._emitter.loop(extent, "i", op.kind.data, thread, op.attributes)

    def _inside_loops(self, nest: Sequence[ForOp], names: Sequence[str], extents: Sequence[Expr | int]) -> None:
        """The body of the innermost loop of a nest, in loops of the shadow's own."""
        if not nest:
            return
        op = nest[0]
        mine = self._loop(op, extents[0])
        leaf = Leaf.of(mine.induction_variable, names[0], extents[0])
        self._shadow.match(mine.induction_variable, op.induction_variable)
        self._shadow.names[op.induction_variable] = leaf
        with self._emitter.body(mine.body.block):
            if len(nest) > 1:
                self._inside_loops(nest[1:], names[1:], extents[1:])
            else:
                with self._indented():
                    self._body(statements(op.body.block))
        self._emitter.effect(mine)

    def _block(self, ops: Sequence[Operation], op: BlockOp) -> bool:
        with self._names.scope():
            names = [self._names.new(variable.name_hint, "v") for variable in op.iter_vars]

            def raised(raiser: Raiser) -> BlockHead:
                return block_head(op, names, raiser)

            def produce(head: BlockHead) -> Operation:
                return self._emitter.block(op.label, head.axes, head.guards, op.attributes)

            head = self._shadow.attempt(ops[:-1], raised, produce, op)
            if head is None:
                return False
            mine = self._emitter.block(op.label, head.axes, head.guards, op.attributes)
            for printed, own, name in zip(op.iter_vars, mine.iter_vars, names, strict=True):
                self._shadow.bind(printed, own, name)
            self._write(f"with T.block({string_text(op.label)}):")
            with self._emitter.body(mine.body.block), self._indented():
                count = len(self._lines)
                for line in head_lines(head, op.attributes):
                    self._write(line)
                rest = self._regions(op)
                if rest or len(self._lines) == count:
                    self._body(rest)
            self._emitter.effect(mine)
        return True

    def _regions(self, op: BlockOp) -> list[Operation]:
        """Print what the block says that it reads and writes; the ops after that."""
        ops = statements(op.body.block)
        lines, count = region_lines(ops, self._shadow)
        for line in lines:
            self._write(line)
        return list(ops[count:])

    def _init(self, op: InitOp) -> None:
        mine = self._emitter.init()
        self._write("with T.init():")
        with self._emitter.body(mine.body.block), self._indented():
            self._body(statements(op.body.block))
        self._emitter.effect(mine)

    def _if(self, ops: Sequence[Operation], op: IfOp) -> bool:
        """A condition around statements; what its branches give becomes variables that both assign."""
        if op.attributes:
            return False
        conditions: list[SSAValue] = []

        def raised(raiser: Raiser) -> Expr:
            return raiser.value(op.cond)

        def produce(condition: Expr) -> None:
            conditions.append(self._emitter.value(condition))

        condition = self._shadow.attempt(ops[:-1], raised, produce)
        if condition is None:
            return False
        self._emitter.note(condition)
        names = [self._names.keep(result.name_hint, "v") for result in op.results]
        self._write(f"if {expr_text(condition)}:")
        then = self._branch(op.true_region.block, names)
        otherwise = None
        if op.false_region.blocks:
            self._write("else:")
            otherwise = self._branch(op.false_region.block, names)
        mine = self._emitter.conditional(conditions[-1], then, otherwise, len(names))
        self._emitter.effect(mine)
        for printed, own, name in zip(op.results, mine.results, names, strict=True):
            if printed.type != own.type:
                raise CompileError.at(op, f"a condition that gives {printed.type} has no script")
            self._shadow.bind(printed, own, name)
            if printed.first_use is None:  # a name that is not used later would not be a result
                self._write(f"_ = {name}")
        return True

    def _branch(self, printed: Block, names: Sequence[str]) -> Block:
        block = Block()
        with self._emitter.body(block), self._indented():
            ops = statements(printed)
            last = printed.last_op
            given = last.operands if isinstance(last, YieldOp) else ()
            self._name_all(given, printed)
            if ops or not names:
                self._body(ops)
            values: list[SSAValue] = []
            for name, value in zip(names, given, strict=True):
                expr = self._shadow.raiser(()).value(value)
                self._write(f"{name} = {index_text(expr) if isinstance(value.type, IndexType) else expr_text(expr)}")
                values.append(self._statements.emit_operand(expr, value.type))
            if names:
                self._emitter.finish(YieldOp(*values))
        return block

    def _name_all(self, values: Sequence[SSAValue], block: Block) -> None:
        """What a branch gives must have a name before the end of it."""
        needed = {
            owner
            for value in values
            if isinstance(owner := value.owner, Operation)
            and scalar_constant(value) is None
            and not self._shadow.must_be_named(owner)
            and value not in self._shadow.names
        }
        if needed:
            raise Restart(frozenset(needed))
