// SPDX-License-Identifier: MIT OR Apache-2.0
//! The code at the entry of a PC's BIOS: the last sixteen bytes below 1 MiB.
//!
//! Linux reboots a hardware-reduced ACPI machine through EFI, and where there is none it goes to real mode and jumps to
//! F000:FFF0, whatever reset register the FADT names. There a few instructions write that register.

use crate::memory::{GuestMemory, OutOfRange};
use crate::platform::layout::{self, port};

/// `mov dx, RESET`; `mov al, RESET_VALUE`; `out dx, al`; `hlt`; and back to the `hlt`.
const CODE: [u8; 9] = {
    let [low, high] = port::RESET.to_le_bytes();
    [0xba, low, high, 0xb0, port::RESET_VALUE, 0xee, 0xf4, 0xeb, 0xfd]
};

/// Puts the instructions in place.
///
/// # Errors
/// [`OutOfRange`] where the guest has less than 1 MiB of memory.
pub fn write(memory: &impl GuestMemory) -> Result<(), OutOfRange> {
    memory.write(layout::RESET_VECTOR, &CODE)
}

#[cfg(test)]
mod tests {
    use iced_x86::{Code, Decoder, DecoderOptions};

    use super::*;
    use crate::platform::acpi::{self, AcpiConfig};

    #[test]
    fn the_reset_register_is_written_in_sixteen_bits() {
        let decoder = Decoder::with_ip(16, &CODE, layout::RESET_VECTOR.0 & 0xffff, DecoderOptions::NONE);
        let instructions: std::vec::Vec<_> = decoder.into_iter().collect();
        let codes: std::vec::Vec<_> = instructions.iter().map(|instruction| instruction.code()).collect();
        assert_eq!(codes, [Code::Mov_r16_imm16, Code::Mov_r8_imm8, Code::Out_DX_AL, Code::Hlt, Code::Jmp_rel8_16]);
        assert_eq!((instructions[0].immediate16(), instructions[1].immediate8()), (port::RESET, port::RESET_VALUE));
        assert_eq!(instructions[4].near_branch16(), instructions[3].ip16());
    }

    #[test]
    fn all_of_it_is_below_one_mebibyte_and_behind_the_tables() {
        assert!(layout::RESET_VECTOR.0 + CODE.len() as u64 <= 1 << 20);
        let tables = acpi::build(&AcpiConfig { vcpus: acpi::MAX_VCPUS, memory_bytes: 1 << 30, address_bits: 48 })
            .expect("as many as can be");
        assert!(layout::ACPI_TABLES.0 + tables.len() as u64 <= layout::RESET_VECTOR.0);
    }
}
