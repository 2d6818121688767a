// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes of a running host's configuration: `baton vm create`, `set`, `baton config` and `baton file`.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use bundle::{Manifest, NetworkConfig};
use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;
use wire::{FileInfo, MAX_PAGE_BYTES, RequestBody, UploadKind, VmSettings};

use super::orders::check_name;
use super::{DONE, connect, shipment};
use crate::args::{ConfigCommand, FileCommand, Format, Target, VmCreate, VmSet};
use crate::bundle::addition;
use crate::client::Client;
use crate::config::{Config, Guest, show as shown};
use crate::size::Size;

/// `baton config show`.
pub(super) fn show(target: &Target, command: &ConfigCommand) -> Result<u8> {
    let ConfigCommand::Show = command;
    print!("{}", shown::host_toml(&connect(target)?.config()?));
    Ok(DONE)
}

/// `baton vm set`.
pub(super) fn set(client: &mut Client, order: &VmSet) -> Result<u8> {
    check_name(client, &order.vm)?;
    let settings = VmSettings {
        weight: order.weight,
        on_panic: order.on_panic.clone(),
        autostart: order.autostart,
        vcpus: order.vcpus,
        memory_bytes: order.memory.map(|memory| memory.bytes),
        cap_percent: order.cap,
        memory_max_bytes: order.memory_max.map(|memory| memory.bytes),
    };
    ensure!(settings != VmSettings::default(), "no setting of {} is named; name one, as `--weight 200`", order.vm);
    for settings in settings.in_requests() {
        client.order(RequestBody::VmSet { name: order.vm.clone(), settings })?;
    }
    println!("{} set", order.vm);
    Ok(DONE)
}

/// `baton vm create`: sends the files that the host does not have, then the description.
pub(super) fn create(client: &mut Client, order: &VmCreate) -> Result<u8> {
    let (guest, networks) = described(order, client)?;
    let (manifest, files) = addition(&guest, &networks)?;
    let manifest = manifest.to_content();
    let (length, name) = (manifest.len(), guest.name);
    ensure!(length <= MAX_PAGE_BYTES, "the description of {name} has {length} bytes; {MAX_PAGE_BYTES} are possible");
    let known = client.files()?;
    for (name, content) in &files {
        if !known.iter().any(|file| file.name == *name) {
            shipment::upload(client, UploadKind::File, content)?;
        }
    }
    client.order(RequestBody::VmCreate { manifest })?;
    println!("{name} created");
    if !order.no_start {
        client.order(RequestBody::VmStart { name: name.clone() })?;
        println!("{name} started");
    }
    Ok(DONE)
}

/// Returns the guest, and the networks that its devices are on.
fn described(order: &VmCreate, client: &mut Client) -> Result<(Guest, Vec<NetworkConfig>)> {
    let host = client.config()?;
    let Some(path) = &order.file else { return by_options(order, &host) };
    let Config { mut guests, networks, .. } = Config::load_beside(path, &host)?;
    match (guests.pop(), guests.is_empty()) {
        (Some(guest), true) => Ok((guest, networks)),
        (None, _) => bail!("{} describes no guest; add a [[guest]]", path.display()),
        _ => bail!("{} describes several guests; leave one", path.display()),
    }
}

/// The options of a command as a host.toml has them, so that they are checked as its keys are.
#[derive(Serialize)]
struct Options<'o> {
    name: &'o str,
    kernel: &'o Path,
    initrd: Option<&'o Path>,
    memory: String,
    memory_max: Option<String>,
    vcpus: Option<u32>,
    cmdline: Option<&'o str>,
    nic: Vec<Nic<'o>>,
    disk: Vec<Disk<'o>>,
}

#[derive(Serialize)]
struct Nic<'o> {
    network: &'o str,
}

#[derive(Serialize)]
struct Disk<'o> {
    nbd: &'o str,
}

fn kibibytes(size: Size) -> String {
    format!("{}KiB", size.bytes >> 10)
}

fn by_options(order: &VmCreate, host: &Manifest) -> Result<(Guest, Vec<NetworkConfig>)> {
    // The command line demands these together.
    let (Some(name), Some(kernel), Some(memory)) = (&order.name, &order.kernel, order.memory) else {
        bail!("name a host.toml, or --name, --kernel and --memory");
    };
    let options = Options {
        name,
        kernel,
        initrd: order.initrd.as_deref(),
        memory: kibibytes(memory),
        memory_max: order.memory_max.map(kibibytes),
        vcpus: order.vcpus,
        cmdline: order.cmdline.as_deref(),
        nic: order.networks.iter().map(|network| Nic { network }).collect(),
        disk: order.disks.iter().map(|nbd| Disk { nbd }).collect(),
    };
    let text = toml::to_string(&BTreeMap::from([("guest", [options])]))?;
    // Paths are relative to the present folder.
    let config = Config::parse_beside(Path::new("host.toml"), &text, host).map_err(|error| {
        let messages: Vec<_> = error.mistakes.into_iter().map(|mistake| mistake.message).collect();
        anyhow!(messages.join("\n"))
    })?;
    let guest = config.guests.into_iter().next().context("the options describe no guest")?;
    Ok((guest, config.networks))
}

/// `baton file`.
pub(super) fn files(target: &Target, command: &FileCommand) -> Result<u8> {
    let mut client = connect(target)?;
    match command {
        FileCommand::List(format) => list(&client.files()?, *format)?,
        FileCommand::Remove { names } => {
            for name in names {
                client.order(RequestBody::FileRemove { name: name.clone() })?;
                println!("{name} removed");
            }
        }
    }
    Ok(DONE)
}

fn list(files: &[FileInfo], format: Format) -> Result<()> {
    if format.json {
        for file in files {
            println!("{}", serde_json::to_string(file)?);
        }
        return Ok(());
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["FILE", "SIZE", "FROM", "NEEDED"]);
    for file in files {
        let from = if file.is_sent { "sent" } else { "bundle" };
        let needed = if file.is_needed { "yes" } else { "no" };
        table.add_row([file.name.clone(), Size { bytes: file.bytes }.to_string(), from.into(), needed.into()]);
    }
    if let Some(column) = table.column_mut(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    println!("{table}");
    Ok(())
}

#[cfg(test)]
mod tests;
