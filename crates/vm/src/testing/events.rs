// SPDX-License-Identifier: MIT OR Apache-2.0
//! The event that a vCPU for tests has under way, saved and restored.

use handover::state::{Registers, event_flag};

use crate::devices::StateError;
use crate::vcpu::{Event, Exception};

/// Kinds of events as CPUs number them.
const INTERRUPT: u8 = 0;
const NMI: u8 = 2;
const EXCEPTION: u8 = 3;

pub(super) fn save_event(event: Option<Event>, into: &mut Registers) {
    let (kind, vector, code) = match event {
        None => return (into.event_kind, into.event_vector, into.event_flags, into.event_code) = (0, 0, 0, 0.into()),
        Some(Event::Interrupt(vector)) => (INTERRUPT, vector, None),
        Some(Event::Nmi) => (NMI, 2, None),
        Some(Event::Exception(Exception::Debug | Exception::SingleStep)) => (EXCEPTION, 1, None),
        Some(Event::Exception(Exception::DivideError)) => (EXCEPTION, 0, None),
        Some(Event::Exception(Exception::InvalidOpcode)) => (EXCEPTION, 6, None),
        Some(Event::Exception(Exception::StackFault(code))) => (EXCEPTION, 12, Some(code)),
        Some(Event::Exception(Exception::GeneralProtection(code))) => (EXCEPTION, 13, Some(code)),
        Some(Event::Exception(Exception::PageFault { code, address })) => {
            into.cr2 = address.into();
            (EXCEPTION, 14, Some(code))
        }
        Some(Event::Exception(Exception::Fault { vector, code })) => (EXCEPTION, vector, code),
    };
    let has_code = if code.is_some() { event_flag::HAS_CODE } else { 0 };
    (into.event_kind, into.event_vector) = (kind, vector);
    (into.event_flags, into.event_code) = (event_flag::IS_VALID | has_code, code.unwrap_or(0).into());
}

pub(super) fn restored_event(from: &Registers) -> Result<Option<Event>, StateError> {
    if from.event_flags & event_flag::IS_VALID == 0 {
        return Ok(None);
    }
    let code = from.event_code.get();
    Ok(Some(match (from.event_kind, from.event_vector) {
        (INTERRUPT, vector) => Event::Interrupt(vector),
        (NMI, _) => Event::Nmi,
        (EXCEPTION, 1) => Event::Exception(Exception::Debug),
        (EXCEPTION, 0) => Event::Exception(Exception::DivideError),
        (EXCEPTION, 12) => Event::Exception(Exception::StackFault(code)),
        (EXCEPTION, 6) => Event::Exception(Exception::InvalidOpcode),
        (EXCEPTION, 13) => Event::Exception(Exception::GeneralProtection(code)),
        (EXCEPTION, 14) => Event::Exception(Exception::PageFault { code, address: from.cr2.get() }),
        (EXCEPTION, vector @ 3..32) => {
            let has_code = from.event_flags & event_flag::HAS_CODE != 0;
            Event::Exception(Exception::Fault { vector, code: has_code.then_some(code) })
        }
        _ => return Err(StateError { field: "registers.event", reason: "this fake has no such event" }),
    }))
}
