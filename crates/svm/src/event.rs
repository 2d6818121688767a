// SPDX-License-Identifier: MIT OR Apache-2.0
//! Interrupts and exceptions on their way into the guest: at most one for each entry.
//!
//! | event | mechanism | section |
//! |---|---|---|
//! | exception, NMI, software interrupt | EVENTINJ | 15.20 |
//! | external interrupt | the virtual interrupt, not intercepted: the CPU takes it before the guest's first instruction, since the guest could take one | 15.21.4 |
//! | interrupt window | the virtual interrupt, intercepted: an exit as soon as the guest can take one | 15.21.4 |
//!
//! The virtual interrupt is also how emulators deliver interrupts of their own accord. QEMU does not note that it has
//! delivered one from EVENTINJ (`helper_vmrun`, up to at least version 10), and delivers it once more when something
//! asynchronous happens to the emulated CPU, say a changed memory map: whatever the guest does then, even with
//! interrupts disabled. So EVENTINJ never has an external interrupt. Where the virtual interrupt is needed for another
//! one, the first is returned to the guest's local APIC.

use vm::vcpu::{Event, Exception, dr6};

use crate::intercept::Misc1;
use crate::vmcb::{Clean, Control, EventInjection, Vmcb, event_type};

/// The highest priority there is (V_INTR_PRIO).
const HIGHEST_PRIORITY: u8 = 0xf;
/// DR7.GD: an access to a debug register is #DB; its delivery clears the bit (section 13.1.1.4).
const DR7_GENERAL_DETECT: u64 = 1 << 13;
/// Vectors below are exceptions' (section 8.2).
const FIRST_INTERRUPT: u8 = 32;

/// Makes the next entry deliver `event`, and sets the registers that the guest's handler reads: CR2 has a page fault's
/// address, DR6 the single step.
#[inline(always)]
pub fn inject(vmcb: &mut Vmcb, event: Event) {
    deliver(&mut vmcb.control, event);
    if let Event::Exception(Exception::PageFault { address, .. }) = event {
        vmcb.save.cr2 = address;
        vmcb.control.clean.remove(Clean::CR2);
    }
    if let Event::Exception(debug @ (Exception::Debug | Exception::SingleStep)) = event {
        vmcb.save.dr6 |= if debug == Exception::SingleStep { dr6::BS } else { 0 };
        vmcb.save.dr7 &= !DR7_GENERAL_DETECT;
        vmcb.control.clean.remove(Clean::DEBUG_REGISTERS);
    }
}

/// Makes the next entry deliver `event`. The guest can take it, if it is an external interrupt.
#[inline(always)]
pub fn deliver(control: &mut Control, event: Event) {
    match event {
        Event::Interrupt(vector) => offer(control, vector),
        other => control.event_injection = encode(other),
    }
}

/// Returns the event that the next entry delivers, if any.
#[inline(always)]
pub fn undelivered(control: &Control) -> EventInjection {
    let virtual_interrupt = control.virtual_interrupt;
    if virtual_interrupt.is_pending() && !control.intercept_misc1.contains(Misc1::VINTR) {
        return encode(Event::Interrupt(virtual_interrupt.vector()));
    }
    control.event_injection
}

/// Makes the next entry deliver an event that was left undelivered elsewhere.
pub fn redeliver(control: &mut Control, event: EventInjection) {
    control.event_injection = EventInjection::new();
    if event.is_valid() && event.kind() == event_type::INTERRUPT {
        offer(control, event.vector());
    } else {
        control.event_injection = event;
    }
}

/// Drops the event to deliver, and the request for a window.
pub fn clear(control: &mut Control) {
    control.event_injection = EventInjection::new();
    control.virtual_interrupt.set_is_pending(false);
    control.intercept_misc1.remove(Misc1::VINTR);
}

