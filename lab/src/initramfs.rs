// SPDX-License-Identifier: MIT OR Apache-2.0
//! The initial file system of a Linux that is replaced by kexec: the one that the build makes, and what it is replaced
//! by.

use std::io::Cursor;

use anyhow::{Context as _, Result};
use cpio::{NewcBuilder, write_cpio};

/// The kernel that follows the running Linux, with its data.
#[derive(Clone, Debug)]
pub struct Next {
    /// Its kernel.
    pub kernel: Vec<u8>,
    /// Its initial RAM disk: for Baton its bundle.
    pub initrd: Vec<u8>,
    /// Its command line.
    pub cmdline: String,
}

/// `target/guests/kexec.cpio`, which is `base`, with what its /init loads and goes to (`guests/kexec/init.sh`). Linux
/// unpacks archives that follow each other into one file system.
///
/// # Errors
/// A file that is too large for the format.
pub fn for_kexec(base: &[u8], next: &Next) -> Result<Vec<u8>> {
    const REGULAR_FILE: u32 = 0o100_644;
    let files =
        [("boot/next", &next.kernel[..]), ("boot/initrd", &next.initrd), ("boot/cmdline", next.cmdline.as_bytes())];
    let files =
        files.into_iter().map(|(name, content)| (NewcBuilder::new(name).mode(REGULAR_FILE), Cursor::new(content)));
    let added = write_cpio(files, Vec::new()).context("the initial file system cannot be written")?;
    Ok([base, &added].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_kernel_follows_what_the_build_made() {
        let next = Next { kernel: vec![1; 5], initrd: vec![2; 6], cmdline: "log=debug".to_owned() };
        let bytes = for_kexec(b"base", &next).expect("good");
        let mut names = Vec::new();
        let mut reader = cpio::NewcReader::new(bytes.strip_prefix(b"base").expect("first")).expect("an archive");
        while !reader.entry().is_trailer() {
            names.push((reader.entry().name().to_owned(), reader.entry().file_size()));
            reader = cpio::NewcReader::new(reader.finish().expect("whole")).expect("another");
        }
        let expected = [("boot/next", 5), ("boot/initrd", 6), ("boot/cmdline", 9)];
        assert_eq!(names, expected.map(|(name, bytes)| (name.to_owned(), bytes)));
    }
}
