#!/bin/bash
# Second stage, PID 1 on the root disk: mounts what a systemd host would have mounted, runs the suite
# named in /tests/suite, and switches the machine off. The console carries TAP between the lines
# VM-BEGIN and VM-END; VM-END gives the suite's exit status.
export PATH=/usr/local/bin:/usr/bin:/usr/sbin:/bin:/sbin HOME=/root LANG=C.UTF-8 TERM=dumb

stop() {
  busybox sync
  busybox poweroff -f
  sleep 60
}
fatal() {
  echo "VM-FATAL $*"
  stop
}

ln -sfn /proc/self/fd /dev/fd
mkdir -p /dev/pts /dev/shm /dev/mqueue
mount -t devpts -o gid=5,mode=620,ptmxmode=666 devpts /dev/pts || fatal "devpts"
mount -t tmpfs -o mode=1777,nosuid,nodev shm /dev/shm || fatal "shm"
mount -t mqueue mqueue /dev/mqueue || fatal "mqueue"
mount -t tmpfs -o mode=0755,nosuid,nodev run /run || fatal "run"
mount -t tmpfs -o mode=1777,nosuid,nodev,size=256m tmp /tmp || fatal "tmp"
mount -t cgroup2 -o nsdelegate,memory_recursiveprot cgroup2 /sys/fs/cgroup || fatal "cgroup2"
mount -t securityfs securityfs /sys/kernel/security || true
mount -t ext4 -o prjquota,nosuid,nodev /dev/vdb /data || fatal "data disk with project quota"
busybox mkswap /dev/vdc >/dev/null && busybox swapon /dev/vdc || fatal "swap"
busybox hostname vm
busybox ip link set lo up 2>/dev/null || busybox ifconfig lo up
echo 1 >/proc/sys/kernel/panic
read -r uptime _ </proc/uptime

echo "VM-BEGIN kernel $(uname -r), suite $(</tests/suite), up after ${uptime} s"
source /tests/settings
bash "/tests/$(</tests/suite)" </dev/null
status=$?
read -r uptime _ </proc/uptime
echo "VM-END status $status, up ${uptime} s"
stop
