"""Import of programs of `torch.export`, and of graphs traced by `torch.compile`, as graph functions."""

from __future__ import annotations

import operator as python_operator
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from itertools import chain, count
from time import perf_counter
from typing import Any, Final, TypeAlias, cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import BlockArgument
from xdsl.utils.exceptions import VerifyException

from weft.dialects.constant_data import shared_attribute
from weft.dialects.graph import PRECONDITIONS, ConstantOp
from weft.dialects.graph_shapes import (
    Expression,
    Extent,
    KnownExtent,
    Shape,
    element_of_name,
    element_symbol,
    lone_name,
    names_in,
    show_extent,
    solutions,
    sum_text,
    symbol,
)
from weft.frontends.equal_extents import assumed_equal, unified
from weft.frontends.fallback_cost import fallback_cost
from weft.frontends.graph_builder import BlockBuilder, Value, call_dps, const, var
from weft.frontends.torch.complex_numbers import Complex, complex_converter, is_complex
from weft.frontends.torch.converters import CONVERTERS, Conversion, apply, known, size_value
from weft.frontends.torch.exporting import decomposed
from weft.frontends.torch.guards import call_preconditions
from weft.frontends.torch.library import pytree, torch
from weft.frontends.torch.places import place_of
from weft.frontends.torch.shared_memory import check_state
from weft.frontends.torch.symbols import (
    TensorMeta,
    UnsupportedError,
    dtype_name,
    extent_of,
    meta_of,
    number_of,
    order_in_memory,
    result_meta,
    symbols_of,
    torch_dtype,
)
from weft.support.call_arguments import stored_dtype
from weft.support.call_preconditions import CallPrecondition
from weft.support.errors import CompileError
from weft.support.user_functions import set_func
from weft.texpr.expr import type_of
from weft.texpr.shapes import value_name

FAMILIES: Final = (
    *("spelled", "elementwise", "reductions", "ordering", "tensors", "selection", "neural", "linear_algebra"),
    *("quantized", "copies"),
)
"""The modules that register converters; the last one reuses converters of the others."""
for _family in FAMILIES:
    import_module(f"weft.frontends.torch.{_family}")


def converted_operators() -> list[str]:
    return sorted(CONVERTERS)


Item: TypeAlias = Any
"""The representation of the result of a node: a value, a tuple of values, an extent, or a number."""
CHECKS: Final = (
    "aten._assert_scalar.default",
    "aten._assert_async.msg",
    "aten._assert_tensor_metadata.default",
    "aten.sym_constrain_range.default",
    "aten.sym_constrain_range_for_size.default",
    "aten._linalg_check_errors.default",
)
"""Operators that only check. Calls check conditions on sizes; conditions on data are not checked."""
_WRITES: Final = ("BUFFER_MUTATION", "PARAMETER_MUTATION")
_NO_MEANING: Final = ("layout", "device", "pin_memory", "memory_format", "non_blocking", "generator")
"""Keywords about the storage of a tensor."""


@dataclass(frozen=True)
class Argument:
    """`leaf` is the index of a flattened input of the model, otherwise `state` names a parameter or buffer. An integer
    argument has a `size`, its value as an extent."""

    name: str
    node: str
    meta: TensorMeta
    leaf: int | None = None
    state: str | None = None
    size: Extent = None
    order: tuple[int, ...] | None = None
    """The axes of the tensor in the order of memory, which is that of the function's parameter; None for contiguous
    tensors."""

    @property
    def in_memory(self) -> TensorMeta:
        shape = self.meta.shape
        return self.meta if self.order is None else replace(self.meta, shape=tuple(shape[axis] for axis in self.order))

    @property
    def is_size(self) -> bool:
        return self.size is not None

    @property
    def extents(self) -> Shape:
        """The extents that the argument determines: those of its axes, or its value."""
        return self.meta.shape if self.size is None else (self.size,)


@dataclass(frozen=True)
class Mutation:
    """A result that the caller writes into a buffer or an input of the model."""

    result: int
    leaf: int | None = None
    state: str | None = None


@dataclass(frozen=True)
class Output:
    """A result of the function, or a number, an extent or None."""

    result: int | None = None
    value: Any = None
    is_size: bool = False
    order: tuple[int, ...] | None = None
    """The axes of the output in the order of memory, which is that of the result; None for contiguous tensors."""


@dataclass
class Problem:
    operator: str
    node: str
    place: str
    reason: str


@dataclass
class TorchCall(Problem):
    """An operator that PyTorch runs, and its cost so far."""

    calls: int = 0
    seconds: float = 0.0


_NUMBERS: Final = count()
"""Numbers that make the names of functions run in PyTorch unique."""


