// SPDX-License-Identifier: MIT OR Apache-2.0
//! The measures against vulnerabilities.

use bitflags::bitflags;

bitflags! {
    /// The hypervisor's measures. By moment: once on each CPU, when a CPU changes guests, at each entry, after each
    /// exit.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Actions: u32 {
        /// Once: EFER.AIBRSE.
        const AUTO_IBRS = 1 << 0;
        /// Once: DE_CFG bit 1, if LFENCE is not serializing anyway.
        const SERIALIZE_LFENCE = 1 << 1;
        /// Once: DE_CFG bit 9.
        const ZENBLEED = 1 << 2;
        /// Once: BP_CFG bit 4.
        const REDUCE_SPECULATION = 1 << 3;
        /// Once: SPEC_CTRL.IBRS in the host.
        const IBRS = 1 << 4;
        /// After each exit: SPEC_CTRL.IBRS is written again, because it must not stay set.
        const IBRS_AT_EXIT = 1 << 5;
        /// IBPB when a CPU changes from one guest to another.
        const IBPB_BETWEEN_GUESTS = 1 << 6;
        /// After each exit: IBPB.
        const IBPB_AT_EXIT = 1 << 7;
        /// After each exit: the return stack buffer is filled with addresses of the host's.
        const STUFF_RETURN_STACK = 1 << 8;
        /// After each exit: no general purpose register keeps a guest's value.
        const CLEAR_REGISTERS = 1 << 9;
        /// At each entry: VERW.
        const CLEAR_BUFFERS = 1 << 10;
        /// At each entry: a division, so that the divider keeps nothing but its quotient.
        const CLEAR_DIVIDER = 1 << 11;
    }
}

impl Actions {
    /// Those that cost guests nothing and that guests are informed of: they are carried out with `mitigations=off`,
    /// too.
    pub const ALWAYS: Self = Self::SERIALIZE_LFENCE;

    /// Less what others make needless: behind an IBPB no prediction of the guest's is left for IBRS to hold back.
    #[must_use]
    pub const fn reduced(self) -> Self {
        if self.contains(Self::IBPB_AT_EXIT) {
            return self.difference(Self::IBRS.union(Self::IBRS_AT_EXIT)).union(Self::STUFF_RETURN_STACK);
        }
        self
    }

    /// SPEC_CTRL while the host runs.
    pub const fn host_spec_ctrl(self) -> u64 {
        if self.contains(Self::IBRS) { 1 } else { 0 }
    }
}
