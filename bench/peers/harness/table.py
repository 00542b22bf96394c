"""The figures as one Markdown table."""

from . import peers

MISSING = "-"
SHAPES = {"single": "single", "chain": "chain of 3", "fan": "fan of 10 and join"}


def render(chosen, results, machine, given):
    """The table, and below it what is needed to read it."""
    lines = [row("", *(heading(peer, machine) for peer in chosen)), row("---", *("---:" for _ in chosen))]
    for title, cell in rows(results, given):
        lines.append(row(title, *(cell(peer) for peer in chosen)))
    return "\n".join([*lines, "", *notes(results, machine, given)])


def row(*cells):
    """One line of the table."""
    return f"| {' | '.join(cells)} |"


def heading(peer, machine):
    """A peer's name, with the version that was found on the machine."""
    return peer.name.format(sidekiq=machine["sidekiq"])


def rows(results, given):
    """Titles, and how each peer's cell is made."""
    for shape, title in SHAPES.items():
        yield f"{title}: put in, jobs/s", lambda peer, shape=shape: rate(results, shape, peer, "enqueue")
        yield f"{title}: drained, jobs/s", lambda peer, shape=shape: rate(results, shape, peer, "drain")
        yield "· its tasks against the reference", lambda peer, shape=shape: against_reference(results, shape, peer)
    yield "idle: start → handler p50 / p99, ms", lambda peer: latency(results, peer, "handler")
    yield "idle: start → result p50 / p99, ms", lambda peer: latency(results, peer, "result")
    yield "bytes for a queued job", lambda peer: figure(results.median("single", peer.key, "bytes"))
    yield "kill -9, default: last of 100 again, s", lambda peer: recovered(results, peer, False)
    yield "kill -9, tuned: last of 100 again, s", lambda peer: recovered(results, peer, True)
    yield "tasks that ran more than once, of all", lambda peer: repeated(results, peer)
    if given.full:
        yield "1 000 000 queued against 10 000", lambda peer: depth(results, peer)


def figure(value, digits=0):
    """A number for people."""
    return MISSING if value is None else f"{value:,.{digits}f}".replace(",", " ")


def rate(results, shape, peer, kind):
    """Jobs a second; in brackets how many times as many Tenure does."""
    per_job = peers.TASKS[shape] if kind == "drain" else 1
    own = results.median(shape, peer.key, kind)
    tenure = results.median(shape, "tenure", kind)
    if own is None:
        return MISSING
    times = f" ({tenure / own:.1f}×)" if tenure and peer.key != "tenure" else ""
    return figure(own / per_job) + times


def against_reference(results, shape, peer):
    """Tasks a second over the raw reference just before, median of the rounds."""
    return figure(results.median(shape, peer.key, lambda found: found["drain"] / found["reference"]), 3)


def latency(results, peer, to):
    """Medians of p50 and p99."""
    halves = [results.median("idle", peer.key, f"{to}_{part}") for part in ("p50", "p99")]
    return MISSING if None in halves else " / ".join(figure(half, 2) for half in halves)


def recovered(results, peer, tuned):
    """Seconds, or that they were more than the cap."""
    found = [one for one in results.of("recovery", peer.key) if one["tuned"] == tuned]
    if not found:
        return MISSING
    one = found[0]
    if one["seconds"] is not None:
        return figure(one["seconds"], 1)
    return f"{one['begun']} of {one['jobs']} within {one['cap']}"


def repeated(results, peer):
    """How many tasks ran again although nothing had failed, over all rounds and shapes."""
    found = [one for shape in SHAPES for one in results.of(shape, peer.key)]
    if not found:
        return MISSING
    return f"{sum(one['repeated'] for one in found)} of {figure(sum(one['tasks'] for one in found))}"


def depth(results, peer):
    """The rate at the greater depth over that at the smaller."""
    return figure(results.median("depth", peer.key, lambda found: found["deep"] / found["shallow"]), 2)


def notes(results, machine, given):
    """What was measured, where, how often."""
    reference = figure(results.median("reference", "reference", "rate"))
    versions = ", ".join(filter(None, (machine["redis"], machine["postgres"], machine["rust"], machine["node"])))
    yield f"Medians; rounds: {given.rounds}. In brackets: Tenure's rate over this one. Reference: {reference} calls/s of"
    yield "a script of 8 commands, 200 in flight on one connection, measured before each program. No job was lost: where one"
    yield "was, there would be no figure."
    yield f"Threads of each program in Rust: {given.threads}."
    yield f"{machine['cores']} cores, {machine['cpu']}, {machine['system']}. {versions}."
    if given.quick:
        yield "A quick run: small counts; its rates say little."
