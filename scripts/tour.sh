#!/usr/bin/env bash
# A tour for newcomers: short runs of build/caisson, then the server and its API with curl, each with
# what it shows, the command as typed, its output and its time. Exits 1 if something did not do what
# the tour says it does. On a terminal the server then goes on until Ctrl-C; otherwise it ends.
#
# CAISSON names another binary, LISTEN another address than 127.0.0.1:8000 (a free port is taken when
# that one is in use), DATA_DIR another place for the server's state than build/run. Works without a
# terminal; NO_COLOR is honoured.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

caisson=${CAISSON:-build/caisson}
bold='' dim='' green='' red='' off=''
if [[ -t 1 && -z ${NO_COLOR:-} ]]; then
  bold=$'\e[1m' dim=$'\e[2m' green=$'\e[32m' red=$'\e[31m' off=$'\e[0m'
fi

number=0 failures=0
output='' status=0

# Microseconds of the clock, whatever the locale's decimal point is.
now() { echo "${EPOCHREALTIME//[.,]/}"; }

# step TITLE EXPLANATION COMMAND: runs COMMAND and shows it; leaves `output` and `status`.
step() {
  local began took
  number=$((number + 1))
  printf '\n%s%d. %s%s\n%s\n' "$bold" "$number" "$1" "$off" "$2"
  printf '%s$ %s%s\n' "$dim" "$3" "$off"
  began=$(now)
  status=0
  output=$(bash -c "$3" 2>&1 </dev/null) || status=$?
  took=$(($(now) - began))
  if [[ -n $output ]]; then sed 's/^/    /' <<<"$output"; fi
  printf '%s  exit code %d, %d.%d ms from start to end%s\n' \
    "$dim" "$status" $((took / 1000)) $((took / 100 % 10)) "$off"
}

# verdict WANTED_STATUS PATTERN TEXT: whether the last step ended as it must. A refusal (125) of a
# limit that this host cannot enforce is an honest answer, and is shown as one.
verdict() {
  if [[ $status == "$1" && $output =~ $2 ]]; then
    printf '%s  => %s%s\n' "$green" "$3" "$off"
  elif [[ $status == 125 && $output == *"cannot be enforced here"* ]]; then
    printf '  => This host cannot enforce that limit, so the sandbox was refused: %s doctor says why.\n' "$caisson"
  else
    printf '%s  => That is not what should happen; please look at %s doctor.%s\n' "$red" "$caisson" "$off"
    failures=$((failures + 1))
  fi
}

# The password hashes of the host, one per line, as far as we may read them.
host_hashes() { { cut -d: -f2 /etc/shadow | grep '^\$'; } 2>/dev/null || true; }

if [[ ! -x $caisson ]]; then
  echo "$caisson is not there; type \`make build\` first" >&2
  exit 1
fi

step "Python in a jail" \
  "A new sandbox is made, runs one command, and is destroyed." \
  "$caisson exec --stats -- python3 -c 'print(\"6 * 7 =\", 6 * 7)'"
verdict 0 '6 \* 7 = 42' "The line 'sandbox:' tells how long making and destroying it took."

step "A fork bomb" \
  "It may have 64 processes and two seconds. Halfway through it counts its processes." \
  "$caisson exec --pids 64 --timeout 2s --stats -- bash -c 'mkfifo wait; exec 3<>wait
     :(){ :|:& };: 2>/dev/null; read -t 1 -u 3; set -- /proc/[0-9]*; echo \"\$# processes in here\"; read -u 3'"
if [[ $output =~ ([0-9]+)\ processes && ${BASH_REMATCH[1]} -gt 64 ]]; then status=-1; fi
verdict 124 'timeout' "64 is its wall. Then the time was over, and all of them are gone."

step "A memory hog" \
  "It asks for a gigabyte and may have 64 MiB." \
  "$caisson exec --memory 64M --stats -- python3 -c 'x = b\"x\" * (1 << 30)'"
verdict 137 'out_of_memory' "The kernel ended it at its limit, and the outcome says so."

step "Secrets of the host" \
  "Root inside reads /etc/shadow and looks into /root and /home. They are not the host's." \
  "$caisson exec -- sh -c 'head -n 2 /etc/shadow; echo \"in /root: \$(ls -A /root | wc -l) files\"; ls /home'"
hashes=$(host_hashes)
if [[ -z $hashes ]]; then
  shown="Every account in there is locked. (The host has no password hash that this tour may read to compare.)"
elif grep -qF -f <(echo "$hashes") <<<"$output"; then
  shown=""
else
  shown="The host's /etc/shadow has $(wc -l <<<"$hashes") real password hash(es); none of them is in there."
fi
if [[ -n $shown ]]; then verdict 0 'in /root: 0 files' "$shown"; else status=-1 && verdict 0 '' ''; fi

step "No network" \
  "It lists its network interfaces and tries to reach the Internet." \
  "$caisson exec -- python3 -c 'import os, socket as s
