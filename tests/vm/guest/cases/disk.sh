# Bytes and inodes of the writable layer, for each back end.

disk_full() {
  box --profile "$profile" --disk 16M --disk-backend "$backend" --cpus 2 --timeout "$patience" -- \
    bash -c 'dd if=/dev/zero of=/workspace/blob bs=1M count=64; code=$?; stat -c %s /workspace/blob; exit $code'
  ((status != 0)) || fail "64 MiB fit into 16 MiB"
  expect_between "bytes written" $((4 << 20)) $((16 << 20)) "$(tail -n 1 <<<"$output")"
  grep -aEqi 'no space|quota' <<<"$errors" || fail "dd does not say why it stopped"
  expect_outcome disk_full exited
}

inodes_full() {
  driver_start
  create "{\"disk\":16777216,\"inodes\":200,\"disk_backend\":\"$backend\",\"cpus\":2}"
  expect_mechanism disk "$backend"
  exec_in python3 -c 'import errno
n = 0
try:
    while n < 2000:
        open(f"/workspace/{n}", "w").close()
        n += 1
except OSError as error:
    print(n, errno.errorcode[error.errno])'
  local count name
  read -r count name <<<"$(jq -r .stdout <<<"$reply")"
  expect_between "files made" 50 200 "$count"
  [[ $name == ENOSPC || $name == EDQUOT ]] || fail "the error is $name"
  destroy
  driver_stop
}

disk_grows_live() {
  driver_start
  create "{\"disk\":16777216,\"disk_backend\":\"$backend\",\"cpus\":2}"
  expect_mechanism disk "$backend"
  exec_in dd if=/dev/zero of=/workspace/blob bs=1M count=24
  [[ $(jq -r .exit_code <<<"$reply") != 0 ]] || fail "24 MiB fit into 16 MiB"
  exec_in rm /workspace/blob
  update '{"disk":50331648}'
  exec_in dd if=/dev/zero of=/workspace/blob bs=1M count=24
  expect_equal "24 MiB into 48 MiB" 0 "$(jq -r .exit_code <<<"$reply")"
  destroy
  driver_stop
}

# Leaving the project would leave the limit: the attribute calls are refused and writing still stops.
quota_cannot_be_left() {
  driver_start
  create "{\"profile\":\"$profile\",\"disk\":16777216,\"disk_backend\":\"quota\",\"cpus\":2}"
  expect_mechanism disk quota
  exec_in python3 -c 'import fcntl, os, struct
os.mkdir("/workspace/out")
fd = os.open("/workspace/out", os.O_RDONLY)
try:
    attributes = bytearray(fcntl.ioctl(fd, 0x801c581f, bytes(28)))
except OSError:
    attributes = bytearray(28)
struct.pack_into("=I", attributes, 12, 0)
try:
    fcntl.ioctl(fd, 0x401c5820, bytes(attributes))
    print("left the project")
except OSError as error:
    print("refused", error.errno)
written = 0
try:
    with open("/workspace/out/blob", "wb", buffering=0) as blob:
        while written < 64:
            blob.write(bytes(1 << 20))
            written += 1
except OSError:
    pass
print("wrote", written)'
  local text
  text=$(jq -r .stdout <<<"$reply")
  [[ $text == *refused* ]] || fail "the project id could be changed: $text"
  expect_between "MiB written" 4 16 "$(awk '/^wrote/ {print $2}' <<<"$text")"
  destroy
  driver_stop
}

for backend in quota loop tmpfs; do
  for profile in default strict; do
    run_case "$profile, $backend: a full disk stops writing" disk_full
  done
  run_case "$backend: the inode limit stops making files" inodes_full
  run_case "$backend: the disk grows on a live sandbox" disk_grows_live
done
for profile in default strict; do
  run_case "$profile: a project quota cannot be left from inside" quota_cannot_be_left
done
