"""Models in PyTorch: eager, plain SGD."""

import torch

from . import small_cnn as numbers
from . import user
from .errors import ModelError


def small_cnn(channels, seed):
    """The small CNN with the weights that Rust's begins with."""
    first, second = numbers.FEATURES
    module = torch.nn.Sequential()
    module.add_module("conv1", torch.nn.Conv2d(channels, first, numbers.KERNEL, padding=1))
    module.add_module("relu1", torch.nn.ReLU())
    module.add_module("conv2", torch.nn.Conv2d(first, second, numbers.KERNEL, padding=1))
    module.add_module("relu2", torch.nn.ReLU())
    module.add_module("pool", torch.nn.AdaptiveAvgPool2d(1))
    module.add_module("flat", torch.nn.Flatten())
    module.add_module("fc", torch.nn.Linear(second, numbers.EMBEDDING))
    weights = numbers.parameters(channels, seed)
    module.load_state_dict({name: torch.from_numpy(values) for name, values in weights.items()})
    return module


def user_module(name, channels):
    """A user's module."""
    module = user.create(name, user.load(name), in_channels=channels)
    if not isinstance(module, torch.nn.Module):
        raise ModelError(f"--model {name} is a {type(module).__name__}, not a torch.nn.Module")
    module.user_name = name
    return module


class TorchModel:
    """A module, its optimiser, and what it learns: channel means times a fixed matrix, by mean squared error."""

    modes = ("train", "inference")

    def __init__(self, module, shape, seed, framework):
        self.module = module.to(framework.device)
        self.name = getattr(module, "user_name", "small-cnn")
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
                user.check_output(self.name, self.module(pixels), len(pixels))
            return None
        found = self.module(pixels)
        user.check_output(self.name, found, len(pixels))
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
