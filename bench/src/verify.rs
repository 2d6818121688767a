// SPDX-License-Identifier: MIT OR Apache-2.0
//! `verify`: the cost of checking the image of a restart, before and in the blackout.
//!
//! - How fast a host hashes, by plain code and by the CPU's instructions (SHA-NI): the host measures itself
//!   (`selftest=hash-cost`), in instructions per byte with `-icount shift=0`, in bytes per cycle without.
//! - What each policy (`verify=`) adds to the blackout in which no guest runs, on CPUs with and without those
//!   instructions, in instructions; how many bytes are hashed in it is the host's own count.
//! - How fast a file comes in over the control channel, while a guest idles and while one computes.

use anyhow::Result;

use super::report::{Figure, Goal, Report};
use super::{Bench, Context};
use restarts::{GuestDoes, Restarted};

mod hashing;
mod restarts;

pub(super) static BENCH: Bench = Bench {
    name: "verify",
    about: "hashing an image: speed, and what each policy adds to a restart's blackout; speed of uploads",
    goals: &[Goal::at_most("bytes_hashed_in_gap", 0.0, "bytes")],
    run,
};

/// CPUs to compare, as QEMU calls them.
pub(super) const CPUS: [(&str, &str); 2] = [("sha-ni", "max,-x2apic"), ("no sha-ni", "max,-x2apic,-sha-ni")];
const POLICIES: [&str; 3] = ["sha256", "early", "none"];
/// The policy that the others are compared with: it hashes nothing.
const CHEAPEST: usize = 2;

fn run(context: &Context, report: &mut Report<'_>) -> Result<()> {
    hash(context, report)?;
    restart(context, report)?;
    upload(context, report)
}

fn hash(context: &Context, report: &mut Report<'_>) -> Result<()> {
    for is_counted in [true, false] {
        let mut runs: Vec<(String, Vec<f64>)> = Vec::new();
        for run in 1..=context.runs {
            for (name, cpu) in CPUS {
                context.step(&format!("verify: hashing, run {run} of {}, {name}", context.runs));
                for (engine, per_byte) in hashing::measure(context, cpu, is_counted)? {
                    let row = format!("{engine} on {name}");
                    match runs.iter_mut().find(|(known, _)| *known == row) {
                        Some((_, values)) => values.push(per_byte),
                        None => runs.push((row, vec![per_byte])),
                    }
                }
            }
        }
        for (row, per_byte) in runs {
            let bytes_per_cycle: Vec<f64> = per_byte.iter().map(|cycles| 1.0 / cycles).collect();
            let figure = match is_counted {
                true => Figure::measured("icount", row, "instructions/byte", per_byte),
                false => Figure::measured("host clock", row, "bytes/cycle", bytes_per_cycle),
            };
            report.figure(figure)?;
        }
    }
    Ok(())
}

fn restart(context: &Context, report: &mut Report<'_>) -> Result<()> {
    for (name, cpu) in CPUS {
        let mut runs: [Vec<Restarted>; 3] = Default::default();
        for run in 1..=context.runs {
            for (policy, runs) in POLICIES.iter().zip(&mut runs) {
                context.step(&format!("verify: restart, run {run} of {}, {name}, verify={policy}", context.runs));
                runs.push(restarts::measure(context, cpu, policy)?);
            }
        }
        for (policy, these) in POLICIES.iter().zip(&runs) {
            let variant = format!("verify={policy}, {name}");
            let of = |what: fn(&Restarted) -> f64| these.iter().map(what).collect::<Vec<f64>>();
            report.figure(Figure::measured(&variant, "blackout", "instructions", of(|one| one.blackout)))?;
            report.figure(Figure::measured(
                &variant,
                "hashing in the blackout",
                "instructions",
                of(|one| one.hashing_in_blackout),
            ))?;
            let added = these.iter().zip(&runs[CHEAPEST]).map(|(one, cheapest)| one.blackout - cheapest.blackout);
            report.figure(Figure::measured(
                &variant,
                "added to the blackout",
                "instructions",
                added.collect::<Vec<f64>>(),
            ))?;
            report.figure(Figure::measured(
                &variant,
                "hashing before",
                "instructions",
                of(|one| one.hashing_before),
            ))?;
            let bytes = of(|one| one.bytes_in_blackout);
            let most = bytes.iter().copied().fold(0.0, f64::max);
            report.figure(Figure::measured(&variant, "bytes hashed in the blackout", "bytes", bytes))?;
            if *policy == "early" && name == CPUS[0].0 {
                report.goal("bytes_hashed_in_gap", most)?;
            }
        }
    }
    Ok(())
}

fn upload(context: &Context, report: &mut Report<'_>) -> Result<()> {
    let mut runs = [Vec::new(), Vec::new()];
    for run in 1..=context.runs {
        for (does, runs) in [GuestDoes::Wait, GuestDoes::Compute].into_iter().zip(&mut runs) {
            context.step(&format!("verify: upload, run {run} of {}, the guest {does}", context.runs));
            runs.push(restarts::upload(context, does)?);
        }
    }
    for (does, runs) in [GuestDoes::Wait, GuestDoes::Compute].into_iter().zip(runs) {
        report.figure(Figure::measured(format!("guest {does}"), "upload", "bytes/s", runs))?;
    }
    Ok(())
}
