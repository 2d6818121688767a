// SPDX-License-Identifier: MIT OR Apache-2.0
//! The commands, a module for each.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::Serialize;

use shipment::Shipment;

use crate::args::{Command, PciCommand, Target};
use crate::client::Client;
use crate::config::Config;
use crate::keys;
use crate::paths::default_image;
use crate::size::Size;

mod configuring;
mod console;
mod cpu;
mod disk;
mod down;
mod image;
mod info;
mod key;
mod net;
mod orders;
mod pci;
pub mod perf;
mod profile;
mod records;
mod relay;
mod restart;
mod saving;
mod serve;
mod shell;
pub mod shipment;
mod shutdown;
pub mod stat;
mod symbolize;
mod terminal;
pub mod timeline;
mod top;
pub mod update;
mod vm;

/// The exit status of a command that succeeded.
const DONE: u8 = 0;

/// Carries out a command; returns the process's exit status.
pub fn run(target: &Target, command: Command) -> Result<u8> {
    match command {
        Command::Bundle { config, output, sign } => bundle(&config, &output, sign.as_deref()),
        Command::Image { command } => image::run(&command),
        Command::Down { consent, timeout } => down::run(target, consent, timeout),
        Command::Vm { command } => vm::run(target, &command),
        Command::Cpu { command } => cpu::run(target, &command),
        Command::Config { command } => configuring::show(target, &command),
        Command::File { command } => configuring::files(target, &command),
        Command::Disk { command } => disk::run(target, &command),
        Command::Net { command } => net::run(target, &command),
        Command::Pci { format, command } => pci::run(target, &command.unwrap_or(PciCommand::List(format))),
        Command::Log(args) => records::log(target, &args),
        Command::Events(args) => records::events(target, &args),
        Command::Restart { bundle, image, allow_downgrade, consent, format } => {
            let shipment = Shipment::read(bundle.as_deref(), image.as_deref())?;
            restart::run(target, shipment, restart::How { allow_downgrade, consent }, format)
        }
        Command::Update { bundle, image, previous, allow_downgrade, dry_run, confirm_within, no_confirm, format } => {
            let shipment = Shipment::read(bundle.as_deref(), image.as_deref())?;
            let how = update::How { previous, dry_run, allow_downgrade, confirm_within, no_confirm };
            update::run(target, shipment, how, format)
        }
        Command::Confirm => update::confirm(target),
        Command::Key { command } => key::run(target, &command),
        Command::Perf(args) => profile::run(target, &args),
        Command::Timeline(args) => timeline::run(target, &args),
        Command::Top(args) => top::run(target, &args),
        Command::Info { vulnerabilities: true, format } => info::vulnerabilities(target, format),
        Command::Info { format, .. } => info::run(target, format),
        Command::Relay => relay::run(target),
        Command::Serve { arguments } => Err(serve::replace_by(&arguments)),
        Command::Completions { shell } => shell::completions(shell),
        Command::Man { folder } => shell::manual(&folder),
        Command::Symbolize { log, image } => symbolize::run(log.as_deref(), image.as_deref()),
    }
}

fn bundle(config: &Path, output: &Path, key: Option<&Path>) -> Result<u8> {
    let config = Config::load(config)?;
    let key = key.map(keys::secret).transpose()?;
    let bytes = crate::bundle::build(&config, default_image(None).ok().as_deref())?;
    let bytes = match &key {
        Some(key) => crate::bundle::signed(bytes, key),
        None => bytes,
    };
    fs::write(output, &bytes).with_context(|| format!("{} cannot be written", output.display()))?;
    let (guests, size) = (config.guests.len(), Size { bytes: bytes.len() as u64 });
    let signer = key.map(|key| format!(", signed by {}", key.public().id())).unwrap_or_default();
    println!("{}: {guests} guest{}, {size}{signer}", output.display(), if guests == 1 { "" } else { "s" });
    Ok(DONE)
}

/// Connects to the running host that the arguments name.
fn connect(target: &Target) -> Result<Client> {
    let client = Client::reach(&target.address()?, target.secret()?)?;
    if client.is_unsigned_there() {
        eprintln!("baton: this host's image knows no signed requests; none is signed, update it to one that does");
    }
    Ok(client)
}

/// Prints items as JSON, each on a line.
fn print_lines<T: Serialize>(items: &[T]) -> Result<()> {
    for item in items {
        println!("{}", serde_json::to_string(item)?);
    }
    Ok(())
}

/// Formats nanoseconds as seconds.
fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}
