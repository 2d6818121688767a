// SPDX-License-Identifier: MIT OR Apache-2.0
//! Registers that stay in the CPU across exits: x87, SSE, AVX and beyond, XCR0, TSC_AUX and the debug addresses.
//! The hypervisor uses none of them; they are exchanged only when a CPU changes from one vCPU to another.

use alloc::boxed::Box;
use core::arch::asm;

use handover::state::{AreaFormat, Extended};
use vm::cpu::cpuid::{AREA_BYTES, CpuidResult, fitting};
use vm::devices::StateError;
use vm::machine::{Full, check_area, note_initial_x87};

use crate::arch::cpu;

const MSR_TSC_AUX: u32 = 0xc000_0103;
const FXSAVE_BYTES: usize = 512;
/// x87 and SSE control words after reset (AMD APM vol. 2, table 14-1; MXCSR 1F80h).
const X87_CONTROL: u16 = 0x37f;
const MXCSR: u32 = 0x1f80;

#[repr(C, align(64))]
struct Area([u8; AREA_BYTES]);

/// One vCPU's share of these registers.
pub struct ExtendedState {
    area: Box<Area>,
    debug: [u64; 4],
    tsc_aux: u64,
    /// XCR0 that the CPU holds while the guest is loaded.
    xcr0: u64,
    cpu: Abilities,
}

/// The extended states of the CPUs, which all have the same. Asked once: CPUID takes longer than all the rest of an
/// exchange, and leaves for a monitor below where there is one.
#[derive(Clone, Copy)]
struct Abilities {
    has_xsave: bool,
    has_rdtscp: bool,
    /// The components of XCR0 that the CPU has and an area of [`AREA_BYTES`] holds: of x87, SSE, AVX, AVX-512,
    /// PKRU.
    components: u64,
    /// Bytes of the area with all of them.
    area_bytes: usize,
}

impl Abilities {
    fn of_this_cpu() -> Self {
        const SHOWN: u64 = 0b10_1110_0111;
        let has_xsave = cpu::cpuid(1, 0).ecx & (1 << 26) != 0;
        let leaf = |component| {
            let leaf = cpu::cpuid(0xd, component);
            CpuidResult { eax: leaf.eax, ebx: leaf.ebx, ecx: leaf.ecx, edx: leaf.edx }
        };
        let (components, area_bytes) = match has_xsave {
            true => fitting(u64::from(leaf(0).eax) & SHOWN, leaf),
            false => (1, FXSAVE_BYTES),
        };
        Self { has_xsave, has_rdtscp: cpu::cpuid(0x8000_0001, 0).edx & (1 << 27) != 0, components, area_bytes }
    }
}

impl ExtendedState {
    /// As after a reset.
    pub fn after_reset() -> Self {
        let mut area = Box::new(Area([0; AREA_BYTES]));
        area.0[..2].copy_from_slice(&X87_CONTROL.to_le_bytes());
        area.0[24..28].copy_from_slice(&MXCSR.to_le_bytes());
        // XSTATE_BV: SSE comes from the area, all other components from their initial values.
        area.0[512] = 0b10;
        Self { area, debug: [0; 4], tsc_aux: 0, xcr0: 1, cpu: Abilities::of_this_cpu() }
    }

    /// XCR0 as the CPU has it. The guest's XSETBV exits, and yet this may differ from what it last asked for
    /// then: QEMU 7.2's emulator does not intercept the instruction.
    #[inline]
    pub fn xcr0(&mut self) -> u64 {
        if self.cpu.has_xsave {
            // SAFETY: CR4.OSXSAVE is set wherever XSAVE exists.
            self.xcr0 = unsafe { cpu::read_xcr0() };
        }
        self.xcr0
    }

    /// Follows the guest's XSETBV; the CPU is notified only when the value changes.
    #[inline]
    pub fn follow(&mut self, xcr0: u64) {
        if self.xcr0 != xcr0 {
            self.xcr0 = xcr0;
            self.set_xcr0(xcr0);
        }
    }

