"""A set on many nodes: the plan of it, and its cost in closed form (docs/scale.md).

Plan ─▶ costs(): seconds that an image takes of each resource ─▶ predict(): the slowest resource sets the pace
"""

import math
import statistics
from dataclasses import dataclass, field, fields

KINDS = ("convert", "embed", "train")
MOST_PIECES = 20_000_000


def of(default, text):
    """A field of a plan, with what it is."""
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True)
class Plan:
    """The work, the nodes and what goes wrong. Rates are per second, sizes are bytes."""

    workload: str = of("convert", "convert, embed or train")
    nodes: int = of(64, "nodes")
    images: int = of(250_000_000, "images of the set")
    bytes_per_image: float = of(4e6, "bytes that reading an image brings over the link")
    requests_per_image: float = of(1.0, "requests that reading an image takes")
    written_per_image: float = of(4e6, "bytes that convert writes for an image")
    epochs: int = of(1, "epochs of train")
    part: int = of(0, "images of a part: what the driver sends out at a time (convert, embed); 0 for a piece")
    piece: int = of(16_000, "images of a piece: what the simulation moves at a time, and a node loses when it fails")
    ahead: int = of(6, "pieces that a node has begun at once")
    cores: int = of(32, "cores of a node")
    decode_per_s: float = of(100.0, "images that a core reads and decodes (of convert: and encodes)")
    gpu_per_s: float = of(600.0, "images that the GPUs of a node take (embed, train)")
    batch: int = of(256, "images of a step of a node (train)")
    gradient_bytes: float = of(100e6, "bytes of gradients that a step exchanges (train)")
    network_bytes_per_s: float = of(12.5e9, "network among the nodes, each")
    link_bytes_per_s: float = of(3e9, "link of a node to the bucket, each way")
    latency_s: float = of(0.03, "time to an answer's first byte")
    at_once: int = of(128, "requests that a node has in flight")
    disk_bytes_per_s: float = of(3e9, "disk of a node, where its cache lies")
    cache_bytes: float = of(0.0, "cache of a node on its disk (train)")
    bucket_bytes_per_s: float = of(100e9, "most that the bucket gives and takes, of all nodes together")
    bucket_requests_per_s: float = of(50_000.0, "requests that the bucket answers, of all nodes together")
    dispatch_s: float = of(0.002, "time that the driver takes for a part (convert, embed)")
    jitter: float = of(0.2, "coefficient of variation of the time for a piece, on each resource")
    step_jitter: float = of(0.03, "coefficient of variation of the GPU's time for a step (train)")
    stragglers: float = of(0.0, "share of the nodes that are slow")
    slowdown: float = of(2.0, "how many times as long a slow node takes")
    mtbf_s: float = of(0.0, "mean time between failures of a node; 0 for none")
    restart_s: float = of(300.0, "time until a failed node, or all of train, is at work again")
    checkpoint_s: float = of(1_800.0, "time between checkpoints of train")
    seed: int = of(0, "seed of jitter and failures")

    def __post_init__(self):
        if self.workload not in KINDS:
            raise ValueError(f"workload {self.workload!r} is none of {', '.join(KINDS)}")
        may_be_zero = {"cache_bytes", "latency_s", "dispatch_s", "jitter", "step_jitter", "stragglers", "mtbf_s",
                       "restart_s", "seed", "written_per_image", "gradient_bytes", "part"}  # fmt: skip
        for f in fields(self):
            value = getattr(self, f.name)
            if isinstance(value, str):
                continue
            if not math.isfinite(value) or value < 0 or (value == 0 and f.name not in may_be_zero):
                raise ValueError(f"{f.name} is {value}: give a finite number over 0")
        if self.stragglers > 1 or self.slowdown < 1:
            raise ValueError("stragglers is a share, 1 at most, and slowdown is 1 at least")
        if self.images * self.epochs / self.piece > MOST_PIECES:
            raise ValueError(f"more than {MOST_PIECES} pieces: give a larger piece than {self.piece} images")

    @property
    def slow_nodes(self):
        """Nodes that are slow, rounded."""
        return math.floor(self.stragglers * self.nodes + 0.5)

    @property
    def deal(self):
        """Pieces in all of an epoch, and images of each: equally many for each node of train."""
        each = max(1, self.nodes if self.workload == "train" else 1)
        count = each * max(1, math.ceil(self.images / (each * self.piece)))
        return count, self.images / count

    @property
    def parts(self):
        """Parts of all images, which the driver sends out (convert, embed)."""
        return math.ceil(self.images / self.part) if self.part else self.deal[0]


@dataclass(frozen=True)
class Cost:
    """Seconds that an image takes of each resource: of one node's, and of what all nodes share."""

    node: dict
    shared: dict
    exchange: float


