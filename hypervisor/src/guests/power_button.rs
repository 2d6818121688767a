// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pressing a guest's power button. Only the control channel does.

use vm::platform::acpi;

use crate::arch::percpu;
use crate::guests::guest::Guest;
use crate::guests::instance::Instance;

/// Presses the power button of a guest that runs; the guest shuts down, or ignores that.
///
/// # Errors
/// The reason why the guest cannot hear of it, and a hint.
pub fn press(guest: &Guest) -> Result<(), (&'static str, &'static str)> {
    let run = guest.run::<Instance>().ok_or(("it has just ended", "see `baton vm list`"))?;
    if !acpi::describe_power_button(run.machine.memory()) {
        let reason = "an image without a power button has started it: its ACPI tables describe none";
        return Err((reason, "shut it down from inside, or stop it; at its next start it has one"));
    }
    let mut notify = |vcpu: usize, was_notified: bool| {
        if !was_notified {
            percpu::kick(guest.cpu_to_notify(vcpu));
        }
    };
    run.machine.with_function(run.machine.bus().power_button(), &mut notify, |button, outputs| button.press(outputs));
    log::info!("guest {}: its power button was pressed", guest.config.name);
    Ok(())
}
