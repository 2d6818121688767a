// SPDX-License-Identifier: MIT OR Apache-2.0
//! `baton cpu`: the CPUs of a running host.

use std::time::Duration;

use anyhow::{Result, bail};
use comfy_table::{Table, presets};
use wire::{CpuInfo, ReplyBody, RequestBody};

use super::{DONE, connect};
use crate::args::{CpuCommand, CpuOrder, Format, Target};
use crate::client::Client;

/// The time limit for a CPU to go offline or online. The host itself gives up sooner, and reports the reason.
const ORDER_TIMEOUT: Duration = Duration::from_secs(30);

pub(super) fn run(target: &Target, command: &CpuCommand) -> Result<u8> {
    let mut client = connect(target)?;
    match command {
        CpuCommand::List(format) => list(&mut client, *format),
        CpuCommand::Offline(cpu) => order(&mut client, cpu, RequestBody::CpuOffline { index: cpu.cpu }, "offline"),
        CpuCommand::Online(cpu) => order(&mut client, cpu, RequestBody::CpuOnline { index: cpu.cpu }, "online"),
    }
}

fn list(client: &mut Client, format: Format) -> Result<u8> {
    let cpus = client.cpus()?;
    if format.json {
        for cpu in &cpus {
            println!("{}", serde_json::to_string(cpu)?);
        }
    } else {
        println!("{}", table(&cpus));
    }
    Ok(DONE)
}

fn table(cpus: &[CpuInfo]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["CPU", "APIC", "STATE", "BUSY", "VCPUS", "REASON"]);
    for cpu in cpus {
        let vcpus: Vec<String> = cpu.vcpus.iter().map(|vcpu| format!("{}/{}", vcpu.vm, vcpu.vcpu)).collect();
        table.add_row([
            cpu.index.to_string(),
            cpu.apic_id.to_string(),
            cpu.state.to_string(),
            cpu.busy_permille.map_or_else(String::new, |permille| format!("{} %", permille / 10)),
            vcpus.join(","),
            cpu.reason.clone().unwrap_or_default(),
        ]);
    }
    table
}

fn order(client: &mut Client, cpu: &CpuOrder, body: RequestBody, done: &str) -> Result<u8> {
    match client.request_within(ORDER_TIMEOUT, body)? {
        ReplyBody::Done => {}
        other => bail!("the host answered something else ({other:?}); use tool and host of one release"),
    }
    match cpu.format.json {
        true => println!("{}", serde_json::json!({ "cpu": cpu.cpu, "done": done })),
        false => println!("CPU {} is {done}", cpu.cpu),
    }
    Ok(DONE)
}
