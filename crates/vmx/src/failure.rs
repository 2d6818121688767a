// SPDX-License-Identifier: MIT OR Apache-2.0
//! VM-instruction errors (section 31.4): the reason why a VMX instruction failed.

/// Returns the meaning of an error number; `None` if the manual has none of this number.
pub const fn instruction_error(number: u32) -> Option<&'static str> {
    Some(match number {
        1 => "VMCALL in VMX root operation",
        2 => "VMCLEAR of an invalid address",
        3 => "VMCLEAR of the VMXON region",
        4 => "VMLAUNCH of a VMCS that is not clear",
        5 => "VMRESUME of a VMCS that is not launched",
        6 => "VMRESUME after VMXOFF",
        7 => "VM entry with invalid control fields",
        8 => "VM entry with invalid host state",
        9 => "VMPTRLD of an invalid address",
        10 => "VMPTRLD of the VMXON region",
        11 => "VMPTRLD of a VMCS of another revision",
        12 => "VMREAD or VMWRITE of a field that does not exist",
        13 => "VMWRITE of a read-only field",
        15 => "VMXON in VMX root operation",
        16 => "VM entry with an invalid executive-VMCS pointer",
        17 => "VM entry with an executive VMCS that is not launched",
        18 => "VM entry with an executive-VMCS pointer that is not the VMXON pointer",
        19 => "VMCALL of a VMCS that is not clear",
        20 => "VMCALL with invalid VM-exit controls",
        22 => "VMCALL with another revision of the monitor",
        23 => "VMXOFF under dual-monitor treatment",
        24 => "VMCALL with invalid features of the monitor",
        25 => "VM entry with invalid execution controls in the executive VMCS",
        26 => "VM entry while MOV SS blocks events",
        28 => "invalid operand of INVEPT or INVVPID",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_errors_of_an_entry_are_known_and_numbers_without_meaning_are_not() {
        assert_eq!(instruction_error(7), Some("VM entry with invalid control fields"));
        assert_eq!(instruction_error(8), Some("VM entry with invalid host state"));
        assert_eq!(instruction_error(26), Some("VM entry while MOV SS blocks events"));
        for number in [0, 14, 21, 27, 29, u32::MAX] {
            assert_eq!(instruction_error(number), None, "{number}");
        }
    }
}