    /// Loads everything; nothing of the guest that ran before is left.
    pub fn load(&mut self) {
        self.show_all_components();
        // SAFETY: the area is 64-byte aligned, XCR0 holds `components`, all of which end within it (`fitting` has
        // compared CPUID with its size), and it holds a valid image: the one made above or one that `save` wrote.
        unsafe {
            if self.cpu.has_xsave {
                asm!("xrstor64 [{}]", in(reg) &raw const *self.area, in("eax") u32::MAX, in("edx") u32::MAX, options(nostack));
            } else {
                asm!("fxrstor64 [{}]", in(reg) &raw const *self.area, options(nostack));
            }
            let [dr0, dr1, dr2, dr3] = self.debug;
            asm!("mov dr0, {}", "mov dr1, {}", "mov dr2, {}", "mov dr3, {}",
                in(reg) dr0, in(reg) dr1, in(reg) dr2, in(reg) dr3, options(nostack, preserves_flags));
            if self.cpu.has_rdtscp {
                cpu::write_msr(MSR_TSC_AUX, self.tsc_aux);
            }
        }
        if self.xcr0 != self.cpu.components {
            self.set_xcr0(self.xcr0);
        }
    }

    /// Saves everything.
    pub fn save(&mut self) {
        self.show_all_components();
        // SAFETY: as in `load`, the other way round.
        unsafe {
            if self.cpu.has_xsave {
                asm!("xsave64 [{}]", in(reg) &raw mut *self.area, in("eax") u32::MAX, in("edx") u32::MAX, options(nostack));
            } else {
                asm!("fxsave64 [{}]", in(reg) &raw mut *self.area, options(nostack));
            }
            let [dr0, dr1, dr2, dr3] = &mut self.debug;
            asm!(
                "mov {}, dr0",
                "mov {}, dr1",
                "mov {}, dr2",
                "mov {}, dr3",
                out(reg) * dr0,
                out(reg) * dr1,
                out(reg) * dr2,
                out(reg) * dr3,
                options(nostack, preserves_flags)
            );
            if self.cpu.has_rdtscp {
                self.tsc_aux = cpu::read_msr(MSR_TSC_AUX);
            }
        }
        if self.cpu.has_xsave {
            note_initial_x87(&mut self.area.0);
        }
    }

    /// Copies what [`Self::save`] saved: the structure, and the area behind it. Returns the area's bytes.
    pub fn save_into(&self, into: &mut Extended, tail: &mut [u8]) -> Result<usize, Full> {
        let bytes = self.cpu.area_bytes;
        let (from, tail) = (self.area.0.get(..bytes).ok_or(Full)?, tail.get_mut(..bytes).ok_or(Full)?);
        tail.copy_from_slice(from);
        let format = if self.cpu.has_xsave { AreaFormat::Xsave } else { AreaFormat::Fxsave };
        *into = Extended {
            debug_addresses: self.debug.map(Into::into),
            tsc_aux: self.tsc_aux.into(),
            components: self.cpu.components.into(),
            format: (format as u32).into(),
            zero: 0.into(),
        };
        Ok(bytes)
    }

    /// Takes over what another image has saved, for a guest with this XCR0.
    pub fn restore_from(&mut self, from: &Extended, tail: &[u8], xcr0: u64) -> Result<(), StateError> {
        let refuse = |reason| Err(StateError { field: "extended.format", reason });
        let format = if self.cpu.has_xsave { AreaFormat::Xsave } else { AreaFormat::Fxsave };
        if from.format.get() != format as u32 {
            return refuse("not that of this CPU");
        }
        let bytes = self.cpu.area_bytes;
        check_area(from, tail, self.cpu.components, bytes)?;
        let (Some(area), Some(tail)) = (self.area.0.get_mut(..bytes), tail.get(..bytes)) else {
            return refuse("larger than any that this version knows");
        };
        area.copy_from_slice(tail);
        self.debug = from.debug_addresses.map(|register| register.get());
        self.tsc_aux = from.tsc_aux.get();
        self.xcr0 = xcr0;
        Ok(())
    }

    /// Lets XSAVE and XRSTOR reach everything that a guest can have.
    fn show_all_components(&self) {
        self.set_xcr0(self.cpu.components);
    }

    fn set_xcr0(&self, value: u64) {
        if self.cpu.has_xsave {
            // SAFETY: CR4.OSXSAVE is set wherever XSAVE exists; the value is all that the CPU has of what guests
            // are shown, or was checked against that when the guest asked (the CPUID policy shows no more).
            unsafe { cpu::write_xcr0(value) };
        }
    }
}
