// SPDX-License-Identifier: MIT OR Apache-2.0
//! Per-CPU variables: one copy for each CPU that the machine has, like Linux's `DEFINE_PER_CPU`.
//!
//! [`cpu_local!`] declares a variable in any layer. The linker collects the initial values in one section
//! (`link.ld`, `.percpu`), which nothing writes. Each CPU has an *area* with a copy of that section, so this module
//! knows no variable's type:
//!
//! ```text
//! .percpu  │ HEAD │ a: 7 │ b: 0 │     initial values, read-only
//! CPU 0    │ HEAD │ a: 7 │ b: 3 │     in .bss, filled before any other code runs
//! CPU 1…   │ HEAD │ a: 8 │ b: 0 │     in frames, one behind the other, once there is memory ([`add_areas`])
//! ```
//!
//! GS leads a CPU to its own area, from [`PerCpu::install`](super::percpu::PerCpu::install) on; the areas of other CPUs
//! are found by number. The boot CPU's area is part of the image because its log, the console, and an update's trial
//! need their variables before there are frames. To copy it into frames later would lose what an NMI handler writes
//! meanwhile.

use core::arch::asm;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::address::{percpu_boot, percpu_end, percpu_start};
use super::memory;

/// Head of each area, which assembly code reads.
#[repr(C)]
pub struct Head {
    /// The area's own address.
    area: AtomicU64,
    /// The address of the CPU's [`PerCpu`](super::percpu::PerCpu); 0 until the CPU has installed it.
    pub own: AtomicU64,
    /// The top of the CPU's stack; 0 for a CPU that may not start.
    pub stack_top: AtomicU64,
    /// The identifier of the CPU's local APIC; [`NO_APIC_ID`] until it is known.
    pub apic_id: AtomicU32,
}

/// No CPU's identifier: as a destination it means all CPUs (Intel SDM vol. 3, section 11.12.9).
pub const NO_APIC_ID: u32 = u32::MAX;

#[unsafe(link_section = ".percpu.head")]
// SAFETY: the linker script puts this section at the beginning of the section of per-CPU variables.
pub static HEAD: CpuLocal<Head> = unsafe {
    CpuLocal::in_section(Head {
        area: AtomicU64::new(0),
        own: AtomicU64::new(0),
        stack_top: AtomicU64::new(0),
        apic_id: AtomicU32::new(NO_APIC_ID),
    })
};

/// Areas in frames: those of all CPUs but the boot CPU. Read by `smp.S`, too.
pub static OTHERS: AtomicU32 = AtomicU32::new(0);
/// The address of CPU 1's area; the others are behind it.
pub static FIRST_AREA: AtomicU64 = AtomicU64::new(0);

/// A variable of which each CPU has a copy.
pub struct CpuLocal<T: Sync + 'static>(T);

impl<T: Sync + 'static> CpuLocal<T> {
    /// A variable with this initial value: for [`cpu_local!`].
    ///
    /// # Safety
    /// The result must be a `static` in the section `.percpu`.
    pub const unsafe fn in_section(initial: T) -> Self {
        const { assert!(align_of::<T>() <= 64, "an area is aligned to 64 bytes") };
        Self(initial)
    }

    /// The copy of the CPU `index`; `None` if the machine has no such CPU.
    #[inline]
    pub fn of(&'static self, index: u32) -> Option<&'static T> {
        area(index).map(|area| self.within(area))
    }

    /// The calling CPU's copy, once the CPU has installed its own data.
    #[inline]
    pub fn mine(&'static self) -> &'static T {
        let area: u64;
        // SAFETY: GS points at an area, which has its address in its first word, from `PerCpu::install` on; nothing
        // that runs before that calls this (as `PerCpu::current`).
        unsafe { asm!("mov {}, gs:[0]", out(reg) area, options(nostack, preserves_flags, readonly)) };
        self.within(area)
    }

    /// The copies of all CPUs, by their numbers.
    pub fn all(&'static self) -> impl Iterator<Item = (u32, &'static T)> {
        (0..count()).filter_map(|index| Some((index, self.of(index)?)))
    }

    #[inline]
    fn within(&'static self, area: u64) -> &'static T {
        let offset = (&raw const self.0) as u64 - percpu_start();
        // SAFETY: an area holds a copy of the whole section, in which this variable is at this offset, aligned as
        // there. It lives for ever, and all that reach it share it, which `T: Sync` allows. The copy was made of a
        // value that nothing has used.
        unsafe { &*((area + offset) as *const T) }
    }
}

/// Declares a per-CPU variable: `cpu_local! { /// Doc. static NAME: Type = initial; }`.
macro_rules! cpu_local {
    ($(#[$attribute:meta])* $visibility:vis static $name:ident: $kind:ty = $initial:expr;) => {
        $(#[$attribute])*
        #[allow(unsafe_code, reason = "the section is named beside the only constructor that needs it")]
        #[unsafe(link_section = ".percpu")]
        $visibility static $name: $crate::arch::cpu_local::CpuLocal<$kind> =
            // SAFETY: it is in this section.
            unsafe { $crate::arch::cpu_local::CpuLocal::in_section($initial) };
    };
}

pub(crate) use cpu_local;

/// Fills the boot CPU's area: before any other Rust code of the image.
pub fn fill_boot_area() {
    fill(percpu_boot());
}

/// Makes areas for so many CPUs beside the boot CPU. Once, on the boot CPU alone. `false` if there is no memory.
pub fn add_areas(others: u32) -> bool {
    if others == 0 {
        return true;
    }
    let Some(frames) = memory::permanent_frames(u64::from(others) * bytes()) else { return false };
    let first = super::address::DIRECT_MAP + frames.0;
    (0..u64::from(others)).for_each(|number| fill(first + number * bytes()));
    FIRST_AREA.store(first, Ordering::Relaxed);
    OTHERS.store(others, Ordering::Release);
    true
}

/// Returns the number of CPUs that have an area: only the boot CPU, or all that the machine has.
pub fn count() -> u32 {
    OTHERS.load(Ordering::Acquire) + 1
}

/// The address of the area of the CPU `index`.
#[inline]
pub fn area(index: u32) -> Option<u64> {
    if index == 0 {
        return Some(percpu_boot());
    }
    let is_there = index <= OTHERS.load(Ordering::Acquire);
    is_there.then(|| FIRST_AREA.load(Ordering::Relaxed) + u64::from(index - 1) * bytes())
}

#[inline]
fn bytes() -> u64 {
    percpu_end() - percpu_start()
}

fn fill(area: u64) {
    // SAFETY: the area has the section's length, is not in use yet, and is aligned as the section is. Nothing has
    // changed the section, so each copy is a variable's initial value.
    unsafe { core::ptr::copy_nonoverlapping(percpu_start() as *const u8, area as *mut u8, bytes() as usize) };
    HEAD.within(area).area.store(area, Ordering::Relaxed);
}
