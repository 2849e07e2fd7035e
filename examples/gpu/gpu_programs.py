"""All GPU example programs, as a list of cases.

python examples/gpu/gpu_programs.py [target]
"""

from __future__ import annotations

import sys

import attention
import convolution
import elementwise
import matmul
import normalization
import reductions
import split_k
import tensor_cores
import transpose
import window_sum
from running import Case, run

CASES: list[Case] = [
    *elementwise.CASES,
    *window_sum.CASES,
    *transpose.CASES,
    *reductions.CASES,
    *normalization.CASES,
    *matmul.CASES,
    *split_k.CASES,
    *convolution.CASES,
    *attention.CASES,
]
CUDA_CASES: list[Case] = [*CASES, *tensor_cores.CASES]
"""All cases, including those that need tensor cores."""

if __name__ == "__main__":
    run(CUDA_CASES if sys.argv[1:] and sys.argv[1].startswith("cuda") else CASES)
