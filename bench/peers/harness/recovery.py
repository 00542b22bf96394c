"""kill -9 of a worker that holds jobs: how long until another has begun the last of them."""

import queue
import subprocess
import sys
import threading
import time

from . import servers

JOBS = 100
# Seconds after which nobody waits any longer, and with --full.
CAP, FULL_CAP = 90, 400
# For what comes before the kill.
PATIENCE = 60


def run(chosen, given, results):
    """All peers at once, since they do nothing but wait: with their own settings, and with shorter ones."""
    cap = FULL_CAP if given.full else CAP
    cases = [(peer, tuned) for peer in chosen for tuned in ((False, True) if peer.tunable else (False,))]
    # The two settings of apalis without locks are those of apalis.
    cases = [(peer, tuned) for peer, tuned in cases if not peer.flags]
    print(f"== recovery, at most {cap} s", file=sys.stderr, flush=True)
    threads = [threading.Thread(target=case, args=(peer, tuned, cap, results)) for peer, tuned in cases]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def case(peer, tuned, cap, results):
    """One peer with one setting, on a server of its own."""
    what = f"recovery, {peer.key}{', tuned' if tuned else ''}"
    try:
        with servers.of_kind(peer.server) as server:
            server.clear()
            seconds, begun = kill_and_wait(peer, tuned, cap, server.url)
    except (RuntimeError, OSError, subprocess.SubprocessError) as error:
        results.fail(what, error)
        return
    values = {"tuned": tuned, "seconds": seconds, "begun": begun, "jobs": JOBS, "cap": cap}
    results.add("recovery", peer.key, 0, values)
    print(f"   {what}: {values}", file=sys.stderr, flush=True)


def kill_and_wait(peer, tuned, cap, url):
    """Seconds until the last of the jobs has begun again, nothing if not within the cap; and how many have."""
    words = ["--url", url, "--slots", str(max(peer.slots, JOBS)), *peer.options()]
    words += ["--count", str(JOBS)]
    subprocess.run([*peer.command, "enqueue", *words], check=True, timeout=PATIENCE, capture_output=True)
    words += ["--tuned"] if tuned else []
    with Worker(peer, [*words, "--hold"]) as first:
        first.begun(PATIENCE)
        with Worker(peer, words) as second:
            second.ready()
            killed = time.monotonic()
            first.process.kill()
            jobs = second.begun(cap, must=False)
            return (time.monotonic() - killed if len(jobs) == JOBS else None), len(jobs)


class Worker:
    """A worker process, and what it says."""

    def __init__(self, peer, words):
        self.command = [*peer.command, "worker", *words]
        self.lines = queue.SimpleQueue()
        self.jobs = set()

    def __enter__(self):
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen(self.command, text=True, **pipes)
        threading.Thread(target=self.read, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def read(self):
        """Passes its lines on until it ends."""
        for line in self.process.stdout:
            self.lines.put(line.strip())
        self.lines.put(None)

    def next(self, deadline):
        """Its next line; nothing after the deadline or its end."""
        try:
            return self.lines.get(timeout=max(0, deadline - time.monotonic()))
        except queue.Empty:
            return None

    def ready(self):
        """Waits until it says that it works."""
        deadline = time.monotonic() + PATIENCE
        while (line := self.next(deadline)) != "ready":
            if line is None:
                raise RuntimeError("the second worker did not start")
            self.note(line)

    def begun(self, limit, must=True):
        """Waits until it has begun all jobs, or the limit; those that it has begun."""
        deadline = time.monotonic() + limit
        while len(self.jobs) < JOBS:
            line = self.next(deadline)
            if line is None:
                break
            self.note(line)
        if must and len(self.jobs) < JOBS:
            raise RuntimeError(f"the first worker began {len(self.jobs)} of {JOBS} jobs")
        return self.jobs

    def note(self, line):
        """Remembers the job that a line names."""
        if line.startswith("begin "):
            self.jobs.add(int(line.split()[1]))
