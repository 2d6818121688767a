// SPDX-License-Identifier: MIT OR Apache-2.0
mod cap;
mod choices;
mod fairness;
mod leaving;
mod placement;
mod scripts;
mod sleepers;
mod throttle;

use super::*;

/// Ticks per millisecond of a 2.5 GHz clock.
const MS: u64 = 2_500_000;

fn weight(weight: u32) -> Weight {
    Weight::new(weight).unwrap()
}

/// A CPU that runs the entity that its queue chooses.
struct Cpu<const N: usize> {
    queue: RunQueue<N>,
    now: u64,
}

impl<const N: usize> Cpu<N> {
    /// Entities of these weights, all awake.
    fn with_weights(weights: &[u32]) -> Self {
        let mut cpu = Self { queue: RunQueue::new(MS), now: 0 };
        for (slot, &weight) in weights.iter().enumerate() {
            cpu.queue.insert(slot, super::tests::weight(weight), Ticks(0)).unwrap();
            let _ = cpu.queue.wake(slot, Ticks(0));
        }
        cpu
    }

    fn now(&self) -> Ticks {
        Ticks(self.now)
    }

    fn pick(&mut self) -> Option<Choice> {
        self.queue.pick(Ticks(self.now))
    }

    fn wake(&mut self, slot: usize) -> Wakeup {
        self.queue.wake(slot, Ticks(self.now))
    }

    /// Runs the chosen entities until `until`, whole slices but for the last. `exit_ticks`: how late each slice ends.
    fn run_until(&mut self, until: u64, exit_ticks: u64) {
        while self.now < until {
            let end = self.pick().and_then(|choice| choice.slice_end).map_or(until, |end| end.0 + exit_ticks);
            self.now = end.min(until);
        }
        self.queue.account(self.now());
    }

    fn running_ticks(&self, slot: usize) -> u64 {
        self.queue.times(slot).unwrap().running.0
    }
}
