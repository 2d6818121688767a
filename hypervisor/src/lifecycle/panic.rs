// SPDX-License-Identifier: MIT OR Apache-2.0
//! Failures of the host: panics and exceptions. [`crate::lifecycle::end`] handles them.

use core::fmt;
use core::panic::PanicInfo;

use crate::arch::percpu;
use crate::arch::stack::is_stack_guard;
use crate::arch::trap::{self, TrapFrame};
use crate::lifecycle::end::{self, Cause};
use crate::lifecycle::exceptions::exception_name;
use crate::lifecycle::update::leaving;

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    leaving::give_up_if_on_trial(info);
    let registers = trap::registers_here();
    let place = info.location().map(Place);
    end::end(&Cause {
        summary: format_args!("panic on CPU {}: {}", percpu::my_number(), info.message()),
        place: place.as_ref().map(|place| place as &dyn fmt::Display),
        registers,
        code: None,
        frame_pointer: trap::frame_pointer(),
    })
}

/// An exception in the host: print everything, and end.
pub fn exception(frame: &TrapFrame) -> ! {
    let name = exception_name(frame.vector as u8);
    let fault = matches!(frame.vector, 8 | 14).then(|| FaultAddress(trap::fault_address()));
    end::end(&Cause {
        summary: format_args!(
            "exception {} {name} on CPU {}, error code {:#x}",
            frame.vector,
            percpu::my_number(),
            frame.error_code
        ),
        place: fault.as_ref().map(|fault| fault as _),
        registers: trap::registers_of(frame),
        code: Some(trap::code_bytes(frame.rip)),
        frame_pointer: frame.rbp,
    })
}

/// A machine check that the host does not survive: print everything, and end.
pub fn machine_check(frame: &TrapFrame, fatal: &mca::Fatal) -> ! {
    end::end(&Cause {
        summary: format_args!("exception 18 {} on CPU {}", exception_name(18), percpu::my_number()),
        place: Some(fatal),
        registers: trap::registers_of(frame),
        code: Some(trap::code_bytes(frame.rip)),
        frame_pointer: frame.rbp,
    })
}

/// A place in the source.
struct Place<'a>(&'a core::panic::Location<'a>);

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {}", self.0)
    }
}

/// The address that could not be read or written.
struct FaultAddress(u64);

impl fmt::Display for FaultAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hint = if is_stack_guard(self.0) { " (the guard page of a stack: it has overflowed)" } else { "" };
        write!(f, "fault address {:#018x}{hint}", self.0)
    }
}
