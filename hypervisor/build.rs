// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hands the linker script to the linker.

fn main() {
    let directory = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    println!("cargo:rustc-link-arg-bins=-T{directory}/link.ld");
    println!("cargo:rerun-if-changed=link.ld");
}
