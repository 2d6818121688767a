// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;

#[test]
fn known_gaps_have_their_cause() {
    let known = [
        (Cause::BringUp, "smp: Bringing up secondary CPUs ...", ".... node  #0, CPUs:        #1  #2"),
        (Cause::BringUp, "x", "smp: Brought up 1 node, 8 CPUs"),
        (Cause::StructPages, "software IO TLB: area num 128.", "Memory: 1808176K/536517308K available"),
        (Cause::HugePages, "kprobes: kprobe jump-optimization is enabled.", "HugeTLB: registered 1.00 GiB page size"),
        (Cause::Console, "printk: console [ttyS0] enabled", "ACPI: Core revision 20220331"),
        (Cause::Acpi, "x", "ACPI: Interpreter enabled"),
        (Cause::Acpi, "ACPI: Dynamic OEM Table Load:", "ACPI: Dynamic OEM Table Load:"),
        (Cause::Pci, "PCI host bridge to bus 0000:00", "pci 0000:00:00.0: [8086:29c0] type 00 class 0x060000"),
        (Cause::Initramfs, "Unpacking initramfs...", "Freeing initrd memory: 3232K"),
        (Cause::Benchmarks, "raid6: sse2x4   gen() 10325 MB/s", "raid6: sse2x2   gen() 9000 MB/s"),
        (Cause::RootWait, "Waiting for root device /dev/sda1...", "scsi host0: ahci"),
    ];
    for (cause, before, after) in known {
        assert_eq!(Cause::of(before, after), Some(cause), "{before} → {after}");
    }
    assert_eq!(Cause::of("NET: Registered PF_INET6", "Segment Routing with IPv6"), None);
}

#[test]
fn every_cause_has_a_name_of_its_own_and_a_rule() {
    for (place, cause) in Cause::ALL.iter().enumerate() {
        assert!(Cause::ALL[..place].iter().all(|other| other.name() != cause.name()));
        assert!(RULES.iter().any(|(ruled, ..)| ruled == cause));
        assert!(!cause.cure().is_empty());
    }
}
