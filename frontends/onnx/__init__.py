"""ONNX models as graphs: `weft.from_onnx`.

`model_file.py` reads models and their weights, `importer.py` walks their nodes, `node.py` is what a converter sees of
one. Converters stand in files by family and enter the table of `registry.py`; `known.py` holds values that are known
at import, `folding.py` computes with them.
"""
