"""Models for CUDA: their kernels run on this CPU, in several orders of threads, and are compiled for real devices."""

from __future__ import annotations

import numpy as np
import pytest
from cuda_on_cpu import ORDERS, cuda_on_cpu, needs_compiler
from graph_models import MODELS
from tiers import first_tier

import weft
from weft.backends.cuda.nvrtc import MissingCompilerError, compile_cubin, supported_architectures


@needs_compiler
@pytest.mark.parametrize("name", first_tier(MODELS, "residual block"))
def test_models_as_cuda_runs_them(name: str) -> None:
    model = MODELS[name]
    with cuda_on_cpu(ORDERS[0]) as device:
        main = weft.build(model.module(), "cuda -arch=sm_80")["main"]
        for sizes in model.sizes[:2]:
            x = model.array(sizes)
            expected = model.expected(x)
            for device.order in ORDERS:
                np.testing.assert_allclose(main(x), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", first_tier(MODELS, "perceptron"))
@pytest.mark.parametrize("architecture", first_tier(["sm_75", "sm_80", "sm_90"], "sm_80"))
def test_models_compile(name: str, architecture: str) -> None:
    try:
        supported_architectures()
    except MissingCompilerError:
        pytest.skip("NVRTC is not installed: pip install 'weft[cuda]'")
    compile_cubin(weft.build(MODELS[name].module(), f"cuda -arch={architecture}").get_source("cuda"), architecture)
