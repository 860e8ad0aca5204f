#!/usr/bin/python3
"""The scorer scores: a stand-in for ezpz that answers right passes, and each way to be wrong is told.

A scorer that cannot fail proves nothing, so every threshold is missed here once.
"""

import os
import stat
import subprocess
import sys
import tempfile
import unittest

SCORER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools", "score-corpus")

# It knows two messages, in whatever spelling the log has of the host.
STAND_IN = """#!/usr/bin/python3
import json, re, sys
text = open(sys.argv[-1], encoding="latin-1").read()
lost = re.findall(r"Node failure on ([^\\s]+)", text)
answer = {"verdict": "walltime", "action": "stop", "culprits": []}
if lost:
    answer = {"verdict": "node_failure", "action": "swap", "culprits": lost}
%s
print(json.dumps(answer))
"""

LOST = """step 4
srun: error: Node failure on nid001306-hsn0.example
slurmstepd: error: *** STEP 4.0 ON nid001304 CANCELLED AT 2031-01-01T00:00:00 DUE TO NODE FAILURE ***
srun: error: nid[001304-001305]: tasks 0-7: Terminated
"""
CLOCK = """step 9
slurmstepd: error: *** JOB 4 ON gpu-b07 CANCELLED AT 2031-01-01T00:00:00 DUE TO TIME LIMIT ***
"""
HEAD = "id\tfile\tsource\tsystem\tlauncher_version\texit_code\tverdict\tambiguous\tculprit_nodes\tinnocent_nodes\twhy"


class Scorer(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.corpus = self.path("corpus")
        os.mkdir(self.corpus)
        rows = [
            HEAD,
            "1\tlost.log\ts\tSLURM\tsrun\t143\tnode_failure\tno\tnid001306\tnid001304,nid001305\twhy",
            "2\tclock.log\ts\tSLURM\tsrun\t?\twalltime\tno\t-\tgpu-b07\twhy",
        ]
        self.write("corpus/index.tsv", "\n".join(rows) + "\n")
        self.write("corpus/lost.log", LOST)
        self.write("corpus/clock.log", CLOCK)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as out:
            out.write(text)

    def score(self, twist="", *flags):
        self.write("ezpz", STAND_IN % twist)
        os.chmod(self.path("ezpz"), stat.S_IRWXU)
        return subprocess.run(
            [SCORER, "--ezpz", self.path("ezpz"), *flags, self.corpus],
            capture_output=True,
            text=True,
            check=False,
        )

    def test_right_answers_pass_whatever_the_hosts_are_called(self):
        done = self.score()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("16 passed, 0 failed, 0 skipped", done.stdout)

    def test_an_answer_that_knows_the_host_by_heart_fails_when_hosts_are_renamed(self):
        done = self.score('answer["culprits"] = ["nid001306"] if lost else []')
        self.assertEqual(done.returncode, 1)
        self.assertIn("renamed: culprits: 0/1", done.stdout)
        self.assertNotIn("original: culprits", done.stdout)

    def test_a_convicted_innocent_fails_and_is_named(self):
        done = self.score('if lost: answer["culprits"].append("nid001304")', "--misses")
        self.assertEqual(done.returncode, 1)
        self.assertIn("original: innocents convicted: 1, none allowed", done.stdout)
        self.assertIn("CONVICTED: nid001304", done.stdout)

    def test_a_convicted_host_that_no_column_has_is_an_innocent_too(self):
        done = self.score('answer["culprits"].append("quiet00")')
        self.assertEqual(done.returncode, 1)
        self.assertIn("noisy: innocents convicted: 2", done.stdout)

    def test_a_wrong_verdict_and_a_wrong_action_are_told_apart(self):
        done = self.score('if not lost: answer["verdict"] = "cancelled"')
        self.assertIn("original: verdicts: 1/2", done.stdout)
        self.assertNotIn("actions:", done.stdout)
        done = self.score('if not lost: answer["action"] = "retry_same"')
        self.assertIn("original: actions: 1/2", done.stdout)
        self.assertNotIn("verdicts:", done.stdout)

    def test_a_binary_that_does_not_answer_is_wrong_and_its_words_are_shown(self):
        done = self.score('sys.exit("no such subcommand")', "--misses")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no such subcommand", done.stdout)

    def test_a_list_of_hosts_in_brackets_is_renamed_with_the_rest(self):
        self.write("ezpz", STAND_IN % "")
        kept = self.path("kept")
        subprocess.run([SCORER, "--ezpz", "-", "--keep", kept, self.corpus], check=True)
        for variant in ("renamed", "scheme"):
            with open(os.path.join(kept, f"1-{variant}.log"), encoding="utf-8") as log:
                text = log.read()
            self.assertNotRegex(text, r"nid\[?00130[4-6]")
            self.assertIn("tasks 0-7: Terminated", text)
            self.assertEqual(text.count("\n"), LOST.count("\n"))

    def test_two_runs_make_the_same_logs(self):
        texts = []
        for name in ("a", "b"):
            subprocess.run([SCORER, "--ezpz", "-", "--keep", self.path(name), self.corpus], check=True)
            with open(os.path.join(self.path(name), "1-noisy.log"), encoding="utf-8") as log:
                texts.append(log.read())
        self.assertEqual(texts[0], texts[1])
        self.assertGreater(texts[0].count("\n"), LOST.count("\n"))


if __name__ == "__main__":
    program = unittest.main(exit=False)
    failed = len(program.result.failures) + len(program.result.errors)
    print(f"{program.result.testsRun - failed} passed, {failed} failed, 0 skipped")
    sys.exit(1 if failed else 0)
