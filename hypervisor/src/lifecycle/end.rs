// SPDX-License-Identifier: MIT OR Apache-2.0
//! The end of the host, from a failure to the state that lasts. `endstate` decides; the actions are here.
//!
//! Any lock may be held by a CPU that failed or was stopped: nothing here waits for one, allocates, or logs otherwise
//! than by [`console::emergency`].

mod condition;
mod control;
pub mod previous;
mod report;
mod watch;

use endstate::{Action, CpuSet, EndProgress, Limits, Role, Step, stop_others};
use spin::Once;
use wire::exit_code::ExitCode;

pub use self::condition::set_action;
use self::condition::{action, note_stop};
pub use self::report::Cause;
use crate::arch::ending::ENDING;
use crate::arch::percpu::{self, my_number};
use crate::arch::trap::{self, TrapFrame};
use crate::arch::{apic, cpu, ending, fault, power, timer, watchdog};
use crate::kernel::console::{self, emergency};
use crate::lifecycle::shutdown;

/// The time that the others have to answer: far longer than a CPU needs, since an emulated one may wait for its turn.
const ANSWER_US: u64 = 1_000_000;
/// Polls of the clock while waiting: the limit on a clock that stands still.
const POLLS: u64 = 200_000_000;
/// The watchdog checks the owner so often. The longest step prints 64 KiB, six seconds of a line's time.
const STEP_CHECK_US: u64 = 2_500_000;

static END_PROGRESS: EndProgress = EndProgress::new();
/// Sends what the control channel has not sent; none until it is opened.
static LAST_WORDS: Once<fn()> = Once::new();

/// Registers the function that sends what is left to send on the control channel. It is called on the CPU that ends the
/// host, in any context: it waits for no lock for ever and allocates nothing.
pub fn set_last_words(send: fn()) {
    LAST_WORDS.call_once(|| send);
}

/// Ends the host, or whatever is left of it to be ended by this CPU.
pub fn end(cause: &Cause<'_>) -> ! {
    cpu::mask_interrupts();
    match ENDING.claim(my_number()) {
        Role::Owner => go_down(Step::Note, cause),
        Role::Again => {
            let failure = END_PROGRESS.fail_step();
            if failure.failed == Step::Stop {
                ending::nmi_all_others(my_number());
            }
            if failure.may_print {
                emergency(format_args!("{} failed: {}; the end goes on", name(failure.failed), cause.summary));
            }
            go_down(failure.resume, cause)
        }
        Role::Bystander { .. } => {
            let [rip, rsp, ..] = cause.registers;
            note_stop(rip, rsp);
            stop_for_good()
        }
    }
}

fn name(step: Step) -> &'static str {
    match step {
        Step::Note => "noting the reason",
        Step::Stop => "stopping the other CPUs",
        Step::Report => "the report",
        Step::Epitaph => "writing the epitaph",
        Step::Flush => "printing the rest of the log",
        Step::LastWords => "the control channel's last words",
        Step::Notify => "notifying pvpanic",
        Step::Rest => "resting",
        Step::Leave | Step::Halt => "leaving",
    }
}

fn go_down(first: Step, cause: &Cause<'_>) -> ! {
    let mut step = first;
    loop {
        END_PROGRESS.enter(step);
        if step < Step::Leave {
            watchdog::watch_the_end(STEP_CHECK_US);
        } else {
            watchdog::disarm();
        }
        fault::point!(crate::lifecycle::faults::in_the_end(step));
        match step {
            Step::Note => report::note(cause),
            Step::Stop => stop_all_others(),
            Step::Report => report::with_first(cause, report::print),
            Step::Epitaph => report::with_first(cause, report::leave_epitaph),
            Step::Flush => console::flush_for_the_end(),
            Step::LastWords => LAST_WORDS.get().into_iter().for_each(|send| send()),
            Step::Notify => ending::notify_pvpanic(),
            Step::Rest => last(),
            Step::Leave => leave(),
            Step::Halt => cpu::halt_forever(),
        }
        step = step.next();
    }
}

/// Stops the other CPUs. How that went is for the report: a CPU that does not answer may still write to the console.
fn stop_all_others() {
    let me = my_number();
    let others: CpuSet = percpu::indices().filter(|&cpu| cpu != me).collect();
    let ticks = timer::us_to_ticks(ANSWER_US);
    let limits = Limits { interrupt_ticks: ticks, nmi_ticks: ticks, polls: POLLS };
    report::note_stop_outcome(stop_others(&ENDING, others, &mut ending::Others, limits));
}

/// The calling CPU was ordered to stop: by an interrupt or an NMI. Returns to the owner, which no CPU stops, unless its
/// step hangs; and to a CPU that has stopped before.
pub fn stop_this_cpu(frame: &mut TrapFrame) {
    let me = my_number();
    if ENDING.owner() == Some(me) && frame.vector as u8 == trap::vector::NMI {
        return find_owner(frame);
    }
    if ENDING.owner() == Some(me) || ENDING.stopped().contains(me) {
        apic::end_all_interrupts();
        return;
    }
    note_stop(frame.rip, frame.rsp);
    stop_for_good()
}

/// The watchdog's NMI has come to the owner. Where it hangs, it goes on with the next step, on the stack that it hangs
/// on.
fn find_owner(frame: &mut TrapFrame) {
    if END_PROGRESS.note_found() && END_PROGRESS.step() < Step::Leave {
        trap::divert(frame, step_hangs);
    }
    watchdog::arm_again(STEP_CHECK_US);
}

extern "C" fn step_hangs() -> ! {
    let (summary, registers) = (format_args!("it does not come to its end"), Default::default());
    end(&Cause { summary, place: None, registers, code: None, frame_pointer: 0 })
}

fn stop_for_good() -> ! {
    cpu::mask_interrupts();
    let Some(number) = percpu::number() else { cpu::halt_forever() };
    ending::quiet_this_cpu();
    ENDING.has_stopped(number);
    loop {
        ending::rest(action().rest(false));
    }
}

/// Resting has failed: what `panic=` asks for, and nothing else. Nothing is printed, since that may be what failed.
fn leave() {
    match action() {
        Action::Exit => power::debug_exit(ExitCode::Panicked.port_value()),
        Action::Reboot { after_seconds } => {
            (0..after_seconds).for_each(|_| timer::delay_us(1_000_000));
            power::reset()
        }
        Action::Halt | Action::Spin => {}
    }
}

/// The last state, for ever or until the reboot.
fn last() -> ! {
    match action() {
        Action::Exit => shutdown::debug_exit(ExitCode::Panicked),
        // A host that failed before it had interrupts has nothing to wait for.
        Action::Halt if percpu::number().is_none() => cpu::halt_forever(),
        action => watch::watch(action),
    }
}
