"""Random ONNX graphs with symbolic axes, and what `onnx.reference` computes of them at several sizes.

A graph grows node by node. A node that the reference cannot run is dropped, and so is one that the importer refuses by
an error of weft's, which is counted. Floats that were rounded go into no operator that is not continuous.
"""

from __future__ import annotations

import random
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import weft

Array = NDArray[Any]
OPSET = 21
SIZES: tuple[Mapping[str, int], ...] = ({"n": 4, "m": 7}, {"n": 1, "m": 3}, {"n": 5, "m": 1}, {"n": 0, "m": 2})
"""The last one is left out of a graph in which an operator takes no empty tensor."""
_MOST = 3000
"""Elements of a tensor."""


@dataclass(frozen=True)
class Made:
    """A tensor of the graph, at each of the sizes."""

    name: str
    arrays: tuple[Array, ...]
    exact: bool

    @property
    def rank(self) -> int:
        return self.arrays[0].ndim

    @property
    def kind(self) -> str:
        return self.arrays[0].dtype.kind

    def static(self, axis: int) -> int | None:
        """The extent of an axis, None for a symbolic one."""
        extents = {array.shape[axis] for array in self.arrays}
        return extents.pop() if len(extents) == 1 else None


class OnnxProgram:
    """A random model: `model`, `inputs` and `outputs`, by name at each size."""

    @property
    def mirrors(self) -> bool:
        """Whether the graph pads by elements of the axis."""
        return any(
            attribute.name == "mode" and attribute.s in (b"reflect", b"wrap")
            for node in self.model.graph.node
            if node.op_type == "Pad"
            for attribute in node.attribute
        )

    def __init__(self, seed: int, nodes: int = 5, without: Collection[str] = ()) -> None:
        """A graph of that many nodes, none of the operators `without`."""
        self.seed = seed
        self.without = without
        self.draw = random.Random(seed)
        self.refusals = Counter[str]()
        self.size = ""
        self.sizes = list(SIZES)
        self._nodes: list[NodeProto] = []
        self._constants: dict[str, TensorProto] = {}
        self._values: list[Made] = []
        self._shapes: dict[str, list[int | str]] = {}
        self._number = 0
        for _ in range(self.draw.randint(1, 3)):
            self._add_input()
        if self.draw.random() < 0.5:
            self._add_size()
        self._inputs = list(self._values)
        for _ in range(nodes * 6):
            if len(self._nodes) < nodes:
                self._try(self.draw.choice(_PROPOSALS))

    @property
    def model(self) -> ModelProto:
        return self._model(self._nodes, [value.name for value in self._results])

    @property
    def _results(self) -> list[Made]:
        made = [value for value in self._values if value not in self._inputs]
        return made[-8:] or self._inputs

    def inputs(self, at: int) -> list[Array]:
        return [value.arrays[at] for value in self._inputs]

    def outputs(self, at: int) -> list[Array]:
        return [value.arrays[at] for value in self._results]

    def exact(self) -> list[bool]:
        return [value.exact for value in self._results]

    def __str__(self) -> str:
        from onnx import printer

        return f"seed {self.seed}\n{printer.to_text(self.model)}"

    # Making values

    def fresh(self) -> str:
        self._number += 1
        return f"v_{self._number}"

    def _add_input(self) -> None:
        rank = self.draw.choice((1, 2, 2, 3, 3, 4))
        shape = [self.draw.choice(("n", "m", "n", 2, 3, 1)) for _ in range(rank)]
        kind = self.draw.choice(("float32", "float32", "float32", "int64", "bool", "int32", "float64", "uint8"))
        name = f"x_{len(self._values)}"
        self._shapes[name] = shape
        arrays = [self.numbers([sizes.get(str(e), e) for e in shape], kind) for sizes in self.sizes]
        self._values.append(Made(name, tuple(arrays), True))

    def _add_size(self) -> None:
        """An input of one number, which is used as a size and differs from call to call."""
        name = f"x_{len(self._values)}"
        self._shapes[name] = [1]
        arrays = [np.array([self.draw.randint(0, 3)]) for _ in self.sizes]
        self._values.append(Made(name, tuple(arrays), True))
        self.size = name

    def given_size(self) -> Made:
        """The input that is a size. Raises `LookupError` where there is none."""
        return next((value for value in self._values if value.name == self.size), None) or self.value("", least=1)

    def numbers(self, shape: Sequence[Any], dtype: str) -> Array:
        """Small numbers; floats are multiples of a quarter."""
        generator = np.random.default_rng(self.draw.getrandbits(32))
        if dtype == "bool":
            return generator.integers(0, 2, shape).astype(bool)
        low = 0 if dtype.startswith("u") else -6
        found = generator.integers(low, 7, shape)
        return (found / 4 if "float" in dtype else found).astype(dtype)

    def constant(self, array: Any, dtype: str = "int64") -> str:
        name = f"c_{len(self._constants)}"
        self._constants[name] = numpy_helper.from_array(np.asarray(array, dtype), name)
        return name

    def value(self, kinds: str = "fiub", *, least: int = 0, most: int = 5, exact: bool = False) -> Made:
        """A value, of a kind of elements, whose rank is in a range. Raises `LookupError` where there is none."""
        found = [
            value
            for value in self._values
            if value.kind in kinds and least <= value.rank <= most and (value.exact or not exact)
        ]
        if not found:
            raise LookupError
        return self.draw.choice(found[-4:] if self.draw.random() < 0.6 else found)

    def like(self, first: Made) -> Made:
        """A value of the element type of another."""
        found = [value for value in self._values if value.arrays[0].dtype == first.arrays[0].dtype]
        return self.draw.choice(found)

    def axis(self, value: Made, *, static: bool = False) -> int:
        """An axis, maybe counted from the end. Raises `LookupError` where there is none."""
        axes = [axis for axis in range(value.rank) if not static or value.static(axis) is not None]
        if not axes:
            raise LookupError
        axis = self.draw.choice(axes)
        return axis - value.rank if self.draw.random() < 0.3 else axis

    def axes(self, value: Made) -> list[int]:
        axes = self.draw.sample(range(value.rank), self.draw.randint(1, value.rank)) if value.rank else []
        return [axis - value.rank if self.draw.random() < 0.3 else axis for axis in axes]

    # Growing

    def _try(self, propose: Callable[[OnnxProgram], Proposal]) -> None:
        constants = dict(self._constants)
        try:
            proposal = propose(self)
            if proposal.operator not in self.without:
                self._add(proposal)
        except (LookupError, _Dropped):
            self._constants = constants

    def _add(self, proposal: Proposal) -> None:
        made = [self.fresh() for _ in range(proposal.results)]
        names = [item if isinstance(item, str) else item.name for item in proposal.inputs]
        node = helper.make_node(proposal.operator, names, made, **proposal.attributes)
        found: list[list[Array]] = []
        for at in range(len(self.sizes)):
            try:
                found.append(self._run(node, proposal.inputs, at))
            except _Dropped:
                if at < len(SIZES) - 1:
                    raise
        if len(found) < len(self.sizes):
            self._drop_last_size()
        try:
            weft.from_onnx(self._model([*self._nodes, node], made))
        except weft.CompileError as error:
            self.refusals[error.message.splitlines()[-1].strip()] += 1
            raise _Dropped from None
        self._nodes.append(node)
        given = [item for item in proposal.inputs if isinstance(item, Made)]
        for name, arrays in zip(made, zip(*found, strict=True), strict=True):
            exact = arrays[0].dtype.kind != "f" or (all(item.exact for item in given) and _is_coarse(arrays))
            self._values.append(Made(name, arrays, exact))

    def _drop_last_size(self) -> None:
        self.sizes.pop()
        self._values = [Made(value.name, value.arrays[: len(self.sizes)], value.exact) for value in self._values]
        self._inputs = self._values[: len(self._inputs)]

    def _run(self, node: NodeProto, items: Sequence[Made | str], at: int) -> list[Array]:
        """What the reference computes of a node. Raises `_Dropped`."""
        feeds = {item.name: item.arrays[at] for item in items if isinstance(item, Made)}
        inputs = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in feeds.items()
        ]
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                model = self._graph([node], inputs, list(node.output))
                found = [np.asarray(array) for array in ReferenceEvaluator(model).run(None, feeds)]
        except Exception as error:
            raise _Dropped from error
        for array in found:
            is_wild = array.dtype.kind == "f" and array.size and not np.all(np.abs(array) < 1e6)
            if array.size > _MOST or array.dtype.kind not in "fiub" or is_wild:
                raise _Dropped
        return found

    def _model(self, nodes: Sequence[NodeProto], outputs: Sequence[str]) -> ModelProto:
        inputs = [
            helper.make_tensor_value_info(
                value.name, helper.np_dtype_to_tensor_dtype(value.arrays[0].dtype), self._shapes[value.name]
            )
            for value in self._values[: len(self._shapes)]
        ]
        return self._graph(nodes, inputs, outputs)

    def _graph(self, nodes: Sequence[NodeProto], inputs: Sequence[Any], outputs: Sequence[str]) -> ModelProto:
        used = {name for node in nodes for name in node.input}
        constants = [tensor for name, tensor in self._constants.items() if name in used]
        results = [helper.make_empty_tensor_value_info(name) for name in outputs]
        graph = helper.make_graph(list(nodes), "random", list(inputs), results, constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)


