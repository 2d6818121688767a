# SPDX-License-Identifier: MIT OR Apache-2.0
# Sourced by setup.sh: a Rust toolchain for x86_64-unknown-none, by one of two routes, recorded in target/toolchain:
#   rustup   the compiler in PATH has the target's core library, or rustup adds it
#   debian   Debian's compiler builds core itself from Debian's copy of its source
# shellcheck shell=bash

BARE_TARGET=x86_64-unknown-none
OLDEST_RUST=1.95
DEBIAN_RUST=(cargo-web rustc-web rust-web-src)
DEBIAN_RUST_CHECKERS=(rust-web-clippy rustfmt-web)
# The version that `bench structure` names (bench/src/structure/mutants.rs).
MUTANTS_VERSION=27.1.0

# Whether the named compiler (rustc, /usr/bin/rustc, …) is new enough.
rust_is_new_enough() {
  local version
  version=$("$1" --version 2>/dev/null | awk '{ print $2 }')
  [[ -n "$version" && "$(printf '%s\n' "$OLDEST_RUST" "$version" | sort -V | head -n 1)" == "$OLDEST_RUST" ]]
}

has_bare_target() { [[ -d "$(rustc --print sysroot 2>/dev/null)/lib/rustlib/$BARE_TARGET" ]]; }

record_toolchain() {
  mkdir -p "$TARGET"
  printf '%s\n' "$1" >"$TARGET/toolchain"
  report "bare-metal toolchain: $2"
}

# The first route; fails when the second has to be taken.
rustup_route() {
  rust_is_new_enough rustc || return 1
  if has_bare_target; then
    record_toolchain rustup "$(rustc --version | cut -d' ' -f1,2), which has $BARE_TARGET"
    return 0
  fi
  have rustup || return 1
  report "rustup target add $BARE_TARGET"
  if timeout 60 rustup --quiet target add "$BARE_TARGET" >"$TARGET/setup/rustup.log" 2>&1 && has_bare_target; then
    record_toolchain rustup "$(rustc --version | cut -d' ' -f1,2), $BARE_TARGET added by rustup"
    return 0
  fi
  report "rustup could not download it: trying Debian's own toolchain instead"
  return 1
}

debian_route() {
  [[ "$(distribution)" == debian ]] || return 1
  install_packages "${DEBIAN_RUST[@]}"
  rust_is_new_enough /usr/bin/rustc || return 1
  record_toolchain debian "Debian's $(/usr/bin/rustc --version | cut -d' ' -f1,2), core built from source"
}

choose_toolchain() {
  rustup_route || debian_route || refuse "no Rust for $BARE_TARGET: it takes Rust $OLDEST_RUST or newer;" \
    "with rustup: 'rustup update stable && rustup target add $BARE_TARGET'"
  hash -r
  rust_is_new_enough rustc || refuse "$(rustc --version 2>/dev/null || echo 'no rustc') in PATH:" \
    "Baton's own tool needs $OLDEST_RUST or newer; with rustup: 'rustup update stable'"
}

# Formatter and linter, which only the tests need: for the host's toolchain, and for Debian's where that builds the bare
# metal.
choose_checkers() {
  [[ "$(<"$TARGET/toolchain")" != debian ]] || install_packages "${DEBIAN_RUST_CHECKERS[@]}"
  has_checkers && return 0
  ! have rustup || timeout 120 rustup --quiet component add rustfmt clippy || true
  has_checkers || refuse "cargo has no 'fmt' or no 'clippy' here; with rustup: 'rustup component add rustfmt clippy'"
}

has_checkers() { cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1; }

# The tools that only `bench structure` needs: LLVM's tools of the compiler's version, which read coverage, and
# cargo-mutants.
coverage_tools() { have rustup && timeout 120 rustup --quiet component add llvm-tools; }

mutants() {
  [[ "$(cargo mutants --version 2>/dev/null)" == "cargo-mutants $MUTANTS_VERSION" ]] ||
    cargo install --quiet --locked --version "$MUTANTS_VERSION" cargo-mutants
}
