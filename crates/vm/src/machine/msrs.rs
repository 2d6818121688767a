// SPDX-License-Identifier: MIT OR Apache-2.0
//! RDMSR and WRMSR: who answers is decided in [`crate::msr`]; here they are asked.

use super::exits::usual;
use super::{Host, Machine, Outcome, Processor};
use crate::devices::lapic::MSR_X2APIC_FIRST;
use crate::devices::{GeneralProtection, GuestTsc};
use crate::kvmclock::{ClockTime, SharedArea, write_wall_clock};
use crate::memory::GuestMemory;
use crate::msr::{MsrClass, check_efer, check_pat, classify};
use crate::vcpu::{Gpr, VcpuState};

impl<M: GuestMemory> Machine<M> {
    #[inline]
    pub(super) fn msr_read(&self, vcpu: &mut impl VcpuState, processor: &mut Processor, host: &impl Host) -> Outcome {
        let number = vcpu.gpr(Gpr::Rcx) as u32;
        let Ok(value) = self.read(vcpu, processor, host, number) else {
            return self.counter_msr_read(vcpu, processor, number);
        };
        self.done(vcpu, usual::RDMSR, |vcpu| {
            vcpu.set_gpr(Gpr::Rax, value & 0xffff_ffff);
            vcpu.set_gpr(Gpr::Rdx, value >> 32);
        })
    }

    #[inline]
    pub(super) fn msr_write(
        &self,
        vcpu: &mut impl VcpuState,
        processor: &mut Processor,
        host: &mut impl Host,
    ) -> Outcome {
        let number = vcpu.gpr(Gpr::Rcx) as u32;
        let value = vcpu.gpr(Gpr::Rdx) << 32 | vcpu.gpr(Gpr::Rax) & 0xffff_ffff;
        match self.write(vcpu, processor, host, number, value) {
            Ok(()) => self.done(vcpu, usual::WRMSR, |_| ()),
            Err(GeneralProtection) => self.counter_msr_write(vcpu, processor, host, number, value),
        }
    }

    #[inline]
    fn read(
        &self,
        vcpu: &impl VcpuState,
        processor: &mut Processor,
        host: &impl Host,
        number: u32,
    ) -> Result<u64, GeneralProtection> {
        match classify(number) {
            MsrClass::X2Apic(register) => {
                processor.settle(vcpu, &self.memory);
                processor.lapic.read_msr(MSR_X2APIC_FIRST + u32::from(register), processor.now(host))
            }
            MsrClass::TscDeadline => Ok(processor.lapic.tsc_deadline(processor.now(host))),
            MsrClass::ApicBase => Ok(processor.lapic.apic_base()),
            MsrClass::Tsc => Ok(processor.now(host).0),
            MsrClass::Efer => Ok(vcpu.efer()),
            MsrClass::Pat => Ok(vcpu.pat()),
            MsrClass::SystemTime => Ok(processor.clock.read_msr()),
            MsrClass::WallClock => Ok(0),
            MsrClass::StealTime => Ok(processor.steal.read_msr()),
            MsrClass::PvEoi => Ok(processor.eoi_flag.msr()),
            MsrClass::Plain(register) => Ok(processor.msrs.read(register)),
            MsrClass::OwnedByGuest | MsrClass::DebugControl | MsrClass::Absent => Err(GeneralProtection),
        }
    }

    #[inline]
    fn write(
        &self,
        vcpu: &mut impl VcpuState,
        processor: &mut Processor,
        host: &mut impl Host,
        number: u32,
        value: u64,
    ) -> Result<(), GeneralProtection> {
        match classify(number) {
            MsrClass::X2Apic(register) => {
                processor.settle(vcpu, &self.memory);
                let now = processor.now(host);
                let action = processor.lapic.write_msr(MSR_X2APIC_FIRST + u32::from(register), value, now)?;
                self.act(processor, host, action);
                vcpu.set_task_priority(processor.lapic.task_priority());
                Ok(())
            }
            MsrClass::TscDeadline => {
                let now = processor.now(host);
                let action = processor.lapic.set_tsc_deadline(value, now);
                self.act(processor, host, action);
                Ok(())
            }
            MsrClass::DebugControl | MsrClass::Absent => Err(GeneralProtection),
            class => self.write_rarely(vcpu, processor, host, class, value),
        }
    }

    #[cold]
    fn write_rarely(
        &self,
        vcpu: &mut impl VcpuState,
        processor: &mut Processor,
        host: &mut impl Host,
        class: MsrClass,
        value: u64,
    ) -> Result<(), GeneralProtection> {
        match class {
            MsrClass::ApicBase => {
                let action = processor.lapic.set_apic_base(value)?;
                self.act(processor, host, action);
                self.publish_addressing(processor);
            }
            MsrClass::Efer => {
                let supported = self.cpuid.supported_efer();
                vcpu.set_efer(check_efer(vcpu.efer(), value, vcpu.cr0(), supported)?);
            }
            MsrClass::Pat => {
                check_pat(value)?;
                vcpu.set_pat(value);
            }
            MsrClass::Tsc => {
                processor.lapic.follow_tsc(processor.now(host), GuestTsc(value));
                processor.tsc_offset = value.wrapping_sub(host.tsc());
                vcpu.set_tsc_offset(processor.tsc_offset);
                self.publish_clock(processor);
                processor.arm(host);
            }
            MsrClass::SystemTime => {
                processor.clock.write_msr(value)?;
                self.publish_clock(processor);
            }
            // An area outside of memory is the guest's loss: it asked for the time to be put where it can never read it.
            MsrClass::WallClock => drop(write_wall_clock(&self.memory, crate::addr::Gpa(value), self.boot_unix_ns)),
            MsrClass::StealTime => processor.steal.write_msr(&self.memory, value)?,
            MsrClass::PvEoi => {
                processor.settle_eoi(&self.memory);
                processor.eoi_flag = SharedArea::from_msr(value)?;
            }
            MsrClass::Plain(register) => processor.msrs.write(register, value)?,
            _ => return Err(GeneralProtection),
        }
        Ok(())
    }

    /// Tells the guest how its time stamp counter gives nanoseconds since its start: one line from its time 0, which serves
    /// until it sets the counter.
    fn publish_clock(&self, processor: &mut Processor) {
        let time = ClockTime {
            tsc: GuestTsc(processor.tsc_at_start.wrapping_add(processor.tsc_offset)),
            system_time_ns: 0,
            scale: self.scale,
            is_stable: true,
            was_paused: false,
        };
        let _ = processor.clock.publish(&self.memory, &time);
    }
}
