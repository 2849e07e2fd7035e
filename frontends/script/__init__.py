"""Programs of block loops as Python script; `weft.script` has the public names.

The source is read, never executed. The printer emits each statement by the parser's `ScriptEmitter` and compares the
ops before it prints, so that its output reads back equal.
"""
