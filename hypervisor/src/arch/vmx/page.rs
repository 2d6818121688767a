// SPDX-License-Identifier: MIT OR Apache-2.0
//! A VMCS and its virtual-APIC page, in frames of their own; and the instructions that reach what is in a VMCS.

use core::arch::asm;

use frames::FrameRange;
use units::{PAGE_BYTES, PageSize};
use vmx::vcpu::{Live, Loaded};
use vmx::{Field, Settings, Vmcs};

use super::operation::write_revision;
use crate::arch::address::DIRECT_MAP;
use crate::arch::cpu;
use crate::arch::memory::{FRAMES, release};

/// Offset of the task priority in a virtual-APIC page (section 30.1.1).
const TASK_PRIORITY: u64 = 0x80;

/// Owns two frames: a VMCS and a virtual-APIC page. Fields are accessed only while the VMCS is current on the calling
/// CPU.
pub struct VmcsPages {
    frames: Option<FrameRange>,
    physical: u64,
}

impl VmcsPages {
    /// A VMCS that has to be cleared before it is loaded; `None` if memory has run out.
    pub fn allocate(settings: &Settings) -> Option<Self> {
        let frames = FRAMES.lock().allocate(2 * PAGE_BYTES, PageSize::Kib4).ok()?;
        let physical = frames.start().0;
        // SAFETY: the frames were just allocated: no other code uses them, and the direct map shows them.
        unsafe { core::ptr::write_bytes((DIRECT_MAP + physical) as *mut u8, 0, 2 * PAGE_BYTES as usize) };
        write_revision(physical, settings);
        Some(Self { frames: Some(frames), physical })
    }

    /// Physical address of the virtual-APIC page.
    pub fn virtual_apic(&self) -> u64 {
        self.physical + PAGE_BYTES
    }

    /// The calling CPU writes to memory what it keeps of the VMCS, and keeps no more of it (VMCLEAR).
    pub fn clear(&self) {
        let is_refused: u8;
        // SAFETY: the CPU is in VMX operation; the frame is this VMCS's, which is active on no other CPU.
        unsafe {
            asm!("vmclear [{}]", "setna {}", in(reg) &raw const self.physical, out(reg_byte) is_refused, options(nostack))
        };
        assert!(is_refused == 0, "VMCLEAR of {:#x} is refused", self.physical);
    }

    /// The VMCS, which was cleared when it arrived, is current on the calling CPU from now on (VMPTRLD).
    pub fn make_current(&self) {
        let is_refused: u8;
        // SAFETY: as in `clear`.
        unsafe {
            asm!("vmptrld [{}]", "setna {}", in(reg) &raw const self.physical, out(reg_byte) is_refused, options(nostack))
        };
        assert!(is_refused == 0, "VMPTRLD of {:#x} is refused", self.physical);
    }

    fn task_priority(&self) -> *mut u8 {
        (DIRECT_MAP + self.virtual_apic() + TASK_PRIORITY) as *mut u8
    }
}

impl Vmcs for VmcsPages {
    #[inline]
    fn vmread(&self, field: impl Field) -> u64 {
        let value: u64;
        let is_refused: u8;
        // SAFETY: a vCPU reads fields only between its load and its unload, while its VMCS is current.
        unsafe {
            asm!("vmread {}, {:r}", "setna {}", out(reg) value, in(reg) u64::from(field.encoding()),
                lateout(reg_byte) is_refused, options(nostack));
        }
        if is_refused != 0 {
            refused("VMREAD", field.encoding());
        }
        value
    }

    #[inline]
    fn vmwrite(&mut self, field: impl Field, value: u64) {
        let is_refused: u8;
        // SAFETY: as in `vmread`; the host's fields hold the host's own registers, and addresses are those of frames
        // that live as long as the VMCS.
        unsafe {
            asm!("vmwrite {:r}, {}", "setna {}", in(reg) u64::from(field.encoding()), in(reg) value,
                lateout(reg_byte) is_refused, options(nostack));
        }
        if is_refused != 0 {
            refused("VMWRITE", field.encoding());
        }
    }
}

#[cold]
fn refused(instruction: &str, encoding: u32) -> ! {
    panic!("{instruction} of field {encoding:#x} is refused, which this CPU's capabilities show");
}

impl Loaded for VmcsPages {
    fn live(&self, register: Live) -> u64 {
        let value: u64;
        match place(register) {
            // SAFETY: every 64-bit CPU has the register; reading it has no effect.
            Place::Msr(number) => unsafe { cpu::read_msr(number) },
            Place::FaultAddress => {
                // SAFETY: reading it has no effect.
                unsafe { asm!("mov {}, cr2", out(reg) value, options(nomem, nostack, preserves_flags)) };
                value
            }
            Place::DebugStatus => {
                // SAFETY: as above.
                unsafe { asm!("mov {}, dr6", out(reg) value, options(nomem, nostack, preserves_flags)) };
                value
            }
        }
    }

    fn set_live(&mut self, register: Live, value: u64) {
        match place(register) {
            // SAFETY: the host uses none of these: it has no system calls and no user mode. The value is one that the
            // guest has written, or was checked like one when it was handed over.
            Place::Msr(number) => unsafe { cpu::write_msr(number, value) },
            // SAFETY: the register only shows the last page fault's address.
            Place::FaultAddress => unsafe { asm!("mov cr2, {}", in(reg) value, options(nostack, preserves_flags)) },
            // SAFETY: the register only shows the causes of #DB; its high half, which must be zero, is.
            Place::DebugStatus => unsafe {
                asm!("mov dr6, {}", in(reg) value & 0xffff_ffff, options(nostack, preserves_flags));
            },
        }
    }

    fn task_priority_byte(&self) -> u8 {
        // SAFETY: the frame is ours, mapped; the CPU writes it only inside the world switch.
        unsafe { self.task_priority().read_volatile() }
    }

    fn set_task_priority_byte(&mut self, value: u8) {
        // SAFETY: as above; `self` is borrowed exclusively.
        unsafe { self.task_priority().write_volatile(value) };
    }
}

enum Place {
    Msr(u32),
    FaultAddress,
    DebugStatus,
}

fn place(register: Live) -> Place {
    use vm::cpu::msr::number;
    match register {
        Live::Cr2 => Place::FaultAddress,
        Live::Dr6 => Place::DebugStatus,
        Live::Star => Place::Msr(number::STAR),
        Live::Lstar => Place::Msr(number::LSTAR),
        Live::Cstar => Place::Msr(number::CSTAR),
        Live::Sfmask => Place::Msr(number::SFMASK),
        Live::KernelGsBase => Place::Msr(number::KERNEL_GS_BASE),
    }
}

impl Drop for VmcsPages {
    fn drop(&mut self) {
        if let Some(frames) = self.frames.take() {
            release(frames);
        }
    }
}
