import io
import json
import tempfile
import threading
import types
import unittest

from suite.runner import Report, Watchdog, run_round, scenario
from suite.surfaces import drive


class _Stage:
    surface = types.SimpleNamespace(name="sync")

    def __init__(self, clean_fails=False):
        self.connected = 0
        self.cleaned = 0
        self._clean_fails = clean_fails

    async def connect(self):
        self.connected += 1
        return self.connected

    def clean(self):
        self.cleaned += 1
        if self._clean_fails:
            raise OSError("delete refused")


@scenario()
async def good(stage, client):
    return f"client {client}"


@scenario()
async def bad(stage, client):
    raise ValueError("wrong")


@scenario(once=True)
async def sized(stage, client):
    return "in full"


class RunRoundTest(unittest.TestCase):
    def run_all(self, stage, *scenarios, as_json=False, round_number=1):
        out, err = io.StringIO(), io.StringIO()
        report = Report(as_json, out, err)
        drive(run_round(stage, scenarios, round_number, report, Watchdog(report)))
        report.totals()
        return report, out.getvalue(), err.getvalue()

    def test_more_rounds_do_not_repeat_what_has_a_size_of_its_own(self):
        for round_number, passed in ((1, 2), (2, 1)):
            report, _, _ = self.run_all(_Stage(), good, sized, round_number=round_number)
            self.assertEqual((report.passed, report.failed), (passed, 0))

    def test_counts_and_gives_a_new_client_after_a_failure(self):
        stage = _Stage()
        report, out, err = self.run_all(stage, good, good, bad, good)
        self.assertEqual((report.passed, report.failed), (3, 1))
        self.assertEqual((stage.connected, stage.cleaned), (2, 4))
        self.assertIn("ValueError: wrong", out)
        self.assertIn("Traceback", err)
        self.assertTrue(out.endswith("3 passed, 1 failed\n"))

    def test_a_failing_clean_up_is_a_failure(self):
        report, out, _ = self.run_all(_Stage(clean_fails=True), good)
        self.assertEqual((report.passed, report.failed), (0, 1))
        self.assertIn("clean up: OSError: delete refused", out)

    def test_json_has_one_object_per_line(self):
        _, out, err = self.run_all(_Stage(), good, bad, as_json=True)
        lines = [json.loads(line) for line in out.splitlines()]
        self.assertEqual([line.get("ok") for line in lines], [True, False, None])
        self.assertEqual(lines[-1], {"passed": 1, "failed": 1})
        self.assertTrue(err.endswith("1 passed, 1 failed\n"))


class WatchdogTest(unittest.TestCase):
    def test_a_scenario_without_end_fails_and_stops_the_run(self):
        out, ended, code = io.StringIO(), threading.Event(), []

        def end(status):
            code.append(status)
            ended.set()

        report = Report(False, out, io.StringIO())
        with tempfile.TemporaryFile("w+") as stacks:
            Watchdog(report, end, stacks).watch("stuck", "sync", 1, 0.05)
            self.assertTrue(ended.wait(10))
            stacks.seek(0)
            self.assertIn("test_runner.py", stacks.read())
        self.assertEqual(code, [1])
        self.assertIn("no end after", out.getvalue())
        self.assertTrue(out.getvalue().endswith("0 passed, 1 failed\n"))


if __name__ == "__main__":
    unittest.main()