@dataclass
class Proposal:
    """A node that may become one of a graph."""

    operator: str
    inputs: Sequence[Made | str]
    attributes: dict[str, Any] = field(default_factory=dict[str, Any])
    results: int = 1


class _Dropped(Exception):
    """A node that the reference cannot run, or weft refuses."""


def _is_coarse(arrays: Sequence[Array]) -> bool:
    """Whether floats are small multiples of a power of two, which arithmetic does not round."""
    return all(np.all(np.abs(array) < 1024) and np.all(array * 64 == np.round(array * 64)) for array in arrays)


# Proposals


def _unary(p: OnnxProgram) -> Proposal:
    smooth = ("Abs", "Neg", "Relu", "Sigmoid", "Tanh", "Softplus", "Erf", "Softsign", "HardSigmoid", "HardSwish", "Exp")
    smooth += ("Elu", "LeakyRelu", "Gelu", "Mish", "Identity", "Sin", "Cos", "Atan", "Selu", "Celu")
    steps = ("Floor", "Ceil", "Round", "IsNaN", "IsInf")
    if p.draw.random() < 0.3:
        return Proposal(p.draw.choice(steps), [p.value("f", exact=True)])
    return Proposal(p.draw.choice(smooth), [p.value("f")])


def _integer_unary(p: OnnxProgram) -> Proposal:
    return Proposal(p.draw.choice(("Abs", "Neg", "Identity", "Sign", "BitwiseNot")), [p.value("i")])


