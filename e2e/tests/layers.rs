// SPDX-License-Identifier: MIT OR Apache-2.0
//! Layers inside the image: a module of the hypervisor imports from its own layer and from lower ones.

use std::fs;

use anyhow::Result;
use baton::paths::workspace;
use bench::structure::files::rust_files;
use bench::structure::layers::{LAYERS, SOURCE, upward_imports};

/// The chapter of the architecture that lists the layers.
const CHAPTER: &str = "docs/architecture/layers.md";

#[test]
fn no_layer_imports_from_above() -> Result<()> {
    let upward = upward_imports(&workspace()?)?;
    assert!(upward.is_empty(), "imports from a higher layer (call up through arch::hooks instead): {upward:#?}");
    Ok(())
}

/// Names of vendors' virtualization extensions and of what belongs to them.
const VENDORS_NAMES: [&str; 4] = ["svm", "vmcb", "vmx", "vmcs"];

/// The modules of `arch` that may import a vendor's: the seam, and the vendor's own.
const SEAM: &str = "arch/virt";
/// Why guests cannot run, by a vendor's own reason.
const REASONS: &str = "arch/unavailable.rs";
const VENDORS: [&str; 2] = ["arch/svm", "arch/vmx"];

#[test]
fn no_vendor_is_named_above_the_seam() -> Result<()> {
    let source = workspace()?.join(SOURCE);
    let mut named = Vec::new();
    for file in rust_files(&source)? {
        let text = fs::read_to_string(source.join(&file))?;
        let names = if file.starts_with("arch") {
            let is_allowed =
                [SEAM, REASONS].iter().chain(&VENDORS).any(|part| file.to_string_lossy().starts_with(part));
            text.lines().filter(|line| !is_allowed && ["svm::", "vmx::"].iter().any(|name| line.contains(name))).count()
        } else {
            text.lines().filter(|line| VENDORS_NAMES.iter().any(|name| line.to_lowercase().contains(name))).count()
        };
        named.extend((names > 0).then(|| file.display().to_string()));
    }
    assert!(named.is_empty(), "these name a vendor's extension (reach it through {SEAM}): {named:#?}");
    Ok(())
}

#[test]
fn every_module_is_in_a_layer() -> Result<()> {
    let entries =
        fs::read_dir(workspace()?.join(SOURCE))?.map(|entry| Ok(entry?.file_name())).collect::<Result<_>>()?;
    let mut outside: Vec<_> = entries;
    outside.retain(|name| LAYERS.iter().all(|layer| name != layer));
    assert_eq!(outside, ["main.rs"], "{SOURCE} holds the layers' folders and main.rs only");
    Ok(())
}

#[test]
fn the_architecture_lists_the_layers() -> Result<()> {
    let text = fs::read_to_string(workspace()?.join(CHAPTER))?;
    let table = text.lines().skip_while(|line| !line.starts_with("| layer |")).skip(2);
    let first_cells = table.take_while(|line| line.starts_with('|')).filter_map(|line| line.split('`').nth(1));
    assert_eq!(first_cells.collect::<Vec<_>>(), LAYERS, "{CHAPTER}, table of layers (left)");
    Ok(())
}
