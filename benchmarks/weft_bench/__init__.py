"""`weft bench`: what weft's code reaches on this machine, beside what else a user would call.

`ladder` times one program under better and better schedules, `ops` a table of operators against NumPy, PyTorch and
onnxruntime. Measuring runs in child processes (`child.py`), one for each number of threads, because the numerical
libraries read it when they are imported. `tools/bench_command.py` of weft is the command.
"""
