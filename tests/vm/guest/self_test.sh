# The machine checks itself: everything the suite takes for granted about the kernel, with no Caisson
# binary involved.
source /tests/tap.sh
CGROUPS=/sys/fs/cgroup

feature() {
  local found
  found=$(python3 /tests/features.py "$@" 2>&1) || fail "$found"
  note "$found"
}

unified_controllers() {
  local controllers=" $(</sys/fs/cgroup/cgroup.controllers) " name
  note "controllers:$controllers"
  for name in cpu io memory pids; do
    [[ $controllers == *" $name "* ]] || fail "controller $name is missing"
  done
  [[ -z $(grep -E ' - cgroup ' /proc/self/mountinfo) ]] || fail "a cgroup v1 hierarchy is mounted"
}

kill_file_works() {
  local group=/sys/fs/cgroup/self-kill pid
  mkdir $group
  sleep 100 &
  pid=$!
  echo $pid >$group/cgroup.procs
  echo 1 >$group/cgroup.kill
  wait $pid 2>/dev/null
  expect_equal "status of the killed process" 137 $?
  rmdir $group || fail "the group is still busy"
}

memory_limit_works() {
  local group=/sys/fs/cgroup/self-memory
  echo +memory >/sys/fs/cgroup/cgroup.subtree_control
  mkdir $group
  echo 32M >$group/memory.max
  echo 0 >$group/memory.swap.max
  bash -c "echo \$\$ >$group/cgroup.procs; exec tail /dev/zero" 2>/dev/null
  expect_equal "status of the memory hog" 137 $?
  expect_equal "oom_kill" 1 "$(awk '/^oom_kill / {print $2}' $group/memory.events)"
  rmdir $group
  echo -memory >/sys/fs/cgroup/cgroup.subtree_control
}

landlock_is_on() {
  local lsm
  lsm=$(</sys/kernel/security/lsm)
  note "lsm: $lsm"
  [[ ,$lsm, == *,landlock,* ]] || fail "landlock is not among the active modules"
  feature landlock
}

overlay_on_ext4_works() {
  mkdir -p /data/self/{lower,upper,work,merged}
  echo below >/data/self/lower/file
  mount -t overlay -o lowerdir=/data/self/lower,upperdir=/data/self/upper,workdir=/data/self/work,volatile \
    overlay /data/self/merged || fail "overlay mount"
  echo above >/data/self/merged/file
  umount /data/self/merged
  expect_equal "lower" below "$(</data/self/lower/file)"
  expect_equal "upper" above "$(</data/self/upper/file)"
  rm -rf /data/self
}

project_quota_is_on() {
  grep -E ' /data ext4 .*prjquota' /proc/mounts || fail "/data is not mounted with prjquota"
  grep -q '^quota_v2 ' /proc/modules || fail "quota_v2 is not loaded"
  feature quota /data
}

id_mapped_mounts_work() {
  feature idmap /
  feature idmap /data
  note "tmpfs: $(python3 /tests/features.py idmap /tmp 2>&1)"
}

io_limit_works() {
  local group=$CGROUPS/self-io device started elapsed
  device=$(<"/sys/class/block/vdb/dev")
  echo +io >$CGROUPS/cgroup.subtree_control
  mkdir $group
  echo "$device wbps=1048576" >$group/io.max || fail "io.max on $device"
  started=$(now_us)
  bash -c "echo \$\$ >$group/cgroup.procs; exec dd if=/dev/zero of=/data/blob bs=64k count=48 oflag=direct status=none"
  elapsed=$((($(now_us) - started) / 1000))
  rm /data/blob
  rmdir $group
  echo -io >$CGROUPS/cgroup.subtree_control
  note "3 MiB at 1 MiB/s took $elapsed ms"
  expect_between "milliseconds" 2000 10000 "$elapsed"
}

overlay_for_users() {
  setpriv --reuid 1000 --regid 1000 --clear-groups unshare -Urm bash -c \
    'cd /home/user && mkdir -p l u w m && mount -t overlay -o lowerdir=l,upperdir=u,workdir=w,userxattr overlay m' ||
    fail "overlay in a user namespace"
}

files_of_a_group() {
  local group=$CGROUPS/self-files file
  echo '+cpu +io +memory +pids' >$CGROUPS/cgroup.subtree_control
  mkdir $group
  for file in cgroup.kill cgroup.freeze memory.peak memory.reclaim memory.oom.group memory.swap.max cpu.max io.max \
    pids.max pids.peak memory.pressure cgroup.pressure; do
    [[ -e $group/$file ]] || note "absent: $file"
  done
  [[ -e $group/cgroup.kill && -e $group/memory.max ]] || fail "files every supported kernel has are missing"
  rmdir $group
  echo '-cpu -io -memory -pids' >$CGROUPS/cgroup.subtree_control
}

loop_devices_work() {
  local device
  truncate -s 16M /data/self.img
  mkfs.ext4 -q -F /data/self.img || fail "mkfs"
  device=$(busybox losetup -f)
  busybox losetup "$device" /data/self.img || fail "losetup $device"
  mount -t ext4 "$device" /mnt || fail "mount $device"
  umount /mnt
  busybox losetup -d "$device"
  rm /data/self.img
}

user_namespaces_for_users() {
  setpriv --reuid 1000 --regid 1000 --clear-groups unshare -Urmpf true || fail "unshare as uid 1000"
}

swap_is_on() {
  [[ $(wc -l </proc/swaps) -gt 1 ]] || fail "no swap"
}

# A suite whose failures go unseen proves nothing: these two must be counted as failures.
failures_are_seen() {
  local output
  output=$(CASE_SECONDS=1 CASE_FILTER='' bash -c 'source /tests/tap.sh
    broken() { expect_equal x 1 2; }
    hangs() { sleep 30; }
    run_case broken broken; run_case hangs hangs; finish') && fail "the nested suite passed"
  expect_equal "failures" 2 "$(grep -c '^not ok' <<<"$output")"
}

run_case "cgroup v2 has cpu, io, memory and pids, and there is no v1" unified_controllers
run_case "cgroup.kill kills a group" kill_file_works
run_case "memory.max with no swap ends a hog" memory_limit_works
run_case "Landlock is active" landlock_is_on
run_case "overlay mounts on ext4" overlay_on_ext4_works
run_case "project quota stops a writer on the data disk" project_quota_is_on
run_case "io.max holds on the data disk" io_limit_works
run_case "ext4 mounts can be id-mapped" id_mapped_mounts_work
run_case "an ordinary user may mount overlay with userxattr" overlay_for_users
run_case "a cgroup has the files the suite reads" files_of_a_group
run_case "loop devices mount" loop_devices_work
run_case "an ordinary user may make user namespaces" user_namespaces_for_users
run_case "swap is on" swap_is_on
run_case "a failing and a hanging case are both reported" failures_are_seen
finish
