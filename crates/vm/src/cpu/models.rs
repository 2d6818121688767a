// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPU models: the features that a guest sees on each host that has them, so that hosts of different CPUs show the same
//! CPU.
//!
//! A model is data: for each register of CPUID with feature bits, the bits that it has. A guest sees the intersection
//! of model, host and [policy](features). A host that lacks a bit of the model refuses the guest ([`Model::missing`]).
//! Beside the model's bits a guest sees `AS_HOST`: protections and controls of speculation, which are worth more than
//! equality, and AMD's repetitions of leaf 1. Family, model, brand string, caches and address widths stay the host's.

mod data;
#[cfg(test)]
mod tests;

use super::cpuid::features::{self, Feature, Show};
use super::cpuid::{CpuidResult, CpuidSource, CpuidTable, CpuidView};

use data::{AS_HOST, Bits, MODELS, REGISTERS};

/// A model.
#[derive(Clone, Copy, Debug)]
pub struct Model {
    /// Its bits in each of [`PLACES`].
    has: &'static Bits,
}

/// A register that CPUID returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Register {
    Eax,
    Ebx,
    Ecx,
    Edx,
}

impl Register {
    fn of(self, leaf: &mut CpuidResult) -> &mut u32 {
        match self {
            Self::Eax => &mut leaf.eax,
            Self::Ebx => &mut leaf.ebx,
            Self::Ecx => &mut leaf.ecx,
            Self::Edx => &mut leaf.edx,
        }
    }
}

/// Leaf, subleaf, register, and the features there.
type Place = (u32, u32, Register, &'static [Feature]);

/// The places of features, in the order of [`Bits`].
const PLACES: [Place; REGISTERS] = [
    (1, 0, Register::Ecx, features::LEAF_1_ECX),
    (1, 0, Register::Edx, features::LEAF_1_EDX),
    (7, 0, Register::Ebx, features::LEAF_7_0[1]),
    (7, 0, Register::Ecx, features::LEAF_7_0[2]),
    (7, 0, Register::Edx, features::LEAF_7_0[3]),
    (7, 1, Register::Eax, features::LEAF_7_1[0]),
    (7, 1, Register::Edx, features::LEAF_7_1[3]),
    (0xd, 1, Register::Eax, features::LEAF_D_1_EAX),
    (0x8000_0001, 0, Register::Ecx, features::LEAF_8000_0001_ECX),
    (0x8000_0001, 0, Register::Edx, features::LEAF_8000_0001_EDX),
    (0x8000_0008, 0, Register::Ebx, features::LEAF_8000_0008_EBX),
];
/// Places among these that decide on the state which XSAVE saves.
const LEAF_1_ECX: usize = 0;
const LEAF_7_EBX: usize = 2;
const AVX: u32 = 1 << 28;
const AVX_512F: u32 = 1 << 16;

/// XCR0 bits: x87 and SSE, AVX, AVX-512.
const XCR0_LEGACY: u32 = 0b11;
const XCR0_AVX: u32 = 1 << 2;
const XCR0_AVX_512: u32 = 0b111 << 5;

impl Model {
    /// The model of this name.
    pub fn named(name: &str) -> Option<Self> {
        MODELS.iter().find(|(known, _)| *known == name).map(|(_, has)| Self { has })
    }

    /// Returns the bits of a host's leaf that the model keeps.
    pub fn mask(&self, leaf: u32, subleaf: u32, mut host: CpuidResult) -> CpuidResult {
        for ((at, has), as_host) in PLACES.iter().zip(self.has).zip(AS_HOST) {
            if (at.0, at.1) == (leaf, subleaf) {
                *at.2.of(&mut host) &= has | as_host;
            }
        }
        if (leaf, subleaf) == (0xd, 0) {
            host.eax &= self.xcr0();
        }
        host
    }

    /// The names of the features that a host lacks; a guest of this model cannot run there.
    pub fn missing(&self, host: &impl CpuidSource) -> impl Iterator<Item = &'static str> {
        PLACES.iter().zip(self.has).flat_map(|(place, has)| missing_at(place, *has, host))
    }

    fn xcr0(&self) -> u32 {
        let avx = if self.has[LEAF_1_ECX] & AVX != 0 { XCR0_AVX } else { 0 };
        let avx_512 = if self.has[LEAF_7_EBX] & AVX_512F != 0 { XCR0_AVX_512 } else { 0 };
        XCR0_LEGACY | avx | avx_512
    }
}

/// The names of the features that a guest was shown, and that a host lacks: the guest cannot go on there.
pub fn missing_of(shown: &CpuidTable, host: &impl CpuidSource) -> impl Iterator<Item = &'static str> {
    PLACES.iter().flat_map(|place @ (leaf, subleaf, register, _)| {
        let mut has = shown.lookup(*leaf, *subleaf, &CpuidView::default());
        missing_at(place, *register.of(&mut has), host)
    })
}

fn missing_at(place: &Place, has: u32, host: &impl CpuidSource) -> impl Iterator<Item = &'static str> {
    let &(leaf, subleaf, register, features) = place;
    let most = host.leaf(leaf & 0x8000_0000, 0).eax;
    let mut found = if leaf <= most { host.leaf(leaf, subleaf) } else { CpuidResult::default() };
    let missing = has & !*register.of(&mut found);
    let is_missing = move |(bit, _, show): &&Feature| *show == Show::AsHost && missing & 1 << bit != 0;
    features.iter().filter(is_missing).map(|(_, name, _)| *name)
}
