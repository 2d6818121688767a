// SPDX-License-Identifier: MIT OR Apache-2.0
//! Networks and their ports.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use bundle::{NetworkConfig, NicConfig};
use rate::Bucket;
use spin::{Mutex, Once};
use switch::{Counters, Mac, Mitigation, Network};
use vm::devices::net::{Chain, Net};
use vm::devices::pci::Endpoint;
use vm::devices::virtio::Virtio;

use super::tap::Tap;
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
    /// Its ports as they are now. Each sender has a reference of its own, so that none takes this lock.
    pub topology: Mutex<Arc<Topology>>,
}

/// The ports of a network. A change makes another one.
pub struct Topology {
    /// The destinations of frames.
    pub network: Network,
    /// By the network's numbers.
    pub ports: Vec<Option<Arc<Port>>>,
    /// Where frames can be captured.
    pub tap: Arc<Tap>,
}

/// A port of a network.
pub struct Port {
    /// The guest that has the port.
    pub guest: u32,
    /// Counts of frames.
    pub counters: Counters,
    /// For each pair of the device's queues; held by the vCPU that forwards its frames.
    pub senders: Vec<Mutex<Sender>>,
    /// The limit on what all of them send.
    pub bucket: Option<Mutex<Bucket>>,
    /// The receiver, while its guest runs.
    pub plugged: Mutex<Option<Plugged>>,
}

/// The state that sending the frames of a pair of queues needs.
pub struct Sender {
    pub chain: Box<Chain>,
    /// Whether the driver is asked for notifications.
    pub mitigation: Mitigation,
    /// `None` once the port is removed: a port does not keep itself.
    pub topology: Option<Arc<Topology>>,
}

/// A device that receives.
pub struct Plugged {
    pub run: Arc<dyn Run>,
    pub device: Device,
}

/// A network device of a run, and its port.
pub struct Nic {
    pub port: Arc<Port>,
    /// The port's number on its network.
    pub number: usize,
    pub device: Device,
}

impl Port {
    /// The port of a guest's device.
    pub fn new(guest: u32, nic: &NicConfig) -> Self {
        let now_ns = timer::uptime_ns();
        let bucket = nic.rate_bytes_per_s.map(|rate| Mutex::new(Bucket::new(rate, LEAST_BURST_BYTES, now_ns)));
        let sender =
            |_| Mutex::new(Sender { chain: Box::default(), mitigation: Mitigation::default(), topology: None });
        let senders = (0..nic.queue_pairs.max(1)).map(sender).collect();
        Self { guest, counters: Counters::default(), senders, bucket, plugged: Mutex::new(None) }
    }

    /// Returns whether its guest runs.
    pub fn is_plugged(&self) -> bool {
        self.plugged.lock().is_some()
    }
}

impl Nic {
    /// The pairs of queues whose frames are to be sent. A vCPU begins with that by which Linux sends there, so that no
    /// pair waits for ever behind another one.
    pub fn waiting(&self, vcpu: usize) -> impl Iterator<Item = usize> {
        let pairs = self.port.senders.len();
        let waiting = if pairs == 1 { 1 } else { self.device.lock().virtio_device().waiting() };
        (vcpu..vcpu + pairs)
            .filter_map(move |pair| pair.checked_rem(pairs))
            .filter(move |pair| waiting & 1 << pair != 0)
    }
}

impl Topology {
    /// The port of this number.
    pub fn port(&self, number: usize) -> Option<&Arc<Port>> {
        self.ports.get(number)?.as_ref()
    }

    /// The port with this address, and its number.
    pub fn with_mac(&self, mac: Mac) -> Option<(usize, &Arc<Port>)> {
        let (number, _) = self.network.ports().find(|(_, port)| port.mac == mac)?;
        Some((number, self.port(number)?))
    }

    /// With a port more.
    ///
    /// # Errors
    /// Why there can be no such network.
    fn with_port(&self, port: Arc<Port>, its: switch::Port) -> Result<Self, switch::Refused> {
        let number = self.network.free_number().ok_or(switch::Refused::TooManyPorts)?;
        let network = self.network.with_port(number, its)?;
        let mut ports = self.ports.clone();
        ports.resize(ports.len().max(number + 1), None);
        ports[number] = Some(port);
        Ok(Self { network, ports, tap: self.tap.clone() })
    }

    fn without_port(&self, number: usize) -> Option<Self> {
        let network = self.network.without_port(number)?;
        let mut ports = self.ports.clone();
        *ports.get_mut(number)? = None;
        Some(Self { network, ports, tap: self.tap.clone() })
    }
}

impl Lan {
    /// A network without ports.
    pub fn new(config: &NetworkConfig) -> Self {
        let (network, tap) = (Network::empty(config.mtu.into()), Arc::default());
        let empty = Topology { network, ports: Vec::new(), tap };
        Self { name: config.name.clone(), topology: Mutex::new(Arc::new(empty)) }
    }

    /// Its ports as they are now.
    pub fn now(&self) -> Arc<Topology> {
        self.topology.lock().clone()
    }

    /// Adds a port.
    ///
    /// # Errors
    /// Why there can be no such port.
    pub fn add(&self, guest: u32, nic: &NicConfig, its: switch::Port) -> Result<(), switch::Refused> {
        self.now().with_port(Arc::new(Port::new(guest, nic)), its).map(|changed| self.change_to(changed))
    }

    /// Removes the port with this address.
    pub fn remove(&self, mac: Mac) {
        let now = self.now();
        let Some((number, port)) = now.with_mac(mac) else { return };
        if let Some(changed) = now.without_port(number) {
            self.change_to(changed);
        }
        for sender in &port.senders {
            let before = sender.lock().topology.take();
            drop(before);
        }
    }

    /// Each sender goes on with this topology. Its turn that is under way ends with the one before.
    fn change_to(&self, changed: Topology) {
        let changed = Arc::new(changed);
        for sender in changed.ports.iter().flatten().flat_map(|port| &port.senders) {
            let before = sender.lock().topology.replace(changed.clone());
            // This may be the last of it: not under the lock.
            drop(before);
        }
        let before = core::mem::replace(&mut *self.topology.lock(), changed);
        drop(before);
    }
}
