// SPDX-License-Identifier: MIT OR Apache-2.0
use proptest::prelude::*;

use super::*;

const LOG: &str = "\
[    0.000000] Linux version 6.1.0
[    0.000000] Command line: console=ttyS0
[    0.026500] software IO TLB: area num 128.
[    1.291700] Memory: 1808176K/536517308K available
[    1.300000] smp: Bringing up secondary CPUs ...
<6>[    3.000000][    T1] smp: Brought up 2 nodes, 128 CPUs
[    3.100000] pci 0000:00:1f.3: [8086:2930] type 00
[    3.180000] pci 0000:00:1f.4: [8086:2931] type 00
[    3.500000] Run /init as init process
[    9.000000] systemd[1]: hello
no time here
[ bad ] [nor here]
";

fn track<'a>(run: &'a Run, name: &str) -> &'a [Span] {
    &run.tracks.iter().find(|track| track.name == name).unwrap().spans
}

#[test]
fn the_longest_gaps_are_named_with_advice_to_shorten_them() {
    let run = read("log", LOG).unwrap();
    let longest = run.longest(|track| track == GAPS, 2);
    assert_eq!(longest[0].name, "smp: Bringing up secondary CPUs ... → smp: Brought up 2 nodes, 128 CPUs");
    assert!((longest[0].length_us - 1_700_000.0).abs() < 1.0);
    assert!(longest[0].note.as_ref().unwrap().contains("in parallel"));
    assert!(longest[1].note.as_ref().unwrap().contains("CONFIG_DEFERRED_STRUCT_PAGE_INIT"));
}

#[test]
fn phases_join_gaps_of_one_cause_and_cover_the_boot() {
    let run = read("log", LOG).unwrap();
    let names: Vec<&str> = track(&run, PHASES).iter().map(|span| span.name.as_str()).collect();
    assert_eq!(names, ["other", "page metadata", "other", "CPU bring-up", "PCI", "other"]);
    let sum: f64 = track(&run, PHASES).iter().map(|span| span.length_us).sum();
    assert!((sum - 3_500_000.0).abs() < 1.0);
}

#[test]
fn user_space_is_not_the_kernels_boot() {
    assert!((read("log", LOG).unwrap().end_us() - 3_500_000.0).abs() < 1.0);
}

#[test]
fn a_log_without_times_is_refused_with_the_hint() {
    let error = read("log", "[ok] one\ntwo\n").unwrap_err();
    assert_eq!(error, DmesgError::NoTimes { lines: 0 });
    assert!(error.to_string().contains("printk.time=1"));
}

#[test]
fn times_count_from_the_first_line() {
    let run = read("log", "[  100.5] a\n[  100.75] b\n").unwrap();
    assert_eq!((track(&run, GAPS)[0].start_us, run.end_us()), (0.0, 250_000.0));
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(log in "(\\[ {0,3}[0-9]{1,4}\\.[0-9]{1,6}\\][ -~\u{80}-\u{ff}]{0,30}\n|.{0,20}\n){0,30}") {
        if let Ok(run) = read("log", &log) {
            let gaps: f64 = track(&run, GAPS).iter().map(|span| span.length_us).sum();
            prop_assert!((gaps - run.end_us()).abs() < 1.0, "gaps cover the time from the first line to the last");
            prop_assert!(track(&run, GAPS).iter().all(|span| span.length_us > 0.0 && !span.name.contains(char::is_control)));
        }
    }
}
