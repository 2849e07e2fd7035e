"""Compiled PyTorch models: callables on tensors."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects.builtin import ModuleOp

from weft.dialects.graph_shapes import Expression, evaluate, lone_name, names_in
from weft.driver.build import build
from weft.support.call_arguments import bind_arguments, described

if TYPE_CHECKING:
    from weft.frontends.torch.importing import Argument, ImportedModel, Output, TorchCall
    from weft.runtime.library import Library
    from weft.support.call_signature import Signature
    from weft.support.target import Target


def compile(
    model: Any,
    example_inputs: Sequence[Any] | None = None,
    example_keywords: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    target: Target | str = "llvm",
    params: str = "constants",
    fallback: bool = False,
    checked: bool = False,
    cache: bool = True,
    precision: str = "",
) -> CompiledModel:
    """Compile a PyTorch model: a `torch.nn.Module` or `torch.fx.GraphModule` with example inputs, or a
    `torch.export.ExportedProgram`. The result accepts and returns tensors on the CPU like the model.

        fast = weft.compile(model.eval(), (x,))
        y = fast(x)

    Weights are constants, unaffected by later writes, unless `params="arguments"`. Buffers that the model writes are
    updated. With `checked`, a call raises `IndexError` for indices out of range and `ZeroDivisionError` for integer
    divisions by zero, as PyTorch does. `precision` is that of products (`weft.build`). Raises the errors of
    `weft.from_torch` and `weft.build`.
    """
    if isinstance(model, ModuleOp | str | os.PathLike):
        kind = "a module" if isinstance(model, ModuleOp) else "a program as text or in a file"
        raise TypeError(f"weft.compile compiles a model of PyTorch: weft.build compiles {kind}")
    from weft.frontends.torch.exporting import exported  # needs torch
    from weft.frontends.torch.importing import import_model  # needs torch

    program = exported(model, example_inputs, example_keywords, dynamic_shapes, "weft.compile")
    builder, imported = import_model(program, params=params, fallback=fallback, keep_orders=True)
    written = {mutation.state if mutation.leaf is None else mutation.leaf for mutation in imported.mutations}
    donate = [a.name for a in imported.arguments if (a.state if a.leaf is None else a.leaf) in written]
    library = build(builder.get(), target=target, checked=checked, cache=cache, donate=donate, precision=precision)
    return CompiledModel(library, imported)


class CompiledModel:
    """A compiled model, called like the original.

    Tensors in the layout of the example inputs (contiguous, or dense with the axes in another order, such as
    channels_last) are used in place, others copied. Raises `TypeError` for inputs of another structure, kind or element
    type, `ValueError` for shapes that the model was not exported for, and for a written tensor that shares memory with
    another input, parameter or buffer.
    """

    def __init__(self, library: Library, model: ImportedModel) -> None:
        from weft.frontends.torch.importing import Output, back  # needs torch
        from weft.frontends.torch.library import pytree  # needs torch
        from weft.frontends.torch.shared_memory import WrittenTensors  # needs torch

        self.library = library
        """The compiled program: `library.report()`, `library.export(...)`."""
        self._function = library["main"]
        self._model, self._pytree = model, pytree
        self._is_flat = model.in_spec is None or _is_flat(model.in_spec, pytree)
        self._checks = [_check(a) for a in model.arguments if a.leaf is not None]
        self._readers = [_reader(argument, model) for argument in model.arguments]
        orders = {argument.name: argument.order for argument in model.arguments if argument.order is not None}
        self._in_shape = {name: back(order) for name, order in orders.items()}
        """Maps a parameter with permuted axes to the function from the axes in memory order to the order of the
        tensor."""
        self._places = _places(model.arguments)
        self._has_checks = bool(self._places or model.constants)
        self._makers = [_maker(output, model.dtypes) for output in model.outputs]
        written = [mutation.result for mutation in model.mutations]
        self._written = {place: _maker(Output(place), model.dtypes) for place in written}
        tensors = {a.leaf: a.name for a in model.arguments if a.leaf is not None and not a.is_size}
        changed = {mutation.state if mutation.leaf is None else mutation.leaf for mutation in model.mutations}
        self._memory = WrittenTensors(tensors, model.state, model.fixed, changed) if changed else None
        self._is_single = model.out_spec is not None and model.out_spec.is_leaf()

    @property
    def in_torch(self) -> Sequence[TorchCall]:
        """The operators that PyTorch runs (`fallback=True`, and random numbers): places in the model, reasons, numbers
        of calls, and seconds."""
        return tuple(self._model.in_torch)

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        leaves = args if self._is_flat and not keywords else self._flattened(args, keywords)
        if len(leaves) != self._model.leaves:
            raise TypeError(f"the model takes {self._model.leaves} inputs, got {len(leaves)}")
        for check in self._checks:
            check(leaves)
        sizes = self._sizes(leaves) if self._has_checks else {}
        arguments = [read(leaves, sizes) for read in self._readers]
        if self._memory is not None:
            self._memory.check(leaves)
        found = self._run(arguments)
        results = cast("tuple[Any, ...]", found) if isinstance(found, tuple) else (found,)
        outputs = [make(results, sizes) for make in self._makers]
        for mutation in self._model.mutations:
            target = (
                leaves[mutation.leaf] if mutation.leaf is not None else self._model.state[cast("str", mutation.state)]
            )
            made = self._written[mutation.result](results, sizes)
            if made.data_ptr() != target.data_ptr():
                target.detach().copy_(made)
        if self._is_single:
            return outputs[0]
        return outputs if self._model.out_spec is None else self._pytree.tree_unflatten(outputs, self._model.out_spec)

    def _run(self, arguments: Sequence[Any]) -> Any:
        try:
            return self._function(*arguments)
        except ValueError:
            if self._in_shape:
                _check_in_shape(self._function.signature, arguments, self._in_shape)
            raise

    def _flattened(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> Sequence[Any]:
        """The flattened inputs. Raises `TypeError` for another structure than the export's."""
        spec = self._model.in_spec
        if keywords:
            known = self._pytree.tree_unflatten([None] * spec.num_leaves, spec)[1]
            if keywords.keys() == known.keys():
                keywords = {name: keywords[name] for name in known}
        leaves, given = self._pytree.tree_flatten((args, keywords))
        if given != spec:
            raise TypeError(f"the inputs are {_shown(given)}, but the model was exported with {_shown(spec)}")
        return leaves

    def _sizes(self, leaves: Sequence[Any]) -> dict[str, int]:
        """The symbolic sizes. Raises `ValueError` for those that the model was not exported for."""
        for leaf, value in self._model.constants.items():
            if type(leaves[leaf]) is not type(value) or leaves[leaf] != value:
                raise ValueError(f"input {leaf} is {leaves[leaf]!r}, but the model was exported with {value!r}")
        sizes: dict[str, int] = {}
        for place in self._places:
            place.read(leaves, sizes)
        return sizes

    def __repr__(self) -> str:
        return f"<compiled model {self._function.signature}>"


