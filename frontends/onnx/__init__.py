"""ONNX models as graphs: `weft.from_onnx`.

`model_file.py` reads models and their weights, `importer.py` converts their nodes, and `node.py` is the view of a node
that a converter gets. Converters are grouped in files by family and registered in `registry.py`. `known.py` holds
values known at import, and `folding.py` computes with them.
"""
