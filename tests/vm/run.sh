#!/usr/bin/env bash
# Runs Caisson's limit tests on a Debian cloud kernel with cgroup v2 and Landlock, in a virtual machine
# under software emulation (no KVM, no network, no privilege, nothing installed).
#
#   run.sh [--self-test] [--filter REGEX] [--build DIR] [--work DIR] [--timeout SECONDS] [--keep]
#
#   --self-test   check the machine itself; needs no Caisson binary
#   --filter      run only the cases whose name matches
#   --build       folder of Caisson's binaries (default: build/ of the project)
#   --work        folder for packages and images (default: BUILD/vm)
#   --timeout     wall time for the machine (default: 600); a case may take a sixth of it
#   --keep        keep the disk images afterwards
#
# Prints the machine's TAP lines and, last, `N passed, N failed`. Exits 0 if all passed, 1 if a case
# failed or the machine did not reach its end, 2 on a usage error. The console log stays in WORK/console.log.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
project=$(cd "$here/../.." && pwd)
build=$project/build
work=
suite=vm_suite.sh
filter=
limit=600
keep=

usage() {
  sed -n '2,/^set /p' "$here/run.sh" | sed -n 's/^# \{0,1\}//p' >&2
  exit 2
}

while (($#)); do
  case $1 in
    --self-test) suite=self_test.sh ;;
    --filter) filter=${2?$(usage)} && shift ;;
    --build) build=${2?$(usage)} && shift ;;
    --work) work=${2?$(usage)} && shift ;;
    --timeout) limit=${2?$(usage)} && shift ;;
    --keep) keep=1 ;;
    *) usage ;;
  esac
  shift
done
[[ $limit =~ ^[1-9][0-9]*$ ]] || usage
work=${work:-$build/vm}
mkdir -p "$work"
log=$work/console.log

# One machine per work folder at a time: they would share the disks.
exec 9>"$work/lock"
flock -n 9 || {
  echo "vm: another run uses $work" >&2
  exit 1
}

if [[ $suite == vm_suite.sh ]]; then
  for binary in caisson driver unit_tests; do
    [[ -x $build/$binary ]] || {
      echo "vm: $build/$binary is missing; run: make build (or use --self-test)" >&2
      exit 1
    }
  done
fi

started=$SECONDS
"$here/fetch.sh" "$work"
fetched=$SECONDS
"$here/image.sh" "$work" "$build" "$suite" "$filter" $((limit / 6))
built=$SECONDS

tree=$work/tree
qemu=(qemu-system-x86_64)
if ! command -v qemu-system-x86_64 >/dev/null; then
  libraries=$tree/usr/lib/x86_64-linux-gnu
  qemu=(env "LD_LIBRARY_PATH=$libraries:$tree/lib/x86_64-linux-gnu" "QEMU_MODULE_DIR=$libraries/qemu"
    "$tree/usr/bin/qemu-system-x86_64" -L "$tree/usr/share/qemu" -L "$tree/usr/share/seabios")
fi

disk() { echo "if=none,id=$1,format=raw,cache=unsafe,file=$work/$1.img"; }
rm -f "$log"
status=0
timeout --kill-after=5 "$limit" "${qemu[@]}" \
  -accel tcg,thread=multi -cpu max -m 2048 -smp 2 -machine q35 -nodefaults -no-user-config \
  -display none -nic none -no-reboot -serial "file:$log" \
  -kernel "$tree/boot/vmlinuz-$(<"$work/kernel-release")" -initrd "$work/initramfs.cpio.gz" \
  -append "console=ttyS0 quiet loglevel=3 panic=1 mitigations=off lsm=landlock,yama,bpf random.trust_cpu=on" \
  -drive "$(disk root)" -device virtio-blk-pci,drive=root \
  -drive "$(disk data)" -device virtio-blk-pci,drive=data \
  -drive "$(disk swap)" -device virtio-blk-pci,drive=swap \
  </dev/null 9>&- || status=$?
ended=$SECONDS
[[ $keep ]] || rm -f "$work"/{root,data,swap}.img

# The console ends its lines with CR LF, and the kernel may write between the suite's lines.
tap=$(tr -d '\r' <"$log" 2>/dev/null | sed -n '/^VM-BEGIN/,/^VM-END/p')
grep -E '^(ok|not ok|#|1\.\.|VM-)' <<<"$tap" || true
count() { grep -cE "$1" <<<"$tap" || true; }
passed=$(grep -E '^ok ' <<<"$tap" | grep -vc '# SKIP' || true)
skipped=$(count '^ok .*# SKIP')
failed=$(count '^not ok ')
planned=$(sed -n 's/^1\.\.\([0-9]*\)$/\1/p' <<<"$tap")

problem=
if ((status == 124 || status == 137)); then
  problem="the machine was stopped after $limit s"
elif ((status != 0)); then
  problem="qemu ended with status $status"
elif ! grep -q '^VM-END' <<<"$tap"; then
  problem="the machine ended before its suite did"
elif [[ $planned != "$((passed + skipped + failed))" || $planned == 0 ]]; then
  problem="planned ${planned:-no} cases, saw $((passed + skipped + failed))"
fi
if [[ $problem ]]; then
  failed=$((failed + 1))
  echo "vm: $problem; the end of $log:" >&2
  tail -n 40 "$log" >&2 || true
fi
echo "vm: fetch $((fetched - started)) s, images $((built - fetched)) s, machine $((ended - built)) s" >&2
((skipped == 0)) || echo "vm: $skipped skipped" >&2
echo "$passed passed, $failed failed"
((failed == 0))
