#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Every check of `make test`, which calls it with cargo's options for the packages that run on the host. All steps run,
# whatever fails; the status is 0 only if all passed. With STRICT=1, a check that this machine lacks the means for is a
# failure.
#
# Two lanes run beside each other: cargo's checks and tests on the host, and the bare-metal builds, which hold no lock
# of cargo's in common. While the built tests run, the host's lane goes on with what takes cargo's lock. Boots come last
# and alone: one for each core, and one more while cores idle.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck disable=SC2034 # read by report
TASK="test"
# shellcheck source=scripts/lib/report.sh
. "$ROOT/scripts/lib/report.sh"
# shellcheck source=scripts/lib/clippy.sh
. "$ROOT/scripts/lib/clippy.sh"

# The lanes' results for the summary: a line per step, and the output of a failed one.
NOTES="$ROOT/target/test"
# Longest time on two idle cores.
LIMIT_MINUTES=15

# Runs a command as the named step, and notes how it went and how long it took.
step() {
  local name=$1 start=$SECONDS result=passed
  shift
  "$@" || result=FAILED
  printf '%-28s %s in %d s\n' "$name" "$result" "$((SECONDS - start))" >>"$NOTES/steps"
  report "$name: $result in $((SECONDS - start)) s"
}

# The same in a lane: what it prints is shown when it ends, and only if it failed.
lane_step() {
  local name=$1 log="$NOTES/$1.log"
  shift
  step "$name" "$@" >"$log" 2>&1
  if grep -q "^$name .*FAILED" "$NOTES/steps"; then cat "$log"; else tail -n 1 "$log"; fi
}

# The tests that this machine cannot run, a line each.
say_what_is_left_out() {
  [[ -w /dev/kvm ]] || report "no KVM here: boots run in QEMU's emulator (TCG)"
  is_there "no QEMU 10 here: nothing is tested with an emulated x2APIC" test -x target/qemu-10/qemu-system-x86_64
  is_there "no Bochs here: no rule is tried in a second emulator" has_bochs
  is_there "no 6.1 kernel here: guests are not Linux 6.1" test -e target/kernels/6.1/vmlinuz
  is_there "no 6.12 kernel here: guests are not Linux 6.12" test -e target/kernels/6.12/vmlinuz
  is_there "no kexec-tools here: no running Linux is replaced" test -d target/kexec-tools
  is_there "no nbdkit here: no guest has a disk behind a server in another guest" test -d target/nbdkit
  is_there "no perf here: no guest is profiled by its own perf" have perf
  is_there "no OVMF here: nothing is started by UEFI firmware" test -e /usr/share/ovmf/OVMF.fd
  is_there "no grub-mkrescue here: nothing is started from a disc" have grub-mkrescue
  is_there "no gdb here: guests' core files are not opened by it" have gdb
  is_there "no Chromium here: the timeline's page and the service's are not opened in a browser" has_browser
  is_there "no axe-core here: it does not check the service's page" test -e target/axe-core/axe.min.js
  is_there "no pandoc here: the user's guide is not rendered" have pandoc
  is_there "no groff here: manual pages are not formatted" have groff
  is_there "no promtool here: it does not check the service's metrics and alert rules" has_promtool
  is_there "no shellcheck here: the scripts are not checked" have shellcheck
}

# With its firmware, which is in packages of its own.
has_bochs() { have bochs-bin && [[ -e /usr/share/bochs/BIOS-bochs-latest && -e /usr/share/bochs/VGABIOS-lgpl-latest ]]; }

has_promtool() { have promtool || [[ -x target/prometheus/usr/bin/promtool ]]; }

has_browser() { have chromium || have google-chrome; }

# Reports the line unless the command succeeds.
is_there() {
  local line=$1
  shift
  "$@" && return
  report "left out: $line"
  printf '%s\n' "$line" >>"$NOTES/left-out"
}

nothing_is_left_out() { [[ ! -e "$NOTES/left-out" ]]; }

check_format() { cargo fmt --all --check && cargo fmt --manifest-path fuzz/libfuzzer/Cargo.toml --check; }

check_scripts() { shellcheck -x scripts/*.sh scripts/lib/*.sh .ci/run; }

# Without libFuzzer they run for seconds. All packages are named, so that those with features are not built again with
# fewer.
check_fuzz_targets() { checked_cargo test --locked --quiet "$@" --test targets; }

# The boots are no target that `--tests` names, since they need what scripts/build.sh builds.
build_boots() { checked_cargo test --locked --quiet "$@" --test boots --no-run; }

# Keeps what it prints, so that the summary can repeat why boots failed.
run_boots() { checked_cargo test --locked --quiet "$@" --test boots | tee "$NOTES/boots.log"; }

# Goals with figures in instructions or bytes, the same in each run. The tool is the one that the tests have built:
# without them, its dependencies would be built again with fewer features.
check_figures() {
  checked_cargo test --locked --quiet "$@" --lib --bins --tests --no-run &&
    target/debug/baton-dev bench size exits sched structure --quick --runs 1 --check
}

host_lane() {
  lane_step "format" check_format
  ! have shellcheck || lane_step "scripts" check_scripts
  # There are no tests in documentation.
  lane_step "clippy, build of the tests" checked_cargo test --locked --quiet "$@" --lib --bins --tests --examples --no-run
  lane_step "unit and property tests" checked_cargo test --locked --quiet --no-fail-fast "$@" --lib --bins --tests &
  lane_step "fuzz targets, briefly" check_fuzz_targets "$@"
  lane_step "build of the boots" build_boots "$@"
}

bare_metal_lane() {
  lane_step "build" scripts/build.sh
  lane_step "clippy, bare-metal packages" scripts/build.sh lint
}

main() {
  local steps failures
  cd "$ROOT"
  rm -rf "$NOTES"
  mkdir -p "$NOTES"
  # Incremental data takes a quarter of the time of a build from nothing. Where there is some, it is used and kept.
  [[ -n "$(ls -A target/debug/incremental 2>/dev/null)" ]] || export CARGO_INCREMENTAL="${CARGO_INCREMENTAL:-0}"
  say_what_is_left_out
  [[ "${STRICT:-0}" != 1 ]] || step "nothing left out" nothing_is_left_out
  bare_metal_lane &
  host_lane "$@"
  wait
  step "boots in QEMU" run_boots "$@"
  step "figures that repeat" check_figures "$@"
  printf '\n'
  sed 's/^/  /' "$NOTES/steps"
  grep '^failed: ' "$NOTES/boots.log" || true
  steps=$(wc -l <"$NOTES/steps")
  failures=$(grep -c ' FAILED in ' "$NOTES/steps" || true)
  report_minutes "$SECONDS" "$LIMIT_MINUTES"
  printf '{"bench":"test","goal":"test_minutes","value":%d.%02d,"unit":"min","modelled":false}\n' \
    "$((SECONDS / 60))" "$((SECONDS % 60 * 100 / 60))"
  ((failures == 0)) || refuse "$failures of $steps steps failed"
  report "all $steps steps passed"
}

main "$@"
