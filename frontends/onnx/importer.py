"""Conversion of an ONNX model to a graph: `import_model`.

A name refers to a value of the graph, or to a tensor known at import (`known_tensors.py`). A node with known inputs is
folded if possible. Otherwise its converter creates operators, which stay detached until an output of the model needs
them. An operator without a converter is expanded if ONNX, or the model, defines it by others. One error lists all nodes
that cannot be converted.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain, count
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import numpy as np
from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    SparseTensorProto,
    TensorProto,
    TypeProto,
    ValueInfoProto,
    defs,
    helper,
)
from xdsl.dialects.builtin import ModuleOp, UnknownLoc
from xdsl.ir import Operation, SSAValue

from weft.dialects.graph import Tensor
from weft.dialects.graph_shapes import (
    Extent,
    KnownExtent,
    ShapeError,
    element_symbol,
    is_element,
    is_signed,
    lone_name,
    names_in,
    parse_extent,
    shape_of,
    show_extent,
    show_shape,
    solutions,
    substitute,
    symbol,
)
from weft.dialects.input_shapes import unify
from weft.frontends.data_sizes import DataSizes
from weft.frontends.equal_extents import assumed_equal, unified
from weft.frontends.fallback_cost import fallback_cost
from weft.frontends.graph_builder import BlockBuilder, ExtentLike, Value, var
from weft.frontends.onnx.contrib.refused import REASONS
from weft.frontends.onnx.fallback import fall_back
from weft.frontends.onnx.folding import can_fold
from weft.frontends.onnx.known_tensors import Absent, Entry, Item, KnownTensor, TensorSequence, evaluated, tensors_of
from weft.frontends.onnx.model_file import ModelFile
from weft.frontends.onnx.node import Node, Refusal, Schema, data_type_of, dtype_of, given_attributes, schema_of
from weft.frontends.onnx.node_order import ordered
from weft.frontends.onnx.registry import Converter, converter_of, definition_of, domain_name, is_registered_by_user
from weft.support.argument_types import checked_argument, shown
from weft.support.call_preconditions import CallPrecondition
from weft.support.errors import CompileError, did_you_mean
from weft.support.input_axes import Axis, axes_of, show_axes
from weft.support.locations import node_location
from weft.support.names import free_name
from weft.support.safetensors import StoredTensor, read_safetensors
from weft.texpr.shapes import value_name

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

InputShape: TypeAlias = "str | Sequence[ExtentLike] | Sequence[str | Sequence[ExtentLike]] | None"
"""The axes of an input, as text (`support/input_axes.py`) or one by one; for a sequence, those of its tensors; None for
an optional without a value."""
_SHAPE: Final = str | Sequence[int | str] | Sequence[str | Sequence[int | str]] | None
"""`InputShape` at run time."""
_WORDS: Final = re.compile(r"[^\W\d]\w*")
_MOST_NODES: Final = 8_000
"""Maximum number of nodes to which functions and loops of a small model may expand."""
_MOST_COPIES: Final = 32
"""Additional nodes allowed for each node of the file."""
_ENDLESS: Final = 1 << 62
"""The number of nodes of a recursive function."""
_DEEPEST: Final = 64
"""Maximum nesting of functions and graphs."""
_MISFITS: Final = (LookupError, TypeError, ValueError, ArithmeticError, RecursionError, MemoryError)
"""Exceptions of converters on tensors and attributes that do not fit their operator."""


@dataclass
class Problem:
    """The reason for which nodes cannot be converted, and their places."""

    operator: str
    message: str
    places: list[str] = field(default_factory=list[str])

    def __str__(self) -> str:
        more = f" and {len(self.places) - 4} more" if len(self.places) > 4 else ""
        return f"{self.operator}: {self.message}, at {', '.join(self.places[:4])}{more}"


@dataclass
class Outcome:
    """The nodes of an operator, and the results of their import."""

    nodes: int = 0
    """The number of nodes, with a node of a function or an unrolled loop counted once for each copy."""
    converted: int = 0
    problems: list[Problem] = field(default_factory=list[Problem])
    """The reasons for refusals. A node that fails because it depends on a refused node adds none."""


@dataclass(frozen=True)
class UnifiedAxes:
    """Axes of the inputs, and their symbols that equal extents replace."""

    axes: Mapping[str, Sequence[ExtentLike]]
    """By parameter, before symbols are replaced."""
    extents: Mapping[str, KnownExtent]


class UnconvertedError(Exception):
    """Raised if nodes of a nested graph could not be converted, which is reported already."""


class Import:
    def __init__(
        self,
        file: ModelFile,
        builder: BlockBuilder,
        fallback: bool,
        weights: Mapping[str, StoredTensor] | None = None,
        hint: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        self.file = file
        self.builder = builder
        self.fallback = fallback
        self.weights = weights or {}
        """Tensors of another file that replace those of the model, by name."""
        self.hint = hint
        """Additional lines of the error for nodes that cannot be converted."""
        self.functions = {(domain_name(f.domain), f.name): f for f in file.model.functions}
        self.problems: dict[tuple[str, str], Problem] = {}
        self.outcomes: dict[str, Outcome] = {}
        """By operator name in errors."""
        self.unbound: set[str] = set()
        self.inputs: dict[SSAValue, str] = {}
        """The names of the model's inputs, by value."""
        self.equal: list[tuple[Extent, Extent]] = []
        """Pairs of extents that converters require to be equal."""
        self.stated: list[CallPrecondition] = []
        """Preconditions that calls of the model check."""
        self.extents: dict[SSAValue, KnownTensor] = {}
        """Tensors of integers as extents: inputs of the model, and tensors computed from them."""
        self.evaluated: dict[SSAValue, KnownTensor | None] = {}
        """The cache of `evaluated`."""
        self.unified = UnifiedAxes({}, {})
        graphs = [file.model.graph.node, *(function.node for function in file.model.functions)]
        self.left = _MOST_NODES + _MOST_COPIES * sum(_number_of_nodes(nodes, {}, {}) for nodes in graphs)
        """The number of nodes that may still be converted."""
        needed = _number_of_nodes(file.model.graph.node, self.functions, {})
        if needed > self.left:
            numbers = f"{'no end of them' if needed >= _ENDLESS else needed}, at most {self.left}"
            raise CompileError(f"{file.name}: functions within functions become too many nodes: {numbers}")

    def report(self, operator: str, error: CompileError | ShapeError, place: str, given: str = "") -> None:
        message = error.message if isinstance(error, CompileError) else str(error)
        message += f" (attributes {given})" if given else ""
        problem = self.problems.setdefault((operator, message), Problem(operator, message))
        problem.places.append(place)
        if isinstance(error, Refusal):
            self.unbound |= error.unbound

    def check(self) -> None:
        """Raises one `CompileError` with all reports."""
        if not self.problems:
            return
        lines = [f"  {problem}" for problem in self.problems.values()]
        if self.unbound:
            names = ", ".join(f"'{name}'" for name in sorted(self.unbound))
            lines.append(f"constants= (weft import --bind) gives values of inputs that must be known: {names}")
        lines += self.hint()
        count = sum(len(problem.places) for problem in self.problems.values())
        error = Refusal(f"{self.file.name}: {count} node{'s' * (count > 1)} cannot be imported:\n" + "\n".join(lines))
        error.unbound = frozenset(self.unbound)
        raise error


