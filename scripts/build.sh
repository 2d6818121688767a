#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Builds what cargo alone does not: the bare-metal packages for their own target by the toolchain that set-up recorded,
# and the initramfs. Cargo rebuilds what changed; copies and the initramfs are made again when what they are made from
# is newer.
#
#   scripts/build.sh               everything
#   scripts/build.sh hypervisor    target/baton.elf, and target/baton.debug.elf with its symbols
#   scripts/build.sh faults        target/baton-faults.elf, the same with fault points (`selftest=`) and Intel VMX, for tests
#   scripts/build.sh guests        target/guests/{conform,counters,crowd,edu,exits,hostile,keeper,turns}.elf, target/guests/initramfs.cpio,
#                                  target/baton-loader, and target/guests/{kexec,kvm,nbdkit,perf}.cpio where set-up has
#                                  fetched what they are made of
#   scripts/build.sh lint          clippy over the bare-metal packages, warnings refused
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
TARGET="$ROOT/target"
# shellcheck disable=SC2034 # read by report
TASK="build"
# shellcheck source=scripts/lib/report.sh
. "$ROOT/scripts/lib/report.sh"

BARE_TARGET=x86_64-unknown-none
HOST_TARGET=x86_64-unknown-linux-gnu
BARE="$TARGET/bare/$BARE_TARGET/release"
GUESTS="$TARGET/guests"
LINUX="$TARGET/$HOST_TARGET/release"

# The note of every image states its commit (`baton image info`).
export BATON_BUILD=${BATON_BUILD-$(git -C "$ROOT" describe --always --dirty --abbrev=12 2>/dev/null || true)}

# Optimised as a whole: the image is 4 % smaller, and an exit 2 % shorter, than with the release profile's "thin". The
# tool would only take longer to build.
LTO='profile.release.lto="fat"'

# Runs a cargo command (build, clippy) for the bare-metal target. The linker's flavour is given beside
# .cargo/config.toml; cargo joins its flags with these; a RUSTFLAGS variable would replace them.
bare_cargo() {
  local command=$1
  shift
  case "$(cat "$TARGET/toolchain" 2>/dev/null)" in
  rustup)
    env -u RUSTFLAGS cargo "$command" --locked --quiet --release --config "$LTO" --target "$BARE_TARGET" \
      --target-dir "$TARGET/bare" "$@"
    ;;
  debian)
    # Clippy is called itself, since cargo would search for it beside rustup's cargo first.
    local program=(/usr/bin/cargo)
    [[ "$command" != clippy ]] || program=(/usr/bin/cargo-clippy)
    env -u RUSTFLAGS PATH="/usr/bin:$PATH" CARGO=/usr/bin/cargo RUSTC_BOOTSTRAP=1 "${program[@]}" "$command" --locked --quiet --release \
      -Zbuild-std=core,alloc --config "$LTO" --target "$BARE_TARGET" --target-dir "$TARGET/bare" \
      --config "target.$BARE_TARGET.linker=\"ld\"" --config "target.$BARE_TARGET.rustflags=[\"-Clinker-flavor=ld\"]" "$@"
    ;;
  *) refuse "no toolchain recorded in target/toolchain: run scripts/setup.sh first" ;;
  esac
}

# Whether the first file is older than any of the others, or not there.
is_stale() {
  local made=$1 source
  shift
  [[ -e "$made" ]] || return 0
  for source in "$@"; do
    [[ "$source" -nt "$made" ]] && return 0
  done
  return 1
}

# Whether a file was made from another one than this: what is made from one program is given its time. Cargo brings an
# older program back when options or sources are again what they were.
is_of_another() { [[ ! -e "$1" || "$1" -nt "$2" || "$1" -ot "$2" ]]; }

# Given when an image is linked and its code generated: instructions that occur often become functions of their own
# where that saves 2 bytes or more. The image is some 60 KB smaller, and exits are longer, by 3 to 7 % when it had to
# save 4 bytes. Not for the guests, which count their own instructions.
OUTLINED="-enable-machine-outliner=always -outliner-benefit-threshold=2"

