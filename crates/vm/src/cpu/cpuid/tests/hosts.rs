// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hosts made up for tests.

use std::vec::Vec;

use crate::cpu::cpuid::{CpuidResult, CpuidSource};

/// Leaves listed by number and subleaf; the default for all others.
pub struct Leaves {
    listed: Vec<(u32, u32, [u32; 4])>,
    others: CpuidResult,
}

impl CpuidSource for Leaves {
    fn leaf(&self, leaf: u32, subleaf: u32) -> CpuidResult {
        let found = self.listed.iter().find(|listed| (listed.0, listed.1) == (leaf, subleaf));
        found.map_or(self.others, |&(_, _, [eax, ebx, ecx, edx])| CpuidResult { eax, ebx, ecx, edx })
    }
}

/// "AuthenticAMD" in EBX, ECX and EDX.
const AMD: [u32; 3] = [0x6874_7541, 0x444d_4163, 0x6974_6e65];
const ALL: u32 = u32::MAX;

/// A host with every bit set, but for leaves that hold numbers.
pub fn everything() -> Leaves {
    let caches = [0x0000_0121, 0x0000_0122, 0x0000_0143, 0x0000_0163, 0];
    let cache =
        |leaf| move |(subleaf, eax): (usize, u32)| (leaf, subleaf as u32, [eax | ALL << 14, 0x01c0_003f, 0x3ff, 0]);
    let end = |leaf| (leaf, 4, [0; 4]);
    let mut listed = std::vec![
        (0, 0, [0x20, AMD[0], AMD[1], AMD[2]]),
        (0x8000_0000, 0, [0x8000_0028, AMD[0], AMD[1], AMD[2]]),
        (0x8000_0008, 0, [0x3030, ALL, ALL, ALL]),
        (0x15, 0, [2, 250, 24_000_000, 0]),
        (0x16, 0, [3000, 4000, 100, 0]),
        (0xd, 0, [0x6_02ff, 2696, 11_008, 0]),
        (0xd, 2, [256, 576, 0, 0]),
        (0xd, 5, [64, 1088, 0, 0]),
        (0xd, 6, [512, 1152, 0, 0]),
        (0xd, 7, [1024, 1664, 0, 0]),
        end(4),
        end(0x8000_001d),
    ];
    listed.extend(caches[..4].iter().copied().enumerate().map(cache(4)));
    listed.extend(caches[..4].iter().copied().enumerate().map(cache(0x8000_001d)));
    Leaves { listed, others: CpuidResult { eax: ALL, ebx: ALL, ecx: ALL, edx: ALL } }
}

/// A host that knows only the leaves that state how many there are.
pub fn nothing() -> Leaves {
    Leaves {
        listed: std::vec![(0, 0, [1, AMD[0], AMD[1], AMD[2]]), (0x8000_0000, 0, [0x8000_0001, 0, 0, 0])],
        others: CpuidResult::default(),
    }
}
