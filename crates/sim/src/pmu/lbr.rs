// SPDX-License-Identifier: MIT OR Apache-2.0
//! Architectural last branch records (Intel SDM vol. 3, chapter 19), 8, 16 or 32 of them, with both filters and no call
//! stack.

/// A kind of branch, by its bit in the control register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the manual's")]
pub enum Kind {
    Conditional = 16,
    RelativeJump = 17,
    IndirectJump = 18,
    RelativeCall = 19,
    IndirectCall = 20,
    Return = 21,
    Other = 22,
}

/// A branch that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Branch {
    /// Whence.
    pub from: u64,
    /// Whither.
    pub to: u64,
    /// Of what kind.
    pub kind: Kind,
    /// Cycles since the one before.
    pub cycles: u16,
}

const ENTRIES: usize = 32;
const DEEPEST: u64 = ENTRIES as u64;
const CONTROL_BITS: u64 = 0b111 | 0x7f << 16;
const CYCLES_ARE_VALID: u64 = 1 << 60;

/// The registers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LbrRing {
    control: u64,
    depth: u64,
    /// FROM, TO, INFO of each.
    entries: [[u64; 3]; ENTRIES],
}

impl Default for LbrRing {
    fn default() -> Self {
        Self { control: 0, depth: DEEPEST, entries: [[0; 3]; ENTRIES] }
    }
}

impl LbrRing {
    /// CPUID: leaf 7's EDX, leaf 0x1C's EAX and EBX.
    pub const CPUID: (u32, u32, u32) = (1 << 19, 0b1011, 0b011);

    /// Records a branch that is taken.
    pub fn record(&mut self, branch: &Branch, is_kernel: bool) {
        let mode = if is_kernel { 0b010 } else { 0b100 };
        let wanted = 1 | mode | 1 << branch.kind as u32;
        if self.control & wanted == wanted {
            let depth = self.depth as usize;
            self.entries.copy_within(0..depth - 1, 1);
            self.entries[0] = [branch.from, branch.to, CYCLES_ARE_VALID | u64::from(branch.cycles)];
        }
    }

    /// Returns FROM, TO and INFO; zeros where there is none.
    pub fn entry(&self, at: usize) -> [u64; 3] {
        self.entries.get(at).copied().unwrap_or_default()
    }

    pub fn read(&self, number: u32) -> Option<u64> {
        match number {
            0x14ce => Some(self.control),
            0x14cf => Some(self.depth),
            _ => place(number).map(|(at, field)| self.entries[at][field]),
        }
    }

    pub fn write(&mut self, number: u32, value: u64) {
        match number {
            0x14ce => {
                assert_eq!(value & !CONTROL_BITS, 0, "#GP: IA32_LBR_CTL {value:#x}");
                self.control = value;
            }
            0x14cf => {
                assert!(matches!(value, 8 | 16 | 32), "#GP: IA32_LBR_DEPTH {value}");
                (self.depth, self.entries) = (value, [[0; 3]; ENTRIES]);
            }
            _ => {
                let (at, field) = place(number).expect("one of its registers");
                assert!((at as u64) < self.depth, "entry {at} is beyond the depth");
                self.entries[at][field] = value;
            }
        }
    }
}

fn place(number: u32) -> Option<(usize, usize)> {
    let field = match number & !0x1f {
        0x1500 => 0,
        0x1600 => 1,
        0x1200 => 2,
        _ => return None,
    };
    Some((number as usize & 0x1f, field))
}