def costs(plan, hit=0.0):
    """The cost of an image when a share `hit` of its bytes lies in the node's cache."""
    miss = 1 - hit
    written = plan.written_per_image if plan.workload == "convert" else 0.0
    moved = miss * plan.bytes_per_image + written
    node = {
        "latency": miss * plan.requests_per_image * plan.latency_s / plan.at_once,
        "link": miss * plan.bytes_per_image / plan.link_bytes_per_s,
        "disk": hit * plan.bytes_per_image / plan.disk_bytes_per_s,
        "decode": 1 / (plan.cores * plan.decode_per_s),
        "upload": written / plan.link_bytes_per_s,
    }
    exchange = 0.0
    if plan.workload == "train" and plan.nodes > 1:
        # A ring: each node sends and receives all gradients twice, but for its own part.
        around = 2 * (plan.nodes - 1) / plan.nodes * plan.gradient_bytes / plan.network_bytes_per_s
        exchange = around / plan.batch
    if plan.workload != "convert":
        node["gpu"] = 1 / plan.gpu_per_s + exchange
    shared = {
        "bucket bytes": moved / plan.bucket_bytes_per_s,
        "bucket requests": miss * plan.requests_per_image / plan.bucket_requests_per_s,
    }
    if plan.workload != "train":
        shared["driver"] = plan.dispatch_s * plan.parts / plan.images
    return Cost(node, shared, exchange)


@dataclass(frozen=True)
class Result:
    """The cost of the work."""

    seconds: float
    images_per_s: float
    bound_by: str
    requests: float
    link_bytes: float
    gpu_idle: float


def hit_share(plan):
    """Share of the set that the caches of all nodes hold together after the first epoch."""
    return min(1.0, plan.cache_bytes * plan.nodes / (plan.images * plan.bytes_per_image))


def slowest_step(plan):
    """The mean time of the slowest node of a step, relative to that of a node that is not slow."""

    def most(n):
        # The expected largest of n normal values, by Blom.
        return statistics.NormalDist().inv_cdf((n - 0.375) / (n + 0.25)) if n > 1 else 0.0

    slow = plan.slow_nodes
    groups = [(plan.nodes - slow, 1.0), (slow, plan.slowdown)]
    return max(factor * (1 + plan.step_jitter * most(n)) for n, factor in groups if n)


def pace(plan, hit):
    """Images per second of all nodes together, and what binds them."""
    cost = costs(plan, hit)
    binding, slowest = max(cost.node.items(), key=lambda item: item[1])
    slow = plan.slow_nodes
    if plan.workload == "train":
        # All nodes keep step: buffers even out the pieces' times, but not those of steps.
        node = {name: seconds * (plan.slowdown if slow else 1.0) for name, seconds in cost.node.items()}
        node["gpu"] = slowest_step(plan) / plan.gpu_per_s + cost.exchange
        binding, slowest = max(node.items(), key=lambda item: item[1])
        alike = plan.nodes / slowest
        if slow:
            binding = f"{binding} of slow nodes"
    else:
        alike = (plan.nodes - slow + slow / plan.slowdown) / slowest
        if plan.mtbf_s:
            # What a failure costs its node: the time until it is back, and the piece it was at.
            lost = plan.restart_s + plan.deal[1] * slowest
            alike *= plan.mtbf_s / (plan.mtbf_s + lost)
    rates = {binding: alike} | {name: 1 / seconds for name, seconds in cost.shared.items() if seconds > 0}
    bound_by = min(rates, key=lambda name: rates[name])
    return rates[bound_by], bound_by


def gpu_idle(plan, images, seconds):
    """Share of the GPUs' time in which they compute nothing that lasts."""
    return max(0.0, 1 - images / plan.gpu_per_s / plan.nodes / seconds) if plan.workload != "convert" else 0.0


def predict(plan):
    """The closed form: the slowest resource sets the pace, and the first piece has to get through all of them."""
    count, size = plan.deal
    epochs = plan.epochs if plan.workload == "train" else 1
    hits = [0.0] + [hit_share(plan)] * (epochs - 1) if plan.workload == "train" else [0.0]
    paces = [pace(plan, hit) for hit in hits]
    seconds = sum(plan.images / rate for rate, _ in paces)
    if plan.workload == "train" and plan.mtbf_s:
        # All nodes go back to the last checkpoint, half an interval ago on average, or to the beginning.
        lost = plan.restart_s + min(plan.checkpoint_s, seconds) / 2
        rate = plan.nodes / plan.mtbf_s
        seconds *= 1 + lost * rate
    # The pieces' way through what does not bind.
    first = costs(plan)
    way = [s * size for s in first.node.values()] + [
        max(first.shared["bucket bytes"], first.shared["bucket requests"]) * size
    ]
    seconds += plan.latency_s + sum(way) - max(way)
    misses = sum(1 - hit for hit in hits)
    written = plan.written_per_image if plan.workload == "convert" else 0.0
    total = plan.images * len(hits)
    idle = gpu_idle(plan, total, seconds)
    return Result(
        seconds=seconds,
        images_per_s=total / seconds,
        bound_by=max(paces, key=lambda p: plan.images / p[0])[1],
        requests=plan.images * plan.requests_per_image * misses,
        link_bytes=plan.images * (plan.bytes_per_image * misses + written),
        gpu_idle=idle,
    )
