#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Makes a machine ready for `make demo`, `make docs`, `make test` or `make test-all`, once; a second run finds its stamp
# and does nothing.
#
#   scripts/setup.sh demo   QEMU, busybox, cpio, a bare-metal Rust toolchain, one stock kernel
#   scripts/setup.sh docs   pandoc, and what builds the tool, which writes manual pages of its own
#   scripts/setup.sh test   what demo and docs need, formatter and linters, gdb, Chromium with axe-core, GRUB with
#                           what makes discs of it, UEFI firmware, perf, and what the tests compare with: a second stock
#                           kernel, QEMU 10; kexec-tools; nbdkit
#   scripts/setup.sh all    the same, and for `make test-all` crash with the symbols of the 6.1 kernel (283 MB to
#                           fetch), a full kernel with drivers of disks and network cards (70 MB), and for
#                           `bench structure` LLVM's tools and cargo-mutants
#
# Installs packages with apt-get on Debian and Ubuntu; elsewhere reports what is missing. Everything that is only a file
# (the kernels, the second QEMU) goes under target/ and is gone with `make clean`.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
TARGET="$ROOT/target"
# shellcheck disable=SC2034 # read by report
TASK="set-up"
for part in report packages kernels toolchain; do
  # shellcheck source=/dev/null
  . "$ROOT/scripts/lib/$part.sh"
done

# Packages that the host needs to build and run Baton: the emulator, what goes into the initramfs, a linker, a C library
# to link with.
PACKAGES=(qemu-system-x86 busybox-static cpio xz-utils binutils gcc libc6-dev make git ca-certificates)
# Packages that render the user's guide and format its manual pages. The tool, whose pages join them, takes a linker.
DOCS_PACKAGES=(pandoc groff-base)
DOCS_TOOL_PACKAGES=(gcc libc6-dev make)
# Packages that only tests need: Bochs is a second emulator; gdb opens core files of guests; grub-mkrescue makes discs
# that boot by BIOS and UEFI; shellcheck reads scripts.
TEST_PACKAGES=(bochs bochsbios vgabios gdb grub-common grub-pc-bin grub-efi-amd64-bin xorriso mtools ovmf shellcheck)
# Optional packages of benches and tests: Linux's own profiler, for guests.
PERF_PACKAGE=linux-perf
# Optional packages of tests: a browser to open the timeline's page.
BROWSER_PACKAGE=chromium

# The stamp holds this, so that a changed script runs again.
fingerprint() { cat "$ROOT"/scripts/setup.sh "$ROOT"/scripts/lib/*.sh | cksum; }

stamp_of() { printf '%s/setup/%s.done' "$TARGET" "$1"; }

is_done() {
  local stamp
  stamp=$(stamp_of "$1")
  [[ -f "$stamp" && "$(<"$stamp")" == "$(fingerprint)" ]] && have "$(program_of "$1")" && have cargo
}

# The program whose absence shows that a machine was set up and then changed.
program_of() { if [[ "$1" == docs ]]; then printf 'pandoc'; else printf 'qemu-system-x86_64'; fi; }

# Reports what is missing on a distribution with packages that this script does not know.
check_other_distribution() {
  local missing=()
  have qemu-system-x86_64 || missing+=("qemu-system-x86_64 (QEMU for x86-64, 7.2 or newer)")
  have busybox || missing+=("busybox (linked statically)")
  have objcopy || missing+=("objcopy and ld (binutils)")
  have cc || missing+=("cc (a C compiler, with a C library that can be linked statically)")
  have cargo || missing+=("cargo (Rust $OLDEST_RUST or newer)")
  has_bare_target || missing+=("Rust's core library for $BARE_TARGET (rustup target add $BARE_TARGET)")
  [[ -e "$TARGET/kernels/default/vmlinuz" ]] ||
    missing+=("a Linux kernel at target/kernels/default/vmlinuz (bzImage; built in: KVM guest support, a serial console; \
drivers of NVMe and virtio-net, or their modules under lib/modules beside it)")
  ((${#missing[@]})) || return 0
  report "this script installs packages on Debian and Ubuntu only; here ($(distribution)) these are missing:" >&2
  printf '  - %s\n' "${missing[@]}" >&2
  exit 1
}

set_up_demo() {
  if ! on_debian_or_ubuntu; then
    check_other_distribution
    choose_toolchain
    return
  fi
  install_packages "${PACKAGES[@]}"
  choose_toolchain
  stock_kernel
}

# The guide needs no bare-metal toolchain.
set_up_docs() {
  if on_debian_or_ubuntu; then
    install_packages "${DOCS_PACKAGES[@]}" "${DOCS_TOOL_PACKAGES[@]}"
  fi
  have pandoc || refuse "pandoc is missing: install it with this distribution's packages ($(distribution))"
  rust_is_new_enough rustc || refuse "$(rustc --version 2>/dev/null || echo 'no rustc') in PATH:" \
    "Baton's own tool needs Rust $OLDEST_RUST or newer; with rustup: 'rustup update stable'"
}

# The tests run everything on both emulators and both kernels where they can be had.
set_up_test() {
  set_up_demo
  choose_checkers
  on_debian_or_ubuntu || return 0
  install_packages "${TEST_PACKAGES[@]}" "${DOCS_PACKAGES[@]}"
  (install_packages "$BROWSER_PACKAGE") || report "no Chromium to be had here: no browser opens the timeline's page"
  if [[ "$(distribution)" == debian ]]; then
    (install_packages "$PERF_PACKAGE") || report "no linux-perf to be had here: no guest is profiled by its own perf"
    second_kernel || report "$(release_codename)-backports is out of reach: one kernel only"
  fi
  axe_core || report "no axe-core $AXE_RELEASE to be had here (by npm): it does not check the service's page"
  promtool || report "no promtool to be had here: only our own tests check metrics and alert rules"
  kexec_tools || report "no kexec-tools to be had here: nothing is tested that replaces a running Linux"
  nbdkit || report "no nbdkit to be had here: no guest has a disk behind a server in another guest"
  newer_qemu || report "no QEMU 10 to be had here: tests run with QEMU $(qemu_major qemu-system-x86_64) only"
  report "kernels: $(cd "$TARGET/kernels" && echo [0-9]*), default $(readlink "$TARGET/kernels/default")"
}

set_up_all() {
  set_up_test
  coverage_tools || report "no llvm-tools to be had here: 'bench structure' leaves out the lines that tests execute"
  mutants || report "no cargo-mutants to be had here: 'bench structure' leaves out the mutants that tests catch"
  on_debian_or_ubuntu || return 0
  full_kernel || report "no full kernel to be had here: no guest has drivers of network cards"
  crash_with_symbols || report "no crash or no debug symbols to be had here: no guest's core is opened by crash"
}

second_kernel() {
  use_backports || return 1
  unpack_kernel linux-image-cloud-amd64 "$(release_codename)-backports"
}

main() {
  local task=${1:-demo}
  [[ "$task" =~ ^(demo|docs|test|all)$ ]] || refuse "'$task' is nothing to set up for: give demo, docs, test or all"
  is_done "$task" && return 0
  mkdir -p "$TARGET/setup"
  report "preparing this machine for 'make ${task/#all/test-all}' (once; the first time takes some minutes)"
  "set_up_$task"
  fingerprint >"$(stamp_of "$task")"
  report "done"
}

main "$@"
