"""Who takes part, with which program and how many jobs."""

import dataclasses
import pathlib

HERE = pathlib.Path(__file__).resolve().parent.parent
RUST = HERE / "target" / "release"
# Tasks of one job of a shape.
TASKS = {"single": 1, "chain": 3, "fan": 11}

# Jobs of a load: enough for seconds, so that neither the start of a worker nor a pause of the machine counts.
FAST = {"single": 40_000, "chain": 10_000, "fan": 3_000, "idle": 300}
SLOW = {"single": 2_000, "chain": 600, "fan": 200, "idle": 100}
QUICK = {"single": 2_000, "chain": 500, "fan": 200, "idle": 40}
QUICK_SLOW = {"single": 200, "chain": 60, "fan": 20, "idle": 20}
# Its fetch fails once 8000 jobs are due ("too many results to unpack"), and the worker ends.
APALIS_MOST = 7_000


@dataclasses.dataclass(frozen=True)
class Peer:
    """One column of the table."""

    key: str
    name: str
    command: tuple
    shapes: tuple = ("single", "chain", "fan")
    server: str = "redis"
    slots: int = 200
    flags: tuple = ()
    # Of its runtime; nothing where the program has no such option.
    threads: int | None = None
    slow: bool = False
    # The most jobs of a load, where a peer has such a limit.
    most: int = 1_000_000
    # Whether there is a setting that shortens the recovery.
    tunable: bool = True
    # Whether 1 000 000 jobs can be queued, in minutes.
    deep: bool = True
    needs: tuple = ()

    def on_threads(self, threads):
        """The same with so many threads of its runtime, where its program takes them: those in Rust do."""
        if "cargo" not in self.needs:
            return self
        return dataclasses.replace(self, threads=threads)

    def options(self):
        """What every call of its program ends with, but for the slots."""
        return [*self.flags, *(["--threads", str(self.threads)] if self.threads else [])]

    def count(self, load, quick):
        """How many jobs it gets."""
        counts = (QUICK_SLOW if self.slow else QUICK) if quick else (SLOW if self.slow else FAST)
        return min(counts[load], self.most)


def rust(name):
    """The program of a package of this workspace."""
    return (str(RUST / f"peers-{name}"),)


NODE = ("node", str(HERE / "bullmq-node" / "main.mjs"))
RUBY = ("ruby", str(HERE / "sidekiq" / "main.rb"))

PEERS = (
    Peer("tenure", "Tenure", rust("tenure"), needs=("redis", "cargo")),
    Peer("bullmq-rs", "bullmq-official 1.4.4", rust("bullmq-rs"), needs=("redis", "cargo")),
    Peer("bullmq-node", "BullMQ 6.7.0, Node", NODE, needs=("redis", "node")),
    Peer(
        "apalis",
        "apalis-redis 1.0.0",
        rust("apalis"),
        ("single", "chain"),
        most=APALIS_MOST,
        deep=False,
        needs=("redis", "cargo"),
    ),
    Peer(
        "apalis-bare",
        "apalis-redis, no locks and events",
        rust("apalis"),
        ("single", "chain"),
        flags=("--bare",),
        most=APALIS_MOST,
        deep=False,
        needs=("redis", "cargo"),
    ),
    Peer(
        "sayiir",
        "sayiir 1.0.0, Postgres",
        rust("sayiir"),
        server="postgres",
        slow=True,
        deep=False,
        needs=("postgres", "cargo"),
    ),
    Peer(
        "sidekiq",
        "Sidekiq {sidekiq}",
        RUBY,
        ("single", "chain"),
        slots=10,
        tunable=False,
        deep=False,
        needs=("redis", "ruby"),
    ),
)
KEYS = tuple(peer.key for peer in PEERS)