@dataclass
class ImportedModel:
    """A graph function, and the meaning of its arguments and results."""

    arguments: list[Argument] = field(default_factory=list[Argument])
    dtypes: list[str] = field(default_factory=list[str])
    """The element types of the results."""
    outputs: list[Output] = field(default_factory=list[Output])
    mutations: list[Mutation] = field(default_factory=list[Mutation])
    state: dict[str, Any] = field(default_factory=dict[str, Any])
    """The tensors of arguments that are parameters or buffers."""
    fixed: dict[str, Any] = field(default_factory=dict[str, Any])
    """Parameters and buffers that are constants of a model with mutations."""
    in_torch: list[TorchCall] = field(default_factory=list[TorchCall])
    in_spec: Any = None
    out_spec: Any = None
    leaves: int = 0
    constants: dict[int, Any] = field(default_factory=dict[int, Any])
    """Inputs other than tensors, by index: the values that the model was exported with."""


class Importer:
    """Converts a graph of PyTorch, and the graphs that it calls."""

    def __init__(
        self,
        builder: BlockBuilder,
        equal: Mapping[str, KnownExtent],
        placeholders: Sequence[Any] = (),
        *,
        fallback: bool = False,
        ranges: Mapping[str, tuple[int, int | None]] | None = None,
        keep_orders: bool = False,
    ) -> None:
        """`placeholders` are the nodes of the inputs, `ranges` the bounds of symbolic sizes. With `keep_orders`,
        parameters have the axes of inputs in the order of memory."""
        self.builder = builder
        self.names = _names(placeholders)
        self.equal = {**_elements(self.names), **equal}
        """Extents that replace symbols: integers of the inputs, or extents that operators require to be equal."""
        self._fallback = fallback
        self._keep_orders = keep_orders
        self.problems: list[Problem] = []
        self.in_torch: list[TorchCall] = []
        self.functions: dict[str, Callable[..., None]] = {}
        """The functions that run operators in PyTorch, by the names that the program calls."""
        self._constants: dict[tuple[object, ...], Value] = {}
        self._broken: set[Any] = set()
        """Nodes without a representation of their results."""
        self._ranges = dict(ranges or {})
        self._decided: set[str] = set()
        """The names of data-dependent sizes that are bound so far."""
        self.sizes: list[Value] = []
        """Outputs that are data-dependent sizes."""

    def constant(self, tensor: Any, name: str) -> Value | Complex:
        """A constant shared by tensors with the same memory; a pair of constants if complex."""
        if tensor.is_complex():
            parts = (self._real_constant(part.resolve_neg().clone(), name) for part in (tensor.real, tensor.imag))
            return Complex(*parts)
        return self._real_constant(tensor, name)

    def _real_constant(self, tensor: Any, name: str) -> Value:
        self.meta(tensor, name)
        key = (tensor.data_ptr(), tuple(tensor.shape), tensor.stride(), tensor.dtype)
        if key not in self._constants or not tensor.numel():
            attribute = shared_attribute(array_of(tensor), type_of(dtype_name(tensor.dtype)))
            self._constants[key] = self.builder.emit(Value(ConstantOp(attribute).result), name)
        return Value(self._constants[key].ssa)

    def size_facts(self, argument: Argument) -> list[str]:
        """Preconditions: an integer argument equals the value that extents use, and symbols of PyTorch are not negative
        unless their range says so."""
        if argument.size is None:
            return []
        element = element_symbol(argument.name, 0)
        if argument.size != element:
            return [f"{element} == {sum_text(argument.size)}"]
        symbols = [name for name, extent in self.equal.items() if extent == element]
        least = min((self._ranges.get(name, (0, None))[0] for name in symbols), default=0)
        return [f"0 <= {element} # PyTorch exported the model for such sizes"] if least >= 0 else []

    def as_result(self, item: Item) -> Item:
        """A data-dependent size becomes a tensor: callers cannot compute it. Raises `CompileError` for a complex
        output."""
        if isinstance(item, Complex):
            raise CompileError("from_torch: an output is complex, and must be real: torch.view_as_real(y)")
        if not isinstance(item, Expression) or names_in(item).isdisjoint(self._decided):
            return item
        self.sizes.append(size_value(self.builder, item))
        return self.sizes[-1]

    def convert(self, module: Any, inputs: Mapping[Any, Item]) -> list[Item]:
        env: dict[Any, Item] = dict(inputs)
        for node in module.graph.nodes:
            if node.op == "output":
                return [self._item(env, output) for output in _output_nodes(module)]
            if node.op == "get_attr":
                found = _attribute(module, node.target)
                env[node] = self.constant(found, node.name) if isinstance(found, torch.Tensor) else found
            elif node.op == "call_function":
                env[node] = self._call(env, node)
            elif node not in env and node.users:
                raise CompileError(f"from_torch: a node '{node.op}' ({node.name}) is not a part of an exported program")
        raise CompileError("from_torch: a graph without output")

    def _item(self, env: Mapping[Any, Item], value: Any) -> Item:
        if isinstance(value, torch.fx.Node):
            return env[value]
        if isinstance(value, list | tuple):
            return [self._item(env, part) for part in cast("Sequence[Any]", value)]
        if isinstance(value, torch.dtype):
            return str(value) if value.is_complex else dtype_name(value)
        if isinstance(value, torch.device | torch.layout | torch.memory_format):
            return None
        return self._number(value) if _is_symbolic(value) else value

    def meta(self, tensor: Any, name: str) -> TensorMeta:
        """Raises `CompileError` if graphs cannot represent an input, a parameter or a constant."""
        kind = "quantized" if tensor.is_quantized else "nested" if tensor.is_nested else ""
        if kind or tensor.layout is not torch.strided:
            layout = kind or f"of layout {str(tensor.layout).removeprefix('torch.')}"
            raise CompileError(f"from_torch: '{name}' is a tensor {layout}, and must be a dense one")
        try:
            return meta_of(tensor, self.equal)
        except UnsupportedError as error:
            raise CompileError(f"from_torch: '{name}' has {error}, which weft does not have") from None

    def order(self, value: Any) -> tuple[int, ...] | None:
        """Axes in the order of memory, if parameters keep it."""
        is_kept = self._keep_orders and isinstance(value, torch.Tensor)
        return order_in_memory(value, self.equal) if is_kept else None

    def _metas(self, value: Any, decided: Collection[str]) -> list[TensorMeta]:
        """Raises `UnsupportedError` if a shape depends on data through sizes that operators have not bound
        (`decided`)."""
        tensors = [value] if isinstance(value, torch.Tensor) else [t for t in value if isinstance(t, torch.Tensor)]
        for tensor in tensors:
            _check_is_known(tensor.shape, decided)
        return [result_meta(tensor, self.equal) for tensor in tensors]

    def _number(self, value: Any) -> Extent | float | bool:
        if isinstance(value, torch.SymInt):
            return extent_of(value, self.equal)
        return None if _is_symbolic(value) else value

    def _call(self, env: dict[Any, Item], node: Any) -> Item:
        name, value = str(node.target), node.meta.get("val")
        if node.target is python_operator.getitem:
            if node.args[0] in self._broken:
                self._broken.add(node)
            return env[node.args[0]][node.args[1]]
        if name in CHECKS or _is_checked_alone(node, value):
            return None
        if isinstance(node.target, torch._ops.HigherOrderOperator):
            return self._nested(env, node)
        if _is_number(value) and name not in CONVERTERS:
            return self._tried(node, lambda: self._size(value), value)
        return self._tried(node, lambda: self._converted(env, node), value)

    def _tried(self, node: Any, convert: Callable[[], Item], value: Any) -> Item:
        """A failure is recorded, and the result replaced by values of the right types."""
        is_consequence = not self._broken.isdisjoint(node.all_input_nodes)
        try:
            if not is_consequence:
                return convert()
        except (UnsupportedError, CompileError, VerifyException) as error:
            self.problems.append(_problem(node, error))
        try:
            return self._stand_in(value)
        except UnsupportedError:
            self._broken.add(node)
            return [None] * 16

    def _stand_in(self, value: Any) -> Item:
        """Placeholder values of the types that PyTorch states, from an unregistered function."""
        if value is None or _is_number(value):
            raise UnsupportedError("no tensor")
        metas = self._metas(value, self._decided)
        if any(meta.is_complex for meta in metas):
            raise UnsupportedError("complex numbers")
        found = call_dps("weft.unsupported", [], [known_text(m) for m in metas], [meta.dtype for meta in metas])
        return tuple(map(self.builder.emit, found)) if isinstance(value, list | tuple) else self.builder.emit(found[0])

    def _size(self, value: Any) -> Item:
        """A symbolic number: an extent if possible, otherwise a tensor."""
        _check_is_known([value], self._decided)
        number = self._number(value)
        if number is not None:
            return number
        sizes = [self.equal.get(name, symbol(name)) for name in symbols_of(value)]
        return self.builder.emit_te(partial(number_of, value), *sizes)

    def _converted(self, env: dict[Any, Item], node: Any) -> Item:
        name, value = str(node.target), node.meta.get("val")
        args, keywords = self._arguments(env, node)
        is_number = _is_number(value)
        own = frozenset(map(str, node.meta.get("unbacked_bindings") or {}))
        metas = [] if is_number else self._metas(value, self._decided | own)
        conversion = Conversion(
            self.builder,
            name,
            [argument.name for argument in node.target._schema.arguments],
            metas,
            _used(node),
            lambda reason: self._run_in_torch(node, reason, args, keywords, metas),
            [extent_of(value, self.equal)] if is_number and isinstance(value, torch.SymInt) else [],
            self._ranges,
            getattr(node.args[0], "meta", {}).get("val") if node.args else None,
        )
        has_complex = any(meta.is_complex for meta in metas) or is_complex((args, keywords))
        converter = complex_converter(name) if has_complex else CONVERTERS.get(name)
        if converter is None and self._fallback:
            return self._left(conversion, "it has no converter", value)
        if converter is None:
            raise UnsupportedError("")
        if isinstance(value, list | tuple) and len(metas) != len(cast("Sequence[Any]", value)):
            raise UnsupportedError("results that are not tensors")
        try:
            kept = {key: item for key, item in keywords.items() if key not in _NO_MEANING}
            found = converter(conversion, *args, **kept)
        except (UnsupportedError, CompileError, VerifyException) as error:
            if not self._fallback or has_complex:
                raise
            return self._left(conversion, str(error), value)
        self._decided |= own & self.builder.extent_names()
        if is_number:
            return self.builder.emit(found) if isinstance(found, Value) else found
        several = isinstance(value, list | tuple)
        values: list[Any] = list(found) if several else [found]
        _check_results(name, values, metas)
        for at, item in enumerate(values):
            if isinstance(item, Complex):
                values[at] = Complex(*(self._emitted(part, node.name) for part in (item.real, item.imaginary)))
            elif isinstance(item, Value):
                values[at] = self._emitted(item, node.name)
        return tuple(values) if several else values[0]

    def _emitted(self, value: Value, name: str) -> Value:
        return self.builder.emit(value, None if value.ssa.name_hint and _is_input(value) else name)

    def _left(self, conversion: Conversion, reason: str, value: Any) -> Item:
        found = conversion.run_in_torch(reason)
        return found if isinstance(value, list | tuple) else found[0]

    def _arguments(self, env: Mapping[Any, Item], node: Any) -> tuple[list[Item], dict[str, Item]]:
        """Arguments with defaults: by position in the order of the schema, and by name."""
        schema = getattr(node.target, "_schema", None)
        given = [self._item(env, arg) for arg in node.args]
        keywords = {name: self._item(env, arg) for name, arg in node.kwargs.items()}
        if schema is None:
            raise UnsupportedError("it is not an operator of ATen")
        for argument in schema.arguments[len(given) :]:
            name = argument.name
            if name not in keywords and argument.has_default_value():
                default = self._item(env, argument.default_value)
            elif name in keywords:
                default = keywords.pop(name)
            else:
                break
            if argument.kwarg_only:
                keywords[name] = default
            else:
                given.append(default)
        return given, keywords

    def _run_in_torch(
        self, node: Any, reason: str, args: Sequence[Item], keywords: Mapping[str, Item], metas: Sequence[TensorMeta]
    ) -> tuple[Value, ...]:
        leaves, spec = pytree.tree_flatten((list(args), dict(_originals(node, keywords))), is_leaf=_is_none)
        tensors = [leaf for leaf in leaves if isinstance(leaf, Value)]
        sizes = [leaf for leaf in leaves if isinstance(leaf, Expression)]
        operands = [*tensors, *(size_value(self.builder, size) for size in sizes)]
        # A number for each call, so that equal calls of random operators are not merged.
        operands.append(self.builder.emit(const(len(self.in_torch), "int64")))
        shapes = [known_text(meta) for meta in metas]
        call = TorchCall(str(node.target), node.name, place_of(node), reason)
        self.in_torch.append(call)
        name = f"torch.{node.target}.{next(_NUMBERS)}"
        self.functions[name] = _runner(node.target, leaves, spec, call)
        found = call_dps(name, operands, shapes, [meta.dtype for meta in metas])
        return tuple(self.builder.emit(value, node.name) for value in found)

    def _nested(self, env: dict[Any, Item], node: Any) -> Item:
        name = node.target.name()
        args = [self._item(env, arg) for arg in node.args]
        graphs = {
            "wrap_with_set_grad_enabled": (1, 2),
            "wrap_with_autocast": (4, 5),
            "wrap_set_grad_enabled": (1, 2),
            "invoke_subgraph": (0, 2),
        }
        if name in graphs:
            at, first = graphs[name]
            return tuple(self._inlined(args[at], args[first:]))
        if name == "with_effects" and str(args[1]) in CHECKS:
            return None, None
        if name == "cond":
            return self._tried(node, lambda: self._branches(*args), node.meta.get("val"))
        return self._tried(node, lambda: _refuse("it is a higher-order operator"), node.meta.get("val"))

    def _inlined(self, module: Any, operands: Sequence[Item]) -> list[Item]:
        names = [node for node in module.graph.nodes if node.op == "placeholder"]
        return self.convert(module, dict(zip(names, operands, strict=True)))

    def _branches(self, condition: Item, then: Any, otherwise: Any, operands: Sequence[Item]) -> Item:
        places = [at for at, operand in enumerate(operands) if isinstance(operand, Value)]

        def branch(module: Any) -> Callable[..., list[Value]]:
            def traced(*values: Value) -> list[Value]:
                given = list(operands)
                for at, value in zip(places, values, strict=True):
                    given[at] = value
                outside, self._constants = self._constants, {}
                try:
                    return self._inlined(module, given)
                finally:
                    self._constants = outside

            return traced

        if not isinstance(condition, Value):
            raise UnsupportedError("a condition on sizes")
        if is_complex(list(operands)):
            raise UnsupportedError("complex numbers")
        flag = condition if condition.ndim == 0 else condition.reshape()
        found = self.builder.emit_if(
            flag, branch(then), branch(otherwise), *(cast("Value", operands[at]) for at in places)
        )
        return found if isinstance(found, tuple) else (found,)


