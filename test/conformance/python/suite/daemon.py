"""A broker of a scenario's own: felixd over a data directory that outlives its processes, at addresses that stay."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from suite import devfile
from suite.checks import Mismatch

READY_WITHIN = 30.0  # seconds from a start until /ready says yes
STOPS_WITHIN = 30.0  # seconds from SIGTERM to the end, longer than the default drain
LOOK = 0.5  # seconds between two looks whether it has ended instead
LOG_LINES = 40  # last lines of the daemon's log that a failure shows


class Daemon:
    """felixd, which is started, killed and started again. Its directory and its addresses stay the same."""

    def __init__(self, felixd: Path, environment: dict[str, str] | None = None):
        """Start it over an empty directory; environment is added to this process's own."""
        self._felixd = felixd
        self._environment = {**os.environ, **(environment or {})}
        self._folder = Path(tempfile.mkdtemp(prefix="felixd-"))
        self._addresses = [_free(socket.SOCK_DGRAM), _free(socket.SOCK_STREAM), _free(socket.SOCK_STREAM)]
        self._process: subprocess.Popen | None = None
        self.starts = 0
        self.dev: devfile.Dev
        try:
            self.start()
        except Mismatch:
            self.remove()
            raise

    def start(self) -> None:
        """Start the process and wait until it is ready."""
        data = self._folder / "data"
        client, http, api = self._addresses
        command = [str(self._felixd), "dev", "--data-dir", str(data), "--listen", client, "--http", http, "--api", api]
        with open(self._folder / "log", "ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self._environment
            )
        self.starts += 1
        deadline = time.monotonic() + READY_WITHIN
        while True:
            try:
                self.dev = devfile.wait_until_ready(data / "dev.json", LOOK)
                return
            except devfile.DevFileError as error:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise Mismatch(f"start {self.starts} of felixd: {error}\n{self._said()}") from error

    def kill(self) -> None:
        """End the process as it stands. A panic in its log is a failure."""
        process, self._process = self._process, None
        ended = process.poll()
        process.kill()
        process.wait()
        said = self._said()
        if ended is not None or "panic:" in said:
            raise Mismatch(f"felixd ended by itself with {ended}, or panicked:\n{said}")

    def stop(self) -> None:
        """End the process in order and insist on exit code 0."""
        process, self._process = self._process, None
        process.send_signal(signal.SIGTERM)
        try:
            code = process.wait(STOPS_WITHIN)
        except subprocess.TimeoutExpired as error:
            process.kill()
            process.wait()
            raise Mismatch(f"felixd did not end within {STOPS_WITHIN:.0f} s of SIGTERM\n{self._said()}") from error
        if code != 0:
            raise Mismatch(f"felixd ended with exit code {code} after SIGTERM, want 0\n{self._said()}")

    def remove(self) -> None:
        """End the process, if it runs, and delete its files."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
        shutil.rmtree(self._folder, ignore_errors=True)

    def _said(self) -> str:
        lines = (self._folder / "log").read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(lines[-LOG_LINES:])


class Daemons:
    """Makes daemons from one binary and knows all of them, so that none outlives the run."""

    def __init__(self, felixd: Path | None):
        self._felixd = felixd
        self._made: list[Daemon] = []

    def make(self, environment: dict[str, str] | None = None) -> Daemon:
        """A daemon over an empty directory, which is ready."""
        if self._felixd is None:
            raise Mismatch("this scenario needs a broker of its own: give run.py --felixd PATH")
        daemon = Daemon(self._felixd, environment)
        self._made.append(daemon)
        return daemon

    def remove_all(self) -> None:
        """End all that were made and delete their files."""
        made, self._made = self._made, []
        for daemon in made:
            daemon.remove()


def _free(kind: int) -> str:
    """A loopback address that nobody listens on just now."""
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"
