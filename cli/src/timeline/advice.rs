// SPDX-License-Identifier: MIT OR Apache-2.0
//! Known causes of gaps in a Linux boot log, and advice to shorten them.
//!
//! A gap is known by the lines around it. No line announces most work before it begins, so most rules check the line
//! that ends the gap; some check the one that begins it.

/// A cause for which a boot took time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// CPUs woken, one after the other or at once.
    BringUp,
    /// Records of all page frames written.
    StructPages,
    /// Records of huge pages' tails written.
    HugePages,
    /// The log so far sent through a serial line.
    Console,
    /// Tables' byte code run.
    Acpi,
    /// Devices searched for.
    Pci,
    /// Clocks compared with a slower one.
    Clocks,
    /// An initial root file system unpacked.
    Initramfs,
    /// Ways to compute checksums tried out.
    Benchmarks,
    /// The root file system waited for.
    RootWait,
}

/// A rule: the cause, the texts in the line before the gap, and those in the line after it. The first that fits counts.
type Rule = (Cause, &'static [&'static str], &'static [&'static str]);

const RULES: &[Rule] = &[
    (Cause::BringUp, &["Bringing up secondary CPUs", ".... node"], &[]),
    (Cause::BringUp, &[], &["smp: Brought up"]),
    (Cause::StructPages, &["software IO TLB: area num", "mem auto-init", "Policy zone"], &["Memory: "]),
    (Cause::StructPages, &[], &["Memory: ", "deferred pages initialised", "node 0 deferred"]),
    (Cause::HugePages, &[], &["HugeTLB: registered", "HugeTLB: allocation took", "HugeTLB: allocating"]),
    (Cause::Console, &["printk: console [ttyS", "printk: legacy console [ttyS"], &[]),
    (Cause::Console, &[], &["printk: console [ttyS", "printk: legacy console [ttyS"]),
    (Cause::Clocks, &[], &["tsc: ", "Calibrating delay loop", "APIC timer", "TSC deadline timer"]),
    (Cause::Initramfs, &["Unpacking initramfs", "Trying to unpack rootfs"], &[]),
    (Cause::Initramfs, &[], &["Freeing initrd memory"]),
    (Cause::Benchmarks, &["raid6: ", "xor: "], &["raid6: ", "xor: "]),
    (Cause::RootWait, &["Waiting for root device", "Waiting for root file system"], &[]),
    (Cause::Acpi, &["ACPI: ", "ACPI BIOS", "acpi "], &["ACPI: ", "acpi "]),
    (
        Cause::Pci,
        &["pci 0", "pci_bus ", "PCI host bridge", "pcieport "],
        &["pci 0", "pci_bus ", "PCI host bridge", "pcieport "],
    ),
    (Cause::Acpi, &[], &["ACPI: "]),
    (Cause::Pci, &[], &["pci 0", "pci_bus ", "PCI: ", "PCI host bridge"]),
];

/// Returns whether a line reports that the kernel is done and init begins.
pub fn is_init(line: &str) -> bool {
    line.starts_with("Run ") && line.ends_with(" as init process")
}

impl Cause {
    /// All, for a legend.
    pub const ALL: [Self; 10] = [
        Self::BringUp,
        Self::StructPages,
        Self::HugePages,
        Self::Console,
        Self::Acpi,
        Self::Pci,
        Self::Clocks,
        Self::Initramfs,
        Self::Benchmarks,
        Self::RootWait,
    ];

    /// Returns the known cause of a gap between these lines.
    pub fn of(before: &str, after: &str) -> Option<Self> {
        let fits =
            |patterns: &[&str], line: &str| patterns.is_empty() || patterns.iter().any(|part| line.contains(part));
        RULES.iter().find(|(_, begins, ends)| fits(begins, before) && fits(ends, after)).map(|(cause, ..)| *cause)
    }

    /// Returns its name on the picture.
    pub const fn name(self) -> &'static str {
        match self {
            Self::BringUp => "CPU bring-up",
            Self::StructPages => "page metadata",
            Self::HugePages => "huge pages",
            Self::Console => "serial console",
            Self::Acpi => "ACPI",
            Self::Pci => "PCI",
            Self::Clocks => "clock calibration",
            Self::Initramfs => "initramfs",
            Self::Benchmarks => "checksum benchmarks",
            Self::RootWait => "waiting for the root device",
        }
    }

    /// Returns advice that shortens it.
    pub const fn cure(self) -> &'static str {
        match self {
            Self::BringUp => "bring CPUs up in parallel: Linux 6.5 or later, where cpuhp.parallel is on",
            Self::StructPages => {
                "write page metadata later and in parallel: a kernel with CONFIG_DEFERRED_STRUCT_PAGE_INIT; fewer page \
                 records"
            }
            Self::HugePages => {
                "write no metadata for huge pages' tails: hugetlb_free_vmemmap=on with a kernel that skips them at \
                 boot (6.7 or later)"
            }
            Self::Console => {
                "send less through the serial line: quiet or loglevel=4, a higher baud rate, or no serial console"
            }
            Self::Acpi => "nothing to set: fewer and smaller tables in the firmware, devices of no use disabled there",
            Self::Pci => "have fewer functions probed: disable in the firmware what the host does not use",
            Self::Clocks => "give the rate: a CPU that reports it in CPUID, or tsc_early_khz=",
            Self::Initramfs => "make the initramfs smaller, or compress it with zstd or lz4 instead of xz or gzip",
            Self::Benchmarks => "choose without trying: a kernel with CONFIG_RAID6_PQ_BENCHMARK off",
            Self::RootWait => "find the device sooner: its driver built in, rootdelay= removed",
        }
    }
}

#[cfg(test)]
#[path = "advice_tests.rs"]
mod tests;
