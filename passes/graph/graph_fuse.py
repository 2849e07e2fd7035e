"""`graph-fuse`: group the operators of one kernel in a function."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias, cast

from xdsl.context import Context
from xdsl.dialects.builtin import AnyFloat, BFloat16Type, IntegerType, ModuleOp, StringAttr, TensorType, UnitAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.dialects.tensor import DimOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from weft.analysis.operator_patterns import OperatorKind, OperatorPattern, ReadKind, operator_pattern
from weft.dialects.graph import FUSED, CallTirOp, ConstantOp, DataflowOp, Tensor, splat_value
from weft.dialects.graph_shapes import shape_of
from weft.dialects.graph_traits import Product, ViewLike
from weft.dialects.integer_arith import constant_integer
from weft.dialects.te import PARAMETER_ORDER, AssumeShapeOp, ComputeOp
from weft.passes.graph.canonical_names import CanonicalNames, extents_of
from weft.passes.graph.functions import graph_functions
from weft.passes.graph.operator_properties import pattern_of
from weft.passes.graph.operators import extents_of as extents_of_value
from weft.passes.module_edits import named_ops
from weft.passes.tir.flat_signature import stated_quantities
from weft.support.errors import CompileError, did_you_mean
from weft.support.gpu_machine import GPU_KINDS
from weft.support.locations import joined_location
from weft.support.names import new_name
from weft.support.target import is_target_kind, target_kinds
from weft.texpr.graph_operators import Operator

MOST_OPERATORS: Final = 64
"""Limit of the operators of a group: a chain of thousands would be compiled as one function."""
_NAMED: Final = 5
"""The number of operators that the name of a group lists."""
_MOST_BUFFERS: Final = 24
"""Limit of the operands and results of a group for GPUs: Metal permits 31 buffers per kernel, OpenCL at least 128
pointers."""


def fuse(module: ModuleOp, target: str) -> int:
    """Group operators as `graph-fuse`. Returns the number of groups. Raises `CompileError` for an unknown target.

    All uses of a member other than the last, the root, are in its group: no path re-enters a group, and nothing is
    computed twice (docs/decisions/0046-fusion.md).
    """
    kind = target.partition(" ")[0]
    if not is_target_kind(kind):
        raise CompileError(f"graph-fuse: unknown target '{target}'{did_you_mean(kind, target_kinds())}")
    most_buffers = _MOST_BUFFERS if kind in GPU_KINDS else None
    patterns = Patterns(module)
    functions = _GroupFunctions(module, patterns)
    count = 0
    for function in list(graph_functions(module)):
        for block in _blocks(function.body.block):
            copy_widenings(block, patterns)
            for group in groups_in(block, patterns, most_buffers):
                count += functions.replace(group)
    return count


def copy_widenings(block: Block, patterns: Patterns) -> None:
    """Copy a dequantization to each reader: groups of several readers would store floats."""
    for op in reversed(list(block.ops)):
        users = [use.operation for result in op.results for use in result.uses]
        if not isinstance(op, Operator) or len(op.results) != 1 or len(set(users)) < 2:
            continue
        chain = patterns.widening(op.results[0])
        if not chain or not all(isinstance(user, Member) and user.parent is block for user in users):
            continue
        for user in list(dict.fromkeys(users))[1:]:
            values: dict[SSAValue, SSAValue] = {}
            for link in chain:
                copy = link.clone(values)
                copy.location = link.location
                Rewriter.insert_op(copy, InsertPoint.before(user))
            user.operands = [values.get(operand, operand) for operand in user.operands]


def _blocks(block: Block) -> Iterator[Block]:
    yield block
    for op in list(block.ops):
        if isinstance(op, DataflowOp):
            yield from _blocks(op.body.block)


Member: TypeAlias = Operator | CallTirOp
"""Possible members of groups: operators, and calls of functions of tensor expressions."""


class Patterns:
    def __init__(self, module: ModuleOp) -> None:
        self._functions = {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp)}
        self._of_function: dict[FuncOp, OperatorPattern] = {}
        self._patterns: dict[Operation, OperatorPattern | None] = {}

    def of(self, op: Operation) -> OperatorPattern | None:
        if op not in self._patterns:
            of_call = self._of_call(op) if isinstance(op, CallTirOp) else None
            self._patterns[op] = pattern_of(op) if isinstance(op, Operator) else of_call
        return self._patterns[op]

    def _of_call(self, op: CallTirOp) -> OperatorPattern | None:
        function = self._functions.get(op.callee.string_value())
        if function is None or op.extents is not None or not _is_inlined(op, function):
            return None
        if function not in self._of_function:
            self._of_function[function] = operator_pattern(function)
        return self._of_function[function]

    def widening(self, value: SSAValue) -> list[Operator]:
        """Returns the cheap elementwise operators that widen 8- or 16-bit integers or bf16 to floats, in order. Only
        the last may have several users."""
        chain: list[Operator] = []
        while isinstance(op := value.owner, Operator) and (not chain or value.has_one_use()):
            at = self._widened_operand(op)
            if at is None:
                break
            chain.insert(0, op)
            value = op.operands[at]
            if _bits(value) < _bits(chain[-1].results[0]):
                return chain if _is_narrow(value) else []
        return []

    def _widened_operand(self, op: Operator) -> int | None:
        pattern = self.of(op)
        if pattern is None or len(op.results) != 1 or pattern.kind > OperatorKind.BROADCAST or not pattern.is_cheap:
            return None
        variable = [at for at, operand in enumerate(op.operands) if not _is_number(operand)]
        is_elementwise = len(variable) == 1 and pattern.accesses[variable[0]] is ReadKind.ELEMENTWISE
        return variable[0] if is_elementwise else None

    def access(self, op: Operation, operand: int) -> ReadKind:
        pattern = self.of(op)
        return ReadKind.SHARED if pattern is None else pattern.accesses[operand]


def _is_number(value: SSAValue) -> bool:
    return isinstance(value.owner, ConstantOp) and splat_value(value.owner) is not None


def _bits(value: SSAValue) -> int:
    element = value.type.element_type if isinstance(value.type, TensorType) else None
    return element.bitwidth if isinstance(element, AnyFloat | IntegerType) else 0


def _is_narrow(value: SSAValue) -> bool:
    element = value.type.element_type if isinstance(value.type, TensorType) else None
    return isinstance(element, BFloat16Type) or (isinstance(element, IntegerType) and element.width.data > 1)


def _is_inlined(call: CallTirOp, function: FuncOp) -> bool:
    types = (*function.function_type.inputs, *function.function_type.outputs)
    ops = [] if function.is_declaration else list(function.body.block.ops)
    is_te = any(isinstance(op, ComputeOp) for op in ops) and all(isinstance(type_, TensorType) for type_ in types)
    if not is_te or PARAMETER_ORDER in function.attributes:
        return False
    shapes = [shape_of(cast("Tensor", type_)) for type_ in call.operand_types]
    for op in ops:
        for first, value in stated_quantities(op) if isinstance(op, AssumeShapeOp) else ():
            second = value.owner
            if not isinstance(second, DimOp) or not isinstance(second.source, BlockArgument):
                return False
            at = constant_integer(second.index)
            if at is None or shapes[first.parameter][first.dimension] != shapes[second.source.index][at]:
                return False
    return True


# Groups


@dataclass(eq=False)
class Group:
    """Operators that become one function. Only the last, the root, has users outside."""

    members: list[Member]
    """In topological order."""
    kind: OperatorKind
    """The greatest kind of the members, at most one of which is a contraction."""
    is_injective: bool
    """Whether a member reads operands at other indices than those of its result."""
    reduces: set[Attribute] = field(default_factory=set[Attribute])
    """The types that members reduce."""

    @property
    def root(self) -> Member:
        return self.members[-1]


def groups_in(block: Block, patterns: Patterns, most_buffers: int | None) -> list[Group]:
    """Returns the groups of several operators in a block.

    Two sweeps run from the last operator to the first. The first adds elementwise consumers to contractions and
    reductions, and narrowing consumers to transposes and slices. One of two added products is then alone: operators
    that round its results to fewer bits return to it. A dequantization at the end of a group is split off if its
    reader can compute it. The second sweep joins transposes and slices with readers, and producers with reductions
    and contractions.
    """
    fusion = _Fusion(patterns, most_buffers)
    for op in reversed(list(block.ops)):
        fusion.add(op)
    fusion.return_narrowings()
    fusion.split_widenings()
    return fusion.joined()


class _Fusion:
    def __init__(self, patterns: Patterns, most_buffers: int | None) -> None:
        self._patterns = patterns
        self._most_buffers = most_buffers
        self._group_of: dict[Operation, Group] = {}
        self._groups: list[Group] = []
        """Groups by their roots, from the last to the first."""

    def add(self, op: Operation) -> None:
        pattern = self._patterns.of(op)
        if pattern is None or pattern.kind is OperatorKind.OPAQUE or not isinstance(op, Member):
            return
        single = Group([op], pattern.kind, pattern.kind is OperatorKind.INJECTIVE)
        if pattern.kind is OperatorKind.REDUCTION:
            reads = zip(op.operand_types, pattern.accesses, strict=True)
            single.reduces = {type_ for type_, access in reads if access >= ReadKind.REDUCED}
        group = self._only_user(op)
        if group is not None and self._continues(single, group):
            self._join(single, group)
        else:
            self._groups.append(single)
            self._group_of[op] = single

    def _continues(self, single: Group, group: Group) -> bool:
        if not single.is_injective:
            return self._fits(single, group, producers=False)
        is_narrower = _bits(group.root.results[0]) < _bits(single.root.results[0])
        is_elementwise = group.kind <= OperatorKind.BROADCAST
        return is_narrower and is_elementwise and self._fits(single, group, producers=True)

    def return_narrowings(self) -> None:
        for group in self._groups:
            user = self._only_user(group.root)
            if group.kind not in (OperatorKind.CONTRACTION, OperatorKind.REDUCTION) or user is None or user is group:
                continue
            chain = self._narrowing(group.root.results[0], user)
            moved = Group(list[Member](chain), OperatorKind.BROADCAST, False)
            is_small = len(group.members) + len(chain) <= MOST_OPERATORS
            if chain and is_small and not self._has_too_many_buffers(group, moved):
                user.members = [op for op in user.members if op not in chain]
                group.members += chain
                self._group_of.update(dict.fromkeys(chain, group))

    def _narrowing(self, value: SSAValue, user: Group) -> list[Operator]:
        """Returns the elementwise operators of `user` that compute its narrowest value from `value` alone."""
        chain: list[Operator] = []
        least, count = _bits(value), 0
        while value.has_one_use():
            use = next(iter(value.uses))
            op, pattern = use.operation, self._patterns.of(use.operation)
            if not isinstance(op, Operator) or op is user.root or self._group_of.get(op) is not user:
                break
            if pattern is None or pattern.kind > OperatorKind.BROADCAST or len(op.results) != 1:
                break
            others = [operand.owner for operand in op.operands if operand is not value]
            if pattern.accesses[use.index] is not ReadKind.ELEMENTWISE or any(
                isinstance(owner, Operation) and self._group_of.get(owner) is user for owner in others
            ):
                break
            chain.append(op)
            value = op.results[0]
            if _bits(value) < least:
                least, count = _bits(value), len(chain)
        return chain[:count]

    def split_widenings(self) -> None:
        for group in list(self._groups):
            chain = self._patterns.widening(group.root.results[0]) if len(group.root.results) == 1 else []
            user = self._only_user(group.root)
            if not chain or user is None or len(chain) >= len(group.members) or not set(chain) < set(group.members):
                continue
            kinds = [pattern.kind for op in chain if (pattern := self._patterns.of(op)) is not None]
            tail = Group(list[Member](chain), max(kinds), False)
            if not self._fits(tail, user, producers=True):
                continue
            group.members = [op for op in group.members if op not in chain]
            self._groups.insert(self._groups.index(group), tail)
            for op in chain:
                self._group_of[op] = tail

    def joined(self) -> list[Group]:
        kept: list[Group] = []
        for group in self._groups:
            user = self._only_user(group.root)
            if user is not None and self._fits(group, user, producers=True):
                self._join(group, user)
            else:
                kept.append(group)
        for group in kept:
            self._leave_views(group)
        return [group for group in reversed(kept) if len(group.members) > 1]

    def _only_user(self, op: Operation) -> Group | None:
        found: Group | None = None
        for result in op.results:
            for use in result.uses:
                group = self._group_of.get(use.operation)
                if group is None or use.operation.parent is not op.parent or (found is not None and group is not found):
                    return None
                found = group
        return found

    def _join(self, group: Group, user: Group) -> None:
        user.members = [*group.members, *user.members]
        user.kind = max(user.kind, group.kind)
        user.is_injective |= group.is_injective
        user.reduces |= group.reduces
        for op in group.members:
            self._group_of[op] = user

    def _fits(self, group: Group, user: Group, *, producers: bool) -> bool:
        """With `producers`, the user may reduce or read at other indices."""
        if len(group.members) + len(user.members) > MOST_OPERATORS or self._has_too_many_buffers(group, user):
            return False
        uses = [self._patterns.access(use.operation, use.index) for result in group.root.results for use in result.uses]
        worst = max(uses, default=ReadKind.ELEMENTWISE)
        if worst > ReadKind.BROADCAST and not producers:
            return False
        match group.kind, user.kind:
            case OperatorKind.CONTRACTION, OperatorKind.ELEMENTWISE | OperatorKind.BROADCAST:
                return self._reads_at_most(group, user, ReadKind.ELEMENTWISE)
            case OperatorKind.REDUCTION, OperatorKind.ELEMENTWISE | OperatorKind.BROADCAST:
                return self._reads_at_most(group, user, ReadKind.BROADCAST)
            case OperatorKind.REDUCTION, OperatorKind.REDUCTION:
                return worst <= ReadKind.REDUCED and group.reduces == user.reduces
            case ((OperatorKind.CONTRACTION | OperatorKind.REDUCTION), _):
                return False
            case _, OperatorKind.REDUCTION:
                # Overlapping windows dequantize an element several times.
                most = ReadKind.WINDOW if self._is_widening(group) else ReadKind.REDUCED
                return worst <= most and not group.is_injective
            case _, OperatorKind.CONTRACTION:
                is_read_in_place = worst <= ReadKind.INJECTIVE and group.is_injective
                return not (is_read_in_place or self._narrows(group) or self._reads_rows_out_of_order(group))
            case _:
                return True

    def _is_widening(self, group: Group) -> bool:
        results = group.root.results
        return len(results) == 1 and len(self._patterns.widening(results[0])) >= len(group.members)

    def _narrows(self, group: Group) -> bool:
        """A group that gathers and narrows elements is kept, because it reduces memory traffic."""
        patterns = [(op, self._patterns.of(op)) for op in group.members]
        moved = [op for op, of in patterns if of is not None and of.kind is OperatorKind.INJECTIVE]
        return any(_bits(op.results[0]) > _bits(group.root.results[0]) for op in moved)

    def _reads_rows_out_of_order(self, group: Group) -> bool:
        """Returns whether a product would read rows of several axes out of memory order, which a copy avoids."""
        if not group.is_injective:
            return False
        for use in (use for result in group.root.results for use in result.uses):
            product = use.operation.get_trait(Product)
            if product is None or not product.of_matrices or use.index != 0:
                continue
            rows, matrix = (extents_of_value(operand) for operand in use.operation.operands[:2])
            if len(matrix) == 2 < len(rows) and not isinstance(rows[-2], int):
                return True
        return False

    def _has_too_many_buffers(self, group: Group, user: Group) -> bool:
        if self._most_buffers is None:
            return False
        members = [*group.members, *user.members]
        inside = {result for op in members for result in op.results}
        operands = {operand for op in members for operand in op.operands} - inside
        return len(operands) + len(user.root.results) > self._most_buffers

    def _reads_at_most(self, group: Group, user: Group, most: ReadKind) -> bool:
        reached: set[SSAValue] = set(group.root.results)
        for op in user.members:
            on_the_way = [at for at, operand in enumerate(op.operands) if operand in reached]
            if any(self._patterns.access(op, at) > most for at in on_the_way):
                return False
            if on_the_way:
                reached.update(op.results)
        return True

    def _leave_views(self, group: Group) -> None:
        """Remove reshapes from the ends: outside of groups they are views."""
        while len(group.members) > 1 and self._is_view(group.root):
            # The view has one operand, which the previous member computes.
            group.members.pop()
        inside: set[SSAValue] = set()
        kept: list[Member] = []
        for op in group.members:
            if not self._is_view(op) or op.operands[0] in inside:
                kept.append(op)
                inside.update(op.results)
        group.members = kept

    def _is_view(self, op: Member) -> bool:
        pattern = self._patterns.of(op)
        return pattern is not None and op.has_trait(ViewLike)


# Functions of groups

_MemberKey: TypeAlias = tuple[str, tuple[int, ...], frozenset[tuple[str, Attribute]]]


class _GroupFunctions:
    def __init__(self, module: ModuleOp, patterns: Patterns) -> None:
        self._module = module
        self._patterns = patterns
        self._taken = set(named_ops(module))
        self._functions: dict[object, FuncOp] = {}

    def replace(self, group: Group) -> bool:
        """Groups that compute with extents that no operand binds are kept."""
        parts = _parts(group, self._patterns)
        inside = {result for op in parts for result in op.results}
        operands = list(dict.fromkeys(v for op in parts for v in op.operands if v not in inside))
        inner = [extent for op in parts for extent in extents_of(op.result_types, op.properties)]
        names = CanonicalNames([value.type for value in operands], inner)
        if names.unbound:
            return False
        key = _key(parts, operands, group.root, names)
        if key not in self._functions:
            self._functions[key] = self._made(group, parts, operands, names)
            self._module.body.block.add_op(self._functions[key])
        callee = self._functions[key].sym_name.data
        root = group.root
        call = CallTirOp(callee, operands, list(root.result_types))
        call.location = joined_location([op.location for op in group.members], root.location)
        for new, old in zip(call.results, root.results, strict=True):
            new.name_hint = old.name_hint
        Rewriter.replace_op(root, call)
        for op in reversed(group.members[:-1]):
            Rewriter.erase_op(op)
        for op in parts:
            if isinstance(op, ConstantOp) and op.result.first_use is None:
                Rewriter.erase_op(op)
        return True

    def _made(
        self, group: Group, parts: Sequence[Operation], operands: Sequence[SSAValue], names: CanonicalNames
    ) -> FuncOp:
        block = Block(arg_types=[names.type(value.type) for value in operands])
        values: dict[SSAValue, SSAValue] = dict(zip(operands, block.args, strict=True))
        for argument, hint in zip(block.args, _argument_names(operands, group), strict=True):
            argument.name_hint = hint
        for op in parts:
            copy = op.clone(values)
            copy.properties = names.properties(copy.properties)
            for result in list(copy.results):
                Rewriter.replace_value_with_new_type(result, names.type(result.type))
            values.update(zip(op.results, copy.results, strict=True))
            block.add_op(copy)
        block.add_op(ReturnOp(*(values[result] for result in group.root.results)))
        types = [argument.type for argument in block.args], [values[result].type for result in group.root.results]
        function = FuncOp(self._new_name(group), types, Region(block), StringAttr("private"))
        function.attributes[FUSED] = UnitAttr()
        function.location = group.root.location
        return function

    def _new_name(self, group: Group) -> str:
        labels = list(map(_label, group.members))
        rest = len(labels) - _NAMED
        listed = "_".join(labels[:_NAMED])
        return new_name(f"fused_{listed}_and_{rest}_more" if rest > 0 else f"fused_{listed}", self._taken)


def _label(op: Member) -> str:
    return op.callee.string_value() if isinstance(op, CallTirOp) else op.name.removeprefix("graph.")


def _parts(group: Group, patterns: Patterns) -> list[Operation]:
    """Returns the members after constants of one number that they read element by element."""
    found: dict[ConstantOp, bool] = {}
    for op in group.members:
        for at, operand in enumerate(op.operands):
            if isinstance(operand.owner, ConstantOp):
                is_inside = patterns.access(op, at) <= ReadKind.BROADCAST
                found[operand.owner] = is_inside and found.get(operand.owner, True)
    constants = [op for op, is_inside in found.items() if is_inside and splat_value(op) is not None]
    return [*constants, *group.members]


def _key(parts: Sequence[Operation], operands: Sequence[SSAValue], root: Operation, names: CanonicalNames) -> Hashable:
    places = {value: at for at, value in enumerate(operands)}
    types = tuple(names.key(value.type) for value in operands)
    members: list[_MemberKey] = []
    for op in parts:
        sources = tuple(places[operand] for operand in op.operands)
        members.append((op.name, sources, frozenset(names.properties(op.properties).items())))
        for result in op.results:
            places[result] = len(places)
    return types, tuple(members), places[root.results[0]]


def _argument_names(operands: Sequence[SSAValue], group: Group) -> list[str]:
    found: list[str] = []
    taken = set(map(_label, group.members))
    for at, value in enumerate(operands):
        hint = value.name_hint or f"arg{at}"
        hint = hint if hint.isidentifier() and hint.isascii() else f"arg{at}"
        number = 0
        while hint in taken:
            number += 1
            hint = f"{hint}x"
        taken.add(hint)
        found.append(hint)
    return found


@dataclass(frozen=True)
class GraphFusePass(ModulePass):
    """Group operators that one kernel computes in functions with the attribute `graph.fused`.

    A group is a chain of injective operators; or a contraction or convolution with its elementwise epilogue (bias,
    activation, residual) and injective producers of its operands; or reductions over rows (softmax, norms) with
    their producers and consumers. The tensor expressions of operators, and of functions that `graph.call_tir` calls,
    determine the kinds. Every member except the last is only used in the group. Constants of one number move into
    the group. Reshapes at the ends of a group, and single operators, are not grouped.

    Requires: graph functions whose types are known (`graph-infer-types`).

    Leaves: calls of functions that contain operators; equal groups call the same function.

    ```mlir
    func.func @f(%x: tensor<8x4xf32>, %w: tensor<4x2xf32>) -> tensor<8x2xf32> {
      %h = graph.matmul %x, %w : tensor<8x4xf32>, tensor<4x2xf32> -> tensor<8x2xf32>
      %y = graph.relu %h : tensor<8x2xf32> -> tensor<8x2xf32>
      func.return %y : tensor<8x2xf32>
    }
    // becomes
    func.func @f(%x: tensor<8x4xf32>, %w: tensor<4x2xf32>) -> tensor<8x2xf32> {
      %y = graph.call_tir @fused_matmul_relu(%x, %w) : (tensor<8x4xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>
      func.return %y : tensor<8x2xf32>
    }
    func.func private @fused_matmul_relu(%x: tensor<8x4xf32>, %w: tensor<4x2xf32>) -> tensor<8x2xf32>
        attributes {graph.fused} {
      %h = graph.matmul %x, %w : tensor<8x4xf32>, tensor<4x2xf32> -> tensor<8x2xf32>
      %y = graph.relu %h : tensor<8x2xf32> -> tensor<8x2xf32>
      func.return %y : tensor<8x2xf32>
    }
    ```
    """

    name = "graph-fuse"

    target: str = "llvm"
    """The target, as `weft.build` takes it."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        fuse(op, self.target)
