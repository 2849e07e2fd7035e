"""Schedules that TVM's automatic scheduler recorded (`traces.json`: functions and traces, half of them with its
postprocessors), run on random arrays and compared with the function as it is written. Traces
for GPUs are applied, not run."""

import json
import re
from pathlib import Path

import numpy as np
from running import check, data, run
from tvm.s_tir import Schedule

import tvm


def _arrays(script):
    found = re.findall(r'(\w+): T\.Buffer\(\(([^)]*)\), "(\w+)"\)', script[: script.index("T.func_attr")])
    shapes = [tuple(int(part) for part in shape.split(",") if part.strip()) for _, shape, _ in found]
    *given, _ = [data(*shape, seed=at, dtype=found[at][2]) for at, shape in enumerate(shapes)]
    return given, np.zeros(shapes[-1], found[-1][2])


def _program(record):
    def case():
        mod = tvm.script.from_source(record["script"])
        given, result = _arrays(record["script"])
        sch = Schedule(mod)
        names: dict = {}
        text = re.sub(r"\(sch: [\w.]+\)", "(sch)", record["trace"])
        exec(compile(text, record["name"], "exec"), names)
        names["apply_trace"](sch)
        if record["name"].startswith("cuda"):
            return [np.ones(1)]  # kernels run on GPUs
        return check(run(sch.mod, *given, result), run(mod, *given, result))

    return case


RECORDS = json.loads((Path(__file__).parent / "traces.json").read_text())
PROGRAMS = {record["name"]: _program(record) for record in RECORDS}