def _refuse(reason: str) -> Item:
    raise UnsupportedError(reason)


def _is_none(value: object) -> bool:
    return value is None


def _is_input(value: Value) -> bool:
    """Whether the value has a name before the node: a parameter of the function, or an operand of another op."""
    return isinstance(value.ssa, BlockArgument) or value.ssa.first_use is not None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | bool | torch.SymInt | torch.SymFloat | torch.SymBool)


def _is_checked_alone(node: Any, value: Any) -> bool:
    is_condition = isinstance(value, torch.SymBool | bool)
    return is_condition and bool(node.users) and all(str(user.target) in CHECKS for user in node.users)


def _is_symbolic(value: Any) -> bool:
    return isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool)


def _check_is_known(sizes: Sequence[Any], decided: Collection[str]) -> None:
    """Raises `UnsupportedError` for sizes that depend on data, except those in `decided`."""
    from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

    if any(not set(map(str, free_unbacked_symbols(size))) <= set(decided) for size in sizes):
        raise UnsupportedError("a size depends on data")


def known_text(meta: TensorMeta) -> list[int | str]:
    """A shape in the form that `call_dps` takes. Raises `UnsupportedError` for unknown extents."""
    return [extent if isinstance(extent, int) else show_extent(extent) for extent in known(meta.shape)]


