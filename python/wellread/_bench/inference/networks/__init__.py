"""The networks for JAX: each has `parameters(arrays)`, torchvision's arrays by layer, and `forward(parameters, x)`.

`x` is N x H x W x C; parameters are a tree of arrays, all of the type that is computed in.
"""
