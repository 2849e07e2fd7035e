"""Memory for temporaries of whole models: weft's planned arena compared with onnxruntime's.

    python benchmarks/graph_memory.py model.onnx ...

MiB for one call, without weights and results. For onnxruntime, the growth of its arena in three calls, with the default
configuration (extension by powers of two) and with extensions as large as requested.
"""

from __future__ import annotations

import re
import subprocess
import sys

from xdsl.dialects.func import FuncOp

import weft
from weft.dialects.arena import planned_bytes
from weft.passes.lower_to_tir import lower_to_tir

MEBI = 1 << 20
CALLS = """
import sys
import numpy as np
import onnxruntime as ort

ort.set_default_logger_severity(0)
strategy = int(sys.argv[2])
where = ort.OrtMemoryInfo("Cpu", ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, ort.OrtMemType.DEFAULT)
ort.create_and_register_allocator(where, ort.OrtArenaCfg({"arena_extend_strategy": strategy, "max_mem": 0}))
options = ort.SessionOptions()
options.intra_op_num_threads = 1
options.add_session_config_entry("session.use_env_allocators", "1")
options.add_session_config_entry("session.use_device_allocator_for_initializers", "1")
session = ort.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
types = {"tensor(float)": "f4", "tensor(int64)": "i8", "tensor(bool)": "?"}
inputs = session.get_inputs()
feeds = {i.name: np.ones([e if isinstance(e, int) else 1 for e in i.shape], types[i.type]) for i in inputs}
print("calls begin", file=sys.stderr, flush=True)
for _ in range(3):
    session.run(None, feeds)
"""


def of_weft(path: str) -> int:
    """The bytes of the arena of a model."""
    module = weft.from_onnx(path)
    lower_to_tir(module)
    main = next(op for op in module.walk() if isinstance(op, FuncOp) and op.sym_visibility is None)
    found = planned_bytes(main, {})
    return found or 0


def of_onnxruntime(path: str, strategy: int) -> int:
    """The bytes by which the arena grows in calls."""
    run = subprocess.run([sys.executable, "-c", CALLS, path, str(strategy)], capture_output=True, text=True, check=True)
    calls = run.stderr.partition("calls begin")[2]
    return sum(int(found) for found in re.findall(r"Extended allocation by (\d+) bytes", calls))


def main() -> None:
    print(f"{'model':24} {'weft':>8} {'onnxruntime':>12} {'as requested':>13}   ratio")
    for path in sys.argv[1:]:
        weft_, *peer = of_weft(path), of_onnxruntime(path, 0), of_onnxruntime(path, 1)
        name = path.rpartition("/")[2]
        print(f"{name:24} {weft_ / MEBI:8.2f} {peer[0] / MEBI:12.2f} {peer[1] / MEBI:13.2f}   {weft_ / min(peer):5.2f}")


if __name__ == "__main__":
    main()
