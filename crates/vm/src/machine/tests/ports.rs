// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ports but for COM1.
use super::*;
use crate::devices::pvpanic::PanicEvent;

const EVERY_SIZE: [AccessSize; 3] = [AccessSize::Byte, AccessSize::Word, AccessSize::Dword];

#[test]
fn a_port_that_no_device_has_reads_as_all_ones_and_ignores_writes() {
    let mut lab = Lab::new();
    for port in [0, 0x20, 0x61, 0x80, 0x3f7, 0x400, 0x602, 0xcf7, 0xd00, 0xffff] {
        for size in EVERY_SIZE {
            assert_eq!(lab.write_port(port, size, 0x1234_5678), Outcome::Resume);
            assert_eq!(lab.read_port(port, size), size.mask() as u32, "{port:#x}");
        }
    }
}

#[test]
fn a_narrow_in_leaves_the_rest_of_the_register() {
    let mut lab = Lab::new();
    lab.vcpu.gprs[0] = 0x1122_3344_5566_7788;
    lab.port(0x80, AccessSize::Byte, true);
    assert_eq!(lab.vcpu.gprs[0], 0x1122_3344_5566_77ff);
    lab.port(0x80, AccessSize::Dword, true);
    assert_eq!(lab.vcpu.gprs[0], 0xffff_ffff, "32 bits clear the upper half");
}

#[test]
fn execution_goes_on_where_the_cpu_reports() {
    let mut lab = Lab::new();
    lab.vcpu.rip = 0x7777;
    lab.outb(0x80, 1);
    assert_eq!(lab.vcpu.rip, 0x7779);
}

#[test]
fn the_cmos_clock_shows_the_hosts_time() {
    let mut lab = Lab::new();
    let mut register = |index| {
        lab.outb(0x70, index);
        lab.inb(0x71)
    };
    // 1,700,000,000 s: 14 November 2023, 22:13:20 UTC, in BCD.
    assert_eq!([9, 8, 7, 4, 2, 0].map(&mut register), [0x23, 0x11, 0x14, 0x22, 0x13, 0x20]);
}

#[test]
fn the_host_bridge_is_found_and_other_slots_are_empty() {
    let mut lab = Lab::new();
    assert_eq!(lab.write_port(0xcf8, AccessSize::Dword, 1 << 31), Outcome::Resume);
    let bridge = lab.read_port(0xcfc, AccessSize::Dword);
    assert_ne!(bridge, u32::MAX);
    assert_eq!(lab.read_port(0xcfe, AccessSize::Word), bridge >> 16);
    assert_eq!(lab.read_port(0xcf8, AccessSize::Dword), 1 << 31);
    lab.write_port(0xcf8, AccessSize::Dword, 1 << 31 | 1 << 11);
    assert_eq!(lab.read_port(0xcfc, AccessSize::Dword), u32::MAX);
}

#[test]
fn a_byte_to_the_reset_register_resets_and_a_dword_beside_it_selects_a_pci_register() {
    let mut lab = Lab::new();
    assert_eq!(lab.write_port(0xcf8, AccessSize::Dword, 0x8000_0e00), Outcome::Resume);
    assert_eq!(lab.write_port(0xcf9, AccessSize::Word, 0x0e), Outcome::Resume);
    assert_eq!(lab.write_port(0xcf9, AccessSize::Byte, 0x02), Outcome::Resume, "which kind of reset");
    assert_eq!(lab.inb(0xcf9), 2);
    assert_eq!(lab.read_port(0xcf8, AccessSize::Dword), 0x8000_0e00);
    assert_eq!(lab.write_port(0xcf9, AccessSize::Byte, 0x0e), Outcome::Stop(Stop::Reset));
}

#[test]
fn sleeping_in_s5_powers_off() {
    let mut lab = Lab::new();
    assert_eq!(lab.write_port(0x600, AccessSize::Byte, 1 << 5), Outcome::Resume, "S0 is no sleep");
    assert_eq!(lab.inb(0x601), 0);
    assert_eq!(lab.write_port(0x600, AccessSize::Byte, 5 << 2 | 1 << 5), Outcome::Stop(Stop::PowerOff));
}

#[test]
fn the_debug_exit_is_there_only_where_it_was_asked_for() {
    let mut lab = Lab::after_power_on(true);
    assert_eq!(lab.read_port(0xf4, AccessSize::Dword), 0);
    assert_eq!(lab.write_port(0xf4, AccessSize::Dword, 0x10), Outcome::Stop(Stop::DebugExit(0x10)));
    assert_eq!(lab.write_port(0xf4, AccessSize::Byte, 0x1234), Outcome::Stop(Stop::DebugExit(0x34)));
    let mut without = Lab::after_power_on(false);
    assert_eq!(without.write_port(0xf4, AccessSize::Dword, 0x10), Outcome::Resume);
    assert_eq!(without.read_port(0xf4, AccessSize::Dword), u32::MAX);
}

#[test]
fn a_panic_is_reported_to_the_host() {
    let mut lab = Lab::new();
    assert_eq!(lab.inb(0x505), 3);
    lab.outb(0x505, 0);
    lab.outb(0x505, 1);
    lab.outb(0x505, 2);
    assert_eq!(lab.host.panics, [PanicEvent::Panicked, PanicEvent::CrashLoaded]);
}
