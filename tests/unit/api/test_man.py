"""The manual pages: one for every function, and all that groff is happy with."""
import shutil
import subprocess
import unittest

from common import BUILD, main, model

MAN = BUILD / "generated" / "man" / "man3"


class ManualPages(unittest.TestCase):
    def test_every_function_has_a_page(self):
        api = model.load()
        self.assertEqual({p.stem for p in MAN.glob("*.3")}, set(api.names() + api.extension_names()))

    def test_every_page_of_a_twin_leads_to_one_that_names_it(self):
        for page in MAN.glob("*_c.3"):
            target = MAN.parent / page.read_text().split()[1]
            self.assertIn(page.stem, target.read_text())

    @unittest.skipUnless(shutil.which("groff"), "groff is not installed")
    def test_groff_finds_nothing_to_complain_about(self):
        pages = sorted(str(p) for p in MAN.glob("*.3") if not p.read_text().startswith(".so"))
        self.assertGreater(len(pages), 490)
        run = subprocess.run(["groff", "-man", "-ww", "-Tutf8", "-z", *pages], capture_output=True, text=True)
        self.assertEqual(run.stderr, "")


if __name__ == "__main__":
    main(None if MAN.exists() else "the library has not been configured")
