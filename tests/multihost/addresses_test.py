#!/usr/bin/env python3
"""Hosts with several networks each: which of them two ranks use, and what happens where the first choice leads nowhere."""
import json
import time
import unittest

import engines
from hosts import Hosts

engines.skip_without("hydra")


class Addresses(unittest.TestCase):
    def make(self, count):
        """Hosts without any network; `network` adds one."""
        self.hosts = Hosts(count)
        self.addCleanup(self.hosts.close)
        self.networks = 0
        for host in range(count):
            self.on_host(host, f"ip address del 10.9.0.{host + 1}/24 dev eth0", "ip link set eth0 down")

    def on_host(self, host, *lines):
        self.hosts.in_network(self.hosts.holders[host][1], lines)

    def on_switch(self, *lines):
        self.hosts.in_network(self.hosts.holders[-1][1], lines)

    def network(self, addresses, joined=True, name=None):
        """A switch of its own, or cables that end nowhere: {host: address}. The interface is eth1, eth2, … on all of them."""
        self.networks += 1
        number = self.networks
        name = name or f"eth{number}"
        self.on_switch(f"ip link add switch{number} type bridge", f"ip link set switch{number} up")
        for host, address in addresses.items():
            self.on_switch(f"ip link add port{number}{host} type veth peer name {name} netns {self.hosts.holders[host][1]}",
                           f"ip link set port{number}{host} up", *([f"ip link set port{number}{host} master switch{number}"] if joined else []))
            self.on_host(host, f"ip address add {address} dev {name}" + (" nodad" if ":" in address else ""), f"ip link set {name} up")
        return name

    def names(self, *addresses):
        """By which addresses the launcher reaches the hosts."""
        self.hosts.name_addresses(addresses)
        self.hosts.addresses = list(addresses)

    def exchange(self, **env):
        """Two ranks on each host for a moment: exit code and output."""
        return self.hosts.run(0, [*engines.command("hydra", self.hosts, 2), "-n", 2 * self.hosts.count, engines.EXCHANGE, 0.2],
                              env={"HEDDLE_NET_TIMEOUT": "20", **env})

    def works(self, **env):
        self.assertEqual(self.exchange(**env), (0, "running\ndone\n"))

    def carried(self, host, name):
        """Bytes that came over an interface."""
        lines = self.hosts.run(host, ["ip", "-j", "-s", "link", "show", "dev", name])[1]
        return json.loads(lines)[0]["stats64"]["rx"]["bytes"]

    def info(self, host=0, **env):
        code, text = self.hosts.run(host, [engines.HEDDLE, "info", "network", "--json"], env=env)
        self.assertIn(code, (0, 1), text)
        return json.loads(text)

    def test_of_several_networks_two_hosts_use_the_one_that_they_share(self):
        self.make(2)
        for host in 0, 1:  # the same name everywhere, and cables of their own
            self.network({host: f"10.{host + 1}.0.1/24"}, name="eth1")
        shared = self.network({0: "10.44.0.1/24", 1: "10.44.0.2/24"})
        self.names("10.44.0.1", "10.44.0.2")
        self.assertEqual([self.info(host)["chosen"]["address"] for host in (0, 1)], ["10.1.0.1", "10.2.0.1"])
        self.works()
        self.assertGreater(self.carried(0, shared), 1_000_000)

    def test_of_three_hosts_each_two_may_share_another_network(self):
        self.make(3)
        self.network({0: "10.1.0.1/24", 1: "10.1.0.2/24"})
        self.network({1: "10.2.0.2/24", 2: "10.2.0.3/24"})
        self.network({2: "10.3.0.3/24", 0: "10.3.0.1/24"})
        self.names("10.1.0.1", "10.1.0.2", "10.3.0.3")
        self.on_host(2, "ip route add 10.1.0.1/32 via 10.3.0.1")  # for the launcher
        self.works()
        self.assertGreater(self.carried(2, "eth2"), 1_000_000)

    def test_hosts_in_different_networks_that_routers_join_need_no_setting(self):
        self.make(2)
        self.network({0: "10.1.0.1/24"})
        self.network({1: "10.2.0.1/24"})
        self.on_switch("ip address add 10.1.0.254/24 dev switch1", "ip address add 10.2.0.254/24 dev switch2",
                       "echo 1 > /proc/sys/net/ipv4/ip_forward")
        self.on_host(0, "ip route add default via 10.1.0.254")
        self.on_host(1, "ip route add default via 10.2.0.254")
        self.names("10.1.0.1", "10.2.0.1")
        self.works()
        self.network({0: "10.44.0.1/24", 1: "10.44.0.2/24"})
        tried = json.loads(self.hosts.run(0, [engines.HEDDLE, "info", "network", "--json", "--to", "10.2.0.1,10.44.0.2"])[1])["tried"]
        self.assertEqual([one["way"] for one in tried], ["eth3 10.44.0.1 to 10.44.0.2", "eth1 10.1.0.1 to 10.2.0.1"])
        self.assertRegex(tried[0]["why"], "the same network$")
        self.assertRegex(tried[1]["why"], "through a router$")

    def test_a_bridge_with_the_same_address_on_every_host_is_not_taken_for_the_way_to_another(self):
        self.make(2)
        for host in 0, 1:
            self.on_host(host, "ip link add pods0 type bridge", "ip address add 172.20.0.1/16 dev pods0", "ip link set pods0 up",
                         "ip link add pod1 type veth peer name pod2", "ip link set pod2 master pods0", "ip link set pod1 up", "ip link set pod2 up")
        self.network({0: "10.44.0.1/24", 1: "10.44.0.2/24"})
        self.names("10.44.0.1", "10.44.0.2")
        self.assertIn("172.20.0.1", [one["address"] for one in self.info()["offered"] if one["verdict"] in ("chosen", "for peers that are reached better here")])
        began = time.monotonic()
        self.works()
        self.assertLess(time.monotonic() - began, 20)

    def test_where_the_first_choice_leads_nowhere_the_next_one_is_used(self):
        self.make(2)
        dead = self.network({0: "10.1.0.1/24", 1: "10.1.0.2/24"}, joined=False)
        alive = self.network({0: "10.44.0.1/24", 1: "10.44.0.2/24"})
        self.names("10.44.0.1", "10.44.0.2")
        self.assertEqual(self.info()["chosen"]["address"], "10.1.0.1")
        self.works()
        self.works(HEDDLE_NET=alive)
        code, text = self.exchange(HEDDLE_NET=dead, HEDDLE_NET_TIMEOUT="5")
        self.assertNotEqual(code, 0)
        self.assertRegex(text, r"eth1 10\.1\.0\.[12] to 10\.1\.0\.[12].*HEDDLE_NET")
        self.assertNotIn("10.44.0.", text)

    def test_a_setting_restricts_the_search_to_what_it_names(self):
        self.make(2)
        first = self.network({0: "10.1.0.1/24", 1: "10.1.0.2/24"})
        second = self.network({0: "10.44.0.1/24", 1: "10.44.0.2/24"})
        self.names("10.1.0.1", "10.1.0.2")
        for wanted in second, "10.44.0.0/24":
            before = [self.carried(0, name) for name in (first, second)]
            self.works(HEDDLE_NET=wanted)
            after = [self.carried(0, name) for name in (first, second)]
            self.assertLess(after[0] - before[0], 1_000_000, wanted)
            self.assertGreater(after[1] - before[1], 1_000_000, wanted)
        self.assertEqual({one["verdict"] for one in self.info(HEDDLE_NET=second)["offered"] if one["interface"] == first}, {"not on HEDDLE_NET"})

    def test_a_peer_that_no_address_leads_to_is_named_with_all_that_was_tried(self):
        self.make(2)
        self.network({0: "10.1.0.1/24", 1: "10.1.0.2/24"}, joined=False)
        self.network({0: "10.1.1.1/24", 1: "10.1.1.2/24"}, joined=False)
        self.network({0: "10.44.0.1/24", 1: "10.44.0.2/24"})
        self.names("10.44.0.1", "10.44.0.2")
        code, text = self.exchange(HEDDLE_NET="10.1.0.0/16", HEDDLE_NET_TIMEOUT="5")
        self.assertNotEqual(code, 0)
        self.assertRegex(text, r"rank [0-3] .*eth1 10\.1\.0\.[12] to 10\.1\.0\.[12] \(.*\), eth2 10\.1\.1\.[12] to 10\.1\.1\.[12] \(.*\).*HEDDLE_NET")


if __name__ == "__main__":
    unittest.main()
