// SPDX-License-Identifier: MIT OR Apache-2.0
//! No module of a crate imports one that imports it, directly or through others.

use anyhow::Result;
use baton::paths::workspace;
use bench::structure::modules::{crates, cycles_of};

#[test]
fn no_modules_of_a_crate_import_each_other() -> Result<()> {
    let root = workspace()?;
    let mut found = Vec::new();
    for name in crates(&root)? {
        let cycles = cycles_of(&root.join(&name))?;
        found.extend(cycles.iter().map(|cycle| format!("{name}/src: {cycle}")));
    }
    assert!(found.is_empty(), "{} cycles of imports:\n{}", found.len(), found.join("\n"));
    Ok(())
}
