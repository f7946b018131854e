"""The same as scale_plan.predict(), simulated: pieces of the set in the queues of nodes, event by event.

driver ─▶ requests ─▶ bucket ─▶ link ─┬▶ decode ─┬▶ GPU              embed
             a node's cache ─▶ disk ──┘          ├▶ upload ─▶ bucket convert
                                                 └▶ a step of all    train
"""

import heapq
import random
from collections import deque

from scale_plan import Result, costs, gpu_idle, hit_share


class Queue:
    """Serves one piece after the other, in the order in which they come."""

    def __init__(self):
        self.free = 0.0

    def serve(self, now, seconds):
        """When a piece that comes now is done."""
        self.free = max(now, self.free) + seconds
        return self.free


class Node:
    """A node: its queues, the pieces that it has begun, and what its cache holds."""

    def __init__(self, factor):
        self.factor = factor
        # Of the node's life: what was begun before a failure is nobody's after it.
        self.life = 0
        self.up = True
        self.begun = {}
        self.ready = 0
        self.next = 0
        # Pieces' worth of images that its cache holds.
        self.held = 0.0
        self.clear()

    def clear(self):
        self.queues = {name: Queue() for name in ("latency", "link", "disk", "decode", "gpu", "upload")}


class Simulation:
    """Pieces go through queues: driver, requests, bucket, link (or the disk), decoding, GPU or upload.

    The bucket and the driver are one queue each for all nodes. In convert and embed a node takes the next piece that
    is left; others take the pieces of one that fails. In train each node has its own part, all begin a step together,
    and a failure sends all of them back to the last checkpoint.
    """

    def __init__(self, plan):
        self.plan = plan
        self.random = random.Random(plan.seed)
        slow = plan.slow_nodes
        self.nodes = [Node(plan.slowdown if n < slow else 1.0) for n in range(plan.nodes)]
        self.bucket, self.driver = Queue(), Queue()
        self.events, self.order = [], 0
        self.count, self.size = plan.deal
        self.left = deque(range(self.count))
        # Of all parts of a piece.
        self.dispatch_s = plan.dispatch_s * plan.parts / self.count
        self.done = 0
        self.requests = self.link_bytes = 0.0
        # As hit_share() has it, of the node's own part.
        self.room = hit_share(plan) * self.count / plan.nodes if plan.workload == "train" else 0.0
        self.fresh, self.cached = costs(plan), costs(plan, 1.0)
        self.own = self.count // plan.nodes
        self.steps = self.own * plan.epochs
        self.step = self.checkpoint = 0
        self.checkpoint_at = 0.0
        self.stepping = False

    def at(self, when, what, *about):
        self.order += 1
        heapq.heappush(self.events, (when, self.order, what, about))

    def drawn(self, seconds, cv=None):
        """A service time: its mean is `seconds`."""
        cv = self.plan.jitter if cv is None else cv
        return seconds * self.random.gammavariate(1 / cv**2, cv**2) if cv > 0 and seconds > 0 else seconds

    def route(self, node, piece):
        """The queues that a piece goes through, its seconds in each, and a wait that holds nobody up."""
        plan, size, queues = self.plan, self.size, node.queues
        # Epochs are shuffled: every piece of a later one has the same share of cached images.
        hit = node.held / self.own if plan.workload == "train" and piece >= self.own else 0.0
        held, fresh = self.cached.node, self.fresh.node
        cost = {name: hit * held[name] + (1 - hit) * fresh[name] for name in fresh}
        way = []
        if plan.workload != "train":
            way.append((self.driver, self.dispatch_s, 0.0))

        def through(name, wait=0.0):
            if cost.get(name, 0.0) > 0:
                way.append((queues[name], self.drawn(cost[name] * size * node.factor), wait))

        if hit < 1:
            through("latency", plan.latency_s)
            asked = max(
                plan.bytes_per_image / plan.bucket_bytes_per_s, plan.requests_per_image / plan.bucket_requests_per_s
            )
            way.append((self.bucket, self.drawn(asked * size * (1 - hit)), 0.0))
        through("link")
        through("disk")
        through("decode")
        if plan.workload == "embed":
            through("gpu")
        if plan.workload == "convert" and plan.written_per_image > 0:
            through("upload")
            way.append((self.bucket, self.drawn(plan.written_per_image * size / plan.bucket_bytes_per_s), 0.0))
        self.requests += plan.requests_per_image * size * (1 - hit)
        self.link_bytes += plan.bytes_per_image * size * (1 - hit)
        node.held = min(node.held + 1 - hit, self.room)
        return way

    def fill(self, now, n):
        """Has a node begin pieces until it has as many as it may."""
        node = self.nodes[n]
        while node.up and len(node.begun) + node.ready < self.plan.ahead:
            if self.plan.workload == "train":
                if node.next >= self.steps:
                    return
                piece = node.next
                node.next += 1
            elif self.left:
                piece = self.left.popleft()
            else:
                return
            node.begun[piece] = iter(self.route(node, piece))
            self.move(now, n, node.life, piece)

    def move(self, now, n, life, piece):
        """A piece goes to its next queue, or is done."""
        node = self.nodes[n]
        if life != node.life:
            return
        stop = next(node.begun[piece], None)
        if stop is not None:
            queue, seconds, wait = stop
            self.at(queue.serve(now, seconds) + wait, self.move, n, life, piece)
            return
        del node.begun[piece]
        if self.plan.workload == "train":
            node.ready += 1
            self.begin_step(now)
            return
        self.done += 1
        if self.plan.workload == "convert":
            self.link_bytes += self.plan.written_per_image * self.size
        self.fill(now, n)

    def begin_step(self, now):
        """Begins a step of train when every node has a piece for it."""
        if self.stepping or not all(node.ready for node in self.nodes):
            return
        self.stepping = True
        own = self.size / self.plan.gpu_per_s
        slowest = max(self.drawn(own * node.factor, self.plan.step_jitter) for node in self.nodes)
        seconds = slowest + self.fresh.exchange * self.size
        self.at(now + seconds, self.end_step, self.nodes[0].life)

    def end_step(self, now, life):
        if life != self.nodes[0].life:
            return
        self.stepping = False
        self.step += 1
        if now - self.checkpoint_at >= self.plan.checkpoint_s:
            self.checkpoint, self.checkpoint_at = self.step, now
        for n, node in enumerate(self.nodes):
            node.ready -= 1
            self.fill(now, n)
        self.begin_step(now)

    def fail(self, now, n):
        """A node fails: others take its pieces. In train all go back to the checkpoint, and its cache is lost."""
        failed = self.nodes[n]
        failed.held = 0.0
        all_of_them = self.plan.workload == "train"
        for node in self.nodes if all_of_them else [failed]:
            node.life += 1
            node.up = False
            if not all_of_them:
                self.left.extendleft(node.begun)
            node.begun.clear()
            node.ready, node.next = 0, self.checkpoint
            node.clear()
        self.step, self.stepping = self.checkpoint, False
        # Of what was asked for nobody waits any more, but the bucket gives it.
        self.at(now + self.plan.restart_s, self.restart, n, failed.life)
        if not all_of_them:
            for other in range(len(self.nodes)):
                self.fill(now, other)

    def restart(self, now, n, life):
        node = self.nodes[n]
        if self.plan.workload == "train":
            if life != node.life:
                # Another node failed meanwhile: its own restart is that of all.
                self.at(now + self.random.expovariate(1 / self.plan.mtbf_s), self.fail, n)
                return
            self.checkpoint_at = now
            for other, each in enumerate(self.nodes):
                each.up = True
                self.fill(now, other)
        else:
            node.up = True
            self.fill(now, n)
        self.at(now + self.random.expovariate(1 / self.plan.mtbf_s), self.fail, n)

    def finished(self):
        return self.step >= self.steps if self.plan.workload == "train" else self.done >= self.count

    def run(self):
        plan, now = self.plan, 0.0
        for n in range(plan.nodes):
            self.fill(0.0, n)
            if plan.mtbf_s:
                self.at(self.random.expovariate(1 / plan.mtbf_s), self.fail, n)
        most = 200 * (self.count * plan.epochs + plan.nodes)
        for _ in range(most):
            if self.finished():
                break
            now, _, what, about = heapq.heappop(self.events)
            what(now, *about)
        else:
            raise ValueError("nodes fail before they finish anything: give a larger mtbf_s or a smaller piece")
        total = plan.images * (plan.epochs if plan.workload == "train" else 1)
        idle = gpu_idle(plan, total, now)
        return Result(now, total / now, "", self.requests, self.link_bytes, idle)


def simulate(plan):
    """The cost of the work, piece by piece."""
    return Simulation(plan).run()
