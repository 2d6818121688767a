// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPUs as their CPUID describes them, microcode of today.

use crate::{Cpu, Vendor};

const IBPB: u32 = 1 << 12;
const IBRS: u32 = 1 << 14;
const STIBP: u32 = 1 << 15;
const ALWAYS_ON: u32 = 1 << 16;
const SSBD: u32 = 1 << 24;
const BTC_NO: u32 = 1 << 29;
const LFENCE: u32 = 1 << 2;
const AUTO_IBRS: u32 = 1 << 8;
const IBPB_BRTYPE: u32 = 1 << 28;
const SRSO_USER_KERNEL_NO: u32 = 1 << 30;
const BP_SPEC_REDUCE: u32 = 1 << 31;
const VIRTUAL_SPEC_CTRL: u32 = 1 << 20;

const fn amd(family: u32, model: u32, microcode: u32) -> Cpu {
    Cpu {
        vendor: Vendor::Amd,
        family,
        model,
        microcode,
        is_virtual: false,
        sizes_ebx: 0,
        svm_edx: 0,
        extended_eax: 0,
        extended_ecx: 0,
        has_de_cfg: family >= 0x10 && family != 0x11,
        shares_cores: false,
    }
}

/// Opteron, family 0Fh: the emulator's model, too.
pub const K8: Cpu = amd(0xf, 0x6b, 0);
/// Bulldozer's family with microcode that added IBPB.
pub const PILEDRIVER: Cpu = Cpu { sizes_ebx: IBPB, ..amd(0x15, 0x02, 0x0600_0852) };
/// EPYC 7001: IBPB only.
pub const NAPLES: Cpu = Cpu { sizes_ebx: IBPB, ..amd(0x17, 0x01, 0x0800_126e) };
/// EPYC 7002.
pub const ROME: Cpu = Cpu { sizes_ebx: IBPB | IBRS | STIBP | SSBD, ..amd(0x17, 0x31, 0x0830_107c) };
/// EPYC 7003.
pub const MILAN: Cpu = Cpu {
    sizes_ebx: IBPB | IBRS | STIBP | ALWAYS_ON | SSBD | BTC_NO,
    extended_eax: LFENCE | IBPB_BRTYPE,
    svm_edx: VIRTUAL_SPEC_CTRL,
    ..amd(0x19, 0x01, 0x0a00_11d7)
};
/// EPYC 9004.
pub const GENOA: Cpu = Cpu {
    sizes_ebx: MILAN.sizes_ebx,
    extended_eax: LFENCE | AUTO_IBRS | IBPB_BRTYPE,
    svm_edx: VIRTUAL_SPEC_CTRL,
    ..amd(0x19, 0x11, 0x0a10_114c)
};
/// EPYC 9005.
pub const TURIN: Cpu = Cpu {
    sizes_ebx: MILAN.sizes_ebx,
    extended_eax: LFENCE | AUTO_IBRS | IBPB_BRTYPE | SRSO_USER_KERNEL_NO | BP_SPEC_REDUCE,
    svm_edx: VIRTUAL_SPEC_CTRL,
    ..amd(0x1a, 0x02, 0x0b00_2116)
};

pub const ALL: [Cpu; 7] = [K8, PILEDRIVER, NAPLES, ROME, MILAN, GENOA, TURIN];
