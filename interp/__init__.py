"""Reference semantics of each dialect on NumPy values.

`interpreter.Interpreter` runs functions of a module, `compare.compare_modules` compares two modules,
`compare.Validator` validates each pass, and `arguments.random_arguments` generates inputs for any function. `registry`
describes how a dialect defines the semantics of its ops.
"""
