#!/usr/bin/env bash
# Runs a Python program that nobody has read, and says what became of it.
#
#   examples/run-untrusted-python.sh [FILE]      without FILE: a sample that tries a few things
#
# The program comes on stdin, so nothing of the host has to be mounted. CAISSON names the binary.
set -euo pipefail
caisson=${CAISSON:-$(dirname "${BASH_SOURCE[0]}")/../build/caisson}

sample() {
  cat <<'PYTHON'
import os, socket

def attempt(what, function):
    try:
        print(f"{what}: {function()!r}")
    except OSError as error:
        print(f"{what}: {error.strerror}")

attempt("write to /usr", lambda: open("/usr/planted", "w"))
attempt("reach the Internet", lambda: socket.create_connection(("1.1.1.1", 53), 1))
attempt("become root", lambda: os.setuid(0))
attempt("users with a home", lambda: os.listdir("/home"))
open("/workspace/result.txt", "w").write("scratch space works")
print("/workspace:", open("/workspace/result.txt").read())
PYTHON
}

run() {
  "$caisson" exec --profile strict --memory 128M --timeout 5s --output 1M --stats -- python3 -
}

status=0
if (($# > 0)); then run <"$1" || status=$?; else sample | run || status=$?; fi
case $status in
  0) echo "=> it ended well" ;;
  124) echo "=> it took too long and was ended" ;;
  125) echo "=> the sandbox could not be made; see the message above" ;;
  137) echo "=> it was killed; the line above says which limit it hit" ;;
  *) echo "=> it failed with exit code $status" ;;
esac
exit "$status"