def _binary(p: OnnxProgram) -> Proposal:
    left = p.value("fiu")
    return Proposal(p.draw.choice(("Add", "Sub", "Mul", "Max", "Min")), [left, p.like(left)])


def _division(p: OnnxProgram) -> Proposal:
    left = p.value("fi")
    dtype = left.arrays[0].dtype.name
    return Proposal("Div" if left.kind == "f" else p.draw.choice(("Div", "Mod")), [left, p.constant(3, dtype)])


def _comparison(p: OnnxProgram) -> Proposal:
    left = p.value("fiu", exact=True)
    right = p.like(left)
    if not right.exact:
        raise LookupError
    return Proposal(p.draw.choice(("Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual")), [left, right])


def _logic(p: OnnxProgram) -> Proposal:
    left = p.value("b")
    if p.draw.random() < 0.3:
        return Proposal("Not", [left])
    return Proposal(p.draw.choice(("And", "Or", "Xor")), [left, p.like(left)])


def _where(p: OnnxProgram) -> Proposal:
    left = p.value()
    return Proposal("Where", [p.value("b"), left, p.like(left)])


def _clip(p: OnnxProgram) -> Proposal:
    value = p.value("fi")
    dtype = value.arrays[0].dtype.name
    return Proposal("Clip", [value, p.constant(-1, dtype), p.draw.choice(("", p.constant(1, dtype)))])


def _cast(p: OnnxProgram) -> Proposal:
    value = p.value(exact=True)
    to = p.draw.choice((TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL, TensorProto.DOUBLE))
    return Proposal("Cast", [value], {"to": to})


