// SPDX-License-Identifier: MIT OR Apache-2.0
//! The policy: which feature bits a guest sees. Bits that are not named are never shown.
//!
//! `Never` is written out where a host has the feature and a reader could expect it: it needs registers or state that
//! is not virtualized here.

use Show::{Always, AsHost, Never};

/// The condition on which a feature is shown to a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Show {
    /// If the host has it.
    AsHost,
    /// Shown whatever the host has: the monitor provides it.
    Always,
    /// Not at all.
    Never,
}

/// A feature: its bit, its name, when it is shown.
pub type Feature = (u32, &'static str, Show);

/// Returns the register that a guest sees where the host has `host`.
pub fn shown(features: &[Feature], host: u32) -> u32 {
    features.iter().fold(0, |register, &(bit, _, show)| match show {
        AsHost => register | host & (1 << bit),
        Always => register | 1 << bit,
        Never => register,
    })
}

/// Leaf 1, EDX: several logical CPUs in a package.
pub(super) const HTT: u32 = 28;
/// Leaf 0x8000_0001, ECX: those are cores.
pub(super) const CMP_LEGACY: u32 = 1;
/// Leaf 0x8000_0001, ECX: leaves 0x8000_001D and 0x8000_001E exist.
pub(super) const TOPOLOGY_EXTENSIONS: u32 = 22;
/// Leaf 0x8000_0001, EDX.
pub(super) const SYSCALL: u32 = 11;
pub(super) const NX: u32 = 20;
pub(super) const FFXSR: u32 = 25;
pub(super) const LONG_MODE: u32 = 29;
/// Leaf 0x8000_0008, EBX: PRED_CMD, and bits of SPEC_CTRL.
pub(super) const IBPB: u32 = 12;
pub(super) const IBRS: u32 = 14;
pub(super) const STIBP: u32 = 15;
pub(super) const SSBD: u32 = 24;
pub(super) const PSFD: u32 = 28;
/// No bit of a register.
pub(super) const NO_BIT: u32 = 32;

/// Leaf 1, ECX. OSXSAVE (27) follows the guest's CR4.
pub const LEAF_1_ECX: &[Feature] = &[
    (0, "SSE3", AsHost),
    (1, "PCLMULQDQ", AsHost),
    (2, "DTES64", Never),
    (3, "MONITOR", Never),
    (4, "DS-CPL", Never),
    (5, "VMX", Never),
    (6, "SMX", Never),
    (7, "EIST", Never),
    (8, "TM2", Never),
    (9, "SSSE3", AsHost),
    (11, "SDBG", Never),
    (12, "FMA", AsHost),
    (13, "CMPXCHG16B", AsHost),
    (15, "PDCM", Never),
    (17, "PCID", AsHost),
    (18, "DCA", Never),
    (19, "SSE4.1", AsHost),
    (20, "SSE4.2", AsHost),
    (21, "x2APIC", Always),
    (22, "MOVBE", AsHost),
    (23, "POPCNT", AsHost),
    (24, "TSC-deadline", Always),
    (25, "AES", AsHost),
    (26, "XSAVE", AsHost),
    (28, "AVX", AsHost),
    (29, "F16C", AsHost),
    (30, "RDRAND", AsHost),
    (31, "hypervisor", Always),
];

/// Leaf 1, EDX. HTT (28) follows the number of CPUs.
pub const LEAF_1_EDX: &[Feature] = &[
    (0, "FPU", AsHost),
    (1, "VME", AsHost),
    (2, "DE", AsHost),
    (3, "PSE", AsHost),
    (4, "TSC", AsHost),
    (5, "MSR", AsHost),
    (6, "PAE", AsHost),
    (7, "MCE", AsHost),
    (8, "CMPXCHG8B", AsHost),
    (9, "APIC", Always),
    (11, "SYSENTER", AsHost),
    (12, "MTRR", AsHost),
    (13, "PGE", AsHost),
    (14, "MCA", AsHost),
    (15, "CMOV", AsHost),
    (16, "PAT", AsHost),
    (17, "PSE36", AsHost),
    (18, "PSN", Never),
    (19, "CLFLUSH", AsHost),
    (21, "DS", Never),
    (22, "ACPI", Never),
    (23, "MMX", AsHost),
    (24, "FXSR", AsHost),
    (25, "SSE", AsHost),
    (26, "SSE2", AsHost),
    (27, "SS", AsHost),
    (29, "TM", Never),
    (31, "PBE", Never),
];

/// Leaf 7, subleaf 0: EAX (a number, not flags), EBX, ECX, EDX.
pub const LEAF_7_0: [&[Feature]; 4] = [
    &[],
    &[
        (0, "FSGSBASE", AsHost),
        (1, "TSC_ADJUST", Never),
        (2, "SGX", Never),
        (3, "BMI1", AsHost),
        (4, "HLE", Never),
        (5, "AVX2", AsHost),
        (6, "FDP_EXCPTN_ONLY", AsHost),
        (7, "SMEP", AsHost),
        (8, "BMI2", AsHost),
        (9, "ERMS", AsHost),
        (10, "INVPCID", AsHost),
        (11, "RTM", Never),
        (12, "PQM", Never),
        (13, "ZERO_FCS_FDS", AsHost),
        (14, "MPX", Never),
        (15, "PQE", Never),
        (16, "AVX512F", AsHost),
        (17, "AVX512DQ", AsHost),
        (18, "RDSEED", AsHost),
        (19, "ADX", AsHost),
        (20, "SMAP", AsHost),
        (21, "AVX512_IFMA", AsHost),
        (23, "CLFLUSHOPT", AsHost),
        (24, "CLWB", AsHost),
        (25, "processor trace", Never),
        (28, "AVX512CD", AsHost),
        (29, "SHA", AsHost),
        (30, "AVX512BW", AsHost),
        (31, "AVX512VL", AsHost),
    ],
    &[
        (1, "AVX512_VBMI", AsHost),
        (2, "UMIP", AsHost),
        (3, "PKU", Never),
        (4, "OSPKE", Never),
        (5, "WAITPKG", Never),
        (6, "AVX512_VBMI2", AsHost),
        (7, "CET_SS", Never),
        (8, "GFNI", AsHost),
        (9, "VAES", AsHost),
        (10, "VPCLMULQDQ", AsHost),
        (11, "AVX512_VNNI", AsHost),
        (12, "AVX512_BITALG", AsHost),
        (13, "TME", Never),
        (14, "AVX512_VPOPCNTDQ", AsHost),
        (16, "LA57", Never),
        (22, "RDPID", AsHost),
        (23, "KL", Never),
        (24, "BUS_LOCK_DETECT", Never),
        (25, "CLDEMOTE", AsHost),
        (27, "MOVDIRI", AsHost),
        (28, "MOVDIR64B", AsHost),
        (29, "ENQCMD", Never),
        (30, "SGX_LC", Never),
        (31, "PKS", Never),
    ],
    &[
        (4, "FSRM", AsHost),
        (5, "UINTR", Never),
        (8, "AVX512_VP2INTERSECT", AsHost),
        (9, "SRBDS_CTRL", Never),
        (10, "MD_CLEAR", AsHost),
        (14, "SERIALIZE", AsHost),
        (15, "hybrid", Never),
        (16, "TSXLDTRK", Never),
        (18, "PCONFIG", Never),
        (19, "architectural LBR", Never),
        (20, "CET_IBT", Never),
        (22, "AMX_BF16", Never),
        (23, "AVX512_FP16", AsHost),
        (24, "AMX_TILE", Never),
        (25, "AMX_INT8", Never),
        (26, "SPEC_CTRL", Never),
        (27, "STIBP", Never),
        (28, "FLUSH_L1D", Never),
        (29, "ARCH_CAPABILITIES", Never),
        (30, "CORE_CAPABILITIES", Never),
        (31, "SSBD", Never),
    ],
];

/// Leaf 7, subleaf 1: EAX, EBX, ECX, EDX.
pub const LEAF_7_1: [&[Feature]; 4] = [
    &[
        (0, "SHA512", AsHost),
        (1, "SM3", AsHost),
        (2, "SM4", AsHost),
        (4, "AVX_VNNI", AsHost),
        (5, "AVX512_BF16", AsHost),
        (6, "LASS", Never),
        (7, "CMPCCXADD", AsHost),
        (8, "ARCH_PERFMON_EXT", Never),
        (10, "FZRM", AsHost),
        (11, "FSRS", AsHost),
        (12, "FSRC", AsHost),
        (17, "FRED", Never),
        (21, "AMX_FP16", Never),
        (23, "AVX_IFMA", AsHost),
        (26, "LAM", Never),
    ],
    &[],
    &[],
    &[
        (4, "AVX_VNNI_INT8", AsHost),
        (5, "AVX_NE_CONVERT", AsHost),
        (8, "AMX_COMPLEX", Never),
        (10, "AVX_VNNI_INT16", AsHost),
        (14, "PREFETCHI", AsHost),
        (18, "CET_SSS", Never),
        (19, "AVX10", Never),
        (21, "APX", Never),
    ],
];

/// Leaf 0xD, subleaf 1, EAX.
pub const LEAF_D_1_EAX: &[Feature] =
    &[(0, "XSAVEOPT", AsHost), (1, "XSAVEC", AsHost), (2, "XGETBV_1", AsHost), (3, "XSAVES", Never), (4, "XFD", Never)];

/// Leaf 0x4000_0001, EAX: KVM's features.
pub const KVM: &[Feature] = &[
    (0, "CLOCKSOURCE", Always),
    (1, "NOP_IO_DELAY", Always),
    (3, "CLOCKSOURCE2", Always),
    (5, "STEAL_TIME", Always),
    (6, "PV_EOI", Always),
    (24, "CLOCKSOURCE_STABLE", Always),
];

/// More of them, for guests whose vCPUs share CPUs. Hypercalls and the steal time area provide them.
pub const KVM_PARAVIRTUAL: &[Feature] = &[
    (7, "PV_UNHALT", Always),
    (9, "PV_TLB_FLUSH", Always),
    (11, "PV_SEND_IPI", Always),
    (13, "PV_SCHED_YIELD", Always),
];

/// Leaf 0x8000_0001, ECX. CmpLegacy (1) follows the number of CPUs on AMD.
pub const LEAF_8000_0001_ECX: &[Feature] = &[
    (0, "LAHF in 64-bit mode", AsHost),
    (2, "SVM", Never),
    (3, "extended APIC space", Never),
    (4, "CR8 by LOCK MOV", AsHost),
    (5, "LZCNT", AsHost),
    (6, "SSE4A", AsHost),
    (7, "misaligned SSE", AsHost),
    (8, "PREFETCHW", AsHost),
    (9, "OSVW", Never),
    (10, "IBS", Never),
    (11, "XOP", AsHost),
    (12, "SKINIT", Never),
    (13, "watchdog", Never),
    (15, "LWP", Never),
    (16, "FMA4", AsHost),
    (17, "TCE", Never),
    (19, "node identifier", Never),
    (21, "TBM", AsHost),
    (TOPOLOGY_EXTENSIONS, "topology extensions", AsHost),
    (23, "PerfCtrExtCore", Never),
    (24, "PerfCtrExtNB", Never),
    (26, "data breakpoint extension", Never),
    (27, "PerfTsc", Never),
    (28, "PerfCtrExtLLC", Never),
    (29, "MONITORX", Never),
    (30, "address mask extension", Never),
];

/// Leaf 0x8000_0001, EDX. Bits below 24 repeat leaf 1 on AMD.
pub const LEAF_8000_0001_EDX: &[Feature] = &[
    (0, "FPU", AsHost),
    (1, "VME", AsHost),
    (2, "DE", AsHost),
    (3, "PSE", AsHost),
    (4, "TSC", AsHost),
    (5, "MSR", AsHost),
    (6, "PAE", AsHost),
    (7, "MCE", AsHost),
    (8, "CMPXCHG8B", AsHost),
    (9, "APIC", AsHost),
    (SYSCALL, "SYSCALL", AsHost),
    (12, "MTRR", AsHost),
    (13, "PGE", AsHost),
    (14, "MCA", AsHost),
    (15, "CMOV", AsHost),
    (16, "PAT", AsHost),
    (17, "PSE36", AsHost),
    (NX, "NX", AsHost),
    (22, "MMX extensions", AsHost),
    (23, "MMX", AsHost),
    (24, "FXSR", AsHost),
    (FFXSR, "FFXSR", AsHost),
    (26, "1 GiB pages", AsHost),
    (27, "RDTSCP", AsHost),
    (LONG_MODE, "long mode", AsHost),
    (30, "3DNow extensions", AsHost),
    (31, "3DNow", AsHost),
];

/// Leaf 0x8000_0008, EBX.
pub const LEAF_8000_0008_EBX: &[Feature] = &[
    (0, "CLZERO", AsHost),
    (1, "retired instruction counter", Never),
    (2, "XSAVE error pointers", AsHost),
    (3, "INVLPGB", Never),
    (4, "RDPRU", Never),
    (9, "WBNOINVD", AsHost),
    (IBPB, "IBPB", AsHost),
    (IBRS, "IBRS", AsHost),
    (STIBP, "STIBP", AsHost),
    (16, "IBRS always on", AsHost),
    (17, "STIBP always on", AsHost),
    (18, "IBRS preferred", AsHost),
    (19, "IBRS protects the same mode", AsHost),
    (20, "no LMSLE", AsHost),
    (23, "PPIN", Never),
    (SSBD, "SSBD", AsHost),
    (25, "virtual SSBD", Never),
    (26, "not affected by SSB", AsHost),
    (27, "CPPC", Never),
    (PSFD, "PSFD", AsHost),
    (29, "not affected by branch type confusion", AsHost),
    (30, "IBPB clears return predictions", AsHost),
];

/// Leaf 0x8000_0021, EAX.
pub const LEAF_8000_0021_EAX: &[Feature] = &[
    (0, "no nested data breakpoints", AsHost),
    (1, "FS/GS base not serializing", AsHost),
    (2, "LFENCE serializes", AsHost),
    (5, "VERW clears buffers", AsHost),
    (6, "null selector clears base", AsHost),
    (7, "upper address ignore", Never),
    (8, "automatic IBRS", Never),
    (10, "fast short REP STOSB", AsHost),
    (11, "fast short REP CMPSB", AsHost),
    (20, "PREFETCHI", AsHost),
    (27, "selective IBPB", AsHost),
    (28, "IBPB flushes branch types", AsHost),
    (29, "not affected by return stack overflow", AsHost),
    (30, "user mode not affected by return stack overflow", AsHost),
    (31, "reduced speculation", Never),
];

/// Leaf 0x8000_0021, ECX.
pub const LEAF_8000_0021_ECX: &[Feature] =
    &[(1, "not affected by TSA on the store queue", AsHost), (2, "not affected by TSA on the L1 cache", AsHost)];
