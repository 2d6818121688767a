// SPDX-License-Identifier: MIT OR Apache-2.0
//! `baton restart`: replaces the running image; the new one reports the times.

use anyhow::{Result, bail};
use wire::{ReplyBody, RequestBody, RestartReport};

use super::shipment::{self, Shipment, with_build};
use super::{DONE, connect};
use crate::args::{Format, Target};
use crate::client::Client;
use crate::consent::{Consent, Ending};
use crate::size::Size;

/// The kind of restart.
#[derive(Clone, Copy, Debug)]
pub(super) struct How {
    /// Permit an image of a lower security version.
    pub allow_downgrade: bool,
    /// Guests may end.
    pub consent: Consent,
}

pub(super) fn run(target: &Target, shipment: Option<Shipment>, how: How, format: Format) -> Result<u8> {
    let is_downgrade = how.allow_downgrade;
    let mut client = connect(target)?;
    how.consent.obtain(|| client.vms(), Ending { order: "the restart", guests: None })?;
    if let Some(shipment) = &shipment {
        shipment.send(&mut client, is_downgrade, format)?;
    }
    shipment::permit_downgrade(&mut client, is_downgrade)?;
    if !format.json {
        println!("the host at {} is restarting: its guests end, and start again", target.address()?);
    }
    let before = client.info()?.generation;
    let report = match restart(&mut client, shipment.is_some()) {
        Ok(report) => report,
        Err(error) => return shipment::after_lost_answer(&mut client, before, error).map(|()| DONE),
    };
    match format.json {
        true => println!("{}", serde_json::to_string(&report)?),
        false => print!("{}", text(&report)),
    }
    Ok(DONE)
}

fn restart(client: &mut Client, is_uploaded: bool) -> Result<RestartReport> {
    let body = if is_uploaded { RequestBody::RestartUploaded } else { RequestBody::Restart };
    match shipment::request(client, &body, is_uploaded)? {
        ReplyBody::Restarted(report) => Ok(report),
        other => bail!("the host answered something else ({other:?}); use tool and host of one release"),
    }
}

fn text(report: &RestartReport) -> String {
    let milliseconds = |nanoseconds: u64| format!("{:.1} ms", nanoseconds as f64 / 1e6);
    let old = with_build(&report.old_version, &report.old_build);
    let new = with_build(&report.new_version, &report.new_build);
    let rows = [
        ("generation", format!("{} ({old} -> {new})", report.generation)),
        ("host paused", milliseconds(report.host_blackout_ns)),
        ("VMs paused", report.machine_blackout_ns.map_or("no guest was started".to_owned(), milliseconds)),
        ("CPUs", format!("{} ({} lost)", report.cpus, report.cpus_lost)),
        ("image", checked(report)),
    ];
    let text: String = rows.iter().map(|(name, value)| format!("{name:<12} {value}\n")).collect();
    text + &shipment::signature(report.signer.as_deref())
}

fn checked(report: &RestartReport) -> String {
    let took = |bytes: u64, ns: u64| match bytes {
        0 => "nothing".to_owned(),
        bytes => format!("{} hashed in {:.1} ms", Size { bytes }, ns as f64 / 1e6),
    };
    let before = took(report.bytes_hashed_before, report.hashing_before_ns);
    let blackout = took(report.bytes_hashed_in_blackout, report.hashing_in_blackout_ns);
    format!("verify={}: {before} before guests stopped, {blackout} in the blackout", report.verify)
}

#[cfg(test)]
mod tests {
    use wire::Verify;

    use super::*;

    #[test]
    fn a_restart_is_reported_line_by_line() {
        let report = RestartReport {
            generation: 2,
            old_version: "0.1.0".to_owned(),
            new_version: "0.2.0".to_owned(),
            host_blackout_ns: 3_250_000,
            machine_blackout_ns: Some(71_000_000),
            cpus: 3,
            cpus_lost: 1,
            verify: Verify::Sha256,
            bytes_hashed_before: 800 << 10,
            hashing_before_ns: 1_500_000,
            bytes_hashed_in_blackout: 800 << 10,
            hashing_in_blackout_ns: 1_400_000,
            old_build: "a1b2c3".to_owned(),
            new_build: "d4e5f6-dirty".to_owned(),
            signer: Some("00ff00ff00ff00ff".to_owned()),
        };
        let expected = "generation   2 (0.1.0 (a1b2c3) -> 0.2.0 (d4e5f6-dirty))\nhost paused  3.2 ms\nVMs paused   \
                        71.0 ms\nCPUs         3 (1 lost)\n\
             image        verify=sha256: 800.0 KiB hashed in 1.5 ms before guests stopped, 800.0 KiB hashed in 1.4 ms \
             in the blackout\nsigned by    00ff00ff00ff00ff\n";
        assert_eq!(text(&report), expected);
        let early =
            RestartReport { verify: Verify::Early, bytes_hashed_in_blackout: 0, signer: None, ..report.clone() };
        assert!(
            text(&early)
                .ends_with("verify=early: 800.0 KiB hashed in 1.5 ms before guests stopped, nothing in the blackout\n")
        );
        let none = RestartReport { machine_blackout_ns: None, ..report };
        assert!(text(&none).contains("VMs paused   no guest was started\n"));
    }
}
