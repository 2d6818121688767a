// SPDX-License-Identifier: MIT OR Apache-2.0
//! A bootable disc image: GRUB for BIOS and UEFI, the image, a bundle. GRUB's own `grub-mkrescue` makes it.

use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

const PROGRAM: &str = "grub-mkrescue";
const HINT: &str = "on Debian: apt-get install grub-common grub-pc-bin grub-efi-amd64-bin xorriso mtools dosfstools";
/// The folders of GRUB in distributions, by platform.
const GRUB: &str = "/usr/lib/grub";
const PLATFORMS: [(&str, &str); 2] = [("i386-pc", "BIOS"), ("x86_64-efi", "UEFI")];

/// Makes a disc that starts `image` with `bundle` and the command line `cmdline`. Returns the kinds of firmware that
/// boot it: those for which this machine has GRUB.
///
/// # Errors
/// A file that cannot be read or written, a command line that GRUB cannot be given, no `grub-mkrescue`, or its
/// complaint.
pub fn build(image: &Path, bundle: &Path, cmdline: &str, output: &Path) -> Result<Vec<&'static str>> {
    let is_here = |(platform, _): &(&str, &str)| Path::new(GRUB).join(platform).is_dir();
    let firmware: Vec<_> = PLATFORMS.into_iter().filter(is_here).map(|(_, name)| name).collect();
    let tree = tempfile::tempdir().context("no temporary folder can be made")?;
    let boot = tree.path().join("boot");
    fs::create_dir_all(boot.join("grub"))?;
    for (from, name) in [(image, "baton.elf"), (bundle, "bundle")] {
        fs::copy(from, boot.join(name)).with_context(|| format!("{} cannot be read", from.display()))?;
    }
    fs::write(boot.join("grub/grub.cfg"), configuration(cmdline)?)?;
    make(&[
        OsStr::new("-o"),
        output.as_os_str(),
        OsStr::new("--locales="),
        OsStr::new("--fonts="),
        OsStr::new("--themes="),
        tree.path().as_os_str(),
    ])?;
    Ok(firmware)
}

fn make(arguments: &[&OsStr]) -> Result<()> {
    let done = Command::new(PROGRAM).args(arguments).output();
    let output = match done {
        Err(error) if error.kind() == ErrorKind::NotFound => bail!("{PROGRAM} is not here; {HINT}"),
        done => done.with_context(|| format!("{PROGRAM} cannot be started"))?,
    };
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        let complaint = text.lines().rev().find(|line| line.contains("error")).or(text.lines().next_back());
        bail!("{PROGRAM} failed: {}; {HINT}", complaint.unwrap_or("it reports no reason"));
    }
    Ok(())
}

/// GRUB's menu: one entry, taken at once.
fn configuration(cmdline: &str) -> Result<String> {
    if cmdline.contains(['\'', '\n']) {
        bail!("the command line {cmdline:?} has a quote or a line end, which GRUB cannot be given; leave it out");
    }
    let words: String = cmdline.split_whitespace().map(|word| format!(" '{word}'")).collect();
    Ok(format!(
        "set timeout=0\nmenuentry Baton {{\n  multiboot2 /boot/baton.elf{words}\n  module2 /boot/bundle bundle\n}}\n"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_of_the_command_line_is_quoted() {
        let text = configuration("log=debug  cpus=0-1;3").expect("good");
        assert!(text.contains("multiboot2 /boot/baton.elf 'log=debug' 'cpus=0-1;3'\n"), "{text}");
        assert!(configuration("").expect("good").contains("baton.elf\n"));
        assert!(configuration("a='b'").expect_err("quote").to_string().contains("leave it out"));
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let output = Path::new("/nowhere/out.iso");
        let error = build(Path::new("/nowhere/baton.elf"), output, "", output).expect_err("not there");
        assert_eq!(error.to_string(), "/nowhere/baton.elf cannot be read");
    }
}