@dataclass(frozen=True)
class _SizeSource:
    """An axis of an input whose extent is symbolic, or an input that is a size."""

    argument: Argument
    axis: int
    extent: Expression
    gives: str | None
    """The name to solve for; None if the extent is only checked."""

    def read(self, leaves: Sequence[Any], sizes: dict[str, int]) -> None:
        leaf = leaves[cast("int", self.argument.leaf)]
        shape = getattr(leaf, "shape", ())
        if not self.argument.is_size and len(shape) <= self.axis:
            return  # the call reports the wrong rank
        size = leaf if self.argument.is_size else shape[self.axis]
        if self.gives is not None and self.gives not in sizes:
            sizes[self.gives] = _solved(self.extent, self.gives, size)
        wanted = evaluate(self.extent, sizes)
        if wanted != size:
            raise ValueError(f"{self} is {size}, but the model was exported for {self.extent}, which is {wanted}")

    def __str__(self) -> str:
        return f"input '{self.argument.name}'" + ("" if self.argument.is_size else f", dimension {self.axis},")


def _places(arguments: Sequence[Argument]) -> list[_SizeSource]:
    """The extents are ordered so that each has at most one name that does not occur before."""
    open_places = [
        (argument, axis, extent)
        for argument in arguments
        if argument.leaf is not None
        for axis, extent in enumerate(argument.extents)
        if isinstance(extent, Expression)
    ]
    found: list[_SizeSource] = []
    known: set[str] = set()
    open_places.sort(key=lambda place: lone_name(place[2]) is None)
    while open_places:
        chosen = next((place for place in open_places if len(names_in(place[2]) - known) <= 1), open_places[0])
        open_places.remove(chosen)
        new = names_in(chosen[2]) - known
        known |= new
        found.append(_SizeSource(*chosen, gives=min(new, default=None)))
    return found


def _solved(extent: Expression, name: str, size: int) -> int:
    terms = dict(extent.terms)
    factor, offset = terms.get((name,), 1), terms.get((), 0)
    return (size - offset) // factor


