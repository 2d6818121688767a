// SPDX-License-Identifier: MIT OR Apache-2.0
//! The clock, and how the machine is powered off.

use firmware::power::Power;

use crate::arch::timer::{self, Reference};
use crate::arch::{clock, power};
use crate::kernel::platform::firmware;
use crate::kernel::timeline::{self, Name};
use crate::kernel::{console, inherited};

/// Starts the clock at the rate that the image before has handed over, or measures the rate; notes how the machine is
/// powered off.
pub fn start_clock() {
    let _span = timeline::span(Name::Clock, 0);
    if inherited::has_clock() {
        timer::prepare_this_cpu();
        log::info!("clock: TSC at {} Hz, as handed over", timer::tsc_hz());
    } else {
        measure_clock();
    }
    note_power_off();
}

fn measure_clock() {
    let tables = firmware();
    let hpet = tables.hpet_address.map(|_| Reference::Hpet);
    let pm_timer = tables.pm_timer.map(|timer| Reference::PmTimer(timer.port));
    match timer::calibrate(hpet.or(pm_timer)) {
        Ok((hz, source)) => log::info!("clock: TSC at {}.{:03} MHz, {source}", hz / 1_000_000, hz / 1000 % 1000),
        Err(_) => panic!("no clock: neither CPUID nor HPET nor PM timer gives the rate of the TSC"),
    }
    console::log::set_clock();
    clock::start();
}

/// Logs how the machine is powered off.
pub fn note_power_off() {
    let tables = firmware();
    power::note(Power::new(tables));
}
