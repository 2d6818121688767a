// SPDX-License-Identifier: MIT OR Apache-2.0
//! The end of the host, from a failure to the state that lasts. What is decided is in `endstate`; here it is done.
//!
//! Any lock may be held by whoever failed or was stopped: nothing here waits for one, allocates, or logs otherwise than by
//! [`console::emergency`].

mod control;
pub mod previous;
mod report;
mod watch;

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use boot::options::PanicAction;
use endstate::{Action, Descent, Ending, Limits, ProcessorSet, Rest, Role, Step, stop_others};
use wire::exit_code::ExitCode;

pub use self::report::Cause;
use crate::arch::percpu::{self, MAX_PROCESSORS};
use crate::arch::trap::TrapFrame;
use crate::arch::{apic, cpu, ending, power, timer};
use crate::console::{self, emergency};

/// The number of a processor that failed before it had one.
const UNNUMBERED: u32 = u32::MAX - 1;
/// How long the others have to answer: far longer than a processor needs, since an emulated one may wait for its turn.
const ANSWER_US: u64 = 1_000_000;
/// Looks at the clock while waiting: what passes on a clock that stands still.
const LOOKS: u64 = 200_000_000;

static ENDING: Ending = Ending::new();
static DESCENT: Descent = Descent::new();
static ACTION: AtomicU32 = AtomicU32::new(Action::Halt.to_number());
/// Where each processor was stopped: instruction and stack pointer.
static STOPPED_AT: [(AtomicU64, AtomicU64); MAX_PROCESSORS] =
    [const { (AtomicU64::new(0), AtomicU64::new(0)) }; MAX_PROCESSORS];

/// Sets what follows the report.
pub fn set_action(action: PanicAction) {
    let action = match action {
        PanicAction::Spin => Action::Spin,
        PanicAction::Halt => Action::Halt,
        PanicAction::Exit => Action::Exit,
        PanicAction::Reboot { after_seconds } => Action::Reboot { after_seconds },
    };
    ACTION.store(action.to_number(), Ordering::Relaxed);
}

/// What follows the report.
pub fn action() -> Action {
    Action::from_number(ACTION.load(Ordering::Relaxed))
}

/// Whether the host has begun to end.
pub fn is_under_way() -> bool {
    ENDING.owner().is_some()
}

/// Ends the host, or whatever is left of it to be ended by this processor.
pub fn end(cause: &Cause<'_>) -> ! {
    cpu::mask_interrupts();
    match ENDING.claim(my_number()) {
        Role::Owner => go_down(Step::Stop, cause),
        Role::Again => {
            let fall = DESCENT.fall();
            if fall.may_print {
                emergency(format_args!("{} failed: {}; the end goes on", name(fall.failed), cause.summary));
            }
            go_down(fall.resume, cause)
        }
        Role::Bystander { .. } => {
            let [rip, rsp, ..] = cause.registers;
            note_stop(rip, rsp);
            stop_for_good()
        }
    }
}

/// The number of the calling processor.
pub fn my_number() -> u32 {
    match percpu::number() {
        Some(number) => number,
        None if percpu::online() == 0 => 0,
        None => UNNUMBERED,
    }
}

fn name(step: Step) -> &'static str {
    match step {
        Step::Stop => "stopping the other processors",
        Step::Report => "the report",
        Step::Epitaph => "writing the epitaph",
        Step::Flush => "flushing the log",
        Step::Notify => "notifying pvpanic",
        Step::Rest | Step::Halt => "resting",
    }
}

fn go_down(first: Step, cause: &Cause<'_>) -> ! {
    let mut step = first;
    loop {
        DESCENT.enter(step);
        match step {
            Step::Stop => stop_all_others(),
            Step::Report => report::print(cause),
            Step::Epitaph => report::leave_epitaph(cause),
            Step::Flush => console::flush_for_the_end(),
            Step::Notify => ending::notify_pvpanic(),
            Step::Rest => last(),
            Step::Halt => cpu::halt_forever(),
        }
        step = step.next();
    }
}

/// Stops the other processors. How that went is for the report: who does not answer may still write to the console.
fn stop_all_others() {
    let me = my_number();
    let others: ProcessorSet = percpu::indices().filter(|&processor| processor != me).collect();
    let ticks = timer::us_to_ticks(ANSWER_US);
    let limits = Limits { interrupt_ticks: ticks, nmi_ticks: ticks, looks: LOOKS };
    report::note_roll_call(stop_others(&ENDING, others, &mut ending::Others, limits));
}

/// The calling processor was told to stop: by an interrupt or an NMI. Returns to the owner, which nobody stops, and to who
/// has stopped before.
pub fn stop_this_processor(frame: &TrapFrame) {
    let me = my_number();
    if ENDING.owner() == Some(me) || ENDING.stopped().contains(me) {
        apic::end_all_interrupts();
        return;
    }
    note_stop(frame.rip, frame.rsp);
    stop_for_good()
}

fn note_stop(at_rip: u64, at_rsp: u64) {
    if let Some((rip, rsp)) = STOPPED_AT.get(my_number() as usize) {
        rip.store(at_rip, Ordering::Relaxed);
        rsp.store(at_rsp, Ordering::Relaxed);
    }
}

fn stop_for_good() -> ! {
    cpu::mask_interrupts();
    let Some(number) = percpu::number() else { cpu::halt_forever() };
    ending::quiet_this_processor();
    ENDING.has_stopped(number);
    loop {
        ending::rest(action().rest(false));
    }
}

/// The last state, for ever or until the reboot.
fn last() -> ! {
    match action() {
        Action::Exit => power::debug_exit(ExitCode::Panicked.port_value()),
        // A host that failed before it had interrupts has nothing to wait for.
        Action::Halt if percpu::number().is_none() => cpu::halt_forever(),
        action => watch::watch(action),
    }
}

/// How the owner rests.
fn owners_rest(action: Action) -> Rest {
    // Without a local APIC nothing would wake it for its reboot.
    if percpu::number().is_some() { action.rest(true) } else { Rest::Spin }
}