def _check(argument: Argument) -> Callable[[Sequence[Any]], None]:
    """Raises `TypeError` unless an input is of the argument's kind: an integer, or a dense CPU tensor of its element
    type."""
    from weft.frontends.torch.library import torch  # needs torch
    from weft.frontends.torch.symbols import torch_dtype  # needs torch

    leaf, name = cast("int", argument.leaf), argument.name
    dtype, strided = torch_dtype(argument.meta.dtype), torch.strided

    def check_integer(leaves: Sequence[Any]) -> None:
        if type(leaves[leaf]) is not int:
            raise TypeError(f"input '{name}': expected an int, got {described(leaves[leaf])}")

    if argument.is_size:
        return check_integer

    def check(leaves: Sequence[Any]) -> None:
        tensor = leaves[leaf]
        if not isinstance(tensor, torch.Tensor):
            found = type(tensor).__name__
        elif tensor.device.type != "cpu":
            found = f"one on {tensor.device}"
        elif tensor.layout is not strided or tensor.is_nested or tensor.is_quantized:
            kind = "quantized" if tensor.is_quantized else "nested" if tensor.is_nested else "no"
            found = f"one of {kind} layout" if kind != "no" else f"one of layout {_word(tensor.layout)}"
        elif tensor.dtype is not dtype:
            found = _word(tensor.dtype)
        else:
            return
        raise TypeError(f"input '{name}': expected a dense tensor of {_word(dtype)} on the CPU, got {found}")

    return check


def _word(constant: object) -> str:
    return str(constant).removeprefix("torch.")


def _reader(argument: Argument, model: ImportedModel) -> Callable[[Sequence[Any], Mapping[str, int]], Any]:
    from weft.frontends.torch.importing import array_of  # needs torch

    leaf, name = argument.leaf, argument.name
    if argument.is_size:
        return lambda leaves, sizes: sizes[str(argument.size)] if leaf is None else leaves[leaf]
    order = argument.order

    def in_memory(tensor: Any) -> Any:
        return tensor if order is None or tensor.ndim != len(order) else tensor.permute(order)

    if leaf is None:
        state = in_memory(model.state[cast("str", argument.state)])
        return lambda leaves, sizes: array_of(state)

    is_plain = argument.meta.dtype != "bfloat16" and not argument.meta.dtype.startswith("float8")

    def read(leaves: Sequence[Any], sizes: Mapping[str, int]) -> Any:
        tensor = leaves[leaf] if order is None else in_memory(leaves[leaf])
        try:
            is_ready = is_plain and tensor.is_contiguous() and not tensor.requires_grad and not tensor.is_neg()
            return tensor.numpy() if is_ready else array_of(tensor)
        except (RuntimeError, TypeError, ValueError) as error:  # a tensor without memory, such as a tracer's
            raise TypeError(f"input '{name}': {type(tensor).__name__} has no array: {error}") from None

    return read


def _check_in_shape(signature: Signature, arguments: Sequence[Any], axes: Mapping[str, Sequence[int]]) -> None:
    """Raises the error of a call in terms of the tensors' axes, which `axes` permutes."""

    def turned(spec: Any, array: Any) -> tuple[Any, Any]:
        order = axes.get(spec.name)
        if order is None:
            return spec, array
        is_whole = getattr(array, "ndim", None) == len(order)
        shape = tuple(spec.shape[axis] for axis in order)
        return replace(spec, shape=shape), array.transpose(order) if is_whole else array

    pairs = [turned(spec, array) for spec, array in zip(signature.args, arguments, strict=False)]
    specs = (*(spec for spec, _ in pairs), *signature.args[len(pairs) :])
    bind_arguments(replace(signature, args=specs), [array for _, array in pairs], {}, copied=True)


def _maker(output: Output, dtypes: Sequence[str]) -> Callable[[Sequence[Any], Mapping[str, int]], Any]:
    from weft.frontends.torch.importing import back, tensor_of  # needs torch

    place, value = output.result, output.value
    if place is not None:
        dtype = dtypes[place]
        if output.is_size:
            return lambda results, sizes: int(results[place])
        if output.order is not None:
            axes = back(output.order)
            return lambda results, sizes: tensor_of(results[place], dtype).permute(axes)
        return lambda results, sizes: tensor_of(results[place], dtype)
    if isinstance(value, Expression):
        return lambda results, sizes: evaluate(value, sizes)
    return lambda results, sizes: value


def _is_flat(spec: Any, pytree: Any) -> bool:
    args, keywords = pytree.tree_unflatten([0] * spec.num_leaves, spec)
    return not keywords and all(type(item) is int for item in args)


def _shown(spec: Any) -> str:
    from weft.frontends.torch.library import pytree  # needs torch

    args, keywords = pytree.tree_unflatten(["*"] * spec.num_leaves, spec)
    parts = [*(str(arg) for arg in args), *(f"{name}={value}" for name, value in keywords.items())]
    return f"({', '.join(parts)})".replace("'*'", "*")