@dataclass
class GraphScope:
    """The names of a graph, of an expanded function, or of a nested graph."""

    shared: Import
    opsets: Mapping[str, int]
    place: str = ""
    """The name in errors of the node that contains the scope, followed by a slash."""
    defined: str = ""
    """The operator that the nodes of an expanded function define."""
    depth: int = 0
    outer: GraphScope | None = None
    """The enclosing scope, whose names are visible here."""
    names: dict[str, Entry | None] = field(default_factory=dict[str, "Entry | None"])
    """The entries of names; None for one that could not be converted."""
    constants: dict[int, tuple[KnownTensor, Value]] = field(default_factory=dict[int, "tuple[KnownTensor, Value]"])
    """Known tensors by `id`, with their values in the function under construction."""

    def within(self, place: str, names: Mapping[str, Entry | None], *, is_function: bool = False) -> GraphScope:
        """A scope of a nested graph; a function has separate constants."""
        constants: dict[int, tuple[KnownTensor, Value]] = {} if is_function else self.constants
        return GraphScope(
            self.shared, self.opsets, f"{place}/", self.defined, self.depth + 1, self, dict(names), constants=constants
        )

    def value_of(self, item: Item) -> Value:
        if isinstance(item, Value):
            return item
        if id(item) not in self.constants:
            self.constants[id(item)] = item, item.constant()
        return self.constants[id(item)][1]

    def known_of(self, item: Item) -> KnownTensor | None:
        """Elements, symbolic if a call determines them; None if they depend on other data."""
        if isinstance(item, KnownTensor):
            return item
        return self.shared.extents.get(item.ssa) or evaluated(item, self.shared.evaluated)

    def as_extents(self, inputs: Sequence[Entry | None]) -> Sequence[Entry | None] | None:
        """Inputs as extents where a call determines them, or None if it determines none."""
        extents = self.shared.extents
        found = [extents.get(item.ssa, item) if isinstance(item, Value) else item for item in inputs]
        return None if all(one is other for one, other in zip(found, inputs, strict=True)) else found

    def require_equal(self, left: Extent, right: Extent) -> None:
        self.shared.equal.append((left, right))

    def require(self, precondition: CallPrecondition) -> bool:
        shapes = (shape_of(cast("Tensor", value.type)) for value in self.shared.inputs)
        known = {name for shape in shapes for extent in shape for name in names_in(extent)}
        if not all(is_signed(name) or name in known for name in precondition.names):
            return False
        self.shared.stated.append(precondition)
        return True

    def sources_of(self, item: Item) -> frozenset[str]:
        if isinstance(item, KnownTensor):
            return frozenset()
        seen: set[SSAValue] = set()
        pending: list[SSAValue] = [item.ssa]
        while pending:
            value = pending.pop()
            if value not in seen:
                seen.add(value)
                pending += value.owner.operands if isinstance(value.owner, Operation) else ()
        return frozenset(name for value, name in self.shared.inputs.items() if value in seen)

    def declared_rank(self, name: str) -> int | None:
        graph = self.shared.file.model.graph
        for proto in chain(graph.output, graph.value_info) if self.outer is None and not self.place else ():
            if proto.name == name and proto.type.tensor_type.HasField("shape"):
                return len(proto.type.tensor_type.shape.dim)
        return None

    def tensor_of(self, proto: TensorProto | SparseTensorProto) -> KnownTensor:
        """Raises `Refusal` if the file of the tensor lacks its elements."""
        file = self.shared.file
        return file.sparse(proto) if isinstance(proto, SparseTensorProto) else file.tensor(proto)

    def sizes(self) -> DataSizes:
        return DataSizes(self.shared.builder)

    def find(self, name: str) -> Entry | None:
        """None for a name that could not be converted. Raises `Refusal` for an undefined one."""
        scope: GraphScope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.outer
        raise Refusal(f"nothing computes '{name}', or only what depends on it (the graph has a cycle)")

    def outputs_of(self, graph: GraphProto) -> list[Entry]:
        """Raises `UnconvertedError` if a node of a nested graph could not be converted."""
        add_initializers(self, graph)
        self.run(graph.node)
        found = [self.find(proto.name) for proto in graph.output]
        outputs = [item for item in found if item is not None]
        if len(outputs) < len(found):
            raise UnconvertedError
        return outputs

    def run(self, nodes: Sequence[NodeProto]) -> None:
        for number, proto in ordered(nodes):
            self._run(proto, number)

    def _run(self, proto: NodeProto, number: int) -> None:
        shared = self.shared
        shared.left -= 1
        place = f"{self.place}{proto.name}" if proto.name else f"{self.place}node {number}"
        domain = domain_name(proto.domain)
        label = proto.op_type if not domain else f"{domain}.{proto.op_type}"
        found: Sequence[Entry | None] = ()
        try:
            if shared.left < 0 or self.depth > _DEEPEST:
                raise Refusal("functions, loops and branches within others become too many nodes, or too deep")
            opset = self.opsets.get(domain)
            if opset is None:
                raise Refusal(f"the model imports no opset of the domain '{domain or 'ai.onnx'}'")
            label = f"{label} (opset {opset})"
            shared.outcomes.setdefault(label, Outcome()).nodes += 1
            found = self._converted(proto, domain, opset, place)
            shared.outcomes[label].converted += any(item is not None for item in found)
        except (CompileError, ShapeError) as error:
            # the graph dialect names its own parameters, a refusal those of the node
            given = "" if isinstance(error, Refusal) else given_attributes(proto)
            shared.report(
                label, error, f"{place}, in the definition of {self.defined}" if self.defined else place, given
            )
            items = [self.names.get(name) for name in proto.input]
            for item in items:
                if isinstance(item, Value) and item.ssa in shared.extents:
                    shared.unbound |= self.sources_of(item)
        except UnconvertedError:
            pass
        _set_location(found, place)
        for position, name in enumerate(proto.output):
            if name:
                item = found[position] if position < len(found) else None
                self.define(name, item)

    def define(self, name: str, item: Entry | None) -> None:
        self.names[name] = item
        if isinstance(item, Value) and isinstance(item.ssa.owner, Operation):
            item.ssa.name_hint = word_of(name)

    def _converted(self, proto: NodeProto, domain: str, opset: int, place: str) -> Sequence[Entry | None]:
        operator = proto.op_type
        schema = schema_of(operator, opset, domain) or definition_of(domain, operator, opset)
        version = opset if schema is None else schema.since_version
        function = self.shared.functions.get((domain, operator))
        is_defined = schema is not None
        convert = None if function is not None else converter_of(domain, operator, version, is_defined=is_defined)
        if convert is None and function is None and not self.shared.fallback and not _has_body(schema):
            raise Refusal(_unknown(domain, operator, schema))
        inputs: list[Entry | None] = []
        for name in proto.input:
            item = self.find(name) if name else None
            if name and item is None:
                return ()
            inputs.append(item)
        while inputs and inputs[-1] is None:
            inputs.pop()
        if function is not None:
            return self._written_out(proto, function, inputs, place)
        scope = cast("Any", self)  # type checkers see two classes of this name
        node = Node(proto, domain, version, schema, inputs, scope)
        try:
            node.check()
            return self._by_converter(node, convert, opset, place)
        except _MISFITS as error:
            if is_registered_by_user(domain, operator, version):
                raise
            raise Refusal(_misfit(node, error)) from error

    def _by_converter(self, node: Node, convert: Converter | None, opset: int, place: str) -> Sequence[Entry | None]:
        """The outputs of a node that no function of the model defines."""
        by_user = is_registered_by_user(node.domain, node.operator, node.version)
        if convert is not None and not by_user and can_fold(node.operator, node.inputs):
            with suppress(Refusal):
                return _converted_by(convert, replace(node, folds=True)) or ()
        if convert is not None:
            try:
                found = _converted_by(convert, node)
                if found is not None:
                    self._note_extents(node, convert, found)
                    return found
            except (CompileError, ShapeError) as error:
                if not self.shared.fallback:
                    raise
                return _fall_back(node, opset, error)
        if not _has_body(node.schema):
            return _fall_back(node, opset, Refusal(_unknown(node.domain, node.operator, node.schema)))
        return self._written_out(node.proto, _body(node, opset), node.inputs, place, node.schema)

    def _note_extents(self, node: Node, convert: Converter, found: Sequence[Entry | None]) -> None:
        inputs = self.as_extents(node.inputs)
        if inputs is None or not can_fold(node.operator, inputs):
            return
        with suppress(CompileError, ShapeError, *_MISFITS):
            folded = _converted_by(convert, replace(node, inputs=inputs, folds=True)) or ()
            for item, extents in zip(found, folded, strict=True):
                if isinstance(item, Value) and isinstance(extents, KnownTensor):
                    self.shared.extents[item.ssa] = extents

    def _written_out(
        self,
        proto: NodeProto,
        function: FunctionProto,
        inputs: Sequence[Entry | None],
        place: str,
        schema: Schema | None = None,
    ) -> Sequence[Entry | None]:
        """Expand the function that defines the operator."""
        given = {attribute.name: attribute for attribute in proto.attribute}
        for default in function.attribute_proto:
            given.setdefault(default.name, default)
        formals: Mapping[str, Any] = {} if schema is None else schema.attributes
        for name, formal in formals.items():
            if formal.default_value.type != AttributeProto.UNDEFINED:
                given.setdefault(name, formal.default_value)
        if len(inputs) > len(function.input):
            raise Refusal(f"the function has {len(function.input)} inputs, got {len(inputs)}")
        opsets = {domain_name(opset.domain): opset.version for opset in function.opset_import}
        items = dict(zip(function.input, inputs, strict=False))
        names: dict[str, Entry | None] = {name: item for name, item in items.items() if item is not None}
        absent = frozenset(set(function.input) - names.keys())
        inner = {**self.opsets, **opsets}
        scope = GraphScope(self.shared, inner, f"{place}/", proto.op_type, self.depth + 1, None, names, self.constants)
        scope.run([_with_attributes(node, given, absent) for node in function.node])
        return [
            scope.find(name) if wanted else None for name, wanted in zip(function.output, proto.output, strict=False)
        ]


