"""JAX: the same networks in plain jax.numpy, compiled ahead for each shape, so that compiling is measured apart.

Weights and images are brought to the layout that XLA's convolutions prefer (NHWC, HWIO) before anything is timed.
"""

import importlib

import jax
import jax.numpy as jnp
import numpy as np

from ..clock import net, now
from ..errors import Unusable
from ..words import counted
from . import base, weights

NETWORKS = {"resnet50": "resnet", "vit_b_16": "vit"}
PLATFORMS = {"cuda": "gpu", "tpu": "tpu", "mps": "METAL", "cpu": "cpu"}
"""Names of the devices in JAX."""


class Jax(base.Session):
    label = "JAX"

    def __init__(self, request):
        super().__init__(request)
        if request["model"] not in NETWORKS:
            raise Unusable(
                f"JAX runs {', '.join(NETWORKS)}, and no ONNX files; run {request['model']} with "
                "--framework onnxruntime"
            )
        # What compiling takes is measured; that an earlier run has done it would not be a measurement.
        jax.config.update("jax_enable_compilation_cache", False)
        self.device = choose(request["device"])
        self.kind = {"gpu": "cuda", "METAL": "mps"}.get(self.device.platform, self.device.platform)
        self.place = self.kind if self.kind == "cpu" else f"{self.kind}:{self.device.id}"
        self.type = jnp.dtype(self.dtype)
        if self.dtype == "float32":
            # Or accelerators would multiply in TF32 or bfloat16.
            jax.config.update("jax_default_matmul_precision", "highest")
        self.network = importlib.import_module(f".networks.{NETWORKS[request['model']]}", __package__)
        arrays = weights.load(request["weights"])
        try:
            parameters = self.network.parameters(arrays)
        except KeyError as error:
            raise Unusable(f"{request['weights']} is not the weights of {request['model']}: no {error}") from error
        self.parameters = jax.tree.map(lambda a: jax.device_put(np.asarray(a, self.type), self.device), parameters)
        jax.block_until_ready(self.parameters)
        self.inputs = self.output = self.compiled = None
        # On the device: images arrive as they lie in shared memory. Not in place of them: the next batch goes there.
        self.arrange = jax.jit(lambda images: jnp.moveaxis(images, 1, -1).astype(self.type))

    def facts(self):
        return {
            "backend": f"jax {jax.__version__} ({self.place}, {counted(self.threads, 'thread')})",
            "device": self.place,
            "device_type": self.kind,
            "device_name": None if self.kind == "cpu" else self.device.device_kind,
            "versions": {"jax": jax.__version__, "jaxlib": jax.lib.__version__},
            "layout": "NHWC",
            "notes": self.notes,
        }

    def fetch(self, images):
        self.inputs = self.arrange(jax.device_put(images, self.device)).block_until_ready()

    def prepare(self):
        begin = now()
        self.compiled = jax.jit(self.network.forward).lower(self.parameters, self.inputs).compile()
        took = net(now() - begin) / 1e6
        self.run()
        self.wait()
        return took

    def run(self):
        self.output = self.compiled(self.parameters, self.inputs)

    def wait(self):
        jax.block_until_ready(self.output)

    def logits(self):
        return np.asarray(self.output, np.float32)

    def device_peak(self):
        stats = self.device.memory_stats() if self.kind != "cpu" else None
        # JAX has no way to set it back: the peak is that of the process, so of the largest batch so far.
        return stats.get("peak_bytes_in_use") if stats else None

    def forget(self):
        self.inputs = self.output = self.compiled = None


def choose(wanted):
    """The device that was asked for; else JAX's own first choice."""
    if wanted is None:
        return jax.devices()[0]
    if wanted == "cpu":
        jax.config.update("jax_platforms", "cpu")
    try:
        return jax.devices(PLATFORMS[wanted])[0]
    except RuntimeError as error:
        there = sorted({device.platform for device in jax.devices()})
        raise Unusable(f"jax {jax.__version__} finds no {wanted} device here; it has {', '.join(there)}") from error
