"""Models in PyTorch: eager, plain SGD."""

import torch

from . import numbers
from .errors import ModelError
from .user import USER, check_output


def own_module(own, channels, seed):
    """A model that the program has too, with the weights that Rust's begins with."""
    module = torch.nn.Sequential()
    for name, layer in own.torch_layers(channels).items():
        module.add_module(name, layer)
    weights = numbers.parameters(own.shapes(channels), seed)
    module.load_state_dict({name: torch.from_numpy(values) for name, values in weights.items()})
    return module


def user_module(name, channels):
    """A user's module."""
    module = USER.create(name, USER.load(name), in_channels=channels)
    if not isinstance(module, torch.nn.Module):
        raise ModelError(f"--model {name} is a {type(module).__name__}, not a torch.nn.Module")
    return module


class TorchModel:
    """A module, its optimiser, and what it learns: channel means times a fixed matrix, by mean squared error."""

    modes = ("train", "inference")

    def __init__(self, name, module, seed, framework):
        self.name, self.module = name, module.to(framework.device)
        self.device, self.seed = framework.device, seed
        self.backend = framework.backend()
        self.matrix = self.optimizer = None

    def step(self, batch, mode):
        """One step; the loss before the update when training. Images with planes become further channels."""
        pixels = batch.to(self.device, non_blocking=True)
        pixels = pixels.reshape(pixels.shape[0], -1, *pixels.shape[-2:])
        train = mode == "train"
        self.module.train(train)
        if not train:
            with torch.inference_mode():
                check_output(self.name, self.module(pixels), len(pixels))
            return None
        found = self.module(pixels)
        check_output(self.name, found, len(pixels))
        found = found.reshape(len(pixels), -1)
        if self.matrix is None:
            matrix = numbers.target_matrix(pixels.shape[1], found.shape[1], self.seed)
            self.matrix = torch.from_numpy(matrix).to(self.device)
            self.optimizer = torch.optim.SGD(self.module.parameters(), lr=numbers.LEARNING_RATE)
        loss = torch.nn.functional.mse_loss(found, pixels.mean((2, 3)) @ self.matrix)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()
