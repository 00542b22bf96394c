"""Runs the loads: rounds in which the peers alternate, then what is measured once."""

import json
import os
import statistics
import subprocess
import sys

from . import peers, recovery, servers

SHAPES = ("single", "chain", "fan")
ALL = (*SHAPES, "idle", "recovery", "depth")
# No program runs longer.
LIMIT = 900
# Calls of the reference, of which there is one before each program: a second.
REFERENCE = {False: 100_000, True: 20_000}
DEPTHS = (10_000, 1_000_000)


class Results:
    """All figures of all rounds."""

    def __init__(self):
        self.rows = []
        self.failures = []

    def add(self, load, peer, round_number, values):
        """Notes the figures of one program."""
        self.rows.append({"load": load, "peer": peer, "round": round_number, **values})

    def fail(self, what, error):
        """Notes that a program failed; the others go on."""
        self.failures.append(f"{what}: {error}")
        print(f"   {what}: {error}", file=sys.stderr, flush=True)

    def all(self):
        """For the JSON file."""
        return self.rows

    def of(self, load, peer):
        """The rows of a load and a peer."""
        return [row for row in self.rows if row["load"] == load and row["peer"] == peer]

    def median(self, load, peer, value):
        """The median of a value over the rounds, or nothing."""
        found = [value(row) if callable(value) else row.get(value) for row in self.of(load, peer)]
        found = [figure for figure in found if figure is not None]
        return statistics.median(found) if found else None


def run(chosen, given):
    """All loads that were asked for."""
    results = Results()
    with servers.Redis() as redis, postgres_for(chosen) as postgres:
        hosts = {"redis": redis, "postgres": postgres}
        for number in range(given.rounds):
            one_round(chosen, given, results, hosts, number)
        if "depth" in given.loads and given.full:
            depths(chosen, given, results, hosts)
    if "recovery" in given.loads:
        recovery.run(chosen, given, results)
    return results


def postgres_for(chosen):
    """A Postgres if anybody needs one."""
    needed = any(peer.server == "postgres" for peer in chosen)
    return servers.Postgres() if needed else open(os.devnull)


def one_round(chosen, given, results, hosts, number):
    """Each load on each peer once. Each round begins with another peer, so that none always comes after the same."""
    turn = number % len(chosen)
    order = chosen[turn:] + chosen[:turn]
    for shape in (shape for shape in SHAPES if shape in given.loads):
        for peer in (peer for peer in order if shape in peer.shapes):
            reference = raw_reference(given, results, hosts, number)
            if reference is None:
                continue
            count = peer.count(shape, given.quick)
            words = ["throughput", "--shape", shape, "--count", count]
            values = program(peer, words, results, hosts, f"round {number + 1}, {shape}")
            if values:
                results.add(shape, peer.key, number, {**values, "reference": reference})
    if "idle" in given.loads:
        for peer in order:
            words = ["idle", "--count", peer.count("idle", given.quick)]
            values = program(peer, words, results, hosts, f"round {number + 1}, idle")
            if values:
                results.add("idle", peer.key, number, values)


def raw_reference(given, results, hosts, number):
    """What Redis does with eight commands in a script, just before a program; nothing if it failed."""
    hosts["redis"].clear()
    command = [*peers.rust("tenure"), "reference", "--url", hosts["redis"].url, "--count", str(REFERENCE[given.quick])]
    command += ["--threads", str(given.threads)]
    try:
        rate = call(command)["reference"]
    except (RuntimeError, OSError, ValueError, subprocess.SubprocessError) as error:
        results.fail(f"round {number + 1}, reference", error)
        return None
    results.add("reference", "reference", number, {"rate": rate})
    return rate


def depths(chosen, given, results, hosts):
    """The rate at 10 000 and at 1 000 000 queued jobs, once for each round."""
    for number in range(given.rounds):
        for peer in (peer for peer in chosen if peer.deep):
            rates = {}
            for depth in DEPTHS:
                values = program(peer, ["depth", "--count", depth], results, hosts, f"depth {depth}")
                if values:
                    rates[depth] = values["drain"]
            if len(rates) == len(DEPTHS):
                shallow, deep = (rates[depth] for depth in DEPTHS)
                results.add("depth", peer.key, number, {"shallow": shallow, "deep": deep})


def program(peer, words, results, hosts, what):
    """Runs a peer's program on an empty server. Its figures, or nothing if it failed."""
    server = hosts[peer.server]
    try:
        server.clear()
        values = call([*peer.command, *map(str, words), "--url", server.url, *options(peer)])
    except (RuntimeError, OSError, ValueError, subprocess.SubprocessError) as error:
        results.fail(f"{what}, {peer.key}", error)
        return None
    print(f"   {what}, {peer.key}: {json.dumps(values)}", file=sys.stderr, flush=True)
    if peer.key == "tenure" and values.get("repeated"):
        results.fail(f"{what}, {peer.key}", f"{values['repeated']} tasks ran more than once, and nothing had failed")
        return None
    return values


def options(peer):
    """What every call of a peer's program ends with."""
    return ["--slots", str(peer.slots), *peer.options()]


def call(command):
    """Runs a program and reads the line that it prints last."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
    lines = done.stdout.strip().splitlines()
    if done.returncode != 0 or not lines:
        said = done.stderr.strip().splitlines()
        raise RuntimeError(f"ended with {done.returncode}: {said[-1] if said else 'said nothing'}")
    return json.loads(lines[-1])