def _used(node: Any) -> frozenset[int]:
    items = [user for user in node.users if user.target is python_operator.getitem]
    if len(items) < len(node.users):
        return frozenset(range(16))
    return frozenset(user.args[1] for user in items if user.users)


def _check_results(name: str, values: Sequence[Any], metas: Sequence[TensorMeta]) -> None:
    """Raises `CompileError` if a converter returned other types than PyTorch."""
    if len(values) != len(metas):
        raise CompileError(f"the converter of {name} gives {len(values)} results, PyTorch {len(metas)}")
    for value, meta in zip(values, metas, strict=True):
        if value is None:
            continue
        if meta.is_complex and isinstance(value, Complex):
            parts = [value.real, value.imaginary]
            _check_results(name, parts, [replace(meta, is_complex=False)] * 2)
            continue
        if not isinstance(value, Value) or meta.is_complex:
            raise CompileError(f"the converter of {name} gives {value!r}, which is not a value of a graph")
        fits = value.dtype == meta.dtype and value.ndim == len(meta.shape)
        pairs = zip(value.shape, meta.shape, strict=False)
        if not fits or any(isinstance(e, int) and isinstance(f, int) and e != f for e, f in pairs):
            raise CompileError(f"the converter of {name} gives {value!r}, PyTorch {meta}")


