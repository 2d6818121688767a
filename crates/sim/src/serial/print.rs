// SPDX-License-Identifier: MIT OR Apache-2.0
//! A CPU that prints a log, and has to serve a tick every millisecond meanwhile.

use uart::{Absent, Interrupts, Patience, Peer, Policy, Uart};

use super::line::Line;
use super::setup::Setup;

/// Nanoseconds between two ticks.
const TICK_NS: u64 = 1_000_000;
/// The delay from which a tick counts as late: a fill of 16 bytes with a slow poll, and the code around it, take 45 µs.
const LATE_NS: u64 = 50_000;
/// The longest wait for a dead UART.
const GIVE_UP_NS: u64 = 5_000_000_000;

/// Way to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The CPU's loop, a fill at a time, when the UART interrupts for more.
    Interrupts,
    /// The CPU that logs, polling, a line at a time with interrupts masked: early boot, and what loggers did before.
    Polling,
}

/// Cost of printing.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Bytes that arrived at the other end.
    pub received: Vec<u8>,
    /// Bytes that found no room in the UART.
    pub lost: u64,
    /// Bytes that were given up because the UART was dropped.
    pub refused: u64,
    /// Number of times that it was dropped.
    pub drops: u64,
    /// From the first byte offered to the last received.
    pub elapsed_ns: u64,
    /// Of that, what the CPU spent on printing.
    pub busy_ns: u64,
    /// Port accesses, without those of finding it out.
    pub accesses: u64,
    /// Reads of the line status.
    pub polls: u64,
    /// The longest stretch with interrupts masked.
    pub longest_off_ns: u64,
    /// Ticks served late.
    pub late_ticks: u64,
    /// Rate of the wire in bytes per second.
    bytes_per_second: f64,
}

impl Outcome {
    /// Returns the throughput as a share of the wire's rate.
    pub fn wire_share(&self) -> f64 {
        self.received.len() as f64 * 1e9 / self.elapsed_ns as f64 / self.bytes_per_second
    }

    /// Returns the throughput in bytes per second.
    pub fn bytes_per_second(&self) -> f64 {
        self.wire_share() * self.bytes_per_second
    }

    /// Returns the share of its CPU.
    pub fn cpu_share(&self) -> f64 {
        self.busy_ns as f64 / self.elapsed_ns as f64
    }

    /// Returns the number of port accesses per byte.
    pub fn accesses_per_byte(&self) -> f64 {
        self.accesses as f64 / self.received.len() as f64
    }
}

/// Prints `lines` through a modelled UART.
///
/// # Errors
/// The UART is not found.
pub fn print(setup: Setup, policy: Policy, way: Way, lines: &[String]) -> Result<Outcome, Absent> {
    let mut uart = Uart::new(Line::new(setup.clone()));
    let found = uart.start(setup.rate, policy, Peer::Reads)?;
    let line = uart.hardware();
    let (began_ns, probed) = (line.now(), (line.accesses, line.polls));
    line.lost = 0;
    let ticks = Ticks { next_ns: began_ns + TICK_NS, late: 0 };
    let mut cpu = Cpu { uart, ticks, handler_ns: setup.handler_ns, busy_ns: 0, longest_off_ns: 0 };
    match way {
        Way::Interrupts => cpu.print_by_interrupts(lines),
        Way::Polling => cpu.print_polling(lines),
    }
    cpu.let_it_leave();
    let counters = cpu.uart.counters();
    let line = cpu.uart.hardware();
    Ok(Outcome {
        received: line.received.clone(),
        lost: line.lost,
        refused: counters.refused_bytes,
        drops: counters.drops,
        elapsed_ns: line.last_at_ns.saturating_sub(began_ns).max(1),
        accesses: line.accesses - probed.0,
        polls: line.polls - probed.1,
        busy_ns: cpu.busy_ns,
        longest_off_ns: cpu.longest_off_ns,
        late_ticks: cpu.ticks.late,
        bytes_per_second: f64::from(found.rate.baud()) / 10.0,
    })
}

struct Cpu {
    uart: Uart<Line>,
    ticks: Ticks,
    handler_ns: u64,
    busy_ns: u64,
    longest_off_ns: u64,
}

struct Ticks {
    next_ns: u64,
    late: u64,
}

impl Ticks {
    /// Serves what is due by now.
    fn serve(&mut self, now_ns: u64) {
        while self.next_ns <= now_ns {
            self.late += u64::from(now_ns - self.next_ns > LATE_NS);
            self.next_ns += TICK_NS;
        }
    }
}

impl Cpu {
    fn now(&mut self) -> u64 {
        self.uart.hardware().now()
    }

    /// Does something with interrupts masked; ticks that came meanwhile are served behind it.
    fn masked<T>(&mut self, extra_ns: u64, act: impl FnOnce(&mut Uart<Line>) -> T) -> T {
        let began_ns = self.now();
        self.uart.hardware().advance_to(began_ns + extra_ns);
        let result = act(&mut self.uart);
        let now_ns = self.now();
        self.busy_ns += now_ns - began_ns;
        self.longest_off_ns = self.longest_off_ns.max(now_ns - began_ns);
        self.ticks.serve(now_ns);
        result
    }

    fn print_polling(&mut self, lines: &[String]) {
        for line in lines {
            self.masked(0, |uart| uart.send(line.as_bytes(), Patience::USUAL));
        }
    }

    fn print_by_interrupts(&mut self, lines: &[String]) {
        let mut lines = lines.iter().map(|line| line.as_bytes());
        let mut rest: &[u8] = lines.next().unwrap_or_default();
        self.uart.watch(Interrupts::TRANSMITTER_EMPTY);
        while !rest.is_empty() && self.wait() {
            self.uart.interrupted();
            let mut extra_ns = self.handler_ns;
            while !rest.is_empty() {
                let taken = self.masked(extra_ns, |uart| uart.offer(rest));
                if taken == 0 {
                    break;
                }
                extra_ns = 0;
                rest = &rest[taken..];
                if rest.is_empty() {
                    rest = lines.next().unwrap_or_default();
                }
            }
        }
    }

    /// Sleeps until the UART interrupts, served by ticks; `false` if it never does.
    fn wait(&mut self) -> bool {
        let give_up_ns = self.now() + GIVE_UP_NS;
        loop {
            let line = self.uart.hardware();
            let events = [line.interrupt_at(), line.next_change(), Some(self.ticks.next_ns)];
            let next_ns = events.into_iter().flatten().min().unwrap_or(give_up_ns);
            if next_ns >= give_up_ns {
                return false;
            }
            line.advance_to(next_ns);
            let now_ns = line.now();
            let is_interrupted = line.interrupt_at().is_some_and(|at| at <= now_ns);
            self.ticks.serve(now_ns);
            if is_interrupted {
                self.uart.hardware().take_interrupt();
                return true;
            }
        }
    }

    /// Waits until the UART is empty.
    fn let_it_leave(&mut self) {
        let line = self.uart.hardware();
        while let Some(at_ns) = line.next_change() {
            line.advance_to(at_ns);
        }
    }
}
