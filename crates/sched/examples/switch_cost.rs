// SPDX-License-Identifier: MIT OR Apache-2.0
//! Instructions of the scheduler's part of a switch between four entities: run it under
//! `valgrind --tool=callgrind --toggle-collect='*switch*'` and divide by the number it prints.

use sched::{Choice, RunQueue, Ticks, Weight};

const TICKS_PER_MS: u64 = 2_500_000;
const SWITCHES: u32 = 100_000;

/// Does the hypervisor's work at the end of a slice: charges the guest at its exit, then chooses the next one.
#[inline(never)]
fn switch(queue: &mut RunQueue<32>, now: Ticks) -> Option<Choice> {
    queue.account(now);
    queue.pick(now)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut queue = RunQueue::new(TICKS_PER_MS);
    for (slot, weight) in [100, 100, 200, 400].into_iter().enumerate() {
        queue.insert(slot, Weight::new(weight)?, Ticks(0))?;
        let _ = queue.wake(slot, Ticks(0));
    }
    let mut now = Ticks(0);
    for _ in 0..SWITCHES {
        let choice = switch(&mut queue, now).ok_or("four are runnable and none was chosen")?;
        now = choice.slice_end.ok_or("four are runnable and the slice has no end")?;
    }
    println!("{SWITCHES}");
    Ok(())
}
