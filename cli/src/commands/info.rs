// SPDX-License-Identifier: MIT OR Apache-2.0
//! `baton info`: describes a running host.

use anyhow::Result;
use serde::Serialize;
use wire::{ApicMode, HostInfo, Virtualization, Vulnerability};

use super::shipment::with_build;
use super::{DONE, connect, seconds};
use crate::args::{Format, Target};
use crate::clock;
use crate::size::Size;

/// A host and the time of its boot, by this machine's clock.
#[derive(Serialize)]
struct Described<'i> {
    #[serde(flatten)]
    info: &'i HostInfo,
    booted: &'i str,
}

pub(super) fn run(target: &Target, format: Format) -> Result<u8> {
    let info = connect(target)?.info()?;
    let booted = clock::since_boot(clock::booted_ms(info.uptime_ns), 0);
    match format.json {
        true => println!("{}", serde_json::to_string(&Described { info: &info, booted: &booted })?),
        false => print!("{}", text(&info, &booted)),
    }
    Ok(DONE)
}

/// `baton info --vulnerabilities`.
pub(super) fn vulnerabilities(target: &Target, format: Format) -> Result<u8> {
    let rows = connect(target)?.vulnerabilities()?;
    match format.json {
        true => println!("{}", serde_json::to_string(&rows)?),
        false => print!("{}", vulnerability_lines(&rows)),
    }
    Ok(DONE)
}

fn vulnerability_lines(rows: &[Vulnerability]) -> String {
    let width = rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
    rows.iter().map(|Vulnerability { name, status }| format!("{name:<width$}  {status}\n")).collect()
}

fn text(info: &HostInfo, booted: &str) -> String {
    let size = |bytes| Size { bytes }.to_string();
    let virtualization = match info.virtualization {
        Virtualization::None => "none: guests cannot run",
        Virtualization::Svm => "AMD SVM with nested paging",
        Virtualization::Vmx => "Intel VMX with extended page tables",
    };
    let interrupts = match info.apic_mode {
        ApicMode::XApic => "xAPIC",
        ApicMode::X2Apic => "x2APIC",
    };
    let rows = [
        ("version", with_build(&info.version, &info.build)),
        ("signed by", info.signer.clone().unwrap_or_else(|| "no checked signature".to_owned())),
        ("hand-over", format!("versions {} to {}", info.oldest_handover, info.newest_handover)),
        ("security", security(info)),
        ("generation", info.generation.to_string()),
        ("up for", format!("{:.1} s, since {booted}", seconds(info.uptime_ns))),
        ("CPUs", info.cpus.to_string()),
        ("memory", format!("{} ({} free)", size(info.memory_total_bytes), size(info.memory_free_bytes))),
        ("host's own", format!("{} (image {})", size(info.host_overhead_bytes), size(info.image_bytes))),
        ("guests by", virtualization.to_owned()),
        ("features", info.features.join(" ")),
        ("interrupts", interrupts.to_owned()),
        ("unclaimed", unclaimed(info)),
        ("time stamps", format!("{:.3} MHz", info.tsc_hz as f64 / 1e6)),
    ];
    rows.iter().map(|(name, value)| format!("{name:<12} {value}").trim_end().to_owned() + "\n").collect()
}

/// Formats the security version, and the host's demands on images that replace its own.
fn security(info: &HostInfo) -> String {
    let older = if info.permits_downgrade { "refused without --allow-downgrade" } else { "refused" };
    let keys = match info.trusted_keys.len() {
        0 => "no key is trusted, so no signature is wanted".to_owned(),
        1 => "1 key is trusted".to_owned(),
        count => format!("{count} keys are trusted"),
    };
    format!("version {}, older images are {older}; {keys}", info.security_version)
}

/// Formats the numbers of NMIs and interrupts without an owner.
fn unclaimed(info: &HostInfo) -> String {
    let interrupts = match info.last_unexpected_vector {
        Some(vector) => format!("{} interrupts (the last with vector {vector:#04x})", info.unexpected_interrupts),
        None => "no interrupt".to_owned(),
    };
    format!("{} NMIs, {interrupts}", info.unclaimed_nmis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vulnerabilities_are_listed_by_name() {
        let row = |name: &str, status: &str| Vulnerability { name: name.to_owned(), status: status.to_owned() };
        let rows = [row("mds", "Not affected"), row("spectre_v2", "Mitigation: IBRS")];
        assert_eq!(vulnerability_lines(&rows), "mds         Not affected\nspectre_v2  Mitigation: IBRS\n");
        assert_eq!(vulnerability_lines(&[]), "");
    }

    #[test]
    fn a_host_is_described() {
        let info = crate::testing::host_info();
        assert_eq!(
            text(&info, "2026-11-27T09:40:12.000Z"),
            "version      0.1.0 (0123456789ab)\n\
             signed by    no checked signature\n\
             hand-over    versions 3 to 4\n\
             security     version 5, older images are refused without --allow-downgrade; no key is trusted, so no \
             signature is wanted\n\
             generation   3\nup for       1.2 s, since 2026-11-27T09:40:12.000Z\nCPUs         2\nmemory       2 GiB (1 GiB free)\n\
             host's own   9 MiB (image 512.0 KiB)\nguests by    AMD SVM with nested paging\nfeatures\n\
             interrupts   xAPIC\nunclaimed    0 NMIs, no interrupt\ntime stamps  1000.000 MHz\n"
        );
        let signed = HostInfo { signer: Some("00ff00ff00ff00ff".to_owned()), ..info.clone() };
        assert!(text(&signed, "").contains("\nsigned by    00ff00ff00ff00ff\n"));
        let info = HostInfo { unclaimed_nmis: 2, unexpected_interrupts: 3, last_unexpected_vector: Some(0x50), ..info };
        let line = "unclaimed    2 NMIs, 3 interrupts (the last with vector 0x50)\n";
        assert!(text(&info, "").contains(line), "{}", text(&info, ""));
        let json = serde_json::to_value(Described { info: &info, booted: "2026" }).expect("JSON");
        assert_eq!((&json["booted"], &json["build"]), (&"2026".into(), &"0123456789ab".into()));
    }
}
