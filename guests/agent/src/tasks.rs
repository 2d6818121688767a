// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tasks themselves.

use crate::options::Task;
use crate::{
    busy, churn, contend, disk, dmi, drivers, echo, flood, hvc, log, machine, nvme_functions, plugged, power_key,
    print, queues, random, reads, replug, serve, stream, stress, system, virtual_functions, vsock,
};
use std::hint::black_box;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Words of one piece of memory under test: 4 MiB.
const PIECE_WORDS: usize = (4 << 20) / 8;

/// Does one task; those that end the machine do not return.
pub fn run(task: Task) {
    match task {
        Task::PowerOff => system::power_off(),
        Task::Reboot => system::restart(),
        Task::Panic => system::panic_kernel(),
        Task::Shell => system::shell(),
        Task::MemoryTest => memory_test(),
        Task::PanicDrivers => drivers::load_panic_drivers(),
        Task::Drivers => drivers::load_added(),
        Task::Poll(time) => busy::poll(time),
        Task::Mix(time) => busy::mix(time),
        Task::Compute(time) => compute(time),
        Task::Locks(time) => contend::locks(time),
        Task::Pipe(rounds) => contend::pipe(rounds),
        Task::Churn(period) => churn::churn(period),
        Task::Heartbeat { period, count } => heartbeat(period, count),
        Task::Stress(time) => stress::run(time),
        Task::Replug(times) => replug::run(times),
        Task::Steal => log!("steal: {} ms", machine::stolen_ms().map_or("unknown".to_owned(), |ms| ms.to_string())),
        Task::Quiet => system::show_errors_only(),
        Task::Backtrace => system::show_backtraces(),
        Task::Disk(mebibytes) => disk::start(mebibytes),
        Task::Plugged(mebibytes) => plugged::start(disk::blocks(mebibytes)),
        Task::VirtualFunctions(number) => virtual_functions::enable(number),
        Task::NvmeFunctions(number) => nvme_functions::enable(number),
        Task::Reset(times) => disk::reset(times),
        Task::Reads { depth, time } => reads::run(depth, time),
        Task::Stream { own, to } => stream::start(own, to),
        Task::Flood { traffic, own, to } => flood::start(traffic, own, to),
        Task::Sink(own) => flood::sink(own),
        Task::Echo { own, to } => echo::start(own, to),
        Task::Serve(own) => serve::start(own),
        Task::VsockEcho { cid, port } => vsock::start_echo(cid, port),
        Task::VsockServe(port) => vsock::start_serve(port),
        Task::VsockCrowd { cid, port, times } => vsock::crowd(cid, port, times),
        Task::Random(period) => random::start(period),
        Task::Pin(cpu) => {
            if let Err(error) = stress::bind(cpu) {
                log!("pin: WRONG: {error}");
            }
        }
        Task::Queues(period) => queues::start(period),
        Task::Flags => log!("flags: {} end", machine::flags()),
        Task::PowerKey(answer) => power_key::start(answer),
        Task::Dmi(period) => dmi::start(period),
        Task::SecondConsole(period) => hvc::start(period),
        Task::Print(console, kibibytes) => print::run(console, kibibytes),
        Task::Wait => {
            log!("baton-agent: waiting");
            system::wait()
        }
    }
}

/// Writes a pattern over four fifths of what is available, then reads all of it back.
fn memory_test() {
    let bytes = machine::available_memory().unwrap_or(0) / 5 * 4;
    let count = usize::try_from(bytes).unwrap_or(0) / (PIECE_WORDS * 8);
    let pieces: Vec<Vec<u64>> =
        (0..count).map(|piece| (0..PIECE_WORDS).map(|word| black_box(pattern(piece, word))).collect()).collect();
    let wrong = pieces.iter().enumerate().map(|(piece, words)| wrong_words(piece, words)).sum::<usize>();
    let mebibytes = (count * PIECE_WORDS * 8) >> 20;
    match wrong {
        0 => log!("memtest: {mebibytes} MiB written and read back"),
        wrong => log!("memtest: WRONG: {wrong} words of {mebibytes} MiB read back otherwise than written"),
    }
}

fn wrong_words(piece: usize, words: &[u64]) -> usize {
    words.iter().enumerate().filter(|&(word, &value)| black_box(value) != pattern(piece, word)).count()
}

/// A value for every word, different from its neighbours' (multiplication by an odd constant is one to one).
pub fn pattern(piece: usize, word: usize) -> u64 {
    ((piece * PIECE_WORDS + word) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Keeps the CPU busy.
fn compute(time: Duration) {
    let start = Instant::now();
    let mut rounds = 0_u64;
    while start.elapsed() < time {
        black_box((0..1000).fold(0, |sum: u64, word| sum ^ pattern(0, word)));
        rounds += 1;
    }
    log!("compute: {rounds} rounds in {} ms", start.elapsed().as_millis());
}

/// A numbered line at every period, with how late it comes: a guest that was paused sees it here.
fn heartbeat(period: Duration, count: Option<u64>) {
    let mut due = Instant::now();
    let mut beat = 0;
    while count.is_none_or(|count| beat < count) {
        due += period;
        sleep(due.saturating_duration_since(Instant::now()));
        let late = due.elapsed();
        log!("heartbeat {beat} uptime={} late_us={}", machine::uptime(), late.as_micros());
        if late > period {
            due = Instant::now();
        }
        beat += 1;
    }
}

#[cfg(test)]
mod tests;
