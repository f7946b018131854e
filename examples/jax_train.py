"""A small CNN in Flax: batches are JAX arrays over the memory that was decoded into."""

import jax
import optax
import wellread
from _images import cells
from flax import nnx

loader = wellread.DataLoader(
    cells(), 16, shuffle=True, seed=42, num_workers=2, as_="jax", labels="crowded", scale=(0, 4000), flip=True,
    drop_last=True,  # one shape for all batches, so jit compiles once
)  # fmt: skip


class Classifier(nnx.Module):
    def __init__(self, rngs: nnx.Rngs):
        self.first = nnx.Conv(2, 16, (3, 3), strides=2, rngs=rngs)
        self.second = nnx.Conv(16, 32, (3, 3), strides=2, rngs=rngs)
        self.out = nnx.Linear(32, 2, rngs=rngs)

    def __call__(self, pixels: jax.Array) -> jax.Array:
        # Flax has channels last.
        hidden = nnx.relu(self.first(pixels.transpose(0, 2, 3, 1)))
        return self.out(nnx.relu(self.second(hidden)).mean((1, 2)))


@nnx.jit
def step(model, optimizer, pixels, labels):
    def cost(model):
        return optax.softmax_cross_entropy_with_integer_labels(model(pixels), labels).mean()

    loss, gradients = nnx.value_and_grad(cost)(model)
    optimizer.update(model, gradients)
    return loss


model = Classifier(nnx.Rngs(0))
optimizer = nnx.Optimizer(model, optax.adam(3e-3), wrt=nnx.Param)
for epoch in range(6):
    losses = [step(model, optimizer, pixels, labels) for pixels, labels in loader]
    print(f"epoch {epoch}: loss {sum(map(float, losses)) / len(losses):.3f}")
