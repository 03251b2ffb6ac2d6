"""The servers that `benches/load`, `benches/mirror-load` and `benches/gateway-load` measure and compare."""

import os
import platform
import re
import shutil
import signal
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", PROJECT / "target"))
OAIMEND = TARGET / "dist" / "oaimend"
EXAMPLES = TARGET / "dist" / "examples"

TICKS = os.sysconf("SC_CLK_TCK")
KIB_A_MIB = 1024


class BenchError(Exception):
    """An error that makes all figures invalid."""


@dataclass
class Server:
    """A server process on loopback."""

    name: str
    process: subprocess.Popen
    port: int
    log: Path

    def pids(self):
        """The process and its workers."""
        own = self.process.pid
        children = Path(f"/proc/{own}/task/{own}/children").read_text().split()
        return [own, *map(int, children)]

    def cpu_seconds(self):
        """User and system time of all its processes since their start."""
        fields = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in self.pids()]
        return sum(int(field[11]) + int(field[12]) for field in fields) / TICKS

    def resident_mib(self):
        statuses = [Path(f"/proc/{pid}/status").read_text() for pid in self.pids()]
        return sum(int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) for status in statuses) / KIB_A_MIB

    def take_warnings(self):
        """Returns the warnings in the log and empties it."""
        with self.log.open("rb") as log:
            found = [line for line in log if re.search(rb'"level":"(WARN|ERROR)"|\[(warn|error|crit)\]', line)]
        # All processes append, so the next line is at the start of the emptied file.
        os.truncate(self.log, 0)
        return [line.decode(errors="replace").strip() for line in found]


class Servers:
    """All servers of a run. They are stopped at its end."""

    def __init__(self):
        self.running = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for server in reversed(self.running):
            server.process.send_signal(signal.SIGINT)
        for server in reversed(self.running):
            server.process.wait()

    def stop(self, server):
        """Stops one server."""
        server.process.send_signal(signal.SIGINT)
        server.process.wait()
        self.running.remove(server)

    def start(self, name, folder, port, command, log=None):
        stderr = folder / "log"
        with stderr.open("ab") as output:
            process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=output)
        server = Server(name, process, port, folder / log if log else stderr)
        self.running.append(server)
        for _ in range(500):
            if process.poll() is not None:
                break
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                return server
            except OSError:
                time.sleep(0.02)
        raise BenchError(f"{name} does not accept connections:\n{stderr.read_text()}")


def build(*targets):
    """Builds programs of the project."""
    subprocess.run(["cargo", "build", "--profile", "dist", *targets], cwd=PROJECT, check=True)


def install_references(**more):
    """Installs nginx, wrk and `more` programs, named by their packages, where they are missing."""
    programs = {"nginx-light": "nginx", "wrk": "wrk", **more}
    missing = [package for package, program in programs.items() if not shutil.which(program)]
    if missing:
        if os.geteuid() != 0 or shutil.which("apt-get") is None:
            raise SystemExit(f"programs are missing: apt-get install {' '.join(missing)}")
        subprocess.run(["apt-get", "update", "-qq"], check=True)
        subprocess.run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", *missing], check=True)


def empty(folder):
    """Makes an empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as bound:
        return bound.getsockname()[1]


def nginx(servers, folder, conf, log=None, **values):
    """Starts an nginx in a folder. `conf` is its configuration, with fields for `port`, `user` and `values`."""
    port = free_port()
    folder.mkdir(exist_ok=True)
    user = "user root;" if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(conf.format(port=port, user=user, **values))
    command = [shutil.which("nginx") or "/usr/sbin/nginx", "-p", f"{folder}/", "-c", "nginx.conf"]
    return servers.start(folder.name, folder, port, command, log)


def machine(connections):
    """The machine and the versions of the programs, as lines of text."""
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    first_line = lambda *command: subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout.splitlines()[0]
    pingora = re.search(r'name = "pingora-proxy"\nversion = "(.*)"', (PROJECT / "Cargo.lock").read_text())
    return [
        f"machine: {model[1] if model else platform.processor()}, {os.cpu_count()} CPUs, Linux {platform.release()}",
        f"{first_line(OAIMEND, '--version')}, {first_line('nginx', '-v').removeprefix('nginx version: ')}, pingora {pingora[1]}, "
        f"wrk with {connections} connections",
    ]


def write_figures(page, mark, lines):
    """Writes the lines between two marks of a page in docs/explanation."""
    path = PROJECT / "docs" / "explanation" / page
    start, end = f"<!-- {mark}: written by benches/{mark} -->\n", f"<!-- /{mark} -->"
    head, rest = path.read_text().split(start)
    path.write_text(head + start + "\n" + "\n".join(lines) + "\n\n" + end + rest.split(end, 1)[1])
