// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hosts that the tool reaches over a serial line, as one on a machine of its own: no broker is between.

use std::path::Path;

use anyhow::{Result, ensure};
use e2e::place::Build;
use e2e::recipe::Recipe;
use e2e::serial::{Noise, SerialHost, terminal_server};
use e2e::tool::Operator;

use super::Rule;

pub const RULES: &[Rule] =
    &[("a_host_is_updated_over_a_serial_port_and_over_tcp", a_host_is_updated_over_a_serial_port_and_over_tcp)];

pub const LONG_RULES: &[Rule] =
    &[("an_image_is_sent_over_a_line_that_damages_it", an_image_is_sent_over_a_line_that_damages_it)];

const GUEST: &str = "keeper";
const QUIET: Noise = |_, byte| byte;

/// Returns what the tool at `address` prints.
fn run(operator: &Operator, address: &str, arguments: &[&str]) -> Result<String> {
    operator.run(&[&["--connect", address], arguments].concat())?.well()
}

fn a_host_is_updated_over_a_serial_port_and_over_tcp() -> Result<()> {
    let host = SerialHost::start(&Recipe::new().beating(GUEST)?, QUIET)?;
    let (operator, port) = (Operator::with("")?, host.address());
    let info = run(&operator, &port, &["info", "--json"])?;
    ensure!(info.contains("\"generation\":1,"), "{info}");
    // The terminal server is the tool as well: it has the port, and its clients have TCP.
    let server = Operator::with("")?;
    let address = format!("tcp:{}", terminal_server(move || server.command(&["relay", "--connect", &port]))?);
    let vms = run(&operator, &address, &["vm", "list"])?;
    ensure!(vms.contains(GUEST) && vms.contains("running"), "{vms}");
    let updated = run(&operator, &address, &["update"])?;
    ensure!(updated.contains("generation   2 ") && updated.contains("blackout"), "{updated}");
    let vms = run(&operator, &address, &["vm", "list"])?;
    ensure!(vms.contains("running"), "{vms}");
    Ok(())
}

/// One byte in 40,000 is another: about every tenth frame of a file.
fn an_image_is_sent_over_a_line_that_damages_it() -> Result<()> {
    let noise: Noise = |place, byte| if place % 40_009 == 40_000 { byte ^ 0x55 } else { byte };
    let host = SerialHost::start(&Recipe::new().beating(GUEST)?, noise)?;
    let (operator, port) = (Operator::with("")?, host.address());
    let image = Build::Shipped.file()?;
    let image: &Path = &image;
    let updated = run(&operator, &port, &["update", "--image", &image.display().to_string()])?;
    ensure!(updated.contains(" MiB in ") && updated.contains("generation   2 "), "{updated}");
    let events = run(&operator, &port, &["events"])?;
    ensure!(events.contains("damaged") || events.contains("garbage"), "the line damaged nothing: {events}");
    let info = run(&operator, &port, &["info", "--json"])?;
    ensure!(info.contains("\"generation\":2,"), "{info}");
    Ok(())
}
