// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tool with real hosts, as a program.

use std::fs;

use anyhow::{Context as _, Result, bail, ensure};
use e2e::tool::{Operator, is_running};

use super::Rule;

pub const RULES: &[Rule] = &[
    ("a_host_that_powers_off_is_status_zero", a_host_that_powers_off_is_status_zero),
    ("a_host_that_panics_is_status_three_with_functions", a_host_that_panics_is_status_three_with_functions),
    ("a_host_is_ended_at_the_timeout_and_its_emulator_with_it", a_host_is_ended_at_the_timeout),
    ("a_detached_host_is_operated_and_powered_off", a_detached_host_is_operated_and_powered_off),
];

fn a_host_that_powers_off_is_status_zero() -> Result<()> {
    let output = Operator::new("poweroff")?.run(&["up", "host.toml", "--timeout", "100"])?.well()?;
    for part in ["│ Hello from a guest of Baton", "│ debian stopped: powered off", "│ the host powered off"] {
        ensure!(output.contains(part), "no {part:?} in {output}");
    }
    Ok(())
}

fn a_host_that_panics_is_status_three_with_functions() -> Result<()> {
    let append = "selftest=panic panic=exit";
    let output = Operator::new("poweroff")?.with_fault_points().run(&[
        "up",
        "host.toml",
        "--timeout",
        "100",
        "--append",
        append,
    ])?;
    ensure!(output.status == Some(3), "{output:?}");
    ensure!(output.out.contains("panic on CPU 0: self-test"), "{}", output.out);
    ensure!(output.out.contains(" run_self_tests at "), "no functions in {}", output.out);
    Ok(())
}

fn a_host_is_ended_at_the_timeout() -> Result<()> {
    let operator = Operator::new("heartbeat:100")?;
    let (output, emulator) = std::thread::scope(|scope| {
        let up = scope.spawn(|| operator.run(&["up", "host.toml", "--timeout", "6"]));
        let mut emulator = None;
        while !up.is_finished() {
            emulator = operator.emulator("default").or(emulator);
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        (up.join(), emulator)
    });
    let output = output.ok().context("it panicked")??;
    ensure!(output.status == Some(124), "{output:?}");
    ensure!(output.out.contains("still ran after 6 s and was ended; raise --timeout"), "{}", output.out);
    let emulator = emulator.context("the emulator's process id was never there")?;
    ensure!(!is_running(emulator), "the emulator {emulator} still runs");
    Ok(())
}

fn a_detached_host_is_operated_and_powered_off() -> Result<()> {
    let operator = Operator::new("shell")?;
    let bundle = operator.run(&["bundle", "host.toml", "-o", "bundle.cpio"])?.well()?;
    ensure!(bundle.contains("1 guest") && operator.folder().join("bundle.cpio").is_file(), "{bundle}");
    let up = operator.run(&["up", "host.toml", "--detach", "--name", "test"])?.well()?;
    ensure!(up.contains("runs in the background"), "{up}");
    let emulator = operator.emulator("test").context("the emulator's process id")?;
    ensure!(is_running(emulator), "the emulator does not run");
    let on = |arguments: &[&str]| operator.run(&[arguments, &["--name", "test"]].concat());
    let info = on(&["info", "--json"])?.well()?;
    ensure!(info.contains("\"virtualization\":\"svm\""), "{info}");
    let console = |typed: &str| operator.types(typed, &["vm", "console", "debian", "--linger", "1", "--name", "test"]);
    // Input typed before the shell listens is lost.
    let shows = |text: &str, typed: &str| -> Result<()> {
        let mut shown = console(typed)?.well()?;
        for _ in 0..60 {
            if shown.contains(text) {
                return Ok(());
            }
            shown = console("")?.well()?;
        }
        bail!("no {text:?} in {shown}")
    };
    shows("/ # ", "")?;
    shows("the sum is 42", "echo the sum is $((40 + 2))\n")?;
    ensure!(on(&["vm", "pause", "debian"])?.well()?.contains("debian paused"), "not paused");
    let list = on(&["vm", "list"])?.well()?;
    ensure!(list.contains("debian") && list.contains("paused"), "{list}");
    ensure!(on(&["vm", "resume", "debian"])?.well()?.contains("debian resumed"), "not resumed");
    let perf = on(&["vm", "perf", "debian", "--seconds", "0.1", "--json"])?.well()?;
    ensure!(perf.contains("\"vcpu\":0") && perf.contains("\"counters\":[]"), "{perf}");
    ensure!(on(&["vm", "perf", "debian", "--seconds", "0"])?.well()?.contains("WAITED"), "no table");
    ensure!(on(&["log"])?.well()?.contains("host ready"), "no log");
    ensure!(on(&["events"])?.well()?.contains("debian paused"), "no events");
    let timeline = on(&["timeline"])?.well()?;
    ensure!(timeline.contains("boot: ") && timeline.contains("first guest instruction"), "{timeline}");
    ensure!(on(&["timeline", "--json"])?.well()?.contains("\"guest loaded: debian\""), "no picture");
    let down = on(&["down", "--yes"])?.well()?;
    ensure!(down.contains("host \"test\" is off"), "{down}");
    ensure!(!is_running(emulator), "the emulator {emulator} still runs");
    let log = fs::read_to_string(operator.folder().join("baton/test/up.log"))?;
    ensure!(log.contains("the host powered off"), "{log}");
    Ok(())
}
