"""CUDA programs on a real device, where there is one; and what is said where there is none."""

import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
from weft import te
from weft.backends.cuda.nvrtc import MissingCompilerError
from weft.runtime.cuda import pick_device
from weft.runtime.devices import DeviceError

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "gpu"
sys.path.insert(0, str(EXAMPLES))
CASES: list[Any] = importlib.import_module("gpu_programs").CUDA_CASES
sys.path.remove(str(EXAMPLES))

try:
    MISSING = ""
    pick_device()
except DeviceError as error:
    MISSING = error.message
on_device = pytest.mark.skipif(bool(MISSING), reason=MISSING)
ADD = next(case for case in CASES if case.name == "vector_add")


@on_device
@pytest.mark.parametrize("case", [pytest.param(case, id=case.name, marks=pytest.mark.slow) for case in CASES])
def test_programs(case: Any) -> None:
    case.check("cuda", case.fitting(70, 33, 9, 17))
    if case.takes_any_size:
        case.check("cuda", case.fitting(70, 33, 9, 17), dynamic=True)


@on_device
def test_arrays_of_torch_stay_on_the_device() -> None:
    torch = pytest.importorskip("torch")
    main = ADD.build("cuda", {"n": 1000})["main"]
    a, b, c = (torch.rand(1000, device="cuda") for _ in range(3))
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):
        main(a, b, c)
        assert torch.equal(c, a + b)
    with pytest.raises(ValueError, match="expected memory aligned to 16 bytes"):
        main(torch.rand(1001, device="cuda")[1:], b, c)
    with pytest.raises(TypeError, match="CUDA device"):
        weft.build(ADD.schedule(n=1000).mod, target="llvm")["main"](a, b, c)


@on_device
def test_times_come_from_events() -> None:
    library = ADD.build("cuda", {"n": 1 << 22})
    result = library.time_evaluator("main", number=20, repeat=3)(*ADD.arguments({"n": 1 << 22})[0])
    assert 1e-6 < result.min < 1e-2


@on_device
@pytest.mark.slow
def test_kernels_are_tuned(tmp_path: Path) -> None:
    a, b = (te.placeholder((96, 96), "float32", name=letter) for letter in "AB")
    k = te.reduce_axis((0, 96), name="k")
    product = te.create_func(
        [a, b, te.compute((96, 96), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")], name="product"
    )
    target, path = f"cuda -arch=sm_{pick_device().capability}", tmp_path / "tune.db"
    (task,) = weft.tune(product, trials=8, target=target, database=path).tasks
    assert len(task.trials) == 8 and not [record.failure for record in task.trials if record.failure]
    assert task.default.machine.startswith(f"cuda {pick_device().model}") and task.seconds <= task.default_seconds
    x, y = np.random.default_rng(0).random((2, 96, 96), dtype=np.float32)
    z = np.empty_like(x)
    weft.build(product, target, database=path)["product"](x, y, z)
    np.testing.assert_allclose(z, x @ y, rtol=1e-5)


def test_ptx_of_a_library() -> None:
    library = ADD.build("cuda -arch=sm_90", {"n": 100})
    try:
        ptx = library.get_source("ptx")
    except MissingCompilerError as error:
        pytest.skip(error.message)
    assert ".target sm_90" in ptx and ptx == library.imported_modules[0].get_source("ptx")


@pytest.mark.skipif(not MISSING, reason="there is a CUDA device")
def test_without_a_device_programs_are_built_and_calls_say_what_is_missing() -> None:
    library = ADD.build("cuda -arch=sm_90", {"n": 100})
    assert "__global__" in library.get_source() and "no device" in repr(library)
    arrays = [np.zeros(100, np.float32) for _ in range(3)]
    with pytest.raises(
        DeviceError, match=r"no CUDA driver on this machine|cuda-bindings, which is not installed|no CUDA"
    ):
        library["main"](*arrays)
    with pytest.raises(DeviceError):
        library.time_evaluator("main")(*arrays)
