// SPDX-License-Identifier: MIT OR Apache-2.0
//! A lab host from its start to its end, on the screen.

use std::fs;
use std::io::{self, IsTerminal as _, Stdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use baton::config::Config;
use baton::options;
use baton::paths::default_image;
use baton::size::Size;
use baton::symbols::Symbols;
use lab::bochs::Bochs;
use lab::screen::Screen;
use lab::{Emulator, EmulatorKind, Ending, Hardware, Lab, Machine, RunDir, What, default_qemu};
use owo_colors::{OwoColorize as _, Stream};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use crate::args::LabArgs;

/// The interval at which signals and the deadline are checked.
const TICK: Duration = Duration::from_millis(100);
/// Memory that the host needs besides its guests and the bundle: generous, since the host itself reports exact needs.
const HOST_MEMORY: Size = Size::mebibytes(64);

/// A running host with its screen.
pub(super) struct Session {
    lab: Lab,
    screen: Screen<Stdout>,
    symbols: Option<Symbols>,
    timeout: Option<Duration>,
    signal: Arc<AtomicBool>,
}

/// The outcome of a session.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The machine ended.
    Ended(Ending),
    /// It had not ended at the timeout, and was ended.
    TimedOut(Duration),
    /// The operator (Ctrl-C) or the system asked to end it.
    Interrupted,
}

impl Outcome {
    /// Returns the tool's exit status: that of timeout(1), or of a shell after a signal, if it was cut off.
    pub(super) fn process_status(&self) -> u8 {
        match self {
            Self::Ended(ending) => ending.process_status(),
            Self::TimedOut(_) => 124,
            Self::Interrupted => 130,
        }
    }
}

impl Session {
    /// Builds the bundle and starts the machine.
    pub(super) fn start(config: &Config, args: &LabArgs) -> Result<Self> {
        options::check("--append", &args.append)?;
        let image = default_image(args.image.as_deref())?;
        let bundle = baton::bundle::build(config, Some(&image))?;
        let memory = args.memory.unwrap_or(config.host.memory);
        check_memory(config, memory, bundle.len() as u64)?;
        let dir = RunDir::take(&args.name)?;
        let bundle_path = dir.bundle();
        fs::write(&bundle_path, bundle).with_context(|| format!("{} cannot be written", bundle_path.display()))?;
        let qemu = default_qemu(args.qemu.as_deref());
        let iommu = args.iommu.unwrap_or(config.host.iommu);
        let hardware = Hardware::place(iommu, &config.host.devices, &qemu, dir.path())?;
        let machine = Machine {
            emulator: match args.emulator {
                EmulatorKind::Qemu => Emulator::Qemu { program: qemu, accelerator: args.accel },
                EmulatorKind::Bochs => Emulator::Bochs(Bochs::new(args.bochs.as_deref(), &args.cpu)),
            },
            cpus: args.cpus.unwrap_or(config.host.cpus),
            memory,
            image: image.clone(),
            bundle: Some(bundle_path),
            disc: None,
            cmdline: format!("{} {}", config.host.cmdline, args.append).trim().to_owned(),
            hardware,
            extra: Vec::new(),
        };
        let signal = Arc::new(AtomicBool::new(false));
        for number in [SIGINT, SIGTERM, SIGHUP] {
            flag::register(number, signal.clone())?;
        }
        Ok(Self {
            lab: Lab::start(&machine, dir)?,
            screen: Screen::new(io::stdout(), is_coloured(), config.guests.iter().map(|guest| guest.name.as_str())),
            symbols: Symbols::load(&image).ok(),
            timeout: args.timeout.map(Duration::from_secs),
            signal,
        })
    }

    /// Shows all output until the end; `on_console_line` is called with each guest's lines.
    pub(super) fn run(&mut self, mut on_console_line: impl FnMut(&str, &str)) -> Outcome {
        let mut is_cut = None;
        loop {
            let happening = self.lab.next(TICK);
            if let Some(ending) = happening.and_then(|happening| self.show(happening.what, &mut on_console_line)) {
                self.screen.flush().iter().for_each(|(name, line)| on_console_line(name, line));
                let outcome = is_cut.unwrap_or(Outcome::Ended(ending));
                self.screen.tool(&describe(&outcome));
                return outcome;
            }
            if is_cut.is_none() {
                is_cut = self.cut();
            }
        }
    }

    /// Ends the machine at its deadline or after a signal.
    fn cut(&mut self) -> Option<Outcome> {
        let outcome = match self.timeout {
            _ if self.signal.load(Ordering::Relaxed) => Outcome::Interrupted,
            Some(timeout) if self.lab.elapsed() >= timeout => Outcome::TimedOut(timeout),
            _ => return None,
        };
        self.lab.kill();
        Some(outcome)
    }

    fn show(&mut self, what: What, on_console_line: &mut impl FnMut(&str, &str)) -> Option<Ending> {
        match what {
            What::HostLine(line) => {
                let line = self.symbols.as_ref().map_or_else(|| line.clone(), |symbols| symbols.annotate(&line));
                self.screen.host(&line);
            }
            What::Console { name, bytes } => {
                self.screen.console(&name, &bytes).iter().for_each(|line| on_console_line(&name, line));
            }
            What::Event(event) => self.screen.tool(&event.kind.to_string()),
            What::EmulatorLine(line) => self.screen.tool(&format!("emulator: {line}")),
            What::Note(note) => self.screen.tool(&note),
            What::Ready => {}
            What::Ended(ending) => return Some(ending),
        }
        None
    }
}

fn describe(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Ended(ending) => ending.to_string(),
        Outcome::TimedOut(timeout) => {
            format!(
                "the host still ran after {} s and was ended; raise --timeout if it needs longer",
                timeout.as_secs()
            )
        }
        Outcome::Interrupted => "interrupted: the host was ended".to_owned(),
    }
}

/// Checks that the guests that start with the host fit into the machine together.
fn check_memory(config: &Config, memory: Size, bundle_bytes: u64) -> Result<()> {
    let started = config.guests.iter().filter(|guest| guest.autostart);
    let guests = started.map(|guest| guest.memory.bytes).fold(0, u64::saturating_add);
    let needed = Size { bytes: guests.saturating_add(bundle_bytes).saturating_add(HOST_MEMORY.bytes) };
    if needed <= memory {
        return Ok(());
    }
    let enough = Size::mebibytes(needed.bytes.div_ceil(1 << 20));
    bail!(
        "{}: [host]: memory ({memory}) is too little for the guests, the bundle and the host; raise it (or --memory) \
         to {enough} or more, or set autostart = false for some guests",
        config.path.display()
    )
}

/// Returns whether standard output is a terminal that wants colours (NO_COLOR and the like apply).
fn is_coloured() -> bool {
    // The crate's only way to ask: a text stays as it is where colours are not wanted.
    let probe = "".if_supports_color(Stream::Stdout, |text| text.red()).to_string();
    io::stdout().is_terminal() && !probe.is_empty()
}
