"""The system-call policy as its source has it: what each number answers to a call without arguments."""

import pathlib
import re

from harness import paths

SOURCE = paths.ROOT / "src/sys/seccomp_policy.cc"
NUMBERS = pathlib.Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h")

# Answers to a call without arguments. Argument rules let such a call through to the kernel or answer with an
# error of their own kind; both show as a pass.
ANSWERS = {
    "default": {"kAllow": "pass", "kAllowElseEperm": "pass", "kAllowElseEnosys": "pass", "kAllowElseEinval": "pass",
                "kEperm": "EPERM", "kEnosys": "ENOSYS"},
    "strict": {"kAllow": "pass", "kAllowElseEperm": "EPERM", "kAllowElseEnosys": "ENOSYS", "kAllowElseEinval": "pass",
               "kEperm": "EPERM", "kEnosys": "ENOSYS"},
}
ARGUMENT_RULES = {"kClone", "kUnshare", "kSocket", "kSocketPair", "kIoctl", "kSetSockOpt", "kPersonality", "kNotInit"}


def calls():
    """{number: (name, rule)} of x86_64."""
    text = SOURCE.read_text()
    numbers = {name: int(nr) for name, nr in re.findall(r"#define __NR_(\w+) (\d+)", NUMBERS.read_text())}
    groups = {group: [(name, int(at) if at else numbers[name])
                      for name, at in re.findall(r"CALL(?:_AT)?\((\w+)(?:, (\d+))?\)", body)]
              for group, body in re.findall(r"constexpr Call (k\w+)\[\] = \{(.*?)\};", text, re.S)}
    found = {}
    for rule, group in re.findall(r'\{"[^"]*", (k\w+), (k\w+)\}', text):
        for name, number in groups.pop(group):
            found[number] = (name, rule)
    assert not groups, f"groups of calls without a rule: {sorted(groups)}"
    return found


def answers(profile):
    """{number: "pass" or "EPERM"}; what is not there is ENOSYS."""
    known = ANSWERS[profile]
    table = {number: "pass" if rule in ARGUMENT_RULES else known[rule] for number, (_, rule) in calls().items()}
    return {number: answer for number, answer in table.items() if answer != "ENOSYS"}
