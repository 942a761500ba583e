"""Runs scenarios, one line each, and counts."""

from __future__ import annotations

import faulthandler
import json
import os
import sys
import threading
import time
import traceback


class Report:
    """Prints results as they come and keeps the totals."""

    def __init__(self, as_json: bool, out=sys.stdout, err=sys.stderr):
        self.passed = 0
        self.failed = 0
        self._json = as_json
        self._out = out
        self._err = err

    def result(self, name: str, surface: str, round_number: int, seconds: float, note: str, error: str | None) -> None:
        """Count and print one scenario; error is None for one that passed."""
        if error is None:
            self.passed += 1
        else:
            self.failed += 1
        if self._json:
            line = {
                "scenario": name,
                "surface": surface,
                "round": round_number,
                "ok": error is None,
                "seconds": round(seconds, 3),
                "note": note,
                "error": error,
            }
            self._print(self._out, json.dumps(line))
            return
        word = "ok  " if error is None else "FAIL"
        self._print(self._out, f"{word} {surface:5} {name:46} {seconds:6.2f} s  {error or note}".rstrip())

    def remark(self, text: str) -> None:
        """Print something that is no result."""
        self._print(self._err if self._json else self._out, text)

    def detail(self, text: str) -> None:
        """Print what helps to understand a failure."""
        self._print(self._err, text)

    def totals(self) -> None:
        """Print the last line."""
        if self._json:
            self._print(self._out, json.dumps({"passed": self.passed, "failed": self.failed}))
        self._print(self._err if self._json else self._out, f"{self.passed} passed, {self.failed} failed")

    @staticmethod
    def _print(stream, text: str) -> None:
        print(text, file=stream, flush=True)


class Watchdog:
    """Ends the process when a scenario outlives its time.

    The client waits without limit for some answers and a blocked call cannot be interrupted, so a broker that
    does not answer would otherwise hang the run.
    """

    def __init__(self, report: Report, end=os._exit, stacks=sys.stderr):
        self._report = report
        self._end = end
        self._stacks = stacks

    def watch(self, name: str, surface: str, round_number: int, seconds: float) -> threading.Timer:
        """Start the clock of one scenario; cancel() the returned timer when it ends."""

        def expire() -> None:
            faulthandler.dump_traceback(file=self._stacks, all_threads=True)
            error = f"no end after {seconds:.0f} s; the run stops here"
            self._report.result(name, surface, round_number, seconds, "", error)
            self._report.totals()
            self._end(1)

        timer = threading.Timer(seconds, expire)
        timer.daemon = True
        timer.start()
        return timer


async def run_round(stage, scenarios, round_number: int, report: Report, watchdog: Watchdog) -> None:
    """Run each scenario once on the surface of the stage; those marked once run in the first round alone.

    One client serves the whole round, as in an application; after a failure the next scenario gets a new one.
    """
    client = None
    for scenario in scenarios:
        if scenario.once and round_number > 1:
            continue
        name = scenario.__name__
        timer = watchdog.watch(name, stage.surface.name, round_number, scenario.seconds)
        started = time.monotonic()
        note, error = "", None
        try:
            if client is None:
                client = await stage.connect()
            note = await scenario(stage, client) or ""
        except Exception as failure:
            error = f"{type(failure).__name__}: {failure}"
            report.detail(traceback.format_exc())
            client = None
        took = time.monotonic() - started
        try:
            stage.clean()
        except Exception as failure:
            error = error or f"clean up: {type(failure).__name__}: {failure}"
        timer.cancel()
        report.result(name, stage.surface.name, round_number, took, note, error)


def scenario(seconds: float = 60.0, own_broker: bool = False, once: bool = False):
    """Mark a coroutine function (stage, client) as a scenario that ends within so many seconds.

    own_broker: it starts brokers of its own, for which the run needs a binary. once: it has a size of its own, and more
    rounds do not repeat it.
    """

    def mark(function):
        function.seconds = seconds
        function.own_broker = own_broker
        function.once = once
        return function

    return mark
