// SPDX-License-Identifier: MIT OR Apache-2.0
//! RDMSR and WRMSR: who answers is decided in [`crate::cpu::msr`]; here they are asked.

use super::exits::usual;
use super::{Cpu, Host, Machine, Outcome};
use crate::cpu::kvmclock::{ClockTime, SharedArea, write_wall_clock};
use crate::cpu::msr::number::SPEC_CTRL;
use crate::cpu::msr::{DE_CFG_LFENCE_SERIALIZES, MsrClass, PlainMsr, check_efer, check_pat, check_spec_ctrl, classify};
use crate::devices::lapic::MSR_X2APIC_FIRST;
use crate::devices::{GeneralProtection, GuestTsc};
use crate::memory::GuestMemory;
use crate::vcpu::{Exception, Gpr, VcpuState};

impl<M: GuestMemory> Machine<M> {
    #[inline]
    pub(super) fn msr_read(&self, vcpu: &mut impl VcpuState, cpu: &mut Cpu, host: &impl Host) -> Outcome {
        let number = vcpu.gpr(Gpr::Rcx) as u32;
        let Ok(value) = self.read(vcpu, cpu, host, number) else {
            return self.counter_msr_read(vcpu, cpu, number);
        };
        self.done(vcpu, usual::RDMSR, |vcpu| {
            vcpu.set_gpr(Gpr::Rax, value & 0xffff_ffff);
            vcpu.set_gpr(Gpr::Rdx, value >> 32);
        })
    }

    #[inline]
    pub(super) fn msr_write(&self, vcpu: &mut impl VcpuState, cpu: &mut Cpu, host: &mut impl Host) -> Outcome {
        let number = vcpu.gpr(Gpr::Rcx) as u32;
        let value = vcpu.gpr(Gpr::Rdx) << 32 | vcpu.gpr(Gpr::Rax) & 0xffff_ffff;
        match self.write(vcpu, cpu, host, number, value) {
            Ok(()) => self.done(vcpu, usual::WRMSR, |_| ()),
            Err(GeneralProtection) if number == SPEC_CTRL => self.spec_ctrl_write(vcpu, value),
            Err(GeneralProtection) => self.counter_msr_write(vcpu, cpu, host, number, value),
        }
    }

    #[cold]
    fn spec_ctrl_read(&self, vcpu: &impl VcpuState) -> Result<u64, GeneralProtection> {
        if self.cpuid.speculation().spec_ctrl == 0 { Err(GeneralProtection) } else { Ok(vcpu.spec_ctrl()) }
    }

    /// The guest writes SPEC_CTRL: which world switch it needs depends on the value.
    #[cold]
    fn spec_ctrl_write(&self, vcpu: &mut impl VcpuState, value: u64) -> Outcome {
        if check_spec_ctrl(value, self.cpuid.speculation()).is_err() {
            return super::exits::raise(vcpu, Exception::GeneralProtection(0));
        }
        match self.done(vcpu, usual::WRMSR, |vcpu| vcpu.set_spec_ctrl(value)) {
            Outcome::Resume => Outcome::CountsOtherwise,
            other => other,
        }
    }

    /// DE_CFG: what the host has made of it.
    fn de_cfg(&self) -> u64 {
        if self.lfence_serializes { DE_CFG_LFENCE_SERIALIZES } else { 0 }
    }

