"""Stepwell's counterparts of PyTorch's names, for messages to users who write those from habit."""

from __future__ import annotations

from collections.abc import Sequence

from stepwell.frontend.table import nearest_of

LAYERS = {
    "BCEWithLogitsLoss": "sigmoid_binary_cross_entropy",
    "BatchNorm": "batch_norm_training",
    "Conv": "conv",
    "ConvTranspose": "conv_transpose",
    "CrossEntropyLoss": "softmax_cross_entropy_with_integer_labels",
    "Embedding": "embedding",
    "GRU": "gru",
    "LSTM": "lstm",
    "LayerNorm": "layer_norm",
    "Linear": "dense",
    "MSELoss": "squared_error",
    "MaxPool": "max_pool",
    "MultiheadAttention": "dot_product_attention",
    "cross_entropy": "softmax_cross_entropy_with_integer_labels",
    "mse_loss": "squared_error",
    "scaled_dot_product_attention": "dot_product_attention",
}
"""Names of `torch.nn` and `torch.nn.functional`, without the number of axes at the end."""

_GRADIENTS = "gradients are functions: stepwell.grad(loss)(params)"
METHODS = {
    **dict.fromkeys(("backward", "grad", "requires_grad", "requires_grad_"), _GRADIENTS),
    "detach": "use stepwell.stop_gradient(x)",
    "permute": "use x.transpose(axes)",
    "unsqueeze": "use numpy.expand_dims(x, axis)",
}
"""Names of tensor methods, with the advice."""


def layer(name: str, known: Sequence[str]) -> str:
    """Return the one of ``known`` that a name missing in `stepwell.nn` means, for a message.

    >>> layer("Conv2d", ["conv", "dense"]), layer("dens", ["conv", "dense"]), layer("q", [])
    ('; layers are functions of their parameters: nn.conv', '; the nearest is dense', '')
    """
    plain = name[:-2] if name[-2:] in ("1d", "2d", "3d") else name
    if plain in LAYERS:
        return f"; layers are functions of their parameters: nn.{LAYERS[plain]}"
    return nearest(name, known)


def nearest(name: str, known: Sequence[str]) -> str:
    """Return the one of ``known`` nearest to a name, ignoring case, for a message.

    >>> nearest("AdamW", ["adamw", "sgd"])
    '; the nearest is adamw'
    """
    near = nearest_of(name.lower(), known, 0.6)
    return f"; the nearest is {near}" if near else ""