def _reduce(p: OnnxProgram) -> Proposal:
    words = ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "SumSquare", "LogSumExp")
    word = p.draw.choice(words)
    value = p.value("f" if word in ("L2", "LogSumExp") else "fi")
    if value.kind == "i" and (word == "SumSquare" or (word == "Mean" and any(not a.size for a in value.arrays))):
        raise LookupError  # the reference widens squares of int32, and the mean of no integers is not defined
    inputs: list[Made | str] = [value]
    if p.draw.random() < 0.8 and value.rank:
        inputs.append(p.constant(p.axes(value)))
    attributes = {"keepdims": p.draw.randrange(2)}
    if p.draw.random() < 0.1:
        attributes["noop_with_empty_axes"] = 1
    return Proposal(f"Reduce{word}", inputs, attributes)


def _argmax(p: OnnxProgram) -> Proposal:
    value = p.value("fi", least=1, exact=True)
    attributes = {"axis": p.axis(value), "keepdims": p.draw.randrange(2), "select_last_index": p.draw.randrange(2)}
    return Proposal(p.draw.choice(("ArgMax", "ArgMin")), [value], attributes)


def _cumsum(p: OnnxProgram) -> Proposal:
    value = p.value("fi", least=1)
    attributes = {"exclusive": p.draw.randrange(2), "reverse": p.draw.randrange(2)}
    return Proposal("CumSum", [value, p.constant(p.axis(value))], attributes)


def _topk(p: OnnxProgram) -> Proposal:
    value = p.value("fi", least=1, exact=True)
    attributes = {"axis": p.axis(value), "largest": p.draw.randrange(2)}
    return Proposal("TopK", [value, p.constant([p.draw.randint(1, 3)])], attributes, results=2)


def _softmax(p: OnnxProgram) -> Proposal:
    value = p.value("f", least=1, exact=True)
    return Proposal(p.draw.choice(("Softmax", "LogSoftmax", "Hardmax")), [value], {"axis": p.axis(value)})


def _transpose(p: OnnxProgram) -> Proposal:
    value = p.value(least=1)
    order = p.draw.sample(range(value.rank), value.rank)
    return Proposal("Transpose", [value], {"perm": order} if p.draw.random() < 0.8 else {})


def _reshape(p: OnnxProgram) -> Proposal:
    value = p.value(least=1)
    shape: list[int] = []
    for axis in range(value.rank):
        extent = value.static(axis)
        shape += [0 if extent is None or p.draw.random() < 0.2 else extent]
    choice = p.draw.random()
    if choice < 0.4:
        shape[p.draw.randrange(len(shape))] = -1
    elif choice < 0.7:
        at = p.draw.randrange(len(shape))
        shape[at : at + 2] = [-1]
    else:
        shape.insert(p.draw.randint(0, len(shape)), 1)
    return Proposal("Reshape", [value, p.constant(shape)])


def _reshape_like(p: OnnxProgram) -> Proposal:
    """To a shape that was computed."""
    return Proposal("Reshape", [p.value(), p.value("i", least=1, most=1)])


def _flatten(p: OnnxProgram) -> Proposal:
    value = p.value(least=1)
    return Proposal("Flatten", [value], {"axis": p.draw.randint(-value.rank, value.rank)})


def _squeeze(p: OnnxProgram) -> Proposal:
    value = p.value()
    ones = [axis for axis in range(value.rank) if value.static(axis) == 1]
    if ones and p.draw.random() < 0.5:
        return Proposal("Squeeze", [value, p.constant([p.draw.choice(ones)])])
    places = p.draw.sample(range(value.rank + 1), 1)
    return Proposal("Unsqueeze", [value, p.constant(places)])


def _concat(p: OnnxProgram) -> Proposal:
    value = p.value(least=1)
    return Proposal("Concat", [value, *(p.like(value) for _ in range(p.draw.randint(0, 2)))], {"axis": p.axis(value)})


