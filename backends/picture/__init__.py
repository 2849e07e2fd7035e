"""Graph functions as pictures: boxes for operations, arrows for the tensors that flow between them."""
