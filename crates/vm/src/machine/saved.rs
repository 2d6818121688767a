// SPDX-License-Identifier: MIT OR Apache-2.0
//! A machine as one image of the hypervisor leaves it and the next one goes on with it: [`handover::state`] filled and
//! read.
//!
//! ```text
//! before   save_policy ────────────────────────────────► adopt (allocates)
//! the blackout  save_vcpu   each vCPU, by the CPU that holds it
//!          ── all of them have stopped ──
//!          save_mailbox likewise ──────────────────────► restore_vcpu
//!          save_devices  once for each guest ─────────► restore_devices
//! ```
//!
//! Nothing here allocates but `adopt`. A restored machine is in no way other than the saved one; what an image chooses
//! for itself (what is intercepted, how its tables are tagged) is not carried. Restoring may be repeated: the last time
//! counts.
//!
//! All input is untrusted: for any bytes, the answer is a machine that can run, or [`StateError`].

mod counters;
mod cpu;
mod devices;
mod extended;
mod full;
mod lapic;
mod moving;
mod policy;
mod version_3;

pub use extended::{check_area, note_initial_x87};
pub use full::Full;
pub use moving::{move_policy, move_vcpu};

use handover::image::Reader;
use handover::schema::Described as _;
use handover::state::{self, watch_flag};

use super::{Cpu, Machine};
use crate::cpu::msr::check_pat;
use crate::devices::StateError;
use crate::memory::GuestMemory;
use crate::vcpu::VcpuState;

impl<M: GuestMemory> Machine<M> {
    /// Returns whether an image that reads this can go on with the guest. One that knows nothing of
    /// SPEC_CTRL and PRED_CMD answers them with #GP, and hypercalls with an error: it must not get a guest that was
    /// informed of them. Nor must it get a guest with a device that it does not know.
    pub fn can_be_read_by(&self, reader: Reader) -> bool {
        self.has_devices_for(reader)
            && (reader.version >= state::Speculation::SINCE || !self.cpuid.speculation().is_offered())
            && (reader.version >= state::MoreNmis::SINCE || !self.is_paravirtual)
    }

    /// Returns whether an image that reads this knows all devices that it must know.
    pub fn has_devices_for(&self, reader: Reader) -> bool {
        if reader.version < state::DeviceBlock::SINCE {
            return version_3::has_place_for(&self.bus);
        }
        self.bus.devices().all(|device| {
            let device = device.lock();
            reader.knows(device.tag().kind) || device.is_dispensable()
        })
    }

    /// Saves a vCPU, which does not run. Messages that others may still send to it are not included.
    pub fn save_vcpu(&self, vcpu: &(impl VcpuState + ?Sized), cpu: &Cpu, into: &mut state::Vcpu) {
        vcpu.save(&mut into.registers);
        cpu.save(vcpu.guest_ticks(), into);
        into.extension = state::Extension { kind: (vcpu.extension() as u32).into(), zero: 0.into() };
        into.speculation = state::Speculation { spec_ctrl: vcpu.spec_ctrl().into() };
    }

    /// Saves the messages that others have sent to a vCPU, once they all have stopped.
    pub fn save_mailbox(&self, vcpu: usize, into: &mut state::Vcpu) {
        if let Some(mailbox) = self.mailboxes.get(vcpu) {
            mailbox.save(&mut into.mail, &mut into.more_nmis);
        }
    }

    /// Puts a vCPU into a saved state. `vcpu` and `cpu` are of this machine and have its identifier.
    ///
    /// # Errors
    /// [`StateError`] if no vCPU of this machine can be in it; then it must not run.
    pub fn restore_vcpu(
        &self,
        from: &state::Vcpu,
        vcpu: &mut (impl VcpuState + ?Sized),
        cpu: &mut Cpu,
    ) -> Result<(), StateError> {
        let refuse = |field, reason| Err(StateError { field, reason });
        let registers = &from.registers;
        if from.extension.kind.get() != vcpu.extension() as u32 {
            return refuse("extension.kind", "the virtualization extension of another vendor's CPU has saved it");
        }
        if registers.efer.get() & !self.cpuid.supported_efer() != 0 {
            return refuse("registers.efer", "a bit is set that this guest does not have");
        }
        if !self.may_have_xcr0(registers.xcr0.get()) {
            return refuse("registers.xcr0", "it names components that this guest does not have");
        }
        if check_pat(registers.pat.get()).is_err() {
            return refuse("registers.pat", "a memory type that does not exist");
        }
        if from.watch.flags.get() & !watch_flag::ALL != 0 || from.turn.wants_to_run.get() > 1 {
            return refuse("watch.flags", "a flag is unknown");
        }
        let spec_ctrl = from.speculation.spec_ctrl.get();
        if spec_ctrl & !self.cpuid.speculation().spec_ctrl != 0 {
            return refuse("speculation.spec_ctrl", "a bit is set that this guest does not have");
        }
        let Some(mailbox) = self.mailboxes.get(cpu.lapic.id() as usize) else {
            return refuse("lapic.id", "this guest has no such CPU");
        };
        if self.cpuid.counters() != cpu.counters().map(|counters| counters.vendor()) {
            return refuse("policy.cpuid", "it promises other performance counters than there are");
        }
        let next = cpu.restored(from)?;
        mailbox.check(&from.mail, &from.more_nmis)?;
        vcpu.restore(registers)?;
        vcpu.set_spec_ctrl(spec_ctrl);
        mailbox.restore(&from.mail, &from.more_nmis);
        next.exits.restore(&from.counters);
        let activity = core::mem::replace(cpu, next).activity;
        let restored = core::mem::replace(&mut cpu.activity, activity);
        self.set_activity(cpu, restored);
        self.publish_addressing(cpu);
        vcpu.set_tsc_offset(cpu.tsc_offset);
        vcpu.request_interrupt_window(false);
        vcpu.watch_task_priority(false);
        vcpu.watch_interrupt_return(cpu.nmi.is_in_handler());
        vcpu.watch_clock_reads(false);
        cpu.open_private_counters(vcpu.guest_ticks());
        vcpu.count_time(cpu.counts());
        Ok(())
    }

    /// XCR0 of a guest without XSAVE is its value after a reset.
    fn may_have_xcr0(&self, xcr0: u64) -> bool {
        const AFTER_RESET: u64 = 1;
        xcr0 == AFTER_RESET || self.cpuid.check_xcr0(xcr0).is_ok()
    }
}
