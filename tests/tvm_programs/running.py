"""Running programs that are written for TVM 0.27: by TVM, or by weft under TVM's names."""

import numpy as np

import tvm
from tvm.s_tir import Schedule

RTOL, ATOL = 2e-4, 2e-5


def data(*shape, dtype="float32", seed=0):
    """Numbers between -1 and 1, or small integers."""
    draw = np.random.default_rng(seed + len(shape))
    return draw.integers(-8, 8, shape).astype(dtype) if "int" in dtype else draw.uniform(-1, 1, shape).astype(dtype)


def run(mod, *arrays, name="main"):
    """Compile a function of block loops for the CPU and call it; returns the last array."""
    library = tvm.compile(mod, target="llvm")
    given = [tvm.runtime.tensor(array) for array in arrays]
    library[name](*given)
    return given[-1].numpy()


def run_model(mod, *arrays, name="main"):
    """Compile a model and call a function of it; returns its results."""
    machine = tvm.relax.VirtualMachine(tvm.compile(mod, target="llvm"), tvm.cpu())
    found = machine[name](*(tvm.runtime.tensor(array) for array in arrays))
    parts = [found] if hasattr(found, "numpy") else list(found)
    return [np.asarray(part.numpy()) for part in parts]


def check(found, expected):
    """Compare results with those of NumPy; returns them."""
    found = found if isinstance(found, list) else [found]
    expected = expected if isinstance(expected, list | tuple) else [expected]
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, np.asarray(other), rtol=RTOL, atol=ATOL)
    return found


class Programs(dict):
    """Functions with schedules: each scheduled function gives what the function gives."""

    def on(self, function, *, builds=True):
        """A decorator of the steps on a function. Without `builds`, the steps alone are run: functions over symbolic
        extents, of threads, and with code that is not in the module."""

        def register(apply):
            def case():
                sch, plain = Schedule(function), Schedule(function)
                apply(sch)
                if not builds:
                    return [np.ones(1)]
                arrays = [data(*shape, dtype=dtype, seed=at) for at, (shape, dtype) in enumerate(_parameters(function))]
                name = str(function.attrs["global_symbol"]) if hasattr(function, "func_op") else "main"
                return check(_all_arrays(sch.mod, arrays, name), _all_arrays(plain.mod, arrays, name))

            self[apply.__name__] = case
            return apply

        return register


def _all_arrays(mod, arrays, name):
    given = [tvm.runtime.tensor(array.copy()) for array in arrays]
    tvm.compile(mod, target="llvm")[name](*given)
    return [each.numpy() for each in given]


def _parameters(function):
    if hasattr(function, "params"):
        return [([int(extent) for extent in each.shape], str(each.dtype)) for each in function.params]
    found = [str(type_) for type_ in function.func_op.function_type.inputs]  # memref<8x16xf32>
    parts = [text.removeprefix("memref<").partition(">")[0].split("x") for text in found]
    return [([int(extent) for extent in extents], _DTYPES[element]) for *extents, element in parts]


_DTYPES = {
    "f32": "float32",
    "f16": "float16",
    "i32": "int32",
    "i64": "int64",
    "i8": "int8",
    "ui8": "uint8",
}
