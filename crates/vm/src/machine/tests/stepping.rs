// SPDX-License-Identifier: MIT OR Apache-2.0
//! Single steps (RFLAGS.TF) over instructions that are carried out here; and PAUSE.
use super::*;

fn stepping() -> Lab {
    let mut lab = Lab::new();
    lab.vcpu.rflags |= Rflags::TRAP.bits();
    lab
}

fn trapped(lab: &mut Lab) -> bool {
    lab.vcpu.injected.take() == Some(Event::Exception(Exception::SingleStep))
}

#[test]
fn a_single_step_ends_behind_an_instruction_that_was_carried_out() {
    let instructions: [(&[u8], Exit); 4] = [
        (&[0x0f, 0xa2], Exit::Cpuid),
        (&[0x0f, 0x09], Exit::CacheFlush),
        (&[0x0f, 0x01, 0xd9], Exit::Hypercall),
        (&[0xf3, 0x90], Exit::Pause),
    ];
    for (code, exit) in instructions {
        let mut lab = stepping();
        lab.at(code);
        lab.handle(exit);
        assert_eq!(lab.vcpu.rip, RIP + code.len() as u64);
        assert!(trapped(&mut lab), "{exit:?}");
    }
    let mut lab = stepping();
    lab.outb(0x80, 1);
    assert!(trapped(&mut lab));
}

#[test]
fn a_single_step_stops_at_each_step_of_a_repeated_instruction() {
    let mut lab = stepping();
    lab.vcpu.gprs[Gpr::Rcx as usize] = 2;
    lab.vcpu.gprs[Gpr::Rdx as usize] = 0x80;
    lab.vcpu.gprs[Gpr::Rsi as usize] = 0x3000;
    lab.at(&[0xf3, 0x6e]);
    let access =
        PortAccess { port: 0x80, size: AccessSize::Byte, is_in: false, is_string: true, is_rep: true, next_rip: 0 };
    for left in [1, 0] {
        lab.handle(Exit::Port(access));
        assert!(trapped(&mut lab));
        assert_eq!(lab.vcpu.gprs[Gpr::Rcx as usize], left);
    }
    assert_eq!(lab.vcpu.rip, RIP + 2);
}

#[test]
fn an_instruction_that_faults_is_no_step() {
    let mut lab = stepping();
    lab.vcpu.gprs[Gpr::Rcx as usize] = 0x1234;
    assert_eq!(lab.raised(&[0x0f, 0x32], Exit::MsrRead), Exception::GeneralProtection(0));
}

#[test]
fn what_is_none_of_the_guests_instructions_is_no_step() {
    for exit in [Exit::HostInterrupt, Exit::InterruptWindow, Exit::InterruptReturn] {
        let mut lab = stepping();
        lab.at(&[0xcf]);
        lab.handle(exit);
        assert_eq!(lab.vcpu.injected, None, "{exit:?}");
    }
}

#[test]
fn a_single_step_ends_a_halt() {
    let mut lab = stepping();
    lab.at(&[0xf4]);
    assert_eq!(lab.handle(Exit::Halt), Outcome::Resume);
    assert!(trapped(&mut lab));
}

#[test]
fn the_resume_flag_lasts_for_one_instruction() {
    let mut lab = Lab::new();
    lab.vcpu.rflags |= Rflags::RESUME.bits();
    lab.executed(&[0x0f, 0xa2], Exit::Cpuid);
    assert_eq!(lab.vcpu.rflags & Rflags::RESUME.bits(), 0);
}

#[test]
fn a_guest_that_spins_yields_its_cpu_and_goes_on_behind_the_pause() {
    let mut lab = Lab::new();
    assert_eq!(lab.executed(&[0xf3, 0x90], Exit::Pause), Outcome::Yield);
    assert!(lab.machine.prepare_entry(&mut lab.vcpu, &mut lab.cpu, &mut lab.host), "it does not wait");
}
