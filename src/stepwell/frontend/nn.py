"""Neural networks: activations, layers, normalizations, losses; initialisers. ``sw.nn``.

These are functions of arrays: learned parameters are among their arguments. Images are (N, C, ...)
with any number of spatial axes, filters (O, I, ...), weights of matrix products (I, O). Names and
order of parameters are those of `jax.nn`, and of Optax for losses, if these have the function.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from stepwell.frontend.activations import (
    celu,
    elu,
    gelu,
    glu,
    hard_sigmoid,
    hard_silu,
    hard_swish,
    hard_tanh,
    identity,
    leaky_relu,
    log1mexp,
    log_sigmoid,
    mish,
    one_hot,
    relu,
    relu6,
    selu,
    sigmoid,
    silu,
    soft_sign,
    softplus,
    sparse_plus,
    sparse_sigmoid,
    squareplus,
    swish,
    tanh,
)
from stepwell.frontend.layers.convolution import conv, conv_transpose
from stepwell.frontend.layers.dense import dense, embedding
from stepwell.frontend.layers.pooling import avg_pool, global_avg_pool, max_pool
from stepwell.frontend.normalization import (
    batch_norm,
    group_norm,
    layer_norm,
    log_softmax,
    logmeanexp,
    logsumexp,
    rms_norm,
    softmax,
    standardize,
)

if TYPE_CHECKING:
    from stepwell.frontend.layers.attention import dot_product_attention, rotary_embedding
    from stepwell.frontend.layers.cross_entropy import (
        kl_divergence,
        kl_divergence_with_log_targets,
        safe_softmax_cross_entropy,
        sigmoid_binary_cross_entropy,
        sigmoid_focal_loss,
        smooth_labels,
        softmax_cross_entropy,
        softmax_cross_entropy_with_integer_labels,
    )
    from stepwell.frontend.layers.ctc import ctc_loss, ctc_loss_with_forward_probs
    from stepwell.frontend.layers.dropout import dropout
    from stepwell.frontend.layers.losses import (
        cosine_distance,
        cosine_similarity,
        hinge_loss,
        huber_loss,
        l2_loss,
        log_cosh,
        squared_error,
    )
    from stepwell.frontend.layers.norms import (
        batch_norm_training,
        instance_norm,
        weight_standardize,
    )
    from stepwell.frontend.layers.recurrent import gru, gru_cell, lstm, lstm_cell, rnn, rnn_cell

_LAYERS = {
    "attention": "dot_product_attention rotary_embedding",
    "cross_entropy": "kl_divergence kl_divergence_with_log_targets safe_softmax_cross_entropy "
    "sigmoid_binary_cross_entropy sigmoid_focal_loss smooth_labels softmax_cross_entropy "
    "softmax_cross_entropy_with_integer_labels",
    "ctc": "ctc_loss ctc_loss_with_forward_probs",
    "dropout": "dropout",
    "losses": "cosine_distance cosine_similarity hinge_loss huber_loss l2_loss log_cosh "
    "squared_error",
    "norms": "batch_norm_training instance_norm weight_standardize",
    "recurrent": "gru gru_cell lstm lstm_cell rnn rnn_cell",
}
_HOME = {name: family for family, names in _LAYERS.items() for name in names.split()}
"""The family (module) of each function that is imported at its first use."""

__all__ = [
    "avg_pool",
    "batch_norm",
    "batch_norm_training",
    "celu",
    "conv",
    "conv_transpose",
    "cosine_distance",
    "cosine_similarity",
    "ctc_loss",
    "ctc_loss_with_forward_probs",
    "dense",
    "dot_product_attention",
    "dropout",
    "elu",
    "embedding",
    "gelu",
    "global_avg_pool",
    "glu",
    "group_norm",
    "gru",
    "gru_cell",
    "hard_sigmoid",
    "hard_silu",
    "hard_swish",
    "hard_tanh",
    "hinge_loss",
    "huber_loss",
    "identity",
    "instance_norm",
    "kl_divergence",
    "kl_divergence_with_log_targets",
    "l2_loss",
    "layer_norm",
    "leaky_relu",
    "log1mexp",
    "log_cosh",
    "log_sigmoid",
    "log_softmax",
    "logmeanexp",
    "logsumexp",
    "lstm",
    "lstm_cell",
    "max_pool",
    "mish",
    "one_hot",
    "relu",
    "relu6",
    "rms_norm",
    "rnn",
    "rnn_cell",
    "rotary_embedding",
    "safe_softmax_cross_entropy",
    "selu",
    "sigmoid",
    "sigmoid_binary_cross_entropy",
    "sigmoid_focal_loss",
    "silu",
    "smooth_labels",
    "soft_sign",
    "softmax",
    "softmax_cross_entropy",
    "softmax_cross_entropy_with_integer_labels",
    "softplus",
    "sparse_plus",
    "sparse_sigmoid",
    "squared_error",
    "squareplus",
    "standardize",
    "swish",
    "tanh",
    "weight_standardize",
]


def __dir__() -> list[str]:
    """Return the public names, without imports."""
    return [*__all__, "initializers"]


def __getattr__(name: str) -> Any:
    if name in _HOME or name == "initializers":
        family = import_module(f"stepwell.frontend.layers.{_HOME.get(name, name)}")
        value = getattr(family, name) if name in _HOME else family
        globals()[name] = value
        return value
    if name.startswith("__"):
        raise AttributeError(f"module 'stepwell.nn' has no attribute '{name}'")
    if name in _NOT_HERE:
        raise AttributeError(f"stepwell.nn has no '{name}', which jax.nn has: {_NOT_HERE[name]}")
    hint = import_module("stepwell.frontend.torch_names").layer(name, __all__)
    raise AttributeError(f"module 'stepwell.nn' has no attribute '{name}'{hint}")


_NOT_HERE = dict.fromkeys(
    ("get_scaled_dot_general_config", "scaled_dot_general", "scaled_matmul"),
    "there are no scaled formats",
)
"""Functions of `jax.nn` that this module lacks, with the reason."""
