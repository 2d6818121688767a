// SPDX-License-Identifier: MIT OR Apache-2.0
//! The registers that a CPU keeps beside its general ones: x87, SSE and AVX, debug addresses, TSC_AUX (AMD APM
//! vol. 2, chapters 11 and 13). Compiled code of this target uses none of them.

use crate::wrong::Wrong;
use core::arch::asm;
use core::sync::atomic::{AtomicBool, Ordering};
use tiny::cpu;
use tiny::random::Random;

const TSC_AUX: u32 = 0xc000_0103;
const MXCSR_AFTER_RESET: u64 = 0x1f80;
/// Double words of an FXSAVE image: x87's control, status and tag words; MXCSR; x87's registers, two each; SSE's, two
/// each.
const CONTROLS: usize = 0;
const MXCSR: usize = 3;
const X87: usize = 4;
const SSE: usize = 20;
/// The bits of them that hold something: in `CONTROLS` the tags' upper byte and the last opcode do not.
const CONTROLS_MASK: u64 = 0xff_ffff_ffff;
const MXCSR_MASK: u64 = 0xffff_ffff;
/// An x87 register's upper double word: sign and exponent.
const EXPONENT_MASK: u64 = 0xffff;

/// A value for each of them.
#[repr(C, align(64))]
pub struct State {
    fxsave: [u64; 64],
    vectors: [[u64; 4]; 16],
    debug: [u64; 4],
    tsc_aux: u64,
}

/// Asked for once: CPUID leaves the guest, and a check should not.
static HAS_AVX: AtomicBool = AtomicBool::new(false);
static HAS_RDTSCP: AtomicBool = AtomicBool::new(false);

/// Lets the program use them: SSE, and AVX and TSC_AUX where there are.
pub fn enable() {
    const XSAVE_AND_AVX: u32 = 1 << 26 | 1 << 28;
    cpu::set_cr4(cpu::cr4() | cpu::CR4_OSFXSR);
    if cpu::cpuid(1)[2] & XSAVE_AND_AVX == XSAVE_AND_AVX {
        cpu::set_cr4(cpu::cr4() | cpu::CR4_OSXSAVE);
        cpu::set_xcr(0, 0b111);
        HAS_AVX.store(true, Ordering::Relaxed);
    }
    HAS_RDTSCP.store(cpu::cpuid(0x8000_0001)[3] & 1 << 27 != 0, Ordering::Relaxed);
}

fn has_avx() -> bool {
    HAS_AVX.load(Ordering::Relaxed)
}

fn has_rdtscp() -> bool {
    HAS_RDTSCP.load(Ordering::Relaxed)
}

impl State {
    const ZERO: Self = Self { fxsave: [0; 64], vectors: [[0; 4]; 16], debug: [0; 4], tsc_aux: 0 };

    /// After a reset. The x87 control words are the loader's affair: they are taken as they are.
    pub fn after_reset() -> Self {
        let mut state = Self::ZERO;
        state.fxsave[CONTROLS] = Self::read().fxsave[CONTROLS];
        state.fxsave[MXCSR] = MXCSR_AFTER_RESET;
        state
    }

    /// Values that follow from a seed. Exceptions stay masked: rounding, flags and the stack's top differ by seed.
    pub fn pattern(seed: u64) -> Self {
        const ALL_VALID: u64 = 0xff << 32;
        let mut random = Random::new(seed << 1);
        let mut state = Self::ZERO;
        let (control, status) = (0x37f | random.draw() & 0x0c00, random.draw() & 0x7f00);
        state.fxsave[CONTROLS] = control | status << 16 | ALL_VALID;
        state.fxsave[MXCSR] = MXCSR_AFTER_RESET | random.draw() & 0x603f;
        for register in state.fxsave[X87..SSE].chunks_exact_mut(2) {
            register.copy_from_slice(&[random.draw() | 1 << 63, 0x3fff + (random.draw() & 0xff)]);
        }
        let width = if has_avx() { 4 } else { 2 };
        state.vectors.iter_mut().flat_map(|vector| &mut vector[..width]).for_each(|part| *part = random.draw());
        for (image, vector) in state.fxsave[SSE..].chunks_exact_mut(2).zip(&state.vectors) {
            image.copy_from_slice(&vector[..2]);
        }
        state.debug.fill_with(|| random.draw());
        state.tsc_aux = if has_rdtscp() { random.draw() & 0xffff_ffff } else { 0 };
        state
    }

