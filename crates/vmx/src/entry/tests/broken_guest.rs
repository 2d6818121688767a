// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rules for the guest's registers and for its state that is no register, each violated.

use super::{Broken, clear, set};
use crate::control::Control;
use crate::entry::State;

const NOT_CANONICAL: &str = "is not canonical";
const WILD: u64 = 1 << 47;
const ACTIVITY: &str = "activity state";
const INTERRUPTIBILITY: &str = "interruptibility state";
const PENDING: &str = "pending debug exceptions";
const RESERVED_ENTRY: &str = "is present and has a reserved bit";

pub const ALL: &[Broken] = &[
    (|it| it.guest.cr0 &= !0x20, "27.3.1.1", "CR0", "has a bit that VMX does not allow"),
    (|it| it.guest.cr0 &= !1, "27.3.1.1", "CR0", "has PG set and PE clear"),
    (|it| it.guest.cr4 &= !0x2000, "27.3.1.1", "CR4", "has a bit that VMX does not allow"),
    (
        |it| {
            it.guest.cr4 |= 1 << 23;
            it.guest.cr0 &= !(1 << 16);
        },
        "27.3.1.1",
        "CR4",
        "has CET set, and CR0.WP is clear",
    ),
    (|it| it.guest.cr3 |= 1 << 46, "27.3.1.1", "CR3", "has a bit beyond the CPU's physical addresses"),
    (|it| it.guest.cr0 &= !(1 << 31), "27.3.1.1", "CR0", "has PG clear in IA-32e mode"),
    (|it| it.guest.cr4 &= !0x20, "27.3.1.1", "CR4", "has PAE clear in IA-32e mode"),
    (
        |it| {
            clear(it, Control::Ia32eModeGuest);
            it.guest.cr4 |= 1 << 17;
        },
        "27.3.1.1",
        "CR4",
        "has PCIDE set outside IA-32e mode",
    ),
    (|it| it.guest.debug_control = 1 << 3, "27.3.1.1", "IA32_DEBUGCTL", "has a reserved bit"),
    (|it| it.guest.dr7 = 1 << 32, "27.3.1.1", "DR7", "has a bit above 31"),
    (|it| it.guest.sysenter_esp = WILD, "27.3.1.1", "IA32_SYSENTER_ESP", NOT_CANONICAL),
    (|it| it.guest.sysenter_eip = WILD, "27.3.1.1", "IA32_SYSENTER_EIP", NOT_CANONICAL),
    (|it| it.guest.perf_global_ctrl = 1 << 8, "27.3.1.1", "IA32_PERF_GLOBAL_CTRL", "has a reserved bit"),
    (|it| it.guest.pat = 3 << 8, "27.3.1.1", "IA32_PAT", "has a type that is reserved"),
    (|it| it.guest.efer |= 1 << 12, "27.3.1.1", "IA32_EFER", "has a reserved bit"),
    (|it| it.guest.efer = 0, "27.3.1.1", "IA32_EFER", "has LMA unlike \"IA-32e mode guest\""),
    (|it| it.guest.efer &= !(1 << 8), "27.3.1.1", "IA32_EFER", "has LME unlike LMA under paging"),
    (|it| it.guest.gdtr_base = WILD, "27.3.1.3", "GDTR", "has a base that is not canonical"),
    (|it| it.guest.idtr_base = WILD, "27.3.1.3", "IDTR", "has a base that is not canonical"),
    (|it| it.guest.gdtr_limit = 0x1_0000, "27.3.1.3", "GDTR", "has a limit above FFFFH"),
    (|it| it.guest.idtr_limit = 0x1_0000, "27.3.1.3", "IDTR", "has a limit above FFFFH"),
    (
        |it| {
            it.segments[1].rights = 0xc09b;
            it.guest.rip = 1 << 32;
        },
        "27.3.1.4",
        "RIP",
        "has a bit above 31 outside 64-bit mode",
    ),
    (|it| it.guest.rip = 1 << 48, "27.3.1.4", "RIP", "has bits beyond the CPU's linear addresses that differ"),
    (|it| it.guest.rflags &= !2, "27.3.1.4", "RFLAGS", "has a reserved bit"),
    (
        |it| {
            quiet(it);
            it.controls.interruption = 0x8000_0031;
            it.guest.rflags &= !(1 << 9);
        },
        "27.3.1.4",
        "RFLAGS",
        "has IF clear, and an external interrupt is injected",
    ),
    (|it| it.guest.activity = 4, "27.3.1.5", ACTIVITY, "is one that the CPU does not have"),
    (
        |it| {
            it.guest.activity = 1;
            (it.segments[1].rights, it.segments[2].rights) = (0xa0fb, 0xc0f3);
        },
        "27.3.1.5",
        ACTIVITY,
        "is HLT, and SS has a DPL above 0",
    ),
    (
        |it| {
            it.guest.activity = 2;
            it.guest.interruptibility = 2;
        },
        "27.3.1.5",
        ACTIVITY,
        "is not active, and STI or MOV SS blocks",
    ),
    (
        |it| {
            quiet(it);
            it.guest.activity = 1;
            it.controls.interruption = 0x8000_0306;
        },
        "27.3.1.5",
        ACTIVITY,
        "is one in which the injected event is blocked",
    ),
    (|it| it.guest.interruptibility = 1 << 5, "27.3.1.5", INTERRUPTIBILITY, "has a reserved bit"),
    (|it| it.guest.interruptibility = 3, "27.3.1.5", INTERRUPTIBILITY, "has STI and MOV SS both block"),
    (
        |it| {
            quiet(it);
            it.guest.interruptibility = 1;
            it.guest.rflags &= !(1 << 9);
        },
        "27.3.1.5",
        INTERRUPTIBILITY,
        "has STI block, and RFLAGS.IF is clear",
    ),
    (|it| it.guest.interruptibility = 4, "27.3.1.5", INTERRUPTIBILITY, "has SMIs blocked outside SMM"),
    (
        |it| it.guest.interruptibility = 1 << 4,
        "27.3.1.5",
        INTERRUPTIBILITY,
        "has an enclave interrupted, and no guest has SGX",
    ),
    (
        |it| {
            it.controls.interruption = 0x8000_0031;
            it.guest.rflags |= 1 << 9;
            it.guest.interruptibility = 2;
        },
        "27.3.1.5",
        INTERRUPTIBILITY,
        "blocks the external interrupt that is injected",
    ),
    (
        |it| {
            it.controls.interruption = 0x8000_0202;
            it.guest.interruptibility = 2;
        },
        "27.3.1.5",
        INTERRUPTIBILITY,
        "has STI or MOV SS block the NMI that is injected",
    ),
    (
        |it| {
            it.controls.interruption = 0x8000_0202;
            it.guest.interruptibility = 8;
        },
        "27.3.1.5",
        INTERRUPTIBILITY,
        "has virtual NMIs blocked, and one is injected",
    ),
    (|it| it.guest.pending_debug = 1 << 4, "27.3.1.5", PENDING, "have a reserved bit"),
    (
        |it| {
            it.guest.interruptibility = 2;
            it.guest.rflags |= 1 << 8;
            it.guest.pending_debug = 0;
        },
        "27.3.1.5",
        PENDING,
        "have BS clear, and the guest is stepped",
    ),
    (
        |it| {
            it.guest.interruptibility = 2;
            it.guest.rflags |= 1 << 8;
            it.guest.debug_control = 2;
            it.guest.pending_debug = 1 << 14;
        },
        "27.3.1.5",
        PENDING,
        "have BS set, and the guest is not stepped",
    ),
    (
        |it| {
            quiet(it);
            it.guest.pending_debug = 1 << 16;
        },
        "27.3.1.5",
        PENDING,
        "have RTM set beside others, or under MOV SS",
    ),
    (|it| it.guest.link_pointer = 0x10, "27.3.1.5", "VMCS link pointer", "is not aligned to 4 KiB"),
    (
        |it| it.guest.link_pointer = 1 << 46,
        "27.3.1.5",
        "VMCS link pointer",
        "has a bit beyond the CPU's physical addresses",
    ),
    (|it| it.guest_of_pae().pdpte_0 = 3, "27.3.1.6", "PDPTE0", RESERVED_ENTRY),
    (|it| it.guest_of_pae().pdpte_1 = 1 | 1 << 46, "27.3.1.6", "PDPTE1", RESERVED_ENTRY),
    (|it| it.guest_of_pae().pdpte_2 = 1 | 1 << 8, "27.3.1.6", "PDPTE2", RESERVED_ENTRY),
    (|it| it.guest_of_pae().pdpte_3 = 1 | 1 << 5, "27.3.1.6", "PDPTE3", RESERVED_ENTRY),
];

/// Nothing is blocked, and nothing is pending.
fn quiet(state: &mut State) {
    (state.guest.interruptibility, state.guest.pending_debug) = (0, 0);
    set(state, Control::VirtualNmis);
}

impl State {
    /// The guest leaves IA-32e mode for PAE paging.
    fn guest_of_pae(&mut self) -> &mut crate::entry::GuestFields {
        clear(self, Control::Ia32eModeGuest);
        self.segments[1].rights = 0xc09b;
        self.guest.efer = 0;
        self.guest.rip = 0;
        &mut self.guest
    }
}
