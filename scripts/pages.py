"""What the checks of pages have in common: a Redis of their own, the binary beside it, and pages whose commands are run
from top to bottom and compared with the answers that they show."""
import atexit
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

root = pathlib.Path(__file__).resolve().parent.parent
# A block of commands, the answer behind it if there is one, and conditions that the reader's eyes stand for.
PARTS = re.compile(
    r"<!-- wait: (?P<wait>.*?) -->\n"
    r"|```sh\n(?P<run>.*?)```\n(?:\n```(?:text|json)\n(?P<shown>.*?)```\n)?", re.S)
UUID = r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"


def build():
    subprocess.run(["cargo", "build", "--quiet", "--package", "tenure-cli"], cwd=root, check=True)
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", root / "target"))
    return target.resolve() / "debug" / "tenure"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait(what, holds, seconds=30):
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            raise SystemExit(f"not within {seconds} s: {what}")
        time.sleep(0.02)


class World:
    """A folder, a Redis, and a shell in which `tenure` and `redis-cli` mean the binary and that Redis."""

    def __init__(self, name, *options, env=None):
        self.scratch, self.port = pathlib.Path(tempfile.mkdtemp(prefix=f"tenure-{name}.")), free_port()
        atexit.register(self.end)
        self.children = []
        self.log = (self.scratch / "log").open("w")
        self.url = f"redis://127.0.0.1:{self.port}"
        bare = {k: v for k, v in os.environ.items() if not k.startswith("TENURE_")}
        path = f"{self.scratch}/bin:{os.environ['PATH']}"
        self.env = bare | {"TENURE_REDIS_URL": self.url, "TENURE_CONFIG": "", "PATH": path, "LC_ALL": "C.UTF-8"}
        self.env |= env or {}
        (self.scratch / "work").mkdir()
        (self.scratch / "bin").mkdir()
        os.symlink(build(), self.scratch / "bin" / "tenure")
        program = self.scratch / "bin" / "redis-cli"
        program.write_text(f'#!/bin/sh\nexec {shutil.which("redis-cli")} -p {self.port} "$@"\n')
        program.chmod(0o755)
        server = self.start("redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir",
                            str(self.scratch), *options)
        # Its own: another program may have taken the port meanwhile.
        wait("redis-server answers", lambda: f"process_id:{server.pid}\n" in self.sh("redis-cli INFO server").stdout)

    def start(self, *words):
        program = shutil.which(words[0], path=self.env["PATH"])
        child = subprocess.Popen([program, *words[1:]], env=self.env, stdout=self.log, stderr=self.log)
        self.children.append(child)
        return child

    def sh(self, text, check=False):
        done = subprocess.run(["bash", "-c", text], env=self.env, cwd=self.scratch / "work", stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=60)
        if check and done.returncode != 0:
            raise SystemExit(f"`{text}` failed: {done.stdout}{done.stderr}")
        return done

    def start_worker(self):
        """A worker of the demo, when it has said what it can run."""
        self.start("tenure", "worker", "--demo")
        wait("the worker is there", lambda: "demo-refund" in self.sh("redis-cli SMEMBERS '{tenure}:definitions'").stdout)

    def end(self):
        for child in reversed(self.children):
            child.terminate()
            child.wait()
        shutil.rmtree(self.scratch)


def follow(page, world, answer, equal=lambda text: text):
    """Answers with the page as `answer` answers its commands now, with what differs, and how many blocks there are."""
    text, wrong, count = page.read_text(), [], 0
    out, at = [], 0
    for part in PARTS.finditer(text):
        if part["wait"]:
            wait(part["wait"], lambda: world.sh(part["wait"]).returncode == 0)
            continue
        count += 1
        said, shown = answer(part["run"]), part["shown"] or ""
        block = f"\n```{language(said)}\n{said}```\n" if said else ""
        out.append(text[at:part.start()] + f"```sh\n{part['run']}```\n" + block)
        at = part.end()
        if equal(said) != equal(shown):
            line = text.count("\n", 0, part.start()) + 1
            wrong.append(f"{page.relative_to(root)}:{line}:\n{part['run']}answers\n{said}the page shows\n{shown}")
    return "".join(out) + text[at:], wrong, count


def language(said):
    try:
        json.loads(said if said[:2] in ("{\n", "[\n") else f"[{','.join(said.splitlines())}]")
        return "json" if said[0] in "{[" else "text"
    except ValueError:
        return "text"


def settle(page, fresh, wrong):
    """Writes the page when that is asked for; otherwise what differs is the end."""
    if sys.argv[1:] == ["--write"]:
        page.write_text(fresh)
    elif wrong:
        print("\n".join(wrong), file=sys.stderr)
        print(f"`{sys.argv[0]} --write` puts these answers into the page", file=sys.stderr)
        sys.exit(1)