# Builds an image by the name of its file; further arguments are cargo's.
build_image() {
  local name=$1
  shift
  bare_cargo rustc --package hypervisor "$@" -- -C llvm-args="$OUTLINED"
  if is_of_another "$TARGET/$name.elf" "$BARE/hypervisor"; then
    cp "$BARE/hypervisor" "$TARGET/$name.debug.elf"
    objcopy --strip-all "$BARE/hypervisor" "$TARGET/$name.elf"
    touch -r "$BARE/hypervisor" "$TARGET/$name.elf"
    report "target/$name.elf, $(stat -c %s "$TARGET/$name.elf") bytes"
  fi
}

build_hypervisor() { build_image baton; }

# The test image, which has fault points. Its note states it behind the commit. Both images share what cargo has
# compiled, but for the hypervisor's own package.
build_faults() { BATON_BUILD=${BATON_BUILD:+$BATON_BUILD+test} build_image baton-faults --features faults,intel; }

# The tiny guests are 64-bit programs that start in 32-bit mode. Multiboot loaders that know only ELF32 (QEMU's -kernel)
# are given them in that container.
build_tiny_guests() {
  local name
  bare_cargo build --package tiny
  mkdir -p "$GUESTS"
  for name in conform counters crowd edu exits hostile keeper turns; do
    is_of_another "$GUESTS/$name.elf" "$BARE/$name" || continue
    objcopy --strip-all -O elf32-i386 "$BARE/$name" "$GUESTS/$name.elf"
    touch -r "$BARE/$name" "$GUESTS/$name.elf"
    report "target/guests/$name.elf, $(stat -c %s "$GUESTS/$name.elf") bytes"
  done
}

# The folder of the modules that the guest of KVM takes, where set-up has fetched a kernel that has them: for the demo it
# fetches none.
kvm_modules() {
  local folder="$TARGET/kernels/6.12/lib/modules"
  [[ ! -d "$folder" ]] || find "$folder" -mindepth 1 -maxdepth 1 | head -n 1
}

# The programs of Linux guests, static. One build for all, so that what they depend on is built once. Their symbols
# stay: perf names the functions of `shares`.
build_linux_programs() {
  local packages=(--package agent --package loader)
  [[ -z "$(kvm_modules)" ]] || packages+=(--package first-guest)
  env -u RUSTFLAGS cargo build --locked --quiet --release "${packages[@]}" --target "$HOST_TARGET" --target-dir "$TARGET" \
    --config "target.$HOST_TARGET.rustflags=[\"-Ctarget-feature=+crt-static\"]"
}

# The loader of guests that start from their own disk, beside the image, where the tool searches for it.
copy_loader() {
  is_stale "$TARGET/baton-loader" "$LINUX/baton-loader" || return 0
  objcopy --strip-all "$LINUX/baton-loader" "$TARGET/baton-loader"
  report "target/baton-loader, $(stat -c %s "$TARGET/baton-loader") bytes"
}

# The static busybox of this machine.
busybox_program() {
  local program
  for program in /bin/busybox /usr/bin/busybox "$(command -v busybox || true)"; do
    [[ -x "$program" ]] && ! ldd "$program" >/dev/null 2>&1 && printf '%s' "$program" && return
  done
  refuse "no statically linked busybox here: install busybox-static"
}

