#!/bin/busybox sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=dash
#
# /init of the Linux that tests and benches replace by kexec: loads /boot/next with /boot/initrd and the command line in
# /boot/cmdline, prints that, and executes it. `kexec=-s` on this Linux's own command line chooses the system call, as
# kexec(8) has it.
way=-c
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sysfs /sys
/bin/busybox mount -t devtmpfs dev /dev
for word in $(/bin/busybox cat /proc/cmdline); do
  case "$word" in
  kexec=*) way=${word#kexec=} ;;
  esac
done
/sbin/kexec "$way" --load /boot/next --initrd=/boot/initrd --command-line="$(/bin/busybox cat /boot/cmdline)" ||
  /bin/busybox echo "kexec-init: the next kernel cannot be loaded"
/bin/busybox echo "kexec-init: going"
/sbin/kexec --exec
/bin/busybox echo "kexec-init: still here"
