#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Rebuilds a release's image and tool from its commit, for tests that update between releases. What is there already is
# kept.
#
#   scripts/release.sh 0.1.0    target/releases/0.1.0/baton.elf and target/releases/0.1.0/baton, the tool
#
# Exits with status 3 where this clone lacks the commit (a shallow clone).
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck disable=SC2034 # read by report
TASK="release"
# shellcheck source=scripts/lib/report.sh
. "$ROOT/scripts/lib/report.sh"

NO_COMMIT=3

# The commit that a release was made from.
commit_of() {
  case "$1" in
  0.1.0) printf 'e5bc015adf8ad87378c8fd538afdbddc9a959472' ;;
  *) refuse "release '$1' is unknown: give 0.1.0" ;;
  esac
}

# Builds in a folder outside of the repository: below it, cargo would join the repository's .cargo/config.toml with the
# release's.
build() {
  local commit=$1 folder=$2 source
  source=$(mktemp -d "${TMPDIR:-/tmp}/baton-release.XXXXXX")
  # shellcheck disable=SC2064 # expanded now
  trap "rm -rf '$source'" EXIT
  git -C "$ROOT" archive "$commit" | tar -x -C "$source"
  mkdir -p "$source/target" "$folder"
  cp "$ROOT/target/toolchain" "$source/target/"
  BATON_BUILD=$(git -C "$ROOT" describe --always --abbrev=12 "$commit") \
    "$source/scripts/build.sh" hypervisor
  (cd "$source" && cargo build --quiet --release --locked --package baton --target-dir "$source/target")
  cp "$source/target/release/baton" "$folder/baton"
  # The image comes last: it stands for both.
  cp "$source/target/baton.elf" "$folder/baton.elf.part"
  mv "$folder/baton.elf.part" "$folder/baton.elf"
}

main() {
  local release=${1:-0.1.0} commit folder
  commit=$(commit_of "$release")
  folder="$ROOT/target/releases/$release"
  if [[ ! -e "$folder/baton.elf" ]]; then
    if ! git -C "$ROOT" cat-file -e "$commit^{commit}" 2>/dev/null; then
      report "release $release: this clone lacks its commit ${commit:0:12}; fetch the whole history" >&2
      exit "$NO_COMMIT"
    fi
    report "building release $release from commit ${commit:0:12}"
    build "$commit" "$folder"
  fi
  report "release $release is under target/releases/$release"
}

main "$@"
