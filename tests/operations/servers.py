"""Programs that the checks of this folder start, and stop by their process id."""

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent.parent
START_SECONDS_MAX = 20
STOP_SECONDS_MAX = 10


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as bound:
        return bound.getsockname()[1]


def program(name):
    """The path of an installed program, or None. The search includes folders that only root has in its path."""
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")


class Process:
    """A program that runs until the end of a `with` block. Its output is in the file `log`."""

    def __init__(self, command, folder, port, **options):
        self.name = Path(command[0]).name
        self.port = port
        self.log = folder / f"{self.name}.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **options
            )

    def __enter__(self):
        deadline = time.monotonic() + START_SECONDS_MAX
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return self
            except OSError:
                time.sleep(0.02)
        self.__exit__()
        raise SystemExit(f"{self.name} did not start:\n{self.log.read_text(errors='replace')}")

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
