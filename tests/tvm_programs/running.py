"""Running programs that are written for TVM 0.27: by TVM, or by weft under TVM's names."""

import numpy as np

import tvm

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
