// SPDX-License-Identifier: MIT OR Apache-2.0
//! Leaf 0xD: the state that XSAVE saves, of which the guest gets x87, SSE, AVX and AVX-512.

use super::features::{LEAF_D_1_EAX, shown};
use super::{CpuidResult, CpuidSource, Host};
use crate::devices::{GeneralProtection, StateError};

const LEAF: u32 = 0xd;
const X87: u64 = 1 << 0;
const SSE: u64 = 1 << 1;
const AVX: u64 = 1 << 2;
/// Mask registers, upper halves, upper registers: all or none.
const AVX_512: u64 = 0b111 << 5;
/// Legacy area and header, which every XSAVE area has.
const LEAST_BYTES: u32 = 512 + 64;
/// Components with a leaf of their own begin here.
const FIRST_COMPONENT: u32 = 2;
const COMPONENTS: usize = 8;
/// ECX of a component's subleaf: aligned to 64 bytes in the compacted format.
const ALIGNED: u32 = 1 << 1;
/// Leaf 0xD, subleaf 1, EAX: XSAVEC, which makes EBX meaningful.
const XSAVEC: u32 = 1 << 1;
/// Leaf 1, ECX.
const XSAVE: u32 = 1 << 26;
/// No component is larger (tile data is 8 KiB) or lies further on.
const MOST_BYTES: u32 = 0x1_0000;

/// The memory that a vCPU has for the area of XSAVE. AVX-512 and PKRU end below 2,700 bytes on every CPU of today.
pub const AREA_BYTES: usize = 4096;

/// Those of `offered` whose place in the standard format, as subleaf `component` of the leaf gives it, ends within
/// [`AREA_BYTES`]; and the bytes of an area with all of them. XSAVE would write beyond the area with any other.
pub fn fitting(offered: u64, leaf: impl Fn(u32) -> CpuidResult) -> (u64, usize) {
    let others = (FIRST_COMPONENT..63).filter(|component| offered & 1 << component != 0);
    let placed = others.map(|component| {
        let CpuidResult { eax: bytes, ebx: offset, .. } = leaf(component);
        (component, bytes as usize + offset as usize)
    });
    let legacy = (offered & (X87 | SSE), LEAST_BYTES as usize);
    placed
        .filter(|(_, end)| *end <= AREA_BYTES)
        .fold(legacy, |(components, bytes), (component, end)| (components | 1 << component, bytes.max(end)))
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ExtendedState {
    /// XCR0 bits that the guest may set.
    pub supported: u64,
    instructions: u32,
    components: [CpuidResult; COMPONENTS],
}

impl ExtendedState {
    pub fn new(host: &Host<'_, impl CpuidSource>) -> Self {
        let absent = Self { supported: 0, instructions: 0, components: Default::default() };
        if host.leaf(1, 0).ecx & XSAVE == 0 {
            return absent;
        }
        let mut state = Self {
            supported: supported_xcr0(fitting(host.leaf(LEAF, 0).eax.into(), |component| host.leaf(LEAF, component)).0),
            instructions: shown(LEAF_D_1_EAX, host.leaf(LEAF, 1).eax),
            ..absent
        };
        for component in FIRST_COMPONENT..COMPONENTS as u32 {
            if state.supported & (1 << component) != 0 {
                let CpuidResult { eax, ebx, ecx, .. } = host.leaf(LEAF, component);
                let (eax, ebx) = (eax.min(MOST_BYTES), ebx.min(MOST_BYTES));
                state.components[component as usize] = CpuidResult { eax, ebx, ecx: ecx & ALIGNED, edx: 0 };
            }
        }
        state
    }

    /// The answers of a table that shows no extended state: zeroes.
    pub const NO_ANSWERS: [CpuidResult; COMPONENTS] =
        [const { CpuidResult { eax: 0, ebx: 0, ecx: 0, edx: 0 } }; COMPONENTS];

    /// The answers of all subleaves, but for values that depend on XCR0.
    pub fn answers(&self) -> [CpuidResult; COMPONENTS] {
        let mut answers = self.components;
        answers[0].eax = self.supported as u32;
        answers[1].eax = self.instructions;
        answers
    }

    /// From its answers.
    pub fn from_answers(answers: &[CpuidResult; COMPONENTS]) -> Result<Self, StateError> {
        let refused = |reason| Err(StateError { field: "policy.cpuid", reason });
        let [first, second, components @ ..] = answers;
        let alone = |answer: &CpuidResult| CpuidResult { eax: answer.eax, ..CpuidResult::default() };
        let state = Self {
            supported: first.eax.into(),
            instructions: second.eax,
            components: core::array::from_fn(|index| match index {
                0 | 1 => CpuidResult::default(),
                _ => answers[index],
            }),
        };
        if *first != alone(first) || *second != alone(second) {
            return refused("leaf 0xd holds what depends on XCR0");
        }
        if state.supported != 0 && state.check_xcr0(state.supported).is_err() {
            return refused("leaf 0xd shows components that do not go together");
        }
        if components.iter().any(|component| component.eax > MOST_BYTES || component.ebx > MOST_BYTES) {
            return refused("leaf 0xd shows a component that is too large");
        }
        Ok(state)
    }

    pub fn leaf(&self, subleaf: u32, xcr0: u64) -> CpuidResult {
        match subleaf {
            _ if self.supported == 0 => CpuidResult::default(),
            0 => CpuidResult {
                eax: self.supported as u32,
                ebx: self.standard_bytes(xcr0),
                ecx: self.standard_bytes(self.supported),
                edx: 0,
            },
            1 => CpuidResult { eax: self.instructions, ebx: self.compacted_bytes(xcr0), ecx: 0, edx: 0 },
            _ => self.components.get(subleaf as usize).copied().unwrap_or_default(),
        }
    }

    pub fn check_xcr0(&self, value: u64) -> Result<(), GeneralProtection> {
        let has = |bits| value & bits == bits;
        let has_none = |bits| value & bits == 0;
        let is_valid = value & !self.supported == 0
            && has(X87)
            && (has(SSE) || has_none(AVX))
            && (has_none(AVX_512) || has(AVX_512 | AVX));
        if is_valid { Ok(()) } else { Err(GeneralProtection) }
    }

    /// Bytes of an area in the standard format: up to the end of the component that lies furthest on.
    pub fn standard_bytes(&self, xcr0: u64) -> u32 {
        self.enabled(xcr0).map(|component| component.eax + component.ebx).fold(LEAST_BYTES, u32::max)
    }

    /// Bytes of an area in the compacted format: the components one after the other.
    fn compacted_bytes(&self, xcr0: u64) -> u32 {
        if self.instructions & XSAVEC == 0 {
            return 0;
        }
        self.enabled(xcr0).fold(LEAST_BYTES, |bytes, component| {
            let start = if component.ecx & ALIGNED != 0 { bytes.next_multiple_of(64) } else { bytes };
            start + component.eax
        })
    }

    /// The components that are on in an XCR0.
    fn enabled(&self, xcr0: u64) -> impl Iterator<Item = &CpuidResult> {
        let is_on = move |index: usize| xcr0 & (1 << index) != 0;
        self.components.iter().enumerate().filter(move |(index, _)| is_on(*index)).map(|(_, component)| component)
    }
}

fn supported_xcr0(host: u64) -> u64 {
    let mut supported = host & (X87 | SSE | AVX | AVX_512);
    if supported & AVX_512 != AVX_512 || supported & AVX == 0 {
        supported &= !AVX_512;
    }
    supported
}
