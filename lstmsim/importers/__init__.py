"""Networks of other frameworks, read: ONNX, and weights of Keras, PyTorch and safetensors."""
