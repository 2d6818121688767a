// SPDX-License-Identifier: MIT OR Apache-2.0
//! Content of firmware's tables, in the hypervisor's own terms.

use arrayvec::ArrayVec;

use crate::register::GenericAddress;
use crate::table::Table;
use crate::{Fault, Problem, Register, Signature};

/// CPUs kept.
pub const MAX_CPUS: usize = 1024;
/// I/O APICs kept.
pub const MAX_IO_APICS: usize = 16;
/// Interrupt overrides kept: ISA has as many interrupts.
pub const MAX_OVERRIDES: usize = 16;
/// Configuration space ranges kept.
pub const MAX_ECAMS: usize = 8;
/// NUMA nodes kept.
pub const MAX_NODES: usize = 16;
/// Stretches of memory on NUMA nodes kept.
pub const MAX_MEMORY_AFFINITIES: usize = 32;
/// Problems kept; more are only counted.
pub const MAX_WARNINGS: usize = 32;

/// Everything [`crate::discover`] finds. About 10 KiB: not for a small stack.
#[derive(Debug)]
pub struct Tables {
    /// CPUs that are enabled or can become so, in firmware's order. Empty where there is no usable MADT: then the
    /// CPU that runs this is the only one known.
    pub cpus: ArrayVec<Cpu, MAX_CPUS>,
    /// Physical address of every CPU's local APIC after reset.
    pub local_apic_address: u64,
    /// I/O APICs, in firmware's order.
    pub io_apics: ArrayVec<IoApic, MAX_IO_APICS>,
    /// ISA interrupts that are not wired one to one, active high and edge triggered.
    pub overrides: ArrayVec<Override, MAX_OVERRIDES>,
    /// True if there are two 8259s that must be masked. True without a MADT: masking ports with nothing behind is
    /// harmless.
    pub has_8259: bool,
    /// Physical address of the high precision event timer's registers.
    pub hpet_address: Option<u64>,
    /// The power management timer: 3.579545 MHz.
    pub pm_timer: Option<PmTimer>,
    /// I/O port of the PM1a control register, 16 bits.
    pub pm1a_control_port: Option<u16>,
    /// I/O port of the PM1b control register, 16 bits; few machines have one. It wants the same write as PM1a's, with
    /// [`Tables::sleep_s5_type_b`].
    pub pm1b_control_port: Option<u16>,
    /// SLP_TYP for PM1a control that powers the machine off; 0 to 7.
    pub sleep_s5_type: Option<u8>,
    /// SLP_TYP for PM1b control that powers the machine off; 0 to 7.
    pub sleep_s5_type_b: Option<u8>,
    /// The sleep control register of a machine without PM1 registers, 8 bits.
    pub sleep_control: Option<Location>,
    /// Its sleep status register, 8 bits.
    pub sleep_status: Option<Location>,
    /// The command by which firmware hands the power management registers over, on machines where it has them after
    /// boot (SCI_EN in PM1a control is clear): without it a write of SLP_TYP may do nothing.
    pub acpi_enable: Option<SmiCommand>,
    /// The register that resets the machine.
    pub reset_register: Option<ResetRegister>,
    /// PCI Express configuration space.
    pub mcfg: ArrayVec<Ecam, MAX_ECAMS>,
    /// The proximity domain of each NUMA node, by the node's number.
    pub proximity_domains: ArrayVec<u32, MAX_NODES>,
    /// Memory of each node.
    pub memory_affinities: ArrayVec<MemoryAffinity, MAX_MEMORY_AFFINITIES>,
    /// Physical address of the table of AMD's IOMMUs (IVRS), with a valid header and checksum.
    pub ivrs: Option<u64>,
    /// Physical address of the table of Intel's IOMMUs (DMAR), likewise.
    pub dmar: Option<u64>,
    /// Problems found.
    pub warnings: ArrayVec<Problem, MAX_WARNINGS>,
    /// Problems that [`Tables::warnings`] had no room for.
    pub warnings_dropped: u32,
}

impl Tables {
    /// A machine of which nothing is known but that it is a PC.
    pub const fn new() -> Self {
        Self {
            cpus: ArrayVec::new_const(),
            local_apic_address: 0xfee0_0000,
            io_apics: ArrayVec::new_const(),
            overrides: ArrayVec::new_const(),
            has_8259: true,
            hpet_address: None,
            pm_timer: None,
            pm1a_control_port: None,
            pm1b_control_port: None,
            sleep_s5_type: None,
            sleep_s5_type_b: None,
            sleep_control: None,
            sleep_status: None,
            acpi_enable: None,
            reset_register: None,
            mcfg: ArrayVec::new_const(),
            proximity_domains: ArrayVec::new_const(),
            memory_affinities: ArrayVec::new_const(),
            ivrs: None,
            dmar: None,
            warnings: ArrayVec::new_const(),
            warnings_dropped: 0,
        }
    }

