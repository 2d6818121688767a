// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads of 4 KiB at random places of a disk, 32 at a time, by a guest whose disk nbdkit serves from memory: with Baton
//! in another guest; with KVM in another guest as well, or in the host itself. All share one CPU, and the guests are
//! the same.

use anyhow::{Context as _, Result, bail};
use baton::config::Iommu;
use lab::{Accelerator, What};

use super::machine::{self, CID, WEB};
use crate::Context;
use crate::kvm::{self, Peer};
use crate::rounds::{END, Round, WRONG};
use crate::setup::{HostSetup, temporary_folder};
use crate::statistics::median;

/// The guest reads so often, one time after the other; the first one is left out.
const ROUNDS: usize = 4;
const TASKS: &str = "reads:32:3000,reads:32:3000,reads:32:3000,reads:32:3000,wait";
const STORAGE_OPTIONS: &str = "console=ttyS0 loglevel=5 disk=memory";
const NBDKIT: &str = "target/guests/nbdkit.cpio";
const STORAGE_DRIVERS: &[&str] = &["virtio_pci", "vmw_vsock_virtio_transport"];
const WEB_DRIVERS: &[&str] = &["virtio_pci", "virtio_blk"];

/// The place of KVM's nbdkit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Server {
    Guest,
    Host,
}

/// Returns Baton's reads in a second.
pub(super) fn own(context: &Context) -> Result<f64> {
    let folder = temporary_folder()?;
    let mut setup = machine::setup(context, folder.path(), TASKS, false)?;
    for guest in setup.guests.iter_mut().filter(|guest| guest.name == machine::STORAGE) {
        guest.cmdline = STORAGE_OPTIONS.to_owned();
        guest.functions.clear();
    }
    // In one thread, as the machine with KVM.
    let accelerator = Accelerator::TcgSingle;
    let setup = HostSetup { devices: Vec::new(), iommu: Iommu::None, accelerator, ..setup };
    let (mut host, mut console) = (setup.start(context)?, String::new());
    let lines = host.wait(context.timeout, "the guest's reads", |what| {
        let What::Console { name, bytes } = what else { return None };
        if name == WEB {
            console += &String::from_utf8_lossy(bytes);
        }
        let (whole, _) = console.rsplit_once('\n')?;
        let lines = whole.lines().filter(|line| is_report(line)).map(str::to_owned).collect::<Vec<_>>();
        (lines.len() == ROUNDS || lines.iter().any(|line| line.starts_with(WRONG))).then_some(lines)
    })?;
    rate(&lines)
}

/// Returns KVM's.
pub(super) fn kvm(context: &Context, server: Server) -> Result<f64> {
    let folder = temporary_folder()?;
    let guests = [
        ("web.cpio", kvm::initrd(context, None, WEB_DRIVERS)?),
        ("storage.cpio", kvm::initrd(context, Some(NBDKIT), STORAGE_DRIVERS)?),
    ];
    let below = match server {
        Server::Guest => Vec::new(),
        Server::Host => std::fs::read(context.made(NBDKIT)?)?,
    };
    let modules: &[&str] = if server == Server::Guest { &["vhost_vsock"] } else { &[] };
    let script = script(server);
    let mut machine = kvm::start(context, folder.path(), Peer { modules, guests: &guests, below, script: &script })?;
    let mut lines = Vec::new();
    while lines.len() < ROUNDS {
        let line = machine.wait("the guest's reads", |_, line| {
            (is_report(line) || line.starts_with("peer: cannot")).then(|| line.to_owned())
        })?;
        if line.starts_with("peer: ") {
            bail!("the machine with KVM printed {line:?}");
        }
        lines.push(line);
    }
    rate(&lines)
}

/// Starts nbdkit, or its guest, and the guest that reads once that is there.
fn script(server: Server) -> String {
    let (start, address) = match server {
        Server::Guest => (
            format!(
                r#"guest storage storage.cpio "disk=memory" -device "vhost-vsock-pci,guest-cid={CID},disable-legacy=on" &
until grep -q "storage: serving" /storage.log; do sleep 1; done
sleep 2"#
            ),
            format!("server.type=vsock,server.cid={CID},server.port=10809"),
        ),
        Server::Host => (
            r#"dd if=/dev/zero of=/disk bs=1M count=64 2>/dev/null
/bin/nbdkit --unix /nbd.sock --filter=noparallel file /disk serialize=connections || echo "peer: cannot run nbdkit: $?""#
                .to_owned(),
            "server.type=unix,server.path=/nbd.sock".to_owned(),
        ),
    };
    format!(
        r#"{start}
guest web web.cpio "agent=drivers,{TASKS}" \
  -blockdev "driver=nbd,node-name=disk,export=web-root,open-timeout=60,{address}" \
  -device "virtio-blk-pci,drive=disk,disable-legacy=on"
"#
    )
}

fn is_report(line: &str) -> bool {
    line.starts_with(END) || line.starts_with(WRONG)
}

/// The median rate of all reports but the first.
fn rate(lines: &[String]) -> Result<f64> {
    let rounds = lines.iter().map(|line| Round::parse(line)).collect::<Result<Vec<_>>>()?;
    let rates: Vec<f64> = rounds.iter().skip(1).map(Round::rate).collect();
    median(&rates).context("there are no reads")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_round_does_not_count() {
        let line = |count| format!("reads depth=32 us=1000000 count={count} errors=0");
        assert!((rate(&[900, 20, 40, 30].map(line)).expect("rates") - 30.0).abs() < 1e-9);
        assert!(rate(&[line(900)]).is_err());
        assert_eq!(TASKS.matches("reads:").count(), ROUNDS);
    }
}
