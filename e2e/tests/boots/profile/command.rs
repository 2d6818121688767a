// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command `baton perf`, as an operator gives it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use e2e::place::built;
use e2e::tool::{Operator, Outcome};
use object::{Object as _, ObjectSection as _, ObjectSymbol as _};
use serde_json::Value;

use super::Rule;

pub const RULES: &[Rule] = &[
    ("the_command_draws_folds_and_prints_json_of_a_host_under_load", all_forms_show_a_busy_host),
    ("the_command_refuses_names_of_another_build", names_of_another_build_are_refused),
    ("the_command_prints_what_it_has_when_an_update_ends_the_profile", an_update_leaves_what_there_is),
    ("counts_that_an_update_interrupts_are_not_reported", counts_across_an_update_are_not_reported),
];

const GUESTS: [&str; 2] = ["watch-intel", "watch-amd"];
/// The machine may be given little time: so often it is checked again for what has not been seen.
const ROUNDS: usize = 30;
/// Longer than anything else here takes.
const LONG_S: &str = "100";
/// Longest time for the machine to carry out an order.
const LIMIT: Duration = Duration::from_secs(60);

/// Two guests that exit all the time and check their counters, in the background.
fn busy_host() -> Result<Operator> {
    let kernel = built("guests/counters.elf")?;
    let guest = |name, pmu| {
        format!(
            "[[guest]]\nname = {name:?}\nkernel = {kernel:?}\ncmdline = \"do=watch\"\nmemory = \"16MiB\"\npmu = \
             {pmu:?}\n\
             on_panic = \"ignore\"\n"
        )
    };
    let host = "[host]\ncpus = 2\nmemory = \"512MiB\"\nwhen_done = \"stay\"\n";
    let operator = Operator::with(&[host, &guest(GUESTS[0], "intel"), &guest(GUESTS[1], "amd")].concat())?;
    operator.run(&["up", "host.toml", "--detach"])?.well()?;
    for name in GUESTS {
        counters_agree(&operator, name)?;
    }
    Ok(operator)
}

/// The guest's counters have been right, and are checked on.
fn counters_agree(operator: &Operator, guest: &str) -> Result<()> {
    let console = operator.console_until(guest, "overflows, all agree", LIMIT)?;
    ensure!(!console.contains("WRONG"), "{guest}: {console}");
    Ok(())
}

fn goes_down(operator: &Operator) -> Result<()> {
    for name in GUESTS {
        counters_agree(operator, name)?;
    }
    operator.run(&["down", "--yes"])?.well().map(drop)
}

fn is_refused(output: &Outcome, parts: &[&str]) -> Result<()> {
    ensure!(matches!(output.status, Some(1 | 4)) && output.out.is_empty(), "not refused: {output:?}");
    ensure!(parts.iter().all(|part| output.err.contains(part)), "no {parts:?}: {output:?}");
    Ok(())
}

fn all_forms_show_a_busy_host() -> Result<()> {
    let operator = busy_host()?;
    folded_lines_name_guests_and_functions(&operator)?;
    json_counts_each_sample_once(&operator)?;
    the_picture_and_the_list_agree(&operator)?;
    for (argument, value) in
        [("--hz", "0"), ("--hz", "1001"), ("--seconds", "soon"), ("--seconds", "0"), ("--seconds", "-1")]
    {
        let output = operator.run(&["perf", &format!("{argument}={value}")])?;
        ensure!(output.status == Some(2) && output.err.contains(argument), "{output:?}");
    }
    goes_down(&operator)
}

