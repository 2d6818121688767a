#!/bin/busybox sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# /init of the guest that tries its counters with Linux's own perf: perf=TASK[,TASK…] on the kernel's command line.
#
#   stat          counts cycles of a program that computes
#   record        profiles it: a sample for each period=CYCLES (2000000)
#   top           watches it while it computes, until one of its functions is met
#   bare          the program alone; it runs for ms=MILLISECONDS (1000)
#   rounds:N      record and bare in turn, so often
#   wait          nothing, for ever
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sysfs /sys
/bin/busybox mount -t devtmpfs devtmpfs /dev 2>/dev/null
export PATH=/bin:/sbin HOME=/root TERM=dumb PERF_PAGER=cat PAGER=cat
busybox mount -t tmpfs tmpfs /tmp
cd /tmp || exit 1

word() {
  busybox sed -nE "s/.*\\b$1=([^ ]*).*/\\1/p" /proc/cmdline
}

ms=$(word ms)
ms=${ms:-1000}
period=$(word period)
period=${period:-2000000}

# Lines of perf's, each with its task before it.
tagged() {
  busybox sed "s/^/perf: $1: /"
}

stat() {
  perf stat -e cycles -e ref-cycles -e instructions shares "$ms" 2>&1 | tagged stat
}

# A sample for each so many cycles: how many there are, the functions that were met, and the cycles that were there to
# be sampled.
record() {
  echo begins | tagged record
  perf record -q -e cycles -c "$period" -o profile.data perf stat -e cycles shares "$ms" 2>&1 | tagged record
  perf script -i profile.data --comm shares -F ip,sym >samples 2>/dev/null
  busybox printf 'period %s samples %s half %s third %s fifth %s\n' "$period" "$(busybox grep -c . samples)" \
    "$(met half)" "$(met third)" "$(met fifth)" | tagged record
}

met() {
  busybox grep -c "shares::$1" samples
}

# Until it has shown a function of the program, or not within two minutes. Its standard input must not end: it would be
# a key.
top() {
  shares 600000 >/dev/null &
  program=$!
  busybox sleep 600 | perf top --stdio -d 1 -e cycles -c "$period" -p "$program" >top 2>&1 &
  for _ in $(busybox seq 240); do
    busybox grep -q '%.*shares::' top && break
    busybox sleep 0.5
  done
  busybox grep -E '%|irqs' top | busybox grep -m1 -B1 -A8 'shares::' | tagged top
  busybox killall perf shares sleep
}

bare() {
  shares "$ms" 2>&1 | tagged bare
}

# In an emulator an interrupt takes longer than the kernel allows: it would ask for fewer and fewer.
echo 0 >/proc/sys/kernel/perf_cpu_time_max_percent
# The kernel's symbols, which are not needed here, take a CPU a minute to read there.
echo 2 >/proc/sys/kernel/kptr_restrict
echo "perf: counters: $(busybox dmesg | busybox grep -m1 -E 'Performance Events' | busybox cut -d: -f2-)"
for task in $(word perf | busybox tr , ' '); do
  case "$task" in
  rounds:*)
    for _ in $(busybox seq "${task#rounds:}"); do
      bare
      record
    done
    ;;
  wait) while :; do busybox sleep 3600; done ;;
  stat | record | top | bare) "$task" ;;
  *) echo "perf: no such task: $task" ;;
  esac
done
echo "perf: done"
busybox poweroff -f
