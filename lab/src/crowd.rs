// SPDX-License-Identifier: MIT OR Apache-2.0
//! A lab machine with as many PCI functions as the machine of the published boot has (LPC 2023, "Improving kexec
//! boot time"): 57, of which 15 are what it takes to boot the host and to give guests networks and disks.

use std::ffi::OsString;

/// Functions of q35 itself: host bridge, LPC bridge, SATA, SMBus.
const OWN: u32 = 4;
/// Ports, each with a device behind it.
const PORTS: u32 = 16;
/// Functions on the first bus, eight to a device.
const INTEGRATED: u32 = 21;
/// All functions of the machine.
pub const FUNCTIONS: u32 = OWN + 2 * PORTS + INTEGRATED;
/// Functions that are enough to boot the host and to serve its guests.
pub const NEEDED: u32 = 15;

/// Devices behind ports and on the first bus, in turn. None needs ports or anything outside the machine.
const KINDS: [&str; 6] =
    ["virtio-net-pci,romfile=", "virtio-scsi-pci", "qemu-xhci", "virtio-rng-pci", "virtio-serial-pci", "edu"];
const FIRST_PORT: u32 = 2 * 8;
const FIRST_INTEGRATED: u32 = 0x10 * 8;

/// Returns the emulator's arguments that add the functions beyond q35's own.
pub fn arguments() -> Vec<OsString> {
    let kind = |number: u32| KINDS[number as usize % KINDS.len()];
    let ports =
        (0..PORTS).map(|n| format!("pcie-root-port,id=port{n},chassis={n},slot={n},bus=pcie.0,{}", at(FIRST_PORT + n)));
    let behind = (0..PORTS).map(|n| format!("{},bus=port{n}", kind(n)));
    let integrated = (0..INTEGRATED).map(|n| format!("{},bus=pcie.0,{}", kind(n), at(FIRST_INTEGRATED + n)));
    let devices = ports.chain(behind).chain(integrated);
    devices.flat_map(|device| ["-device".into(), device.into()]).collect()
}

/// The option `pci=allow:` for the first [`NEEDED`] of the integrated functions, each by its place.
pub fn needed_option() -> String {
    let places = (FIRST_INTEGRATED..FIRST_INTEGRATED + NEEDED).map(|n| format!("00:{:02x}.{}", n / 8, n % 8));
    format!("pci=allow:{}", places.collect::<Vec<_>>().join(","))
}

/// Returns device and function on a bus. Each function of a device has the multi-function bit.
fn at(number: u32) -> String {
    format!("addr={:x}.{},multifunction=on", number / 8, number % 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_has_as_many_functions_as_the_published_one() {
        let added = arguments().iter().filter(|argument| *argument == "-device").count() as u32;
        assert_eq!((OWN + added, FUNCTIONS), (57, 57));
        assert_eq!(needed_option().split(',').count() as u32, NEEDED);
        assert!(needed_option().starts_with("pci=allow:00:10.0,00:10.1"), "{}", needed_option());
    }
}
