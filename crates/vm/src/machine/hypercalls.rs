// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hypercalls of guests whose vCPUs share CPUs: KVM's, by number, with arguments in RBX, RCX, RDX and RSI (Linux
//! Documentation/virt/kvm/x86/hypercalls.rst).
//!
//! | number | effect |
//! |---|---|
//! | 5, KICK_CPU | wakes the CPU with the APIC identifier RCX, though its interrupts are off: it waits for a lock |
//! | 10, SEND_IPI | sends the interrupt of RSI to the CPUs RDX + n for each bit n of RCX:RBX: one exit for all of them |
//! | 11, SCHED_YIELD | lets the CPU with the APIC identifier RBX go first, if it waits for this one |
//!
//! A guest that is not shown these features ([`CpuidTable::show_paravirtual`]) has none.
//!
//! [`CpuidTable::show_paravirtual`]: crate::cpu::cpuid::CpuidTable::show_paravirtual

use super::completion::usual;
use super::context::VcpuContext;
use super::{Host, Outcome};
use crate::devices::{DeliveryMode, Destination, InterruptMessage};
use crate::memory::GuestMemory;
use crate::vcpu::{AccessRights, Gpr, SegmentName, VcpuState, efer};

const KICK_CPU: u64 = 5;
const SEND_IPI: u64 = 10;
const SCHED_YIELD: u64 = 11;

/// KVM's results: of a hypercall that it does not have, of one by user mode, of one with arguments that are not
/// possible.
const NO_SUCH_HYPERCALL: u64 = -1000i64 as u64;
const NOT_PERMITTED: u64 = -1i64 as u64;
const INVALID: u64 = -22i64 as u64;

impl<V: VcpuState + ?Sized, M: GuestMemory, H: Host> VcpuContext<'_, V, M, H> {
    /// Carries out a hypercall. The answer to one that is not there keeps callers that try anyway going.
    #[cold]
    #[inline(never)]
    pub(super) fn hypercall(&mut self) -> Outcome {
        let number = self.argument(Gpr::Rax);
        let mut yields = false;
        let result = match number {
            KICK_CPU | SEND_IPI | SCHED_YIELD if !self.machine.is_paravirtual => NO_SUCH_HYPERCALL,
            KICK_CPU | SEND_IPI | SCHED_YIELD if self.vcpu.cpl() != 0 => NOT_PERMITTED,
            KICK_CPU => self.kick_cpu(),
            SEND_IPI => self.send_ipis(),
            SCHED_YIELD => {
                yields = self.host.shares_cpu(self.argument(Gpr::Rbx) as usize);
                0
            }
            _ => NO_SUCH_HYPERCALL,
        };
        match self.done(usual::VMMCALL, |vcpu| vcpu.set_gpr(Gpr::Rax, result)) {
            Outcome::Resume if yields => Outcome::Yield,
            other => other,
        }
    }

    fn kick_cpu(&mut self) -> u64 {
        let id = self.argument(Gpr::Rcx) as usize;
        if id == self.cpu.lapic.id() as usize {
            self.cpu.is_unhalted = true;
        } else if self.machine.mailboxes.get(id).is_some_and(|mailbox| mailbox.unhalt()) {
            self.host.kick(id);
        }
        0
    }

    /// Returns to how many CPUs the interrupt goes.
    fn send_ipis(&mut self) -> u64 {
        let Some(message) = message(self.argument(Gpr::Rsi)) else { return INVALID };
        let (first, bits) = (self.argument(Gpr::Rdx), if self.is_64_bit() { 64 } else { 32 });
        let mut sent = 0;
        for (low, register) in [(first, Gpr::Rbx), (first.saturating_add(bits), Gpr::Rcx)] {
            let mut targets = self.argument(register);
            while targets != 0 {
                let id = low.saturating_add(targets.trailing_zeros().into());
                targets &= targets - 1;
                if id < self.machine.mailboxes.len() as u64 {
                    let destination = Destination::Physical(id as u32);
                    self.initiator().send(&InterruptMessage { destination, ..message });
                    sent += 1;
                }
            }
        }
        sent
    }

    fn argument(&self, register: Gpr) -> u64 {
        let value = self.vcpu.gpr(register);
        if self.is_64_bit() { value } else { value & 0xffff_ffff }
    }

    fn is_64_bit(&self) -> bool {
        self.vcpu.efer() & efer::LMA != 0 && self.vcpu.segment(SegmentName::Cs).rights.contains(AccessRights::LONG)
    }
}

/// Returns the message of an interrupt command register's value: fixed or an NMI, without a destination of its own.
fn message(command: u64) -> Option<InterruptMessage> {
    const VECTOR: u64 = 0xff;
    /// The vectors below are exceptions' (Intel SDM vol. 3, section 11.5.2).
    const LEAST_VECTOR: u8 = 16;
    const MODE: u64 = 0b111 << 8;
    const FIXED: u64 = 0;
    const NMI: u64 = 0b100 << 8;
    /// Assert, which has no meaning for these modes.
    const LEVEL: u64 = 1 << 14;
    let mode = match command & MODE {
        FIXED => DeliveryMode::Fixed,
        NMI => DeliveryMode::Nmi,
        _ => return None,
    };
    let vector = (command & VECTOR) as u8;
    let is_possible = command & !(VECTOR | MODE | LEVEL) == 0 && (mode == DeliveryMode::Nmi || vector >= LEAST_VECTOR);
    is_possible.then_some(InterruptMessage { destination: Destination::Itself, mode, vector, is_level: false })
}
