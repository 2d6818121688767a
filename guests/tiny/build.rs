// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hands the linker script to the linker, for the bare-metal target only.

fn main() {
    let folder = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    println!("cargo::rerun-if-changed=link.ld");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("none") {
        println!("cargo::rustc-link-arg-bins=-T{folder}/link.ld");
    }
}
