// SPDX-License-Identifier: MIT OR Apache-2.0
//! `baton net`: the networks between guests of a running host.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use comfy_table::{CellAlignment, Table, presets};
use switch::Mac;
use wire::NetPort;

use super::{DONE, connect, print_lines};
use crate::args::{Format, NetCapture, NetCommand, NetShow, Target};
use crate::client::{Client, Wanted};
use crate::clock::booted_ms;
use crate::pcapng::PcapNg;
use crate::suggest::did_you_mean;

/// The columns with numbers.
const NUMBERS: [usize; 5] = [4, 5, 6, 7, 8];

pub(super) fn run(target: &Target, command: &NetCommand) -> Result<u8> {
    let mut client = connect(target)?;
    match command {
        NetCommand::List(format) => list(&mut client, *format),
        NetCommand::Show(order) => show(&mut client, order),
        NetCommand::Capture(order) => capture(&mut client, order),
    }
}

fn capture(client: &mut Client, order: &NetCapture) -> Result<u8> {
    let NetCapture { network, guest, snap, seconds, output } = order;
    let path = output.clone().unwrap_or_else(|| PathBuf::from(format!("{network}.pcapng")));
    let is_piped = path == Path::new("-");
    let time = Duration::try_from_secs_f64(*seconds).context("--seconds is a number of seconds")?;
    let booted = Duration::from_millis(booted_ms(client.info()?.uptime_ns));
    let wanted = Wanted { network, guest: guest.as_deref(), snap_bytes: *snap };
    let (mut file, mut lost) = (None, 0);
    let cut_short = client.capture(wanted, time, |page| {
        // Nothing is overwritten where the host captures nothing.
        let file = match &mut file {
            Some(file) => file,
            None => file.insert(PcapNg::new(destination(&path)?, booted, *snap)?),
        };
        lost = page.lost;
        file.add(&page)
    })?;
    let frames = file.map_or(0, |file| file.frames());
    if let Some(reason) = cut_short {
        eprintln!("baton: the capture ended before its time: {reason}");
    }
    let place = if is_piped { "standard output".to_owned() } else { path.display().to_string() };
    eprintln!("{frames} frames in {place}; the host had no room for {lost} more");
    Ok(DONE)
}

/// The file of a capture.
fn destination(path: &Path) -> Result<Box<dyn Write>> {
    if path == Path::new("-") {
        return Ok(Box::new(io::stdout()));
    }
    let file = File::create(path).with_context(|| format!("{} cannot be written", path.display()))?;
    Ok(Box::new(BufWriter::new(file)))
}

fn list(client: &mut Client, format: Format) -> Result<u8> {
    let ports = client.net_ports()?;
    match format.json {
        true => print_lines(&ports)?,
        false => println!("{}", table(&ports)),
    }
    Ok(DONE)
}

fn show(client: &mut Client, order: &NetShow) -> Result<u8> {
    let all = client.net_ports()?;
    let ports: Vec<NetPort> = all.iter().filter(|port| port.network == order.network).cloned().collect();
    if ports.is_empty() {
        let suggestion = did_you_mean(&order.network, all.iter().map(|port| port.network.as_str()));
        bail!("no guest is on a network {:?}{suggestion}; see `baton net list`", order.network);
    }
    match order.format.json {
        true => print_lines(&ports)?,
        false => ports.iter().for_each(|port| println!("{}", details(port))),
    }
    Ok(DONE)
}

fn table(ports: &[NetPort]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["NETWORK", "GUEST", "MAC", "STATE", "SENT", "BYTES", "RECEIVED", "BYTES", "DROPPED"]);
    for port in ports {
        table.add_row([
            port.network.clone(),
            port.guest.clone(),
            Mac(port.mac).to_string(),
            state(port).to_owned(),
            port.sent.frames.to_string(),
            port.sent.bytes.to_string(),
            port.received.frames.to_string(),
            port.received.bytes.to_string(),
            port.drops.total().to_string(),
        ]);
    }
    for column in NUMBERS {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

fn state(port: &NetPort) -> &'static str {
    if port.is_up { "up" } else { "down" }
}

/// Describes a port in a few lines.
fn details(port: &NetPort) -> String {
    let rights = [(port.is_isolated, ", isolated"), (port.is_trusted, ", trusted")];
    let rights: String = rights.into_iter().filter(|(has, _)| *has).map(|(_, word)| word).collect();
    let stations = if port.is_trusted { format!(", {} other stations", port.stations) } else { String::new() };
    let drops = port.drops.by_reason().into_iter().filter(|(_, count)| *count > 0);
    let drops: Vec<String> = drops.map(|(reason, count)| format!("{count} {reason}")).collect();
    let drops = if drops.is_empty() { "none".to_owned() } else { drops.join(", ") };
    format!(
        "{} {} is {}, mtu {}, {}{rights}{stations}\n  sent      {} frames, {} bytes\n  received  {} frames, {} bytes\n  \
         dropped   {drops}",
        port.guest,
        Mac(port.mac),
        state(port),
        port.mtu,
        vlans(port),
        port.sent.frames,
        port.sent.bytes,
        port.received.frames,
        port.received.bytes,
    )
}

fn vlans(port: &NetPort) -> String {
    let list = port.vlans.iter().map(u16::to_string).collect::<Vec<_>>().join(", ");
    match (port.is_tagged, port.vlans.as_slice()) {
        (false, [0]) => "no VLAN".to_owned(),
        (false, _) => format!("VLAN {list}"),
        (true, _) => format!("VLANs {list} (tagged)"),
    }
}

#[cfg(test)]
mod tests {
    use wire::{NetDrops, NetFrames};

    use super::*;

    fn port() -> NetPort {
        NetPort {
            network: "lan".to_owned(),
            mtu: 1500,
            guest: "web".to_owned(),
            mac: [0x52, 0x54, 0, 0, 0, 1],
            is_up: true,
            vlans: vec![0],
            is_tagged: false,
            is_isolated: false,
            is_trusted: false,
            stations: 0,
            sent: NetFrames { frames: 3, bytes: 180 },
            received: NetFrames { frames: 2, bytes: 120 },
            drops: NetDrops { full: 7, source: 1, ..NetDrops::default() },
        }
    }

    #[test]
    fn a_port_is_a_row() {
        let text = table(&[port()]).to_string();
        let row: Vec<&str> = text.lines().nth(1).expect("a row").split_whitespace().collect();
        assert_eq!(row, ["lan", "web", "52:54:00:00:00:01", "up", "3", "180", "2", "120", "8"]);
    }

    #[test]
    fn a_port_is_shown_with_its_rights_and_drops() {
        assert_eq!(
            details(&port()),
            "web 52:54:00:00:00:01 is up, mtu 1500, no VLAN\n  sent      3 frames, 180 bytes\n  received  2 frames, 120 \
             bytes\n  dropped   1 source, 7 full"
        );
        let (vlans, drops) = (vec![10, 20], NetDrops::default());
        let uplink = NetPort { vlans, is_tagged: true, is_trusted: true, stations: 4, drops, is_up: false, ..port() };
        let text = details(&uplink);
        assert!(
            text.starts_with("web 52:54:00:00:00:01 is down, mtu 1500, VLANs 10, 20 (tagged), trusted, 4 other"),
            "{text}"
        );
        assert!(text.ends_with("dropped   none"), "{text}");
    }
}
