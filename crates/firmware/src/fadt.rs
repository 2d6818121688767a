// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fixed ACPI description table: timer, sleep and reset registers (ACPI 6.5, section 5.2.9).
//!
//! The table grew by appending: a register first had an I/O port in 32 bits, later also a generic address further on
//! that wins where it is not zero. Fields past the end of an old table are absent.

use crate::register::GenericAddress;
use crate::table::{HEADER_BYTES, Signature, Table};
use crate::{Fault, Location, PmTimer, Register, ResetRegister, SmiCommand, Tables, sleep};

/// The length of the first revision.
pub const MINIMUM_BYTES: u32 = 116;

/// Offsets of the fields.
mod at {
    pub const DSDT: u32 = 40;
    pub const SMI_COMMAND: u32 = 48;
    pub const ACPI_ENABLE: u32 = 52;
    pub const PM1A_CONTROL: u32 = 64;
    pub const PM1B_CONTROL: u32 = 68;
    pub const PM_TIMER: u32 = 76;
    pub const PM1_CONTROL_BYTES: u32 = 89;
    pub const PM_TIMER_BYTES: u32 = 91;
    pub const FLAGS: u32 = 112;
    pub const RESET: u32 = 116;
    pub const RESET_VALUE: u32 = 128;
    pub const X_DSDT: u32 = 140;
    pub const X_PM1A_CONTROL: u32 = 172;
    pub const X_PM1B_CONTROL: u32 = 184;
    pub const X_PM_TIMER: u32 = 208;
    pub const SLEEP_CONTROL: u32 = 244;
    pub const SLEEP_STATUS: u32 = 256;
}

/// The timer counts 32 bits, else 24.
const TIMER_IS_32_BITS: u32 = 1 << 8;
/// The reset register is there.
const HAS_RESET: u32 = 1 << 10;
/// None of the PM1 blocks and no PM timer is there, whatever the fields state.
const IS_HARDWARE_REDUCED: u32 = 1 << 20;

/// Adopts the content of the table, and of the DSDT that it points to.
pub fn read(table: &Table<'_>, tables: &mut Tables) {
    let flags = table.u32(at::FLAGS).unwrap_or(0);
    if flags & IS_HARDWARE_REDUCED == 0 {
        read_power_management(table, flags, tables);
    } else {
        tables.sleep_control = byte_register(table, at::SLEEP_CONTROL, Register::SleepControl, tables);
        tables.sleep_status = byte_register(table, at::SLEEP_STATUS, Register::SleepStatus, tables);
    }
    if flags & HAS_RESET != 0 {
        tables.reset_register = reset_register(table, tables);
    }
    read_dsdt(table, tables);
}

fn read_power_management(table: &Table<'_>, flags: u32, tables: &mut Tables) {
    let width_bits = if flags & TIMER_IS_32_BITS != 0 { 32 } else { 24 };
    tables.pm_timer = port(table, tables, &PM_TIMER).map(|port| PmTimer { port, width_bits });
    tables.pm1a_control_port = port(table, tables, &PM1A_CONTROL);
    tables.pm1b_control_port = port(table, tables, &PM1B_CONTROL);
    tables.acpi_enable = smi_command(table, tables);
}

/// Fields of the table that may give a power management register's port.
struct Block {
    register: Register,
    port_at: u32,
    generic_at: u32,
    /// Offset of the register's length in bytes, and the length that it must have. A shorter one means that the
    /// register is absent.
    bytes_at: u32,
    bytes: u16,
}

const PM_TIMER: Block = Block {
    register: Register::PmTimer,
    port_at: at::PM_TIMER,
    generic_at: at::X_PM_TIMER,
    bytes_at: at::PM_TIMER_BYTES,
    bytes: 4,
};
const PM1A_CONTROL: Block = Block {
    register: Register::Pm1aControl,
    port_at: at::PM1A_CONTROL,
    generic_at: at::X_PM1A_CONTROL,
    bytes_at: at::PM1_CONTROL_BYTES,
    bytes: 2,
};
const PM1B_CONTROL: Block = Block {
    register: Register::Pm1bControl,
    port_at: at::PM1B_CONTROL,
    generic_at: at::X_PM1B_CONTROL,
    ..PM1A_CONTROL
};

