// SPDX-License-Identifier: MIT OR Apache-2.0
//! The models' bits. Levels are those of the x86-64 psABI (section 3.1.1, table 3.1), the others what a CPU of that
//! generation states of itself. Each bit is named in the policy, and shown by it: a test reads both.

/// Registers of CPUID with feature bits.
pub(super) const REGISTERS: usize = 11;

/// The bits of each of them.
pub(super) type Bits = [u32; REGISTERS];

/// All models, by their names in the configuration.
pub(super) const MODELS: [(&str, Bits); 6] =
    [("v2", V2), ("v3", V3), ("v4", V4), ("epyc", EPYC), ("epyc-rome", EPYC_ROME), ("epyc-milan", EPYC_MILAN)];

/// A register with these bits.
const fn bits<const N: usize>(numbers: [u32; N]) -> u32 {
    let (mut register, mut at) = (0, 0);
    while at < N {
        register |= 1 << numbers[at];
        at += 1;
    }
    register
}

/// The bits of both.
const fn with(one: Bits, other: Bits) -> Bits {
    let (mut both, mut at) = (one, 0);
    while at < both.len() {
        both[at] |= other[at];
        at += 1;
    }
    both
}

/// Features that a model never decides: VME, which emulators lack, SMEP, SMAP and UMIP, the sources of random numbers,
/// MD_CLEAR, the controls of speculation, and in leaf 0x8000_0001 the bits that AMD repeats of leaf 1.
pub(super) const AS_HOST: Bits = [
    bits([21, 24, 30, 31]),
    bits([1]),
    bits([7, 18, 20]),
    bits([2]),
    bits([10]),
    0,
    0,
    0,
    bits([1, 22]),
    bits([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 14, 15, 16, 17, 23, 24]),
    bits([12, 14, 15, 16, 17, 18, 19, 20, 24, 26, 28]),
];

/// x86-64 itself, as every CPU has it that virtualizes with nested paging.
const V1: Bits = [
    0,
    bits([0, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 14, 15, 16, 17, 19, 23, 24, 25, 26]),
    0,
    0,
    0,
    0,
    0,
    0,
    0,
    bits([11, 20, 27, 29]),
    0,
];
/// SSE3, SSSE3, CMPXCHG16B, SSE4.1, SSE4.2, POPCNT; LAHF.
const V2: Bits = with(V1, [bits([0, 9, 13, 19, 20, 23]), 0, 0, 0, 0, 0, 0, 0, bits([0]), 0, 0]);
/// FMA, MOVBE, XSAVE, AVX, F16C; BMI1, AVX2, BMI2; LZCNT.
const V3: Bits = with(V2, [bits([12, 22, 26, 28, 29]), 0, bits([3, 5, 8]), 0, 0, 0, 0, 0, bits([5]), 0, 0]);
/// AVX-512 F, DQ, CD, BW, VL.
const V4: Bits = with(V3, [0, 0, bits([16, 17, 28, 30, 31]), 0, 0, 0, 0, 0, 0, 0, 0]);

/// Zen (family 17h, models 00h-0Fh). Beyond v3: PCLMULQDQ, AES; FSGSBASE, ADX, CLFLUSHOPT, SHA; XSAVEOPT, XSAVEC,
/// XGETBV_1; CR8 by LOCK MOV, SSE4A, misaligned SSE, PREFETCHW; MMX extensions, FFXSR, 1 GiB pages; CLZERO, XSAVE error
/// pointers.
const EPYC: Bits = with(
    V3,
    [
        bits([1, 25]),
        0,
        bits([0, 19, 23, 29]),
        0,
        0,
        0,
        0,
        bits([0, 1, 2]),
        bits([4, 6, 7, 8]),
        bits([22, 25, 26]),
        bits([0, 2]),
    ],
);
/// Zen 2 (family 17h, models 30h-3Fh): CLWB; RDPID; WBNOINVD.
const EPYC_ROME: Bits = with(EPYC, [0, 0, bits([24]), bits([22]), 0, 0, 0, 0, 0, 0, bits([9])]);
/// Zen 3 (family 19h, models 00h-0Fh): ERMS, INVPCID; VAES, VPCLMULQDQ; FSRM.
const EPYC_MILAN: Bits = with(EPYC_ROME, [0, 0, bits([9, 10]), bits([9, 10]), bits([4]), 0, 0, 0, 0, 0, 0]);
