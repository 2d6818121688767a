// SPDX-License-Identifier: MIT OR Apache-2.0
//! No module of a crate imports one that imports it, directly or through others.

use anyhow::Result;
use baton::paths::workspace;
use bench::structure::modules::{IMAGE, crates, cycles_of};

/// Parts of the image in which modules still import each other. Nothing is added here, and a part without a cycle is
/// taken away.
const PARTS_WITH_CYCLES: [&str; 3] = ["arch/", "guests/", "lifecycle/"];

#[test]
fn no_modules_of_a_crate_import_each_other() -> Result<()> {
    let root = workspace()?;
    let mut found = Vec::new();
    for name in crates(&root)? {
        let mut cycles = cycles_of(&root.join(&name))?;
        if name == IMAGE {
            let left_over = |part: &&str| cycles.iter().any(|cycle| cycle.is_within(&[*part]));
            assert!(PARTS_WITH_CYCLES.iter().all(left_over), "a part of {PARTS_WITH_CYCLES:?} has no cycle: remove it");
            cycles.retain(|cycle| !cycle.is_within(&PARTS_WITH_CYCLES));
        }
        found.extend(cycles.iter().map(|cycle| format!("{name}/src: {cycle}")));
    }
    assert!(found.is_empty(), "{} cycles of imports:\n{}", found.len(), found.join("\n"));
    Ok(())
}