def _split(p: OnnxProgram) -> Proposal:
    value = p.value(least=1)
    axis = p.axis(value)
    extent = value.static(axis)
    if extent is None or p.draw.random() < 0.3:
        return Proposal("Split", [value], {"axis": axis, "num_outputs": 2}, results=2)
    first = p.draw.randint(0, extent)
    return Proposal("Split", [value, p.constant([first, extent - first])], {"axis": axis}, results=2)


def _slice(p: OnnxProgram) -> Proposal:
    value = p.value(least=1)
    axes = p.axes(value)
    bounds = (0, 1, 2, -1, -2, 100, -100)
    starts, ends = ([p.draw.choice(bounds) for _ in axes] for _ in range(2))
    steps = [p.draw.choice((1, 1, 2, -1)) for _ in axes]
    return Proposal("Slice", [value, *(p.constant(part) for part in (starts, ends, axes, steps))])


def _gather(p: OnnxProgram) -> Proposal:
    value = p.value(least=1)
    axis = p.axis(value)
    shape = p.draw.choice(([], [2], [1, 2]))
    return Proposal("Gather", [value, p.constant(p.numbers(shape, "int64") % 1 - p.draw.randrange(2))], {"axis": axis})


def _gather_elements(p: OnnxProgram) -> Proposal:
    value = p.value(least=1)
    axis = p.axis(value)
    if p.draw.random() < 0.5:
        shape = [p.draw.choice((1, value.static(at) or 1)) for at in range(value.rank)]
        indices: Made | str = p.constant(np.zeros(shape))
    else:
        indices = p.value("i", least=value.rank, most=value.rank)
    return Proposal("GatherElements", [value, indices], {"axis": axis})


def _gather_nd(p: OnnxProgram) -> Proposal:
    value = p.value(least=1)
    depth = p.draw.randint(1, value.rank)
    shape = p.draw.choice(([depth], [2, depth], [1, 2, depth]))
    return Proposal("GatherND", [value, p.constant(np.zeros(shape) - p.draw.randrange(2))])


def _scatter(p: OnnxProgram) -> Proposal:
    value = p.value("fi", least=1)
    dtype = value.arrays[0].dtype.name
    shape = [value.static(at) or 1 for at in range(value.rank)]
    updates = p.constant(p.numbers(shape, dtype), dtype)
    reduction = p.draw.choice(("none", "add", "mul", "max", "min"))
    attributes = {"axis": p.axis(value), "reduction": reduction}
    return Proposal("ScatterElements", [value, p.constant(np.zeros(shape)), updates], attributes)


def _scatter_nd(p: OnnxProgram) -> Proposal:
    value = p.value("fi", least=1)
    dtype = value.arrays[0].dtype.name
    shape = [value.static(at) for at in range(1, value.rank)]
    if None in shape:
        raise LookupError
    updates = p.constant(p.numbers([1, *shape], dtype), dtype)
    return Proposal("ScatterND", [value, p.constant([[0]]), updates], {"reduction": p.draw.choice(("none", "add"))})


def _expand(p: OnnxProgram) -> Proposal:
    value = p.value()
    if p.draw.random() < 0.5:
        return Proposal("Expand", [value, p.value("i", least=1, most=1)])
    return Proposal("Expand", [value, p.constant([2] + [1] * value.rank)])


def _tile(p: OnnxProgram) -> Proposal:
    value = p.value(least=1, most=3)
    return Proposal("Tile", [value, p.constant([p.draw.choice((1, 2, 0, 3)) for _ in range(value.rank)])])


def _pad(p: OnnxProgram) -> Proposal:
    value = p.value("fi", least=1)
    widths = [p.draw.choice((0, 1, 2, 0, -1)) for _ in range(2 * value.rank)]
    mode = p.draw.choice(("constant", "edge", "reflect", "wrap"))
    return Proposal("Pad", [value, p.constant(widths)], {"mode": mode})


def _matmul(p: OnnxProgram) -> Proposal:
    left = p.value("f", least=1)
    width = left.static(left.rank - 1)
    if width is None or p.draw.random() < 0.3:
        return Proposal("MatMul", [left, p.like(left)])
    dtype = left.arrays[0].dtype.name
    return Proposal("MatMul", [left, p.constant(p.numbers([width, 3], dtype), dtype)])


