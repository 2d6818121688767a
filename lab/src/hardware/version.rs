// SPDX-License-Identifier: MIT OR Apache-2.0
//! The devices that not every emulator has: without this check QEMU ends with `'igb' is not a valid device model name`.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use baton::config::{Device, Model};

use crate::start::explain;

/// Major and minor version.
type Version = (u32, u32);

/// The first QEMU with igb.
const IGB_SINCE: Version = (8, 0);

/// Checks that `qemu` has all of these devices. It is asked for its version only where one of them depends on that.
///
/// # Errors
/// The first device that it lacks, the version found, and a hint.
pub(super) fn check(devices: &[Device], qemu: &Path) -> Result<()> {
    let is_igb = |device: &Device| matches!(device, Device::Network(network) if network.model == Model::Igb);
    let Some(index) = devices.iter().position(is_igb) else { return Ok(()) };
    refuse_older(index + 1, "igb", version_of(qemu)?, qemu)
}

/// Returns the major and minor version of an emulator.
///
/// # Errors
/// It cannot be started, or reports none.
pub fn version_of(qemu: &Path) -> Result<(u32, u32)> {
    let output = Command::new(qemu).arg("--version").output().with_context(|| explain(qemu.as_os_str()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    version(&text).with_context(|| {
        let first = text.lines().next().unwrap_or_default();
        format!("the version of the emulator {} is unknown: it reports {first:?}", qemu.display())
    })
}

fn refuse_older(number: usize, device: &str, found: Version, qemu: &Path) -> Result<()> {
    let ((major, minor), (since, since_minor)) = (found, IGB_SINCE);
    if found >= IGB_SINCE {
        return Ok(());
    }
    bail!(
        "[[host.device]] {number}: {device} needs QEMU {since}.{since_minor} or newer, and {} is QEMU {major}.{minor}; \
         name a newer one with --qemu or BATON_QEMU (`scripts/setup.sh test` puts QEMU 10 at \
         target/qemu-10/qemu-system-x86_64), or take an e1000e",
        qemu.display()
    )
}

/// Returns the version out of `QEMU emulator version 7.2.22 (Debian …)`.
fn version(text: &str) -> Option<Version> {
    let word = text.split_once("version ")?.1.split_whitespace().next()?;
    let mut parts = word.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_emulator_reports_its_version() {
        assert_eq!(version("QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18+b3)\nCopy"), Some((7, 2)));
        assert_eq!(version("QEMU emulator version 10.0.2 (Debian)"), Some((10, 0)));
        assert_eq!(version("QEMU emulator version 9"), None);
        assert_eq!(version("Bochs 2.7"), None);
    }

    #[test]
    fn an_older_emulator_is_named_with_its_version() {
        let error = refuse_older(3, "igb", (7, 2), Path::new("qemu")).expect_err("too old").to_string();
        let expected = "[[host.device]] 3: igb needs QEMU 8.0 or newer, and qemu is QEMU 7.2; name a newer one";
        assert!(error.starts_with(expected), "{error}");
        refuse_older(3, "igb", (8, 0), Path::new("qemu")).expect("new enough");
    }
}
