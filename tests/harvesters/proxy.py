"""Runs `oaimend serve` for a test."""

import json
import os
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

START_SECONDS_MAX = 20
MIRROR_SECONDS_MAX = 60


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Proxy:
    """A running `oaimend serve` with a mapping for each base URL. The keys are the repository ids.

    `files` are the names and texts of configuration files, and `admin` is the address of the admin listener.
    """

    def __init__(self, oaimend, base_urls, files=(), admin="off"):
        self.port = free_port()
        self.data = tempfile.TemporaryDirectory()
        for name, text in dict(files).items():
            path = Path(self.data.name, name)
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        mappings = [f"--map={name}={base_url}" for name, base_url in base_urls.items()]
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [oaimend, "serve", f"--listen=127.0.0.1:{self.port}", f"--admin={admin}",
             f"--public-url=http://127.0.0.1:{self.port}", f"--data={self.data.name}/data",
             *mappings],
            cwd=self.data.name, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
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
        self.log.seek(0)
        raise SystemExit(f"oaimend serve did not start:\n{self.log.read().decode(errors='replace')}")

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.data.cleanup()

    def log_lines(self):
        """The lines of the log so far."""
        # The program writes at the position of the file, so this reads without moving it.
        size = os.fstat(self.log.fileno()).st_size
        return [json.loads(line) for line in os.pread(self.log.fileno(), size, 0).splitlines()]

    def base_url(self, name):
        return f"http://127.0.0.1:{self.port}/{name}"


def wait_until_mirrored(base_url, set_spec=None):
    """Waits until a mirror knows all records of a set, or all at all. It answers 503 before."""
    query = "verb=ListIdentifiers&metadataPrefix=oai_dc" + (f"&set={set_spec}" if set_spec else "")
    deadline = time.monotonic() + MIRROR_SECONDS_MAX
    while True:
        try:
            return urllib.request.urlopen(f"{base_url}?{query}", timeout=20).read()
        except urllib.error.HTTPError as error:
            if error.code != 503 or time.monotonic() > deadline:
                raise
            time.sleep(0.1)