def _gemm(p: OnnxProgram) -> Proposal:
    left = p.value("f", least=2, most=2)
    attributes = {"transA": p.draw.randrange(2), "transB": p.draw.randrange(2), "alpha": 0.5}
    right = p.like(left)
    if right.rank != 2:
        raise LookupError  # the reference takes other ranks
    return Proposal("Gemm", [left, right], attributes)


def _einsum(p: OnnxProgram) -> Proposal:
    value = p.value("f", least=2, most=3)
    letters = "abc"[: value.rank]
    result = "".join(p.draw.sample(letters, p.draw.randint(0, value.rank)))
    return Proposal("Einsum", [value, value], {"equation": f"{letters},{letters}->{result}"})


def _conv(p: OnnxProgram) -> Proposal:
    value = p.value("f", least=3, most=4)
    channels = value.static(1)
    if channels is None or value.arrays[0].dtype != np.float32:
        raise LookupError
    space = value.rank - 2
    weights = p.constant(p.numbers([2, channels, *[p.draw.choice((1, 2)) for _ in range(space)]], "float32"), "float32")
    pads = [p.draw.randrange(2) for _ in range(2 * space)]
    return Proposal("Conv", [value, weights], {"pads": pads, "strides": [p.draw.choice((1, 1, 2))] * space})


def _pool(p: OnnxProgram) -> Proposal:
    value = p.value("f", least=3, most=4)
    space = value.rank - 2
    attributes: dict[str, Any] = {"kernel_shape": [p.draw.choice((1, 2)) for _ in range(space)]}
    attributes["strides"] = [p.draw.choice((1, 1, 2))] * space
    attributes["ceil_mode"] = p.draw.randrange(2)
    operator = p.draw.choice(("MaxPool", "AveragePool"))
    if operator == "AveragePool":
        attributes["count_include_pad"] = p.draw.randrange(2)
    return Proposal(operator, [value], attributes)


def _global_pool(p: OnnxProgram) -> Proposal:
    # The reference reduces GlobalMaxPool of other ranks to a scalar.
    return Proposal(p.draw.choice(("GlobalAveragePool", "GlobalMaxPool")), [p.value("f", least=4, most=4)])


def _norm(p: OnnxProgram) -> Proposal:
    value = p.value("f", least=1)
    axis = p.axis(value)
    extents = [value.static(at) for at in range(axis % value.rank, value.rank)]
    if None in extents:
        raise LookupError
    dtype = value.arrays[0].dtype.name
    return Proposal("LayerNormalization", [value, p.constant(p.numbers(extents, dtype), dtype)], {"axis": axis})


def _one_hot(p: OnnxProgram) -> Proposal:
    value = p.value("i", most=3)
    axis = p.draw.randint(-value.rank - 1, value.rank)
    return Proposal("OneHot", [value, p.constant(4), p.constant([0.0, 2.0], "float32")], {"axis": axis})


def _trilu(p: OnnxProgram) -> Proposal:
    return Proposal("Trilu", [p.value(least=2), p.constant(p.draw.randint(-2, 2))], {"upper": p.draw.randrange(2)})


def _shape(p: OnnxProgram) -> Proposal:
    value = p.value()
    attributes: dict[str, Any] = {}
    if p.draw.random() < 0.3:
        attributes = {"start": p.draw.randint(-2, 2)}
    return Proposal(p.draw.choice(("Shape", "Shape", "Size")), [value], attributes if p.draw.random() < 0.9 else {})


def _of_shape(p: OnnxProgram) -> Proposal:
    fill = numpy_helper.from_array(np.array([1.5], np.float32))
    return Proposal("ConstantOfShape", [p.value("i", least=1, most=1)], {"value": fill})


def _range(p: OnnxProgram) -> Proposal:
    return Proposal("Range", [p.constant(0), p.value("i", most=0), p.constant(p.draw.choice((1, 2)))])


def _shape_arithmetic(p: OnnxProgram) -> Proposal:
    value = p.value("i", most=1)
    return Proposal(p.draw.choice(("Add", "Mul", "Div", "Sub")), [value, p.constant(p.draw.choice((1, 2)))])