    /// Back to [`Tables::new`], field by field: no second value of this size on the stack.
    pub fn clear(&mut self) {
        self.cpus.clear();
        self.local_apic_address = 0xfee0_0000;
        self.io_apics.clear();
        self.overrides.clear();
        self.has_8259 = true;
        self.hpet_address = None;
        self.pm_timer = None;
        self.pm1a_control_port = None;
        self.pm1b_control_port = None;
        self.sleep_s5_type = None;
        self.sleep_s5_type_b = None;
        self.sleep_control = None;
        self.sleep_status = None;
        self.acpi_enable = None;
        self.reset_register = None;
        self.mcfg.clear();
        self.proximity_domains.clear();
        self.memory_affinities.clear();
        self.ivrs = None;
        self.dmar = None;
        self.warnings.clear();
        self.warnings_dropped = 0;
    }

    /// Returns the input at which ISA interrupt `irq` arrives: its override, or the default of the bus.
    pub fn isa_interrupt(&self, irq: u8) -> Override {
        let implied = Override { irq, gsi: u32::from(irq), is_level: false, is_active_low: false };
        self.overrides.iter().copied().find(|entry| entry.irq == irq).unwrap_or(implied)
    }

    /// Removes the power registers in memory that `may_be_there` refuses by their physical address: usable memory, or
    /// an invalid address, is no register.
    pub fn check_power_registers(&mut self, may_be_there: impl Fn(u64) -> bool) {
        let reset = self.reset_register.map(|reset| reset.location);
        let found = [
            (Register::SleepControl, self.sleep_control),
            (Register::SleepStatus, self.sleep_status),
            (Register::Reset, reset),
        ];
        for (register, location) in found {
            let Some(Location::Memory(address)) = location else { continue };
            if may_be_there(address) {
                continue;
            }
            match register {
                Register::SleepControl => self.sleep_control = None,
                Register::SleepStatus => self.sleep_status = None,
                _ => self.reset_register = None,
            }
            let space = GenericAddress::MEMORY;
            self.warn(Signature::FADT, Fault::UnusableRegister { register, space, address });
        }
    }

    /// Notes a revision that does not exist.
    pub(crate) fn check_revision(&mut self, signature: Signature, table: &Table<'_>) {
        if table.revision() == 0 {
            self.warn(signature, Fault::NoRevision);
        }
    }

    /// Notes a problem, or counts it where there is no room.
    pub(crate) fn warn(&mut self, table: Signature, fault: Fault) {
        if self.warnings.try_push(Problem { table, fault }).is_err() {
            self.warnings_dropped = self.warnings_dropped.saturating_add(1);
        }
    }
}

impl Default for Tables {
    fn default() -> Self {
        Self::new()
    }
}

/// A CPU (ACPI 6.5, sections 5.2.12.2 and 5.2.12.12).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpu {
    /// Its local APIC's identifier.
    pub apic_id: u32,
    /// It can be started now.
    pub enabled: bool,
    /// It is not enabled, but the machine can enable it while running.
    pub online_capable: bool,
    /// Its NUMA node; 0 where firmware names none.
    pub node: u8,
}

/// Memory on a NUMA node (section 5.2.16.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryAffinity {
    /// Physical address of the first byte.
    pub base: u64,
    /// Length in bytes; `base + bytes` does not overflow.
    pub bytes: u64,
    /// The node's number, an index of [`Tables::proximity_domains`].
    pub node: u8,
    /// It may not be there yet.
    pub is_hot_pluggable: bool,
}

/// An I/O APIC (section 5.2.12.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoApic {
    /// Its identifier.
    pub id: u8,
    /// Physical address of its registers.
    pub address: u64,
    /// The global system interrupt of its first input.
    pub gsi_base: u32,
}

/// Redirection of an ISA interrupt (section 5.2.12.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Override {
    /// The ISA interrupt, 0 to 15.
    pub irq: u8,
    /// Its global system interrupt.
    pub gsi: u32,
    /// Level triggered, else edge.
    pub is_level: bool,
    /// Active low, else high.
    pub is_active_low: bool,
}

/// The power management timer (section 4.8.3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PmTimer {
    /// Its I/O port; reads are 32 bits wide.
    pub port: u16,
    /// Bits that count: 24 or 32.
    pub width_bits: u8,
}

/// A byte for the system management command port (section 4.8.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SmiCommand {
    /// The I/O port.
    pub port: u16,
    /// The byte.
    pub value: u8,
}

/// The write that resets the machine: 8 bits (section 4.8.3.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResetRegister {
    /// The register.
    pub location: Location,
    /// The value to write.
    pub value: u8,
}

/// Place of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Location {
    /// A physical address.
    Memory(u64),
    /// An I/O port.
    Port(u16),
    /// The configuration space of a PCI function on bus 0 of segment 0.
    PciConfiguration {
        /// Device, 0 to 31.
        device: u8,
        /// Function, 0 to 7.
        function: u8,
        /// Offset, 0 to 255.
        offset: u8,
    },
}

/// Configuration space of a range of PCI buses, in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ecam {
    /// Physical address where bus 0 of the segment is or would be: bus `b` is at `base + (b << 20)`.
    pub base: u64,
    /// PCI segment group.
    pub segment: u16,
    /// First bus.
    pub bus_start: u8,
    /// Last bus.
    pub bus_end: u8,
}
