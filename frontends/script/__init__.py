"""Programs of block loops as Python script; `weft.script` has the public names.

The source is read, never executed. `tir` and `ir` are the namespaces that scripts use, `parsing` reads modules and
`printer` writes them. Both use one `ScriptEmitter`: the printer emits each statement and compares the ops before it
prints, so that its output reads back equal.
"""
