// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks for which a machine may lack the means: each that is left out is named on standard error, and is a failure
//! where `STRICT=1` is set.

use std::env;
use std::io::Write as _;

/// Returns whether a check that is left out is a failure.
pub fn is_strict() -> bool {
    env::var_os("STRICT").is_some_and(|value| value == "1")
}

/// Returns whether a check can run. If not, `missing` names what this machine lacks and what it leaves out.
///
/// # Panics
///
/// It cannot run, and `STRICT=1` is set.
pub fn is_possible(is_possible: bool, missing: &str) -> bool {
    assert!(is_possible || !is_strict(), "{missing}; run scripts/setup.sh test");
    if !is_possible {
        // Past the test harness's capture: the person who runs the tests is to know.
        let _ = writeln!(std::io::stderr(), "test: {missing}");
    }
    is_possible
}
