// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine's ports. A port that nobody has reads as all ones and swallows what is written.

use super::{Cpu, Host, Machine, Stop};
use crate::devices::device::At;
use crate::exit::PortAccess;
use crate::memory::GuestMemory;
use crate::platform::layout::port;

const COM1_LAST: u16 = port::COM1 + 7;

impl<M: GuestMemory> Machine<M> {
    /// One transfer. Returns what an IN receives; `stop` is set if the guest ends by it.
    pub(super) fn port_access(
        &self,
        cpu: &mut Cpu,
        host: &mut impl Host,
        access: &PortAccess,
        value: u32,
        stop: &mut Option<Stop>,
    ) -> u32 {
        let PortAccess { port, size, is_in, .. } = *access;
        let written = if is_in { None } else { Some(value.into()) };
        // The console is the busiest device with ports: it is not searched for.
        if let port::COM1..=COM1_LAST = port {
            let at = At { range: 0, offset: (port - port::COM1).into(), size };
            return self.access_device(self.bus.com1(), at, written, (cpu, host, stop)) as u32;
        }
        let found = self.bus.find_port(port, size).and_then(|place| self.bus.device(place));
        let Some((device, at)) = found else { return size.mask() as u32 };
        (self.access_device(device, at, written, (cpu, host, stop)) & size.mask()) as u32
    }
}