def _attribute(module: Any, path: str) -> Any:
    for name in path.split("."):
        module = getattr(module, name)
    return module


def _originals(node: Any, keywords: Mapping[str, Item]) -> dict[str, Item]:
    return {key: node.kwargs[key] if _is_plain(node.kwargs.get(key)) else item for key, item in keywords.items()}


def _is_plain(value: Any) -> bool:
    return isinstance(value, torch.dtype | torch.device | torch.layout | torch.memory_format)


def _runner(target: Any, leaves: Sequence[Item], spec: Any, call: TorchCall) -> Callable[..., None]:
    """The function also adds up the operator's time."""
    kinds = [
        Value if isinstance(leaf, Value) else Expression if isinstance(leaf, Expression) else None for leaf in leaves
    ]
    fixed = [leaf if kind is None else None for leaf, kind in zip(leaves, kinds, strict=True)]
    tensors, sizes = kinds.count(Value), kinds.count(Expression)

    def run(*given: Any) -> None:
        start = perf_counter()
        values, numbers = iter(given[:tensors]), iter(given[tensors : tensors + sizes])
        own = [
            next(values) if kind is Value else int(next(numbers)) if kind is Expression else leaf
            for leaf, kind in zip(fixed, kinds, strict=True)
        ]
        args, keywords = pytree.tree_unflatten(own, spec)
        with torch.no_grad():
            found = target(*args, **keywords)
        results = [found] if isinstance(found, torch.Tensor) else [t for t in found if isinstance(t, torch.Tensor)]
        for result, out in zip(results, given[tensors + sizes + 1 :], strict=True):
            out.copy_(result)
        call.calls += 1
        call.seconds += perf_counter() - start

    return run


def _problem(node: Any, error: Exception) -> Problem:
    reason = error.message if isinstance(error, CompileError) else str(error)
    return Problem(str(node.target), node.name, place_of(node), reason)


def array_of(tensor: Any) -> Any:
    """An array that shares the memory of a dense CPU tensor: bits of bfloat16, and types of ml_dtypes for others that
    NumPy lacks. Raises `CompileError` without that package."""
    dense = tensor.detach().resolve_neg().contiguous()
    name = dtype_name(dense.dtype)
    if name == "bfloat16":
        return dense.view(torch.int16).numpy().view("uint16")
    if not name.startswith("float8"):
        return dense.numpy()
    dtype = stored_dtype(name)
    if dtype is None:
        raise CompileError(f"arrays of {name} need the package ml_dtypes: pip install 'weft[types]'")
    return dense.view(torch.uint8).numpy().view(dtype)