fn folded_lines_name_guests_and_functions(operator: &Operator) -> Result<()> {
    let mut all = String::new();
    for _ in 0..ROUNDS {
        all += &operator.run(&["perf", "--seconds", "1", "--folded"])?.well()?;
        if ["guest watch-intel ", "guest watch-amd ", ";", "Machine"].iter().all(|part| all.contains(part)) {
            break;
        }
    }
    for line in all.lines() {
        let (stack, samples) = line.rsplit_once(' ').with_context(|| format!("no number: {line}"))?;
        ensure!(samples.parse::<u64>().is_ok_and(|samples| samples > 0) && !stack.is_empty(), "{line}");
        ensure!(!stack.starts_with("guest ") || GUESTS.iter().any(|name| stack == format!("guest {name}")), "{line}");
    }
    for part in ["guest watch-intel ", "guest watch-amd ", "Machine"] {
        ensure!(all.contains(part), "no {part:?} in {all}");
    }
    Ok(())
}

/// It takes the time that it was shown, and no CPU is checked more often than was wanted.
fn json_counts_each_sample_once(operator: &Operator) -> Result<()> {
    const HZ: u64 = 50;
    let begin = Instant::now();
    let output = operator.run(&["perf", "--seconds", "1.5", "--hz", "50", "--json"])?.well()?;
    let took = begin.elapsed();
    ensure!(took >= Duration::from_millis(1500), "it took {took:?}");
    let profile: Value = serde_json::from_str(&output)?;
    let number = |name: &str| profile[name].as_u64().with_context(|| format!("no {name}: {output}"));
    let stacks = profile["stacks"].as_array().context("no stacks")?;
    let samples = stacks.iter().map(|stack| stack["samples"].as_u64().unwrap_or(0)).sum::<u64>();
    ensure!(stacks.iter().all(|stack| stack["frames"].as_array().is_some_and(|frames| !frames.is_empty())), "{output}");
    ensure!((number("samples")?, number("period_us")?) == (samples, 1_000_000 / HZ), "{output}");
    ensure!(samples > 0 && samples + number("lost")? <= number("asked")?, "{output}");
    let most = 2 * HZ * (took.as_secs() + 2);
    ensure!(number("asked")? <= most && profile["cut_short"].is_null(), "of {most} at the most: {output}");
    Ok(())
}

fn the_picture_and_the_list_agree(operator: &Operator) -> Result<()> {
    let output = operator.run(&["perf", "--seconds", "1", "--output", "taken.svg"])?.well()?;
    let (head, list) = output.split_once('\n').context("one line")?;
    let samples = head.split(' ').next().unwrap_or_default();
    ensure!(samples.parse::<u64>().is_ok_and(|count| count > 0) && head.ends_with("taken.svg"), "{head}");
    ensure!(list.lines().count() > 0 && list.lines().all(|line| line.contains(" %  ")), "{output}");
    let picture = fs::read_to_string(operator.folder().join("taken.svg"))?;
    ensure!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"), "{picture}");
    ensure!(picture.contains(&format!("Baton: {samples} samples, one each 10101 ")), "{head}: {picture}");
    // Without a name it has the usual one.
    operator.run(&["perf", "--seconds", "0.1"])?.well()?;
    ensure!(operator.folder().join("baton.svg").is_file(), "there is no baton.svg");
    Ok(())
}

/// The image that runs under names of another: nothing is reported, and nothing is left of the attempt.
fn names_of_another_build_are_refused() -> Result<()> {
    let operator = busy_host()?;
    let other = operator.folder().join("other.elf");
    let (running, changed) = of_another_build(&built("baton.debug.elf")?, &other)?;
    let asked = ["perf", "--seconds", LONG_S, "--image", "other.elf"];
    for form in [&["--folded"][..], &["--json"], &["--output", "other.svg"]] {
        let output = operator.run(&[&asked, form].concat())?;
        is_refused(&output, &[&running, &changed, "other.elf", "--image"])?;
    }
    ensure!(!operator.folder().join("other.svg").exists(), "it has drawn a picture");
    // The image as it is loaded has no symbols.
    fs::copy(built("baton.elf")?, operator.folder().join("bare.elf"))?;
    let output = operator.run(&["perf", "--seconds", LONG_S, "--image", "bare.elf"])?;
    is_refused(&output, &[&running, "bare.elf is without symbols"])?;
    is_refused(&operator.run(&["perf", "--image", "host.toml"])?, &["host.toml", "name an ELF image"])?;
    let taken = operator.run(&["perf", "--seconds", "0.5", "--folded", "--image", &running_image()?])?;
    ensure!(!taken.well()?.is_empty(), "the right names are not taken");
    goes_down(&operator)
}

