#!/usr/bin/env python3
"""64 ranks over 4 hosts: they start, reduce, exchange and stop, and peers on other hosts cost little memory.

    scale_test.py --measure       prints the table of docs/scale.md
"""
import os
import sys
import unittest

import engines
from hosts import Hosts

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../scale"))
import scale_test as numbers  # pylint: disable=wrong-import-position

engines.skip_without("hydra")


def measure():
    """The steps of 64 ranks."""
    with Hosts(4) as hosts:
        code, text = hosts.run(0, engines.command("hydra", hosts, 16) + ["-n", "64", numbers.MEMORY], timeout=170)
    if code != 0:
        raise AssertionError(text)
    return numbers.parse(text)


class FourHosts(unittest.TestCase):
    def test_64_ranks_over_4_hosts_start_reduce_exchange_and_stop(self):
        steps = measure()
        name, peers, values = steps[-1]
        self.assertEqual((name, peers), ("alltoall", 63))
        # Several times what docs/scale.md has for the library's own sockets, and far from what libfabric's buffers are.
        self.assertLess(values["private"][0], 4e6)
        self.assertLess(numbers.per_peer(steps, "private"), 5e3)
        self.assertLess(numbers.per_peer(steps, "descriptors"), 3)


if __name__ == "__main__":
    if sys.argv[1:] == ["--measure"]:
        print(numbers.table(measure()))
    else:
        unittest.main()