def _depth_to_space(p: OnnxProgram) -> Proposal:
    operator = p.draw.choice(("DepthToSpace", "SpaceToDepth"))
    attributes: dict[str, Any] = {"blocksize": p.draw.choice((1, 2))}
    if operator == "DepthToSpace":
        attributes["mode"] = p.draw.choice(("DCR", "CRD"))
    return Proposal(operator, [p.value("f", least=4, most=4)], attributes)


def _compress(p: OnnxProgram) -> Proposal:
    value = p.value(least=1)
    return Proposal("Compress", [value, p.constant([False, True], "bool")], {"axis": p.axis(value)})


def _reverse(p: OnnxProgram) -> Proposal:
    value = p.value(least=2)
    lengths = p.value("i", least=1, most=1)
    batch = p.draw.randrange(2)
    for array, of in zip(value.arrays, lengths.arrays, strict=True):
        # The reference reverses the first sequences if there are fewer lengths, which the operator forbids.
        if len(of) != array.shape[batch] or np.any((of < 0) | (of > array.shape[1 - batch])):
            raise LookupError
    return Proposal("ReverseSequence", [value, lengths], {"batch_axis": batch, "time_axis": 1 - batch})


def _sized(p: OnnxProgram) -> Proposal:
    """An operator with a size that calls give."""
    size = p.given_size()
    match p.draw.choice(("Slice", "Slice", "Tile", "TopK", "ConstantOfShape", "Expand")):
        case "Slice":
            value = p.value(least=1)
            bounds: list[Made | str] = [size, p.constant([p.draw.choice((0, 1, 100, -1, -100))])]
            p.draw.shuffle(bounds)
            return Proposal(
                "Slice", [value, *bounds, p.constant([p.axis(value)]), p.constant([p.draw.choice((1, 2, -1))])]
            )
        case "TopK":
            value = p.value("f", least=1)
            axis = p.axis(value)
            if any(array.shape[axis] < 3 for array in value.arrays):
                raise LookupError
            return Proposal("TopK", [value, size], {"axis": axis}, results=2)
        case "Expand":
            return Proposal("Expand", [p.value(most=0), size])
        case "Tile":
            return Proposal("Tile", [p.value(least=1, most=1), size])
        case operator:
            return Proposal(operator, [size])


_PROPOSALS: Sequence[Callable[[OnnxProgram], Proposal]] = (
    *(_unary, _binary, _reduce, _reshape, _slice, _shape, _transpose, _concat, _sized) * 2,
    *(_integer_unary, _division, _comparison, _logic, _where, _clip, _cast, _argmax, _cumsum, _topk, _softmax),
    *(_reshape_like, _flatten, _squeeze, _split, _gather, _gather_elements, _gather_nd, _scatter, _scatter_nd, _expand),
    *(_tile, _pad, _matmul, _gemm, _einsum, _conv, _pool, _global_pool, _norm, _one_hot, _trilu, _of_shape, _range),
    *(_shape_arithmetic, _depth_to_space, _compress, _reverse),
)


def check(program: OnnxProgram, target: str = "llvm -num-threads=1 -opt-level=1") -> None:
    """Raises `AssertionError` where a result differs from the reference's, and what compilation and calls raise."""
    main = weft.build(weft.from_onnx(program.model), target)["main"]
    for at, sizes in enumerate(program.sizes):
        try:
            results: Any = main(*program.inputs(at))
        except ValueError as error:
            # What lies beyond a short axis is undefined when it is mirrored; NumPy repeats it.
            if "out of bounds otherwise" in str(error) and program.mirrors:
                continue
            if "in the shape of a Reshape must be known at import" in str(error):
                continue  # a shape that calls give has no 0 and no -1
            raise
        found = results if isinstance(results, tuple | list) else (results,)
        for one, other, exact in zip(found, program.outputs(at), program.exact(), strict=True):
            told = f"at {sizes}: {program}"
            assert one.shape == other.shape and one.dtype == other.dtype, (
                f"{one.dtype}{one.shape} {other.dtype}{other.shape} {told}"
            )
            if exact:
                np.testing.assert_array_equal(one, other, told)
            else:
                np.testing.assert_allclose(one, other, 1e-3, 1e-3, err_msg=told)
