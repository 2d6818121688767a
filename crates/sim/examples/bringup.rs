// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prints the modelled duration of bring-up, in millions of ticks:
//! `cargo run --release -p sim --example bringup`.

use bringup::Policy;
use bringup::startup::Reach;
use sim::wake::{Machine, Setup, linux_serial_ticks, simulate};

const CPUS: [u32; 5] = [28, 96, 128, 1024, 4096];

fn main() {
    for machine in [Machine::haswell(), Machine::virtual_skylake()] {
        println!("{}: total, millions of ticks (modelled)", machine.name);
        println!("{:>26}{}  4096/128", "", CPUS.map(|count| format!("{count:>11}")).concat());
        row("Linux 5.10, serial", |count| linux_serial_ticks(&machine, count));
        for (name, policy, reach) in [
            ("serial", Policy::Serial, Reach::Each),
            ("parallel, one by one", Policy::Parallel, Reach::Each),
            ("parallel, broadcast", Policy::Parallel, Reach::Everyone),
            ("park", Policy::Park, Reach::Each),
        ] {
            row(name, |count| simulate(&machine, &Setup::new(count, policy, reach)).summary.total_ticks);
            if policy != Policy::Serial {
                row(&format!("{name}, measured"), |count| {
                    let setup = Setup { has_tsc_adjust: false, ..Setup::new(count, policy, reach) };
                    simulate(&machine, &setup).summary.total_ticks
                });
            }
        }
    }
}

fn row(name: &str, ticks: impl Fn(u32) -> u64) {
    let totals = CPUS.map(ticks);
    let cells = totals.map(|total| format!("{:>11.3}", total as f64 / 1e6)).concat();
    println!("{name:>26}{cells}  {:>8.2}", totals[4] as f64 / totals[2] as f64);
}
