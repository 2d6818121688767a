// SPDX-License-Identifier: MIT OR Apache-2.0
//! High precision event timer: where it is (IA-PC HPET 1.0a, section 3.2.4).

use crate::register::GenericAddress;
use crate::table::{Signature, Table};
use crate::{Fault, Register, Tables};

/// The whole table.
pub const MINIMUM_BYTES: u32 = 56;
/// Offset of the address in bytes.
const BASE_ADDRESS: u32 = 40;

/// Adopts the table's content. The timer's registers are always in memory.
pub fn read(table: &Table<'_>, tables: &mut Tables) {
    let place = GenericAddress::at(table, BASE_ADDRESS).unwrap_or(GenericAddress { space: 0, address: 0 });
    if place.space == GenericAddress::MEMORY && place.address != 0 {
        tables.hpet_address = Some(place.address);
    } else {
        let GenericAddress { space, address } = place;
        tables.warn(Signature::HPET, Fault::UnusableRegister { register: Register::Hpet, space, address });
    }
}
