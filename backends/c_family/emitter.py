"""The state of emission: the text of one function, and the declarations of a module.

A rule `(emitter, op)` (`RULES` of each `*_ops.py`) returns the expression of the result, or None if it emitted
statements and bound the results. An expression with one later use in the block is substituted there, unless an op
between them may write a buffer that it reads; small index arithmetic is substituted into every user; other values
become variables named as in the IR.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from xdsl.dialects import memref, scf, vector
from xdsl.dialects.builtin import IndexType, IntegerType, MemRefType, VectorType
from xdsl.ir import OpResult

from weft.backends.c_family import index_ranges
from weft.backends.c_family.expression import LANE, CExpr
from weft.backends.low_modules import is_external, lane_count, scalar_name, unknown_op
from weft.backends.names import Scopes, identifier
from weft.dialects import low
from weft.dialects.aliasing import with_overlapping
from weft.dialects.effects import RENAMES, effects_of
from weft.dialects.promises import ALL_PROMISES
from weft.dialects.traversal import operations_in
from weft.support.errors import CompileError, InternalError

if TYPE_CHECKING:
    from xdsl.dialects.func import FuncOp
    from xdsl.ir import Attribute, Block, Operation, SSAValue

    from weft.backends.c_family.expression import Root
    from weft.backends.c_family.index_ranges import IndexRange
    from weft.backends.c_family.language import Language
    from weft.support.target import Target

Rule: TypeAlias = "Callable[[FunctionEmitter, Any], CExpr | None]"
Rules: TypeAlias = "Mapping[type[Operation], Rule]"

_SHARED_SIZE: Final = 3
"""Most operators of index arithmetic that is substituted into every user; one less in 64 bits."""
_NESTED_SIZE: Final = 6
"""Most operators of index arithmetic that is substituted into its only user in an inner block."""
_MAX_TEXT: Final = 140
"""Longer expressions become variables."""
_MAX_DISTANCE: Final = 64
"""Most ops between a read and the user that it is substituted into."""


class ModuleEmitter:
    def __init__(
        self,
        language: Language,
        target: Target,
        rules: Rules,
        outside: Iterable[FuncOp],
        definitions: Iterable[FuncOp | memref.GlobalOp],
    ) -> None:
        """The module only declares the functions `outside`."""
        self.language = language
        self.target = target
        self.rules = rules
        self.outside = {function.sym_name.data: function for function in outside}
        self.symbols = {name: name for name in self.outside}
        """Function or constant -> name in the text."""
        self.used_outside: dict[str, FuncOp] = {}
        self.contracts = True
        """All functions allow fused multiply-adds."""
        self.shared_types: dict[str, None] = {}
        """Element types, in memory, of buffers that may overlap buffers of other types."""
        self.helpers: dict[str, str] = {}
        """Needed helper functions, in the order of first use -> their texts; empty for those that the language or
        `helpers` has."""
        for op in definitions:
            name = op.sym_name.data
            if isinstance(op, memref.GlobalOp) and is_external(op):
                self.symbols[name] = name
            else:
                self._add_symbol(name)

    def _add_symbol(self, name: str) -> None:
        taken, reserved = set(self.symbols.values()), self.language.reserved_symbols
        base = text = identifier(name, reserved)
        if len(text) > self.language.longest_symbol:
            digest = blake2b(name.encode(errors="surrogatepass"), digest_size=8).hexdigest()
            base = text = f"{text[: self.language.longest_symbol - len(digest) - 1]}_{digest}"
        number = 0
        while text in taken or text in reserved:
            number += 1
            text = f"{base}_{number}"
        self.symbols[name] = text

    def shared_type(self, type_: str) -> str:
        """An element type whose memory may be accessed as other types."""
        if not self.language.shared_type:
            return type_
        self.shared_types.setdefault(type_)
        return f"weft_shared_{type_.replace(' ', '_')}"

    @property
    def no_contraction(self) -> str:
        return "" if self.contracts else self.language.no_contraction

    def shared_type_texts(self) -> list[str]:
        return [self.language.shared_type.format(type=t, name=self.shared_type(t)) for t in self.shared_types]

    def helper(self, name: str, text: str = "") -> str:
        self.helpers.setdefault(name, text)
        return name


class FunctionEmitter:
    def __init__(self, module: ModuleEmitter, name: str, kernel_threads: int = 0) -> None:
        self.module = module
        self.language = module.language
        self.name = name
        self.promises = ALL_PROMISES
        self.kernel_threads = kernel_threads
        """Threads of a block; 0 outside kernels."""
        self.names = Scopes((*module.language.reserved, *module.symbols.values()))
        self.lines: list[str] = []
        self.depth = 1
        self.values: dict[SSAValue, CExpr] = {}
        self.ranges: dict[SSAValue, IndexRange] = {}
        self.exchanges: dict[str, str] = {}
        """Element type -> the shared array for exchanges between threads."""
        self.shared_bytes = 0
        """Bytes of shared buffers so far."""
        self.dynamic_shared = False
        """Shared buffers are parts of one array, whose size is a launch parameter."""
        self.stack_bytes = 0
        self._written: dict[Operation, frozenset[Root] | None] = {}

    def expr(self, value: SSAValue) -> CExpr:
        found = self.values.get(value)
        if found is None:
            raise InternalError(f"a value of @{self.name} is used before it is defined: {value}")
        return found

    def exprs(self, op: Operation) -> list[CExpr]:
        return [self.expr(operand) for operand in op.operands]

    def range_of(self, value: SSAValue) -> IndexRange:
        known = self.ranges.get(value)
        if known is not None:
            return known
        element = _scalar(value.type)
        return index_ranges.of_width(element.width.data) if isinstance(element, IntegerType) else index_ranges.UNKNOWN

    def element(self, type_: Attribute, op: Operation) -> str:
        """The element type, or `index`. Raises `CompileError` for others."""
        element = _scalar(type_)
        name = scalar_name(element)
        if name is None:
            raise CompileError.at(op, f"{self.language.name} has no type {element}, which {op.name} needs")
        return name

    def wide_element(self, type_: Attribute, op: Operation) -> str:
        """An index has 64 bits, since its range is unknown."""
        element = self.element(type_, op)
        return "idx64" if element == "index" else element

    def lanes(self, type_: Attribute, op: Operation) -> int:
        """0 for a scalar."""
        return lane_count(type_, op)

    def index_type(self, fact: IndexRange) -> str:
        return "idx32" if fact.fits_int else "idx64"

    def define(self, value: SSAValue, expr: CExpr, op: Operation) -> None:
        """`expr`, or a variable with its value."""
        lanes = self.lanes(value.type, op)
        if expr.lanes != lanes:
            expr = replace(expr, lanes=lanes)
        if self._may_stand(value, expr, op):
            self.values[value] = expr
        else:
            default = "at" if isinstance(_scalar(value.type), IndexType) else "v"
            self.values[value] = self.variable(value.name_hint or default, expr, op)

    def variable(self, hint: str, expr: CExpr, op: Operation) -> CExpr:
        name = self.names.fresh(hint)
        type_ = self.language.type(expr.element, op)
        if not expr.lanes:
            self.line(f"{type_} {name} = {expr.text};")
            return CExpr(name, expr.element)
        variable = self.lane_variable(name, expr.element, expr.lanes, op)
        self.lane_line(expr.lanes, f"{variable.text} = {expr.text};")
        return variable

    def lane_variable(self, name: str, element: str, lanes: int, op: Operation) -> CExpr:
        self.line(f"{self.lane_alignment(element, lanes)}{self.language.type(element, op)} {name}[{lanes}];")
        return CExpr(f"{name}[{LANE}]", element, lanes=lanes)

    def lane_alignment(self, element: str, lanes: int) -> str:
        """Lanes are aligned if they may be accessed as one vector."""
        if not self.language.aligned or not self.language.wide_type(element, lanes):
            return ""
        return self.language.aligned.format(element_bytes(element) * lanes)

    def atom(self, value: SSAValue, op: Operation) -> CExpr:
        """A variable, name or number, not bound to `value`: it may not be visible in other scopes."""
        expr = self.expr(value)
        return expr if expr.is_atom else self.variable(value.name_hint or "v", expr, op)

    def _may_stand(self, value: SSAValue, expr: CExpr, op: Operation) -> bool:
        if expr.is_atom or value.first_use is None:
            return True
        is_index = isinstance(_scalar(value.type), IndexType)
        plain = not expr.reads and not expr.calls
        shared = _SHARED_SIZE if expr.element == "idx32" else _SHARED_SIZE - 1
        if is_index and plain and expr.size <= shared and not _bounds_loop(value):
            return True
        use = value.get_user_of_unique_use()
        if use is None or len(expr.text) > _MAX_TEXT:
            return False
        if use.parent is not op.parent:
            return is_index and plain and expr.size <= _NESTED_SIZE and not _bounds_loop(value)
        if _evaluates_often(use, value) or (isinstance(use, vector.BroadcastOp) and not plain):
            return False
        return not expr.reads or not self._is_clobbered(expr, op, use)

    def _is_clobbered(self, expr: CExpr, op: Operation, use: Operation) -> bool:
        """An op before `use`, or `use` itself before reading, may write a buffer that `expr` reads."""
        roots = {root for root, _ in expr.reads}
        between = op.next_op
        for _ in range(_MAX_DISTANCE):
            if between is use or between is None:
                break
            written = self.written(between)
            if written is None or written & roots:
                return True
            between = between.next_op
        if between is not use:
            return True
        written = self.written(use)
        if expr.lanes and written is not None and written & roots:
            # A loop over lanes writes some before it reads others: only equal indices are safe.
            stores = isinstance(use, vector.StoreOp)
            own, index = (root_of(use.operands[1]), use.operands[2]) if stores else (None, None)
            return any(root in written and (root != own or at is not index) for root, at in expr.reads)
        return False

    def written(self, op: Operation) -> frozenset[Root] | None:
        """None if unknown."""
        if op not in self._written:
            self._written[op] = _written(op)
        return self._written[op]

    def line(self, text: str) -> None:
        self.lines.append("  " * self.depth + text if text else "")

    def lane_line(self, lanes: int, text: str) -> None:
        """`LANE` is the lane's number."""
        self.for_lanes(0, lanes, lambda lane: text.replace(LANE, lane))

    def for_lanes(self, first: int, lanes: int, body: Callable[[str], str]) -> None:
        """`body` returns the statement for the lane's variable."""
        self.line((self.language.lanes or self.language.unroll)(lanes))
        self.names.enter()
        lane = self.names.fresh("l")
        self.names.leave()
        counter = self.language.types["idx32"]
        self.line(f"for ({counter} {lane} = {first}; {lane} < {lanes}; ++{lane}) {body(lane)}")

    @contextmanager
    def block(self, head: str, tail: str = "}") -> Generator[None]:
        if head:
            self.line(head)
        self.names.enter()
        self.depth += 1
        yield
        self.depth -= 1
        self.names.leave()
        self.line(tail)

    def captured(self, block: Block) -> list[str]:
        """The lines are not added to the text."""
        outer, self.lines = self.lines, []
        self.names.enter()
        self.depth += 1
        self.block_ops(block)
        self.depth -= 1
        self.names.leave()
        lines, self.lines = self.lines, outer
        return lines

    def block_ops(self, block: Block) -> None:
        rules = self.module.rules
        for op in block.ops:
            rule = rules.get(type(op))
            if rule is None:
                raise unknown_op(op, f"form in {self.language.name}")
            expr = rule(self, op)
            if expr is not None:
                self.define(op.results[0], expr, op)


