"""Views as arguments of GPU functions: what lies between their elements stays as it is."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft import te

pytest.importorskip("pyopencl")


def test_outputs_that_interleave() -> None:
    m, n = te.var("m"), te.var("n")
    a = te.placeholder((m, n), name="A", strides=(None, None))
    c = te.compute((m, n), lambda i, j: a[i, j] + 1.0, name="C")
    d = te.compute((m, n), lambda i, j: a[i, j] * 2.0, name="D")
    s = te.create_schedule([c.op, d.op])
    for tensor in (c, d):
        block, thread = s[tensor].split(tensor.op.axis[0], 4)
        s[tensor].bind(block, te.thread_axis("blockIdx.x"))
        s[tensor].bind(thread, te.thread_axis("threadIdx.x"))
    binds = {t: te.decl_buffer((m, n), name=t.name, strides=(None, None)) for t in (c, d)}
    function = weft.build(s, [a, c, d], target="opencl", name="f", binds=binds)["f"]
    x = np.random.default_rng(0).random((6, 8), dtype=np.float32)
    room = np.full((6, 16), 7, np.float32)
    first, second = room.T[:10:2], room.T[1:10:2]
    function(x.T[:5], first, second)
    np.testing.assert_array_equal(first, x.T[:5] + 1)
    np.testing.assert_array_equal(second, x.T[:5] * 2)
    assert (room.T[10:] == 7).all()
    with pytest.raises(ValueError, match=r"argument 2 \('C'\): expected strides that are not negative"):
        function(x.T[:5], first[::-1], second)
