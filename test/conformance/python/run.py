"""Drive a running felixd with the installed felix-client. See README.md."""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from pathlib import Path

import felix

from suite import devfile
from suite.daemon import Daemons
from suite.runner import Report, Watchdog, run_round
from suite.scenarios import ALL
from suite.stage import Sizes, Stage
from suite.surfaces import AsyncSurface, SyncSurface

# A connection on loopback takes some 10 ms. A lost first datagram costs the client's first probe timeout, 1 s.
SLOW_CONNECT = 0.9


def main(arguments: list[str]) -> int:
    """Run every scenario on both surfaces; 0 when all passed, 1 when one failed, 2 when there is no broker."""
    options = parse(arguments)
    report = Report(options.json)
    try:
        dev = devfile.wait_until_ready(options.dev_json, options.wait)
    except devfile.DevFileError as error:
        print(f"conformance: {error}", file=sys.stderr)
        return 2
    report.remark(f"felix-client {felix.__version__}, Python {platform.python_version()}, broker at {dev.client_addr}")
    report.remark(connect_remark(dev))
    scenarios = chosen(options, report)
    daemons = Daemons(options.felixd)
    watchdog = Watchdog(report, end=lambda code: leave(daemons, code))
    sizes = Sizes(options.records, options.operations, options.kills, options.queue_records)
    try:
        for number in range(1, options.rounds + 1):
            for surface in surfaces(options.surface):
                stage = Stage(felix, dev, surface, sizes, daemons)
                surface.run(run_round(stage, scenarios, number, report, watchdog))
    finally:
        daemons.remove_all()
    report.totals()
    return 1 if report.failed or not report.passed else 0


def chosen(options: argparse.Namespace, report: Report) -> list:
    """The scenarios that were asked for; those that kill brokers only with a binary to make them from."""
    asked = [each for each in ALL if not options.only or each.__name__ in options.only]
    found = [each for each in asked if options.felixd is not None or not each.own_broker]
    if len(found) < len(asked):
        report.remark(f"without --felixd: {len(asked) - len(found)} scenarios that need a broker of their own are left out")
    return found


def leave(daemons: Daemons, code: int) -> None:
    """End the process at once, and with it the brokers it started."""
    daemons.remove_all()
    os._exit(code)


def surfaces(which: str) -> list:
    """The two faces of the client, or the one that was asked for."""
    return [each(felix) for each in (SyncSurface, AsyncSurface) if which in ("both", each.name)]


def connect_remark(dev: devfile.Dev) -> str:
    """Time one connection and say so when the client's first datagram was lost."""
    started = time.monotonic()
    try:
        felix.Client(dev.client_addr, tenant_id=dev.tenant_id, token=dev.client_token, ca_file=dev.ca_file)
    except felix.FelixError as error:
        return f"first connection failed: {error}"
    took = time.monotonic() - started
    remark = f"first connection took {took:.2f} s"
    if took >= SLOW_CONNECT:
        remark += ": its first datagram was probably too large, see FELIX_INITIAL_MTU in README.md"
    return remark


def parse(arguments: list[str]) -> argparse.Namespace:
    """The command line."""
    names = [each.__name__ for each in ALL]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dev-json", type=Path, required=True, help="file that `felixd dev` writes")
    parser.add_argument("--rounds", type=positive, default=1, help="how often to run everything (1)")
    parser.add_argument("--records", type=positive, default=10_000, help="records of each order scenario (10000)")
    parser.add_argument("--felixd", type=Path, help="binary for the scenarios that kill a broker of their own")
    parser.add_argument("--operations", type=positive, default=3_000, help="operations of the cache campaign (3000)")
    parser.add_argument("--kills", type=positive, default=3, help="brokers that each campaign kills (3)")
    parser.add_argument("--queue-records", type=positive, default=1_500, help="records of the queue campaign (1500)")
    parser.add_argument("--wait", type=float, default=10.0, help="seconds to wait for the broker (10)")
    parser.add_argument("--surface", choices=("both", "sync", "async"), default="both", help="face of the client (both)")
    parser.add_argument("--only", action="append", choices=names, metavar="NAME", help="run only this scenario; repeatable")
    parser.add_argument("--json", action="store_true", help="one JSON object per scenario on stdout")
    return parser.parse_args(arguments)


def positive(text: str) -> int:
    """An integer above zero."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is below 1")
    return value


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