def scope_of(node: Node) -> GraphScope:
    return cast("GraphScope", node.scope)


def _number_of_nodes(
    nodes: Iterable[NodeProto],
    functions: Mapping[tuple[str, str], FunctionProto],
    found: dict[tuple[str, str], int],
    depth: int = 0,
) -> int:
    """The number includes nested graphs and expanded functions, which `found` caches."""
    if depth > _DEEPEST:
        return _ENDLESS
    total = 0
    for node in nodes:
        total += 1
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs) if attribute.type in _GRAPHS else ():
                total += _number_of_nodes(graph.node, functions, found, depth + 1)
        callee = domain_name(node.domain), node.op_type
        if callee in functions:
            if callee not in found:
                found[callee] = _ENDLESS  # recognizes a recursive call
                found[callee] = _number_of_nodes(functions[callee].node, functions, found, depth + 1)
            total += found[callee]
    return min(total, _ENDLESS)


def _misfit(node: Node, error: Exception) -> str:
    given = ", ".join(map(_entry_text, node.inputs))
    return f"inputs ({given}) and attributes do not fit the operator ({type(error).__name__}: {str(error)[:200]})"


def _entry_text(entry: Entry | None) -> str:
    if isinstance(entry, TensorSequence):
        return f"{len(entry.items)} tensors"
    return "none" if entry is None or isinstance(entry, Absent) else f"{entry.dtype} {show_shape(entry.shape)}"