print([name for _, name in s.if_nameindex()], os.strerror(s.socket().connect_ex((\"1.1.1.1\", 53))))'"
verdict 0 "\['lo'\] Network is unreachable" "There is a loopback interface, and no way out."

step "The strict profile" \
  "For code that a model wrote: no capability, and a root that cannot be written." \
  "$caisson exec --profile strict -- sh -c 'exec 2>&1; grep CapEff /proc/self/status; touch /usr/x /etc/x
     touch /tmp/a /workspace/b && echo \"/tmp and /workspace are writable\"'"
verdict 0 '0000000000000000.*/usr/x.*Read-only.*are writable' \
  "Only /tmp and /workspace can be written, and they go with the sandbox."

# --- the server ----------------------------------------------------------------------------------
data_dir=${DATA_DIR:-build/run}
server_log=$data_dir/server.log
server_pid='' url=''
mkdir -p "$data_dir"

# Until the server has ended. It is no job of this shell, so that its death makes no noise.
await_end() { while kill -0 "$server_pid" 2>/dev/null; do sleep 0.05; done; }
stop_server() {
  [[ -n $server_pid ]] || return 0
  kill -TERM "$server_pid" 2>/dev/null || true
  await_end
  server_pid=''
}
trap stop_server EXIT

# Starts the server and waits for its line `listening on …`; leaves `server_pid` and `url`.
start_server() {
  local address=$1 line=''
  server_pid=$("$caisson" serve --listen "$address" --data-dir "$data_dir" --auth none \
    >"$data_dir/listening" 2>>"$server_log" </dev/null & echo $!)
  for _ in $(seq 600); do
    line=$(head -n 1 "$data_dir/listening" 2>/dev/null || true)
    [[ $line != "listening on "* ]] || break
    kill -0 "$server_pid" 2>/dev/null || break
    sleep 0.05
  done
  url=${line#listening on }
  [[ -n $url ]]
}

printf '\n%sThe server%s\nSessions over HTTP: one port, one data directory.\n' "$bold" "$off"
listen=${LISTEN:-127.0.0.1:8000}
printf '%s$ %s serve --listen %s --data-dir %s --auth none%s\n' "$dim" "$caisson" "$listen" "$data_dir" "$off"
if ! start_server "$listen" && ! start_server 127.0.0.1:0; then
  tail -n 5 "$server_log" >&2
  echo "the server did not start" >&2
  exit 1
fi
printf '%s  => listening on %s%s\n' "$green" "$url" "$off"
json() { sed -n "s/.*\"$1\":\"\\([^\"]*\\)\".*/\\1/p" <<<"$output"; }

step "Create a session" \
  "A session is a sandbox that stays until you destroy it or its time is over." \
  "curl -s $url/api/sessions -d '{\"environment\": \"Python3\", \"limits\": {\"memory\": \"256M\"}}' -H 'Content-Type: application/json' | cut -c 1-300"
session=$(json session_id)
verdict 0 '"state":"running"' "It runs. The answer also says what isolates it and which limits hold, and by what."

step "Run a command in it" \
  "Exit code, output, typed outcome and usage from the kernel." \
  "curl -s $url/api/sessions/$session/exec -d '{\"command\": \"echo 42 > answer; python3 -c \\\"print(6*7)\\\"\"}' -H 'Content-Type: application/json'"
verdict 0 '"stdout":"42.n"' "Files and processes stay in the session: the next command finds the file."

step "Stream it" \
  "The same route with Accept: application/x-ndjson (or text/event-stream, or a WebSocket)." \
  "curl -sN $url/api/sessions/$session/exec -H 'Accept: application/x-ndjson' -H 'Content-Type: application/json' -d '{\"command\": \"for i in 1 2 3; do echo tick \$i; sleep 0.2; done\"}' | cut -c 1-160"
verdict 0 'tick 3.*"type":"ended"' "Each line came when it was written."

step "The original APIs" \
  "Clients of home-made servers find the routes that they know." \
  "curl -s $url/execute -d '{\"session_id\": \"$session\", \"command\": \"cat answer\"}' -H 'Content-Type: application/json'"
verdict 0 '"output":"42.n"' "The same session, another shape."

step "Kill the server" \
  "kill -9, in the middle of everything, and start it again on the same data directory." \
  "kill -9 $server_pid; echo killed"
await_end
if ! start_server "${url#http://}"; then echo "the server did not come back" >&2; exit 1; fi
step "Nobody lost their sandbox" \
  "The new server asked the launcher for what still runs." \
  "curl -s $url/api/sessions/$session/exec -d '{\"command\": \"cat answer\"}' -H 'Content-Type: application/json' | cut -c 1-200"
verdict 0 '"exit_code":0' "The session, its files and its processes are there."

step "Destroy it" \
  "Every process, mount, cgroup and file of it goes." \
  "curl -s -o /dev/null -w '%{http_code}' -X DELETE $url/api/sessions/$session"
verdict 0 '204' "Nothing is left."

printf '\n%sWhat to try next%s\n' "$bold" "$off"
try() { printf '  %-42s %s\n' "$1" "$2"; }
try "$caisson exec -- bash" "a shell in a sandbox; break things"
try "$caisson exec --json -- id" "outcome, usage, isolation and limits as JSON"
try "$caisson exec --help, $caisson serve --help" "all options"
try "$url/docs" "every route of the API, while the server runs"
try "examples/run-untrusted-python.sh" "a script to start from"
try "README.md, docs/guides/" "the rest"

if [[ -t 0 && -t 1 && $failures == 0 ]]; then
  printf '\n%sThe server goes on at %s%s; Ctrl-C ends it.\n' "$bold" "$url" "$off"
  trap 'stop_server; exit 0' INT
  await_end
  server_pid=''
fi
((failures == 0))
