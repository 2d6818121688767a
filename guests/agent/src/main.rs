// SPDX-License-Identifier: MIT OR Apache-2.0
//! `/init` of the initramfs that demo, tests and benches boot.
//!
//! It reports that userspace is reached, what machine it finds itself on, then does the tasks that the kernel command
//! line names (`agent=memtest,poweroff`; see [`options`]) and powers off, unless one of them goes on for ever. It runs
//! as process 1: when it ends the kernel panics, so it never ends, and nothing it prints may fail it.

mod busy;
mod churn;
mod contend;
mod disk;
mod dmi;
mod drivers;
mod echo;
mod flood;
mod hvc;
mod machine;
mod nvme_functions;
mod options;
mod plugged;
mod power_key;
mod print;
mod queues;
mod random;
mod reads;
mod replug;
mod serve;
mod stream;
mod stress;
mod system;
mod tasks;
mod virtual_functions;
mod vsock;

use std::fs;

use options::Task;

/// Prints a line on the console; a console that is gone is no reason for process 1 to end.
macro_rules! log {
    ($($words:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout(), $($words)*);
    }};
}
pub(crate) use log;

fn main() -> ! {
    log!("baton-agent: init reached, uptime={}", machine::uptime());
    for complaint in system::mount_all() {
        log!("baton-agent: {complaint}");
    }
    log!("{}", machine::greeting());
    match options::tasks(&fs::read_to_string("/proc/cmdline").unwrap_or_default()) {
        Ok(tasks) => {
            tasks.iter().copied().for_each(tasks::run);
            if tasks.into_iter().any(Task::goes_on) {
                system::wait()
            }
        }
        Err(error) => log!("baton-agent: {error}"),
    }
    system::power_off()
}
