"""ONNX models as graphs: `weft.from_onnx`.

Converters of nodes are grouped in files by family and registered in `registry.py`.
"""
