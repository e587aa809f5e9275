"""trifactor bench compare and bench --preset guard: what became slower."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "support"))
import program
from program import ProgramTest

ROW = {"op": "cholesky", "scalar": "f64", "n": 512, "ld": 512, "count": 1, "uplo": "lower", "device": "host",
       "machine": "M", "mode": "auto", "seconds": 0.010, "spread": 0.01, "peer": "lapack", "peer_seconds": 0.020,
       "peer_spread": 0.01, "ratio": 2.0, "commit": "aaa111"}


class Compare(ProgramTest):
    def rows(self, name, *rows):
        return self.write(name, "".join(json.dumps({**ROW, **row}) + "\n" for row in rows))

    def test_says_what_became_slower_and_its_status_too(self):
        old = self.rows("old", {}, {"n": 1024}, {"n": 2048})
        new = self.rows("new", {"seconds": 0.012}, {"n": 1024, "seconds": 0.008}, {"n": 2048, "seconds": 0.0101})
        done = self.fail_with(1, "1 of 3 rows became slower", "bench", "compare", old, new)
        slower, faster = done.stdout.splitlines()[2:4]
        self.assertRegex(slower, r"^slower +cholesky f64 n=512 .*\+20.0")
        self.assertRegex(faster, r"^faster +cholesky f64 n=1024 .*-20.0")
        self.assertIn("1 slower, 1 faster, 1 the same; 0 only before, 0 only after", done.stdout)
        self.assertIn("0 slower", self.succeed("bench", "compare", old, old))

    def test_a_change_within_the_spreads_is_none(self):
        old = self.rows("old", {"spread": 0.15})
        new = self.rows("new", {"seconds": 0.012, "spread": 0.1})
        self.assertIn("1 the same", self.succeed("bench", "compare", old, new))
        self.fail_with(1, "slower", "bench", "compare", self.rows("steady", {}),
                       self.rows("worse", {"seconds": 0.0105}))
        self.succeed("bench", "compare", "steady", "worse", "--tolerance", "0.1")

    def test_by_the_ratio_a_slow_hour_of_the_machine_does_not_count(self):
        old = self.rows("old", {}, {"n": 1024})
        new = self.rows("new", {"seconds": 0.015, "peer_seconds": 0.030}, {"n": 1024, "ratio": 1.5})
        self.fail_with(1, "1 of 2", "bench", "compare", old, new, "--by", "ratio")
        (line,) = [json.loads(x) for x in self.run_here("bench", "compare", old, new, "--by", "ratio",
                                                        "--json").stdout.splitlines()]
        self.assertEqual((line["n"], line["verdict"], line["before"], line["after"]), (1024, "slower", 2.0, 1.5))
        self.assertAlmostEqual(line["change"], 2 / 1.5 - 1)

    def test_joins_by_what_was_measured(self):
        old = self.rows("old", {}, {"mode": "hybrid"}, {"tuning": "nb=1"}, {"nrhs": 5})
        new = self.rows("new", {"seconds": 9, "machine": "other"}, {"seconds": 9}, {"commit": "b"}, {"n": 3})
        out = self.succeed("bench", "compare", old, new, "--all")      # the last row of a measurement counts
        self.assertIn("0 slower, 0 faster, 1 the same; 3 only before, 2 only after", out)
        self.assertRegex(out, r"(?m)^same +cholesky f64 n=512 ")
        self.fail_with(2, "no row of old is in new", "bench", "compare", old, self.rows("new", {"machine": "other"}))

    def test_what_was_measured_beside_other_memory_or_another_peer_is_not_joined(self):
        old = self.rows("old", {"max_device_bytes": 10**9}, {"max_device_bytes": None, "n": 1024})
        new = self.rows("new", {"seconds": 9, "max_device_bytes": 2 * 10**9}, {"n": 1024})
        self.assertIn("1 the same; 1 only before, 1 only after", self.succeed("bench", "compare", old, new))
        other = self.rows("other", {"peer": "cusolver", "ratio": 0.1}, {"n": 1024})
        self.assertIn("1 the same; 1 only before, 1 only after",
                      self.succeed("bench", "compare", self.rows("one", {}, {"n": 1024}), other, "--by", "ratio"))
        self.assertIn("2 the same", self.succeed("bench", "compare", "one", other))

    def test_repetitions_count_with_their_median_and_range(self):
        old = self.rows("old", {}, {"seconds": 0.0101}, {"seconds": 0.0099})
        restless = self.rows("restless", {"seconds": 0.010}, {"seconds": 0.014}, {"seconds": 0.013})
        self.assertIn("1 the same", self.succeed("bench", "compare", old, restless))
        slow = self.rows("slow", {"seconds": 0.012}, {"seconds": 0.0125}, {"seconds": 0.0122})
        self.assertRegex(self.fail_with(1, "slower", "bench", "compare", old, slow).stdout,
                         r"slower .* 12.2000 +\+22.0")

    def test_two_commits_of_one_file(self):
        file = self.rows("all", {}, {"seconds": 0.02, "commit": "bbb222"})
        self.fail_with(1, "slower", "bench", "compare", file + "@aaa", file + "@bbb222")
        self.assertIn("1 faster", self.succeed("bench", "compare", file + "@bbb", file + "@aaa111"))
        self.fail_with(2, "no rows of commit ccc", "bench", "compare", file, file + "@ccc")

    def test_what_is_no_row_is_named(self):
        good = self.rows("good", {})
        for text, message in [("{}\n", "bad:1: a row has a string 'op'"), ("\n[1]\n", "bad:2: not a JSON object"),
                              (json.dumps({**ROW, "seconds": 0}), "bad:1: a row has 'seconds'"),
                              (json.dumps({**ROW, "spread": "x"}), "'spread' must be a number"), ("", "bad: no rows"),
                              (b"{\"op\": \"\xff\"}", "not a JSON object")]:
            self.write("bad", text)
            self.fail_with(2, message, "bench", "compare", good, "bad")
        self.fail_with(2, "absent", "bench", "compare", good, "absent")
        self.fail_with(2, "required", "bench", "compare", good)


class Guard(ProgramTest):
    def test_covers_every_promise_and_can_be_compared(self):
        rows = self.succeed_json("bench", "--preset", "guard", "--device", "host", "--seconds", "0.001")
        scalars = program.info()["scalars"]
        if scalars == ["f32", "f64", "c32", "c64"]:
            self.assertGreaterEqual(len(rows), 28)
            self.assertEqual({row["op"] for row in rows}, {"cholesky", "lu", "solve", "inverse", "batch", "sparse"})
        self.assertEqual({row["preset"] for row in rows}, {"guard"})
        self.write("rows", "".join(json.dumps(row) + "\n" for row in rows))
        self.assertIn(f"{len(rows)} the same", self.succeed("bench", "compare", "rows", "rows"))

    def test_is_no_option_beside_an_operation(self):
        self.fail_with(2, "it comes after the operation", "bench", "--json", "cholesky", "--n", "8")
        self.fail_with(2, "the operation is missing", "bench")
        self.fail_with(2, "guard", "bench", "--preset", "other")


if __name__ == "__main__":
    program.main()
