# SPDX-License-Identifier: MIT OR Apache-2.0
# Sourced by setup.sh: the distribution's own kernels, unpacked under target/kernels/<major.minor>/, its kexec-tools under
# target/kexec-tools/, nbdkit under target/nbdkit/, a newer emulator under target/qemu-10/, and crash with a kernel's symbols under target/crash/.
# shellcheck shell=bash

# The package that a kernel's meta package stands for at the moment, with its version: `name=version`.
kernel_package() {
  local meta=$1 release=${2:-} options=("${apt_options[@]}") name version
  [[ -z "$release" ]] || options+=(-o "APT::Default-Release=$release")
  name=$(apt-cache "${options[@]}" depends --important "$meta" 2>/dev/null |
    awk '$1 == "Depends:" && $2 ~ /^linux-image-[0-9]/ && !found { print $2; found = 1 }')
  version=$(apt-cache "${options[@]}" policy "$name" 2>/dev/null | awk '$1 == "Candidate:" { print $2 }')
  [[ -n "$name" && -n "$version" ]] && printf '%s=%s' "$name" "$version"
}

# The series (6.1, 6.12, …) of the kernel that unpack_kernel was last asked for.
series=""

# Unpacks the kernel that a meta package stands for, with its modules, unless one of its series is there. Ubuntu has the
# modules in a package of their own.
unpack_kernel() {
  local package folder packages
  package=$(kernel_package "$@") || return 1
  packages=("$package")
  [[ "$(distribution)" != ubuntu ]] || packages+=("$(sed -E 's/^linux-image-([^=]+).*/linux-modules-\1/' <<<"$package")")
  series=$(sed -E 's/^linux-image-([0-9]+\.[0-9]+).*/\1/' <<<"$package")
  folder="$TARGET/kernels/$series"
  [[ ! -e "$folder/vmlinuz" || ! -d "$folder/lib/modules" ]] || return 0
  mkdir -p "$TARGET/kernels"
  unpack_packages "$folder" "${packages[@]}" || return 1
  (cd "$folder" && ln -sf boot/vmlinuz-* vmlinuz)
  report "kernel $series is under ${folder#"$ROOT"/} (${package%%=*})"
}

# The release's own kernel, which is the default one: it and the release's own QEMU were tested together. (Debian 12's
# QEMU
# 7.2 emulates CMPXCHG16B wrongly with several CPUs: 6 of 15 boots of a 6.12 kernel failed, 0 of 15 without cx16,
# and 0 of 15 under QEMU 10. A 6.1 kernel is not affected.)
stock_kernel() {
  local meta=linux-image-cloud-amd64
  [[ "$(distribution)" != ubuntu ]] || meta=linux-image-virtual
  unpack_kernel "$meta" || refuse "no kernel to boot: apt-get could not download $meta; is the network there?"
  ln -sfn "$series" "$TARGET/kernels/default"
}

# The drivers that stay of a full kernel: disks and network cards of the emulated machine and of real ones, and the
# modules that they depend on, as paths below kernel/. All modules of a full kernel are 400 MB.
KEPT_DRIVERS=(
  drivers/nvme/host/nvme. drivers/nvme/host/nvme-core. drivers/net/ethernet/intel/e1000e/
  drivers/net/ethernet/intel/igb/ drivers/net/ethernet/intel/igbvf/ drivers/virtio/ drivers/block/virtio_blk. drivers/net/virtio_net. drivers/net/net_failover. net/core/failover.
  drivers/vfio/ virt/lib/irqbypass. drivers/dca/ drivers/i2c/algos/i2c-algo-bit. drivers/misc/pvpanic/
  block/t10-pi. lib/crc crypto/crc crypto/crct arch/x86/crypto/crc
)

# Debian's full kernel of the release, under target/kernels/<series>-full, with those drivers: the cloud kernels have no
# driver of any real network card.
full_kernel() {
  local package folder part
  package=$(kernel_package linux-image-amd64) || return 1
  folder="$TARGET/kernels/$(sed -E 's/^linux-image-([0-9]+\.[0-9]+).*/\1/' <<<"$package")-full"
  [[ ! -e "$folder/vmlinuz" ]] || return 0
  part="$folder.unpacked"
  unpack_packages "$part" "$package" || return 1
  keep_drivers "$part"/lib/modules/*/kernel
  (cd "$part" && ln -sf boot/vmlinuz-* vmlinuz)
  rm -rf "$folder"
  mv "$part" "$folder"
  report "a full kernel is under ${folder#"$ROOT"/} (${package%%=*})"
}

# Removes every other driver.
keep_drivers() {
  local kept=() path
  for path in "${KEPT_DRIVERS[@]}"; do
    kept+=(! -path "$1/$path*")
  done
  find "$1" -type f "${kept[@]}" -delete
  find "$1" -type d -empty -delete
}

# The distribution's kexec-tools, for the Linux that tests replace: installed here they would ask to handle this
# machine's reboots. Only those packages are unpacked that are not installed anyway.
kexec_tools() {
  local folder="$TARGET/kexec-tools" packages
  [[ ! -x "$folder/sbin/kexec" && ! -x "$folder/usr/sbin/kexec" ]] || return 0
  mapfile -t packages < <(apt-get "${apt_options[@]}" install -s --no-install-recommends kexec-tools |
    sed -nE 's/^Inst ([^ ]+) .*\(([^ ]+) .*/\1=\2/p')
  [[ "${packages[*]}" == *kexec-tools=* ]] || packages=(kexec-tools)
  unpack_packages "$folder" "${packages[@]}" || return 1
  report "kexec-tools are under ${folder#"$ROOT"/}"
}

