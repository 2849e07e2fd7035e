"""`torch.compile(model, backend="weft")`."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from importlib import import_module
from typing import Any

from weft.driver.build import build
from weft.driver.torch_models import CompiledModel
from weft.support.argument_types import shown
from weft.support.errors import did_you_mean

_OPTIONS = ("params", "fallback", "target", "precision")


def weft_backend(module: Any, example_inputs: Sequence[Any], *, options: Mapping[str, Any] | None = None) -> Any:
    """Compiles one graph as the backend `weft` of `torch.compile`, and returns a callable.

        fast = torch.compile(model.eval(), backend="weft", options={"target": "llvm -mcpu=haswell"})

    Without gradients, parameters and buffers become constants when a graph first runs (`params="constants"`), and
    arguments if they change later. Graphs with gradients run forward in weft, backward in PyTorch. Operators that weft
    lacks run in PyTorch (`fallback=True`). A graph without gradients whose modules are in training mode computes what
    PyTorch does, with a warning. Raises `ValueError` for other options, `CompileError` for unsupported operators. A
    call raises `ValueError` if inputs, one of them written, share memory differently than when traced.
    """
    common = import_module("torch._dynamo.backends.common")
    boxed = import_module("functorch.compile").make_boxed_func
    from weft.frontends.torch.exporting import core_decompositions  # needs torch
    from weft.frontends.torch.training_mode import warn_of_training_mode  # needs torch

    given: dict[str, Any] = {
        "params": "constants",
        "fallback": True,
        "target": "llvm",
        "precision": "",
        **(options or {}),
    }
    unknown = next((name for name in given if name not in _OPTIONS), None)
    if unknown is not None:
        raise ValueError(f"backend 'weft': there is no option {shown(unknown)}{did_you_mean(unknown, _OPTIONS)}")

    def forward(graph: Any, inputs: Sequence[Any]) -> Any:
        return boxed(CompiledGraph(graph, (), given["fallback"], given["target"], given["precision"]))

    def inference(graph: Any, inputs: Sequence[Any]) -> Any:
        warn_of_training_mode(module, "backend 'weft'")
        fixed = _fixed_inputs() if given["params"] == "constants" else ()
        return boxed(CompiledGraph(graph, fixed, given["fallback"], given["target"], given["precision"]))

    def backward(graph: Any, inputs: Sequence[Any]) -> Any:
        return boxed(graph.forward)

    compiler = common.aot_autograd(
        fw_compiler=forward,
        bw_compiler=backward,
        inference_compiler=inference,
        decompositions=core_decompositions(),
    )
    return _with_checked_memory(compiler(module, example_inputs), module)


def _with_checked_memory(compiled: Callable[..., Any], module: Any) -> Callable[..., Any]:
    """Checks whether inputs share memory if the graph writes one."""
    from weft.frontends.torch.shared_memory import TracedOverlaps  # needs torch

    metadata = _metadata()
    info = () if metadata is None else metadata.input_info
    if not any(one.mutates_data for one in info):
        return compiled
    names = [node.name for node in module.graph.nodes if node.op == "placeholder"]
    memory = TracedOverlaps(names, [one.mutates_data for one in info] if len(info) == len(names) else None)

    def call(*inputs: Any) -> Any:
        memory.check(inputs)
        return compiled(*inputs)

    return call


def _metadata() -> Any:
    context = import_module("torch._guards").TracingContext.try_get()
    return None if context is None else context.fw_metadata


def _fixed_inputs() -> Sequence[int]:
    metadata = _metadata()
    if metadata is None:
        return ()
    written = {at for at, info in enumerate(metadata.input_info) if info.mutates_data or info.mutates_metadata}
    return [at for at in metadata.static_input_indices if at not in written]


class CompiledGraph:
    """A graph of ATen operators, compiled on the first call.

    PyTorch computes outputs that are views of inputs, of other outputs, or of one tensor: callers depend on their
    strides and offsets, derive other views from them, and read through one view elements written through another.
    """

    def __init__(self, graph: Any, fixed: Sequence[int], fallback: bool, target: str, precision: str) -> None:
        outputs = list(next(node for node in graph.graph.nodes if node.op == "output").args[0])
        self._count = len(outputs)
        outputs += _shared_results(outputs)
        roots = [_root_of_view(output, outputs) for output in outputs]
        self._views = {at: _View(outputs[at], root, outputs) for at, root in enumerate(roots) if root is not None}
        computed = [at for at in range(len(outputs)) if at not in self._views]
        if not any(hasattr(getattr(outputs[at], "meta", {}).get("val"), "stride") for at in computed):
            # PyTorch computes the sizes among the outputs.
            self._views |= {at: _View(outputs[at], None, outputs) for at in computed}
            computed = []
        self._graph = _with_outputs(graph, [outputs[at] for at in computed]) if self._views else graph
        self._placeholders = [node for node in graph.graph.nodes if node.op == "placeholder"]
        self._fallback, self._target, self._precision = fallback, target, precision
        self._fixed: dict[int, tuple[Any, int]] = dict.fromkeys(fixed, (None, 0))
        """The inputs that are constants: the tensors, and their versions at compile time."""
        self._run: CompiledModel | None = None
        self._orders = {at: _order_of_axes(getattr(outputs[at], "meta", {}).get("val")) for at in computed}

    def __call__(self, *inputs: Any) -> list[Any]:
        if not self._orders:
            return self._with_views({}, inputs)
        if self._run is not None and any(
            inputs[at] is not tensor or _version(tensor) != version for at, (tensor, version) in self._fixed.items()
        ):
            self._fixed, self._run = {}, None
        if self._run is None:
            self._fixed = {at: (inputs[at], _version(inputs[at])) for at in self._fixed}
            self._run = self._compiled()
        values = zip(self._run(*inputs), self._orders.items(), strict=True)
        found = {at: value if order is None else order(value) for value, (at, order) in values}
        return self._with_views(found, inputs) if self._views else list(found.values())

    def _with_views(self, found: dict[int, Any], inputs: Sequence[Any]) -> list[Any]:
        given = dict(zip(self._placeholders, inputs, strict=True))
        for at in self._views:
            self._view(at, found, given)
        return [found[at] for at in range(self._count)]

    def _view(self, at: int, found: dict[int, Any], given: Mapping[Any, Any]) -> Any:
        if at not in found:
            view = self._views[at]
            root = given.get(view.root) if view.of is None else self._view(view.of, found, given)
            found[at] = view.made(root, given)
        return found[at]

    def _compiled(self) -> CompiledModel:
        from weft.frontends.torch.importing import import_graph  # needs torch

        constants = {at: tensor for at, (tensor, _) in self._fixed.items()}
        builder, imported = import_graph(self._graph, constants, fallback=self._fallback)
        return CompiledModel(build(builder.get(), target=self._target, precision=self._precision), imported)


def _shared_results(outputs: Sequence[Any]) -> list[Any]:
    bases = Counter(_base_of_view(output, outputs) for output in outputs)
    return [
        base
        for base, count in bases.items()
        if count > 1 and getattr(base, "op", "") == "call_function" and base not in outputs
    ]


def _root_of_view(node: Any, outputs: Sequence[Any]) -> Any:
    """The input or other output that an output is a view of, or None."""
    root = _base_of_view(node, outputs)
    is_known = hasattr(root, "op") and (root.op == "placeholder" or root in outputs)
    return root if is_known and root is not node else None


def _base_of_view(node: Any, outputs: Sequence[Any]) -> Any:
    """The input, other output, or result of an operator that an output views, or the output itself."""
    base = node
    while hasattr(base, "op") and base.op == "call_function" and (base is node or base not in outputs):
        source = base
        while source.target is operator.getitem and hasattr(source.args[0], "target"):
            source = source.args[0]
        if not _is_view(source.target):
            break
        base = source.args[0]
    return base


def _is_view(target: Any) -> bool:
    """Whether an operator of PyTorch returns a view of its first argument without writing it."""
    schema = getattr(target, "_schema", None)
    alias = schema.arguments[0].alias_info if schema is not None and schema.arguments else None
    return alias is not None and not alias.is_write


class _View:
    def __init__(self, output: Any, root: Any, outputs: Sequence[Any]) -> None:
        self.root = root
        self.of = list(outputs).index(root) if root in outputs else None
        """The index of the output that it is a view of; None for a view of an input."""
        self._output = output
        needed: dict[Any, None] = {}

        def need(node: Any) -> None:
            if hasattr(node, "op") and node not in needed and node is not root and node.op != "placeholder":
                for operand in node.all_input_nodes:
                    need(operand)
                needed[node] = None

        need(output)
        self._nodes = list(needed)

    def made(self, root: Any, given: Mapping[Any, Any]) -> Any:
        """`given` are the inputs of the graph, which determine the sizes of the view."""
        from torch.fx.node import map_arg

        values = {**given, self.root: root}
        for node in self._nodes:
            arguments, keywords = map_arg((node.args, node.kwargs), lambda operand: values[operand])
            values[node] = node.target(*arguments, **keywords)
        return values[self._output] if hasattr(self._output, "op") else self._output


def _with_outputs(module: Any, outputs: Sequence[Any]) -> Any:
    from torch.fx import GraphModule

    graph = deepcopy(module.graph)
    copies = {node.name: node for node in graph.nodes}
    output = next(node for node in graph.nodes if node.op == "output")
    output.args = (tuple(copies[one.name] if hasattr(one, "op") else one for one in outputs),)
    graph.eliminate_dead_code()
    return GraphModule(module, graph)


def _version(tensor: Any) -> int:
    """0 for tensors of inference mode, which count no writes."""
    return 0 if tensor.is_inference() else tensor._version


def _order_of_axes(value: Any) -> Callable[[Any], Any] | None:
    """Converts a dense tensor to the memory layout traced by PyTorch; None if contiguous."""
    if not hasattr(value, "stride") or not hasattr(value, "is_contiguous") or value.is_contiguous():
        return None
    strides = value.stride()
    order = sorted(range(len(strides)), key=lambda axis: -int(strides[axis]))
    back = [order.index(axis) for axis in range(len(order))]
    return lambda tensor: tensor.permute(order).contiguous().permute(back)