fn running_image() -> Result<String> {
    Ok(built("baton.elf")?.to_str().context("a path that can be written")?.to_owned())
}

/// Copies an image with its symbols, its build ID changed. Returns both IDs as people read them.
fn of_another_build(image: &Path, copy: &PathBuf) -> Result<(String, String)> {
    let mut bytes = fs::read(image)?;
    let file = object::File::parse(&*bytes)?;
    let note = file.symbol_by_name("__build_note").context("no build ID")?.address();
    let is_in =
        |section: &object::Section<'_, '_>| (section.address()..section.address() + section.size()).contains(&note);
    let section = file.sections().find(|section| section.size() > 0 && is_in(section)).context("no section of it")?;
    let (from, _) = section.file_range().context("it is not in the file")?;
    let at = (from + (note - section.address())) as usize + 16;
    let hex = |id: &[u8]| id.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let before = hex(&bytes[at..at + 20]);
    bytes[at] ^= 1;
    fs::write(copy, &bytes)?;
    Ok((before, hex(&bytes[at..at + 20])))
}

/// One that is being taken keeps others out; an update ends it, and what it has by then is reported.
fn an_update_leaves_what_there_is() -> Result<()> {
    let operator = busy_host()?;
    let taken = std::thread::scope(|scope| -> Result<Outcome> {
        let long = scope.spawn(|| long_one(&operator));
        let end = Instant::now() + LIMIT;
        loop {
            let output = operator.run(&["perf", "--seconds", "0.01", "--folded"])?;
            if is_kept_out(&output) {
                is_refused(&output, &["ask again when it is over"])?;
                break;
            }
            output.well()?;
            ensure!(Instant::now() < end && !long.is_finished(), "the long one has not begun");
        }
        operator.run(&["update"])?.well()?;
        long.join().ok().context("it panicked")?
    })?;
    ensure!(taken.err.contains("the profile ended before its time: the profile is over"), "{taken:?}");
    let profile: Value = serde_json::from_str(&taken.well()?)?;
    ensure!(profile["cut_short"].is_string() && profile["stacks"].is_array(), "{profile}");
    // The next image is the same build: its profiles have names at once.
    operator.run(&["perf", "--seconds", "0.5", "--folded"])?.well()?;
    goes_down(&operator)
}

/// As soon as no other is being taken.
fn long_one(operator: &Operator) -> Result<Outcome> {
    let end = Instant::now() + LIMIT;
    loop {
        let output = operator.run(&["perf", "--seconds", LONG_S, "--json"])?;
        if !is_kept_out(&output) || Instant::now() > end {
            return Ok(output);
        }
    }
}

fn is_kept_out(output: &Outcome) -> bool {
    output.err.contains("a profile is being taken")
}

/// The next image's counters begin at zero.
fn counts_across_an_update_are_not_reported() -> Result<()> {
    let operator = busy_host()?;
    let taken = std::thread::scope(|scope| -> Result<Outcome> {
        let counts = scope.spawn(|| operator.run(&["perf", "stat", "--seconds", LONG_S, "--json"]));
        // Its first request is over before an update can be.
        operator.run(&["update"])?.well()?;
        counts.join().ok().context("it panicked")?
    })?;
    // The CPU that is read first after the update is named.
    is_refused(&taken, &["the counters of CPU ", " were reset", "ask again"])?;
    let again = operator.run(&["perf", "stat", "--json"])?.well()?;
    ensure!(again.lines().count() == 2, "not a line for each CPU: {again}");
    goes_down(&operator)
}