@dataclass(frozen=True)
class KernelText:
    name: str
    """Its name in the module."""
    symbol: str
    """Its name in the text."""
    threads: tuple[int, int, int]
    """Threads of a block along x, y and z."""
    parameters: tuple[str, ...]
    """`ptr` for a buffer, the element type (`f32`, `i64`) of a number; an index is `i64`."""
    shared_bytes: int = 0
    """Dynamic shared memory of a launch, in addition to declared arrays."""


@dataclass(frozen=True)
class KernelSource:
    text: str
    kernels: tuple[KernelText, ...] = ()
    header: str = ""
    """A C header of its functions."""
    symbols: dict[str, str] = field(default_factory=dict[str, str])
    """Function of the module -> name in the text."""


def _scalar(type_: Attribute) -> Attribute:
    return type_.element_type if isinstance(type_, VectorType) else type_


def element_bytes(element: str) -> int:
    digits = "".join(c for c in element if c.isdigit())
    return max(int(digits) // 8, 1) if digits else 8


def _bounds_loop(value: SSAValue) -> bool:
    """Loop conditions are evaluated in every iteration."""
    return any(_evaluates_often(use.operation, value) for use in value.uses)


def _evaluates_often(use: Operation, value: SSAValue) -> bool:
    if isinstance(use, scf.ForOp):
        return value is use.ub or value is use.step
    return isinstance(use, low.ParallelForOp)


def root_of(buffer: SSAValue) -> Root:
    """The buffer that casts and views refer to."""
    while isinstance(buffer, OpResult) and type(buffer.op) in RENAMES:
        buffer = buffer.op.operands[0]
    owner = buffer.owner
    return owner.name_.string_value() if isinstance(owner, memref.GetGlobalOp) else buffer


def _written(op: Operation) -> frozenset[Root] | None:
    found: frozenset[Root] = frozenset()
    for inner in operations_in(op):
        effects = effects_of(inner)
        if effects.is_opaque or effects.synchronizes or not all(isinstance(b.type, MemRefType) for b in effects.writes):
            return None
        for root in map(root_of, effects.writes):
            found |= {root} if isinstance(root, str) else with_overlapping([root])
    return found
