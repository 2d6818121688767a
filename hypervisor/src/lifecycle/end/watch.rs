// SPDX-License-Identifier: MIT OR Apache-2.0
//! The owner's watch: it sleeps until a key, a question on the control channel, or the time of the reboot.

use endstate::{Action, Command, HELP, Rest, Watch};

use super::control::Listening;
use super::{owners_rest, report};
use crate::arch::serial::Uart;
use crate::arch::{cpu, ending, percpu, timer, watchdog};
use crate::kernel::console::{self, emergency};
use crate::lifecycle::shutdown;

/// A clock that was never measured is taken for this one: a reboot may come late then, but not at once.
const LEAST_HZ: u64 = 1_000_000_000;

/// Rests for ever, or until the reboot.
pub(super) fn watch(action: Action) -> ! {
    let rest = owners_rest(action);
    let watch = Watch::new(action, cpu::tsc(), timer::tsc_hz().max(LEAST_HZ));
    let has_interrupts = percpu::number().is_some();
    let mut keys = console::keys();
    let mut control = has_interrupts.then(Listening::start);
    if has_interrupts {
        ending::quiet_this_cpu();
        ending::route_uarts_here();
    }
    // Every further wait is meant.
    watchdog::disarm();
    loop {
        serve(&mut keys, &mut control);
        if let Some(command) = watch.due(cpu::tsc()) {
            obey(command);
        }
        if let (Some(alarm), Rest::Halt) = (watch.alarm(), rest) {
            ending::wake_at(alarm);
        }
        ending::rest(rest);
    }
}

/// Takes everything that has arrived: a UART interrupts again only when it has been emptied.
fn serve(keys: &mut Option<Uart>, control: &mut Option<Listening>) {
    let mut bytes = [0; 16];
    while let Some(count) = keys.as_mut().map(|uart| uart.receive(&mut bytes)).filter(|&count| count > 0) {
        bytes[..count].iter().filter_map(|&key| Command::of_key(key)).for_each(obey);
    }
    if let Some(control) = control {
        control.serve();
    }
}

fn obey(command: Command) {
    match command {
        Command::Reboot => {
            emergency(format_args!("reset"));
            console::flush_for_the_end();
            shutdown::reset()
        }
        Command::PrintLog => console::print_log_again(),
        Command::PrintRegisters => {
            report::print_registers();
            report::print_where_stopped();
        }
        Command::Help => emergency(format_args!("{HELP}")),
    }
}
