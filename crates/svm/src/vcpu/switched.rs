// SPDX-License-Identifier: MIT OR Apache-2.0
//! The registers that VMRUN does not exchange, as the world switch finds them.

/// State that the world switch reads and writes.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Switched {
    /// By [`Gpr`] number; RAX and RSP live in the control block.
    pub gprs: [u64; 16],
    /// Ticks of the time stamp counter that have passed in the guest while its time was counted.
    pub guest_ticks: u64,
    /// Its owner, for the CPU that interrupts the world switch.
    pub owner: Owner,
    /// SPEC_CTRL in the guest and in the host, for a world switch that exchanges it.
    pub spec_ctrl: SpecCtrl,
}

/// The world switch's writes to SPEC_CTRL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct SpecCtrl {
    /// Before the entry.
    pub in_guest: u64,
    /// After the exit.
    pub in_host: u64,
}

// `switch.S` knows them by number.
const _: () = {
    assert!(core::mem::offset_of!(Switched, guest_ticks) == 16 * 8);
    assert!(core::mem::offset_of!(Switched, spec_ctrl) == 19 * 8);
};

/// Owner of the registers that the world switch exchanges.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Owner {
    /// Physical address of the control block.
    pub vmcb: u64,
    /// The guest's number.
    pub guest: u32,
}
