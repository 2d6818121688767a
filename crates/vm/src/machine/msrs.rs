// SPDX-License-Identifier: MIT OR Apache-2.0
//! RDMSR and WRMSR: [`crate::cpu::msr`] decides which part of the machine answers; here it is asked.

use super::completion::{raise, usual};
use super::context::VcpuContext;
use super::{Cpu, Host, Machine, Outcome};
use crate::cpu::kvmclock::{ClockTime, SharedArea, write_wall_clock};
use crate::cpu::msr::{DE_CFG_LFENCE_SERIALIZES, MsrClass, PlainMsr, check_efer, check_pat, check_spec_ctrl, classify};
use crate::devices::lapic::MSR_X2APIC_FIRST;
use crate::devices::{GeneralProtection, GuestTsc};
use crate::memory::GuestMemory;
use crate::vcpu::{Exception, Gpr, VcpuState};

impl<V: VcpuState + ?Sized, M: GuestMemory, H: Host> VcpuContext<'_, V, M, H> {
    #[inline]
    pub(super) fn msr_read(&mut self) -> Outcome {
        let number = self.vcpu.gpr(Gpr::Rcx) as u32;
        let value = match classify(number) {
            MsrClass::Counters => return self.erased().counter_msr_read(number),
            class => self.read(class),
        };
        let Ok(value) = value else { return raise(self.vcpu, Exception::GeneralProtection(0)) };
        self.done(usual::RDMSR, |vcpu| {
            vcpu.set_gpr(Gpr::Rax, value & 0xffff_ffff);
            vcpu.set_gpr(Gpr::Rdx, value >> 32);
        })
    }

    #[inline]
    pub(super) fn msr_write(&mut self) -> Outcome {
        let number = self.vcpu.gpr(Gpr::Rcx) as u32;
        let value = self.vcpu.gpr(Gpr::Rdx) << 32 | self.vcpu.gpr(Gpr::Rax) & 0xffff_ffff;
        let written = match classify(number) {
            MsrClass::Counters => return self.erased().counter_msr_write(number, value),
            MsrClass::SpecCtrl => return self.erased().spec_ctrl_write(value),
            class => self.write(class, value),
        };
        match written {
            Ok(()) => self.done(usual::WRMSR, |_| ()),
            Err(GeneralProtection) => raise(self.vcpu, Exception::GeneralProtection(0)),
        }
    }

    #[cold]
    fn spec_ctrl_read(&mut self) -> Result<u64, GeneralProtection> {
        let is_offered = self.machine.cpuid.speculation().spec_ctrl != 0;
        if is_offered { Ok(self.vcpu.spec_ctrl()) } else { Err(GeneralProtection) }
    }

    /// Writes SPEC_CTRL for the guest: the world switch that it needs depends on the value.
    #[cold]
    fn spec_ctrl_write(&mut self, value: u64) -> Outcome {
        if check_spec_ctrl(value, self.machine.cpuid.speculation()).is_err() {
            return raise(self.vcpu, Exception::GeneralProtection(0));
        }
        match self.done(usual::WRMSR, |vcpu| vcpu.set_spec_ctrl(value)) {
            Outcome::Resume => Outcome::CountsOtherwise,
            other => other,
        }
    }

    #[inline]
    fn read(&mut self, class: MsrClass) -> Result<u64, GeneralProtection> {
        let cpu = &mut *self.cpu;
        match class {
            MsrClass::X2Apic(register) => {
                cpu.sync_apic(self.vcpu, &self.machine.memory);
                cpu.lapic.read_msr(MSR_X2APIC_FIRST + u32::from(register), cpu.now(self.host))
            }
            MsrClass::TscDeadline => Ok(cpu.lapic.tsc_deadline(cpu.now(self.host))),
            MsrClass::ApicBase => Ok(cpu.lapic.apic_base()),
            MsrClass::Tsc => Ok(cpu.now(self.host).0),
            MsrClass::Efer => Ok(self.vcpu.efer()),
            MsrClass::Pat => Ok(self.vcpu.pat()),
            MsrClass::SystemTime => Ok(cpu.clock.read_msr()),
            MsrClass::WallClock => Ok(0),
            MsrClass::StealTime => Ok(cpu.steal.read_msr()),
            MsrClass::PvEoi => Ok(cpu.eoi_flag.msr()),
            MsrClass::Plain(PlainMsr::MiscEnable) if !self.machine.has_misc_enable => Err(GeneralProtection),
            MsrClass::Plain(register) => Ok(cpu.msrs.read(register)),
            MsrClass::SpecCtrl => self.erased().spec_ctrl_read(),
            MsrClass::DeCfg => Ok(self.machine.de_cfg()),
            MsrClass::OwnedByGuest | MsrClass::Counters | MsrClass::Absent => Err(GeneralProtection),
        }
    }

    #[inline]
    fn write(&mut self, class: MsrClass, value: u64) -> Result<(), GeneralProtection> {
        match class {
            MsrClass::X2Apic(register) => {
                self.sync_apic();
                let now = self.cpu.now(self.host);
                let action = self.cpu.lapic.write_msr(MSR_X2APIC_FIRST + u32::from(register), value, now)?;
                self.initiator().act(action);
                self.vcpu.set_task_priority(self.cpu.lapic.task_priority());
                Ok(())
            }
            MsrClass::TscDeadline => {
                let now = self.cpu.now(self.host);
                let action = self.cpu.lapic.set_tsc_deadline(value, now);
                self.initiator().act(action);
                Ok(())
            }
            MsrClass::Absent => Err(GeneralProtection),
            class => self.reborrow().write_rarely(class, value),
        }
    }

    #[cold]
    fn write_rarely(&mut self, class: MsrClass, value: u64) -> Result<(), GeneralProtection> {
        let machine = self.machine;
        match class {
            MsrClass::ApicBase => {
                if value.checked_shr(machine.cpuid.physical_bits()).unwrap_or(0) != 0 {
                    return Err(GeneralProtection);
                }
                let action = self.cpu.lapic.set_apic_base(value)?;
                self.initiator().act(action);
                machine.publish_addressing(self.cpu);
            }
            MsrClass::Efer => {
                let supported = machine.cpuid.supported_efer();
                self.vcpu.set_efer(check_efer(self.vcpu.efer(), value, self.vcpu.cr0(), supported)?);
            }
            MsrClass::Pat => {
                check_pat(value)?;
                self.vcpu.set_pat(value);
            }
            MsrClass::Tsc => self.set_tsc(value),
            MsrClass::SystemTime => {
                self.cpu.clock.write_msr(value)?;
                machine.publish_clock(self.cpu);
            }
            // An area outside of memory is the guest's loss: it asked for the time to be put where it can never read
            // it.
            MsrClass::WallClock => {
                let _ = write_wall_clock(&machine.memory, crate::addr::Gpa(value), machine.boot_unix_ns);
            }
            MsrClass::StealTime => self.cpu.steal.write_msr(&machine.memory, value)?,
            MsrClass::PvEoi => {
                self.cpu.sync_eoi(&machine.memory);
                self.cpu.eoi_flag = SharedArea::from_msr(value)?;
            }
            MsrClass::Plain(PlainMsr::MiscEnable) if !machine.has_misc_enable => return Err(GeneralProtection),
            MsrClass::Plain(register) => self.cpu.msrs.write(register, value)?,
            // As for every constant: the present value may be written.
            MsrClass::DeCfg if value == machine.de_cfg() => {}
            _ => return Err(GeneralProtection),
        }
        Ok(())
    }

    fn set_tsc(&mut self, value: u64) {
        let now = self.cpu.now(self.host);
        self.cpu.lapic.follow_tsc(now, GuestTsc(value));
        self.cpu.tsc_offset = value.wrapping_sub(self.host.tsc());
        self.vcpu.set_tsc_offset(self.cpu.tsc_offset);
        self.machine.publish_clock(self.cpu);
        self.cpu.arm(self.host);
    }
}

impl<M: GuestMemory> Machine<M> {
    /// DE_CFG, as the host has set it.
    fn de_cfg(&self) -> u64 {
        if self.lfence_serializes { DE_CFG_LFENCE_SERIALIZES } else { 0 }
    }

    /// Notifies the guest how its time stamp counter gives nanoseconds since its start: one line from its time 0, which
    /// serves until it sets the counter.
    fn publish_clock(&self, cpu: &mut Cpu) {
        let time = ClockTime {
            tsc: GuestTsc(cpu.tsc_at_start.wrapping_add(cpu.tsc_offset)),
            system_time_ns: 0,
            scale: self.scale,
            is_stable: true,
            was_paused: false,
        };
        let _ = cpu.clock.publish(&self.memory, &time);
    }
}
