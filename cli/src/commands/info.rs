// SPDX-License-Identifier: MIT OR Apache-2.0
//! `baton info`: what host is running.

use anyhow::Result;
use wire::{ApicMode, HostInfo, Virtualization};

use super::{DONE, connect, seconds};
use crate::args::{Format, Target};
use crate::size::Size;

pub(super) fn run(target: &Target, format: Format) -> Result<u8> {
    let info = connect(target)?.info()?;
    match format.json {
        true => println!("{}", serde_json::to_string(&info)?),
        false => print!("{}", text(&info)),
    }
    Ok(DONE)
}

fn text(info: &HostInfo) -> String {
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
        ("version", info.version.clone()),
        ("generation", info.generation.to_string()),
        ("up for", format!("{:.1} s", seconds(info.uptime_ns))),
        ("processors", info.processors.to_string()),
        ("memory", format!("{} ({} free)", size(info.memory_total_bytes), size(info.memory_free_bytes))),
        ("host's own", format!("{} (image {})", size(info.host_overhead_bytes), size(info.image_bytes))),
        ("guests by", virtualization.to_owned()),
        ("features", info.features.join(" ")),
        ("interrupts", interrupts.to_owned()),
        ("time stamps", format!("{:.3} MHz", info.tsc_hz as f64 / 1e6)),
    ];
    rows.iter().map(|(name, value)| format!("{name:<12} {value}").trim_end().to_owned() + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_described() {
        let info = HostInfo {
            version: "0.1.0".to_owned(),
            image_bytes: 512 << 10,
            processors: 2,
            memory_total_bytes: 2 << 30,
            memory_free_bytes: 1 << 30,
            host_overhead_bytes: 9 << 20,
            uptime_ns: 1_250_000_000,
            virtualization: Virtualization::Svm,
            features: vec![],
            apic_mode: ApicMode::XApic,
            tsc_hz: 1_000_000_000,
            generation: 3,
        };
        assert_eq!(
            text(&info),
            "version      0.1.0\ngeneration   3\nup for       1.2 s\nprocessors   2\nmemory       2 GiB (1 GiB free)\n\
             host's own   9 MiB (image 512.0 KiB)\nguests by    AMD SVM with nested paging\nfeatures\n\
             interrupts   xAPIC\ntime stamps  1000.000 MHz\n"
        );
    }
}
