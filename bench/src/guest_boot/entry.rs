// SPDX-License-Identifier: MIT OR Apache-2.0
//! Entry address of a bzImage in 64-bit mode (Linux boot protocol, "64-bit boot protocol": 0x200 behind the load
//! address).

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};

/// Offsets into the image (boot protocol, "The real-mode kernel header").
mod offset {
    pub const MAGIC: usize = 0x202;
    pub const CODE32_START: usize = 0x214;
    pub const PREFERRED_ADDRESS: usize = 0x258;
    pub const HEADER_END: usize = 0x260;
}

const MAGIC: &[u8] = b"HdrS";
const ENTRY_64: u64 = 0x200;

/// Linear addresses of the kernel's 64-bit entry, mapped one to one when it gets there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entries {
    /// Its load address with a loader by the 16-bit protocol (the emulator's own).
    pub direct: u64,
    /// At the preferred address, where Baton loads it.
    pub preferred: u64,
}

/// The entries of the kernel in a file.
pub(super) fn of_file(kernel: &Path) -> Result<Entries> {
    let image = fs::read(kernel).with_context(|| format!("{} cannot be read", kernel.display()))?;
    of(&image).with_context(|| format!("{}: no kernel to measure", kernel.display()))
}

fn of(image: &[u8]) -> Result<Entries> {
    if image.len() < offset::HEADER_END || image[offset::MAGIC..][..MAGIC.len()] != *MAGIC {
        bail!("this is no bzImage");
    }
    let number = |at: usize, bytes: usize| {
        image[at..at + bytes].iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
    };
    Ok(Entries {
        direct: number(offset::CODE32_START, 4) + ENTRY_64,
        preferred: number(offset::PREFERRED_ADDRESS, 8).saturating_add(ENTRY_64),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_from_the_setup_header() {
        let mut image = vec![0; 0x400];
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x214..0x218].copy_from_slice(&0x10_0000_u32.to_le_bytes());
        image[0x258..0x260].copy_from_slice(&0x100_0000_u64.to_le_bytes());
        assert_eq!(of(&image).expect("a kernel"), Entries { direct: 0x10_0200, preferred: 0x100_0200 });
        assert!(of(&image[..0x25f]).is_err());
        image[0x202] = 0;
        assert!(of(&image).is_err());
    }
}
