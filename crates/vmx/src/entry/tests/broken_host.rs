// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rules for the host's state, each violated.

use super::{Broken, clear};
use crate::control::Control;

const LOW_BITS: &str = "is of the local table or has a privilege level above 0";
const NOT_CANONICAL: &str = "is not canonical";
const WILD: u64 = 1 << 47;

pub const ALL: &[Broken] = &[
    (|it| it.host.cr0 &= !1, "27.2.2", "host CR0", "has a bit that VMX does not allow"),
    (|it| it.host.cr4 |= 1 << 30, "27.2.2", "host CR4", "has a bit that VMX does not allow"),
    (
        |it| {
            it.host.cr4 |= 1 << 23;
            it.host.cr0 &= !(1 << 16);
        },
        "27.2.2",
        "host CR4",
        "has CET set, and CR0.WP is clear",
    ),
    (|it| it.host.cr3 |= 1 << 46, "27.2.2", "host CR3", "has a bit beyond the CPU's physical addresses"),
    (|it| it.host.sysenter_esp = WILD, "27.2.2", "host IA32_SYSENTER_ESP", NOT_CANONICAL),
    (|it| it.host.sysenter_eip = WILD, "27.2.2", "host IA32_SYSENTER_EIP", NOT_CANONICAL),
    (|it| it.host.perf_global_ctrl = 1 << 60, "27.2.2", "host IA32_PERF_GLOBAL_CTRL", "has a reserved bit"),
    (|it| it.host.pat = 2, "27.2.2", "host IA32_PAT", "has a type that is reserved"),
    (
        |it| it.host.efer &= !(1 << 10),
        "27.2.2",
        "host IA32_EFER",
        "has a reserved bit, or LMA or LME of another address-space size",
    ),
    (|it| it.host.es = 1, "27.2.3", "host ES", LOW_BITS),
    (|it| it.host.cs |= 4, "27.2.3", "host CS", LOW_BITS),
    (|it| it.host.ss = 3, "27.2.3", "host SS", LOW_BITS),
    (|it| it.host.ds = 2, "27.2.3", "host DS", LOW_BITS),
    (|it| it.host.fs = 7, "27.2.3", "host FS", LOW_BITS),
    (|it| it.host.gs = 4, "27.2.3", "host GS", LOW_BITS),
    (|it| it.host.tr |= 1, "27.2.3", "host TR", LOW_BITS),
    (|it| it.host.cs = 0, "27.2.3", "host CS", "is 0"),
    (|it| it.host.tr = 0, "27.2.3", "host TR", "is 0"),
    (
        |it| {
            clear(it, Control::HostAddressSpaceSize);
            it.host.efer = 0;
        },
        "27.2.3",
        "host SS",
        "is 0, and the host is no 64-bit one",
    ),
    (|it| it.host.fs_base = WILD, "27.2.3", "host FS base", NOT_CANONICAL),
    (|it| it.host.gs_base = WILD, "27.2.3", "host GS base", NOT_CANONICAL),
    (|it| it.host.tr_base = WILD, "27.2.3", "host TR base", NOT_CANONICAL),
    (|it| it.host.gdtr_base = WILD, "27.2.3", "host GDTR base", NOT_CANONICAL),
    (|it| it.host.idtr_base = WILD, "27.2.3", "host IDTR base", NOT_CANONICAL),
    (
        |it| {
            clear(it, Control::HostAddressSpaceSize);
            it.host.efer = 0;
            it.host.ss = 0x10;
        },
        "27.2.4",
        "host address-space size",
        "is 0 on a host in IA-32e mode",
    ),
    (|it| it.host.cr4 &= !0x20, "27.2.4", "host CR4", "has PAE clear, and the host is a 64-bit one"),
    (|it| it.host.rip = WILD, "27.2.4", "host RIP", NOT_CANONICAL),
];
