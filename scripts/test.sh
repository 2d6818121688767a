#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Every check, in the order in which they fail soonest, and a summary. `make test` calls it with cargo's options for the
# packages that run on the host. All steps run, whatever fails; the status is 0 only if all passed.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck disable=SC2034 # read by say
TASK="test"
# shellcheck source=scripts/lib/say.sh
. "$ROOT/scripts/lib/say.sh"

summary=()
failures=0

# Runs a command as the named step, and notes how it went and how long it took.
step() {
  local name=$1 start=$SECONDS result=passed
  shift
  say "$name"
  if ! "$@"; then
    result=FAILED
    failures=$((failures + 1))
  fi
  summary+=("$(printf '%-28s %s in %d s' "$name" "$result" "$((SECONDS - start))")")
}

# What this machine keeps from being tested, a line each.
say_what_is_left_out() {
  [[ -w /dev/kvm ]] || say "no KVM here: boots run in QEMU's emulator (TCG)"
  [[ -x "$ROOT/target/qemu-10/qemu-system-x86_64" ]] || say "no QEMU 10 here: nothing is tested with an emulated x2APIC"
  [[ -e "$ROOT/target/kernels/6.12/vmlinuz" ]] || say "no 6.12 kernel here: only the release's own is booted"
  [[ -e "$ROOT/target/guests/kexec.cpio" || -d "$ROOT/target/kexec-tools" ]] || say "no kexec-tools here: no running Linux is replaced"
  have grub-mkrescue || say "no grub-mkrescue here: nothing is started from a disc"
  have gdb || say "no gdb here: nobody else reads guests' core files"
  have chromium || have google-chrome || say "no Chromium here: nobody opens the timeline's page in a browser"
  have shellcheck || say "no shellcheck here: the scripts are not checked"
}

# The fuzz targets are a workspace of their own; without libFuzzer they run for seconds.
check_fuzz_targets() {
  cargo fmt --manifest-path fuzz/Cargo.toml --check &&
    cargo clippy --quiet --manifest-path fuzz/Cargo.toml --all-targets -- -D warnings &&
    cargo test --quiet --manifest-path fuzz/Cargo.toml
}

check_scripts() { shellcheck -x scripts/*.sh scripts/lib/*.sh .ci/run; }

main() {
  cd "$ROOT"
  say_what_is_left_out
  step "format" cargo fmt --all --check
  ! have shellcheck || step "scripts" check_scripts
  step "clippy, host packages" cargo clippy --quiet "$@" --all-targets -- -D warnings
  step "clippy, bare-metal packages" scripts/build.sh lint
  step "unit and property tests" cargo test --quiet "$@" --exclude e2e
  step "fuzz targets, briefly" check_fuzz_targets
  step "build" scripts/build.sh
  step "repository, boots in QEMU" cargo test --quiet --package e2e
  printf '\n'
  printf '  %s\n' "${summary[@]}"
  ((failures == 0)) || refuse "$failures of ${#summary[@]} steps failed"
  say "all ${#summary[@]} steps passed"
}

main "$@"