# Drivers of the stock kernels that tests load: those by which a guest reports its panic.
copy_drivers() {
  local tree=$1 found name release
  for found in "$TARGET"/kernels/[0-9]*/lib/modules/*/kernel/drivers/misc/pvpanic/pvpanic{,-mmio}.ko{,.xz}; do
    [[ -e "$found" ]] || continue
    release=${found#*/lib/modules/}
    release=${release%%/*}
    name=$(basename "${found%.xz}")
    mkdir -p "$tree/lib/modules/$release"
    case "$found" in
    *.xz) xz --decompress --stdout "$found" >"$tree/lib/modules/$release/$name" ;;
    *) cp "$found" "$tree/lib/modules/$release/$name" ;;
    esac
  done
}

# Copies the libraries of a program to where the dynamic loader of a tree searches by itself: a third argument names
# folders that come before this machine's. The loader's own name is the line of ldd without an arrow.
copy_libraries() {
  local program=$1 tree=$2 library
  for library in $(LD_LIBRARY_PATH="${3:-}" ldd "$program" | grep -oE '(=> |^\s*)/[^ ]+' | grep -oE '/.*'); do
    case "$library" in
    */ld-linux-*) cp -L "$library" "$tree/lib64/" ;;
    *) cp -L "$library" "$tree/lib/" ;;
    esac
  done
}

# Makes an initramfs of a tree, the same bytes from the same files.
pack() {
  local tree=$1 image=$2
  find "$tree" -exec touch -h -d @0 {} +
  (cd "$tree" && find . | LC_ALL=C sort | cpio --quiet --reproducible -o -H newc -R 0:0) >"$image.part"
  mv "$image.part" "$image"
  report "target/guests/$(basename "$image"), $(stat -c %s "$image") bytes"
}

# An initramfs of the agent as /init, and busybox with a link for each of its programs. Uncompressed: an emulated guest
# copies 3 MiB sooner than it inflates one.
build_initramfs() {
  local agent="$LINUX/agent" busybox tree="$GUESTS/initramfs" image="$GUESTS/initramfs.cpio" applet
  busybox=$(busybox_program)
  is_stale "$image" "$agent" "$busybox" "$ROOT/scripts/build.sh" "$TARGET"/kernels/[0-9]* || return 0
  rm -rf "$tree"
  mkdir -p "$tree"/{bin,dev,etc,proc,root,run,sys,tmp}
  objcopy --strip-all "$agent" "$tree/init"
  cp "$busybox" "$tree/bin/busybox"
  for applet in $("$busybox" --list); do
    [[ "$applet" == busybox ]] || ln -s busybox "$tree/bin/$applet"
  done
  copy_drivers "$tree"
  pack "$tree" "$image"
}

# An initramfs of kexec with its libraries, busybox, and the /init that replaces the running Linux. Tests and benches
# add what by (guests/kexec/init.sh).
build_kexec_initramfs() {
  local tree="$GUESTS/kexec" image="$GUESTS/kexec.cpio" folder="$TARGET/kexec-tools" program busybox
  [[ -d "$folder" ]] || return 0
  program=$(find "$folder" -path "*/sbin/kexec" | head -n 1)
  [[ -n "$program" ]] || return 0
  busybox=$(busybox_program)
  is_stale "$image" "$program" "$busybox" "$ROOT/scripts/build.sh" "$ROOT/guests/kexec/init.sh" || return 0
  rm -rf "$tree"
  mkdir -p "$tree"/{bin,boot,dev,lib,lib64,proc,sbin,sys}
  cp "$ROOT/guests/kexec/init.sh" "$tree/init"
  cp "$busybox" "$tree/bin/busybox"
  cp "$program" "$tree/sbin/kexec"
  copy_libraries "$program" "$tree" "$folder/usr/lib/x86_64-linux-gnu:$folder/lib/x86_64-linux-gnu"
  pack "$tree" "$image"
}

