#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# The compiler as cargo's RUSTC_WORKSPACE_WRAPPER: counts which lines are executed in this workspace's packages. What
# they depend on is compiled without, and so is not built again.
exec "$@" -C instrument-coverage
