"""Tests of run.py's judgement: `python3 -m unittest bench/run_test.py`. No root, no measurement."""

import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import http_side  # noqa: E402
import programs  # noqa: E402
import rows  # noqa: E402
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
MIB = 1 << 20
RATES = {"mib_per_s": 600, "plain_mib_per_s": 1000, "rss_growth_bytes": 1 << 20}
HTTP = {
    "http_cycle": [{"p50_us": 5000, "p99_us": 9000, "n": 10}],
    "http_destroy": [{"p50_us": 900, "p99_us": 1500, "n": 10}],
    "http_claim": [{"p50_us": 600, "p99_us": 900, "n": 10}],
    "http_claim_output": [{"p50_us": 1700, "p99_us": 2000, "n": 10}],
    "http_exec": [{"p50_us": 1300, "p99_us": 2000, "n": 10}],
    "http_first_byte": [{"p50_us": 400, "p99_us": 800, "n": 10}],
    "http_hello": [{"per_s": 50000}],
    "http_health": [{"per_s": 40000}],
    "http_sustained": [{"per_s": 300}],
    "http_burst100": [{"p50_us": 9000, "p99_us": 20000, "n": 100, "failures": 0,
                       "total_us": 500000, "serial_us": 450000}],
    "http_idle1000": [{"bytes_per_sandbox": 700000, "alive": 1000, "server_cpu_percent": 0.4},
                      {"name": "http_streams200", "complete": 200}],
    "http_stream_rate": [RATES],
    "http_upload": [RATES],
    "http_download": [RATES],
    "http_health_busy": [{"per_s": 12000}],
    "http_server_rss": [{"rss_bytes": 20 * MIB}],
    "http_storm": [{"growth_bytes": 0}],
}
FLOOR = {"spawn": 700, "vfork": 700, "full": 5000, "nonet": 4000, "run": 7000}


class FakeHttp:
    """What a server would give."""

    def __init__(self, lines):
        self.lines = lines

    def one_turn(self, name):
        return self.lines[name][0]

    def once(self, row):
        if row == "http_health_busy":
            return {row: programs.Quantity(self.lines[row][0]["per_s"])}
        return http_side.quantities_of([{"name": row, **line} for line in self.lines[row]])

    def close(self):
        pass


class FakeDocker:
    def command(self, *_):
        return ["docker"]


