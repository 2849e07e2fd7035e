"""The content of a picture of a graph function: nodes, edges, and clusters.

Nodes are parameters, constants, operations and returned values, edges are operands. Dataflow regions are clusters:
edges pass through their results. All texts are created here, so that all formats show the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from xdsl.dialects.arith import ConstantOp as ScalarConstantOp
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    DenseResourceAttr,
    FloatAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    TensorType,
    TupleType,
    UnitAttr,
    UnregisteredOp,
    i1,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Operation, Region, SSAValue

from weft.dialects.graph import DIALECT, CallDpsOp, CallTirOp, ConstantOp, DataflowOp, OutputOp
from weft.dialects.graph_shapes import shape_of, show_extent
from weft.dialects.traversal import captured_values
from weft.support.errors import CompileError, did_you_mean
from weft.support.names import one_line, printable

LONGEST_LINE = 44
"""Longer lines are truncated and shown in full on hover."""


class NodeKind(Enum):
    """A fill and a border colour."""

    PARAMETER = "#dcfce7", "#16a34a"
    CONSTANT = "#f3f4f6", "#9ca3af"
    OPERATION = "#dbeafe", "#3b82f6"
    CALL = "#ede9fe", "#8b5cf6"
    """A call of a function in this module, or one registered at run time."""
    OUTPUT = "#ffedd5", "#ea580c"

    def __init__(self, fill: str, border: str) -> None:
        self.fill = fill
        self.border = border


@dataclass(frozen=True)
class PictureNode:
    kind: NodeKind
    title: str
    lines: tuple[str, ...]
    hover: str
    inputs: int
    outputs: int
    cluster: int | None
    """Position in `GraphModel.clusters` of the innermost enclosing dataflow region."""
    operation: Operation | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Edge:
    source: int
    result: int
    target: int
    operand: int
    hover: str


@dataclass(frozen=True)
class Cluster:
    title: str
    parent: int | None


@dataclass(frozen=True)
class GraphModel:
    """Nodes are in program order, edges ordered by target and operand."""

    name: str
    nodes: tuple[PictureNode, ...]
    edges: tuple[Edge, ...]
    clusters: tuple[Cluster, ...]


def graph_models(module: ModuleOp, name: str | None = None) -> list[GraphModel]:
    """Raises `CompileError` if there is none, or none called `name`."""
    functions = {f.sym_name.data: f for f in module.body.block.ops if isinstance(f, FuncOp) and _is_graph_function(f)}
    if not functions:
        raise CompileError(
            "there is nothing to picture: the module holds no graph function (a function with operations of the graph "
            "dialect); draw the graph before it is lowered"
        )
    if name is None:
        return [_ModelBuilder(function).model() for function in functions.values()]
    if name not in functions:
        raise CompileError(f"the module holds no graph function '{name}'{did_you_mean(name, functions)}")
    return [_ModelBuilder(functions[name]).model()]


def _is_graph_function(function: FuncOp) -> bool:
    """Whether it contains graph operations, or only returns tensor parameters."""
    if function.is_declaration:
        return False
    if any(op.dialect_name() == DIALECT for op in function.body.walk()):
        return True
    types = (*function.function_type.inputs, *function.function_type.outputs)
    only_returns = isinstance(function.body.blocks[0].first_op, ReturnOp)
    return only_returns and any(isinstance(type_, TensorType) for type_ in types)


@dataclass
class _ModelBuilder:
    function: FuncOp
    nodes: list[PictureNode] = field(default_factory=list[PictureNode])
    edges: list[Edge] = field(default_factory=list[Edge])
    clusters: list[Cluster] = field(default_factory=list[Cluster])
    sources: dict[SSAValue, tuple[int, int]] = field(default_factory=dict[SSAValue, tuple[int, int]])
    """Value -> defining node and result number."""

    def model(self) -> GraphModel:
        blocks = self.function.body.blocks
        if len(blocks) != 1:
            raise CompileError.at(
                self.function,
                f"a graph function has one block, but @{self.function.sym_name.data} has {len(blocks)}",
            )
        for argument in blocks[0].args:
            title = argument.name_hint or f"argument {argument.index}"
            lines = (show_type(argument.type),)
            node = self.add_node(PictureNode(NodeKind.PARAMETER, title, lines, _declared(argument), 0, 1, None))
            self.sources[argument] = (node, 0)
        self.add_ops(self.function.body, None)
        name = _shortened(self.function.sym_name.data)
        return GraphModel(name, tuple(self.nodes), tuple(self.edges), tuple(self.clusters))

    def add_ops(self, region: Region, cluster: int | None) -> None:
        for op in region.block.ops:
            match op:
                case DataflowOp():
                    self.clusters.append(Cluster("dataflow", cluster))
                    self.add_ops(op.body, len(self.clusters) - 1)
                    for outer, inner in zip(op.results, op.output.values, strict=True):
                        self.sources[outer] = self.sources[inner]
                case OutputOp():
                    pass
                case ReturnOp():
                    self.add_outputs(op)
                case _:
                    self.add_operation(op, cluster)

    def add_outputs(self, op: ReturnOp) -> None:
        for position, value in enumerate(op.operands):
            title = "output" if len(op.operands) == 1 else f"output {position}"
            lines = (_result_line(value),)
            node = self.add_node(PictureNode(NodeKind.OUTPUT, title, lines, f"returns {_declared(value)}", 1, 0, None))
            self.add_edge(value, node, 0)

    def add_operation(self, op: Operation, cluster: int | None) -> None:
        operands = [*op.operands, *captured_values(op)]
        told = _property_lines(op)
        hover = "\n".join(
            [f"{_full_name(op).partition('.')[0]}.{_title(op)}", *told, *(_declared(result) for result in op.results)]
        )
        if _is_constant(op):
            result = op.results[0]
            title = result.name_hint or "constant"
            kind, lines = NodeKind.CONSTANT, (show_type(result.type),)
        else:
            title = _title(op)
            kind = NodeKind.CALL if isinstance(op, CallTirOp | CallDpsOp) else NodeKind.OPERATION
            lines = (*told, *(_result_line(result) for result in op.results))
        node = self.add_node(PictureNode(kind, title, lines, hover, len(operands), len(op.results), cluster, op))
        for position, operand in enumerate(operands):
            self.add_edge(operand, node, position)
        self.sources.update({result: (node, position) for position, result in enumerate(op.results)})

    def add_node(self, node: PictureNode) -> int:
        """Shortens the texts; returns the position."""
        lines = tuple(map(_shortened, node.lines))
        self.nodes.append(replace(node, title=_shortened(node.title), lines=lines, hover=printable(node.hover)))
        return len(self.nodes) - 1

    def add_edge(self, value: SSAValue, target: int, operand: int) -> None:
        source, result = self.sources[value]
        hover = f"{_declared(value)}\n{self.nodes[source].title} to {self.nodes[target].title}, operand {operand}"
        self.edges.append(Edge(source, result, target, operand, printable(hover)))


def _is_constant(op: Operation) -> bool:
    return isinstance(op, ConstantOp | ScalarConstantOp)


def _full_name(op: Operation) -> str:
    return op.op_name.data if isinstance(op, UnregisteredOp) else op.name


def _title(op: Operation) -> str:
    name = _full_name(op).partition(".")[2] or _full_name(op)
    match op:
        case CallTirOp():
            return f"{name} @{op.callee.string_value()}"
        case CallDpsOp():
            return f'{name} "{op.callee.data}"'
        case _:
            return name


def _property_lines(op: Operation) -> tuple[str, ...]:
    """`axes = [1, 0]`"""
    # grouping is internal, the others are in the title
    hidden = {"operandSegmentSizes", "resultSegmentSizes", "op_name__"}
    hidden |= {"callee"} if isinstance(op, CallTirOp | CallDpsOp) else {"value"} if _is_constant(op) else set()
    told: Mapping[str, Attribute] = {**op.properties, **op.attributes}
    parts = [
        name if isinstance(value, UnitAttr) else f"{name} = {_show_attribute(value)}"
        for name, value in told.items()
        if name not in hidden
    ]
    return (", ".join(parts),) if parts else ()


def _show_attribute(attribute: Attribute) -> str:
    match attribute:
        case IntegerAttr() if attribute.type == i1:
            return "true" if attribute.value.data else "false"
        case IntegerAttr() | FloatAttr():
            return str(attribute.value.data)
        case StringAttr():
            return f'"{attribute.data}"'
        case DenseArrayBase():
            return f"[{', '.join(str(value.value.data) for value in attribute.iter_attrs())}]"
        case ArrayAttr():
            return f"[{', '.join(_show_attribute(inner) for inner in attribute.data)}]"
        case DenseIntOrFPElementsAttr() | DenseResourceAttr():
            return show_type(attribute.get_type())
        case _:
            return str(attribute)


def show_type(type_: Attribute) -> str:
    """`f32[n, 784]`, `(f32[4], i64)`"""
    match type_:
        case TensorType():
            return f"{type_.element_type}[{', '.join(show_extent(extent) for extent in shape_of(type_))}]"
        case TupleType():
            return f"({', '.join(show_type(inner) for inner in type_.types)})"
        case _:
            return str(type_)


def _result_line(value: SSAValue) -> str:
    return f"{value.name_hint}: {show_type(value.type)}" if value.name_hint else show_type(value.type)


def _declared(value: SSAValue) -> str:
    return f"%{value.name_hint} : {value.type}" if value.name_hint else str(value.type)


def _shortened(line: str) -> str:
    text = one_line(line)
    return text if len(text) <= LONGEST_LINE else f"{text[: LONGEST_LINE - 3]}..."