def _has_body(schema: Schema | None) -> bool:
    return schema is not None and bool(schema.has_function or schema.has_context_dependent_function)


def _body(node: Node, opset: int) -> FunctionProto:
    """The definition is that of the newest opset up to the model's. Raises `Refusal` if no function defines the
    operator."""
    schema: Schema | None = node.schema
    text = b""
    if schema is not None and schema.has_function:
        text = schema.get_function_with_opset_version(_version(schema.function_opset_versions, opset))
    elif schema is not None and schema.has_context_dependent_function:
        types = [_type_proto(item).SerializeToString() for item in node.inputs]
        version = _version(schema.context_dependent_function_opset_versions, opset)
        node_text = node.proto.SerializeToString()
        text = schema.get_context_dependent_function_with_opset_version(version, node_text, types)
    if not text:
        raise Refusal("there is no converter, and ONNX does not define it by others for these types and attributes")
    return FunctionProto.FromString(text)


def _version(versions: Sequence[int], opset: int) -> int:
    return max((version for version in versions if version <= opset), default=versions[0])


def _fall_back(node: Node, opset: int, reason: CompileError | ShapeError) -> Sequence[Entry | None]:
    """Raises `Refusal` with both reasons."""
    try:
        return fall_back(node, opset)
    except Refusal as error:
        refusal = Refusal(f"{reason.message if isinstance(reason, CompileError) else reason}; {error.message}")
        refusal.unbound = reason.unbound if isinstance(reason, Refusal) else frozenset()
        raise refusal from reason


def _unknown(domain: str, operator: str, schema: Schema | None) -> str:
    if schema is not None:
        return "there is no converter (weft.onnx.register adds one)"
    if domain == "com.microsoft" and operator in REASONS:
        return REASONS[operator]
    if domain:
        return "there is no converter for this domain (weft.onnx.register adds one)"
    return _not_defined(operator)


@lru_cache(maxsize=256)
def _not_defined(operator: str) -> str:
    known = {schema.name for schema in defs.get_all_schemas() if schema.domain == ""}
    return f"ONNX has no such operator in this opset{did_you_mean(operator, known - {operator})}"


