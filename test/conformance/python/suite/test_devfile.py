import http.server
import json
import tempfile
import threading
import time
import unittest
from pathlib import Path

from suite import devfile

GOOD = {
    "client_addr": "127.0.0.1:5000",
    "control_plane": "https://127.0.0.1:8443/",
    "http": "127.0.0.1:8080",
    "tenant_id": "t1",
    "namespace": "default",
    "client_token": "c",
    "admin_token": "a",
    "ca_file": "ca.pem",
    "something_newer": 1,
}


class DevFileTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name) / "dev.json"

    def test_reads_what_it_needs_and_ignores_the_rest(self):
        self.path.write_text(json.dumps(GOOD), encoding="utf-8")
        dev = devfile.read(self.path)
        self.assertEqual(dev.client_addr, "127.0.0.1:5000")
        self.assertEqual(dev.control_plane, "https://127.0.0.1:8443")
        self.assertEqual(dev.http, "http://127.0.0.1:8080")

    def test_names_the_missing_key(self):
        for key in list(GOOD)[:-1]:
            with self.subTest(key=key):
                content = {k: v for k, v in GOOD.items() if k != key}
                self.path.write_text(json.dumps(content), encoding="utf-8")
                with self.assertRaisesRegex(devfile.DevFileError, key):
                    devfile.read(self.path)

    def test_refuses_what_is_no_object(self):
        for text in ("", "[]", "{", '"text"'):
            self.path.write_text(text, encoding="utf-8")
            with self.assertRaises(devfile.DevFileError):
                devfile.read(self.path)

    def test_waits_for_readiness_and_gives_up_in_time(self):
        with _Broker(unready=2) as broker:
            self.path.write_text(json.dumps({**GOOD, "http": broker.address}), encoding="utf-8")
            self.assertEqual(devfile.wait_until_ready(self.path, 10).tenant_id, "t1")
            self.assertGreaterEqual(broker.asked, 3)
        started = time.monotonic()
        with self.assertRaisesRegex(devfile.DevFileError, "not ready after 0 s"):
            devfile.wait_until_ready(self.path, 0.2)
        self.assertLess(time.monotonic() - started, 8)


class _Broker:
    """A readiness endpoint that answers 503 the first `unready` times."""

    def __init__(self, unready):
        outer = self
        self.asked = 0

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                outer.asked += 1
                self.send_response(503 if outer.asked <= unready else 200)
                self.end_headers()

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = "127.0.0.1:%d" % self.server.server_address[1]

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *exc):
        self.server.shutdown()
        self.server.server_close()


if __name__ == "__main__":
    unittest.main()
