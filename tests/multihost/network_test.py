#!/usr/bin/env python3
"""Which address a job uses between hosts that have several, or none, and what is said when they do not fit together."""
import json
import unittest

import engines
from hosts import Hosts

engines.skip_without("hydra")


class Network(unittest.TestCase):
    def setUp(self):
        self.hosts = Hosts(2)
        self.addCleanup(self.hosts.close)

    def add_network(self, number, name="eth1", addresses=("10.44.0.1/24", "10.44.0.2/24"), joined=True):
        """One more interface for both hosts; on a switch of its own, or with cables that end nowhere."""
        switch = self.hosts.holders[-1][1]
        self.hosts.in_network(switch, [f"ip link add switch{number} type bridge", f"ip link set switch{number} up"])
        for i, address in enumerate(addresses):
            host = self.hosts.holders[i][1]
            self.hosts.in_network(switch, [f"ip link add port{number}{i} type veth peer name {name} netns {host}"]
                                  + ([f"ip link set port{number}{i} master switch{number} up"] if joined else []))
            self.hosts.in_network(host, ([f"ip address add {address} dev {name}"] if address else []) + [f"ip link set {name} up"])

    def on_host(self, host, *lines):
        self.hosts.in_network(self.hosts.holders[host][1], lines)

    def info(self, host=0, **env):
        code, text = self.hosts.run(host, [engines.HEDDLE, "info", "network", "--json"], env=env)
        self.assertIn(code, (0, 1), text)
        return json.loads(text)

    def exchange(self, **env):
        """4 ranks on the hosts for a moment: exit code and output."""
        return self.hosts.run(0, [*engines.command("hydra", self.hosts, 2), "-n", 4, engines.EXCHANGE, 0.2], env={"HEDDLE_NET_TIMEOUT": "5", **env})

    def works_over(self, address, **env):
        self.assertEqual(self.info(**env)["chosen"]["address"], address)
        self.assertEqual(self.exchange(**env), (0, "running\ndone\n"))

    def test_a_network_is_named_by_interface_address_or_range(self):
        self.add_network(1)
        self.works_over("10.9.0.1")
        self.works_over("10.44.0.1", HEDDLE_NET="eth1")
        self.works_over("10.44.0.1", HEDDLE_NET="10.44.0.0/16")
        self.works_over("10.9.0.1", HEDDLE_NET="10.9.0.0/24")
        self.assertEqual(self.info(1, HEDDLE_NET="10.44.0.2")["chosen"]["address"], "10.44.0.2")

    def test_what_names_no_network_is_an_error_that_says_what_is_wrong(self):
        for wanted, pattern in (("nonsense", "HEDDLE_NET=nonsense fits no address of this host"), ("10.8.0.0/24", "fits no address"),
                                ("10.9.0.0/33", "the number after the slash is the length of the prefix, at most 32"),
                                ("eth0/24", "is not a range of addresses; write it as")):
            self.assertRegex(self.info(HEDDLE_NET=wanted)["problem"], pattern)
            code, text = self.exchange(HEDDLE_NET=wanted)
            self.assertNotEqual(code, 0)
            self.assertRegex(text, r"\[rank \d\] .*MPI_Init.*" + pattern)

    def test_bridges_for_containers_and_interfaces_without_address_are_passed_over(self):
        for host in 0, 1:
            self.on_host(host, "ip link add docker0 type bridge", "ip address add 172.17.0.1/16 dev docker0", "ip link set docker0 up",
                         "ip link add br-0123456789ab type bridge", "ip address add 172.18.0.1/16 dev br-0123456789ab",
                         "ip link set br-0123456789ab up", "ip link add bare0 type veth peer name bare1", "ip link set bare0 up", "ip link set bare1 up",
                         "ip address del 10.9.0.%d/24 dev eth0" % (host + 1))
        self.add_network(1)
        self.hosts.name_addresses(["10.44.0.1", "10.44.0.2"])
        self.works_over("10.44.0.1")

    def test_an_interface_without_a_link_is_passed_over_for_one_that_has_one(self):
        self.add_network(1)
        self.hosts.cut(0)
        self.hosts.cut(1)
        self.hosts.name_addresses(["10.44.0.1", "10.44.0.2"])
        self.works_over("10.44.0.1")
        self.assertIn("no link", [o["verdict"] for o in self.info()["offered"] if o["interface"] == "eth0"][0])

    def test_ipv6_serves_where_it_is_asked_for_or_alone(self):
        for host in 0, 1:
            self.on_host(host, f"ip address add fd00:9::{host + 1}/64 dev eth0 nodad")
        self.works_over("10.9.0.1")
        self.works_over("fd00:9::1", HEDDLE_NET="fd00:9::/64")
        self.on_host(0, "ip address del 10.9.0.1/24 dev eth0")
        self.assertEqual(self.info()["chosen"]["address"], "fd00:9::1")
        self.on_host(0, "ip address del fd00:9::1/64 dev eth0", "ip address add fe80::99/64 dev eth0 nodad")
        self.assertRegex(self.info(HEDDLE_NET="eth0")["problem"], "HEDDLE_NET=eth0 fits no address")
        self.assertIn("link-local address", [o["verdict"] for o in self.info(HEDDLE_NET="eth0")["offered"]])

    def test_a_network_that_leads_nowhere_is_an_error_that_says_who_tried_what(self):
        self.add_network(1, addresses=("10.44.0.1/24", "10.55.0.1/24"))
        code, text = self.exchange(HEDDLE_NET="eth1")
        self.assertNotEqual(code, 0)
        self.assertRegex(text, r"rank \d.*eth1 10\.(44|55)\.0\.1 to 10\.(44|55)\.0\.1.*HEDDLE_NET says which network")


if __name__ == "__main__":
    unittest.main()