/// Requeues, after an exit, an event if the exit interrupted its delivery. A software interrupt or trap is excepted
/// where RIP still points at its instruction (no next-RIP save): the guest executes that again by itself. A virtual
/// interrupt that the guest has not taken stays pending.
#[inline(always)]
pub fn requeue_undelivered(control: &mut Control, has_next_rip: bool) {
    let info = control.exit_interrupt_info;
    control.event_injection = EventInjection::new();
    if info.is_valid() {
        requeue_interrupted(control, info, has_next_rip);
    }
}

#[cold]
fn requeue_interrupted(control: &mut Control, info: EventInjection, has_next_rip: bool) {
    // QEMU reports all that it delivers of its own accord as exceptions.
    let is_interrupt = info.kind() == event_type::EXCEPTION && info.vector() >= FIRST_INTERRUPT;
    let info = if is_interrupt { encode(Event::Interrupt(info.vector())) } else { info };
    let is_trap = info.kind() == event_type::EXCEPTION && matches!(info.vector(), 3 | 4);
    let is_software = info.kind() == event_type::SOFTWARE_INTERRUPT || is_trap;
    if !is_software || has_next_rip {
        redeliver(control, info);
    }
}

/// Withdraws and returns the external interrupt that the next entry would deliver.
#[inline(always)]
pub fn withdraw(control: &mut Control) -> Option<u8> {
    let offered = control.virtual_interrupt;
    if !offered.is_pending() || control.intercept_misc1.contains(Misc1::VINTR) {
        return None;
    }
    control.virtual_interrupt = offered.with_is_pending(false);
    control.clean.remove(Clean::VIRTUAL_INTERRUPT);
    Some(offered.vector())
}

/// Clears EVENTINJ. Returns whether it would have delivered an NMI.
pub fn drop_injection(control: &mut Control) -> bool {
    let dropped = core::mem::replace(&mut control.event_injection, EventInjection::new());
    dropped.is_valid() && dropped.kind() == event_type::NMI
}

/// Requests an exit as soon as the guest can take an interrupt, after the event in EVENTINJ; or cancels the request. An
/// interrupt that is offered keeps its place, see [`withdraw`].
#[inline(always)]
pub fn request_window(control: &mut Control, wanted: bool) {
    let now = control.virtual_interrupt;
    let stands = if wanted { now.is_pending() } else { !control.intercept_misc1.contains(Misc1::VINTR) };
    if stands {
        return;
    }
    control.virtual_interrupt = now.with_is_pending(wanted).with_ignore_tpr(wanted).with_priority(0);
    control.intercept_misc1.set(Misc1::VINTR, wanted);
    control.clean.remove(Clean::VIRTUAL_INTERRUPT | Clean::INTERCEPTS);
}

fn offer(control: &mut Control, vector: u8) {
    let now = control.virtual_interrupt;
    let offered = now.with_is_pending(true).with_ignore_tpr(true).with_priority(HIGHEST_PRIORITY).with_vector(vector);
    control.virtual_interrupt = offered;
    control.clean.remove(Clean::VIRTUAL_INTERRUPT);
    if control.intercept_misc1.contains(Misc1::VINTR) {
        control.intercept_misc1.remove(Misc1::VINTR);
        control.clean.remove(Clean::INTERCEPTS);
    }
}

/// An event as EVENTINJ wants it (section 15.20).
#[inline]
fn encode(event: Event) -> EventInjection {
    let injection = EventInjection::new().with_is_valid(true);
    match event {
        Event::Interrupt(vector) => injection.with_kind(event_type::INTERRUPT).with_vector(vector),
        Event::Nmi => injection.with_kind(event_type::NMI).with_vector(2),
        Event::Exception(exception) => {
            let injection = injection.with_kind(event_type::EXCEPTION).with_vector(exception.vector());
            match exception.error_code() {
                Some(code) => injection.with_has_error_code(true).with_error_code(code),
                None => injection,
            }
        }
    }
}

#[cfg(test)]
#[path = "event_tests.rs"]
mod tests;
