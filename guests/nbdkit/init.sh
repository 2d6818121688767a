#!/bin/busybox sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=dash
#
# /init of the storage guest of tests: loads the drivers that the lab has added, and serves its disk by NBD over virtio
# sockets, to one connection at a time: what an earlier one has asked for is done before the next one begins. With
# `disk=memory` on its command line it serves a file in its memory instead.
b=/bin/busybox
disk=/dev/nvme0n1
$b mount -t proc proc /proc
$b mount -t sysfs sysfs /sys
$b mount -t devtmpfs dev /dev
drivers=/lib/modules/$($b uname -r)
while read -r name; do
  $b insmod "$drivers/$name.ko" || $b echo "storage: $name cannot be loaded"
done <"$drivers/modules.load"
case " $($b cat /proc/cmdline) " in
*" disk=memory "*)
  disk=/disk
  $b dd if=/dev/zero of=$disk bs=1M count=64 2>/dev/null
  ;;
esac
until [ -e $disk ]; do $b sleep 1; done
while :; do
  $b echo "storage: serving $disk"
  /bin/nbdkit --foreground --vsock --filter=noparallel file $disk serialize=connections
  $b echo "storage: nbdkit has ended: $?"
  $b sleep 1
done
