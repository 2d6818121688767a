// SPDX-License-Identifier: MIT OR Apache-2.0
//! Layout of a guest's physical address space.
//!
//! ```text
//! 0            1 MiB                        3 GiB      3.5 GiB  4 GiB
//! |low: boot…  | memory                     | PCI hole | ECAM… | memory above 3 GiB continues here | 64-bit PCI window
//! ```

use core::ops::Range;

use crate::addr::Gpa;

/// Memory below the PCI hole ends here at the latest; the rest continues at [`HIGH_MEMORY`].
pub const LOW_MEMORY_END: Gpa = Gpa(0xc000_0000);
/// Start of the memory that did not fit below the hole.
pub const HIGH_MEMORY: Gpa = Gpa(0x1_0000_0000);
/// The first MiB up to here is usable memory; from here to 1 MiB is reserved (VGA hole, ROMs, ACPI and SMBIOS tables).
pub const CONVENTIONAL_END: Gpa = Gpa(0xa_0000);
/// The ACPI tables; the RSDP comes first, 16-byte aligned, inside the area every kernel scans.
pub const ACPI_TABLES: Gpa = Gpa(0xe_0000);
/// Bytes reserved for the ACPI tables.
pub const ACPI_TABLES_BYTES: usize = 0x1_4000;
/// The SMBIOS tables behind them; the entry point comes first, in the 64 KiB that kernels scan.
pub const SMBIOS_TABLES: Gpa = Gpa(0xf_4000);
/// Bytes reserved for the SMBIOS tables.
pub const SMBIOS_BYTES: usize = 0x4000;
/// Entry of a PC's BIOS: behind the tables.
pub const RESET_VECTOR: Gpa = Gpa(0xf_fff0);
/// Load address of kernels.
pub const KERNEL: Gpa = Gpa(0x10_0000);

/// Boot structures, all below 640 KiB, free for the kernel once it runs.
pub mod boot {
    use crate::addr::Gpa;

    /// Descriptor table for the entry state.
    pub const GDT: Gpa = Gpa(0x6000);
    /// Linux zero page, PVH start info or Multiboot information.
    pub const INFO: Gpa = Gpa(0x7000);
    /// Memory map and module list for PVH and Multiboot.
    pub const LISTS: Gpa = Gpa(0x8000);
    /// Identity page tables of the first 4 GiB: one PML4, one PDPT, four page directories.
    pub const PAGE_TABLES: Gpa = Gpa(0x9000);
    /// Kernel command line, zero-terminated.
    pub const COMMAND_LINE: Gpa = Gpa(0x2_0000);
    /// Bytes for the command line, terminator included.
    pub const COMMAND_LINE_BYTES: usize = 0x1_0000;
    /// The stack a 64-bit entry starts with grows down from here.
    pub const STACK_TOP: Gpa = Gpa(0x1_f000);
}

/// PCI memory window given to devices.
pub const PCI_MMIO: Gpa = LOW_MEMORY_END;
/// Bytes of [`PCI_MMIO`].
pub const PCI_MMIO_BYTES: u64 = 0x2000_0000;
/// The 64-bit window begins at a multiple of this, so that large pages fit.
const PCI_HIGH_ALIGNMENT: u64 = 1 << 30;
/// Bits of an address that nested page tables of four levels translate.
pub const NESTED_ADDRESS_BITS: u8 = 48;
/// Enhanced configuration space (MCFG): one bus, 1 MiB.
pub const ECAM: Gpa = Gpa(0xe000_0000);
/// Bytes of [`ECAM`].
pub const ECAM_BYTES: u64 = 0x10_0000;
/// The IOAPIC's register page.
pub const IOAPIC: Gpa = Gpa(0xfec0_0000);
/// The local APIC's register page after reset.
pub const LOCAL_APIC: Gpa = Gpa(0xfee0_0000);

/// Ports of the machine.
pub mod port {
    /// CMOS index; data is the next port.
    pub const CMOS: u16 = 0x70;
    /// COM1, eight ports.
    pub const COM1: u16 = 0x3f8;
    /// Debug exit for test guests (QEMU's isa-debug-exit is used there by convention).
    pub const DEBUG_EXIT: u16 = 0xf4;
    /// pvpanic's event port (QEMU's number).
    pub const PVPANIC: u16 = 0x505;
    /// Sleep control register (ACPI 6.5, section 4.8.3.7); sleep status is the next port.
    pub const SLEEP_CONTROL: u16 = 0x600;
    /// The hot-plug controller's registers.
    pub const HOT_PLUG: u16 = 0x610;
    /// Number of these ports.
    pub const HOT_PLUG_PORTS: u8 = 12;
    /// The power button's register.
    pub const POWER_BUTTON: u16 = 0x620;
    /// Reset register: writing [`RESET_VALUE`] resets the guest.
    pub const RESET: u16 = 0xcf9;
    /// The value by which [`RESET`] resets the machine.
    pub const RESET_VALUE: u8 = 0x0e;
    /// PCI configuration address (mechanism 1).
    pub const PCI_ADDRESS: u16 = 0xcf8;
    /// PCI configuration data, four ports.
    pub const PCI_DATA: u16 = 0xcfc;
    /// First port of the I/O window given to PCI devices.
    pub const PCI_IO: u16 = 0xc000;
}

/// Ports from here on are left to PCI functions; the machine's own devices are below.
pub const FIXED_PORTS_END: u16 = 0x1000;
/// The global system interrupt of COM1.
pub const COM1_GSI: u8 = 4;
/// The global system interrupt of the hot-plug controller.
pub const HOT_PLUG_GSI: u8 = 9;
/// The global system interrupt of the power button.
pub const POWER_BUTTON_GSI: u8 = 10;
/// Inputs of the IOAPIC.
pub const IOAPIC_PINS: usize = 24;
/// Those for INTx lines of PCI functions: the ones above ISA's.
pub const PCI_PINS: core::ops::Range<u8> = 16..IOAPIC_PINS as u8;

/// The pin of the I/O APIC to which the line of a device of bus 0 leads, as ACPI's `_PRT` states. Devices whose numbers
/// differ by eight have the same one, and only one of these a line.
pub const fn line_of(device: u8) -> u8 {
    PCI_PINS.start + device.wrapping_sub(1) % (PCI_PINS.end - PCI_PINS.start)
}

/// The 64-bit window: the addresses above a guest's memory that PCI functions may decode, for CPUs with so many bits of
/// physical address. Empty if memory reaches the end of what CPUs and nested page tables can address.
pub fn pci_high(memory_bytes: u64, address_bits: u8) -> Range<u64> {
    let end = 1 << address_bits.min(NESTED_ADDRESS_BITS);
    let memory_end = HIGH_MEMORY.0.saturating_add(memory_bytes.saturating_sub(LOW_MEMORY_END.0));
    let first = memory_end.checked_next_multiple_of(PCI_HIGH_ALIGNMENT).unwrap_or(end);
    first.min(end)..end
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn the_64_bit_window_lies_behind_memory_and_within_the_narrower_address_width() {
        assert_eq!(pci_high(GIB, 40), 4 * GIB..1 << 40);
        assert_eq!(pci_high(3 * GIB + 4096, 36), 5 * GIB..1 << 36);
        assert_eq!(pci_high(8 * GIB, 52), 9 * GIB..1 << 48);
        assert!(pci_high(64 * GIB, 36).is_empty());
        assert!(pci_high(u64::MAX, 48).is_empty());
        assert!(pci_high(GIB, 32).is_empty());
    }
}
