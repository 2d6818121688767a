// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host's measurements of itself for the benches (`measure=`). They are in the image that operators run, so that
//! the figures are that image's.

mod hashing;
mod logging;

use boot::options::Measurement;

use crate::arch::percpu::{BOOT_CPU, PerCpu};
use crate::kernel::platform::options;
use crate::kernel::storm;

/// Orders the load of a measurement, while the host boots.
pub fn begin() {
    if is_asked_for(Measurement::LogStorm) {
        storm::order();
    }
}

/// Measures, on the boot CPU, which is about to enter its loop.
pub fn before_the_loop() {
    if PerCpu::current().index != BOOT_CPU {
        return;
    }
    if is_asked_for(Measurement::Log) {
        logging::measure();
    }
    if is_asked_for(Measurement::Hash) {
        hashing::measure();
    }
}

fn is_asked_for(measurement: Measurement) -> bool {
    options().is_some_and(|options| options.measurements.contains(&measurement))
}
