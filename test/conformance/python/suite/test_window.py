import asyncio
import threading
import unittest
from unittest import mock

from suite import window
from suite.checks import Mismatch
from suite.surfaces import drive


class ThreadWindowTest(unittest.TestCase):
    def test_publisher_waits_at_the_limit_until_the_reader_gives(self):
        room = window.ThreadWindow(2)
        taken, passed = [], threading.Event()

        def publish():
            for number in range(3):
                drive(room.take())
                taken.append(number)
            passed.set()

        publisher = threading.Thread(target=publish, daemon=True)
        publisher.start()
        self.assertFalse(passed.wait(0.2))
        self.assertEqual(taken, [0, 1])
        drive(room.give())
        self.assertTrue(passed.wait(10))

    def test_a_reader_that_stands_still_is_reported(self):
        room = window.ThreadWindow(1)
        drive(room.take())
        with mock.patch.object(window, "PATIENCE", 0.1):
            with self.assertRaisesRegex(Mismatch, "reader stands at 0 of 1"):
                drive(room.take())


class TaskWindowTest(unittest.TestCase):
    def test_publisher_waits_at_the_limit_until_the_reader_gives(self):
        async def scenario():
            room = window.TaskWindow(2)
            taken = []

            async def publish():
                for number in range(3):
                    await room.take()
                    taken.append(number)

            publisher = asyncio.ensure_future(publish())
            done, _ = await asyncio.wait([publisher], timeout=0.2)
            self.assertFalse(done)
            self.assertEqual(taken, [0, 1])
            await room.give()
            await asyncio.wait_for(publisher, 10)

        asyncio.run(scenario())

    def test_a_reader_that_stands_still_is_reported(self):
        async def scenario():
            room = window.TaskWindow(1)
            await room.take()
            with mock.patch.object(window, "PATIENCE", 0.1):
                with self.assertRaisesRegex(Mismatch, "reader stands at 0 of 1"):
                    await room.take()

        asyncio.run(scenario())


if __name__ == "__main__":
    unittest.main()