/// The register's port: the generic address if it is one, else the older field.
fn port(table: &Table<'_>, tables: &mut Tables, block: &Block) -> Option<u16> {
    if u16::from(table.u8(block.bytes_at)?) < block.bytes {
        return None;
    }
    let older = io_address(table, block.port_at);
    let places = [GenericAddress::at(table, block.generic_at), older];
    places.into_iter().flatten().find_map(|place| {
        let port = place.port(block.bytes);
        if port.is_none() {
            warn_unusable(tables, block.register, place);
        }
        port
    })
}

/// A field that holds a port in 32 bits; 0 is none.
fn io_address(table: &Table<'_>, offset: u32) -> Option<GenericAddress> {
    let address = table.u32(offset).filter(|&address| address != 0)?;
    Some(GenericAddress { space: GenericAddress::IO, address: u64::from(address) })
}

fn warn_unusable(tables: &mut Tables, register: Register, place: GenericAddress) {
    let fault = Fault::UnusableRegister { register, space: place.space, address: place.address };
    tables.warn(Signature::FADT, fault);
}

/// Without the port, or with zero for the command, the machine has no other mode than ACPI.
fn smi_command(table: &Table<'_>, tables: &mut Tables) -> Option<SmiCommand> {
    let place = io_address(table, at::SMI_COMMAND)?;
    let value = table.u8(at::ACPI_ENABLE).filter(|&value| value != 0)?;
    let port = place.port(1);
    if port.is_none() {
        warn_unusable(tables, Register::SmiCommand, place);
    }
    port.map(|port| SmiCommand { port, value })
}

/// Section 4.8.3.6.
fn reset_register(table: &Table<'_>, tables: &mut Tables) -> Option<ResetRegister> {
    let value = table.u8(at::RESET_VALUE)?;
    byte_register(table, at::RESET, Register::Reset, tables).map(|location| ResetRegister { location, value })
}

/// A register of eight bits, in any address space that is known.
fn byte_register(table: &Table<'_>, offset: u32, register: Register, tables: &mut Tables) -> Option<Location> {
    let place = GenericAddress::at(table, offset)?;
    let location = match place.space {
        GenericAddress::MEMORY => Some(Location::Memory(place.address)),
        GenericAddress::IO => place.port(1).map(Location::Port),
        GenericAddress::PCI_CONFIGURATION => pci_configuration(place.address),
        _ => None,
    };
    if location.is_none() {
        warn_unusable(tables, register, place);
    }
    location
}

/// Section 5.2.3.2, table of address spaces: offset, function and device are 16 bits each, lowest first.
fn pci_configuration(address: u64) -> Option<Location> {
    let [o0, o1, f0, f1, d0, d1, 0, 0] = address.to_le_bytes() else { return None };
    match (u16::from_le_bytes([d0, d1]), u16::from_le_bytes([f0, f1]), u16::from_le_bytes([o0, o1])) {
        (0..=31, 0..=7, 0..=255) => Some(Location::PciConfiguration { device: d0, function: f0, offset: o0 }),
        _ => None,
    }
}

fn read_dsdt(table: &Table<'_>, tables: &mut Tables) {
    let address = match (table.u64(at::X_DSDT), table.u32(at::DSDT)) {
        (None | Some(0), None | Some(0)) => Err(Fault::Missing),
        (None | Some(0), Some(older)) => Ok(u64::from(older)),
        (Some(address), _) => Ok(address),
    };
    let opened = address.and_then(|at| Table::open(table.memory(), at, Signature::DSDT, HEADER_BYTES));
    let searched = opened.and_then(|dsdt| {
        tables.check_revision(Signature::DSDT, &dsdt);
        sleep::find_s5(&dsdt)
    });
    match searched {
        Ok(types) => {
            tables.sleep_s5_type = Some(types.a);
            tables.sleep_s5_type_b = types.b;
        }
        Err(fault) => tables.warn(Signature::DSDT, fault),
    }
}

#[cfg(test)]
#[path = "fadt_tests.rs"]
mod tests;
