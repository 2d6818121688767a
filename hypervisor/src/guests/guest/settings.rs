// SPDX-License-Identifier: MIT OR Apache-2.0
//! The settings of a guest that change while it runs.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use bundle::{GuestConfig, OnPanic};
use sched::Weight;
use spin::Mutex;

/// The settings, as they are now. Written by the control channel.
pub struct Settings {
    weight: AtomicU32,
    autostart: AtomicBool,
    on_panic: Mutex<OnPanic>,
}

impl Settings {
    /// The settings of a configuration.
    pub fn of(config: &GuestConfig) -> Self {
        Self {
            weight: AtomicU32::new(config.weight),
            autostart: AtomicBool::new(config.autostart),
            on_panic: Mutex::new(config.on_panic),
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

    /// Takes the settings of this configuration.
    pub fn take(&self, config: &GuestConfig) {
        self.weight.store(config.weight, Ordering::Relaxed);
        self.autostart.store(config.autostart, Ordering::Relaxed);
        *self.on_panic.lock() = config.on_panic;
    }

    /// Writes the settings to a configuration.
    pub fn write_to(&self, config: &mut GuestConfig) {
        config.weight = self.weight.load(Ordering::Relaxed);
        (config.autostart, config.on_panic) = (self.autostart(), self.on_panic());
    }
}