# The distribution's nbdkit, the storage server of guests in tests: only unpacked, and only those packages that are not
# installed anyway.
nbdkit() {
  local folder="$TARGET/nbdkit" packages
  [[ ! -x "$folder/usr/bin/nbdkit" ]] || return 0
  mapfile -t packages < <(apt-get "${apt_options[@]}" install -s --no-install-recommends nbdkit |
    sed -nE 's/^Inst ([^ ]+) .*\(([^ ]+) .*/\1=\2/p')
  [[ "${packages[*]}" == *nbdkit=* ]] || packages=(nbdkit)
  unpack_packages "$folder" "${packages[@]}" || return 1
  report "nbdkit is under ${folder#"$ROOT"/}"
}

# Prometheus's checker of metrics and rules, unpacked under target/prometheus/: the package would start a server.
promtool() {
  local folder="$TARGET/prometheus"
  [[ ! -x "$folder/usr/bin/promtool" ]] || return 0
  unpack_packages "$folder" prometheus || return 1
  report "promtool is under ${folder#"$ROOT"/}"
}

# crash, and the debug file of the kernel under target/kernels/6.1, both under target/crash/. Only those packages are
# unpacked that are not installed anyway; of the debug package, which unpacks to 1.8 GB, one file.
crash_with_symbols() {
  local folder="$TARGET/crash" image packages
  image=$(basename "$(readlink "$TARGET/kernels/6.1/vmlinuz")") || return 1
  [[ ! -x "$folder/crash" || ! -e "$folder/${image/vmlinuz/vmlinux}" ]] || return 0
  mapfile -t packages < <(apt-get "${apt_options[@]}" install -s --no-install-recommends crash |
    sed -nE 's/^Inst ([^ ]+) .*\(([^ ]+) .*/\1=\2/p')
  unpack_packages "$folder" "${packages[@]:-crash}" || return 1
  write_crash_wrapper "$folder"
  unpack_symbols "linux-image-${image#vmlinuz-}-dbg" "$folder" "${image/vmlinuz/vmlinux}" || return 1
  report "crash and ${image/vmlinuz/vmlinux} are under ${folder#"$ROOT"/}"
}

# Takes a kernel's debug file out of its package.
unpack_symbols() {
  local package=$1 folder=$2 file=$3 downloads="$TARGET/setup/downloads"
  rm -rf "$downloads"
  mkdir -p "$downloads"
  report "downloading $package"
  (cd "$downloads" && apt-get "${apt_options[@]}" -o APT::Sandbox::User=root -qq download "$package") || return 1
  dpkg-deb --fsys-tarfile "$downloads"/*.deb | tar -x -O "./usr/lib/debug/boot/$file" >"$folder/$file.part" || return 1
  mv "$folder/$file.part" "$folder/$file"
  rm -rf "$downloads"
}

# A front for the unpacked crash: its libraries beside it.
write_crash_wrapper() {
  cat >"$1/crash" <<'WRAPPER'
#!/bin/sh
# Written by scripts/setup.sh: runs the crash unpacked beside this file, or the installed one.
here=$(dirname "$(readlink -f "$0")")
export LD_LIBRARY_PATH="$here/usr/lib/x86_64-linux-gnu:$here/lib/x86_64-linux-gnu${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
[ -x "$here/usr/bin/crash" ] || exec /usr/bin/crash "$@"
exec "$here/usr/bin/crash" "$@"
WRAPPER
  chmod +x "$1/crash"
}

qemu_major() { "$1" --version 2>/dev/null | sed -nE '1s/.*version ([0-9]+)\..*/\1/p'; }

# QEMU 10 (the first here with an x2APIC in emulated CPUs), beside the one that is installed. Only those
# packages are unpacked that the installed QEMU does not bring already.
newer_qemu() {
  local release folder="$TARGET/qemu-10" packages
  release="$(release_codename)-backports"
  [[ ! -x "$folder/qemu-system-x86_64" ]] || return 0
  if (($(qemu_major qemu-system-x86_64) >= 10)); then
    mkdir -p "$folder"
    ln -sf "$(command -v qemu-system-x86_64)" "$folder/qemu-system-x86_64"
    return 0
  fi
  mapfile -t packages < <(apt-get "${apt_options[@]}" install -s --no-install-recommends -t "$release" qemu-system-x86 |
    sed -nE 's/^Inst ([^ ]+) .*\(([^ ]+) .*/\1=\2/p')
  [[ "${packages[*]}" == *qemu-system-x86=1:1[0-9].* ]] || return 1
  unpack_packages "$folder" "${packages[@]}" || return 1
  write_qemu_wrapper "$folder"
  report "QEMU $(qemu_major "$folder/qemu-system-x86_64") is under ${folder#"$ROOT"/}"
}

# A front for the unpacked QEMU: its libraries and firmware first, the installed QEMU's where it lacks a file.
write_qemu_wrapper() {
  cat >"$1/qemu-system-x86_64" <<'WRAPPER'
#!/bin/sh
# Written by scripts/setup.sh: runs the QEMU unpacked beside this file.
here=$(dirname "$(readlink -f "$0")")
export LD_LIBRARY_PATH="$here/usr/lib/x86_64-linux-gnu${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export QEMU_MODULE_DIR="$here/usr/lib/x86_64-linux-gnu/qemu"
exec "$here/usr/bin/qemu-system-x86_64" -L "$here/usr/share/qemu" -L "$here/usr/share/seabios" \
  -L /usr/share/qemu -L /usr/share/seabios -L /usr/lib/ipxe/qemu "$@"
WRAPPER
  chmod +x "$1/qemu-system-x86_64"
}
