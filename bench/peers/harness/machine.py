"""What must be on the machine, and what the machine is."""

import glob
import os
import pathlib
import platform
import shutil
import subprocess
import sys

from . import peers


def prepare(chosen):
    """Installs and builds what the chosen peers need. The reference is a Rust program on Redis, so these always."""
    needs = {need for peer in chosen for need in peer.needs} | {"redis", "cargo"}
    if not shutil.which("cargo"):
        sys.exit("`cargo` is missing: install Rust")
    install("redis-server", lambda: shutil.which("redis-server"))
    if "postgres" in needs:
        install("postgresql", lambda: postgres_bin())
    if "node" in needs:
        if not (shutil.which("node") and shutil.which("npm")):
            sys.exit("`node` and `npm` are missing: install Node 20 or later")
        step("npm install", ["npm", "install", "--silent"], peers.HERE / "bullmq-node")
    if "ruby" in needs:
        install("ruby-sidekiq", sidekiq_version, other=["gem", "install", "--no-document", "sidekiq:6.4.1"])
    environment = {**os.environ, "CARGO_TARGET_DIR": str(peers.HERE / "target")}
    # Not `--locked`: the lock file also has what Tenure depends on, and follows it.
    step("cargo build", ["cargo", "build", "--release", "--quiet"], peers.HERE, environment)


def step(name, command, folder=None, environment=None):
    """Runs a command; ends the program when it fails. What it says goes to standard error."""
    print(f"== {name}", file=sys.stderr, flush=True)
    try:
        subprocess.run(command, cwd=folder, env=environment, stdout=sys.stderr, check=True)
    except (subprocess.CalledProcessError, FileNotFoundError) as error:
        sys.exit(f"{name} failed: {error}")


def install(package, there, other=None):
    """Installs a Debian package unless what it brings is there; elsewhere runs `other`."""
    if there():
        return
    if shutil.which("apt-get"):
        as_root = [] if os.getuid() == 0 else ["sudo"]
        apt = [*as_root, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq"]
        step(f"look for {package}", [*apt, "update"])
        step(f"install {package}", [*apt, "install", "-y", package])
    elif other and shutil.which(other[0]):
        step(f"install {package}", other)
    if not there():
        sys.exit(f"{package} (so called in Debian) is missing: install it and run this again")


def sidekiq_version():
    """The version that Ruby finds, or nothing."""
    if not shutil.which("ruby"):
        return None
    asked = ["ruby", "-e", "require 'sidekiq'; print Sidekiq::VERSION"]
    answer = subprocess.run(asked, capture_output=True, text=True, check=False)
    return answer.stdout if answer.returncode == 0 else None


def postgres_bin():
    """The folder of initdb and postgres, or nothing."""
    for folder in (*glob.glob("/usr/lib/postgresql/*/bin"), *os.get_exec_path()):
        if all(os.access(os.path.join(folder, name), os.X_OK) for name in ("initdb", "postgres")):
            return folder
    return None


def describe():
    """Cores and versions, for the line below the table."""
    return {
        "cpu": cpu(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.release()}",
        "redis": first_line(["redis-server", "--version"]),
        "rust": first_line(["rustc", "--version"]),
        "node": first_line(["node", "--version"]),
        "sidekiq": sidekiq_version(),
        "postgres": first_line([os.path.join(postgres_bin() or "", "postgres"), "--version"]),
    }


def cpu():
    """The processor's name, where Linux tells it."""
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.processor())


def first_line(command):
    """What a command says first, or nothing if it is not there."""
    try:
        said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    except OSError:
        return None
    return said.strip().splitlines()[0] if said.strip() else None