    /// Puts the values into the registers.
    pub fn load(&self) {
        let [dr0, dr1, dr2, dr3] = self.debug;
        // SAFETY: the image is 64-byte aligned and has no reserved bit set; no breakpoint is turned on in DR7; compiled
        // code uses none of these registers.
        unsafe {
            asm!("fxrstor64 [{}]", in(reg) &raw const self.fxsave, options(nostack));
            asm!("mov dr0, {}", "mov dr1, {}", "mov dr2, {}", "mov dr3, {}",
                in(reg) dr0, in(reg) dr1, in(reg) dr2, in(reg) dr3, options(nostack, preserves_flags));
        }
        if has_avx() {
            // SAFETY: there are 16 vectors of 32 bytes; AVX is on.
            unsafe {
                asm!(
                    ".irp number, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15",
                    "vmovups ymm\\number, [{0} + 32 * \\number]",
                    ".endr",
                    in(reg) &raw const self.vectors,
                    options(nostack, preserves_flags)
                );
            }
        }
        if has_rdtscp() {
            cpu::write_msr(TSC_AUX, self.tsc_aux);
        }
    }

    /// Returns what the registers hold.
    pub fn read() -> Self {
        let mut state = Self::ZERO;
        let [dr0, dr1, dr2, dr3]: [u64; 4];
        // SAFETY: the image is 64-byte aligned and has 512 bytes; the rest is reading.
        unsafe {
            asm!("fxsave64 [{}]", in(reg) &raw mut state.fxsave, options(nostack));
            asm!("mov {}, dr0", "mov {}, dr1", "mov {}, dr2", "mov {}, dr3",
                out(reg) dr0, out(reg) dr1, out(reg) dr2, out(reg) dr3, options(nostack, preserves_flags));
        }
        state.debug = [dr0, dr1, dr2, dr3];
        state.read_vectors();
        if has_rdtscp() {
            // SAFETY: reads only.
            unsafe {
                asm!("rdtscp", out("rcx") state.tsc_aux, out("rax") _, out("rdx") _, options(nostack, preserves_flags));
            }
        }
        state
    }

    fn read_vectors(&mut self) {
        if !has_avx() {
            for (image, vector) in self.fxsave[SSE..].chunks_exact(2).zip(&mut self.vectors) {
                vector[..2].copy_from_slice(image);
            }
            return;
        }
        // SAFETY: there is room for 16 vectors of 32 bytes; AVX is on.
        unsafe {
            asm!(
                ".irp number, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15",
                "vmovups [{0} + 32 * \\number], ymm\\number",
                ".endr",
                in(reg) &raw mut self.vectors,
                options(nostack, preserves_flags)
            );
        }
    }

    /// Right if each register holds what it does there.
    pub fn compare(&self, wanted: &Self) -> Result<(), Wrong> {
        let mut pairs = self.values().zip(wanted.values());
        let different = pairs.find(|((_, _, found), (_, _, wanted))| found != wanted);
        different.map_or(Ok(()), |((what, item, found), (_, _, wanted))| Err(Wrong { what, item, found, wanted }))
    }

    /// Every register's kind, number and value, in parts of a double word.
    fn values(&self) -> impl Iterator<Item = (&'static str, u64, u64)> {
        let controls = [
            ("x87 control words", 0, self.fxsave[CONTROLS] & CONTROLS_MASK),
            ("MXCSR", 0, self.fxsave[MXCSR] & MXCSR_MASK),
            ("TSC_AUX", 0, self.tsc_aux),
        ];
        let x87 = self.fxsave[X87..SSE].chunks_exact(2);
        let x87 = x87.flat_map(|register| [register[0], register[1] & EXPONENT_MASK]);
        let vectors = self.vectors.iter().flatten().copied();
        let named = |what, parts| move |(number, value)| (what, number as u64 / parts, value);
        let debug = self.debug.into_iter().enumerate().map(named("debug register", 1));
        let x87 = x87.enumerate().map(named("x87 register", 2));
        controls.into_iter().chain(debug).chain(x87).chain(vectors.enumerate().map(named("vector register", 4)))
    }
}
