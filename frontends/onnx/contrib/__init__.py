"""Converters of operators that onnxruntime adds to those of ONNX: the domain `com.microsoft`.

Each is defined by the parameters of its converter (`registry.defines`), whose names are those of onnxruntime's
definitions.
"""
