// SPDX-License-Identifier: MIT OR Apache-2.0

use core::fmt;
use std::string::{String, ToString};
use std::vec::Vec;
use std::{format, vec};

use proptest::prelude::*;

use super::format::{CHECKSUM, MAX_REASON_BYTES};
use super::*;

const BACKTRACE: [u64; 2] = [0xffff_ffff_8020_0001, 0xffff_ffff_8020_0002];

fn account<'a>(reason: fmt::Arguments<'a>, registers: &'a Registers) -> Account<'a> {
    Account {
        host_version: "0.1.0",
        uptime_ns: 1_500_000_000,
        cpu: 3,
        reason,
        registers: Some(registers),
        backtrace: &BACKTRACE,
    }
}

/// An epitaph with these lines of log.
fn written(log: &[String]) -> Vec<u8> {
    let registers = core::array::from_fn(|index| index as u64);
    let mut page = vec![0xaa; EPITAPH_BYTES];
    let show = |visit: &mut dyn FnMut(&dyn fmt::Display)| log.iter().for_each(|line| visit(line));
    let length = write(&mut page, &account(format_args!("panic: it is {}", "over"), &registers), show).unwrap();
    assert!(length <= EPITAPH_BYTES);
    page
}

fn lines_of(epitaph: &Epitaph<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    epitaph.lines(&mut |line| lines.push(line.to_string()));
    lines
}

/// Writes the right checksum for the bytes.
fn seal(page: &mut [u8]) {
    let length = u32::from_le_bytes(page[12..16].try_into().unwrap()) as usize;
    let checksum = CHECKSUM.checksum(&page[..length - 4]);
    page[length - 4..length].copy_from_slice(&checksum.to_le_bytes());
}

#[test]
fn what_was_written_is_read() {
    let page = written(&["one".to_string(), "two".to_string()]);
    let epitaph = Epitaph::read(&page).unwrap();
    assert_eq!((epitaph.host_version, epitaph.uptime_ns, epitaph.cpu), ("0.1.0", 1_500_000_000, 3));
    assert_eq!((epitaph.reason, epitaph.tail), ("panic: it is over", "one\ntwo\n"));
    assert_eq!(epitaph.registers.unwrap()[21], 21);
    assert_eq!(epitaph.backtrace.as_slice(), BACKTRACE);
}

#[test]
fn it_is_shown_in_lines_that_the_tool_can_annotate() {
    let page = written(&["[    1.0] cpu0 info  start: up".to_string()]);
    let lines = lines_of(&Epitaph::read(&page).unwrap());
    assert_eq!(lines[0], "Baton 0.1.0 ended on CPU 3 after 1.500000 s");
    assert_eq!(lines[1], "panic: it is over");
    assert_eq!(
        lines[2],
        "rip    0000000000000000 rsp    0000000000000001 rflags 0000000000000002 cs     0000000000000003"
    );
    assert!(lines.contains(&" #1 0xffffffff80200001".to_string()), "{lines:#?}");
    assert_eq!(lines.last().unwrap(), "[    1.0] cpu0 info  start: up");
}

#[test]
fn of_a_long_log_the_newest_whole_lines_are_kept() {
    let log: Vec<String> = (0..1000).map(|number| format!("line {number} {}", "x".repeat(number % 90))).collect();
    let page = written(&log);
    let epitaph = Epitaph::read(&page).unwrap();
    let kept: Vec<&str> = epitaph.tail.lines().collect();
    assert!(kept.len() > 100);
    assert_eq!(kept, log[log.len() - kept.len()..].iter().map(String::as_str).collect::<Vec<_>>());
}

#[test]
fn a_reason_that_is_too_long_is_cut_at_a_character() {
    let registers = [0; REGISTERS.len()];
    let mut page = vec![0; EPITAPH_BYTES];
    let long = "é".repeat(1000);
    write(&mut page, &account(format_args!("x{long}"), &registers), |_| ()).unwrap();
    let epitaph = Epitaph::read(&page).unwrap();
    assert_eq!(epitaph.reason.len(), MAX_REASON_BYTES - 1);
}

#[test]
fn memory_that_is_too_small_is_refused_and_left_alone() {
    let registers = [0; REGISTERS.len()];
    let mut page = [7; 500];
    assert_eq!(write(&mut page, &account(format_args!(""), &registers), |_| ()), Err(TooSmall));
    assert_eq!(page, [7; 500]);
}

#[test]
fn a_flipped_bit_anywhere_is_noticed() {
    let page = written(&["a line".to_string()]);
    let length = u32::from_le_bytes(page[12..16].try_into().unwrap()) as usize;
    for bit in 0..length * 8 {
        let mut damaged = page.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(Epitaph::read(&damaged).is_err(), "bit {bit}");
    }
}

#[test]
fn a_newer_version_is_named() {
    let mut page = written(&[]);
    page[8] = 9;
    seal(&mut page);
    assert_eq!(Epitaph::read(&page), Err(Damage::Version { found: 9 }));
    assert!(Damage::Version { found: 9 }.to_string().contains("format 9"));
}

#[test]
fn control_characters_are_shown_and_not_obeyed() {
    let page = written(&["\u{1b}[2Jgone".to_string()]);
    let lines = lines_of(&Epitaph::read(&page).unwrap());
    assert_eq!(lines.last().unwrap(), "\\u{1b}[2Jgone");
}

proptest! {
    #[test]
    fn any_bytes_are_an_epitaph_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..2048)) {
        let _ = Epitaph::read(&bytes);
    }

    /// Fields that contradict each other behind a checksum that is right.
    #[test]
    fn any_field_under_a_right_checksum_is_read_or_refused(
        field in 16_usize..48, values in any::<[u8; 4]>(), length in 0_u32..20_000,
    ) {
        let mut page = written(&["one".to_string(), "two".to_string()]);
        let place = field.min(44);
        page[place..place + 4].copy_from_slice(&values);
        if length < 4096 {
            page[12..16].copy_from_slice(&(length.max(4)).to_le_bytes());
        }
        seal(&mut page);
        if let Ok(epitaph) = Epitaph::read(&page) {
            for line in lines_of(&epitaph) {
                prop_assert!(!line.chars().any(char::is_control), "{line:?}");
            }
        }
    }

    #[test]
    fn any_log_leaves_an_epitaph_that_is_read(log in proptest::collection::vec("\\PC{0,300}", 0..120)) {
        let page = written(&log);
        let epitaph = Epitaph::read(&page).unwrap();
        let kept: Vec<&str> = epitaph.tail.split_terminator('\n').collect();
        prop_assert_eq!(kept, log[log.len() - epitaph.tail.split_terminator('\n').count()..].iter().map(String::as_str).collect::<Vec<_>>());
    }
}
