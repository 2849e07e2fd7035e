"""Reference semantics of each dialect on NumPy values.

`interpreter.Interpreter` runs functions of a module; `compare.compare_modules` tells whether two modules mean the same,
`validate.Validator` whether each pass kept the meaning, `arguments.random_arguments` makes inputs for any function.
`registry` tells how a dialect gives its ops a meaning.
"""