class JudgementTest(unittest.TestCase):
    def setUp(self):
        for target, name, value in ((run.shutil, "which", lambda name: f"/usr/bin/{name}"),
                                    (run.os, "access", lambda *_: self.engine is not None),
                                    (programs, "run_json", self.answer)):
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

    def measure(self, engine, docker=None, quick=False, http=None, only=()):
        """The rows those answers lead to; engine None leaves engine_bench out."""
        self.engine = engine
        selected = rows.chosen(only)
        bench = run.Bench(pathlib.Path("/nowhere"), quick, docker or FakeDocker(),
                          FakeHttp(http or HTTP), selected)
        bench.measure()
        return {row["name"]: row for row in rows.judge(bench, selected)}

    def test_a_good_engine_meets_all_but_what_the_fake_docker_cannot_show(self):
        got = self.measure(GOOD)
        self.assertEqual(rows.failed_check(got.values()), ["docker_run", "http_docker_run"])
        self.assertEqual(got["cycle"]["ratio"], 0.8)
        self.assertEqual(got["docker_run"]["target"], ">= 70x")

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
                got = self.measure({**GOOD, row: [{**GOOD[row][0], **change}]})
                self.assertIs(got[missed]["met"], False)

    def test_each_target_of_the_server_is_missed_by_a_value_just_past_it(self):
        for row, change, missed in (
                ("http_cycle", {"p50_us": 6501}, "http_cycle"),
                ("http_cycle", {"p50_us": 7000}, "http_cycle_vs_bwrap"),
                ("http_claim", {"p50_us": 1001}, "http_claim"),
                ("http_claim_output", {"p50_us": 1751}, "http_claim_output"),
                ("http_exec", {"p50_us": 1401}, "http_exec"),
                ("http_destroy", {"p50_us": 2001}, "http_destroy"),
                ("http_sustained", {"per_s": 195}, "http_sustained"),
                ("http_burst100", {"failures": 1}, "http_burst100_failures"),
                ("http_burst100", {"total_us": 600000}, "http_burst100_total"),
                ("http_burst100", {"p99_us": 46000}, "http_burst100_p99"),
                ("http_idle1000", {"bytes_per_sandbox": MIB + 1}, "http_idle1000"),
                ("http_idle1000", {"alive": 999}, "http_idle1000_alive"),
                ("http_idle1000", {"server_cpu_percent": 1.2}, "http_idle1000_cpu"),
                ("http_first_byte", {"p50_us": 2001}, "http_first_byte"),
                ("http_stream_rate", {"mib_per_s": 499}, "http_stream_rate"),
                ("http_stream_rate", {"rss_growth_bytes": 17 * MIB}, "http_stream_rss"),
                ("http_upload", {"mib_per_s": 499}, "http_upload"),
                ("http_upload", {"rss_growth_bytes": 17 * MIB}, "http_upload_rss"),
                ("http_download", {"mib_per_s": 499}, "http_download"),
                ("http_download", {"rss_growth_bytes": 17 * MIB}, "http_download_rss"),
                ("http_health", {"per_s": 24999}, "http_health"),
                ("http_health_busy", {"per_s": 9999}, "http_health_busy"),
                ("http_server_rss", {"rss_bytes": 26 * MIB}, "http_server_rss"),
                ("http_storm", {"growth_bytes": 5 * MIB}, "http_storm_rss")):
            with self.subTest(missed):
                first, *more = HTTP[row]
                got = self.measure(GOOD, http={**HTTP, row: [{**first, **change}, *more]})
                self.assertIs(got[missed]["met"], False)
        lost = {**HTTP, "http_idle1000": [HTTP["http_idle1000"][0],
                                          {"name": "http_streams200", "complete": 199}]}
        self.assertIs(self.measure(GOOD, http=lost)["http_streams200"]["met"], False)

    def test_a_line_that_the_server_side_lacks_fails_the_check(self):
        got = self.measure(GOOD, http={**HTTP, "http_idle1000": HTTP["http_idle1000"][:1]})
        self.assertIn("http_streams200", rows.failed_check(got.values()))

    def test_only_measures_what_the_chosen_rows_need(self):
        got = self.measure(None, http={"http_exec": HTTP["http_exec"]}, only=("http_exec",))
        self.assertEqual(list(got), ["http_exec"])
        self.assertIs(got["http_exec"]["met"], True)
        with self.assertRaisesRegex(ValueError, "no row http_exek"):
            rows.chosen(("http_exek",))

    def test_what_the_engine_skips_is_stated_and_not_judged(self):
        got = self.measure(GOOD)
        for name in ("cycle_nonet", "sustained_nonet"):
            self.assertEqual(got[name]["skipped"], "there is no such sandbox")
            self.assertIsNone(got[name]["met"])

    def test_a_skip_of_a_row_with_a_target_fails_the_check(self):
        got = self.measure({**GOOD, "exec": [{"skipped": "there is no such sandbox"}]})
        self.assertIn("exec", rows.failed_check(got.values()))

    def test_a_steep_curve_misses(self):
        curve = [dict(point) for point in GOOD["curve"]]
        curve[-1]["p50_us"] = 6000
        self.assertIs(self.measure({**GOOD, "curve": curve})["curve_1000"]["met"], False)

    def test_without_the_engine_every_engine_row_is_a_stated_skip_and_the_check_fails(self):
        got = self.measure(None)
        self.assertEqual(got["idle1000_alive"]["skipped"], "engine_bench is not built")
        self.assertIsNone(got["cycle"]["p50"])
        self.assertIn("cycle", rows.failed_check(got.values()))

    def test_a_row_the_engine_does_not_print_fails_the_check(self):
        engine = {**GOOD, "idle1000": [{"bytes_per_sandbox": 1}]}
        self.assertIn("launcher_rss", rows.failed_check(self.measure(engine).values()))

    def test_missing_docker_and_what_quick_leaves_out_are_excused(self):
        got = self.measure(GOOD, docker="docker.io is not installed", quick=True)
        self.assertEqual(got["docker_run"]["skipped"], "docker.io is not installed")
        self.assertEqual(got["curve_1000"]["skipped"], "left out by --quick")
        self.assertEqual(rows.failed_check(got.values()), [])

    def test_a_missing_bwrap_excuses_only_the_comparison_with_it(self):
        run.shutil.which = lambda name: None
        got = self.measure({**GOOD, "cycle": [{"p50_us": 5001, "p99_us": 1, "n": 1}]},
                            docker="docker.io is not installed")
        self.assertEqual(rows.failed_check(got.values()), ["cycle"])
        self.assertIn("bubblewrap is not installed", got["cycle_vs_bwrap"]["skipped"])


class WrkTest(unittest.TestCase):
    def test_the_rate_is_read_only_when_every_request_was_answered_well(self):
        good = "  100 requests in 1.00s, 1MB read\nRequests/sec:  40123.45\nTransfer/sec: 1MB\n"
        self.assertEqual(http_side.wrk_rate(good), 40123.45)
        for bad, reason in (("  Non-2xx or 3xx responses: 5\n" + good, "Non-2xx"),
                            ("  Socket errors: connect 0, read 3, write 0, timeout 0\n" + good,
                             "Socket errors"), ("unable to connect\n", "no rate")):
            with self.subTest(reason), self.assertRaisesRegex(programs.Skip, reason):
                http_side.wrk_rate(bad)


class MetricsTest(unittest.TestCase):
    def test_creates_of_every_kind_are_counted(self):
        text = ('caisson_session_create_seconds_sum{provider="native"} 3\n'
                'caisson_session_create_seconds_count{provider="native",environment="a"} 5\n'
                'caisson_session_create_seconds_count{provider="native",environment="b"} 7\n')
        self.assertEqual(http_side.created_count(text), 12)
        self.assertEqual(http_side.created_count("caisson_sessions 4\n"), 0)


class RunJsonTest(unittest.TestCase):
    def test_a_failing_program_is_a_skip_with_its_last_line(self):
        with self.assertRaisesRegex(programs.Skip, "sh exited with 3: second"):
            programs.run_json(["sh", "-c", "echo first >&2; echo second >&2; exit 3"], 10)

    def test_a_missing_program_an_empty_answer_broken_json_and_a_hang_are_skips(self):
        for argv, reason in ((["/nowhere/program"], "No such file"), (["true"], "printed no row"),
                             (["echo", "{broken"], "no valid JSON"), (["sleep", "9"], "took more")):
            with self.subTest(reason), self.assertRaisesRegex(programs.Skip, reason):
                programs.run_json(argv, 0.5)


if __name__ == "__main__":
    unittest.main()
