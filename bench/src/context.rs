// SPDX-License-Identifier: MIT OR Apache-2.0
//! What every bench is given: programs and files, how often to run, and a place to say how far it is.

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail};
use baton::paths::{default_image, workspace};
use indicatif::ProgressBar;
use lab::default_qemu;

/// Where set-up puts QEMU 10 where the distribution's own is older.
const QEMU_OF_SETUP: &str = "target/qemu-10/qemu-system-x86_64";
/// How often a spinner turns.
const TICK: Duration = Duration::from_millis(100);

/// What every bench is given.
#[derive(Debug)]
pub struct Context {
    /// The emulator.
    pub qemu: PathBuf,
    /// The hypervisor's image.
    pub image: PathBuf,
    /// The folder of Baton's sources, below which guests and kernels are.
    pub root: PathBuf,
    /// How often each variant runs.
    pub runs: usize,
    /// How long one machine may take.
    pub timeout: Duration,
    /// How many minutes busy guests are watched.
    pub minutes: u64,
    /// Which machines are booted.
    pub sizes: Sizes,
    progress: Option<ProgressBar>,
}

/// Which sizes of machines a bench boots that boots many; all of its own where nothing is named.
#[derive(Clone, Debug, Default)]
pub struct Sizes {
    /// Only those, and only the variants, that goals need.
    pub quick: bool,
    /// Memory, in GiB.
    pub gibibytes: Vec<u64>,
    /// Processors.
    pub processors: Vec<u32>,
}

impl Context {
    /// Finds what is not named: the emulator is `qemu`, `BATON_QEMU`, set-up's QEMU 10, or the one on the path.
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
        Ok(Self { qemu, image: default_image(image)?, root, runs, timeout, minutes, sizes: Sizes::default(), progress })
    }

    /// Says what is being done: a spinner on a terminal, else a line; always on standard error.
    pub fn step(&self, text: &str) {
        match &self.progress {
            Some(bar) => bar.set_message(text.to_owned()),
            None => eprintln!("bench: {text}"),
        }
    }

    /// Says something that is to stay on the screen.
    pub fn note(&self, text: &str) {
        match &self.progress {
            Some(bar) => bar.suspend(|| eprintln!("bench: {text}")),
            None => eprintln!("bench: {text}"),
        }
    }

    /// Takes the spinner away, so that results can be printed.
    pub fn clear_progress(&self) {
        if let Some(bar) = &self.progress {
            bar.set_message("");
            bar.suspend(|| ());
        }
    }

    /// A file below the source's folder that set-up or the build makes.
    pub fn made(&self, path: &str) -> Result<PathBuf> {
        let full = self.root.join(path);
        if !full.is_file() {
            bail!("{path} is not here; `make bench` makes everything that benches need");
        }
        Ok(full)
    }
}
