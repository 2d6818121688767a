# SPDX-License-Identifier: MIT OR Apache-2.0
# Sourced by the scripts beside it: cargo, with clippy as the compiler of this workspace's own packages, which refuses
# what it warns of. A pass of clippy's own would read all dependencies once more.
# shellcheck shell=bash

CLIPPY_DRIVER="$(rustc --print sysroot)/bin/clippy-driver"

checked_cargo() { RUSTC_WORKSPACE_WRAPPER="$CLIPPY_DRIVER" CLIPPY_ARGS="-Dwarnings" cargo "$@"; }
