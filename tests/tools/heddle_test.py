"""The command line tool `heddle`."""
import json
import os
import unittest

from tree import BIN, BUILD, TreeTest, run

HEDDLE = os.path.join(BIN, "heddle")


def parameters(**env):
    """What `heddle info` says of each parameter, by name."""
    said = json.loads(run(HEDDLE, "info", "--json", env=env)[0])
    return {item["name"]: item for item in said["parameters"]}


class Heddle(TreeTest):
    def test_version_is_printed(self):
        self.assertRegex(run(HEDDLE, "--version")[0], r"^Heddle \d+\.\d+\.\d+ ")

    def test_info_shows_version_machine_transports_and_parameters(self):
        text, _ = run(HEDDLE, "info")
        for word in "Heddle", "standard ABI        1.0", "machine", "transports", "shm", "HEDDLE_":
            self.assertIn(word, text)

    def test_info_asks_the_library_of_its_own_tree(self):
        said = json.loads(run(HEDDLE, "info", "--json")[0])
        self.assertEqual(said["library"], os.path.join(os.path.realpath(BUILD), "lib/libmpi_abi.so.1"))

    def test_every_parameter_has_a_type_a_default_and_a_help_text(self):
        found = parameters()
        self.assertGreater(len(found), 3)
        for name, item in found.items():
            self.assertRegex(name, r"^HEDDLE_[A-Z0-9_]+$")
            self.assertIn(item["type"], ("yes/no", "number", "size", "text", "choice"), name)
            self.assertNotIn("cannot be read", item["default"] + item["value"], name)
            self.assertGreater(len(item["help"]), 10, name)

    def test_a_parameter_set_in_the_environment_shows_its_value_beside_the_default(self):
        numbers = [item for item in parameters().values() if item["type"] == "number"]
        chosen = numbers[0]
        wanted = "2" if chosen["default"] != "2" else "3"
        item = parameters(**{chosen["name"]: wanted})[chosen["name"]]
        self.assertEqual((item["value"], item["default"]), (wanted, chosen["default"]))

    def test_a_pattern_selects_parameters_and_a_wrong_one_is_an_error(self):
        name = sorted(parameters())[0]
        self.assertIn(name, run(HEDDLE, "info", name.lower())[0])
        self.assertIn("no-such-thing", run(HEDDLE, "info", "no-such-thing", status=1)[1])

    def test_a_missing_library_is_an_error_that_names_it(self):
        _, errors = run(HEDDLE, "info", "--library", self.path("none.so"), status=1)
        self.assertIn("none.so", errors)

    def test_the_network_page_says_what_was_found_what_was_chosen_and_why(self):
        said = json.loads(run(HEDDLE, "info", "network", "--one-host", "--json")[0])
        self.assertIn(said["chosen"]["provider"], [one["provider"] for one in said["offered"]])
        self.assertEqual([one["verdict"] for one in said["offered"]].count("chosen"), 1)
        self.assertTrue(said["chosen"]["why"])
        asked = json.loads(run(HEDDLE, "info", "network", "--json", env={"HEDDLE_NET": "127.0.0.0/8"})[0])
        self.assertEqual(asked["chosen"]["address"], "127.0.0.1")

    def test_the_network_page_says_in_which_order_a_hosts_addresses_are_tried(self):
        lines = run(HEDDLE, "info", "network", "--to", "127.0.0.9", "--to", "127.0.0.1", env={"HEDDLE_NET": "127.0.0.0/8"})[0].splitlines()
        tried = [line.split() for line in lines if " to 127." in line]
        self.assertEqual([words[:4] for words in tried], [["lo", "127.0.0.1", "to", "127.0.0.9"], ["lo", "127.0.0.1", "to", "127.0.0.1"]])
        self.assertIn("names are not resolved", run(HEDDLE, "info", "network", "--to", "node7", status=1)[1])

    def test_a_network_that_is_not_there_is_an_error_that_names_the_variable(self):
        errors = run(HEDDLE, "info", "network", env={"HEDDLE_NET": "240.1.2.0/24"}, status=1)[1]
        self.assertIn("HEDDLE_NET=240.1.2.0/24", errors)

    def test_a_missing_libfabric_is_an_error_that_names_the_remedy(self):
        wanted = {"HEDDLE_OFI_LIBRARY": "nowhere.so", "HEDDLE_OFI_PROVIDER": "tcp"}
        errors = run(HEDDLE, "info", "network", env=wanted, status=1)[1]
        self.assertRegex(errors, "libfabric cannot be loaded.*HEDDLE_OFI_LIBRARY")

    def test_the_parameter_page_is_up_to_date(self):
        page = os.path.join(os.path.dirname(__file__), "../../docs/params.md")
        if not os.path.exists(page):
            self.fail("docs/params.md is missing: build/bin/heddle info --markdown > docs/params.md")
        clean = {name: "" for name in os.environ if name.startswith("HEDDLE_") and name != "HEDDLE_BUILD"}
        with open(page, encoding="utf-8") as text:
            self.assertEqual(text.read(), run(HEDDLE, "info", "--markdown", env=clean)[0],
                             "make it again: build/bin/heddle info --markdown > docs/params.md")


if __name__ == "__main__":
    unittest.main(verbosity=2)
