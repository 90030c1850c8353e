"""Tests of run.py's judgement: `python3 -m unittest bench/run_test.py`. No root, no measurement."""

import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import run  # noqa: E402

GOOD = {
    "cycle": [{"p50_us": 4000, "p99_us": 8000, "n": 10}],
    "cycle_nonet": [{"skipped": "there is no such sandbox"}],
    "create": [{"p50_us": 2000, "p99_us": 3000, "n": 10}],
    "exec": [{"p50_us": 1300, "p99_us": 2000, "n": 10}],
    "destroy": [{"p50_us": 500, "p99_us": 900, "n": 10}],
    "sustained": [{"per_s": 300}],
    "sustained_nonet": [{"skipped": "there is no such sandbox"}],
    "burst100": [{"p50_us": 9000, "p99_us": 20000, "n": 100, "failures": 0, "total_us": 500000,
                  "serial_us": 450000}],
    "idle1000": [{"bytes_per_sandbox": 700000, "alive": 1000, "launcher_rss_bytes": 2 << 20,
                  "init_private_bytes": 90000}],
    "curve": [{"live": live, "p50_us": 4000 + live / 10, "p99_us": 9000}
              for live in run.CURVE_POINTS],
    "lives10000": [{"memcg_growth": 0, "slab_growth_bytes": 0}],
}
FLOOR = {"spawn": 700, "vfork": 700, "full": 5000, "nonet": 4000, "run": 7000}


class FakeDocker:
    def command(self, *_):
        return ["docker"]


class JudgementTest(unittest.TestCase):
    def setUp(self):
        for target, name, value in ((run.shutil, "which", lambda name: f"/usr/bin/{name}"),
                                    (run.os, "access", lambda *_: self.engine is not None),
                                    (run, "run_json", self.answer)):
            self.addCleanup(setattr, target, name, getattr(target, name))
            setattr(target, name, value)

    def answer(self, argv, timeout):
        """What floor_bench and engine_bench would print."""
        del timeout
        if "--only" in argv:
            row = argv[argv.index("--only") + 1]
            return [{"name": row, **line} for line in self.engine[row]]
        if "--workers" in argv:
            return [{"per_s": 200.0, "n": 100}]
        mode = next(word for word in argv if word in FLOOR)
        return [{"n": 3, "samples_us": [FLOOR[mode]] * 3}]

    def measure(self, engine, docker=None, quick=False):
        """The rows those answers lead to; engine None leaves engine_bench out."""
        self.engine = engine
        bench = run.Bench(pathlib.Path("/nowhere"), quick, docker or FakeDocker())
        bench.measure()
        return {row["name"]: row for row in run.judge(bench)}

    def test_a_good_engine_meets_all_but_what_the_fake_docker_cannot_show(self):
        rows = self.measure(GOOD)
        self.assertEqual(run.failed_check(rows.values()), ["docker_run"])
        self.assertEqual(rows["cycle"]["ratio"], 0.8)
        self.assertEqual(rows["docker_run"]["target"], ">= 70x")

    def test_each_target_is_missed_by_a_value_just_past_it(self):
        for row, change, missed in (
                ("cycle", {"p50_us": 5001}, "cycle"), ("cycle", {"p50_us": 7000}, "cycle_vs_bwrap"),
                ("exec", {"p50_us": 1401}, "exec"), ("destroy", {"p50_us": 2001}, "destroy"),
                ("sustained", {"per_s": 195}, "sustained"),
                ("burst100", {"failures": 1}, "burst100_failures"),
                ("burst100", {"total_us": 600000}, "burst100_total"),
                ("burst100", {"p99_us": 46000}, "burst100_p99"),
                ("idle1000", {"bytes_per_sandbox": (1 << 20) + 1}, "idle1000"),
                ("idle1000", {"alive": 999}, "idle1000_alive"),
                ("idle1000", {"launcher_rss_bytes": 5 << 20}, "launcher_rss"),
                ("idle1000", {"init_private_bytes": 500 << 10}, "init_private"),
                ("lives10000", {"memcg_growth": 17}, "lives10000_memcgs"),
                ("lives10000", {"slab_growth_bytes": 17 << 20}, "lives10000_slab")):
            with self.subTest(missed):
                rows = self.measure({**GOOD, row: [{**GOOD[row][0], **change}]})
                self.assertIs(rows[missed]["met"], False)

    def test_what_the_engine_skips_is_stated_and_not_judged(self):
        rows = self.measure(GOOD)
        for name in ("cycle_nonet", "sustained_nonet"):
            self.assertEqual(rows[name]["skipped"], "there is no such sandbox")
            self.assertIsNone(rows[name]["met"])

    def test_a_skip_of_a_row_with_a_target_fails_the_check(self):
        rows = self.measure({**GOOD, "exec": [{"skipped": "there is no such sandbox"}]})
        self.assertIn("exec", run.failed_check(rows.values()))

    def test_a_steep_curve_misses(self):
        curve = [dict(point) for point in GOOD["curve"]]
        curve[-1]["p50_us"] = 6000
        self.assertIs(self.measure({**GOOD, "curve": curve})["curve_1000"]["met"], False)

    def test_without_the_engine_every_engine_row_is_a_stated_skip_and_the_check_fails(self):
        rows = self.measure(None)
        self.assertEqual(rows["idle1000_alive"]["skipped"], "engine_bench is not built")
        self.assertIsNone(rows["cycle"]["p50"])
        self.assertIn("cycle", run.failed_check(rows.values()))

    def test_a_row_the_engine_does_not_print_fails_the_check(self):
        engine = {**GOOD, "idle1000": [{"bytes_per_sandbox": 1}]}
        self.assertIn("launcher_rss", run.failed_check(self.measure(engine).values()))

    def test_missing_docker_and_what_quick_leaves_out_are_excused(self):
        rows = self.measure(GOOD, docker="docker.io is not installed", quick=True)
        self.assertEqual(rows["docker_run"]["skipped"], "docker.io is not installed")
        self.assertEqual(rows["curve_1000"]["skipped"], "left out by --quick")
        self.assertEqual(run.failed_check(rows.values()), [])

    def test_a_missing_bwrap_excuses_only_the_comparison_with_it(self):
        run.shutil.which = lambda name: None
        rows = self.measure({**GOOD, "cycle": [{"p50_us": 5001, "p99_us": 1, "n": 1}]},
                            docker="docker.io is not installed")
        self.assertEqual(run.failed_check(rows.values()), ["cycle"])
        self.assertIn("bubblewrap is not installed", rows["cycle_vs_bwrap"]["skipped"])


class RunJsonTest(unittest.TestCase):
    def test_a_failing_program_is_a_skip_with_its_last_line(self):
        with self.assertRaisesRegex(run.Skip, "sh exited with 3: second"):
            run.run_json(["sh", "-c", "echo first >&2; echo second >&2; exit 3"], 10)

    def test_a_missing_program_an_empty_answer_broken_json_and_a_hang_are_skips(self):
        for argv, reason in ((["/nowhere/program"], "No such file"), (["true"], "printed no row"),
                             (["echo", "{broken"], "no valid JSON"), (["sleep", "9"], "took more")):
            with self.subTest(reason), self.assertRaisesRegex(run.Skip, reason):
                run.run_json(argv, 0.5)


if __name__ == "__main__":
    unittest.main()
