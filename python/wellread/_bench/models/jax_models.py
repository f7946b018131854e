"""Models in JAX: one jitted function per mode, plain SGD.

A network is a pair: its parameters, and a pure function of parameters and an N x C x H x W batch.
"""

import jax
import jax.numpy as jnp

from . import numbers
from .errors import ModelError
from .user import USER, check_output


def own_network(own, channels, seed):
    """A model that the program has too, with the weights that Rust's begins with."""
    weights = numbers.parameters(own.shapes(channels), seed)
    return {name: jnp.array(values) for name, values in weights.items()}, own.jax_network


def user_network(name, shape, seed):
    """A user's Flax module (linen or nnx). Flax has the channels last, so it is given N x H x W x C."""
    made = USER.load(name)
    try:
        from flax import linen, nnx
    except ImportError as error:
        raise ModelError(f"--model {name}: flax cannot be imported ({error}); pip install flax") from error

    def channels_last(x):
        return jnp.moveaxis(x, 1, -1)

    channels = 1
    for length in shape[1:-2]:
        channels *= length
    offered = {"in_channels": channels}
    if isinstance(made, type) and issubclass(made, nnx.Module):
        offered["rngs"] = nnx.Rngs(seed)
    module = USER.create(name, made, **offered)
    if isinstance(module, nnx.Module):
        graph, weights, rest = nnx.split(module, nnx.Param, ...)
        return weights, lambda p, x: nnx.merge(graph, p, rest)(channels_last(x))
    if isinstance(module, linen.Module):
        sample = jnp.zeros((1, *shape[-2:], channels), jnp.float32)
        variables = dict(module.init(jax.random.key(seed), sample))
        weights = variables.pop("params", {})
        return weights, lambda p, x: module.apply({"params": p, **variables}, channels_last(x))
    hint = "; run it with --framework pytorch" if "torch" in str(type(module).__mro__) else ""
    raise ModelError(f"--model {name} is a {type(module).__name__}, not a Flax module{hint}")


class JaxModel:
    """A network, jitted, and the target of training: channel means times a fixed matrix, by mean squared error."""

    modes = ("train", "inference")

    def __init__(self, name, network, seed, framework):
        self.name, (self.weights, self.network) = name, network
        self.seed, self.backend = seed, framework.backend()
        self.forward = jax.jit(self._forward)
        self.update = jax.jit(self._update)

    def _forward(self, weights, x):
        found = self.network(weights, x)
        check_output(self.name, found, x.shape[0])
        return found

    def _update(self, weights, x):
        def loss_of(p):
            found = self._forward(p, x).reshape(x.shape[0], -1)
            # Traced once: a constant of the compiled function.
            matrix = jnp.asarray(numbers.target_matrix(x.shape[1], found.shape[1], self.seed))
            return jnp.mean((found - x.mean((2, 3)) @ matrix) ** 2)

        loss, gradient = jax.value_and_grad(loss_of)(weights)
        return jax.tree.map(lambda p, g: p - numbers.LEARNING_RATE * g, weights, gradient), loss

    def step(self, batch, mode):
        """One step, done when it returns; the loss before the update when training."""
        x = batch.reshape(batch.shape[0], -1, *batch.shape[-2:])
        if mode == "inference":
            jax.block_until_ready(self.forward(self.weights, x))
            return None
        self.weights, loss = jax.block_until_ready(self.update(self.weights, x))
        return float(loss)
