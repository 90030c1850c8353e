"""The N observation: a neighbour sandbox keeps its rhythm while another one is hostile.

The heartbeat (a 1 ms timer, 4 KiB written and synced and a program started every 50 ms) runs in a sandbox of
its own, first quiet, then under attack. Its p99 under attack must stay within twice the quiet one, or below
a floor that stands for the noise of a two-core machine: a p99 of a few milliseconds doubles by itself
when anything else on the host wakes up.
"""

FACTOR = 2.0
# Microseconds. A CPU quota is enforced in periods of 100 ms, and a heartbeat that was
# throttled once or waited behind one time slice of each of two others is not a starved one.
FLOOR = {"timer": 25_000, "disk": 40_000, "spawn": 80_000}


class Neighbour:
    def __init__(self, driver, probe_mount, seconds=2, **spec):
        self._sandbox = driver.create(mounts=[probe_mount], cpus=1.0, **spec)
        self._program = probe_mount["target"] + "/probe"
        self._seconds = seconds
        self.quiet = self._beat()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._sandbox.destroy()

    def _beat(self):
        return self._sandbox.exec(self._program, "heartbeat", self._seconds).json()

    def start(self):
        """The heartbeat in the background, for the length of an attack."""
        return self._sandbox.start(self._program, "heartbeat", self._seconds)

    def judge(self, process):
        loud = process.wait(deadline=60).json()
        problems = complaints(self.quiet, loud)
        assert not problems, f"the neighbour suffered: {'; '.join(problems)}"
        return loud


def complaints(quiet, loud):
    found = []
    for kind, floor in FLOOR.items():
        allowed = max(FACTOR * quiet[kind]["p99"], floor)
        if loud[kind]["p99"] > allowed:
            found.append(f"{kind} p99 {quiet[kind]['p99']} us quiet, {loud[kind]['p99']} us under attack "
                         f"(allowed {allowed:.0f})")
        if loud[kind]["count"] == 0:
            found.append(f"{kind} never beat")
    if loud["failures"] > quiet["failures"]:
        found.append(f"{loud['failures']} failures")
    return found
