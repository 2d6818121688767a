// SPDX-License-Identifier: MIT OR Apache-2.0
//! Each CPU's loop, as all layers make it: vCPUs in turn ([`Executive`]), and in between what operators, a restart and
//! an update have for the CPU. The boot CPU serves the control channel.

use alloc::boxed::Box;

use ::update::trial::TrialPage;
use bundle::WhenDone;
use wire::VmState;
use wire::exit_code::ExitCode;

use super::Control;
use super::images::Requester;
use crate::arch::fault;
use crate::arch::percpu::{BOOT_CPU, PerCpu};
use crate::arch::virt::{Unavailable, Virt};
use crate::guests::configuration;
use crate::guests::executive::Executive;
use crate::guests::slots::GUESTS;
use crate::kernel::{console, cpus};
use crate::lifecycle::restart::{self, Restart};
use crate::lifecycle::update::{self, Finishing};
use crate::lifecycle::{measure, shutdown};

/// One CPU's loop and what it owns.
struct CpuLoop {
    executive: Executive,
    control: Option<Box<Control>>,
    /// The work that is left in an image that has taken over.
    finishing: Option<Finishing>,
}

/// Runs the calling CPU's loop, until the CPU leaves the host. Without `virt` no guest runs on it.
pub fn run(virt: Result<Virt, Unavailable>) {
    fault::point!(crate::lifecycle::faults::before_the_loop());
    measure::before_the_loop();
    let control = (PerCpu::current().index == BOOT_CPU).then(Control::start);
    let mut this = CpuLoop { executive: Executive::new(virt), control, finishing: None };
    this.executive.begin();
    // A CPU that was sent here before this loop began is here already.
    this.work();
    this.go_on();
}

/// Runs the loop of the calling CPU, number `index`, with the vCPUs that it had in the image before.
pub fn take_over(virt: Result<Virt, Unavailable>, index: u32, page: &'static TrialPage) {
    let mut this = CpuLoop { executive: Executive::new(virt), control: None, finishing: None };
    update::take_over(&mut this.executive, index, page);
    this.finishing = (index == BOOT_CPU).then(Finishing::begin);
    this.note_alarm();
    this.go_on();
}

impl CpuLoop {
    fn go_on(&mut self) {
        loop {
            if self.executive.take_call() {
                self.work();
            } else if console::take_due_poll() {
                self.executive.print_log();
            }
            if self.executive.has_left() {
                return;
            }
            self.executive.turn();
        }
    }

    fn work(&mut self) {
        if restart::is_parking() {
            self.drop_guests();
            restart::park(self.executive.index());
        }
        if update::is_blackout_open() {
            self.switch_over();
        }
        if update::is_draft_wanted() {
            let control = &self.control;
            update::draft(&mut self.executive, &|| control.as_ref().map(|control| control.channel_state()));
        }
        self.executive.work();
        self.step_after_update();
        self.serve_control();
        self.executive.leave_if_asked();
        self.executive.print_log();
        self.note_alarm();
    }

    /// Notes when the control channel wants to check its clock: only [`Self::work`] changes that.
    fn note_alarm(&mut self) {
        let control = self.control.as_ref().and_then(|control| control.alarm());
        let finishing = self.finishing.as_ref().map(Finishing::alarm);
        self.executive.set_alarm_above(control.into_iter().chain(finishing).min());
    }

    fn switch_over(&mut self) {
        let control = &self.control;
        update::switch_over(&mut self.executive, &|| control.as_ref().map(|control| control.channel_state()));
    }

    /// The CPU is about to leave this image; its guests end where they are.
    fn drop_guests(&mut self) {
        self.executive.leave_guests();
        if self.executive.index() != BOOT_CPU {
            cpus::clear_guest_state();
        }
    }

    /// Does what an image that has taken over has still to do, a step at a time. After the last one it serves the
    /// control channel.
    fn step_after_update(&mut self) {
        if let Some(finishing) = self.finishing.take() {
            match finishing.step() {
                Ok(finishing) => self.finishing = Some(finishing),
                Err(handed_over) => {
                    let (channel_state, report) = *handed_over;
                    self.control = Some(Box::new(Control::take_over(&channel_state, report)));
                }
            }
        }
    }

    fn serve_control(&mut self) {
        let Some(control) = &mut self.control else { return };
        // Its time, and what an image on trial takes, is the guests' loss.
        self.executive.account();
        let restart = control.serve();
        self.executive.lose();
        if control.is_to_power_off() {
            control.finish();
            shutdown::power_off();
        }
        if control.is_departing() {
            return;
        }
        let is_over = GUESTS.are_done() && control.has_started_guests();
        match restart {
            Some((request, restart)) => {
                self.drop_guests();
                self.restart(request, *restart);
            }
            None if update::is_blackout_open() => self.switch_over(),
            None if is_over => self.after_guests(),
            None => {}
        }
    }

    /// Goes to the next image, which answers the request.
    fn restart(&mut self, request: Requester, restart: Restart) {
        if let Some(control) = &mut self.control {
            control.hand_over(request, restart);
        }
    }

    /// Every guest has ended. Returns if the host is to stay.
    fn after_guests(&mut self) {
        let Some(control) = &mut self.control else { return };
        control.finish();
        if let Some(restart) = restart::after_guests() {
            control.hand_over(None, restart);
        }
        leave();
    }
}

/// Every guest has ended: does what the bundle wants then. Returns if the host is to stay.
fn leave() {
    let is_failed = GUESTS.all().any(|guest| guest.status().state == VmState::Failed);
    match configuration::host().when_done {
        WhenDone::Stay => {}
        WhenDone::PowerOff => {
            log::info!("every guest has ended: power off");
            shutdown::power_off();
        }
        WhenDone::DebugExit => {
            let code = if is_failed { ExitCode::Failed } else { ExitCode::Success };
            log::info!("every guest has ended: exit with {code:?}");
            shutdown::debug_exit(code);
        }
    }
}
