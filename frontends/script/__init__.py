"""Programs of block loops as Python script; `weft.script` has the public names.

@ir_module
class Module:
    @T.prim_func
    def relu(A: T.Buffer((128,), "float32"), B: T.Buffer((128,), "float32")):
        for i in range(128):
            with T.block("B"):
                vi = T.axis.spatial(128, i)
                B[vi] = T.max(A[vi], T.float32(0))

The source is read, never run. `tir` and `ir` are the namespaces that scripts name, `parsing` reads modules and
`printing` writes them. Both go through one `ScriptEmitter`: the printer emits what it is about to print and compares,
so that what it prints reads back equal.
"""
