// SPDX-License-Identifier: MIT OR Apache-2.0
//! Networks and their ports.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use bundle::NicConfig;
use rate::Bucket;
use spin::{Mutex, Once};
use switch::{Counters, Mitigation, Network};
use vm::devices::net::{Chain, Net};
use vm::devices::pci::Endpoint;
use vm::devices::virtio::Virtio;

use crate::arch::timer;
use crate::guests::forwarding::Run;

/// A port's bucket holds two frames of the longest at least.
const LEAST_BURST_BYTES: u64 = 128 << 10;

/// All networks, in the bundle's order.
pub static NETWORKS: Once<Vec<Lan>> = Once::new();

/// A network device on its guest's bus.
pub type Device = Arc<Mutex<Endpoint<Virtio<Net>>>>;

/// A network.
pub struct Lan {
    /// Its name.
    pub name: String,
    /// The destinations of frames.
    pub network: Network,
    /// In the network's order.
    pub ports: Vec<Port>,
}

/// A port of a network.
pub struct Port {
    /// The guest that has the port.
    pub guest: u32,
    /// Counts of frames.
    pub counters: Counters,
    /// Held by the vCPU that forwards frames of this port's guest.
    pub sender: Mutex<Sender>,
    /// The receiver, while its guest runs.
    pub plugged: Mutex<Option<Plugged>>,
}

/// The state that sending frames needs.
pub struct Sender {
    pub chain: Box<Chain>,
    /// Whether the driver is asked for notifications.
    pub mitigation: Mitigation,
    pub bucket: Option<Bucket>,
}

/// A device that receives.
pub struct Plugged {
    pub run: Arc<dyn Run>,
    pub device: Device,
}

/// A network device of a run, and its port.
pub struct Nic {
    pub lan: usize,
    pub port: usize,
    pub device: Device,
}

impl Port {
    /// Returns whether its guest runs.
    pub fn is_plugged(&self) -> bool {
        self.plugged.lock().is_some()
    }
}

impl Port {
    /// The port of a guest's device.
    pub fn new(guest: u32, nic: &NicConfig) -> Self {
        let now_ns = timer::uptime_ns();
        let bucket = nic.rate_bytes_per_s.map(|rate| Bucket::new(rate, LEAST_BURST_BYTES, now_ns));
        Self {
            guest,
            counters: Counters::default(),
            sender: Mutex::new(Sender { chain: Box::default(), mitigation: Mitigation::default(), bucket }),
            plugged: Mutex::new(None),
        }
    }
}

/// The network of a device.
pub fn lan(nic: &Nic) -> Option<&'static Lan> {
    NETWORKS.get()?.get(nic.lan)
}

/// The port of a device.
pub fn port(nic: &Nic) -> Option<&'static Port> {
    lan(nic)?.ports.get(nic.port)
}
