// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hands the linker script to the linker, and has it state in the image which build it is.

fn main() {
    let directory = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    println!("cargo:rustc-link-arg-bins=-T{directory}/link.ld");
    println!("cargo:rustc-link-arg-bins=--build-id=sha1");
    println!("cargo:rerun-if-changed=link.ld");
}