def _converted_by(convert: Converter, node: Node) -> Sequence[Entry | None] | None:
    """None if the converter leaves the node to its definition by others."""
    found = convert(node)
    if found is None:
        return None
    results = [found] if isinstance(found, Value | KnownTensor | TensorSequence | Absent) else found
    node.check_all_read(results)
    return results


def _with_attributes(node: NodeProto, given: Mapping[str, AttributeProto], absent: frozenset[str]) -> NodeProto:
    copy = NodeProto()
    copy.CopyFrom(node)
    for position, name in enumerate(copy.input):
        if name in absent:
            copy.input[position] = ""
    del copy.attribute[:]
    for attribute in node.attribute:
        if attribute.ref_attr_name:
            if attribute.ref_attr_name in given:
                copy.attribute.add().CopyFrom(given[attribute.ref_attr_name])
                copy.attribute[-1].name = attribute.name
            continue
        made = copy.attribute.add()
        made.CopyFrom(attribute)
        for graph in (made.g, *made.graphs) if attribute.type in _GRAPHS else ():
            nodes = [_with_attributes(inner, given, absent) for inner in graph.node]
            del graph.node[:]
            graph.node.extend(nodes)
    return copy


_GRAPHS: Final = (AttributeProto.GRAPH, AttributeProto.GRAPHS)


def _type_proto(item: Entry | None) -> TypeProto:
    if item is None or isinstance(item, Absent):
        return TypeProto()
    if isinstance(item, TensorSequence):
        return helper.make_sequence_type_proto(_type_proto(item.items[0] if item.items else None))
    shape = [extent if isinstance(extent, int) else None for extent in item.shape]
    return helper.make_tensor_type_proto(data_type_of(item.dtype), shape)


def word_of(name: str) -> str:
    word = re.sub(r"\W", "_", name, flags=re.ASCII)
    word = value_name(word if word[:1].isalpha() else f"v{word}")
    return word[:200]


def import_model(
    source: str | os.PathLike[str] | bytes | ModelProto,
    new_builder: Callable[[], BlockBuilder],
    shapes: Mapping[str, InputShape],
    constants: Mapping[str, ArrayLike],
    fallback: bool,
    weights: str | os.PathLike[str] | None = None,
) -> tuple[BlockBuilder, frozenset[str], UnifiedAxes]:
    """Build the function @main of a model. Returns its builder, the external files, relative to its folder, and the
    unified symbols.

    `shapes` override those that the model states. Inputs in `constants` are not parameters. Tensors of the safetensors
    file `weights` replace initializers and inputs of the same names. If operators require extents of different names to
    be equal, the import restarts with one name. Raises `CompileError`, `OSError`, and `TypeError` for arguments of
    other types.
    """
    checked_argument("from_onnx", "shapes", Mapping[str, _SHAPE], shapes)
    checked_argument("from_onnx", "constants", Mapping[str, Any], constants)
    checked_argument("from_onnx", "weights", str | os.PathLike | None, weights)
    file = ModelFile.read(source)
    stored = None if weights is None else _weights_of(file, Path(weights))

    def hint() -> Sequence[str]:
        return () if fallback else _fallback_hint(file, shapes, constants, stored)

    shared = _imported(lambda: Import(file, new_builder(), fallback, stored, hint), shapes, constants)
    return shared.builder, frozenset(file.others), shared.unified


def _fallback_hint(
    file: ModelFile,
    shapes: Mapping[str, InputShape],
    constants: Mapping[str, ArrayLike],
    weights: Mapping[str, StoredTensor] | None = None,
) -> Sequence[str]:
    """The cost of `fallback=True`, determined by an import with it."""

    def imported() -> ModuleOp:
        return _imported(lambda: Import(file, BlockBuilder(), True, weights), shapes, constants).builder.get()

    return fallback_cost(imported, "onnx", "onnx's reference implementation", "fallback=True (weft import --fallback)")


def _imported(
    begin: Callable[[], Import], shapes: Mapping[str, InputShape], constants: Mapping[str, ArrayLike]
) -> Import:
    """Restarts the import if extents turn out to be equal."""
    extents: Mapping[str, KnownExtent] = {}
    while True:
        shared = begin()
        try:
            _build_main(shared, shapes, constants, extents)
        except _EqualExtents as error:
            extents = error.extents
        else:
            return shared


def _weights_of(file: ModelFile, path: Path) -> Mapping[str, StoredTensor]:
    """Tensors with names of the model's initializers and inputs. Raises `CompileError` if there is none."""
    graph = file.model.graph
    names = [entry.name for entry in (*graph.initializer, *graph.input)]
    tensors = read_safetensors(path)
    found = {name: tensors[name] for name in names if name in tensors}
    if not found:
        examples = ", ".join(f"'{name}'" for name in list(tensors)[:3]) or "none"
        raise CompileError(f"'{path}' has no tensor of {file.name}: its names are {examples} and so on")
    return found


