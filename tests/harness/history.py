"""A history of API calls, and whether a server that keeps its promises could have given these answers.

Each call has a beginning and an end on one monotonic clock. One that broke off has no answer: it may have
happened or not. Two calls say something about each other only when one ended before the other began.
"""

import collections
import threading
import time

ENDED = ("destroyed", "failed", "lost")
# What may be seen after what, with or without the states in between.
LATER = {
    "creating": {"creating", "running", "paused", "stopping", *ENDED},
    "running": {"running", "paused", "stopping", *ENDED},
    "paused": {"running", "paused", "stopping", *ENDED},
    "stopping": {"stopping", *ENDED},
    "destroyed": {"destroyed"}, "failed": {"failed"}, "lost": {"lost"},
}


class Call:
    """`kind`: create, destroy, state, list, exec, log. `answer`: None when the call broke off."""

    def __init__(self, kind, subject, begin, end, answer, note=None):
        self.kind, self.subject, self.begin, self.end, self.answer, self.note = kind, subject, begin, end, answer, note

    def __repr__(self):
        return f"{self.begin:.4f}–{self.end:.4f} {self.kind} {self.subject} → {self.answer} {self.note or ''}"


class History:
    def __init__(self):
        self.calls = []
        self._lock = threading.Lock()
        self._zero = time.monotonic()

    def record(self, kind, subject, call, note=None):
        """Makes the call and notes it. `call` gives (subject, answer), or None when it broke off."""
        begin = time.monotonic() - self._zero
        result = call()
        end = time.monotonic() - self._zero
        subject, answer = result if result is not None else (subject, None)
        with self._lock:
            self.calls.append(Call(kind, subject, begin, end, answer, note))
        return answer

    def add(self, *fields, **more):
        self.calls.append(Call(*fields, **more))


def violations(calls):
    """What contradicts the promises, as sentences; empty when nothing does."""
    found = []
    by_session = collections.defaultdict(list)
    keys = collections.defaultdict(set)
    for call in sorted(calls, key=lambda c: c.end):
        if call.kind == "list" and call.answer is not None:
            found += _doubled(call)
        by_session[call.subject].append(call)
        if call.kind == "create" and call.answer is not None:
            keys[call.note].add(call.subject)
    found += [f"the key {key} made {len(ids)} sessions: {ids}" for key, ids in keys.items() if len(ids) > 1]
    lists = [c for c in calls if c.kind == "list" and c.answer is not None]
    for session, of_it in by_session.items():
        if session is not None:
            found += _visible(session, of_it, lists) + _states(of_it) + _execs(session, of_it)
    return found


def _doubled(call):
    sandboxes = list(call.answer.values())
    return [f"two sessions share a sandbox: {call}"] if len(set(sandboxes)) < len(sandboxes) else []


def _visible(session, calls, lists):
    """Acknowledged creates are seen until somebody asks for the end; acknowledged ends stay."""
    made = [c for c in calls if c.kind == "create" and c.answer is not None]
    ends = [c for c in calls if c.kind == "destroy"]
    acknowledged = [c for c in ends if c.answer is not None]
    first_end = min((c.begin for c in ends), default=float("inf"))
    born = min((c.end for c in made), default=float("inf"))
    gone = min((c.end for c in acknowledged), default=float("inf"))
    found = []
    for call in calls:
        if call.kind != "state" or call.answer is None:
            continue
        if call.begin > born and call.end < first_end and call.answer not in ("running", "paused"):
            found.append(f"an acknowledged session is not there: {call}")
        if call.begin > gone and call.answer not in ("stopping", "destroyed"):
            found.append(f"an acknowledged end was undone: {call}")
    for call in lists:
        if call.begin > born and call.end < first_end and session not in call.answer:
            found.append(f"session {session} is missing from a list: {call}")
    return found


def _states(calls):
    seen = [c for c in calls if c.kind == "state" and c.answer is not None]
    return [f"{before.answer} became {after.answer}: {before}; {after}"
            for before in seen for after in seen
            if before.end < after.begin and after.answer not in LATER.get(before.answer, ())]


def _execs(session, calls):
    """Commands append their number to a log inside: each ran at most once, and once if it was said to have run."""
    logs = [c for c in calls if c.kind == "log" and c.answer is not None]
    found = []
    for log in logs:
        counts = collections.Counter(log.answer)
        for run in (c for c in calls if c.kind == "exec"):
            times = counts[run.note]
            if times > 1:
                found.append(f"a command ran {times} times in {session}: {run}")
            if run.answer == "exited 0" and run.end < log.begin and times != 1:
                found.append(f"a command that was said to have run did not, in {session}: {run}")
            if run.answer is not None and run.answer != "exited 0":
                found.append(f"an outcome was made up: {run}")
    return found
