// SPDX-License-Identifier: MIT OR Apache-2.0
//! The context of every bench: programs and files, the number of runs, and progress messages.

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail};
use baton::paths::{default_image, workspace};
use indicatif::ProgressBar;
use lab::default_qemu;

/// Path of the QEMU 10 that set-up unpacks where the distribution's own is older.
const QEMU_OF_SETUP: &str = "target/qemu-10/qemu-system-x86_64";
/// The interval at which a spinner turns.
const TICK: Duration = Duration::from_millis(100);

/// The settings of every bench.
#[derive(Debug)]
pub struct Context {
    /// The emulator.
    pub qemu: PathBuf,
    /// The hypervisor's image.
    pub image: PathBuf,
    /// The folder of Baton's sources, below which guests and kernels are.
    pub root: PathBuf,
    /// The number of runs of each variant.
    pub runs: usize,
    /// The time limit of one machine.
    pub timeout: Duration,
    /// The minutes for which busy guests are watched, and after which no part of the mutants is begun.
    pub minutes: u64,
    /// The sizes of machines to boot.
    pub sizes: Sizes,
    /// True if measurements that take tens of minutes are made, too.
    pub all: bool,
    progress: Option<ProgressBar>,
}

/// One of the images that the build makes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Build {
    /// The image that operators run, and that figures are of.
    #[default]
    Shipped,
    /// The test image, for hosts that fail on purpose: it takes `selftest=`.
    WithFaultPoints,
}

/// The sizes of machines for a bench that boots many; without any, all of the bench's own.
#[derive(Clone, Debug, Default)]
pub struct Sizes {
    /// Only those, and only the variants, that goals need.
    pub quick: bool,
    /// Memory, in GiB.
    pub gibibytes: Vec<u64>,
    /// Numbers of CPUs.
    pub cpus: Vec<u32>,
}

impl Context {
    /// Returns a context. The emulator is `qemu`, `BATON_QEMU`, set-up's QEMU 10, or the one on the path.
    pub fn new(
        qemu: Option<&Path>,
        image: Option<&Path>,
        runs: usize,
        timeout: Duration,
        minutes: u64,
    ) -> Result<Self> {
        let root = workspace()?;
        let of_setup = root.join(QEMU_OF_SETUP);
        let is_chosen = qemu.is_some() || std::env::var_os("BATON_QEMU").is_some();
        let qemu = if is_chosen || !of_setup.is_file() { default_qemu(qemu) } else { of_setup };
        let progress = io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new_spinner();
            bar.enable_steady_tick(TICK);
            bar
        });
        let image = default_image(image)?;
        Ok(Self { qemu, image, root, runs, timeout, minutes, sizes: Sizes::default(), all: false, progress })
    }

    /// Shows the current step on standard error: by a spinner on a terminal, else by a line.
    pub fn step(&self, text: &str) {
        match &self.progress {
            Some(bar) => bar.set_message(text.to_owned()),
            None => eprintln!("bench: {text}"),
        }
    }

    /// Prints a line that stays on the screen.
    pub fn note(&self, text: &str) {
        match &self.progress {
            Some(bar) => bar.suspend(|| eprintln!("bench: {text}")),
            None => eprintln!("bench: {text}"),
        }
    }

    /// Removes the spinner, so that results can be printed.
    pub fn clear_progress(&self) {
        if let Some(bar) = &self.progress {
            bar.set_message("");
            bar.suspend(|| ());
        }
    }

    /// Returns the file of an image. The test image is beside the other one, which has its name without `-faults`.
    ///
    /// # Errors
    ///
    /// It is not there.
    pub fn image_of(&self, build: Build) -> Result<PathBuf> {
        match build {
            Build::Shipped => Ok(self.image.clone()),
            Build::WithFaultPoints => test_image(&self.image),
        }
    }

    /// Returns the path of a file below the source's folder that set-up or the build makes.
    pub fn made(&self, path: &str) -> Result<PathBuf> {
        let full = self.root.join(path);
        if !full.is_file() {
            bail!("{path} is not here; `make bench` makes everything that benches need");
        }
        Ok(full)
    }
}

fn test_image(image: &Path) -> Result<PathBuf> {
    let stem = image.file_stem().unwrap_or_default().to_string_lossy();
    let beside = image.with_file_name(format!("{stem}-faults.elf"));
    if !beside.is_file() {
        bail!("the test image {} is not here, and this bench injects faults; `make bench` builds it", beside.display());
    }
    Ok(beside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_test_image_is_beside_the_other_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let image = folder.path().join("next.elf");
        let error = test_image(&image).expect_err("not there").to_string();
        assert!(error.contains("next-faults.elf is not here") && error.contains("`make bench`"), "{error}");
        std::fs::write(folder.path().join("next-faults.elf"), "").expect("written");
        assert_eq!(test_image(&image).expect("there"), folder.path().join("next-faults.elf"));
    }
}