def operators_of(
    source: str | os.PathLike[str] | bytes | ModelProto,
    shapes: Mapping[str, InputShape],
    constants: Mapping[str, ArrayLike],
) -> tuple[Mapping[str, Outcome], Sequence[str]]:
    """Outcomes by operator, and the cost of `fallback=True` if nodes are refused. Raises the errors of `import_model`,
    except for nodes that cannot be converted."""
    file, begun = ModelFile.read(source), list[Import]()

    def begin() -> Import:
        begun.append(Import(file, BlockBuilder(), False))
        return begun[-1]

    try:
        _imported(begin, shapes, constants)
    except CompileError:
        if not begun[-1].problems:
            raise
    shared = begun[-1]
    for problem in shared.problems.values():
        shared.outcomes.setdefault(problem.operator, Outcome()).problems.append(problem)
    return shared.outcomes, _fallback_hint(file, shapes, constants) if shared.problems else ()


class _EqualExtents(Exception):
    """Raised if symbols of the model turn out to be equal to other extents."""

    def __init__(self, extents: Mapping[str, KnownExtent]) -> None:
        super().__init__()
        self.extents = extents


def _check_equal(shared: Import, scope: GraphScope, known: Mapping[str, KnownExtent]) -> None:
    """Raises `_EqualExtents` if nodes require extents to be equal, unless calls must check it."""
    entries = [entry for entry in scope.names.values() if entry is not None]
    values = [item.ssa for entry in entries for item in tensors_of(entry) if isinstance(item, Value)]
    order = [name for value in shared.inputs for e in shape_of(cast("Tensor", value.type)) if (name := lone_name(e))]
    if not order:
        return
    extents = unified([*shared.equal, *assumed_equal(values)], known, list(dict.fromkeys(order)))
    if extents != known:
        raise _EqualExtents(extents)


def _build_main(
    shared: Import,
    shapes: Mapping[str, InputShape],
    constants: Mapping[str, ArrayLike],
    extents: Mapping[str, KnownExtent],
) -> None:
    file, builder = shared.file, shared.builder
    graph = file.model.graph
    scope = GraphScope(shared, file.opsets)
    add_initializers(scope, graph)
    inputs = [proto for proto in graph.input if proto.name not in scope.names]
    words = {word_of(proto.name): proto.name for proto in reversed(inputs)}
    words.update({proto.name: proto.name for proto in inputs})
    shapes = {words.get(name, name): shape for name, shape in shapes.items()}
    constants = {words.get(name, name): value for name, value in constants.items()}
    for option, names in (("shapes", shapes), ("constants", constants)):
        for name in names:
            if name not in (known := [proto.name for proto in inputs]):
                raise CompileError(f"from_onnx: {option}: the model has no input '{name}'{did_you_mean(name, known)}")
    parameters: list[Value] = []
    names = _Names(inputs, shapes, extents)
    shapes, facts = _specialized(inputs, shapes, names)
    takers: dict[str, set[str]] = {}
    for node in graph.node:
        for name in node.input:
            takers.setdefault(name, set()).add(node.op_type)
    for proto in inputs:
        try:
            if proto.name in constants:
                scope.names[proto.name] = _bound(proto, constants[proto.name])
            elif proto.name in shared.weights:
                known = file.stored(shared.weights[proto.name], proto.name)
                scope.names[proto.name] = _bound(proto, known.array)
            else:
                entry, made = _parameters(proto, names, shapes)
                scope.names[proto.name] = entry
                parameters += made
        except (CompileError, ShapeError) as error:
            scope.names[proto.name] = None
            users = sorted(takers.get(proto.name, ()))
            shared.report(f"input of {', '.join(users)}" if users else "input", error, proto.name)
    shared.unified = UnifiedAxes(names.axes, extents)
    with builder.function("main", parameters):
        equal = {name: show_extent(extent) for name, extent in extents.items()}
        builder.state(CallPrecondition(fact).substituted(equal).text for fact in facts)
        for name, entry in scope.names.items():
            tensors = () if entry is None else tensors_of(entry)
            shared.inputs |= {value.ssa: name for value in tensors if isinstance(value, Value)}
        for value in parameters:
            if is_element(value.type, 0) and value.ndim <= 1 and value.ssa.name_hint is not None:
                shape, name = value.type.get_shape(), value.ssa.name_hint
                symbols = [element_symbol(name, element) for element in range(prod(shape))]
                shared.extents[value.ssa] = KnownTensor(np.array(symbols, object).reshape(shape), value.dtype)
        with builder.dataflow():
            scope.run(graph.node)
            _check_equal(shared, scope, extents)
            outputs: list[Value] = []
            for proto in graph.output:
                try:
                    entry = scope.find(proto.name)
                    if isinstance(entry, Absent):
                        raise Refusal("an optional without a value is not a result")
                    outputs += [] if entry is None else map(scope.value_of, tensors_of(entry))
                except (CompileError, ShapeError) as error:
                    shared.report("output", error, proto.name)
            shared.check()
            builder.state(fact.text for fact in shared.stated)
            if not outputs:
                raise CompileError(f"{file.name} has no output")
            for value in outputs:
                builder.emit_output(value)
        builder.emit_func_output(outputs)


def _set_location(items: Sequence[Entry | None], place: str) -> None:
    location = node_location(place)
    pending = [v.ssa for item in items if item is not None for v in tensors_of(item) if isinstance(v, Value)]
    while pending:
        op = pending.pop().owner
        if isinstance(op, Operation) and isinstance(op.location, UnknownLoc):
            op.location = location
            pending += op.operands


