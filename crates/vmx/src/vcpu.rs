// SPDX-License-Identifier: MIT OR Apache-2.0
//! One vCPU: its VMCS, copies of what that holds, and the registers that it does not hold.
//!
//! ```text
//!  not loaded      load            before_entry      VM entry … exit      after_exit           unload      not loaded
//!  all is in  ──► VMCS current ──► what has been ──► the guest runs ──► copies are old ──► all is read ──► all is in
//!  copies                          changed is written                  and read if asked for               copies
//! ```
//!
//! So no method needs a VMCS but those between load and unload, and a VMCS's bytes never leave the CPU's image.

mod bits;
mod cache;
mod leaving;
mod left;
mod loaded;
mod prepare;
mod saved;
mod slot;
mod state;
mod switched;

use vm::vcpu::{EntryState, dr6};

use crate::entry::HostFields;
use crate::event::Injection;
use crate::field::Field32;
use crate::settings::Settings;

use cache::Cache;
use slot::Slot;

pub use left::{Left, Way};
pub use loaded::{Live, Loaded};
pub use prepare::Tables;
pub use switched::Switched;

/// One vCPU. `C` is how its VMCS and the CPU are reached: plain data in tests, instructions on the machine.
pub struct Vcpu<C> {
    cpu: C,
    cache: Cache,
    switched: Switched,
    settings: &'static Settings,
    tables: Tables,
    /// The event that the next entry delivers.
    injection: Option<Injection>,
    /// The last exit interrupted the delivery of an event.
    was_delivering: bool,
    /// Bytes of the instruction that the last exit was for, if it was for one.
    instruction_bytes: Option<u32>,
    /// The number of the error by which the last entry failed.
    entry_error: Option<u32>,
    /// Nothing that was translated for the guest counts any more, from the next entry on.
    is_flush_wanted: bool,
    /// Its VMCS has the fields that never change.
    is_written: bool,
    /// Its VMCS has the fields of the CPU on which it is.
    is_at_home: bool,
    tag: u32,
    counts_time: bool,
    counts_time_for_host: bool,
    xcr0: u64,
    spec_ctrl: u64,
}

/// Reset value of the page attribute table register.
const PAT_AFTER_RESET: u64 = 0x0007_0406_0007_0406;

impl<C: Loaded> Vcpu<C> {
    /// A vCPU that will start in `entry`.
    pub fn new(cpu: C, settings: &'static Settings, tables: Tables, guest: u32, entry: &EntryState) -> Self {
        let mut cache = Cache::new();
        prepare::enter(&mut cache, settings, entry);
        cache.set(Slot::Pat, PAT_AFTER_RESET);
        cache.set(Slot::PrimaryControls, settings.word(crate::control::Word::Primary).into());
        cache.set(Slot::ExceptionBitmap, vm::vcpu::Exceptions::ALWAYS.bits().into());
        Self {
            cpu,
            cache,
            switched: Switched { gprs: entry.gprs, guest_ticks: 0, host_rsp: 0, guest },
            settings,
            tables,
            injection: None,
            was_delivering: false,
            instruction_bytes: None,
            entry_error: None,
            is_flush_wanted: true,
            is_written: false,
            is_at_home: false,
            tag: 1,
            counts_time: false,
            counts_time_for_host: false,
            xcr0: 1,
            spec_ctrl: 0,
        }
    }

    /// The registers that an entry does not load, for the world switch.
    pub fn switched_mut(&mut self) -> &mut Switched {
        &mut self.switched
    }

    /// Returns whether the world switch is to count the guest's time.
    pub fn counts_time(&self) -> bool {
        self.counts_time || self.counts_time_for_host
    }

    /// How its VMCS and the CPU are reached.
    pub fn cpu_mut(&mut self) -> &mut C {
        &mut self.cpu
    }

    /// It is on another CPU from now on, and has this tag (VPID) there. Its VMCS need not be current.
    pub fn arrive(&mut self, tag: u32) {
        self.tag = tag;
        self.is_at_home = false;
        self.is_flush_wanted = true;
    }

    /// Its VMCS is current from now on, and the CPU's registers are the guest's. `host` is what exits load.
    pub fn load(&mut self, host: impl FnOnce() -> HostFields) {
        if !self.is_written {
            prepare::write(&mut self.cpu, self.settings, self.tables);
            self.is_written = true;
        }
        if !self.is_at_home {
            host().store(&mut self.cpu, self.settings.capabilities().allowed_controls());
            prepare::write_tag(&mut self.cpu, self.settings, self.tag);
            self.switched.host_rsp = 0;
            self.is_at_home = true;
        }
        self.cache.arrive_in_cpu();
    }

    /// Its VMCS is about not to be current any more.
    pub fn unload(&mut self) {
        self.cache.read_all(&self.cpu);
        self.cache.write(&mut self.cpu);
    }

    /// Nothing that was translated for the guest counts any more, from the next entry on.
    pub fn flush_tlb(&mut self) {
        self.is_flush_wanted = true;
    }

    /// Returns the tag whose translations are to be flushed before the next entry, if they are to be.
    #[inline]
    pub fn take_flush(&mut self) -> Option<u32> {
        core::mem::take(&mut self.is_flush_wanted).then_some(self.tag)
    }

    /// Readies the VMCS for an entry, right before it.
    #[inline]
    pub fn before_entry(&mut self) {
        if self.cache.has_changed(Slot::Rflags.bit() | Slot::Interruptibility.bit()) {
            self.update_pending_step();
        }
        self.cache.write(&mut self.cpu);
        if let Some(injection) = self.injection {
            injection.write(&mut self.cpu);
        }
    }

    /// The single step of an instruction in a shadow is pending, as the CPU has it (section 27.3.1.5): the flag or the
    /// shadow may have been changed since the exit.
    #[cold]
    fn update_pending_step(&mut self) {
        let interruptibility = self.slot(Slot::Interruptibility);
        if interruptibility & bits::SHADOW != 0 {
            let step = bits::single_step(self.slot(Slot::Rflags), interruptibility, self.slot(Slot::DebugControl));
            self.change(Slot::PendingDebug, self.slot(Slot::PendingDebug) & !dr6::BS | step);
        }
    }

    /// A register, wherever it is. A call, as the next one: there are many places that ask.
    #[inline(never)]
    fn slot(&self, slot: Slot) -> u64 {
        self.cache.get(slot, &self.cpu)
    }

    /// Sets a register that may have this value already.
    #[inline(never)]
    fn change(&mut self, slot: Slot, value: u64) {
        if self.slot(slot) != value {
            self.cache.set(slot, value);
        }
    }

    /// The next entry injects nothing, although the last one, which failed, was to.
    fn clear_injection(&mut self) {
        self.cpu.write_32(Field32::EntryInterruptionInformation, 0);
    }
}

#[cfg(test)]
#[path = "vcpu_tests.rs"]
mod tests;
