// SPDX-License-Identifier: MIT OR Apache-2.0
//! The script of the host that is replaced, under each of its kernels.
//!
//! All that has to outlive a kernel is a file in the memory that `memmap=` keeps from each of them: the guest's memory
//! and state, QEMU, and the next kernel with its initial file system.

/// The first kernel's line once the guest sends.
pub(super) const SENDS: &str = "peer: sends";
/// The line before the guest's state is saved.
pub(super) const REPLACING: &str = "peer: replacing";
/// The next kernel's line once the guest has printed something under it.
pub(super) const REPLACED: &str = "peer: replaced";
/// The archive with QEMU. Only the first kernel's file system has it.
pub(super) const EMULATOR: &str = "qemu.cpio";
pub(super) const KERNEL: &str = "host";
pub(super) const INITRD: &str = "host.cpio";
pub(super) const GUESTS_KERNEL: &str = "guest";
pub(super) const GUESTS_INITRD: &str = "guest.cpio";

/// Returns the script for a guest whose agent does `tasks`. The first kernel moves `files` to the memory that is kept.
pub(super) fn of(tasks: &str, files: &[&str]) -> String {
    let files: Vec<String> = files.iter().map(|name| format!("/{name}")).collect();
    let files = files.join(" ");
    format!(
        r#"files="{files}" emulator={EMULATOR}
{KEPT}{NETWORK}kernel={GUESTS_KERNEL} initrd={GUESTS_INITRD} tasks="{tasks}"
{GUEST}
if [ "$is_first" ]; then echo "{SENDS}"; else echo "{REPLACED}"; fi
/sbin/kexec --load --no-checks {KERNEL} --initrd={INITRD} --reuse-cmdline || cannot "load the next kernel"
sleep "$quiet"
echo "{REPLACING}"
{REPLACE}"#
    )
}

/// Mounts the memory that is kept; the first kernel fills it. A file system with direct access maps its files without a
/// page cache, so that nothing of the guest's memory is copied.
const KEPT: &str = r#"cannot() { echo "peer: cannot $*"; }
mkdir -p /kept
is_first=
if [ -e "/$emulator" ]; then
  is_first=1
  mke2fs -b 4096 /dev/pmem0 >/dev/null || cannot "make a file system in the memory that is kept"
fi
mount -t ext4 -o dax=always /dev/pmem0 /kept || cannot "mount the memory that is kept"
if [ "$is_first" ]; then
  mv $files /kept || cannot "fill the memory that is kept"
  (cd /kept && cpio -id <"/$emulator") 2>/dev/null || cannot "unpack QEMU"
  rm "/$emulator"
fi
"#;

/// The host's card and the guest's tap in a bridge, which forwards at once: it speaks no spanning tree protocol.
const NETWORK: &str = r#"on_bridge() { brctl addif lan "$1" && ip link set "$1" up || cannot "use the interface $1"; }
brctl addbr lan && ip link set lan up || cannot "make a bridge"
on_bridge eth0
tunctl -t guest >/dev/null && on_bridge guest || cannot "make a tap"
"#;

/// Starts the guest, or restores it, and waits for its stream. The next replacement is to come after a time that is
/// longer than this one was.
const GUEST: &str = r#"mkfifo /monitor && exec 3<>/monitor || cannot "make a pipe"
order() { echo "$*" >&3; }
incoming="-incoming defer" quiet=
[ ! "$is_first" ] || incoming= quiet=5
: >/guest.log
tail -f /guest.log &
cd /kept
{
  lib64/ld-linux-x86-64.so.2 --library-path lib bin/qemu-system-x86_64 -accel kvm -cpu host -m 256 \
    -machine q35,memory-backend=ram -object memory-backend-file,id=ram,size=256M,mem-path=ram,share=on \
    -L . -nodefaults -no-user-config -display none -serial file:/guest.log -monitor stdio \
    -kernel "$kernel" -initrd "$initrd" -append "console=ttyS0 loglevel=5 agent=drivers,$tasks" \
    -netdev tap,id=net,ifname=guest,script=no,downscript=no,vhost=on \
    -device virtio-net-pci,netdev=net,mac=52:54:00:00:00:01,disable-legacy=on,romfile= $incoming <&3 >/qemu.log 2>&1 ||
    cannot "run QEMU: $(tail -n 1 /qemu.log)"
} &
qemu=$!
order migrate_set_parameter mode cpr-reboot
order migrate_set_capability x-ignore-shared on
[ "$is_first" ] || order migrate_incoming file:state
until grep -q "stream [0-9]* sent=" /guest.log; do sleep 0.1; done
read -r up _ </proc/uptime
: "${quiet:=$((${up%.*} * 2 + 5))}"
"#;

/// Saves the guest's state, and executes the next kernel.
const REPLACE: &str = r#"order migrate file:state
order info migrate
order quit
wait "$qemu"
grep -q "Migration status: completed" /qemu.log || cannot "save the guest: $(tail -n 1 /qemu.log)"
cd /
umount /kept
/sbin/kexec --exec
cannot "execute the next kernel"
"#;

#[cfg(test)]
#[path = "script_tests.rs"]
mod tests;