def add_initializers(scope: GraphScope, graph: GraphProto) -> None:
    file, stored = scope.shared.file, scope.shared.weights if scope.outer is None else {}
    for tensor in graph.initializer:
        try:
            other = stored.get(tensor.name)
            known = file.tensor(tensor) if other is None else file.stored(other, tensor.name, tensor)
            scope.names[tensor.name] = replace(known, name=word_of(tensor.name))
        except Refusal as error:
            scope.names[tensor.name] = None
            scope.shared.report("initializer", error, tensor.name)
    for sparse in graph.sparse_initializer:
        name = sparse.values.name
        try:
            scope.names[name] = replace(scope.shared.file.sparse(sparse), name=word_of(name))
        except Refusal as error:
            scope.names[name] = None
            scope.shared.report("initializer", error, name)


class _Names:
    """Parameters and extents as words of weft: one for each text of the model."""

    def __init__(
        self,
        inputs: Sequence[ValueInfoProto],
        shapes: Mapping[str, InputShape],
        equal: Mapping[str, KnownExtent],
    ) -> None:
        self._equal = equal
        self.axes: dict[str, Sequence[ExtentLike]] = {}
        """The axes of each parameter, before symbols are replaced."""
        self._parameters: set[str] = set()
        self._extents: dict[str, str] = {}
        texts = {dim.dim_param for proto in inputs for dim in _dims(proto.type)}
        self._opaque = _unsolved(texts)
        for shape in shapes.values():
            parts = () if shape is None else (shape,) if isinstance(shape, str) else shape
            for part in parts:
                texts |= {str(e) for e in part} if not isinstance(part, int | str) else {*_WORDS.findall(str(part))}
        self._taken: set[str] = set()
        for text in texts - self._opaque:
            with suppress(ShapeError):
                self._taken |= names_in(parse_extent(text))

    def parameter(self, label: str) -> str:
        word = word_of(label)
        # Name hints drop a number after an underscore.
        name = next(free for free in chain([word], (f"{word}{n}" for n in count())) if free not in self._parameters)
        self._parameters.add(name)
        return name

    def extent(self, text: str, parameter: str, axis: int) -> str:
        """An expression over names that extents of inputs determine, or a name, by default after the parameter."""
        if text not in self._opaque:
            with suppress(ShapeError):
                found = parse_extent(text)
                if names_in(found) or (isinstance(found, int) and found >= 0):
                    return text
        is_named = bool(text.strip(" ?"))
        if not is_named or text not in self._extents:
            wanted = word_of(text) if is_named else f"{parameter}_{axis}"
            name = free_name(wanted, self._taken)
            self._taken.add(name)
            if not is_named:
                return name
            self._extents[text] = name
        return self._extents[text]

    def shape(self, parameter: str, axes: Sequence[ExtentLike]) -> list[ExtentLike]:
        self.axes[parameter] = axes
        return [self._unified(extent) for extent in axes]

    def _unified(self, extent: ExtentLike) -> ExtentLike:
        if isinstance(extent, int) or not self._equal:
            return extent
        found = substitute(parse_extent(extent), self._equal)
        return found if isinstance(found, int) else show_extent(found)


def _unsolved(texts: Iterable[str]) -> set[str]:
    """Texts that parse as expressions over names that no dimension determines, such as `a*b` without `a`: exporters
    write them as names."""
    parsed = dict[str, KnownExtent]()
    for text in texts:
        with suppress(ShapeError):
            extent = parse_extent(text)
            if extent is not None:
                parsed[text] = extent
    solved = {solution.name for solution in solutions(list(parsed.values()))}
    return {text for text, extent in parsed.items() if not names_in(extent) <= solved}


def _dims(kind: TypeProto) -> Iterable[Any]:
    kind = kind.optional_type.elem_type if kind.HasField("optional_type") else kind
    kind = kind.sequence_type.elem_type if kind.HasField("sequence_type") else kind
    return kind.tensor_type.shape.dim


def _specialized(
    inputs: Sequence[ValueInfoProto], shapes: Mapping[str, InputShape], names: _Names
) -> tuple[Mapping[str, InputShape], Sequence[str]]:
    """Given shapes unified with those of the model, and ranges of extents. Raises `CompileError` for contradictions."""
    stated: dict[str, list[KnownExtent]] = {}
    given: dict[str, tuple[Axis, ...]] = {}
    found: dict[str, InputShape] = dict(shapes)
    for proto in inputs:
        shape, label = shapes.get(proto.name), f"from_onnx: shape of '{proto.name}'"
        kind = proto.type.optional_type.elem_type if proto.type.HasField("optional_type") else proto.type
        if kind.HasField("sequence_type"):
            if shape is not None:
                found[proto.name] = [_plain(axes, label) for axes in _rows(shape, label)]
            continue
        if shape is not None:
            given[proto.name] = _axes(shape, label)
        if kind.tensor_type.HasField("shape"):
            dims = kind.tensor_type.shape.dim
            if shape is not None or all(dim.dim_param.strip(" ?") or dim.HasField("dim_value") for dim in dims):
                stated[proto.name] = [
                    _stated_extent(dim, axis, given.get(proto.name, ()), names, word_of(proto.name))
                    for axis, dim in enumerate(dims)
                ]
        elif shape is not None:  # the model states no rank
            extents = [names.extent("", word_of(proto.name), axis) for axis in range(len(given[proto.name]))]
            stated[proto.name] = [symbol(extent) for extent in extents]
    result = unify(stated, given, "from_onnx: shapes")
    for name, extents in stated.items():
        shape = [substitute(extent, result.values) for extent in extents]
        if name in given or shape != extents:
            found[name] = [extent if isinstance(extent, int) else str(extent) for extent in shape]
    return found, result.preconditions


