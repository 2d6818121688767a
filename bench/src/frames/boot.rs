// SPDX-License-Identifier: MIT OR Apache-2.0
//! One boot of a host with a small guest, and the figures of its metadata from its log.

use std::ffi::OsString;
use std::fs;

use anyhow::Result;
use baton::config::Guest;
use baton::size::Size;
use lab::What;

use crate::Context;
use crate::setup::{COUNT_INSTRUCTIONS, HostSetup, Started, keeper};

pub(super) const GIB: u64 = 1 << 30;
/// Memory that must stay free beside what an emulated machine touches.
const SPARE_BYTES: f64 = 4.0 * GIB as f64;

const GUEST_MEMORY: Size = Size::mebibytes(16);

/// A host to boot.
#[derive(Clone, Debug)]
pub(super) struct Boot {
    pub size_gib: u64,
    pub options: String,
    /// True if the bench waits for records that were deferred.
    pub waits: bool,
}

/// The metadata that a boot has written.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Account {
    /// Of the boot's step that writes metadata.
    pub boot_instructions: f64,
    pub before_guest_bytes: f64,
    /// With what was written later, where that was waited for.
    pub total_bytes: Option<f64>,
    pub is_modelled: bool,
}

impl Boot {
    /// Boots, and reads the account.
    pub fn run(&self, context: &Context) -> Result<Account> {
        let guest = keeper(context, "do=fresh", GUEST_MEMORY)?;
        let mut lines = Vec::new();
        let mut host = start(context, self.size_gib * GIB, guest, &self.options)?;
        host.wait(context.timeout, &format!("the account of a host of {} GiB", self.size_gib), |what| {
            let What::HostLine(line) = what else { return None };
            lines.push(line.clone());
            read(&lines, self.waits)
        })
    }
}

/// Starts a host with this much memory, which the emulator reserves only when it is written to.
pub(super) fn start(context: &Context, bytes: u64, guest: Guest, options: &str) -> Result<Started> {
    let backend = format!("memory-backend-ram,id=ram,size={bytes},reserve=off");
    let memory = ["-object", &backend, "-machine", "memory-backend=ram"];
    let setup = HostSetup {
        guests: vec![guest],
        options: format!("log=debug {options}"),
        extra: COUNT_INSTRUCTIONS.into_iter().chain(memory).map(OsString::from).collect(),
        ..HostSetup::new(Size { bytes })
    };
    setup.start(context)
}

/// Returns whether this machine can give an emulated one so much memory.
pub(super) fn is_room_for(bytes: f64) -> bool {
    let info = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = info.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok()).unwrap_or(0.0);
    bytes == 0.0 || kib * 1024.0 > bytes + SPARE_BYTES
}

/// The account, once all of its lines are there.
fn read(lines: &[String], waits: bool) -> Option<Account> {
    let before = |mark: &str| lines.iter().find_map(|line| number_before(line, mark));
    let total_bytes = before(" bytes of records are written");
    let account = Account {
        boot_instructions: before(" cycles at boot")?,
        before_guest_bytes: before(" bytes of metadata before the first guest")?,
        total_bytes,
        is_modelled: false,
    };
    (!waits || total_bytes.is_some()).then_some(account)
}

/// The number right before `mark`.
pub(super) fn number_before(line: &str, mark: &str) -> Option<f64> {
    line.split_once(mark)?.0.rsplit(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hosts_lines_give_bytes_and_instructions() {
        let lines = [
            "[ 0.1] cpu0 debug ledger: Deferred, hvo true: 631649 bytes in 638093 cycles at boot",
            "[ 0.2] cpu0 debug background: 700000 bytes of metadata before the first guest",
            "[ 0.3] cpu0 debug background: 8000000 bytes of records are written, the last 5 cycles (1 us) after the \
             first guest",
        ]
        .map(str::to_owned);
        let expected = Account {
            boot_instructions: 638_093.0,
            before_guest_bytes: 700_000.0,
            total_bytes: Some(8_000_000.0),
            is_modelled: false,
        };
        assert_eq!(read(&lines, true), Some(expected.clone()));
        assert_eq!(read(&lines[..2], false), Some(Account { total_bytes: None, ..expected }));
        assert_eq!((read(&lines[..2], true), read(&lines[..1], false)), (None, None));
    }
}
