"""Converters of onnxruntime's operators, domain `com.microsoft`. The parameters of a converter define its operator
(`registry.defines`), with onnxruntime's names."""