# An initramfs of nbdkit with its libraries, the plugin and the filter that the storage guest of tests has, busybox, and
# the /init that serves a disk (guests/nbdkit/init.sh). Tests add the drivers.
build_nbdkit_initramfs() {
  local tree="$GUESTS/nbdkit" image="$GUESTS/nbdkit.cpio" folder="$TARGET/nbdkit" program busybox parts
  program="$folder/usr/bin/nbdkit"
  [[ -x "$program" ]] || return 0
  busybox=$(busybox_program)
  is_stale "$image" "$program" "$busybox" "$ROOT/scripts/build.sh" "$ROOT/guests/nbdkit/init.sh" || return 0
  parts=usr/lib/x86_64-linux-gnu/nbdkit
  rm -rf "$tree"
  mkdir -p "$tree"/{bin,dev,etc,lib,lib64,proc,sys,tmp,"$parts/plugins","$parts/filters"}
  cp "$ROOT/guests/nbdkit/init.sh" "$tree/init"
  cp "$busybox" "$tree/bin/busybox"
  cp "$program" "$tree/bin/nbdkit"
  cp "$folder/$parts/plugins/nbdkit-file-plugin.so" "$tree/$parts/plugins/"
  cp "$folder/$parts/filters/nbdkit-noparallel-filter.so" "$tree/$parts/filters/"
  copy_libraries "$program" "$tree" "$folder/usr/lib/x86_64-linux-gnu"
  pack "$tree" "$image"
}

# An initramfs of the program that runs one guest by KVM, and the modules that it loads, where set-up has fetched a
# kernel that has them.
build_kvm_initramfs() {
  local tree="$GUESTS/kvm" image="$GUESTS/kvm.cpio" program="$LINUX/first-guest" modules name found
  modules=$(kvm_modules)
  [[ -n "$modules" ]] || return 0
  is_stale "$image" "$program" "$ROOT/scripts/build.sh" || return 0
  rm -rf "$tree"
  mkdir -p "$tree/dev" "$tree/lib/modules/${modules##*/}"
  objcopy --strip-all "$program" "$tree/init"
  for name in irqbypass kvm kvm-amd; do
    found=$(find "$modules" -name "$name.ko*" | head -n 1)
    case "$found" in
    *.xz) xz --decompress --stdout "$found" >"$tree/lib/modules/${modules##*/}/$name.ko" ;;
    ?*) cp "$found" "$tree/lib/modules/${modules##*/}/$name.ko" ;;
    *) return 0 ;;
    esac
  done
  pack "$tree" "$image"
}

# An initramfs of Linux's own perf with its libraries, busybox, a program with a known profile, and the /init that
# does what the command line asks (guests/perf/init.sh).
build_perf_initramfs() {
  local tree="$GUESTS/perf" image="$GUESTS/perf.cpio" program target busybox
  program=$(command -v perf) || return 0
  [[ "$(file -bL "$program" 2>/dev/null || head -c 4 "$program")" == *ELF* ]] || return 0
  target="$LINUX/shares"
  busybox=$(busybox_program)
  is_stale "$image" "$program" "$target" "$busybox" "$ROOT/scripts/build.sh" "$ROOT/guests/perf/init.sh" || return 0
  rm -rf "$tree"
  mkdir -p "$tree"/{bin,dev,etc,lib,lib64,proc,root,sys,tmp}
  cp "$ROOT/guests/perf/init.sh" "$tree/init"
  cp "$busybox" "$tree/bin/busybox"
  cp "$target" "$tree/bin/shares"
  cp -L "$program" "$tree/bin/perf"
  copy_libraries "$(readlink -f "$program")" "$tree"
  pack "$tree" "$image"
}

main() {
  cd "$ROOT"
  case "${1:-all}" in
  all)
    build_hypervisor
    build_faults
    build_tiny_guests
    build_linux_programs
    copy_loader
    build_initramfs
    build_kexec_initramfs
    build_nbdkit_initramfs
    build_kvm_initramfs
    build_perf_initramfs
    ;;
  hypervisor) build_hypervisor ;;
  faults) build_faults ;;
  guests)
    build_tiny_guests
    build_linux_programs
    copy_loader
    build_initramfs
    build_kexec_initramfs
    build_nbdkit_initramfs
    build_kvm_initramfs
    build_perf_initramfs
    ;;
  lint)
    bare_cargo clippy --package hypervisor --package tiny -- -D warnings
    bare_cargo clippy --package hypervisor --features faults,intel -- -D warnings
    ;;
  *) refuse "'$1' is nothing to build: give hypervisor, faults, guests or lint, or no argument for everything" ;;
  esac
}

main "$@"
