// SPDX-License-Identifier: MIT OR Apache-2.0
//! Microcode revisions since which a vulnerability is fixed or can be. Facts of AMD's security bulletins.

/// AMD-SB-7008 (Zenbleed): model from, model to, first good revision.
const ZENBLEED: [(u32, u32, u32); 5] = [
    (0x30, 0x3f, 0x0830_107b),
    (0x60, 0x67, 0x0860_010c),
    (0x68, 0x6f, 0x0860_8107),
    (0x70, 0x7f, 0x0870_1033),
    (0xa0, 0xaf, 0x08a0_0009),
];

/// AMD-SB-7036 (TSA): the first revision of each stepping with which VERW clears buffers. The upper 24 bits are the
/// stepping's.
const VERW_CLEARS: [u32; 16] = [
    0x0a00_11d7,
    0x0a00_123b,
    0x0a00_820d,
    0x0a10_114c,
    0x0a10_124c,
    0x0a10_8109,
    0x0a20_102e,
    0x0a20_1211,
    0x0a40_4108,
    0x0a50_0012,
    0x0a60_120a,
    0x0a70_4108,
    0x0a70_5208,
    0x0a70_8008,
    0x0a70_c008,
    0x0aa0_0216,
];

/// Returns whether a Zen 2 of this model has microcode against Zenbleed.
pub fn fixes_zenbleed(model: u32, revision: u32) -> bool {
    ZENBLEED.iter().any(|&(from, to, good)| (from..=to).contains(&model) && revision >= good)
}

/// Returns whether VERW clears buffers with this microcode.
pub fn clears_by_verw(revision: u32) -> bool {
    VERW_CLEARS.iter().any(|&good| good >> 8 == revision >> 8 && revision >= good)
}
