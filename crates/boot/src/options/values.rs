// SPDX-License-Identifier: MIT OR Apache-2.0
//! One reader per option; `None` is a refusal.

use arrayvec::ArrayVec;
use klog::Level;

use super::choices::{ApicMode, Console, GuestStart, LogBuffer, PanicAction, Transmit, UpdateLimit};
use super::cpu_list::CpuList;
use super::measurement::{MAXIMUM_MEASUREMENTS, Measurement};
use super::word::number;

const FASTEST_BAUD: u32 = 115_200;
const MOST_CPUS: u32 = 1024;
const MOST_GENERATIONS: u32 = 1_000_000;
const SMALLEST_LOG_KIB: u32 = 4;
const LARGEST_LOG_KIB: u32 = 16 * 1024;
const LONGEST_REBOOT_SECONDS: u32 = 3600;
const LONGEST_UPDATE_MILLISECONDS: u32 = 10_000;

pub(super) fn level(value: &str) -> Option<Level> {
    value.parse().ok()
}

pub(super) fn log_buffer(value: &str) -> Option<LogBuffer> {
    let size = |word| number(word, SMALLEST_LOG_KIB, LARGEST_LOG_KIB);
    match value.split_once(',') {
        Some((boot, other)) => Some(LogBuffer { boot_kib: size(boot)?, other_kib: size(other)? }),
        None => size(value).map(|kib| LogBuffer { boot_kib: kib, other_kib: kib }),
    }
}

pub(super) fn console(value: &str) -> Option<Console> {
    if value == "none" {
        return Some(Console::None);
    }
    let (settings, transmit) = match value.rsplit_once(',') {
        Some((settings, last)) => match transmit(last) {
            Some(transmit) => (settings, transmit),
            None => (value, Transmit::Fifo),
        },
        None => match transmit(value) {
            Some(transmit) => ("ttyS0", transmit),
            None => (value, Transmit::Fifo),
        },
    };
    let baud = match settings.strip_prefix("ttyS0")? {
        "" => FASTEST_BAUD,
        baud => self::baud(baud.strip_prefix(',')?)?,
    };
    Some(Console::Serial { baud, transmit })
}

fn transmit(word: &str) -> Option<Transmit> {
    match word {
        "byte" => Some(Transmit::Byte),
        "fifo" => Some(Transmit::Fifo),
        _ => None,
    }
}

fn baud(word: &str) -> Option<u32> {
    let baud = number(word.strip_suffix("n8").unwrap_or(word), 1, FASTEST_BAUD)?;
    FASTEST_BAUD.is_multiple_of(baud).then_some(baud)
}

pub(super) fn apic(value: &str) -> Option<ApicMode> {
    match value {
        "auto" => Some(ApicMode::Auto),
        "xapic" => Some(ApicMode::XApic),
        "x2apic" => Some(ApicMode::X2Apic),
        _ => None,
    }
}

pub(super) fn panic(value: &str) -> Option<PanicAction> {
    match value {
        "halt" => Some(PanicAction::Halt),
        "exit" => Some(PanicAction::Exit),
        "spin" => Some(PanicAction::Spin),
        _ => {
            let after_seconds = number(value.strip_prefix("reboot:")?, 0, LONGEST_REBOOT_SECONDS)?;
            Some(PanicAction::Reboot { after_seconds })
        }
    }
}

/// The outer `Option` is the refusal, the inner one the absence of a limit.
pub(super) fn cpus(value: &str) -> Option<Option<u32>> {
    match value {
        "all" => Some(None),
        _ => number(value, 1, MOST_CPUS).map(Some),
    }
}

/// The outer `Option` is the refusal, the inner one the absence of a choice.
pub(super) fn cpu(value: &str) -> Option<Option<CpuList>> {
    match value {
        "all" => Some(None),
        _ => value.parse().ok().map(Some),
    }
}

pub(super) fn guests(value: &str) -> Option<GuestStart> {
    match value {
        "auto" => Some(GuestStart::Auto),
        "none" => Some(GuestStart::None),
        _ => None,
    }
}

pub(super) fn update_limit(value: &str) -> Option<UpdateLimit> {
    match value {
        "auto" => Some(UpdateLimit::Auto),
        _ => number(value, 1, LONGEST_UPDATE_MILLISECONDS).map(UpdateLimit::Milliseconds),
    }
}

pub(super) fn switch(value: &str) -> Option<bool> {
    match value {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}

/// Returns how many images there are to be.
pub(super) fn generations(value: &str) -> Option<u64> {
    number(value, 1, MOST_GENERATIONS).map(u64::from)
}

/// Each at most as often as there are measurements.
pub(super) fn measurements(value: &str) -> Option<ArrayVec<Measurement, MAXIMUM_MEASUREMENTS>> {
    let mut measurements = ArrayVec::new();
    if value != "none" {
        for word in value.split(',') {
            let (_, measurement) = Measurement::NAMED.into_iter().find(|(name, _)| *name == word)?;
            measurements.try_push(measurement).ok()?;
        }
    }
    Some(measurements)
}
