"""A Redis and a Postgres of our own: on free loopback ports, in a folder that goes with them."""

import contextlib
import os
import pathlib
import pwd
import shutil
import socket
import subprocess
import tempfile
import time

from . import machine

PATIENCE = 30


def free_port():
    """A port of the loopback interface that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def end(process):
    """Ends a process that we started, by its id."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_until(holds, what):
    """Waits for a condition, for at most `PATIENCE` seconds."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > deadline:
            raise RuntimeError(f"{what}: not within {PATIENCE} s")
        time.sleep(0.02)


@contextlib.contextmanager
def of_kind(kind):
    """A server of a kind, `redis` or `postgres`."""
    with Redis() if kind == "redis" else Postgres() as server:
        yield server


class Redis:
    """Without persistence, so that the disk of the machine is no part of the comparison."""

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="peers-redis-")
        self.port = free_port()
        options = ["--port", self.port, "--bind", "127.0.0.1", "--dir", self.folder, "--save", "", "--appendonly", "no"]
        self.process = subprocess.Popen(["redis-server", *map(str, options)], stdout=subprocess.DEVNULL)
        self.url = f"redis://127.0.0.1:{self.port}"
        wait_until(self.answers, "redis-server")
        return self

    def __exit__(self, *_):
        end(self.process)
        shutil.rmtree(self.folder, ignore_errors=True)

    def answers(self):
        """Whether it takes connections."""
        try:
            return self.call("PING") == b"+PONG"
        except OSError:
            return False

    def call(self, command):
        """Sends one command without spaces in its words; the first line of the answer."""
        with socket.create_connection(("127.0.0.1", self.port), PATIENCE) as line:
            line.sendall(command.encode() + b"\r\n")
            return line.makefile("rb").readline().strip()

    def clear(self):
        """An empty server: data, scripts' statistics and all."""
        answer = self.call("FLUSHALL")
        if answer != b"+OK":
            raise RuntimeError(f"FLUSHALL: {answer}")


class Postgres:
    """As Debian has it, but a commit does not wait for the disk, as it does not with the Redis beside it."""

    def __enter__(self):
        self.bin = pathlib.Path(machine.postgres_bin())
        self.folder = tempfile.mkdtemp(prefix="peers-postgres-")
        self.port = free_port()
        self.user = {}
        if os.getuid() == 0:
            # Postgres refuses to run as root.
            account = pwd.getpwnam("postgres")
            os.chown(self.folder, account.pw_uid, account.pw_gid)
            self.user = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
        self.tool("initdb", "-D", self.folder, "-U", "bench", "-A", "trust", "--no-sync")
        options = ["-D", self.folder, "-p", self.port, "-h", "127.0.0.1", "-k", self.folder]
        settings = ["-c", "synchronous_commit=off", "-c", "max_connections=200", "-c", "log_min_messages=fatal"]
        command = [self.bin / "postgres", *map(str, options), *settings]
        self.process = subprocess.Popen(command, cwd=self.folder, stderr=subprocess.DEVNULL, **self.user)
        self.url = f"postgres://bench@127.0.0.1:{self.port}/bench"
        wait_until(lambda: self.sql("SELECT 1", check=False) == 0, "postgres")
        return self

    def __exit__(self, *_):
        end(self.process)
        shutil.rmtree(self.folder, ignore_errors=True)

    def tool(self, name, *words):
        """Runs a program of Postgres, quietly."""
        command = [self.bin / name, *map(str, words)]
        subprocess.run(command, cwd=self.folder, stdout=subprocess.DEVNULL, check=True, **self.user)

    def sql(self, statement, check=True):
        """Runs a statement outside the database of the loads."""
        words = ["-h", "127.0.0.1", "-p", self.port, "-U", "bench", "-d", "postgres", "-q", "-c", statement]
        command = [self.bin / "psql", *map(str, words)]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return subprocess.run(command, cwd=self.folder, check=check, **quiet).returncode

    def clear(self):
        """A new database."""
        self.sql("DROP DATABASE IF EXISTS bench WITH (FORCE)")
        self.sql("CREATE DATABASE bench")