def tensor_of(array: Any, dtype: str) -> Any:
    if dtype == "bfloat16" or dtype.startswith("float8"):
        bits = torch.from_numpy(array.view("int16" if dtype == "bfloat16" else "uint8"))
        return bits.view(torch_dtype(dtype))
    return torch.from_numpy(array)


Sizes: TypeAlias = Mapping[str, KnownExtent]
"""Extents that replace symbols."""
Imported: TypeAlias = tuple[Importer, ImportedModel, Sizes]
"""An import, and the symbols that turned out to be equal to other extents."""


class _UnsupportedOperatorsError(CompileError):
    """Raised if the model has unsupported operators."""


def import_model(
    program: Any,
    *,
    name: str = "main",
    params: str = "constants",
    fallback: bool = False,
    keep_orders: bool = False,
) -> tuple[BlockBuilder, ImportedModel]:
    """Convert an exported program to the function `name` of a builder.

    Parameters are the tensors that the model takes, buffers that it writes, and with `params="arguments"` the other
    parameters and buffers that it uses. Results are the outputs, followed by the new contents of buffers and inputs.
    With `keep_orders`, parameters for dense tensors that are not contiguous, such as channels_last, have the axes in
    the order of memory, unless the model writes them. Raises a `CompileError` that lists all unsupported operators.
    """
    if params not in ("constants", "arguments"):
        raise CompileError(f"from_torch: params is 'constants' or 'arguments', got '{params}'")
    decomposed_program = _decomposed(program)

    def write(fallback: bool, equal: Sizes) -> Imported:
        return _import_program(program, decomposed_program, name, params, fallback, keep_orders, equal)

    return _imported(write, fallback)


def _imported(write: Callable[[bool, Sizes], Imported], fallback: bool) -> tuple[BlockBuilder, ImportedModel]:
    """The error for unsupported operators includes the cost of `fallback=True`."""
    try:
        importer, model = _unified(partial(write, fallback))
    except _UnsupportedOperatorsError as error:

        def imported() -> ModuleOp:
            return _unified(partial(write, True))[0].builder.get()

        lines = [] if fallback else fallback_cost(imported, "torch", "PyTorch", "fallback=True")
        raise CompileError("\n".join([error.message, *lines])) from None
    for name, function in importer.functions.items():
        set_func(name, function, arrays="torch")
    return importer.builder, model


def _unified(write: Callable[[Sizes], Imported]) -> tuple[Importer, ImportedModel]:
    """Repeat `write` with the symbols that it finds to be equal, until there are no more."""
    equal: Sizes = {}
    while True:
        importer, model, found = write(equal)
        if found == importer.equal:
            return importer, model
        equal = found


def _import_program(
    exported: Any, program: Any, name: str, params: str, fallback: bool, keep_orders: bool, equal: Sizes
) -> Imported:
    signature = program.graph_signature
    nodes = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    options: dict[str, Any] = {"fallback": fallback, "ranges": _ranges(program), "keep_orders": keep_orders}
    importer = Importer(BlockBuilder(), equal, [*nodes.values()], **options)
    written = {spec.target for spec in signature.output_specs if spec.kind.name in _WRITES}
    model = ImportedModel(in_spec=program.call_spec.in_spec, out_spec=program.call_spec.out_spec)
    items: dict[Any, Item] = {}
    variables: list[tuple[Any, Argument]] = []
    for spec in signature.input_specs:
        node, kind = nodes[spec.arg.name], spec.kind.name
        if kind == "USER_INPUT":
            _take_input(importer, node, model, items, variables)
            continue
        if kind == "TOKEN":  # orders operators with effects, which are checks
            items[node] = None
            continue
        if kind not in ("PARAMETER", "BUFFER", "CONSTANT_TENSOR"):
            raise CompileError(f"from_torch: an input '{node.name}' of kind {kind} is not supported")
        tensor = program.state_dict.get(spec.target)
        tensor = program.constants[spec.target] if tensor is None else tensor
        if spec.target in written or (params == "arguments" and node.users):
            value = node.meta["val"]
            meta, order = importer.meta(value, node.name), importer.order(value)
            variables.append((node, Argument(importer.names[node], node.name, meta, state=spec.target, order=order)))
            model.state[spec.target] = tensor
        elif node.users:
            items[node] = model.fixed[spec.target] = tensor
    written |= {spec.target for spec in signature.output_specs if spec.kind.name == "USER_INPUT_MUTATION"}
    variables = [
        (node, replace(argument, order=None) if written & {argument.state, argument.node} else argument)
        for node, argument in variables
    ]
    variables.sort(key=lambda pair: pair[1].leaf is None)
    inputs = {a.leaf: a.size if a.is_size else a.meta.shape for _, a in variables if a.leaf is not None}
    leaves = [(inputs | model.constants).get(leaf) for leaf in range(model.leaves)]
    facts = call_preconditions(exported, leaves, importer.equal)
    sort_results = partial(_sorted_results, signature, model)
    found = _write_function(importer, name, program.graph_module, variables, items, model, sort_results, facts)
    if model.mutations:
        state = {**model.state, **model.fixed}
        check_state([*state], [*state.values()], [name in written for name in state])
    else:
        model.fixed.clear()
    return importer, model, found


