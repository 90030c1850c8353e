# Caisson on cgroup v2 with Landlock, project quota, loop devices and swap.
source /tests/tap.sh
source /tests/caisson.sh
for cases in host limits disk live places; do
  source "/tests/cases/$cases.sh"
done
finish
