// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPUID bits of the registers that control speculation, as a guest sees them.

/// Registers that control speculation (AMD APM vol. 2, section 3.2.9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Speculation {
    /// The bits of SPEC_CTRL; 0 where there is no such register.
    pub spec_ctrl: u64,
    /// PRED_CMD takes an indirect branch prediction barrier.
    pub has_ibpb: bool,
}

impl Speculation {
    /// Returns whether there is any such register.
    pub const fn is_offered(self) -> bool {
        self.spec_ctrl != 0 || self.has_ibpb
    }
}