    #[inline]
    fn read(
        &self,
        vcpu: &impl VcpuState,
        cpu: &mut Cpu,
        host: &impl Host,
        number: u32,
    ) -> Result<u64, GeneralProtection> {
        match classify(number) {
            MsrClass::X2Apic(register) => {
                cpu.sync_apic(vcpu, &self.memory);
                cpu.lapic.read_msr(MSR_X2APIC_FIRST + u32::from(register), cpu.now(host))
            }
            MsrClass::TscDeadline => Ok(cpu.lapic.tsc_deadline(cpu.now(host))),
            MsrClass::ApicBase => Ok(cpu.lapic.apic_base()),
            MsrClass::Tsc => Ok(cpu.now(host).0),
            MsrClass::Efer => Ok(vcpu.efer()),
            MsrClass::Pat => Ok(vcpu.pat()),
            MsrClass::SystemTime => Ok(cpu.clock.read_msr()),
            MsrClass::WallClock => Ok(0),
            MsrClass::StealTime => Ok(cpu.steal.read_msr()),
            MsrClass::PvEoi => Ok(cpu.eoi_flag.msr()),
            MsrClass::Plain(PlainMsr::MiscEnable) if !self.has_misc_enable => Err(GeneralProtection),
            MsrClass::Plain(register) => Ok(cpu.msrs.read(register)),
            MsrClass::SpecCtrl => self.spec_ctrl_read(vcpu),
            MsrClass::DeCfg => Ok(self.de_cfg()),
            MsrClass::OwnedByGuest | MsrClass::DebugControl | MsrClass::Absent => Err(GeneralProtection),
        }
    }

    #[inline]
    fn write(
        &self,
        vcpu: &mut impl VcpuState,
        cpu: &mut Cpu,
        host: &mut impl Host,
        number: u32,
        value: u64,
    ) -> Result<(), GeneralProtection> {
        match classify(number) {
            MsrClass::X2Apic(register) => {
                cpu.sync_apic(vcpu, &self.memory);
                let now = cpu.now(host);
                let action = cpu.lapic.write_msr(MSR_X2APIC_FIRST + u32::from(register), value, now)?;
                self.act(cpu, host, action);
                vcpu.set_task_priority(cpu.lapic.task_priority());
                Ok(())
            }
            MsrClass::TscDeadline => {
                let now = cpu.now(host);
                let action = cpu.lapic.set_tsc_deadline(value, now);
                self.act(cpu, host, action);
                Ok(())
            }
            MsrClass::SpecCtrl | MsrClass::DebugControl | MsrClass::Absent => Err(GeneralProtection),
            class => self.write_rarely(vcpu, cpu, host, class, value),
        }
    }

    #[cold]
    fn write_rarely(
        &self,
        vcpu: &mut impl VcpuState,
        cpu: &mut Cpu,
        host: &mut impl Host,
        class: MsrClass,
        value: u64,
    ) -> Result<(), GeneralProtection> {
        match class {
            MsrClass::ApicBase => {
                if value.checked_shr(self.cpuid.physical_bits()).unwrap_or(0) != 0 {
                    return Err(GeneralProtection);
                }
                let action = cpu.lapic.set_apic_base(value)?;
                self.act(cpu, host, action);
                self.publish_addressing(cpu);
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
                cpu.lapic.follow_tsc(cpu.now(host), GuestTsc(value));
                cpu.tsc_offset = value.wrapping_sub(host.tsc());
                vcpu.set_tsc_offset(cpu.tsc_offset);
                self.publish_clock(cpu);
                cpu.arm(host);
            }
            MsrClass::SystemTime => {
                cpu.clock.write_msr(value)?;
                self.publish_clock(cpu);
            }
            // An area outside of memory is the guest's loss: it asked for the time to be put where it can never read
            // it.
            MsrClass::WallClock => drop(write_wall_clock(&self.memory, crate::addr::Gpa(value), self.boot_unix_ns)),
            MsrClass::StealTime => cpu.steal.write_msr(&self.memory, value)?,
            MsrClass::PvEoi => {
                cpu.sync_eoi(&self.memory);
                cpu.eoi_flag = SharedArea::from_msr(value)?;
            }
            MsrClass::Plain(PlainMsr::MiscEnable) if !self.has_misc_enable => return Err(GeneralProtection),
            MsrClass::Plain(register) => cpu.msrs.write(register, value)?,
            // As every constant: what is there may be written.
            MsrClass::DeCfg if value == self.de_cfg() => {}
            _ => return Err(GeneralProtection),
        }
        Ok(())
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
