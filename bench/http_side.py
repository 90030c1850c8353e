"""The bench's measurements through the API: http_bench and wrk against servers of their own."""

import contextlib
import re
import shutil
import subprocess
import time
import urllib.request

import http_servers
import programs

PLAIN = ("--warm-ceiling", "0")
WARM = ("--warm", "8", "--warm-ceiling", "16")

# What is taken in turns, and how many runs one turn has (full, quick).
TURNS = {
    "http_cycle": (100, 30), "http_destroy": (100, 30), "http_exec": (200, 50),
    "http_first_byte": (100, 30), "http_claim": (100, 30), "http_claim_output": (100, 30),
    "http_hello": (2, 1), "http_health": (2, 1),  # seconds of wrk
}
ONCE = ("http_server_rss", "http_sustained", "http_burst100", "http_stream_rate", "http_upload",
        "http_download", "http_health_busy", "http_idle1000", "http_storm")

# Fields of http_bench's lines that are quantities of their own: line -> ((field, name), ...).
FIELDS = {
    "http_sustained": (("per_s", "http_sustained"),),
    "http_burst100": (("failures", "http_burst100_failures"), ("total_us", "http_burst100_total"),
                      ("serial_us", "http_burst100_serial"), ("p99_us", "http_burst100_p99")),
    "http_idle1000": (("bytes_per_sandbox", "http_idle1000"), ("alive", "http_idle1000_alive"),
                      ("server_cpu_percent", "http_idle1000_cpu")),
    "http_streams200": (("complete", "http_streams200"),),
    "http_stream_rate": (("mib_per_s", "http_stream_rate"), ("plain_mib_per_s", "http_cat"),
                         ("rss_growth_bytes", "http_stream_rss")),
    "http_upload": (("mib_per_s", "http_upload"), ("plain_mib_per_s", "http_upload_plain"),
                    ("rss_growth_bytes", "http_upload_rss")),
    "http_download": (("mib_per_s", "http_download"), ("plain_mib_per_s", "http_download_plain"),
                      ("rss_growth_bytes", "http_download_rss")),
    "http_server_rss": (("rss_bytes", "http_server_rss"),),
    "http_storm": (("growth_bytes", "http_storm_rss"),),
}
MIN_BUSY_CREATES = 8  # before http_health_busy counts as busy, and while it is measured
# Rows of ONCE whose program prints more than the line of its own name.
MORE_LINES = {"http_idle1000": ("http_streams200",)}


def names_of(row):
    """The quantities that a row of ONCE gives."""
    lines = (row, *MORE_LINES.get(row, ()))
    fields = [name for line in lines for _, name in FIELDS.get(line, ())]
    return fields if row != "http_burst100" and fields else [row, *fields]


def wrk_rate(text):
    """Requests per second from what wrk printed; all of them must have been answered well."""
    bad = re.search(r"Non-2xx or 3xx responses: \d+|Socket errors: .*", text)
    if bad:
        raise programs.Skip(f"wrk: {bad[0]}")
    found = re.search(r"^Requests/sec:\s+([0-9.]+)\s*$", text, re.MULTILINE)
    if not found or float(found[1]) == 0:
        raise programs.Skip("wrk printed no rate")
    return float(found[1])


def created_count(metrics):
    """Sessions created so far, from the text of /metrics."""
    found = re.findall(r"^caisson_session_create_seconds_count\S* (\d+)", metrics, re.MULTILINE)
    return sum(int(count) for count in found)


def creates(url):
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with direct.open(f"{url}/metrics", timeout=30) as answer:
        return created_count(answer.read().decode())


def await_creates(url):
    """How many sessions there have been once they come and go."""
    for _ in range(200):
        if (count := creates(url)) >= MIN_BUSY_CREATES:
            return count
        time.sleep(0.02)
    raise programs.Skip("no sessions are being made")


def quantities_of(lines):
    """{name: Quantity} of http_bench's lines."""
    found = {}
    for line in lines:
        name, count = line.get("name"), int(line.get("n", 1))
        if name == "http_burst100" and {"p50_us", "p99_us"} <= line.keys():
            found[name] = programs.Quantity(line["p50_us"], line["p99_us"], n=count)
        for field, quantity in FIELDS.get(name, ()):
            if field in line:
                found[quantity] = programs.Quantity(line[field], n=count)
    return found


class HttpSide:
    """Starts servers when a measurement first needs them; close() ends those that are kept."""

    def __init__(self, build, quick, storm):
        self._build = build
        self._quick = quick
        self._storm = storm
        self._kept = {}
        self._stack = contextlib.ExitStack()

    def close(self):
        self._kept.clear()
        self._stack.close()

    def one_turn(self, name):
        runs = TURNS[name][1 if self._quick else 0]
        if name in ("http_hello", "http_health"):
            return {"per_s": self._wrk(self._server(name).url, runs)}
        line = next((line for line in self._bench(self._server(name), name, "--runs", str(runs))
                     if line.get("name") == name), {})
        if not {"p50_us", "p99_us", "n"} <= line.keys():
            raise programs.Skip(f"http_bench printed no complete row {name}")
        return line

    def once(self, row):
        """{name: Quantity} of a row that is taken once, on a server of its own."""
        with http_servers.serve(self._build, *PLAIN) as server:
            if row == "http_health_busy":
                return {row: programs.Quantity(self._busy_rate(server))}
            options = ["--storm", str(self._storm)] if row == "http_storm" else []
            return quantities_of(self._bench(server, row, *options))

    def _server(self, name):
        """The server that is kept for a measurement taken in turns."""
        kind = {"http_hello": "hello", "http_claim": "warm", "http_claim_output": "warm"}.get(
            name, "plain")
        if kind not in self._kept:
            context = (http_servers.hello(self._build) if kind == "hello" else
                       http_servers.serve(self._build, *(WARM if kind == "warm" else PLAIN)))
            self._kept[kind] = self._stack.enter_context(context)
        return self._kept[kind]

    def _bench(self, server, row, *options):
        return programs.run_json(self._bench_argv(server, row, *options),
                                 timeout=900 + 2 * self._storm)

    def _bench_argv(self, server, row, *options):
        quick = ["--quick"] if self._quick else []
        return [str(self._build / "http_bench"), "--json", "--url", server.url, "--pid",
                str(server.pid), "--only", row, *quick, *options]

    def _wrk(self, url, seconds):
        if not shutil.which("wrk"):
            raise programs.Skip("wrk is not installed")
        done = programs.run_program(["wrk", "-t1", "-c64", f"-d{seconds}s", f"{url}/health"],
                                    timeout=seconds + 60)
        return wrk_rate(done.stdout)

    def _busy_rate(self, server):
        """The rate of /health while sessions are created, used and destroyed side by side."""
        seconds = 1 if self._quick else 4  # less than http_sustained lasts
        with subprocess.Popen(self._bench_argv(server, "http_sustained"), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as churn:
            try:
                begun = await_creates(server.url)
                rate = self._wrk(server.url, seconds)
                made = creates(server.url) - begun
                if churn.poll() is not None or made < MIN_BUSY_CREATES:
                    raise programs.Skip(f"only {made} sessions were made meanwhile")
            finally:
                churn.terminate()
                churn.communicate(timeout=60)
        return rate
