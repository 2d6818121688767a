// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether the firmware lets VMXON be executed (section 24.7).

use crate::unusable::Unusable;

const LOCK: u64 = 1 << 0;
const VMX_OUTSIDE_SMX: u64 = 1 << 2;

/// The value that IA32_FEATURE_CONTROL must get before VMXON, given its present one; `None` if it is right as it is.
///
/// # Errors
/// [`Unusable::DisabledByFirmware`] if the register is locked, and VMX is not enabled in it.
pub const fn enabling(feature_control: u64) -> Result<Option<u64>, Unusable> {
    match (feature_control & LOCK != 0, feature_control & VMX_OUTSIDE_SMX != 0) {
        (true, true) => Ok(None),
        (true, false) => Err(Unusable::DisabledByFirmware),
        (false, _) => Ok(Some(feature_control | VMX_OUTSIDE_SMX | LOCK)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unlocked_register_is_enabled_and_locked_and_a_locked_one_stays() {
        assert_eq!(enabling(0), Ok(Some(5)));
        assert_eq!(enabling(0x10000), Ok(Some(0x10005)), "what else is set there stays");
        assert_eq!(enabling(5), Ok(None));
        assert_eq!(enabling(1), Err(Unusable::DisabledByFirmware));
        assert_eq!(enabling(3), Err(Unusable::DisabledByFirmware), "inside SMX alone is not enough");
    }
}
