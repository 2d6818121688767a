#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# `make test-all`: `make test` and all that takes longer, in parts. A part that has passed is remembered for this commit
# and its changes (target/test-all/), and skipped the next time; one that is named by PART runs whatever is remembered.
#
#   scripts/test-all.sh CARGO_OPTIONS...              every part, and a summary
#   PART=restart scripts/test-all.sh CARGO_OPTIONS... this part
#
# Parts: `short` is `make test`; `properties` and `fuzz` are the same tests with many more inputs; `structure` tries the
# changes to the update's protocol that its host tests have to notice; each other one is a group of boots,
# `long::PART::…`. CARGO_OPTIONS name the packages that run on the host.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck disable=SC2034 # read by report
TASK="test-all"
# shellcheck source=scripts/lib/report.sh
. "$ROOT/scripts/lib/report.sh"
# shellcheck source=scripts/lib/clippy.sh
. "$ROOT/scripts/lib/clippy.sh"

# Inputs of each property, and milliseconds of each fuzz target.
CASES=4096
FUZZ_MS=30000
# Minutes after which no part of the mutants is begun: more than all of them take.
MUTANT_MINUTES=150
# Longest time of all parts, those that passed before included.
LIMIT_MINUTES=240

# The tested source: the commit, and the changes on top of it.
state() {
  local commit changes
  commit=$(git rev-parse --short=12 HEAD)
  changes=$(git diff HEAD | sha256sum | cut -c 1-12)
  [[ -z "$(git diff HEAD)" ]] && printf '%s' "$commit" || printf '%s-%s' "$commit" "$changes"
}

boots() { checked_cargo test --locked --quiet "$@"; }

# The groups of boots, by name.
groups() {
  boots "$@" --test boots -- --list --ignored | sed -n 's/^long::\([a-z_]*\)::.*/\1/p' | sort -u
}

run_part() {
  local part=$1
  shift
  case "$part" in
  short) scripts/test.sh "$@" ;;
  properties) PROPTEST_CASES=$CASES checked_cargo test --locked --quiet "$@" --lib --bins --tests ;;
  fuzz) BATON_FUZZ_MS=$FUZZ_MS cargo test --locked --quiet --profile fuzz --package baton-fuzz --test targets ;;
  structure) cargo baton bench structure --all --minutes "$MUTANT_MINUTES" --check ;;
  *) boots "$@" --test boots -- --ignored "long::$part::" ;;
  esac
}

main() {
  local parts part memory start result took total=0 failures=0 summary=()
  cd "$ROOT"
  memory="$ROOT/target/test-all/$(state)"
  mkdir -p "$memory"
  scripts/build.sh
  mapfile -t parts < <(printf '%s\n' short properties fuzz && groups "$@" && echo structure)
  [[ -z "${PART:-}" ]] || parts=("$PART")
  for part in "${parts[@]}"; do
    if [[ -z "${PART:-}" && -e "$memory/$part" ]]; then
      took=$(<"$memory/$part")
      total=$((total + took))
      summary+=("$(printf '%-12s passed before, in %d s' "$part" "$took")")
      continue
    fi
    report "$part"
    start=$SECONDS result=passed
    run_part "$part" "$@" || result=FAILED
    took=$((SECONDS - start))
    total=$((total + took))
    summary+=("$(printf '%-12s %s in %d s' "$part" "$result" "$took")")
    if [[ $result == passed ]]; then echo "$took" >"$memory/$part"; else failures=$((failures + 1)); fi
  done
  printf '\n'
  printf '  %s\n' "${summary[@]}"
  report_minutes "$total" "$LIMIT_MINUTES"
  ((failures == 0)) || refuse "$failures of ${#summary[@]} parts failed"
  report "all ${#summary[@]} parts passed"
}

main "$@"