def _decomposed(program: Any) -> Any:
    """PyTorch asserts that no written buffer is a view of another."""
    try:
        return decomposed(program)
    except AssertionError as error:
        taken = {spec.target for spec in program.graph_signature.input_specs}
        state = {name: tensor for name, tensor in program.state_dict.items() if name in taken}
        check_state([*state], [*state.values()], [True] * len(state))
        raise CompileError(f"from_torch: PyTorch cannot decompose the program: {error}") from error


def _take_input(
    importer: Importer,
    node: Any,
    model: ImportedModel,
    items: dict[Any, Item],
    variables: list[tuple[Any, Argument]],
) -> None:
    value, leaf = node.meta.get("val"), model.leaves
    model.leaves += 1
    name = importer.names[node]
    if isinstance(value, torch.Tensor):
        meta = importer.meta(value, node.name)
        variables.append((node, Argument(name, node.name, meta, leaf=leaf, order=importer.order(value))))
    elif isinstance(value, torch.SymInt):
        items[node] = extent_of(value, importer.equal)
        variables.append((node, Argument(name, node.name, _INTEGER, leaf=leaf, size=items[node])))
    else:
        items[node] = value
        model.constants[leaf] = value


_INTEGER: Final = TensorMeta((), "int64")
"""The type of arguments that are sizes."""


def _names(placeholders: Sequence[Any]) -> dict[Any, str]:
    """Names that are unique without numbers at their ends, which IR drops."""
    found: dict[Any, str] = {}
    for node in placeholders:
        found[node] = _free_name(node.name, found.values())
    return found


def _free_name(name: str, taken: Collection[str]) -> str:
    found = value_name(name)
    while found in taken:
        found += "_"
    return found


def _elements(names: Mapping[Any, str]) -> dict[str, KnownExtent]:
    """Extents for symbols that no axis of an input has: the integer input with that value, or a parameter of that
    name."""
    values = {node: node.meta.get("val") for node in names}
    tensors = [value for value in values.values() if isinstance(value, torch.Tensor)]
    extents = [extent_of(size, {}) for tensor in tensors for size in tensor.shape]
    bound = {solution.name for solution in solutions(extents)}
    found: dict[str, KnownExtent] = {}
    for node, value in values.items():
        size = extent_of(value, {}) if isinstance(value, torch.SymInt) else None
        extents.append(size)
        symbol_name = lone_name(size)
        if symbol_name is not None and symbol_name not in bound:
            found.setdefault(symbol_name, element_symbol(names[node], 0))
    others = {name for extent in extents for name in names_in(extent)} - bound - found.keys()
    for name in sorted(others):
        found[name] = element_symbol(_free_name(name, names.values()), 0)
    return found


def _ranges(program: Any) -> dict[str, tuple[int, int | None]]:
    return {
        str(size): (
            int(bounds.lower) if bounds.lower.is_Integer else -(1 << 63),
            int(bounds.upper) if bounds.upper.is_Integer else None,
        )
        for size, bounds in program.range_constraints.items()
        if size.is_Symbol
    }


def import_graph(
    module: Any, constants: Mapping[int, Any], *, fallback: bool = False
) -> tuple[BlockBuilder, ImportedModel]:
    """Convert a graph of ATen operators, as `torch.compile` passes to backends, to the function `main`. `constants` are
    tensors that replace inputs, by index. Raises `CompileError` as `import_model` does."""
    return _imported(partial(_import_graph, module, constants), fallback)


def _import_graph(module: Any, constants: Mapping[int, Any], fallback: bool, equal: Sizes) -> Imported:
    placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
    importer = Importer(BlockBuilder(), equal, placeholders, fallback=fallback, keep_orders=True)
    model = ImportedModel()
    items: dict[Any, Item] = {}
    variables: list[tuple[Any, Argument]] = []
    for node in placeholders:
        if model.leaves in constants:
            items[node] = constants[model.leaves]
            model.leaves += 1
        else:
            _take_input(importer, node, model, items, variables)

    def sort_results(found: Sequence[Item]) -> list[Value]:
        results: list[Value] = []
        for item, node in zip(found, _output_nodes(module), strict=True):
            order = importer.order(node.meta["val"]) if isinstance(item, Value) else None
            if isinstance(item, Value):
                model.outputs.append(Output(len(results), order=order))
                results.append(item if order is None else apply("transpose", item, list(order)))
            else:
                model.outputs.append(Output(value=item))
        return results

    return importer, model, _write_function(importer, "main", module, variables, items, model, sort_results)


