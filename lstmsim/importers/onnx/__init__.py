"""ONNX networks: the recurrent layers of a file, followed through the operations that exporters put around them."""
