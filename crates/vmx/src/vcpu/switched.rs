// SPDX-License-Identifier: MIT OR Apache-2.0
//! The registers that VM entries do not load, as the world switch finds them.

/// State that the world switch reads and writes.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Switched {
    /// By [`vm::vcpu::Gpr`] number; RSP's slot is unused.
    pub gprs: [u64; 16],
    /// Ticks of the time stamp counter that have passed in the guest while its time was counted.
    pub guest_ticks: u64,
    /// The stack pointer that the VMCS has for the host; 0 while it has none.
    pub host_rsp: u64,
    /// The guest's number, for the CPU that takes an NMI right behind an exit.
    pub guest: u32,
}

// `switch.S` knows them by number.
const _: () = {
    assert!(core::mem::offset_of!(Switched, guest_ticks) == 16 * 8);
    assert!(core::mem::offset_of!(Switched, host_rsp) == 17 * 8);
};
