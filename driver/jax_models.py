"""Compiled JAX functions: callables on pytrees of arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, cast

import numpy as np

from weft.driver.build import build
from weft.driver.programs import parse
from weft.frontends.graph_builder import BlockBuilder
from weft.frontends.jax_export import exported, jax_module, parameter_names, parameters, readable_array
from weft.frontends.stablehlo_graph import import_stablehlo

if TYPE_CHECKING:
    from weft.runtime.library import Library
    from weft.support.target import Target

P = ParamSpec("P")
R = TypeVar("R")


def import_exported(program: Any, function: Any, builder: BlockBuilder, name: str) -> None:
    """Add an exported JAX function to a builder as the graph function `name`. Raises `CompileError`."""
    module = parse(program.mlir_module(), f"<{program.fun_name}>")
    names = parameter_names(program, function)
    import_stablehlo(builder, module, parameters(program, module, names), name)


def jax_jit(
    function: Callable[P, R],
    *,
    shapes: Any = None,
    constraints: Sequence[str] = (),
    target: Target | str = "llvm",
    checked: bool = False,
    cache: bool = True,
) -> JaxFunction[P, R]:
    """Compile a JAX function: `weft.jax_jit(f)` for `jax.jit(f)`.

        fast = weft.jax_jit(model.apply)
        y = fast(params, x)
        gradient = weft.jax_jit(jax.grad(loss))

    The result accepts and returns pytrees of arrays on the CPU, without copies. A program is compiled on the first call
    with each structure, shape and element type of the arguments. `shapes` names symbolic dimensions, whose sizes share
    one program, as in `jax.export.symbolic_args_specs`: `shapes=(None, "batch, ...")`, with `constraints` such as
    `"batch >= 2"`.

    Bind other arguments, such as functions and text, by `functools.partial`. The result is not differentiable:
    differentiate first. A call raises `TypeError` for arguments that are not arrays, `CompileError` for unsupported
    ops, and whatever `jax.export` raises.
    """
    options = {"target": target, "checked": checked, "cache": cache}
    return JaxFunction(function, shapes, constraints, options)


class JaxFunction(Generic[P, R]):
    def __init__(
        self, function: Callable[P, R], shapes: Any, constraints: Sequence[str], options: dict[str, Any]
    ) -> None:
        if not callable(function):
            raise TypeError(f"jax_jit: expected a function, got {type(function).__name__}")
        self._function, self._shapes, self._constraints, self._options = function, shapes, constraints, options
        self._compiled: dict[object, _Compiled] = {}
        self._jax, self._tree = jax_module(), jax_module("jax.tree_util")
        self.__wrapped__ = function
        self.__doc__ = function.__doc__
        self.__name__ = getattr(function, "__name__", "function")

    def __call__(self, *args: P.args, **keywords: P.kwargs) -> R:
        leaves, tree = self._tree.tree_flatten((args, keywords))
        leaves = [readable_array(leaf) for leaf in leaves]
        key = (tree, *(self._kind(leaf) for leaf in leaves))
        compiled = self._compiled.get(key)
        if compiled is None:
            program = exported(self._function, args, dict(keywords), self._shapes, self._constraints)
            compiled = self._compiled[key] = _Compiled(program, self._function, self._options)
        return compiled(leaves)

    def _kind(self, leaf: Any) -> object:
        """A leaf's part of a program's key. Raises `TypeError` unless it is an array or a number."""
        if isinstance(leaf, bool | int | float):
            return type(leaf)
        shape, dtype = getattr(leaf, "shape", None), getattr(leaf, "dtype", None)
        if shape is None or dtype is None:
            raise TypeError(
                f"{self.__name__}: arguments are arrays and numbers, got {type(leaf).__name__}: bind others by "
                "functools.partial"
            )
        if isinstance(leaf, self._jax.core.Tracer):
            raise TypeError(
                f"{self.__name__} is compiled by weft and cannot be transformed by JAX: transform first, "
                "weft.jax_jit(jax.grad(f))"
            )
        return (len(shape) if self._shapes is not None else shape, dtype)

    @property
    def libraries(self) -> Sequence[Library]:
        """The programs compiled so far: `library.report()`, `library.export(...)`."""
        return [compiled.library for compiled in self._compiled.values()]


class _Compiled:
    def __init__(self, program: Any, function: Any, options: dict[str, Any]) -> None:
        builder = BlockBuilder()
        import_exported(program, function, builder, "main")
        self.library = build(builder.get(), **options)
        self._call = self.library["main"]
        self._kept = list(program.module_kept_var_idx)
        self._readers = [_reader(program.in_avals[at]) for at in self._kept]
        self._writers = [_writer(aval) for aval in program.out_avals]
        self._tree, self._out = jax_module("jax.tree_util"), program.out_tree

    def __call__(self, leaves: Sequence[Any]) -> Any:
        arrays = [read(leaves[at]) for at, read in zip(self._kept, self._readers, strict=True)]
        found = self._call(*arrays)
        results = cast("tuple[Any, ...]", found) if isinstance(found, tuple) else (found,)
        outputs = [write(result) for write, result in zip(self._writers, results, strict=True)]
        return self._tree.tree_unflatten(self._out, outputs)


_KEYS = {"key<fry>": "threefry2x32", "key<rbg>": "rbg", "key<urbg>": "unsafe_rbg"}
"""Maps an element type of random keys to the name of its generator."""


def _is_key(aval: Any) -> bool:
    """Whether an array contains random keys, which are rows of unsigned integers."""
    jax = jax_module()
    return bool(jax.dtypes.issubdtype(aval.dtype, jax.dtypes.prng_key))


def _reader(aval: Any) -> Callable[[Any], Any]:
    """A function from a leaf to an array over the same memory, with the element type of the program."""
    jax = jax_module()
    if _is_key(aval):
        return lambda leaf: np.asarray(jax.random.key_data(leaf))
    dtype = np.dtype(aval.dtype)

    def read(leaf: Any) -> Any:
        return np.asarray(leaf, dtype, order="C")

    return read


def _writer(aval: Any) -> Callable[[Any], Any]:
    jax = jax_module()
    if _is_key(aval):
        implementation = _KEYS.get(str(aval.dtype))
        return lambda array: jax.random.wrap_key_data(jax.numpy.asarray(array), impl=implementation)
    dtype = np.dtype(aval.dtype)
    if dtype.kind not in "biufc":
        return lambda array: jax.numpy.asarray(array.view(dtype))
    return lambda array: jax.dlpack.from_dlpack(array)
