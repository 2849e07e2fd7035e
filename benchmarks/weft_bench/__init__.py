"""`weft bench`: the speed of weft's code on this machine, compared with alternatives.

`ladder` times one program under increasingly optimised schedules, `ops` a table of operators against NumPy, PyTorch and
onnxruntime. Measurements run in child processes (`child.py`), one per number of threads, because the numerical
libraries read it at import. `tools/bench_command.py` of weft is the command.
"""