def _write_function(
    importer: Importer,
    name: str,
    module: Any,
    variables: Sequence[tuple[Any, Argument]],
    items: dict[Any, Item],
    model: ImportedModel,
    sort_results: Callable[[Sequence[Item]], list[Value]],
    preconditions: Sequence[str] = (),
) -> Sizes:
    """`sort_results` selects the function's results from those of the graph. Calls check the `preconditions` on extents
    of `variables`. Returns the symbols that are equal to other extents."""
    builder = importer.builder
    shown = {extent for _, argument in variables if not argument.is_size for extent in argument.meta.shape}
    variables = [pair for pair in variables if not pair[1].is_size or pair[1].size not in shown]
    values = {node: var(a.name, known_text(a.in_memory), a.meta.dtype) for node, a in variables}
    model.arguments = [argument for _, argument in variables]
    sizes = _unbound_sizes(model.arguments)
    parameters = [*values.values(), *(var(a.name, (), a.meta.dtype) for a in sizes)]
    model.arguments += sizes
    bound = {name for argument in model.arguments for extent in argument.extents for name in names_in(extent)}
    facts = [fact for fact in preconditions if bound.issuperset(CallPrecondition(fact).names)]
    facts = list(dict.fromkeys((*facts, *chain.from_iterable(map(importer.size_facts, model.arguments)))))
    with builder.function(name, parameters, {PRECONDITIONS: facts} if facts else None):
        with builder.dataflow():
            for node, argument in variables:
                items.setdefault(node, _in_shape(values[node], argument.order))
            for node, item in items.items():
                if isinstance(item, torch.Tensor):
                    items[node] = importer.constant(item, node.name)
            converted = [importer.as_result(item) for item in importer.convert(module, items)]
            results = sort_results(converted)
            model.outputs = [
                replace(output, is_size=results[output.result] in importer.sizes)
                if output.result is not None
                else output
                for output in model.outputs
            ]
            names = [lone_name(extent) for value in values.values() for extent in value.shape]
            order = list(dict.fromkeys(name for name in names if name is not None))
            found = unified(assumed_equal(result.ssa for result in results), importer.equal, order)
            model.dtypes = [result.dtype for result in results]
            outputs = [builder.emit_output(Value(result.ssa)) for result in results]
        if importer.problems:
            raise _UnsupportedOperatorsError(_report(importer.problems))
        if not outputs:
            raise CompileError("from_torch: the model returns and writes no tensor")
        builder.emit_func_output(outputs)
    model.in_torch = importer.in_torch
    return found


def back(order: Sequence[int]) -> list[int]:
    return [order.index(axis) for axis in range(len(order))]


def _in_shape(value: Value, order: Sequence[int] | None) -> Value:
    return value if order is None else apply("transpose", value, back(order))


def _output_nodes(module: Any) -> list[Any]:
    output = next(node for node in module.graph.nodes if node.op == "output")
    return pytree.tree_leaves(output.args[0], is_leaf=_is_none)


def _sorted_results(signature: Any, model: ImportedModel, found: Sequence[Item]) -> list[Value]:
    """Outputs that are tensors, followed by the new contents of buffers and inputs."""
    results: list[Value] = []
    pairs = list(zip(signature.output_specs, found, strict=True))
    for spec, item in pairs:
        if spec.kind.name == "USER_OUTPUT":
            model.outputs.append(Output(len(results)) if isinstance(item, Value) else Output(value=item))
            results += [item] if isinstance(item, Value) else []
    for spec, item in pairs:
        if spec.kind.name in _WRITES:
            model.mutations.append(Mutation(len(results), state=spec.target))
        elif spec.kind.name == "USER_INPUT_MUTATION":
            leaf = next(argument.leaf for argument in model.arguments if argument.node == spec.target)
            model.mutations.append(Mutation(len(results), leaf=leaf))
        elif spec.kind.name in ("USER_OUTPUT", "TOKEN"):
            continue
        else:
            raise CompileError(f"from_torch: an output of kind {spec.kind.name} is not supported")
        results.append(item)
    return results


def _unbound_sizes(arguments: Sequence[Argument]) -> list[Argument]:
    """The caller computes the names in extents that are elements of no other argument."""
    names = {name for argument in arguments for extent in argument.extents for name in names_in(extent)}
    elements = {name: element_of_name(name) for name in sorted(names)}
    given = {argument.name for argument in arguments}
    return [
        Argument(found[0], found[0], _INTEGER, size=symbol(name))
        for name, found in elements.items()
        if found is not None and found[0] not in given
    ]


def _report(problems: Sequence[Problem]) -> str:
    groups: dict[tuple[str, str], list[Problem]] = {}
    for problem in problems:
        groups.setdefault((problem.operator, problem.reason), []).append(problem)
    lines = [f"from_torch: {len(groups)} operator{'s are' if len(groups) > 1 else ' is'} not supported:"]
    for (operator, reason), found in groups.items():
        times = f" ({len(found)} times)" if len(found) > 1 else ""
        place = f", {found[0].place}" if found[0].place else ""
        lines.append(f"  {operator}{times}{': ' if reason else ''}{reason}; node '{found[0].node}'{place}")
    if not all(problem.reason for problem in problems):
        lines.append("weft.torch.register adds a converter")
    return "\n".join(lines)
