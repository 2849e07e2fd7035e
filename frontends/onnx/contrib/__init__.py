"""Converters of operators that onnxruntime adds to those of ONNX: the domain `com.microsoft`.

The parameters of each converter define its operator (`registry.defines`), with the names of onnxruntime's definitions.
"""
