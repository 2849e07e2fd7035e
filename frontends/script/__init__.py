"""Programs of block loops as Python script; `weft.script` has the public names.

The source is read, never executed. The printer uses the parser's `ScriptEmitter`: it emits each statement and compares
the ops before it prints, so that its output reads back equal.
"""