def _stated_extent(dim: Any, axis: int, given: Sequence[Axis], names: _Names, word: str) -> KnownExtent:
    """A given name may replace a number of the model."""
    is_renamed = axis < len(given) and isinstance(given[axis].extent, str)
    if dim.HasField("dim_value") and not is_renamed:
        return dim.dim_value
    extent = parse_extent(names.extent("" if is_renamed and dim.HasField("dim_value") else dim.dim_param, word, axis))
    return symbol(word) if extent is None else extent


def _axes(shape: InputShape, label: str) -> tuple[Axis, ...]:
    if not isinstance(shape, str) and not all(isinstance(extent, int | str) for extent in shape or ()):
        raise CompileError(f"{label}: the input is a tensor, whose axes are numbers, names and ranges, got {shape}")
    return axes_of(cast("str | Sequence[int | str]", shape), label)


def _rows(shape: InputShape, label: str) -> list[tuple[Axis, ...]]:
    """Axes of the tensors of a sequence: of `2x3,nx3`, or one by one."""
    rows = shape.split(",") if isinstance(shape, str) else list(shape or ())
    if any(isinstance(row, int) for row in rows):
        raise CompileError(f"{label}: the input is a sequence: give the axes of each of its tensors, [(...), ...]")
    return [axes_of(cast("str | Sequence[int | str]", row), label) for row in rows]


def _plain(axes: Sequence[Axis], label: str) -> list[ExtentLike]:
    """Raises `CompileError` if an axis of a tensor of a sequence has a range."""
    if any(axis.bounds is not None or axis.extent is None for axis in axes):
        raise CompileError(f"{label}: tensors of a sequence have numbers and names, got {show_axes(axes)}")
    return [axis.extent for axis in axes if axis.extent is not None]


def _parameters(
    proto: ValueInfoProto, names: _Names, shapes: Mapping[str, InputShape]
) -> tuple[Entry, Sequence[Value]]:
    """The entry of an input, and the parameters of the graph for it."""
    given = shapes.get(proto.name)
    kind, is_optional = proto.type, proto.type.HasField("optional_type")
    if is_optional:
        kind = kind.optional_type.elem_type
        if given is None and proto.name in shapes:
            return Absent(), ()
    if kind.HasField("sequence_type"):
        element = kind.sequence_type.elem_type
        if given is None:
            raise Refusal(f"the length of the sequence is not known: give shapes={{{proto.name!r}: [(...), ...]}}")
        rows = cast("Sequence[Sequence[ExtentLike]]", given)
        made = [_parameter(f"{proto.name}{place}", element, names, shape) for place, shape in enumerate(rows)]
        return TensorSequence(tuple(made)), made
    parameter = _parameter(proto.name, kind, names, cast("Sequence[ExtentLike] | None", given))
    return parameter, [parameter]


def _parameter(label: str, kind: TypeProto, names: _Names, shape: Sequence[ExtentLike] | None) -> Value:
    if not kind.HasField("tensor_type"):
        found = kind.WhichOneof("value") or "nothing"
        raise Refusal(f"an input is a tensor or a sequence of tensors, got {found.removesuffix('_type')}")
    tensor = kind.tensor_type
    dtype = dtype_of(tensor.elem_type)
    if not tensor.HasField("shape") and shape is None:
        raise Refusal(f"the rank is not known: give shapes={{{label!r}: (...)}}")
    name = names.parameter(label)
    stated: list[ExtentLike] = []
    for axis, dim in enumerate(tensor.shape.dim):
        if dim.WhichOneof("value") == "dim_value":
            stated.append(dim.dim_value)
        else:
            stated.append(names.extent(dim.dim_param, name, axis))
    if shape is None:
        return var(name, names.shape(name, stated), dtype)
    if tensor.HasField("shape"):
        fits = len(stated) == len(shape) and all(
            isinstance(one, str) or isinstance(other, str) or one == other
            for one, other in zip(stated, shape, strict=True)
        )
        if not fits:
            raise Refusal(f"the model states the shape {tuple(stated)}, but shapes gives {tuple(shape)}")
    return var(name, names.shape(name, shape), dtype)


def _bound(proto: ValueInfoProto, array: ArrayLike) -> KnownTensor:
    tensor = proto.type.tensor_type
    dtype = dtype_of(tensor.elem_type)
    try:
        data = np.asarray(array)
    except ValueError as error:
        raise Refusal(f"constants gives no array: {error}") from None
    if data.dtype.name != dtype:
        raise Refusal(f"the input holds {dtype}, but constants gives {data.dtype.name}")
    stated = [dim.dim_value if dim.HasField("dim_value") else None for dim in tensor.shape.dim]
    if tensor.HasField("shape") and (
        len(stated) != data.ndim or any(e not in (None, s) for e, s in zip(stated, data.shape, strict=True))
    ):
        raise Refusal(f"the input has the shape {shown(stated)}, but constants gives {data.shape}")
    return KnownTensor(data, dtype)
