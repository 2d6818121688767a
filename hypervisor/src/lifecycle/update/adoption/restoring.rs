// SPDX-License-Identifier: MIT OR Apache-2.0
//! Restoring of a saved vCPU or of devices into the run that was built for it.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec;

use ::update::slots::Restorer;
use handover::block::{self, Owner};
use handover::layout::guests::BlockPlace;
use handover::state;

use crate::arch::fault;
use crate::guests::instance::Instance;
use crate::guests::task::Task;
use crate::kernel::inherited;

/// The restorer of slots.
pub struct Restoring;

impl Restorer<Box<Task>, Arc<Instance>> for Restoring {
    type Error = String;

    fn restore_vcpu(&mut self, task: &mut Box<Task>, from: &BlockPlace) -> Result<(), String> {
        let restored = shown(from, |bytes| {
            fault::point!(
                crate::lifecycle::faults::update::with_saved(bytes, |bytes| task.restore(bytes)),
                else task.restore(bytes)
            )
        });
        restored.map_err(|problem| named(task, from, &problem))
    }

    fn restore_devices(&mut self, run: &Arc<Instance>, from: &BlockPlace) -> Result<(), String> {
        let owner = Owner { guest: run.guest.number, vcpu: 0 };
        let restored = shown(from, |bytes| {
            let mut widened = None;
            let opened = block::open_in_place::<state::Devices>(bytes, owner, &mut widened);
            let (from, tail) = opened.map_err(|error| error.to_string())?;
            run.machine.restore_devices(from, tail).map_err(|error| error.to_string())
        });
        restored.map_err(|problem| format!("guest '{}', devices: {problem}", run.guest.config.name))
    }

    fn verify_vcpu(&mut self, task: &mut Box<Task>, from: &BlockPlace) -> Result<(), String> {
        fault::point!(if crate::lifecycle::faults::update::is_astray() {
            task.stray()
        });
        let mut scratch = vec![0; from.bytes.get() as usize];
        let verified = shown(from, |bytes| task.verify(bytes, &mut scratch));
        verified.map_err(|problem| named(task, from, &problem))
    }
}

fn shown(place: &BlockPlace, restore: impl FnOnce(&[u8]) -> Result<(), String>) -> Result<(), String> {
    inherited::with_block(place.start.get(), place.bytes.get(), restore).unwrap_or_else(|| Err("it is nowhere".into()))
}

fn named(task: &Task, place: &BlockPlace, problem: &str) -> String {
    format!("guest '{}', vCPU {}: {problem}", task.instance().guest.config.name, place.vcpu.get())
}
