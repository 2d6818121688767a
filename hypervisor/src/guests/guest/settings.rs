// SPDX-License-Identifier: MIT OR Apache-2.0
//! The settings of a guest that change while it runs.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use bundle::{GuestConfig, OnPanic};
use sched::{Cap, Limit, Ticks, Weight};
use spin::Mutex;

use crate::arch::timer;

/// The settings, as they are now. Written by the control channel.
pub struct Settings {
    weight: AtomicU32,
    autostart: AtomicBool,
    on_panic: Mutex<OnPanic>,
    /// 0: none.
    cap_percent: AtomicU32,
    cap: Mutex<Cap>,
}

impl Settings {
    /// The settings of a configuration.
    pub fn of(config: &GuestConfig) -> Self {
        Self {
            weight: AtomicU32::new(config.weight),
            autostart: AtomicBool::new(config.autostart),
            on_panic: Mutex::new(config.on_panic),
            cap_percent: AtomicU32::new(config.cap_percent),
            cap: Mutex::new(Cap::default()),
        }
    }

    /// Returns its vCPUs' weight where several share a CPU.
    pub fn weight(&self) -> Weight {
        Weight::new(self.weight.load(Ordering::Relaxed)).unwrap_or_default()
    }

    /// Returns whether it starts with the host.
    pub fn autostart(&self) -> bool {
        self.autostart.load(Ordering::Relaxed)
    }

    /// The host's action when its kernel has panicked or hangs.
    pub fn on_panic(&self) -> OnPanic {
        *self.on_panic.lock()
    }

    /// Returns when a vCPU that starts to run now must have stopped, where the guest has an upper limit that `vcpus`
    /// share; `Err`: it may not run before then.
    #[inline]
    pub fn cap_stop(&self, now: u64, vcpus: u32) -> Result<Option<u64>, u64> {
        match self.cap_percent.load(Ordering::Relaxed) {
            0 => Ok(None),
            percent => {
                let limit = Limit { ticks_per_ms: timer::us_to_ticks(1000), percent, vcpus };
                self.cap.lock().stop_at(Ticks(now), limit).map(|stop| Some(stop.0)).map_err(|until| until.0)
            }
        }
    }

    /// Counts the time for which a vCPU has run.
    #[cold]
    pub fn charge(&self, ran: u64) {
        self.cap.lock().charge(Ticks(ran));
    }

    /// Takes the settings of this configuration.
    pub fn take(&self, config: &GuestConfig) {
        self.weight.store(config.weight, Ordering::Relaxed);
        self.autostart.store(config.autostart, Ordering::Relaxed);
        *self.on_panic.lock() = config.on_panic;
        self.cap_percent.store(config.cap_percent, Ordering::Relaxed);
    }

    /// Writes the settings to a configuration.
    pub fn write_to(&self, config: &mut GuestConfig) {
        config.weight = self.weight.load(Ordering::Relaxed);
        config.cap_percent = self.cap_percent.load(Ordering::Relaxed);
        (config.autostart, config.on_panic) = (self.autostart(), self.on_panic());
    }
}
