"""Programs of block loops as Python script, which is read, never executed; `weft.script` has the public names
(`docs/decisions/0005-script.md`)."""
