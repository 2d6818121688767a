// SPDX-License-Identifier: MIT OR Apache-2.0
//! What each command does.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use shipment::Shipment;

use crate::args::{Cli, Command, Target};
use crate::client::Client;
use crate::config::Config;
use crate::lab::{default_image, rundir};
use crate::size::Size;

mod bench;
mod console;
mod cpu;
mod demo;
mod detach;
mod down;
mod image;
mod info;
mod key;
mod pci;
mod perf;
mod profile;
mod records;
mod restart;
mod session;
mod shipment;
mod stat;
mod symbolize;
mod terminal;
mod timeline;
mod up;
mod update;
mod vm;

/// Status of a command that did what it should.
const DONE: u8 = 0;

/// Carries out what the command line says; returns the process's exit status.
pub fn run(cli: Cli) -> Result<u8> {
    match cli.command {
        Command::Bundle { config, output } => bundle(&config, &output),
        Command::Image { command } => image::run(&command),
        Command::Up(args) => up::run(&args),
        Command::Down { target, timeout } => down::run(&target, timeout),
        Command::Demo { config, lab } => demo::run(config, &lab),
        Command::Vm { target, command } => vm::run(&target, &command),
        Command::Cpu { target, command } => cpu::run(&target, &command),
        Command::Pci { target, format } => pci::run(&target, format),
        Command::Log(args) => records::log(&args),
        Command::Events(args) => records::events(&args),
        Command::Restart { bundle, image, target, format } => {
            restart::run(&target, bundle.as_deref(), image.as_deref(), format)
        }
        Command::Update { bundle, image, previous, target, dry_run, format } => {
            let shipment = Shipment::read(bundle.as_deref(), image.as_deref())?;
            update::run(&target, shipment, previous, dry_run, format)
        }
        Command::Key { command } => key::run(&command),
        Command::Perf(args) => profile::run(&args),
        Command::Timeline(args) => timeline::run(&args),
        Command::Info { target, format } => info::run(&target, format),
        Command::Bench(args) => bench::run(&args),
        Command::Symbolize { log, image } => symbolize::run(log.as_deref(), image.as_deref()),
    }
}

fn bundle(config: &Path, output: &Path) -> Result<u8> {
    let config = Config::load(config)?;
    let bytes = crate::bundle::build(&config, default_image(None).ok().as_deref())?;
    fs::write(output, &bytes).with_context(|| format!("{} cannot be written", output.display()))?;
    let (guests, size) = (config.guests.len(), Size { bytes: bytes.len() as u64 });
    println!("{}: {guests} guest{}, {size}", output.display(), if guests == 1 { "" } else { "s" });
    Ok(DONE)
}

/// A conversation with the running host that is meant.
fn connect(target: &Target) -> Result<Client> {
    Client::connect(&rundir::control_socket_of(&target.name)?)
}

/// Nanoseconds as seconds, for people.
fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}
